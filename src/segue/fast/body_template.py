"""The template of a target body: everything but the conversation, made by the full pipeline from a sample."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

import msgspec
from msgspec import Raw, Struct

from segue.canonical.fast_history import FastHistory, FastPathUnsupportedError, FastTurn, assign_ids
from segue.canonical.json import encode_json
from segue.fast.report import ReportTemplate, build_report_template
from segue.fast.sample import Shape, choose_sample, find_shapes, finding_causes, last_user_index
from segue.fast.split import SplitBody, require_fast_path
from segue.pipeline import Conversion, ConvertJob, convert_request
from segue.render.fast_passes import FastRenderOptions, render_events
from segue.render.reasoning_options import PLACEHOLDER_INSERTED
from segue.render.response_format import has_json_word
from segue.wire.fast_path import FastPath
from segue.wire.ids import IdMap
from segue.wire.names import NameMap
from segue.wire.vendor_tools.convert import is_deferred

# How many templates are cached, and the size limit of a cached one.
_CACHE_SIZE = 32
_MAX_CACHED_SIZE = 131_072
# With more tools, the declarations may depend on the calls: called tools come first where not all can be declared.
_MAX_TOOLS = 64


class BodyTemplate(Struct, frozen=True):
    """The target body without its conversation; `system_items` is system text before it in the same list.

    `verified` are the shapes of events, and their traits, that the fast path renders as the full pipeline does.
    """

    fast_path: FastPath
    body: dict[str, Any]
    system_items: list[Raw]
    options: FastRenderOptions
    ids: IdMap
    names: NameMap
    report_template: ReportTemplate
    tool_count: int
    verified: set[object]


class _CacheEntry:
    """The template cached under one key."""

    __slots__ = ("template",)

    def __init__(self) -> None:
        self.template: BodyTemplate | None = None


@lru_cache(maxsize=_CACHE_SIZE)
def _cache_entry(*_key: object) -> _CacheEntry:
    return _CacheEntry()


def build_body_template(history: FastHistory, body: SplitBody, job: ConvertJob) -> BodyTemplate:
    shapes = find_shapes(history)
    head = encode_json(body.items[: history.system_count]) if history.system_count else b""
    is_cacheable = sum(map(len, body.rest.values())) + len(head) < _MAX_CACHED_SIZE
    entry = _cache_entry(*_body_key(body, job), head, *_history_key(history, shapes)) if is_cacheable else _CacheEntry()
    template = entry.template
    if template is None or not template.verified.issuperset(shapes):
        template = entry.template = _verify_sample(
            history, shapes, body, job, template.verified if template is not None else set()
        )
    names = set(history.names)
    if any(template.names.render(name) != name for name in names) or (
        template.tool_count > _MAX_TOOLS and len(names) > 1
    ):
        raise FastPathUnsupportedError
    return template


class _IdentityKey:
    """A hashable key that compares by identity."""

    __slots__ = ("value",)

    def __init__(self, value: object) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _IdentityKey) and other.value is self.value

    def __hash__(self) -> int:
        return id(self.value)


def _body_key(body: SplitBody, job: ConvertJob) -> tuple[object, ...]:
    wires = (_IdentityKey(body.source), _IdentityKey(job.target), job.source is None)
    return (*wires, job.model, job.tool_format, job.policy, *body.rest, *body.rest.values())


def _history_key(history: FastHistory, shapes: Iterable[Shape]) -> tuple[object, ...]:
    """Return the part of the cache key for the history: everything in it that the template depends on."""
    events = history.events
    last = events[-1]
    ends = (events[0], last, events[min(last_user_index(events) + 1, len(events) - 1)])
    kinds = [isinstance(event, FastTurn) and event.start < event.stop for event in ends]
    last_character = last.content[-1:] if isinstance(last.content, str) else (last.content or [""])[-1][-1:]
    opening = events[0].content
    first = opening if isinstance(opening, str) else "\n".join(opening or ())
    causes = map(any, zip(*map(finding_causes, shapes), strict=True))
    return (*map(type, ends), *kinds, last_character.isspace(), has_json_word(first), *causes)


def _verify_sample(
    history: FastHistory, shapes: Mapping[Shape, int], body: SplitBody, job: ConvertJob, verified: set[object]
) -> BodyTemplate:
    """Convert a sample by the full pipeline, and check that the fast path renders it the same."""
    indexes, covered = choose_sample(history, shapes, len(body.items), verified)
    items = [body.items[index] for index in indexes]
    sample_items = (
        msgspec.to_builtins(items) if body.original_items is None else [body.original_items[index] for index in indexes]
    )
    conversion = convert_request(body.with_items(sample_items), job)
    if conversion.source is not body.source or not body.fast_path.supports_request(conversion.request):
        raise FastPathUnsupportedError
    # Which deferred tools are loaded depends on the calls, and a sample does not have all calls.
    if body.original_items is None and any(map(is_deferred, conversion.request.tools)):
        raise FastPathUnsupportedError
    sample = body.fast_path.parse(items)
    assign_ids(sample, body.source.provider)
    sample.sent_ids = conversion.rendered.ids.copy_empty().assign_fast(sample, body.source.provider)
    template = build_report_template(sample, conversion)
    fast_path, rendered = require_fast_path(job.target), conversion.rendered
    options = _render_options(history, conversion)
    expected: list[Any] = rendered.body[fast_path.conversation_key]
    actual = (
        fast_path.render(sample, render_events(sample, options), options)
        if body.original_items is None
        else sample_items
    )
    head = len(expected) - len(actual)
    if head < 0 or encode_json(actual) != encode_json(expected[head:]) or not all(map(_is_system, expected[:head])):
        raise FastPathUnsupportedError
    finished = {
        key: Raw(b"" if key == fast_path.conversation_key else encode_json(value))
        for key, value in rendered.body.items()
    }
    return BodyTemplate(
        fast_path,
        finished,
        [Raw(encode_json(item)) for item in expected[:head]],
        options,
        rendered.ids,
        rendered.names,
        template,
        len(conversion.request.tools),
        verified | covered,
    )


def _is_system(item: dict[str, Any]) -> bool:
    return item.get("role") in ("system", "developer")


def _render_options(history: FastHistory, conversion: Conversion) -> FastRenderOptions:
    constraints, last = conversion.transcript.constraints, history.events[-1]
    return FastRenderOptions(
        constraints,
        conversion.rendered.report.id_scheme,
        insert_placeholders=any(
            finding.message == PLACEHOLDER_INSERTED for finding in conversion.rendered.report.findings
        ),
        append_user_message=constraints.ending != "free" and isinstance(last, FastTurn) and last.start == last.stop,
    )
