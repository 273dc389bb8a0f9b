"""Conversion of provider failures to `ProviderError`: the cause, whether a retry can help, and a hint for the user.

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
from typing import Any, Literal, NamedTuple, cast

import msgspec

from segue.bridge.addresses import is_local
from segue.bridge.limit_errors import find_context_limit, find_output_limit
from segue.bridge.providers import Endpoint, catalogue
from segue.errors import BRIEF_TEXTS, ProviderError, ProviderErrorCause, SuggestedCommand
from segue.redaction import redact
from segue.wire.base import ApiError
from segue.wire.registry import WIRES
from segue.wire.replies import OVERLOAD_KINDS

TransportErrorKind = Literal[
    "connect",  # the connection could not be established
    "timeout",  # the connection timed out
    "tls",  # TLS or the certificate failed
    "proxy",  # the proxy rejected the connection
    "lost",  # the connection broke
    "invalid",  # the response is not valid HTTP
    "encoding",  # the response is compressed, which was not requested
    "credentials",  # the credentials could not be fetched
]
_MAX_TEXT = 300
_REDIRECT_STATUS, _CLIENT_ERROR_STATUS, _SERVER_ERROR_STATUS = 300, 400, 500

# Providers' error codes, in lower case, for where the status is missing or misleading.
_NO_CREDIT = frozenset(
    {"insufficient_quota", "exceeded_current_quota_error", "arrearage", "billing_hard_limit_reached", "billing_error"}
    | {"insufficient_balance", "insufficient_credits", "servicequotaexceededexception"}
)
_OVERLOADED = frozenset(
    OVERLOAD_KINDS
    | {"modelerrorexception", "modelstreamerrorexception", "internalserverexception", "server_error", "api_error"}
)
_RATE_LIMITED = frozenset(
    {"rate_limit_error", "rate_limit_exceeded", "rate_limit_reached_error", "rate_limited", "throttlingexception"}
    | {"limit_requests", "resource_exhausted", "too_many_requests"}
)
_BAD_KEY = frozenset(
    {"api_key_invalid", "invalid_api_key", "authentication_error", "invalid_authentication_error"}
    | {"unrecognizedclientexception", "invalidsignatureexception", "expiredtokenexception"}
    | {"missingauthenticationtokenexception"}
)
# The key is valid, but the account may not use the model.
_NO_ACCESS = frozenset({"accessdeniedexception", "permission_error", "permission_denied"})
_UNVERIFIED = re.compile(r"\borgani[sz]ation must be verified\b", re.IGNORECASE)
_NO_MODEL = frozenset({"model_not_found", "model_not_exist", "invalid_model", "resourcenotfoundexception"})
_NO_MODEL_TEXT = re.compile(
    r"\b(?:invalid|unknown|unrecognized|unsupported|no such|not a valid) model\b|model identifier is invalid"
    r"|\bmodel\b[ :]*(?:[`'\"][^`'\"]*[`'\"]|\S*[\d/-]\S*)?,? ?(?:is |was |does )?(?:not (?:exist|found)|is invalid)",
    re.IGNORECASE,
)
_TOO_LONG = re.compile(
    r"context[ _](?:length|size)|context window|prompt is too long|too many (?:input )?tokens|input is too long"
    r"|input token count|maximum context|range of input length|exceeded model token limit",
    re.IGNORECASE,
)
# Some providers reject content with the status of a missing permission.
_POLICY = re.compile(
    r"\b(?:flagged|moderation|content[ _-](?:filter|policy)|usage (?:guidelines|polic(?:y|ies)))", re.IGNORECASE
)
_TOO_LONG_BRIEF = "rejected the request as too long"
_TIMED_OUT = frozenset({408, 504})
_TRANSIENT = frozenset({409, 424, 425})


class TransportError(Exception):
    """A connection failure, with a short message."""

    def __init__(self, kind: TransportErrorKind, message: str) -> None:
        super().__init__(message)
        self.kind: TransportErrorKind = kind


class _Diagnosis(NamedTuple):
    cause: ProviderErrorCause
    hint: str | None = None
    brief: str | None = None
    retryable: bool | None = None
    command: SuggestedCommand | None = None


def _clean_provider_text(endpoint: Endpoint, text: str) -> str:
    """Clean a provider's text for display: one line, without API keys and control characters, truncated."""
    if endpoint.key is not None:
        text = endpoint.key.mask_in(text)
    line = redact("".join(char if char.isprintable() else " " for char in text))
    line = " ".join(line.split()).rstrip(".;: ")
    return line[: _MAX_TEXT - 1] + "…" if len(line) > _MAX_TEXT else line


# ---------------------------------------------------------------------------------------------------- before a response


def missing_key_error(endpoint: Endpoint) -> ProviderError:
    variables = " or ".join(endpoint.variables)
    message = f"no API key for {endpoint.provider}: set {variables}; segue doctor shows what is set"
    return _make_error(endpoint, message, "key")


def timeout_error(endpoint: Endpoint, what: str, seconds: float) -> ProviderError:
    return _make_error(endpoint, f"{endpoint.name} timed out: {what} within {seconds:g} s", "timeout")


def connection_error(endpoint: Endpoint, error: TransportError) -> ProviderError:
    """Return the error for a connection that failed before the reply started."""
    why = _clean_provider_text(endpoint, str(error))
    if error.kind == "timeout":
        return _make_error(endpoint, f"{endpoint.name} timed out: {why}", "timeout")
    if error.kind in ("invalid", "encoding"):
        return invalid_reply_error(endpoint, why)
    if error.kind == "credentials":
        return _make_error(endpoint, f"{endpoint.name}: {why}", "key")
    message = f"{endpoint.name} can't be reached: {why}"
    if error.kind in ("tls", "proxy", "lost"):
        return _make_error(endpoint, message, "network", retryable=error.kind == "lost")
    if is_local(endpoint.base_url):
        # The server is on this machine: it would answer at once if it ran.
        return _make_error(endpoint, f"{message}; is {_server_name(endpoint)} running?", "network", retryable=False)
    return _make_error(endpoint, f"{message}; check the base URL {endpoint.base_url}", "network", command="doctor")


def _server_name(endpoint: Endpoint) -> str:
    """Return the name of a server on this machine."""
    row = catalogue().get(endpoint.provider)
    is_shipped = row is not None and is_local(row.base_url)
    return row.title.partition(",")[0] if row is not None and is_shipped else f"the server at {endpoint.base_url}"


def invalid_reply_error(endpoint: Endpoint, why: str) -> ProviderError:
    """Return the error for a response that is not a reply in the endpoint's API."""
    message = f"{endpoint.name} did not send a valid {endpoint.api} reply: {_clean_provider_text(endpoint, why)}"
    hint = f"check that {endpoint.base_url} serves the {endpoint.api} API"
    return _make_error(endpoint, f"{message}; {hint}", "broken", brief="did not send a valid reply")


def stream_error(endpoint: Endpoint, why: str) -> ProviderError:
    return ProviderError.broken(endpoint.provider, endpoint.model, _clean_provider_text(endpoint, why))


def limit_error(endpoint: Endpoint, error: ApiError) -> ProviderError:
    """Return the error for a reply above its limits; the same request would fail again."""
    message = f"the reply of {endpoint.name} was cancelled: {error.message}"
    return _make_error(endpoint, message, "broken", brief="sent too large a reply", retryable=False)


# ---------------------------------------------------------------------------------------------------- an error response


def response_error(
    endpoint: Endpoint, status: int, headers: Mapping[str, str], data: bytes, *, now: datetime
) -> ProviderError:
    """Return the error for an HTTP response with an error status. `now` is UTC."""
    if _REDIRECT_STATUS <= status < _CLIENT_ERROR_STATUS:
        where = _clean_provider_text(endpoint, headers.get("location", "elsewhere"))
        message = f"{endpoint.name} redirects to {where}; if that is correct, set it as the base URL"
        return _make_error(endpoint, message, "refused", status=status)
    body = _parse_object(data)
    if body is None:
        error = ApiError(status, _describe_text(data) or f"HTTP status {status}", kind="")
    else:
        if endpoint.api == "bedrock" and (kind := headers.get("x-amzn-errortype")):
            body = {**body, "__type": kind.partition(":")[0]}
        error = WIRES[endpoint.api].parse_error(status, body)
    wait = parse_retry_after(headers, now=now)
    should_retry = headers.get("x-should-retry")
    return api_error(
        endpoint,
        error,
        wait=_parse_retry_info(body) if wait is None else wait,
        retryable={"true": True, "false": False}.get(should_retry or ""),
    )


def api_error(
    endpoint: Endpoint, error: ApiError, *, wait: float | None = None, retryable: bool | None = None
) -> ProviderError:
    """Return the `ProviderError` for a provider's error, with its message and a hint."""
    diagnosis = _diagnose(endpoint, error, wait)
    brief = diagnosis.brief or BRIEF_TEXTS[diagnosis.cause]
    number = f" ({error.status})" if error.status else ""
    message = f"{endpoint.name} {brief}{number}: {_clean_provider_text(endpoint, error.message)}"
    return _make_error(
        endpoint,
        message if diagnosis.hint is None else f"{message}; {diagnosis.hint}",
        diagnosis.cause,
        status=error.status or None,
        wait=wait,
        brief=brief,
        retryable=diagnosis.retryable if retryable is None else retryable,
        command=diagnosis.command,
        **_find_limits(error, diagnosis),
    )


def _find_limits(error: ApiError, diagnosis: _Diagnosis) -> dict[str, Any]:
    """Return the limits that a rejection names. An error about both is one about the output, which can be shorter."""
    if diagnosis.cause != "refused":
        return {}
    output_limit = find_output_limit(error.message)
    is_too_long = diagnosis.brief == _TOO_LONG_BRIEF and output_limit is None
    return {
        "is_too_long": is_too_long,
        "context_limit": find_context_limit(error.message) if is_too_long or output_limit else None,
        "output_limit": output_limit,
    }


def _diagnose(endpoint: Endpoint, error: ApiError, wait: float | None) -> _Diagnosis:
    names = {word.lower() for word in (error.kind, error.code or "") if word}
    status, message = error.status, error.message
    later = f"retry after {wait:.0f} s" if wait else "try again later, or configure a second model for failover"
    if status == 402 or names & _NO_CREDIT or "credit balance is too low" in message.lower():
        hint = "add credit to the account, or use another model"
        return _Diagnosis("rate-limited", hint, "has no credit left", retryable=wait is not None)
    if names & _BAD_KEY or status == 401:
        variables = " or ".join(endpoint.variables) or "the API key"
        return _Diagnosis("auth", f"check {variables}", command="doctor")
    if not _POLICY.search(message) and (status == 403 or names & _NO_ACCESS or _UNVERIFIED.search(message)):
        hint = f"check what the account may use: access to {endpoint.model}, verification, region"
        return _Diagnosis("auth", hint, "denied access", command="doctor")
    if status in _TIMED_OUT:
        return _Diagnosis("timeout", later)
    if status in (503, 529) or (names & _OVERLOADED and status not in (400, 500)):
        return _Diagnosis("overloaded", later)
    if status == 429 or names & _RATE_LIMITED:
        return _Diagnosis("rate-limited", later)
    if status in _TRANSIENT or status >= _SERVER_ERROR_STATUS or names & _OVERLOADED:
        return _Diagnosis("overloaded", later, "has an internal error")
    if names & _NO_MODEL or _NO_MODEL_TEXT.search(message):
        return _Diagnosis("missing", _models_hint(endpoint))
    if status == 404:
        return _Diagnosis("missing", f"check the base URL {endpoint.base_url}; {_models_hint(endpoint)}")
    if status == 413 or _TOO_LONG.search(message) or "context_length_exceeded" in names:
        hint = "compress the conversation, or use a model with a larger context"
        return _Diagnosis("refused", hint, _TOO_LONG_BRIEF)
    if not status:
        return _Diagnosis("broken", later, "has an internal error")
    return _Diagnosis("refused", command="diag")


def _models_hint(endpoint: Endpoint) -> str:
    row = catalogue().get(endpoint.provider)
    near = difflib.get_close_matches(endpoint.model, row.models, 3, 0.5) if row is not None else []
    return f"did you mean {' or '.join(near)}?" if near else f"segue models {endpoint.provider} lists its known models"


def _make_error(
    endpoint: Endpoint,
    message: str,
    cause: ProviderErrorCause,
    *,
    status: int | None = None,
    wait: float | None = None,
    brief: str | None = None,
    retryable: bool | None = None,
    command: SuggestedCommand | None = None,
    **limits: Any,
) -> ProviderError:
    return ProviderError(
        message,
        cause=cause,
        provider=endpoint.provider,
        model=endpoint.model,
        status=status,
        retry_after=wait,
        brief=brief,
        retryable=retryable,
        command=command,
        **limits,
    )


# -------------------------------------------------------------------------------------------------------------- parsing


def _parse_object(data: bytes) -> dict[str, Any] | None:
    """Return the JSON object in a body, or the first of a list; None if it is something else."""
    try:
        value: object = msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    if isinstance(value, list) and value:
        value = cast("list[object]", value)[0]
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None


_TITLE = re.compile(r"<title[^>]*>([^<]*)</title>", re.IGNORECASE)


def _describe_text(data: bytes) -> str:
    """Describe a body that is not JSON: the title of a web page, or the beginning of the text."""
    text = data[:4096].decode("utf-8", "replace")
    title = _TITLE.search(text)
    if title is not None:
        return f"got a web page: {title[1]}"
    return "got a web page" if text.lstrip()[:1] == "<" else text[:_MAX_TEXT]


def parse_retry_after(headers: Mapping[str, str], *, now: datetime) -> float | None:
    """Return the wait in seconds from the response headers: a number, or a date compared with the server's date."""
    if (milliseconds := _parse_number(headers.get("retry-after-ms"))) is not None:
        return milliseconds / 1000
    text = headers.get("retry-after")
    if text is None:
        return None
    if (seconds := _parse_number(text)) is not None:
        return seconds
    until = _parse_date(text)
    if until is None:
        return None
    return max(0.0, (until - (_parse_date(headers.get("date", "")) or now)).total_seconds())


def _parse_number(text: str | None) -> float | None:
    try:
        value = float(text or "")
    except ValueError:
        return None
    return max(0.0, value) if math.isfinite(value) else None


def _parse_date(text: str) -> datetime | None:
    try:
        date = parsedate_to_datetime(text)
    except (ValueError, TypeError, IndexError):
        return None
    return date.replace(tzinfo=UTC) if date.tzinfo is None else date


def _parse_retry_info(body: Mapping[str, Any] | None) -> float | None:
    """Return the wait in the body of a Gemini error: `"retryDelay": "34s"`."""
    error = (body or {}).get("error")
    details = cast("dict[str, Any]", error).get("details") if isinstance(error, dict) else None
    for detail in cast("list[object]", details) if isinstance(details, list) else []:
        delay = cast("dict[str, Any]", detail).get("retryDelay") if isinstance(detail, dict) else None
        if isinstance(delay, str):
            return _parse_number(delay.removesuffix("s"))
    return None
