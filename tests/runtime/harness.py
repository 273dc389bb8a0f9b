"""A session on strict emulated providers with trivial tools, for tests of the runtime."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import segue
from segue._conversation import Conversation
from segue.bridge.providers import Endpoint, Secret
from segue.canonical.blocks import ToolResponse
from segue.canonical.request import Options
from segue.emulator import Emulator, start
from segue.runtime.conversation_log import ConversationLog, InMemoryLog
from segue.runtime.events import Event
from segue.runtime.model_limits import ModelLimits
from segue.runtime.provider_client import ProviderClient, RetryPolicy
from segue.runtime.routing import Fixed, Route
from segue.runtime.scheduler import Limits
from segue.runtime.session import Session, SessionServices, SessionSettings
from segue.runtime.tool_types import Approver, Arguments, Context, Result, Tool
from segue.runtime.toolbox import Toolbox
from segue.wire.registry import WIRES

_LIMITS = Limits()
_OPTIONS = Options()
APIS = [row.name for row in segue.formats() if row.kind != "text"]
TEXT_PARAMETERS = {"type": "object", "properties": {"words": {"type": "string"}}, "required": ["words"]}


def _echo(arguments: Arguments, context: Context) -> Result:
    return Result(f"heard {arguments['words']}")


def _fail(arguments: Arguments, context: Context) -> Result:
    return Result(f"no {arguments['words']}", error=True)


async def _wait(arguments: Arguments, context: Context) -> Result:
    await asyncio.Event().wait()
    return Result("never")


ECHO = Tool("echo", "Says the words again.", TEXT_PARAMETERS, _echo)
FAIL = Tool("fail", "Can't do what the words say.", TEXT_PARAMETERS, _fail)
WAIT = Tool("wait", "Waits for ever.", TEXT_PARAMETERS, _wait, blocking=False)


class Harness:
    """Running emulated providers and one session on them. `events` are its events."""

    def __init__(self, providers: Mapping[str, Emulator], session: Session, events: list[Event]) -> None:
        self.providers = providers
        self.session = session
        self.events = events

    def events_of(self, *kinds: type[Event]) -> list[Any]:
        return [event for event in self.events if isinstance(event, kinds)]

    @property
    def rejections(self) -> list[str]:
        """Requests that a provider rejected as invalid; scripted faults are not included."""
        requests = (request for provider in self.providers.values() for request in provider.requests)
        return [f"{request.path}: {request.refused}" for request in requests if request.status in (400, 404, 413, 422)]

    @property
    def results(self) -> list[str]:
        """The result texts in history order."""
        blocks = (block for message in self.session.log.messages for block in message.blocks)
        return [result_text(block) for block in blocks if isinstance(block, ToolResponse)]


def result_text(response: ToolResponse) -> str:
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
async def open_harness(
    scripts: Mapping[str, str | None],
    folder: Path,
    *,
    route: Callable[[Sequence[Endpoint]], Route] = lambda endpoints: Fixed(endpoints[0]),
    tools: Sequence[Tool] = (ECHO, FAIL, WAIT),
    log: ConversationLog | None = None,
    faults: Mapping[str, Sequence[str]] | None = None,
    models: Mapping[str, str] | None = None,
    tool_formats: Mapping[str, str] | None = None,
    listen: Callable[[Event], None] = lambda event: None,
    seed: int = 0,
    approve: Approver | None = None,
    limits: Limits = _LIMITS,
    options: Options = _OPTIONS,
    sizes: ModelLimits | None = None,
) -> AsyncGenerator[Harness]:
    """A session over one provider for each script."""
    events: list[Event] = []

    def record_event(event: Event) -> None:
        events.append(event)
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
        upstream = ProviderClient(
            retry_policy=RetryPolicy(attempts=2, first_delay=0.001, max_delay=0.01, max_retry_after=0.0)
        )
        session = Session(
            log if log is not None else InMemoryLog(Conversation()),
            route(endpoints),
            SessionServices(
                client=upstream,
                toolbox=Toolbox(tools, folder),
                on_event=record_event,
                approve=approve,
                sizes=sizes or ModelLimits(),
            ),
            SessionSettings(debug=True, limits=limits, options=options),
        )
        try:
            yield Harness(providers, session, events)
        finally:
            await session.close()
            await upstream.close()
