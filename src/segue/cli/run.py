"""`segue run`: one question, the tools it takes, one answer."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, Any

import click

from segue.cli import options, streams

if TYPE_CHECKING:
    from segue.cli.agent import Agent
    from segue.cli.telling import Teller
    from segue.cli.wishes import Wishes
    from segue.runtime.events import Ended

_ANSWERED, _FAILED, _RETRY, _SIGNALLED = 0, 1, 75, 128


@options.command("run", json_help="One JSON value at the end: text, model, conversation, usage, cost, how it ended.")
@click.argument("prompt", nargs=-1, metavar="[PROMPT]")
@options.agent_options
@click.option("--jsonl", is_flag=True, help="Every event as a line of JSON, as it happens.")
@click.option("-q", "--quiet", is_flag=True, help="Nothing on stderr but what goes wrong.")
@click.pass_context
def command(
    ctx: click.Context, prompt: tuple[str, ...], *, jsonl: bool, quiet: bool, as_json: bool, **wishes: Any
) -> None:
    """Ask a model, let it use tools, and print its answer.

    What stdin holds is put after the PROMPT; without one, or with -, it is the question. Nobody is asked whether a tool
    may change something: what no rule allows is denied, and the model is told. The answer goes to stdout as it comes,
    everything else to stderr.

    Exit codes: 0 answered, 1 failed, 2 bad input or usage, 75 worth retrying, 130 cancelled (Ctrl-C; a second
    one leaves at once).

    \b
      git diff | segue run "Write a commit message"
      segue run -m anthropic/claude-sonnet-5 -m openai/gpt-4.1 "What does this project do?"
      segue run -c --allow "write_file(docs/**)" "Put that into docs/about.md"
    """
    from segue.cli.telling import Lines, Plain, Value
    from segue.cli.wishes import Wishes

    if as_json and jsonl:
        raise click.UsageError("--json and --jsonl are different forms", ctx)
    if getattr(sys, "stdout", None) is None:
        raise streams.Unwritable("can't write to stdout: it is closed")
    asked = _asked(" ".join(prompt), ctx)
    teller: Teller = Value() if as_json else Lines() if jsonl else Plain(quiet=quiet)
    ctx.exit(_run(asked, Wishes.given(ctx, wishes), teller))


# ------------------------------------------------------------------------------------------------------ what is asked


def _asked(prompt: str, ctx: click.Context) -> str:
    """The prompt, and what stdin has to say to it."""
    if prompt == streams.STDIO:
        prompt = ""
    if not prompt.strip():
        return _text(streams.read(streams.STDIO, wanted="a question"))
    stdin = getattr(sys, "stdin", None)
    if stdin is None or stdin.isatty():
        return prompt
    given = _text(streams.read(streams.STDIO, wanted="text", needed=False))
    return f"{prompt}\n\n{given}" if given.strip() else prompt


def _text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise streams.Unreadable(f"stdin is not UTF-8: {error.reason} at byte {error.start:,}") from None


# ------------------------------------------------------------------------------------------------------ until the end


def _run(asked: str, wishes: Wishes, teller: Teller) -> int:
    return asyncio.run(_exchange(asked, wishes, teller))


async def _exchange(asked: str, wishes: Wishes, teller: Teller) -> int:
    from segue.cli.agent import Agent
    from segue.cli.telling import Bill, Opened, guarded

    unwritten: list[Exception] = []
    stop = _Stop()

    def give_up(error: Exception) -> None:
        unwritten.append(error)
        stop()

    def hear(event: Any) -> None:
        bill.hear(event)
        teller.hear(event)

    with _signals(stop) as signalled:
        async with Agent(wishes, listen=guarded(hear, give_up)) as agent:
            bill = Bill(agent.price)
            stop.agent = agent
            teller.opened(
                Opened(model=agent.model, why=agent.why, conversation=agent.conversation, emulated=agent.emulated)
            )
            ended = await agent.ask(asked)
            if unwritten:
                raise unwritten[0]
            teller.ended(ended, bill)
            return _code(ended, signalled)


def _code(ended: Ended, signalled: list[int]) -> int:
    if ended.how == "answered":
        return _ANSWERED
    if ended.how == "cancelled":
        return _SIGNALLED + (signalled[0] if signalled else signal.SIGINT)
    return _RETRY if ended.retryable else _FAILED


class _Stop:
    """Ends what is under way: the exchange, through its session; before there is one, the whole."""

    def __init__(self) -> None:
        self.agent: Agent | None = None
        self._task = asyncio.current_task()

    def __call__(self) -> None:
        if self.agent is not None:
            self.agent.session.cancel()
        elif self._task is not None:
            self._task.cancel()


@contextmanager
def _signals(stop: Callable[[], None]) -> Generator[list[int]]:
    """The first signal stops in good order, the second leaves at once."""
    loop = asyncio.get_running_loop()
    seen: list[int] = []

    def heard(number: int, _: FrameType | None) -> None:
        seen.append(number)
        if len(seen) > 1:
            os._exit(_SIGNALLED + number)
        loop.call_soon_threadsafe(stop)

    kinds = [signal.SIGINT, signal.SIGTERM, *([signal.SIGHUP] if hasattr(signal, "SIGHUP") else [])]
    before = {kind: signal.signal(kind, heard) for kind in kinds}
    try:
        yield seen
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None
    finally:
        for kind, handler in before.items():
            signal.signal(kind, handler)
