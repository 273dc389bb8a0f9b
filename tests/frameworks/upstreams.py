"""The emulated providers of one run, and HTTP clients whose transport sends to them.

The bodies that the framework sent are kept, and every body that a provider got is compared with the calls that ran.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from importlib import import_module
from types import MappingProxyType
from typing import Any

import openai

import segue.emulator
from segue.bridge.envelopes import EnvelopeKeys
from segue.bridge.providers import catalogue
from segue.emulator import Emulator, RecordedRequest
from tests.frameworks.task import REQUESTS, Tools, compare_calls, write_script
from tests.properties.readers import read

PROVIDERS = (
    "openai-chat",
    "openai",
    "anthropic",
    "gemini",
    "bedrock",
    "azure",
    "mistral",
    "moonshot",
    "deepseek",
    "dashscope",
)
MODELS = tuple(f"{name}/{catalogue()[name].default}" for name in PROVIDERS)
KEY = "a-key"
_ENVELOPE_KEYS = EnvelopeKeys(current=b"a key for tests, thirty-two bytes")
# The HTTP library of the installed SDK of OpenAI.
IS_HTTPX2 = int(openai.__version__.partition(".")[0]) > 2


class Emulators(ExitStack):
    """Running emulators, by the `provider/model` that they serve."""

    def __init__(self, models: Iterable[str], scripts: Mapping[str, str] = MappingProxyType({})) -> None:
        super().__init__()
        self.running: dict[str, Emulator] = {
            model: self.enter_context(segue.emulator.start(_find_api(model), script=scripts.get(model)))
            for model in models
        }

    @property
    def options(self) -> dict[str, Any]:
        """The options of a transport to these emulators."""
        rows = {model.partition("/")[0]: emulator for model, emulator in self.running.items()}
        return {
            "providers": {name: {"base_url": emulator.base_url} for name, emulator in rows.items()},
            "environ": {(*catalogue()[name].keys, *catalogue()[name].bearer)[0]: KEY for name in rows},
            "envelope_keys": _ENVELOPE_KEYS,
        }


class Upstreams(Emulators):
    """Emulators for a run whose requests go to these models, in this order."""

    def __init__(self, models: Sequence[str], *, final_tool: str | None = None) -> None:
        assert len(models) == REQUESTS
        numbers = {model: [i for i, name in enumerate(models) if name == model] for model in models}
        scripts = {model: write_script(found, final_tool=final_tool) for model, found in numbers.items()}
        super().__init__(scripts, scripts)
        self.models = tuple(models)
        self.tools = Tools()
        self.sent: list[tuple[str, dict[str, Any]]] = []
        """The URL and the body of each request of the framework."""

    @property
    def model(self) -> str:
        """The model of the next request."""
        return self.models[min(len(self.sent), REQUESTS - 1)]

    # ---------------------------------------------------------------------------------------------------- HTTP clients

    def client(self, *, is_httpx2: bool = IS_HTTPX2, **options: Any) -> Any:
        """Return a client of the HTTP library with a transport to all models."""
        client = _library(is_httpx2).client(*dict.fromkeys(self.models), **self.options)
        return self._configure(client, options)

    def async_client(self, *, is_httpx2: bool = IS_HTTPX2, **options: Any) -> Any:
        client = _library(is_httpx2).async_client(*dict.fromkeys(self.models), **self.options)
        return self._configure(client, options)

    def _configure(self, client: Any, options: dict[str, Any]) -> Any:
        def record(request: Any) -> None:
            self.sent.append((str(request.url), json.loads(request.content)))

        async def record_async(request: Any) -> None:
            record(request)

        client.event_hooks = {"request": [record_async if hasattr(client, "aclose") else record]}
        for name, value in options.items():
            setattr(client, name, value)
        return client

    # ------------------------------------------------------------------------------------------------------ the checks

    def find_refused(self) -> list[str]:
        """Return the requests that a provider refused."""
        return [
            f"{model} refused request {request.number}: {request.refused or request.status}"
            for model, emulator in self.running.items()
            for request in emulator.requests
            if not request.accepted
        ]

    def find_faults(self, answer: str, expected_answer: str, *, calls_as_text: bool = False) -> list[str]:
        """Return what went wrong in the run."""
        faults = self.find_refused()
        if faults:
            return faults
        left = {model: list(emulator.requests) for model, emulator in self.running.items()}
        if sum(map(len, left.values())) != REQUESTS:
            counts = ", ".join(f"{len(requests)} to {model}" for model, requests in left.items())
            return [f"expected {REQUESTS} requests, sent {counts}"]
        for number, model in enumerate(self.models):
            if not left[model]:
                return [f"request {number + 1} did not reach {model}"]
            request = left[model].pop(0)
            expected = self.tools.expected(number)
            found = _check_text(request, expected) if calls_as_text else _check_calls(request, model, expected)
            faults += [f"request {number + 1} to {model}: {fault}" for fault in found]
        if expected_answer not in answer:
            faults.append(f"answer {answer!r}")
        return faults


def _find_api(model: str) -> str:
    return catalogue()[model.partition("/")[0]].api


def _library(is_httpx2: bool) -> Any:
    return import_module(f"segue.transport.{'httpx2' if is_httpx2 else 'httpx'}")


def _check_calls(request: RecordedRequest, model: str, expected: Any) -> list[str]:
    reading = read(request.body or {}, _find_api(model))
    calls = [(one.name, one.arguments, one.text) for one in reading.interactions]
    return [*compare_calls(calls, expected), *(f"result without a call: {surplus}" for surplus in reading.surplus)]


def _check_text(request: RecordedRequest, expected: Any) -> list[str]:
    """The framework writes calls and results as text: each result must be in it once."""
    text = json.dumps(request.body, ensure_ascii=False)
    return [f"result {result!r} {text.count(result)} times" for _, result in expected if text.count(result) != 1]
