"""The texts that a compression puts in place of content.

The data fields `ToolResponse.shortened` and `Message.summarised` mark them; the patterns are for results that were
shortened before these fields existed, and for tools that shorten their own output.
"""

from __future__ import annotations

import re

from segue.canonical.blocks import Shortening, Text, ToolCall, ToolResponse, text_of
from segue.canonical.json import encode_json_text

REMOVED = "[result removed to save space]"
CUT_NOTE = "\n[… {count:,} characters left out …]\n"
MEDIA_REMOVED = "[{kind} left out]"
SUMMARY = "[summary of {count} earlier messages] {text}"
_NOTES = {
    "repeated": "[repeated: the same result of {call} is further on]",
    "superseded": "[superseded: a newer result of {call} is further on]",
    "stale": "[stale: {path} was changed since; a newer result of {call} is further on]",
}
_MAX_CALL_LENGTH = 80

CUT_PATTERN = re.compile(r"\n\[… ([0-9]{1,3}(?:,[0-9]{3}){0,4}) characters left out …\]\n")
SUMMARY_PATTERN = re.compile(r"\[summary of [0-9]{1,9} earlier messages\] ")
_PLACEHOLDER_PATTERN = re.compile(r"\[(?:repeated|superseded|stale): .+ further on\]|" + re.escape(REMOVED))


def is_note(response: ToolResponse) -> bool:
    """Return whether a note stands in place of the whole result."""
    if response.shortened is not None:
        return response.shortened.reason != "cut"
    return _PLACEHOLDER_PATTERN.fullmatch(text_of(response.content)) is not None


def format_note(shortening: Shortening, call: ToolCall) -> Text:
    """Return the note that refers to the result of a later call."""
    return Text(_NOTES[shortening.reason].format(call=_format_call(call), path=shortening.path))


def _format_call(call: ToolCall) -> str:
    """Format a call on one short line."""
    arguments = call.arguments if isinstance(call.arguments, str) else encode_json_text(call.arguments)
    line = " ".join(f"{call.name} {arguments}".split())
    return line if len(line) <= _MAX_CALL_LENGTH else f"{line[: _MAX_CALL_LENGTH - 1]}…"
