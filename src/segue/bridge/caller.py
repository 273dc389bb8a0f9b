"""A caller's request: its API, model and options, and the responses in the form of that API."""

from __future__ import annotations

import re
from collections.abc import Mapping
from math import ceil
from typing import Any, cast

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from segue.bridge.actions import Action, EndExchange, Respond, Write
from segue.bridge.api_paths import ApiPath
from segue.canonical.json import decode_members, encode_json
from segue.error_kinds import KINDS, ErrorKind
from segue.errors import InputError
from segue.wire.base import ApiError, Wire
from segue.wire.error_forms import fit_error
from segue.wire.http_form import EVENT_STREAM
from segue.wire.registry import WIRES, find_caller_wire

JSON = "application/json"
# The kinds of errors of segue itself, by status.
_OWN_KINDS: Mapping[int, ErrorKind] = {
    401: "client-key",
    403: "client-access",
    404: "unknown-path",
    408: "timeout",
    413: "too-large",
    429: "rate-limited",
    500: "failed",
    502: "unreachable",
    503: "overloaded",
    504: "timeout",
}

# The formats of W3C Trace Context; a state that is longer may be dropped.
_TRACE_PARENT = re.compile("[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}")
_TRACE_STATE = re.compile("[ -~]{1,512}")


class Caller(Struct, frozen=True):
    """A caller's request. `wire` is the caller's API or dialect, `members` the fields of the body.

    `headers` have lower-case names. `model` is the name that the caller requested.
    """

    api_path: ApiPath
    wire: Wire
    headers: Mapping[str, str]
    body: bytes
    members: Mapping[str, Raw]
    model: str | None
    stream: bool

    def field(self, key: str) -> Any:
        """Return a field of the body; None if it is missing."""
        raw = self.members.get(key)
        return None if raw is None else msgspec.json.decode(raw)

    def members_of(self, body: bytes) -> Mapping[str, Raw]:
        """Return the fields of the body, or of another one that was made from it."""
        return self.members if body is self.body else decode_members(body)

    def passed_headers(self, provider: str) -> dict[str, str]:
        """Return the headers that are passed on to this provider: the trace, and those of the caller's own vendor."""
        names = self.wire.http.caller_headers if provider == self.wire.provider else ()
        return {**self._trace_headers(), **{name: self.headers[name] for name in names if name in self.headers}}

    def _trace_headers(self) -> dict[str, str]:
        """Return the headers of a distributed trace, if they are valid."""
        parent, state = self.headers.get("traceparent", ""), self.headers.get("tracestate", "")
        if _TRACE_PARENT.fullmatch(parent) is None:
            return {}
        return {"traceparent": parent, **({"tracestate": state} if _TRACE_STATE.fullmatch(state) else {})}


def parse_caller(api_path: ApiPath, path: str, headers: Mapping[str, str], body: bytes) -> Caller:
    """Parse the parts of a caller's request that select its route; raise `InputError` for a body that is not JSON."""
    headers = {name.lower(): value for name, value in headers.items()}
    members: Mapping[str, Raw] = _decode_body(body) if body else {}
    wire = find_caller_wire(api_path.api, path, headers.get("user-agent", ""))
    caller = Caller(api_path, wire, headers, body, members, api_path.model, api_path.stream)
    model = api_path.model or caller.field(caller.wire.model_key)
    if model is not None and not isinstance(model, str):
        raise InputError("expected a string", path=caller.wire.model_key)
    in_body = caller.wire.stream_path is None and caller.field("stream") is True
    return replace(caller, model=model, stream=api_path.stream or in_body)


def _decode_body(body: bytes) -> Mapping[str, Raw]:
    try:
        return decode_members(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"the body is not a JSON object: {error}") from None


def own_error(status: int, message: str, wire: Wire, kind: ErrorKind | None = None) -> ApiError:
    """Return an error of segue itself, in the form for clients of an API; without a `kind`, that of the status."""
    kind = kind or _OWN_KINDS.get(status, "invalid")
    error = fit_error(ApiError(status, message, error_kind=kind), wire)
    return error if kind == "overloaded" else replace(error, status=status)


def respond_error(wire: Wire, error: ApiError) -> list[Action]:
    """Return the response for an error that has the form of the caller's API."""
    body = wire.render_error(error)
    headers = {"content-type": JSON}
    if error.wait is not None:
        headers["retry-after"] = str(ceil(error.wait))
    if error.error_kind is not None and KINDS[error.error_kind].is_final:
        headers["x-should-retry"] = "false"
    if wire.http.error_header is not None:
        headers[wire.http.error_header] = str(body.get("__type"))
    return respond_json(body, status=error.status, headers=headers)


def respond_json(
    body: Mapping[str, Any] | bytes, *, status: int = 200, headers: Mapping[str, str] | None = None
) -> list[Action]:
    data = body if isinstance(body, bytes) else encode_json(cast("dict[str, Any]", body))
    all_headers = {"content-type": JSON, **(headers or {}), "content-length": str(len(data))}
    return [Respond(status, all_headers), Write(data), EndExchange()]


def stream_headers(api_path: ApiPath) -> dict[str, str]:
    """Return the headers of a streamed response."""
    media_type = JSON if api_path.json_array else WIRES[api_path.api].http.stream_type
    if media_type == EVENT_STREAM:
        media_type = f"{media_type}; charset=utf-8"
    return {"content-type": media_type, "cache-control": "no-cache", "x-accel-buffering": "no"}


def keep_alive(api_path: ApiPath) -> bytes:
    """Return bytes that keep a stream open and that clients of the API ignore; empty if there are none."""
    return b"" if api_path.json_array else WIRES[api_path.api].http.keep_alive


class JsonArrayWriter:
    """Converts server-sent events to the elements of a JSON array: Gemini's stream without `alt=sse`."""

    def __init__(self) -> None:
        self._buffer = b""
        self._count = 0

    def feed(self, data: bytes) -> bytes:
        *events, self._buffer = (self._buffer + data).split(b"\n\n")
        return b"".join(map(self._element, events))

    def close(self) -> bytes:
        rest, self._buffer = self._buffer, b""
        end = self._element(rest) if rest.strip() else b""
        return end + (b"]" if self._count else b"[]")

    def _element(self, event: bytes) -> bytes:
        self._count += 1
        return (b"[" if self._count == 1 else b",\r\n") + event.removeprefix(b"data:").strip()
