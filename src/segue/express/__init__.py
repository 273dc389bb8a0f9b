"""The express lane: a plain conversation, read typed and written typed, without the long way's twenty passes.

There is one meaning, and the long way has it. So the lane asks it: a *sample* of the conversation, one event of each
kind that occurs, goes the long way together with everything in the body that is not conversation. What comes back
gives the finished body around the conversation (model, system, tools, options) and the findings of the report. The
lane writes the sample, too, and only if both are the same to the byte does it write the whole. At home the sample must
come back as it went. What was asked once is remembered for the next turn of the same conversation, and for others with
the same tools. Whatever is not plain, and any doubt, is the long way's business.
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

# Less than this is carried sooner than it is looked at.
_LEAST = 8192


class Express(Struct, frozen=True):
    """What the lane made of a body."""

    source: Wire
    data: bytes
    names: NameMap
    report: Report


def express(data: bytes, asked: Asked, *, least: int = _LEAST) -> Express | None:
    """The body for the target, or None: then only the long way can tell. Less than `least` bytes are not tried."""
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
    # At home items go out as they are, with their ids; a sample can't show what all are numbered.
    if body.own is not None and None not in whole.raw_ids and whole.sent_ids != whole.raw_ids:
        raise NotPlainError
    # Before it is told: telling makes one of neighbours.
    report = report_on(whole, frame.account, frame.ways)
    if body.own is None:
        said = [*frame.head, *frame.lane.write(whole, tell(whole, frame.ways), frame.ways)]
    else:
        said = body.own
    return Express(body.source, write({**frame.body, frame.lane.key: said}), frame.names, report)
