"""The fast path of the Messages API: typed parsing and rendering of conversations without unusual content."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

from msgspec import UNSET, Struct, UnsetType

from segue.canonical.plain import Content, Event, NotPlainError, Plain, Turn, Words, checked_words
from segue.render.plain import Ways
from segue.wire.anthropic.request import BODY_KEYS
from segue.wire.lane import Lane

__all__ = ["ANTHROPIC_LANE"]

# Keys that bodies usually have and canonical fields do not model.
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
    history = Plain([], [], [], [], [], [], failed=[], unsaid={_MARK: 0})
    for place, item in enumerate(items):
        open_calls = len(history.raw_ids) > len(history.results)
        if isinstance(item, _Assistant):
            if open_calls:
                raise NotPlainError
            history.starts.append(place)
            history.events.append(_read_reply(item, history))
            continue
        content = item.content
        if open_calls:
            content = _read_results(content, history)
            if not content:
                continue
            # Text in one message with results starts at the next item.
            place += 1
        history.starts.append(place)
        marks = history.unsaid[_MARK]
        texts = content if isinstance(content, str) else _read_texts(content, history)
        history.events.append(Words(checked_words(texts), history.unsaid[_MARK] > marks))
    if len(history.raw_ids) > len(history.results):
        raise NotPlainError
    return history


def _read_reply(item: _Assistant, history: Plain) -> Turn:
    start = len(history.raw_ids)
    if isinstance(item.content, str):
        return Turn(checked_words(item.content), start, start)
    texts: list[str] = []
    thoughts = unsigned = 0
    marks = history.unsaid[_MARK]
    for block in item.content:
        if isinstance(block, _ToolUse):
            history.raw_ids.append(block.id)
            history.names.append(block.name)
            history.arguments.append(block.input)
        elif not isinstance(block, _Text):
            thoughts += 1
            unsigned += isinstance(block, _Thinking) and not block.signature
            continue
        elif len(history.raw_ids) > start:
            raise NotPlainError
        else:
            texts.append(block.text)
        if block.cache_control:
            history.unsaid[_MARK] += 1
    stop = len(history.raw_ids)
    if start == stop or texts:
        checked_words(texts)
    return Turn(texts or None, start, stop, thoughts, unsigned > 0, history.unsaid[_MARK] > marks)


def _read_results(content: str | list[_Spoken], history: Plain) -> list[_Spoken]:
    """Parses the results of the last reply's calls at the start of a message; returns the user's blocks after them."""
    open_calls = history.raw_ids[len(history.results) :]
    marks = history.unsaid[_MARK]
    if isinstance(content, str) or len(content) < len(open_calls):
        raise NotPlainError
    for block, raw_id in zip(content, open_calls, strict=False):
        if not isinstance(block, _ToolResult) or block.tool_use_id != raw_id:
            raise NotPlainError
        if block.is_error:
            history.failed.append(len(history.results))
        if block.cache_control:
            history.unsaid[_MARK] += 1
        text = block.content
        history.results.append(text if isinstance(text, str) else checked_words([part.text for part in text]))
    if history.unsaid[_MARK] > marks:
        history.events[-1].marked = True
    return content[len(open_calls) :]


def _read_texts(blocks: Sequence[_Spoken], history: Plain) -> list[str]:
    texts: list[str] = []
    for block in blocks:
        if type(block) is not _Text:
            raise NotPlainError
        if block.cache_control:
            history.unsaid[_MARK] += 1
        texts.append(block.text)
    return texts


# ------------------------------------------------------------------------------------------------------------- writing


def _write(history: Plain, events: Sequence[Event], _options: Ways) -> list[_Item]:
    items: list[_Item] = []
    ids = history.sent_ids
    calls = [_ToolUse(i, name, value) for i, name, value in zip(ids, history.names, history.arguments, strict=True)]
    contents = [text if isinstance(text, str) else _texts(text) for text in history.results]
    results = [_ToolResult(i, content) for i, content in zip(ids, contents, strict=True)]
    for place in history.failed:
        results[place].is_error = True
    results_content: list[_Spoken] = []
    for event in events:
        if isinstance(event, Words):
            # User text goes into one message with the results before it.
            if results_content:
                results_content += _texts(event.content)
                results_content = []
            else:
                items.append(_User(event.content if isinstance(event.content, str) else [*_texts(event.content)]))
            continue
        content, start, stop = event.content, event.start, event.stop
        if start == stop:
            results_content = []
            items.append(_Assistant(content if isinstance(content, str) else [*_texts(content or "")]))
        else:
            results_content = [*results[start:stop]]
            texts = [] if content is None else _texts(content)
            items += (_Assistant([*texts, *calls[start:stop]]), _User(results_content))
    return items


def _texts(content: Content) -> list[_Text]:
    return [_Text(content)] if isinstance(content, str) else [_Text(text) for text in content]


ANTHROPIC_LANE = Lane(
    key="messages", items=list[_Item], body_keys=(BODY_KEYS | _USUAL_KEYS) - {"messages"}, read=_read, write=_write
)
