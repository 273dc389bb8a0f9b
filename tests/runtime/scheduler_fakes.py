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
from segue.runtime.conversation_log import ConversationLog
from segue.runtime.events import Event, encode_event
from segue.runtime.scheduler import Limits, Scheduler
from segue.runtime.tool_types import ApprovalRequest, Approver, Arguments, Tool
from segue.wire.registry import WIRES

ANYTHING: dict[str, Any] = {"type": "object"}


class FakeToolbox:
    """A strict toolbox: it accepts only its own tools and checks the order of calls."""

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

    def validate_arguments(self, tool: Tool, arguments: Arguments) -> str | None:
        assert self._tools[tool.name] is tool
        assert isinstance(arguments, dict)
        self.checked.append(id(arguments))
        found = next(iter(jsonschema.Draft202012Validator(dict(tool.parameters)).iter_errors(arguments)), None)
        return f"{tool.name}: {found.message}" if found is not None else None

    async def check_permission(self, tool: Tool, arguments: Arguments, approve: Approver | None) -> str | None:
        assert id(arguments) in self.checked, "asked before it was checked"
        question = tool.approval_request(arguments, self.folder)
        if question is None:
            return None
        if approve is None:
            return "denied: no prompt"
        answer = await approve(question)
        return None if answer in ("once", "always") else "denied by the user"


def make_tool(
    name: str,
    run: Callable[..., Any],
    *,
    blocking: bool = False,
    parameters: Mapping[str, Any] = ANYTHING,
    writes: Sequence[str] | str = (),
    needs_approval: bool = False,
    timeout: float | None = None,
    shown: Callable[[Arguments], str] = lambda arguments: "",
) -> Tool:
    """A tool with these properties. `writes` are file names, or the argument that has them."""

    def paths(arguments: Arguments, folder: Path) -> list[Path]:
        named = arguments.get(writes, ()) if isinstance(writes, str) else writes
        return [folder / name for name in ([named] if isinstance(named, str) else named)]

    def question(arguments: Arguments, folder: Path) -> ApprovalRequest | None:
        return ApprovalRequest(name, str(arguments.get("path", "")), f"may {name}?") if needs_approval else None

    return Tool(
        name,
        f"does {name}",
        parameters,
        run,
        blocking=blocking,
        timeout=timeout,
        writes=paths,
        approval_request=question,
        summarize=shown,
    )


class EventRecorder(list[Event]):
    """Records events; each must be serializable as JSON."""

    def __call__(self, event: Event) -> None:
        encode_event(event)
        self.append(event)

    def of_kind(self, kind: type[Any]) -> list[Any]:
        return [event for event in self if isinstance(event, kind)]


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """An event loop with virtual time, advanced by hand or, with `by_itself`, whenever it is idle."""

    def __init__(self, *, by_itself: bool = True) -> None:
        self.now = 1000.0
        self.by_itself = by_itself
        super().__init__()

    def time(self) -> float:
        return self.now

    def advance(self, seconds: float) -> None:
        self.now += seconds

    def _run_once(self) -> None:
        if self.by_itself and not self._ready and self._scheduled:  # pyright: ignore[reportAttributeAccessIssue]
            self.now = max(self.now, self._scheduled[0]._when)  # pyright: ignore[reportAttributeAccessIssue]
        super()._run_once()  # pyright: ignore[reportAttributeAccessIssue]


class ShiftedTimeLoop(asyncio.SelectorEventLoop):
    """An event loop with real time that can be advanced by hand: a timeout ends when a test has reached its state."""

    shift = 0.0

    def time(self) -> float:
        return super().time() + self.shift

    def advance(self, seconds: float) -> None:
        self.shift += seconds


def run(work: Awaitable[Any], *, real: bool = False) -> Any:
    """Runs a coroutine on a loop without waiting, or on a `real` one where threads are at work."""
    with asyncio.Runner(loop_factory=None if real else VirtualTimeLoop) as runner:
        return runner.run(work)


def add_calls(conversation_log: ConversationLog, *requested: tuple[str, Any] | str | ToolCall) -> list[ToolCall]:
    """Adds a reply with these calls: the name of a tool, or name and arguments."""
    conversation_log.add_user("go")
    calls: list[ToolCall] = []
    for number, request in enumerate(requested):
        if isinstance(request, ToolCall):
            calls.append(request)
            continue
        name, arguments = (request, {}) if isinstance(request, str) else request
        calls.append(ToolCall(name, arguments, origin=Origin("openai", raw_id=f"call_{number}")))
    return list(conversation_log.add_reply(Reply(tuple(calls), finish="tool_calls")).calls)


def make_scheduler(
    conversation_log: ConversationLog, box: FakeToolbox, ear: EventRecorder | None = None, **more: Any
) -> Scheduler:
    limits = Limits(**{name: more.pop(name) for name in list(more) if name in Limits.__struct_fields__})
    return Scheduler(conversation_log, box, emit=ear if ear is not None else EventRecorder(), limits=limits, **more)


def recorded_results(conversation_log: ConversationLog) -> list[tuple[str, str]]:
    """The recorded results in order: raw id of the call and text."""
    return [
        (response.origin.raw_id or "", "".join(block.text for block in response.content or ()))  # pyright: ignore[reportAttributeAccessIssue]
        for message in conversation_log.messages
        for response in responses_of(message)
    ]


def states(conversation_log: ConversationLog) -> list[str]:
    return [entry.state for entry in conversation_log.chat.state.history.ledger.values()]


def check_renders(conversation_log: ConversationLog) -> None:
    """The history renders to a valid body for every wire."""
    for wire in WIRES:
        verdict = segue.check(conversation_log.render(wire).data, wire)
        assert verdict, f"{wire}: {[str(violation) for violation in verdict]}"


@contextlib.contextmanager
def collect_loop_errors() -> Generator[list[dict[str, Any]]]:
    """Collects the exceptions of the loop's exception handler."""
    errors: list[dict[str, Any]] = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, context: errors.append(context))
    yield errors
    loop.set_exception_handler(None)
