"""How the demo looks: rich renderables made from the journey's values, the same with and without colour.

They fit the width that there is: what does not stand beside something goes below it, or is left out.
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

from segue.cli.demo_journey import Call, Finding, Step, route, total
from segue.cli.demo_task import TASK, TOOLS

__all__ = ["ending", "opening", "step_view"]

_SHORT_ID = len("hist_tool_") + 6
_WIRE_ID = 22
_TOOL_WIDTH = max(len(tool["function"]["name"]) for tool in TOOLS)
_INDENT = 4
# Where there is less room, a call is told without its canonical id, and without any id at all.
_BOTH_IDS, _ONE_ID = 76, 54
_ALL_COLUMNS = 78
_NUMBERS = ("calls", "results", "synthetic", "respelled", "cached")
# The marks say it without colour.
_OUTCOMES = {"result": ("✓", "green"), "error": ("!", "yellow"), "cancelled": ("+", "magenta")}
_VERDICTS = {"accepted": ("✓ accepted", "bold green"), "refused": ("✗ refused", "bold red")}
_CONFUSED = ("✗ garbled", "bold red")
_VERDICT_WIDTH = max(len(words) for words, _ in (*_VERDICTS.values(), _CONFUSED))
_REASONING = re.compile(r"reasoning of (?P<maker>\S+) (?P<rest>can't go to .*)")


class _Fitted:
    """What looks different at different widths."""

    def __init__(self, make: Callable[[int], Iterable[RenderableType]]) -> None:
        self._make = make

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield Group(*self._make(options.max_width))


def opening(*, naive: bool) -> RenderableType:
    """What is about to be carried."""
    way = "copied field by field, as it is" if naive else "carried by segue"
    about = f"One task, five tools, {len(dict(route()))} providers, forward and back; {way}."

    def made(width: int) -> Iterable[RenderableType]:
        ids = (
            "canonical id, id on this wire, " if width >= _BOTH_IDS else "id on this wire, " if width >= _ONE_ID else ""
        )
        legend = Text(f"A call: {ids}", "dim")
        for place, (outcome, (mark, style)) in enumerate(_OUTCOMES.items()):
            legend.append(" or " if place else "").append(f"{mark} {outcome}", style)
        yield _head("segue demo --naive" if naive else "segue demo")
        yield Text(about)
        yield Text("Strict providers on loopback judge each request.", "dim")
        yield legend
        yield ""
        yield _rows([("user", Text(TASK, "italic"))], first=len("user "))
        yield ""

    return _Fitted(made)


def step_view(step: Step) -> RenderableType:
    """One request: who gets it and what it carries, the verdict, what the model does, and what was repaired."""
    respelled = f", {step.remapped} respelled" if step.remapped else ""
    carried = f"{_counted(step.carried, 'call')}{respelled}" if step.carried else ""
    title = Text.assemble((f"{step.number:>2}  ", "dim"), (step.api, "bold cyan"), (f"  {step.model}", "dim"))
    beside = Text.assemble(title, (f"  carries {carried}", "dim")) if carried else title

    def made(width: int) -> Iterable[RenderableType]:
        fits = beside.cell_len + 2 + _VERDICT_WIDTH <= width
        head = Table.grid(expand=True, padding=(0, 1))
        head.add_column(overflow="ellipsis", no_wrap=True)
        head.add_column(justify="right", no_wrap=True, min_width=_VERDICT_WIDTH)
        head.add_row(beside if fits else title, _verdict(step.verdict))
        yield head
        yield _indented(_rows([*([] if fits else [("carries", Text(carried, "dim"))]), *_notes(step)]))
        if step.calls:
            yield _indented(_calls(step.calls, width))
        if step.user:
            yield _indented(_rows([("user", Text(step.user, "italic"))]))
        yield ""

    return _Fitted(made)


def _notes(step: Step) -> Iterable[tuple[str | Text, Text]]:
    if step.error:
        rules = f"{', '.join(step.rules)}: " if step.rules else ""
        yield Text(str(step.status), "red"), Text(f"{rules}{step.error}", "red")
    if step.rescued:
        yield "by segue", Text("✓ the same request is accepted", "green")
    for kind, text in _grouped(step.findings):
        yield Text(kind, "yellow"), Text(text)
    if step.before:
        yield "prompt cache", Text(f"{step.kept} of {step.before} earlier messages unchanged", "dim")
    if step.says or step.thought:
        thinks = ("thinks, " if step.says else "thinks", "dim") if step.thought else ""
        yield "model", Text.assemble(thinks, step.says)


def ending(journey: Sequence[Step], *, naive: bool) -> RenderableType:
    """The closing table and the last word."""
    known = "segue demo" if naive else "segue demo --naive"
    hints = ("\nTry it: ", (known, "bold"), "\n        ", ("segue emulate anthropic --port 8080", "bold"))

    def made(width: int) -> Iterable[RenderableType]:
        yield _head("The journey in numbers")
        yield _broken(journey) if naive else _carried(journey, wide=width >= _ALL_COLUMNS)
        failed = [step for step in journey if step.verdict != "accepted"]
        if failed and all(step.rescued for step in failed):
            yield Text(f"\nBy segue each of these {len(failed)} requests was accepted.", "green")
        yield Text.assemble(*hints)

    return _Fitted(made)


def _carried(journey: Sequence[Step], *, wide: bool) -> Table:
    heads = _NUMBERS if wide else ("calls", "results", "respelled")
    totals = total(journey)
    kept = f"{totals.kept}/{totals.before}"
    whole = dict(zip(_NUMBERS, (totals.calls, totals.results, totals.synthetic, totals.remapped, kept), strict=True))
    table = _table(heads, numbers=True)
    for step in journey:
        cached = f"{step.kept}/{step.before}" if step.before else ""
        numbers = (len(step.calls), step.results, step.synthetic, step.remapped, cached)
        row = dict(zip(_NUMBERS, map(str, numbers), strict=True))
        table.add_row(f"{step.number:>2} {step.api}", *(row[head] for head in heads), _verdict(step.verdict))
    table.add_row(_requests(journey), *(Text(str(whole[head]), "bold") for head in heads), _refused(journey))
    return table


def _broken(journey: Sequence[Step]) -> Table:
    """What became of a history that was copied: segue's numbers are not its own."""
    table = _table(("status", "breaks"))
    for step in journey:
        rules = Text(", ".join(step.rules), no_wrap=True, overflow="ellipsis")
        table.add_row(f"{step.number:>2} {step.api}", str(step.status), rules, _verdict(step.verdict))
    table.add_row(_requests(journey), "", "", _refused(journey))
    return table


def _table(heads: Iterable[str], *, numbers: bool = False) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    table.add_column("request", no_wrap=True)
    for head in heads:
        table.add_column(head, justify="right" if numbers else "left")
    table.add_column("verdict", no_wrap=True, min_width=_VERDICT_WIDTH)
    return table


def _requests(journey: Sequence[Step]) -> Text:
    return Text(f"{len(journey)} requests", "bold")


def _refused(journey: Sequence[Step]) -> Text:
    refused = total(journey).refused
    return Text(f"{refused} refused", "bold red" if refused else "bold green")


def _head(title: str) -> RenderableType:
    return Rule(Text(title, "bold"), align="left", style="dim")


def _indented(thing: RenderableType) -> RenderableType:
    return Padding(thing, (0, 0, 0, _INDENT))


def _rows(rows: Iterable[tuple[str | Text, Text]], first: int = _TOOL_WIDTH) -> Table:
    """What it is on the left, and the words on the right, below each other."""
    table = Table.grid(padding=(0, 1))
    table.add_column(style="dim", no_wrap=True, min_width=first)
    table.add_column()
    for row in rows:
        table.add_row(*row)
    return table


def _verdict(verdict: str) -> Text:
    return Text(*_VERDICTS.get(verdict, _CONFUSED))


def _counted(count: int, word: str) -> str:
    return f"{count} {word}{'' if count == 1 else 's'}"


def _cut(text: str, style: str = "") -> Text:
    """One line, cut where its column ends."""
    return Text(" ".join(text.split()), style, no_wrap=True, overflow="ellipsis")


def _calls(calls: Sequence[Call], width: int) -> RenderableType:
    table = Table.grid(padding=(0, 1))
    table.add_column(width=_TOOL_WIDTH, no_wrap=True, overflow="ellipsis")
    if width >= _BOTH_IDS:
        table.add_column(style="dim", no_wrap=True)
    if width >= _ONE_ID:
        table.add_column(style="cyan", width=_WIRE_ID, no_wrap=True, overflow="ellipsis")
    table.add_column()
    for call in calls:
        mark, style = _OUTCOMES[call.outcome]
        canonical = [f"{call.canonical_id[:_SHORT_ID]}…"] if width >= _BOTH_IDS else []
        wire = [_cut(call.wire_id)] if width >= _ONE_ID else []
        table.add_row(call.tool, *canonical, *wire, _cut(f"{mark} {call.result}", style))
    return table


def _grouped(findings: Iterable[Finding]) -> list[tuple[str, str]]:
    """Kind and text; what is said of several makers' reasoning is said once."""
    makers: dict[str, list[str]] = {}
    told: Counter[tuple[str, str]] = Counter()
    for found in findings:
        of = _REASONING.fullmatch(found.message)
        if of is None:
            told[found.kind, found.message] += 1
        elif of["maker"] not in makers.setdefault(of["rest"], []):
            makers[of["rest"]].append(of["maker"])
    left = [("reasoning", f"of {', '.join(names)} {rest}") for rest, names in makers.items()]
    return left + [(kind, text if count == 1 else f"{text} (×{count})") for (kind, text), count in told.items()]
