"""Questions before a call may run, and what the answers mean.

Nothing but `y`, `yes`, `a` and `always` lets a call run: whoever was in the middle of a sentence has not said yes.
"""

from __future__ import annotations

from segue.cli.chatting.figures import counted
from segue.cli.chatting.looks import Piece, Row, columns, wrapped
from segue.runtime.tooling import Question
from segue.view.clean import harmless, harmless_line

__all__ = ["choices", "meant", "question_rows"]

_LINES = 400
"""How many lines of a detail are shown; more of them nobody reads before saying yes."""
_WORDS = {"y": "once", "yes": "once", "a": "always", "always": "always", "n": "no", "no": "no"}
_FILES = ("--- ", "+++ ")
_DIFF = {"+": "class:added", "-": "class:removed", "@": "class:place"}


def meant(line: str) -> tuple[str, str]:
    """An answer, and the words that go with a no."""
    words = line.strip()
    answer = _WORDS.get(words.lower())
    if answer is not None:
        return answer, ""
    head, _, rest = words.partition(" ")
    return "no", rest.lstrip(" ,:") if head.lower().rstrip(",:") in ("n", "no") else words


def question_rows(question: Question, width: int) -> list[Row]:
    """The question with all that it is about."""
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
        rows.append([("class:warn", f"    … {counted(rest, 'line')} more that are not shown")])
    return [*rows, []]


def choices(width: int) -> Row:
    """What can be answered, in one row."""
    row: Row = []
    for key, words, brief in (
        ("y", "yes", "yes"),
        ("a", "always", "always"),
        ("n", "no", "no"),
        ("…", "or say why not, then Enter", "why not"),
    ):
        piece: list[Piece] = [("", "  "), ("class:ask", key), ("class:dim", f" {words if width >= 60 else brief}")]
        if columns(row) + columns(piece) <= width:
            row += piece
    return row
