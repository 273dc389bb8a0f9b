"""The fast path: plain conversations ⇄ `input` items, without the full pipeline."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Annotated, Any, Literal, TypeAlias

from msgspec import UNSET, Meta, Struct, UnsetType

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
from segue.canonical.request import Request
from segue.render.fast_passes import FastRenderOptions
from segue.wire.fast_path import FastPath, NoPart
from segue.wire.names import NAMESPACE_SEPARATOR
from segue.wire.openai_responses.context import ResponsesDialect
from segue.wire.openai_responses.items import OUTPUT_LIMIT
from segue.wire.openai_responses.request import BODY_KEYS

# Common keys of bodies that have no canonical field.
_COMMON_KEYS = frozenset(
    {
        "agent_reference",
        "background",
        "include",
        "max_tool_calls",
        "metadata",
        "prompt_cache_key",
        "prompt_cache_retention",
        "reasoning",
    }
    | {"service_tier", "store", "stream_options", "text", "top_logprobs", "truncation"}
)
_VARIABLE_KEYS = frozenset({"client_metadata"})
_SYSTEM_ROLES = ("system", "developer")
_EmptyList: TypeAlias = Annotated[list[Any], Meta(max_length=0)] | None


class _Part(Struct, tag_field="type", forbid_unknown_fields=True, omit_defaults=True, gc=False):
    text: str


class _InputText(_Part, tag="input_text"):
    pass


class _OutputText(_Part, tag="output_text"):
    annotations: _EmptyList = None
    logprobs: _EmptyList = None


class _Summary(Struct, tag_field="type", tag="summary_text", forbid_unknown_fields=True, gc=False):
    text: str


class _Item(Struct, forbid_unknown_fields=True, omit_defaults=True, gc=False):
    """Any item. A message may omit its type, so a tagged union is not possible."""

    type: Literal["message", "function_call", "function_call_output", "reasoning"] | UnsetType = UNSET
    role: Literal["user", "assistant", "system", "developer"] | UnsetType = UNSET
    call_id: str | UnsetType = UNSET
    name: str | UnsetType = UNSET
    arguments: str | UnsetType = UNSET
    output: str | Sequence[_InputText | NoPart] | UnsetType = UNSET
    content: str | list[_InputText | _OutputText] | UnsetType | None = UNSET
    id: str | UnsetType = UNSET
    status: Literal["completed"] | UnsetType | None = UNSET
    summary: Sequence[_Summary | NoPart] | UnsetType = UNSET
    encrypted_content: str | UnsetType | None = UNSET


# ------------------------------------------------------------------------------------------------------------- reading


def _parse(items: list[_Item]) -> FastHistory:
    ids = [(item.id, index) for index, item in enumerate(items) if item.id is not UNSET]
    history = FastHistory(item_ids=dict(ids))
    if len(history.item_ids) < len(ids):
        raise FastPathUnsupportedError
    calls: list[_Item] = []
    outputs: list[_Item] = []
    reject_envelopes([item.encrypted_content for item in items])
    head = next((index for index, item in enumerate(items) if item.role not in _SYSTEM_ROLES), 0)
    history.system_count = index = head
    while index < len(items):
        item = items[index]
        if item.role == "user":
            history.add(FastUserMessage(require_text(_message_texts(item, _InputText))), index)
            index += 1
        elif item.role in _SYSTEM_ROLES:
            history.add(FastSystemMessage(require_text(_message_texts(item, _InputText))), index, SYSTEM)
            index += 1
        else:
            index = _parse_turn(items, index, history, calls, outputs)
    _parse_columns(history, calls, outputs)
    return history


def _is_reply(item: _Item) -> bool:
    return item.role == "assistant" or item.type in ("function_call", "reasoning")


def _message_texts(item: _Item, kind: type[_Part]) -> Content:
    """Return the texts of a message; parts of any other type are left to the full pipeline."""
    content = item.content
    if content is UNSET or content is None or item.type not in (UNSET, "message"):
        raise FastPathUnsupportedError
    if isinstance(content, str):
        return content
    if any(type(part) is not kind for part in content):
        raise FastPathUnsupportedError
    return [part.text for part in content]


def _parse_turn(items: list[_Item], index: int, history: FastHistory, calls: list[_Item], outputs: list[_Item]) -> int:
    """Parse one reply and the outputs of its calls; returns the position after them."""
    start, first_index = len(calls), index
    texts: list[str] = []
    reasoning_count = content_count = encrypted_count = with_id_count = detached_count = 0
    while index < len(items):
        item = items[index]
        if item.type == "function_call":
            calls.append(item)
        elif item.role == "assistant":
            content = require_text(_message_texts(item, _OutputText))
            if len(calls) > start:
                raise FastPathUnsupportedError
            texts += [content] if isinstance(content, str) else content
        elif item.type == "reasoning" and item.summary is not UNSET and not item.content:
            # OAI-RESP-07, OAI-RESP-08: the full pipeline repairs reasoning where only one of the two has an id.
            if index + 1 < len(items) and (item.id is UNSET) != (items[index + 1].id is UNSET):
                raise FastPathUnsupportedError
            reasoning_count += 1
            content_count += bool(item.summary or item.encrypted_content)
            encrypted_count += bool(item.encrypted_content)
            with_id_count += item.id is not UNSET
            # OAI-RESP-07
            following = items[index + 1] if index + 1 < len(items) else item
            detached_count += following.type == "reasoning" or not _is_reply(following)
        else:
            break
        index += 1
    stop = len(calls)
    if index == first_index or not (texts or start < stop):
        raise FastPathUnsupportedError
    end = index + stop - start
    outputs += items[index:end]
    variant = None
    if reasoning_count:
        variant = (
            content_count > 0,
            encrypted_count == reasoning_count,
            encrypted_count > 0,
            with_id_count == reasoning_count,
            with_id_count > 0,
            detached_count > 0,
        )
    turn = FastTurn(texts or None, start, stop, variant)
    history.add(turn, first_index, *([] if variant is None else [REASONING, variant]))
    return end


def _parse_columns(history: FastHistory, calls: list[_Item], outputs: list[_Item]) -> None:
    raw_ids = [call.call_id for call in calls if call.call_id is not UNSET]
    names = [call.name for call in calls if call.name is not UNSET]
    arguments = [call.arguments for call in calls if call.arguments is not UNSET]
    if not len(raw_ids) == len(names) == len(arguments) == len(calls):
        raise FastPathUnsupportedError
    if len(outputs) < len(calls) or any(output.type != "function_call_output" for output in outputs):
        raise FastPathUnsupportedError
    history.raw_ids, history.names = [*raw_ids], names
    output_ids = [None if output.call_id is UNSET else output.call_id for output in outputs]
    outputs = [outputs[position] for position in order_results(history, output_ids)]
    history.arguments = parse_argument_texts(arguments)
    contents = [output.output for output in outputs]
    history.results = [text if isinstance(text, str) else _part_texts(text) for text in contents]


def _part_texts(parts: Sequence[_InputText | NoPart] | UnsetType) -> Content:
    if parts is UNSET:
        raise FastPathUnsupportedError
    return require_text([part.text for part in parts])


def _can_pass_through(items: list[_Item], dialect: ResponsesDialect) -> bool:
    """Return whether all item ids (OAI-RESP-13) and output lengths are valid as they are."""
    if dialect.repair_item is not None and not all(map(_has_required_fields, items)):
        return False
    if max([len(item.output) for item in items if isinstance(item.output, str)], default=0) > OUTPUT_LIMIT:
        return False
    ids = [(str(item.type or "message"), item.id) for item in items if item.id is not UNSET]
    return len(set(ids)) == len(ids) and all(dialect.is_valid_id(kind, item_id) for kind, item_id in ids)


def _has_required_fields(item: _Item) -> bool:
    """Return whether an item has all fields that any dialect requires, and no nulls."""
    if item.status is None or item.encrypted_content is None or (item.role == "assistant" and item.type is UNSET):
        return False
    if item.role != "assistant" or not isinstance(item.content, list):
        return True
    return all(part.annotations is not None for part in item.content if isinstance(part, _OutputText))


def _supports_request(request: Request) -> bool:
    """Return whether no tool is in a namespace: bare names could mean another tool."""
    return not any(NAMESPACE_SEPARATOR in tool.name for tool in request.tools)


# ------------------------------------------------------------------------------------------------------------- writing


class _Message(Struct, gc=False):
    role: str
    content: str | list[_InputText]


class _TypedMessage(_Message, tag_field="type", tag="message", gc=False):
    """A message with an explicit type."""


class _FunctionCall(Struct, tag_field="type", tag="function_call", gc=False):
    call_id: str
    name: str
    arguments: str


class _FunctionOutput(Struct, tag_field="type", tag="function_call_output", gc=False):
    call_id: str
    output: str | list[_InputText]


def _render(
    history: FastHistory, events: Sequence[FastEvent], _options: FastRenderOptions, assistant_type: type[_Message]
) -> list[Any]:
    items: list[Any] = []
    ids = history.sent_ids
    texts = [encode_json_text(arguments) for arguments in history.arguments]
    calls = [_FunctionCall(i, name, text) for i, name, text in zip(ids, history.sent_names, texts, strict=True)]
    contents = [text if isinstance(text, str) else _render_parts(text) for text in history.results]
    if max(map(len, contents), default=0) > OUTPUT_LIMIT:
        raise FastPathUnsupportedError
    outputs = [_FunctionOutput(i, text) for i, text in zip(ids, contents, strict=True)]
    for event in events:
        if isinstance(event, FastUserMessage):
            items.append(_Message("user", _render_parts(event.content)))
            continue
        if isinstance(event, FastSystemMessage):
            items.append(_Message("developer", _render_parts(event.content)))
            continue
        content = [event.content] if isinstance(event.content, str) else event.content or []
        items += [assistant_type("assistant", text) for text in content]
        items += calls[event.start : event.stop]
        items += outputs[event.start : event.stop]
    return items


def _render_parts(content: Content) -> str | list[_InputText]:
    """Render one text as a string, several as a list."""
    if isinstance(content, str):
        return content
    return content[0] if len(content) == 1 else [_InputText(text) for text in content]


def responses_fast_path(dialect: ResponsesDialect) -> FastPath:
    return FastPath(
        conversation_key="input",
        items_type=list[_Item],
        body_keys=(BODY_KEYS | _COMMON_KEYS | _VARIABLE_KEYS) - {"input"},
        variable_keys=_VARIABLE_KEYS,
        parse=_parse,
        render=partial(_render, assistant_type=_Message if dialect.repair_item is None else _TypedMessage),
        is_reply=_is_reply,
        can_pass_through=partial(_can_pass_through, dialect=dialect),
        supports_request=_supports_request,
    )
