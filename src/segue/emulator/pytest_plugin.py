"""For pytest: the fixture `emulator` starts providers, and stops them when the test is over.

pytest_plugins = ["segue.emulator.pytest_plugin"]
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Protocol

import pytest

if TYPE_CHECKING:
    from segue.emulator.server import Emulator

__all__ = ["StartEmulator", "emulator"]


class StartEmulator(Protocol):
    """`emulator("anthropic", script="say Hello.")`, with whatever `segue.emulator.start` takes."""

    def __call__(self, api: str, **options: Any) -> Emulator: ...


@pytest.fixture
def emulator() -> Generator[StartEmulator]:
    """Starts any number of providers on loopback."""
    # Whoever names the plugin may run tests without a provider: they wait for nothing.
    from segue.emulator.server import start

    with ExitStack() as running:
        yield lambda api, **options: running.enter_context(start(api, **options))
