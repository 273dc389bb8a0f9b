"""Vendors on one of the wires: data and small overrides, each in a module of its own."""
