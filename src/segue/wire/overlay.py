"""At home nothing is written anew that need not be: the original is taken, and only what changed is laid over it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["laid_over", "rewritten", "unmodelled"]


def laid_over(fragment: Mapping[str, Any], before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """The fragment with the differences between two renderings of the modelled part applied; key order is kept."""
    body = dict(fragment)
    for key in [*before, *after]:
        if before.get(key) == after.get(key):
            continue
        if key in after:
            body[key] = after[key]
        else:
            body.pop(key, None)
    return body


def unmodelled(fragment: Mapping[str, Any], modelled: frozenset[str]) -> dict[str, Any]:
    """The keys of a fragment that no canonical field speaks for."""
    return {key: value for key, value in fragment.items() if key not in modelled}


def rewritten(fragment: Mapping[str, Any], anew: dict[str, Any], modelled: frozenset[str]) -> dict[str, Any]:
    """The fragment with its modelled keys written anew; the other keys stay, and so does the order."""
    body = {key: anew.get(key, value) for key, value in fragment.items() if key in anew or key not in modelled}
    body.update(anew)
    return body
