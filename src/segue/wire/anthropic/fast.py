"""The fast path of the Messages API: typed parsing and rendering of conversations without unusual content."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

from msgspec import UNSET, Struct, UnsetType

from segue.canonical.fast_history import (
    Content,
    FastEvent,
    FastHistory,
    FastPathUnsupportedError,
    FastTurn,
    FastUserMessage,
    require_text,
)
from segue.render.fast_passes import FastRenderOptions
from segue.render.reasoning import has_reasoning_content
from segue.wire.anthropic.request import BODY_KEYS
from segue.wire.fast_path import FastPath

# Common keys of bodies that have no canonical field.
_COMMON_KEYS = frozenset({"betas", "cache_control", "container", "context_management", "mcp_servers", "service_tier"})
_CacheControl: TypeAlias = dict[str, Any] | None


class _Text(Struct, tag="text", forbid_unknown_fields=True, omit_defaults=True, gc=False):
    text: str
    cache_control: _CacheControl = None
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
    cache_control: _CacheControl = None
    caller: None = None


class _ToolResult(Struct, tag="tool_result", forbid_unknown_fields=True, omit_defaults=True, gc=False):
    tool_use_id: str
    content: str | list[_Text]
    is_error: bool | UnsetType | None = UNSET
    cache_control: _CacheControl = None


_UserBlock: TypeAlias = _Text | _ToolResult
_AssistantBlock: TypeAlias = _Text | _Thinking | _Redacted | _ToolUse


class _User(Struct, tag_field="role", tag="user", forbid_unknown_fields=True, gc=False):
    content: str | list[_UserBlock]


class _Assistant(Struct, tag_field="role", tag="assistant", forbid_unknown_fields=True, gc=False):
    content: str | list[_AssistantBlock]


_Message: TypeAlias = _User | _Assistant


# ------------------------------------------------------------------------------------------------------------- reading


def _parse(items: list[_Message]) -> FastHistory:
    history = FastHistory([], [], [], [], [], [], error_results=[])
    for index, item in enumerate(items):
        open_calls = len(history.raw_ids) > len(history.results)
        if isinstance(item, _Assistant):
            if open_calls:
                raise FastPathUnsupportedError
            history.starts.append(index)
            history.events.append(_parse_reply(item, history))
            continue
        content = item.content
        if open_calls:
            content = _parse_results(content, history)
            if not content:
                continue
            # Text in one message with results starts at the next item.
            index += 1
        history.starts.append(index)
        texts = content if isinstance(content, str) else _parse_texts(content)
        history.events.append(FastUserMessage(require_text(texts), has_dropped_keys=_has_cache_mark(content)))
    if len(history.raw_ids) > len(history.results):
        raise FastPathUnsupportedError
    return history


def _parse_reply(item: _Assistant, history: FastHistory) -> FastTurn:
    start = len(history.raw_ids)
    if isinstance(item.content, str):
        return FastTurn(require_text(item.content), start, start)
    texts: list[str] = []
    thoughts = unsigned = 0
    for block in item.content:
        if isinstance(block, _ToolUse):
            history.raw_ids.append(block.id)
            history.names.append(block.name)
            history.arguments.append(block.input)
        elif not isinstance(block, _Text):
            thoughts += isinstance(block, _Redacted) or has_reasoning_content(block.thinking, block.signature)
            unsigned += isinstance(block, _Thinking) and not block.signature
            continue
        elif len(history.raw_ids) > start:
            raise FastPathUnsupportedError
        else:
            texts.append(block.text)
    stop = len(history.raw_ids)
    if start == stop or texts:
        require_text(texts)
    return FastTurn(texts or None, start, stop, thoughts, unsigned > 0, _has_cache_mark(item.content))


def _parse_results(content: str | list[_UserBlock], history: FastHistory) -> list[_UserBlock]:
    """Parse the results of the last reply's calls at the start of a message; return the user's blocks after them."""
    open_calls = history.raw_ids[len(history.results) :]
    if isinstance(content, str) or len(content) < len(open_calls):
        raise FastPathUnsupportedError
    for block, raw_id in zip(content, open_calls, strict=False):
        if not isinstance(block, _ToolResult) or block.tool_use_id != raw_id:
            raise FastPathUnsupportedError
        if block.is_error:
            history.error_results.append(len(history.results))
        text = block.content
        history.results.append(text if isinstance(text, str) else require_text([part.text for part in text]))
    if _has_cache_mark(content[: len(open_calls)]):
        history.events[-1].has_dropped_keys = True
    return content[len(open_calls) :]


def _has_cache_mark(content: str | Sequence[_UserBlock | _AssistantBlock]) -> bool:
    return not isinstance(content, str) and any(
        block.cache_control for block in content if not isinstance(block, _Thinking | _Redacted)
    )


def _parse_texts(blocks: Sequence[_UserBlock]) -> list[str]:
    texts: list[str] = []
    for block in blocks:
        if type(block) is not _Text:
            raise FastPathUnsupportedError
        texts.append(block.text)
    return texts


# ------------------------------------------------------------------------------------------------------------- writing


def _render(history: FastHistory, events: Sequence[FastEvent], _options: FastRenderOptions) -> list[_Message]:
    items: list[_Message] = []
    ids = history.sent_ids
    calls = [
        _ToolUse(call_id, name, value)
        for call_id, name, value in zip(ids, history.names, history.arguments, strict=True)
    ]
    contents = [text if isinstance(text, str) else _render_texts(text) for text in history.results]
    results = [_ToolResult(call_id, content) for call_id, content in zip(ids, contents, strict=True)]
    for index in history.error_results:
        results[index].is_error = True
    results_content: list[_UserBlock] = []
    for event in events:
        if isinstance(event, FastUserMessage):
            # User text goes into one message with the results before it.
            if results_content:
                results_content += _render_texts(event.content)
                results_content = []
            else:
                items.append(
                    _User(event.content if isinstance(event.content, str) else [*_render_texts(event.content)])
                )
            continue
        content, start, stop = event.content, event.start, event.stop
        if start == stop:
            results_content = []
            items.append(_Assistant(content if isinstance(content, str) else [*_render_texts(content or "")]))
        else:
            results_content = [*results[start:stop]]
            texts = [] if content is None else _render_texts(content)
            items += (_Assistant([*texts, *calls[start:stop]]), _User(results_content))
    return items


def _render_texts(content: Content) -> list[_Text]:
    return [_Text(content)] if isinstance(content, str) else [_Text(text) for text in content]


ANTHROPIC_FAST_PATH = FastPath(
    conversation_key="messages",
    items_type=list[_Message],
    body_keys=(BODY_KEYS | _COMMON_KEYS) - {"messages"},
    parse=_parse,
    render=_render,
)
