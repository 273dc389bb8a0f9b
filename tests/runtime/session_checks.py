"""Checks of a session: its histories by content, and the invariants of every outcome."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import segue
from segue._conversation import Conversation
from segue.canonical.blocks import Message, Text, Thinking, ToolCall, ToolResponse, state_of
from segue.runtime.conversation_log import ConversationLog, InMemoryLog
from segue.runtime.events import CallEnded, CallQueued, Event
from segue.runtime.permissions import Permissions
from segue.runtime.session import Session, SessionServices, SessionSettings
from segue.runtime.subagents import Subagents
from segue.runtime.tool_types import Tool
from segue.runtime.toolbox import Toolbox
from tests.runtime import bodies
from tests.runtime.harness import APIS, Harness, endpoint_of, open_harness, result_text


class LogWithChildren(InMemoryLog):
    """A log that keeps the logs of its subagents."""

    def __init__(self, chat: Conversation | None = None, *, title: str | None = None) -> None:
        super().__init__(chat, title=title)
        self.children: list[LogWithChildren] = []

    def create_child(self, chat: Conversation, title: str) -> LogWithChildren:
        child = LogWithChildren(chat, title=title)
        self.children.append(child)
        return child


def summarize_history(messages: Iterable[Message], *, thinking: bool = False) -> list[Any]:
    """A history by content: speaker, text, calls and outcomes, without ids and grouping."""
    lines: list[Any] = []
    for message in messages:
        for block in message.blocks:
            match block:
                case Text() if block.text:
                    lines.append((message.speaker, block.text))
                case Thinking() if thinking:
                    lines.append((message.speaker, "thinks", block.text))
                case ToolCall():
                    lines.append((message.speaker, "calls", block.name, block.arguments))
                case ToolResponse():
                    lines.append((message.speaker, state_of(block), block.name, result_text(block)))
                case _:
                    pass
    return lines


def find_unpaired(messages: Sequence[Message]) -> list[str]:
    """Calls without exactly one result, and results without a call. One that was cut off may have none."""
    blocks = [block for message in messages for block in message.blocks]
    called = Counter(block.id for block in blocks if isinstance(block, ToolCall))
    answered = Counter(block.call_id for block in blocks if isinstance(block, ToolResponse))
    cut_off = {block.id for block in blocks if isinstance(block, ToolCall) and block.broken}
    return [
        f"{name}: {called[name]} calls, {answered[name]} results"
        for name in {*called, *answered}
        if called[name] != 1 or (answered[name] != 1 and not (name in cut_off and answered[name] == 0))
    ]


def find_unended_calls(events: Iterable[Event]) -> list[str]:
    """Calls that were queued and not ended exactly once, or ended without having been queued."""
    queued, ended = Counter[str](), Counter[str]()
    for event in events:
        if isinstance(event, CallQueued):
            queued[event.id] += 1
        elif isinstance(event, CallEnded):
            ended[event.id] += 1
    return [
        f"{name}: {queued[name]} queued, {ended[name]} ended"
        for name in {*queued, *ended}
        if queued[name] != 1 or ended[name] != 1
    ]


def find_invalid_bodies(book: ConversationLog) -> list[str]:
    """Violations in the history rendered for every API, by the checker and by the independent readers."""
    chat = Conversation.load(book.chat.dump())
    found: list[str] = []
    for api in APIS:
        body = chat.render(api).body
        found += [
            f"{api} {bad.rule} {bad.path}: {bad.message}" for bad in segue.check(body, api) if bad.severity == "reject"
        ]
        found += [f"{api} {bad}" for bad in bodies.find_violations(api, body)]
    return found


def find_bad_requests(harness: Harness) -> list[str]:
    """Violations in the requests sent, and the providers' rejections."""
    found = list(harness.rejections)
    for api, provider in harness.providers.items():
        for request in provider.requests:
            assert request.body is not None
            found += [f"{api} {request.number} {bad}" for bad in bodies.find_violations(api, request.body)]
            if request.confused:
                found.append(f"{api} {request.number} was confused by it")
    return found


def find_problems(harness: Harness) -> list[str]:
    """All broken invariants after an exchange."""
    book = harness.session.log
    books = [book, *(book.children if isinstance(book, LogWithChildren) else ())]
    found = [*find_bad_requests(harness), *find_unended_calls(harness.events)]
    for one in books:
        found += [f"pending: {call.name}" for call in one.pending]
        found += find_unpaired(one.messages)
    return found


@asynccontextmanager
async def open_with_subagents(
    scripts: Mapping[str, str | None],
    folder: Path,
    *,
    tools: Sequence[Tool],
    listen: Callable[[Event], None] = lambda event: None,
    log: ConversationLog | None = None,
) -> AsyncGenerator[Harness]:
    """A session that may give tasks to the models of the other providers, by the name of their API."""
    async with open_harness(scripts, folder, tools=tools) as harness:

        def record_event(event: Event) -> None:
            harness.events.append(event)
            listen(event)

        first = harness.session
        subagents = Subagents(lambda name: endpoint_of(harness.providers[name]))
        toolbox = Toolbox([*tools, subagents.tool], folder, Permissions(allow=["task"], folder=folder))
        harness.session = Session(
            log if log is not None else LogWithChildren(),
            first.route,
            SessionServices(client=first.services.client, toolbox=toolbox, on_event=record_event, subagents=subagents),
            SessionSettings(debug=True),
        )
        try:
            yield harness
        finally:
            await harness.session.close()
