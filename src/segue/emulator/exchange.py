"""A request as it came over HTTP, the answer that goes back, and the record of both that a test reads."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from msgspec import Struct

from segue.conformance.rule import Violation

__all__ = ["Answer", "Asked", "Recorded"]


@dataclass(frozen=True)
class Asked:
    """Names of headers are in lower case. `path` has its escapes undone. A body that is not `whole` was too large to
    be kept."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes
    raw_path: str = ""
    raw_query: str = ""
    whole: bool = True


@dataclass
class Answer:
    """What goes back: at once, or piece by piece. With `reset` the connection goes down in the end.

    `length` is how long the body is said to be, where that is not what it is, or not known from the bytes.
    `refusal` is the error in the form of the API; what only the one who sends it can add is still to come.
    """

    status: int
    content: bytes | AsyncIterator[bytes]
    kind: str = "application/json"
    headers: dict[str, str] = field(default_factory=dict[str, str])
    delay: float = 0.0
    reset: bool = False
    length: int | None = None
    refusal: dict[str, Any] | None = None


class Recorded(Struct):
    """One request, in the order of arrival. Keys and other headers are not kept; the body is, wherever it is JSON.

    `refused` is the provider's error text, `violations` all that the judge found, the harmless included. `confused`
    marks an answer of status 200 that garbled its calls (KIM-01); `kept` says how many of the messages stood in an
    earlier request just so, from the first on: what a prompt cache can use.
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
    """What the provider calls the error."""
    rule: str | None = None
    """The rule that the error tells of, where it is one of those that the judge knows."""

    @property
    def accepted(self) -> bool:
        return self.status == 200 and not self.confused
