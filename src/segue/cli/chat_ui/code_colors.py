"""Colours for code blocks, by language. A line is coloured with the lines before it as context."""

from __future__ import annotations

from collections import deque
from functools import cache
from typing import TYPE_CHECKING, Any, cast

from segue.cli.chat_ui.styles import Row

if TYPE_CHECKING:
    from pygments.lexer import Lexer

_CONTEXT_LINES = 60
"""How many lines before a line decide whether it is inside a text or comment over several lines."""
_MAX_LINE = 1_000
_STYLES = {
    "Keyword": "class:keyword",
    "Literal.String": "class:string",
    "String": "class:string",
    "Comment": "class:comment",
    "Literal.Number": "class:number",
    "Number": "class:number",
    "Name.Function": "class:name",
    "Name.Class": "class:name",
    "Name.Tag": "class:name",
    "Name.Decorator": "class:keyword",
    "Operator.Word": "class:keyword",
    "Generic.Inserted": "class:added",
    "Generic.Deleted": "class:removed",
    "Generic.Heading": "class:bold",
    "Generic.Subheading": "class:place",
}


@cache
def _find_lexer(language: str) -> Lexer | None:
    from pygments import lexers
    from pygments.util import ClassNotFound

    try:
        return cast("Any", lexers).get_lexer_by_name(language, stripnl=False, ensurenl=False)
    except ClassNotFound:
        return None


class CodeColors:
    """Colours the lines of one code block. Without a known language they are one colour."""

    def __init__(self, language: str) -> None:
        self._lexer = _find_lexer(language.lower()) if language else None
        self._before: deque[str] = deque(maxlen=_CONTEXT_LINES)

    def color_line(self, line: str) -> Row:
        if self._lexer is None or len(line) > _MAX_LINE:
            return [("class:block", line)]
        text = "\n".join([*self._before, line])
        skipped = len(text) - len(line)
        self._before.append(line)
        row: Row = []
        for at, token, value in self._lexer.get_tokens_unprocessed(text):
            visible = value[max(0, skipped - at) :].rstrip("\n")
            if not visible or at + len(value) <= skipped:
                continue
            style = _find_style(str(token).removeprefix("Token."))
            if row and row[-1][0] == style:
                row[-1] = style, row[-1][1] + visible
            else:
                row.append((style, visible))
        return row or [("", line)]


@cache
def _find_style(token: str) -> str:
    while token:
        if token in _STYLES:
            return _STYLES[token]
        token = token.rpartition(".")[0]
    return ""
