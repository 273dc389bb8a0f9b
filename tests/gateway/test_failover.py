"""Failover of the gateway over HTTP: which failures another target takes over, and how long a target is left out."""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from typing import Any

import httpx2
import pytest
from msgspec.structs import replace

from segue.bridge.providers import Endpoint
from segue.bridge.secret import Secret
from segue.emulator.steps import CutStep, ErrorStep, ReplySteps, TextStep
from segue.gateway.routes import RouteSettings
from segue.gateway.settings import GatewayRoutes
from tests.gateway.harness import Running, model_of, running_gateway

FIRST, SECOND = model_of("openai-chat"), model_of("anthropic")
ANSWER = (TextStep("Hello back."),)
OVERLOADED = (ErrorStep(529, "Overloaded."),)
BOTH = pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
_PATIENCE = 100


class Clock:
    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


class Failing:
    """A gateway with two targets. `reply` is what the first one sends; the second one always answers."""

    def __init__(self, gateway: Running, clock: Clock) -> None:
        self.gateway = gateway
        self.clock = clock
        self.reply: ReplySteps = ANSWER

    def post(self, *, stream: bool = False, **headers: str) -> httpx2.Response:
        body = {"model": "any", "stream": stream, "messages": [{"role": "user", "content": "Hello"}]}
        return httpx2.post(f"{self.gateway.url}/v1/chat/completions", json=body, headers=headers, timeout=_PATIENCE)

    def counts(self) -> tuple[int, int]:
        """Return how many requests reached the first and the second target."""
        first, second = (len(self.gateway.emulators[api].requests) for api in ("openai-chat", "anthropic"))
        return first, second

    def paused(self) -> dict[str, str]:
        lines = httpx2.get(f"{self.gateway.url}/metrics", timeout=_PATIENCE).text.splitlines()
        rows = [line for line in lines if line.startswith("segue_target_paused{")]
        return {line.split('"')[1]: line.rpartition(" ")[2] for line in rows}


@contextmanager
def failing(reply: ReplySteps = OVERLOADED, *, faults: Any = (), **options: Any) -> Generator[Failing]:
    clock = Clock()
    current: list[Failing] = []
    routes = (RouteSettings((FIRST, SECOND), attempts=2, **options.pop("route", {})),)
    scripts: Mapping[str, Callable[[Any], ReplySteps]] = {
        "openai-chat": lambda _request: current[0].reply,
        "anthropic": lambda _request: ANSWER,
    }
    options_of = {"openai-chat": {"faults": faults, "patience": _PATIENCE}}
    with running_gateway(scripts, routes=routes, options_of=options_of, clock=clock, **options) as gateway:
        current.append(Failing(gateway, clock))
        current[0].reply = reply
        yield current[0]


# ------------------------------------------------------------------------------------------------------------- causes

# Failures of a target after which the next one is used, and the target is left out.
CAUSES: dict[str, tuple[ReplySteps, str]] = {
    "rate limit": ((ErrorStep(429, "Slow down."),), "is rate limited (429)"),
    "overloaded": (OVERLOADED, "is overloaded (529)"),
    "unavailable": ((ErrorStep(503, "Later."),), "is overloaded (503)"),
    "internal error": ((ErrorStep(500, "Oops."),), "has an internal error (500)"),
    "time-out status": ((ErrorStep(504, "Late."),), "timed out (504)"),
    "quota": ((ErrorStep(402, "You have no credit left."),), "has no credit left (402)"),
    "rejected key": ((ErrorStep(401, "Incorrect API key provided."),), "rejected the key (401)"),
    "no access": ((ErrorStep(403, "Your account may not use this."),), "denied access (403)"),
    "unknown model": ((ErrorStep(404, "The model does not exist."),), "has no such model (404)"),
    "unknown model, 400": ((ErrorStep(400, "unknown model gpt-4.1"),), "has no such model (400)"),
    "broken before content": ((CutStep("end"), TextStep("Never sent.")), ""),
    "reset before content": ((CutStep("reset"), TextStep("Never sent.")), ""),
}
# What another target would refuse, too.
NO_CAUSES: dict[str, ReplySteps] = {
    "invalid body": (ErrorStep(400, "messages: required"),),
    "unprocessable": (ErrorStep(422, "temperature: too high"),),
    "policy": (ErrorStep(400, "The response was filtered due to the content policy."),),
    "moderation": (ErrorStep(403, "Your input was flagged by the moderation."),),
    "too long": (ErrorStep(400, "This model's maximum context length is 8192 tokens."),),
    "too large": (ErrorStep(413, "Request too large."),),
}


@BOTH
@pytest.mark.parametrize("cause", CAUSES)
def test_target_that_fails_is_left_out_until_a_probe(cause: str, stream: bool) -> None:
    reply, brief = CAUSES[cause]
    with failing(reply) as gateway:
        assert gateway.paused() == {FIRST: "0", SECOND: "0"}
        assert gateway.post(stream=stream).status_code == 200
        first, second = gateway.counts()
        assert (first in (1, 2), second) == (True, 1), "at most the attempts of the first request"
        gateway.gateway.wait_for_log(f"any → {SECOND}")
        assert f"; {FIRST} {brief}" in gateway.gateway.log, gateway.gateway.log
        assert gateway.paused() == {FIRST: "1", SECOND: "0"}
        for _ in range(5):
            assert gateway.post(stream=stream).status_code == 200
        assert gateway.counts() == (first, second + 5)
        gateway.clock.now += 16
        assert gateway.post(stream=stream).status_code == 200
        assert gateway.counts() == (first + 1, second + 6), "the probe is sent once"
        gateway.clock.now += 16
        assert gateway.post(stream=stream).status_code == 200
        assert gateway.counts() == (first + 1, second + 7), "the second pause is longer"
        gateway.clock.now += 16
        gateway.reply = ANSWER
        for _ in range(2):
            assert gateway.post(stream=stream).status_code == 200
        assert gateway.counts() == (first + 3, second + 7), "the first target is used again"
        assert gateway.paused() == {FIRST: "0", SECOND: "0"}
        gateway.reply = reply
        assert gateway.post(stream=stream).status_code == 200
        gateway.clock.now += 16
        assert gateway.post(stream=stream).status_code == 200
        assert gateway.counts()[1] == second + 9, "the pause begins with the shortest again"


@BOTH
@pytest.mark.parametrize("cause", NO_CAUSES)
def test_request_that_every_target_would_refuse_is_sent_once(cause: str, stream: bool) -> None:
    with failing(NO_CAUSES[cause]) as gateway:
        for number in range(1, 4):
            response = gateway.post(stream=stream)
            assert response.status_code in (400, 403, 413, 422), response.text
            assert gateway.counts() == (number, 0)
        assert gateway.paused() == {FIRST: "0", SECOND: "0"}


@BOTH
@pytest.mark.parametrize(("larger", "taken_over"), [(200_000, True), (8_000, False), (0, False)])
def test_too_long_request_goes_to_a_larger_window(larger: int, taken_over: bool, stream: bool) -> None:
    contexts = {"openai-chat": 8_000, **({"anthropic": larger} if larger else {})}
    with failing(NO_CAUSES["too long"], contexts=contexts) as gateway:
        for number in range(1, 3):
            assert gateway.post(stream=stream).status_code == (200 if taken_over else 400)
            assert gateway.counts() == (number, number * taken_over)
        assert gateway.paused() == {FIRST: "0", SECOND: "0"}


@BOTH
def test_provider_that_does_not_run_is_left_out(stream: bool) -> None:
    with failing() as gateway:
        gateway.gateway.emulators["openai-chat"].stop()
        for _ in range(3):
            assert gateway.post(stream=stream).status_code == 200
        gateway.gateway.wait_for_log(f"; {FIRST} can't be reached")
        assert gateway.paused()[FIRST] == "1"


@BOTH
def test_silence_is_paid_once(stream: bool) -> None:
    limits = {"first_byte": 0.2} if stream else {"timeout": 5.0}
    with failing(ANSWER, faults=["slow-start"], **limits) as gateway:
        for _ in range(4):
            assert gateway.post(stream=stream).status_code == 200
        assert gateway.counts() == (1, 4)
        gateway.gateway.wait_for_log(f"; {FIRST} timed out")


def test_last_target_has_no_limit_to_the_first_byte() -> None:
    """The only target, and one whose successors are paused, may take their time."""
    with running_gateway({"anthropic": "wait 1\nsay Hello."}, first_byte=0.05) as gateway:
        body = {"model": "any", "stream": True, "messages": [{"role": "user", "content": "Hello"}]}
        response = httpx2.post(f"{gateway.url}/v1/chat/completions", json=body, timeout=_PATIENCE)
        assert (response.status_code, "Hello." in response.text) == (200, True)


def test_reply_that_breaks_after_its_first_content_is_not_continued() -> None:
    with failing((TextStep("A long text. " * 50), CutStep("end"))) as gateway:
        for number in range(1, 3):
            assert "the stream ended before the reply did" in gateway.post(stream=True).text
            assert gateway.counts() == (number, 0)
        assert gateway.paused()[FIRST] == "0"


def test_silence_after_the_first_content_is_paid_once() -> None:
    with failing(ANSWER, faults=["stall"], timeout=1.0) as gateway:
        assert "overloaded_error" in gateway.post(stream=True).text
        assert gateway.paused()[FIRST] == "1"
        for number in range(1, 4):
            assert gateway.post(stream=True).status_code == 200
            assert gateway.counts() == (1, number)


# ------------------------------------------------------------------------------------------------------------- pauses


@BOTH
@pytest.mark.parametrize("seconds", [3, 100])
def test_pause_follows_retry_after(seconds: int, stream: bool) -> None:
    with failing((ErrorStep(429, "Slow down.", float(seconds)),)) as gateway:
        assert gateway.post(stream=stream).status_code == 200
        assert gateway.counts() == (1, 1), "the next target does not wait"
        gateway.clock.now += seconds - 1
        assert gateway.post(stream=stream).status_code == 200
        assert gateway.counts() == (1, 2)
        gateway.reply = ANSWER
        gateway.clock.now += 1
        assert gateway.post(stream=stream).status_code == 200
        assert gateway.counts() == (2, 2)


def test_all_paused_targets_are_not_tried_by_every_request() -> None:
    """Of targets that are all paused, the one whose pause ends first is tried."""
    routes = (RouteSettings((FIRST, SECOND), attempts=1),)
    scripts = {
        "openai-chat": lambda _request: (ErrorStep(429, "Slow down.", 100.0),),
        "anthropic": lambda _request: OVERLOADED,
    }
    with running_gateway(scripts, routes=routes, clock=Clock()) as gateway:
        both = Failing(gateway, Clock())
        assert both.post().status_code >= 429
        assert both.counts() == (1, 1)
        assert both.post().status_code >= 429
        assert both.counts() == (1, 2)
        assert both.paused() == {FIRST: "1", SECOND: "1"}


def test_rejected_key_is_reported_once() -> None:
    with failing((ErrorStep(401, "Incorrect API key provided."),)) as gateway:
        for _ in range(3):
            for _ in range(2):
                assert gateway.post().status_code == 200
            gateway.clock.now += 1000
        lines = [line for line in gateway.gateway.log.splitlines() if "paused until" in line]
        assert len(lines) == 1, gateway.gateway.log
        assert lines[0].startswith(f"{FIRST} rejected the key (401): Incorrect API key provided; check KEY")
        assert "upstream-key" not in gateway.gateway.log


def test_log_has_the_failed_targets_as_json() -> None:
    with failing(log_json=True) as gateway:
        gateway.post()
        gateway.gateway.wait_for_log('"failed"')
        record = json.loads(gateway.gateway.log.splitlines()[-1])
        assert (record["failed"], record["error"], record["target"]) == ([f"{FIRST} is overloaded (529)"], "", SECOND)


def test_round_robin_leaves_a_paused_target_out() -> None:
    with failing(route={"balance": "round-robin"}) as gateway:
        for _ in range(4):
            assert gateway.post().status_code == 200
        assert gateway.counts() == (2, 4)


def test_target_that_is_changed_by_a_reload_loses_its_pause() -> None:
    with failing() as gateway:
        server = gateway.gateway.server
        routes = (RouteSettings((FIRST, SECOND), attempts=1),)
        context = server._context

        def reload(key: str) -> None:
            def resolve(name: str) -> Endpoint:
                return replace(context.resolve(name), key=Secret(key))

            server._configure(GatewayRoutes(routes, (SECOND,), resolve=resolve))

        gateway.post()
        assert gateway.counts() == (2, 1)
        reload("upstream-key")
        gateway.post()
        assert gateway.counts() == (2, 2), "the target is the same"
        gateway.reply = ANSWER
        reload("another-key")
        assert gateway.paused()[FIRST] == "0"
        gateway.post()
        assert gateway.counts()[1] == 2


# -------------------------------------------------------------------------------------------------------- callers' keys


@BOTH
@pytest.mark.parametrize(
    ("cause", "status"),
    [("rejected key", 401), ("no access", 403), ("rate limit", 200), ("quota", 200), ("unknown model", 200)],
)
def test_failure_of_a_clients_own_key_pauses_nothing_for_others(cause: str, status: int, stream: bool) -> None:
    """A rejected key is the client's own 401. Its limits are its own: the next target is used for this request."""
    with failing(CAUSES[cause][0]) as gateway:
        use_client_keys(gateway)
        for _ in range(2):
            before = gateway.counts()[0]
            response = gateway.post(stream=stream, authorization="Bearer own-key")
            assert (response.status_code, "own-key" in response.text) == (status, False)
            assert gateway.counts()[0] > before
        assert gateway.paused()["openai/gpt-4.1"] == "0"
        assert "paused until" not in gateway.gateway.log


@BOTH
def test_target_that_is_down_is_left_out_for_all_clients(stream: bool) -> None:
    with failing() as gateway:
        use_client_keys(gateway)
        for key in ("one", "two", "three"):
            assert gateway.post(stream=stream, authorization=f"Bearer {key}").status_code == 200
        assert gateway.counts() == (2, 3)
        assert gateway.paused()["openai/gpt-4.1"] == "1"


def use_client_keys(gateway: Failing) -> None:
    """Let the clients use their own keys, at a vendor and then at a server that needs none."""
    server, emulators = gateway.gateway.server, gateway.gateway.emulators
    vendor = Endpoint("openai", "gpt-4.1", "openai-chat", emulators["openai-chat"].base_url, variables=("KEY",))
    local = Endpoint("local", "claude-sonnet-5", "anthropic", emulators["anthropic"].base_url, key=Secret("local"))
    targets = {endpoint.name: endpoint for endpoint in (vendor, local)}
    routes = (RouteSettings(tuple(targets), auth="client"),)
    server._configure(GatewayRoutes(routes, ("local/claude-sonnet-5",), resolve=targets.__getitem__))
