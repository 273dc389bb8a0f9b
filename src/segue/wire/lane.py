"""The fast path of a wire: typed parsing and rendering of conversations without unusual content.

The parser accepts only what is usual in bodies of its API: an unexpected key, type or value raises, and the full
pipeline is used instead. The renderer returns exactly the items that the full pipeline would.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import msgspec
from msgspec import Raw

from segue.canonical.learning import learnt
from segue.canonical.plain import Event, Plain
from segue.canonical.request import Request
from segue.render.plain import Ways

__all__ = ["Lane", "members_of"]

_ABSENT = Raw()
_members = msgspec.json.Decoder(dict[str, Raw])


def _always(_given: object) -> bool:
    return True


@dataclass(frozen=True)
class Lane:
    """`conversation_key` is the key of a body that holds the messages, `items_type` the type of their list.

    `body_keys` are its usual other keys; any other key only costs a second decoding of the body.
    """

    key: str
    items: Any
    body_keys: frozenset[str]
    read: Callable[[list[Any]], Plain]
    write: Callable[[Plain, Sequence[Event], Ways], list[Any]]
    """Gets the conversation, its events to render, and how to render them."""
    goes_home: Callable[[list[Any]], bool] = _always
    """Whether the items may be sent same-API as they are, for conditions that a sample of them cannot show."""
    suits: Callable[[Request], bool] = _always
    """Whether the rest of the request permits parsing the conversation on its own."""

    def take_apart(self, data: bytes) -> tuple[list[Any], dict[str, Raw]]:
        """The typed items of a body, and its other fields undecoded."""
        try:
            body = self._body.decode(data)
        except msgspec.ValidationError:
            rest = members_of(data)
            return self.typed(rest.pop(self.key, _ABSENT)), rest
        rest = {name: value for name in self.body_keys if (value := getattr(body, name)) is not _ABSENT}
        return getattr(body, self.key), rest

    def typed(self, items: Raw) -> list[Any]:
        """The typed items of a body that is split already."""
        return self._list.decode(items)

    @cached_property
    def _body(self) -> msgspec.json.Decoder[Any]:
        fields = [(name, Raw, _ABSENT) for name in sorted(self.body_keys)]
        body = msgspec.defstruct(
            "Body", [(self.key, learnt(self.items)), *fields], forbid_unknown_fields=True, gc=False
        )
        return msgspec.json.Decoder(body)

    @cached_property
    def _list(self) -> msgspec.json.Decoder[list[Any]]:
        return msgspec.json.Decoder(learnt(self.items))


def members_of(data: bytes) -> dict[str, Raw]:
    """The members of a JSON object, each value undecoded."""
    return _members.decode(data)
