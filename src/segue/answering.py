"""Reads the reply to a rendered request: events while it streams, then the reply with the caller's tool names."""

from __future__ import annotations

import msgspec

from segue.canonical.blocks import ToolCall
from segue.canonical.request import Reply, Request
from segue.render.report import Report
from segue.replies import CallersCalls
from segue.wire.base import Wire
from segue.wire.events import Event
from segue.wire.names import NameMap
from segue.wire.stream import TURN_KEY
from segue.wire.text.hearing import Hearing, heard_reply
from segue.wire.text.leaks import hearing_of

__all__ = ["Answering", "Asked", "understood"]


class Asked(msgspec.Struct, frozen=True):
    """The request that a reply belongs to: its wire, model, tools and projected names."""

    wire: Wire
    request: Request
    names: NameMap
    model: str | None
    tool_format: str


def understood(reply: Reply, asked: Asked, report: Report | None = None) -> Reply:
    """Extract tool calls from the reply's text, and map its calls to the declared tool names."""
    reply = heard_reply(reply, _ear(asked, report or Report()))
    own = CallersCalls(asked.request, asked.names, custom_tools=True)
    blocks = tuple(own.named(block) if isinstance(block, ToolCall) else block for block in reply.blocks)
    return msgspec.structs.replace(reply, blocks=blocks)


def _ear(asked: Asked, report: Report) -> Hearing:
    tools = [msgspec.structs.replace(tool, name=asked.names.render(tool.name)) for tool in asked.request.tools]
    return hearing_of(asked.wire, asked.model, asked.tool_format, turn_key=TURN_KEY, tools=tools, report=report)


class Answering:
    """Bytes of the provider's stream in, events out; `close` returns the reply."""

    def __init__(self, asked: Asked) -> None:
        self.report = Report(target=asked.wire.name)
        self._asked = asked
        self._parser = asked.wire.open_stream(TURN_KEY)
        self._hearing = _ear(asked, Report())

    def feed(self, data: bytes) -> list[Event]:
        self._parser.feed(data)
        return self._hearing.events(self._parser.events())

    def close(self) -> Reply:
        """Return the whole reply. If the stream broke off, its finish is `error`."""
        reply = self._parser.close()
        if reply.model is None:
            reply = msgspec.structs.replace(reply, model=self._asked.model)
        return understood(reply, self._asked, self.report)
