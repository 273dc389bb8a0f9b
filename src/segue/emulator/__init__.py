"""Strict providers on loopback: they take what the real one takes, refuse what it refuses, and use tools."""
