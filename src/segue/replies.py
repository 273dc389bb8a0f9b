"""Replies: parse a provider's reply, map its calls back to the caller's names and ids, report what is dropped."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from segue.canonical.blocks import Block, Message, Thinking, ToolCall
from segue.canonical.json import parse_json_object
from segue.canonical.pairing import Pairer
from segue.canonical.request import Reply, Request
from segue.errors import InputError, RemoteProtocolError
from segue.pipeline import count_dropped_fields, dropped_finding
from segue.render.report import Report
from segue.wire.base import Wire
from segue.wire.names import NameMap
from segue.wire.replies import report_extra_choices
from segue.wire.tools import drop_call_nulls, unwrap_free_text
from segue.wire.vendor_tools.convert import restore_client_call

__all__ = ["CallMapper", "map_calls_back", "parse_reply", "report_dropped"]


def parse_reply(wire: Wire, data: object) -> Reply:
    """Parse a provider's reply; raise `RemoteProtocolError` if it is invalid or an error body."""
    try:
        value, _ = parse_json_object(data)
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
        raise RemoteProtocolError(f"not a reply of {wire.name}: a tool call without a name")
    return _mark_cut_call(reply)


def _mark_cut_call(reply: Reply) -> Reply:
    """Mark the last call as broken if its arguments were cut off at the token limit (OAI-CHAT-19)."""
    last = reply.blocks[-1] if reply.blocks else None
    cut = reply.finish == "length" and isinstance(last, ToolCall) and last.arguments_text and last.arguments is None
    if not cut or last is None:
        return reply
    blocks = (*reply.blocks[:-1], msgspec.structs.replace(last, broken=True))
    return msgspec.structs.replace(reply, blocks=blocks)


def _is_error(value: Mapping[str, Any]) -> bool:
    """Whether this is an error body: with an `error` object, flat, or with a `detail` list."""
    flat = str(value.get("object")).lower() == "error" or isinstance(value.get("detail"), list)
    flat = flat or "__type" in value or list(value) in (["message"], ["Message"])
    return isinstance(value.get("error"), dict) or flat


def map_calls_back(reply: Reply, request: Request, names: NameMap, *, custom_tools: bool) -> Reply:
    """Return the reply with the caller's tool names, and ids that are new in the caller's history."""
    mapper = CallMapper(request, names, custom_tools=custom_tools)

    def restore_block(block: Block) -> Block:
        return restore_client_call(block, request) if isinstance(block, ToolCall) else block

    blocks = tuple(mapper.map_call(block) if isinstance(block, ToolCall) else block for block in reply.blocks)
    pairer = Pairer()
    for message in request.messages:
        pairer.feed(message)
    blocks = pairer.feed(Message("ai", blocks)).blocks
    return msgspec.structs.replace(reply, blocks=tuple(map(restore_block, blocks)))


class CallMapper:
    """Maps calls of a reply back to the caller's declarations: the name, free-text input, optional arguments."""

    def __init__(self, request: Request, names: NameMap, *, custom_tools: bool) -> None:
        self._request = request
        self._names = names
        self._custom = frozenset(tool.name for tool in request.tools if tool.kind == "custom" and custom_tools)
        self._strict = {tool.name: tool for tool in request.tools if tool.strict}
        self._has_hosted = any(tool.kind == "hosted" for tool in request.tools)

    def map_name(self, name: str) -> str:
        return self._names.parse(name)

    def needs_whole_call(self, call: ToolCall) -> bool:
        """Whether the call must be complete before it is mapped, because its arguments may change too."""
        name = self.map_name(call.name)
        return self._has_hosted or name in self._strict or (name in self._custom and call.kind != "custom")

    def map_call(self, call: ToolCall) -> ToolCall:
        name = self.map_name(call.name)
        call = call if name == call.name else msgspec.structs.replace(call, name=name)
        return drop_call_nulls(unwrap_free_text(call, self._custom), self._strict)

    def map_complete_call(self, call: ToolCall) -> ToolCall:
        """Map a complete call, also to a tool type that the caller's API defines."""
        return restore_client_call(self.map_call(call), self._request)


def report_dropped(reply: Reply, wire: Wire, report: Report) -> None:
    """Report the parts of a cross-API reply that only its own API has: they are dropped."""
    if reply.native is None or reply.native.api == wire.name:
        return
    report_extra_choices(reply.other_choices, report)
    for key in reply.unknown_fields:
        report.add("dropped", f"`{key}` of the reply dropped: not supported by {wire.name}", subject=key)
    for key, count in count_dropped_fields(Request((Message("ai", reply.blocks),)), wire).items():
        report.findings.append(dropped_finding(key, count, wire))
    signed = [block for block in reply.blocks if isinstance(block, Thinking) and (block.signature or block.encrypted)]
    if any(block.origin.provider != wire.provider for block in signed):
        why = f"signatures and encrypted content of {reply.native.api} reasoning dropped: not supported by {wire.name}"
        report.add("reasoning", why)
    if reply.finish in ("error", "pause"):
        cause = f" ({reply.raw_finish})" if reply.raw_finish else ""
        state = "broke off" if reply.finish == "error" else "is not finished"
        report.add("adjusted", f"the reply {state}{cause}: finish reason adapted to {wire.name}", subject="finish")
