"""Requests to strict emulated providers of every API, over real sockets: replies, faults, retries, cancellation."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from contextlib import aclosing
from typing import Any, TypeVar

import pytest

import segue
from segue._rendered import Rendered
from segue.bridge import aws
from segue.bridge.providers import Endpoint, Secret
from segue.emulator import Emulator, start
from segue.emulator.steps import ErrorStep
from segue.errors import ProviderError, ProviderErrorCause
from segue.runtime.events import RetryScheduled
from segue.runtime.provider_client import ProviderClient, RetryPolicy, Timeouts
from segue.wire.registry import WIRES
from segue.wire.stream.events import Event

KEY = "segue-0123456789-key"
VARIABLES = ("SOME_API_KEY", "OTHER_API_KEY")
SCRIPT = "say Hello there, my friend, and how are you today?"
TOOL = {"name": "look", "description": "Looks.", "parameters": {"type": "object", "properties": {}}}
LONG = 600.0
APIS = tuple(WIRES)
T = TypeVar("T")

every_api = pytest.mark.parametrize("api", APIS)


@pytest.fixture(autouse=True)
def _no_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Waits are reported and skipped."""
    monkeypatch.setattr("segue.runtime.provider_client.sleep", lambda _: asyncio.sleep(0))


def run(work: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(asyncio.wait_for(work, 100))


def render_request(api: str, text: str = "How are you?") -> Rendered:
    chat = segue.Conversation(tools=[{"type": "function", "function": TOOL}])
    chat.options = {"stream": True, "max_tokens": 4096}
    chat.add_user(text)
    return chat.render(api, WIRES[api].default_model)


def make_endpoint(api: str, base_url: str, **more: Any) -> Endpoint:
    given = {"key": Secret(KEY), "variables": VARIABLES, **more}
    return Endpoint("somebody", WIRES[api].default_model, api, base_url, **given)


async def request_reply(
    upstream: ProviderClient, target: Endpoint, retries: list[RetryScheduled] | None = None
) -> segue.Reply:
    """The whole reply."""
    request = render_request(target.api)
    scheduled = retries if retries is not None else []
    opening = upstream.open(target, request.fragments, request.open_reader, on_retry=scheduled.append)
    async with aclosing(await opening) as stream:
        async for _ in stream:
            pass
    return stream.reader.close()


def request_scripted(
    emulator: Emulator,
    retries: list[RetryScheduled] | None = None,
    *,
    key: str | None = KEY,
    attempts: int = 4,
    first: float = 0.5,
    **options: Any,
) -> segue.Reply:
    async def play() -> segue.Reply:
        async with ProviderClient(retry_policy=RetryPolicy(attempts, first), **options) as upstream:
            target = make_endpoint(emulator.api, emulator.base_url, key=None if key is None else Secret(key))
            return await request_reply(upstream, target, retries)

    return run(play())


def request_error(emulator: Emulator, retries: list[RetryScheduled] | None = None, **options: Any) -> ProviderError:
    with pytest.raises(ProviderError) as raised:
        request_scripted(emulator, retries, **options)
    error = raised.value
    assert (error.provider, error.model) == ("somebody", WIRES[emulator.api].default_model)
    assert "\n" not in str(error)
    assert KEY not in str(error)
    assert error.brief
    return error


@every_api
def test_reply_matches_the_script(api: str) -> None:
    with start(api, script=SCRIPT, keys=[KEY]) as emulator:
        reply = request_scripted(emulator)
        (record,) = emulator.requests
    assert reply.text == "Hello there, my friend, and how are you today?"
    assert reply.finish == "stop"
    assert record.accepted
    assert record.streamed
    assert record.violations == ()


@every_api
def test_the_first_bytes_are_there_when_it_opens(api: str) -> None:
    """Also if the provider then sends nothing more."""

    async def play(emulator: Emulator) -> list[Event]:
        async with ProviderClient() as upstream:
            request = render_request(api)
            target = make_endpoint(api, emulator.base_url)
            async with aclosing(await upstream.open(target, request.fragments, request.open_reader)) as stream:
                return await anext(stream)

    with start(api, script=SCRIPT, faults=["stall"], patience=LONG) as emulator:
        assert run(play(emulator))


# --------------------------------------------------------------------------------------------------------------- faults

FAULTS: list[tuple[str, ProviderErrorCause, int]] = [
    ("rate-limit", "rate-limited", 3),
    ("server-error", "overloaded", 3),
    ("overloaded", "overloaded", 3),
    ("reset", "network", 3),
    ("slow-start", "timeout", 2),
    ("reset-in-stream", "broken", 1),
    ("stall", "timeout", 1),
]


@every_api
@pytest.mark.parametrize(("fault", "cause", "requests"), FAULTS, ids=[fault for fault, *_ in FAULTS])
def test_every_fault_has_its_cause(api: str, fault: str, cause: ProviderErrorCause, requests: int) -> None:
    retries: list[RetryScheduled] = []
    with start(api, script=SCRIPT, faults=[fault], patience=LONG) as emulator:
        # Only what has to run out is short.
        timeouts = Timeouts(first_token=0.25) if fault == "slow-start" else Timeouts(idle=0.25)
        error = request_error(emulator, retries, attempts=3, timeouts=timeouts)
        assert len(emulator.requests) == requests
    assert error.cause == cause
    assert error.retryable
    assert error.retry_after == (1.0 if fault == "rate-limit" else None)
    assert [waiting.attempt for waiting in retries] == list(range(1, requests))
    assert {waiting.why for waiting in retries} <= {error.brief}


@pytest.mark.parametrize("fault", ["slow-start", "rate-limit"])
def test_another_endpoint_that_is_free_takes_over_at_once(fault: str) -> None:
    """A silent provider, and one that asks for a pause, are not waited for."""
    faults = [fault] if fault == "slow-start" else []
    with start("anthropic", script=lambda _: (ErrorStep(429, "No.", 30.0),), faults=faults, patience=LONG) as emulator:

        async def send() -> None:
            request = render_request("anthropic")
            async with ProviderClient() as client:
                target = make_endpoint("anthropic", emulator.base_url)
                await client.open(target, request.fragments, request.open_reader, first_byte=0.25 if faults else 100.0)

        with pytest.raises(ProviderError) as raised:
            run(send())
        assert len(emulator.requests) == 1
    assert raised.value.cause == ("timeout" if fault == "slow-start" else "rate-limited")


@every_api
@pytest.mark.parametrize("fault", ["rate-limit", "server-error", "overloaded", "reset"])
def test_temporary_error_before_the_reply_is_retried(api: str, fault: str) -> None:
    retries: list[RetryScheduled] = []
    with start(api, script=SCRIPT, faults=[f"{fault}@1"], patience=LONG) as emulator:
        reply = request_scripted(emulator, retries)
        assert len(emulator.requests) == 2
    assert reply.text.startswith("Hello there")
    (waiting,) = retries
    assert (waiting.provider, waiting.model) == ("somebody", WIRES[api].default_model)
    assert waiting.attempt == 1
    assert waiting.seconds >= (1.0 if fault == "rate-limit" else 0.25)


def test_silence_before_the_reply_is_tried_again() -> None:
    retries: list[RetryScheduled] = []
    with start("openai-chat", script=f"{SCRIPT}\n---\n{SCRIPT}", faults=["slow-start@1"], patience=LONG) as emulator:
        assert request_scripted(emulator, retries, timeouts=Timeouts(first_token=2.0)).text.startswith("Hello there")
        assert len(emulator.requests) == 2
    assert [waiting.why for waiting in retries] == ["timed out"]


@every_api
@pytest.mark.parametrize("fault", ["cut-arguments", "repeated-ids", "missing-ids", "double-finish", "wrong-type"])
def test_stream_faults_are_not_retried(api: str, fault: str) -> None:
    with start(api, script="say Hm.\ncall look {}", faults=[fault]) as emulator:
        reply = request_scripted(emulator)
        assert len(emulator.requests) == 1
    assert [call.name for call in reply.calls] == ["look"]


@every_api
def test_error_after_the_first_delta_is_part_of_the_reply(api: str) -> None:
    with start(api, script="say Well, then.\nerror 529 Too much.") as emulator:
        reply = request_scripted(emulator)
        assert len(emulator.requests) == 1
    assert reply.finish == "error"


@every_api
def test_a_stream_that_ends_too_early_is_the_readers_business(api: str) -> None:
    with start(api, script="say Well, then, it was\ncut") as emulator:
        reply = request_scripted(emulator)
        assert len(emulator.requests) == 1
    assert reply.finish == "error"


@pytest.mark.parametrize("attempts", [1, 2, 5])
def test_a_request_is_sent_so_often_and_no_more(attempts: int) -> None:
    retries: list[RetryScheduled] = []
    with start("anthropic", faults=["overloaded"]) as emulator:
        request_error(emulator, retries, attempts=attempts)
        assert len(emulator.requests) == attempts
    assert len(retries) == attempts - 1


def test_waits_grow_and_are_deterministic_per_seed() -> None:
    def waits(drawn: float) -> list[float]:
        retries: list[RetryScheduled] = []
        with start("openai-chat", faults=["server-error"]) as emulator:
            request_error(emulator, retries, attempts=4, first=1.0, random=lambda: drawn)
        return [waiting.seconds for waiting in retries]

    assert waits(1.0) == [1.0, 2.0, 4.0]
    assert waits(0.0) == [0.5, 1.0, 2.0]


def test_retry_after_wait_is_respected() -> None:
    retries: list[RetryScheduled] = []
    script = "error 429 Slow down. (retry after 7)\n---\nsay Now."
    with start("anthropic", script=script) as emulator:
        assert request_scripted(emulator, retries, first=1.0, random=lambda: 0.5).text == "Now."
    assert [waiting.seconds for waiting in retries] == [7.5]


def test_a_wait_that_is_too_long_is_not_begun() -> None:
    retries: list[RetryScheduled] = []
    with start("anthropic", script="error 429 Come back tomorrow. (retry after 86400)") as emulator:
        error = request_error(emulator, retries)
        assert len(emulator.requests) == 1
    assert (error.cause, error.retry_after, error.retryable, retries) == ("rate-limited", 86400.0, True, [])
    assert "86400 s" in str(error)


def test_retries_leave_no_trace_in_the_conversation(
    capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    with start("anthropic", faults=["overloaded@1"], script=SCRIPT) as emulator:
        request_scripted(emulator)
    assert capfd.readouterr() == ("", "")
    assert caplog.records == []


# ------------------------------------------------------------------------------------------------------------- refusals


@every_api
def test_a_wrong_key_names_the_variable(api: str) -> None:
    with start(api, keys=["another"]) as emulator:
        error = request_error(emulator)
        assert len(emulator.requests) == 1
    assert error.cause == "auth"
    assert not error.retryable
    assert "check SOME_API_KEY or OTHER_API_KEY; segue doctor --online tests it" in str(error)


@every_api
def test_without_a_key_nothing_is_sent(api: str) -> None:
    with start(api) as emulator:
        error = request_error(emulator, key=None)
        assert emulator.requests == []
    assert error.cause == "key"
    assert not error.retryable
    assert str(error) == "no API key for somebody: set SOME_API_KEY or OTHER_API_KEY; segue doctor shows what is set"


@every_api
def test_rejected_request_has_the_provider_message(api: str) -> None:
    async def play(emulator: Emulator) -> None:
        async with ProviderClient() as upstream:
            target, body = make_endpoint(api, emulator.base_url), b'{"stream": true, "wrong": 1}'
            await upstream.open(target, [body], render_request(api).open_reader)

    with start(api) as emulator:
        with pytest.raises(ProviderError) as raised:
            run(play(emulator))
        (record,) = emulator.requests
    assert raised.value.cause == "refused"
    assert raised.value.status == record.status
    assert not raised.value.retryable
    assert "segue diag shows" in str(raised.value)
    assert " ".join((record.refused or "").split())[:40].rstrip(".") in str(raised.value)


# --------------------------------------------------------------------------------------------------------- cancellation


@every_api
@pytest.mark.parametrize("fault", ["slow-start", "stall"])
def test_cancelled_request_leaves_nothing_open(api: str, fault: str) -> None:
    """Before the reply and in its middle; the next request goes through."""

    async def play(emulator: Emulator) -> None:
        async with ProviderClient() as upstream:
            target = make_endpoint(api, emulator.base_url)
            task = asyncio.create_task(request_reply(upstream, target))
            while not emulator.requests:
                await asyncio.sleep(0.005)
            # It gets as far as it can.
            await asyncio.sleep(0.05)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert (await request_reply(upstream, target)).text

    script = "say One two three.\n---\nsay Four."
    with start(api, script=script, faults=[f"{fault}@1"], patience=LONG) as emulator:
        run(play(emulator))
        assert len(emulator.requests) == 2


def test_a_wait_can_be_cancelled(monkeypatch: pytest.MonkeyPatch) -> None:
    async def play(emulator: Emulator) -> None:
        async with ProviderClient() as upstream:
            waits = asyncio.Event()
            request = render_request("anthropic")
            target = make_endpoint("anthropic", emulator.base_url)
            opening = upstream.open(target, request.fragments, request.open_reader, on_retry=lambda _: waits.set())
            task = asyncio.create_task(opening)
            await waits.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    monkeypatch.setattr("segue.runtime.provider_client.sleep", asyncio.sleep)
    with start("anthropic", script="error 429 Slow down. (retry after 50)") as emulator:
        run(play(emulator))
        assert len(emulator.requests) == 1


# ----------------------------------------------------------------------------------------------------------------- more


@every_api
def test_many_at_once(api: str) -> None:
    async def play(emulator: Emulator) -> Sequence[segue.Reply]:
        async with ProviderClient() as upstream:
            target = make_endpoint(api, emulator.base_url)
            return await asyncio.gather(*(request_reply(upstream, target) for _ in range(64)))

    with start(api) as emulator:
        replies = run(play(emulator))
        assert len(emulator.requests) == 64
        assert all(record.accepted for record in emulator.requests)
    assert len(replies) == 64


def test_under_chaos_every_request_ends_well_or_with_an_error() -> None:
    async def play(emulator: Emulator) -> list[Any]:
        async with ProviderClient(
            retry_policy=RetryPolicy(3), timeouts=Timeouts(first_token=5.0, idle=5.0)
        ) as upstream:
            target = make_endpoint(emulator.api, emulator.base_url)
            return await asyncio.gather(*(request_reply(upstream, target) for _ in range(60)), return_exceptions=True)

    faults = {"rate-limit": 0.2, "server-error": 0.1, "reset": 0.1, "reset-in-stream": 0.1, "slow-start": 0.1}
    with start("openai-chat", faults=faults, patience=0.01) as emulator:
        ends = run(play(emulator))
    causes = [end.cause for end in ends if isinstance(end, ProviderError)]
    replies = [end for end in ends if isinstance(end, segue.Reply)]
    assert len(causes) + len(replies) == 60
    assert replies
    assert causes
    assert all(reply.finish in ("stop", "tool_calls") for reply in replies)


def test_amazons_signature_is_taken() -> None:
    credentials = aws.Credentials(Secret("AKIAEXAMPLE"), Secret("s3cret/+="), Secret("a-token"))

    async def play(emulator: Emulator, signer: Any) -> segue.Reply:
        async with ProviderClient() as upstream:
            target = make_endpoint("bedrock", emulator.base_url, key=None, signer=signer, region="eu-west-1")
            return await request_reply(upstream, target)

    class Fetching:
        """What has to be fetched first."""

        def get(self) -> aws.Credentials:
            return credentials

    with start("bedrock", keys=["AKIAEXAMPLE:s3cret/+="], script=f"{SCRIPT}\n---\n{SCRIPT}") as emulator:
        for signer in (credentials, Fetching()):
            assert run(play(emulator, signer)).text
        wrong = aws.Credentials(Secret("AKIAEXAMPLE"), Secret("wrong"))
        with pytest.raises(ProviderError) as raised:
            run(play(emulator, wrong))
    assert raised.value.cause == "auth"


@every_api
def test_a_probe_costs_nothing(api: str) -> None:
    async def play(emulator: Emulator, key: str | None) -> Any:
        async with ProviderClient() as upstream:
            return await upstream.probe(make_endpoint(api, emulator.base_url, key=None if key is None else Secret(key)))

    with start(api, keys=[KEY]) as emulator:
        good, bad, none = (run(play(emulator, key)) for key in (KEY, "wrong", None))
        assert all(record.method == "GET" and not record.messages for record in emulator.requests)
    assert good.reachable
    assert good.error is None
    if api in ("bedrock", "azure-foundry"):
        # The emulators of these keep no list.
        assert good.accepted is None
    else:
        assert good.accepted
        assert WIRES[api].default_model in [entry.name for entry in good.models]
        assert (bad.reachable, bad.accepted, bad.error.cause) == (True, False, "auth")
    assert (none.accepted, none.error.cause) == (False, "key")


def test_probe_of_an_unreachable_server() -> None:
    async def play(base_url: str) -> Any:
        async with ProviderClient() as upstream:
            return await upstream.probe(make_endpoint("openai-chat", base_url))

    with start("openai-chat") as emulator:
        base_url = emulator.base_url
    probed = run(play(base_url))
    assert (probed.reachable, probed.accepted, probed.error.cause) == (False, None, "network")
    assert "connection refused" in str(probed.error)
    assert base_url in str(probed.error)


# --------------------------------------------------------------------------------------------------------------- limits


@every_api
@pytest.mark.parametrize("size", [60, 400])
def test_a_reply_above_its_limits_is_cancelled_and_not_retried(api: str, size: int) -> None:
    """Before and after the first token."""
    retries: list[RetryScheduled] = []
    with start(api, script=f"say {'word ' * 500}", keys=[KEY]) as emulator:
        error = request_error(emulator, retries, limits=segue.ReplyLimits(bytes=size))
        assert len(emulator.requests) == 1
    assert (error.cause, error.retryable, error.brief) == ("broken", False, "sent too large a reply")
    assert f"larger than {size} bytes (limit `bytes`)" in str(error)
    assert not retries
