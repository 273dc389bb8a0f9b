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
    waiting: Turn | None = None
    for position, item in enumerate(items):
        if isinstance(item, _Assistant):
            if waiting is not None:
                raise NotPlain
            turn = _read_reply(item, plain)
            plain.starts.append(position)
            plain.events.append(turn)
            waiting = turn if turn.calls else None
        else:
            words = _read_user(item, waiting, plain)
            if words is not None:
                # Words in one message with results are of the item at which the turn began.
                plain.starts.append(position if waiting is None else position + 1)
                plain.events.append(Words(checked_words(words)))
            waiting = None
    if waiting is not None:
        raise NotPlain
    return plain


def _read_reply(item: _Assistant, plain: Plain) -> Turn:
    if isinstance(item.content, str):
        return Turn(checked_words(item.content), [], [])
    texts: list[str] = []
    calls: list[Call] = []
    thoughts = 0
    for block in item.content:
        if isinstance(block, _ToolUse):
            calls.append(Call(block.id, block.name, block.input))
        elif not isinstance(block, _Text):
            thoughts += 1
            continue
        elif calls:
            raise NotPlain
        else:
            texts.append(block.text)
        if block.cache_control:
            plain.unsaid["cache_control"] += 1
    if not calls or texts:
        checked_words(texts)
    return Turn(texts or None, calls, [], thoughts=thoughts)


def _read_user(item: _User, turn: Turn | None, plain: Plain) -> Content | None:
    """The words of a message. The results at its head go to the turn that waits for them."""
    content = item.content
    if turn is None:
        return content if isinstance(content, str) else _read_texts(content, plain)
    if isinstance(content, str) or len(content) < len(turn.calls):
        raise NotPlain
    for index, call in enumerate(turn.calls):
        block = content[index]
        if type(block) is not _ToolResult or block.tool_use_id != call.raw_id:
            raise NotPlain
        if block.is_error:
            turn.failed += (index,)
        if block.cache_control:
            plain.unsaid["cache_control"] += 1
        result = block.content
        if not isinstance(result, str):
            result, turn.listed = checked_words([part.text for part in result]), True
        turn.results.append(result)
    words = content[len(turn.calls) :]
    return _read_texts(words, plain) if words else None


def _read_texts(blocks: Sequence[_Spoken], plain: Plain) -> list[str]:
    texts: list[str] = []
    for block in blocks:
        if type(block) is not _Text:
            raise NotPlain
        if block.cache_control:
            plain.unsaid["cache_control"] += 1
        texts.append(block.text)
    return texts


# ------------------------------------------------------------------------------------------------------------- writing


def _write(events: Sequence[Event]) -> list[_Item]:
    items: list[_Item] = []
    results: list[_Spoken] = []
    for event in events:
        if isinstance(event, Words):
            if results:
                results += _texts(event.content)
                results = []
            else:
                items.append(_User(event.content if isinstance(event.content, str) else [*_texts(event.content)]))
            continue
        if not event.calls:
            results = []
            items.append(_Assistant(event.content if isinstance(event.content, str) else [*_texts(event.content or "")]))
            continue
        texts = [] if event.content is None else _texts(event.content)
        items.append(_Assistant([*texts, *[_ToolUse(call.sent_id, call.name, call.arguments) for call in event.calls]]))
        results = [
            _ToolResult(call.sent_id, result if isinstance(result, str) else _texts(result))
            for call, result in zip(event.calls, event.results, strict=True)
        ]
        for index in event.failed:
            cast("_ToolResult", results[index]).is_error = True
        # The human's next words will stand behind them in the same list.
        items.append(_User(results))
    return items


def _texts(content: Content) -> list[_Text]:
    return [_Text(content)] if isinstance(content, str) else [_Text(text) for text in content]


ANTHROPIC_LANE = Lane(key="messages", items=list[_Item], body_keys=(BODY_KEYS | _USUAL_KEYS) - {"messages"}, read=_read, write=_write)
