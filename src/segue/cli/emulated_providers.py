"""Emulated providers for use without a key, each started in this process when first needed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from segue.bridge import providers
from segue.bridge.providers import Endpoint
from segue.cli.providers import Providers

if TYPE_CHECKING:
    from segue.emulator import Emulator

_PLACEHOLDER_URL = "http://127.0.0.1:9"


class EmulatedProviders:
    """Strict emulators under the names of the real providers."""

    def __init__(self, providers: Providers) -> None:
        self._providers = providers
        self._running: dict[tuple[str, str | None], Emulator] = {}

    def endpoint(self, name: str) -> Endpoint:
        """Return the endpoint of a model at its provider's emulator."""
        import segue.emulator

        endpoint = self._resolve(name)
        server = endpoint.profile and endpoint.profile.partition(":")[0]
        kind = endpoint.api, server
        if kind not in self._running:
            self._running[kind] = segue.emulator.start(endpoint.api, profile=server)
            # A conversation may continue that was begun in another process.
            self._running[kind].assume_stored()
        return msgspec.structs.replace(endpoint, base_url=self._running[kind].base_url)

    def close(self) -> None:
        for emulator in self._running.values():
            emulator.stop()
        self._running.clear()

    def _resolve(self, name: str) -> Endpoint:
        overrides: dict[str, dict[str, Any]] = {
            row.name: {"base_url": _PLACEHOLDER_URL, "key_variable": [], "api": row.api, "tool_format": row.tool_format}
            | ({"profile": row.profile} if row.profile else {})
            for row in self._providers.by_name.values()
        }
        return providers.resolve(name, {}, overrides)
