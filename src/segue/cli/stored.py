"""The store, for the commands that look into it or write to it."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from segue.cli import config

if TYPE_CHECKING:
    from segue.store.base import HistoryStore

__all__ = ["is_there", "opened", "place", "shown_place"]


def place() -> str:
    """Where the store is."""
    from segue.store import default_place

    return default_place(config.store())


def shown_place() -> str:
    """Where the store is, without a name or a password."""
    from urllib.parse import urlsplit

    where = place()
    if "://" not in where:
        return where
    parts = urlsplit(where)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


def is_there() -> bool:
    """Whether there is a store already. Looking never makes one."""
    where = place()
    return "://" in where or Path(where).expanduser().exists()


@contextmanager
def opened(*, make: bool = False) -> Generator[HistoryStore]:
    """The store; where there is none yet it is made, or that is said."""
    from segue.errors import InputError
    from segue.store import open_store

    if not make and not is_there():
        raise InputError(f"no conversation was kept yet: there is no {place()}")
    with open_store(place()) as store:
        yield store
