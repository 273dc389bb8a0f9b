"""Programs that Codex's newer models write to call tools: JavaScript of one call, read as that call.

Such a model has one tool, `exec`, which runs a program in which the other tools are functions. A program that does more
than call one of them with literal arguments and return its output is left as it is.
"""

from __future__ import annotations

import json
import re
from typing import Any

_NAME = r"await\s+tools\.(?P<name>\w+)\("
_FORMS = (
    # text((await tools.NAME(…)).output);   text(await tools.NAME(…));   await tools.NAME(…);
    re.compile(rf"\s*(?:text\(\s*)?\(?\s*{_NAME}"),
    # const result = await tools.NAME(…); text(result.output ?? result);
    re.compile(rf"\s*(?:const|let|var)\s+(?P<variable>\w+)\s*=\s*{_NAME}"),
)
_END = re.compile(r"\s*\)?\s*\)?\s*(?:\.output\s*\)?)?\s*;?\s*")
_STRING = re.compile(
    r'"(?:[^"\\\r\n]|\\\r\n|\\.)*"|\'(?:[^\'\\\r\n]|\\\r\n|\\.)*\'|`(?:[^`\\$]|\\.|\$(?!\{))*`', re.DOTALL
)
# The code of a character, or a character. Any other escape is an error in JavaScript.
_ESCAPE = re.compile(
    r"\\(?:u\{0*([0-9a-fA-F]{1,6})\}|u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|(0(?![0-9])|\r\n|[^ux0-9])|.)", re.DOTALL
)
_LINE_END = re.compile(r"\r\n?")
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
_KEY = re.compile(r"[A-Za-z_$][\w$]*")
_SPACE = re.compile(r"\s*")
_WORDS = {"true": True, "false": False, "null": None}
_CONTROLS = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "v": "\v", "0": "\0"}
# After a backslash at the end of a line, the text continues in the next one.
_ESCAPES = _CONTROLS | dict.fromkeys(("\n", "\r", "\r\n", "\u2028", "\u2029"), "")


def parse_program(text: str) -> tuple[str, Any] | None:
    """Return the tool and the arguments of the one call that a program makes; None for any other program."""
    for form in _FORMS:
        found = form.match(text)
        if found is None:
            continue
        try:
            value, end = _parse_value(text, found.end())
        except (ValueError, IndexError, RecursionError):
            return None
        rest = text[end:]
        if "variable" in form.groupindex:
            name = re.escape(found["variable"])
            other = rf"(?:\s*(?:\?\?|\|\|)\s*(?:{name}|JSON\.stringify\(\s*{name}\s*\)))?"
            ending = re.fullmatch(rf"\s*\)\s*;?\s*text\(\s*{name}(?:\.output)?{other}\s*\)\s*;?\s*", rest)
        else:
            ending = _END.fullmatch(rest)
        return (found["name"], value) if ending is not None else None
    return None


def _skip(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return found.end() if found is not None else at


def _parse_value(text: str, at: int) -> tuple[Any, int]:
    """Parse a literal; `ValueError` for anything else."""
    at = _skip(text, at)
    if text[at] == "{":
        return _parse_object(text, at + 1)
    if text[at] == "[":
        return _parse_list(text, at + 1)
    if (found := _STRING.match(text, at)) is not None:
        return _parse_string(found[0]), found.end()
    if (found := _NUMBER.match(text, at)) is not None:
        return json.loads(found[0]), found.end()
    if (found := _KEY.match(text, at)) is not None and found[0] in _WORDS:
        return _WORDS[found[0]], found.end()
    raise ValueError("not a literal")


def _parse_object(text: str, at: int) -> tuple[dict[str, Any], int]:
    fields: dict[str, Any] = {}
    at = _skip(text, at)
    while text[at] != "}":
        found = _STRING.match(text, at) or _KEY.match(text, at)
        if found is None:
            raise ValueError("not a key")
        key = _parse_string(found[0]) if found[0][0] in "\"'`" else found[0]
        at = _skip(text, found.end())
        if text[at] != ":":
            raise ValueError("no value")
        fields[key], at = _parse_value(text, at + 1)
        at = _next_item(text, at, "}")
    return fields, at + 1


def _parse_list(text: str, at: int) -> tuple[list[Any], int]:
    items: list[Any] = []
    at = _skip(text, at)
    while text[at] != "]":
        item, at = _parse_value(text, at)
        items.append(item)
        at = _next_item(text, at, "]")
    return items, at + 1


def _next_item(text: str, at: int, end: str) -> int:
    at = _skip(text, at)
    if text[at] == ",":
        return _skip(text, at + 1)
    if text[at] != end:
        raise ValueError("no comma")
    return at


def _parse_string(literal: str) -> str:
    """Return the text of a literal; `ValueError` for an escape that JavaScript does not have, and a lone surrogate."""
    text = literal[1:-1]
    if literal[0] == "`":
        text = _LINE_END.sub("\n", text)
    # Two escapes can be the halves of one character.
    return _ESCAPE.sub(_unescape, text).encode("utf-16-le", "surrogatepass").decode("utf-16-le")


def _unescape(found: re.Match[str]) -> str:
    if (code := found[1] or found[2] or found[3]) is not None:
        return chr(int(code, 16))
    if found[4] is None:
        raise ValueError("not an escape")
    return _ESCAPES.get(found[4], found[4])
