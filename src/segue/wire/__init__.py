"""How each API says it: JSON to canonical values and back. Nothing here invents, reorders or drops an interaction."""
