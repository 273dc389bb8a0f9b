"""Plain conversations on the Messages API: its express lane."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias, cast

from msgspec import UNSET, Struct, UnsetType

from segue.canonical.plain import Call, Content, Event, NotPlain, Plain, Turn, Words, checked_words
from segue.wire.anthropic.request import BODY_KEYS
from segue.wire.lane import Lane

__all__ = ["ANTHROPIC_LANE"]

# What bodies usually hold beside the keys that have a canonical word.
_USUAL_KEYS = frozenset({"betas", "cache_control", "container", "context_management", "mcp_servers", "service_tier"})
_Mark: TypeAlias = dict[str, Any] | None


class _Text(Struct, tag="text", forbid_unknown_fields=True, omit_defaults=True, gc=False):
    text: str
    cache_control: _Mark = None
    citations: None = None


class _Thinking(Struct, tag="thinking", forbid_unknown_fields=True, gc=False):
    thinking: str
    signature: str | None = None


class _Redacted(Struct, tag="redacted_thinking", forbid_unknown_fields=True, gc=False):
    data: str


class _ToolUse(Struct, tag="tool_use", forbid_unknown_fields=True, omit_defaults=True, gc=False):
    id: str
    name: str
    input: dict[str, Any]
    cache_control: _Mark = None
    caller: None = None


class _ToolResult(Struct, tag="tool_result", forbid_unknown_fields=True, omit_defaults=True, gc=False):
    tool_use_id: str
    content: str | list[_Text]
    is_error: bool | UnsetType | None = UNSET
    cache_control: _Mark = None


_Spoken: TypeAlias = _Text | _ToolResult
_Replied: TypeAlias = _Text | _Thinking | _Redacted | _ToolUse


class _User(Struct, tag_field="role", tag="user", forbid_unknown_fields=True, gc=False):
    content: str | list[_Spoken]


class _Assistant(Struct, tag_field="role", tag="assistant", forbid_unknown_fields=True, gc=False):
    content: str | list[_Replied]


_Item: TypeAlias = _User | _Assistant


# ------------------------------------------------------------------------------------------------------------- reading


def _read(items: list[_Item]) -> Plain:
    plain = Plain([], [], unsaid={"cache_control": 0})
    calls: list[Call] = []
    for position, item in enumerate(items):
        if type(item) is _Assistant:
            if calls:
                raise NotPlain
            turn = _read_reply(item, plain)
            calls = turn.calls
            plain.starts.append(position)
            plain.events.append(turn)
        else:
            words = _read_user(cast("_User", item), calls, plain)
            if words is not None:
                # Words in one message with results are of the item at which the turn began.
                plain.starts.append(position + 1 if calls else position)
                plain.events.append(Words(checked_words(words)))
            calls = []
    if calls:
        raise NotPlain
    return plain


def _read_reply(item: _Assistant, plain: Plain) -> Turn:
    if isinstance(item.content, str):
        return Turn(checked_words(item.content), [], [])
    texts: list[str] = []
    calls: list[Call] = []
    thoughts = 0
    for block in item.content:
        kind = type(block)
        if kind is _ToolUse:
            block = cast("_ToolUse", block)
            calls.append(Call(block.id, block.name, block.input))
        elif kind is _Text and not calls:
            block = cast("_Text", block)
            texts.append(block.text)
        elif kind is _Text:
            raise NotPlain
        else:
            thoughts += 1
            continue
        if block.cache_control:
            plain.unsaid["cache_control"] += 1
    if not calls or texts:
        checked_words(texts)
    return Turn(texts or None, calls, [], thoughts=thoughts)


def _read_user(item: _User, calls: list[Call], plain: Plain) -> Content | None:
    """The words of a message. The results in it go to the turn that waits for them."""
    if isinstance(item.content, str):
        if calls:
            raise NotPlain
        return item.content
    turn = plain.events[-1] if calls else None
    results = cast("Turn", turn).results if calls else []
    for block, call in zip(item.content, calls, strict=False):
        if type(block) is not _ToolResult or block.tool_use_id != call.raw_id:
            raise NotPlain
        if block.is_error is True:
            cast("Turn", turn).failed += (len(results),)
        if block.cache_control:
            plain.unsaid["cache_control"] += 1
        content = block.content
        results.append(content if isinstance(content, str) else checked_words([part.text for part in content]))
    if len(results) != len(calls):
        raise NotPlain
    words: list[str] = []
    for block in item.content[len(calls) :]:
        if type(block) is not _Text:
            raise NotPlain
        words.append(block.text)
        if block.cache_control:
            plain.unsaid["cache_control"] += 1
    return words if words or not calls else None


# ------------------------------------------------------------------------------------------------------------- writing


def _write(events: Sequence[Event]) -> list[_Item]:
    items: list[_Item] = []
    results: list[_Spoken] = []
    for event in events:
        if type(event) is Words:
            if results:
                results += _texts(event.content)
                results = []
            else:
                items.append(_User(event.content if isinstance(event.content, str) else [*_texts(event.content)]))
            continue
        turn = cast("Turn", event)
        results = []
        if isinstance(turn.content, str) and not turn.calls:
            items.append(_Assistant(turn.content))
            continue
        calls = [_ToolUse(call.sent_id, call.name, call.arguments) for call in turn.calls]
        items.append(_Assistant([*_texts(turn.content or []), *calls]))
        for index, (call, result) in enumerate(zip(turn.calls, turn.results, strict=True)):
            failed = True if index in turn.failed else UNSET
            results.append(_ToolResult(call.sent_id, result if isinstance(result, str) else _texts(result), failed))
        if results:
            items.append(_User(results))
    return items


def _texts(content: Content) -> list[_Text]:
    return [_Text(content)] if isinstance(content, str) else [_Text(text) for text in content]


ANTHROPIC_LANE = Lane(key="messages", items=list[_Item], body_keys=(BODY_KEYS | _USUAL_KEYS) - {"messages"}, read=_read, write=_write)
