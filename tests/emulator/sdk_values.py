"""Values that a type of a vendor's SDK allows: every member and every alternative at least once.

The type is a typed dictionary or a pydantic model; the values are JSON.
"""

from __future__ import annotations

import collections.abc
import types
from collections.abc import Iterator
from enum import Enum
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import typing_extensions as te

_DEEPEST = 5
_SCALARS: dict[Any, list[Any]] = {
    str: ["text"],
    int: [1],
    float: [0.5, 1],
    bool: [True, False],
    bytes: ["aGk="],
    object: [{}, "text"],
    Any: [{}, "text"],
    type(None): [None],
}
_LISTS = (list, collections.abc.Iterable, collections.abc.Sequence)


def members_of(kind: Any) -> dict[str, Any]:
    """The members of a type by the name they have in JSON."""
    if hasattr(kind, "model_fields"):
        return {field.alias or name: field.annotation for name, field in kind.model_fields.items()}
    return te.get_type_hints(kind, include_extras=True)


def _bare(hint: Any) -> Any:
    while get_origin(hint) in (te.Required, te.NotRequired, Annotated):
        hint = get_args(hint)[0]
    return hint


def values_of(hint: Any, depth: int = 0, seen: tuple[Any, ...] = ()) -> Iterator[Any]:
    """A few values of the type; what nests in itself is left out from the second time on."""
    hint = _bare(hint)
    origin, inner = get_origin(hint), get_args(hint)
    if hint in _SCALARS:
        yield from _SCALARS[hint]
    elif origin is Literal:
        yield from inner
    elif origin in (Union, types.UnionType):
        for alternative in inner:
            yield from values_of(alternative, depth, seen)
    elif origin in _LISTS:
        yield []
        yield from ([value] for value in values_of(inner[0], depth, seen))
    elif origin is dict:
        yield {}
    elif isinstance(hint, type) and issubclass(hint, Enum):
        yield from (member.value for member in hint)
    elif te.is_typeddict(hint) or hasattr(hint, "model_fields"):
        if hint not in seen and depth < _DEEPEST:
            yield from _objects(hint, depth, (*seen, hint))
    else:
        # Files, models and other things that are no JSON.
        return


def _needed(hint: Any, member: Any) -> bool:
    """What the class itself says of it is not to be trusted where annotations are read late."""
    marked = get_origin(member)
    return marked is te.Required or (hint.__total__ and marked is not te.NotRequired)


def _objects(hint: Any, depth: int, seen: tuple[Any, ...]) -> Iterator[dict[str, Any]]:
    """The least, and the least with each value of each member."""
    hints = members_of(hint)
    found = {name: list(values_of(member, depth + 1, seen)) for name, member in hints.items()}
    if hasattr(hint, "model_fields"):
        # A text as default is the tag of the type, which the SDK always sends.
        fields = hint.model_fields.items()
        needed = [
            field.alias or name for name, field in fields if field.is_required() or isinstance(field.default, str)
        ]
        found = {name: [value for value in values if value is not None] for name, values in found.items()}
    else:
        needed = [name for name, member in hints.items() if _needed(hint, member)]
    if any(not found[name] for name in needed):
        return
    least = {name: found[name][-1] if found[name][0] in ([], {}) else found[name][0] for name in needed}
    yield dict(least)
    for name, values in found.items():
        yield from ({**least, name: value} for value in values)
