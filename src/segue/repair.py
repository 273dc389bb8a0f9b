"""`segue.repair`: make a body valid with as few changes as possible, and list them.

A repair is a same-API conversion: what the API accepts is unchanged, what it would reject is repaired.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, cast

from msgspec import UNSET, Struct

from segue.canonical.jsontext import read_object, refuse_twice, write, write_text
from segue.convert import Body, Converted, convert
from segue.wire.registry import find

__all__ = ["Change", "Repaired", "repair"]

_SIGNS = {"added": "+", "removed": "-", "changed": "~", "moved": ">"}
_SHOWN = 80
_IDS = ("id", "call_id", "tool_call_id", "tool_use_id")


class Change(Struct, frozen=True, omit_defaults=True):
    """One change of a body. `path` is the path in the repaired body; for a removed value, that in the original.

    `origin` is the original path of a moved item.
    """

    kind: Literal["added", "removed", "changed", "moved"]
    path: str
    before: Any = UNSET
    after: Any = UNSET
    origin: str | None = None

    def __str__(self) -> str:
        head = f"{_SIGNS[self.kind]} {self.path or 'the body'}"
        match self.kind:
            case "added":
                return f"{head}: {_shown(self.after)}"
            case "removed":
                return f"{head}: {_shown(self.before)}"
            case "moved":
                return f"{head}: from {self.origin}"
            case "changed":
                return f"{head}: {_shown(self.before)} → {_shown(self.after)}"


class Repaired(Converted):
    """A conversion with the list of its changes. `str(repaired)` is a readable diff."""

    def __init__(self, conversion: Converted, given: Mapping[str, Any], *, keep_model: bool) -> None:
        vars(self).update(vars(conversion))
        self.body = _with_model_of(given, conversion.body) if keep_model else conversion.body
        self.changes: tuple[Change, ...] = tuple(_differences(given, self.body, ""))

    def __str__(self) -> str:
        """Return a line for each change, then a line for each reason."""
        reasons = Counter(finding.message for finding in self.report.findings)
        counted = (f"# {reason}" + (f" ({count} ×)" if count > 1 else "") for reason, count in reasons.items())
        return "\n".join([*map(str, self.changes), *counted])


def repair(body: Body, api: str, *, model: str | None = None, profile: str | None = None) -> Repaired:
    """Repair a body of `api` with as few changes as possible; a valid one is returned byte-equal.

    `model` selects the rules where that is not the body's own model; it is not written into the body.
    """
    wire = find(api, argument="api")
    given, surrogates = read_object(body)
    refuse_twice(body, wire.root)
    conversion = convert(body if surrogates else given, source=api, target=api, model=model, profile=profile)
    repaired = Repaired(conversion, given, keep_model=model is not None)
    if not repaired.changes and isinstance(body, bytes | bytearray) and not surrogates:
        repaired.data = bytes(body)
    return repaired


def _with_model_of(given: Mapping[str, Any], made: Mapping[str, Any]) -> dict[str, Any]:
    if "model" in given:
        return {**made, "model": given["model"]}
    return {key: value for key, value in made.items() if key != "model"}


def _shown(value: object) -> str:
    text = write_text(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def _differences(before: object, after: object, path: str) -> Iterator[Change]:
    if isinstance(before, dict) and isinstance(after, dict):
        yield from _in_object(cast("dict[str, Any]", before), cast("dict[str, Any]", after), path)
    elif isinstance(before, list) and isinstance(after, list):
        yield from _in_list(cast("list[Any]", before), cast("list[Any]", after), path)
    elif write(cast("object", before)) != write(after):
        yield Change("changed", path, before, after)


def _in_object(before: Mapping[str, Any], after: Mapping[str, Any], path: str) -> Iterator[Change]:
    for key in [*before, *(key for key in after if key not in before)]:
        place = f"{path}.{key}" if path else key
        if key not in after:
            yield Change("removed", place, before[key])
        elif key not in before:
            yield Change("added", place, after=after[key])
        else:
            yield from _differences(before[key], after[key], place)


def _in_list(before: Sequence[Any], after: Sequence[Any], path: str) -> Iterator[Change]:
    """Match items by their whole value, by all but their ids, by their ids, or by kind and order; yield the changes."""
    origins = _matched(before, after)
    gone = sorted(set(range(len(before))) - {origin for origin in origins if origin is not None})
    yield from (Change("removed", f"{path}[{index}]", before[index]) for index in gone)
    furthest = -1
    for index, origin in enumerate(origins):
        place = f"{path}[{index}]"
        if origin is None:
            yield Change("added", place, after=after[index])
            continue
        if origin < furthest:
            yield Change("moved", place, origin=f"{path}[{origin}]")
        furthest = max(furthest, origin)
        if before[origin] is not after[index]:
            yield from _differences(before[origin], after[index], place)


def _matched(before: Sequence[Any], after: Sequence[Any]) -> list[int | None]:
    """Return for each item of the repaired list its original index."""
    origins: list[int | None] = [None] * len(after)
    left = set(range(len(before)))
    for key in (write, _but_for_ids, _ids, _kind):
        waiting: defaultdict[object, list[int]] = defaultdict(list)
        for index in sorted(left, reverse=True):
            if (name := key(before[index])) is not None:
                waiting[name].append(index)
        for index, item in enumerate(after):
            if origins[index] is None and (places := waiting.get(key(item))):
                origins[index] = places.pop()
        left -= {origin for origin in origins if origin is not None}
    return origins


def _but_for_ids(item: object) -> object:
    if not isinstance(item, dict):
        return None
    members = cast("dict[str, object]", item)
    return write({key: value for key, value in members.items() if key not in _IDS})


def _ids(item: object) -> object:
    """Return the ids of an item with its kind; None where it has no ids."""
    members = cast("dict[str, object]", item) if isinstance(item, dict) else {}
    found = {key: members[key] for key in _IDS if key in members}
    return write([found, _kind_of(members)]) if found else None


def _kind(item: object) -> object:
    """Return the kind of an item without ids; items with ids are matched by these only."""
    if not isinstance(item, dict):
        return type(item)
    members = cast("dict[str, object]", item)
    return None if any(key in members for key in _IDS) else write(_kind_of(members))


def _kind_of(members: Mapping[str, object]) -> list[object]:
    return [members.get("role"), members.get("type")]
