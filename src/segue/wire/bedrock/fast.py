"""The fast path of Converse: typed parsing and rendering of conversations without unusual content."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, TypeAlias

from msgspec import UNSET, Struct, UnsetType

from segue.canonical.fast_history import (
    CACHED,
    REASONING,
    STRUCTURED,
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
from segue.canonical.json import encode_json_text
from segue.render.fast_passes import FastRenderOptions
from segue.render.reasoning import has_reasoning_content
from segue.wire.fast_path import FastPath

_BODY_KEYS = frozenset(
    {"modelId", "system", "toolConfig", "inferenceConfig", "additionalModelRequestFields", "outputConfig"}
    | {"guardrailConfig", "performanceConfig", "promptVariables", "requestMetadata", "serviceTier"}
)


class _CachePoint(Struct, forbid_unknown_fields=True, gc=False):
    type: Literal["default"]


class _ToolUse(Struct, rename="camel", forbid_unknown_fields=True, omit_defaults=True, gc=False):
    tool_use_id: str
    name: str
    input: dict[str, Any]
    type: Literal["tool_use"] | UnsetType = UNSET


class _ResultContent(Struct, forbid_unknown_fields=True, omit_defaults=True, gc=False):
    text: str | UnsetType = UNSET
    json: Any = UNSET


class _ToolResult(Struct, rename="camel", forbid_unknown_fields=True, omit_defaults=True, gc=False):
    tool_use_id: str
    content: list[_ResultContent]
    status: Literal["success", "error"] | UnsetType = UNSET


class _ReasoningText(Struct, forbid_unknown_fields=True, gc=False):
    text: str
    signature: str | UnsetType = UNSET


class _Reasoning(Struct, rename="camel", forbid_unknown_fields=True, gc=False):
    reasoning_text: _ReasoningText


class _Block(Struct, rename="camel", forbid_unknown_fields=True, omit_defaults=True, gc=False):
    """The member that is set is the type of a block."""

    text: str | UnsetType = UNSET
    tool_use: _ToolUse | UnsetType = UNSET
    tool_result: _ToolResult | UnsetType = UNSET
    reasoning_content: _Reasoning | UnsetType = UNSET
    cache_point: _CachePoint | UnsetType = UNSET


_Member: TypeAlias = str | _ToolUse | _ToolResult | _Reasoning | _CachePoint


class _Message(Struct, forbid_unknown_fields=True, gc=False):
    role: Literal["user", "assistant"]
    content: list[_Block]


# ------------------------------------------------------------------------------------------------------------- reading


def _parse(items: list[_Message]) -> FastHistory:
    history = FastHistory()
    for index, item in enumerate(items):
        members = [_only_member(block) for block in item.content]
        blocks = [member for member in members if not isinstance(member, _CachePoint)]
        has_open_calls = len(history.raw_ids) > len(history.results)
        if item.role == "assistant":
            if has_open_calls:
                raise FastPathUnsupportedError
            _parse_reply(blocks, index, history)
        elif has_open_calls:
            texts = _parse_results(blocks, history)
            if texts:
                # Text in one message with results starts at the next item.
                history.add(FastUserMessage(require_text(texts)), index + 1)
        else:
            history.add(FastUserMessage(require_text(_parse_texts(blocks))), index)
        if len(blocks) < len(members):
            # A cache point that follows no other block is left to the full pipeline.
            pairs = zip([None, *members], members, strict=False)
            if any(isinstance(point, _CachePoint) and isinstance(b, _CachePoint | None) for b, point in pairs):
                raise FastPathUnsupportedError
            history.mark_last(CACHED)
    if len(history.raw_ids) > len(history.results):
        raise FastPathUnsupportedError
    return history


def _only_member(block: _Block) -> _Member:
    all_members = (block.text, block.tool_use, block.tool_result, block.reasoning_content, block.cache_point)
    members = [member for member in all_members if member is not UNSET]
    if len(members) != 1:
        raise FastPathUnsupportedError
    return members[0]


def _parse_texts(blocks: Sequence[_Member]) -> list[str]:
    texts = [block for block in blocks if isinstance(block, str)]
    if len(texts) < len(blocks):
        raise FastPathUnsupportedError
    return texts


def _parse_reply(blocks: Sequence[_Member], index: int, history: FastHistory) -> None:
    start = len(history.raw_ids)
    texts: list[str] = []
    thoughts: list[_ReasoningText] = []
    for block in blocks:
        if isinstance(block, _ToolUse):
            history.raw_ids.append(block.tool_use_id)
            history.names.append(block.name)
            history.arguments.append(block.input)
        elif isinstance(block, _Reasoning):
            thoughts.append(block.reasoning_text)
        elif isinstance(block, str) and len(history.raw_ids) == start:
            texts.append(block)
        else:
            raise FastPathUnsupportedError
    stop = len(history.raw_ids)
    if start == stop or texts:
        require_text(texts)
    reject_envelopes([thought.signature for thought in thoughts])
    has_content = any(has_reasoning_content(thought.text, thought.signature or None) for thought in thoughts)
    variant = (has_content, all(thought.signature for thought in thoughts)) if thoughts else None
    history.add(FastTurn(texts or None, start, stop, variant), index, *([REASONING, variant] if thoughts else []))


def _parse_results(blocks: Sequence[_Member], history: FastHistory) -> list[str]:
    """Parse the results at the start of a message; return the user's texts after them."""
    results = [block for block in blocks if isinstance(block, _ToolResult)]
    texts = [_parse_result(result.content, history) for result in results]
    add_results(history, [r.tool_use_id for r in results], texts, [r.status == "error" for r in results])
    return _parse_texts(blocks[len(results) :])


def _parse_result(content: list[_ResultContent], history: FastHistory) -> Content:
    if len(content) == 1 and content[0].text is UNSET and content[0].json is not UNSET:
        history.mark_last(STRUCTURED)
        return encode_json_text(content[0].json)
    texts = [part.text for part in content if isinstance(part.text, str) and part.json is UNSET]
    if len(texts) < len(content):
        raise FastPathUnsupportedError
    return require_text(texts)


# ------------------------------------------------------------------------------------------------------------- writing


def _render(history: FastHistory, events: Sequence[FastEvent], _options: FastRenderOptions) -> list[_Message]:
    items: list[_Message] = []
    ids = history.sent_ids
    calls = [
        _Block(tool_use=_ToolUse(call_id, name, value))
        for call_id, name, value in zip(ids, history.sent_names, history.arguments, strict=True)
    ]
    contents = [_render_result(content) for content in history.results]
    results = [_ToolResult(call_id, content) for call_id, content in zip(ids, contents, strict=True)]
    for index in history.error_results:
        results[index].status = "error"
    result_blocks = [_Block(tool_result=result) for result in results]
    after_results: list[_Block] = []
    for event in events:
        if isinstance(event, FastSystemMessage):
            raise FastPathUnsupportedError
        texts = _render_texts(event.content)
        if isinstance(event, FastUserMessage):
            # User text goes into one message with the results before it.
            if after_results:
                after_results += texts
            else:
                items.append(_Message("user", texts))
            after_results = []
            continue
        after_results = result_blocks[event.start : event.stop]
        items.append(_Message("assistant", [*texts, *calls[event.start : event.stop]]))
        if after_results:
            items.append(_Message("user", after_results))
    return items


def _render_texts(content: Content | None) -> list[_Block]:
    if content is None:
        return []
    return [_Block(content)] if isinstance(content, str) else [_Block(text) for text in content]


def _render_result(content: Content) -> list[_ResultContent]:
    if not isinstance(content, str):
        return [_ResultContent(text) for text in content]
    # BED-08: the full pipeline drops blank text.
    if content.isspace():
        raise FastPathUnsupportedError
    return [_ResultContent(content)] if content else []


BEDROCK_FAST_PATH = FastPath(
    conversation_key="messages",
    items_type=list[_Message],
    body_keys=_BODY_KEYS,
    parse=_parse,
    render=_render,
    is_reply=lambda item: item.role == "assistant",
)
