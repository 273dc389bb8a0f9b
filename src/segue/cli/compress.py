"""`segue compress`: makes a stored conversation fit a budget of tokens, or takes the last compression back."""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import click

from segue.cli import options, stored, streams

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from segue.canonical.blocks import Message
    from segue.canonical.compress import Compressed
    from segue.store.base import HistoryStore

# As in `canonical.compress.STRATEGIES`, which is not loaded for `--help`.
STRATEGIES = ("truncate-results", "drop-oldest", "middle-out", "dense")


@options.command("compress")
@options.id_argument
@click.option("--strategy", type=click.Choice(STRATEGIES), help="What to leave out.")
@click.option(
    "--budget", metavar="N", type=click.IntRange(0, 1_000_000_000), help="How many tokens it may cost, by estimate."
)
@click.option(
    "--summarise", metavar="COMMAND", help="For middle-out: reads the middle as Markdown, writes what is told of it."
)
@click.option("--dry-run", is_flag=True, help="Only say what would be done.")
@click.option("--undo", is_flag=True, help="Take the last compression back: what it left out is there again.")
@click.pass_context
def command(
    ctx: click.Context,
    id: str,
    *,
    strategy: str | None,
    budget: int | None,
    summarise: str | None,
    dry_run: bool,
    undo: bool,
    as_json: bool,
) -> None:
    """Make a stored conversation fit a budget of tokens. The original stays in the store.

    Never half an interaction is left out, and every API takes the rest. Exit code 1: the budget could not be
    reached; what could be done was done.

    \b
      segue compress 1nfm --strategy dense --budget 20000 --dry-run
      segue compress 1nfm --undo
    """
    if undo:
        if any((strategy, budget is not None, summarise, dry_run)):
            raise click.UsageError("--undo goes alone", ctx)
        with stored.opened() as store:
            _undo(store, store.find(id), as_json=as_json)
        return
    if strategy is None or budget is None:
        raise click.UsageError("--strategy and --budget are needed, or --undo", ctx)
    if summarise is None and strategy == "middle-out":
        raise click.UsageError("middle-out needs --summarise COMMAND", ctx)
    if summarise is not None and strategy != "middle-out":
        raise click.UsageError(f"{strategy} summarises nothing; --summarise goes with middle-out", ctx)
    with stored.opened() as store:
        name = store.find(id)
        teller = _teller(summarise) if summarise is not None else None
        made = _made(store, name, strategy, budget, teller, dry_run=dry_run)
    with nullcontext() if dry_run else streams.done("compressed", name):
        _tell(name, made, as_json=as_json, strategy=strategy, budget=budget, dry_run=dry_run)
    ctx.exit(0 if made.reached else 1)


def _made(
    store: HistoryStore,
    name: str,
    strategy: str,
    budget: int,
    summarise: Callable[[Sequence[Message]], str] | None,
    *,
    dry_run: bool,
) -> Compressed:
    if dry_run:
        from segue.store.timeline import replayed

        return replayed(store.events(name)).chat.compress(strategy, budget, summarise=summarise)
    from segue.store.conversation import StoredConversation

    with StoredConversation(store, name) as chat:
        return chat.compress(strategy, budget, summarise=summarise)


def _undo(store: HistoryStore, name: str, *, as_json: bool) -> None:
    from segue.store.conversation import StoredConversation

    with StoredConversation(store, name) as chat:
        chat.undo()
        count = len(chat.messages)
    with streams.done("taken back", name):
        if as_json:
            import msgspec

            streams.write(msgspec.json.encode({"id": name, "messages": count}), b"\n")
        else:
            from segue.view.words import counted

            streams.write(f"{name}: {counted(count, 'message')} again\n")


def _teller(command: str) -> Callable[[Sequence[Message]], str]:
    """A program that is given messages as Markdown and tells them shorter."""
    import shlex
    import subprocess

    def told(messages: Sequence[Message]) -> str:
        from segue.view.markdown import markdown_messages

        try:
            ended = subprocess.run(
                shlex.split(command), input=markdown_messages(messages).encode(), stdout=subprocess.PIPE, check=False
            )
        except (OSError, ValueError) as error:
            raise click.ClickException(f"--summarise: can't run {command}: {streams.reason(error)}") from None
        try:
            text = ended.stdout.decode().strip()
        except UnicodeDecodeError:
            text, said = "", "did not write UTF-8"
        else:
            said = "said nothing"
        if ended.returncode or not text:
            said = f"ended with {ended.returncode}" if ended.returncode else said
            raise click.ClickException(f"--summarise: {command} {said}; nothing was compressed")
        return text

    return told


def _left(made: Compressed) -> str:
    """How many messages there are still, where there are fewer."""
    gone = sum(not note.after for note in made.notes)
    return f"; {len(made.messages):,} of {len(made.messages) + gone:,} messages are left" if gone else ""


def _tell(name: str, made: Compressed, *, as_json: bool, **asked: Any) -> None:
    import msgspec

    if as_json:
        told = {"before": made.before, "tokens": made.tokens, "reached": made.reached, "reason": made.reason}
        notes = [str(note) for note in made.notes]
        value = {"id": name, **asked, **told, "messages": len(made.messages), "notes": notes}
        streams.write(msgspec.json.encode(value), b"\n")
        return
    if made.notes:
        from segue.view.words import note_lines

        lines = [*note_lines(made.notes), f"{made.before:,} → {made.tokens:,} tokens{_left(made)}"]
    else:
        lines = [f"{made.tokens:,} tokens: {'it fits already' if made.reached else 'nothing can be left out'}"]
    streams.write("".join(f"{streams.one_line(line)}\n" for line in lines))
    if not made.reached:
        streams.say(f"the budget of {asked['budget']:,} tokens can't be reached: {made.reason}")
