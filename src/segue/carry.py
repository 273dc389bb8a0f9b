"""The long way: parse what was said, render what may be said, write it as the target says it.

This defines what a conversion means. `segue.express` is quicker where nothing is odd, and asks here what is right.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, cast

import msgspec

from segue.canonical.blocks import Block, Media, Message, Opaque, Text, ToolCall, ToolResponse, calls_of, responses_of
from segue.canonical.request import Request, Tool
from segue.errors import InputError, text_argument
from segue.models import identify
from segue.render.demands import Policy
from segue.render.passes import render
from segue.render.report import Finding, Report
from segue.render.transcript import Transcript
from segue.wire.base import Fetch, Projection, Wire
from segue.wire.detect import detect_source, speaks_against
from segue.wire.formats import scheme_for
from segue.wire.idmap import IdMap
from segue.wire.names import NameMap, NameRule
from segue.wire.registry import WIRES
from segue.wire.server_tools.declare import declared_abroad, laid_beside
from segue.wire.text.registry import format_to_write
from segue.wire.text.telling import in_words, told_in_text

__all__ = [
    "MCP",
    "Asked",
    "Carried",
    "Kept",
    "Said",
    "carry",
    "say",
    "unsaid_finding",
    "unsaid_items",
    "unsaid_of_tools",
]

MCP = "mcp"
"""Whose declarations these are, where a server listed them: no API's own."""
MCP_KEYS = frozenset({"name", "description", "inputSchema"})

_SHOWN = 64
_SAYS_NOTHING: tuple[object, ...] = (None, [], {}, "", False)
# Keys that ask for something just by being there.
_ASKS_BARE = frozenset({"web_search_options"})


class Asked(msgspec.Struct, frozen=True):
    """What is to be done with a body. `source` None is told by its shape, then by its model's name.

    `home` is the wire whose bodies are at home at the target, where that is one server's way to speak it.
    """

    target: Wire
    source: Wire | None = None
    home: Wire | None = None
    model: str | None = None
    tool_format: str = "auto"
    policy: Policy = Policy()
    fetch: Fetch | None = None

    def from_wire(self, source: Wire) -> Wire:
        """The wire to read a body of this one with: what it must be mended of at home, the target's rules decide."""
        return self.target if source is self.home else source


class Said(msgspec.Struct, frozen=True):
    """What a wire made of a transcript."""

    body: dict[str, Any]
    ids: IdMap
    names: NameMap
    report: Report


class Kept(msgspec.Struct, frozen=True):
    """The ids and names of what was said to a target before, to go on from."""

    ids: IdMap
    names: NameMap


class Carried(msgspec.Struct, frozen=True):
    """A request on its way: what it was, and what became of it."""

    source: Wire
    request: Request
    transcript: Transcript
    said: Said


def carry(value: Mapping[str, Any], asked: Asked, *, surrogates: int = 0) -> Carried:
    """A body of one API as another one takes it. `surrogates` were mended when it was read."""
    target = asked.target
    source = asked.from_wire(asked.source or WIRES[detect_source(value)])
    other = speaks_against(value, source.name)
    if other is not None:
        raise InputError(f"this is a body of {other}, not of {source.name}")
    text_argument(value.get("model"), "model", needed=False)
    request = source.parse_request(value)
    report = Report(target=target.name)
    if surrogates:
        report.add("surrogate", f"{surrogates} escaped halves of a character became U+FFFD")
    model = asked.model
    if model is None:
        # The provider's other API serves the same models; a server with a profile is not the provider.
        kindred = source.provider == target.provider and WIRES.get(target.name) is target
        model = request.model if source is target or kindred else None
        if model is None and request.model is not None:
            said = f"the model {request.model!r} is not one of {target.name}: left out"
            report.add("model", said, subject=request.model)
    transcript, said = say(
        request, target, report, asked.policy, model=model, tool_format=asked.tool_format, fetch=asked.fetch
    )
    return Carried(source, request, transcript, said)


def say(
    request: Request,
    wire: Wire,
    report: Report,
    policy: Policy,
    *,
    model: str | None = None,
    tool_format: str = "auto",
    fetch: Fetch | None = None,
    kept: Kept | None = None,
) -> tuple[Transcript, Said]:
    """A canonical request in a wire's words. Calls and tools that are `kept` are called as they were."""
    known = identify(model or wire.default_model)
    scheme = scheme_for(wire, known, tool_format, WIRES[wire.on] if wire.on else wire)
    report.target, report.id_scheme, report.model = wire.name, scheme.name, model
    demands = wire.demands(known)
    abroad = declared_abroad(request, demands.api, known, report)
    request = abroad.request
    names = _names(request, demands.api, wire.names(identify(model))) if kept is None else kept.names
    form = format_to_write(tool_format, known)
    paired = demands if form is None else in_words(demands)
    transcript = render(request, paired, policy, report, model=model, spell=_told(request, names))
    _report_unsaid(request, wire, report, abroad.told)
    spell: Callable[[str], str] = names.render
    if kept is None:
        ids = IdMap.project(transcript, scheme, spell)
    else:
        ids = kept.ids
        ids.add_messages(transcript.messages, spell)
    shown = transcript
    if form is not None:
        shown = render(told_in_text(transcript, form, ids, names, report), demands, policy, report, model=model)
    body = laid_beside(wire.render_request(shown, Projection(ids, names, report, fetch)), abroad.beside)
    hosted: set[str] = set()
    for message in transcript.messages:
        for call in calls_of(message):
            hosted.update([call.name] if call.kind == "hosted" else [])
            if call.kind != "hosted":
                report.emitted_calls.append((call.id, ids.render(call.id)))
                _report_repeated(call, wire, report)
                if policy.ids == "auto" and call.native is not None and call.native.api == wire.name:
                    _report_new_id(call, ids.render(call.id), report)
        for response in responses_of(message):
            if response.call_id in ids and not response.hosted:
                report.emitted_results.append((response.call_id, ids.render(response.call_id)))
    for name, spelled in names.changed:
        if transcript.home and name in hosted:
            continue
        report.add("name", f"the tool {name!r} is called {spelled!r} there", subject=name)
    return transcript, Said(body, ids, names, report)


def _report_repeated(call: ToolCall, wire: Wire, report: Report) -> None:
    """Abroad arguments are written anew, and of a key that stood twice the last one counts."""
    key = (call.extra or {}).get("repeated")
    if key is not None and (call.native is None or call.native.api != wire.name or not call.native.intact):
        said = f"the key {key!r} stands twice in the arguments: the last one counts"
        report.add("argument", said, call_id=call.id, subject=call.name)


def _report_new_id(call: ToolCall, sent: str, report: Report) -> None:
    """At home an id stays what it was, unless it is none there or stands for another call already."""
    raw_id = call.origin.raw_id
    if raw_id is not None and sent and sent != raw_id:
        shown = raw_id if len(raw_id) <= _SHOWN else f"{raw_id[:_SHOWN]}…"
        said = f"the id {shown!r} of a call is taken or none that the API knows: it is {sent!r} now"
        report.add("id", said, call_id=call.id, subject=call.name)


def _names(request: Request, api: str, rule: NameRule) -> NameMap:
    if request.native is None or request.native.api != api:
        return NameMap(rule)
    names = NameMap(rule.at_home(tool.name for tool in request.tools))
    for name in _built_in_names(request):
        names.keep(name)
    if rule.home_free:
        for name in _free_text_names(request, rule):
            names.keep(name)
    return names


def _built_in_names(request: Request) -> set[str]:
    """Names that the API itself gave, of tools that are called by a type of their own (`$web_search`)."""
    own = {tool.name for tool in request.tools if tool.kind == "hosted"}
    calls = [call for message in request.messages for call in calls_of(message) if call.name in own]
    return {
        call.name
        for call in calls
        if call.native is not None and call.native.fragment.get("type") == "builtin_function"
    }


def _told(request: Request, names: NameMap) -> Callable[[str], str]:
    """The name of a tool in running text: as the target was shown it, or readable where it was not."""
    shown = {tool.name for tool in request.tools}
    calls = [call for message in request.messages for call in calls_of(message)]
    shown.update(call.name for call in calls if not call.origin.is_approval)
    source = WIRES.get(request.native.api) if request.native is not None else None
    joint = source.names(identify(request.model)).home_joint if source is not None else ""

    def told(name: str) -> str:
        spelled = names.render(name) if name in shown else name
        return spelled.replace(joint, ".") if joint else spelled

    return told


def _free_text_names(request: Request, rule: NameRule) -> set[str]:
    """Names that no function bears, nor a tool in a namespace."""
    calls = [call for message in request.messages for call in calls_of(message)]
    named = [(made.name, made.kind) for made in (*request.tools, *calls)]
    lawful = {name for name, _ in named if 0 < len(name) <= rule.home_limit and rule.home_joint not in name}
    free = {name for name, kind in named if kind == "custom" and name in lawful}
    return free - {name for name, kind in named if kind != "custom"}


def _report_unsaid(request: Request, target: Wire, report: Report, told: frozenset[str]) -> None:
    """What only the API that a value came from has a word for: left out elsewhere, and said so once for each key."""
    native = request.native
    if native is not None and native.api != target.name and native.api in WIRES:
        source = WIRES[native.api]
        carried = (request.options.kindred or {}) if target.kindred else ()
        known = source.body_keys | told | {key for word, key in source.kindred.items() if word in carried}
        refused = {key for key in source.telling - known if native.fragment.get(key) is False}
        for key in sorted({*_unknown(native.fragment, known), *refused}):
            report.add("dropped", f"`{key}` is not carried over to {target.name}", subject=key, fault="projection")
    for key, count in unsaid_items(request, target).items():
        report.findings.append(unsaid_finding(key, count, target))


def unsaid_items(request: Request, target: Wire) -> dict[str, int]:
    """For each such key the number of messages, blocks and tools that have it and say something with it."""
    unsaid: Counter[str] = Counter()
    items = [item for message in request.messages for item in (message, *message.blocks) if not _told_otherwise(item)]
    for item in (*request.system, *items):
        native = item.native
        if native is not None and native.api != target.name and native.api in WIRES:
            if not target.kindred:
                unsaid.update(key for media in _media_of(item) for key in media.extra or ())
            known = WIRES[native.api].item_keys
            if known.issuperset(native.fragment) and not (isinstance(item, Text) and "content" in native.fragment):
                continue
            unsaid.update(key for fragment in _fragments(item) for key in _unknown(fragment, known))
    unsaid.update(unsaid_of_tools(request.tools, target))
    return {key: unsaid[key] for key in sorted(unsaid)}


def unsaid_of_tools(tools: Iterable[Tool], target: Wire) -> Counter[str]:
    """The same for declarations, also for those that an MCP server lists."""
    unsaid: Counter[str] = Counter()
    for tool in tools:
        native = tool.native
        if native is None or native.api == target.name or tool.kind == "hosted":
            continue
        known = MCP_KEYS if native.api == MCP else WIRES[native.api].tool_keys if native.api in WIRES else None
        if known is not None:
            unsaid.update(_unknown(native.fragment, known | (tool.extra or {}).keys()))
    return unsaid


def _media_of(item: Message | Block) -> Iterator[Media]:
    """Pictures by themselves, or in a result."""
    held = (item.content or ()) if isinstance(item, ToolResponse) else (item,)
    yield from (block for block in held if isinstance(block, Media))


def unsaid_finding(key: str, count: int, target: Wire) -> Finding:
    message = f"`{key}` of {count} items is not carried over to {target.name}"
    return Finding("dropped", "projection", message, subject=key)


def _fragments(item: Message | Block) -> Iterator[Mapping[str, Any]]:
    """The fragment of a value; of a text also the part that an item of its API holds it in."""
    if item.native is None:
        return
    yield item.native.fragment
    parts = item.native.fragment.get("content") if isinstance(item, Text) else None
    if isinstance(parts, list):
        yield from (part for part in cast("list[Any]", parts) if isinstance(part, dict))


def _unknown(fragment: Mapping[str, Any], known: frozenset[str]) -> Iterable[str]:
    """Keys of a fragment that say something and that nobody speaks for; `text.format` speaks for one key of `text`."""
    return () if known.issuperset(fragment) else _unknown_keys(fragment, known)


def _unknown_keys(fragment: Mapping[str, Any], known: frozenset[str]) -> Iterator[str]:
    for key, value in fragment.items():
        if key in known or (value in _SAYS_NOTHING and not (value == {} and key in _ASKS_BARE)):
            continue
        inner = frozenset(name.removeprefix(f"{key}.") for name in known if name.startswith(f"{key}."))
        if inner and isinstance(value, dict):
            yield from (f"{key}.{name}" for name in _unknown_keys(cast("dict[str, Any]", value), inner))
        else:
            yield key


def _told_otherwise(item: Message | Block) -> bool:
    if isinstance(item, Message):
        return bool(item.blocks) and all(isinstance(block, Opaque) for block in item.blocks)
    if isinstance(item, ToolResponse):
        return item.hosted
    return isinstance(item, Opaque) or (isinstance(item, ToolCall) and item.kind == "hosted")
