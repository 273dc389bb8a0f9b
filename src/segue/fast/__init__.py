"""The fast path: typed parsing and rendering of regular conversations, without the passes of the full pipeline.

The full pipeline converts the rest of a body (model, system, tools, options) with a minimal conversation: one event for
each trait that the rest or a finding can depend on. Its result is a *body template*, kept for later turns of the
conversation and for others with the same rest. The items of the whole conversation are then parsed and rendered with
types. Any other body is converted by the full pipeline; the tests compare both on every shape that is accepted.

A conversation that was converted is remembered (`segue.fast.memory`): of a body that continues it, only the new items
are converted. The first body of its kind is converted by the full pipeline, because what follows is its continuation
more often than another conversation with the same rest.
"""

from __future__ import annotations

from threading import Event

import msgspec
from msgspec import Struct

from segue.canonical.call_history import CallColumns, CallHistory
from segue.canonical.fast_history import FastPathUnsupportedError
from segue.canonical.json import encode_json, parse_json_object
from segue.errors import SegueError
from segue.fast.body_template import clear_templates, find_body_template, parse_history
from segue.fast.memory import ConversationMemory
from segue.fast.split import split_body
from segue.pipeline import Conversion, ConvertJob
from segue.render.report import Report
from segue.sent_body import SentBody, encode_edges
from segue.wire.base import Wire
from segue.wire.names import clear_projected_names
from segue.wire.schema import clear_rendered_schemas
from segue.wire.text.names import TEXT_FORMAT_NAMES


class FastConversion(Struct, frozen=True):
    """A body converted by the fast path."""

    source: Wire
    data: bytes
    report: Report
    sent_body: SentBody


conversations = ConversationMemory()
"""The conversations that `convert_fast` remembers."""
_switched_off = Event()
_UNSUPPORTED = (FastPathUnsupportedError, SegueError, msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
# A regular conversation is remembered if it has so many calls: the fast path converts shorter ones in less time.
_MIN_CALLS = 16


def enable(enabled: bool) -> None:
    """Switch the whole package on or off: without it, all bodies are converted by the full pipeline."""
    if enabled:
        _switched_off.clear()
    else:
        _switched_off.set()


def convert_fast(data: bytes, job: ConvertJob) -> FastConversion | Conversion | None:
    """Return the converted body, or None if the full pipeline is needed.

    It is a `Conversion` of the full pipeline where a template was made from the whole body.
    """
    if _switched_off.is_set():
        return None
    continued = convert_continued(data, job)
    if continued is not None:
        return continued
    if conversations.is_first(data, job):
        return None
    converted = convert_regular(data, job)
    if isinstance(converted, FastConversion) and len(converted.report.seen) >= _MIN_CALLS and job.fetch is None:
        conversations.add_fast(data, converted.source, job)
    return converted


def convert_continued(data: bytes, job: ConvertJob) -> FastConversion | Conversion | None:
    """Return the converted body if it continues a remembered conversation."""
    if job.fetch is not None:
        return None
    try:
        continued = conversations.convert(data, job)
    except _UNSUPPORTED:
        return None
    if continued is None or isinstance(continued, Conversion):
        return continued
    return FastConversion(continued.source, continued.data, continued.report, continued.sent_body)


def remember(data: bytes, conversion: Conversion, job: ConvertJob) -> bool:
    """Remember the conversation of a body that was converted whole. Return whether its rendered body is kept."""
    return job.fetch is None and not _switched_off.is_set() and conversations.add(data, conversion, job)


def convert_regular(data: bytes, job: ConvertJob) -> FastConversion | Conversion | None:
    """Return the converted body if its history is regular; a `Conversion` where a template was made from all of it."""
    if not _is_supported(job):
        return None
    try:
        return _convert(data, job)
    except _UNSUPPORTED:
        return None


def _is_supported(job: ConvertJob) -> bool:
    return job.tool_format not in TEXT_FORMAT_NAMES and job.target.fast_path is not None


def clear() -> None:
    """Clear everything that was cached from earlier conversions, also the names and schemas of their tools."""
    conversations.clear()
    clear_projected_names()
    clear_rendered_schemas()
    clear_templates()


def _convert(data: bytes, job: ConvertJob) -> FastConversion | Conversion:
    body = split_body(data, job)
    history = parse_history(body)
    template = find_body_template(history, body, job)
    if isinstance(template, Conversion):
        return template
    source = body.source
    calls = CallHistory(
        lambda: source.parse_request(parse_json_object(data)[0]).messages,
        CallColumns(source.provider, history.ids, history.raw_ids, history.names),
    )
    items, report = template.render(history, body)
    # Before the body is encoded: a large item is encoded here too, and released.
    sent_body = SentBody(template.fields, calls, encode_edges(items))
    rendered = encode_json({**template.body, template.fast_path.conversation_key: items})
    return FastConversion(source, rendered, report, sent_body)
