"""The fast path: converts regular histories with typed decoding and encoding, without the passes of the full pipeline.

The full pipeline converts a *sample* of the conversation, one event of each kind that occurs, with all other fields of
the body. Its result is the template for the rest of the target body (model, system, tools, options) and for the
findings. The fast path renders the same sample, and renders the whole conversation only if both outputs are byte-equal;
same-API the sample must come back unchanged. Templates are cached, for later turns of the conversation and for others
with the same tools. All other bodies are converted by the full pipeline.
"""

from __future__ import annotations

import msgspec
from msgspec import Struct

from segue.canonical.fast_history import FastPathUnsupportedError, assign_ids
from segue.canonical.json import encode_json
from segue.errors import SegueError
from segue.fast.body_template import build_body_template
from segue.fast.report import build_report
from segue.fast.split import split_body
from segue.pipeline import ConvertJob
from segue.render.fast_passes import render_events
from segue.render.report import Report
from segue.wire.base import Wire
from segue.wire.names import NameMap
from segue.wire.text.registry import TEXT_FORMATS

# Smaller bodies are faster in the full pipeline.
_MIN_SIZE = 8192


class FastConversion(Struct, frozen=True):
    """A body converted by the fast path."""

    source: Wire
    data: bytes
    names: NameMap
    report: Report


def convert_fast(data: bytes, job: ConvertJob, *, min_size: int = _MIN_SIZE) -> FastConversion | None:
    """Return the converted body, or None if the full pipeline is needed. Smaller bodies are not tried."""
    if len(data) < min_size or job.tool_format in TEXT_FORMATS:
        return None
    try:
        return _convert(data, job)
    except (FastPathUnsupportedError, SegueError, msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None


def _convert(data: bytes, job: ConvertJob) -> FastConversion:
    body = split_body(data, job)
    history = body.fast_path.parse(body.items)
    assign_ids(history, body.source.provider)
    template = build_body_template(history, body, job)
    history.sent_ids = template.ids.copy_empty().assign_fast(history, body.source.provider)
    # Same-API items must keep their ids, and the sample has only some of them.
    if body.original_items is not None and None not in history.raw_ids and history.sent_ids != history.raw_ids:
        raise FastPathUnsupportedError
    # Before `render_events`, which merges neighbours.
    report = build_report(history, template.report_template, template.options)
    if body.original_items is None:
        items = [
            *template.system_items,
            *template.fast_path.render(history, render_events(history, template.options), template.options),
        ]
    else:
        items = body.original_items
    return FastConversion(
        body.source, encode_json({**template.body, template.fast_path.conversation_key: items}), template.names, report
    )
