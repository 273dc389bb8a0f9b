"""`segue.repair`: make a body valid with as few changes as possible, and list them.

A repair is a same-API conversion: only what the API would reject is changed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, cast

from msgspec import UNSET, Struct

from segue._convert import Body, Converted, convert
from segue._literals import Api, Profile
from segue.canonical.json import encode_json, encode_json_text, parse_json_object, reject_duplicate_key
from segue.coerce import choose_api, wrap_messages
from segue.wire.registry import find_wire

_DIFF_SIGNS = {"added": "+", "removed": "-", "changed": "~", "moved": ">"}
_MAX_VALUE_LENGTH = 80
_ID_KEYS = ("id", "call_id", "tool_call_id", "tool_use_id")


class Change(Struct, frozen=True, omit_defaults=True):
    """One change of a body. `path` is the path in the repaired body; for a removed value, in the original.

    `origin` is the original path of a moved item.
    """

    kind: Literal["added", "removed", "changed", "moved"]
    path: str
    before: Any = UNSET
    after: Any = UNSET
    origin: str | None = None

    def __str__(self) -> str:
        head = f"{_DIFF_SIGNS[self.kind]} {self.path or 'the body'}"
        match self.kind:
            case "added":
                return f"{head}: {_format_value(self.after)}"
            case "removed":
                return f"{head}: {_format_value(self.before)}"
            case "moved":
                return f"{head}: from {self.origin}"
            case "changed":
                return f"{head}: {_format_value(self.before)} → {_format_value(self.after)}"


class Repaired(Converted):
    """A conversion with the list of its changes. `str(repaired)` is a readable diff."""

    def __init__(self, conversion: Converted, original: Mapping[str, Any], *, keep_model: bool) -> None:
        self.__dict__.update(conversion.__dict__)
        self.body = conversion.body
        if keep_model:
            key = find_wire(conversion.target, argument="api").model_key
            kept = {key: original[key]} if key in original else {}
            self.body = {name: value for name, value in {**self.body, **kept}.items() if name != key or kept}
        self.changes: tuple[Change, ...] = tuple(_diff_values(original, self.body, ""))

    def __str__(self) -> str:
        """Return a line for each change, then a line for each reason."""
        reasons: defaultdict[str, int] = defaultdict(int)
        for finding in self.report.findings:
            reasons[finding.message] += len(finding.call_ids) or 1
        counted = (f"# {reason}" + (f" ({count} ×)" if count > 1 else "") for reason, count in reasons.items())
        return "\n".join([*map(str, self.changes), *counted])


def repair(body: Body, api: Api, *, model: str | None = None, profile: Profile | str | None = None) -> Repaired:
    """Repair a body of `api` with as few changes as possible; a valid one is returned byte-equal.

    `model` selects the rules if it differs from the model in the body; it is not written into the body.
    """
    api = choose_api(api, body, None, argument="api")
    wire = find_wire(api, argument="api")
    body = wrap_messages(body, api)
    original, surrogates = parse_json_object(body)
    reject_duplicate_key(body, wire.conversation_key)
    conversion = convert(body if surrogates else original, source=api, target=api, model=model, profile=profile)
    repaired = Repaired(conversion, original, keep_model=model is not None)
    if not repaired.changes and isinstance(body, bytes | bytearray) and not surrogates:
        repaired.data = bytes(body)
    return repaired


def _format_value(value: object) -> str:
    text = encode_json_text(value)
    return text if len(text) <= _MAX_VALUE_LENGTH else f"{text[:_MAX_VALUE_LENGTH]}…"


def _diff_values(before: object, after: object, path: str) -> Iterator[Change]:
    if isinstance(before, dict) and isinstance(after, dict):
        yield from _diff_objects(cast("dict[str, Any]", before), cast("dict[str, Any]", after), path)
    elif isinstance(before, list) and isinstance(after, list):
        yield from _diff_lists(cast("list[Any]", before), cast("list[Any]", after), path)
    elif encode_json(cast("object", before)) != encode_json(after):
        yield Change("changed", path, before, after)


def _diff_objects(before: Mapping[str, Any], after: Mapping[str, Any], path: str) -> Iterator[Change]:
    for key in [*before, *(key for key in after if key not in before)]:
        place = f"{path}.{key}" if path else key
        if key not in after:
            yield Change("removed", place, before[key])
        elif key not in before:
            yield Change("added", place, after=after[key])
        else:
            yield from _diff_values(before[key], after[key], place)


def _diff_lists(before: Sequence[Any], after: Sequence[Any], path: str) -> Iterator[Change]:
    """Match items by their whole value, by all but their ids, by their ids, or by kind and order; yield the changes."""
    origins = _match_items(before, after)
    removed = sorted(set(range(len(before))) - {origin for origin in origins if origin is not None})
    yield from (Change("removed", f"{path}[{index}]", before[index]) for index in removed)
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
            yield from _diff_values(before[origin], after[index], place)


def _match_items(before: Sequence[Any], after: Sequence[Any]) -> list[int | None]:
    """Return for each item of the repaired list its original index."""
    origins: list[int | None] = [None] * len(after)
    unmatched = set(range(len(before)))
    for key in (encode_json, _content_key, _id_key, _kind_key):
        indexes_by_key: defaultdict[object, list[int]] = defaultdict(list)
        for index in sorted(unmatched, reverse=True):
            if (name := key(before[index])) is not None:
                indexes_by_key[name].append(index)
        for index, item in enumerate(after):
            if origins[index] is None and (indexes := indexes_by_key.get(key(item))):
                origins[index] = indexes.pop()
        unmatched -= {origin for origin in origins if origin is not None}
    return origins


def _content_key(item: object) -> object:
    if not isinstance(item, dict):
        return None
    members = cast("dict[str, object]", item)
    return encode_json({key: value for key, value in members.items() if key not in _ID_KEYS})


def _id_key(item: object) -> object:
    """Return the ids of an item with its kind; None where it has no ids."""
    members = cast("dict[str, object]", item) if isinstance(item, dict) else {}
    ids = {key: members[key] for key in _ID_KEYS if key in members}
    return encode_json([ids, _role_and_type(members)]) if ids else None


def _kind_key(item: object) -> object:
    """Return the kind of an item without ids; items with ids are matched by these only."""
    if not isinstance(item, dict):
        return type(item)
    members = cast("dict[str, object]", item)
    return None if any(key in members for key in _ID_KEYS) else encode_json(_role_and_type(members))


def _role_and_type(members: Mapping[str, object]) -> list[object]:
    return [members.get("role"), members.get("type")]
