"""Emulated providers as upstreams of a transport: their models, scripts with any ids, and the judgement of a run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from segue.bridge.envelopes import EnvelopeKeys
from segue.emulator import Emulator
from tests.properties.readers import read
from tests.transport.callers import ToolLog

KEYS = EnvelopeKeys(b"k" * 32)
UPSTREAM_KEY = "upstream-key"
MODELS = {
    "openai-chat": "gpt-4.1",
    "openai-responses": "gpt-5.6-terra",
    "azure-foundry": "gpt-5",
    "anthropic": "claude-sonnet-5",
    "gemini": "gemini-3.8-flash",
    "bedrock": "us.anthropic.claude-sonnet-5",
    "mistral": "magistral-medium-latest",
    "kimi": "kimi-k2-thinking",
    "deepseek": "deepseek-reasoner",
    "qwen": "qwen3.5-plus",
}
# Two rounds of parallel calls, the second with a call of the first; then one call alone.
ROUNDS: tuple[tuple[tuple[str, str, str], ...], ...] = (
    (("get_weather", "city", "Lisbon"), ("get_weather", "city", "Oslo")),
    (("get_time", "zone", "Europe/Oslo"), ("get_weather", "city", "Lisbon")),
    (("get_time", "zone", "Europe/Lisbon"),),
)
LAST = "It is mild."
CALLS = [(name, {key: value}) for calls in ROUNDS for name, key, value in calls]
ID_KINDS = ("own", "restarted", "constant", "kimi", "long", "missing")


def make_script(ids: str = "own", *, think: bool = True) -> str:
    """Return the script of three rounds, with call ids of this kind."""
    turns: list[str] = []
    for number, calls in enumerate(ROUNDS):
        lines = [f"think Thought {number}."] if think else []
        lines.append(f"say Looking {number}.")
        for place, (name, key, value) in enumerate(calls):
            identity = {
                "restarted": f"[call_{place}]",
                "constant": "[call_x]",
                "kimi": f"[functions.{name}:{place}]",
                "long": f"[{'i' * 199}{place}]",
            }.get(ids, "")
            lines.append(f'call{identity} {name} {{"{key}": "{value}"}}')
        turns.append("\n".join(lines))
    return "\n---\n".join([*turns, f"say {LAST}"])


def faults_of(ids: str) -> tuple[str, ...]:
    return ("missing-ids",) if ids == "missing" else ()


def options_for(upstreams: Mapping[str, Emulator | str], **options: Any) -> dict[str, Any]:
    """Return the options of a transport for emulators, by the names of the providers."""
    providers = {
        name: {
            "api": "openai-chat" if isinstance(upstream, str) else upstream.api,
            "base_url": upstream if isinstance(upstream, str) else upstream.base_url,
            "key_variable": "UPSTREAM_KEY",
        }
        for name, upstream in upstreams.items()
    }
    environ = {"UPSTREAM_KEY": UPSTREAM_KEY, "AWS_REGION": "us-east-1"}
    return {"providers": providers, "environ": environ, "envelope_keys": KEYS, **options}


def check_upstream(emulator: Emulator, tools: ToolLog, *, skip: Iterable[int] = ()) -> None:
    """Assert that no request was rejected, and that each call of the last one has its own result."""
    for request in emulator.requests:
        if request.number not in skip:
            assert request.accepted, (request.refused, request.body)
    reading = read(dict(emulator.requests[-1].body or {}), emulator.api)
    assert [(one.name, one.arguments) for one in reading.interactions] == [
        (run.tool, run.arguments) for run in tools.runs
    ]
    for one, run in zip(reading.interactions, tools.runs, strict=True):
        assert run.result in (one.text or ""), (one, run)
    assert not reading.surplus
