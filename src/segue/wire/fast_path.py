"""The fast path of a wire: typed parsing and rendering of conversations without unusual content.

The parser accepts only the usual keys, types and values of its API. Any other one raises, and the full pipeline is used
instead. The renderer returns exactly the items that the full pipeline would.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Raw, Struct

from segue.canonical.fast_history import FastEvent, FastHistory
from segue.canonical.request import Request
from segue.canonical.type_warmup import warm_type
from segue.render.fast_passes import FastRenderOptions

_ABSENT = Raw()
_IN_VALUE = " - at `$."
_members_decoder = msgspec.json.Decoder(dict[str, Raw])


class NoPart(Struct, tag_field="type", tag="", gc=False):
    """The second type of a union, which no part can have: msgspec requires the tag of a part only inside a union."""

    text: Annotated[str, Meta(min_length=1, max_length=0)]


def _always_true(_value: object) -> bool:
    return True


class FastPath(Struct, frozen=True, dict=True):
    """`conversation_key` is the key of a body that holds the messages, `items_type` the type of their list.

    `body_keys` are its usual other keys; any other key only costs a second decoding of the body.
    """

    conversation_key: str
    items_type: Any
    body_keys: frozenset[str]
    parse: Callable[[list[Any]], FastHistory]
    render: Callable[[FastHistory, Sequence[FastEvent], FastRenderOptions], list[Any]]
    """Renders items from the history, the events to render, and the render options."""
    is_reply: Callable[[Any], bool]
    """Whether an item is a reply, or part of one."""
    variable_keys: frozenset[str] = frozenset()
    """Keys of objects that clients change with each request. Same-API they are sent as they are, and no other API has
    them: cross-API they only cause a finding."""
    can_pass_through: Callable[[list[Any]], bool] = _always_true
    """A check of all items before they are sent same-API unchanged, for values that the item types do not validate."""
    supports_request: Callable[[Request], bool] = _always_true
    """Whether the rest of the request allows the fast path."""

    def split_body(self, data: bytes) -> tuple[list[Any], dict[str, Raw]]:
        """Return the typed items of a body, and its other fields undecoded."""
        try:
            body = self._body_decoder.decode(data)
        except msgspec.ValidationError as error:
            # An error with a path is in the items; without one, the body has an unusual key.
            if _IN_VALUE in str(error):
                raise
            rest = decode_members(data)
            return self.decode_items(rest.pop(self.conversation_key, _ABSENT)), rest
        rest = {name: value for name in self._names if (value := getattr(body, name)) is not _ABSENT}
        return getattr(body, self.conversation_key), rest

    def decode_items(self, items: Raw | bytes) -> list[Any]:
        """Return the typed items of a JSON list."""
        return self._items_decoder.decode(items)

    @cached_property
    def _names(self) -> list[str]:
        """The keys of a body; others are paths to known keys inside of an object."""
        return sorted(key for key in self.body_keys if "." not in key)

    @cached_property
    def _body_decoder(self) -> msgspec.json.Decoder[Any]:
        fields = [(name, Raw, _ABSENT) for name in self._names]
        body = msgspec.defstruct(
            "Body", [(self.conversation_key, warm_type(self.items_type)), *fields], forbid_unknown_fields=True, gc=False
        )
        return msgspec.json.Decoder(body)

    @cached_property
    def _items_decoder(self) -> msgspec.json.Decoder[list[Any]]:
        return msgspec.json.Decoder(warm_type(self.items_type))


def decode_members(data: bytes) -> dict[str, Raw]:
    """Return the members of a JSON object, each value undecoded."""
    return _members_decoder.decode(data)
