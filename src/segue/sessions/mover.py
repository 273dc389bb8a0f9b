"""Moves a session from one client to another: into a new session, or to the end of the one that it came from.

Nothing is written before the whole move is rendered; what is written is read back and compared. A session of the target
is extended only if it is unchanged since the last move and not open. Otherwise a new session continues it.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Struct

from segue.canonical.blocks import calls_of, responses_of
from segue.canonical.ids import hash_tool_id
from segue.errors import InputError
from segue.sessions.client import Client, Draft, Place, SessionFile, Unit
from segue.sessions.files import Fingerprint
from segue.sessions.journeys import Journey, JourneyStore, Stop
from segue.sessions.move_report import Action, MoveReport, build_report
from segue.sessions.rendering import CLOSING_TEXT, Rendering, render_more, render_session, split_body
from segue.sessions.session import Entry, Session, digest_entries, parse_session


class Plan(Struct, frozen=True):
    """A move that is ready to be written: the journey, the session it comes from, and what the target gets.

    `base` is the session of the target that is extended or copied; None for a new session. `data` is what is appended,
    or the content of the new session.
    """

    journey: Journey
    source: Session
    client: Client
    action: Action
    draft: Draft
    rendering: Rendering | None
    base: Stop | None
    before: bytes
    data: bytes
    report: MoveReport


class Moved(Struct, frozen=True):
    """A finished move: the session of the target, the command that resumes it, and the report."""

    session: SessionFile
    command: tuple[str, ...]
    report: MoveReport


class Mover:
    """Moves sessions of a user's clients. `now` is in microseconds since 1970."""

    def __init__(self, place: Place, journeys: JourneyStore, now: int) -> None:
        self._place = place
        self._journeys = journeys
        self._now = now

    def plan(self, client: Client, file: SessionFile, target: Client, cwd: str) -> Plan:
        """Prepare a move. Nothing is written."""
        source = parse_session(client, file, client.load(self._place, file))
        journey = self._join(source)
        stop = journey.latest_stop(target.name)
        facts = source.log.facts
        draft = Draft(
            target.new_id(self._now),
            (),
            cwd,
            self._now,
            source.file.title or facts.name or source.log.title,
            _find_model(journey, target),
            facts.git_branch,
            f"{client.name}:{file.id}",
        )
        if stop is None:
            rendering = render_session(target, journey.entries, cwd)
            if not rendering.units:
                raise InputError("this session has no messages", path=str(file.path))
            draft = msgspec.structs.replace(draft, units=rendering.units)
            data = target.encode(self._place, draft)
            return self._finish(journey, source, target, "created", draft, rendering, None, b"", data)
        if stop.done >= len(journey.entries) and self._load(target, stop.file) is not None:
            return self._finish(journey, source, target, "unchanged", draft, None, stop, b"", b"")
        return self._plan_more(journey, source, target, draft, stop)

    def _plan_more(self, journey: Journey, source: Session, target: Client, draft: Draft, stop: Stop) -> Plan:
        """Prepare the continuation of a session of the target, in its own folder."""
        draft = msgspec.structs.replace(draft, cwd=stop.file.cwd or draft.cwd)
        rendering = render_more(target, journey.entries, stop.done, stop.open_calls, draft.cwd)
        draft = msgspec.structs.replace(draft, units=rendering.units)
        before = self._load(target, stop.file)
        if before is not None and stop.fingerprint.matches(before) and not target.is_open(self._place, stop.file):
            own = msgspec.structs.replace(draft, id=stop.file.id)
            data = target.encode_more(before, own)
            return self._finish(journey, source, target, "extended", own, rendering, stop, before, data)
        # It was changed, is open, or is gone: a new session continues it as it was.
        before = self._journeys.load_content(target.name, stop.file.id)
        if before is None:
            raise InputError(f"the record of moved sessions has no copy of {stop.file.id}", path=str(stop.file.path))
        draft = msgspec.structs.replace(draft, parent=f"{target.name}:{stop.file.id}")
        copied = target.copy(before, draft)
        data = target.join(copied, target.encode_more(copied, draft)) if draft.units else copied
        return self._finish(journey, source, target, "copied", draft, rendering, stop, b"", data)

    def _finish(
        self,
        journey: Journey,
        source: Session,
        target: Client,
        action: Action,
        draft: Draft,
        rendering: Rendering | None,
        base: Stop | None,
        before: bytes,
        data: bytes,
    ) -> Plan:
        report = build_report(source, target, action, rendering)
        return Plan(journey, source, target, action, draft, rendering, base, before, data, report)

    def write(self, plan: Plan) -> Moved:
        """Write a planned move, read it back, and record it."""
        target, draft = plan.client, plan.draft
        if plan.action == "unchanged" and plan.base is not None:
            self._journeys.save(plan.journey)
            return Moved(plan.base.file, target.resume(plan.base.file), plan.report)
        # Compared before it is written: what the target would read.
        file = SessionFile(target.name, draft.id, target.locate(self._place, draft), draft.cwd)
        if plan.action == "extended" and plan.base is not None:
            file = plan.base.file
        expected = target.join(plan.before, plan.data)
        session = _compare(target, file, expected, draft.units)
        if plan.action == "extended" and plan.base is not None:
            target.extend(self._place, file, plan.base.fingerprint, plan.data)
        else:
            file = target.create(self._place, draft, plan.data)
        try:
            written = target.load(self._place, file)
            if written != expected:
                session = _compare(target, file, written, draft.units)
        except InputError:
            if plan.action != "extended":
                target.remove(self._place, file)
            raise
        done = len(plan.journey.entries)
        stop = Stop(
            file, Fingerprint.of(written), len(session.entries), digest_entries(session.entries), done, self._now
        )
        plan.journey.set_stop(stop, written)
        self._journeys.save(plan.journey)
        return Moved(file, target.resume(file), plan.report)

    # -------------------------------------------------------------------------------------------------------- journeys

    def _join(self, source: Session) -> Journey:
        """Return the journey of a session, with the messages that are new in it."""
        file = source.file
        journey = self._journeys.find(file.client, file.id)
        stop = journey.find_stop(file.client, file.id) if journey is not None else None
        own = list(source.entries)
        open_calls: tuple[str, ...] = ()
        if journey is None or stop is None or digest_entries(own[: stop.own]) != stop.own_digest:
            # A session that never moved, or was rewound or compacted since.
            journey, new = Journey.start(), own
        else:
            new, open_calls = own[stop.own :], stop.open_calls
            if new and stop.done < len(journey.entries):
                # Both this session and another one continued the journey: this one is a branch of its own.
                kept = [other for other in journey.stops if other.done <= stop.done and other != stop]
                journey = Journey(Journey.start().id, journey.entries[: stop.done], kept)
            elif stop.done < len(journey.entries):
                journey = Journey(journey.id, journey.entries[: stop.done], journey.stops)
        new = _with_new_ids(new, journey.entries)
        journey.entries = [*journey.entries, *new]
        stop = Stop(
            file,
            Fingerprint.of(source.data),
            len(own),
            digest_entries(own),
            len(journey.entries),
            self._now,
            _find_open_calls(open_calls, new),
        )
        journey.set_stop(stop, source.data)
        return journey

    def _load(self, client: Client, file: SessionFile) -> bytes | None:
        try:
            return client.load(self._place, file)
        except InputError:
            return None


def _find_open_calls(before: tuple[str, ...], new: list[Entry]) -> tuple[str, ...]:
    """Return the calls without a result: of those that were open before, and of new messages."""
    calls = [*before, *(call.id for entry in new for call in calls_of(entry.message) if call.kind != "hosted")]
    answered = {response.call_id for entry in new for response in responses_of(entry.message)}
    return tuple(call_id for call_id in calls if call_id not in answered)


def _with_new_ids(new: list[Entry], before: list[Entry]) -> list[Entry]:
    """Return messages whose calls have ids of their own: two sessions may have equal calls."""
    taken = {call.id for entry in before for call in calls_of(entry.message)}
    names: dict[str, str] = {}
    for entry in new:
        for call in calls_of(entry.message):
            if call.id in taken:
                names[call.id] = hash_tool_id(entry.client, call.id, call.name, entry.message.turn_key, len(taken))
            taken.add(names.get(call.id, call.id))
    if not names:
        return new
    return [msgspec.structs.replace(entry, message=_rename(entry, names)) for entry in new]


def _rename(entry: Entry, names: dict[str, str]) -> Any:
    changed = {
        **{id(call): msgspec.structs.replace(call, id=names.get(call.id, call.id)) for call in calls_of(entry.message)},
        **{
            id(response): msgspec.structs.replace(response, call_id=names.get(response.call_id, response.call_id))
            for response in responses_of(entry.message)
        },
    }
    blocks = tuple(changed.get(id(block), block) for block in entry.message.blocks)
    return msgspec.structs.replace(entry.message, blocks=blocks)


def _find_model(journey: Journey, target: Client) -> str | None:
    """Return the model of the target's own last messages."""
    models = (entry.model for entry in reversed(journey.entries) if entry.client == target.name)
    return next((model for model in models if model), None)


def _compare(client: Client, file: SessionFile, data: bytes, units: tuple[Unit, ...]) -> Session:
    """Parse a written session, and compare its end with the units; `InputError` if the client would read others."""
    session = parse_session(client, file, data)
    found = [client.normalize(value) for value in split_body(session.log.body, client.api)]
    expected = [client.normalize(unit.value) for unit in units]
    for values in (found, expected):
        if values and CLOSING_TEXT in str(values[-1]):
            values.pop()
    if found[len(found) - len(expected) :] != expected:
        raise InputError("the written session would not be read as it was meant: a bug in segue", path=str(file.path))
    return session
