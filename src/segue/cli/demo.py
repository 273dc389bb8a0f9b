"""`segue demo`: the same task without segue and with it, on emulated providers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from segue.cli import options, streams

if TYPE_CHECKING:
    from segue.cli.demo_run import Step
    from segue.cli.table import Row

_DEFAULT_PACE = 0.1
_MAX_WIDTH = 100


@options.command("demo")
@click.option("--plain", is_flag=True, help="Print without colours.")
@click.option("--naive", is_flag=True, help="Run only the first half, without segue.")
@click.option(
    "--pace",
    type=click.FloatRange(0, 5),
    metavar="S",
    help=f"Seconds between lines on a terminal (default {_DEFAULT_PACE}).",
)
@click.pass_context
def command(ctx: click.Context, *, plain: bool, naive: bool, pace: float | None, as_json: bool) -> None:
    """Send an agent's task through every API, without and with segue.

    One conversation with tools changes the provider at every request: first with only the field names converted, then
    converted by segue. The providers are emulated on this machine and refuse what the real ones refuse. Exit code 1: a
    request was refused in the second half, or, with --naive, in the first.
    """
    from segue.cli import demo_run

    halves = {"naive": list(demo_run.run_steps(naive=True))}
    if not naive:
        halves["segue"] = list(demo_run.run_steps())
    if as_json:
        _write_json(halves)
    else:
        _show(halves, plain=plain, pace=pace)
    ctx.exit(1 if any(step.verdict != "accepted" for step in halves["naive" if naive else "segue"]) else 0)


def _write_json(halves: dict[str, list[Step]]) -> None:
    import msgspec

    from segue.cli.demo_run import sum_steps

    value = {name: {"steps": steps, "totals": sum_steps(steps)} for name, steps in halves.items()}
    streams.write(msgspec.json.encode(value), b"\n")


def _show(halves: dict[str, list[Step]], *, plain: bool, pace: float | None) -> None:
    """Print the lines; on a terminal with a pause after each."""
    import sys
    import time

    from segue.cli.table import rows_to_ansi, terminal_width

    pause = (_DEFAULT_PACE if pace is None else pace) if streams.is_terminal(sys.stdout) else 0.0
    for rows in render(halves, min(terminal_width() or _MAX_WIDTH, _MAX_WIDTH)):
        streams.write(rows_to_ansi(rows, colour=False if plain else None))
        time.sleep(pause)


def render(halves: dict[str, list[Step]], width: int) -> list[list[Row]]:
    """Return the output in order: lines that appear together."""
    from segue.cli import demo_view

    scenes = [demo_view.render_opening(width)]
    for name, steps in halves.items():
        heading, *rows = demo_view.render_half(steps, width, naive=name == "naive")
        scenes += [[heading, rows.pop(0)] if name == "segue" else [heading], *([row] for row in rows)]
    if "segue" in halves:
        scenes.append(demo_view.render_changes(halves["segue"], width))
    return [*scenes, demo_view.render_ending(width, naive="segue" not in halves)]
