"""Conversion of provider failures to `ProviderError`: the kind, whether a retry can help, and a hint for the user.

The kind is that of `segue.error_kinds`. The provider's message is included on one line,
without API keys and control characters.
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, Literal, cast

import msgspec
from msgspec.structs import replace

from segue.bridge.addresses import is_local
from segue.bridge.providers import Endpoint, catalogue
from segue.error_kinds import KINDS, ErrorKind
from segue.errors import ProviderError, SuggestedCommand
from segue.limit_errors import find_context_limit, find_output_limit
from segue.redaction import redact
from segue.wire.base import ApiError, Wire
from segue.wire.error_forms import classify_error, fit_error
from segue.wire.registry import WIRES

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
_REDIRECT_STATUS, _CLIENT_ERROR_STATUS, _NOT_FOUND_STATUS = 300, 400, 404
# What a provider says about a key of the caller is not about one of segue.
_CALLER_KINDS: Mapping[ErrorKind, ErrorKind] = {
    "provider-key": "client-key",
    "no-key": "client-key",
    "provider-access": "client-access",
}


class TransportError(Exception):
    """A connection failure, with a short message."""

    def __init__(self, kind: TransportErrorKind, message: str) -> None:
        super().__init__(message)
        self.kind: TransportErrorKind = kind


class RefusedError(TransportError):
    """The shell did not send a request: `error` is the response for the caller."""

    def __init__(self, error: ApiError) -> None:
        super().__init__("invalid", error.message)
        self.error = error


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
    return _make_error(endpoint, message, "no-key")


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
        return _make_error(endpoint, f"{endpoint.name}: {why}", "no-key")
    message = f"{endpoint.name} can't be reached: {why}"
    if error.kind in ("tls", "proxy", "lost"):
        return _make_error(endpoint, message, "unreachable", retryable=error.kind == "lost")
    if is_local(endpoint.base_url):
        # The server is on this machine: it would answer at once if it ran.
        return _make_error(endpoint, f"{message}; is {_server_name(endpoint)} running?", "unreachable", retryable=False)
    return _make_error(endpoint, f"{message}; check the base URL {endpoint.base_url}", "unreachable", command="doctor")


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
        return _make_error(endpoint, message, "invalid", status=status)
    body = _parse_object(data)
    if body is None:
        error = ApiError(status, _describe_text(data) or f"HTTP status {status}", kind="")
    else:
        wire = WIRES[endpoint.api]
        if kind := headers.get(wire.http.error_header or ""):
            body = {**body, "__type": kind.partition(":")[0]}
        error = wire.parse_error(status, body)
    wait = parse_retry_after(headers, now=now)
    if wait is not None:
        error = replace(error, wait=wait)
    return api_error(
        endpoint, error, should_retry={"true": True, "false": False}.get(headers.get("x-should-retry", ""))
    )


def api_error(endpoint: Endpoint, error: ApiError, *, should_retry: bool | None = None) -> ProviderError:
    """Return the `ProviderError` for a provider's error, with its message and a hint.

    `should_retry` is what the provider says about that: it decides where the error itself does not.
    """
    kind = _find_kind(endpoint, error)
    row = KINDS[kind]
    hint, command = _find_hint(endpoint, kind, error)
    is_unclear = kind == "broken"
    brief = KINDS["failed"].brief if is_unclear else row.brief
    number = f" ({error.status})" if error.status else ""
    message = f"{endpoint.name} {brief}{number}: {_clean_provider_text(endpoint, error.message)}"
    return _make_error(
        endpoint,
        message if hint is None else f"{message}; {hint}",
        kind,
        status=error.status or None,
        wait=error.wait,
        brief=brief,
        retryable=should_retry if kind == "invalid" or not row.is_final else None,
        command=command,
        code=error.code,
        type=error.kind,
        param=error.param,
        **_find_limits(error, kind),
    )


def caller_error(error: ProviderError, wire: Wire, api: str, *, has_callers_keys: bool) -> ApiError:
    """Return an error of a provider with this API in the form for clients of another one."""
    kind = _CALLER_KINDS.get(error.kind, error.kind) if has_callers_keys else error.kind
    known = ApiError(error.status or 0, error.message, error.type or "", error.code, error.param)
    known = replace(known, error_kind=kind, wait=error.retry_after)
    return fit_error(known, wire, is_same_api=WIRES[api].base_api == wire.base_api)


def _find_kind(endpoint: Endpoint, error: ApiError) -> ErrorKind:
    kind = classify_error(error)
    if endpoint.has_caller_key and kind in _CALLER_KINDS:
        return _CALLER_KINDS[kind]
    # A payment that is on its way.
    return "rate-limited" if kind == "no-credit" and error.status == 402 and error.wait is not None else kind


def _find_limits(error: ApiError, kind: ErrorKind) -> dict[str, Any]:
    """Return the limits that a rejection names. An error about both is one about the output, which can be shorter."""
    if KINDS[kind].cause != "refused":
        return {}
    output_limit = find_output_limit(error.message)
    has_context = kind == "too-long" or output_limit is not None
    return {"context_limit": find_context_limit(error.message) if has_context else None, "output_limit": output_limit}


def _find_hint(endpoint: Endpoint, kind: ErrorKind, error: ApiError) -> tuple[str | None, SuggestedCommand | None]:
    """Return what the user can do, and the command that helps."""
    match kind:
        case "no-credit":
            return "add credit to the account, or use another model", None
        case "provider-key" | "client-key":
            return f"check {' or '.join(endpoint.variables) or 'the API key'}", "doctor"
        case "provider-access" | "client-access":
            return f"check what the account may use: access to {endpoint.model}, verification, region", "doctor"
        case "unknown-model":
            where = f"check the base URL {endpoint.base_url}; " if error.status == _NOT_FOUND_STATUS else ""
            return where + _models_hint(endpoint), None
        case "too-long":
            return "compress the conversation, or use a model with a larger context", None
        case "policy" | "invalid" | "unknown-reference":
            return None, "diag"
        case _:
            wait = error.wait
            return (
                f"try again in {wait:.0f} s" if wait else "try again later, or configure a second model for failover"
            ), None


def _models_hint(endpoint: Endpoint) -> str:
    row = catalogue().get(endpoint.provider)
    near = difflib.get_close_matches(endpoint.model, row.models, 3, 0.5) if row is not None else []
    return f"did you mean {' or '.join(near)}?" if near else f"segue models {endpoint.provider} lists its known models"


def _make_error(
    endpoint: Endpoint,
    message: str,
    kind: ErrorKind,
    *,
    status: int | None = None,
    wait: float | None = None,
    brief: str | None = None,
    retryable: bool | None = None,
    command: SuggestedCommand | None = None,
    **more: Any,
) -> ProviderError:
    return ProviderError(
        message,
        cause=KINDS[kind].cause,
        kind=kind,
        provider=endpoint.provider,
        model=endpoint.model,
        status=status,
        retry_after=wait,
        brief=brief,
        retryable=retryable,
        command=command,
        **more,
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
