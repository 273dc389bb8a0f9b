"""`SharedLimits`: the limits and budgets of clients and groups, counted in the store for all processes."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

from msgspec import Struct

from segue.gateway.budgets import ALERT_SHARE, NANO, BudgetLine, BudgetState, format_dollars, open_lines
from segue.gateway.client_keys import Scope
from segue.gateway.client_uses import LEASE
from segue.gateway.entry_store import EntryStore
from segue.gateway.limits import Admission, Denied, ProcessLimits, find_denial, rated
from segue.gateway.shared_entries import SharedEntries

# The end of a client's last request may still be on its way to the store.
_BUSY_WAITS = (0.05, 0.1, 0.2)
_RESERVED_WAIT = 5.0
_ADVICE = "one with a smaller max_tokens may fit"


class _Done(Struct, frozen=True):
    """The result of the store; None in its place means that the store failed."""

    value: Any


class _Settlement(Struct, frozen=True):
    """What a request cost, which the store does not have yet."""

    use: str
    lines: Sequence[BudgetLine]
    reserved: int
    cost: int


class SharedLimits:
    """`Limits` in the store of the gateway's entries.

    While the store fails, this process counts for itself: of a budget, it goes on from what it last saw of it, and a
    budget that it has never seen admits nothing. What is spent meanwhile is written to the store when it works again.
    `report` is called with a budget and its states before and after a request that was settled.
    """

    def __init__(
        self,
        entries: SharedEntries,
        report: Callable[[BudgetLine, BudgetState, int], None] = lambda _line, _state, _cost: None,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._entries = entries
        self._report = report
        self._now = now
        self._own = ProcessLimits()
        self._open: set[str] = set()
        self._known: dict[str, BudgetState] = {}
        self._owed: list[_Settlement] = []
        self._renewal: asyncio.Task[None] | None = None

    async def _run(self, call: Callable[[EntryStore], Any]) -> _Done | None:
        return await self._entries.run("limits", lambda store: _Done(call(store)))

    # ---------------------------------------------------------------------------------------------------------- rates

    async def admit(self, client: str, group: str, scopes: Sequence[Scope]) -> Admission | Denied:
        use, counted = secrets.token_hex(12), rated(scopes)
        if not counted:
            return Admission(client, group, scopes, self, use)
        keys = [scope.key for scope in counted]

        def begin(store: EntryStore) -> Denied | None:
            return store.begin_use(keys, use, lambda at, counts: find_denial(client, counted[at], counts))

        done = await self._run(begin)
        for wait in _BUSY_WAITS:
            if not (done is not None and done.value is not None and done.value.is_busy):
                break
            await asyncio.sleep(wait)
            done = await self._run(begin)
        if done is None:
            own = await self._own.admit(client, group, scopes)
            return own if isinstance(own, Denied) else Admission(client, group, scopes, self, use, is_local=True)
        if done.value is not None:
            return done.value
        self._open.update(f"{use}/{key}" for key in keys)
        self._start_renewal()
        return Admission(client, group, scopes, self, use)

    async def end(self, admission: Admission) -> None:
        # Not cancelled with its request.
        await asyncio.shield(self._end(admission))

    async def _end(self, admission: Admission) -> None:
        use, tokens = admission.use, admission.tokens
        keys = [scope.key for scope in rated(admission.scopes)]
        self._open.difference_update({use, *(f"{use}/{key}" for key in keys)})
        if admission.is_local:
            await self._own.end(admission)
        elif keys:
            await self._run(lambda store: store.end_use(keys, use, tokens))
        if admission.lines:
            settlement = _Settlement(use, admission.lines, admission.stored, admission.cost)
            self._owed.append(settlement)
            await self._settle_owed()
            if settlement in self._owed:
                self._settle_known(admission)

    # -------------------------------------------------------------------------------------------------------- budgets

    def _open_lines(self, scopes: Sequence[Scope]) -> list[BudgetLine]:
        now = self._now()
        return [line for scope in scopes for line in open_lines(scope.key, scope.label, scope.limits.budgets, now)]

    async def reserve(self, admission: Admission, amount: int) -> Denied | None:
        if amount <= 0:
            return None
        # A request stays in the period in which it began.
        lines = admission.lines or self._open_lines(admission.scopes)
        await self._settle_owed()
        done = await self._run(lambda store: store.reserve(admission.use, lines, amount))
        for wait in _BUSY_WAITS:
            if done is None or done.value[0] or not _is_reserved_by_others(lines, done.value[1], amount):
                break
            await asyncio.sleep(wait)
            done = await self._run(lambda store: store.reserve(admission.use, lines, amount))
        is_reserved, states = done.value if done is not None else self._reserve_known(lines, amount)
        if states is None:
            message = f"the budget of {lines[0].label} can't be read: the store fails"
            return Denied(503, message, admission.client, _RESERVED_WAIT, "store", "overloaded")
        if not is_reserved:
            return describe_denial(admission.client, lines, states, amount)
        self._know(lines, states)
        admission.lines = lines
        admission.reserved += amount
        if done is not None:
            admission.stored += amount
            self._open.add(admission.use)
            self._start_renewal()
        return None

    def _reserve_known(self, lines: Sequence[BudgetLine], amount: int) -> tuple[bool, list[BudgetState] | None]:
        """Reserve of what this process last saw of the budgets; the states are None if it did not see one of them."""
        known = [state for line in lines if (state := self._known.get(line.key)) is not None]
        if len(known) < len(lines):
            return False, None
        fits = all(
            state.spent + state.held + amount <= line.budget.amount for line, state in zip(lines, known, strict=True)
        )
        return fits, [BudgetState(state.spent, state.held + amount) for state in known] if fits else known

    def _settle_known(self, admission: Admission) -> None:
        """Settle what this process knows of the budgets, while the store fails."""
        for line in admission.lines:
            state = self._known.get(line.key, BudgetState())
            held = max(0, state.held - admission.reserved)
            self._known[line.key] = BudgetState(state.spent + admission.cost, held)

    def _know(self, lines: Sequence[BudgetLine], states: Sequence[BudgetState]) -> None:
        self._known.update({line.key: state for line, state in zip(lines, states, strict=True)})

    async def _settle_owed(self) -> None:
        """Write what requests cost, also those that ended while the store failed."""
        owed, self._owed = self._owed, []
        for position, one in enumerate(owed):
            done = await self._run(lambda store, one=one: store.settle(one.use, one.lines, one.reserved, one.cost))
            if done is None:
                self._owed = [*owed[position:], *self._owed]
                return
            self._know(one.lines, done.value)
            for line, state in zip(one.lines, done.value, strict=True):
                self._report(line, state, one.cost)

    async def describe_budgets(self, scopes: Sequence[Scope]) -> list[Mapping[str, Any]]:
        """Return the state of the budgets, as a client gets it."""
        lines = self._open_lines(scopes)
        done = await self._run(lambda store: store.read_budgets(lines)) if lines else None
        states = done.value if done is not None else [self._known.get(line.key) for line in lines]
        return [describe_budget(line, state) for line, state in zip(lines, states, strict=True)]

    # --------------------------------------------------------------------------------------------------------- leases

    def _start_renewal(self) -> None:
        if self._renewal is None:
            self._renewal = asyncio.create_task(self._renew())

    async def _renew(self) -> None:
        while True:
            await asyncio.sleep(LEASE / 3)
            if uses := tuple(self._open):
                await self._run(lambda store, uses=uses: store.renew_uses(uses))
            await self._settle_owed()

    async def close(self) -> None:
        task, self._renewal = self._renewal, None
        if task is not None:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
        await self._settle_owed()


def _is_reserved_by_others(lines: Sequence[BudgetLine], states: Sequence[BudgetState], amount: int) -> bool:
    """Return whether an amount would fit but for the reservations of other requests, which may end soon."""
    return all(state.spent + amount <= line.budget.amount for line, state in zip(lines, states, strict=True))


def describe_denial(client: str, lines: Sequence[BudgetLine], states: Sequence[BudgetState], amount: int) -> Denied:
    """Return why a reservation does not fit: because of what is spent, or because of open reservations."""
    pairs = list(zip(lines, states, strict=True))
    spent = [(line, state) for line, state in pairs if state.spent + amount > line.budget.amount]
    line, state = next(
        iter(spent or [pair for pair in pairs if _sum(pair[1]) + amount > pair[0].budget.amount] or pairs)
    )
    costs = f"{format_dollars(state.spent)} are spent, and this request can cost up to {format_dollars(amount)}"
    if amount > line.budget.amount:
        most = format_dollars(amount)
        message = f"this request can cost up to {most}, more than the budget of {line.label}, {line.budget}; {_ADVICE}"
        return Denied(429, message, client, reason="budget", kind="no-credit")
    if spent:
        left = line.budget.amount - state.spent
        message = f"the budget of {line.label}, {line.budget}, is used up: {costs}{line.reset_text}"
        if left > 0:
            message = (
                f"the budget of {line.label}, {line.budget}, has {format_dollars(left)} left, and this request can "
                f"cost up to {format_dollars(amount)}; {_ADVICE}{line.reset_text}"
            )
        return Denied(429, message, client, reason="budget", kind="no-credit")
    held = f"{format_dollars(state.held)} are reserved for open requests"
    message = f"the budget of {line.label}, {line.budget}, has not enough left for now: {held}, {costs}"
    return Denied(429, message, client, _RESERVED_WAIT, "budget-reserved", "rate-limited")


def _sum(state: BudgetState) -> int:
    return state.spent + state.held


def describe_budget(line: BudgetLine, state: BudgetState | None) -> Mapping[str, Any]:
    known = None if state is None else {"spent": state.spent / NANO, "reserved": state.held / NANO}
    left = {} if state is None else {"remaining": max(0, line.budget.amount - _sum(state)) / NANO}
    resets = None if line.ends is None else datetime.fromtimestamp(line.ends, UTC).isoformat()
    limit = line.budget.amount / NANO
    return {"of": line.label, "period": line.budget.period, "limit": limit, **(known or {}), **left, "resets": resets}


def crosses_alert(line: BudgetLine, state: BudgetState, cost: int) -> bool:
    """Return whether a request that cost so much let the spending pass the part at which there is an alert."""
    limit = line.budget.amount * ALERT_SHARE
    return state.spent - cost < limit <= state.spent
