"""Streams of all APIs, without I/O: framing, events, parsing and rendering."""
