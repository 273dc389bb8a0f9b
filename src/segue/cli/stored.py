"""The user's store, located by environment and configuration."""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from segue.cli import config, streams

if TYPE_CHECKING:
    from segue.store.base import HistoryStore

__all__ = ["is_there", "opened", "place"]


def place(*, trusting: bool = False) -> str:
    """The location of the store; `trusting` applies the project file's setting even if it is not trusted."""
    from segue.store import default_place

    return default_place(config.store(trusting=trusting))


def is_there(*, trusting: bool = False) -> bool:
    """Whether the store exists; never creates it."""
    from segue.errors import StoreError
    from segue.store import file_of

    file = file_of(place(trusting=trusting))
    if file is None:
        return True
    try:
        file.stat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:
        raise StoreError(f"{file} can't be used: {streams.reason(error)}", cause="refused") from None
    return True


@contextmanager
def opened(*, make: bool = False, trusting: bool = False, told: bool = False) -> Generator[HistoryStore]:
    """Open the store. A missing one is created with `create`, else an `InputError`.

    Prints that an untrusted project file's store setting is ignored, unless `quiet`.
    """
    from segue.errors import InputError
    from segue.store import open_store, shown

    location = place(trusting=trusting)
    if not trusting and not told and not os.environ.get("SEGUE_STORE") and (file := config.distrusted_store()):
        streams.say(f"{file} is not trusted: its store setting is ignored; run segue trust to trust it")
    if not make and not is_there(trusting=trusting):
        raise InputError(f"no stored conversations: {shown(location)} does not exist")
    with open_store(location) as store:
        yield store
