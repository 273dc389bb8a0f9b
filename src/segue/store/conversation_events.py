"""The events that store a message, a reply, or a whole conversation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from segue._conversation import Conversation
from segue.canonical.blocks import Message, responses_of
from segue.canonical.history import Interaction
from segue.canonical.request import Reply
from segue.store.base import StoredEvent
from segue.store.events import CallCancelled, CallCompleted, Event, MessageAdded, Restored, Sent, SettingsChanged
from segue.store.replay import replay_events


def message_event(message: Message) -> Event:
    """Return the event for a message: a completed or cancelled call, or any other message.

    A denied call is a completed one: its result is the denial.
    """
    responses = responses_of(message)
    if not responses or message.speaker != "tool":
        return MessageAdded(message)
    is_cancelled = all(response.outcome in ("cancelled", "interrupted") for response in responses)
    return CallCancelled(message) if is_cancelled else CallCompleted(message)


def add_usage(events: list[Event], reply: Reply) -> Sequence[Event]:
    """Add usage and model to the last event, which is the reply."""
    last = events[-1] if events else None
    if not isinstance(last, MessageAdded):
        return events
    return [*events[:-1], msgspec.structs.replace(last, usage=reply.usage, model=reply.model)]


def encode_tokens(chat: Conversation) -> dict[str, Any] | None:
    """Return the token estimator in its stored form, None if it learned nothing."""
    return msgspec.to_builtins(chat.state.token_estimator) if chat.state.token_estimator.learned else None


def find_new_evidence(copied: Conversation, ledger: Mapping[str, Interaction]) -> Iterator[Interaction]:
    """Yield the entries of a copy that lack evidence in the ledger of the original, with that evidence.

    A result that was not sent in the copy yet is final if it is in the original, because the evidence came later.
    """
    for call_id, known in copied.state.history.ledger.items():
        entry = ledger[call_id]
        if known.evidence != entry.evidence:
            yield msgspec.structs.replace(known, evidence=entry.evidence, sent=entry.sent)


def conversation_events(chat: Conversation) -> list[Event]:
    """Return the events of a whole conversation: settings, messages, and state that can't be derived from them."""
    history = chat.state.history
    events: list[Event] = [SettingsChanged.from_request(chat.state.request), *map(message_event, history.messages)]
    if any(entry.sent for entry in history.ledger.values()):
        events.append(Sent(""))
    replayed = replay_events(StoredEvent(seq, 0, event) for seq, event in enumerate(events, 1)).chat.state.history
    # If calls are no longer in any message, the whole ledger is stored, to keep its order.
    has_lost_calls = len(replayed.ledger) < len(history.ledger)
    missing = tuple(
        entry for call_id, entry in history.ledger.items() if has_lost_calls or replayed.ledger.get(call_id) != entry
    )
    tokens = encode_tokens(chat)
    if missing or tokens is not None or replayed.turns != history.turns:
        events.append(Restored(history.turns, missing, tokens))
    return events
