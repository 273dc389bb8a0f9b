"""The terminal chat: a view of a session's events, an input line below it, and commands.

Text of models and tools reaches the terminal only through `sanitize`.
"""
