"""The keys under which segue adds its own data to a client's session. The clients ignore them."""

from __future__ import annotations

MARK_KEY = "segue"
"""Marks a message or text that segue added."""
PARENT_KEY = "segueParent"
"""Names the session that this one was moved from, as `CLIENT:ID`."""
SEAL_KEY = "segueSeal"
"""Has a seal: the journey of the session."""
