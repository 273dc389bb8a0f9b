"""An HTTP request, the HTTP response, and the records of both for tests, numbered in the order of arrival."""

from __future__ import annotations

import threading
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from msgspec import Struct

from segue.conformance.rule import Violation
from segue.wire.json_values import object_or_none

MAX_BODY_BYTES = 2**28
"""The maximum size of a body that is read. The limits of the providers are smaller; their error is sent at its end."""
CONNECTION_HEADERS = frozenset(
    {"connection", "content-length", "host", "keep-alive", "proxy-authenticate", "proxy-authorization"}
    | {"proxy-connection", "te", "trailer", "transfer-encoding", "upgrade"}
)
"""Headers that apply to one connection or depend on the framing; a proxy does not pass them on."""


@dataclass(frozen=True)
class HttpRequest:
    """A received request. Header names are in lower case, `path` is unescaped. The body is empty and `is_complete`
    false if it was too large.

    On a port with all APIs, `path` is the path below the API's prefix; `raw_path` is always the whole one.
    """

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes
    raw_path: str = ""
    raw_query: str = ""
    is_complete: bool = True
    prefix: str = ""


@dataclass
class HttpResponse:
    """A response, whole or streamed. With `reset` the connection is reset at the end.

    `declared_length` is the content-length if it differs from the body's or the body is a stream. `error_body` is an
    error in the API's format, before the provider adds fields such as the request id. A `content_type` of None adds no
    such header.
    """

    status: int
    content: bytes | AsyncGenerator[bytes]
    content_type: str | None = "application/json"
    headers: Sequence[tuple[str, str]] = ()
    delay: float = 0.0
    reset: bool = False
    declared_length: int | None = None
    error_body: dict[str, Any] | None = None


class RecordedRequest(Struct):
    """One request, in the order of arrival. Keys and other headers are not recorded; a JSON body is.

    `refused` is the provider's error text, `violations` all violations, risks included. `confused` marks a reply of
    status 200 with garbled calls (KIM-01). `kept` is the number of leading messages that are the same as in an earlier
    request: what a prompt cache can use.
    """

    number: int
    method: str
    path: str
    body: Mapping[str, Any] | None = None
    model: str = ""
    status: int = 0
    refused: str | None = None
    violations: tuple[Violation, ...] = ()
    calls: tuple[str, ...] = ()
    text: str = ""
    thoughts: int = 0
    """The number of blocks of reasoning in the reply, signatures of calls included."""
    streamed: bool = False
    confused: bool = False
    messages: int = 0
    kept: int = 0
    fault: str | None = None
    kind: str | None = None
    """The provider's error type."""
    rule: str | None = None
    """The broken rule that the error is about, if it has a number."""
    api: str = ""
    recording: str | None = None
    """The name of the file that the exchange was recorded to or replayed from."""
    unrecorded: str | None = None
    """Why an exchange could not be recorded."""

    def describe(self, body: object) -> None:
        """Add the body of the request if it is a JSON object, and the model that it names."""
        self.body = object_or_none(body)
        self.model = str((self.body or {}).get("model") or "")

    @property
    def accepted(self) -> bool:
        """Whether the status is 200 and the reply is not `confused`."""
        return self.status == 200 and not self.confused


class RequestLog:
    """All requests so far, or none. `on_request` is called for each one when its record is complete."""

    def __init__(
        self, on_request: Callable[[RecordedRequest], None] | None = None, *, keeps_requests: bool = True
    ) -> None:
        self._keeps_requests = keeps_requests
        self._on_request = on_request
        self._opened = 0
        self._closed: list[RecordedRequest] = []

    @property
    def requests(self) -> list[RecordedRequest]:
        """The completed records; other threads may read them at any time."""
        return sorted(self._closed, key=lambda record: record.number)

    def open(self, api: str, http_request: HttpRequest) -> RecordedRequest:
        """Return the record of a request that has arrived."""
        self._opened += 1
        return RecordedRequest(self._opened, http_request.method, http_request.path, api=api)

    def close(self, record: RecordedRequest) -> None:
        """List a completed record. Exceptions of the listener go to `threading.excepthook`."""
        if self._keeps_requests:
            self._closed.append(record)
        if self._on_request is None:
            return
        try:
            self._on_request(record)
        except Exception as error:  # noqa: BLE001  the response is sent anyway
            details = (type(error), error, error.__traceback__, threading.current_thread())
            threading.excepthook(threading.ExceptHookArgs(details))
