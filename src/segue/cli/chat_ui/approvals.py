"""Approval prompts for tool calls, their possible answers, and the parsing of answers.

Only `y`, `yes`, `a`, `always` and the number of a wider scope allow a call: any other text, such as a half-typed
message, denies it. A line that starts with a slash is a command, never an answer.
"""

from __future__ import annotations

from segue.cli.chat_ui.styles import Row, StyledText, display_width, wrap
from segue.errors import format_count
from segue.runtime.permissions import PermissionMode
from segue.runtime.tool_types import AllowRules, ApprovalDecision, ApprovalRequest, Denial
from segue.view.sanitize import sanitize, sanitize_line

_MAX_LINES = 400
"""The maximum number of detail lines shown."""
MODE_LABELS: dict[PermissionMode, str] = {"ask": "ask", "edits": "accept edits", "plan": "plan (read-only)"}
_DIFF_FILE_PREFIXES = ("--- ", "+++ ")
_DIFF_STYLES = {"+": "class:added", "-": "class:removed", "@": "class:place"}


def parse_answer(line: str, question: ApprovalRequest) -> ApprovalDecision:
    """Return the decision; the text of any other answer is the reason of a denial."""
    text = line.strip()
    answer = text.lower()
    if answer in ("y", "yes"):
        return "once"
    if answer in ("a", "always"):
        return "always"
    if answer.isascii() and answer.isdigit() and 0 < int(answer[:4]) <= len(question.scopes):
        return AllowRules(question.scopes[int(answer[:4]) - 1].rules)
    head, _, rest = text.partition(" ")
    reason = rest.lstrip(" ,:") if head.lower().rstrip(",:") in ("n", "no") else text
    return Denial(reason) if reason else "no"


def format_decision(decision: ApprovalDecision, title: str) -> tuple[str, str]:
    """Return the line that the chat prints after an answer, and its style."""
    match decision:
        case "once":
            return f"allowed: {title}", "class:dim"
        case "always":
            return f"always allowed: {title}", "class:dim"
        case AllowRules(rules):
            return f"allowed in this chat: {', '.join(rules)}", "class:dim"
        case Denial(reason):
            return f"denied: {reason}", "class:warn"
        case "no":
            return f"denied: {title}", "class:warn"


def format_question(question: ApprovalRequest, width: int) -> list[Row]:
    """Return the question with its details, such as a diff, and the wider scopes that can be allowed."""
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
    choices = [(key, label) for key, label, _ in list_choices(question)]
    if display_width(_join_choices(choices)) > width:
        # The row of choices drops those that do not fit.
        rows += [[], *(_join_choices([choice]) for choice in choices)]
    return [*rows, []]


def list_choices(question: ApprovalRequest) -> list[tuple[str, str, str]]:
    """Return the possible answers: the key, what it means, and the same in one word."""
    wider = [(str(number), sanitize_line(scope.label)) for number, scope in enumerate(question.scopes, 1)]
    if question.tool == "undo":
        keep = ("k", "keep them, undo the rest", "keep")
        return [("y", "yes, overwrite", "yes"), keep, ("n", "no, change nothing", "no")]
    return [
        ("y", "yes", "yes"),
        ("a", f"always {_describe_subject(question)}", "always"),
        *((key, label, label) for key, label in wider),
        ("n", "no", "no"),
        ("…", "or type why not", "why not"),
    ]


def _describe_subject(question: ApprovalRequest) -> str:
    """Return what `always` covers."""
    if question.path:
        return "this file"
    return {
        "shell": "this command",
        "unsandboxed_shell": "this command outside",
        "fetch_url": "this address",
        "task": "this model",
    }.get(question.tool, "this call")


def format_choices(width: int, question: ApprovalRequest) -> Row:
    """Return the possible answers in one row; those that do not fit are shortened or dropped."""
    choices = list_choices(question)
    row = _join_choices([(key, label) for key, label, _ in choices])
    if display_width(row) <= width:
        return row
    kept = [(key, brief) for key, _, brief in choices]
    while display_width(_join_choices(kept)) > width and len(kept) > 1:
        # The explanation first, then the widest scope.
        kept.pop(-1 if kept[-1][0] == "…" or len(kept) <= 3 else -2)
    return _join_choices(kept)


def _join_choices(choices: list[tuple[str, str]]) -> Row:
    parts: list[StyledText] = []
    for key, label in choices:
        parts += [("", "  "), ("class:ask", key), ("class:dim", f" {label}")]
    return parts
