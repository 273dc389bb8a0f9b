"""The full conversion pipeline: parse a body, render it for the target, project ids and names, encode it.

It defines the result of every conversion. `segue.fast` is a faster implementation for regular histories, which
compares its output with this one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, cast

import msgspec

from segue.canonical.blocks import Block, Media, Message, Opaque, Text, ToolCall, ToolResponse, calls_of, responses_of
from segue.canonical.request import Request, Tool
from segue.errors import InputError
from segue.models import parse_model
from segue.render.constraints import Policy
from segue.render.passes import render
from segue.render.report import Report, field_level
from segue.render.transcript import Transcript
from segue.wire.base import Fetch, RenderContext, Wire, guard_fetch
from segue.wire.detect_body import detect_source, find_contradicting_api
from segue.wire.ids import IdMap
from segue.wire.mixed_body import MCP, MCP_KEYS
from segue.wire.names import NameMap, NameRule
from segue.wire.registry import WIRES
from segue.wire.text.prompting import render_as_text, text_constraints
from segue.wire.text.registry import select_render_format
from segue.wire.tool_formats import id_scheme_for
from segue.wire.vendor_tools.convert import convert_vendor_tools, merge_body_fields

_MAX_ID_SHOWN = 64
_SPECIAL_TEXTS = ("search_result", "searchResult", "guardContent")
_EMPTY_VALUES: tuple[object, ...] = (None, [], {}, "", False)
# Keys that have an effect even with an empty value.
_MEANINGFUL_EMPTY = frozenset({"web_search_options"})


class ConvertJob(msgspec.Struct, frozen=True):
    """The parameters of a conversion. Without `source`, the API is detected by the shape and the model of the body.

    `base_wire` is the wire that the target's server profile is based on: its bodies are same-API at the target.
    """

    target: Wire
    source: Wire | None = None
    base_wire: Wire | None = None
    model: str | None = None
    tool_format: str = "auto"
    policy: Policy = Policy()
    fetch: Fetch | None = None

    def source_wire(self, source: Wire) -> Wire:
        """Return the wire that parses the body: the target itself for a same-API body, so that its rules apply."""
        return self.target if source is self.base_wire else source


class RenderedBody(msgspec.Struct, frozen=True):
    """The body of a transcript, with the ids and names used in it."""

    body: dict[str, Any]
    ids: IdMap
    names: NameMap
    report: Report


class IdState(msgspec.Struct, frozen=True):
    """The ids and names of an earlier render for the same target, to continue from."""

    ids: IdMap
    names: NameMap


class Conversion(msgspec.Struct, frozen=True):
    """A converted request: the parsed source and the rendered target."""

    source: Wire
    request: Request
    transcript: Transcript
    rendered: RenderedBody


def convert_request(body: Mapping[str, Any], job: ConvertJob, *, replaced_surrogates: int = 0) -> Conversion:
    """Convert a body to the target API. `replaced_surrogates` were replaced when the body was decoded."""
    target = job.target
    source = job.source_wire(job.source or WIRES[detect_source(body)])
    other = find_contradicting_api(body, source.name)
    if other is not None:
        raise InputError(f"this is a body of {other}, not of {source.name}")
    request = source.parse_request(body)
    report = Report(target=target.name)
    report_surrogates(replaced_surrogates, report)
    model = job.model
    if model is None:
        # All APIs of a provider serve the same models. A server with a profile is another provider.
        same_provider = source.provider == target.provider and WIRES.get(target.name) is target
        model = request.model if source is target or same_provider else None
        if model is None:
            report_dropped_model(request, target, report)
    transcript, rendered = render_for(
        request, target, report, job.policy, model=model, tool_format=job.tool_format, fetch=job.fetch
    )
    return Conversion(source, request, transcript, rendered)


def report_dropped_model(request: Request, target: Wire, report: Report) -> None:
    """Report the model of another provider, if the request has one."""
    if request.model is not None:
        why = f"model {request.model!r} dropped: not a model of {target.name}"
        report.add("model", why, subject=request.model)


def report_surrogates(count: int, report: Report) -> None:
    """Report the lone surrogates that were replaced when the body was decoded."""
    if count:
        surrogates = "1 lone surrogate" if count == 1 else f"{count} lone surrogates"
        report.add("surrogate", f"{surrogates} replaced by U+FFFD")


def render_for(
    request: Request,
    wire: Wire,
    report: Report,
    policy: Policy,
    *,
    model: str | None = None,
    resolved_model: str | None = None,
    tool_format: str = "auto",
    fetch: Fetch | None = None,
    id_state: IdState | None = None,
) -> tuple[Transcript, RenderedBody]:
    """Render a canonical request for a wire. Calls and tools in `id_state` keep their ids and names.

    If `model` is an alias, `resolved_model` is the recorded name of the same model, whose rules apply.
    """
    target_model = parse_model(resolved_model or model or wire.default_model)
    scheme = id_scheme_for(wire, target_model, tool_format, WIRES[wire.on] if wire.on else wire)
    report.target, report.id_scheme, report.model = wire.name, scheme.name, model
    report.tool_format = wire.tool_format if tool_format == "auto" else tool_format
    constraints = wire.constraints(target_model)
    declared = convert_vendor_tools(request, constraints.api, target_model, report)
    request = declared.request
    names = (
        _build_name_map(request, constraints.api, wire.name_rule(parse_model(resolved_model or model)))
        if id_state is None
        else id_state.names
    )
    text_format = select_render_format(tool_format, target_model)
    paired = constraints if text_format is None else text_constraints(constraints)
    transcript = render(
        request,
        paired,
        policy,
        report,
        model=model,
        resolved_model=resolved_model,
        project_name=_name_in_text(request, names),
    )
    _report_dropped(request, wire, report, declared.converted_keys)
    project_name: Callable[[str], str] = names.render
    if id_state is None:
        ids = IdMap.project(transcript, scheme, project_name)
    else:
        ids = id_state.ids
        ids.add_messages(transcript.messages, project_name)
    rendered_transcript = transcript
    if text_format is not None:
        rendered_transcript = render(
            render_as_text(transcript, text_format, ids, names, report),
            constraints,
            policy,
            report,
            model=model,
            resolved_model=resolved_model,
        )
    body = merge_body_fields(
        wire.render_request(rendered_transcript, RenderContext(ids, names, report, fetch and guard_fetch(fetch))),
        declared.body_fields,
    )
    hosted: set[str] = set()
    for message in transcript.messages:
        for call in calls_of(message):
            hosted.update([call.name] if call.kind == "hosted" else [])
            if call.kind != "hosted":
                report.emitted_calls.append((call.id, ids.render(call.id)))
                _report_duplicate_key(call, wire, report)
                _report_new_id(call, ids, wire, policy, report)
        for response in responses_of(message):
            if response.call_id in ids and not response.hosted:
                report.emitted_results.append((response.call_id, ids.render(response.call_id)))
    if transcript.is_same_api:
        _report_mixed(request, report)
    for name, projected in names.changed:
        if transcript.is_same_api and name in hosted:
            continue
        report.add("name", f"tool {name!r} renamed to {projected!r}", subject=name)
    for tool, name, projected in names.parameters.changed:
        report.add("name", f"parameter {name!r} of {tool} renamed to {projected!r}", subject=name)
    return transcript, RenderedBody(body, ids, names, report)


def _report_mixed(request: Request, report: Report) -> None:
    """Report the calls, results and tools of a same-API body that had the form of another API."""
    own_api = request.native.api if request.native is not None else ""

    def find_other_form(item: ToolCall | ToolResponse | Tool) -> str | None:
        api = item.native.api if item.native is not None else own_api
        return api if api != own_api and (api in WIRES or api == MCP) else None

    for message in request.messages:
        for call in calls_of(message):
            if form := find_other_form(call):
                why = f"tool call in the form of {form} sent in that of {own_api}"
                report.add("tools", why, call_id=call.id, subject=call.name)
        for response in responses_of(message):
            if form := find_other_form(response):
                why = f"result in the form of {form} sent in that of {own_api}"
                report.add("tools", why, call_id=response.call_id, subject=response.name)
    for tool in request.tools:
        if tool.kind != "hosted" and (form := find_other_form(tool)):
            report.add("tools", f"tool in the form of {form} declared in that of {own_api}", subject=tool.name)


def _report_duplicate_key(call: ToolCall, wire: Wire, report: Report) -> None:
    """Report a duplicate key in arguments that are encoded again: only its last value is kept."""
    key = (call.extra or {}).get("repeated")
    if key is not None and (call.native is None or call.native.api != wire.name or not call.native.intact):
        why = f"duplicate key {key!r} in the arguments: only the last value is kept"
        report.add("argument", why, call_id=call.id, subject=call.name)


def _report_new_id(call: ToolCall, ids: IdMap, wire: Wire, policy: Policy, report: Report) -> None:
    """Report a same-API id that is missing or could not be kept, and one that several calls share, also cross-API."""
    raw_id, sent = call.origin.raw_id, ids.render(call.id)
    same_form = call.native is not None and call.native.api == wire.name
    same_api = policy.ids == "auto" and same_form and call.origin.provider == wire.provider
    if not sent:
        return
    if raw_id is None:
        if same_api and call.origin.identity == "synthetic" and sent != call.origin.item_id:
            report.add("id", "id added to a call without one", call_id=call.id, subject=call.name)
        return
    shown = raw_id if len(raw_id) <= _MAX_ID_SHOWN else f"{raw_id[:_MAX_ID_SHOWN]}…"
    if same_api and sent != raw_id:
        why = f"call id {shown!r} replaced by {sent!r}: it is invalid or used by another call"
        report.add("id", why, call_id=call.id, subject=call.name)
    elif ids.is_repeated(call.id):
        why = f"call id {shown!r} used by an earlier call too: results paired with their calls by order"
        report.add("id", why, call_id=call.id, subject=call.name)


def _build_name_map(request: Request, api: str, rule: NameRule) -> NameMap:
    if request.native is None or request.native.api != api:
        return NameMap(rule)
    names = NameMap(rule.for_same_api(tool.name for tool in request.tools))
    for name in _built_in_names(request):
        names.keep(name)
    if rule.same_api_custom_unchecked:
        for name in _custom_tool_names(request, rule):
            names.keep(name)
    return names


def _built_in_names(request: Request) -> set[str]:
    """Return the names of tools that the API itself defines (`$web_search`): their calls have another type."""
    own = {tool.name for tool in request.tools if tool.kind == "hosted"}
    calls = [call for message in request.messages for call in calls_of(message) if call.name in own]
    return {
        call.name
        for call in calls
        if call.native is not None and call.native.fragment.get("type") == "builtin_function"
    }


def _name_in_text(request: Request, names: NameMap) -> Callable[[str], str]:
    """Return a function that maps a tool name to its name in text: the projected one if there is one."""
    projected_names = {tool.name for tool in request.tools}
    calls = [call for message in request.messages for call in calls_of(message)]
    projected_names.update(call.name for call in calls if not call.origin.is_approval)
    source = WIRES.get(request.native.api) if request.native is not None else None
    separator = source.name_rule(parse_model(request.model)).same_api_separator if source is not None else ""

    def name_in_text(name: str) -> str:
        projected = names.render(name) if name in projected_names else name
        return projected.replace(separator, ".") if separator else projected

    return name_in_text


def _custom_tool_names(request: Request, rule: NameRule) -> set[str]:
    """Return names used by custom tools only, not by a function or a tool in a namespace."""
    calls = [call for message in request.messages for call in calls_of(message)]
    used = [(item.name, item.kind) for item in (*request.tools, *calls)]
    valid = {name for name, _ in used if 0 < len(name) <= rule.same_api_limit and rule.same_api_separator not in name}
    custom = {name for name, kind in used if kind == "custom" and name in valid}
    return custom - {name for name, kind in used if kind != "custom"}


def _report_dropped(request: Request, target: Wire, report: Report, reported: frozenset[str]) -> None:
    """Report fields that only the source API has, once for each key: they are dropped."""
    native = request.native
    if native is not None and native.api != target.name and native.api in WIRES:
        source = WIRES[native.api]
        rendered_options = (request.options.vendor_options or {}) if target.vendor_options else ()
        known_keys = (
            source.body_keys
            | reported
            | {key for option, key in source.vendor_options.items() if option in rendered_options}
        )
        disabled = {key for key in source.meaningful_when_false - known_keys if native.fragment.get(key) is False}
        for key in sorted({*_find_unknown(native.fragment, known_keys), *disabled}):
            why = f"`{key}` dropped: not supported by {target.name}"
            report.add("dropped", why, path=key, subject=key, fault="projection", level=field_level(key))
    if not target.message_names:
        for name in dict.fromkeys(message.name for message in request.messages if message.name):
            report.add("dropped", "message name dropped: the API has no field for it", subject=name)
    for block in (*request.system, *(block for message in request.messages for block in message.blocks)):
        for text in (block.content or ()) if isinstance(block, ToolResponse) else (block,):
            kind = _special_kind(text, target) if isinstance(text, Text) else None
            if kind is not None:
                report.add("text", f"{kind} rendered as text: not supported by {target.name}", subject=kind)
    report_dropped_fields(request, target, report)


def _special_kind(text: Text, target: Wire) -> str | None:
    """Return the kind of a text that has a form of its own in its API; None if the target keeps it."""
    native = text.native
    if native is not None and native.api == target.name:
        return None
    if text.refusal:
        return None if target.refusals else "refusal"
    fragment: Mapping[str, Any] = native.fragment if native is not None else {}
    return next((kind for kind in _SPECIAL_TEXTS if kind in fragment or kind == fragment.get("type")), None)


def report_dropped_fields(request: Request, target: Wire, report: Report) -> None:
    """Report each key of messages, blocks and tools that only the source API has and that has a non-empty value."""
    items = [
        item for message in request.messages for item in (message, *message.blocks) if not _is_reported_elsewhere(item)
    ]
    dropped: set[tuple[str, str]] = set()
    for item in (*request.system, *items):
        native = item.native
        if native is not None and native.api != target.name and native.api in WIRES:
            place = "messages" if isinstance(item, Message) else "content"
            if not target.vendor_options:
                dropped.update((key, place) for media in _find_media(item) for key in media.extra or ())
            known_keys = WIRES[native.api].item_keys
            if known_keys.issuperset(native.fragment) and not (isinstance(item, Text) and "content" in native.fragment):
                continue
            if isinstance(item, Text):
                # The text of a document begins with its context.
                known_keys |= {"context"}
            dropped.update((key, place) for fragment in _fragments(item) for key in _find_unknown(fragment, known_keys))
    _report_keys(dropped, target, report)
    report_dropped_tool_fields(request.tools, target, report)


def report_dropped_tool_fields(tools: Iterable[Tool], target: Wire, report: Report) -> None:
    """Report dropped keys of tool declarations, also of those listed by an MCP server."""
    dropped: set[tuple[str, str]] = set()
    for tool in tools:
        native = tool.native
        if native is None or native.api == target.name or tool.kind == "hosted":
            continue
        known_keys = MCP_KEYS if native.api == MCP else WIRES[native.api].tool_keys if native.api in WIRES else None
        if known_keys is not None:
            unknown = _find_unknown(native.fragment, known_keys | (tool.extra or {}).keys())
            dropped.update((key, "tools") for key in unknown)
    _report_keys(dropped, target, report)


def _report_keys(dropped: Iterable[tuple[str, str]], target: Wire, report: Report) -> None:
    for key, place in sorted(dropped):
        why = f"`{key}` of {place} dropped: not supported by {target.name}"
        report.add("dropped", why, subject=key, fault="projection", level=field_level(key))


def _find_media(item: Message | Block) -> Iterator[Media]:
    """Yield media blocks, also those inside a result."""
    blocks = (item.content or ()) if isinstance(item, ToolResponse) else (item,)
    yield from (block for block in blocks if isinstance(block, Media))


def _fragments(item: Message | Block) -> Iterator[Mapping[str, Any]]:
    """Yield the fragment of a value; for a text also the content parts inside its item."""
    if item.native is None:
        return
    yield item.native.fragment
    parts = item.native.fragment.get("content") if isinstance(item, Text) else None
    if isinstance(parts, list):
        yield from (part for part in cast("list[Any]", parts) if isinstance(part, dict))


def _find_unknown(fragment: Mapping[str, Any], known: frozenset[str]) -> Iterable[str]:
    """Return unknown keys with a non-empty value. A known key may be a path: `text.format` is one key of `text`."""
    return () if known.issuperset(fragment) else _unknown_keys(fragment, known)


def _unknown_keys(fragment: Mapping[str, Any], known: frozenset[str]) -> Iterator[str]:
    for key, value in fragment.items():
        if key in known or (value in _EMPTY_VALUES and not (value == {} and key in _MEANINGFUL_EMPTY)):
            continue
        inner = frozenset(name.removeprefix(f"{key}.") for name in known if name.startswith(f"{key}."))
        if inner and isinstance(value, dict):
            yield from (f"{key}.{name}" for name in _unknown_keys(cast("dict[str, Any]", value), inner))
        else:
            yield key


def _is_reported_elsewhere(item: Message | Block) -> bool:
    if isinstance(item, Message):
        return bool(item.blocks) and all(isinstance(block, Opaque) for block in item.blocks)
    if isinstance(item, ToolResponse):
        return item.hosted
    return isinstance(item, Opaque) or (isinstance(item, ToolCall) and item.kind == "hosted")
