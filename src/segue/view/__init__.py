"""Renders conversations for people: as an HTML page, as Markdown, as lines for a terminal."""
