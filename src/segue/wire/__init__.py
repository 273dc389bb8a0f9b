"""Wires: each API's JSON ⇄ canonical values. A wire never invents, reorders or drops an interaction."""
