"""What went wrong with a provider, as an `UpstreamError`: whose fault it is, whether it passes, and what to do.

A table of statuses and of the providers' own names for errors. What a provider says goes into the text on one line,
without keys and without anything that could drive a terminal.
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

# Providers' own words, in lower case, wherever a status would mislead or there is none.
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
    """What somebody else said, fit to be shown: one line, no key, no signs that a terminal obeys."""
    if endpoint.key is not None:
        text = endpoint.key.hidden_in(text)
    line = scrub("".join(sign if sign.isprintable() else " " for sign in text))
    line = " ".join(line.split()).rstrip(".;: ")
    return line[: _LONGEST - 1] + "…" if len(line) > _LONGEST else line


# ------------------------------------------------------------------------------------------------- before an answer


def no_key(endpoint: Endpoint) -> UpstreamError:
    named = " or ".join(endpoint.variables)
    return _error(endpoint, f"{endpoint.provider} has no key: set {named}; segue doctor shows what is set", "key")


def late(endpoint: Endpoint, what: str, seconds: float) -> UpstreamError:
    return _error(endpoint, f"{endpoint.name} does not answer: {what} within {seconds:g} s", "timeout")


def lost(endpoint: Endpoint, trouble: TransportError) -> UpstreamError:
    """A connection that failed before a reply began."""
    why = said(endpoint, str(trouble))
    if trouble.kind == "late":
        return _error(endpoint, f"{endpoint.name} does not answer: {why}", "timeout")
    if trouble.kind == "garbled":
        return not_a_reply(endpoint, why)
    hint = "" if trouble.kind in ("tls", "proxy", "lost") else f"; is {endpoint.base_url} right? {TESTED}"
    return _error(
        endpoint,
        f"{endpoint.name} can't be reached: {why}{hint}",
        "network",
        retryable=trouble.kind not in ("tls", "proxy"),
    )


def not_a_reply(endpoint: Endpoint, why: str) -> UpstreamError:
    """Something answers there, but it is no provider of this API."""
    told = f"{endpoint.name} sent something that is no reply of {endpoint.api}: {said(endpoint, why)}"
    return _error(endpoint, f"{told}; does {endpoint.base_url} speak {endpoint.api}?", "broken", brief="sent no reply")


def cut_off(endpoint: Endpoint, why: str) -> UpstreamError:
    return UpstreamError.broken(endpoint.provider, endpoint.model, said(endpoint, why))


# ------------------------------------------------------------------------------------------------ an answer that is no


def answered(
    endpoint: Endpoint, status: int, headers: Mapping[str, str], data: bytes, *, now: datetime
) -> UpstreamError:
    """The error that an answer is. `now` is UTC."""
    if _OK <= status < _CLIENT:
        where = said(endpoint, headers.get("location", "elsewhere"))
        told = f"{endpoint.name} sends requests on to {where}; if that is right, make it the base URL"
        return _error(endpoint, told, "refused", status=status)
    body = _object(data)
    if body is None:
        error = ApiError(status, _page(data) or f"HTTP status {status}", kind="")
    else:
        if endpoint.api == "bedrock" and (kind := headers.get("x-amzn-errortype")):
            body = {**body, "__type": kind.partition(":")[0]}
        error = WIRES[endpoint.api].parse_error(status, body)
    wait = retry_after(headers, now=now)
    asked = headers.get("x-should-retry")
    return failed(
        endpoint,
        error,
        wait=_retry_info(body) if wait is None else wait,
        retryable={"true": True, "false": False}.get(asked or ""),
    )


def failed(
    endpoint: Endpoint, error: ApiError, *, wait: float | None = None, retryable: bool | None = None
) -> UpstreamError:
    """The provider's error, in our words and its own."""
    found = _finding(endpoint, error, wait)
    passing = found.retryable if retryable is None else retryable
    number = f" ({error.status})" if error.status else ""
    made = _error(
        endpoint, "", found.cause, status=error.status or None, wait=wait, brief=found.brief, retryable=passing
    )
    made.args = (f"{endpoint.name} {made.brief}{number}: {said(endpoint, error.message)}; {found.hint}",)
    return made


def _finding(endpoint: Endpoint, error: ApiError, wait: float | None) -> _Finding:
    names = {word.lower() for word in (error.kind, error.code or "") if word}
    status, message = error.status, error.message
    later = f"it asks to wait {wait:.0f} s" if wait else "try again later, or name a second model to fall back on"
    if status == 402 or names & _NO_CREDIT or "credit balance is too low" in message.lower():
        hint = "add credit there, or name another model"
        return _Finding("rate-limited", hint, "has no credit left", retryable=wait is not None)
    if names & _BAD_KEY or status in (401, 403):
        named = " or ".join(endpoint.variables) or "the key"
        return _Finding("auth", f"check {named}; {TESTED}")
    if status in _TIMED_OUT:
        return _Finding("timeout", later)
    if status in (503, 529) or (names & _OVERLOADED and status not in (400, 500)):
        return _Finding("overloaded", later)
    if status == 429 or names & _RATE_LIMITED:
        return _Finding("rate-limited", later)
    if status in _PASSING or status >= _SERVER or names & _OVERLOADED:
        return _Finding("overloaded", later, "has a fault of its own")
    if names & _NO_MODEL or _NO_MODEL_WORDS.search(message):
        return _Finding("missing", _models_hint(endpoint))
    if status == 404:
        return _Finding("missing", f"is {endpoint.base_url} right? {_models_hint(endpoint)}")
    if status == 413 or _TOO_LONG.search(message) or "context_length_exceeded" in names:
        hint = "compress the conversation, or name a model that reads more"
        return _Finding("refused", hint, "refused the request as too long")
    if not status:
        return _Finding("broken", later, "has a fault of its own")
    return _Finding("refused", "segue diag says what was sent and whose fault it is")


def _models_hint(endpoint: Endpoint) -> str:
    row = catalogue().get(endpoint.provider)
    near = difflib.get_close_matches(endpoint.model, row.models, 3, 0.5) if row is not None else []
    return (
        f"did you mean {' or '.join(near)}?" if near else f"segue models {endpoint.provider} lists what is known of it"
    )


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


# ------------------------------------------------------------------------------------------------------ what it holds


def _object(data: bytes) -> dict[str, Any] | None:
    """The object that a body is, or that is the first of a list."""
    try:
        value: object = msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    if isinstance(value, list) and value:
        value = cast("list[object]", value)[0]
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None


_TITLE = re.compile(r"<title[^>]*>([^<]*)</title>", re.IGNORECASE)


def _page(data: bytes) -> str:
    """What a body says that is no JSON: the title of a page, or the beginning of a text."""
    text = data[:4096].decode("utf-8", "replace")
    title = _TITLE.search(text)
    if title is not None:
        return f"a web page came: {title[1]}"
    return "a web page came" if text.lstrip()[:1] == "<" else text[:_LONGEST]


def retry_after(headers: Mapping[str, str], *, now: datetime) -> float | None:
    """How many seconds the provider asks to wait: a number, or the time of day at its own clock."""
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
    """Google says it in the body: `"retryDelay": "34s"`."""
    error = (body or {}).get("error")
    details = cast("dict[str, Any]", error).get("details") if isinstance(error, dict) else None
    for detail in cast("list[object]", details) if isinstance(details, list) else []:
        delay = cast("dict[str, Any]", detail).get("retryDelay") if isinstance(detail, dict) else None
        if isinstance(delay, str):
            return _number(delay.removesuffix("s"))
    return None
