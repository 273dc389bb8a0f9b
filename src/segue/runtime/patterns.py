"""Patterns that somebody else wrote, matched in linear time.

Python's own engine can be kept busy for ever by a pattern of ten characters, and holds up every other thread meanwhile.
So patterns of models, of files and of rules go to the engine in jsonschema-rs, which knows no backtracking.
"""

from __future__ import annotations

import re
from functools import lru_cache

import jsonschema_rs

from segue.runtime.tooling import ToolError

__all__ = ["Pattern", "glob_pattern", "path_glob", "rule_pattern"]

_LONGEST = 2_000
_NO_COUNT = re.compile(r"(?<!\\)\{(?!\d+(?:,\d*)?\})")


class Pattern:
    """A regular expression; `in_` tells whether it is found somewhere in a text."""

    def __init__(self, regex: str, *, ignore_case: bool = False) -> None:
        if len(regex) > _LONGEST:
            raise ToolError(f"the pattern is longer than {_LONGEST:,} characters")
        flagged = f"(?i:{regex})" if ignore_case else regex
        # `interface{}` means braces.
        for text in (flagged, _NO_COUNT.sub(r"\\{", flagged)):
            try:
                options = jsonschema_rs.RegexOptions(size_limit=4_000_000)
                self.in_ = jsonschema_rs.validator_for({"pattern": text}, pattern_options=options).is_valid
                return
            except ValueError:
                continue
        raise ToolError(_fault(regex))


def _fault(regex: str) -> str:
    try:
        re.compile(regex)
    except re.error as error:
        return f"the pattern is not a regular expression: {error}"
    return "look-around, back-references, comments and very large repeats are not known here; write the pattern without"


def _literal(text: str) -> str:
    return re.sub(r"([\\.+*?()|\[\]{}^$/#&~-])", r"\\\1", text)


def glob_pattern(glob: str) -> str:
    """A file glob as a regular expression: `*` and `?` stay in one name, `**` crosses folders, `{a,b}` and `[abc]`."""
    written: list[str] = []
    at, depth = 0, 0
    while at < len(glob):
        letter = glob[at]
        if glob.startswith("**/", at) and (at == 0 or glob[at - 1] == "/"):
            written.append("(?:[^/]*/)*")
            at += 3
            continue
        if glob.startswith("**", at):
            written.append(".*")
            at += 2
            continue
        at += 1
        match letter:
            case "*":
                written.append("[^/]*")
            case "?":
                written.append("[^/]")
            case "[":
                end = glob.find("]", at + 1 + (glob[at : at + 1] in ("!", "^")))
                if end < 0:
                    written.append(r"\[")
                else:
                    inner = glob[at:end]
                    negated = inner[:1] in ("!", "^")
                    inner = re.sub(r"([\\\[\]&~^])", r"\\\1", inner[negated:])
                    written.append(f"[{'^/' if negated else ''}{inner}]")
                    at = end + 1
            case "{" if "}" in glob[at:]:
                written.append("(?:")
                depth += 1
            case "}" if depth:
                written.append(")")
                depth -= 1
            case "," if depth:
                written.append("|")
            case "\\" if at < len(glob):
                written.append(_literal(glob[at]))
                at += 1
            case _:
                written.append(_literal(letter))
    return f"^{''.join(written)}{')' * depth}$"


@lru_cache(maxsize=512)
def path_glob(glob: str) -> Pattern:
    """The glob, to be held against a path with `/`."""
    return Pattern(glob_pattern(glob))


@lru_cache(maxsize=512)
def rule_pattern(glob: str, *, ignore_case: bool = False) -> Pattern:
    """The glob of a rule: `*` is any characters, `/` included; in an address not beyond the host while in it."""
    address = re.match(r"[^/]*://[^/]*/?", glob)
    host = address[0] if address else ""
    words = _rule_part(host, any_="[^/?#@]*", one="[^/?#@]")
    body = _rule_part(glob[len(host) :], any_="(?s:.)*", one="(?s:.)")
    return Pattern(f"^{words}{body}$", ignore_case=ignore_case)


def _rule_part(glob: str, *, any_: str, one: str) -> str:
    words = re.split(r"(\*\*/|\*+|\?)", glob)
    known = {"?": one, "**/": f"(?:{any_}/)?"}
    return "".join(known.get(word) or (any_ if word.startswith("*") else _literal(word)) for word in words)
