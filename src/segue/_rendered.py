"""`Rendered`: a conversation rendered for one target, and the target with its settings."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import msgspec

from segue.canonical.json import encode_json, parse_json_object
from segue.canonical.request import Request
from segue.models import parse_model
from segue.pipeline import IdState, RenderedBody, render_for
from segue.render.constraints import Policy
from segue.render.report import Report
from segue.render.transcript import Transcript
from segue.reply import ReplyReader, SentRequest
from segue.wire.base import Fetch, Wire
from segue.wire.names import NameMap
from segue.wire.text.registry import TEXT_FORMATS


class Rendered:
    """A body ready to be sent. `fragments` are its bytes in chunks, to be written one after the other."""

    def __init__(
        self,
        report: Report,
        sent_request: SentRequest,
        *,
        body: dict[str, Any] | None = None,
        fragments: list[bytes] | None = None,
    ) -> None:
        self.report = report
        self._sent_request = sent_request
        if body is not None:
            self.body = body
        if fragments is not None:
            self.fragments = fragments

    @cached_property
    def body(self) -> dict[str, Any]:
        """The body as a dict, decoded on first access."""
        return parse_json_object(self.data)[0]

    @cached_property
    def fragments(self) -> list[bytes]:
        """The body as JSON, in chunks."""
        return [encode_json(self.body)]

    @cached_property
    def data(self) -> bytes:
        """The body as JSON."""
        return b"".join(self.fragments)

    @property
    def sent_request(self) -> SentRequest:
        """The request as sent: target, model, tools and projected names. Needed to read its reply."""
        return self._sent_request

    def open_reader(self) -> ReplyReader:
        """Return a reader for the streamed reply: `feed` takes bytes, `close` returns a reply for `add_reply`."""
        return ReplyReader(self._sent_request)


class RenderTarget(msgspec.Struct, frozen=True):
    """The target of a render and its settings."""

    wire: Wire
    model: str | None
    resolved_model: str | None
    tool_format: str
    policy: Policy
    fetch: Fetch | None

    def __hash__(self) -> int:
        return hash((self.wire.name, self.model, self.tool_format, self.policy))

    @property
    def rules_model(self) -> str:
        """The model whose rules apply."""
        return self.resolved_model or self.model or self.wire.default_model

    @property
    def can_cache(self) -> bool:
        """Whether the rendered prefix can be cached: not for text tool formats or reasoning bound to its prefix."""
        if self.tool_format in TEXT_FORMATS:
            return False
        return self.wire.constraints(parse_model(self.rules_model)).reasoning_binding != "prefix"

    def sent_request(self, request: Request, names: NameMap) -> SentRequest:
        return SentRequest(self.wire, request, names, self.model or self.wire.default_model, self.tool_format)

    def render(
        self, request: Request, report: Report, id_state: IdState | None = None
    ) -> tuple[Transcript, RenderedBody]:
        return render_for(
            request,
            self.wire,
            report,
            self.policy,
            model=self.model,
            resolved_model=self.resolved_model,
            tool_format=self.tool_format,
            fetch=self.fetch,
            id_state=id_state,
        )
