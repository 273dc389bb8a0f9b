"""Records of running gateways: files with the URL and the token of control calls, which only their owner can read."""

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


class GatewayRecord(Struct, frozen=True):
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
def write_record(run: GatewayRecord) -> Generator[Path]:
    """Write the record of this process, and remove it at the end, with the files that its workers share beside it."""
    path = folder() / f"gateway-{run.process}-{secrets.token_hex(4)}.json"
    try:
        private_files.make_folder(path.parent)
        private_files.create(path, msgspec.json.encode(run))
    except OSError as error:
        raise InputError(f"the record file can't be written: {error}", path=str(path)) from None
    try:
        yield path
    finally:
        _remove(path)


def _remove(path: Path) -> None:
    for file in path.parent.glob(f"*{path.stem}.*"):
        file.unlink(missing_ok=True)


def find_running() -> list[GatewayRecord]:
    """Return the running gateways of this user, the newest first; files of ended processes are removed."""
    found: list[tuple[float, GatewayRecord]] = []
    for path in folder().glob("gateway-*.json"):
        try:
            run = msgspec.json.decode(path.read_bytes(), type=GatewayRecord)
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
