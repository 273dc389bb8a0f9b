"""Functions that open a conversation store: by file path, by `postgresql://` URL, or the user's default store."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

from segue.errors import InputError
from segue.store.base import ConversationStore

if TYPE_CHECKING:
    from segue.store.conversation import StoredConversation

__all__ = [
    "ConversationStore",
    "StoredConversation",
    "default_location",
    "display_location",
    "open_default_store",
    "open_store",
    "resolve_file",
]

_SERVER_SCHEMES = ("postgresql://", "postgres://")
# A single letter before the colon is a Windows drive, not a URL scheme.
_URL_SCHEME = re.compile(r":|[A-Za-z][A-Za-z0-9+.-]+:")
# Query parameters that locate the server; the others may hold credentials and are not displayed.
_DISPLAYED_PARAMETERS = frozenset({"host", "hostaddr", "port", "dbname", "service"})


def open_store(where: str | Path) -> ConversationStore:
    """Open the store in this file or at this `postgresql://` URL; a missing file is created.

    A read-only file is opened for reading; writing to it raises a `StoreError` with the cause `readonly`.
    """
    if (file := resolve_file(where)) is not None:
        from segue.store.sqlite import SqliteStore

        return SqliteStore(file)
    try:
        from segue.store.postgres import PostgresStore
    except ImportError as error:
        raise InputError(
            f"PostgreSQL needs the extra `postgres` ({error}): pip install 'segue[postgres]'", path="store"
        ) from None
    return PostgresStore(str(where))


def resolve_file(where: str | Path) -> Path | None:
    """Return the absolute path with links resolved, or None for a `postgresql://` URL. `InputError` for other URLs."""
    if str(where).startswith(_SERVER_SCHEMES):
        return None
    if not str(where) or (isinstance(where, str) and _URL_SCHEME.match(where)):
        value = f"{where!r}" if str(where) else "an empty string"
        hint = f"; for a file of that name write ./{where}" if str(where) else ""
        raise InputError(f"expected a file path or a postgresql:// URL, not {value}{hint}", path="store")
    try:
        return Path(where).expanduser().resolve()
    except (OSError, RuntimeError, ValueError) as error:
        raise InputError(f"{str(where)!r} is not a valid file path: {error}", path="store") from None


def display_location(where: str | Path) -> str:
    """Return the store's path or URL for display: without user name, password and other credentials."""
    from urllib.parse import parse_qsl, urlencode, urlsplit

    if (file := resolve_file(where)) is not None:
        return str(file)
    parts = urlsplit(str(where))
    kept = [(name, value) for name, value in parse_qsl(parts.query) if name in _DISPLAYED_PARAMETERS]
    query = f"?{urlencode(kept, safe='/:,')}" if kept else ""
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}{query}"


def open_default_store(configured: str | None = None) -> ConversationStore:
    """Open the user's store: `SEGUE_STORE`, else the configured one, else `history.db` in the data folder."""
    return open_store(default_location(configured))


def default_location(configured: str | None = None) -> str:
    """Return the path or URL of the user's store, without opening it."""
    import platformdirs

    location = os.environ.get("SEGUE_STORE") or configured
    return location or str(Path(platformdirs.user_data_dir("segue", appauthor=False)) / "history.db")


def __getattr__(name: str) -> object:
    """Import `StoredConversation` on first use: listing conversations does not need the renderer."""
    if name != "StoredConversation":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from segue.store.conversation import StoredConversation

    return StoredConversation
