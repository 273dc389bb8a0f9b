"""Incremental rendering: when a conversation has grown, only its new messages are rendered for the same target.

The rendered prefix does not change when messages are appended, and passes look at neighbouring messages only. So the
new messages are rendered with a little context, and the entries of the context are removed from the result.

The *anchor* is that context: the leading system messages, the user message that opened the newest cached exchange, and
the first turn after it. It is rendered once alone, to find out which entries of a later render belong to it.
The *window* is the anchor followed by all messages that are not cached yet. Only the window is rendered, and those of
its entries that follow the anchor's are appended to the cached ones.

The first window is compared with the end of a full render. If they differ, or a message is irregular (a late result, a
changed message, a repeated item), everything is rendered.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import Any

import msgspec

from segue.canonical.blocks import Code, Media, Message, Text, Thinking, ToolCall, ToolResponse
from segue.canonical.history import History
from segue.canonical.json import encode_json
from segue.canonical.request import Request
from segue.pipeline import IdState, RenderedBody
from segue.render.report import Finding, Report
from segue.render.transcript import Transcript
from segue.wire.names import NameMap

# How many entries are joined into one cached chunk.
_CHUNK_SIZE = 64
# Speakers of neighbouring messages that no API merges into one message.
_SEPARATE_ROLES = frozenset({("tool", "ai"), ("human", "ai"), ("ai", "human")})

RenderFunction = Callable[[Request, Report, IdState | None], tuple[Transcript, RenderedBody]]


class CachedBody(msgspec.Struct, frozen=True):
    """A body in fragments, with its report. `newest_report` and `transcript` are those of the new messages only."""

    fragments: list[bytes]
    report: Report
    newest_report: Report
    transcript: Transcript
    names: NameMap


class _SplitBody(msgspec.Struct, frozen=True):
    """A rendered body, split into the entries of the conversation and the fields before and after them."""

    before: dict[str, Any]
    entries: list[bytes]
    after: dict[str, Any]
    report: Report
    transcript: Transcript


class RenderCache:
    """The cached render for one target, valid while request, target and policy stay the same.

    `conversation_key` is the key of the messages in a body, such as `messages` or `contents`.
    """

    def __init__(self, conversation_key: str, render: RenderFunction) -> None:
        self._conversation_key = conversation_key
        self._render = render
        self._id_state: IdState | None = None
        self._edit_count = 0
        self._cached_count = 0
        self._anchor: tuple[Message, ...] = ()
        self._rendered_anchor: _SplitBody | None = None
        self._chunks: list[bytes] = []
        self._open_entries: list[bytes] = []
        self._seen_items: set[str] = set()
        self._reports: list[Report] = []
        self._leading_system: tuple[Message, ...] = ()

    def start(
        self, request: Request, history: History, rendered: RenderedBody, report: Report, transcript: Transcript
    ) -> None:
        """Cache a full render, if later renders can continue it."""
        id_state = IdState(rendered.ids, rendered.names)
        whole = self._split_body(rendered.body, report, transcript)
        self._id_state = id_state if self._can_continue(request, history, whole, id_state) else None

    def _can_continue(self, request: Request, history: History, whole: _SplitBody, id_state: IdState) -> bool:
        """Return whether the newest part, rendered alone, equals the end of the full render; if so, cache the rest."""
        messages = history.slice(0)
        boundary = _find_boundary(messages)
        if (
            boundary is None
            or history.has_gaps
            or not request.tools
            or not self._is_regular(messages[boundary:], set())
        ):
            return False
        leading_system = tuple(message for message in messages[:boundary] if message.speaker == "system")
        anchor = _find_anchor(messages[len(leading_system) : boundary])
        if anchor is None or leading_system != tuple(messages[: len(leading_system)]):
            return False
        self._leading_system, self._anchor = leading_system, (*leading_system, *anchor)
        self._rendered_anchor = anchored = self._render_messages(request, self._anchor, id_state)
        window = self._render_messages(request, (*self._anchor, *messages[boundary:]), id_state)
        new = _entries_after(anchored.entries, window.entries)
        if not new or whole.entries[-len(new) :] != new:
            return False
        if (whole.before, whole.after) != (window.before, window.after):
            return False
        self._edit_count, self._cached_count = history.edit_count, boundary
        self._chunks, self._open_entries = [], []
        self._append_entries(whole.entries[: len(whole.entries) - len(new)])
        self._seen_items = {item for message in messages[:boundary] for item in _item_ids(message)}
        self._reports = [_subtract_report(whole.report, _subtract_report(window.report, anchored.report))]
        return True

    def render(self, request: Request, history: History) -> CachedBody | None:
        """Return the body for the current history, or None if a full render is needed."""
        id_state, anchored = self._id_state, self._rendered_anchor
        if id_state is None or anchored is None or history.edit_count != self._edit_count or history.has_gaps:
            return None
        tail = history.slice(self._cached_count)
        if not self._is_regular(tail, self._seen_items):
            return None
        window = self._render_messages(request, (*self._anchor, *tail), id_state)
        new = _entries_after(anchored.entries, window.entries)
        if new is None:
            return None
        newest = _subtract_report(window.report, anchored.report)
        cached = CachedBody(
            self._build_fragments(window, self._open_entries + new),
            ChainedReport((*self._reports, newest), first_findings=_request_findings(window.report)),
            newest,
            window.transcript,
            id_state.names,
        )
        self._advance(request, tail, new, id_state, anchored)
        return cached

    def _render_messages(self, request: Request, messages: Sequence[Message], id_state: IdState) -> _SplitBody:
        report = Report()
        transcript, rendered = self._render(
            msgspec.structs.replace(request, messages=tuple(messages)), report, id_state
        )
        return self._split_body(rendered.body, report, transcript)

    def _split_body(self, body: dict[str, Any], report: Report, transcript: Transcript) -> _SplitBody:
        before: dict[str, Any] = {}
        after: dict[str, Any] = {}
        part = before
        for key, value in body.items():
            if key == self._conversation_key:
                part = after
            else:
                part[key] = value
        return _SplitBody(
            before, [encode_json(entry) for entry in body[self._conversation_key]], after, report, transcript
        )

    def _build_fragments(self, window: _SplitBody, new: list[bytes]) -> list[bytes]:
        head = (
            encode_json(window.before)[:-1]
            + (b"," if window.before else b"")
            + encode_json(self._conversation_key)
            + b":["
        )
        fragments = [head]
        for chunk in (*self._chunks, b",".join(new)):
            fragments += [b",", chunk] if len(fragments) > 1 else [chunk]
        fragments.append(b"]," + encode_json(window.after)[1:] if window.after else b"]}")
        return fragments

    # ------------------------------------------------------------------------------------------------------- advancing

    def _advance(
        self, request: Request, tail: list[Message], new: list[bytes], id_state: IdState, anchored: _SplitBody
    ) -> None:
        """Cache the part of the new entries that will not change any more."""
        boundary = _find_boundary(tail)
        if not boundary:
            return
        settled = tail[:boundary]
        anchor = _find_anchor((*self._anchor[len(self._leading_system) :], *settled))
        if anchor is None:
            return
        closed = self._render_messages(request, (*self._anchor, *settled), id_state)
        entries = _entries_after(anchored.entries, closed.entries)
        same_count = 0 if entries is None else _common_length(entries, new)
        # A history that ends on the model may get a user message appended, as long as nothing follows.
        if entries is None or same_count < len(entries) - 1:
            return
        self._append_entries(new[:same_count])
        self._reports.append(
            _subtract_report(
                closed.report, anchored.report, exclude={"inserted"} if same_count < len(entries) else set()
            )
        )
        self._seen_items.update(item for message in settled for item in _item_ids(message))
        self._anchor = (*self._leading_system, *anchor)
        self._rendered_anchor = self._render_messages(request, self._anchor, id_state)
        self._cached_count += boundary

    def _append_entries(self, entries: list[bytes]) -> None:
        self._open_entries += entries
        while len(self._open_entries) >= _CHUNK_SIZE:
            self._chunks.append(b",".join(self._open_entries[:_CHUNK_SIZE]))
            del self._open_entries[:_CHUNK_SIZE]

    @staticmethod
    def _is_regular(messages: Sequence[Message], items: set[str]) -> bool:
        """Return whether these messages can be rendered alone: only results of their own calls, no repeated items."""
        calls: set[str] = set()
        for message in messages:
            if message.speaker == "system" or not message.blocks or not items.isdisjoint(_item_ids(message)):
                return False
            for block in message.blocks:
                match block:
                    case ToolCall(kind="function" | "custom", broken=False) if not block.origin.is_approval:
                        calls.add(block.id)
                    case ToolResponse(hosted=False) if block.call_id in calls:
                        calls.discard(block.call_id)
                    case Text() | Thinking() | Media() | Code():
                        pass
                    case _:
                        return False
        return True


def _find_boundary(messages: Sequence[Message]) -> int | None:
    """Return the last position where all earlier calls have results and the neighbours are never merged."""
    waiting: set[str] = set()
    boundary: int | None = None
    for position, message in enumerate(messages):
        if position and not waiting and (messages[position - 1].speaker, message.speaker) in _SEPARATE_ROLES:
            boundary = position
        for block in message.blocks:
            if isinstance(block, ToolCall):
                waiting.add(block.id)
            elif isinstance(block, ToolResponse):
                waiting.discard(block.call_id)
    return boundary


def _find_anchor(messages: Sequence[Message]) -> tuple[Message, ...] | None:
    """Return the user message of the last exchange with the first turn after it, if all its calls have results."""
    start = next(
        (position for position in range(len(messages) - 1, -1, -1) if messages[position].speaker == "human"), None
    )
    if start is None:
        return None
    end = start + 1
    for speaker in ("ai", "tool"):
        while end < len(messages) and messages[end].speaker == speaker:
            end += 1
    # The anchor must end with the same speaker as the real history.
    last = messages[-1:] if end < len(messages) and messages[-1].speaker == "ai" else ()
    anchor = (*messages[start:end], *last)
    calls = [block.id for message in anchor for block in message.blocks if isinstance(block, ToolCall)]
    results = [block.call_id for message in anchor for block in message.blocks if isinstance(block, ToolResponse)]
    return anchor if sorted(calls) == sorted(results) else None


def _item_ids(message: Message) -> Iterator[str]:
    for block in message.blocks:
        if isinstance(block, ToolCall | ToolResponse | Thinking) and block.origin.item_id is not None:
            yield block.origin.item_id


def _common_length(one: Sequence[bytes], other: Sequence[bytes]) -> int:
    """Return the length of the common prefix."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((position for position, (a, b) in pairs if a != b), min(len(one), len(other)))


def _entries_after(anchor: Sequence[bytes], entries: list[bytes]) -> list[bytes] | None:
    """Return the entries after the anchor's. Rendered alone, the anchor may have a user message appended."""
    same_count = _common_length(anchor, entries)
    return entries[same_count:] if same_count and same_count >= len(anchor) - 1 else None


# --------------------------------------------------------------------------------------------------------- the report

# Findings on the rest of the request: each render reports them again.
_REQUEST_KINDS = frozenset({"adjusted", "model", "name", "tools"})
_ID_LISTS = ("seen", "emitted_calls", "emitted_results")


def _request_findings(report: Report) -> list[Finding]:
    return [finding for finding in report.findings if finding.kind in _REQUEST_KINDS and not finding.call_ids]


def _subtract_report(report: Report, known: Report, *, exclude: Iterable[str] = ()) -> Report:
    """Return a report without the entries of another one, and without these kinds."""
    difference = Report(
        target=report.target, id_scheme=report.id_scheme, tool_format=report.tool_format, model=report.model
    )
    known_findings = {finding.key: finding for finding in known.findings}
    difference.extend(
        new
        for finding in report.findings
        if finding.kind not in exclude
        and (new := _subtract_finding(finding, known_findings.get(finding.key))) is not None
    )
    for name in _ID_LISTS:
        present = set(getattr(known, name))
        getattr(difference, name).extend(entry for entry in getattr(report, name) if entry not in present)
    return difference


def _subtract_finding(finding: Finding, known: Finding | None) -> Finding | None:
    """Return the finding with the call ids and paths that only it has; None if it has none of its own."""
    if known is None:
        return finding
    known_ids, known_paths = set(known.call_ids), set(known.paths)
    call_ids = tuple(call_id for call_id in finding.call_ids if call_id not in known_ids)
    paths = tuple(path for path in finding.paths if path not in known_paths)
    return msgspec.structs.replace(finding, call_ids=call_ids, paths=paths) if call_ids or paths else None


class ChainedReport(Report):
    """A sequence of reports, joined on first access."""

    def __init__(self, parts: Sequence[Report], *, first_findings: Sequence[Finding] = ()) -> None:
        last = parts[-1]
        self.target, self.id_scheme, self.model = last.target, last.id_scheme, last.model
        self.tool_format = last.tool_format
        self._parts = parts
        self._first_findings = first_findings
        self._findings = None

    def __getattr__(self, name: str) -> Any:
        if name in _ID_LISTS:
            setattr(self, name, [entry for part in self._parts for entry in getattr(part, name)])
        elif name == "_places":
            self._places = {}
            self.extend(chain(self._first_findings, *(part.findings for part in self._parts)))
        else:
            raise AttributeError(name)
        return self.__dict__[name]
