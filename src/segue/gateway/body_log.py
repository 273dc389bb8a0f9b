"""`BodyLog`: the bodies of requests and responses in a file, for users who want it. Secrets in them are removed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from segue import private_files
from segue.errors import InputError, format_os_error
from segue.redaction import redact

MAX_BODY = 2**20
"""The bytes of a body that are kept; the rest is left out."""


class BodyLog:
    """Appends a JSON line for each exchange that segue converts. `log` writes a line to the log."""

    def __init__(self, file: Path, log: Callable[[str], None]) -> None:
        self._file = file
        self._log = log

    def check(self) -> None:
        """Create the file; raise `InputError` if it can't be written."""
        try:
            private_files.append(self._file, b"")
        except OSError as error:
            raise InputError(f"can't write {self._file}: {format_os_error(error)}", path="log-bodies") from None

    async def write(self, request_id: str, request: bytes, response: bytes) -> None:
        """Append the bodies of an exchange. A failure is logged, and does not fail the request."""
        try:
            # Redaction takes long for large bodies.
            await asyncio.to_thread(self._append, request_id, request, response)
        except OSError as error:
            self._log(f"the bodies can't be written: {format_os_error(error)}")

    def _append(self, request_id: str, request: bytes, response: bytes) -> None:
        line = {
            "time": datetime.now(UTC).isoformat(timespec="milliseconds"),
            "request_id": request_id,
            "request": _scrub(request),
            "response": _scrub(response),
        }
        private_files.append(self._file, msgspec.json.encode(line) + b"\n")


def _scrub(body: bytes) -> str:
    return redact(body[:MAX_BODY].decode("utf-8", "replace"))
