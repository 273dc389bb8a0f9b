"""Same-API merging: the original fragment is kept, and only its changed fields are replaced."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from segue.canonical.blocks import Native


def intact_fragment(native: Native | None, api: str) -> dict[str, Any] | None:
    """Return the original fragment, if it is from this API and intact."""
    if native is None or not native.intact or native.api != api:
        return None
    fragment: Any = native.fragment
    return fragment


def merge_changes(fragment: Mapping[str, Any], before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """Apply the difference between two renderings of a fragment's modelled fields to it; keep the order of keys."""
    body = dict(fragment)
    for key in [*before, *after]:
        if before.get(key) == after.get(key):
            continue
        if key in after:
            body[key] = after[key]
        else:
            body.pop(key, None)
    return body


def unmodelled_fields(fragment: Mapping[str, Any], modelled: frozenset[str]) -> dict[str, Any]:
    """Return the fields of a fragment that no canonical field models."""
    return {key: value for key, value in fragment.items() if key not in modelled}


def replace_modelled_fields(
    fragment: Mapping[str, Any], rendered: dict[str, Any], modelled: frozenset[str]
) -> dict[str, Any]:
    """Replace the modelled fields of a fragment by the rendered ones; keep other fields and the order of keys."""
    body = {key: rendered.get(key, value) for key, value in fragment.items() if key in rendered or key not in modelled}
    body.update(rendered)
    return body


def set_or_remove(body: dict[str, Any], key: str, value: object) -> None:
    """Set a field, or remove it if the value is empty."""
    if value:
        body[key] = value
    else:
        body.pop(key, None)
