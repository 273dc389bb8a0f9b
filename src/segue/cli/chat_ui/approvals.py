"""Approval prompts for tool calls, and the parsing of answers.

Only `y`, `yes`, `a` and `always` allow a call: any other text, such as a half-typed message, denies it.
"""

from __future__ import annotations

from segue.cli.chat_ui.styles import Row, StyledText, display_width, wrap
from segue.runtime.tool_types import ApprovalRequest
from segue.view.format import format_count
from segue.view.sanitize import sanitize, sanitize_line

_MAX_LINES = 400
"""The maximum number of detail lines shown."""
_ANSWERS = {"y": "once", "yes": "once", "a": "always", "always": "always", "n": "no", "no": "no"}
_DIFF_FILE_PREFIXES = ("--- ", "+++ ")
_DIFF_STYLES = {"+": "class:added", "-": "class:removed", "@": "class:place"}


def parse_answer(line: str) -> tuple[str, str]:
    """Return the answer (`once`, `always` or `no`), and the reason given with a no."""
    text = line.strip()
    answer = _ANSWERS.get(text.lower())
    if answer is not None:
        return answer, ""
    head, _, rest = text.partition(" ")
    return "no", rest.lstrip(" ,:") if head.lower().rstrip(",:") in ("n", "no") else text


def format_question(question: ApprovalRequest, width: int) -> list[Row]:
    """Return the question with its details, such as a diff."""
    head = wrap(sanitize_line(question.title or question.tool), width, "class:bold", indent="    ", first_indent="  ? ")
    head[0][0] = "class:ask", "  ? "
    lines = sanitize(question.detail).strip("\n").expandtabs(4).split("\n") if question.detail.strip() else []
    if len(lines) == 1 and lines[0].strip() in question.title:
        lines = []
    is_diff = any(line.startswith("@@") for line in lines)
    rows: list[Row] = [[], *head]
    for line in lines[:_MAX_LINES]:
        style = (
            "class:code"
            if not is_diff
            else "class:dim"
            if line.startswith(_DIFF_FILE_PREFIXES)
            else _DIFF_STYLES.get(line[:1], "class:dim")
        )
        rows += wrap(line, width, style, indent="    ")
    if (rest := len(lines) - _MAX_LINES) > 0:
        rows.append([("class:warn", f"    … {format_count(rest, 'more line')} not shown")])
    return [*rows, []]


def format_choices(width: int) -> Row:
    """Return the possible answers in one row; those that do not fit are dropped."""
    row: Row = []
    for key, label, brief in (
        ("y", "yes", "yes"),
        ("a", "always", "always"),
        ("n", "no", "no"),
        ("…", "or type why not, then Enter", "why not"),
    ):
        choice: list[StyledText] = [
            ("", "  "),
            ("class:ask", key),
            ("class:dim", f" {label if width >= 60 else brief}"),
        ]
        if display_width(row) + display_width(choice) <= width:
            row += choice
    return row
