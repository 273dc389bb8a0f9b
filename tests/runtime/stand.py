"""Stand-ins for tests of the scheduler: a strict toolbox, tools that do what they are told, loops with a clock of their
own, and conversations with calls to run."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from pathlib import Path
from typing import Any

import jsonschema

import segue
from segue.canonical.blocks import Origin, ToolCall, responses_of
from segue.canonical.request import Reply
from segue.canonical.request import Tool as Declaration
from segue.runtime.book import Book
from segue.runtime.events import Event, dump
from segue.runtime.scheduler import Limits, Scheduler
from segue.runtime.tooling import Approve, Arguments, Question, Tool
from segue.wire.registry import WIRES

ANYTHING: dict[str, Any] = {"type": "object"}


class Box:
    """As strict as a toolbox has to be: it knows its own tools only, and is asked in the right order."""

    def __init__(self, folder: Path, *tools: Tool) -> None:
        self.folder = folder
        self._tools = {tool.name: tool for tool in tools}
        self.checked: list[int] = []

    @property
    def declarations(self) -> tuple[Declaration, ...]:
        return tuple(
            Declaration(tool.name, tool.description, parameters=dict(tool.parameters)) for tool in self._tools.values()
        )

    def find(self, name: str) -> Tool | None:
        return self._tools.get(name)

    def check(self, tool: Tool, arguments: Arguments) -> str | None:
        assert self._tools[tool.name] is tool
        assert isinstance(arguments, dict)
        self.checked.append(id(arguments))
        found = next(iter(jsonschema.Draft202012Validator(dict(tool.parameters)).iter_errors(arguments)), None)
        return f"{tool.name}: {found.message}" if found is not None else None

    async def may(self, tool: Tool, arguments: Arguments, approve: Approve | None) -> str | None:
        assert id(arguments) in self.checked, "asked before it was checked"
        question = tool.question(arguments, self.folder)
        if question is None:
            return None
        if approve is None:
            return "denied: nobody is there to ask"
        answer = await approve(question)
        return None if answer in ("once", "always") else "denied by the user"


def tool(
    name: str,
    run: Callable[..., Any],
    *,
    blocking: bool = False,
    parameters: Mapping[str, Any] = ANYTHING,
    writes: Sequence[str] | str = (),
    asks: bool = False,
    timeout: float | None = None,
    shown: Callable[[Arguments], str] = lambda arguments: "",
) -> Tool:
    """A tool of these habits. `writes` are names of files, or the argument that has them."""

    def paths(arguments: Arguments, folder: Path) -> list[Path]:
        named = arguments.get(writes, ()) if isinstance(writes, str) else writes
        return [folder / name for name in ([named] if isinstance(named, str) else named)]

    def question(arguments: Arguments, folder: Path) -> Question | None:
        return Question(name, str(arguments.get("path", "")), f"may {name}?") if asks else None

    return Tool(
        name,
        f"does {name}",
        parameters,
        run,
        blocking=blocking,
        timeout=timeout,
        writes=paths,
        question=question,
        shown=shown,
    )


class Ear(list[Event]):
    """All that was heard; each event can be written as JSON."""

    def __call__(self, event: Event) -> None:
        dump(event)
        self.append(event)

    def of(self, kind: type[Any]) -> list[Any]:
        return [event for event in self if isinstance(event, kind)]


class Sundial(asyncio.SelectorEventLoop):
    """A loop whose time passes when it is told, or, where it runs by itself, whenever nothing else is to be done."""

    def __init__(self, *, by_itself: bool = True) -> None:
        self.now = 1000.0
        self.by_itself = by_itself
        super().__init__()

    def time(self) -> float:
        return self.now

    def _run_once(self) -> None:
        if self.by_itself and not self._ready and self._scheduled:  # pyright: ignore[reportAttributeAccessIssue]
            self.now = max(self.now, self._scheduled[0]._when)  # pyright: ignore[reportAttributeAccessIssue]
        super()._run_once()  # pyright: ignore[reportAttributeAccessIssue]


def run(work: Awaitable[Any], *, real: bool = False) -> Any:
    """Runs a coroutine on a loop without waiting, or on a `real` one where threads are at work."""
    with asyncio.Runner(loop_factory=None if real else Sundial) as runner:
        return runner.run(work)  # pyright: ignore[reportArgumentType]


def asked(book: Book, *wanted: tuple[str, Any] | str | ToolCall) -> list[ToolCall]:
    """A reply that asks for these: the name of a tool, or also its arguments."""
    book.add_user("go")
    calls: list[ToolCall] = []
    for number, want in enumerate(wanted):
        if isinstance(want, ToolCall):
            calls.append(want)
            continue
        name, arguments = (want, {}) if isinstance(want, str) else want
        calls.append(ToolCall(name, arguments, origin=Origin("openai", raw_id=f"call_{number}")))
    return list(book.add_reply(Reply(tuple(calls), finish="tool_calls")).calls)


def scheduler(book: Book, box: Box, ear: Ear | None = None, **more: Any) -> Scheduler:
    limits = Limits(**{name: more.pop(name) for name in list(more) if name in Limits.__struct_fields__})
    return Scheduler(book, box, emit=ear if ear is not None else Ear(), limits=limits, **more)


def told(book: Book) -> list[tuple[str, str]]:
    """What the model is told of its calls, as it was said: the raw id of the call, and words."""
    return [
        (response.origin.raw_id or "", "".join(block.text for block in response.content or ()))  # pyright: ignore[reportAttributeAccessIssue]
        for message in book.messages
        for response in responses_of(message)
    ]


def states(book: Book) -> list[str]:
    return [entry.state for entry in book.chat.history.ledger.values()]


def valid(book: Book) -> None:
    """It can go anywhere."""
    for wire in WIRES:
        verdict = segue.check(book.render(wire).data, wire)
        assert verdict, f"{wire}: {[str(violation) for violation in verdict]}"


@contextlib.contextmanager
def never_raises() -> Generator[list[dict[str, Any]]]:
    """What the loop's handler of exceptions hears."""
    heard: list[dict[str, Any]] = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, context: heard.append(context))
    yield heard
    loop.set_exception_handler(None)
