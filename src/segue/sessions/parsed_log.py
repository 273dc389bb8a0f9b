"""The lines of a log file, and the request body parsed from them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from segue.store.base import parse_time

_TAG = re.compile(r"\s*<[a-z][\w-]*>", re.IGNORECASE)
_MAX_TITLE = 80


# Keys of lines and blocks under which clients have names and ids, never lists or objects.
_NAME_KEYS = (
    "type",
    "subtype",
    "uuid",
    "parentUuid",
    "id",
    "parentId",
    "parentID",
    "sessionId",
    "leafUuid",
    "targetId",
    "tool_use_id",
)
_CONTAINERS: frozenset[type] = frozenset({list, dict})


class LogLine(Struct, frozen=True):
    """One line of a file, by its number from 1."""

    number: int
    value: Mapping[str, Any]

    @property
    def timestamp(self) -> int | None:
        """The line's `timestamp`, if any."""
        return parse_time(self.value.get("timestamp"))


class SessionFacts(Struct, frozen=True):
    """What a log records of its session besides the conversation: its id, folder and branch, the client's version, and
    the title that the user or the client gave it."""

    id: str | None = None
    cwd: str | None = None
    git_branch: str | None = None
    version: str | None = None
    name: str | None = None


class ParsedLog(Struct, frozen=True):
    """A request body from a log, with the line number and the time (if known) of each message.

    `dropped` counts the entries that are not in the body, by reason. `context` has the indexes of messages that the
    client inserted for a session of its own: its instructions, and facts about the machine."""

    kind: str
    body: Mapping[str, Any]
    source: str | None = None
    title: str | None = None
    line_numbers: list[int] = []
    dropped: dict[str, int] = {}
    times: list[int | None] = []
    context: frozenset[int] = frozenset()
    facts: SessionFacts = SessionFacts()
    sources: list[list[int]] = []
    """For each message the numbers of the lines, or of the stored messages, that it was made of; by default its line
    alone."""


def is_client_text(text: str) -> bool:
    """Return whether a client inserted this text into a user message: text in tags, or the contents of AGENTS.md."""
    return bool(_TAG.match(text)) or text.lstrip().startswith("# AGENTS.md instructions")


def make_title(text: str) -> str:
    """Return a title from the user's first text."""
    line = " ".join(text.split())
    return line if len(line) <= _MAX_TITLE else f"{line[: _MAX_TITLE - 1]}…"


def find_bad_name(value: Mapping[str, Any]) -> str | None:
    """Return the key of a line that has a list or an object where every client has a name; None if there is none."""
    for key in _NAME_KEYS:
        if type(value.get(key)) in _CONTAINERS:
            return key
    return None
