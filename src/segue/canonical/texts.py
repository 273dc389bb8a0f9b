"""The fixed placeholder texts of a compression."""

from __future__ import annotations

import re

__all__ = [
    "CUT",
    "LEFT_OUT",
    "MEDIA_LEFT_OUT",
    "REMOVED",
    "REPEATED",
    "STALE",
    "SUMMARY",
    "SUMMED",
    "SUPERSEDED",
    "is_mark",
]

REMOVED = "[result removed to save space]"
LEFT_OUT = "\n[… {count:,} characters left out …]\n"
MEDIA_LEFT_OUT = "[{kind} left out]"
SUMMARY = "[summary of {count} earlier messages] {text}"
REPEATED = "[repeated: the same result of {call} is further on]"
SUPERSEDED = "[superseded: a newer result of {call} is further on]"
STALE = "[stale: {path} was changed since; a newer result of {call} is further on]"

# Exactly as compression writes them: a tool may print something similar.
CUT = re.compile(r"\n\[… ([0-9]{1,3}(?:,[0-9]{3}){0,4}) characters left out …\]\n")
SUMMED = re.compile(r"\[summary of ([0-9]{1,9}) earlier messages\] ")
_MARK = re.compile(r"\[(?:repeated|superseded|stale): .+ further on\]|" + re.escape(REMOVED))


def is_mark(text: str) -> bool:
    """Whether this text is a placeholder that replaced a whole result."""
    return _MARK.fullmatch(text) is not None
