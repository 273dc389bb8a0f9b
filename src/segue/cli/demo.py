"""`segue demo`: the main job with no key and no network, shown as it goes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from segue.cli import options, streams

if TYPE_CHECKING:
    from segue.cli.demo_journey import Step, Totals


@options.command("demo")
@click.option("--plain", is_flag=True, help="No colour, terminal or not.")
@click.pass_context
def command(ctx: click.Context, *, plain: bool, as_json: bool) -> None:
    """Carry one tool conversation through every API there is and back.

    A strict judge of each API reads every request; nothing is sent anywhere. Exit code 1 if one would be refused.
    """
    totals = _tell() if as_json else _show(plain=plain)
    ctx.exit(1 if totals.refused else 0)


def _tell() -> Totals:
    import msgspec

    from segue.cli import demo_journey

    journey = list(demo_journey.steps())
    totals = demo_journey.total(journey)
    story = {"naive": list(demo_journey.copies()), "steps": journey, "totals": totals}
    streams.write(msgspec.json.encode(story), b"\n")
    return totals


def _show(*, plain: bool) -> Totals:
    from segue.cli import demo_journey, demo_view
    from segue.cli.screen import Screen

    screen = Screen(plain=plain)
    screen.show(demo_view.opening())
    screen.show(demo_view.copies_table(list(demo_journey.copies())))
    journey: list[Step] = []
    screen.show(demo_view.carried())
    for step in demo_journey.steps():
        journey.append(step)
        screen.show(demo_view.step_view(step))
    totals = demo_journey.total(journey)
    screen.show(demo_view.ending(journey, totals))
    return totals
