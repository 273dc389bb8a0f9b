"""`segue.bridge.failover`: conditions, pauses, probes, and the targets of one request."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct
from msgspec.structs import replace

from segue.bridge.failover import FAILOVER_CAUSES, Conditions, TargetPauses, TargetSequence, rotate
from segue.bridge.providers import Endpoint
from segue.bridge.secret import Secret
from segue.errors import InputError, ProviderError, ProviderErrorCause
from tests.bridge.exchanges import Shell, endpoint, path_of, request_body, whole
from tests.bridge.test_fallback import error_response
from tests.budget import examples

A, B, C = (Endpoint(provider=name, model="m", api="openai-chat", base_url="http://127.0.0.1:1") for name in "abc")


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def fault(cause: Any = "overloaded", **fields: Any) -> ProviderError:
    return ProviderError("no", cause=cause, provider="a", model="m", **fields)


class Facts(Struct):
    tokens: int = 100
    has_images: bool = False
    has_reasoning: bool = False


@pytest.mark.parametrize(
    ("conditions", "facts", "expected"),
    [
        ({}, {}, True),
        ({"min_tokens": 100}, {}, True),
        ({"min_tokens": 101}, {}, False),
        ({"max_tokens": 100}, {}, True),
        ({"max_tokens": 99}, {}, False),
        ({"images": True}, {}, False),
        ({"images": True}, {"has_images": True}, True),
        ({"images": False}, {"has_images": True}, False),
        ({"reasoning": True}, {}, False),
        ({"reasoning": True}, {"has_reasoning": True}, True),
        ({"reasoning": False}, {"has_reasoning": True}, False),
        ({"min_tokens": 1, "reasoning": True}, {}, False),
    ],
)
def test_conditions(conditions: dict[str, Any], facts: dict[str, Any], expected: bool) -> None:
    assert Conditions(**conditions).match(Facts(**facts)) is expected


def test_targets_take_turns() -> None:
    assert [rotate("abc", turn) for turn in range(4)] == [tuple("abc"), tuple("bca"), tuple("cab"), tuple("abc")]


def test_a_route_needs_a_target() -> None:
    with pytest.raises(InputError, match="models"):
        TargetSequence([], TargetPauses(Clock()))


@pytest.mark.parametrize("cause", get_args(ProviderErrorCause))
def test_each_cause_either_pauses_or_ends_the_request(cause: str) -> None:
    pauses = TargetPauses(Clock())
    selection = TargetSequence([A, B], pauses)
    assert selection.fail(fault(cause)) == (cause in FAILOVER_CAUSES) == (cause != "refused")
    assert pauses.is_paused(A) == (cause in FAILOVER_CAUSES)
    assert selection.current is (B if cause in FAILOVER_CAUSES else A)


@pytest.mark.parametrize("cause", get_args(ProviderErrorCause))
def test_key_of_a_caller_pauses_only_for_what_is_not_its_own(cause: str) -> None:
    keyed = replace(A, key=Secret("one"), has_caller_key=True)
    other = replace(A, key=Secret("two"), has_caller_key=True)
    pauses = TargetPauses(Clock())
    is_taken_over = TargetSequence([keyed, B], pauses).fail(fault(cause))
    assert is_taken_over == (cause not in ("auth", "key", "refused"))
    assert pauses.is_paused(other) == (cause in ("broken", "network", "overloaded", "timeout"))


def test_single_target_is_never_left_out() -> None:
    pauses = TargetPauses(Clock())
    for _ in range(3):
        selection = TargetSequence([A], pauses)
        assert selection.is_retryable
        assert not selection.fail(fault())
        assert not pauses.is_paused(A)
    TargetSequence([A, B], pauses).fail(fault())
    alone = TargetSequence([A], pauses)
    assert (alone.current, alone.is_retryable, alone.has_successor) == (A, True, False)


def test_one_paused_target_is_tried_after_the_others() -> None:
    """The one whose pause ends first: not all of them, which may each be silent for minutes."""
    pauses = TargetPauses(Clock())
    pauses.fail(A, fault(retry_after=100))
    pauses.fail(B, fault(retry_after=50))
    selection = TargetSequence([A, B, C], pauses)
    assert (selection.current, selection.has_successor) == (C, False)
    assert selection.fail(fault())
    assert (selection.current, selection.is_retryable) == (B, False)
    assert not selection.fail(fault())


def test_silent_target_is_not_waited_for_after_a_failure() -> None:
    """An error at once is better than one more silence; but if nothing else is left, the target is tried."""
    pauses = TargetPauses(Clock())
    pauses.fail(A, fault("timeout"))
    selection = TargetSequence([A, B], pauses)
    assert selection.current is B
    assert not selection.fail(fault())
    assert TargetSequence([A, B], pauses).current in (A, B)


def test_failures_at_the_same_time_count_as_one() -> None:
    clock = Clock()
    pauses = TargetPauses(clock)
    for _ in range(50):
        pauses.fail(A, fault())
    clock.now += 15
    assert not pauses.is_paused(A)
    pauses.fail(A, fault())
    clock.now += 29
    assert pauses.is_paused(A)
    clock.now += 1
    assert not pauses.is_paused(A)


@pytest.mark.parametrize(("given", "seconds"), [(0, 1), (3, 3), (100, 100), (7200, 7200), (1e12, 86_400)])
def test_retry_after_is_the_pause(given: float, seconds: float) -> None:
    clock = Clock()
    pauses = TargetPauses(clock)
    pauses.fail(A, fault(retry_after=given))
    clock.now += seconds - 0.5
    assert pauses.is_paused(A)
    clock.now += 0.5
    assert not pauses.is_paused(A)


def test_pause_has_a_longest_time() -> None:
    clock = Clock()
    pauses = TargetPauses(clock)
    for _ in range(100):
        pauses.fail(A, fault())
        assert pauses.is_paused(A)
        clock.now += 600
        assert not pauses.is_paused(A)


def test_refused_probe_is_followed_by_another() -> None:
    """A request that is not valid says nothing about the target."""
    clock = Clock()
    pauses = TargetPauses(clock)
    pauses.fail(A, fault())
    clock.now += 15
    probe, other = TargetSequence([A, B], pauses), TargetSequence([A, B], pauses)
    assert (probe.current, other.current, probe.is_retryable) == (A, B, False)
    assert not probe.fail(fault("refused"))
    assert TargetSequence([A, B], pauses).current is A


def test_rejected_key_is_reported_once() -> None:
    clock, reports = Clock(), list[ProviderError]()
    pauses = TargetPauses(clock, report_key=reports.append)
    for cause in ("auth", "auth", "key", "auth"):
        pauses.fail(A, fault(cause))
        clock.now += 1000
    assert len(reports) == 1
    pauses.succeed(A)
    pauses.fail(A, fault("auth"))
    assert len(reports) == 2


@given(
    st.lists(st.tuples(st.sampled_from(["ok", "gone", *get_args(ProviderErrorCause)]), st.floats(0, 1000)), max_size=40)
)
@examples(5)
def test_request_tries_each_target_at_most_once(steps: Sequence[tuple[str, float]]) -> None:
    clock = Clock()
    pauses = TargetPauses(clock)
    selection, tried = TargetSequence([A, B, C], pauses), 1
    for outcome, seconds in steps:
        clock.now += seconds
        is_taken_over = False
        if outcome == "ok":
            selection.succeed()
            assert not pauses.is_paused(selection.current)
        elif outcome == "gone":
            selection.release()
        else:
            before = selection.current
            is_taken_over = selection.fail(fault(outcome))
            assert not is_taken_over or selection.current is not before
        tried = tried + 1 if is_taken_over else 1
        assert tried <= 3
        if not is_taken_over:
            selection = TargetSequence([A, B, C], pauses)
    # However it went, some target is used again later.
    clock.now += 100_000
    assert TargetSequence([A, B, C], pauses).current is A


# ------------------------------------------------------------------------------------------------------------ exchanges


def test_caller_that_goes_away_releases_the_probe() -> None:
    shell = Shell(endpoint("anthropic"), endpoint("gemini", 1))
    body = request_body("openai-chat")
    failed = [error_response("anthropic", 529, retry_after="0"), whole("gemini")]
    assert shell.run(path_of("openai-chat"), body, failed).status == 200
    pauses = shell.bridge._settings.pauses
    clock = Clock()
    pauses._clock = lambda: 2_000_000_000.0 + clock.now
    probe = shell.open(path_of("openai-chat"), body)
    assert [probe.target, shell.open(path_of("openai-chat"), body).target] == [
        f"p0/{endpoint('anthropic').model}",
        f"p1/{endpoint('gemini').model}",
    ]
    probe.end()
    assert shell.open(path_of("openai-chat"), body).target == probe.target


def test_target_that_failed_is_left_out_of_later_exchanges() -> None:
    shell, body = Shell(endpoint("anthropic"), endpoint("gemini", 1)), request_body("openai-chat")
    first = shell.run(path_of("openai-chat"), body, [error_response("anthropic", 529), whole("gemini")])
    second = shell.run(path_of("openai-chat"), body, [whole("gemini")])
    assert [len(answer.sent) for answer in (first, second)] == [2, 1]
    assert [error.model for error in first.relay.failed] == [endpoint("anthropic").model]
    assert second.relay.failed == []


def test_first_byte_is_limited_where_another_target_is_free() -> None:
    limits: list[float | None] = []
    for targets, stream in (((0,), True), ((0, 1), False), ((0, 1), True)):
        shell = Shell(*(endpoint("anthropic", number) for number in targets))
        answer = shell.run(
            path_of("openai-chat", stream=stream),
            request_body("openai-chat", stream=stream),
            [error_response("anthropic", 400)],
        )
        limits.append(answer.sent[0].first_byte)
    assert limits == [None, None, 60.0]
