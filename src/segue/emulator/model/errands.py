"""Finds the intents in the user's text: what to do with files and commands. No intent if the text has none."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from segue.emulator.model import speech
from segue.emulator.model.asks import Ask, Errand, ask_of, parted
from segue.emulator.model.demands import changes, commands, names_task, pages, tasks, texts, todos
from segue.emulator.model.lookups import files, folders, names, searches

__all__ = ["errands_in"]

_KINDS: tuple[Callable[[Ask], Iterator[Errand]], ...] = (
    *(tasks, commands, todos, pages, changes, texts),
    *(searches, names, files, folders),
)
_CLAUSES = re.compile(
    r"(?:,?\s+and\s+(?:then\s+|also\s+)?|[.;]\s+|,\s+then\s+)(?=(?:read|open|show|list|run|find|search|grep|fetch"
    r"|write|create|save|replace|change|look|cat)\b)",
    re.IGNORECASE,
)


def errands_in(words: str) -> list[Errand]:
    """What is to be done, the first kind of errand that the words tell of."""
    ask, given = parted(words)
    if speech.is_small_talk(ask) and given:
        ask, given = parted(given)
    made = _all_asked(ask, given)
    last = given.rsplit("\n\n", 1)[-1].strip()
    if not made and last.endswith("?") and "\n" not in last:
        made = _asked(last, given)
    return made


def _all_asked(ask: str, given: str) -> list[Errand]:
    """Several errands, where each part of the words that begins like one is one."""
    parts = _CLAUSES.split(ask)
    if len(parts) > 1 and not names_task(ask):
        each = [_asked(part, given) for part in parts]
        if all(each):
            return [errand for made in each for errand in made]
    return _asked(ask, given)


def _asked(words: str, given: str) -> list[Errand]:
    """The errands of the first kind that the words tell of."""
    ask = ask_of(words, given)
    for kind in _KINDS:
        if made := list(kind(ask)):
            return made
    return []
