"""Maps provider failures to `UpstreamError`: the cause, whether a retry can help, and a hint for the user.

Classification is by HTTP status and by the providers' own error codes. The provider's message is included on one line,
without API keys and control characters.
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, NamedTuple, cast

import msgspec

from segue.errors import UpstreamCause, UpstreamError
from segue.runtime.http import TransportError
from segue.runtime.providers import Endpoint, catalogue
from segue.scrubbing import scrub
from segue.wire.base import ApiError
from segue.wire.registry import WIRES

__all__ = ["TESTED", "answered", "cut_off", "failed", "late", "lost", "no_key", "not_a_reply", "retry_after", "said"]

TESTED = "segue doctor --online tests it"
_LONGEST = 300
_OK, _CLIENT, _SERVER = 300, 400, 500

# Providers' error codes, in lower case, for where the status is missing or misleading.
_NO_CREDIT = frozenset(
    {"insufficient_quota", "exceeded_current_quota_error", "arrearage", "billing_hard_limit_reached", "billing_error"}
    | {"insufficient_balance", "insufficient_credits", "servicequotaexceededexception"}
)
_OVERLOADED = frozenset(
    {"overloaded_error", "engine_overloaded_error", "service_tier_capacity_exceeded", "3505", "unavailable"}
    | {"serviceunavailable", "serviceunavailableexception", "service_unavailable_error", "modelnotreadyexception"}
    | {"modelerrorexception", "modelstreamerrorexception", "internalserverexception", "server_error", "api_error"}
)
_RATE_LIMITED = frozenset(
    {"rate_limit_error", "rate_limit_exceeded", "rate_limit_reached_error", "rate_limited", "throttlingexception"}
    | {"limit_requests", "resource_exhausted", "too_many_requests"}
)
_BAD_KEY = frozenset(
    {"api_key_invalid", "invalid_api_key", "authentication_error", "invalid_authentication_error"}
    | {"unrecognizedclientexception", "invalidsignatureexception", "expiredtokenexception"}
    | {"missingauthenticationtokenexception", "accessdeniedexception"}
)
_NO_MODEL = frozenset({"model_not_found", "model_not_exist", "invalid_model", "resourcenotfoundexception"})
_NO_MODEL_WORDS = re.compile(
    r"\b(?:invalid|unknown|unrecognized|unsupported|no such|not a valid) model\b|model identifier is invalid"
    r"|\bmodel\b[ :]*(?:[`'\"][^`'\"]*[`'\"]|\S*[\d/-]\S*)?,? ?(?:is |was |does )?(?:not (?:exist|found)|is invalid)",
    re.IGNORECASE,
)
_TOO_LONG = re.compile(
    r"context[ _]length|context window|prompt is too long|too many (?:input )?tokens|input is too long"
    r"|input token count|maximum context|range of input length|exceeded model token limit",
    re.IGNORECASE,
)
_TIMED_OUT = frozenset({408, 504})
_PASSING = frozenset({409, 424, 425})


class _Finding(NamedTuple):
    cause: UpstreamCause
    hint: str
    brief: str | None = None
    retryable: bool | None = None


def said(endpoint: Endpoint, text: str) -> str:
    """A provider's text for display: one line, without API keys and control characters, truncated."""
    if endpoint.key is not None:
        text = endpoint.key.hidden_in(text)
    line = scrub("".join(char if char.isprintable() else " " for char in text))
    line = " ".join(line.split()).rstrip(".;: ")
    return line[: _LONGEST - 1] + "…" if len(line) > _LONGEST else line


# ---------------------------------------------------------------------------------------------------- before a response


def no_key(endpoint: Endpoint) -> UpstreamError:
    variables = " or ".join(endpoint.variables)
    message = f"no API key for {endpoint.provider}: set {variables}; segue doctor shows what is set"
    return _error(endpoint, message, "key")


def late(endpoint: Endpoint, what: str, seconds: float) -> UpstreamError:
    return _error(endpoint, f"{endpoint.name} timed out: {what} within {seconds:g} s", "timeout")


def lost(endpoint: Endpoint, error: TransportError) -> UpstreamError:
    """A connection that failed before the reply started."""
    why = said(endpoint, str(error))
    if error.kind == "late":
        return _error(endpoint, f"{endpoint.name} timed out: {why}", "timeout")
    if error.kind == "garbled":
        return not_a_reply(endpoint, why)
    hint = "" if error.kind in ("tls", "proxy", "lost") else f"; check the base URL {endpoint.base_url}; {TESTED}"
    return _error(
        endpoint,
        f"{endpoint.name} can't be reached: {why}{hint}",
        "network",
        retryable=error.kind not in ("tls", "proxy"),
    )


def not_a_reply(endpoint: Endpoint, why: str) -> UpstreamError:
    """A response that is not a reply in the endpoint's API."""
    message = f"{endpoint.name} did not send a valid {endpoint.api} reply: {said(endpoint, why)}"
    hint = f"check that {endpoint.base_url} serves the {endpoint.api} API"
    return _error(endpoint, f"{message}; {hint}", "broken", brief="did not send a valid reply")


def cut_off(endpoint: Endpoint, why: str) -> UpstreamError:
    return UpstreamError.broken(endpoint.provider, endpoint.model, said(endpoint, why))


# ---------------------------------------------------------------------------------------------------- an error response


def answered(
    endpoint: Endpoint, status: int, headers: Mapping[str, str], data: bytes, *, now: datetime
) -> UpstreamError:
    """The error for an HTTP response with an error status. `now` is UTC."""
    if _OK <= status < _CLIENT:
        where = said(endpoint, headers.get("location", "elsewhere"))
        message = f"{endpoint.name} redirects to {where}; if that is correct, set it as the base URL"
        return _error(endpoint, message, "refused", status=status)
    body = _object(data)
    if body is None:
        error = ApiError(status, _page(data) or f"HTTP status {status}", kind="")
    else:
        if endpoint.api == "bedrock" and (kind := headers.get("x-amzn-errortype")):
            body = {**body, "__type": kind.partition(":")[0]}
        error = WIRES[endpoint.api].parse_error(status, body)
    wait = retry_after(headers, now=now)
    should_retry = headers.get("x-should-retry")
    return failed(
        endpoint,
        error,
        wait=_retry_info(body) if wait is None else wait,
        retryable={"true": True, "false": False}.get(should_retry or ""),
    )


def failed(
    endpoint: Endpoint, error: ApiError, *, wait: float | None = None, retryable: bool | None = None
) -> UpstreamError:
    """The `UpstreamError` for a provider's error, with its message and a hint."""
    found = _finding(endpoint, error, wait)
    passing = found.retryable if retryable is None else retryable
    number = f" ({error.status})" if error.status else ""
    result = _error(
        endpoint, "", found.cause, status=error.status or None, wait=wait, brief=found.brief, retryable=passing
    )
    result.args = (f"{endpoint.name} {result.brief}{number}: {said(endpoint, error.message)}; {found.hint}",)
    return result


def _finding(endpoint: Endpoint, error: ApiError, wait: float | None) -> _Finding:
    names = {word.lower() for word in (error.kind, error.code or "") if word}
    status, message = error.status, error.message
    later = f"retry after {wait:.0f} s" if wait else "try again later, or configure a second model for failover"
    if status == 402 or names & _NO_CREDIT or "credit balance is too low" in message.lower():
        hint = "add credit to the account, or use another model"
        return _Finding("rate-limited", hint, "has no credit left", retryable=wait is not None)
    if names & _BAD_KEY or status in (401, 403):
        variables = " or ".join(endpoint.variables) or "the API key"
        return _Finding("auth", f"check {variables}; {TESTED}")
    if status in _TIMED_OUT:
        return _Finding("timeout", later)
    if status in (503, 529) or (names & _OVERLOADED and status not in (400, 500)):
        return _Finding("overloaded", later)
    if status == 429 or names & _RATE_LIMITED:
        return _Finding("rate-limited", later)
    if status in _PASSING or status >= _SERVER or names & _OVERLOADED:
        return _Finding("overloaded", later, "has an internal error")
    if names & _NO_MODEL or _NO_MODEL_WORDS.search(message):
        return _Finding("missing", _models_hint(endpoint))
    if status == 404:
        return _Finding("missing", f"check the base URL {endpoint.base_url}; {_models_hint(endpoint)}")
    if status == 413 or _TOO_LONG.search(message) or "context_length_exceeded" in names:
        hint = "compress the conversation, or use a model with a larger context"
        return _Finding("refused", hint, "rejected the request as too long")
    if not status:
        return _Finding("broken", later, "has an internal error")
    return _Finding("refused", "segue diag shows what was sent and why it was rejected")


def _models_hint(endpoint: Endpoint) -> str:
    row = catalogue().get(endpoint.provider)
    near = difflib.get_close_matches(endpoint.model, row.models, 3, 0.5) if row is not None else []
    return f"did you mean {' or '.join(near)}?" if near else f"segue models {endpoint.provider} lists its known models"


def _error(
    endpoint: Endpoint,
    message: str,
    cause: UpstreamCause,
    *,
    status: int | None = None,
    wait: float | None = None,
    brief: str | None = None,
    retryable: bool | None = None,
) -> UpstreamError:
    return UpstreamError(
        message,
        cause=cause,
        provider=endpoint.provider,
        model=endpoint.model,
        status=status,
        retry_after=wait,
        brief=brief,
        retryable=retryable,
    )


# -------------------------------------------------------------------------------------------------------------- parsing


def _object(data: bytes) -> dict[str, Any] | None:
    """The JSON object in a body, or the first of a list; None if it is something else."""
    try:
        value: object = msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    if isinstance(value, list) and value:
        value = cast("list[object]", value)[0]
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None


_TITLE = re.compile(r"<title[^>]*>([^<]*)</title>", re.IGNORECASE)


def _page(data: bytes) -> str:
    """Describes a body that is not JSON: the title of a web page, or the beginning of the text."""
    text = data[:4096].decode("utf-8", "replace")
    title = _TITLE.search(text)
    if title is not None:
        return f"got a web page: {title[1]}"
    return "got a web page" if text.lstrip()[:1] == "<" else text[:_LONGEST]


def retry_after(headers: Mapping[str, str], *, now: datetime) -> float | None:
    """The wait in seconds that the response headers ask for: a number, or a date compared with the server's date."""
    if (given := _number(headers.get("retry-after-ms"))) is not None:
        return given / 1000
    text = headers.get("retry-after")
    if text is None or (given := _number(text)) is not None:
        return given if text is not None else None
    until = _moment(text)
    if until is None:
        return None
    return max(0.0, (until - (_moment(headers.get("date", "")) or now)).total_seconds())


def _number(text: str | None) -> float | None:
    try:
        value = float(text or "")
    except ValueError:
        return None
    return max(0.0, value) if math.isfinite(value) else None


def _moment(text: str) -> datetime | None:
    try:
        found = parsedate_to_datetime(text)
    except (ValueError, TypeError, IndexError):
        return None
    return found.replace(tzinfo=UTC) if found.tzinfo is None else found


def _retry_info(body: Mapping[str, Any] | None) -> float | None:
    """The wait in the body of a Gemini error: `"retryDelay": "34s"`."""
    error = (body or {}).get("error")
    details = cast("dict[str, Any]", error).get("details") if isinstance(error, dict) else None
    for detail in cast("list[object]", details) if isinstance(details, list) else []:
        delay = cast("dict[str, Any]", detail).get("retryDelay") if isinstance(detail, dict) else None
        if isinstance(delay, str):
            return _number(delay.removesuffix("s"))
    return None
