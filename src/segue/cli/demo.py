"""`segue demo`: the same task without segue and with it, on emulated providers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from segue.cli import options, streams

if TYPE_CHECKING:
    from rich.console import RenderableType

    from segue.cli.demo_run import Step


_DEFAULT_PACE = 0.1


@options.command("demo")
@click.option("--plain", is_flag=True, help="Print without colours.")
@click.option("--naive", is_flag=True, help="Run only the first half, without segue.")
@click.option(
    "--pace",
    type=click.FloatRange(0, 5),
    metavar="S",
    help=f"Seconds between lines on a terminal (default {_DEFAULT_PACE}).",
)
@click.option("--svg", type=click.Path(path_type=Path), metavar="FILE", help="Also write an animated recording.")
@click.option(
    "--picture",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Also write a picture of one request, refused and accepted.",
)
@click.pass_context
def command(
    ctx: click.Context,
    *,
    plain: bool,
    naive: bool,
    pace: float | None,
    svg: Path | None,
    picture: Path | None,
    as_json: bool,
) -> None:
    """Send an agent's task through every API, without and with segue.

    One conversation with tools changes the provider at every request: first with only the field names converted, then
    converted by segue. The providers are emulated on this machine and refuse what the real ones refuse. Exit code 1: a
    request was refused in the second half, or, with --naive, in the first.
    """
    from segue.cli import demo_run

    for file in (svg, picture):
        if file is not None:
            streams.check_writable(str(file))
    halves = {"naive": list(demo_run.run_steps(naive=True))}
    if not naive:
        halves["segue"] = list(demo_run.run_steps())
    if as_json:
        _write_json(halves)
    else:
        _show(_scenes(halves), plain=plain, pace=pace)
    if svg is not None:
        from segue.cli.recording import render_recording

        streams.replace_file(str(svg), render_recording(_scenes(halves)).encode())
    if picture is not None:
        from segue.cli.demo_picture import draw_picture

        streams.replace_file(str(picture), draw_picture().encode())
    ctx.exit(1 if any(step.verdict != "accepted" for step in halves["naive" if naive else "segue"]) else 0)


def _write_json(halves: dict[str, list[Step]]) -> None:
    import msgspec

    from segue.cli.demo_run import sum_steps

    value = {name: {"steps": steps, "totals": sum_steps(steps)} for name, steps in halves.items()}
    streams.write(msgspec.json.encode(value), b"\n")


def _show(scenes: Sequence[RenderableType], *, plain: bool, pace: float | None) -> None:
    """Print the scenes; on a terminal with a pause after each."""
    import sys
    import time

    from segue.cli.screen import Screen

    screen = Screen(plain=plain)
    pause = (_DEFAULT_PACE if pace is None else pace) if streams.is_terminal(sys.stdout) else 0.0
    for scene in scenes:
        screen.show(scene)
        time.sleep(pause)


def _scenes(halves: dict[str, list[Step]]) -> list[RenderableType]:
    """Return the output in order, one renderable per line or block."""
    from segue.cli import demo_view

    scenes = [demo_view.render_opening(), *demo_view.render_half(halves["naive"], naive=True)]
    if "segue" in halves:
        scenes += [*demo_view.render_half(halves["segue"], naive=False), demo_view.render_changes(halves["segue"])]
    return [*scenes, demo_view.render_ending(naive="segue" not in halves)]
