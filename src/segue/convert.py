"""`segue.convert`: convert a request body of any API to any other."""

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
    """A converted body and its report.

    `body`, `data` and `_request` are computed on first access where the constructor did not get them; `_source_data` is
    the source body.
    """

    _source_data: bytes
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
        """The source request in canonical form."""
        return self._source.parse_request(read_object(self._source_data)[0])

    def _asked(self) -> str | None:
        """Return the model named in the body: not every API repeats it in the reply."""
        model = self.body.get("model", self.body.get("modelId"))
        return model if isinstance(model, str) else None

    def reply(self, data: Body) -> dict[str, Any]:
        """Convert the target's reply to the source API, with the caller's tool names and ids unique in its history.

        Findings are in `reply_report`, and are added to `report`.
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
        """Return a converter for a streamed reply: `feed` it the target's bytes, and send its output to the caller."""
        return ReplyStream(
            self._request,
            source=self._source,
            target=self._target,
            names=self._names,
            report=self.report,
            # Different for each request, so that ids do not repeat those of earlier replies.
            turn_key=f"turn-{short_hash(self.data, 16)}",
            model=self._asked(),
            hear=self._hearing,
        )

    def _hearing(self, report: Report, *, turn_key: str) -> Hearing:
        """Return the extractor for tool calls in text; same-API only leaked calls are extracted, `<think>` stays."""
        tools = [msgspec.structs.replace(tool, name=self._names.render(tool.name)) for tool in self._request.tools]
        is_cross_api = self._source.name != self._target.name
        return hearing_of(
            self._target,
            self._asked(),
            self._tool_format,
            turn_key=turn_key,
            tools=tools,
            report=report,
            think=is_cross_api or self._tool_format in TEXT_FORMATS,
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
    """Convert a request body of one API to a body that another one accepts, with a report of each decision.

    `source` None: detected by the body's shape, then by its model name. `model` is the target's; without one the body's
    own is kept same-API and dropped cross-API. `profile` names a server with its own rules for openai-chat.
    """
    text_argument(model, "model", needed=False)
    text_argument(tool_format, "tool_format")
    if fetch is not None and not callable(fetch):
        raise InputError("a function that takes a URL was expected", path="fetch")
    target_wire = find(target, argument="target")
    job = Asked(
        target=target_wire if profile is None else with_profile(target_wire, profile),
        source=None if source is None else find(source, argument="source"),
        home=target_wire,
        model=model,
        tool_format=tool_format,
        policy=policy_of(ids=ids, reasoning=reasoning, hosted=hosted, pending=pending, orphans=orphans),
        fetch=fetch,
    )
    if isinstance(body, bytes | bytearray) and (fast := express(source_data := bytes(body), job)) is not None:
        return Converted(fast.source, job.target, fast.report, fast.names, data=fast.data, _source_data=source_data)
    value, surrogates = read_object(body)
    conversion = carry(value, job, surrogates=surrogates)
    refuse_twice(body, conversion.source.root)
    rendered = conversion.said
    made = {"body": rendered.body, "_request": conversion.request, "_tool_format": tool_format}
    return Converted(conversion.source, job.target, rendered.report, rendered.names, **made)


def with_profile(wire: Wire, profile: str) -> Wire:
    """Return the wire with the rules of a server profile."""
    checked_profile(profile, wire.name, PROFILES)
    return profiled(profile)


def policy_of(**chosen: str) -> Policy:
    """Return the policy with these values; raise `InputError` for an invalid one."""
    try:
        return msgspec.convert(chosen, learnt(Policy))
    except msgspec.ValidationError as error:
        name = str(error).partition(" - at `$.")[2].rstrip("`")
        values = get_args(get_type_hints(Policy)[name])
        raise InputError(f"{chosen[name]!r} is not one of {', '.join(values)}", path=name) from None
