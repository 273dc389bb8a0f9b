"""`segue demo`: the main job without key or network, printed step by step."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from segue.cli import options, streams

if TYPE_CHECKING:
    from rich.console import RenderableType

    from segue.cli.demo_journey import Step


_DEFAULT_PACE = 0.25


@options.command("demo")
@click.option("--plain", is_flag=True, help="No colours.")
@click.option("--naive", is_flag=True, help="Send the history unconverted, to see what breaks.")
@click.option(
    "--pace", type=click.FloatRange(0, 5), metavar="S", help="Seconds between steps on a terminal (default 0.25)."
)
@click.option("--svg", type=click.Path(path_type=Path), metavar="FILE", help="Also write an animated recording.")
@click.pass_context
def command(
    ctx: click.Context, *, plain: bool, naive: bool, pace: float | None, svg: Path | None, as_json: bool
) -> None:
    """Carry one agent's task through every supported API and back.

    Each request goes to an emulated provider on loopback, which rejects what the real one rejects; nothing leaves this
    machine. Exit code 1 if a request was rejected.
    """
    if svg is not None:
        streams.check_writable(str(svg))
    journey = list(_run_as_json(naive=naive)) if as_json else list(_run_on_screen(plain=plain, naive=naive, pace=pace))
    if svg is not None:
        from segue.cli.recording import render_svg

        streams.replace_file(str(svg), render_svg(_recording_scenes(journey, naive=naive)).encode())
    ctx.exit(1 if any(step.verdict != "accepted" for step in journey) else 0)


def _run_as_json(*, naive: bool) -> list[Step]:
    import msgspec

    from segue.cli import demo_journey

    journey = list(demo_journey.run_steps(naive=naive))
    streams.write(msgspec.json.encode({"steps": journey, "totals": demo_journey.sum_steps(journey)}), b"\n")
    return journey


def _run_on_screen(*, plain: bool, naive: bool, pace: float | None) -> Iterator[Step]:
    """Run the demo and print each step; on a terminal with a pause after each."""
    import sys
    import time

    from segue.cli import demo_journey, demo_view
    from segue.cli.screen import Screen

    screen = Screen(plain=plain)
    pause = (_DEFAULT_PACE if pace is None else pace) if streams.is_terminal(sys.stdout) else 0.0
    journey: list[Step] = []
    screen.show(demo_view.render_opening(naive=naive))
    for step in demo_journey.run_steps(naive=naive):
        journey.append(step)
        screen.show(demo_view.render_step(step))
        time.sleep(pause)
        yield step
    screen.show(demo_view.render_ending(journey, naive=naive))


def _recording_scenes(journey: list[Step], *, naive: bool) -> list[RenderableType]:
    """The scenes of the recording, in order."""
    from segue.cli import demo_view

    steps = map(demo_view.render_step, journey)
    return [demo_view.render_opening(naive=naive), *steps, demo_view.render_ending(journey, naive=naive)]
