"""The answer to a rendered request, as it comes: events while it grows, then the reply with the caller's own tools."""

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
    """What was asked: whom, for which model, with which tools, and how these were spelled."""

    wire: Wire
    request: Request
    names: NameMap
    model: str | None
    tool_format: str


def understood(reply: Reply, asked: Asked, report: Report | None = None) -> Reply:
    """The reply with calls that stand in its words, and with tools called as they were declared here."""
    reply = heard_reply(reply, _ear(asked, report or Report()))
    own = CallersCalls(asked.request, asked.names, custom_tools=True)
    blocks = tuple(own.named(block) if isinstance(block, ToolCall) else block for block in reply.blocks)
    return msgspec.structs.replace(reply, blocks=blocks)


def _ear(asked: Asked, report: Report) -> Hearing:
    spelled = [msgspec.structs.replace(tool, name=asked.names.render(tool.name)) for tool in asked.request.tools]
    return hearing_of(asked.wire, asked.model, asked.tool_format, turn_key=TURN_KEY, tools=spelled, report=report)


class Answering:
    """Bytes of the provider's stream in, events out; after the end `close` gives the reply."""

    def __init__(self, asked: Asked) -> None:
        self.report = Report(target=asked.wire.name)
        self._asked = asked
        self._parser = asked.wire.open_stream(TURN_KEY)
        self._hearing = _ear(asked, Report())

    def feed(self, data: bytes) -> list[Event]:
        self._parser.feed(data)
        return self._hearing.events(self._parser.events())

    def close(self) -> Reply:
        """The whole reply. One that broke off has the finish `error`."""
        reply = self._parser.close()
        if reply.model is None:
            reply = msgspec.structs.replace(reply, model=self._asked.model)
        return understood(reply, self._asked, self.report)
