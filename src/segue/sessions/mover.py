"""Moves a session from one client to another: into a new session, or to the end of the one that it came from.

Nothing is written before the whole move is rendered and recorded, so that the next move finishes one that was killed;
what is written is read back and compared. A session of the target is extended only if it is unchanged since the last
move and not open. Otherwise a new session continues it.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from segue.bridge.envelope_keys import load_envelope_keys
from segue.canonical.blocks import calls_of, responses_of
from segue.canonical.ids import hash_tool_id
from segue.errors import InputError
from segue.sessions.client import Client, Draft, Place, SessionFile, Unit
from segue.sessions.files import Fingerprint
from segue.sessions.journeys import Journey, JourneyStore, Stop
from segue.sessions.move_report import Action, MoveReport, build_report
from segue.sessions.registry import CLIENTS
from segue.sessions.rendering import CLOSING_TEXT, render_more, render_session, split_body
from segue.sessions.seal import has_seal, open_seal, seal_journey
from segue.sessions.session import Entry, Session, digest_entries, has_digest, parse_session


class Plan(Struct, frozen=True):
    """A move that is ready to be written: the journey, the session it comes from, and what the target gets.

    `reach` is the number of messages of the journey that the target has afterwards. `base` is the session of the target
    that is extended or copied; None for a new session. `before` is the content of that session or of its copy, which
    the units of the draft are added to.
    """

    journey: Journey
    reach: int
    source: Session
    target: Client
    draft: Draft
    report: MoveReport
    base: Stop | None = None
    before: bytes = b""

    @property
    def action(self) -> Action:
        return self.report.action


class Moved(Struct, frozen=True):
    """A finished move: the session of the target, the command that resumes it, and the report."""

    session: SessionFile
    command: tuple[str, ...]
    report: MoveReport


class Mover:
    """Moves sessions of a user's clients. `now` is in microseconds since 1970.

    `key_file` is the file with the key of seals; the default is that of envelopes.
    """

    def __init__(self, place: Place, journeys: JourneyStore, now: int, key_file: Path | None = None) -> None:
        self.place = place
        self.journeys = journeys
        self._now = now
        self._key_file = key_file

    def plan(self, client: Client, file: SessionFile, target: Client, cwd: str, *, is_dry: bool = False) -> Plan:
        """Prepare a move. Nothing is written, except the rest of a session that a killed move wrote a part of; with
        `is_dry` the plan is made as if it were."""
        found = self.journeys.find(file.client, file.id)
        if found is not None and found.unfinished is not None:
            self._finish(found, *found.unfinished, is_dry=is_dry)
        source = parse_session(client, file, client.load(self.place, file))
        journey, reach = self._join(source, found)
        entries = journey.entries[:reach]
        facts = source.log.facts
        draft = Draft(
            target.new_id(self._now),
            (),
            cwd,
            self._now,
            file.title or facts.name or source.log.title,
            _find_model(entries, target),
            facts.git_branch,
            f"{client.name}:{file.id}",
        )
        base = journey.latest_stop(target.name)
        plan = Plan(journey, reach, source, target, draft, build_report(source, target, "unchanged", None), base)
        if base is not None and (base.reach < reach or self._load(target, base.file) is None):
            return self._plan_more(plan, base)
        if base is not None:
            return plan
        rendering = render_session(target, entries, cwd, self._servers(cwd))
        if not rendering.units:
            raise InputError("this session has no messages", path=str(file.path))
        draft = msgspec.structs.replace(draft, units=rendering.units)
        report = build_report(source, target, "created", rendering)
        report = msgspec.structs.replace(report, warnings=target.find_warnings(self.place, cwd))
        return msgspec.structs.replace(plan, draft=draft, report=report)

    def _servers(self, cwd: str) -> set[str]:
        """Return the names of the user's MCP servers, as far as they are needed to recognise their tools."""
        return {name for client in CLIENTS.values() for name in client.read_servers(self.place, cwd)}

    def _plan_more(self, plan: Plan, base: Stop) -> Plan:
        """Prepare the continuation of a session of the target, in its own folder."""
        target, place = plan.target, self.place
        cwd = base.file.cwd or plan.draft.cwd
        entries, servers = plan.journey.entries[: plan.reach], self._servers(cwd)
        rendering = render_more(target, entries, base.reach, base.open_calls, cwd, servers)
        draft = msgspec.structs.replace(plan.draft, cwd=cwd, units=rendering.units)
        before = self._load(target, base.file)
        is_unchanged = before is not None and self._is_unchanged(plan, base, before)
        if before is not None and is_unchanged and not target.is_open(place, base.file):
            draft = msgspec.structs.replace(draft, id=base.file.id)
            report = build_report(plan.source, target, "extended", rendering)
            base = msgspec.structs.replace(base, fingerprint=Fingerprint.of(before))
            return msgspec.structs.replace(plan, draft=draft, report=report, before=before, base=base)
        # A new session begins with the copy from the last move.
        reason = "is open" if is_unchanged else "was changed"
        reason = "was deleted" if before is None else reason
        before = self.journeys.load_content(plan.journey, base)
        if before is None:
            raise InputError(f"the record of moved sessions has no copy of {base.file.id}", path=str(base.file.path))
        # A session from a seal may be of a folder on another machine.
        cwd = cwd if Path(cwd).is_dir() else plan.draft.cwd
        draft = msgspec.structs.replace(draft, cwd=cwd, parent=f"{target.name}:{base.file.id}")
        report = build_report(plan.source, target, "copied", rendering)
        report = msgspec.structs.replace(report, original=f"{base.file.id} {reason}")
        return msgspec.structs.replace(plan, draft=draft, report=report, before=target.writer.copy(before, draft))

    def _is_unchanged(self, plan: Plan, base: Stop, content: bytes) -> bool:
        """Return whether a session is as the last move read or wrote it."""
        if base.fingerprint.matches(content):
            return True
        recorded = self.journeys.load_content(plan.journey, base)
        return recorded is not None and plan.target.is_same(recorded, content)

    def write(self, plan: Plan) -> Moved:
        """Write a planned move, read it back, and record it."""
        target, journey = plan.target, plan.journey
        if plan.base is not None and plan.action == "unchanged":
            self.journeys.save(journey)
            return Moved(plan.base.file, target.resume(plan.base.file), plan.report)
        file = SessionFile(target.name, plan.draft.id, target.locate(self.place, plan.draft), plan.draft.cwd)
        if plan.base is not None and plan.action == "extended":
            file = plan.base.file
        # Nothing is written unless the target would read it back unchanged, with and without the seal.
        content, added = self._encode(plan)
        session = _compare(target, file, content, plan.draft.units)
        plan = self._seal(plan, self._stop(plan, file, content, session))
        draft = plan.draft
        if draft.seal is not None:
            content, added = self._encode(plan)
            session = _compare(target, file, content, draft.units)
        journey.unfinished = self._stop(plan, file, content, session), content
        self.journeys.save(journey)
        if plan.base is not None and plan.action == "extended":
            target.extend(self.place, file, plan.base.fingerprint, added)
        else:
            file = target.create(self.place, draft, content)
        try:
            written = target.load(self.place, file)
            if written != content:
                session = _compare(target, file, written, draft.units)
            journey.set_stop(self._stop(plan, file, written, session), written)
            journey.unfinished = None
            self.journeys.save(journey)
        except InputError:
            if plan.action != "extended":
                with suppress(InputError):
                    target.remove(self.place, file)
            raise
        return Moved(file, target.resume(file), plan.report)

    def _encode(self, plan: Plan) -> tuple[bytes, bytes]:
        """Return the content of the target's session, and the part of it that the draft adds."""
        target, draft = plan.target, plan.draft
        if not plan.before:
            data = target.writer.encode(target.complete(self.place, draft))
            return data, data
        if not draft.units:
            return plan.before, b""
        data = target.writer.encode_more(plan.before, draft)
        return target.join(plan.before, data), data

    def _stop(self, plan: Plan, file: SessionFile, content: bytes, session: Session) -> Stop:
        own = session.entries
        return Stop(file, Fingerprint.of(content), len(own), digest_entries(own), plan.reach, self._now)

    def _seal(self, plan: Plan, stop: Stop) -> Plan:
        """Return a plan with the seal of the session that is written, if it has room for it."""
        if not plan.target.max_seal or not plan.draft.units:
            return plan
        try:
            keys = load_envelope_keys(self._key_file)
        except InputError as error:
            warnings = (*plan.report.warnings, f"moved without a seal: {error}")
            return msgspec.structs.replace(plan, report=msgspec.structs.replace(plan.report, warnings=warnings))
        # A session without messages of its own client can be written again from the others.
        authors = {entry.client for entry in plan.journey.entries}
        stops = [each for each in plan.journey.stops if each.key != stop.key and each.file.client in authors]
        copies = [(each, self.journeys.load_content(plan.journey, each)) for each in stops]
        others = [(each, content) for each, content in copies if content is not None]
        seal = seal_journey(plan.journey.entries, others, stop, keys, plan.target.max_seal)
        return msgspec.structs.replace(plan, draft=msgspec.structs.replace(plan.draft, seal=seal))

    # -------------------------------------------------------------------------------------------------------- journeys

    def _finish(self, journey: Journey, stop: Stop, content: bytes, *, is_dry: bool) -> None:
        """Add the session that a killed move began to write to its journey, with what is missing of it; not one that
        was not written, or was changed since."""
        journey.unfinished = None
        target, before = CLIENTS[stop.file.client], journey.find_stop(*stop.key)
        written = self._load(target, stop.file)
        if written is None or (before is not None and before.fingerprint.matches(written)):
            return
        rest = target.find_rest(written, content)
        if rest and not is_dry and not target.is_open(self.place, stop.file):
            target.extend(self.place, stop.file, Fingerprint.of(written), rest)
            written = target.load(self.place, stop.file)
        written = content if rest and is_dry else written
        with suppress(InputError):
            own = parse_session(target, stop.file, written).entries
            if has_digest(own[: stop.own_count], stop.own_digest):
                is_same = len(own) == stop.own_count
                fingerprint = Fingerprint.of(written) if is_same else stop.fingerprint
                journey.set_stop(
                    msgspec.structs.replace(stop, fingerprint=fingerprint), written if is_same else content
                )

    def _join(self, source: Session, journey: Journey | None) -> tuple[Journey, int]:
        """Add a session's new messages to its journey. Return it, and how many of its messages the session has."""
        file, own = source.file, list(source.entries)
        journey = journey or self._open_seal(source)
        stop = journey.find_stop(file.client, file.id) if journey is not None else None
        if journey is None or stop is None or not has_digest(own[: stop.own_count], stop.own_digest):
            # A session that never moved, or was rewound or compacted since.
            journey, stop, new = Journey.start(), None, own
        else:
            new = own[stop.own_count :]
            if new and stop.reach < len(journey.entries):
                # Both this session and another one continued the journey: this one is a branch of its own.
                journey = self._branch(journey, stop.reach)
        new = _with_new_ids(new, journey.entries)
        journey.entries = [*journey.entries, *new]
        reach = len(journey.entries) if new or stop is None else stop.reach
        open_calls = _find_open_calls(stop.open_calls if stop is not None else (), new)
        fingerprint = Fingerprint.of(source.data)
        stop = Stop(file, fingerprint, len(own), digest_entries(own), reach, self._now, open_calls)
        journey.set_stop(stop, source.data)
        return journey, reach

    def _branch(self, journey: Journey, reach: int) -> Journey:
        """Return a new journey with the first messages of another one, and the sessions that have no others."""
        branch = Journey(Journey.start().id, journey.entries[:reach], [])
        for stop in journey.stops:
            content = self.journeys.load_content(journey, stop) if stop.reach <= reach else None
            if content is not None:
                branch.set_stop(stop, content)
        return branch

    def _open_seal(self, source: Session) -> Journey | None:
        """Return the journey of a session that has no record, from its seal."""
        if not has_seal(source.data):
            return None
        try:
            sealed = open_seal(source.data, load_envelope_keys(self._key_file, creates=False))
        except InputError:
            # There is no key, or it can't be used.
            return None
        if sealed is None:
            return None
        fingerprint = Fingerprint.of(source.data)
        stop = Stop(source.file, fingerprint, sealed.own_count, sealed.own_digest, sealed.reach, self._now)
        sealed.journey.set_stop(stop, source.data)
        return sealed.journey

    def _load(self, client: Client, file: SessionFile) -> bytes | None:
        try:
            return client.load(self.place, file)
        except InputError:
            return None


def _find_open_calls(before: tuple[str, ...], new: list[Entry]) -> tuple[str, ...]:
    """Return the calls without a result that a session ends with: of those open before, and of new messages.

    A result of an earlier call would not be at its place at the end; the client itself handles such a call.
    """
    calls = list(before)
    for entry in new:
        if entry.message.speaker != "tool":
            calls = [call.id for call in calls_of(entry.message) if call.kind != "hosted"]
        answered = {response.call_id for response in responses_of(entry.message)}
        calls = [call_id for call_id in calls if call_id not in answered]
    return tuple(calls)


def _with_new_ids(new: list[Entry], before: list[Entry]) -> list[Entry]:
    """Replace call ids that earlier messages already have: two sessions may have equal calls."""
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


def _find_model(entries: list[Entry], target: Client) -> str | None:
    """Return the model of the target's own last messages."""
    models = (entry.model for entry in reversed(entries) if entry.client == target.name)
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
        raise InputError(
            "the written session would be read differently; this is a bug in segue, please report it",
            path=str(file.path),
        )
    return session
