"""Reports of dropped fields: keys of a body, of its messages, blocks and tools, that the target's API does not have."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from segue.canonical.blocks import Block, Media, Message, Native, Opaque, Text, ToolCall, ToolResponse
from segue.canonical.contents import Contents
from segue.canonical.request import Request, Tool
from segue.render.report import Report, Step, field_level
from segue.wire.base import Wire
from segue.wire.json_values import objects_in
from segue.wire.mixed_body import MCP, MCP_KEYS
from segue.wire.registry import WIRES

_SPECIAL_TEXTS = ("search_result", "searchResult", "guardContent")
_SPECIAL_KEYS = frozenset(_SPECIAL_TEXTS)
# Items whose keys depend on their type, but for these types.
_TYPED: frozenset[type] = frozenset({ToolCall, ToolResponse, Opaque})
_FUNCTION_TYPES = (None, "function", "function_call", "function_call_output", "tool_use", "tool_result")
# Keys that have an effect even with an empty value.
_MEANINGFUL_EMPTY = frozenset({"web_search_options"})


def report_dropped(
    request: Request, contents: Contents, target: Wire, report: Report, reported: frozenset[str]
) -> None:
    """Report fields that only the source API has, once for each key: they are dropped."""
    native = request.native
    if native is not None and native.api != target.name and native.api in WIRES:
        for key in sorted(_find_dropped_body_keys(native.fragment, WIRES[native.api], request, target, reported)):
            why = f"`{key}` dropped: not supported by {target.name}"
            report.add("dropped", why, path=key, subject=key, fault="projection", level=field_level(key))
    report.stage = (Step.MESSAGE_NAMES,)
    if contents.has_names and not target.message_names:
        for name in dict.fromkeys(message.name for message in request.messages if message.name):
            report.add("dropped", "message name dropped: the API has no field for it", subject=name)
    report.stage = (Step.SPECIAL_TEXTS,)
    for block in (*request.system, *contents.blocks, *contents.parts):
        if type(block) is Text and (block.native is not None or block.refusal) and _special_kind(block, target):
            _report_special_texts((*request.system, *contents.blocks), target, report)
            break
    report_dropped_fields(request, contents, target, report)


def _find_dropped_body_keys(
    body: Mapping[str, Any], source: Wire, request: Request, target: Wire, reported: frozenset[str]
) -> set[str]:
    """Return the keys of a body without a canonical field, but for those that were reported before."""
    rendered_options = (request.options.vendor_options or {}) if target.vendor_options else ()
    rendered = [key for option, key in source.vendor_options.items() if option in rendered_options]
    defaults = [key for key, value in source.default_values.items() if key in body and body[key] == value]
    known_keys = source.body_keys.union(reported, rendered) if reported or rendered else source.body_keys
    disabled = [key for key in source.meaningful_when_false if body.get(key) is False and key not in known_keys]
    return {*_find_unknown([body], known_keys.union(defaults) if defaults else known_keys), *disabled}


def _report_special_texts(blocks: Iterable[Block], target: Wire, report: Report) -> None:
    for block in blocks:
        for text in (block.content or ()) if isinstance(block, ToolResponse) else (block,):
            kind = _special_kind(text, target) if isinstance(text, Text) else None
            if kind is not None:
                report.add("text", f"{kind} rendered as text: not supported by {target.name}", subject=kind)


def _special_kind(text: Text, target: Wire) -> str | None:
    """Return the kind of a text that has a form of its own in its API; None if the target keeps it."""
    native = text.native
    if native is not None and native.api == target.name:
        return None
    if text.refusal:
        return None if target.refusals else "refusal"
    if native is None:
        return None
    kind_of_part = native.fragment.get("type")
    if _SPECIAL_KEYS.isdisjoint(native.fragment) and kind_of_part not in _SPECIAL_TEXTS:
        return None
    return next(kind for kind in _SPECIAL_TEXTS if kind in native.fragment or kind == kind_of_part)


def report_dropped_fields(request: Request, contents: Contents, target: Wire, report: Report) -> None:
    """Report each key of messages, blocks and tools that only the source API has and that has a non-empty value."""
    own_api = target.name
    dropped: set[tuple[str, str]] = set()
    for place, items in (
        ("messages", request.messages),
        ("content", (*contents.blocks, *contents.parts, *request.system)),
    ):
        by_keys: defaultdict[frozenset[str], list[Mapping[str, Any]]] = defaultdict(list)
        for item in items:
            native = item.native
            if native is None or native.api == own_api:
                continue
            fragment, kind = native.fragment, type(item)
            has_parts = kind is Text and "content" in fragment
            has_own_keys = has_parts or (kind in _TYPED and fragment.get("type") not in _FUNCTION_TYPES)
            # Most items have no other keys than these.
            if not has_own_keys and fragment.keys() <= _plain_item_keys(native.api):
                continue
            known_keys = _known_keys(item, native)
            if known_keys is not None:
                by_keys[known_keys] += [fragment, *(objects_in(fragment["content"]) if has_parts else ())]
        dropped.update([(key, place) for keys, fragments in by_keys.items() for key in _find_unknown(fragments, keys)])
    if contents.has_type(Media) and not target.vendor_options:
        dropped.update((key, "content") for media in _find_foreign_media(contents, target) for key in media.extra or ())
    if dropped:
        _report_keys(dropped, target, report)
    report_dropped_tool_fields(request.tools, target, report)


@lru_cache(maxsize=128)
def _keys_of_kind(api: str, kind: type) -> frozenset[str] | None:
    """Return the keys of items that have a canonical field; None if this is not an API.

    The text of a document begins with its context.
    """
    keys = WIRES[api].item_keys if api in WIRES else None
    return keys | {"context"} if keys is not None and kind is Text else keys


@lru_cache(maxsize=32)
def _plain_item_keys(api: str) -> frozenset[str]:
    """Return the keys of items that have a canonical field and no keys inside; none if this is not an API."""
    known_keys = _keys_of_kind(api, Message)
    return frozenset() if known_keys is None else _plain_keys(known_keys)


def _known_keys(item: Message | Block, native: Native) -> frozenset[str] | None:
    """Return the keys of an item that have a canonical field, or that its hosted type has; None if it is not known."""
    kind = type(item)
    item_keys = _keys_of_kind(native.api, kind)
    if item_keys is None or kind not in _TYPED:
        return None if isinstance(item, Message) and _is_one_item(item, native) else item_keys
    if isinstance(item, Opaque) and not item.origin.is_approval and item.omit_reason != "declaring":
        return None
    is_provider_made = _is_provider_made(item)
    if not is_provider_made and native.fragment.get("type") in _FUNCTION_TYPES:
        return item_keys
    typed_keys = WIRES[native.api].typed_keys(native.fragment)
    if is_provider_made:
        return typed_keys
    # Of others, a key that is dropped whole is reported.
    return item_keys if typed_keys is None else _add_inner_keys(item_keys, typed_keys)


@lru_cache(maxsize=128)
def _add_inner_keys(item_keys: frozenset[str], typed_keys: frozenset[str]) -> frozenset[str]:
    return item_keys | {key for key in typed_keys if "." in key and key.partition(".")[0] in item_keys}


def report_dropped_tool_fields(tools: Iterable[Tool], target: Wire, report: Report) -> None:
    """Report dropped keys of tool declarations, also of those listed by an MCP server."""
    by_keys: defaultdict[frozenset[str], list[Mapping[str, Any]]] = defaultdict(list)
    for tool in tools:
        native = tool.native
        if native is None or native.api == target.name or tool.kind == "hosted":
            continue
        known_keys = _tool_keys(native.api)
        if known_keys is not None:
            by_keys[known_keys.union(tool.extra) if tool.extra else known_keys].append(native.fragment)
    dropped = {(key, "tools") for keys, fragments in by_keys.items() for key in _find_unknown(fragments, keys)}
    if dropped:
        _report_keys(dropped, target, report)


@lru_cache(maxsize=32)
def _tool_keys(api: str) -> frozenset[str] | None:
    """Return the keys of declarations that have a canonical field; None if this is not an API."""
    return MCP_KEYS if api == MCP else WIRES[api].tool_keys if api in WIRES else None


def _report_keys(dropped: Iterable[tuple[str, str]], target: Wire, report: Report) -> None:
    for key, place in sorted(dropped):
        report.stage = (Step.TOOL_FIELDS if place == "tools" else Step.ITEM_FIELDS, key, place)
        why = f"`{key}` of {place} dropped: not supported by {target.name}"
        report.add("dropped", why, subject=key, fault="projection", level=field_level(key))


def _find_foreign_media(contents: Contents, target: Wire) -> Iterator[Media]:
    """Yield the media of messages and results that are not of the target's API."""
    for block in contents.blocks:
        native = block.native
        if native is None or native.api == target.name or native.api not in WIRES or _is_provider_made(block):
            continue
        for part in (block.content or ()) if isinstance(block, ToolResponse) else (block,):
            if isinstance(part, Media):
                yield part


def _find_unknown(fragments: Sequence[Mapping[str, Any]], known: frozenset[str]) -> set[str]:
    """Return unknown keys with a non-empty value. A known key may be a path: `text.format` is one key of `text`."""
    unknown: set[str] = set()
    for key in unknown.union(*fragments) - _plain_keys(known):
        inner: frozenset[str] = frozenset()
        objects: list[dict[str, Any]] = []
        for fragment in fragments:
            value = fragment.get(key)
            if not value and not (value == {} and key in _MEANINGFUL_EMPTY):
                continue
            if isinstance(value, dict | list):
                inner = inner or _inner_keys(known, key)
                found = objects_in([value] if isinstance(value, dict) else value) if inner else []
                objects += found
            else:
                found = []
            if not found and key not in known:
                unknown.add(key)
        if objects:
            unknown.update([f"{key}.{name}" for name in _find_unknown(objects, inner)])
    return unknown


@lru_cache(maxsize=256)
def _plain_keys(known: frozenset[str]) -> frozenset[str]:
    """Return the known keys that have no known keys inside their values."""
    return frozenset(key for key in known if not _inner_keys(known, key))


@lru_cache(maxsize=256)
def _inner_keys(known: frozenset[str], key: str) -> frozenset[str]:
    """Return the keys that are known inside the object under a key."""
    return frozenset(name.removeprefix(f"{key}.") for name in known if name.startswith(f"{key}."))


def _is_one_item(message: Message, native: Native) -> bool:
    """Return whether the message is an item that segue does not model."""
    fragments = [block.native.fragment for block in message.blocks if type(block) is Opaque and block.native]
    return native.fragment in fragments


def _is_provider_made(item: Message | Block) -> bool:
    if isinstance(item, ToolResponse):
        return item.hosted
    return isinstance(item, Opaque) or (isinstance(item, ToolCall) and item.kind == "hosted")
