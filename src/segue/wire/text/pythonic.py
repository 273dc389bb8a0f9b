"""Calls in Python syntax: `name(key=value, …)`, one or a list of them."""

from __future__ import annotations

import re

__all__ = ["convert_python_calls"]

_TOKEN = re.compile(
    r"""
    (?P<string>"(?:[^"\\]|\\.)*+"|'(?:[^'\\]|\\.)*+')
    | (?P<call>[A-Za-z_][\w.-]*+\s*+\()
    | (?P<key>[A-Za-z_]\w*+\s*+=(?!=))
    | (?P<word>\w++)
    | (?P<bracket>[()])
    """,
    re.VERBOSE | re.DOTALL,
)


def convert_python_calls(text: str) -> str:
    """Convert Python calls to lenient JSON objects with name and arguments. Anything else becomes invalid JSON."""
    opened: list[bool] = []
    inside = 0

    def convert(token: re.Match[str]) -> str:
        nonlocal inside
        match token.lastgroup:
            case "call":
                inside += 1
                opened.append(True)
                if inside > 1:
                    return "a call within a call"
                return f'{{"name":"{token[0][:-1].rstrip()}","arguments":{{'
            case "key":
                return f'"{token[0][:-1].rstrip()}":'
            case "bracket" if token[0] == "(":
                opened.append(False)
                return "["
            case "bracket" if opened and opened.pop():
                inside -= 1
                return "}}"
            case "bracket":
                return "]"
            case _:
                return token[0]

    return _TOKEN.sub(convert, text)
