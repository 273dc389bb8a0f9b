"""The fixed placeholder texts of a compression."""

from __future__ import annotations

import re

REMOVED = "[result removed to save space]"
CUT_NOTE = "\n[… {count:,} characters left out …]\n"
MEDIA_REMOVED = "[{kind} left out]"
SUMMARY = "[summary of {count} earlier messages] {text}"
REPEATED = "[repeated: the same result of {call} is further on]"
SUPERSEDED = "[superseded: a newer result of {call} is further on]"
STALE = "[stale: {path} was changed since; a newer result of {call} is further on]"

# Exactly as compression writes them: a tool may print something similar.
CUT_PATTERN = re.compile(r"\n\[… ([0-9]{1,3}(?:,[0-9]{3}){0,4}) characters left out …\]\n")
SUMMARY_PATTERN = re.compile(r"\[summary of ([0-9]{1,9}) earlier messages\] ")
_PLACEHOLDER_PATTERN = re.compile(r"\[(?:repeated|superseded|stale): .+ further on\]|" + re.escape(REMOVED))


def is_placeholder(text: str) -> bool:
    """Return whether this text is a placeholder that replaced a whole result."""
    return _PLACEHOLDER_PATTERN.fullmatch(text) is not None
