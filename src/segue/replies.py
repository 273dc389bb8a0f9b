"""The way back: a provider's answer is read, its calls made the caller's own, and what has to stay behind is told."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from segue.canonical.blocks import Block, Message, Thinking, ToolCall
from segue.canonical.jsontext import read_object
from segue.canonical.pairing import Pairer
from segue.canonical.request import Reply, Request
from segue.carry import unsaid_finding, unsaid_items
from segue.errors import InputError, RemoteProtocolError
from segue.render.report import Report
from segue.wire.base import Wire
from segue.wire.names import NameMap
from segue.wire.replies import report_others
from segue.wire.server_tools.declare import called_back
from segue.wire.tools import free_text_back, strict_back

__all__ = ["CallersCalls", "caller_own", "parse_reply", "report_unsaid"]


def parse_reply(wire: Wire, data: object) -> Reply:
    """A provider's answer. What is wrong with it is the provider's fault."""
    try:
        value, _ = read_object(data)
        if _is_error(value):
            error = wire.parse_error(0, value)
            raise RemoteProtocolError(
                f"{wire.name} answered with an error: {error.kind}: {error.message}",
                status=error.status or None,
                code=error.code,
                kind=error.kind,
                message=error.message,
            )
        reply = wire.parse_reply(value)
    except InputError as error:
        raise RemoteProtocolError(f"not a reply of {wire.name}: {error}") from None
    if any(call.kind != "hosted" and not call.name for call in reply.calls):
        raise RemoteProtocolError(f"not a reply of {wire.name}: a call that names no tool")
    return _with_broken(reply)


def _with_broken(reply: Reply) -> Reply:
    """OAI-CHAT-19: where there was no more room, the last call may have been cut off in its arguments."""
    last = reply.blocks[-1] if reply.blocks else None
    cut = reply.finish == "length" and isinstance(last, ToolCall) and last.arguments_text and last.arguments is None
    if not cut or last is None:
        return reply
    blocks = (*reply.blocks[:-1], msgspec.structs.replace(last, broken=True))
    return msgspec.structs.replace(reply, blocks=blocks)


def _is_error(value: Mapping[str, Any]) -> bool:
    """Whether this is an error body: under `error`, or as such, or as a list of what was wrong with the request."""
    flat = str(value.get("object")).lower() == "error" or isinstance(value.get("detail"), list)
    flat = flat or "__type" in value or list(value) in (["message"], ["Message"])
    return isinstance(value.get("error"), dict) or flat


def caller_own(reply: Reply, request: Request, names: NameMap, *, custom_tools: bool) -> Reply:
    """The reply with tools called as the caller declared them, and ids that are new in the caller's history."""
    own = CallersCalls(request, names, custom_tools=custom_tools)

    def typed(block: Block) -> Block:
        return called_back(block, request) if isinstance(block, ToolCall) else block

    blocks = tuple(own.named(block) if isinstance(block, ToolCall) else block for block in reply.blocks)
    pairer = Pairer()
    for message in request.messages:
        pairer.feed(message)
    blocks = pairer.feed(Message("ai", blocks)).blocks
    return msgspec.structs.replace(reply, blocks=tuple(map(typed, blocks)))


class CallersCalls:
    """Calls as the caller declared the tools: their names, free text as such, and no nulls that nobody asked for."""

    def __init__(self, request: Request, names: NameMap, *, custom_tools: bool) -> None:
        self._request = request
        self._names = names
        self._custom = frozenset(tool.name for tool in request.tools if tool.kind == "custom" and custom_tools)
        self._strict = {tool.name: tool for tool in request.tools if tool.strict}
        self._typed = any(tool.kind == "hosted" for tool in request.tools)

    def name(self, name: str) -> str:
        return self._names.parse(name)

    def changes(self, call: ToolCall) -> bool:
        """Whether more of a call than its name may have to change, so that it must be there whole."""
        name = self.name(call.name)
        return self._typed or name in self._strict or (name in self._custom and call.kind != "custom")

    def named(self, call: ToolCall) -> ToolCall:
        name = self.name(call.name)
        call = call if name == call.name else msgspec.structs.replace(call, name=name)
        return strict_back(free_text_back(call, self._custom), self._strict)

    def whole(self, call: ToolCall) -> ToolCall:
        """A call that has its id."""
        return called_back(self.named(call), self._request)


def report_unsaid(reply: Reply, wire: Wire, report: Report) -> None:
    """What of a reply from abroad its own API alone has a word for: the caller does not get it."""
    if reply.native is None or reply.native.api == wire.name:
        return
    report_others(reply.others, report)
    for key in reply.beside:
        report.add("dropped", f"`{key}` of the reply is not carried over to {wire.name}", subject=key)
    for key, count in unsaid_items(Request((Message("ai", reply.blocks),)), wire).items():
        report.findings.append(unsaid_finding(key, count, wire))
    signed = [block for block in reply.blocks if isinstance(block, Thinking) and (block.signature or block.sealed)]
    if any(block.origin.provider != wire.provider for block in signed):
        said = f"what {reply.native.api} signed or sealed of its reasoning is not carried over: it can't go back there"
        report.add("reasoning", said)
    if reply.finish in ("error", "pause"):
        cause = f" ({reply.cause})" if reply.cause else ""
        ended = "broke off" if reply.finish == "error" else "is not at its end yet"
        report.add("adjusted", f"the reply {ended}{cause}: told as {wire.name} can", subject="finish")
