"""What a shell command is made of, as far as that can be told from its text.

Only a command that is nothing but words can be judged by its text. This reads less than a shell does, on purpose: where
it is not sure, there are no parts, and whoever asks has to treat the command as a whole.
"""

from __future__ import annotations

import re
import shlex
from contextlib import suppress

__all__ = ["commands_in", "simple_commands"]

_OPERATORS = ("&&", "||", "|&", ";", "|", "&", "\n")
# Output that goes nowhere, or where the rest goes, changes nothing.
_HARMLESS = re.compile(r"(?:\d*>&\d|\d*>>?\s*/dev/null|&>>?\s*/dev/null|<\s*/dev/null)(?=[\s;&|]|$)")
_RESERVED_NAMES = """
! [[ ]] { } case coproc do done elif else esac fi for function if in select then time until while
eval exec source . builtin command trap alias
"""
_RESERVED = frozenset(_RESERVED_NAMES.split())
_SEPARATORS = re.compile(r"&&|\|\||\$\(|[;&|\n`(){}<>]|\b(?:then|do|else|elif|if|while|until|exec|eval|time)\b")
_PREFIXES_NAMES = """
sudo doas env command builtin exec nohup nice time xargs setsid stdbuf timeout
"""
_PREFIXES = frozenset(_PREFIXES_NAMES.split())
_ASSIGNMENT = re.compile(r"\w+=\S*")


def simple_commands(text: str) -> tuple[str, ...] | None:
    """The simple commands that a text runs one after the other; None where there is more to it than that."""
    parts: list[str] = []
    part: list[str] = []
    at, quote = 0, ""
    text = text.strip()
    while at < len(text):
        letter = text[at]
        if letter == "\\" and quote != "'":
            part.append(text[at : at + 2] if text[at + 1 : at + 2] != "\n" else "")
            at += 2
            continue
        if quote != "'" and (letter == "`" or text.startswith(("$(", "$'", '$"'), at)):
            return None
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "'\"":
            quote = letter
        elif harmless := _at_word_end(text, at, part):
            at += harmless
            continue
        elif operator := next((known for known in _OPERATORS if text.startswith(known, at)), None):
            parts.append("".join(part))
            part = []
            at += len(operator)
            continue
        elif letter in "<>(){}#" and not _is_in_word(text, at):
            return None
        part.append(letter)
        at += 1
    parts.append("".join(part))
    found = tuple(words for words in (part.strip() for part in parts) if words)
    if quote or not found or any(_first(words) in _RESERVED for words in found):
        return None
    return found


def _at_word_end(text: str, at: int, part: list[str]) -> int:
    """The length of a harmless redirection that begins here."""
    if part and not part[-1].isspace() and text[at].isdigit():
        return 0
    found = _HARMLESS.match(text, at)
    return len(found[0]) if found else 0


def _is_in_word(text: str, at: int) -> bool:
    """Whether a mark stands inside of a word (`{a,b}.txt`, `${x}`, `a#b`), where it groups and begins nothing."""
    before = text[at - 1] if at else " "
    match text[at]:
        case "{":
            return text[at + 1 : at + 2] not in ("", " ", "\t", "\n")
        case "}" | "#":
            return not before.isspace() and before not in ";&|"
        case _:
            return False


def _first(words: str) -> str:
    return words.split(maxsplit=1)[0]


def commands_in(text: str) -> tuple[str, ...]:
    """Whatever in a text may be a command, in the ways a rule may name it. Too many rather than too few."""
    found: dict[str, None] = {}
    for piece in _SEPARATORS.split(text):
        words = piece.split()
        with suppress(ValueError):
            words = shlex.split(piece)
        while words:
            found[" ".join(words)] = None
            base = words[0].rpartition("/")[2]
            found[" ".join([base, *words[1:]])] = None
            if not (base in _PREFIXES or words[0].startswith("-") or _ASSIGNMENT.fullmatch(words[0])):
                break
            words = words[1:]
    return tuple(found)
