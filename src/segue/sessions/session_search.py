"""Finds sessions: all of a folder over the clients, or the one that an id, a path or search words name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from segue.canonical.blocks import ToolCall, ToolResponse, text_of
from segue.errors import InputError
from segue.sessions import files
from segue.sessions.client import Client, ClientHome, SessionFile
from segue.sessions.logs import detect_client
from segue.sessions.registry import CLIENTS
from segue.sessions.session import Session, parse_session

_MIN_PREFIX = 4
_MAX_LISTED = 5


def list_sessions(clients: Iterable[Client], home: ClientHome, cwd: Path | None) -> list[SessionFile]:
    """Return the sessions of a folder, or all, newest first."""
    found = [session for client in clients for session in client.find(home, cwd)]
    # A conversation that was imported has the time of its session.
    return sorted(found, key=lambda each: (each.updated, each.client != "segue", each.id), reverse=True)


def find_session(clients: Sequence[Client], home: ClientHome, cwd: Path, wanted: str | None) -> SessionFile:
    """Return the newest session of a folder, or the one that is wanted; `InputError` if there is none or no single one.

    An id or its beginning, and a path, also find sessions of other folders. Words are searched in titles first, then in
    the messages of the sessions of this folder.
    """
    names = ", ".join(client.title for client in clients)
    if wanted is None:
        sessions = list_sessions(clients, home, cwd)
        if not sessions:
            raise InputError(
                f"no session of {names} in this folder; segue move --list --all lists those of all folders"
            )
        return sessions[0]
    if (path := _find_file(wanted)) is not None:
        return _find_by_path(clients, path)
    if not wanted.strip():
        raise InputError("SESSION is empty")
    sessions = list_sessions(clients, home, None)
    same = [session for session in sessions if session.id == wanted]
    begun = [session for session in sessions if session.id.startswith(wanted)]
    if not same and (len(wanted) >= _MIN_PREFIX or len(begun) == 1):
        same = begun
    return _single(same or _search(sessions, home, cwd, wanted.lower().split()), wanted, names)


def _find_file(name: str) -> Path | None:
    """Return the file of this name; None if there is none, or if it can't be the name of a file."""
    try:
        path = Path(name).expanduser()
        return path if path.is_file() else None
    except (OSError, RuntimeError, ValueError):
        return None


def _find_by_path(clients: Sequence[Client], path: Path) -> SessionFile:
    path = path.resolve()
    client = next((each for each in clients if each.is_file_name(path.name)), None) or detect_client(files.read(path))
    if client is None or client not in clients:
        expected = " or ".join(each.title for each in clients)
        raise InputError(f"not a session of {expected}", path=str(path))
    return client.describe(path)


def _search(sessions: Sequence[SessionFile], home: ClientHome, cwd: Path, terms: Sequence[str]) -> list[SessionFile]:
    """Return the sessions with all terms: in their titles, of this folder if there are any, else in their text."""
    titled = [each for each in sessions if each.title and all(term in each.title.lower() for term in terms)]
    here = [each for each in sessions if each.cwd is not None and home.is_same_folder(each.cwd, str(cwd))]
    local = [session for session in titled if session in here]
    return local or titled or [session for session in here if _contains_terms(session, home, terms)]


def _contains_terms(file: SessionFile, home: ClientHome, terms: Sequence[str]) -> bool:
    """Return whether all terms are in the texts, calls and results of a session."""
    client = CLIENTS[file.client]
    try:
        data = client.load(home, file)
        # Few sessions have to be parsed.
        if any(term.encode() not in data.lower() for term in terms if term.isascii() and term.isalnum()):
            return False
        session = parse_session(client, file, data)
    except InputError:
        return False
    text = "\n".join(_list_texts(session)).lower()
    return all(term in text for term in terms)


def _list_texts(session: Session) -> Iterator[str]:
    for entry in session.entries:
        yield text_of(entry.message.blocks)
        for block in entry.message.blocks:
            match block:
                case ToolCall():
                    yield f"{block.name} {block.arguments}"
                case ToolResponse():
                    yield text_of(block.content) + str(block.structured or "")
                case _:
                    continue


def _single(found: Sequence[SessionFile], wanted: str, names: str) -> SessionFile:
    if not found:
        raise InputError(f"no session of {names} has the id, the path or the words {wanted!r}")
    if len(found) > 1:
        listed = "; ".join(f"{each.id} ({each.client}: {each.title or 'no title'})" for each in found[:_MAX_LISTED])
        more = f"; and {len(found) - _MAX_LISTED} more" if len(found) > _MAX_LISTED else ""
        raise InputError(f"{len(found)} sessions match {wanted!r}; name one by its id: {listed}{more}")
    return found[0]
