"""An HTTP request, the HTTP response, and the record of both for tests."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from msgspec import Struct

from segue.conformance.rule import Violation


@dataclass(frozen=True)
class HttpRequest:
    """A received request. Header names are in lower case, `path` is unescaped. The body is empty and `is_complete`
    false if it was too large."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes
    raw_path: str = ""
    raw_query: str = ""
    is_complete: bool = True


@dataclass
class HttpResponse:
    """A response, whole or streamed. With `reset` the connection is reset at the end.

    `declared_length` is the content-length if it differs from the body's or the body is a stream. `error_body` is an
    error in the API's format, before the provider adds fields such as the request id.
    """

    status: int
    content: bytes | AsyncIterator[bytes]
    content_type: str = "application/json"
    headers: dict[str, str] = field(default_factory=dict[str, str])
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
    streamed: bool = False
    confused: bool = False
    messages: int = 0
    kept: int = 0
    fault: str | None = None
    kind: str | None = None
    """The provider's error type."""
    rule: str | None = None
    """The broken rule that the error is about, if it has a number."""

    @property
    def accepted(self) -> bool:
        """Whether the status is 200 and the reply is not `confused`."""
        return self.status == 200 and not self.confused
