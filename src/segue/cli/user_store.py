"""The user's store, located by environment and configuration."""

from __future__ import annotations

import os
import secrets
import shutil
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from segue.cli import config, streams

if TYPE_CHECKING:
    from segue.store.base import ConversationStore

_MAX_SCRATCH_AGE = 7 * 86_400


def locate(*, trusting: bool = False) -> str:
    """Return the location of the store; `trusting` applies the project file's setting even if it is not trusted."""
    from segue.store import default_location

    return default_location(config.configured_store(config.load_files(trusting=trusting)))


def exists(location: str | None = None, *, trusting: bool = False) -> bool:
    """Return whether the store exists, by default that of the configuration; never creates it.

    `InputError` if `SEGUE_STORE` is a file in a folder that does not exist.
    """
    from segue.errors import InputError, StoreError
    from segue.store import resolve_file

    file = resolve_file(location or locate(trusting=trusting))
    if file is None:
        return True
    try:
        file.stat()
    except (FileNotFoundError, NotADirectoryError):
        if os.environ.get("SEGUE_STORE") and not file.parent.is_dir():
            raise InputError(f"there is no folder {file.parent}", path="SEGUE_STORE") from None
        return False
    except OSError as error:
        raise StoreError(f"{file} can't be used: {streams.format_os_error(error)}", cause="refused") from None
    return True


def checkpoint_folder() -> Path:
    """Return the folder with earlier versions of files that tools changed."""
    from platformdirs import user_state_path

    return user_state_path("segue") / "checkpoints"


def scratch_folder() -> Path:
    """Return a new path for temporary files of this process, which is not created. Those of killed ones are deleted.

    They are not in the system's temporary folder, where only the system would delete them.
    """
    from platformdirs import user_state_path

    base = user_state_path("segue") / "tmp"
    with suppress(OSError):
        for left in base.iterdir():
            if time.time() - left.stat().st_mtime > _MAX_SCRATCH_AGE:
                shutil.rmtree(left, ignore_errors=True)
    return base / secrets.token_hex(8)


@contextmanager
def connect(
    *,
    create: bool = False,
    trusting: bool = False,
    quiet: bool = False,
    files: Sequence[config.ConfigFile] | None = None,
) -> Generator[ConversationStore]:
    """Open the store that the configuration `files` set. A missing one is created with `create`, else an `InputError`.

    Prints that an untrusted project file's store setting is ignored, unless `quiet`.
    """
    from segue.errors import InputError
    from segue.store import default_location, display_location, open_store

    files = config.load_files(trusting=trusting) if files is None else files
    location = default_location(config.configured_store(files))
    ignored = next((file.path for file in files if "store" in file.ignored), None)
    if ignored is not None and not quiet and not os.environ.get("SEGUE_STORE"):
        streams.print_message(f"{ignored} is not trusted: its store setting is ignored; run segue trust to trust it")
    if not exists(location) and not create:
        raise InputError(f"no stored conversations: {display_location(location)} does not exist")
    with open_store(location) as store:
        yield store
