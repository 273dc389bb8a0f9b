"""Approval prompts for tool calls, and the parsing of answers.

Only `y`, `yes`, `a` and `always` allow a call: any other text, such as a half-typed message, denies it.
"""

from __future__ import annotations

from segue.cli.chatting.figures import counted
from segue.cli.chatting.looks import Piece, Row, columns, wrapped
from segue.runtime.tooling import Question
from segue.view.clean import harmless, harmless_line

__all__ = ["choices", "meant", "question_rows"]

_LINES = 400
"""The maximum number of detail lines shown."""
_WORDS = {"y": "once", "yes": "once", "a": "always", "always": "always", "n": "no", "no": "no"}
_FILES = ("--- ", "+++ ")
_DIFF = {"+": "class:added", "-": "class:removed", "@": "class:place"}


def meant(line: str) -> tuple[str, str]:
    """The answer (`once`, `always` or `no`), and the reason given with a no."""
    text = line.strip()
    answer = _WORDS.get(text.lower())
    if answer is not None:
        return answer, ""
    head, _, rest = text.partition(" ")
    return "no", rest.lstrip(" ,:") if head.lower().rstrip(",:") in ("n", "no") else text


def question_rows(question: Question, width: int) -> list[Row]:
    """The question with its details, such as a diff."""
    head = wrapped(harmless_line(question.title or question.tool), width, "class:bold", indent="    ", first="  ? ")
    head[0][0] = "class:ask", "  ? "
    lines = harmless(question.detail).strip("\n").expandtabs(4).split("\n") if question.detail.strip() else []
    if len(lines) == 1 and lines[0].strip() in question.title:
        lines = []
    is_diff = any(line.startswith("@@") for line in lines)
    rows: list[Row] = [[], *head]
    for line in lines[:_LINES]:
        style = (
            "class:code"
            if not is_diff
            else "class:dim"
            if line.startswith(_FILES)
            else _DIFF.get(line[:1], "class:dim")
        )
        rows += wrapped(line, width, style, indent="    ")
    if (rest := len(lines) - _LINES) > 0:
        rows.append([("class:warn", f"    … {counted(rest, 'more line')} not shown")])
    return [*rows, []]


def choices(width: int) -> Row:
    """The possible answers in one row; those that do not fit are dropped."""
    row: Row = []
    for key, label, brief in (
        ("y", "yes", "yes"),
        ("a", "always", "always"),
        ("n", "no", "no"),
        ("…", "or type why not, then Enter", "why not"),
    ):
        choice: list[Piece] = [("", "  "), ("class:ask", key), ("class:dim", f" {label if width >= 60 else brief}")]
        if columns(row) + columns(choice) <= width:
            row += choice
    return row
