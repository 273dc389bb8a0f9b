"""The template of a target body: everything but the conversation, made by the full pipeline.

The full pipeline converts the rest of a body with a minimal conversation (see `segue.fast.traits`). Templates are kept
by the bytes of the rest, the parameters of the conversion and the traits of the conversation.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from functools import lru_cache
from typing import Any

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from segue.canonical.fast_history import REASONING, FastHistory, FastPathUnsupportedError, assign_ids
from segue.canonical.json import encode_json, parse_json
from segue.canonical.request import Request
from segue.fast.progress import Progress
from segue.fast.report import Calls, ConversationReport, ReportTemplate, copy_calls, make_report_template
from segue.fast.split import SplitBody, require_fast_path
from segue.fast.traits import Dependencies, SeenTraits, choose_events, find_dependencies, find_items
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
_list_decoder = msgspec.json.Decoder(list[Raw])


class BodyTemplate(Struct, frozen=True):
    """The target body without its conversation: the JSON before and after it, and the system text that begins it.

    If `variable` is set, the value of this key stands between `after` and `end`.
    """

    fast_path: FastPath
    before: bytes
    after: bytes
    end: bytes
    variable: str | None
    system_items: list[Raw]
    options: FastRenderOptions
    ids: IdMap
    fields: BodyFields
    declared: frozenset[str]
    report: ReportTemplate

    def project(self, history: FastHistory, source: Wire, earlier: Progress) -> None:
        """Fill in the names and ids that the target gets, for a history that follows earlier events."""
        names, same_api = self.fields.names, self.options.keeps_order
        sent_names = {name: names.render(name) for name in set(history.names)}
        for name, sent in sent_names.items():
            if names.parameters.has_changed(name) or (sent != name and (same_api or name not in self.declared)):
                raise FastPathUnsupportedError
        if len(self.declared) > _MAX_TOOLS and len(sent_names.keys() | earlier.names) > 1:
            raise FastPathUnsupportedError
        history.sent_names = [sent_names[name] for name in history.names]
        history.sent_ids = self.ids.assign_fast(history, source.provider, earlier.sent_ids)
        # Same-API items must keep their ids.
        if same_api and None not in history.raw_ids and history.sent_ids != history.raw_ids:
            raise FastPathUnsupportedError

    @property
    def system(self) -> bytes:
        """The JSON of the system text."""
        return encode_json(self.system_items)

    def render(self, history: FastHistory) -> list[Any]:
        """Return the target's items. It modifies the history, so call it once."""
        return self.fast_path.render(history, render_events(history, self.options), self.options)

    def encode_variable(self, given: bytes) -> bytes:
        """Return the value of the variable key as it is sent, if it is."""
        return b"" if self.variable is None else encode_json(parse_json(given)[0])

    def build_fields(self, variable: bytes) -> BodyFields:
        """Return the fields of a body with this value of the variable key."""
        return self.fields if self.variable is None else self.fields.replace(self.variable, Raw(variable))

    def build_report(self, progress: Progress) -> Report:
        """Return the report of a conversation with all these events."""
        return ConversationReport(progress, self.report, keeps_order=self.options.keeps_order)


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
    is_whole: bool
    """Whether it is the whole conversation, not only the minimal one."""


class _Unknown(Struct, frozen=True):
    """The place of a template that was not made yet."""


_UNKNOWN = _Unknown()


class FoundTemplate(Struct, frozen=True):
    """The template of a conversation, and its rest, which has those of others."""

    template: BodyTemplate
    rest: BodyRest
    first: SeenTraits
    """The traits of the events before the cut."""
    traits: frozenset[Hashable]
    """All traits of the conversation."""


class BodyRest:
    """The templates of one rest of a body by the traits of the conversation; None if the full pipeline is needed."""

    __slots__ = ("_templates", "dependencies", "is_known", "size")

    def __init__(self, dependencies: Dependencies, size: int) -> None:
        self.dependencies = dependencies
        self.is_known = False
        self.size = size
        self._templates: dict[frozenset[Hashable], BodyTemplate | _Source | None] = {}

    def find_template(
        self, history: FastHistory, cut: int, earlier: SeenTraits, job: ConvertJob
    ) -> FoundTemplate | None:
        """Return the template for a conversation with a history after earlier events; None if there is none yet.

        Raises an error if the full pipeline is needed.
        """
        # Whether reasoning is rendered as text depends on each block.
        is_text = job.policy.reasoning == "text" and not self.dependencies.same_api
        if (is_text and REASONING in history.marks) or earlier.dependencies != self.dependencies:
            raise FastPathUnsupportedError
        first = earlier.extend(history, 0, cut)
        return self._require_template(first, first.extend(history, cut, len(history.events)).find_all(), job)

    def make_template(self, history: FastHistory, cut: int, source: _Source, job: ConvertJob) -> FoundTemplate | None:
        """Return the template for a conversation that is made from this source; None if it is not needed now."""
        first = SeenTraits(self.dependencies).extend(history, 0, cut)
        traits = first.extend(history, cut, len(history.events)).find_all()
        if len(self._templates) >= _MAX_TEMPLATES:
            self._templates.clear()
        self._templates[traits] = source
        return None if source.is_whole else self._require_template(first, traits, job)

    def _require_template(
        self, first: SeenTraits, traits: frozenset[Hashable], job: ConvertJob
    ) -> FoundTemplate | None:
        template = self._templates.get(traits, _UNKNOWN)
        if isinstance(template, _Unknown):
            return None
        if isinstance(template, _Source):
            template = self._templates[traits] = _build_template(template, job)
        if template is None:
            raise FastPathUnsupportedError
        return FoundTemplate(template, self, first, traits)


@lru_cache(maxsize=_CACHE_SIZE)
def _find_rest(dependencies: Dependencies, size: int, *_key: object) -> BodyRest:
    return BodyRest(dependencies, size)


def clear_templates() -> None:
    """Clear the cached templates."""
    _find_rest.cache_clear()


def find_body_template(history: FastHistory, body: SplitBody, job: ConvertJob, cut: int) -> FoundTemplate | Conversion:
    """Return the template for a conversation, or the finished conversion if it is its own minimal conversation.

    The events are divided at the `cut`.
    """
    rest = _lookup_rest(history, body, job)
    if rest.is_known:
        found = rest.find_template(history, cut, SeenTraits(rest.dependencies), job)
        if found is not None:
            return found
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
    return rest.make_template(history, cut, _Source(smaller, _copy_conversion(conversion), is_whole), job) or conversion


def _choose_events(history: FastHistory, dependencies: Dependencies) -> Sequence[int]:
    """Return the events to convert: those of the minimal conversation, or all if they are not many more."""
    count = len(history.events)
    traits = SeenTraits(dependencies).extend(history, 0, count).locate_all()
    chosen = choose_events(history, traits, dependencies)
    return chosen if count > len(chosen) + _MAX_EXTRA_EVENTS else range(count)


def _lookup_rest(history: FastHistory, body: SplitBody, job: ConvertJob) -> BodyRest:
    unknown = Dependencies(same_api=body.sent is not None, is_detected=job.source is None)
    head = encode_json(body.items[: history.system_count]) if history.system_count else b""
    rest = body.rest.copy()
    if body.variable is not None:
        # It is not part of the template, but it must be valid.
        if parse_json(rest[body.variable])[1]:
            raise FastPathUnsupportedError
        rest[body.variable] = b"{"
    size = sum(map(len, rest.values())) + len(head)
    if size > _MAX_CACHED_SIZE:
        return BodyRest(unknown, size)
    wires = _IdentityKey(body.source), _IdentityKey(job.target)
    return _find_rest(unknown, size, *wires, job.model, job.tool_format, job.policy, head, *rest, *rest.values())


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
    variable = body.variable if body.sent is not None and body.variable in rendered else None
    if variable is not None and bytes(rendered[variable]) != encode_json(parse_json(body.rest[variable])[0]):
        return None
    before, after, end = _encode_around(rendered, fast_path.conversation_key, variable)
    fields = {key: value for key, value in rendered.items() if key != fast_path.conversation_key}
    template = BodyTemplate(
        fast_path,
        before,
        after,
        end,
        variable,
        [],
        FastRenderOptions(
            converted.constraints,
            converted.report.id_scheme,
            insert_placeholders=any(finding.message == PLACEHOLDER_INSERTED for finding in converted.report.findings),
            keeps_order=body.sent is not None,
        ),
        converted.ids.copy_empty(),
        BodyFields(converted.request, converted.names, fields),
        frozenset(tool.name for tool in converted.request.tools),
        converted.report,
    )
    try:
        history = parse_history(body)
        template.project(history, body.source, Progress())
        report = template.build_report(Progress().extend(history, 0, len(history.events)))
        items = template.render(history) if body.sent is None else body.sent.items
        # The findings are derived here, so that none of a later conversation can be unsupported.
        has_same_report = report.findings == converted.report.findings and copy_calls(report) == converted.calls
    except FastPathUnsupportedError:
        return None
    head = len(expected) - len(items)
    if head < 0 or encode_json(items) != encode_json(expected[head:]) or not all(map(_is_system, expected[:head])):
        return None
    if not has_same_report:
        return None
    return replace(template, system_items=[item.copy() for item in expected[:head]])


def _encode_around(body: dict[str, Raw], key: str, variable: str | None) -> tuple[bytes, bytes, bytes]:
    """Encode a body before the value of a key, between it and that of the later `variable` key, and after that."""
    parts: list[list[bytes]] = [[]]
    separator = b"{"
    for name, value in body.items():
        parts[-1] += separator, encode_json(name), b":"
        separator = b","
        if name in (key, variable):
            parts.append([])
        else:
            parts[-1].append(bytes(value))
    parts[-1].append(b"}")
    before, after, end = map(b"".join, [*parts, []][:3])
    return before, after, end


def parse_history(body: SplitBody) -> FastHistory:
    """Return the conversation of a body with canonical ids."""
    history = body.fast_path.parse(body.items)
    assign_ids(history, body.source.provider)
    return history


def _is_system(item: Raw) -> bool:
    return bytes(decode_members(item).get("role", b"")) in (b'"system"', b'"developer"')
