"""What may be said to a target: canonical history in, lawful transcript and report out. Knows no provider's JSON."""
