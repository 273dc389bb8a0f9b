"""The user's store, located by environment and configuration."""

from __future__ import annotations

import os
import secrets
import shutil
import time
from collections.abc import Generator
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

    return default_location(config.configured_store(trusting=trusting))


def exists(*, trusting: bool = False) -> bool:
    """Return whether the store exists; never creates it."""
    from segue.errors import StoreError
    from segue.store import resolve_file

    file = resolve_file(locate(trusting=trusting))
    if file is None:
        return True
    try:
        file.stat()
    except (FileNotFoundError, NotADirectoryError):
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
def connect(*, create: bool = False, trusting: bool = False, quiet: bool = False) -> Generator[ConversationStore]:
    """Open the store. A missing one is created with `create`, else an `InputError`.

    Prints that an untrusted project file's store setting is ignored, unless `quiet`.
    """
    from segue.errors import InputError
    from segue.store import display_location, open_store

    location = locate(trusting=trusting)
    if not trusting and not quiet and not os.environ.get("SEGUE_STORE") and (file := config.untrusted_store_file()):
        streams.print_message(f"{file} is not trusted: its store setting is ignored; run segue trust to trust it")
    if not create and not exists(trusting=trusting):
        raise InputError(f"no stored conversations: {display_location(location)} does not exist")
    with open_store(location) as store:
        yield store
