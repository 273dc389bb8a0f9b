"""`segue.convert`: one request body of any API, said to any other."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any, get_args, get_type_hints

import msgspec

from segue.canonical.blocks import Message, ToolCall
from segue.canonical.jsontext import read_object, write
from segue.canonical.pairing import Pairer
from segue.canonical.request import Reply, Request
from segue.carry import Asked, carry
from segue.errors import InputError, RemoteProtocolError
from segue.express import express
from segue.models import identify
from segue.render.content import heard
from segue.render.demands import Policy
from segue.render.report import Report
from segue.wire.base import Fetch, Projection, Wire
from segue.wire.idmap import IdMap
from segue.wire.names import NameMap, NameRule
from segue.wire.profiles import profiled
from segue.wire.registry import find
from segue.wire.tools import free_text_back, strict_back

__all__ = ["Body", "Converted", "convert", "parse_reply", "policy_of"]

_ANY_NAME = NameRule(allowed=r"\s\S", limit=1_000_000)

Body = bytes | bytearray | str | Mapping[str, Any]


class Converted:
    """A body for the target, and what it took to make it.

    `body`, `data` and `_request`, and `_given`, the bytes that came in: what is not `made` follows from the others.
    """

    _given: bytes

    def __init__(self, source: Wire, target: Wire, report: Report, names: NameMap, **made: Any) -> None:
        self._source = source
        self._target = target
        self._names = names
        self.report: Report = report
        vars(self).update(made)

    def __repr__(self) -> str:
        return f"<Converted {self.source} → {self.target}: {len(self.report.findings)} findings>"

    @property
    def source(self) -> str:
        return self._source.name

    @property
    def target(self) -> str:
        return self._target.name

    @cached_property
    def data(self) -> bytes:
        """The body as JSON."""
        return write(self.body)

    @cached_property
    def body(self) -> dict[str, Any]:
        return read_object(self.data)[0]

    @cached_property
    def _request(self) -> Request:
        """What was said, in canonical form."""
        return self._source.parse_request(read_object(self._given)[0])

    def reply(self, data: Body) -> dict[str, Any]:
        """The target's answer in the source's form: names as the caller declared them, ids unique in its history."""
        reply = self._with_ids(parse_reply(self._target, data))
        if self._source.name != self._target.name:
            reply = msgspec.structs.replace(reply, blocks=tuple(heard(reply.blocks, self.report)))
        ids = IdMap(self._source.ids(identify(self._request.model)), provider=self._source.provider)
        names = NameMap(_ANY_NAME)
        ids.add_messages(self._request.messages, names.render)
        for call in reply.calls:
            ids.assign(call, call.name)
        return self._source.render_reply(reply, Projection(ids, names, self.report))

    def _with_ids(self, reply: Reply) -> Reply:
        custom = frozenset(tool.name for tool in self._request.tools if tool.kind == "custom")
        if not self._source.custom_tools:
            custom = frozenset[str]()

        strict = {tool.name: tool for tool in self._request.tools if tool.strict}

        def named(call: ToolCall) -> ToolCall:
            name = self._names.parse(call.name)
            call = call if name == call.name else msgspec.structs.replace(call, name=name)
            return strict_back(free_text_back(call, custom), strict)

        blocks = tuple(named(block) if isinstance(block, ToolCall) else block for block in reply.blocks)
        pairer = Pairer()
        for message in self._request.messages:
            pairer.feed(message)
        return msgspec.structs.replace(reply, blocks=pairer.feed(Message("ai", blocks)).blocks)


def convert(
    body: Body,
    *,
    target: str,
    source: str | None = None,
    model: str | None = None,
    profile: str | None = None,
    tool_format: str = "auto",
    fetch: Fetch | None = None,
    ids: str = "auto",
    reasoning: str = "native",
    hosted: str = "pair",
    pending: str = "complete",
    orphans: str = "text",
) -> Converted:
    """A request body of one API as a body that another one takes, with a report of each decision.

    `source` None is told by the body's shape, then by its model's name. `model` is the target's; without one the
    body's own is kept at home and left out abroad. `profile` names a server that speaks openai-chat in its own way.
    """
    target_wire = find(target, argument="target")
    asked = Asked(
        target=target_wire if profile is None else _with_profile(target_wire, profile),
        source=None if source is None else find(source, argument="source"),
        home=target_wire,
        model=model,
        tool_format=tool_format,
        policy=policy_of(ids=ids, reasoning=reasoning, hosted=hosted, pending=pending, orphans=orphans),
        fetch=fetch,
    )
    if isinstance(body, bytes | bytearray) and (quick := express(given := bytes(body), asked)) is not None:
        return Converted(quick.source, asked.target, quick.report, quick.names, data=quick.data, _given=given)
    value, surrogates = read_object(body)
    carried = carry(value, asked, surrogates=surrogates)
    said = carried.said
    return Converted(carried.source, asked.target, said.report, said.names, body=said.body, _request=carried.request)


def _with_profile(wire: Wire, profile: str) -> Wire:
    if wire.name != "openai-chat":
        raise InputError(f"{wire.name} has no profiles; servers that speak openai-chat have", path="profile")
    return profiled(profile)


def parse_reply(wire: Wire, data: Body) -> Reply:
    """A provider's answer. What is wrong with it is the provider's fault."""
    try:
        value, _ = read_object(data)
        if _is_error(value):
            error = wire.parse_error(0, value)
            raise RemoteProtocolError(f"{wire.name} answered with an error: {error.kind}: {error.message}")
        return wire.parse_reply(value)
    except InputError as error:
        raise RemoteProtocolError(f"not a reply of {wire.name}: {error}") from None


def _is_error(value: Mapping[str, Any]) -> bool:
    """Whether this is an error body: under `error`, or as such, or as a list of what was wrong with the request."""
    flat = str(value.get("object")).lower() == "error" or isinstance(value.get("detail"), list)
    flat = flat or "__type" in value or list(value) in (["message"], ["Message"])
    return isinstance(value.get("error"), dict) or flat


def policy_of(**chosen: str) -> Policy:
    """The policy with these choices; a wrong one is an error that names it."""
    try:
        return msgspec.convert(chosen, Policy)
    except msgspec.ValidationError as error:
        name = str(error).partition(" - at `$.")[2].rstrip("`")
        values = get_args(get_type_hints(Policy)[name])
        raise InputError(f"{chosen[name]!r} is not one of {', '.join(values)}", path=name) from None
