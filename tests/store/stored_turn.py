"""The life of a stored conversation as a list of steps, run again step by step where a step fails.

Each step leads from one known state of the store to the next, so that a test can compare every state it finds: after a
fault, after a power loss, after a lost connection.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import segue
from segue.canonical.blocks import Text
from segue.canonical.request import Reply
from segue.errors import LeaseError, StoreError
from segue.store.conversation import StoredConversation
from segue.store.sql import SqlStore
from tests.store.leases import TOOLS, TTL
from tests.store.reply_bodies import reply_body

OWNER, COPIER = "the first", "the copier"
_ATTEMPTS = 200


class StoredTurn:
    """A conversation and its fork in one store. `steps` are to be run in order; `reader` reads the state after them."""

    def __init__(self, store: SqlStore) -> None:
        self.store = self.reader = store
        self.kept: StoredConversation = None  # pyright: ignore[reportAttributeAccessIssue]
        self.copy: StoredConversation = None  # pyright: ignore[reportAttributeAccessIssue]
        self.steps: list[Callable[[], object]] = [
            self._create,
            lambda: self.kept.add_user("Read both files."),
            self._mark_sent,
            lambda: self.kept.record_broken(Reply((Text("I'll re"),))),
            lambda: self._add_reply("anthropic", thought="Two files.", calls=[("look", "toolu_1"), ("run", "toolu_2")]),
            lambda: self.kept.record_result("toolu_2", "second " * 900),
            lambda: self.kept.record_result("toolu_1", "first " * 900),
            lambda: self.kept.switch("kimi"),
            self._mark_sent,
            lambda: self._add_reply("kimi", text="Both are short.", tokens=900),
            lambda: self.kept.add_user("And the third?"),
            lambda: self.kept.compress("truncate-results", 10),
            lambda: self.kept.undo_compression(),  # noqa: PLW0108
            self._fork,
            lambda: self.copy.rename("a copy"),
            lambda: self.copy.close(),  # noqa: PLW0108
            lambda: self.kept.renew_lease(),  # noqa: PLW0108
            lambda: self.kept.rewind("turn-1"),
            lambda: self.store.delete(self.copy.id),
            lambda: self.kept.close(),  # noqa: PLW0108
        ]

    def _create(self) -> None:
        self.kept = StoredConversation.create(
            self.store, segue.Conversation(tools=TOOLS), title="files", owner=OWNER, ttl=TTL
        )

    def is_stored(self, number: int, before: State, after: State) -> bool:
        """Return whether the step that failed was stored nevertheless."""
        found, old, new = map(without_leases, (read_state(self.reader), before, after))
        assert found in (old, new), f"step {number}: half a write"
        if found == old:
            return False
        if self.steps[number] == self._create:
            self.kept = self._find(OWNER)
        if self.steps[number] == self._fork:
            self.copy = self._find(COPIER)
        return True

    def _find(self, owner: str) -> StoredConversation:
        """Open the conversation whose id was lost with the reply."""
        known = self.kept.id if owner == COPIER else None
        [id] = [summary.id for summary in self.reader.list() if summary.id != known]
        found = StoredConversation(self.reader, id, owner=owner, ttl=TTL)
        found._store = self.store
        return found

    def _mark_sent(self) -> None:
        self.kept.render("anthropic")
        self.kept.mark_sent()

    def _add_reply(self, wire: str, **more: Any) -> None:
        self.kept.add_reply(reply_body(wire, **more))

    def _fork(self) -> None:
        self.copy = self.kept.fork("turn-1")
        self.copy._owner = COPIER


State = list[Any]


def _stay() -> None:
    """Do nothing to recover."""


def read_state(store: SqlStore) -> State:
    """Return all rows of the store in one form for every run and engine: conversations have numbers in place of ids."""
    with store._read_session() as session:
        names = {name: str(n) for n, (name,) in enumerate(session.run("SELECT id FROM @conversations ORDER BY number"))}
        found: list[Any] = []
        for number, name, *summary in session.run(
            "SELECT number, id, title, created, updated, seq, messages, model, opening "
            "FROM @conversations ORDER BY number"
        ):
            events = session.run("SELECT seq, at, kind, data FROM @events WHERE conversation = ? ORDER BY seq", number)
            lease = session.run("SELECT owner, since, expires FROM @leases WHERE conversation = ?", number)
            replaced = [(*row, _replace_names(data, names)) for *row, data in events]
            found.append((names[name], summary, replaced, lease))
    return found


def without_leases(state: State) -> State:
    """The state without leases: a failed write may have released its own."""
    return [conversation[:3] for conversation in state]


def _replace_names(data: str, names: dict[str, str]) -> str:
    for name, number in names.items():
        data = data.replace(name, number)
    return data


def run_steps(turn: StoredTurn, states: list[State] | None = None, recover: Callable[[], None] = _stay) -> list[State]:
    """Run each step, after a failure again, and return the state after each.

    A caller does not know whether a failed write was stored, and reads the store to find out: with the states of a run
    without failures, the state after a failed step has to be the one before or the one after it.
    """
    found: list[State] = []
    for number, step in enumerate(turn.steps):
        for _ in range(_ATTEMPTS):
            try:
                step()
                break
            except LeaseError:
                raise
            except StoreError:
                if states is None:
                    raise
                recover()
                if turn.is_stored(number, found[-1] if found else [], states[number]):
                    break
        else:
            pytest.fail(f"step {number} failed {_ATTEMPTS} times")
        found.append(read_state(turn.reader))
        if states is not None:
            assert without_leases(found[-1]) == without_leases(states[number]), f"after step {number}"
    # Whichever step failed, no lease is left.
    assert states is None or found[-1] == states[-1]
    return found
