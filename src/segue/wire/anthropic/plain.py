"""Plain conversations on the Messages API: its express lane."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

from msgspec import UNSET, Struct, UnsetType

from segue.canonical.plain import Content, Event, NotPlainError, Plain, Turn, Words, checked_words
from segue.render.plain import Ways
from segue.wire.anthropic.request import BODY_KEYS
from segue.wire.lane import Lane

__all__ = ["ANTHROPIC_LANE"]

# What bodies usually hold beside the keys that have a canonical word.
_USUAL_KEYS = frozenset({"betas", "cache_control", "container", "context_management", "mcp_servers", "service_tier"})
_MARK = "cache_control"
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
    plain = Plain([], [], [], [], [], [], failed=[], unsaid={_MARK: 0})
    for place, item in enumerate(items):
        waiting = len(plain.raw_ids) > len(plain.results)
        if isinstance(item, _Assistant):
            if waiting:
                raise NotPlainError
            plain.starts.append(place)
            plain.events.append(_read_reply(item, plain))
            continue
        content = item.content
        if waiting:
            content = _read_results(content, plain)
            if not content:
                continue
            # Words in one message with results are of the item at which the turn began.
            place += 1
        plain.starts.append(place)
        marks = plain.unsaid[_MARK]
        words = content if isinstance(content, str) else _read_texts(content, plain)
        plain.events.append(Words(checked_words(words), plain.unsaid[_MARK] > marks))
    if len(plain.raw_ids) > len(plain.results):
        raise NotPlainError
    return plain


def _read_reply(item: _Assistant, plain: Plain) -> Turn:
    start = len(plain.raw_ids)
    if isinstance(item.content, str):
        return Turn(checked_words(item.content), start, start)
    texts: list[str] = []
    thoughts = unsigned = 0
    marks = plain.unsaid[_MARK]
    for block in item.content:
        if isinstance(block, _ToolUse):
            plain.raw_ids.append(block.id)
            plain.names.append(block.name)
            plain.arguments.append(block.input)
        elif not isinstance(block, _Text):
            thoughts += 1
            unsigned += isinstance(block, _Thinking) and not block.signature
            continue
        elif len(plain.raw_ids) > start:
            raise NotPlainError
        else:
            texts.append(block.text)
        if block.cache_control:
            plain.unsaid[_MARK] += 1
    stop = len(plain.raw_ids)
    if start == stop or texts:
        checked_words(texts)
    return Turn(texts or None, start, stop, thoughts, unsigned > 0, plain.unsaid[_MARK] > marks)


def _read_results(content: str | list[_Spoken], plain: Plain) -> list[_Spoken]:
    """The results that the last reply waits for, from the head of a message; what is left is the human's."""
    waiting = plain.raw_ids[len(plain.results) :]
    marks = plain.unsaid[_MARK]
    if isinstance(content, str) or len(content) < len(waiting):
        raise NotPlainError
    for block, raw_id in zip(content, waiting, strict=False):
        if not isinstance(block, _ToolResult) or block.tool_use_id != raw_id:
            raise NotPlainError
        if block.is_error:
            plain.failed.append(len(plain.results))
        if block.cache_control:
            plain.unsaid[_MARK] += 1
        text = block.content
        plain.results.append(text if isinstance(text, str) else checked_words([part.text for part in text]))
    if plain.unsaid[_MARK] > marks:
        plain.events[-1].marked = True
    return content[len(waiting) :]


def _read_texts(blocks: Sequence[_Spoken], plain: Plain) -> list[str]:
    texts: list[str] = []
    for block in blocks:
        if type(block) is not _Text:
            raise NotPlainError
        if block.cache_control:
            plain.unsaid[_MARK] += 1
        texts.append(block.text)
    return texts


# ------------------------------------------------------------------------------------------------------------- writing


def _write(plain: Plain, events: Sequence[Event], _ways: Ways) -> list[_Item]:
    items: list[_Item] = []
    ids = plain.sent_ids
    calls = [_ToolUse(i, name, value) for i, name, value in zip(ids, plain.names, plain.arguments, strict=True)]
    told = [text if isinstance(text, str) else _texts(text) for text in plain.results]
    results = [_ToolResult(i, text) for i, text in zip(ids, told, strict=True)]
    for place in plain.failed:
        results[place].is_error = True
    answers: list[_Spoken] = []
    for event in events:
        if isinstance(event, Words):
            # In one message with the results before them.
            if answers:
                answers += _texts(event.content)
                answers = []
            else:
                items.append(_User(event.content if isinstance(event.content, str) else [*_texts(event.content)]))
            continue
        content, start, stop = event.content, event.start, event.stop
        if start == stop:
            answers = []
            items.append(_Assistant(content if isinstance(content, str) else [*_texts(content or "")]))
        else:
            answers = [*results[start:stop]]
            texts = [] if content is None else _texts(content)
            items += (_Assistant([*texts, *calls[start:stop]]), _User(answers))
    return items


def _texts(content: Content) -> list[_Text]:
    return [_Text(content)] if isinstance(content, str) else [_Text(text) for text in content]


ANTHROPIC_LANE = Lane(
    key="messages", items=list[_Item], body_keys=(BODY_KEYS | _USUAL_KEYS) - {"messages"}, read=_read, write=_write
)
