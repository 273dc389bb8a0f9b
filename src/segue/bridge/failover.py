"""Failover: the order in which the targets of a request are tried, and the pauses of those that failed.

The gateway, the transport and the agent all use it. Nothing here has IO: the clock is passed in, and the pauses may be
those of several processes. A target is paused after a failure that another target may not have, twice as long each
time; the first request after a pause is a probe, and the others leave the target out until its outcome is known.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from threading import RLock
from typing import Annotated, Literal, Protocol, TypeAlias, TypeVar

from msgspec import Meta, Struct
from msgspec.structs import replace

from segue.bridge.envelopes import fingerprint_key
from segue.bridge.providers import Endpoint
from segue.error_kinds import FAILOVER_CAUSES
from segue.errors import InputError, ProviderError, ProviderErrorCause

FIRST_BYTE = 60.0
"""The longest wait for the head of a streamed response in seconds, where another target can take the request over."""
KEY_CAUSES = frozenset[ProviderErrorCause]({"auth", "key"})
# With a caller's own key, these causes concern that key, not the target.
_CALLER_CAUSES = KEY_CAUSES | {"missing", "rate-limited"}
_FIRST_PAUSE, _MAX_PAUSE = 15.0, 600.0
_MIN_RETRY_AFTER, _MAX_RETRY_AFTER = 1.0, 86_400.0
# The longest delay before the same target is tried again, where another one can take the request over.
_MAX_DELAY = 2.0
# The outcome of a probe is awaited for so long, in case that its process was killed.
_PROBE_SECONDS = 600.0

Clock: TypeAlias = Callable[[], float]


# ---------------------------------------------------------------------------------------------------------- conditions


class RequestFacts(Protocol):
    """What conditions depend on."""

    @property
    def tokens(self) -> int: ...
    @property
    def has_images(self) -> bool: ...
    @property
    def has_reasoning(self) -> bool: ...


class Conditions(Struct, frozen=True, kw_only=True):
    """Conditions on a request; those that are not set match any."""

    min_tokens: Annotated[int, Meta(ge=0)] | None = None
    max_tokens: Annotated[int, Meta(ge=0)] | None = None
    images: bool | None = None
    reasoning: bool | None = None

    def __post_init__(self) -> None:
        if self.min_tokens is not None and self.max_tokens is not None and self.min_tokens > self.max_tokens:
            raise ValueError(f"min_tokens {self.min_tokens:,} is more than max_tokens {self.max_tokens:,}")

    def match(self, facts: RequestFacts) -> bool:
        return (
            (self.min_tokens is None or facts.tokens >= self.min_tokens)
            and (self.max_tokens is None or facts.tokens <= self.max_tokens)
            and (self.images is None or facts.has_images == self.images)
            and (self.reasoning is None or facts.has_reasoning == self.reasoning)
        )

    def covers(self, other: Conditions) -> bool:
        """Return whether these match all that the others match."""
        return (
            (self.min_tokens or 0) <= (other.min_tokens or 0)
            and (self.max_tokens is None or (other.max_tokens is not None and other.max_tokens <= self.max_tokens))
            and self.images in (None, other.images)
            and self.reasoning in (None, other.reasoning)
        )


_Target = TypeVar("_Target")


def rotate(targets: Sequence[_Target], first: int) -> tuple[_Target, ...]:
    """Return the targets in their order, beginning with that at `first`, which may be any number."""
    first %= len(targets)
    return (*targets[first:], *targets[:first])


Preference: TypeAlias = Literal["first", "cheapest"]
"""Which of several targets is used: the first one, or the cheapest."""
REQUESTS = 10
"""Over how many requests the costs of targets are compared: leaving a warm cache has to pay within them."""


def sort_by_cost(targets: Sequence[Endpoint], tokens: int, cost: Callable[[Endpoint], float | None]) -> list[Endpoint]:
    """Return the targets, the cheapest first; at the end those without a known price, then those that can't serve.

    A target can't serve a request whose tokens exceed its context, or without a key.
    """

    def rank(target: Endpoint) -> tuple[bool, bool, float]:
        price = cost(target)
        is_too_small = target.context is not None and target.context < tokens
        return is_too_small or target.lacks_key, price is None, price or 0.0

    return sorted(targets, key=rank)


# -------------------------------------------------------------------------------------------------------------- pauses


class Pause(Struct, frozen=True):
    """A target that is left out from `start` to `until`, or longer while the outcome of a `probe` is awaited."""

    cause: ProviderErrorCause
    failures: int
    start: float
    until: float
    probe: float = 0.0

    def is_running(self, now: float) -> bool:
        # Before the start: the clock was set back.
        return self.start <= now < max(self.until, self.probe)


PauseChange: TypeAlias = Callable[[Pause | None], Pause | None]


class PauseTable:
    """The pauses of this process, by target; large requests change them in threads. A subclass shares them."""

    def __init__(self) -> None:
        self._pauses: dict[str, Pause] = {}
        self._change_lock = RLock()

    def read(self) -> Mapping[str, Pause]:
        return self._pauses

    def update(self, target: str, change: PauseChange) -> Pause | None:
        """Change the pause of a target as one step, and return what it was before."""
        with self._change_lock:
            before = self._pauses.get(target)
            after = change(before)
            if after is None:
                self._pauses.pop(target, None)
            else:
                self._pauses[target] = after
            return before


class TargetPauses:
    """Pauses targets that failed, and ends their pauses. `report_key` is called once for each key that is rejected."""

    def __init__(
        self,
        clock: Clock,
        table: PauseTable | None = None,
        report_key: Callable[[ProviderError], None] = lambda error: None,
    ) -> None:
        self._clock = clock
        self._table = table or PauseTable()
        self._report_key = report_key

    def find(self, target: Endpoint) -> Pause | None:
        """Return the last pause of a target that has not replied since."""
        pauses = self._table.read()
        return pauses.get(_pause_key(target)) if pauses else None

    def is_paused(self, target: Endpoint) -> bool:
        pause = self.find(target)
        return pause is not None and pause.is_running(self._clock())

    def is_silent(self, target: Endpoint) -> bool:
        """Return whether a target timed out, and has not replied since."""
        pause = self.find(target)
        return pause is not None and pause.cause == "timeout"

    def find_paused(self, targets: Sequence[Endpoint]) -> dict[str, bool]:
        """Return whether each target is paused, by its name; also where it is used with callers' keys."""
        paused: dict[str, bool] = {}
        for target in targets:
            both = (target, replace(target, has_caller_key=True))
            paused[target.name] = paused.get(target.name, False) or any(map(self.is_paused, both))
        return paused

    def choose(self, targets: Sequence[Endpoint]) -> Endpoint:
        """Return the first target that is not paused, else the one whose pause ends first."""
        free = next((target for target in targets if not self.is_paused(target)), None)
        return min(targets, key=self._find_end) if free is None else free

    def _find_end(self, target: Endpoint) -> float:
        pause = self.find(target)
        return max(pause.until, pause.probe) if pause is not None else 0.0

    def claim(self, target: Endpoint) -> bool:
        """Return whether a request may be sent to a target; the first one after a pause claims the probe."""
        if self.find(target) is None:
            return True
        now = self._clock()

        def begin_probe(pause: Pause | None) -> Pause | None:
            if pause is None or pause.is_running(now):
                return pause
            return replace(pause, start=min(pause.start, now), probe=now + _PROBE_SECONDS)

        before = self._table.update(_pause_key(target), begin_probe)
        return before is None or not before.is_running(now)

    def release(self, target: Endpoint) -> None:
        """End a probe without an outcome. The next request becomes the probe."""
        if self.find(target) is not None:
            self._table.update(_pause_key(target), lambda pause: pause and replace(pause, probe=0.0))

    def succeed(self, target: Endpoint) -> None:
        """End the pause of a target that replied."""
        if self.find(target) is not None:
            self._table.update(_pause_key(target), lambda _: None)

    def fail(self, target: Endpoint, error: ProviderError) -> None:
        """Pause a target that failed. Requests that fail at the same time count as one failure."""
        now = self._clock()

        def begin_pause(pause: Pause | None) -> Pause:
            is_running = pause is not None and pause.start <= now < pause.until
            failures = 1 if pause is None else pause.failures + (not is_running)
            seconds = min(_MAX_PAUSE, _FIRST_PAUSE * 2 ** min(failures - 1, 16))
            if error.retry_after is not None:
                seconds = min(max(error.retry_after, _MIN_RETRY_AFTER), _MAX_RETRY_AFTER)
            until = now + seconds if pause is None or not is_running else max(pause.until, now + seconds)
            return Pause(error.cause, failures, now, until)

        before = self._table.update(_pause_key(target), begin_pause)
        if error.cause in KEY_CAUSES and (before is None or before.cause not in KEY_CAUSES):
            self._report_key(error)


def _pause_key(target: Endpoint) -> str:
    """Return the key of a target's pause. It differs if the address or the key of the target is another one."""
    key = "caller" if target.has_caller_key else fingerprint_key(target.key)
    parts = (target.name, target.api, target.base_url, target.region or "", key)
    return sha256("\n".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:32]


# ----------------------------------------------------------------------------------------------------------- a request


class TargetSequence:
    """The order in which one request tries its targets: each once, those without a pause first, then one paused.

    `current` is the target to use now, at the beginning `first` where given. `is_retryable` states whether it may be
    retried after a failure; a probe is not. The only target of a route is never paused.
    """

    def __init__(self, targets: Sequence[Endpoint], pauses: TargetPauses, first: Endpoint | None = None) -> None:
        if not targets:
            raise InputError("a route needs at least one model", path="models")
        self._untried = list(targets)
        self._is_single = len(targets) == 1
        self._pauses = pauses
        self._has_begun = self._has_used_paused = self._is_probe = False
        self.is_retryable = True
        self.current = targets[0]
        following = self._find_next() if first is None else first
        assert following is not None
        self._use(following)

    def _find_next(self) -> Endpoint | None:
        free = next((target for target in self._untried if self._pauses.claim(target)), None)
        if free is not None or self._has_used_paused:
            return free
        # After a failure, a target that timed out before is not awaited again: the error is reported instead.
        paused = [target for target in self._untried if not self._has_begun or not self._pauses.is_silent(target)]
        self._has_used_paused = True
        return self._pauses.choose(paused) if paused else None

    def _use(self, target: Endpoint) -> None:
        self.current = target
        self._has_begun = True
        self._untried.remove(target)
        is_new = self._pauses.find(target) is None
        self._is_probe = not is_new and not self._has_used_paused
        self.is_retryable = is_new or self._is_single

    @property
    def has_successor(self) -> bool:
        """Whether a target that is not paused can take the request over."""
        return any(not self._pauses.is_paused(target) for target in self._untried)

    def succeed(self) -> None:
        self._is_probe = False
        self._pauses.succeed(self.current)

    def release(self) -> None:
        """End the request without an outcome for the current target."""
        if self._is_probe:
            self._is_probe = False
            self._pauses.release(self.current)

    def fail(self, error: ProviderError) -> bool:
        """Record the failure of the current target; return whether another one takes the request over."""
        self.pause(error)
        if error.is_too_long:
            self._untried = find_larger(self._untried, error.context_limit or self.current.context)
        elif error.cause not in FAILOVER_CAUSES or (self._is_callers_fault(error) and error.cause in KEY_CAUSES):
            return False
        following = self._find_next()
        if following is not None:
            self._use(following)
        return following is not None

    def pause(self, error: ProviderError) -> None:
        """Pause the current target, unless the failure is the caller's or there is no other target."""
        if error.cause in FAILOVER_CAUSES and not self._is_callers_fault(error) and not self._is_single:
            self._is_probe = False
            self._pauses.fail(self.current, error)
        self.release()

    def _is_callers_fault(self, error: ProviderError) -> bool:
        return self.current.has_caller_key and error.cause in _CALLER_CAUSES


def is_worth_waiting(error: ProviderError, delay: float, *, has_successor: bool) -> bool:
    """Return whether the same target is tried again after this delay, and not the next one."""
    return not has_successor or (error.cause != "timeout" and delay <= _MAX_DELAY)


def find_larger(targets: Sequence[Endpoint], context: int | None) -> list[Endpoint]:
    """Return the targets whose context is known to be larger."""
    return [target for target in targets if context and target.context and target.context > context]
