"""Redacts secrets in rows, and counts them by name."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any, cast

from segue.canonical.json import encode_json_text
from segue.redaction import redact_values

_REMOVED = re.compile(r"\[([A-Za-z][\w ]{1,30}) removed\]")


def redact_output(value: Any) -> tuple[Any, Counter[str]]:
    """Return a row without its secrets, and how many of each kind were removed. Images are not searched."""
    redacted = _redact(value)
    if redacted == value:
        return value, Counter()
    before, after = (Counter(_REMOVED.findall(encode_json_text(each))) for each in (value, redacted))
    return redacted, after - before


def _redact(value: Any) -> Any:
    """Redact texts, but not ids and images, which have no secrets and are long."""
    if isinstance(value, list):
        return [_redact(item) for item in cast("list[Any]", value)]
    if isinstance(value, dict):
        fields = cast("dict[str, Any]", value)
        if any(isinstance(item, str) and item.startswith("data:") for item in fields.values()):
            return fields
        if fields.keys() & {"role", "messages", "tool_calls", "steps", "content", "conversations"}:
            return {key: _redact(item) for key, item in fields.items()}
        return redact_values(fields)
    return redact_values(value)
