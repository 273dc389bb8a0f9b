"""Rich renderables for the demo: one line per request, first without segue, then with it.

Lines that do not fit the width are truncated at their end; number, provider and verdict are always complete.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.rule import Rule
from rich.text import Text

from segue.cli.demo_run import Call, Finding, ReasoningDropped, Step, list_targets, sum_steps

_API_WIDTH = max(len(api) for api, _ in list_targets())
_NUMBER_WIDTH = len("10, 12")
_ID_WIDTH = 25
_NAME_WIDTH = 11
# Below this width the column with the id is dropped.
_ID_COLUMN_WIDTH = 84
_MARKS = {"result": "", "error": " (failed)", "cancelled": " (cancelled)"}


class _ByWidth:
    """A renderable that depends on the width."""

    def __init__(self, make: Callable[[int], Iterable[RenderableType]]) -> None:
        self._make = make

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield Group(*self._make(options.max_width))


def render_opening() -> RenderableType:
    """Return the introduction."""
    count = len(dict(list_targets()))
    about = f"One agent's task with five tools, sent through {count} providers and back: a new one at every request."
    return Group(
        _heading(Text("segue demo", "bold")),
        Text(about),
        Text("Emulated providers check each request by the rules of the real ones. No key, no network.", "dim"),
    )


def render_half(steps: Sequence[Step], *, naive: bool) -> list[RenderableType]:
    """Return the heading of a half, then its requests; without segue, repeated refusals are one line."""
    return _render_naive(steps) if naive else _render_segue(steps)


def render_changes(steps: Sequence[Step]) -> RenderableType:
    """Render what segue changed in these requests, grouped."""
    totals = sum_steps(steps)
    cancelled = sum(call.outcome == "cancelled" for step in steps for call in step.calls)
    results = f"{totals.calls} tool calls, each with exactly one result; {cancelled} cancelled call was given one"
    rows = [
        ("results", results),
        ("ids", f"call ids rewritten {totals.remapped} times to the format of the next provider"),
        *_group_findings(steps),
        ("cache", f"{totals.kept} of {totals.before} messages sent before were sent unchanged: prompt caches hit"),
    ]
    lines = (_line(Text.assemble((f"{name:<{_NAME_WIDTH}}", "cyan"), text)) for name, text in rows)
    return Group(_heading(Text("What segue did", "bold")), *lines)


def render_ending(*, naive: bool) -> RenderableType:
    """Render a hint what to try next."""
    command = "segue demo" if naive else 'segue run --emulated -m moonshot "List the files here"'
    return Text.assemble("Try it: ", (command, "bold"))


# -------------------------------------------------------------------------------------------------------------- halves


def _render_naive(steps: Sequence[Step]) -> list[RenderableType]:
    rows: dict[tuple[str, str, int, str], list[Step]] = {}
    for step in steps:
        rows.setdefault((step.api, step.verdict, step.status, step.error), []).append(step)
    return [
        Group(_half_heading("Without segue, only the field names converted", steps)),
        *(_line(_naive_row(row)) for row in rows.values()),
    ]


def _naive_row(steps: Sequence[Step]) -> Text:
    step = steps[0]
    numbers = ", ".join(str(each.number) for each in steps)
    if step.verdict == "accepted":
        return _row(numbers, step, Text("accepted", "green"))
    return _row(numbers, step, Text.assemble((f"{step.status} ", "bold red"), (_flat(step.error), "red")))


def _render_segue(steps: Sequence[Step]) -> list[RenderableType]:
    def header(wide: bool) -> Text:
        indent = " " * (_NUMBER_WIDTH + _API_WIDTH + 5)
        return Text.assemble(indent, _segue_cells("sends", "id of the first call", wide=wide), "the model")

    return [
        Group(_half_heading("With segue, the same task", steps), _line(header, "dim")),
        *map(_segue_row, steps),
    ]


def _segue_row(step: Step) -> RenderableType:
    if step.verdict != "accepted":
        return _line(_naive_row([step]))
    calls = _format_calls(step.calls)
    sent = f"{step.carried} calls" if step.carried else "-"
    model = Text(f"→ {calls}") if calls else Text(f"“{_flat(step.reply_text)}”", "dim")

    def content(wide: bool) -> Text:
        cells = _segue_cells(sent, step.first_id, wide=wide)
        return _row(str(step.number), step, Text.assemble(cells, model))

    return _line(content)


def _segue_cells(sent: str, first_id: str, *, wide: bool) -> Text:
    cells = Text(f"{sent:<10}")
    if wide:
        name = first_id if len(first_id) < _ID_WIDTH - 1 else f"{first_id[: _ID_WIDTH - 3]}…"
        cells.append(f"{name:<{_ID_WIDTH}}", "cyan")
    return cells


def _row(numbers: str, step: Step, text: Text) -> Text:
    mark = Text("✓", "bold green") if step.verdict == "accepted" else Text("✗", "bold red")
    head = Text(f"{numbers:>{_NUMBER_WIDTH}} ", "dim")
    return Text.assemble(head, mark, " ", (f"{step.api:<{_API_WIDTH}}  ", "bold"), text)


def _half_heading(title: str, steps: Sequence[Step]) -> RenderableType:
    totals = sum_steps(steps)
    count = (f"{totals.refused} of {totals.requests} requests refused", "bold red" if totals.refused else "bold green")

    def content(width: int) -> Iterable[RenderableType]:
        fits = len(title) + len(count[0]) + 4 <= width
        yield _heading(Text.assemble((f"{title if fits else title.partition(',')[0]}: ", "bold"), count))

    return _ByWidth(content)


# --------------------------------------------------------------------------------------------------------------- lines


def _line(content: Text | Callable[[bool], Text], style: str = "") -> RenderableType:
    """Render one line, truncated at the width; `content` may depend on whether there is room for the id column."""

    def make(width: int) -> Iterable[RenderableType]:
        line = content.copy() if isinstance(content, Text) else content(width >= _ID_COLUMN_WIDTH)
        line.stylize(style)
        line.truncate(width, overflow="ellipsis")
        yield line

    return _ByWidth(make)


def _heading(title: Text) -> RenderableType:
    return Rule(title, align="left", style="dim")


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
