"""`segue.convert`: one request body of any API, said to any other."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any, get_args, get_type_hints

import msgspec

from segue.canonical.ids import short_hash
from segue.canonical.jsontext import read_object, refuse_twice, write
from segue.canonical.learning import learnt
from segue.canonical.request import Request
from segue.carry import Asked, carry
from segue.errors import InputError, checked_profile, text_argument
from segue.express import express
from segue.models import identify
from segue.render.content import heard
from segue.render.demands import Policy
from segue.render.hosted import asked_in_words
from segue.render.report import Report
from segue.replies import caller_own, parse_reply, report_unsaid
from segue.streaming import ReplyStream
from segue.wire.base import Fetch, Projection, Wire
from segue.wire.idmap import IdMap
from segue.wire.names import ANY_NAME, NameMap
from segue.wire.profiles import PROFILES, profiled
from segue.wire.registry import find
from segue.wire.text.hearing import Hearing, heard_reply
from segue.wire.text.leaks import hearing_of
from segue.wire.text.registry import TEXT_FORMATS

__all__ = ["Body", "Converted", "convert", "policy_of", "with_profile"]

Body = bytes | bytearray | str | Mapping[str, Any]


class Converted:
    """A body for the target, and what it took to make it.

    `body`, `data` and `_request`, and `_given`, the bytes that came in: what is not `made` follows from the others.
    """

    _given: bytes
    _tool_format: str = "auto"

    def __init__(self, source: Wire, target: Wire, report: Report, names: NameMap, **made: Any) -> None:
        self._source = source
        self._target = target
        self._names = names
        self.report: Report = report
        self.reply_report: Report | None = None
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

    def _asked(self) -> str | None:
        """The model that the body names: not every API's answer does."""
        named = self.body.get("model", self.body.get("modelId"))
        return named if isinstance(named, str) else None

    def reply(self, data: Body) -> dict[str, Any]:
        """The target's answer in the source's form: names as the caller declared them, ids unique in its history.

        What of the answer can't be said there is in `reply_report`, and is added to `report`.
        """
        request, wire = self._request, self._source
        report = Report(target=wire.name)
        reply = parse_reply(self._target, data)
        if reply.model is None:
            reply = msgspec.structs.replace(reply, model=self._asked())
        reply = heard_reply(reply, self._hearing(report, turn_key=""))
        report_unsaid(reply, wire, report)
        if wire.name != self._target.name:
            reply = msgspec.structs.replace(reply, blocks=tuple(heard(asked_in_words(reply.blocks, report), report)))
        reply = caller_own(reply, request, self._names, custom_tools=wire.custom_tools)
        ids = IdMap(wire.ids(identify(request.model)), provider=wire.provider)
        names = NameMap(ANY_NAME)
        ids.add_messages(request.messages, names.render)
        for call in reply.calls:
            ids.assign(call, call.name)
        body = wire.render_reply(reply, Projection(ids, names, report))
        self.reply_report = report
        self.report.findings.extend(report.findings)
        return body

    def stream(self) -> ReplyStream:
        """The same for an answer that is streamed: `feed` the target's bytes, and send on what it gives."""
        return ReplyStream(
            self._request,
            source=self._source,
            target=self._target,
            names=self._names,
            report=self.report,
            # Another for each request: the caller may hold back calls that it had from us before.
            turn_key=f"turn-{short_hash(self.data, 16)}",
            model=self._asked(),
            hear=self._hearing,
        )

    def _hearing(self, report: Report, *, turn_key: str) -> Hearing:
        """What the words of the answer are listened for: at home only for calls that should not be words."""
        spelled = [msgspec.structs.replace(tool, name=self._names.render(tool.name)) for tool in self._request.tools]
        abroad = self._source.name != self._target.name
        return hearing_of(
            self._target,
            self._asked(),
            self._tool_format,
            turn_key=turn_key,
            tools=spelled,
            report=report,
            think=abroad or self._tool_format in TEXT_FORMATS,
        )


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
    text_argument(model, "model", needed=False)
    text_argument(tool_format, "tool_format")
    if fetch is not None and not callable(fetch):
        raise InputError("a function that takes a URL was expected", path="fetch")
    target_wire = find(target, argument="target")
    asked = Asked(
        target=target_wire if profile is None else with_profile(target_wire, profile),
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
    refuse_twice(body, carried.source.root)
    said = carried.said
    made = {"body": said.body, "_request": carried.request, "_tool_format": tool_format}
    return Converted(carried.source, asked.target, said.report, said.names, **made)


def with_profile(wire: Wire, profile: str) -> Wire:
    """The wire as one server speaks it."""
    checked_profile(profile, wire.name, PROFILES)
    return profiled(profile)


def policy_of(**chosen: str) -> Policy:
    """The policy with these choices; a wrong one is an error that names it."""
    try:
        return msgspec.convert(chosen, learnt(Policy))
    except msgspec.ValidationError as error:
        name = str(error).partition(" - at `$.")[2].rstrip("`")
        values = get_args(get_type_hints(Policy)[name])
        raise InputError(f"{chosen[name]!r} is not one of {', '.join(values)}", path=name) from None
