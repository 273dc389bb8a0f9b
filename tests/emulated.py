"""Emulated providers in the place of the real ones, for pages that use them by name."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import ExitStack, contextmanager

import segue.emulator
from segue.bridge.providers import catalogue

PROVIDERS = ("anthropic", "openai", "gemini", "mistral", "moonshot")


@contextmanager
def emulate_providers() -> Generator[dict[str, str]]:
    """Start emulators; return the environment variables with their addresses and keys."""
    variables: dict[str, str] = {}
    with ExitStack() as stack:
        for name in PROVIDERS:
            provider = catalogue()[name]
            emulator = stack.enter_context(segue.emulator.start(provider.api))
            variables |= {provider.url_variables[0]: emulator.base_url, provider.keys[0]: "a-key"}
        yield variables
