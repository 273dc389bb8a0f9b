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
from segue.sessions.client import Client, ClientHome, NewSession, SessionFile, SessionItem
from segue.sessions.files import Fingerprint
from segue.sessions.move_record import MovedConversation, MoveRecord, SessionState
from segue.sessions.move_report import Action, MoveReport, build_report
from segue.sessions.registry import CLIENTS
from segue.sessions.rendering import CLOSING_TEXT, render_more, render_session, split_body
from segue.sessions.session import Session, SessionMessage, digest_entries, has_digest, parse_session
from segue.sessions.signed_copy import has_signed_copy, make_signed_copy, open_signed_copy


class MovePlan(Struct, frozen=True):
    """A move that is ready to be written: the conversation, the session it comes from, and what the target gets.

    `message_count` is the number of messages of the conversation that the target has afterwards. `base` is the session
    of the target that is extended or copied; None for a new session. `before` is the content of that session or of its
    copy, which the items of the draft are added to.
    """

    conversation: MovedConversation
    message_count: int
    source: Session
    target: Client
    draft: NewSession
    report: MoveReport
    base: SessionState | None = None
    before: bytes = b""

    @property
    def action(self) -> Action:
        return self.report.action


class MoveResult(Struct, frozen=True):
    """A finished move: the session of the target, the command that resumes it, and the report."""

    session: SessionFile
    command: tuple[str, ...]
    report: MoveReport


class Mover:
    """Moves sessions of a user's clients. `now` is in microseconds since 1970.

    `key_file` is the file with the key of signed copies; the default is that of envelopes.
    """

    def __init__(self, home: ClientHome, record: MoveRecord, now: int, key_file: Path | None = None) -> None:
        self.home = home
        self.record = record
        self._now = now
        self._key_file = key_file

    def plan(self, client: Client, file: SessionFile, target: Client, cwd: str, *, is_dry: bool = False) -> MovePlan:
        """Prepare a move. Nothing is written, except the rest of a session that a killed move wrote a part of; with
        `is_dry` the plan is made as if it were."""
        found = self.record.find(file.client, file.id)
        if found is not None and found.unfinished is not None:
            self._finish(found, *found.unfinished, is_dry=is_dry)
        source = parse_session(client, file, client.load(self.home, file))
        conversation, message_count = self._join(source, found)
        entries = conversation.entries[:message_count]
        facts = source.log.facts
        draft = NewSession(
            target.new_id(self._now),
            (),
            cwd,
            self._now,
            file.title or facts.name or source.log.title,
            _find_model(entries, target),
            facts.git_branch,
            f"{client.name}:{file.id}",
        )
        base = conversation.latest_state(target.name)
        plan = MovePlan(
            conversation, message_count, source, target, draft, build_report(source, target, "unchanged", None), base
        )
        if base is not None and (base.message_count < message_count or self._load(target, base.file) is None):
            return self._plan_more(plan, base)
        if base is not None:
            return plan
        rendering = render_session(target, entries, cwd, self._servers(cwd))
        if not rendering.items:
            raise InputError("this session has no messages", path=str(file.path))
        draft = msgspec.structs.replace(draft, items=rendering.items)
        report = build_report(source, target, "created", rendering)
        report = msgspec.structs.replace(report, warnings=target.find_warnings(self.home, cwd))
        return msgspec.structs.replace(plan, draft=draft, report=report)

    def _servers(self, cwd: str) -> set[str]:
        """Return the names of the user's MCP servers, as far as they are needed to recognise their tools."""
        return {name for client in CLIENTS.values() for name in client.read_servers(self.home, cwd)}

    def _plan_more(self, plan: MovePlan, base: SessionState) -> MovePlan:
        """Prepare the continuation of a session of the target, in its own folder."""
        target, home = plan.target, self.home
        cwd = base.file.cwd or plan.draft.cwd
        entries, servers = plan.conversation.entries[: plan.message_count], self._servers(cwd)
        rendering = render_more(target, entries, base.message_count, base.open_calls, cwd, servers)
        draft = msgspec.structs.replace(plan.draft, cwd=cwd, items=rendering.items)
        before = self._load(target, base.file)
        is_unchanged = before is not None and self._is_unchanged(plan, base, before)
        if before is not None and is_unchanged and not target.is_open(home, base.file):
            draft = msgspec.structs.replace(draft, id=base.file.id)
            report = build_report(plan.source, target, "extended", rendering)
            base = msgspec.structs.replace(base, fingerprint=Fingerprint.of(before))
            return msgspec.structs.replace(plan, draft=draft, report=report, before=before, base=base)
        # A new session begins with the copy from the last move.
        reason = "is open" if is_unchanged else "was changed"
        reason = "was deleted" if before is None else reason
        before = self.record.load_content(plan.conversation, base)
        if before is None:
            raise InputError(f"the record of moved sessions has no copy of {base.file.id}", path=str(base.file.path))
        # A session from a signed copy may be of a folder on another machine.
        cwd = cwd if Path(cwd).is_dir() else plan.draft.cwd
        draft = msgspec.structs.replace(draft, cwd=cwd, parent=f"{target.name}:{base.file.id}")
        report = build_report(plan.source, target, "copied", rendering)
        report = msgspec.structs.replace(report, original=f"{base.file.id} {reason}")
        return msgspec.structs.replace(plan, draft=draft, report=report, before=target.writer.copy(before, draft))

    def _is_unchanged(self, plan: MovePlan, base: SessionState, content: bytes) -> bool:
        """Return whether a session is as the last move read or wrote it."""
        if base.fingerprint.matches(content):
            return True
        recorded = self.record.load_content(plan.conversation, base)
        return recorded is not None and plan.target.is_same(recorded, content)

    def write(self, plan: MovePlan) -> MoveResult:
        """Write a planned move, read it back, and record it."""
        target, conversation = plan.target, plan.conversation
        if plan.base is not None and plan.action == "unchanged":
            self.record.save(conversation)
            return MoveResult(plan.base.file, target.resume(plan.base.file), plan.report)
        file = SessionFile(target.name, plan.draft.id, target.locate(self.home, plan.draft), plan.draft.cwd)
        if plan.base is not None and plan.action == "extended":
            file = plan.base.file
        # Nothing is written unless the target would read it back unchanged, with and without the signed copy.
        content, added = self._encode(plan)
        session = _compare(target, file, content, plan.draft.items)
        plan = self._sign(plan, self._make_state(plan, file, content, session))
        draft = plan.draft
        if draft.signed_copy is not None:
            content, added = self._encode(plan)
            session = _compare(target, file, content, draft.items)
        conversation.unfinished = self._make_state(plan, file, content, session), content
        self.record.save(conversation)
        if plan.base is not None and plan.action == "extended":
            target.extend(self.home, file, plan.base.fingerprint, added)
        else:
            file = target.create(self.home, draft, content)
        try:
            written = target.load(self.home, file)
            if written != content:
                session = _compare(target, file, written, draft.items)
            conversation.set_state(self._make_state(plan, file, written, session), written)
            conversation.unfinished = None
            self.record.save(conversation)
        except InputError:
            if plan.action != "extended":
                with suppress(InputError):
                    target.remove(self.home, file)
            raise
        return MoveResult(file, target.resume(file), plan.report)

    def _encode(self, plan: MovePlan) -> tuple[bytes, bytes]:
        """Return the content of the target's session, and the part of it that the draft adds."""
        target, draft = plan.target, plan.draft
        if not plan.before:
            data = target.writer.encode(target.complete(self.home, draft))
            return data, data
        if not draft.items:
            return plan.before, b""
        data = target.writer.encode_more(plan.before, draft)
        return target.join(plan.before, data), data

    def _make_state(self, plan: MovePlan, file: SessionFile, content: bytes, session: Session) -> SessionState:
        own = session.entries
        return SessionState(file, Fingerprint.of(content), len(own), digest_entries(own), plan.message_count, self._now)

    def _sign(self, plan: MovePlan, state: SessionState) -> MovePlan:
        """Return a plan with the signed copy of the session that is written, if it has room for it."""
        if not plan.target.max_signed_copy or not plan.draft.items:
            return plan
        try:
            keys = load_envelope_keys(self._key_file)
        except InputError as error:
            warnings = (*plan.report.warnings, f"moved without a signed copy of the first session: {error}")
            return msgspec.structs.replace(plan, report=msgspec.structs.replace(plan.report, warnings=warnings))
        # A session without messages of its own client can be written again from the others.
        authors = {entry.client for entry in plan.conversation.entries}
        states = [each for each in plan.conversation.states if each.key != state.key and each.file.client in authors]
        copies = [(each, self.record.load_content(plan.conversation, each)) for each in states]
        others = [(each, content) for each, content in copies if content is not None]
        signed_copy = make_signed_copy(plan.conversation.entries, others, state, keys, plan.target.max_signed_copy)
        return msgspec.structs.replace(plan, draft=msgspec.structs.replace(plan.draft, signed_copy=signed_copy))

    # --------------------------------------------------------------------------------------------------- conversations

    def _finish(self, conversation: MovedConversation, state: SessionState, content: bytes, *, is_dry: bool) -> None:
        """Add the session that a killed move began to write to its conversation, with what is missing of it; not one
        that was not written, or was changed since."""
        conversation.unfinished = None
        target, before = CLIENTS[state.file.client], conversation.find_state(*state.key)
        written = self._load(target, state.file)
        if written is None or (before is not None and before.fingerprint.matches(written)):
            return
        rest = target.find_rest(written, content)
        if rest and not is_dry and not target.is_open(self.home, state.file):
            target.extend(self.home, state.file, Fingerprint.of(written), rest)
            written = target.load(self.home, state.file)
        written = content if rest and is_dry else written
        with suppress(InputError):
            own = parse_session(target, state.file, written).entries
            if has_digest(own[: state.file_message_count], state.file_digest):
                is_same = len(own) == state.file_message_count
                fingerprint = Fingerprint.of(written) if is_same else state.fingerprint
                conversation.set_state(
                    msgspec.structs.replace(state, fingerprint=fingerprint), written if is_same else content
                )

    def _join(self, source: Session, conversation: MovedConversation | None) -> tuple[MovedConversation, int]:
        """Add a session's new messages to its conversation. Return it, and how many of its messages the session has."""
        file, own = source.file, list(source.entries)
        conversation = conversation or self._open_signed_copy(source)
        state = conversation.find_state(file.client, file.id) if conversation is not None else None
        if conversation is None or state is None or not has_digest(own[: state.file_message_count], state.file_digest):
            # A session that never moved, or was rewound or compacted since.
            conversation, state, new = MovedConversation.start(), None, own
        else:
            new = own[state.file_message_count :]
            if new and state.message_count < len(conversation.entries):
                # Both this session and another one continued the conversation: this one is a branch of its own.
                conversation = self._branch(conversation, state.message_count)
        new = _with_new_ids(new, conversation.entries)
        conversation.entries = [*conversation.entries, *new]
        message_count = len(conversation.entries) if new or state is None else state.message_count
        open_calls = _find_open_calls(state.open_calls if state is not None else (), new)
        fingerprint = Fingerprint.of(source.data)
        state = SessionState(file, fingerprint, len(own), digest_entries(own), message_count, self._now, open_calls)
        conversation.set_state(state, source.data)
        return conversation, message_count

    def _branch(self, conversation: MovedConversation, message_count: int) -> MovedConversation:
        """Return a new conversation with the first messages of another one, and the sessions that have no others."""
        branch = MovedConversation(MovedConversation.start().id, conversation.entries[:message_count], [])
        for state in conversation.states:
            content = self.record.load_content(conversation, state) if state.message_count <= message_count else None
            if content is not None:
                branch.set_state(state, content)
        return branch

    def _open_signed_copy(self, source: Session) -> MovedConversation | None:
        """Return the conversation of a session that has no record, from its signed copy."""
        if not has_signed_copy(source.data):
            return None
        try:
            signed_copy = open_signed_copy(source.data, load_envelope_keys(self._key_file, creates=False))
        except InputError:
            # There is no key, or it can't be used.
            return None
        if signed_copy is None:
            return None
        fingerprint = Fingerprint.of(source.data)
        state = SessionState(
            source.file,
            fingerprint,
            signed_copy.file_message_count,
            signed_copy.file_digest,
            signed_copy.message_count,
            self._now,
        )
        signed_copy.conversation.set_state(state, source.data)
        return signed_copy.conversation

    def _load(self, client: Client, file: SessionFile) -> bytes | None:
        try:
            return client.load(self.home, file)
        except InputError:
            return None


def _find_open_calls(before: tuple[str, ...], new: list[SessionMessage]) -> tuple[str, ...]:
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


def _with_new_ids(new: list[SessionMessage], before: list[SessionMessage]) -> list[SessionMessage]:
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


def _rename(entry: SessionMessage, names: dict[str, str]) -> Any:
    changed = {
        **{id(call): msgspec.structs.replace(call, id=names.get(call.id, call.id)) for call in calls_of(entry.message)},
        **{
            id(response): msgspec.structs.replace(response, call_id=names.get(response.call_id, response.call_id))
            for response in responses_of(entry.message)
        },
    }
    blocks = tuple(changed.get(id(block), block) for block in entry.message.blocks)
    return msgspec.structs.replace(entry.message, blocks=blocks)


def _find_model(entries: list[SessionMessage], target: Client) -> str | None:
    """Return the model of the target's own last messages."""
    models = (entry.model for entry in reversed(entries) if entry.client == target.name)
    return next((model for model in models if model), None)


def _compare(client: Client, file: SessionFile, data: bytes, items: tuple[SessionItem, ...]) -> Session:
    """Parse a written session, and compare its end with the items; `InputError` if the client would read others."""
    session = parse_session(client, file, data)
    found = [client.normalize(value) for value in split_body(session.log.body, client.api)]
    expected = [client.normalize(item.value) for item in items]
    for values in (found, expected):
        if values and CLOSING_TEXT in str(values[-1]):
            values.pop()
    if found[len(found) - len(expected) :] != expected:
        raise InputError(
            "the written session would be read differently; this is a bug in segue, please report it",
            path=str(file.path),
        )
    return session
