"""What can be said of one request of a stored conversation: by the store, the report and the judge.

A violation in a body that was made here is a fault of segue's own, so it is told which layer let it through: if the
body, read again, still tells the same interactions as the transcript, they were only spelled wrongly (projection);
if not, they were lost or parted when it was decided what to say (rendering).
"""

from __future__ import annotations

import platform
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib import metadata
from typing import Any, cast

import msgspec
from msgspec import Struct

from segue.canonical.blocks import ToolCall, ToolResponse
from segue.canonical.history import History
from segue.checking import check
from segue.cli.turns import up_to
from segue.conformance.rule import Verdict
from segue.conversation import Conversation, Rendered
from segue.errors import InputError
from segue.render.report import Fault, Finding
from segue.store.base import HistoryStore, Lease, Record, iso
from segue.store.events import Broke, Compressed, Sent, Switched, Undone, kind_of
from segue.store.timeline import Timeline, replayed
from segue.view.lines import is_message
from segue.view.words import counted, note_lines, shortened
from segue.wire.registry import WIRES, find

__all__ = ["LAYERS", "Diagnosis", "diagnosed"]

LAYERS: dict[Fault, str] = {
    "canonical": "the canonical state: what happened is itself incomplete or odd, whoever it is told to",
    "rendering": "the rendering: this target wants it said another way",
    "projection": "the projection: this target's API can't spell it, or spells it otherwise",
}


class Diagnosis(Struct):
    """All that is told of one request."""

    id: str
    turn: str
    turns: int
    events: int
    target: str
    model: str | None
    verdict: Verdict
    findings: list[Finding]
    compressed: list[str]
    """What compressions did, in a few lines."""
    broken_in: Fault | None
    store: dict[str, Any]
    counts: dict[str, int]
    body: Mapping[str, Any]

    def to_dict(self, *, with_body: bool = False) -> dict[str, Any]:
        told = {
            "segue": metadata.version("segue"),
            "python": platform.python_version(),
            "id": self.id,
            "turn": self.turn,
            "turns": self.turns,
            "events": self.events,
            "target": self.target,
            "model": self.model,
            "store": self.store,
            "request": self.counts,
            "findings": [{**msgspec.to_builtins(finding), "layer": LAYERS[finding.fault]} for finding in self.findings],
            "verdict": {**self.verdict.to_dict(), "layer": LAYERS[self.broken_in] if self.broken_in else None},
        }
        return {**told, "body": self.body} if with_body else told

    def lines(self) -> Iterator[str]:
        """The same for a reader."""
        yield f"segue {metadata.version('segue')}, Python {platform.python_version()}, {platform.system()}"
        yield f"conversation {self.id}, {counted(self.turns, 'turn')}; {self.turn}, up to event {self.events}"
        yield f"target {self.target}{f' ({self.model})' if self.model else ''}"
        yield ""
        yield "store:"
        yield from (f"  {name}: {_said(value)}" for name, value in self.store.items())
        yield ""
        yield "request:"
        yield from (f"  {name}: {count:,}" for name, count in self.counts.items())
        for fault, words in LAYERS.items():
            of_layer = [finding for finding in self.findings if finding.fault == fault]
            if of_layer:
                yield ""
                yield f"{words}:"
                yield from _counted([finding for finding in of_layer if finding.kind != "compressed"])
                if any(finding.kind == "compressed" for finding in of_layer):
                    yield from (f"  compressed: {line}" for line in self.compressed)
        if not self.findings:
            yield ""
            yield "nothing had to be decided: what happened is what is sent"
        yield ""
        yield from self._judged()

    def _judged(self) -> Iterator[str]:
        for violation in self.verdict:
            yield f"{violation.severity} {violation.rule} {violation.path or 'the body'}: {violation.message}"
        if self.verdict:
            yield f"accepted: {self.target} would take it"
            return
        yield f"refused: {self.target} would not take it"
        if self.broken_in:
            yield f"segue made this body, so this is a bug of segue's, in {LAYERS[self.broken_in].split(':')[0]}"


def _counted(findings: Sequence[Finding]) -> Iterator[str]:
    """A line for each, equal ones in one."""
    rows = Counter((finding.kind, finding.subject, finding.message) for finding in findings)
    calls = {(f.kind, f.subject, f.message): f.call_id for f in findings}
    for (kind, subject, message), count in rows.items():
        about = f" ({subject})" if subject else ""
        call = calls[kind, subject, message]
        told = f" [{call}]" if call and count == 1 else f" × {count:,}" if count > 1 else ""
        yield f"  {kind}{about}: {message}{told}"


def _said(value: Any) -> str:
    if isinstance(value, dict):
        counts = cast("dict[str, int]", value)
        return ", ".join(f"{count:,} {name}" for name, count in counts.items()) or "none"
    if isinstance(value, list):
        return "; ".join(cast("list[str]", value)) or "none"
    return f"{value:,}" if isinstance(value, int) else str(value)


def diagnosed(
    store: HistoryStore, conversation: str, turn: str | None, target: str | None, model: str | None
) -> Diagnosis:
    """Plays the events up to a turn, renders and judges. Nothing is written."""
    every = list(store.events(conversation))
    name, end, turns = up_to(every, turn)
    records = every[:end]
    timeline = replayed(records)
    chat = timeline.chat
    aim, model = _aim(timeline, every[end:], target, model)
    rendered = chat.render(aim, model)
    verdict = check(rendered.body, aim, model=model)
    report = rendered.report
    counts = {
        "messages": len(chat.messages),
        "calls": len(report.emitted_calls),
        "results": len(report.emitted_results),
        "bytes": len(rendered.data),
    }
    return Diagnosis(
        id=conversation,
        turn=name,
        turns=turns,
        events=timeline.seq,
        target=aim,
        model=model,
        verdict=verdict,
        findings=list(report.findings),
        compressed=list(note_lines([n for n in chat.compressed if not chat.history.took_back(n.calls)])),
        broken_in=None if verdict else _layer(rendered, aim),
        store=_known(records, timeline, store.lease(conversation)),
        counts=counts,
        body=rendered.body,
    )


def _aim(timeline: Timeline, later: Iterable[Record], target: str | None, model: str | None) -> tuple[str, str | None]:
    """For which API and model: those that are named, else those of then.

    What was imported says only behind its messages whom they were for, so what is not known by then is what comes next.
    """
    request = timeline.chat.request
    known, asked = timeline.target, timeline.model
    if known is None and request.native is not None:
        known, asked = request.native.api, request.model
    if known is None:
        named = (r.event for r in later if isinstance(r.event, Sent | Switched) and r.event.target)
        following = next(named, None)
        known, asked = (following.target, following.model) if following is not None else (None, None)
    aim = target or known
    if aim is None:
        raise InputError("no API was asked yet: name one with --to", path="target")
    if model is None and aim == known:
        model = asked
    home = WIRES.get(request.native.api) if request.native is not None else None
    if model is None and home is not None and home.provider == find(aim, argument="target").provider:
        model = request.model
    return aim, model


def _known(records: Sequence[Record], timeline: Timeline, lease: Lease | None) -> dict[str, Any]:
    """What the store knows up to there."""
    history: History = timeline.chat.history
    undone = {record.event.seq for record in records if isinstance(record.event, Undone)}
    return {
        "events": dict(Counter(kind_of(record.event) for record in records)),
        "messages": sum(is_message(record.event) for record in records),
        "in hand": f"since {iso(lease.since)}, until {iso(lease.expires)}" if lease else "nobody's",
        "calls": dict(Counter(entry.state for entry in history.ledger.values())),
        "waiting": [f"{call.name} [{call.id}]" for call in timeline.chat.pending],
        "compressions": list(_compressions(records, undone)),
        "broken replies": list(_broken(records)),
        "evidence": [
            f"{entry.call.name} [{call_id}]: {entry.state}, and {len(entry.evidence)} more"
            for call_id, entry in history.doubted.items()
        ],
    }


def _compressions(records: Iterable[Record], undone: set[int]) -> Iterator[str]:
    for record in records:
        if isinstance(record.event, Compressed):
            taken_back = ", taken back" if record.seq in undone else ""
            event = record.event
            left = counted(sum(stop - start for start, stop in event.kept) + len(event.replaced), "message")
            yield f"event {record.seq}: {event.strategy} to {event.budget} tokens, {left} left{taken_back}"


def _broken(records: Iterable[Record]) -> Iterator[str]:
    for record in records:
        if isinstance(record.event, Broke):
            reply = record.event.reply
            calls = f", {counted(len(reply.calls), 'call')}" if reply.calls else ""
            yield f"event {record.seq}: {reply.finish}{calls}, {shortened(reply.text, 40)!r}"


def _layer(rendered: Rendered, target: str) -> Fault:
    """Where a body that would be refused went wrong."""
    emitted = len(rendered.report.emitted_calls), len(rendered.report.emitted_results)
    try:
        body = Conversation.from_body(rendered.body, source=WIRES[target].name)
    except InputError:
        return "projection"
    blocks = [block for message in body.messages for block in message.blocks]
    calls = [block for block in blocks if isinstance(block, ToolCall)]
    results = [block for block in blocks if isinstance(block, ToolResponse)]
    paired = {call.id for call in calls} >= {result.call_id for result in results}
    return "projection" if (len(calls), len(results)) == emitted and paired else "rendering"
