"""Rich renderables for the demo's steps, with and without colour.

They adapt to the terminal's width: text that does not fit beside something goes below it, or is dropped.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.padding import Padding
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from segue.cli.demo_journey import Call, Finding, Step, list_stops, sum_steps
from segue.cli.demo_task import TASK, TOOLS

__all__ = ["render_ending", "render_opening", "render_step"]

_SHORT_ID = len("hist_tool_") + 6
_WIRE_ID = 22
_TOOL_WIDTH = max(len(tool["function"]["name"]) for tool in TOOLS)
_INDENT = 4
# Below these widths a call is shown without its canonical id, and without any id.
_BOTH_IDS_WIDTH, _ONE_ID_WIDTH = 76, 54
_ALL_COLUMNS_WIDTH = 78
_COLUMNS = ("calls", "results", "synthetic", "remapped", "cached")
# The marks carry the meaning without colour.
_OUTCOMES = {"result": ("✓", "green"), "error": ("!", "yellow"), "cancelled": ("+", "magenta")}
_VERDICT_STYLES = {"accepted": ("✓ accepted", "bold green"), "refused": ("✗ refused", "bold red")}
_CONFUSED = ("✗ confused", "bold red")
_VERDICT_WIDTH = max(len(text) for text, _ in (*_VERDICT_STYLES.values(), _CONFUSED))
_REASONING_FINDING = re.compile(r"reasoning of (?P<maker>\S+) (?P<rest>dropped: .*)")


class _ByWidth:
    """A renderable that depends on the width."""

    def __init__(self, make: Callable[[int], Iterable[RenderableType]]) -> None:
        self._make = make

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield Group(*self._make(options.max_width))


def render_opening(*, naive: bool) -> RenderableType:
    """The introduction: task, providers, legend."""
    method = "copied field by field" if naive else "converted by segue"
    about = f"One task, five tools, {len(dict(list_stops()))} providers, forward and back; {method}."

    def content(width: int) -> Iterable[RenderableType]:
        ids = (
            "canonical id, id on this wire, "
            if width >= _BOTH_IDS_WIDTH
            else "id on this wire, "
            if width >= _ONE_ID_WIDTH
            else ""
        )
        legend = Text(f"Each call: {ids}", "dim")
        for position, (outcome, (mark, style)) in enumerate(_OUTCOMES.items()):
            legend.append(" or " if position else "").append(f"{mark} {outcome}", style)
        yield _heading("segue demo --naive" if naive else "segue demo")
        yield Text(about)
        yield Text("Strict emulated providers check each request.", "dim")
        yield legend
        yield ""
        yield _rows([("user", Text(TASK, "italic"))], first=len("user "))
        yield ""

    return _ByWidth(content)


def render_step(step: Step) -> RenderableType:
    """One request: provider, calls in the history, verdict, findings, and the model's reply."""
    remapped = f", {step.remapped} remapped" if step.remapped else ""
    carried = f"{_format_count(step.carried, 'call')}{remapped}" if step.carried else ""
    title = Text.assemble((f"{step.number:>2}  ", "dim"), (step.api, "bold cyan"), (f"  {step.model}", "dim"))
    full_title = Text.assemble(title, (f"  sends {carried}", "dim")) if carried else title

    def content(width: int) -> Iterable[RenderableType]:
        fits = full_title.cell_len + 2 + _VERDICT_WIDTH <= width
        head = Table.grid(expand=True, padding=(0, 1))
        head.add_column(overflow="ellipsis", no_wrap=True)
        head.add_column(justify="right", no_wrap=True, min_width=_VERDICT_WIDTH)
        head.add_row(full_title if fits else title, _format_verdict(step.verdict))
        yield head
        yield _indent(_rows([*([] if fits else [("sends", Text(carried, "dim"))]), *_step_rows(step)]))
        if step.calls:
            yield _indent(_calls(step.calls, width))
        if step.user:
            yield _indent(_rows([("user", Text(step.user, "italic"))]))
        yield ""

    return _ByWidth(content)


def _step_rows(step: Step) -> Iterable[tuple[str | Text, Text]]:
    if step.error:
        rules = f"{', '.join(step.rules)}: " if step.rules else ""
        yield Text(str(step.status), "red"), Text(f"{rules}{step.error}", "red")
    if step.rescued:
        yield "with segue", Text("✓ the converted request is accepted", "green")
    for kind, text in _group_findings(step.findings):
        yield Text(kind, "yellow"), Text(text)
    if step.before:
        yield "prompt cache", Text(f"{step.kept} of {step.before} earlier messages unchanged", "dim")
    if step.reply_text or step.thought:
        thinks = ("thinks, " if step.reply_text else "thinks", "dim") if step.thought else ""
        yield "model", Text.assemble(thinks, step.reply_text)


def render_ending(journey: Sequence[Step], *, naive: bool) -> RenderableType:
    """The summary table and hints."""
    other = "segue demo" if naive else "segue demo --naive"
    hints = ("\nTry it: ", (other, "bold"), "\n        ", ("segue emulate anthropic --port 8080", "bold"))

    def content(width: int) -> Iterable[RenderableType]:
        yield _heading("Summary")
        yield _naive_table(journey) if naive else _summary_table(journey, wide=width >= _ALL_COLUMNS_WIDTH)
        failed = [step for step in journey if step.verdict != "accepted"]
        if failed and all(step.rescued for step in failed):
            yield Text(f"\nConverted by segue, each of these {len(failed)} requests is accepted.", "green")
        yield Text.assemble(*hints)

    return _ByWidth(content)


def _summary_table(journey: Sequence[Step], *, wide: bool) -> Table:
    heads = _COLUMNS if wide else ("calls", "results", "remapped")
    totals = sum_steps(journey)
    kept = f"{totals.kept}/{totals.before}"
    sums = dict(zip(_COLUMNS, (totals.calls, totals.results, totals.synthetic, totals.remapped, kept), strict=True))
    table = _table(heads, numbers=True)
    for step in journey:
        cached = f"{step.kept}/{step.before}" if step.before else ""
        numbers = (len(step.calls), step.results, step.synthetic, step.remapped, cached)
        row = dict(zip(_COLUMNS, map(str, numbers), strict=True))
        table.add_row(f"{step.number:>2} {step.api}", *(row[head] for head in heads), _format_verdict(step.verdict))
    table.add_row(_request_count(journey), *(Text(str(sums[head]), "bold") for head in heads), _refused_count(journey))
    return table


def _naive_table(journey: Sequence[Step]) -> Table:
    """The summary table of `--naive`: status, violated rules, verdict."""
    table = _table(("status", "violates"))
    for step in journey:
        rules = Text(", ".join(step.rules), no_wrap=True, overflow="ellipsis")
        table.add_row(f"{step.number:>2} {step.api}", str(step.status), rules, _format_verdict(step.verdict))
    table.add_row(_request_count(journey), "", "", _refused_count(journey))
    return table


def _table(heads: Iterable[str], *, numbers: bool = False) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    table.add_column("request", no_wrap=True)
    for head in heads:
        table.add_column(head, justify="right" if numbers else "left")
    table.add_column("verdict", no_wrap=True, min_width=_VERDICT_WIDTH)
    return table


def _request_count(journey: Sequence[Step]) -> Text:
    return Text(f"{len(journey)} requests", "bold")


def _refused_count(journey: Sequence[Step]) -> Text:
    refused = sum_steps(journey).refused
    return Text(f"{refused} refused", "bold red" if refused else "bold green")


def _heading(title: str) -> RenderableType:
    return Rule(Text(title, "bold"), align="left", style="dim")


def _indent(content: RenderableType) -> RenderableType:
    return Padding(content, (0, 0, 0, _INDENT))


def _rows(rows: Iterable[tuple[str | Text, Text]], first: int = _TOOL_WIDTH) -> Table:
    """A grid with labels on the left and texts on the right."""
    table = Table.grid(padding=(0, 1))
    table.add_column(style="dim", no_wrap=True, min_width=first)
    table.add_column()
    for row in rows:
        table.add_row(*row)
    return table


def _format_verdict(verdict: str) -> Text:
    return Text(*_VERDICT_STYLES.get(verdict, _CONFUSED))


def _format_count(count: int, word: str) -> str:
    return f"{count} {word}{'' if count == 1 else 's'}"


def _one_line(text: str, style: str = "") -> Text:
    """One line, truncated at the end of its column."""
    return Text(" ".join(text.split()), style, no_wrap=True, overflow="ellipsis")


def _calls(calls: Sequence[Call], width: int) -> RenderableType:
    table = Table.grid(padding=(0, 1))
    table.add_column(width=_TOOL_WIDTH, no_wrap=True, overflow="ellipsis")
    if width >= _BOTH_IDS_WIDTH:
        table.add_column(style="dim", no_wrap=True)
    if width >= _ONE_ID_WIDTH:
        table.add_column(style="cyan", width=_WIRE_ID, no_wrap=True, overflow="ellipsis")
    table.add_column()
    for call in calls:
        mark, style = _OUTCOMES[call.outcome]
        canonical = [f"{call.canonical_id[:_SHORT_ID]}…"] if width >= _BOTH_IDS_WIDTH else []
        wire = [_one_line(call.wire_id)] if width >= _ONE_ID_WIDTH else []
        table.add_row(call.tool, *canonical, *wire, _one_line(f"{mark} {call.result}", style))
    return table


def _group_findings(findings: Iterable[Finding]) -> list[tuple[str, str]]:
    """Kind and text of each finding; findings about reasoning of several providers are merged."""
    makers: dict[str, list[str]] = {}
    counts: Counter[tuple[str, str]] = Counter()
    for found in findings:
        match = _REASONING_FINDING.fullmatch(found.message)
        if match is None:
            counts[found.kind, found.message] += 1
        elif match["maker"] not in makers.setdefault(match["rest"], []):
            makers[match["rest"]].append(match["maker"])
    merged = [("reasoning", f"of {', '.join(names)} {rest}") for rest, names in makers.items()]
    return merged + [(kind, text if count == 1 else f"{text} (×{count})") for (kind, text), count in counts.items()]
