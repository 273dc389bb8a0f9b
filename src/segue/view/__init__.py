"""Renders conversations for people: an HTML page, Markdown, lines for a terminal. Nothing here writes or fetches."""
