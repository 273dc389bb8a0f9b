"""The request body of a stored conversation, rendered in pieces into a temporary file.

The body has the bytes of `Conversation.render`. A conversation that can't be read in segments, or rendered in pieces,
is rendered whole; so is a short one.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from types import TracebackType
from typing import Any, Self, cast

from segue._literals import Api
from segue.canonical.json import parse_json_object
from segue.conversion.convert import report_conflicting_results, report_dropped_model
from segue.conversion.pieces import NeedsWholeRenderError, Piece, render_pieces
from segue.conversion.target import RenderTarget
from segue.errors import StoreError
from segue.render.report import ChainedReport, Report
from segue.store.replay import replay_events
from segue.store.segments import SegmentedConversation
from segue.wire.registry import find_wire_or_server

MIN_MESSAGES = 2_000
"""A conversation with fewer messages is rendered whole."""
_MAX_IN_MEMORY = 1 << 20


class StoredBody:
    """A rendered body in chunks, with its report. Closing it deletes the temporary file."""

    def __init__(self, *, is_in_pieces: bool = False) -> None:
        self.report = Report()
        self.is_in_pieces = is_in_pieces
        self.size = 0
        self._file = tempfile.SpooledTemporaryFile(_MAX_IN_MEMORY)  # noqa: SIM115  # closed by `__exit__`
        self._lengths: list[int] = []

    def write(self, chunks: Iterable[bytes]) -> None:
        """Append chunks; `StoreError` if the temporary file can't be written, which is then closed."""
        try:
            for chunk in chunks:
                self._file.write(chunk)
                self._lengths.append(len(chunk))
                self.size += len(chunk)
            self._file.flush()
        except OSError as error:
            self.close()
            folder = f" in {tempfile.tempdir}" if tempfile.tempdir else ""
            reason = error.strerror or str(error)
            raise StoreError(f"can't write a temporary file{folder}: {reason}", cause="full") from None

    def chunks(self) -> Iterator[bytes]:
        """Yield the body in the chunks that were written; none ends within a character."""
        self._file.seek(0)
        return map(self._file.read, self._lengths)

    @property
    def data(self) -> bytes:
        """The whole body."""
        return b"".join(self.chunks())

    def decode(self) -> dict[str, Any]:
        """Return the whole body as a dict."""
        return parse_json_object(self.data)[0]

    def close(self) -> None:
        # Closing writes what is buffered.
        with suppress(OSError):
            self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def render_body(
    stored: SegmentedConversation, api: str, model: str | None, *, on_piece: Callable[[Piece], None] | None = None
) -> StoredBody:
    """Render the conversation for an API or a server profile.

    `on_piece` is called with each piece, and may have been called with some before the conversation is rendered whole.
    """
    target = _find_target(stored, api, model)
    if target is not None:
        try:
            return _render_pieces(stored, target, on_piece)
        except NeedsWholeRenderError:
            pass
    chat = stored.state.chat
    if not stored.is_whole:
        chat = replay_events(stored.store.events(stored.id, until=stored.state.seq)).chat
    rendered = chat.render(cast("Api", api), model)
    body = StoredBody()
    body.report = rendered.report
    body.write(rendered.fragments)
    return body


def _find_target(stored: SegmentedConversation, api: str, model: str | None) -> RenderTarget | None:
    """Return the target, None if the conversation can't be rendered for it in pieces."""
    request = stored.state.chat.state.request
    if stored.is_whole:
        return None
    wire = find_wire_or_server(api, argument="target")
    target = RenderTarget.choose(request, wire, model, reversed(stored.facts.origins.values()))
    return target if target.can_extend(request) else None


def _render_pieces(
    stored: SegmentedConversation, target: RenderTarget, on_piece: Callable[[Piece], None] | None
) -> StoredBody:
    request = stored.state.chat.state.request
    report = Report()
    if target.model is None:
        report_dropped_model(request, target.wire, report)
    report_conflicting_results(stored.facts.conflicting, report)
    body, reports = StoredBody(is_in_pieces=True), [report]
    try:
        separator = end = b""
        for piece in render_pieces(target.start_prefix(request), stored.segments()):
            start, *entries, end = piece.fragments
            if not body.size:
                body.write([start])
            if entries:
                body.write([separator + b"".join(entries)])
                separator = b","
            reports.append(piece.report)
            if on_piece is not None:
                on_piece(piece)
        body.write([end])
    except BaseException:
        body.close()
        raise
    body.report = ChainedReport(reports)
    return body
