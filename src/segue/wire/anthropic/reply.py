"""Replies and errors: message objects ⇄ `Reply`, error bodies ⇄ `ApiError`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from segue.canonical.blocks import Block, Native, Opaque, Text, Thinking, ToolCall
from segue.canonical.ids import short_hash
from segue.canonical.json import are_identical
from segue.canonical.request import Finish, Reply, Usage
from segue.errors import InputError, RemoteProtocolError
from segue.wire.anthropic.capabilities import API
from segue.wire.anthropic.items import parse_content, render_block
from segue.wire.base import ApiError, RenderContext
from segue.wire.json_values import JsonObject, object_or_none, require_list, string_or_none, unknown_fields
from segue.wire.merge import intact_fragment
from segue.wire.replies import (
    has_client_calls,
    is_hosted_from_api,
    media_as_text,
    report_if_foreign_hosted,
    token_count,
)

_KNOWN_FIELDS = frozenset(
    {"id", "type", "role", "model", "content", "stop_reason", "stop_sequence", "stop_details", "usage"}
)
# ANT-39: `pause_turn` does not end the turn; the content is sent back unchanged, as for `compaction`.
_FINISHES: dict[str, Finish] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "filter",
    "pause_turn": "pause",
    "compaction": "pause",
}
_STOP_REASONS: dict[Finish, str] = {
    "stop": "end_turn",
    "tool_calls": "end_turn",
    "length": "max_tokens",
    "filter": "refusal",
    "pause": "pause_turn",
    # The only reason that marks a reply as incomplete.
    "error": "max_tokens",
}
_ERROR_KINDS = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    409: "conflict_error",
    413: "request_too_large",
    429: "rate_limit_error",
    500: "api_error",
    503: "overloaded_error",
    504: "timeout_error",
    529: "overloaded_error",
}
_COMPACTION = "compaction"
_STATUSES = {kind: status for status, kind in _ERROR_KINDS.items()}


# ------------------------------------------------------------------------------------------------------------------ in


def parse_reply(body: Mapping[str, Any]) -> Reply:
    model = string_or_none(body.get("model"))
    try:
        blocks = parse_content(require_list(body.get("content"), "content"), model)
    except InputError as error:
        raise RemoteProtocolError(f"not a message of this API: {error}") from None
    reason = string_or_none(body.get("stop_reason"))
    intact = all(block.native is None or block.native.intact for block in blocks)
    return Reply(
        blocks,
        finish=_FINISHES.get(reason or "", "tool_calls" if has_client_calls(blocks) else "stop"),
        usage=_parse_usage(object_or_none(body.get("usage"))),
        id=string_or_none(body.get("id")),
        model=model,
        stop_sequence=string_or_none(body.get("stop_sequence")),
        raw_finish=reason,
        unknown_fields=unknown_fields(body, _KNOWN_FIELDS),
        native=Native(API, body, intact),
    )


def _parse_usage(usage: JsonObject | None) -> Usage | None:
    if usage is None:
        return None
    read, written = token_count(usage, "cache_read_input_tokens"), token_count(usage, "cache_creation_input_tokens")
    return Usage(
        input=token_count(usage, "input_tokens") + read + written,
        output=token_count(usage, "output_tokens"),
        cache_read=read,
        cache_write=written,
        reasoning=token_count(usage, "output_tokens_details", "thinking_tokens"),
        cache_write_1h=min(written, token_count(usage, "cache_creation", "ephemeral_1h_input_tokens")),
    )


def parse_error(status: int, body: Mapping[str, Any]) -> ApiError:
    error = object_or_none(body.get("error")) or {"message": body.get("error")}
    status = status or _STATUSES.get(str(error.get("type")), 0)
    details = object_or_none(error.get("details")) or {}
    return ApiError(
        status,
        string_or_none(error.get("message")) or string_or_none(body.get("message")) or f"HTTP status {status}",
        kind=string_or_none(error.get("type")) or _error_kind(status),
        code=string_or_none(details.get("error_code")),
    )


# ----------------------------------------------------------------------------------------------------------------- out


def render_reply(reply: Reply, context: RenderContext) -> JsonObject:
    original = intact_fragment(reply.native, API)
    if original is not None:
        content = [render_block(block, context) for block in reply.blocks]
        body = original if are_identical(content, original["content"]) else {**original, "content": content}
        return body if reply.id in (None, body.get("id")) else {**body, "id": reply.id}
    blocks = blocks_for_client(reply.blocks, context)
    has_calls = any(isinstance(block, ToolCall) for block in blocks if not is_hosted_from_api(block, API))
    body: JsonObject = {
        "id": message_id(reply.id, "|".join([reply.text, *(call.id for call in reply.calls)])),
        "type": "message",
        "role": "assistant",
        "model": reply.model or "",
        "content": [render_block(block, context) for block in blocks],
        "stop_reason": render_stop_reason(reply.finish, reply.stop_sequence, blocks[-1:], has_calls=has_calls),
        "stop_sequence": reply.stop_sequence,
    }
    # Same-API, missing usage is not invented.
    if reply.usage is None and reply.native is not None and reply.native.api == API:
        return body
    return {**body, "usage": render_usage(reply.usage or Usage())}


def blocks_for_client(blocks: Iterable[Block], context: RenderContext) -> list[Block]:
    """Return the blocks that a client of this API can handle; report each dropped one."""
    return [media_as_text(block, API, context.report) for block in blocks if _is_supported(block, context)]


def _is_supported(block: Block, context: RenderContext) -> bool:
    """Return whether a client of this API can show, run and send back the block."""
    if isinstance(block, Text):
        # ANT-13: an empty text would be rejected when the client sends it back
        return bool(block.text)
    if isinstance(block, Thinking):
        # ANT-26: so would reasoning that this API did not sign
        if block.origin.provider == API and (block.signature or block.encrypted):
            return True
        context.report.add("reasoning", "reasoning dropped from the reply: it has no signature of this API")
        return False
    return not report_if_foreign_hosted(block, API, context.report)


def message_id(reply_id: str | None, content_key: str) -> str:
    """Return the message id; it is derived from `content_key` if the reply has none."""
    if reply_id and reply_id.startswith("msg_"):
        return reply_id
    return "msg_" + short_hash(reply_id or content_key)


def render_stop_reason(finish: Finish, stop_sequence: str | None, last: Sequence[Block], *, has_calls: bool) -> str:
    """Return the stop reason of a reply with this last block, if it has any."""
    if finish == "pause" and any(isinstance(block, Opaque) and block.kind == _COMPACTION for block in last):
        return _COMPACTION
    if has_calls and finish in ("stop", "tool_calls"):
        return "tool_use"
    if finish == "stop" and stop_sequence is not None:
        return "stop_sequence"
    return _STOP_REASONS[finish]


def render_usage(usage: Usage) -> JsonObject:
    details: JsonObject = {}
    if hour := usage.cache_write_1h:
        others = usage.cache_write - hour
        details["cache_creation"] = {"ephemeral_5m_input_tokens": others, "ephemeral_1h_input_tokens": hour}
    if usage.reasoning:
        details["output_tokens_details"] = {"thinking_tokens": usage.reasoning}
    return {
        "input_tokens": max(0, usage.input - usage.cache_read - usage.cache_write),
        "cache_creation_input_tokens": usage.cache_write,
        "cache_read_input_tokens": usage.cache_read,
        "output_tokens": usage.output,
        **details,
    }


def render_error(error: ApiError) -> JsonObject:
    # A kind that is not the default one was chosen.
    kind = error.kind if error.kind in _STATUSES and error.kind != _ERROR_KINDS[400] else _error_kind(error.status)
    fields: JsonObject = {"type": kind, "message": error.message}
    own_details = [detail for detail in error.details if "error_code" in detail]
    if not own_details and error.code is not None:
        own_details = [{"error_code": error.code}]
    return {"type": "error", "error": {**fields, "details": own_details[0]} if own_details else fields}


def _error_kind(status: int) -> str:
    return _ERROR_KINDS.get(status, "api_error" if status >= 500 else "invalid_request_error")
