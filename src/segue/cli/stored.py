"""The store, for the commands that look into it or write to it."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from segue.cli import config, streams

if TYPE_CHECKING:
    from segue.store.base import HistoryStore

__all__ = ["is_there", "opened", "place"]


def place() -> str:
    """Where the store is."""
    from segue.store import default_place

    return default_place(config.store())


def is_there() -> bool:
    """Whether there is a store already. Looking never makes one."""
    from segue.errors import StoreError
    from segue.store import file_of

    file = file_of(place())
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
def opened(*, make: bool = False) -> Generator[HistoryStore]:
    """The store; where there is none yet it is made, or that is said."""
    from segue.errors import InputError
    from segue.store import open_store, shown

    if not make and not is_there():
        raise InputError(f"no conversation was kept yet: there is no {shown(place())}")
    with open_store(place()) as store:
        yield store
