"""Replies and errors: Converse responses ⇄ `Reply`, error bodies ⇄ `ApiError`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from segue.canonical.blocks import Block, Native, Text, Thinking, ToolCall
from segue.canonical.request import Finish, Reply, Usage
from segue.errors import InputError, RemoteProtocolError
from segue.wire.base import ApiError, RenderContext
from segue.wire.bedrock.capabilities import API
from segue.wire.bedrock.items import parse_content, render_block
from segue.wire.json_values import (
    JsonObject,
    list_or_empty,
    object_or_none,
    require_list,
    require_object,
    string_or_none,
    unknown_fields,
)
from segue.wire.merge import intact_fragment
from segue.wire.replies import (
    has_client_calls,
    is_hosted_from_api,
    media_as_text,
    report_if_foreign_hosted,
    token_count,
)

_KNOWN_FIELDS = frozenset({"output", "stopReason", "usage", "metrics", "ResponseMetadata"})
# BED-12
_FINISHES: dict[str, Finish] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "guardrail_intervened": "filter",
    "content_filtered": "filter",
    "malformed_model_output": "error",
    "malformed_tool_use": "error",
}
_STOP_REASONS: dict[Finish, str] = {
    "stop": "end_turn",
    "tool_calls": "end_turn",
    "length": "max_tokens",
    "filter": "content_filtered",
    "pause": "end_turn",
    "error": "malformed_model_output",
}
_ERROR_KINDS = {
    400: "ValidationException",
    401: "UnrecognizedClientException",
    403: "AccessDeniedException",
    404: "ResourceNotFoundException",
    408: "ModelTimeoutException",
    424: "ModelErrorException",
    429: "ThrottlingException",
    500: "InternalServerException",
    503: "ServiceUnavailableException",
}
_STATUSES = {kind: status for status, kind in _ERROR_KINDS.items()} | {"ModelStreamErrorException": 424}


# ------------------------------------------------------------------------------------------------------------------ in


def parse_reply(body: Mapping[str, Any]) -> Reply:
    try:
        output = require_object(body.get("output"), "output")
        message = require_object(output.get("message"), "output.message")
        blocks, intact = parse_content(require_list(message.get("content"), "output.message.content"), None)
    except InputError as error:
        raise RemoteProtocolError(f"not a reply of this API: {error}") from None
    extra = object_or_none(body.get("additionalModelResponseFields")) or {}
    reason = string_or_none(body.get("stopReason"))
    return Reply(
        blocks,
        finish=_FINISHES.get(reason or "", "tool_calls" if has_client_calls(blocks) else "stop"),
        usage=_parse_usage(object_or_none(body.get("usage"))),
        stop_sequence=string_or_none(extra.get("stop_sequence")),
        raw_finish=reason,
        unknown_fields=unknown_fields(body, _KNOWN_FIELDS),
        native=Native(API, body, intact),
    )


def _parse_usage(usage: JsonObject | None) -> Usage | None:
    if usage is None:
        return None
    read, written = token_count(usage, "cacheReadInputTokens"), token_count(usage, "cacheWriteInputTokens")
    details = map(object_or_none, list_or_empty(usage.get("cacheDetails")))
    hour = sum(token_count(detail, "inputTokens") for detail in details if detail and detail.get("ttl") == "1h")
    return Usage(
        input=token_count(usage, "inputTokens") + read + written,
        output=token_count(usage, "outputTokens"),
        cache_read=read,
        cache_write=written,
        cache_write_1h=min(written, hour),
    )


def parse_error(status: int, body: Mapping[str, Any]) -> ApiError:
    """Parse an error; its kind is usually in a header, sometimes in `__type` after a `#`."""
    message = string_or_none(body.get("message")) or string_or_none(body.get("Message"))
    kind = (string_or_none(body.get("__type")) or "").rpartition("#")[2]
    status = status or _STATUSES.get(kind, 0)
    return ApiError(status, message or f"HTTP status {status}", kind=kind or _error_kind(status))


# ----------------------------------------------------------------------------------------------------------------- out


def render_reply(reply: Reply, context: RenderContext) -> JsonObject:
    original = intact_fragment(reply.native, API)
    if original is not None:
        content = [item for block in reply.blocks for item in render_block(block, context)]
        message = original["output"]["message"]
        same = content == message["content"]
        return original if same else {**original, "output": {"message": {**message, "content": content}}}
    blocks = blocks_for_client(reply.blocks, context)
    has_calls = any(isinstance(block, ToolCall) for block in blocks if not is_hosted_from_api(block, API))
    content = [item for block in blocks for item in render_block(block, context)]
    body: JsonObject = {
        "output": {"message": {"role": "assistant", "content": content}},
        "stopReason": render_stop_reason(reply.finish, reply.stop_sequence, has_calls=has_calls),
    }
    if reply.native is not None and reply.native.api == API:
        # Same-API, missing fields are not invented.
        return {**body, **{key: value for key, value in reply.native.fragment.items() if key not in body}}
    return {**body, "usage": render_usage(reply.usage or Usage()), "metrics": {"latencyMs": 0}}


def blocks_for_client(blocks: Iterable[Block], context: RenderContext) -> list[Block]:
    """Return the blocks that a client of this API can handle; report each dropped one."""
    return [media_as_text(block, API, context.report) for block in blocks if _is_supported(block, context)]


def _is_supported(block: Block, context: RenderContext) -> bool:
    """Return whether a client of this API can show, run and send back the block."""
    if isinstance(block, Text):
        # BED-08: a blank text would be rejected when the client sends it back
        return bool(block.text.strip())
    if isinstance(block, Thinking):
        # BED-11: so would reasoning that this API did not make
        if block.origin.provider == API:
            return True
        context.report.add("reasoning", "reasoning dropped from the reply: it comes from another API")
        return False
    return not report_if_foreign_hosted(block, API, context.report)


def render_stop_reason(finish: Finish, stop_sequence: str | None, *, has_calls: bool) -> str:
    if has_calls and finish in ("stop", "tool_calls"):
        return "tool_use"
    if finish == "stop" and stop_sequence is not None:
        return "stop_sequence"
    return _STOP_REASONS[finish]


def render_usage(usage: Usage) -> JsonObject:
    cached = {"cacheReadInputTokens": usage.cache_read, "cacheWriteInputTokens": usage.cache_write}
    return {
        "inputTokens": max(0, usage.input - usage.cache_read - usage.cache_write),
        "outputTokens": usage.output,
        "totalTokens": usage.input + usage.output,
        **{key: value for key, value in cached.items() if value},
    }


def render_error(error: ApiError) -> JsonObject:
    # Error kinds of other APIs are not AWS exception names.
    kind = error.kind if error.kind.endswith("Exception") else _error_kind(error.status)
    return {"__type": kind, "message": error.message}


def _error_kind(status: int) -> str:
    return _ERROR_KINDS.get(status, "InternalServerException" if status >= 500 else "ValidationException")
