"""Diagnosis of one request of a stored conversation: store state, report and conformance verdict.

A violation in a rendered body is a bug in segue, so the faulty layer is named: if the body, parsed again, has the same
interactions as the transcript, they were only encoded wrongly (projection); if not, they were lost or separated while
rendering.
"""

from __future__ import annotations

import platform
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from importlib import metadata
from typing import Any, cast

import msgspec
from msgspec import Struct

from segue._conversation import Conversation
from segue._literals import Api
from segue.canonical.blocks import ToolCall, ToolResponse
from segue.cli.findings import format_finding
from segue.cli.turns import TurnList
from segue.cli.window_check import WindowChecker
from segue.conformance.rule import Verdict
from segue.errors import InputError, format_count
from segue.render.compaction import is_compaction
from segue.render.report import Fault, Finding, Report
from segue.store.base import ConversationStore, Lease, StoredEvent, format_time
from segue.store.body import MIN_MESSAGES, render_body
from segue.store.events import (
    CompressionApplied,
    CompressionUndone,
    MessageAdded,
    ReplyBroken,
    Sent,
    Switched,
    event_kind,
)
from segue.store.replay import ReplayState
from segue.store.segments import SegmentedConversation, read_segments
from segue.view.format import format_changes, format_compaction, shorten
from segue.view.lines import is_message
from segue.wire.registry import WIRES, find_wire, find_wire_or_server

LAYERS: dict[Fault, str] = {
    "canonical": "canonical state: the history itself is incomplete or inconsistent, for any target",
    "rendering": "rendering: this target requires a different form",
    "projection": "projection: this target's API can't express it, or encodes it differently",
}


class StoreFacts(Struct, frozen=True):
    """The state of the store up to the turn. `lease` is the time in which another process may write."""

    events: dict[str, int]
    messages: int
    lease: str | None
    calls: dict[str, int]
    pending_calls: list[str]
    compressions: list[str]
    compactions: list[str]
    broken_replies: list[str]
    conflicting_results: list[str]


class RequestCounts(Struct, frozen=True):
    """The size of the request."""

    messages: int
    calls: int
    results: int
    bytes: int


class Diagnosis(Struct):
    """The value that `segue diag --json` prints: everything about one request. `body` is printed with `--body` only.

    Each finding and the verdict have the `layer` that caused them; the verdict has `accepted` and its `violations`.
    """

    id: str
    turn: str
    turns: int
    events: int
    target: str
    model: str | None
    store: StoreFacts
    request: RequestCounts
    findings: list[Finding]
    verdict: Verdict
    body: Mapping[str, Any] | None
    compression_lines: list[str]
    """Summary lines of the compressions still in effect, for the text."""
    faulty_layer: Fault | None

    def to_dict(self) -> dict[str, Any]:
        return {
            "version": 1,
            "segue": metadata.version("segue"),
            "python": platform.python_version(),
            "id": self.id,
            "turn": self.turn,
            "turns": self.turns,
            "events": self.events,
            "target": self.target,
            "model": self.model,
            "store": self.store,
            "request": self.request,
            "findings": [{**msgspec.to_builtins(finding), "layer": LAYERS[finding.fault]} for finding in self.findings],
            "verdict": {**self.verdict.to_dict(), "layer": LAYERS[self.faulty_layer] if self.faulty_layer else None},
            **({} if self.body is None else {"body": self.body}),
        }

    def lines(self, *, verbose: bool = False) -> Iterator[str]:
        """Yield the diagnosis as text; notes only if `verbose`."""
        yield f"segue {metadata.version('segue')}, Python {platform.python_version()}, {platform.system()}"
        yield f"conversation {self.id}, {format_count(self.turns, 'turn')}; {self.turn}, up to event {self.events}"
        yield f"target {self.target}{f' ({self.model})' if self.model else ''}"
        yield ""
        yield "store:"
        yield from _fact_lines(self.store)
        yield ""
        yield "request:"
        yield from _fact_lines(self.request)
        shown = [one for one in self.findings if verbose or one.level != "note" or one.subject == "compaction"]
        for fault, layer in LAYERS.items():
            of_layer = [finding for finding in shown if finding.fault == fault]
            if of_layer:
                yield ""
                yield f"{layer}:"
                yield from (
                    f"  {format_finding(finding, details=True)}" for finding in of_layer if finding.kind != "compressed"
                )
                if any(finding.kind == "compressed" for finding in of_layer):
                    yield from (f"  changed: compressed: {line}" for line in self.compression_lines)
        note_count = len(self.findings) - len(shown)
        if note_count:
            yield ""
            yield f"{format_count(note_count, 'note')}, printed with -v"
        elif not self.findings:
            yield ""
            yield "no findings: the history is sent unchanged"
        yield ""
        yield from self._verdict_lines()

    def _verdict_lines(self) -> Iterator[str]:
        for violation in self.verdict:
            yield f"{violation.severity} {violation.rule} {violation.path or 'the body'}: {violation.message}"
        if self.verdict:
            yield f"accepted: {self.target} would accept this request"
            return
        yield f"refused: {self.target} would reject this request"
        if self.faulty_layer:
            layer = LAYERS[self.faulty_layer].split(":")[0]
            yield f"segue rendered this body, so this is a bug in segue, layer: {layer}"


def _fact_lines(facts: StoreFacts | RequestCounts) -> Iterator[str]:
    for name, value in msgspec.structs.asdict(facts).items():
        yield f"  {name.replace('_', ' ')}: {_format_value(value)}"


def _format_value(value: Any) -> str:
    if isinstance(value, dict):
        counts = cast("dict[str, int]", value)
        return ", ".join(f"{count:,} {name}" for name, count in counts.items()) or "none"
    if isinstance(value, list):
        return "; ".join(cast("list[str]", value)) or "none"
    return f"{value:,}" if isinstance(value, int) else value or "none"


def diagnose(
    store: ConversationStore,
    conversation: str,
    turn: str | None,
    target: str | None,
    model: str | None,
    *,
    with_body: bool = False,
) -> Diagnosis:
    """Replay the events up to a turn, render and check. Nothing is written; the body is decoded only `with_body`."""
    name, end, turns, facts = "now", None, TurnList(), _EventFacts()
    if turn is not None:
        for _ in turns.observe(store.events(conversation)):
            pass
        name, end = turns.select(turn)

    def observe(records: Iterator[StoredEvent]) -> Iterator[StoredEvent]:
        nonlocal facts, turns
        facts = _EventFacts()
        if turn is not None:
            return facts.observe(records)
        turns = TurnList()
        return facts.observe(turns.observe(records))

    read = read_segments(store, conversation, until=end, min_messages=MIN_MESSAGES, observe=observe)
    replayed = read.state
    chosen, model = _choose_target(replayed, store.events(conversation, after=replayed.seq), target, model)
    checker = WindowChecker(chosen, model)
    with render_body(read, chosen, model, on_piece=checker.add) as rendered:
        report = rendered.report
        verdict = checker.verdict(rendered)
        body = rendered.decode() if with_body or not verdict else None
    state = replayed.chat.state
    return Diagnosis(
        id=conversation,
        turn=name,
        turns=len(turns.spans),
        events=replayed.seq,
        target=chosen,
        model=model,
        verdict=verdict,
        findings=list(report.findings),
        compression_lines=list(
            format_changes([n for n in state.compression_changes if not state.history.is_rewound(n.calls)])
        ),
        faulty_layer=None if body is None or verdict else _find_layer(body, report, chosen),
        store=_store_facts(facts, read, store.lease(conversation)),
        request=RequestCounts(
            read.facts.messages, len(report.emitted_calls), len(report.emitted_results), rendered.size
        ),
        body=body if with_body else None,
    )


def _choose_target(
    replayed: ReplayState, later: Iterable[StoredEvent], target: str | None, model: str | None
) -> tuple[str, str | None]:
    """Return the target API and model: those given, else those in effect at that turn.

    An imported conversation records its API after its messages, so where none is known yet the next one is taken.
    """
    request = replayed.chat.state.request
    known, known_model = replayed.target, replayed.model
    if known is None and request.native is not None:
        known, known_model = request.native.api, request.model
    if known is None:
        targets = (r.event for r in later if isinstance(r.event, Sent | Switched) and r.event.target)
        following = next(targets, None)
        known, known_model = (following.target, following.model) if following is not None else (None, None)
    row = find_wire_or_server(target, argument="target") if target is not None else None
    chosen = known if row is None else row.profile or row.name
    if chosen is None:
        raise InputError("no request was sent yet: name the target API with --to", path="target")
    if model is None and chosen == known:
        model = known_model
    origin = WIRES.get(request.native.api) if request.native is not None else None
    if model is None and origin is not None and origin.provider == find_wire(chosen, argument="target").provider:
        model = request.model
    return chosen, model


class _EventFacts:
    """Values of the events that the diagnosis prints, collected while they are replayed."""

    def __init__(self) -> None:
        self.kinds: Counter[str] = Counter()
        self.messages = 0
        self.compactions: list[str] = []
        self.broken_replies: list[str] = []
        self._compressions: dict[int, str] = {}
        self._undone: set[int] = set()

    @property
    def compressions(self) -> list[str]:
        return [text + (", undone" if seq in self._undone else "") for seq, text in self._compressions.items()]

    def observe(self, records: Iterable[StoredEvent]) -> Iterator[StoredEvent]:
        for record in records:
            event = record.event
            self.kinds[event_kind(event)] += 1
            self.messages += is_message(event)
            if isinstance(event, CompressionApplied):
                self._compressions[record.seq] = _format_compression(record.seq, event)
            elif isinstance(event, CompressionUndone):
                self._undone.add(event.seq)
            elif isinstance(event, MessageAdded):
                made = filter(is_compaction, event.message.blocks)
                self.compactions += (f"event {record.seq}: {format_compaction(block)}" for block in made)
            elif isinstance(event, ReplyBroken):
                self.broken_replies.append(_format_broken(record.seq, event))
            yield record


def _store_facts(facts: _EventFacts, read: SegmentedConversation, lease: Lease | None) -> StoreFacts:
    """Return the state of the store up to the turn."""
    return StoreFacts(
        events=dict(facts.kinds),
        messages=facts.messages,
        lease=f"since {format_time(lease.since)}, until {format_time(lease.expires)}" if lease else None,
        calls={**read.facts.call_states},
        pending_calls=[f"{call.name} [{call.id}]" for call in read.state.chat.pending],
        compressions=facts.compressions,
        compactions=facts.compactions,
        broken_replies=facts.broken_replies,
        conflicting_results=[
            f"{entry.call.name} [{call_id}]: {entry.state}, and {len(entry.evidence)} more"
            for call_id, entry in read.facts.conflicting.items()
        ],
    )


def _format_compression(seq: int, event: CompressionApplied) -> str:
    remaining = format_count(sum(stop - start for start, stop in event.kept) + len(event.replaced), "message")
    return f"event {seq}: {event.strategy} to {event.budget} tokens, {remaining} left"


def _format_broken(seq: int, event: ReplyBroken) -> str:
    reply = event.reply
    calls = f", {format_count(len(reply.calls), 'call')}" if reply.calls else ""
    return f"event {seq}: {reply.finish}{calls}, {shorten(reply.text, 40)!r}"


def _find_layer(body: Mapping[str, Any], report: Report, target: str) -> Fault:
    """Return the layer that caused a body to be rejected."""
    emitted = len(report.emitted_calls), len(report.emitted_results)
    try:
        parsed = Conversation.from_body(body, source=cast("Api", target))
    except InputError:
        return "projection"
    blocks = [block for message in parsed.messages for block in message.blocks]
    calls = [block for block in blocks if isinstance(block, ToolCall)]
    results = [block for block in blocks if isinstance(block, ToolResponse)]
    paired = {call.id for call in calls} >= {result.call_id for result in results}
    return "projection" if (len(calls), len(results)) == emitted and paired else "rendering"
