"""Pydantic's sentences about values that do not match the types, which Anthropic and Mistral send."""

from __future__ import annotations

from collections.abc import Iterable

from segue.specs.types import Mismatch

MISSING = "Field required"
EXTRA = "Extra inputs are not permitted"
EMPTY_STRING = "String should have at least 1 character"
_NOUNS = {
    **{kind: kind for kind in ("string", "integer", "number", "boolean", "list")},
    "map": "dictionary",
    "object": "dictionary or object to extract fields from",
}


def type_message(kind: str) -> str:
    """Return the sentence for a value of another type than this kind of `Spec`."""
    return f"Input should be a valid {_NOUNS.get(kind, _NOUNS['object'])}"


def bounds_message(mismatch: Mismatch) -> str:
    if mismatch.spec.kind == "string" and mismatch.kind == "long":
        return f"String should have at most {mismatch.spec.maximum:g} characters"
    side, bound = ("greater", mismatch.spec.minimum) if mismatch.kind == "short" else ("less", mismatch.spec.maximum)
    return f"Input should be {side} than or equal to {bound:g}"


def missing_tag_message(discriminator: str) -> str:
    return f"Unable to extract tag using discriminator '{discriminator}'"


def tag_message(tag: object, known: Iterable[str], discriminator: str = "type") -> str:
    """Return the sentence for an object whose tag is none of the known ones."""
    tags = ", ".join(f"'{name}'" for name in known)
    return f"Input tag '{tag}' found using '{discriminator}' does not match any of the expected tags: {tags}"
