"""Parses a user request into text, mentioned files and attached text; and the intents derived from it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

from msgspec import Struct

from segue.emulator.model.file_names import PathMention, find_paths, mask_paths

__all__ = [
    "BEFORE_COMMAND",
    "QUESTION_START",
    "QUOTED",
    "QUOTED_TEXT",
    "WRITE_VERB",
    "Intent",
    "ToolRole",
    "UserRequest",
    "matched_text",
    "parse_request",
    "split_attachment",
]

ToolRole: TypeAlias = Literal["read", "list", "glob", "grep", "write", "edit", "shell", "fetch", "todo", "task"]

_MAX_LENGTH = 2_000
"""Characters that are looked at for what is asked."""
_ATTACHMENT_START = re.compile(r"^(?:diff --git |--- |\+\+\+ |@@ |```|[{\[<#]|Traceback |\s{2,}\S)", re.MULTILINE)
_WIDE_SPACE = re.compile(r"\s{8,}")
BEFORE_COMMAND = r"(?:(?:^|[.!,;:\n]|\b(?:and|then|please|now|you|to|just|me)\b)\s*)"
"""What may stand before a demand."""
QUOTED_TEXT = r"(?:`(?P<{0}code>[^`\n]+)`|\"(?P<{0}double>[^\"\n]+)\"|'(?P<{0}single>[^'\n]+)'|“(?P<{0}curly>[^”\n]+)”)"
"""A text in quotes; its groups begin as it is formatted with."""
QUOTED = re.compile(QUOTED_TEXT.format(""))
WRITE_VERB = re.compile(rf"{BEFORE_COMMAND}(?P<verb>write|save|create|put|make|store)\b", re.IGNORECASE)
QUESTION_START = re.compile(r"\s*(?:how|why|what|should|when|do|does|did|is|explain|tell me how)\b", re.IGNORECASE)
"""Who begins so asks how something is done, and does not ask for it to be done."""


class Intent(Struct, frozen=True):
    """`values` are by what they are for; what a tool calls them is its own."""

    role: ToolRole
    values: Mapping[str, Any]


class UserRequest(Struct, frozen=True):
    """`bare` are the words with the names of files hidden; `given` is what came with them."""

    text: str
    masked: str
    attachment: str
    paths: tuple[PathMention, ...]


def parse_request(text: str, given: str) -> UserRequest:
    files = find_paths(text)
    return UserRequest(text, mask_paths(text, files), given, files)


def split_attachment(text: str) -> tuple[str, str]:
    """The question, and what was given with it: a text that was piped in stands after an empty line."""
    ask, _, given = text[:_MAX_LENGTH].strip().partition("\n\n")
    given += text[_MAX_LENGTH:]
    if (found := _ATTACHMENT_START.search(ask)) and found.start():
        ask, given = ask[: found.start()], f"{ask[found.start() :]}\n\n{given}"
    return _WIDE_SPACE.sub(" ", ask).strip(), given.strip()


def matched_text(match: re.Match[str], prefix: str = "") -> str:
    """What a pattern with a text in it caught, however that was quoted."""
    caught = match.groupdict()
    names = (f"{prefix}{how}" for how in ("code", "double", "single", "curly", "plain"))
    return next((caught[name] for name in names if caught.get(name) is not None), "") or ""
