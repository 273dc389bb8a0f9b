"""One more turn of a conversation that has many already: what it costs to render, against a short one and the whole.

Usage: python benchmarks/growth.py [--write]. Ratios of one interleaved run; `--write` puts them into docs/speed.md.
"""
