"""Suites of other projects, run against `segue serve` on every emulated provider: `make suites`."""
