"""The express lane of a wire: how it reads and writes plain conversations, typed from the first byte to the last.

A reader takes what is usual in bodies of its API and nothing else: a key, type or value that it does not expect is an
error, and an error means the long way. A writer gives the very items that the long way would write.
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
    """`key` is where a body holds the conversation, `items` the type of the list that stands there.

    `body_keys` are those that usually stand beside it; others are no harm, but cost another look at the body.
    """

    key: str
    items: Any
    body_keys: frozenset[str]
    read: Callable[[list[Any]], Plain]
    write: Callable[[Plain, Sequence[Event], Ways], list[Any]]
    """The conversation with its columns, its events as they are told, and how they are."""
    goes_home: Callable[[list[Any]], bool] = _always
    """Whether the items may go home as they are, as far as no sample could show it."""
    suits: Callable[[Request], bool] = _always
    """Whether what stands around a conversation lets it be read without looking at more than itself."""

    def take_apart(self, data: bytes) -> tuple[list[Any], dict[str, Raw]]:
        """The typed items of a body, and everything else in it."""
        try:
            body = self._body.decode(data)
        except msgspec.ValidationError:
            rest = members_of(data)
            return self.typed(rest.pop(self.key, _ABSENT)), rest
        rest = {name: value for name in self.body_keys if (value := getattr(body, name)) is not _ABSENT}
        return getattr(body, self.key), rest

    def typed(self, items: Raw) -> list[Any]:
        """The items of a body that was taken apart already."""
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
    """The values of an object, each still as it is written."""
    return _members.decode(data)
