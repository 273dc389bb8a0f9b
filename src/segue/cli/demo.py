"""`segue demo`: the main job with no key and no network, shown as it goes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from segue.cli import options, streams

if TYPE_CHECKING:
    from segue.cli.demo_journey import Step, Totals


_PACE = 0.25


@options.command("demo")
@click.option("--plain", is_flag=True, help="No colour, terminal or not.")
@click.option("--naive", is_flag=True, help="Send the history on as it is, to see what breaks.")
@click.option(
    "--pace", type=click.FloatRange(0, 5), metavar="S", help="Seconds a step on a terminal; 0.25 if left out."
)
@click.option("--svg", type=click.Path(path_type=Path), metavar="FILE", help="Also write a recording, to be looked at.")
@click.pass_context
def command(
    ctx: click.Context, *, plain: bool, naive: bool, pace: float | None, svg: Path | None, as_json: bool
) -> None:
    """Carry one agent's task through every API there is and back.

    Each request goes to a strict provider on loopback, which refuses what the real one refuses; nothing leaves this
    machine. Exit code 1 if a request was refused.
    """
    totals = _tell(naive=naive) if as_json else _show(plain=plain, naive=naive, pace=pace, svg=svg)
    ctx.exit(1 if totals.refused else 0)


def _tell(*, naive: bool) -> Totals:
    import msgspec

    from segue.cli import demo_journey

    journey = list(demo_journey.steps(naive=naive))
    totals = demo_journey.total(journey)
    streams.write(msgspec.json.encode({"steps": journey, "totals": totals}), b"\n")
    return totals


def _show(*, plain: bool, naive: bool, pace: float | None, svg: Path | None) -> Totals:
    """On a terminal step by step, so that it can be followed."""
    import sys
    import time

    from segue.cli import demo_journey, demo_view
    from segue.cli.screen import Screen

    screen = Screen(plain=plain)
    pause = (_PACE if pace is None else pace) if streams.on_terminal(sys.stdout) else 0.0
    scenes = [demo_view.opening(len(dict(demo_journey.route())), naive=naive)]
    screen.show(scenes[0])
    journey: list[Step] = []
    for step in demo_journey.steps(naive=naive):
        journey.append(step)
        scenes.append(demo_view.step_view(step))
        screen.show(scenes[-1])
        time.sleep(pause)
    totals = demo_journey.total(journey)
    scenes.append(demo_view.ending(journey, totals))
    screen.show(scenes[-1])
    if svg is not None:
        from segue.cli.recording import recorded

        streams.replace_file(str(svg), recorded(scenes).encode())
    return totals
