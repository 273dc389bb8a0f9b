"""Run files: how a running gateway is found, and the token of its control calls. Only their owner can read them."""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct
from platformdirs import user_state_path

from segue import private_files
from segue.errors import InputError
from segue.processes import is_running

NONCE_HEADER = "x-segue-nonce"


class RunFile(Struct, frozen=True):
    """A running gateway: its base URL, the token of control calls, its process, and its certificate if it has TLS.

    `started` is the start time of the process, so that a reused process id is not taken for this gateway.
    """

    url: str
    token: str
    process: int
    certificate: str = ""
    started: str = ""

    def __post_init__(self) -> None:
        parts = urlsplit(self.url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.port is None:
            raise ValueError(f"{self.url!r} is not the URL of a gateway")


def folder() -> Path:
    return user_state_path("segue", appauthor=False) / "gateways"


@contextmanager
def write_run_file(run: RunFile) -> Generator[Path]:
    """Write the run file of this process, and remove it at the end, with the files of its workers."""
    path = folder() / f"gateway-{run.process}-{secrets.token_hex(4)}.json"
    try:
        private_files.make_folder(path.parent)
        private_files.create(path, msgspec.json.encode(run))
    except OSError as error:
        raise InputError(f"the run file can't be written: {error}", path=str(path)) from None
    try:
        yield path
    finally:
        _remove(path)


def route_file(run_file: Path) -> Path:
    """Return the file through which the workers of a gateway share its route."""
    return run_file.with_suffix(".route")


def pauses_file(run_file: Path) -> Path:
    """Return the file through which the workers of a gateway share the pauses of targets."""
    return run_file.with_suffix(".pauses")


def metrics_prefix(run_file: Path) -> Path:
    """Return the beginning of the names of the files through which the workers share their counters."""
    return run_file.with_suffix(".metrics")


def _remove(path: Path) -> None:
    for file in path.parent.glob(f"*{path.stem}.*"):
        file.unlink(missing_ok=True)


def find_running() -> list[RunFile]:
    """Return the running gateways of this user, the newest first; files of ended processes are removed."""
    found: list[tuple[float, RunFile]] = []
    for path in folder().glob("gateway-*.json"):
        try:
            run = msgspec.json.decode(path.read_bytes(), type=RunFile)
            modified = path.stat().st_mtime
        except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
            continue
        if is_running(run.process, run.started):
            found.append((modified, run))
        else:
            with suppress(OSError):
                _remove(path)
    return [run for _, run in sorted(found, key=lambda pair: pair[0], reverse=True)]


def prove_token(token: str, nonce: str) -> str:
    """Return the proof that a gateway knows its token: `segue route` asks for it before it sends the token."""
    return hmac.new(token.encode(), f"segue gateway {nonce}".encode(), "sha256").hexdigest()
