"""Canonical conversations: blocks, requests, ids, pairing, history. Nothing here repairs, guesses or drops."""
