"""The shape of a wire: one frozen value with all that segue can do with an API.

`parse_*` comes in, `render_*` goes out. A dialect is another value on the same functions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from segue.canonical.request import Reply, Request
from segue.models import Model
from segue.render.demands import Demands
from segue.render.report import Report
from segue.render.transcript import Transcript
from segue.wire.idmap import IdMap, IdScheme
from segue.wire.lane import Lane
from segue.wire.names import NameMap, NameRule

if TYPE_CHECKING:
    from segue.wire.stream import StreamParser
    from segue.wire.stream_renderer import StreamRenderer

__all__ = ["ApiError", "Fetch", "Projection", "Wire"]

JsonObject = dict[str, Any]
Fetch = Callable[[str], tuple[bytes, str]]
"""Gives the bytes and the media type behind a URL. The core itself fetches nothing."""


@dataclass(frozen=True)
class Projection:
    """How canonical ids and tool names are spelled on the target, and where to write down what did not fit."""

    ids: IdMap
    names: NameMap
    report: Report
    fetch: Fetch | None = None


@dataclass(frozen=True)
class ApiError:
    """A provider's error body, in any API's terms."""

    status: int
    message: str
    kind: str = "invalid_request_error"
    code: str | None = None
    param: str | None = None
    details: tuple[JsonObject, ...] = ()
    """What was found, one by one and in the provider's own form, where it lists that."""


@dataclass(frozen=True)
class Wire:
    """An API. `demands` gives the row for a model; `default_model` holds where none is named."""

    name: str
    kind: Literal["wire", "dialect", "text"]
    provider: str
    title: str
    default_model: str
    tool_format: str
    demands: Callable[[Model], Demands]
    ids: Callable[[Model], IdScheme]
    names: Callable[[Model], NameRule]
    parse_request: Callable[[Mapping[str, Any]], Request]
    render_request: Callable[[Transcript, Projection], JsonObject]
    parse_reply: Callable[[Mapping[str, Any]], Reply]
    render_reply: Callable[[Reply, Projection], JsonObject]
    open_stream: Callable[[str], StreamParser]
    """A parser for the stream of one reply; the calls in it get their canonical ids by this turn key."""
    stream_renderer: Callable[[Projection, str | None, Request | None], StreamRenderer]
    """What writes the events of one reply down: how ids and names are spelled, the model where the reply names none,
    and what the client asked for, where that is known."""
    parse_error: Callable[[int, Mapping[str, Any]], ApiError]
    render_error: Callable[[ApiError], JsonObject]
    body_keys: frozenset[str]
    """The keys of a body that canonical fields speak for; any other goes home only."""
    item_keys: frozenset[str]
    """The same for messages, blocks and calls."""
    tool_keys: frozenset[str]
    """The same for declarations of functions and free-text tools."""
    custom_tools: bool = False
    """Whether calls with free text exist there."""
    kindred: Mapping[str, str] = field(default_factory=dict[str, str])
    """Words for options that only another API of the same provider takes, and the keys that they stand under here."""
    telling: frozenset[str] = frozenset()
    """Keys of a body that say something even where they say no."""
    on: str | None = None
    """The wire that a dialect is spoken on."""
    lane: Lane | None = None
    """How plain conversations are read and written without the long way."""

    @property
    def root(self) -> str:
        """The key that a body's conversation stands under."""
        return self.lane.key if self.lane is not None else "messages"
