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

from segue._check import check
from segue._conversation import Conversation
from segue._literals import Api
from segue._rendered import Rendered
from segue.canonical.blocks import ToolCall, ToolResponse
from segue.canonical.history import History
from segue.cli.findings import format_finding
from segue.conformance.rule import Verdict
from segue.errors import InputError
from segue.render.report import Fault, Finding
from segue.store.base import ConversationStore, Lease, StoredEvent, format_time
from segue.store.events import (
    CallCancelled,
    CallCompleted,
    CompressionApplied,
    CompressionUndone,
    MessageAdded,
    ReplyBroken,
    Rewound,
    Sent,
    Switched,
    event_kind,
)
from segue.store.replay import ReplayState, replay_events
from segue.view.format import format_changes, format_count, shorten
from segue.view.lines import is_message
from segue.wire.registry import WIRES, find_wire, find_wire_or_server

LAYERS: dict[Fault, str] = {
    "canonical": "canonical state: the history itself is incomplete or inconsistent, for any target",
    "rendering": "rendering: this target requires a different form",
    "projection": "projection: this target's API can't express it, or encodes it differently",
}
# Text labels of those keys of `Diagnosis.store` whose JSON names are not clear.
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
    compression_lines: list[str]
    """Summary lines of the compressions still in effect."""
    faulty_layer: Fault | None
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
            "verdict": {**self.verdict.to_dict(), "layer": LAYERS[self.faulty_layer] if self.faulty_layer else None},
        }
        return {**fields, "body": self.body} if with_body else fields

    def lines(self, *, verbose: bool = False) -> Iterator[str]:
        """Yield the diagnosis as text; notes only if `verbose`."""
        yield f"segue {metadata.version('segue')}, Python {platform.python_version()}, {platform.system()}"
        yield f"conversation {self.id}, {format_count(self.turns, 'turn')}; {self.turn}, up to event {self.events}"
        yield f"target {self.target}{f' ({self.model})' if self.model else ''}"
        yield ""
        yield "store:"
        yield from (f"  {_LABELS.get(name, name)}: {_format_value(value)}" for name, value in self.store.items())
        yield ""
        yield "request:"
        yield from (f"  {name}: {count:,}" for name, count in self.counts.items())
        for fault, layer in LAYERS.items():
            of_layer = [
                finding for finding in self.findings if finding.fault == fault and (verbose or finding.level != "note")
            ]
            if of_layer:
                yield ""
                yield f"{layer}:"
                yield from (
                    f"  {format_finding(finding, details=True)}" for finding in of_layer if finding.kind != "compressed"
                )
                if any(finding.kind == "compressed" for finding in of_layer):
                    yield from (f"  changed: compressed: {line}" for line in self.compression_lines)
        note_count = 0 if verbose else sum(finding.level == "note" for finding in self.findings)
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


def _format_value(value: Any) -> str:
    if isinstance(value, dict):
        counts = cast("dict[str, int]", value)
        return ", ".join(f"{count:,} {name}" for name, count in counts.items()) or "none"
    if isinstance(value, list):
        return "; ".join(cast("list[str]", value)) or "none"
    return f"{value:,}" if isinstance(value, int) else str(value)


def diagnose(
    store: ConversationStore, conversation: str, turn: str | None, target: str | None, model: str | None
) -> Diagnosis:
    """Replay the events up to a turn, render and check. Nothing is written."""
    # The events are read twice, and not held in memory.
    name, end, turns = _select_turn(store.events(conversation), turn)
    facts = _EventFacts()
    replayed = replay_events(facts.observe(store.events(conversation, until=end)))
    chat = replayed.chat
    chosen, model = _choose_target(replayed, store.events(conversation, after=replayed.seq), target, model)
    api = cast("Api", chosen)
    rendered = chat.render(api, model)
    verdict = check(rendered.body, api, model=model)
    report = rendered.report
    counts = {
        "messages": len(chat.messages),
        "calls": len(report.emitted_calls),
        "results": len(report.emitted_results),
        "bytes": sum(map(len, rendered.fragments)),
    }
    return Diagnosis(
        id=conversation,
        turn=name,
        turns=turns,
        events=replayed.seq,
        target=chosen,
        model=model,
        verdict=verdict,
        findings=list(report.findings),
        compression_lines=list(
            format_changes([n for n in chat.state.compression_changes if not chat.state.history.is_rewound(n.calls)])
        ),
        faulty_layer=None if verdict else _find_layer(rendered, chosen),
        store=_store_facts(facts, replayed, store.lease(conversation)),
        counts=counts,
        body=rendered.body,
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
    """What the diagnosis prints of the events, collected while they are replayed."""

    def __init__(self) -> None:
        self.kinds: Counter[str] = Counter()
        self.messages = 0
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
            elif isinstance(event, ReplyBroken):
                self.broken_replies.append(_format_broken(record.seq, event))
            yield record


def _store_facts(facts: _EventFacts, replayed: ReplayState, lease: Lease | None) -> dict[str, Any]:
    """Return the state of the store up to the turn."""
    history: History = replayed.chat.state.history
    return {
        "events": dict(facts.kinds),
        "messages": facts.messages,
        "in hand": f"since {format_time(lease.since)}, until {format_time(lease.expires)}" if lease else "none",
        "calls": dict(Counter(entry.state for entry in history.ledger.values())),
        "waiting": [f"{call.name} [{call.id}]" for call in replayed.chat.pending],
        "compressions": facts.compressions,
        "broken replies": facts.broken_replies,
        "evidence": [
            f"{entry.call.name} [{call_id}]: {entry.state}, and {len(entry.evidence)} more"
            for call_id, entry in history.conflicting.items()
        ],
    }


def _format_compression(seq: int, event: CompressionApplied) -> str:
    remaining = format_count(sum(stop - start for start, stop in event.kept) + len(event.replaced), "message")
    return f"event {seq}: {event.strategy} to {event.budget} tokens, {remaining} left"


def _format_broken(seq: int, event: ReplyBroken) -> str:
    reply = event.reply
    calls = f", {format_count(len(reply.calls), 'call')}" if reply.calls else ""
    return f"event {seq}: {reply.finish}{calls}, {shorten(reply.text, 40)!r}"


def _find_layer(rendered: Rendered, target: str) -> Fault:
    """Return the layer that caused a body to be rejected."""
    emitted = len(rendered.report.emitted_calls), len(rendered.report.emitted_results)
    try:
        parsed = Conversation.from_body(rendered.body, source=cast("Api", target))
    except InputError:
        return "projection"
    blocks = [block for message in parsed.messages for block in message.blocks]
    calls = [block for block in blocks if isinstance(block, ToolCall)]
    results = [block for block in blocks if isinstance(block, ToolResponse)]
    paired = {call.id for call in calls} >= {result.call_id for result in results}
    return "projection" if (len(calls), len(results)) == emitted and paired else "rendering"


# ---------------------------------------------------------------------------------------------------------------- turns


class _TurnSpan(Struct):
    """One turn: its key, if any, and the index range of its events; `end` is None up to the last event.

    A turn starts with a reply and ends at the next reply or where it is rewound, so its events are the state in which
    the next request was made. Imported replies without tool calls have no turn key, so turns are numbered as well.
    """

    key: str | None
    start: int
    end: int | None = None


def _find_turns(records: Iterable[StoredEvent]) -> list[_TurnSpan]:
    """Return all turns in the order in which they were written, including turns that were rewound later."""
    turns: list[_TurnSpan] = []
    keys: set[str] = set()
    in_reply = False
    for index, record in enumerate(records):
        match record.event:
            case MessageAdded(message) if message.speaker == "ai":
                key = message.turn_key
                continues = in_reply and (key is None or turns[-1].key is None)
                if not continues and (key is None or key not in keys):
                    _end_last_turn(turns, index)
                    turns.append(_TurnSpan(key, index))
                elif continues and turns[-1].key is None:
                    turns[-1].key = key
                keys.update((key,) if key is not None else ())
                in_reply = True
            case MessageAdded() | CallCompleted() | CallCancelled() | Sent():
                in_reply = False
            case Rewound():
                _end_last_turn(turns, index)
                in_reply = False
            case _:
                pass
    return turns


def _end_last_turn(turns: Sequence[_TurnSpan], index: int) -> None:
    """End the last turn here, unless it was rewound before."""
    if turns and turns[-1].end is None:
        turns[-1].end = index


def _select_turn(records: Iterable[StoredEvent], turn: str | None) -> tuple[str, int | None, int]:
    """Return a description of the turn, the number of its last event (None: the last one), and the number of turns."""
    turns = _find_turns(records)
    if turn is None:
        return "now", None, len(turns)
    number = _find_number(turns, turn)
    if number:
        span = turns[number - 1]
        return f"after turn {number}{f' ({span.key})' if span.key else ''}", span.end, len(turns)
    return "before the first turn", turns[0].start if turns else None, len(turns)


def _find_number(turns: Sequence[_TurnSpan], turn: str) -> int:
    """Return the number of a turn given as key, key prefix or number."""
    keys = [span.key or "" for span in turns]
    if turn and turn in keys:
        return keys.index(turn) + 1
    if turn.isdecimal() and len(turn) < 10 and int(turn) <= len(keys):
        return int(turn)
    matches = [key for key in keys if key.startswith(turn)] if turn else []
    if len(matches) == 1:
        return keys.index(matches[0]) + 1
    problem = f"several turns start with {turn!r}" if matches else f"no turn {turn!r}"
    raise InputError(f"{problem}; turns are numbered 0 to {len(keys)}", path="turn")
