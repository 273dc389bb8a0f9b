"""Conversations to look at: a page for a browser, Markdown, lines for a terminal. Nothing here writes or fetches."""
