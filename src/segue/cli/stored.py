"""The store, for the commands that look into it or write to it."""

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
    """Where the store is; with `trusting` as the project's file says, even where it is not trusted."""
    from segue.store import default_place

    return default_place(config.store(trusting=trusting))


def is_there(*, trusting: bool = False) -> bool:
    """Whether there is a store already. Looking never makes one."""
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
    """The store; where there is none yet it is made, or that is said.

    That the project's own does not count is said too, unless it was `told` already.
    """
    from segue.errors import InputError
    from segue.store import open_store, shown

    where = place(trusting=trusting)
    if not trusting and not told and not os.environ.get("SEGUE_STORE") and (file := config.distrusted_store()):
        streams.say(f"{file} is not trusted, so its store does not count; segue trust trusts it")
    if not make and not is_there(trusting=trusting):
        raise InputError(f"no conversation was kept yet: there is no {shown(where)}")
    with open_store(where) as store:
        yield store
