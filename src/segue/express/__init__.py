"""The fast path: converts regular histories with typed decoding and encoding, without the passes of the full pipeline.

The full pipeline defines the result. So it converts a *sample* of the conversation, one event of each kind that occurs,
together with everything in the body that is not conversation. That gives the rest of the target body (model, system,
tools, options) and the findings. The fast path renders the sample too, and renders the whole conversation only if both
are byte-equal; same-API the sample must come back unchanged. The outcome is cached for the next turn of the same
conversation, and for others with the same tools. Anything irregular or uncertain is left to the full pipeline.
"""

from __future__ import annotations

import msgspec
from msgspec import Struct

from segue.canonical.jsontext import write
from segue.canonical.plain import NotPlainError, name_calls
from segue.carry import Asked
from segue.errors import SegueError
from segue.express.account import report_on
from segue.express.around import frame_of
from segue.express.body import take_apart
from segue.render.plain import tell
from segue.render.report import Report
from segue.wire.base import Wire
from segue.wire.names import NameMap
from segue.wire.text.registry import TEXT_FORMATS

__all__ = ["Express", "express"]

# Smaller bodies are faster in the full pipeline.
_LEAST = 8192


class Express(Struct, frozen=True):
    """A body converted by the fast path."""

    source: Wire
    data: bytes
    names: NameMap
    report: Report


def express(data: bytes, asked: Asked, *, least: int = _LEAST) -> Express | None:
    """Return the converted body, or None where the full pipeline is needed. Smaller bodies are not tried."""
    if len(data) < least or asked.tool_format in TEXT_FORMATS:
        return None
    try:
        return _express(data, asked)
    except (NotPlainError, SegueError, msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None


def _express(data: bytes, asked: Asked) -> Express:
    body = take_apart(data, asked)
    whole = body.lane.read(body.items)
    name_calls(whole, body.source.provider)
    frame = frame_of(whole, body, asked)
    whole.sent_ids = frame.ids.anew().assign_plain(whole, body.source.provider)
    # Same-API items keep their ids; a sample can't show whether all of them would.
    if body.own is not None and None not in whole.raw_ids and whole.sent_ids != whole.raw_ids:
        raise NotPlainError
    # Before `render_events`, which merges neighbours.
    report = report_on(whole, frame.account, frame.ways)
    if body.own is None:
        items = [*frame.head, *frame.lane.write(whole, tell(whole, frame.ways), frame.ways)]
    else:
        items = body.own
    return Express(body.source, write({**frame.body, frame.lane.key: items}), frame.names, report)
