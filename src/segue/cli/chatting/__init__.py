"""The terminal chat. A view over a session's events, an input line below it, and commands.

What a model or a tool says reaches the terminal through `clean.harmless` alone.
"""
