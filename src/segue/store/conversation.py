"""`StoredConversation`: a conversation that writes each change to a store before the change takes effect.

Reading does not write. The first write acquires the lease, and records an outcome for each call that a previous process
left pending. After a failed write the conversation in memory is discarded and replayed from the store.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property
from itertools import chain
from typing import Any, Literal, TypeVar, cast

from segue._conversation import Conversation
from segue._literals import Api
from segue._rendered import Rendered
from segue._switch_cost import SwitchCost
from segue.canonical.blocks import Block, Message, ToolCall, responses_of
from segue.canonical.compress import CompressionResult
from segue.canonical.request import Reply, Request
from segue.errors import InputError, LeaseError, RemoteProtocolError, SegueError, StoreError
from segue.render.report import Report
from segue.store.base import ConversationStore, LeaseClaim, StoredEvent
from segue.store.events import (
    CompressionApplied,
    CompressionUndone,
    Event,
    Pin,
    Renamed,
    ReplyBroken,
    Restored,
    ResultPublished,
    ResultRecorded,
    Rewound,
    Sent,
    SettingsChanged,
    Switched,
    dump_event,
)
from segue.store.export import fill_times
from segue.store.ids import new_owner
from segue.store.replay import (
    ReplayState,
    add_usage,
    change_settings,
    conversation_events,
    encode_tokens,
    find_new_evidence,
    message_event,
    publish_result,
    replay_events,
)

T = TypeVar("T")

_LEASE_SECONDS = 60.0


class StoredConversation:
    """A `Conversation` in a store: each change is written before it takes effect. A context manager that calls `close`.

    `owner` identifies this writer in the `LeaseError`s of other writers; by default it is a new name for this process.
    `ttl` is the duration of the lease in seconds.
    """

    def __init__(
        self, store: ConversationStore, conversation: str, *, owner: str | None = None, ttl: float = _LEASE_SECONDS
    ) -> None:
        self.id = conversation
        self._set_up(store, owner, ttl)
        _ = self._state

    def _set_up(self, store: ConversationStore, owner: str | None, ttl: float) -> None:
        """Set all attributes but the id and the state, which is read on first use."""
        self._store = store
        self._owner = owner or new_owner()
        self._ttl = ttl
        self._has_lease = False
        self._stale = False
        self._last_target: tuple[str, str | None] = "", None
        self._last_report = Report()
        self._has_unsent_render = False

    @classmethod
    def create(
        cls,
        store: ConversationStore,
        chat: Conversation | None = None,
        *,
        title: str | None = None,
        at: Sequence[int | None] = (),
        target: tuple[str, str | None] | Switched | None = None,
        owner: str | None = None,
        ttl: float = _LEASE_SECONDS,
        folder: str | None = None,
    ) -> StoredConversation:
        """Store a conversation with its messages so far, and acquire its lease.

        `at` is the time of each message in microseconds since 1970, None if unknown; `target` the API and model
        that the conversation continues with, or the event with more; `folder` the folder that it belongs to.
        """
        chat = chat if chat is not None else Conversation()
        events = conversation_events(chat)
        if target is not None:
            events.append(target if isinstance(target, Switched) else Switched(*target))
        # The settings come before the messages, restored state after them.
        times = fill_times([None, *at], len(events))
        claim = LeaseClaim(owner or new_owner(), ttl)
        created_id = store.create(
            title, at=times[0] if times else None, events=events, times=times, lease=claim, folder=folder
        )
        created = cls._open_new(store, created_id, owner=claim.owner, ttl=ttl)
        created._has_lease = True
        created._state.chat.state.request, created._state.chat.state.last_request = (
            chat.state.request,
            chat.state.last_request,
        )
        created._has_unsent_render = chat.state.sent_request is not None and chat.state.synthetic_calls is not None
        return created

    @classmethod
    def _open_new(cls, store: ConversationStore, conversation: str, *, owner: str, ttl: float) -> StoredConversation:
        """Open a conversation that was just created; if it can't be read, it is deleted."""
        try:
            return cls(store, conversation, owner=owner, ttl=ttl)
        except BaseException:
            with suppress(StoreError):
                store.delete(conversation, owner=owner)
            raise

    # ---------------------------------------------------------------------------------------------------------- reading

    @cached_property
    def _state(self) -> ReplayState:
        return self._replay()

    @property
    def state(self) -> ReplayState:
        """The replayed state; replayed again after a failed write."""
        if self._stale:
            replayed, before = self._replay(), self._state.chat
            replayed.chat.state.last_request = before.state.last_request
            if replayed.unanswered_request > self._state.unanswered_request:
                # The write that marked the request as sent failed, but is in the store.
                replayed.chat.state.synthetic_calls = None
                self._has_unsent_render = False
            # Credentials are not stored: a request that still has them in memory is kept.
            if _dump_settings(before) == _dump_settings(replayed.chat):
                replayed.chat.state.request = before.state.request
            self._state, self._stale = replayed, False
        return self._state

    @property
    def chat(self) -> Conversation:
        """The conversation, for reading only: changes made to it directly are not stored."""
        return self.state.chat

    @property
    def messages(self) -> tuple[Message, ...]:
        return self.chat.messages

    @property
    def pending(self) -> list[ToolCall]:
        return self.chat.pending

    def render(self, target: str, model: str | None = None, **policy: Any) -> Rendered:
        """Render the request for the target. Nothing is written."""
        rendered = self.chat.render(cast("Api", target), model, **policy)
        self._last_target, self._last_report, self._has_unsent_render = (target, model), rendered.report, True
        return rendered

    def dump(self) -> bytes:
        """Encode the current state for `Conversation.load`, without the events; `segue export` exports those."""
        return self.chat.dump()

    def reload(self) -> None:
        """Read the conversation from the store again, with the events that other processes appended."""
        self._stale = True
        _ = self.state

    def _replay(self, until: int | None = None, then: Sequence[Event] = ()) -> ReplayState:
        """Replay the stored events, up to this number, and then events that are not stored."""
        new = (StoredEvent(seq, 0, event) for seq, event in enumerate(then, (until or 0) + 1))
        return replay_events(chain(self._store.events(self.id, until=until), new))

    # ---------------------------------------------------------------------------------------------------------- writing

    def add_user(self, content: Any) -> None:
        self._record(lambda chat: chat.add_user(content), flush_results=True)

    def add_assistant(self, text: str) -> None:
        self._record(lambda chat: chat.add_assistant(text))

    @property
    def ages(self) -> dict[str, float]:
        """The seconds since the last reply of each `provider/model`, the newest last."""
        now = time.time()
        return {name: max(0.0, now - at / 1_000_000) for name, at in self.state.replied_at.items()}

    def switch_cost(
        self, target: str, *, current: str | None = None, ages: Mapping[str, float] | None = None, **more: Any
    ) -> SwitchCost:
        """Predict what a switch of the model costs, as `Conversation.switch_cost` does; by default with `ages`."""
        known = self.ages if ages is None else dict(ages)
        return self.chat.switch_cost(target, current=current or next(reversed(known), None), ages=known, **more)

    def requests_cost(
        self, model: str, count: int = 1, *, ages: Mapping[str, float] | None = None, **more: Any
    ) -> float | None:
        """Predict what the next requests cost, as `Conversation.requests_cost` does; by default with `ages`."""
        return self.chat.requests_cost(model, count, ages=self.ages if ages is None else ages, **more)

    def add_reply(self, reply: Any, *, source: Api | None = None) -> Reply:
        """Store a reply, and that its request was sent unless `mark_sent` has recorded that."""
        return self._record(lambda chat: chat.add_reply(reply, source=source), add_usage, flush_results=True)

    def add_result(self, call: ToolCall | str, content: object = None, *, error: bool = False) -> None:
        self._record(lambda chat: chat.add_result(call, content, error=error), completes=call)

    def cancel(self, call: ToolCall | str) -> None:
        self._record(lambda chat: chat.cancel(call), completes=call)

    def interrupt(self, call: ToolCall | str, reason: str) -> None:
        self._record(lambda chat: chat.interrupt(call, reason), completes=call)

    def add_blocks(self, *blocks: Block, **more: Any) -> tuple[Message, ...]:
        return self._record(lambda chat: chat.add_blocks(*blocks, **more))

    def is_runnable(self, call: ToolCall) -> bool:
        """Return whether this call may be run: it is pending, and no previous process may have started it."""
        is_pending = self.chat.state.history.is_pending(call.id)
        return is_pending and call.id not in self._state.recorded_results and self._has_lease

    def record_result(
        self,
        call: ToolCall | str,
        content: object = None,
        *,
        error: bool = False,
        outcome: Literal["denied", "cancelled"] | None = None,
    ) -> None:
        """Store the result of a call.

        If all earlier calls of the turn have results, it enters the history at once, together with stored results of
        later calls that waited for it. Otherwise it enters the history when `flush` is called.
        """

        def change(chat: Conversation) -> Event | None:
            message = chat.state.build_outcome(call, content, error=error, outcome=outcome)
            ready = publish_result(chat.state.history, self._state.recorded_results, message)
            if ready:
                chat.state.history.add(*ready)
            return None if ready else ResultRecorded(message)

        self._record(change, _with_event, completes=call)

    def flush(self, *calls: ToolCall | str) -> None:
        """Add the stored results of these calls to the history, in this order."""
        recorded = self.state.recorded_results
        ids = dict.fromkeys(self.chat.state.find_call(call).id for call in calls)
        if call_ids := [call_id for call_id in ids if call_id in recorded]:
            self._record(lambda chat: chat.state.history.add(*(recorded[call_id] for call_id in call_ids)))

    def mark_sent(self) -> None:
        """Record that the last rendered request was sent: its results are final from now on.

        Nothing is written if nothing was rendered since the last request that is recorded as sent.
        """
        if self._has_unsent_render:
            self._record(lambda chat: chat.mark_sent(), flush_results=True)

    def record_broken(self, reply: Reply) -> None:
        """Store an incomplete reply as evidence; it does not enter the history."""
        self._write_event(ReplyBroken(reply))

    def update_settings(self, **settings: Any) -> None:
        """Change `system`, `tools` or `options`."""

        def change(chat: Conversation) -> Event:
            change_settings(chat, settings)
            return SettingsChanged.from_request(chat.state.request)

        self._record(change, _with_event)

    def switch(
        self, target: str, model: str | None = None, *, provider: str | None = None, emulated: bool = False
    ) -> None:
        """Record another target or model, used from the next request on; nothing is written if they are the same."""
        state = self.state
        if (target, model, provider, emulated) != (state.target, state.model, state.provider, state.is_emulated):
            self._write_event(Switched.of(target, model, provider, emulated=emulated))

    def rename(self, title: str) -> None:
        """Change the title."""
        self._write_event(Renamed(title))

    def pin(self, message: Message) -> Message:
        """Protect a message from compression, and return the pinned message."""

        def change(chat: Conversation) -> tuple[Message, Event]:
            history = chat.state.history
            position = history.find_message(message)
            return history.pin_at(position), Restored(pins=(Pin.at(history, position),))

        return self._record(change, lambda events, done: _with_event(events, done[1]))[0]

    def compress(self, strategy: str, budget: int, **more: Any) -> CompressionResult:
        """Compress the history to a token budget; the original messages stay in the store."""

        def change(chat: Conversation) -> tuple[CompressionResult, Event | None]:
            before = chat.messages
            result = chat.compress(strategy, budget, **more)
            event = CompressionApplied.between(
                before, chat.messages, strategy=strategy, budget=budget, places=result.places
            )
            return result, event if result.changes else None

        with self._early_lease():
            return self._record(change, lambda events, done: _with_event(events, done[1]))[0]

    def undo_compression(self) -> None:
        """Undo the latest compression: the messages it dropped or shortened are restored."""
        self._write_event(CompressionUndone(self.state.latest_compression, encode_tokens(self.chat)))
        self._stale = True

    def rewind(self, turn: str) -> None:
        """Remove all messages after the turn with this key."""
        self._record(lambda chat: chat.state.history.rewind(turn), lambda events, _: [*events, Rewound(turn)])

    def fork(self, turn: str | None = None) -> StoredConversation:
        """Create a conversation that begins with this one up to and including the turn, or with all of it.

        Results of that turn's calls that arrived later are included, those that are evidence here as evidence.
        """
        replayed = self.state
        if turn is not None and turn not in replayed.turn_ends:
            raise InputError(f"there is no turn {turn!r}", path="turn")
        if turn is None:
            seq, added = replayed.seq, []
        else:
            seq = replayed.turn_ends[turn]
            added = self._late_events(seq)
        fork_id = self._store.fork(self.id, seq, added)
        # Its events are not read yet: they are those of this conversation.
        fork = StoredConversation.__new__(StoredConversation)
        fork.id = fork_id
        fork._set_up(self._store, None, self._ttl)
        return fork

    def _late_events(self, seq: int) -> list[Event]:
        """Return events for a fork at `seq`: later undos and results that belong to its turns."""
        replayed, copied = self.state, self._replay(until=seq)
        undone = [
            CompressionUndone(number, encode_tokens(copied.chat))
            for number in replayed.undone_compressions
            if number <= seq and number not in copied.undone_compressions
        ]
        ledger, known_ledger = replayed.chat.state.history.ledger, copied.chat.state.history.ledger
        # Calls that are broken or hosted are not pending, but they can have results.
        late = [
            Message("tool", (entry.original or entry.completion,), turn_key=entry.turn_key)
            for call_id, known in known_ledger.items()
            if (entry := ledger[call_id]).completion is not None and known.state != entry.state
        ]
        added: list[Event] = [*undone, *map(message_event, late)]
        if any(known.evidence != ledger[call_id].evidence for call_id, known in known_ledger.items()):
            copied = self._replay(until=seq, then=added)
            if restored := tuple(find_new_evidence(copied.chat, ledger)):
                added.append(Restored(ledger=restored))
        return added

    def create_child(self, chat: Conversation, title: str) -> StoredConversation:
        """Create a subagent's conversation in the same store, and acquire its lease."""
        folder = self._store.get(self.id).folder
        return StoredConversation.create(self._store, chat, title=title, ttl=self._ttl, folder=folder)

    def renew_lease(self) -> None:
        """Renew the lease if it is held."""
        if self._has_lease:
            try:
                self._store.renew(self.id, self._owner, self._ttl)
            except LeaseError:
                self._lose_lease()
                raise

    def close(self) -> None:
        """Release the lease; after an error it can be called again. A deleted conversation is not an error."""
        if self._has_lease:
            try:
                self._store.release(self.id, self._owner)
            except StoreError as error:
                if error.cause != "missing":
                    raise
            self._has_lease = False

    def __enter__(self) -> StoredConversation:
        return self

    def __exit__(self, *_: object) -> None:
        # A lease that can't be released expires.
        with suppress(StoreError):
            self.close()

    def _write_event(self, event: Event) -> None:
        """Append an event that does not change the messages."""
        self._record(lambda _: event, _with_event)

    def _record(
        self,
        change: Callable[[Conversation], T],
        make_events: Callable[[list[Event], T], Sequence[Event]] = lambda events, _: events,
        *,
        completes: ToolCall | str | None = None,
        flush_results: bool = False,
    ) -> T:
        """Apply a change to the conversation and append its events in one write.

        `make_events` gets the events of the messages that were added and the return value of `change`. `completes` is
        the call that the change completes, if any. With `flush_results`, stored results enter the history before the
        change, because a new message or request has to follow them.
        """
        chat = self.chat
        before, last_request = _memory_state(chat), chat.state.last_request
        journal: list[Message | None] = []
        chat.state.history.journal = journal
        try:
            self._complete_calls(chat, completes, flush_results=flush_results)
            done = change(chat)
            self._append(make_events(self._journal_events(journal, last_request[1] or ()), done))
        except BaseException as error:
            # A change that was not stored is discarded.
            chat.state.last_request = last_request
            is_bad_input = isinstance(error, InputError | RemoteProtocolError)
            self._stale = not is_bad_input or bool(journal) or _memory_state(chat) != before
            chat.state.request = before[0]
            if isinstance(error, LeaseError):
                self._lose_lease()
            elif not self._has_lease and _may_be_committed(error):
                with suppress(StoreError):
                    self._store.release(self.id, self._owner)
            raise
        finally:
            chat.state.history.journal = None
        return done

    @contextmanager
    def _early_lease(self) -> Generator[None]:
        """Acquire the lease before a change that takes long; a change that writes nothing releases it again."""
        if self._has_lease:
            yield
            return
        try:
            # A signal may arrive after the commit.
            self._store.acquire(self.id, self._owner, self._ttl)
            yield
        finally:
            if not self._has_lease:
                with suppress(StoreError):
                    self._store.release(self.id, self._owner)

    def _complete_calls(self, chat: Conversation, skipped: ToolCall | str | None, *, flush_results: bool) -> None:
        """On the first write, complete the calls that another process left pending.

        Stored results of those calls enter the history; calls without one are recorded as interrupted. The change that
        follows completes the `skipped` call.
        """
        is_first = not self._has_lease
        if not is_first and not (flush_results and self._state.recorded_results):
            return
        skipped_id = chat.state.find_call(skipped).id if skipped is not None else None
        for call in chat.pending:
            if call.id == skipped_id:
                continue
            if call.id in self._state.recorded_results:
                chat.state.history.add(self._state.recorded_results[call.id])
            elif is_first:
                chat.interrupt(call, "interrupted: the process that ran it is gone")

    def _lose_lease(self) -> None:
        """Give up the lease: another process held it meanwhile, and may have completed calls or added messages."""
        self._has_lease, self._stale = False, True

    def _append(self, events: Sequence[Event]) -> None:
        """Append events and acquire or renew the lease, in one transaction."""
        if not events:
            return
        claim = LeaseClaim(self._owner, self._ttl, is_held=self._has_lease)
        self._store.append(self.id, self._state.seq, events, lease=claim)
        self._has_lease = True
        now = time.time_ns() // 1000
        for event in events:
            self._state.track_event(event, now)
            self._has_unsent_render = self._has_unsent_render and not isinstance(event, Sent)

    def _journal_events(self, journal: Sequence[Message | None], synthetic_calls: Sequence[str]) -> list[Event]:
        """Return the events for messages that entered the history; a stored result is only published."""
        events: list[Event] = []
        for message in journal:
            call_id = self._recorded_call_id(message)
            last = events[-1] if events else None
            if message is None:
                events.append(self._sent_event(synthetic_calls))
            elif call_id is None:
                events.append(message_event(message))
            elif isinstance(last, ResultPublished):
                events[-1] = ResultPublished((*last.calls, call_id))
            else:
                events.append(ResultPublished((call_id,)))
        return events

    def _recorded_call_id(self, message: Message | None) -> str | None:
        """Return the call id if this message is a stored result, else None."""
        responses = responses_of(message) if message is not None and message.speaker == "tool" else []
        call_id = responses[0].call_id if len(responses) == 1 else ""
        return (
            call_id
            if call_id in self._state.recorded_results and self._state.recorded_results[call_id] == message
            else None
        )

    def _sent_event(self, synthetic_calls: Sequence[str]) -> Sent:
        target, model = self._last_target
        is_switch = self._state.sent_to not in (None, ("", None), self._last_target)
        findings = [finding for finding in self._last_report.findings if finding.level != "note"] if is_switch else []
        return Sent(
            target, model, tuple(synthetic_calls), tuple(f"{finding.level}: {finding.message}" for finding in findings)
        )


def _may_be_committed(error: BaseException) -> bool:
    """Return whether a write that raised this may be in the store: the connection broke, or it was interrupted."""
    return error.cause == "lost" if isinstance(error, StoreError) else not isinstance(error, SegueError)


def _memory_state(chat: Conversation) -> tuple[Request, int, int, int]:
    """Return the state that a failed change may have modified in memory, besides the journal."""
    return chat.state.request, chat.state.history.edit_count, chat.state.history.turns, len(chat.state.history)


def _dump_settings(chat: Conversation) -> bytes:
    """Return the settings in their stored form, for comparison."""
    return dump_event(SettingsChanged.from_request(chat.state.request))


def _with_event(events: list[Event], event: Event | None) -> Sequence[Event]:
    return events if event is None else [*events, event]
