"""Redacts secrets in rows, and counts them by name."""

from __future__ import annotations

import re
from collections import Counter
from functools import lru_cache
from typing import Any, cast

from segue.canonical.json import encode_json_text
from segue.redaction import redact, redact_values

_ARGUMENTS = frozenset({"arguments", "kwargs", "input", "args"})
"""Objects whose fields may be named after the secret in them."""
_SHORT = 64
_redact_short = lru_cache(maxsize=4096)(redact)
"""For names, roles and types, which repeat in every row."""
_REMOVED = re.compile(r"\[([A-Za-z][\w ]{1,30}) removed\]")


def redact_output(value: Any) -> tuple[Any, Counter[str]]:
    """Return a row without its secrets, and how many of each kind were removed. Images are not searched."""
    redacted = _redact(value)
    if redacted == value:
        return value, Counter()
    before, after = (Counter(_REMOVED.findall(encode_json_text(each))) for each in (value, redacted))
    return redacted, after - before


def _redact(value: Any, key: str = "") -> Any:
    """Redact texts and arguments, but not images, which are long and have no secrets."""
    if isinstance(value, str):
        return value if value.startswith("data:") else _redact_short(value) if len(value) < _SHORT else redact(value)
    if isinstance(value, list):
        return [_redact(item) for item in cast("list[Any]", value)]
    if isinstance(value, dict):
        fields = cast("dict[str, Any]", value)
        if key in _ARGUMENTS:
            return redact_values(fields)
        return {
            name: _redact_short(item) if isinstance(item, str) and len(item) < _SHORT else _redact(item, name)
            for name, item in fields.items()
        }
    return value
