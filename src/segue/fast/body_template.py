"""The template of a target body: everything but the conversation, made by the full pipeline.

The full pipeline converts the rest of a body with a minimal conversation (see `segue.fast.traits`). Templates are kept
by the bytes of the rest, the parameters of the conversion and the traits of the conversation.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from functools import lru_cache
from typing import Any, cast

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from segue.canonical.fast_history import REASONING, FastHistory, FastPathUnsupportedError, assign_ids
from segue.canonical.json import encode_json, parse_json
from segue.canonical.request import Request
from segue.fast.report import Calls, ReportTemplate, build_report, copy_calls, make_report_template
from segue.fast.split import SplitBody, require_fast_path
from segue.fast.traits import Dependencies, choose_events, find_dependencies, find_items, locate_traits
from segue.pipeline import Conversion, ConvertJob, convert_request
from segue.render.constraints import Constraints
from segue.render.fast_passes import FastRenderOptions, render_events
from segue.render.reasoning_options import PLACEHOLDER_INSERTED
from segue.render.report import Report
from segue.sent_body import BodyFields
from segue.wire.base import Wire
from segue.wire.fast_path import FastPath, decode_members
from segue.wire.ids import IdMap
from segue.wire.names import NameMap

# How many rests of bodies are kept, and the size limit of one.
_CACHE_SIZE = 32
_MAX_CACHED_SIZE = 262_144
# With more tools, the declarations may depend on the calls: called tools come first where not all can be declared.
_MAX_TOOLS = 64
# A conversation with so many events more than its minimal one is converted as a whole for a new template.
_MAX_EXTRA_EVENTS = 16
# How many templates one rest of a body may have.
_MAX_TEMPLATES = 16
_UNKNOWN = object()
# The beginning of a JSON object with members.
_NON_EMPTY = b'{"'
_list_decoder = msgspec.json.Decoder(list[Raw])


class BodyTemplate(Struct, frozen=True):
    """The target body without its conversation; `system_items` is system text before it in the same list."""

    fast_path: FastPath
    body: dict[str, Any]
    system_items: list[Raw]
    options: FastRenderOptions
    ids: IdMap
    fields: BodyFields
    declared: frozenset[str]
    report: ReportTemplate

    def render(self, history: FastHistory, body: SplitBody) -> tuple[list[Any], Report]:
        """Return the target's items and the report of a conversation. It modifies the history, so call it once."""
        self._project(history, body)
        # Before `render_events`, which merges neighbours.
        report = build_report(history, self.report, self.options)
        if body.original_items is not None:
            return [*self.system_items, *body.original_items], report
        events = render_events(history, self.options)
        return [*self.system_items, *self.fast_path.render(history, events, self.options)], report

    def _project(self, history: FastHistory, body: SplitBody) -> None:
        """Fill in the names and ids that the target gets."""
        names, same_api = self.fields.names, body.original_items is not None
        sent_names = {name: names.render(name) for name in set(history.names)}
        for name, sent in sent_names.items():
            if names.parameters.has_changed(name) or (sent != name and (same_api or name not in self.declared)):
                raise FastPathUnsupportedError
        if len(self.declared) > _MAX_TOOLS and len(sent_names) > 1:
            raise FastPathUnsupportedError
        history.sent_names = [sent_names[name] for name in history.names]
        history.sent_ids = self.ids.copy_empty().assign_fast(history, body.source.provider)
        # Same-API items must keep their ids.
        if same_api and None not in history.raw_ids and history.sent_ids != history.raw_ids:
            raise FastPathUnsupportedError


class _ConvertedBody(Struct, frozen=True):
    """A result of the full pipeline, with copies of the body and the report, which the caller may change."""

    source: Wire
    request: Request
    """The canonical request without its messages."""
    data: bytes
    ids: IdMap
    names: NameMap
    constraints: Constraints
    report: ReportTemplate
    calls: Calls


def _copy_conversion(conversion: Conversion) -> _ConvertedBody:
    rendered = conversion.rendered
    return _ConvertedBody(
        conversion.source,
        replace(conversion.request, messages=()),
        encode_json(rendered.body),
        rendered.ids,
        rendered.names,
        conversion.transcript.constraints,
        make_report_template(rendered.report),
        copy_calls(rendered.report),
    )


class _Source(Struct, frozen=True):
    """What a template is built from when it is needed: a body with a minimal conversation, and its conversion."""

    body: SplitBody
    converted: _ConvertedBody


class _Rest:
    """The templates of one rest of a body by the traits of the conversation; None if the full pipeline is needed."""

    __slots__ = ("dependencies", "is_known", "templates")

    def __init__(self, dependencies: Dependencies) -> None:
        self.dependencies = dependencies
        self.is_known = False
        self.templates: dict[frozenset[Hashable], BodyTemplate | _Source | None] = {}


@lru_cache(maxsize=_CACHE_SIZE)
def _find_rest(dependencies: Dependencies, *_key: object) -> _Rest:
    return _Rest(dependencies)


def clear_templates() -> None:
    """Clear the cached templates."""
    _find_rest.cache_clear()


def find_body_template(history: FastHistory, body: SplitBody, job: ConvertJob) -> BodyTemplate | Conversion:
    """Return the template for a conversation, or the finished conversion if it is its own minimal conversation."""
    # Whether reasoning is rendered as text depends on each block.
    if job.policy.reasoning == "text" and REASONING in history.marks and body.original_items is None:
        raise FastPathUnsupportedError
    rest = _lookup_rest(history, body, job)
    if rest.is_known:
        traits = frozenset(locate_traits(history, rest.dependencies))
        template = rest.templates.get(traits, _UNKNOWN)
        if template is not _UNKNOWN:
            return _require_template(rest, traits, cast("BodyTemplate | _Source | None", template), job)
    while True:
        known = rest.dependencies
        indexes = _choose_events(history, known)
        smaller = body.with_items(find_items(history, indexes, len(body.items)))
        conversion = convert_request(smaller.decode(), job)
        dependencies = find_dependencies(conversion.request, conversion.transcript.constraints, known)
        is_whole = len(indexes) == len(history.events)
        rest.dependencies, rest.is_known = dependencies, True
        # The first conversion lists the deferred tools; the calls of these are part of the minimal conversation.
        if is_whole or dependencies.deferred == known.deferred:
            break
    traits = frozenset(locate_traits(history, dependencies))
    if len(rest.templates) >= _MAX_TEMPLATES:
        rest.templates.clear()
    rest.templates[traits] = source = _Source(smaller, _copy_conversion(conversion))
    if is_whole:
        return conversion
    return _require_template(rest, traits, source, job)


def _choose_events(history: FastHistory, dependencies: Dependencies) -> Sequence[int]:
    """Return the events to convert: those of the minimal conversation, or all if they are not many more."""
    chosen = choose_events(history, locate_traits(history, dependencies), dependencies)
    return chosen if len(history.events) > len(chosen) + _MAX_EXTRA_EVENTS else range(len(history.events))


def _require_template(
    rest: _Rest, traits: frozenset[Hashable], template: BodyTemplate | _Source | None, job: ConvertJob
) -> BodyTemplate:
    if isinstance(template, _Source):
        template = rest.templates[traits] = _build_template(template, job)
    if template is None:
        raise FastPathUnsupportedError
    return template


def _lookup_rest(history: FastHistory, body: SplitBody, job: ConvertJob) -> _Rest:
    unknown = Dependencies(same_api=body.original_items is not None, is_detected=job.source is None)
    head = encode_json(body.items[: history.system_count]) if history.system_count else b""
    if sum(map(len, body.rest.values())) + len(head) > _MAX_CACHED_SIZE:
        return _Rest(unknown)
    dropped_keys = body.fast_path.dropped_keys if body.original_items is None else frozenset[str]()
    wires = _IdentityKey(body.source), _IdentityKey(job.target)
    values = list(body.rest.values())
    for index, (key, value) in enumerate(body.rest.items()):
        if key in dropped_keys and value.startswith(_NON_EMPTY):
            # It is not part of the template, but it must be valid.
            if parse_json(value)[1]:
                raise FastPathUnsupportedError
            values[index] = _NON_EMPTY
    return _find_rest(unknown, *wires, job.model, job.tool_format, job.policy, head, *body.rest, *values)


class _IdentityKey:
    """A hashable key that compares by identity."""

    __slots__ = ("value",)

    def __init__(self, value: object) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _IdentityKey) and other.value is self.value

    def __hash__(self) -> int:
        return id(self.value)


def _build_template(source: _Source, job: ConvertJob) -> BodyTemplate | None:
    """Return the template of a converted body with a minimal conversation.

    It is None if the fast path converts this body in another way: the caller's policy, a rule of the target or the rest
    of the body needs the full pipeline.
    """
    body, converted = source.body, source.converted
    if converted.source is not body.source or not body.fast_path.supports_request(converted.request):
        return None
    fast_path = require_fast_path(job.target)
    # Copies, so that the template does not hold the whole body.
    rendered = {name: value.copy() for name, value in decode_members(converted.data).items()}
    expected = _list_decoder.decode(rendered[fast_path.conversation_key])
    fields = {key: value for key, value in rendered.items() if key != fast_path.conversation_key}
    template = BodyTemplate(
        fast_path,
        rendered | {fast_path.conversation_key: Raw()},
        [],
        FastRenderOptions(
            converted.constraints,
            converted.report.id_scheme,
            insert_placeholders=any(finding.message == PLACEHOLDER_INSERTED for finding in converted.report.findings),
            keeps_order=body.original_items is not None,
        ),
        converted.ids,
        BodyFields(converted.request, converted.names, fields),
        frozenset(tool.name for tool in converted.request.tools),
        converted.report,
    )
    try:
        items, report = template.render(parse_history(body), body)
    except FastPathUnsupportedError:
        return None
    head = len(expected) - len(items)
    if head < 0 or encode_json(items) != encode_json(expected[head:]) or not all(map(_is_system, expected[:head])):
        return None
    if report.findings != converted.report.findings or copy_calls(report) != converted.calls:
        return None
    return replace(template, system_items=[item.copy() for item in expected[:head]])


def parse_history(body: SplitBody) -> FastHistory:
    """Return the conversation of a body with canonical ids."""
    history = body.fast_path.parse(body.items)
    assign_ids(history, body.source.provider)
    return history


def _is_system(item: Raw) -> bool:
    return bytes(decode_members(item).get("role", b"")) in (b'"system"', b'"developer"')
