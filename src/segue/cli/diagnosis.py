"""Diagnosis of one request of a stored conversation: store state, report and conformance verdict.

A violation in a rendered body is a bug in segue, so the faulty layer is named: if the body, parsed again, has the same
interactions as the transcript, they were only encoded wrongly (projection); if not, they were lost or separated while
rendering.
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
    "canonical": "canonical state: the history itself is incomplete or inconsistent, for any target",
    "rendering": "rendering: this target requires a different form",
    "projection": "projection: this target's API can't express it, or encodes it differently",
}
# Keys of `Diagnosis.store` that are printed under another name than in JSON.
_LABELS = {"in hand": "lease", "waiting": "pending calls", "evidence": "conflicting results"}


class Diagnosis(Struct):
    """Everything about one request. `store` and `counts` are printed and dumped key by key."""

    id: str
    turn: str
    turns: int
    events: int
    target: str
    model: str | None
    verdict: Verdict
    findings: list[Finding]
    compressed: list[str]
    """Summary lines of the compressions still in effect."""
    broken_in: Fault | None
    store: dict[str, Any]
    counts: dict[str, int]
    body: Mapping[str, Any]

    def to_dict(self, *, with_body: bool = False) -> dict[str, Any]:
        fields = {
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
        return {**fields, "body": self.body} if with_body else fields

    def lines(self) -> Iterator[str]:
        """The diagnosis as text."""
        yield f"segue {metadata.version('segue')}, Python {platform.python_version()}, {platform.system()}"
        yield f"conversation {self.id}, {counted(self.turns, 'turn')}; {self.turn}, up to event {self.events}"
        yield f"target {self.target}{f' ({self.model})' if self.model else ''}"
        yield ""
        yield "store:"
        yield from (f"  {_LABELS.get(name, name)}: {_said(value)}" for name, value in self.store.items())
        yield ""
        yield "request:"
        yield from (f"  {name}: {count:,}" for name, count in self.counts.items())
        for fault, layer in LAYERS.items():
            of_layer = [finding for finding in self.findings if finding.fault == fault]
            if of_layer:
                yield ""
                yield f"{layer}:"
                yield from _counted([finding for finding in of_layer if finding.kind != "compressed"])
                if any(finding.kind == "compressed" for finding in of_layer):
                    yield from (f"  compressed: {line}" for line in self.compressed)
        if not self.findings:
            yield ""
            yield "no findings: the history is sent unchanged"
        yield ""
        yield from self._judged()

    def _judged(self) -> Iterator[str]:
        for violation in self.verdict:
            yield f"{violation.severity} {violation.rule} {violation.path or 'the body'}: {violation.message}"
        if self.verdict:
            yield f"accepted: {self.target} would accept this request"
            return
        yield f"refused: {self.target} would reject this request"
        if self.broken_in:
            yield f"segue rendered this body, so this is a bug in segue, layer: {LAYERS[self.broken_in].split(':')[0]}"


def _counted(findings: Sequence[Finding]) -> Iterator[str]:
    """A line for each finding; equal findings share a line."""
    rows = Counter((finding.kind, finding.subject, finding.message) for finding in findings)
    calls = {(f.kind, f.subject, f.message): f.call_id for f in findings}
    for (kind, subject, message), count in rows.items():
        about = f" ({subject})" if subject else ""
        call = calls[kind, subject, message]
        suffix = f" [{call}]" if call and count == 1 else f" × {count:,}" if count > 1 else ""
        yield f"  {kind}{about}: {message}{suffix}"


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
    """Replay the events up to a turn, render and check. Nothing is written."""
    events = list(store.events(conversation))
    name, end, turns = up_to(events, turn)
    records = events[:end]
    timeline = replayed(records)
    chat = timeline.chat
    chosen, model = _aim(timeline, events[end:], target, model)
    rendered = chat.render(chosen, model)
    verdict = check(rendered.body, chosen, model=model)
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
        target=chosen,
        model=model,
        verdict=verdict,
        findings=list(report.findings),
        compressed=list(note_lines([n for n in chat.compressed if not chat.history.took_back(n.calls)])),
        broken_in=None if verdict else _layer(rendered, chosen),
        store=_known(records, timeline, store.lease(conversation)),
        counts=counts,
        body=rendered.body,
    )


def _aim(timeline: Timeline, later: Iterable[Record], target: str | None, model: str | None) -> tuple[str, str | None]:
    """The target API and model: those given, else those in effect at that turn.

    An imported conversation records its API after its messages, so where none is known yet the next one is taken.
    """
    request = timeline.chat.request
    known, known_model = timeline.target, timeline.model
    if known is None and request.native is not None:
        known, known_model = request.native.api, request.model
    if known is None:
        targets = (r.event for r in later if isinstance(r.event, Sent | Switched) and r.event.target)
        following = next(targets, None)
        known, known_model = (following.target, following.model) if following is not None else (None, None)
    chosen = target or known
    if chosen is None:
        raise InputError("no request was sent yet: name the target API with --to", path="target")
    if model is None and chosen == known:
        model = known_model
    origin = WIRES.get(request.native.api) if request.native is not None else None
    if model is None and origin is not None and origin.provider == find(chosen, argument="target").provider:
        model = request.model
    return chosen, model


def _known(records: Sequence[Record], timeline: Timeline, lease: Lease | None) -> dict[str, Any]:
    """The state of the store up to the turn."""
    history: History = timeline.chat.history
    undone = {record.event.seq for record in records if isinstance(record.event, Undone)}
    return {
        "events": dict(Counter(kind_of(record.event) for record in records)),
        "messages": sum(is_message(record.event) for record in records),
        "in hand": f"since {iso(lease.since)}, until {iso(lease.expires)}" if lease else "none",
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
            suffix = ", undone" if record.seq in undone else ""
            event = record.event
            remaining = counted(sum(stop - start for start, stop in event.kept) + len(event.replaced), "message")
            yield f"event {record.seq}: {event.strategy} to {event.budget} tokens, {remaining} left{suffix}"


def _broken(records: Iterable[Record]) -> Iterator[str]:
    for record in records:
        if isinstance(record.event, Broke):
            reply = record.event.reply
            calls = f", {counted(len(reply.calls), 'call')}" if reply.calls else ""
            yield f"event {record.seq}: {reply.finish}{calls}, {shortened(reply.text, 40)!r}"


def _layer(rendered: Rendered, target: str) -> Fault:
    """The layer that caused a body to be rejected."""
    emitted = len(rendered.report.emitted_calls), len(rendered.report.emitted_results)
    try:
        parsed = Conversation.from_body(rendered.body, source=WIRES[target].name)
    except InputError:
        return "projection"
    blocks = [block for message in parsed.messages for block in message.blocks]
    calls = [block for block in blocks if isinstance(block, ToolCall)]
    results = [block for block in blocks if isinstance(block, ToolResponse)]
    paired = {call.id for call in calls} >= {result.call_id for result in results}
    return "projection" if (len(calls), len(results)) == emitted and paired else "rendering"
