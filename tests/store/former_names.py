"""The names that frozen values have since schema version 5."""

from __future__ import annotations

from typing import Any

from segue.store.events import FORMER_KINDS

_FIELDS = {
    "sealed": "encrypted",
    "silent": "omit_reason",
    "kindred": "vendor_options",
    "cause": "raw_finish",
    "others": "other_choices",
    "beside": "unknown_fields",
    "seen": "sent",
    "taken_back": "rewound",
}


def rename_fields(value: Any) -> Any:
    """Return a frozen value with the present names of its fields; those of an API's fragment are its own."""
    if isinstance(value, list):
        return [rename_fields(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {
        _FIELDS.get(name, name): item if name in ("fragment", "arguments", "structured") else rename_fields(item)
        for name, item in value.items()
    }


def rename_event(event: dict[str, Any]) -> dict[str, Any]:
    """Return a frozen event with its present kind and names."""
    return {**rename_fields(event), "type": FORMER_KINDS.get(event["type"], event["type"])}
