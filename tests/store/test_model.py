"""A store against a model of it: any order of writing, forking, deleting and leasing, with another store looking on."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

from segue.errors import ConflictError, InputError, LeaseError, StoreError
from segue.store.base import ConversationSummary, LeaseClaim
from segue.store.events import (
    CallCancelled,
    CallCompleted,
    Event,
    Forked,
    MessageAdded,
    Renamed,
    ResultRecorded,
    Sent,
    Switched,
)
from segue.store.rows import sanitize_text
from segue.store.sql import SqlStore
from tests.budget import examples
from tests.store.conftest import ENGINES, Engine
from tests.store.leases import Clock
from tests.store.sample_events import any_event

BEGIN = 10**12
"""Late enough for clocks that are set back."""
OWNERS = ("one", "two", "three")
claims = st.builds(LeaseClaim, st.sampled_from(OWNERS), st.integers(1, 15), st.booleans())


class Modelled:
    """What a conversation is, without any database."""

    def __init__(self, created: int) -> None:
        self.created = self.updated = created
        self.events: list[tuple[int, Event]] = []
        self.lease: tuple[str, int, int] | None = None

    def write(self, now: int, events: list[Event]) -> None:
        if events:
            self.updated = max(now, self.updated)
            self.events += [(self.updated, event) for event in events]

    def claim(self, claim: LeaseClaim, now: int) -> tuple[str, int, int] | None:
        """The lease after this claim; None if it is refused."""
        mine = self.lease is not None and self.lease[0] == claim.owner
        free = self.lease is None or self.lease[2] <= now
        if not mine and (claim.is_held or not free):
            return None
        since = self.lease[1] if self.lease is not None and mine else now
        return claim.owner, since, now + round(claim.ttl * 1_000_000)

    def summary(self, name: str) -> ConversationSummary:
        title = model = opening = None
        messages = 0
        for _, event in self.events:
            messages += isinstance(event, MessageAdded | CallCompleted | ResultRecorded | CallCancelled)
            if isinstance(event, Renamed):
                title = sanitize_text(event.text) or None
            if isinstance(event, Sent | Switched) and event.model is not None:
                model = sanitize_text(event.model)
            if isinstance(event, MessageAdded) and event.message.speaker == "human" and not opening:
                opening = sanitize_text(" ".join(event.message.blocks[0].text.split()))  # pyright: ignore[reportAttributeAccessIssue]
        return ConversationSummary(name, title, self.created, self.updated, len(self.events), messages, model, opening)


class Journal(RuleBasedStateMachine):
    """Two handles of one store: one of them writes by each rule, the other has to see it."""

    names = Bundle("names")

    @staticmethod
    def make() -> Engine:
        raise NotImplementedError

    @initialize()
    def begin(self) -> None:
        self.clocks = [Clock(BEGIN), Clock(BEGIN)]
        self.engine = self.make()
        self.stores = [self.engine.open(clock=clock) for clock in self.clocks]
        self.model: dict[str, Modelled] = {}

    def teardown(self) -> None:
        self.engine.close()

    def store(self, which: bool) -> SqlStore:
        return self.stores[which]

    def now(self, which: bool) -> int:
        return self.clocks[which].now

    @rule(seconds=st.integers(0, 20))
    def time_passes(self, seconds: int) -> None:
        for clock in self.clocks:
            clock.advance(seconds)

    @rule(which=st.booleans(), seconds=st.integers(-20, 20) | st.sampled_from((-900, 7200, 10**6)))
    def clock_is_set(self, which: bool, seconds: int) -> None:
        """The clocks of two machines differ, and are set forward and back."""
        self.clocks[which].advance(seconds)

    @rule(
        target=names,
        which=st.booleans(),
        title=st.none() | st.text(max_size=5),
        own=st.booleans(),
        events=st.lists(any_event, max_size=2),
        claim=st.none() | st.builds(LeaseClaim, st.sampled_from(OWNERS), st.just(5)),
    )
    def create(self, which: bool, title: str | None, own: bool, events: list[Event], claim: LeaseClaim | None) -> str:
        wanted = f"own-{len(self.model)}-{self.now(which)}" if own else None
        if wanted in self.model:
            with pytest.raises(InputError):
                self.store(which).create(title, wanted)
            return wanted
        name = self.store(which).create(title, wanted, events=events, lease=claim)
        now = self.now(which)
        self.model[name] = Modelled(now)
        self.model[name].write(now, [*([Renamed(title)] if title else []), *events])
        self.model[name].lease = self.model[name].claim(claim, now) if claim is not None else None
        return name

    @rule(
        name=names,
        which=st.booleans(),
        events=st.lists(any_event, max_size=4),
        late=st.integers(0, 2),
        claim=st.none() | claims,
    )
    def append(self, name: str, which: bool, events: list[Event], late: int, claim: LeaseClaim | None) -> None:
        if self.gone(name, lambda: self.store(which).append(name, 0, events, lease=claim)):
            return
        model = self.model[name]
        expected = len(model.events) - late
        lease = model.claim(claim, self.now(which)) if claim is not None else model.lease
        if claim is not None and lease is None:
            with pytest.raises(LeaseError):
                self.store(which).append(name, expected, events, lease=claim)
        elif late:
            with pytest.raises(ConflictError) as caught:
                self.store(which).append(name, expected, events, lease=claim)
            assert (caught.value.expected, caught.value.actual) == (expected, len(model.events))
        else:
            assert self.store(which).append(name, expected, events, lease=claim) == expected + len(events)
            model.lease = lease
            model.write(self.now(which), events)

    @rule(target=names, name=names, which=st.booleans(), share=st.floats(0, 1))
    def fork(self, name: str, which: bool, share: float) -> str:
        if self.gone(name, lambda: self.store(which).fork(name, 0)):
            return name
        seq = round(share * len(self.model[name].events))
        made = self.store(which).fork(name, seq)
        assert made not in self.model
        self.model[made] = Modelled(self.now(which))
        self.model[made].events = self.model[name].events[:seq]
        self.model[made].write(self.now(which), [Forked(name, seq)])
        return made

    @rule(name=consumes(names), which=st.booleans())
    def delete(self, name: str, which: bool) -> None:
        if self.gone(name, lambda: self.store(which).delete(name)):
            return
        held = self.model[name].lease
        if held is not None and held[2] > self.now(which):
            with pytest.raises(LeaseError):
                self.store(which).delete(name)
        self.store(which).delete(name, owner=held[0] if held is not None else None)
        del self.model[name]

    @rule(name=names, which=st.booleans(), claim=claims)
    def lease(self, name: str, which: bool, claim: LeaseClaim) -> None:
        ask = self.store(which).renew if claim.is_held else self.store(which).acquire
        if self.gone(name, lambda: ask(name, claim.owner, claim.ttl)):
            return
        held = self.model[name].lease
        wanted = self.model[name].claim(claim, self.now(which))
        if wanted is not None:
            self.model[name].lease = wanted
            lease = ask(name, claim.owner, claim.ttl)
            assert (lease.owner, lease.since, lease.expires) == wanted
        else:
            with pytest.raises(LeaseError) as caught:
                ask(name, claim.owner, claim.ttl)
            assert caught.value.owner == (None if held is None or held[2] <= self.now(which) else held[0])

    @rule(name=names, which=st.booleans(), owner=st.sampled_from(OWNERS))
    def release(self, name: str, which: bool, owner: str) -> None:
        if self.gone(name, lambda: self.store(which).release(name, owner)):
            return
        self.store(which).release(name, owner)
        held = self.model[name].lease
        if held is not None and held[0] == owner:
            self.model[name].lease = None

    @rule(which=st.booleans())
    def open_again(self, which: bool) -> None:
        self.stores[which].close()
        self.stores[which] = self.engine.open(clock=self.clocks[which])

    def gone(self, name: str, use: Callable[[], object]) -> bool:
        if name in self.model:
            return False
        with pytest.raises(StoreError) as caught:
            use()
        assert caught.value.cause == "missing"
        return True

    @invariant()
    def both_see_the_same(self) -> None:
        if not hasattr(self, "engine"):
            return
        wanted = sorted(
            (model.summary(name) for name, model in self.model.items()), key=lambda s: (s.updated, s.id), reverse=True
        )
        for store in self.stores:
            assert list(store.list(1000)) == wanted
        for name, model in self.model.items():
            records = [(record.at, record.event) for record in self.stores[0].events(name)]
            assert records == model.events
            assert [record.event for record in self.stores[1].tail(name, 2)] == [e for _, e in model.events[-2:]]


@pytest.mark.parametrize("kind", ENGINES)
def test_state_machine(kind: str, quick_folder: Path, request: pytest.FixtureRequest) -> None:
    server = request.getfixturevalue("server") if kind == "postgres" else ""
    count = iter(range(10**9))

    class Here(Journal):
        @staticmethod
        def make() -> Engine:
            return Engine(kind, server or str(quick_folder / f"{next(count)}.db"))

    some = settings(examples(0.4, items=1 if kind == "sqlite" else 3), stateful_step_count=25)
    run_state_machine_as_test(
        Here, settings=settings(some, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
    )
