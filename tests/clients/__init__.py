"""Coding clients from npm, run headless behind a gateway with emulated providers: `make clients`."""
