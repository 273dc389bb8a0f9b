"""`ClientKeyFile`: applies changes of the file with the client keys to a running gateway, at its next request."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

from segue.errors import InputError
from segue.gateway.client_auth import ClientAuth
from segue.gateway.client_keys import ClientKey

_CLOSED = (
    "no client is admitted; segue keys client add makes a key, and where only clients of this machine come, "
    "segue route --reload admits them all"
)
_OPEN = "all clients of this machine are admitted"


class ClientKeyFile:
    """Watches `path`. `load` reads the keys, and raises `InputError`; `log` writes a line to the log."""

    def __init__(
        self, path: Path | None, load: Callable[[], Sequence[ClientKey]], auth: ClientAuth, log: Callable[[str], None]
    ) -> None:
        self._path = path
        self._load = load
        self._auth = auth
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

    def replace(self, keys: Sequence[ClientKey], *, is_reload: bool = False) -> None:
        """Use other keys, as `ClientAuth.replace` does, and log what it means that there are none any more."""
        needed_key = self._auth.has_keys or (is_reload and self._auth.needs_key)
        self._auth.replace(keys, is_reload=is_reload)
        if needed_key and not keys:
            self._log(f"there are no client keys any more: {_CLOSED if self._auth.needs_key else _OPEN}")

    def _read_state(self) -> tuple[int, int, int] | None:
        if self._path is None:
            return None
        try:
            status = os.stat(self._path)  # noqa: PTH116  before each request, and faster than Path
        except OSError:
            return None
        return status.st_ino, status.st_mtime_ns, status.st_size
