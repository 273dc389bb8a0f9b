"""`GenerateContentResponse` ⇄ `Reply`, error bodies ⇄ `ApiError`."""

from __future__ import annotations

import re
from calendar import timegm
from collections.abc import Mapping
from typing import Any

from segue.canonical.blocks import Block, Native, Origin, Text, Thinking, ToolCall
from segue.canonical.request import Finish, Reply, Usage
from segue.errors import InputError, RemoteProtocolError
from segue.models import parse_model
from segue.render.constraints import PLACEHOLDER_SIGNATURE
from segue.wire.base import ApiError, RenderContext
from segue.wire.gemini.capabilities import API, capabilities_of
from segue.wire.gemini.fields import (
    JsonObject,
    as_list,
    both_cases,
    find_key,
    get_field,
    get_int,
    get_object,
    get_text,
    object_or_none,
)
from segue.wire.gemini.items import (
    GeminiContext,
    is_cut_off,
    is_signature_of_next,
    mark_cut_off,
    parse_parts,
    render_parts,
)
from segue.wire.json_values import require_object, unknown_fields
from segue.wire.merge import intact_fragment
from segue.wire.replies import has_client_calls, report_if_foreign_hosted

# Candidate fields without an equivalent in other APIs; dropping them is not reported.
_IGNORED_FIELDS = ("finishMessage", "index", "tokenCount", "avgLogprobs", "safetyRatings")
_KNOWN_FIELDS = frozenset(both_cases("content", "finishReason", *_IGNORED_FIELDS))
_TIMESTAMP = re.compile(r"(\d{4})-(\d\d)-(\d\d)[Tt](\d\d):(\d\d):(\d\d)(?:\.\d+)?[Zz]", re.ASCII)
# GEM-26: a reply with calls ends with STOP like any other.
_FINISHES: dict[str, Finish] = {
    "STOP": "stop",
    "FINISH_REASON_UNSPECIFIED": "stop",
    "MAX_TOKENS": "length",
    "CONTINUATION": "pause",
    "SAFETY": "filter",
    "RECITATION": "filter",
    "BLOCKLIST": "filter",
    "PROHIBITED_CONTENT": "filter",
    "SPII": "filter",
    "IMAGE_SAFETY": "filter",
    "IMAGE_PROHIBITED_CONTENT": "filter",
    "IMAGE_RECITATION": "filter",
    "LANGUAGE": "error",
    "OTHER": "error",
    "NO_IMAGE": "error",
    "IMAGE_OTHER": "error",
    "MALFORMED_FUNCTION_CALL": "error",
    "MALFORMED_RESPONSE": "error",
    "UNEXPECTED_TOOL_CALL": "error",
    "TOO_MANY_TOOL_CALLS": "error",
}
_FINISH_REASONS: dict[Finish, str] = {
    "stop": "STOP",
    "tool_calls": "STOP",
    "length": "MAX_TOKENS",
    "filter": "SAFETY",
    "pause": "MAX_TOKENS",
    "error": "OTHER",
}
_STATUSES = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    409: "ABORTED",
    429: "RESOURCE_EXHAUSTED",
    499: "CANCELLED",
    500: "INTERNAL",
    501: "UNIMPLEMENTED",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
    529: "UNAVAILABLE",
}
_STATUS_BY_NAME = {name: status for status, name in _STATUSES.items()} | {"UNAVAILABLE": 503}
# Codes of the same standard that have no status of their own.
_OTHER_CODES = frozenset({"FAILED_PRECONDITION", "OUT_OF_RANGE", "ALREADY_EXISTS", "DATA_LOSS", "UNKNOWN"})
_BAD_KEY, _USED_UP = "API_KEY_INVALID", "QUOTA_EXHAUSTED"
_OWN_CODE = re.compile("[a-z_]+")
_RPC = "type.googleapis.com/google.rpc"
_ERROR_KINDS = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    429: "rate_limit_error",
    503: "overloaded_error",
}


# ------------------------------------------------------------------------------------------------------------------ in


def parse_reply(body: Mapping[str, Any]) -> Reply:
    """Parse the first candidate. A blocked prompt has none."""
    model = get_text(body, "modelVersion")
    try:
        candidates = as_list(get_field(body, "candidates"), "candidates")
        candidate = require_object(candidates[0], "candidates[0]") if candidates else {}
        if not candidates and not get_object(body, "promptFeedback"):
            raise InputError("the reply has neither `candidates` nor `promptFeedback`", path="candidates")
        content = get_object(candidate, "content")
        blocks, _ = parse_parts(as_list(content.get("parts"), "parts"), model)
    except InputError as error:
        raise RemoteProtocolError(f"not a reply of this API: {error}") from None
    complete = tuple(
        mark_cut_off(block) if isinstance(block, ToolCall) and is_cut_off(block) else block for block in blocks
    )
    intact, blocks = complete == blocks, complete
    return Reply(
        blocks,
        finish=_parse_finish(get_field(candidate, "finishReason"), blocks) if candidates else "filter",
        usage=_parse_usage(object_or_none(get_field(body, "usageMetadata"))),
        id=get_text(body, "responseId"),
        model=model,
        created=parse_timestamp(get_text(body, "createTime")),
        raw_finish=get_text(candidate, "finishReason"),
        other_choices=max(0, len(candidates) - 1),
        unknown_fields=unknown_fields(candidate, _KNOWN_FIELDS),
        native=Native(API, body, intact),
    )


def parse_timestamp(timestamp: str | None) -> int | None:
    """Return the Unix seconds of an RFC 3339 timestamp."""
    match = _TIMESTAMP.fullmatch(timestamp or "")
    try:
        return None if match is None else timegm(tuple(map(int, match.groups())))
    except ValueError:
        return None


def _parse_finish(reason: object, blocks: tuple[Block, ...]) -> Finish:
    finish = _FINISHES.get(reason, "stop") if isinstance(reason, str) else "stop"
    return "tool_calls" if finish == "stop" and has_client_calls(blocks) else finish


def _parse_usage(usage: JsonObject | None) -> Usage | None:
    """Parse usage: thoughts are not part of the output count, hosted tools' input not part of the prompt count."""
    if usage is None:
        return None
    thoughts = get_int(usage, "thoughtsTokenCount") or 0
    return Usage(
        input=(get_int(usage, "promptTokenCount") or 0) + (get_int(usage, "toolUsePromptTokenCount") or 0),
        output=(get_int(usage, "candidatesTokenCount") or 0) + thoughts,
        cache_read=get_int(usage, "cachedContentTokenCount") or 0,
        reasoning=thoughts,
    )


def parse_error(status: int, body: Mapping[str, Any]) -> ApiError:
    error = object_or_none(body.get("error")) or {"message": body.get("error")}
    status = status or get_int(error, "code") or _STATUS_BY_NAME.get(get_text(error, "status") or "", 0)
    return ApiError(
        status,
        get_text(error, "message") or get_text(body, "message") or f"HTTP status {status}",
        kind=_ERROR_KINDS.get(status, "api_error" if status >= 500 else "invalid_request_error"),
        code=_error_reason(error.get("details")) or get_text(error, "status"),
        param=_violated_field(error.get("details")),
        wait=_retry_delay(error.get("details")),
    )


def _error_reason(details: Any) -> str | None:
    """Return the error reason where the status alone is ambiguous: an invalid API key has status INVALID_ARGUMENT."""
    try:
        items = as_list(details, "")
        reasons = [get_text(detail, "reason") for detail in items]
        quotas = [
            get_text(item, "quotaId") or "" for detail in items for item in as_list(get_field(detail, "violations"), "")
        ]
    except (InputError, AttributeError):
        return None
    if _BAD_KEY in reasons:
        return _BAD_KEY
    return _USED_UP if any("PerDay" in quota or "Daily" in quota for quota in quotas) else None


def _retry_delay(details: Any) -> float | None:
    """Return the wait in seconds: `"retryDelay": "34s"`."""
    try:
        delays = [get_text(detail, "retryDelay") for detail in as_list(details, "")]
        return next((max(0.0, float(delay.removesuffix("s"))) for delay in delays if delay is not None), None)
    except (InputError, AttributeError, ValueError):
        return None


def _violated_field(details: Any) -> str | None:
    try:
        violations = [
            item for detail in as_list(details, "") for item in as_list(get_field(detail, "fieldViolations"), "")
        ]
        return next((field for item in violations if (field := get_text(item, "field")) is not None), None)
    except (InputError, AttributeError):
        return None


# ----------------------------------------------------------------------------------------------------------------- out


def render_reply(reply: Reply, render_context: RenderContext) -> JsonObject:
    context = GeminiContext(render_context, parse_model(None))
    original = intact_fragment(reply.native, API)
    if original is not None:
        body = _render_same_api(reply, original, context)
        if reply.id in (None, get_text(body, "responseId")):
            return body
        return {**body, find_key(body, "responseId"): reply.id}
    parts = render_parts(
        _sign_first_call(
            [block for reply_block in reply.blocks for block in blocks_for_client(reply_block, render_context)]
        ),
        context,
    )
    candidate: JsonObject = {"finishReason": render_finish(reply.finish), "index": 0}
    if not parts and expects_content(reply.finish):
        parts = [{"text": ""}]
    if parts:
        candidate = {"content": {"parts": parts, "role": "model"}, **candidate}
    body: JsonObject = {"candidates": [candidate]}
    if reply.usage is not None:
        body["usageMetadata"] = render_usage(reply.usage)
    if reply.model:
        body["modelVersion"] = reply.model
    if reply.id:
        body["responseId"] = reply.id
    return body


def _render_same_api(reply: Reply, body: JsonObject, context: GeminiContext) -> JsonObject:
    candidates = as_list(get_field(body, "candidates"), "candidates")
    content = get_object(candidates[0], "content") if candidates else {}
    original = as_list(content.get("parts"), "parts")
    parts = render_parts(reply.blocks, context)
    if len(parts) == len(original) and all(new is old for new, old in zip(parts, original, strict=True)):
        return body
    first = {**candidates[0], find_key(candidates[0], "content"): {**content, "parts": parts}}
    return {**body, find_key(body, "candidates"): [first, *candidates[1:]]}


def blocks_for_client(block: Block, render_context: RenderContext) -> list[Block]:
    """Return the blocks that a Gemini client can use: hosted calls of other providers are dropped."""
    if isinstance(block, Thinking) and block.origin.provider != API:
        # GEM-18: signatures of other providers are not valid here; the text can be shown.
        if not block.text:
            render_context.report.add("reasoning", "reasoning dropped from the reply: it has no readable text")
        return [Thinking(block.text, origin=block.origin)] if block.text else []
    is_empty = isinstance(block, Text) and not block.text
    return [] if is_empty or report_if_foreign_hosted(block, API, render_context.report) else [block]


def _sign_first_call(blocks: list[Block]) -> list[Block]:
    """Sign the first call, which the API rejects unsigned when the client sends it back (GEM-15, GEM-17)."""
    calls = (
        (index, block) for index, block in enumerate(blocks) if isinstance(block, ToolCall) and block.kind != "hosted"
    )
    index, call = next(calls, (0, None))
    if call is None or not needs_signature(call) or (index and is_signature_of_next(blocks[index - 1])):
        return blocks
    return [*blocks[:index], placeholder_signature(), *blocks[index:]]


def needs_signature(call: ToolCall) -> bool:
    """Return whether a first call needs a signature: not if it came from a Gemini model that signs no calls."""
    return call.origin.provider != API or capabilities_of(parse_model(call.origin.model)).signed_calls


def placeholder_signature() -> Thinking:
    """Return the signature block for a first call that has none."""
    return Thinking(signature=PLACEHOLDER_SIGNATURE, origin=Origin(API, identity="absent"))


def render_finish(finish: Finish, raw_finish: str | None = None) -> str:
    """Return the finish reason; `raw_finish` is used if it is one of Gemini's own."""
    return raw_finish if raw_finish in _FINISHES else _FINISH_REASONS[finish]


def expects_content(finish: Finish) -> bool:
    """Return whether a reply with this finish has content, even if it is empty."""
    return finish in ("stop", "tool_calls", "length", "pause")


def render_usage(usage: Usage) -> JsonObject:
    counts: JsonObject = {
        "promptTokenCount": usage.input,
        "candidatesTokenCount": max(0, usage.output - usage.reasoning),
        "totalTokenCount": usage.input + usage.output,
    }
    if usage.cache_read:
        counts["cachedContentTokenCount"] = usage.cache_read
    if usage.reasoning:
        counts["thoughtsTokenCount"] = usage.reasoning
    return counts


def render_error(error: ApiError) -> JsonObject:
    # Only Anthropic has this status.
    status = 503 if error.status == 529 else error.status or 500
    default_code = _STATUSES.get(status, "INTERNAL" if status >= 500 else "INVALID_ARGUMENT")
    code = error.code if error.code in {*_STATUSES.values(), *_OTHER_CODES} else default_code
    body: JsonObject = {"code": status, "message": error.message, "status": code}
    if error.code == _BAD_KEY:
        body["details"] = [
            {
                "@type": f"{_RPC}.ErrorInfo",
                "reason": _BAD_KEY,
                "domain": "googleapis.com",
                "metadata": {"service": "generativelanguage.googleapis.com"},
            },
            {"@type": f"{_RPC}.LocalizedMessage", "locale": "en-US", "message": error.message},
        ]
    elif error.code == _USED_UP:
        violation = {"quotaId": "GenerateRequestsPerDayPerProjectPerModel"}
        body["details"] = [{"@type": f"{_RPC}.QuotaFailure", "violations": [violation]}]
    elif error.wait is not None:
        body["details"] = [{"@type": f"{_RPC}.RetryInfo", "retryDelay": f"{error.wait:g}s"}]
    elif error.error_kind is not None and _OWN_CODE.fullmatch(error.code or ""):
        body["details"] = [{"@type": f"{_RPC}.ErrorInfo", "reason": (error.code or "").upper(), "domain": "segue"}]
    elif error.param is not None:
        violation = {"field": error.param, "description": error.message}
        body["details"] = [{"@type": f"{_RPC}.BadRequest", "fieldViolations": [violation]}]
    return {"error": body}
