"""A session on strict emulated providers, with tools that do next to nothing: what the tests of the runtime play on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import segue
from segue.canonical.blocks import ToolResponse
from segue.conversation import Conversation
from segue.emulator import Emulator, start
from segue.runtime.book import Book, Memory
from segue.runtime.events import Event
from segue.runtime.providers import Endpoint, Secret
from segue.runtime.session import Session
from segue.runtime.switching import Fixed, Route
from segue.runtime.toolbox import Toolbox
from segue.runtime.tooling import Arguments, Context, Result, Tool
from segue.runtime.upstream import Patience, Upstream
from segue.wire.registry import WIRES

APIS = [row.name for row in segue.formats() if row.kind != "text"]
WORDS = {"type": "object", "properties": {"words": {"type": "string"}}, "required": ["words"]}


def _echo(arguments: Arguments, context: Context) -> Result:
    return Result(f"heard {arguments['words']}")


def _fail(arguments: Arguments, context: Context) -> Result:
    return Result(f"no {arguments['words']}", error=True)


async def _wait(arguments: Arguments, context: Context) -> Result:
    await asyncio.Event().wait()
    return Result("never")


ECHO = Tool("echo", "Says the words again.", WORDS, _echo)
FAIL = Tool("fail", "Can't do what the words say.", WORDS, _fail)
WAIT = Tool("wait", "Waits for ever.", WORDS, _wait, blocking=False)


class Stage:
    """Emulated providers that are on, and one session on them. `heard` are its events."""

    def __init__(self, providers: Mapping[str, Emulator], session: Session, heard: list[Event]) -> None:
        self.providers = providers
        self.session = session
        self.heard = heard

    def of(self, *kinds: type[Event]) -> list[Any]:
        return [event for event in self.heard if isinstance(event, kinds)]

    @property
    def refused(self) -> list[str]:
        """What any provider refused for its form or its history; faults on order are no refusals."""
        requests = (request for provider in self.providers.values() for request in provider.requests)
        return [f"{request.path}: {request.refused}" for request in requests if request.status in (400, 404, 413, 422)]

    @property
    def results(self) -> list[str]:
        """The results as they stand in the history, in its order."""
        blocks = (block for message in self.session.book.messages for block in message.blocks)
        return [said(block) for block in blocks if isinstance(block, ToolResponse)]


def said(response: ToolResponse) -> str:
    return "".join(getattr(block, "text", "") for block in response.content or ())


def endpoint_of(provider: Emulator, model: str | None = None, **more: Any) -> Endpoint:
    return Endpoint(
        provider=provider.api,
        model=model or WIRES[provider.api].default_model,
        api=provider.api,
        base_url=provider.base_url,
        key=Secret("segue-emulator"),
        **more,
    )


@asynccontextmanager
async def staged(
    scripts: Mapping[str, str | None],
    folder: Path,
    *,
    route: Callable[[Sequence[Endpoint]], Route] = lambda endpoints: Fixed(endpoints[0]),
    tools: Sequence[Tool] = (ECHO, FAIL, WAIT),
    book: Book | None = None,
    faults: Mapping[str, Sequence[str]] | None = None,
    models: Mapping[str, str] | None = None,
    tool_formats: Mapping[str, str] | None = None,
    listen: Callable[[Event], None] = lambda event: None,
    seed: int = 0,
    **more: Any,
) -> AsyncGenerator[Stage]:
    """A session over one provider for each script."""
    heard: list[Event] = []

    def hear(event: Event) -> None:
        heard.append(event)
        listen(event)

    with ExitStack() as running:
        providers = {
            api: running.enter_context(start(api, script=script, seed=seed, faults=list((faults or {}).get(api, ()))))
            for api, script in scripts.items()
        }
        endpoints = [
            endpoint_of(provider, (models or {}).get(api), tool_format=(tool_formats or {}).get(api, "auto"))
            for api, provider in providers.items()
        ]
        upstream = Upstream(patience=Patience(attempts=2, first=0.001, longest=0.01, asked=0.0))
        session = Session(
            book if book is not None else Memory(Conversation()),
            route(endpoints),
            upstream=upstream,
            toolbox=Toolbox(tools, folder),
            listen=hear,
            debug=True,
            **more,
        )
        try:
            yield Stage(providers, session, heard)
        finally:
            await session.close()
            await upstream.close()
