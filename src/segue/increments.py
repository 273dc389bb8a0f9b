"""Incremental rendering: a growing conversation is rendered again for the same target, only the new part each time.

The rendered prefix does not change when messages are appended, and passes look at neighbours, not at the whole. So the
new part is rendered after an *anchor*: the user message that opened its exchange, and the first turn after that. The
entries after the anchor's are those of a full render. The first time both are compared; where they differ, and for
irregular messages (a late result, a changed message, a repeated item), everything is rendered.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import msgspec

from segue.canonical.blocks import Code, Media, Message, Text, Thinking, ToolCall, ToolResponse
from segue.canonical.history import History
from segue.canonical.jsontext import write
from segue.canonical.request import Request
from segue.carry import Kept, Said
from segue.render.report import Finding, Report
from segue.render.transcript import Transcript
from segue.wire.names import NameMap

__all__ = ["Chained", "Increments", "Whole"]

# How many entries are joined into one cached chunk.
_CHUNK = 64
# Speakers on both sides of a boundary: no API merges these into one message.
_APART = frozenset({("tool", "ai"), ("human", "ai"), ("ai", "human")})

Say = Callable[[Request, Report, Kept | None], tuple[Transcript, Said]]


class Whole(msgspec.Struct, frozen=True):
    """A body in fragments, its report and that of its newest part, the transcript of that part, and the names."""

    pieces: list[bytes]
    report: Report
    newest: Report
    transcript: Transcript
    names: NameMap


class _Rendered(msgspec.Struct, frozen=True):
    """Some messages, rendered: the fields before and after the conversation, its entries, and the report."""

    before: dict[str, Any]
    entries: list[bytes]
    behind: dict[str, Any]
    report: Report
    transcript: Transcript


class Increments:
    """The cached render for one target, valid while request, target and policy stay the same.

    `root` is the key of the conversation in a body; `render` renders a request for the target.
    """

    def __init__(self, root: str, say: Say) -> None:
        self._root = root
        self._say = say
        self._kept: Kept | None = None
        self._edits = 0
        self._done = 0
        self._anchor: tuple[Message, ...] = ()
        self._anchored: _Rendered | None = None
        self._chunks: list[bytes] = []
        self._loose: list[bytes] = []
        self._items: set[str] = set()
        self._told: list[Report] = []
        self._lead: tuple[Message, ...] = ()

    def begin(self, request: Request, history: History, said: Said, report: Report, transcript: Transcript) -> None:
        """Start from a full render, if it can be continued."""
        kept = Kept(said.ids, said.names)
        whole = self._parted(said.body, report, transcript)
        self._kept = kept if self._goes_on(request, history, whole, kept) else None

    def _goes_on(self, request: Request, history: History, whole: _Rendered, kept: Kept) -> bool:
        """Whether the newest part, rendered alone, equals the end of the full render; if so, cache all before it."""
        messages = history.part(0)
        place = _boundary(messages)
        if place is None or history.is_cut or not request.tools or not self._is_plain(messages[place:], set()):
            return False
        lead = tuple(message for message in messages[:place] if message.speaker == "system")
        anchor = _anchor(messages[len(lead) : place])
        if anchor is None or lead != tuple(messages[: len(lead)]):
            return False
        self._lead, self._anchor = lead, (*lead, *anchor)
        self._anchored = anchored = self._rendered(request, self._anchor, kept)
        window = self._rendered(request, (*self._anchor, *messages[place:]), kept)
        new = _behind(anchored.entries, window.entries)
        if not new or whole.entries[-len(new) :] != new:
            return False
        if (whole.before, whole.behind) != (window.before, window.behind):
            return False
        self._edits, self._done = history.edits, place
        self._chunks, self._loose = [], []
        self._keep(whole.entries[: len(whole.entries) - len(new)])
        self._items = {item for message in messages[:place] for item in _items_of(message)}
        self._told = [_less(whole.report, _less(window.report, anchored.report))]
        return True

    def render(self, request: Request, history: History) -> Whole | None:
        """Return the body for the current history, or None where a full render is needed."""
        kept, anchored = self._kept, self._anchored
        if kept is None or anchored is None or history.edits != self._edits or history.is_cut:
            return None
        tail = history.part(self._done)
        if not self._is_plain(tail, self._items):
            return None
        window = self._rendered(request, (*self._anchor, *tail), kept)
        new = _behind(anchored.entries, window.entries)
        if new is None:
            return None
        newest = _less(window.report, anchored.report)
        whole = Whole(
            self._pieces(window, self._loose + new),
            Chained((*self._told, newest), head=_head(window.report)),
            newest,
            window.transcript,
            kept.names,
        )
        self._advance(request, tail, new, kept, anchored)
        return whole

    def _rendered(self, request: Request, messages: Sequence[Message], kept: Kept) -> _Rendered:
        report = Report()
        transcript, rendered = self._say(msgspec.structs.replace(request, messages=tuple(messages)), report, kept)
        return self._parted(rendered.body, report, transcript)

    def _parted(self, body: dict[str, Any], report: Report, transcript: Transcript) -> _Rendered:
        before: dict[str, Any] = {}
        behind: dict[str, Any] = {}
        part = before
        for key, value in body.items():
            if key == self._root:
                part = behind
            else:
                part[key] = value
        return _Rendered(before, [write(entry) for entry in body[self._root]], behind, report, transcript)

    def _pieces(self, window: _Rendered, new: list[bytes]) -> list[bytes]:
        head = write(window.before)[:-1] + (b"," if window.before else b"") + write(self._root) + b":["
        pieces = [head]
        for chunk in (*self._chunks, b",".join(new)):
            pieces += [b",", chunk] if len(pieces) > 1 else [chunk]
        pieces.append(b"]," + write(window.behind)[1:] if window.behind else b"]}")
        return pieces

    # ------------------------------------------------------------------------------------------------------- advancing

    def _advance(
        self, request: Request, tail: list[Message], new: list[bytes], kept: Kept, anchored: _Rendered
    ) -> None:
        """Cache the part of the new entries that will not change any more."""
        place = _boundary(tail)
        if not place:
            return
        settled = tail[:place]
        anchor = _anchor((*self._anchor[len(self._lead) :], *settled))
        if anchor is None:
            return
        closed = self._rendered(request, (*self._anchor, *settled), kept)
        entries = _behind(anchored.entries, closed.entries)
        same = 0 if entries is None else _common(entries, new)
        # A history that ends on the model may get a user message appended, as long as nothing follows.
        if entries is None or same < len(entries) - 1:
            return
        self._keep(new[:same])
        self._told.append(_less(closed.report, anchored.report, but={"inserted"} if same < len(entries) else set()))
        self._items.update(item for message in settled for item in _items_of(message))
        self._anchor = (*self._lead, *anchor)
        self._anchored = self._rendered(request, self._anchor, kept)
        self._done += place

    def _keep(self, entries: list[bytes]) -> None:
        self._loose += entries
        while len(self._loose) >= _CHUNK:
            self._chunks.append(b",".join(self._loose[:_CHUNK]))
            del self._loose[:_CHUNK]

    @staticmethod
    def _is_plain(messages: Sequence[Message], items: set[str]) -> bool:
        """Whether these messages can be rendered alone: only results of their own calls, no repeated items."""
        calls: set[str] = set()
        for message in messages:
            if message.speaker == "system" or not message.blocks or not items.isdisjoint(_items_of(message)):
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


def _boundary(messages: Sequence[Message]) -> int | None:
    """Return the last position where all earlier calls have results and the neighbours are never merged."""
    waiting: set[str] = set()
    found: int | None = None
    for place, message in enumerate(messages):
        if place and not waiting and (messages[place - 1].speaker, message.speaker) in _APART:
            found = place
        for block in message.blocks:
            if isinstance(block, ToolCall):
                waiting.add(block.id)
            elif isinstance(block, ToolResponse):
                waiting.discard(block.call_id)
    return found


def _anchor(messages: Sequence[Message]) -> tuple[Message, ...] | None:
    """Return the user message of the last exchange with the first turn after it, if all its calls have results."""
    start = next((place for place in range(len(messages) - 1, -1, -1) if messages[place].speaker == "human"), None)
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


def _items_of(message: Message) -> Iterator[str]:
    for block in message.blocks:
        if isinstance(block, ToolCall | ToolResponse | Thinking) and block.origin.item_id is not None:
            yield block.origin.item_id


def _common(one: Sequence[bytes], other: Sequence[bytes]) -> int:
    """Return the length of the common prefix."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((place for place, (a, b) in pairs if a != b), min(len(one), len(other)))


def _behind(anchor: Sequence[bytes], entries: list[bytes]) -> list[bytes] | None:
    """Return the entries after the anchor's. Rendered alone, the anchor may have a user message appended."""
    same = _common(anchor, entries)
    return entries[same:] if same and same >= len(anchor) - 1 else None


# --------------------------------------------------------------------------------------------------------- the report

# Decisions about the rest of the request: they are made anew each time.
_AROUND = frozenset({"adjusted", "model", "name", "tools"})
_LISTS = ("seen", "emitted_calls", "emitted_results", "findings")


def _head(report: Report) -> list[Finding]:
    return [finding for finding in report.findings if finding.kind in _AROUND and finding.call_id is None]


def _less(report: Report, known: Report, *, but: Iterable[str] = ()) -> Report:
    """Return a report without the entries of another one, and without these kinds."""
    made = Report(target=report.target, id_scheme=report.id_scheme, model=report.model)
    left = Counter(known.findings)
    for finding in report.findings:
        if left[finding] > 0:
            left[finding] -= 1
        elif finding.kind not in but:
            made.findings.append(finding)
    for name in ("seen", "emitted_calls", "emitted_results"):
        present = set(getattr(known, name))
        getattr(made, name).extend(entry for entry in getattr(report, name) if entry not in present)
    return made


class Chained(Report):
    """A sequence of reports, joined on first access."""

    def __init__(self, parts: Sequence[Report], *, head: Sequence[Finding] = ()) -> None:
        last = parts[-1]
        self.target, self.id_scheme, self.model = last.target, last.id_scheme, last.model
        self._parts = parts
        self._head = head

    def __getattr__(self, name: str) -> Any:
        if name not in _LISTS:
            raise AttributeError(name)
        made = [entry for part in self._parts for entry in getattr(part, name)]
        if name == "findings":
            present = set(made)
            made = [finding for finding in self._head if finding not in present] + made
        setattr(self, name, made)
        return made
