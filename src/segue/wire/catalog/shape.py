"""The shape of a type: where in its payload stand the name, the arguments, the output and the ids."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal

from msgspec import Struct

from segue.wire.catalog.fields import Arguments, Output, nothing
from segue.wire.catalog.paths import at
from segue.wire.fields import JsonObject

__all__ = ["Inside", "Shape", "is_true", "one_of"]


class Inside(Struct, frozen=True):
    """The wire that a type is part of, and the body of that wire that holds one payload.

    What stands in `replies_only` is refused where it is sent again (AZF-08).
    """

    api: str
    body: Callable[[JsonObject], JsonObject]
    replies_only: bool = False


def _never(_payload: JsonObject) -> bool:
    return False


class Shape(Struct, frozen=True, kw_only=True):
    """`id` is the path of what call and output meet on, `item` that of the item's own id where it is another field.

    `namespace` is the path of the first half of a name that has two, `tool` the name where the payload has none.
    `many` is the path of a list whose members are each a call or an output; the other paths are then those inside a
    member, of which a `bare` one is nothing but its id.
    `defaults` are the values, by their paths, of required fields that blocks do not know.
    """

    id: str | None = None
    item: str | None = None
    name: str | None = None
    namespace: str | None = None
    tool: str = ""
    arguments: Arguments = nothing
    output: Output | None = None
    failed: Callable[[JsonObject], bool] = _never
    cancelled: Callable[[JsonObject], bool] = _never
    pending: Callable[[JsonObject], bool] = _never
    kind: Literal["function", "custom", "hosted"] = "function"
    hosted: Callable[[JsonObject], bool] = _never
    """Where only the payload says whether the provider ran the tool."""
    parent: str | None = None
    many: str | None = None
    bare: bool = False
    tell: Callable[[JsonObject], str] | None = None
    """What an approval says, in words."""
    untell: Callable[[str], Mapping[str, Any]] | None = None
    """Such words, as values by their paths."""
    signature: str | None = None
    """Where the signature of the reasoning before a call stands."""
    inside: Inside | None = None
    defaults: Mapping[str, Any] = {}


def is_true(path: str) -> Callable[[JsonObject], bool]:
    return lambda payload: at(payload, path) is True


def one_of(path: str, *values: object) -> Callable[[JsonObject], bool]:
    return lambda payload: at(payload, path) in values
