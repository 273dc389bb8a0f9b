"""Models named `emulated/MODEL`: strict emulated providers in this process, started when first needed.

They need no key and no network, and their replies are invented.
"""

from __future__ import annotations

import atexit
import os
from collections.abc import Mapping
from threading import Lock
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from segue.bridge import providers
from segue.bridge.providers import Config, Endpoint, Environ, Provider

if TYPE_CHECKING:
    from segue.emulator.server import Emulator

PROVIDER = "emulated"
PREFIX = f"{PROVIDER}/"
_PLACEHOLDER_URL = "http://127.0.0.1:9"


class EmulatedModels:
    """Emulated providers, one for each API and server."""

    def __init__(self) -> None:
        self._running: dict[tuple[str, str | None], Emulator] = {}
        self._process = os.getpid()
        self._lock = Lock()

    def endpoint(self, name: str, known: Mapping[str, Provider]) -> Endpoint:
        """Return the endpoint of a model at the emulator of its provider, which is one of those known."""
        endpoint = _resolve(name.strip().removeprefix(PREFIX), known)
        server = endpoint.profile and endpoint.profile.partition(":")[0]
        return replace(endpoint, base_url=self._start(endpoint.api, server).base_url, is_emulated=True)

    def _start(self, api: str, server: str | None) -> Emulator:
        from segue.emulator.http_messages import RequestLog
        from segue.emulator.server import Emulator
        from segue.emulator.services import EmulationOptions, RecordingOptions, build_router

        with self._lock:
            if self._process != os.getpid():
                # A forked process has the sockets of its parent, but not the threads that answer.
                self._running, self._process = {}, os.getpid()
            emulator = self._running.get((api, server))
            if emulator is None:
                log = RequestLog(keeps_requests=False)
                router = build_router(api, log, EmulationOptions(profile=server), RecordingOptions())
                emulator = self._running[api, server] = Emulator(router, 0)
                # A conversation may continue that was begun in another process.
                emulator.assume_stored()
            return emulator

    def close(self) -> None:
        with self._lock:
            running, self._running = self._running, {}
        if self._process == os.getpid():
            for emulator in running.values():
                emulator.stop()


def _resolve(name: str, known: Mapping[str, Provider]) -> Endpoint:
    overrides: dict[str, dict[str, Any]] = {
        row.name: {"base_url": _PLACEHOLDER_URL, "key_variable": [], "api": row.api, "tool_format": row.tool_format}
        | ({"profile": row.profile} if row.profile else {})
        for row in known.values()
    }
    return providers.resolve(name, {}, overrides)


_shared = EmulatedModels()
atexit.register(_shared.close)


def resolve(name: str, environ: Environ, config: Config | None = None) -> Endpoint:
    """Return the endpoint of a model as `providers.resolve` does, also of `emulated/MODEL`."""
    is_emulated = isinstance(name, str) and f"{name.strip()}/".startswith(PREFIX)  # pyright: ignore[reportUnnecessaryIsInstance]
    if not is_emulated or PROVIDER in (config or {}):
        return providers.resolve(name, environ, config)
    known = providers.catalogue(config)
    model = name.strip()[len(PREFIX) :] or next(row.name for row in known.values() if row.default)
    return replace(_shared.endpoint(model, known), provider=PROVIDER)
