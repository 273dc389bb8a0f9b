"""Responses ⇄ `Reply`. `created_at` is 0 if unknown: rendering reads no clock."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from msgspec.structs import replace

from segue.canonical.blocks import Block, Native, Text, Thinking, ToolCall, ToolResponse
from segue.canonical.json import are_identical
from segue.canonical.request import Finish, Reply, Request, Usage
from segue.wire.base import RenderContext
from segue.wire.json_values import JsonObject, number_or_none, object_or_none, objects_in, require_list, string_or_none
from segue.wire.merge import replace_modelled_fields
from segue.wire.openai_responses.context import ResponsesContext, ResponsesDialect
from segue.wire.openai_responses.item_types import APPROVAL_REQUEST, CALL_TYPES, FUNCTION_TYPES, HOSTED_TYPES, item_type
from segue.wire.openai_responses.items import project_call_item
from segue.wire.openai_responses.messages import parse_reply_items, render_reply_items
from segue.wire.openai_responses.request import create_parse_context
from segue.wire.replies import count_output, has_client_calls, token_count

# OAI-RESP-23
_REASONS: dict[str, Finish] = {"max_output_tokens": "length", "content_filter": "filter", "steered": "pause"}
_STATUSES: dict[str, Finish] = {
    "incomplete": "length",
    "failed": "error",
    "cancelled": "error",
    "in_progress": "pause",
    "queued": "pause",
}
_BROKEN_STATUSES = ("failed", "cancelled")
# A paused reply is not complete; `max_output_tokens` is the closest reason.
_INCOMPLETE_REASONS: dict[Finish, str] = {
    "length": "max_output_tokens",
    "filter": "content_filter",
    "pause": "max_output_tokens",
}
# Item types that are one call each.
_CALL_ITEM_TYPES = frozenset(
    {
        *FUNCTION_TYPES,
        *CALL_TYPES,
        APPROVAL_REQUEST,
        *(kind for kind, row in HOSTED_TYPES.items() if not row.output_only),
    }
)
REPLY_KEYS = frozenset({"id", "model", "output", "usage", "status", "incomplete_details", "error"})
_REQUEST_FIELDS: Mapping[str, Any] = {
    "background": False,
    "frequency_penalty": 0,
    "instructions": None,
    "max_output_tokens": None,
    "max_tool_calls": None,
    "metadata": {},
    "parallel_tool_calls": True,
    "presence_penalty": 0,
    "previous_response_id": None,
    "prompt_cache_key": None,
    "reasoning": {"effort": None, "summary": None},
    "safety_identifier": None,
    "service_tier": "default",
    "store": True,
    "temperature": 1,
    "text": {"format": {"type": "text"}},
    "tool_choice": "auto",
    "tools": [],
    "top_logprobs": 0,
    "top_p": 1,
    "truncation": "disabled",
    "user": None,
}
"""The fields of a request that its response repeats, with the values where the request has none."""
_REFERENCES = ("previous_response_id", "conversation")
_FORMAT_FIELDS = {"description": None, "schema": None, "strict": False}
_FUNCTION_FIELDS = {"description": None, "parameters": None, "strict": None}


# ------------------------------------------------------------------------------------------------------------------ in


def parse_reply(body: Mapping[str, Any], dialect: ResponsesDialect) -> Reply:
    items = require_list(body.get("output"), "output")
    model = string_or_none(body.get("model"))
    blocks = parse_reply_items(
        items, create_parse_context(objects_in(items), model, dialect, stored=body.get("store") is not False)
    )
    return Reply(
        blocks,
        finish=_parse_finish(body, blocks),
        usage=_parse_usage(object_or_none(body.get("usage"))),
        id=string_or_none(body.get("id")),
        model=model,
        created=_parse_timestamp(body.get("created_at")),
        raw_finish=_parse_raw_finish(body),
        native=Native(dialect.name, body),
    )


def _parse_timestamp(value: object) -> int | None:
    timestamp = number_or_none(value)
    return None if timestamp is None else int(timestamp)


def _parse_raw_finish(body: Mapping[str, Any]) -> str | None:
    reason = (object_or_none(body.get("incomplete_details")) or {}).get("reason")
    return string_or_none(reason) or string_or_none(body.get("status"))


def _parse_finish(body: Mapping[str, Any], blocks: Sequence[Block]) -> Finish:
    status = string_or_none(body.get("status")) or "completed"
    if status == "incomplete":
        reason = (object_or_none(body.get("incomplete_details")) or {}).get("reason")
        return _REASONS.get(reason, "length") if isinstance(reason, str) else "length"
    return _STATUSES.get(status, "tool_calls" if has_client_calls(blocks) else "stop")


def _parse_usage(usage: JsonObject | None) -> Usage | None:
    if usage is None:
        return None
    read = token_count(usage, "input_tokens_details", "cached_tokens")
    written = token_count(usage, "input_tokens_details", "cache_write_tokens")
    reasoning = token_count(usage, "output_tokens_details", "reasoning_tokens")
    output, reasoning = count_output(usage, "input_tokens", "output_tokens", reasoning=reasoning, cached=read + written)
    return Usage(token_count(usage, "input_tokens"), output, read, written, reasoning)


# ----------------------------------------------------------------------------------------------------------------- out


def render_reply(reply: Reply, render_context: RenderContext, dialect: ResponsesDialect) -> JsonObject:
    context = ResponsesContext(dialect, render_context, reply.calls)
    context.typed_call_ids = frozenset(context.calls)
    own_native = context.own_native(reply.native)
    references = render_references(render_context.request)
    if own_native is not None and any(own_native.fragment.get(key) != value for key, value in references.items()):
        own_native = replace(own_native, fragment={**own_native.fragment, **references})
    if own_native is not None and own_native.intact:
        return _render_same_api(reply, own_native.fragment, context)
    if (
        own_native is not None
        and own_native.fragment.get("status") in _BROKEN_STATUSES
        and (cut := _drop_broken_calls(reply, own_native))
    ):
        return _render_same_api(reply, cut, context)
    seed = (reply.id or "", reply.model or "", reply.text, reply.thinking, *(call.id for call in reply.calls))
    reply_id = derive_response_id(reply.id, dialect, *seed)
    body = {
        **render_envelope(reply_id, reply.created, reply.model, request_fields(render_context.request)),
        **references,
        **render_ending(reply.finish),
        "output": _render_output(reply, reply_id, context),
    }
    if reply.usage is not None:
        body["usage"] = render_usage(reply.usage)
    if own_native is None:
        return body
    rendered = {
        key: value for key, value in body.items() if key in REPLY_KEYS and (key in own_native.fragment or value)
    }
    return replace_modelled_fields(own_native.fragment, rendered, REPLY_KEYS)


def _drop_broken_calls(reply: Reply, own_native: Native) -> JsonObject | None:
    """Return a broken response without the calls that are not in the reply; None if the others do not match."""
    call_ids = {call.raw_id for call in reply.calls}
    items = cast("list[JsonObject]", own_native.fragment["output"])
    kept = [
        item for item in items if item_type(item) not in _CALL_ITEM_TYPES or item.get("call_id") in (None, *call_ids)
    ]
    matches_reply = sum(item_type(item) in _CALL_ITEM_TYPES for item in kept) == len(reply.calls)
    return {**own_native.fragment, "output": kept} if matches_reply else None


def derive_response_id(reply_id: str | None, dialect: ResponsesDialect, *seed: str) -> str:
    prefix = dialect.response_prefix
    return reply_id if reply_id and reply_id.startswith(f"{prefix}_") else dialect.derive_id(prefix, *seed)


def request_fields(request: Request | None) -> Mapping[str, Any]:
    """Return the fields of a request as the caller sent them."""
    return {} if request is None or request.native is None else request.native.fragment


def render_references(request: Request | None) -> JsonObject:
    """Return the references to stored history of a request, as its response repeats them."""
    fields = {key: value for key in _REFERENCES if (value := request_fields(request).get(key))}
    conversation = fields.get("conversation")
    return {**fields, "conversation": {"id": conversation}} if isinstance(conversation, str) else fields


def render_envelope(reply_id: str, created: int | None, model: str | None, request: Mapping[str, Any]) -> JsonObject:
    """Render the fields of a response around its output; status `in_progress`. `request` has the fields of its request.

    `completed_at` stays null: rendering reads no clock.
    """
    return {
        "id": reply_id,
        "object": "response",
        "created_at": created or 0,
        "completed_at": None,
        "status": "in_progress",
        "error": None,
        "incomplete_details": None,
        "model": model or request.get("model") or "",
        "output": [],
        "usage": None,
        **_render_request_fields(request),
    }


def _render_request_fields(request: Mapping[str, Any]) -> JsonObject:
    """Render the fields of a request that its response repeats, with their defaults."""
    fields = {
        key: default if (value := request.get(key)) is None else value for key, default in _REQUEST_FIELDS.items()
    }
    fields["tools"] = [
        {**_FUNCTION_FIELDS, **tool} if tool.get("type") == "function" else tool
        for tool in objects_in(cast("list[object]", fields["tools"]))
    ]
    for key in ("reasoning", "text"):
        fields[key] = {**_REQUEST_FIELDS[key], **{name: value for name, value in fields[key].items() if value}}
    form = fields["text"]["format"]
    if form.get("type") == "json_schema":
        fields["text"]["format"] = {**_FORMAT_FIELDS, **form}
    if fields["service_tier"] == "auto":
        fields["service_tier"] = _REQUEST_FIELDS["service_tier"]
    return fields


def render_ending(finish: Finish, cause: str | None = None) -> JsonObject:
    """Return the final status fields; `cause` is used if it is one of the API's own reasons."""
    error = {"code": "server_error", "message": "the model's reply failed"} if finish == "error" else None
    reason = cause if cause in _REASONS else _INCOMPLETE_REASONS.get(finish)
    details = {"reason": reason} if finish in _INCOMPLETE_REASONS else None
    return {"status": render_status(finish), "error": error, "incomplete_details": details}


def _render_same_api(reply: Reply, fragment: Mapping[str, Any], context: ResponsesContext) -> JsonObject:
    """Return the original reply with projected call ids and names."""
    original_items = cast("list[JsonObject]", fragment["output"])
    calls = iter(reply.calls)
    items = [
        _project_item(item, next(calls), context) if item_type(item) in _CALL_ITEM_TYPES else item
        for item in original_items
    ]
    body = cast("JsonObject", fragment) if are_identical(items, original_items) else {**fragment, "output": items}
    return body if reply.id in (None, body.get("id")) else {**body, "id": reply.id}


def _project_item(item: JsonObject, call: ToolCall, context: ResponsesContext) -> JsonObject:
    return item if call.kind == "hosted" else project_call_item(item, call, context)


def render_status(finish: Finish) -> str:
    return "failed" if finish == "error" else "incomplete" if finish in _INCOMPLETE_REASONS else "completed"


def derive_item_id(prefix: str, reply_id: str, index: int, dialect: ResponsesDialect) -> str:
    """Return the id of the item at this index of the output, which segue recognises when it is sent back."""
    return dialect.derive_id(prefix, reply_id, str(index))


def _render_output(reply: Reply, reply_id: str, context: ResponsesContext) -> list[JsonObject]:
    """Render items with derived ids, which clients require."""
    items: list[JsonObject] = []
    texts: list[Text] = []
    state = "incomplete" if reply.finish in _INCOMPLETE_REASONS else "completed"
    for index, block in enumerate(reply.blocks):
        if isinstance(block, Text):
            texts.append(block)
            if index + 1 < len(reply.blocks) and isinstance(reply.blocks[index + 1], Text):
                continue
            items.append(_render_message(texts, derive_item_id("msg", reply_id, len(items), context.dialect), state))
            texts = []
        else:
            items += render_item(block, derive_item_id("", reply_id, len(items), context.dialect), state, context)
    return items


def _render_message(texts: Sequence[Text], item_id: str, state: str) -> JsonObject:
    parts = [render_part(text) for text in texts]
    return {"id": item_id, "type": "message", "role": "assistant", "status": state, "content": parts}


def render_part(text: Text) -> JsonObject:
    if text.refusal:
        return {"type": "refusal", "refusal": text.text}
    return {"type": "output_text", "text": text.text, "annotations": []}


def encrypted_content(block: Thinking, context: ResponsesContext) -> JsonObject:
    """Return the field with the encrypted content of reasoning, if it is for clients of this API."""
    is_own = block.encrypted is not None and block.origin.provider == context.dialect.provider
    return {"encrypted_content": block.encrypted} if is_own else {}


def render_item(block: Block, suffix: str, state: str, context: ResponsesContext) -> list[JsonObject]:
    """Render the items of a non-text block, with ids of this suffix; none if the API cannot represent it."""
    is_own = context.own_native(block.native) is not None
    if isinstance(block, Thinking):
        summary = [{"type": "summary_text", "text": block.text}] if block.text else []
        encrypted = encrypted_content(block, context)
        has_content = summary or encrypted
        return [{"id": f"rs{suffix}", "type": "reasoning", "summary": summary, **encrypted}] if has_content else []
    if isinstance(block, ToolResponse) or (isinstance(block, ToolCall) and block.kind == "hosted"):
        if is_own:
            return render_reply_items([block], context)
        message = f"call of the hosted tool {block.name or ''} dropped from the reply: the API cannot represent it"
        context.report.add("dropped", message, subject=block.name)
        return []
    if not isinstance(block, ToolCall) or is_own:
        return (
            render_reply_items([block], context)
            if is_own
            else [_render_message([_render_as_text(block, context)], f"msg{suffix}", state)]
        )
    (item,) = render_reply_items([block], context)
    prefix = "ctc" if item["type"] == "custom_tool_call" else "fc"
    with_id: JsonObject = {"id": f"{prefix}{suffix}", **item}
    return [with_id if prefix == "ctc" else {**with_id, "status": state}]


def _render_as_text(block: Block, context: ResponsesContext) -> Text:
    (item,) = render_reply_items([block], context)
    return Text(str(item["content"]))


def render_usage(usage: Usage) -> JsonObject:
    return {
        "input_tokens": usage.input,
        "input_tokens_details": {"cached_tokens": usage.cache_read, "cache_write_tokens": usage.cache_write},
        "output_tokens": usage.output,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning},
        "total_tokens": usage.input + usage.output,
    }
