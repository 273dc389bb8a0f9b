"""Rendering in pieces: a long conversation is rendered for a target while its messages are read.

Invariant: the entries of all pieces, joined, are those of a render of the whole conversation. Of the messages before
the last piece, only ids and names are kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct

from segue.canonical.blocks import Message
from segue.conversion.segments import RenderedPrefix
from segue.render.report import ChainedReport, Report

PIECE_SIZE = 512
"""The number of messages from which on a cut is searched for."""


class Piece(Struct, frozen=True):
    """The entries of some messages with the settings around them in `fragments`, and the report on them.

    `context` are the entries that stand for all earlier messages. A finding on the whole conversation is in several
    reports.
    """

    context: list[bytes]
    fragments: list[bytes]
    report: Report

    @property
    def window(self) -> bytes:
        """The body with the context and the entries of the piece."""
        start, *entries, end = self.fragments
        return start + b",".join(filter(None, (*self.context, b"".join(entries)))) + end


class NeedsWholeRenderError(Exception):
    """The conversation must be rendered whole: it has no cut, or messages after a cut depend on those before it."""


def render_pieces(
    prefix: RenderedPrefix, segments: Iterable[Sequence[Message]], *, piece_size: int = PIECE_SIZE
) -> Iterator[Piece]:
    """Extend an empty prefix by the messages of all segments, and yield its entries as they are rendered.

    Raises `NeedsWholeRenderError` if the messages can't be rendered in pieces.
    """
    tail: list[Message] = []
    next_length = piece_size
    for segment in segments:
        tail += segment
        if len(tail) < next_length:
            continue
        longer = prefix.lengthen(tail)
        if longer is None:
            raise NeedsWholeRenderError
        if longer is prefix:
            # Without a cut, the next one is searched for in twice as many messages.
            next_length = 2 * len(tail)
            continue
        yield Piece(prefix.encoded_context, longer.fragments, ChainedReport(longer.reports))
        del tail[: longer.length - prefix.length]
        prefix, next_length = longer.drop_entries(), piece_size
    extended = prefix.extend(tail)
    if extended is None:
        raise NeedsWholeRenderError
    yield Piece(prefix.encoded_context, extended.fragments, extended.report)
