"""Faults of upstreams under the vendors' SDKs: their own exceptions, their own retries, fallback, and never a hang."""

from __future__ import annotations

import asyncio
from itertools import product
from typing import Any

import anthropic
import httpx2
import openai
import pytest
from google.genai import errors as google_errors
from mistralai.client import errors as mistral_errors

from segue.emulator import Emulator, start
from tests.budget import sample
from tests.transport.callers import CALLERS, STREAMED, ToolLog, connect, open_http
from tests.transport.upstreams import CALLS, LAST, MODELS, check_upstream, make_script, options_for

NAMES = [name for name in CALLERS if name != "responses stored"]
OK = "say It is mild."
# By name: the script of the failing upstream, and its faults.
EARLY: dict[str, tuple[str, tuple[str, ...]]] = {
    "rate-limit": (OK, ("rate-limit",)),
    "server-error": (OK, ("server-error",)),
    "overloaded": (OK, ("overloaded",)),
    "reset": (OK, ("reset",)),
    "error 401": ("error 401", ()),
    "error frame": ("wait 0\nerror 529 Overloaded", ()),
    "cut at once": ("say\ncut", ()),
    "reset at once": ("say\ncut reset", ()),
}
LATE: dict[str, tuple[str, tuple[str, ...]]] = {
    "cut": ("say This text will be cut off\ncut", ()),
    "cut reset": ("say This text will be cut off\ncut reset", ()),
    "cut in a call": ('call get_weather {"city": "Lis\ncut', ()),
    "error": ("say This text is followed by an error\nerror 529 Overloaded", ()),
    "reset in stream": ("say One two three four five six seven eight nine ten", ("reset-in-stream",)),
}
FAULTS = {**EARLY, **LATE}
ERRORS: dict[str, tuple[type[Exception], ...]] = {
    # The Responses helper of openai raises this for a failed response, of OpenAI's own service too.
    "openai": (openai.APIError, RuntimeError),
    "anthropic": (anthropic.APIError,),
    # Both SDKs pass exceptions of the HTTP library on.
    "google": (google_errors.APIError, httpx2.HTTPError),
    "mistral": (mistral_errors.MistralError, httpx2.HTTPError),
}


@pytest.fixture(autouse=True)
def _retry_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    for client in (openai.OpenAI, openai.AsyncOpenAI, anthropic.Anthropic, anthropic.AsyncAnthropic):
        monkeypatch.setattr(client, "_calculate_retry_timeout", lambda *args, **options: 0)


def run(name: str, is_async: bool, *models: str, retries: int = 0, **options: Any) -> tuple[str, ToolLog]:
    caller, tools = CALLERS[name], ToolLog()

    async def talk() -> str:
        async with open_http(*models, is_async=is_async, **options) as http:
            return await caller.run(connect(caller.sdk, http, max_retries=retries), tools, is_async)

    return asyncio.run(talk()), tools


# Models that always think have content before the script begins.
PLAIN_MODELS = {**MODELS, "kimi": "kimi-k2-0905-preview", "deepseek": "deepseek-chat"}


def targets(**upstreams: Emulator) -> tuple[list[str], dict[str, Any]]:
    return [f"{name}/{PLAIN_MODELS[upstream.api]}" for name, upstream in upstreams.items()], options_for(upstreams)


def show(row: tuple[Any, ...]) -> str:
    return "-".join(str(value).replace(" ", "_") for value in row)


ROWS = list(sample(product(NAMES, (False, True), MODELS, FAULTS), 31))


@pytest.mark.filterwarnings("ignore:Inheritance class AiohttpClientSession:DeprecationWarning")
@pytest.mark.parametrize(("name", "is_async", "api", "fault"), ROWS, ids=map(show, ROWS))
def test_fault_raises_the_exception_of_the_sdk(name: str, is_async: bool, api: str, fault: str) -> None:
    script, faults = FAULTS[fault]
    with start(api, script=script, faults=faults) as emulator:
        models, options = targets(upstream=emulator)
        with pytest.raises(ERRORS[CALLERS[name].sdk]) as caught:
            run(name, is_async, *models, **options)
    assert "upstream-key" not in repr(caught.value)
    assert len(emulator.requests) == 1


FALLBACKS = list(sample(product(NAMES, (False, True), MODELS, EARLY), 37))


@pytest.mark.filterwarnings("ignore:Inheritance class AiohttpClientSession:DeprecationWarning")
@pytest.mark.parametrize(("name", "is_async", "api", "fault"), FALLBACKS, ids=map(show, FALLBACKS))
def test_second_target_answers_every_request(name: str, is_async: bool, api: str, fault: str) -> None:
    """The first target fails before any content, and is left out for a while."""
    script, faults = EARLY[fault]
    second = "gemini" if api == "anthropic" else "anthropic"
    repeated = "\n---\n".join([script] * 8)
    with start(api, script=repeated, faults=faults) as failing, start(second, script=make_script()) as working:
        models, options = targets(one=failing, two=working)
        text, tools = run(name, is_async, *models, **options)
    assert text == LAST
    assert [(run.tool, run.arguments) for run in tools.runs] == CALLS
    check_upstream(working, tools)
    assert 1 <= len(failing.requests) <= len(working.requests) == 4


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize("fault", ["rate-limit", "server-error", "overloaded", "reset"])
@pytest.mark.parametrize("name", [name for name in NAMES if CALLERS[name].sdk in ("openai", "anthropic")])
def test_sdk_retries_and_finishes(name: str, fault: str, is_async: bool) -> None:
    """A fault in every round: requests 1, 3, 5 and 7."""
    api = sorted(MODELS)[len(name + fault) % len(MODELS)]
    api = "gemini" if name.startswith("tool runner") and api == "anthropic" else api
    # A reset connection takes no turn of the script, nor does an error.
    with start(api, script=make_script(), faults=[f"{fault}@1,3,5,7"]) as emulator:
        models, options = targets(upstream=emulator)
        text, tools = run(name, is_async, *models, retries=3, **options)
    assert text == LAST
    check_upstream(emulator, tools, skip=(1, 3, 5, 7))
    assert [request.number for request in emulator.requests if not request.accepted] == [1, 3, 5, 7]


@pytest.mark.parametrize("name", sorted({*STREAMED} - {"responses stored"}))
def test_late_fault_is_not_answered_by_the_second_target(name: str) -> None:
    """The caller has content of the first target by then; another start would be a second reply."""
    for fault, (script, faults) in LATE.items():
        if fault == "cut in a call":
            continue
        with start("anthropic", script=script, faults=faults) as failing, start("gemini", script=OK) as second:
            models, options = targets(one=failing, two=second)
            with pytest.raises(ERRORS[CALLERS[name].sdk]):
                run(name, False, *models, **options)
        assert second.requests == []


# ------------------------------------------------------------------------------------------------------------- timeouts


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize("fault", ["slow-start", "stall"])
def test_timeout_of_the_sdk_holds(fault: str, is_async: bool) -> None:
    """The upstream is silent for longer than any test runs."""

    async def talk(options: dict[str, Any], models: list[str]) -> None:
        async with open_http(*models, is_async=is_async, **options) as http:
            http.timeout = httpx2.Timeout(0.3)
            client = connect("openai", http).with_options(timeout=0.3)
            reply = client.chat.completions.create(model="m", messages=[{"role": "user", "content": "Hi."}])
            if is_async:
                await reply

    with start("anthropic", script="say One two three.", faults=[fault], patience=600) as emulator:
        models, options = targets(upstream=emulator)
        with pytest.raises(openai.APITimeoutError):
            asyncio.run(talk(options, models))


def test_slow_target_is_left_for_the_next() -> None:
    with start("anthropic", script=OK, faults=["slow-start"], patience=600) as slow, start("gemini", script=OK) as fast:
        models, options = targets(one=slow, two=fast)

        async def talk() -> str:
            async with open_http(*models, is_async=True, **options) as http:
                client = connect("openai", http).with_options(timeout=0.5)
                messages: Any = [{"role": "user", "content": "Hi."}]
                reply = await client.chat.completions.create(model="m", messages=messages)
                return reply.choices[0].message.content or ""

        assert asyncio.run(talk()) == "It is mild."
