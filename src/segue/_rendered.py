"""`Rendered`: a conversation rendered for one target."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from segue.canonical.json import encode_json, parse_json_object
from segue.canonical.request import Request
from segue.conversion.target import RenderTarget
from segue.errors import format_count
from segue.render.report import Report
from segue.reply import ReplyReader, SentRequest
from segue.wire.names import NameMap


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

    def __repr__(self) -> str:
        return f"<Rendered for {self.report.target}: {format_count(len(self.report.findings), 'finding')}>"

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


def make_sent_request(target: RenderTarget, request: Request, names: NameMap) -> SentRequest:
    """Return the request as it was rendered for the target."""
    return SentRequest(target.wire, request, names, target.model or target.wire.default_model, target.tool_format)
