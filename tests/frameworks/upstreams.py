"""The emulated providers of one run, and HTTP clients whose transport sends to them.

The bodies that the framework sent are kept, and every body that a provider got is compared with the calls that ran.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import ExitStack
from importlib import import_module
from typing import Any

import openai

import segue.emulator
from segue.bridge.envelopes import EnvelopeKeys
from segue.bridge.providers import catalogue
from segue.emulator import Emulator, RecordedRequest
from tests.frameworks.task import REQUESTS, Tools, find_faults, write_script
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


class Upstreams(ExitStack):
    """Emulators for a run whose requests go to these models, in this order."""

    def __init__(self, models: Sequence[str], *, final_tool: str | None = None) -> None:
        super().__init__()
        assert len(models) == REQUESTS
        self.models = tuple(models)
        self.tools = Tools()
        self.sent: list[tuple[str, dict[str, Any]]] = []
        """The path and the body of each request of the framework."""
        self.emulators: dict[str, Emulator] = {}
        for model in dict.fromkeys(models):
            script = write_script([i for i, name in enumerate(models) if name == model], final_tool=final_tool)
            provider = catalogue()[model.partition("/")[0]]
            self.emulators[model] = self.enter_context(segue.emulator.start(provider.api, script=script))

    @property
    def count(self) -> int:
        """The number of requests of the framework so far."""
        return len(self.sent)

    @property
    def model(self) -> str:
        """The model of the next request."""
        return self.models[min(self.count, REQUESTS - 1)]

    # ---------------------------------------------------------------------------------------------------- HTTP clients

    def client(self, *, is_httpx2: bool = IS_HTTPX2, **options: Any) -> Any:
        """Return a client of the HTTP library with a transport to all models."""
        client = _library(is_httpx2).client(*dict.fromkeys(self.models), **self.options)
        return self._configure(client, options)

    def async_client(self, *, is_httpx2: bool = IS_HTTPX2, **options: Any) -> Any:
        client = _library(is_httpx2).async_client(*dict.fromkeys(self.models), **self.options)
        return self._configure(client, options)

    @property
    def options(self) -> dict[str, Any]:
        """The options of a transport to these emulators."""
        names = [model.partition("/")[0] for model in self.emulators]
        rows = [catalogue()[name] for name in names]
        return {
            "providers": {
                name: {"base_url": emulator.base_url}
                for name, emulator in zip(names, self.emulators.values(), strict=True)
            },
            "environ": {(*row.keys, *row.bearer)[0]: KEY for row in rows},
            "envelope_keys": _ENVELOPE_KEYS,
        }

    def _configure(self, client: Any, options: dict[str, Any]) -> Any:
        def record(request: Any) -> None:
            self.sent.append((request.url.path, json.loads(request.content)))

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
            for model, emulator in self.emulators.items()
            for request in emulator.requests
            if not request.accepted
        ]

    def find_faults(self, answer: str, expected_answer: str, *, calls_as_text: bool = False) -> list[str]:
        """Return what went wrong in the run."""
        faults = self.find_refused()
        if faults:
            return faults
        left = {model: list(emulator.requests) for model, emulator in self.emulators.items()}
        if sum(map(len, left.values())) != REQUESTS:
            return [f"requests: { ({model: len(requests) for model, requests in left.items()}) }"]
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


def _library(is_httpx2: bool) -> Any:
    return import_module(f"segue.transport.{'httpx2' if is_httpx2 else 'httpx'}")


def _check_calls(request: RecordedRequest, model: str, expected: Any) -> list[str]:
    body = request.body or {}
    reading = read(body, catalogue()[model.partition("/")[0]].api)
    calls = [(one.name, one.arguments, one.text) for one in reading.interactions]
    faults = find_faults(body, calls, expected)
    return [*faults, *(f"result without a call: {surplus}" for surplus in reading.surplus)]


def _check_text(request: RecordedRequest, expected: Any) -> list[str]:
    """The framework writes calls and results as text: each result must be in it once."""
    text = json.dumps(request.body, ensure_ascii=False)
    return [f"result {result!r} {text.count(result)} times" for _, result in expected if text.count(result) != 1]
