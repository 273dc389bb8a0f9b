"""Finds the intents in the user's text: what to do with files and commands. No intent if the text has none."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from segue.emulator.model import reply_texts
from segue.emulator.model.action_intents import (
    find_commands,
    find_edits,
    find_pages,
    find_tasks,
    find_todos,
    find_writes,
    mentions_task,
)
from segue.emulator.model.lookup_intents import find_globs, find_listings, find_reads, find_searches
from segue.emulator.model.user_request import Intent, UserRequest, parse_request, split_attachment

__all__ = ["find_intents"]

_FINDERS: tuple[Callable[[UserRequest], Iterator[Intent]], ...] = (
    *(find_tasks, find_commands, find_todos, find_pages, find_edits, find_writes),
    *(find_searches, find_globs, find_reads, find_listings),
)
_CLAUSES = re.compile(
    r"(?:,?\s+and\s+(?:then\s+|also\s+)?|[.;]\s+|,\s+then\s+)(?=(?:read|open|show|list|run|find|search|grep|fetch"
    r"|write|create|save|replace|change|look|cat)\b)",
    re.IGNORECASE,
)


def find_intents(text: str) -> list[Intent]:
    """What is to be done, the first kind of errand that the words tell of."""
    ask, given = split_attachment(text)
    if reply_texts.is_small_talk(ask) and given:
        ask, given = split_attachment(given)
    made = _find_in_clauses(ask, given)
    last = given.rsplit("\n\n", 1)[-1].strip()
    if not made and last.endswith("?") and "\n" not in last:
        made = _find_in_clause(last, given)
    return made


def _find_in_clauses(ask: str, given: str) -> list[Intent]:
    """Several errands, where each part of the words that begins like one is one."""
    parts = _CLAUSES.split(ask)
    if len(parts) > 1 and not mentions_task(ask):
        each = [_find_in_clause(part, given) for part in parts]
        if all(each):
            return [errand for made in each for errand in made]
    return _find_in_clause(ask, given)


def _find_in_clause(text: str, given: str) -> list[Intent]:
    """The errands of the first kind that the words tell of."""
    ask = parse_request(text, given)
    for kind in _FINDERS:
        if made := list(kind(ask)):
            return made
    return []
