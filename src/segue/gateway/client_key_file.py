"""`ClientKeyFile`: applies changes of the file with the client keys to a running gateway, at its next request."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

from segue.errors import InputError
from segue.gateway.client_keys import ClientKey
from segue.gateway.clients import ClientGate


class ClientKeyFile:
    """Watches `path`. `load` reads the keys, and raises `InputError`; `log` writes a line to the log."""

    def __init__(
        self,
        path: Path | None,
        load: Callable[[], Sequence[ClientKey]],
        gate: ClientGate,
        log: Callable[[str], None],
    ) -> None:
        self._path = path
        self._load = load
        self._gate = gate
        self._log = log
        self._seen = self._read_state()

    def refresh(self) -> None:
        """Load the keys if the file has changed. If it can't be read, the old keys stay in use."""
        if self._path is None or (state := self._read_state()) == self._seen:
            return
        self._seen = state
        try:
            keys = self._load()
        except InputError as error:
            self._log(f"the client keys were not loaded again: {error}")
        else:
            self.replace(keys)

    def replace(self, keys: Sequence[ClientKey]) -> None:
        """Use other keys, and log what the absence of keys means."""
        had_keys = self._gate.has_keys
        self._gate.replace(keys)
        if had_keys and not keys:
            effect = "no client is admitted until segue keys client add" if self._gate.needs_key else "none is needed"
            self._log(f"there are no client keys any more: {effect}")

    def _read_state(self) -> tuple[int, int, int] | None:
        if self._path is None:
            return None
        try:
            status = os.stat(self._path)  # noqa: PTH116  before each request, and faster than Path
        except OSError:
            return None
        return status.st_ino, status.st_mtime_ns, status.st_size
