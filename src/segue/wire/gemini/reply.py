"""`GenerateContentResponse` ⇄ `Reply`, error bodies ⇄ `ApiError`."""

from __future__ import annotations

import re
from calendar import timegm
from collections.abc import Mapping
from typing import Any

from segue.canonical.blocks import Block, Native, Origin, Text, Thinking, ToolCall
from segue.canonical.request import Finish, Reply, Usage
from segue.errors import InputError, RemoteProtocolError
from segue.models import identify
from segue.wire.base import ApiError, Projection
from segue.wire.fields import said_beside
from segue.wire.gemini.fields import (
    JsonObject,
    both,
    int_at,
    items_of,
    look,
    object_at,
    object_of,
    object_or_none,
    spelled,
    text_at,
)
from segue.wire.gemini.items import API, own_fragment, parse_parts, render_parts, signs_the_next
from segue.wire.gemini.spelling import Spelling
from segue.wire.gemini.traits import PLACEHOLDER, traits_of
from segue.wire.replies import ran_elsewhere

__all__ = [
    "first_signature",
    "for_client",
    "lacks_signature",
    "parse_error",
    "parse_reply",
    "render_error",
    "render_finish",
    "render_reply",
    "render_usage",
    "seconds_of",
    "speaks",
]

# Candidate fields that mean nothing on other APIs.
_OF_NO_USE = ("finishMessage", "index", "tokenCount", "avgLogprobs", "safetyRatings")
_KNOWN = frozenset(both("content", "finishReason", *_OF_NO_USE))
_MOMENT = re.compile(r"(\d{4})-(\d\d)-(\d\d)[Tt](\d\d):(\d\d):(\d\d)(?:\.\d+)?[Zz]", re.ASCII)
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
# Codes of the same standard that have no status of their own.
_OTHER_CODES = frozenset({"FAILED_PRECONDITION", "OUT_OF_RANGE", "ALREADY_EXISTS", "DATA_LOSS", "UNKNOWN"})
_BAD_KEY = "API_KEY_INVALID"
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
    model = text_at(body, "modelVersion")
    try:
        candidates = items_of(look(body, "candidates"), "candidates")
        candidate = object_of(candidates[0], "candidates[0]") if candidates else {}
        if not candidates and not object_at(body, "promptFeedback"):
            raise InputError("the reply has neither `candidates` nor `promptFeedback`", path="candidates")
        content = object_at(candidate, "content")
        blocks, _ = parse_parts(items_of(content.get("parts"), "parts"), model)
    except InputError as error:
        raise RemoteProtocolError(f"not a reply of this API: {error}") from None
    return Reply(
        blocks,
        finish=_parse_finish(look(candidate, "finishReason"), blocks) if candidates else "filter",
        usage=_parse_usage(object_or_none(look(body, "usageMetadata"))),
        id=text_at(body, "responseId"),
        model=model,
        created=seconds_of(text_at(body, "createTime")),
        cause=text_at(candidate, "finishReason"),
        others=max(0, len(candidates) - 1),
        beside=said_beside(candidate, _KNOWN),
        native=Native(API, body),
    )


def seconds_of(moment: str | None) -> int | None:
    """Unix seconds of an RFC 3339 timestamp."""
    found = _MOMENT.fullmatch(moment or "")
    try:
        return None if found is None else timegm(tuple(map(int, found.groups())))
    except ValueError:
        return None


def _parse_finish(reason: object, blocks: tuple[Block, ...]) -> Finish:
    finish = _FINISHES.get(reason, "stop") if isinstance(reason, str) else "stop"
    called = any(isinstance(block, ToolCall) and block.kind != "hosted" for block in blocks)
    return "tool_calls" if finish == "stop" and called else finish


def _parse_usage(usage: JsonObject | None) -> Usage | None:
    """Gemini counts thoughts apart from the output, and hosted tools' input apart from the prompt."""
    if usage is None:
        return None
    thoughts = int_at(usage, "thoughtsTokenCount") or 0
    return Usage(
        input=(int_at(usage, "promptTokenCount") or 0) + (int_at(usage, "toolUsePromptTokenCount") or 0),
        output=(int_at(usage, "candidatesTokenCount") or 0) + thoughts,
        cache_read=int_at(usage, "cachedContentTokenCount") or 0,
        reasoning=thoughts,
    )


def parse_error(status: int, body: Mapping[str, Any]) -> ApiError:
    error = object_or_none(body.get("error")) or {}
    status = status or int_at(error, "code") or 0
    return ApiError(
        status,
        text_at(error, "message") or text_at(body, "message") or f"HTTP status {status}",
        kind=_ERROR_KINDS.get(status, "api_error" if status >= 500 else "invalid_request_error"),
        code=_reason(error.get("details")) or text_at(error, "status"),
        param=_violated_field(error.get("details")),
    )


def _reason(details: Any) -> str | None:
    """The reason where it says more than the status: an invalid API key has status INVALID_ARGUMENT."""
    try:
        reasons = [text_at(detail, "reason") for detail in items_of(details, "")]
    except (InputError, AttributeError):
        return None
    return _BAD_KEY if _BAD_KEY in reasons else None


def _violated_field(details: Any) -> str | None:
    try:
        violations = [
            item for detail in items_of(details, "") for item in items_of(look(detail, "fieldViolations"), "")
        ]
        return next((field for item in violations if (field := text_at(item, "field")) is not None), None)
    except (InputError, AttributeError):
        return None


# ----------------------------------------------------------------------------------------------------------------- out


def render_reply(reply: Reply, render_context: Projection) -> JsonObject:
    context = Spelling(render_context, identify(None))
    own = own_fragment(reply.native)
    if own is not None:
        return _render_at_home(reply, own, context)
    parts = render_parts(
        _signed([block for given in reply.blocks for block in for_client(given, render_context)]), context
    )
    candidate: JsonObject = {"finishReason": render_finish(reply.finish), "index": 0}
    if not parts and speaks(reply.finish):
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


def _render_at_home(reply: Reply, own: JsonObject, context: Spelling) -> JsonObject:
    candidates = items_of(look(own, "candidates"), "candidates")
    content = object_at(candidates[0], "content") if candidates else {}
    given = items_of(content.get("parts"), "parts")
    parts = render_parts(reply.blocks, context)
    if len(parts) == len(given) and all(new is old for new, old in zip(parts, given, strict=True)):
        return own
    first = {**candidates[0], spelled(candidates[0], "content"): {**content, "parts": parts}}
    return {**own, spelled(own, "candidates"): [first, *candidates[1:]]}


def for_client(block: Block, render_context: Projection) -> list[Block]:
    """The blocks that a Gemini client can use: hosted calls of other providers are dropped."""
    if isinstance(block, Thinking) and block.origin.provider != API:
        # GEM-18: signatures of other providers are not valid here; the text can be shown.
        if not block.text:
            render_context.report.add("reasoning", "dropped reasoning without readable text from the reply")
        return [Thinking(block.text, origin=block.origin)] if block.text else []
    mute = isinstance(block, Text) and not block.text
    return [] if mute or ran_elsewhere(block, API, render_context.report) else [block]


def _signed(blocks: list[Block]) -> list[Block]:
    """GEM-15, GEM-17: sign the first call, which the API rejects unsigned when the client sends it back."""
    calls = ((at, block) for at, block in enumerate(blocks) if isinstance(block, ToolCall) and block.kind != "hosted")
    at, call = next(calls, (0, None))
    if call is None or not lacks_signature(call) or (at and signs_the_next(blocks[at - 1])):
        return blocks
    return [*blocks[:at], first_signature(), *blocks[at:]]


def lacks_signature(call: ToolCall) -> bool:
    """Whether a first call without a signature needs one: not if a Gemini model that signs no calls made it."""
    return call.origin.provider != API or traits_of(identify(call.origin.model)).signed_calls


def first_signature() -> Thinking:
    """The signature block for a first call that has none."""
    return Thinking(signature=PLACEHOLDER, origin=Origin(API, identity="absent"))


def render_finish(finish: Finish, cause: str | None = None) -> str:
    """The finish reason; `cause` is used where it is one of Gemini's own."""
    return cause if cause in _FINISHES else _FINISH_REASONS[finish]


def speaks(finish: Finish) -> bool:
    """Whether a reply with this finish has content, even if it is empty."""
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
    status = error.status or 500
    usual = _STATUSES.get(status, "INTERNAL" if status >= 500 else "INVALID_ARGUMENT")
    known = error.code if error.code in {*_STATUSES.values(), *_OTHER_CODES} else usual
    body: JsonObject = {"code": status, "message": error.message, "status": known}
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
    elif error.param is not None:
        violation = {"field": error.param, "description": error.message}
        body["details"] = [{"@type": f"{_RPC}.BadRequest", "fieldViolations": [violation]}]
    return {"error": body}
