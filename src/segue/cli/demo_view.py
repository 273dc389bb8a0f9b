"""How the demo looks: rich renderables made from the journey's values, the same with and without colour."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from segue.cli.demo_conversation import CONVERSATION, ODDITIES, ORIGIN
from segue.cli.demo_journey import Call, Copy, Finding, Step, Totals

__all__ = ["carried", "copies_table", "ending", "opening", "step_view"]

_SHORT_ID = len("hist_tool_") + 8
_TOOL_WIDTH, _WIRE_ID_WIDTH, _RULE_WIDTH = 17, 30, 14
# Outcome → mark and colour; the marks say it without colour.
_OUTCOMES = {"result": ("✓", "green"), "error": ("!", "yellow"), "synthetic": ("+", "magenta"), "none": ("?", "red")}


def opening() -> RenderableType:
    """What is about to be carried."""
    calls = sum(len(message.get("tool_calls", ())) for message in CONVERSATION["messages"])
    lines = Text()
    lines.append("A trip is being planned with ")
    lines.append(ORIGIN, "bold cyan")
    lines.append(f": {len(CONVERSATION['messages'])} messages, {calls} tool calls, and what happens in real life:\n")
    lines.append("\n".join(f"  • {oddity}" for oddity in ODDITIES))
    return Group(_head("segue: one conversation with tools, from model to model"), lines, "")


def copies_table(copies: Sequence[Copy]) -> RenderableType:
    """The verdicts on the history as it is, each broken rule with its first example."""
    table = Table.grid(padding=(0, 1))
    table.add_column(no_wrap=True, width=max(len(verdict.api) for verdict in copies))
    table.add_column(no_wrap=True, width=len("✗ refused"))
    table.add_column(no_wrap=True, width=_RULE_WIDTH)
    table.add_column(style="dim")
    for verdict in copies:
        first: tuple[RenderableType, ...] = (verdict.api, _verdict(accepted=verdict.accepted))
        for broken in verdict.rules:
            times = "" if broken.times == 1 else f" ×{broken.times}"
            rule = Text(f"{broken.rule}{times}", "red" if broken.severity == "reject" else "yellow")
            risk = "(risk) " if broken.severity == "risk" else ""
            table.add_row(*first, rule, _cut(f"{risk}{broken.example}"))
            first = ("", "")
    head = _head("Copied as it is: the next request is refused, whoever gets it")
    return Group(head, Padding(table, (0, 0, 1, 3)))


def carried() -> RenderableType:
    """The head of the journey."""
    words = "Every stop reads the bytes of the one before, so ids are new. Below: call, canonical id → wire id, result"
    legend = Text(f"{words}\nMarks:", "dim")
    for outcome in ("result", "error", "synthetic"):
        mark, style = _OUTCOMES[outcome]
        legend.append(f"  {mark} {outcome}", style)
    return Group(_head("Carried by segue: every request is judged by the same rules"), legend, "")


def step_view(step: Step) -> RenderableType:
    """One stop: who gets it, the calls and their results, what was repaired, what happens next."""
    head = Table.grid(expand=True)
    head.add_column(overflow="ellipsis", no_wrap=True)
    head.add_column(justify="right", no_wrap=True)
    title = ((f"{step.number}  ", "dim"), (step.source, "cyan"), " → ", (step.target, "bold cyan"))
    head.add_row(Text.assemble(*title, (f"  {step.model}", "dim")), _verdict(accepted=step.accepted))
    notes = Table.grid(padding=(0, 1))
    notes.add_column(style="dim", no_wrap=True, min_width=_TOOL_WIDTH)
    notes.add_column()
    for violation in step.violations:
        notes.add_row("refused", Text(violation, "red"))
    for kind, text in _grouped(step.findings):
        notes.add_row(Text(kind, "yellow"), Text(text))
    if not step.findings:
        notes.add_row("nothing to repair", "")
    notes.add_row("then", Text(step.then, "italic"))
    return Padding(Group(head, Padding(_calls(step.calls), (0, 0, 0, 3)), Padding(notes, (0, 0, 0, 3))), (0, 0, 1, 0))


def ending(journey: Sequence[Step], totals: Totals) -> RenderableType:
    """The closing table and the last word."""
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    table.add_column("request", no_wrap=True)
    for name in ("calls", "results", "synthetic", "ids remapped"):
        table.add_column(name, justify="right")
    table.add_column("verdict")
    for step in journey:
        made_up = sum(call.outcome == "synthetic" for call in step.calls)
        remapped = sum(call.remapped for call in step.calls)
        numbers = (len(step.calls), step.results, made_up, remapped)
        table.add_row(f"{step.source} → {step.target}", *map(str, numbers), _verdict(accepted=step.accepted))
    numbers = (totals.calls, totals.results, totals.synthetic, totals.remapped)
    last = Text(f"{totals.refused} refused", "bold red" if totals.refused else "bold green")
    table.add_row(Text(f"{totals.requests} requests", "bold"), *(Text(str(n), "bold") for n in numbers), last)
    hint = Text.assemble(
        "\nTry it: ", ("segue convert --to anthropic --model claude-sonnet-4-5 < request.json", "bold")
    )
    return Group(_head("The journey in numbers"), table, hint)


def _head(title: str) -> RenderableType:
    return Rule(Text(title, "bold"), align="left", style="dim")


def _verdict(*, accepted: bool) -> Text:
    return Text("✓ accepted", "bold green") if accepted else Text("✗ refused", "bold red")


def _cut(text: str, style: str = "") -> Text:
    """One line, cut where its column ends."""
    return Text(text, style, no_wrap=True, overflow="ellipsis")


def _calls(calls: Sequence[Call]) -> RenderableType:
    table = Table.grid(padding=(0, 1))
    table.add_column(width=_TOOL_WIDTH, no_wrap=True, overflow="ellipsis")
    table.add_column(style="dim")
    table.add_column(style="dim", no_wrap=True)
    table.add_column(style="cyan", no_wrap=True, overflow="ellipsis", min_width=_WIRE_ID_WIDTH)
    table.add_column()
    for call in calls:
        short = call.canonical_id if len(call.canonical_id) <= _SHORT_ID else f"{call.canonical_id[:_SHORT_ID]}…"
        mark, style = _OUTCOMES[call.outcome]
        table.add_row(call.tool, _cut(short), "→", call.wire_id, _cut(f"{mark} {call.result}", style))
    return table


def _grouped(findings: Iterable[Finding]) -> list[tuple[str, str]]:
    """Kind and text; the subject is named where the message does not."""
    told = (
        (found.kind, found.message if found.subject in found.message else f"{found.subject}: {found.message}")
        for found in findings
    )
    return [(kind, text if count == 1 else f"{text} (×{count})") for (kind, text), count in Counter(told).items()]
