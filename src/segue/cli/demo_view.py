"""The lines of the demo: one per request, first without segue, then with it.

Lines that do not fit the width are truncated at their end; number, provider and verdict are always complete.
"""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Iterator, Sequence

from segue.cli.demo_run import Call, Finding, ReasoningDropped, Step, list_targets, sum_steps
from segue.cli.table import Row
from segue.errors import format_count
from segue.view.fit import display_width, truncate

_API_WIDTH = max(len(api) for api, _ in list_targets())
_NUMBER_WIDTH = len("10, 12")
_ID_WIDTH = 25
_NAME_WIDTH = 11
# Below this width the column with the id is dropped.
_ID_COLUMN_WIDTH = 84
_TRY_IT = "Try it: "
_MARKS = {"result": "", "error": " (failed)", "cancelled": " (cancelled)"}


def render_opening(width: int) -> list[Row]:
    """Return the introduction."""
    count = len(dict(list_targets()))
    about = f"One agent's task with five tools, sent through {count} providers and back: a new one at every request."
    hint = "Emulated providers check each request by the rules of the real ones. No key, no network."
    return [_heading([("bold", "segue demo")], width), *_wrap(about, width), *_wrap(hint, width, "dim")]


def render_half(steps: Sequence[Step], width: int, *, naive: bool) -> list[Row]:
    """Return the heading of a half, then its requests; without segue, repeated refusals are one line."""
    return _render_naive(steps, width) if naive else _render_segue(steps, width)


def render_changes(steps: Sequence[Step], width: int) -> list[Row]:
    """Render what segue changed in these requests, grouped."""
    totals = sum_steps(steps)
    cancelled = sum(call.outcome == "cancelled" for step in steps for call in step.calls)
    results = f"{totals.calls} tool calls, each with exactly one result; {cancelled} cancelled call was given one"
    rows = [
        ("results", results),
        ("ids", f"call ids rewritten {format_count(totals.remapped, 'time')} to the format of the next provider"),
        *_group_findings(steps),
        ("cache", f"{totals.kept} of {totals.before} messages sent before were sent unchanged: prompt caches hit"),
    ]
    lines = (_fit([("cyan", f"{name:<{_NAME_WIDTH}}"), ("", text)], width) for name, text in rows)
    return [_heading([("bold", "What segue did")], width), *lines]


def render_ending(width: int, *, naive: bool) -> list[Row]:
    """Render a hint what to try next."""
    command = "segue demo" if naive else 'segue run --emulated -m moonshot "List the files here"'
    first, *others = textwrap.wrap(command, width - len(_TRY_IT))
    return [[("", _TRY_IT), ("bold", first)], *([("bold", line)] for line in others)]


# -------------------------------------------------------------------------------------------------------------- halves


def _render_naive(steps: Sequence[Step], width: int) -> list[Row]:
    rows: dict[tuple[str, str, int, str], list[Step]] = {}
    for step in steps:
        rows.setdefault((step.api, step.verdict, step.status, step.error), []).append(step)
    heading = _half_heading("Without segue, only the field names converted", steps, width)
    return [heading, *(_fit(_naive_row(row), width) for row in rows.values())]


def _naive_row(steps: Sequence[Step]) -> Row:
    step = steps[0]
    numbers = ", ".join(str(each.number) for each in steps)
    if step.verdict == "accepted":
        return [*_row_head(numbers, step), ("green", "accepted")]
    return [*_row_head(numbers, step), ("bold red", f"{step.status} "), ("red", _flat(step.error))]


def _render_segue(steps: Sequence[Step], width: int) -> list[Row]:
    indent = " " * (_NUMBER_WIDTH + _API_WIDTH + 5)
    titles = [("", indent), *_segue_cells("sends", "id of the first call", width), ("", "the model")]
    header = _fit([("dim", text) for _, text in titles], width)
    return [
        _half_heading("With segue, the same task", steps, width),
        header,
        *(_segue_row(each, width) for each in steps),
    ]


def _segue_row(step: Step, width: int) -> Row:
    if step.verdict != "accepted":
        return _fit(_naive_row([step]), width)
    calls = _format_calls(step.calls)
    sent = format_count(step.carried, "call") if step.carried else "-"
    model = ("", f"→ {calls}") if calls else ("dim", f"“{_flat(step.reply_text)}”")
    return _fit([*_row_head(str(step.number), step), *_segue_cells(sent, step.first_id, width), model], width)


def _segue_cells(sent: str, first_id: str, width: int) -> Row:
    cells: Row = [("", f"{sent:<10}")]
    if width >= _ID_COLUMN_WIDTH:
        name = first_id if len(first_id) < _ID_WIDTH - 1 else f"{first_id[: _ID_WIDTH - 3]}…"
        cells.append(("cyan", f"{name:<{_ID_WIDTH}}"))
    return cells


def _row_head(numbers: str, step: Step) -> Row:
    mark = ("bold green", "✓") if step.verdict == "accepted" else ("bold red", "✗")
    return [("dim", f"{numbers:>{_NUMBER_WIDTH}} "), mark, ("", " "), ("bold", f"{step.api:<{_API_WIDTH}}  ")]


def _half_heading(title: str, steps: Sequence[Step], width: int) -> Row:
    totals = sum_steps(steps)
    count = f"{totals.refused} of {format_count(totals.requests, 'request')} refused"
    fits = len(title) + len(count) + 4 <= width
    heading = f"{title if fits else title.partition(',')[0]}: "
    return _heading([("bold", heading), ("bold red" if totals.refused else "bold green", count)], width)


# --------------------------------------------------------------------------------------------------------------- lines


def _fit(row: Row, width: int) -> Row:
    """Truncate a row at the width."""
    fitted: Row = []
    for style, text in row:
        room = width - sum(display_width(each) for _, each in fitted)
        if display_width(text.rstrip()) > room:
            return [*fitted, (style, truncate(text, room, keeps_blanks=True))]
        fitted.append((style, text))
    return fitted


def _heading(title: Row, width: int) -> Row:
    rule = width - sum(display_width(text) for _, text in title) - 1
    return [*title, ("dim", f" {'─' * rule}")] if rule > 0 else _fit(title, width)


def _wrap(text: str, width: int, style: str = "") -> list[Row]:
    return [[(style, line)] for line in textwrap.wrap(text, width)]


# ------------------------------------------------------------------------------------------------------------- content


def _flat(text: str) -> str:
    return " ".join(text.split())


def _format_calls(calls: Sequence[Call]) -> str:
    counts = Counter(f"{call.tool}{_MARKS[call.outcome]}" for call in calls)
    return ", ".join(name if count == 1 else f"{name} ×{count}" for name, count in counts.items())


def _group_findings(steps: Sequence[Step]) -> Iterator[tuple[str, str]]:
    """Yield kind and text of each finding, with the number of requests that have it."""
    counts: Counter[tuple[str, str]] = Counter()
    for step in steps:
        counts.update(list(dict.fromkeys((finding.kind, _generalize(finding)) for finding in step.findings)))
    for (kind, text), count in counts.items():
        yield kind, f"{count}× {text}"


def _generalize(finding: Finding) -> str:
    """Return the message of a finding without the names of models."""
    if isinstance(finding, ReasoningDropped):
        return "reasoning of other providers dropped: only its own provider accepts it"
    return finding.message
