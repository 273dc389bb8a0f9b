"""Parses a user request into text, mentioned files and attached text; and the intents derived from it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

from msgspec import Struct

from segue.emulator.model.named import Named, files_in, hidden

__all__ = ["ASKS", "POLITE", "QUOTED", "TEXT", "WRITE", "Ask", "Errand", "Role", "ask_of", "parted", "text_of"]

Role: TypeAlias = Literal["read", "list", "glob", "grep", "write", "edit", "shell", "fetch", "todo", "task"]

_FAR = 2_000
"""Characters that are looked at for what is asked."""
_GIVEN = re.compile(r"^(?:diff --git |--- |\+\+\+ |@@ |```|[{\[<#]|Traceback |\s{2,}\S)", re.MULTILINE)
_WIDE = re.compile(r"\s{8,}")
POLITE = r"(?:(?:^|[.!,;:\n]|\b(?:and|then|please|now|you|to|just|me)\b)\s*)"
"""What may stand before a demand."""
TEXT = r"(?:`(?P<{0}code>[^`\n]+)`|\"(?P<{0}double>[^\"\n]+)\"|'(?P<{0}single>[^'\n]+)'|“(?P<{0}curly>[^”\n]+)”)"
"""A text in quotes; its groups begin as it is formatted with."""
QUOTED = re.compile(TEXT.format(""))
WRITE = re.compile(rf"{POLITE}(?P<verb>write|save|create|put|make|store)\b", re.IGNORECASE)
ASKS = re.compile(r"\s*(?:how|why|what|should|when|do|does|did|is|explain|tell me how)\b", re.IGNORECASE)
"""Who begins so asks how something is done, and does not ask for it to be done."""


class Errand(Struct, frozen=True):
    """`values` are by what they are for; what a tool calls them is its own."""

    role: Role
    values: Mapping[str, Any]


class Ask(Struct, frozen=True):
    """`bare` are the words with the names of files hidden; `given` is what came with them."""

    words: str
    bare: str
    given: str
    files: tuple[Named, ...]


def ask_of(words: str, given: str) -> Ask:
    files = files_in(words)
    return Ask(words, hidden(words, files), given, files)


def parted(words: str) -> tuple[str, str]:
    """The question, and what was given with it: a text that was piped in stands after an empty line."""
    ask, _, given = words[:_FAR].strip().partition("\n\n")
    given += words[_FAR:]
    if (found := _GIVEN.search(ask)) and found.start():
        ask, given = ask[: found.start()], f"{ask[found.start() :]}\n\n{given}"
    return _WIDE.sub(" ", ask).strip(), given.strip()


def text_of(match: re.Match[str], prefix: str = "") -> str:
    """What a pattern with a text in it caught, however that was quoted."""
    caught = match.groupdict()
    names = (f"{prefix}{how}" for how in ("code", "double", "single", "curly", "plain"))
    return next((caught[name] for name in names if caught.get(name) is not None), "") or ""
