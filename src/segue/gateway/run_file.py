"""Run files: how a running gateway is found, and the token of its control calls. Only their owner can read them."""

from __future__ import annotations

import os
import secrets
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec
from msgspec import Struct
from platformdirs import user_state_path

from segue.errors import InputError


class RunFile(Struct, frozen=True):
    """A running gateway: its base URL, the token of control calls, its process, and its certificate if it has TLS."""

    url: str
    token: str
    process: int
    certificate: str = ""


def folder() -> Path:
    return user_state_path("segue", appauthor=False) / "gateways"


@contextmanager
def write_run_file(run: RunFile) -> Generator[Path]:
    """Write the run file of this process, and remove it at the end, with the files of its workers."""
    path = folder() / f"gateway-{run.process}-{secrets.token_hex(4)}.json"
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(msgspec.json.encode(run))
    except OSError as error:
        raise InputError(f"the run file can't be written: {error}", path=str(path)) from None
    try:
        yield path
    finally:
        _remove(path)


def route_file(run_file: Path) -> Path:
    """Return the file through which the workers of a gateway share its route."""
    return run_file.with_suffix(".route")


def metrics_prefix(run_file: Path) -> Path:
    """Return the beginning of the names of the files through which the workers share their counters."""
    return run_file.with_suffix(".metrics")


def _remove(path: Path) -> None:
    for file in path.parent.glob(f"{path.stem}.*"):
        file.unlink(missing_ok=True)


def find_running() -> list[RunFile]:
    """Return the running gateways of this user, the newest first; files of ended processes are removed."""
    found: list[tuple[float, RunFile]] = []
    for path in folder().glob("gateway-*.json"):
        try:
            run = msgspec.json.decode(path.read_bytes(), type=RunFile)
            modified = path.stat().st_mtime
        except (OSError, msgspec.MsgspecError):
            continue
        if is_running(run.process):
            found.append((modified, run))
        else:
            with suppress(OSError):
                _remove(path)
    return [run for _, run in sorted(found, key=lambda pair: pair[0], reverse=True)]


def is_running(process: int) -> bool:
    """Return whether there is a process with this id."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
