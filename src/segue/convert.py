"""`segue.convert`: one request body of any API, said to any other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import Any, cast, get_args, get_type_hints

import msgspec

from segue.canonical.blocks import Block, Message, Opaque, Text, ToolCall, ToolResponse, calls_of, responses_of
from segue.canonical.jsontext import read_object, write
from segue.canonical.pairing import Pairer
from segue.canonical.request import Reply, Request
from segue.errors import InputError, RemoteProtocolError
from segue.models import identify
from segue.render.demands import Policy
from segue.render.passes import render
from segue.render.report import Report
from segue.render.transcript import Transcript
from segue.wire.base import Fetch, Projection, Wire
from segue.wire.detect import detect_source, speaks_against
from segue.wire.formats import scheme_for
from segue.wire.idmap import IdMap
from segue.wire.names import NameMap, NameRule
from segue.wire.profiles import profiled
from segue.wire.registry import WIRES, find
from segue.wire.tools import free_text_back

__all__ = ["Converted", "convert", "parse_reply", "policy_of", "say"]

_ANY_NAME = NameRule(allowed=r"\s\S", limit=1_000_000)

_SAYS_NOTHING: tuple[object, ...] = (None, [], {}, "", False)

Body = bytes | bytearray | str | Mapping[str, Any]


class Converted:
    """A body for the target, and what it took to make it."""

    def __repr__(self) -> str:
        return f"<Converted {self.source} → {self.target}: {len(self.report.findings)} findings>"

    def __init__(self, request: Request, source: Wire, target: Wire, transcript: Transcript, said: Said) -> None:
        self._request = request
        self._source = source
        self._target = target
        self._transcript = transcript
        self._names = said.names
        self.body: dict[str, Any] = said.body
        self.report: Report = said.report

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

    def reply(self, data: Body) -> dict[str, Any]:
        """The target's answer in the source's form: names as the caller declared them, ids unique in its history."""
        reply = self._with_ids(parse_reply(self._target, data))
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

        def named(call: ToolCall) -> ToolCall:
            name = self._names.parse(call.name)
            call = call if name == call.name else msgspec.structs.replace(call, name=name)
            return free_text_back(call, custom)

        blocks = tuple(named(block) if isinstance(block, ToolCall) else block for block in reply.blocks)
        pairer = Pairer()
        for message in self._request.messages:
            pairer.feed(message)
        return msgspec.structs.replace(reply, blocks=pairer.feed(Message("ai", blocks)).blocks)


class Said(msgspec.Struct, frozen=True):
    """What a wire made of a transcript."""

    body: dict[str, Any]
    names: NameMap
    report: Report


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
    policy = policy_of(ids=ids, reasoning=reasoning, hosted=hosted, pending=pending, orphans=orphans)
    value, surrogates = read_object(body)
    target_wire = find(target, argument="target")
    source_wire = find(source, argument="source") if source is not None else WIRES[detect_source(value)]
    if profile is not None:
        # What a body of the same API must be mended of, the server's own rules decide.
        home = source_wire is target_wire
        target_wire = _with_profile(target_wire, profile)
        source_wire = target_wire if home else source_wire
    other = speaks_against(value, source_wire.name)
    if other is not None:
        raise InputError(f"this is a body of {other}, not of {source_wire.name}")
    request = source_wire.parse_request(value)
    report = Report(target=target)
    if surrogates:
        report.add("surrogate", f"{surrogates} escaped halves of a character became U+FFFD")
    if model is None:
        model = request.model if source_wire is target_wire else None
        if model is None and request.model is not None:
            report.add("model", f"the model {request.model!r} is not one of {target}: left out", subject=request.model)
    transcript, said = say(request, target_wire, report, policy, model=model, tool_format=tool_format, fetch=fetch)
    return Converted(request, source_wire, target_wire, transcript, said)


def _with_profile(wire: Wire, profile: str) -> Wire:
    if wire.name != "openai-chat":
        raise InputError(f"{wire.name} has no profiles; servers that speak openai-chat have", path="profile")
    return profiled(profile)


def say(
    request: Request,
    wire: Wire,
    report: Report,
    policy: Policy,
    *,
    model: str | None = None,
    tool_format: str = "auto",
    fetch: Fetch | None = None,
) -> tuple[Transcript, Said]:
    """A canonical request in a wire's words."""
    known = identify(model or wire.default_model)
    scheme = scheme_for(wire, known, tool_format, WIRES[wire.on] if wire.on else wire)
    report.target, report.id_scheme, report.model = wire.name, scheme.name, model
    transcript = render(request, wire.demands(known), policy, report, model=model)
    rule = wire.names(identify(model))
    _report_unsaid(request, wire, report)
    names = NameMap(rule.at_home(tool.name for tool in transcript.tools) if transcript.home else rule)
    if transcript.home and rule.home_free:
        for name in _free_text_names(transcript, rule):
            names.keep(name)
    spell: Callable[[str], str] = names.render
    ids = IdMap.project(transcript, scheme, spell)
    body = wire.render_request(transcript, Projection(ids, names, report, fetch))
    for message in transcript.messages:
        for call in calls_of(message):
            if call.kind != "hosted":
                report.emitted_calls.append((call.id, ids.render(call.id)))
        for response in responses_of(message):
            if response.call_id in ids and not response.hosted:
                report.emitted_results.append((response.call_id, ids.render(response.call_id)))
    for name, spelled in names.changed:
        report.add("name", f"the tool {name!r} is called {spelled!r} there", subject=name)
    return transcript, Said(body, names, report)


def _free_text_names(transcript: Transcript, rule: NameRule) -> set[str]:
    """Names that no function bears, nor a tool in a namespace."""
    calls = [call for message in transcript.messages for call in calls_of(message)]
    named = [(made.name, made.kind) for made in (*transcript.tools, *calls)]
    lawful = {name for name, _ in named if 0 < len(name) <= rule.home_limit and rule.home_joint not in name}
    free = {name for name, kind in named if kind == "custom" and name in lawful}
    return free - {name for name, kind in named if kind == "function"}


def _report_unsaid(request: Request, target: Wire, report: Report) -> None:
    """What only the API that a value came from has a word for: left out elsewhere, and said so once for each key."""
    native = request.native
    if native is not None and native.api != target.name and native.api in WIRES:
        for key in sorted(_unknown(native.fragment, WIRES[native.api].body_keys)):
            report.add("dropped", f"`{key}` is not carried over to {target.name}", subject=key, fault="projection")
    unsaid: Counter[str] = Counter()
    items = [item for message in request.messages for item in (message, *message.blocks) if not _told_otherwise(item)]
    for item in (*request.system, *items):
        native = item.native
        if native is not None and native.api != target.name and native.api in WIRES:
            known = WIRES[native.api].item_keys
            unsaid.update(key for fragment in _fragments(item) for key in _unknown(fragment, known))
    for key, count in sorted(unsaid.items()):
        report.add(
            "dropped", f"`{key}` of {count} items is not carried over to {target.name}", subject=key, fault="projection"
        )


def _fragments(item: Message | Block) -> Iterator[Mapping[str, Any]]:
    """The fragment of a value; of a text also the part that an item of its API holds it in."""
    if item.native is None:
        return
    yield item.native.fragment
    parts = item.native.fragment.get("content") if isinstance(item, Text) else None
    if isinstance(parts, list):
        yield from (part for part in cast("list[Any]", parts) if isinstance(part, dict))


def _unknown(fragment: Mapping[str, Any], known: frozenset[str]) -> Iterator[str]:
    """Keys of a fragment that say something and that nobody speaks for; `text.format` speaks for one key of `text`."""
    for key, value in fragment.items():
        if key in known or value in _SAYS_NOTHING:
            continue
        inner = frozenset(name.removeprefix(f"{key}.") for name in known if name.startswith(f"{key}."))
        if inner and isinstance(value, dict):
            yield from (f"{key}.{name}" for name in _unknown(cast("dict[str, Any]", value), inner))
        else:
            yield key


def _told_otherwise(item: Message | Block) -> bool:
    if isinstance(item, ToolResponse):
        return item.hosted
    return isinstance(item, Opaque) or (isinstance(item, ToolCall) and item.kind == "hosted")


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
    return isinstance(value.get("error"), dict) or flat


def policy_of(**chosen: str) -> Policy:
    """The policy with these choices; a wrong one is an error that names it."""
    try:
        return msgspec.convert(chosen, Policy)
    except msgspec.ValidationError as error:
        name = str(error).partition(" - at `$.")[2].rstrip("`")
        values = get_args(get_type_hints(Policy)[name])
        raise InputError(f"{chosen[name]!r} is not one of {', '.join(values)}", path=name) from None
