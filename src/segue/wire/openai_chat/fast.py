"""The fast path: plain conversations ⇄ `messages`, without the full pipeline."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Annotated, Any, Literal, TypeAlias

from msgspec import UNSET, Meta, Struct, UnsetType

from segue.canonical.blocks import join_paragraphs, join_texts
from segue.canonical.fast_history import (
    REASONING,
    SYSTEM,
    Content,
    FastEvent,
    FastHistory,
    FastPathUnsupportedError,
    FastSystemMessage,
    FastTurn,
    FastUserMessage,
    order_results,
    parse_argument_texts,
    reject_envelopes,
    require_text,
)
from segue.canonical.json import encode_json_text
from segue.render.fast_passes import FastRenderOptions
from segue.render.reasoning import has_reasoning_content
from segue.wire.fast_path import FastPath, NoPart
from segue.wire.openai_chat.dialect import ChatDialect
from segue.wire.openai_chat.request import body_keys

# Common keys of bodies that have no canonical field.
_COMMON_KEYS = frozenset(
    {"logit_bias", "logprobs", "metadata", "modalities", "n", "prediction", "prompt_cache_key", "safety_identifier"}
    | {"service_tier", "store", "stream_options", "top_logprobs", "verbosity", "web_search_options"}
)


class _Text(Struct, tag_field="type", tag="text", forbid_unknown_fields=True, gc=False):
    text: str


class _Thinking(Struct, tag_field="type", tag="thinking", forbid_unknown_fields=True, gc=False):
    """Reasoning as a content part (Mistral)."""

    thinking: str | Sequence[_Text | NoPart]
    signature: str | None = None


_Content: TypeAlias = str | Sequence[_Text | NoPart]
_EmptyList: TypeAlias = Annotated[list[Any], Meta(max_length=0)] | None


class _Function(Struct, forbid_unknown_fields=True, gc=False):
    name: str
    arguments: str | dict[str, Any]


class _Call(Struct, forbid_unknown_fields=True, omit_defaults=True, gc=False):
    id: str
    type: Literal["function"]
    function: _Function
    index: int | None = None


class _System(Struct, tag_field="role", tag="system", forbid_unknown_fields=True, gc=False):
    content: _Content


class _Developer(Struct, tag_field="role", tag="developer", forbid_unknown_fields=True, gc=False):
    content: _Content


class _User(Struct, tag_field="role", tag="user", forbid_unknown_fields=True, gc=False):
    content: _Content


class _Assistant(Struct, tag_field="role", tag="assistant", forbid_unknown_fields=True, omit_defaults=True, gc=False):
    """The keys after `tool_calls` are those that SDKs write even if they are empty."""

    content: str | list[_Text | _Thinking] | UnsetType | None = UNSET
    reasoning_content: str | None = None
    tool_calls: list[_Call] | None = None
    reasoning: str | None = None
    refusal: None = None
    annotations: _EmptyList = None
    audio: None = None
    function_call: None = None


class _Result(Struct, tag_field="role", tag="tool", forbid_unknown_fields=True, gc=False):
    tool_call_id: str
    content: _Content
    name: str | UnsetType = UNSET


_Message: TypeAlias = _System | _Developer | _User | _Assistant | _Result


def chat_fast_path(dialect: ChatDialect) -> FastPath:
    """Return the fast path of a dialect."""
    return FastPath(
        conversation_key="messages",
        items_type=list[_Message],
        body_keys=(body_keys(dialect) | _COMMON_KEYS) - {"messages"},
        parse=partial(_parse, dialect=dialect),
        render=partial(_render, dialect=dialect),
        is_reply=lambda item: isinstance(item, _Assistant),
        can_pass_through=lambda items: not (dialect.glued_parts and any(map(_has_several_parts, items))),
    )


def _has_several_parts(item: _Message) -> bool:
    return isinstance(item.content, list) and len(item.content) > 1


# ------------------------------------------------------------------------------------------------------------- reading


def _parse(items: list[_Message], *, dialect: ChatDialect) -> FastHistory:
    head = next((index for index, item in enumerate(items) if not isinstance(item, _System | _Developer)), 0)
    history = FastHistory(system_count=head)
    calls: list[_Call] = []
    result_indexes: list[int] = []
    index = head
    while index < len(items):
        item, item_index = items[index], index
        index += 1
        if isinstance(item, _Assistant):
            content, reasoning = _parse_reply(item, dialect)
            tool_calls, start = item.tool_calls, len(calls)
            if tool_calls:
                calls += tool_calls
                result_indexes += range(index, index := index + len(tool_calls))
            # OAI-CHAT-07, OAI-CHAT-11
            elif content is None or tool_calls is not None:
                raise FastPathUnsupportedError
            variant = (type(item.content) if content is None else None, reasoning)
            turn = FastTurn(content, start, len(calls), variant)
            history.add(turn, item_index, *([] if reasoning is None else [REASONING, reasoning]))
        elif isinstance(item, _Result):
            raise FastPathUnsupportedError
        else:
            content = require_text(_content_texts(item.content))
            if isinstance(item, _User):
                history.add(FastUserMessage(content), item_index)
            else:
                history.add(FastSystemMessage(content), item_index, SYSTEM)
    if index > len(items):
        raise FastPathUnsupportedError
    _parse_columns(history, calls, [items[index] for index in result_indexes], dialect)
    return history


def _parse_columns(history: FastHistory, calls: list[_Call], answers: list[_Message], dialect: ChatDialect) -> None:
    results = [answer for answer in answers if isinstance(answer, _Result)]
    history.raw_ids = [call.id for call in calls]
    if len(results) < len(calls):
        raise FastPathUnsupportedError
    results = [results[position] for position in order_results(history, [result.tool_call_id for result in results])]
    history.names = [call.function.name for call in calls]
    result_names = [result.name for result in results]
    name_pairs = zip(result_names, history.names, strict=True)
    if result_names.count(UNSET) < len(result_names) and any(
        result_name is not UNSET and result_name != name for result_name, name in name_pairs
    ):
        raise FastPathUnsupportedError
    raw_arguments = [call.function.arguments for call in calls]
    texts = [text for text in raw_arguments if isinstance(text, str)]
    history.arguments = parse_argument_texts(texts)
    if len(texts) < len(raw_arguments):
        if not dialect.object_arguments:
            raise FastPathUnsupportedError
        parsed = iter(history.arguments)
        history.arguments = [next(parsed) if isinstance(value, str) else value for value in raw_arguments]
    contents = [result.content for result in results]
    history.results = [text if isinstance(text, str) else require_text(_content_texts(text)) for text in contents]


def _content_texts(content: _Content) -> Content:
    return content if isinstance(content, str) else [part.text for part in content]


def _join_thinking(thinking: _Content) -> str:
    return thinking if isinstance(thinking, str) else "".join([part.text for part in thinking])


def _parse_reply(item: _Assistant, dialect: ChatDialect) -> tuple[Content | None, tuple[object, ...] | None]:
    """Return the content of a reply and what distinguishes its reasoning, None if it has none."""
    content = item.content
    text = item.reasoning_content if item.reasoning_content is not None else item.reasoning
    reasoning = None if text is None else (item.reasoning is None, text == "", has_reasoning_content(text))
    if not content:
        return None, reasoning
    if isinstance(content, str):
        return require_text(content), reasoning
    texts = [part.text for part in content if isinstance(part, _Text)]
    if len(texts) < len(content):
        if not dialect.reasoning_parts:
            raise FastPathUnsupportedError
        thoughts = [part for part in content if isinstance(part, _Thinking)]
        reject_envelopes([thought.signature for thought in thoughts])
        has_content = [has_reasoning_content(_join_thinking(thought.thinking)) for thought in thoughts]
        reasoning = (*(reasoning or ()), any(has_content), all(has_content))
    return (require_text(texts) if texts else None), reasoning


# ------------------------------------------------------------------------------------------------------------- writing


def _render(
    history: FastHistory, events: Sequence[FastEvent], _options: FastRenderOptions, *, dialect: ChatDialect
) -> list[_Message]:
    items: list[_Message] = []
    ids = history.sent_ids
    functions = [
        _Function(name, encode_json_text(value))
        for name, value in zip(history.sent_names, history.arguments, strict=True)
    ]
    calls = [_Call(sent_id, "function", function) for sent_id, function in zip(ids, functions, strict=True)]
    contents = [text if isinstance(text, str) else _render_content(text, dialect) for text in history.results]
    names = history.sent_names if dialect.named_results else [UNSET] * len(ids)
    results = [_Result(i, text, name) for i, text, name in zip(ids, contents, names, strict=True)]
    for event in events:
        if isinstance(event, FastUserMessage):
            items.append(_User(_render_content(event.content, dialect)))
            continue
        if isinstance(event, FastSystemMessage):
            system_type = _Developer if dialect.developer_role else _System
            items.append(system_type(_render_content(event.content, dialect)))
            continue
        content: Any = dialect.empty_content if event.content is None else _render_content(event.content, dialect)
        start, stop = event.start, event.stop
        items.append(_Assistant(content, event.placeholder, calls[start:stop] or None))
        items += results[start:stop]
    return items


def _render_content(content: Content, dialect: ChatDialect) -> _Content:
    """Render one text as a string, several as a list if the vendor accepts one."""
    if isinstance(content, str):
        return content
    if not dialect.content_parts:
        return join_texts(content)
    if dialect.glued_parts:
        return join_paragraphs(content)
    return content[0] if len(content) == 1 else [_Text(text) for text in content]
