"""`SharedRoute`: the models that `segue route` has set, the same in all workers of a gateway.

The worker that gets the control call writes a small file; the others look at its status before each request.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec
from msgspec import Struct

from segue import private_files
from segue.errors import InputError


class _State(Struct, frozen=True):
    """The content of the file. `reload` is a new random value for each reload of the configuration."""

    models: tuple[str, ...] = ()
    reload: str = ""


class SharedRoute:
    """Applies changes in this process, and with a `file` in all others that have it.

    `override` sets the models and returns their names; `reload` loads the configuration again. Both raise `InputError`
    and change nothing if a model is not valid.
    """

    def __init__(
        self, override: Callable[[Sequence[str]], Sequence[str]], reload: Callable[[], None], file: Path | None
    ) -> None:
        self._override = override
        self._reload = reload
        self._file = file
        self._seen: tuple[int, int] | None = None
        self._state = _State()

    def change(self, models: Sequence[str]) -> Sequence[str]:
        """Serve all names with these models; with none, with the routes again. Return the names of the models."""
        self.refresh()
        names = self._override(models)
        self._write(_State(tuple(models), self._state.reload))
        return names

    def reload(self) -> None:
        """Load the configuration again."""
        self.refresh()
        self._reload()
        self._write(_State(self._state.models, secrets.token_hex(8)))

    def refresh(self) -> None:
        """Apply the change of another process, if there is one."""
        if self._file is None:
            return
        try:
            status = os.stat(self._file)  # noqa: PTH116  before each request, and faster than Path
            seen = status.st_ino, status.st_mtime_ns
            if seen == self._seen:
                return
            state = msgspec.json.decode(self._file.read_bytes(), type=_State)
        except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
            return
        previous, self._seen, self._state = self._state, seen, state
        with suppress(InputError):
            if state.reload != previous.reload:
                self._reload()
        with suppress(InputError):
            if state.models != previous.models:
                self._override(state.models)

    def _write(self, state: _State) -> None:
        self._state = state
        if self._file is None:
            return
        try:
            private_files.replace(self._file, msgspec.json.encode(state), is_durable=False)
        except OSError as error:
            raise InputError(f"the other workers can't be reached: {error}", path=str(self._file)) from None
