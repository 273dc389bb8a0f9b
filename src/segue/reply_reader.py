"""Reads the reply to a rendered request: events while it streams, then the reply with the caller's tool names."""

from __future__ import annotations

import msgspec

from segue.canonical.blocks import ToolCall
from segue.canonical.request import Reply, Request
from segue.render.report import Report
from segue.replies import CallMapper
from segue.wire.base import Wire
from segue.wire.names import NameMap
from segue.wire.stream.events import Event
from segue.wire.stream.parse import DEFAULT_TURN_KEY
from segue.wire.text.extractor import TextExtractor, extract_from_reply
from segue.wire.text.extractor_choice import choose_extractor

__all__ = ["ReplyReader", "SentRequest", "map_reply"]


class SentRequest(msgspec.Struct, frozen=True):
    """The request that a reply belongs to: its wire, model, tools and projected names."""

    wire: Wire
    request: Request
    names: NameMap
    model: str | None
    tool_format: str


def map_reply(reply: Reply, sent: SentRequest, report: Report | None = None) -> Reply:
    """Extract tool calls from the reply's text, and map its calls to the declared tool names."""
    reply = extract_from_reply(reply, _build_extractor(sent, report or Report()))
    mapper = CallMapper(sent.request, sent.names, custom_tools=True)
    blocks = tuple(mapper.map_call(block) if isinstance(block, ToolCall) else block for block in reply.blocks)
    return msgspec.structs.replace(reply, blocks=blocks)


def _build_extractor(sent: SentRequest, report: Report) -> TextExtractor:
    tools = [msgspec.structs.replace(tool, name=sent.names.render(tool.name)) for tool in sent.request.tools]
    return choose_extractor(
        sent.wire, sent.model, sent.tool_format, turn_key=DEFAULT_TURN_KEY, tools=tools, report=report
    )


class ReplyReader:
    """Parses the bytes of a provider's stream into events; `close` returns the reply."""

    def __init__(self, sent: SentRequest) -> None:
        self.report = Report(target=sent.wire.name)
        self._sent = sent
        self._parser = sent.wire.open_stream(DEFAULT_TURN_KEY)
        self._extractor = _build_extractor(sent, Report())

    def feed(self, data: bytes) -> list[Event]:
        self._parser.feed(data)
        return self._extractor.feed(self._parser.events())

    def close(self) -> Reply:
        """Return the whole reply. If the stream broke off, its finish is `error`."""
        reply = self._parser.close()
        if reply.model is None:
            reply = msgspec.structs.replace(reply, model=self._sent.model)
        return map_reply(reply, self._sent, self.report)
