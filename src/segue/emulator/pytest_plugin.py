"""pytest plugin: the fixture `emulator` starts emulated providers and stops them after the test.

pytest loads it wherever segue is installed.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Protocol

import pytest

if TYPE_CHECKING:
    from segue.emulator.server import Emulator


class StartEmulator(Protocol):
    """`emulator("anthropic", script="say Hello.")`, with the arguments of `segue.emulator.start`."""

    def __call__(self, api: str, **options: Any) -> Emulator: ...


@pytest.fixture
def emulator() -> Generator[StartEmulator]:
    """Return a function that starts emulated providers on loopback."""
    # Imported here, so that tests without a provider do not pay for it.
    from segue.emulator.server import start

    with ExitStack() as running:
        yield lambda api, **options: running.enter_context(start(api, **options))
