"""The shape of a type: the paths of name, arguments, output and ids in its payload."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal

from msgspec import Struct

from segue.wire.catalog.codecs import ApprovalCodec, ArgumentsCodec, OutputCodec, no_arguments
from segue.wire.json_values import JsonObject, get_path


class EnclosingBody(Struct, frozen=True):
    """The wire that has a type, and a function that wraps one payload in a request body of that wire.

    Types with `replies_only` are rejected in requests (AZF-08).
    """

    api: str
    wrap: Callable[[JsonObject], JsonObject]
    replies_only: bool = False


def _never(_payload: JsonObject) -> bool:
    return False


class PayloadShape(Struct, frozen=True, kw_only=True):
    """`id` is the path of the id that call and output share, if they have one, `item_id` that of the item's own id.

    `namespace` is the path of the namespace of a name, `tool` the tool name where the payload has none.
    `list_path` is the path of a list whose members are each a call or an output; the other paths then start at a
    member. With `ids_only` the members are ids.
    `defaults` are the values, by path, of required fields that blocks do not hold.
    """

    id: str | None = "id"
    item_id: str | None = None
    name: str | None = None
    namespace: str | None = None
    tool: str = ""
    arguments: ArgumentsCodec = no_arguments
    output: OutputCodec | None = None
    failed: Callable[[JsonObject], bool] = _never
    cancelled: Callable[[JsonObject], bool] = _never
    pending: Callable[[JsonObject], bool] = _never
    kind: Literal["function", "custom", "hosted"] = "function"
    is_hosted: Callable[[JsonObject], bool] = _never
    """For types where the payload decides whether the provider ran the tool."""
    parent: str | None = None
    list_path: str | None = None
    ids_only: bool = False
    approval: ApprovalCodec | None = None
    signature: str | None = None
    """The path of the signature of the reasoning before a call."""
    enclosing_body: EnclosingBody | None = None
    defaults: Mapping[str, Any] = {}


def is_true(path: str) -> Callable[[JsonObject], bool]:
    return lambda payload: get_path(payload, path) is True


def is_one_of(path: str, *values: object) -> Callable[[JsonObject], bool]:
    return lambda payload: get_path(payload, path) in values
