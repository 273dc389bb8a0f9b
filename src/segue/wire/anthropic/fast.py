"""The fast path of the Messages API: typed parsing and rendering of conversations without unusual content."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, TypeAlias

from msgspec import UNSET, Meta, Struct, UnsetType

from segue.canonical.fast_history import (
    CACHED,
    REASONING,
    Content,
    FastEvent,
    FastHistory,
    FastPathUnsupportedError,
    FastSystemMessage,
    FastTurn,
    FastUserMessage,
    add_results,
    reject_envelopes,
    require_text,
)
from segue.render.fast_passes import FastRenderOptions
from segue.render.reasoning import has_reasoning_content
from segue.wire.anthropic.request import BODY_KEYS
from segue.wire.fast_path import FastPath, NoPart

# Common keys of bodies that have no canonical field.
_COMMON_KEYS = frozenset({"betas", "cache_control", "container", "context_management", "mcp_servers", "service_tier"})
_CacheControl: TypeAlias = dict[str, Any] | None


class _Text(Struct, tag="text", forbid_unknown_fields=True, omit_defaults=True, gc=False):
    text: str
    cache_control: _CacheControl = None
    citations: Annotated[list[Any], Meta(max_length=0)] | None = None


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
    content: str | Sequence[_Text | NoPart]
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
    history = FastHistory()
    for index, item in enumerate(items):
        has_open_calls = len(history.raw_ids) > len(history.results)
        if isinstance(item, _Assistant):
            if has_open_calls:
                raise FastPathUnsupportedError
            _parse_reply(item, index, history)
        elif has_open_calls:
            texts = _parse_results(item.content, history)
            if texts:
                # Text in one message with results starts at the next item.
                _parse_user_message(texts, index + 1, history)
        else:
            _parse_user_message(item.content, index, history)
    if len(history.raw_ids) > len(history.results):
        raise FastPathUnsupportedError
    return history


def _parse_user_message(content: str | Sequence[_UserBlock], start: int, history: FastHistory) -> None:
    if isinstance(content, str):
        history.add(FastUserMessage(require_text(content)), start)
        return
    texts = [block.text for block in content if isinstance(block, _Text)]
    if len(texts) < len(content):
        raise FastPathUnsupportedError
    history.add(FastUserMessage(require_text(texts)), start)
    if any(block.cache_control for block in content):
        history.mark_last(CACHED)


def _parse_reply(item: _Assistant, index: int, history: FastHistory) -> None:
    start = len(history.raw_ids)
    if isinstance(item.content, str):
        history.add(FastTurn(require_text(item.content), start, start), index)
        return
    texts: list[str] = []
    cached = reasons = False
    for block in item.content:
        if isinstance(block, _ToolUse):
            history.raw_ids.append(block.id)
            history.names.append(block.name)
            history.arguments.append(block.input)
        elif isinstance(block, _Text):
            if len(history.raw_ids) > start:
                raise FastPathUnsupportedError
            texts.append(block.text)
        else:
            reasons = True
            continue
        cached = cached or bool(block.cache_control)
    stop = len(history.raw_ids)
    if texts or start == stop:
        require_text(texts)
    turn = FastTurn(texts or None, start, stop)
    if reasons:
        turn.variant = variant = _describe_reasoning(item.content)
        history.add(turn, index, REASONING, variant)
    else:
        history.add(turn, index)
    if cached:
        history.mark_last(CACHED)


def _describe_reasoning(content: Sequence[_AssistantBlock]) -> tuple[bool, bool]:
    """Return whether any reasoning has content, and whether all of it is signed."""
    has_content, is_signed = False, True
    seals: list[str | None] = []
    for block in content:
        if isinstance(block, _Thinking):
            has_content = has_content or has_reasoning_content(block.thinking, block.signature)
            is_signed = is_signed and bool(block.signature)
            seals.append(block.signature)
        elif isinstance(block, _Redacted):
            has_content = True
            seals.append(block.data)
    reject_envelopes(seals)
    return has_content, is_signed


def _parse_results(content: str | list[_UserBlock], history: FastHistory) -> list[_UserBlock]:
    """Parse the results at the start of a message; return the user's blocks after them."""
    if isinstance(content, str):
        raise FastPathUnsupportedError
    ids: list[str | None] = []
    texts: list[Content] = []
    failed: list[bool] = []
    cached = False
    for block in content:
        if not isinstance(block, _ToolResult):
            break
        ids.append(block.tool_use_id)
        text = block.content
        texts.append(text if isinstance(text, str) else require_text([part.text for part in text]))
        failed.append(bool(block.is_error))
        cached = cached or bool(block.cache_control)
    add_results(history, ids, texts, failed)
    if cached:
        history.mark_last(CACHED)
    return content[len(ids) :]


# ------------------------------------------------------------------------------------------------------------- writing


def _render(history: FastHistory, events: Sequence[FastEvent], _options: FastRenderOptions) -> list[_Message]:
    items: list[_Message] = []
    ids = history.sent_ids
    calls = [
        _ToolUse(call_id, name, value)
        for call_id, name, value in zip(ids, history.sent_names, history.arguments, strict=True)
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
        if isinstance(event, FastSystemMessage):
            raise FastPathUnsupportedError
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
    is_reply=lambda item: isinstance(item, _Assistant),
)
