"""Dialects: vendors' variants of a wire, as data and small overrides, one module each."""
