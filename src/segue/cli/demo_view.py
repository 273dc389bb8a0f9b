"""How the demo looks: rich renderables made from the journey's values, the same with and without colour."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from segue.cli.demo_journey import Call, Finding, Step, Totals
from segue.cli.demo_task import TASK, TOOLS

__all__ = ["ending", "opening", "step_view"]

_SHORT_ID = len("hist_tool_") + 6
_WIRE_ID = 22
_TOOL_WIDTH = max(len(tool["function"]["name"]) for tool in TOOLS)
# The marks say it without colour.
_OUTCOMES = {"result": ("✓", "green"), "error": ("!", "yellow"), "cancelled": ("+", "magenta")}
_VERDICTS = {"accepted": ("✓ accepted", "bold green"), "refused": ("✗ refused", "bold red")}
_REASONING = re.compile(r"reasoning of (?P<maker>\S+) (?P<rest>can't go to .*)")
_CONFUSED = ("✗ garbled", "bold red")


def opening(providers: int, *, naive: bool) -> RenderableType:
    """What is about to be carried."""
    way = "copied field by field, as it is" if naive else "carried by segue"
    title = f"segue: one task, five tools, {providers} providers, forward and back; {way}"
    legend = Text("Strict providers on loopback judge each request.\n", "dim")
    legend.append("A call: canonical id, id on this wire, and what came of it:")
    for outcome, (mark, style) in _OUTCOMES.items():
        legend.append(f"  {mark} {outcome}", style)
    task = Text.assemble(("user  ", "dim"), (TASK, "italic"))
    return Group(_head(title), legend, "", task, "")


def step_view(step: Step) -> RenderableType:
    """One request: who gets it and what it carries, the verdict, what the model does, and what was repaired."""
    head = Table.grid(expand=True)
    head.add_column(overflow="ellipsis", no_wrap=True)
    head.add_column(justify="right", no_wrap=True)
    respelled = f", {step.remapped} respelled" if step.remapped else ""
    carries = f"  carries {_counted(step.carried, 'call')}{respelled}" if step.carried else ""
    title = ((f"{step.number:>2}  ", "dim"), (step.api, "bold cyan"), (f"  {step.model}", "dim"), (carries, "dim"))
    head.add_row(Text.assemble(*title), _verdict(step.verdict))
    notes = Table.grid(padding=(0, 1))
    notes.add_column(style="dim", no_wrap=True, min_width=_TOOL_WIDTH)
    notes.add_column()
    if step.error:
        rules = f"{', '.join(step.rules)}: " if step.rules else ""
        notes.add_row(Text(str(step.status), "red"), Text(f"{rules}{step.error}", "red"))
    if step.rescued:
        notes.add_row("by segue", Text("✓ the same request is accepted", "green"))
    for kind, text in _grouped(step.findings):
        notes.add_row(Text(kind, "yellow"), Text(text))
    if step.before:
        notes.add_row("prompt cache", Text(f"{step.kept} of {step.before} earlier messages unchanged", "dim"))
    if step.says or step.thought:
        thinks = ("thinks, " if step.says else "thinks", "dim") if step.thought else ""
        notes.add_row("model", Text.assemble(thinks, step.says))
    parts: list[RenderableType] = [head, Padding(notes, (0, 0, 0, 4))]
    if step.calls:
        parts.append(Padding(_calls(step.calls), (0, 0, 0, 4)))
    if step.user:
        parts.append(
            Padding(Text.assemble((f"{'user':<{_TOOL_WIDTH + 1}}", "dim"), (step.user, "italic")), (0, 0, 0, 4))
        )
    return Group(*parts, "")


def ending(journey: Sequence[Step], totals: Totals) -> RenderableType:
    """The closing table and the last word."""
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    table.add_column("request", no_wrap=True)
    for name in ("calls made", "results", "synthetic", "ids remapped", "cache prefix kept"):
        table.add_column(name, justify="right")
    table.add_column("verdict", no_wrap=True)
    for step in journey:
        kept = f"{step.kept}/{step.before}" if step.before else ""
        numbers = (len(step.calls), step.results, step.synthetic, step.remapped, kept)
        table.add_row(f"{step.number:>2} {step.api}", *map(str, numbers), _verdict(step.verdict))
    kept = f"{totals.kept}/{totals.before}"
    numbers = (totals.calls, totals.results, totals.synthetic, totals.remapped, kept)
    last = Text(f"{totals.refused} refused", "bold red" if totals.refused else "bold green")
    table.add_row(Text(f"{totals.requests} requests", "bold"), *(Text(str(n), "bold") for n in numbers), last)
    hints = ("\nTry it: ", ("segue demo --naive", "bold"), ", ", ("segue emulate anthropic --port 8080", "bold"))
    return Group(_head("The journey in numbers"), table, Text.assemble(*hints))


def _head(title: str) -> RenderableType:
    return Rule(Text(title, "bold"), align="left", style="dim")


def _verdict(verdict: str) -> Text:
    return Text(*_VERDICTS.get(verdict, _CONFUSED))


def _counted(count: int, word: str) -> str:
    return f"{count} {word}{'' if count == 1 else 's'}"


def _cut(text: str, style: str = "") -> Text:
    """One line, cut where its column ends."""
    return Text(" ".join(text.split()), style, no_wrap=True, overflow="ellipsis")


def _calls(calls: Sequence[Call]) -> RenderableType:
    table = Table.grid(padding=(0, 1))
    table.add_column(width=_TOOL_WIDTH, no_wrap=True, overflow="ellipsis")
    table.add_column(style="dim", no_wrap=True)
    table.add_column(style="cyan", width=_WIRE_ID, no_wrap=True, overflow="ellipsis")
    table.add_column()
    for call in calls:
        mark, style = _OUTCOMES[call.outcome]
        short = f"{call.canonical_id[:_SHORT_ID]}…"
        table.add_row(call.tool, short, _cut(call.wire_id), _cut(f"{mark} {call.result}", style))
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
