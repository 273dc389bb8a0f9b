"""For pytest: the fixture `emulator` starts providers, and stops them when the test is over.

pytest_plugins = ["segue.emulator.pytest_plugin"]
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, Protocol

import pytest

from segue.emulator.server import Emulator, start

__all__ = ["StartEmulator", "emulator"]


class StartEmulator(Protocol):
    """`emulator("anthropic", script="say Hello.")`, with whatever `segue.emulator.start` takes."""

    def __call__(self, api: str, **options: Any) -> Emulator: ...


@pytest.fixture
def emulator() -> Generator[StartEmulator]:
    """Starts any number of providers on loopback."""
    running: list[Emulator] = []

    def begin(api: str, **options: Any) -> Emulator:
        running.append(start(api, **options))
        return running[-1]

    yield begin
    for one in running:
        one.stop()
