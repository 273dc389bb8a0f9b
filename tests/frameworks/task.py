"""The task that every framework's agent runs: two tools, three rounds with parallel calls, and an answer.

The emulated models follow a script, one section a request. A call of the first round is repeated in the third, so that
results at the wrong call are noticed.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Sequence
from typing import Any

Call = tuple[str, dict[str, str]]

INSTRUCTIONS = "Use the tools."
QUESTION = "How warm is it in Lisbon, Oslo and Rome, and how late is it?"
ANSWER = "It is mild in all three cities."
ROUNDS: tuple[tuple[Call, ...], ...] = (
    (("get_weather", {"city": "Lisbon"}), ("get_weather", {"city": "Oslo"})),
    (("get_time", {"zone": "Europe/Oslo"}), ("get_weather", {"city": "Rome"})),
    (("get_weather", {"city": "Lisbon"}), ("get_time", {"zone": "Europe/Lisbon"})),
)
REQUESTS = len(ROUNDS) + 1


class Tools:
    """The tools of one run. Each result is distinct, also for equal calls."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._results: dict[str, list[str]] = {}
        self._count = 0

    @property
    def functions(self) -> list[Callable[..., str]]:
        def get_weather(city: str) -> str:
            """Look up the weather in a city.

            Args:
                city: The name of the city.
            """
            return self.record("get_weather", {"city": city})

        def get_time(zone: str) -> str:
            """Look up the time in a zone.

            Args:
                zone: The name of the zone, such as Europe/Oslo.
            """
            return self.record("get_time", {"zone": zone})

        return [get_weather, get_time]

    def record(self, name: str, arguments: dict[str, str]) -> str:
        """Run a tool."""
        with self._lock:
            self._count += 1
            result = f"{next(iter(arguments.values()))} is fine, result {self._count} of {name}."
            self._results.setdefault(_key(name, arguments), []).append(result)
            return result

    def expected(self, rounds: int) -> list[tuple[Call, str]]:
        """Return the calls of these rounds with their results; a call that did not run has the result `""`."""
        left = {key: list(results) for key, results in self._results.items()}
        calls = [call for calls in ROUNDS[:rounds] for call in calls]
        return [(call, (left.get(_key(*call)) or [""]).pop(0)) for call in calls]


def _key(name: str, arguments: dict[str, str]) -> str:
    return f"{name} {json.dumps(arguments, sort_keys=True)}"


def write_script(requests: Sequence[int], *, final_tool: str | None = None) -> str:
    """Return the script of a model that gets these requests of the task, by their numbers from 0."""
    return "\n---\n".join(_write_section(request, final_tool) for request in requests)


def _write_section(request: int, final_tool: str | None) -> str:
    if request < len(ROUNDS):
        calls = [f"call {name} {json.dumps(arguments)}" for name, arguments in ROUNDS[request]]
        return "\n".join([f"think Round {request + 1}: two lookups.", *calls])
    if final_tool is not None:
        return f"call {final_tool} {json.dumps({'answer': ANSWER})}"
    return f"say {ANSWER}"


def compare_calls(found: Sequence[tuple[str, Any, str | None]], expected: Sequence[tuple[Call, str]]) -> list[str]:
    """Compare the calls of a body and their results with those that ran; return the differences."""
    if len(found) != len(expected):
        return [f"{len(found)} calls, expected {len(expected)}"]
    return [
        f"{found_name} {found_arguments}: result {text!r}, expected {result!r}"
        for (found_name, found_arguments, text), ((name, arguments), result) in zip(found, expected, strict=True)
        if (found_name, found_arguments) != (name, arguments) or not result or result not in (text or "")
    ]
