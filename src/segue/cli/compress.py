"""`segue compress`: compresses a stored conversation to a token budget, or undoes the last compression."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import click

from segue.cli import options, streams, user_store
from segue.errors import format_count

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from segue.canonical.blocks import Message
    from segue.canonical.compress import CompressionResult
    from segue.store.base import ConversationStore

# As in `canonical.compress.STRATEGIES`, which is not loaded for `--help`.
STRATEGIES = ("truncate-results", "drop-oldest", "middle-out", "dense")


@options.command("compress")
@options.id_argument
@click.option("--strategy", type=click.Choice(STRATEGIES), help="How to compress; see above.")
@click.option("--budget", metavar="N", type=click.IntRange(0, 1_000_000_000), help="Token budget (estimated tokens).")
@click.option(
    "--summarise",
    metavar="COMMAND",
    help="For middle-out: a command that reads Markdown on stdin and prints a summary.",
)
@click.option("--dry-run", is_flag=True, help="Only print what would be done.")
@click.option("--undo", is_flag=True, help="Undo the last compression and restore the original messages.")
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
    """Compress a stored conversation to a token budget. The original stays in the store.

    Strategies: truncate-results shortens tool results, drop-oldest drops the oldest exchanges, middle-out replaces
    the middle of the conversation with a summary, dense shortens repeated, superseded and stale tool results to one
    line each. A tool call is never separated from its result, and every API accepts the compressed conversation.

    Exit code 1: the budget could not be reached; the conversation is compressed as far as possible.

    \b
      segue compress 1nfm --strategy dense --budget 20000 --dry-run
      segue compress 1nfm --undo
    """
    if undo:
        if any((strategy, budget is not None, summarise, dry_run)):
            raise click.UsageError("--undo can't be combined with other options", ctx)
        with user_store.connect() as store:
            _undo(store, store.find_id(id), as_json=as_json)
        return
    if strategy is None or budget is None:
        raise click.UsageError("give --strategy and --budget, or --undo", ctx)
    if summarise is None and strategy == "middle-out":
        raise click.UsageError("middle-out needs --summarise COMMAND", ctx)
    if summarise is not None and strategy != "middle-out":
        raise click.UsageError(f"--summarise works only with middle-out, not {strategy}", ctx)
    with user_store.connect() as store:
        name = store.find_id(id)
        summariser = _make_summariser(summarise) if summarise is not None else None
        result = _compress(store, name, strategy, budget, summariser, dry_run=dry_run)
    with nullcontext() if dry_run else streams.report_if_unwritten("compressed", name):
        _print_result(name, result, as_json=as_json, strategy=strategy, budget=budget, dry_run=dry_run)
    ctx.exit(0 if result.reached else 1)


def _compress(
    store: ConversationStore,
    name: str,
    strategy: str,
    budget: int,
    summarise: Callable[[Sequence[Message]], str] | None,
    *,
    dry_run: bool,
) -> CompressionResult:
    if dry_run:
        from segue.store.replay import replay_events

        return replay_events(store.events(name)).chat.compress(strategy, budget, summarise=summarise)
    from segue.store.conversation import StoredConversation

    with StoredConversation(store, name) as chat:
        return chat.compress(strategy, budget, summarise=summarise)


def _undo(store: ConversationStore, name: str, *, as_json: bool) -> None:
    from segue.store.conversation import StoredConversation

    with StoredConversation(store, name) as chat:
        chat.undo_compression()
        count = len(chat.messages)
    with streams.report_if_unwritten("compression undone", name):
        if as_json:
            import msgspec

            streams.write(msgspec.json.encode({"id": name, "messages": count}), b"\n")
        else:
            streams.write(f"{name}: compression undone, {format_count(count, 'message')}\n")


def _make_summariser(command: str) -> Callable[[Sequence[Message]], str]:
    """Return a function that summarises messages with an external command: Markdown on stdin, the summary on stdout."""
    import shlex
    from subprocess import PIPE

    from segue.processes import run_child

    def summarise(messages: Sequence[Message]) -> str:
        from segue.view.markdown import render_messages

        try:
            with run_child(shlex.split(command), stdin=PIPE, stdout=PIPE) as process:
                output = process.communicate(render_messages(messages).encode())[0]
        except (OSError, ValueError) as error:
            raise click.ClickException(f"--summarise: can't run {command}: {streams.format_os_error(error)}") from None
        try:
            text = output.decode().strip()
        except UnicodeDecodeError:
            text, problem = "", "did not write UTF-8"
        else:
            problem = "printed nothing"
        if process.returncode or not text:
            problem = f"exited with code {process.returncode}" if process.returncode else problem
            raise click.ClickException(f"--summarise: {command} {problem}; nothing was compressed")
        return text

    return summarise


def _format_remaining(result: CompressionResult) -> str:
    """Return the number of remaining messages, where some were dropped."""
    dropped = sum(not change.after for change in result.changes)
    return f"; {len(result.messages):,} of {len(result.messages) + dropped:,} messages remain" if dropped else ""


def _print_result(name: str, result: CompressionResult, *, as_json: bool, **arguments: Any) -> None:
    import msgspec

    if as_json:
        sizes = {"before": result.before, "tokens": result.tokens, "reached": result.reached, "reason": result.reason}
        notes = [str(change) for change in result.changes]
        value = {"id": name, **arguments, **sizes, "messages": len(result.messages), "notes": notes}
        streams.write(msgspec.json.encode(value), b"\n")
        return
    if result.changes:
        from segue.view.format import format_changes

        lines = [
            *format_changes(result.changes),
            f"{result.before:,} → {format_count(result.tokens, 'token')}{_format_remaining(result)}",
        ]
    else:
        why = "already within the budget" if result.reached else "nothing can be compressed"
        lines = [f"{format_count(result.tokens, 'token')}: {why}"]
    streams.write("".join(f"{streams.format_line_for(line, sys.stdout)}\n" for line in lines))
    if not result.reached:
        streams.print_message(f"the budget of {arguments['budget']:,} tokens can't be reached: {result.reason}")
