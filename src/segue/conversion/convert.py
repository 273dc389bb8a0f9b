"""One step of a conversion: parse a body or items after a border, render them for the target, project ids and names.

With an empty state it converts a whole body, which defines the result of every conversion.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from segue.canonical.blocks import Message, Native, ToolCall, ToolResponse, state_of
from segue.canonical.contents import Contents, summarize
from segue.canonical.history import Interaction
from segue.canonical.request import Request, Tool
from segue.conversion.settings import NameInText, Settings, build_name_map
from segue.errors import InputError, format_count
from segue.models import Model, parse_model
from segue.render.constraints import Policy
from segue.render.passes import render
from segue.render.prefix_digest import BoundPrefix
from segue.render.ranges import fit_body
from segue.render.report import IN_CALL_ORDER, Report, Step
from segue.render.transcript import Transcript
from segue.wire.base import Fetch, RenderContext, Wire, guard_fetch
from segue.wire.detect_body import detect_source, find_contradicting_api
from segue.wire.dropped_fields import report_dropped
from segue.wire.ids import IdMap, IdScheme
from segue.wire.mixed_body import MCP
from segue.wire.names import NameMap
from segue.wire.registry import WIRES, api_of_model
from segue.wire.text.names import TEXT_FORMAT_NAMES
from segue.wire.text.prompting import render_as_text, text_constraints
from segue.wire.text.text_format import TextFormat
from segue.wire.tool_formats import id_scheme_for
from segue.wire.vendor_tools.convert import ConvertedTools, convert_vendor_tools, merge_body_fields

_MAX_ID_SHOWN = 64


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
    restore: Callable[[Sequence[Message], Report], tuple[Message, ...]] | None = None
    """Restores reasoning that the caller's API can't hold in parsed messages, in each without regard to the others.

    The same value always restores the same.
    """
    needs_transcript: bool = False
    """Whether the conversion must have a transcript, of which the digest is computed."""

    def source_wire(self, source: Wire) -> Wire:
        """Return the wire that parses the body: the target itself for a same-API body, so that its rules apply."""
        return self.target if source is self.base_wire else source


class RenderedBody(msgspec.Struct, frozen=True):
    """The body of a transcript, with the ids and names used in it."""

    body: dict[str, Any]
    ids: IdMap
    names: NameMap
    report: Report
    settings: Settings
    calls: tuple[ToolCall, ...]
    """The calls of the given messages."""

    @property
    def state(self) -> RenderState:
        """The state that a render of the messages after these continues from."""
        return RenderState(self.ids, self.names, self.settings)


class SettingsChangedError(Exception):
    """The settings of the body differ from those of the earlier render, which they must be equal to."""


class RenderState(msgspec.Struct, frozen=True):
    """What an earlier render of the same request fixed: a render of later messages continues from it.

    Calls keep their ids and tools their names. The settings are not rendered again if they would be the same, and
    its findings are not reported again. A render changes neither ids nor names of the state.
    """

    ids: IdMap
    names: NameMap
    settings: Settings
    bound: BoundPrefix | None = None
    """The earlier messages, where reasoning is bound to them."""
    needs_same_options: bool = False
    """Whether to raise `SettingsChangedError` where the passes choose other options than for the earlier messages."""


class Conversion(msgspec.Struct, frozen=True):
    """A converted request: the parsed source and the rendered target."""

    source: Wire
    request: Request
    transcript: Transcript
    rendered: RenderedBody


class ParsedBody(msgspec.Struct, frozen=True):
    """A parsed body, the model to convert it for, and the report so far."""

    source: Wire
    request: Request
    model: str | None
    report: Report


def parse_body(
    body: Mapping[str, Any], job: ConvertJob, *, replaced_surrogates: int = 0, parsed: Request | None = None
) -> ParsedBody:
    """Detect the API of a body and parse it. `replaced_surrogates` were replaced when the body was decoded.

    `parsed` is the body as the wire `job.source` parses it, if it is parsed already.
    """
    target = job.target
    source = job.source_wire(job.source or WIRES[detect_source(body)])
    if job.source is not None and (other := find_contradicting_api(body, source.name)) is not None:
        raise InputError(f"this is a body of {other}, not of {source.name}")
    request = parsed if parsed is not None and source is job.source else source.parse_request(body)
    report = Report(target=target.name)
    report_surrogates(replaced_surrogates, report)
    model = job.model
    if model is None:
        # All APIs of a provider serve the same models. A server with a profile is another provider.
        same_provider = source.provider == target.provider and WIRES.get(target.name) is target
        model = request.model if source is target or same_provider else None
        if model is None:
            report_dropped_model(request, target, report)
    return ParsedBody(source, request, model, report)


def convert_request(
    body: Mapping[str, Any], job: ConvertJob, *, replaced_surrogates: int = 0, parsed: Request | None = None
) -> Conversion:
    """Convert a body to the target API. The other arguments are those of `parse_body`."""
    body_parsed = parse_body(body, job, replaced_surrogates=replaced_surrogates, parsed=parsed)
    request = body_parsed.request
    if job.restore is not None:
        request = msgspec.structs.replace(request, messages=job.restore(request.messages, body_parsed.report))
    transcript, rendered = render_for(
        request,
        job.target,
        body_parsed.report,
        job.policy,
        model=body_parsed.model,
        tool_format=job.tool_format,
        fetch=job.fetch,
    )
    return Conversion(body_parsed.source, request, transcript, rendered)


def report_dropped_model(request: Request, target: Wire, report: Report) -> None:
    """Report the model of another provider, if the request has one."""
    if request.model is not None:
        why = f"model {request.model!r} dropped: not a model of {target.name}"
        report.add("model", why, subject=request.model)


def report_foreign_model(model: str, target: Wire, report: Report) -> None:
    """Report a model of another vendor than those whose models the target serves."""
    owner = api_of_model(model)
    if owner is None or not target.families or target.serves_any_model:
        return
    if WIRES[owner].families != target.families:
        why = f"model {model!r} kept: it is a model of {owner}, and may not be one of {target.name}"
        report.add("model", why, subject=model, level="changed")


def report_conflicting_results(conflicting: Mapping[str, Interaction], report: Report) -> None:
    """Report the results of a conversation's calls that are not rendered, because the call has another one."""
    for call_id, entry in conflicting.items():
        for response in entry.evidence:
            why = f"second result of a call ({state_of(response)}) stored but not sent"
            report.add("dedupe", why, call_id=call_id)


def report_surrogates(count: int, report: Report) -> None:
    """Report the lone surrogates that were replaced when the body was decoded."""
    if count:
        surrogates = format_count(count, "lone surrogate")
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
    state: RenderState | None = None,
) -> tuple[Transcript, RenderedBody]:
    """Render a canonical request for a wire. With `state`, its messages continue those of an earlier render.

    If `model` is an alias, `resolved_model` is the recorded name of the same model, whose rules apply.
    """
    target_model = parse_model(resolved_model or model or wire.default_model)
    scheme = id_scheme_for(wire, target_model, tool_format, WIRES[wire.on] if wire.on else wire)
    report.target, report.id_scheme, report.model = wire.name, scheme.name, model
    report.tool_format = wire.tool_format if tool_format == "auto" else tool_format
    constraints = wire.constraints(target_model)
    contents = summarize(request.messages)
    report.stage = (Step.TOOLS,)
    if state is None:
        declared = convert_vendor_tools(request, constraints.api, target_model, report)
        request = declared.request
        name_rule = wire.name_rule(parse_model(resolved_model or model))
        names = build_name_map(request, contents, constraints.api, name_rule)
    else:
        declared = state.settings.declared
        request = msgspec.structs.replace(declared.request, messages=request.messages)
        names = state.names.copy()
    text_format = _select_text_format(tool_format, target_model)
    paired = constraints if text_format is None else text_constraints(constraints)
    report.stage = (Step.PASSES,)
    transcript = render(
        request,
        paired,
        policy,
        report,
        model=model,
        resolved_model=resolved_model,
        project_name=NameInText(request, contents, names),
        contents=contents,
        earlier=state and state.bound,
    )
    reported = request if state is None else _continue_reports(request, transcript, state)
    report.stage = (Step.BODY_FIELDS,)
    report_dropped(reported, contents, wire, report, declared.converted_keys)
    ids = _assign_ids(transcript, scheme, names, state)
    rendered_transcript = transcript
    if text_format is not None:
        report.stage = (Step.TEXT_FORMAT,)
        as_text = render_as_text(transcript, text_format, ids, names, report)
        report.stage = (Step.PASSES_AS_TEXT,)
        rendered_transcript = render(as_text, constraints, policy, report, model=model, resolved_model=resolved_model)
    report.stage = (Step.BODY,)
    context = RenderContext(ids, names, report, fetch and guard_fetch(fetch))
    body, settings = _render_body(rendered_transcript, wire, context, declared, state and state.settings)
    report.stage = IN_CALL_ORDER
    sent = transcript.contents
    for call in sent.calls:
        if call.kind != "hosted":
            sent_id = ids.render(call.id)
            report.emitted_calls.append((call.id, sent_id))
            if call.extra:
                _report_duplicate_key(call, wire, report)
            _report_new_id(call, sent_id, ids, wire, policy, report)
    for response in sent.results:
        if not response.hosted and (sent_id := ids.find(response.call_id)) is not None:
            report.emitted_results.append((response.call_id, sent_id))
    report.stage = (Step.MIXED,)
    if transcript.is_same_api:
        _report_mixed(reported, contents, report)
    hosted = {call.name for call in sent.calls if call.kind == "hosted"} if sent.has_hosted else ()
    for name, projected in sorted(names.changed):
        if transcript.is_same_api and name in hosted:
            continue
        report.stage = (Step.NAMES, name)
        report.add("name", f"tool {name!r} renamed to {projected!r}", subject=name)
    report.stage = (Step.PARAMETERS,)
    for tool, name, projected in names.parameters.changed:
        report.add("name", f"parameter {name!r} of {tool} renamed to {projected!r}", subject=name)
    report.stage = (Step.REPLY,)
    return transcript, RenderedBody(body, ids, names, report, settings, contents.calls)


def _assign_ids(transcript: Transcript, scheme: IdScheme, names: NameMap, state: RenderState | None) -> IdMap:
    """Assign an id to every call; calls of the earlier render keep theirs."""
    if state is None:
        return IdMap.project(transcript, scheme, names.render)
    ids = state.ids.fork()
    ids.add_calls(transcript.contents.calls, names.render)
    return ids


def _render_body(
    transcript: Transcript, wire: Wire, context: RenderContext, declared: ConvertedTools, settings: Settings | None
) -> tuple[dict[str, Any], Settings]:
    """Render the body, and return its settings too; only the conversation is rendered if it has the earlier ones."""
    key = wire.conversation_key
    if settings is not None and settings.are_settings_of(transcript):
        return {**settings.body, key: wire.render_items(transcript, context)}, settings
    body = merge_body_fields(wire.render_request(transcript, context), declared.body_fields)
    body = fit_body(body, transcript.constraints.body_ranges, context.report)
    return body, Settings(declared, transcript.system, transcript.tools, transcript.options, {**body, key: []})


def _continue_reports(request: Request, transcript: Transcript, state: RenderState) -> Request:
    """Return the request with only its messages: the earlier render has reported on the settings."""
    if state.needs_same_options and transcript.options != state.settings.options:
        raise SettingsChangedError
    native = request.native and Native(request.native.api, {})
    return msgspec.structs.replace(request, system=(), tools=(), native=native)


def _select_text_format(name: str, model: Model) -> TextFormat | None:
    """Return the text tool format of this name, if it is one. The formats are imported only then."""
    if name not in TEXT_FORMAT_NAMES:
        return None
    from segue.wire.text.registry import select_render_format

    return select_render_format(name, model)


def _report_mixed(request: Request, contents: Contents, report: Report) -> None:
    """Report the calls, results and tools of a same-API body that had the form of another API."""
    own_api = request.native.api if request.native is not None else ""

    def find_other_form(item: ToolCall | ToolResponse | Tool) -> str | None:
        api = item.native.api if item.native is not None else own_api
        return api if api != own_api and (api in WIRES or api == MCP) else None

    for call in contents.calls:
        if form := find_other_form(call):
            why = f"tool call in the form of {form} sent in that of {own_api}"
            report.add("tools", why, call_id=call.id, subject=call.name)
    for response in contents.results:
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


def _report_new_id(call: ToolCall, sent: str, ids: IdMap, wire: Wire, policy: Policy, report: Report) -> None:
    """Report a same-API id that is missing or could not be kept, and one that several calls share, also cross-API."""
    raw_id = call.origin.raw_id
    same_form = call.native is not None and call.native.api == wire.name
    same_api = policy.ids == "auto" and same_form and call.origin.provider == wire.provider
    if not sent or not (same_api or ids.is_repeated(call.id)):
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
