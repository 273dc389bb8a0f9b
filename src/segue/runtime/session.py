"""`Session`: the agent loop. `ask` runs an exchange as turns; a turn is one reply and the results of its tool calls.

Chat, one-shot runs and subagents all use it. Every message is recorded before the next request is sent. The route picks
the endpoint of each request; a reply in flight stays with the provider that began it. An incomplete reply is recorded
as evidence: it does not enter the history and none of its calls run.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Container
from contextlib import aclosing, suppress
from typing import Any, TypeAlias, cast

import msgspec
from msgspec import Struct

from segue._check import check
from segue._conversation import Conversation
from segue._literals import Api
from segue._rendered import Rendered
from segue._switch_cost import SwitchCost
from segue.bridge.providers import Endpoint
from segue.bridge.upstream_body import keep_stateless, place_cache_fields
from segue.canonical.blocks import Text, ToolCall
from segue.canonical.request import Options, Reply, Usage
from segue.coerce import coerce_blocks
from segue.errors import InputError, ProjectionError, ProviderError, RemoteProtocolError, SegueError, format_count
from segue.runtime.conversation_log import ConversationLog
from segue.runtime.events import (
    CallEnded,
    Event,
    ExchangeEnded,
    ExchangeOutcome,
    ExchangeStarted,
    ModelSwitched,
    ReasoningDelta,
    ReplyReceived,
    RequestSent,
    StreamBroken,
    TextDelta,
)
from segue.runtime.evidence import shorten_evidence
from segue.runtime.model_limits import ModelLimits
from segue.runtime.provider_client import ProviderClient
from segue.runtime.request_repair import DEFAULT_STRATEGY, RequestRepair
from segue.runtime.routing import Choice, Fixed, Route, RouteContext
from segue.runtime.scheduler import Limits, Scheduler
from segue.runtime.subagents import SUBAGENT_SYSTEM, Subagents
from segue.runtime.tool_types import Approver, ChangeRecorder
from segue.runtime.toolbox import Toolbox
from segue.wire.stream import events as wire_events

EventListener: TypeAlias = Callable[[Event], None]

_HEARTBEAT = 20.0
# After this many replies in a row that were cut off in a call, the exchange ends.
_MAX_CUT_OFF = 2
_CACHE_CLIENT = "agent"


class Turn(Struct, frozen=True):
    """One reply, and the outcomes of its calls in call order."""

    reply: Reply
    outcomes: tuple[CallEnded, ...] = ()
    is_cut_off: bool = False
    """Whether the output limit cut off a call of the reply."""


class _ExchangeCancelledError(Exception):
    """The exchange was cancelled."""


class SessionSettings(Struct, frozen=True, kw_only=True):
    """The settings of a session and its subagents.

    With `debug`, a request that the conformance checker rejects is not sent. `options` take precedence over those of
    the endpoint and of the conversation. `strategy` is the compression of a history that a model rejects as too long,
    and `subagent_context` the end of the system text of subagents.
    """

    limits: Limits = Limits()
    debug: bool = False
    options: Options = Options()
    strategy: str = DEFAULT_STRATEGY
    subagent_context: str = ""


class SessionServices(Struct, frozen=True, kw_only=True):
    """What a session works with. `on_event` gets all events; `approve` is called for calls that need approval.

    `subagents` are those whose `tool` is in the toolbox, if any. `sizes` is what is known about the sizes of models.
    `record_changes` returns the recorder of changed files for a call, by its id and tool; the changes of a subagent are
    those of the call that started it. `switch_cost` predicts what a switch of the model costs, for its event.
    """

    client: ProviderClient
    toolbox: Toolbox
    on_event: EventListener = lambda event: None
    approve: Approver | None = None
    subagents: Subagents | None = None
    sizes: ModelLimits = msgspec.field(default_factory=ModelLimits)
    clock: Callable[[], float] = time.monotonic
    record_changes: Callable[[str, str], ChangeRecorder] | None = None
    switch_cost: Callable[[Endpoint], SwitchCost | None] = lambda endpoint: None


_DEFAULT_SETTINGS = SessionSettings()


class Session:
    """A running conversation. In a subagent's session, `task` is the id of the call that started it."""

    def __init__(
        self,
        log: ConversationLog,
        route: Route,
        services: SessionServices,
        settings: SessionSettings = _DEFAULT_SETTINGS,
        *,
        task: str | None = None,
    ) -> None:
        self.log = log
        self.route = route
        self.services = services
        self.settings = settings
        self.toolbox = services.toolbox
        self.toolbox.validate_rules()
        if services.subagents is not None:
            services.subagents.parent = self
        self.usage = Usage()
        self.requests = 0
        self.exchanges = 0
        self.error: SegueError | None = None
        """The error that ended the last exchange; None if it had no error."""
        self._task = task
        self._clock = services.clock
        self._endpoint: Endpoint | None = None
        self._sent_limit: int | None = None
        """The limit of output tokens of the last request."""
        self._cancelled = False
        self._streaming: asyncio.Task[Reply] | None = None
        self._exchange_done: asyncio.Future[None] | None = None
        """Done when the current exchange has ended."""
        record = services.record_changes
        self._scheduler = Scheduler(
            log,
            self.toolbox,
            emit=self.emit,
            approve=services.approve,
            limits=settings.limits,
            clock=services.clock,
            record_changes=None if record is None else lambda call, tool: record(task or call, tool),
        )

    # ----------------------------------------------------------------------------------------------------------- public

    async def ask(self, content: Any, *, note: str | None = None) -> ExchangeEnded:
        """Run an exchange, from a user message to the answer. Errors are reported in the returned event.

        `note` is a text for the model that is added to the user message, but is not one of the user's words.
        """
        if self._exchange_done is not None:
            raise InputError("an exchange is running; cancel it and wait for its end first")
        started, usage_before = self._clock(), self.usage
        self._cancelled = False
        self.error = None
        self.exchanges += 1
        turns = _ExchangeState()
        self._exchange_done = done = asyncio.get_running_loop().create_future()
        heartbeat = asyncio.create_task(self._renew_lease())
        outcome: ExchangeOutcome = "cancelled"
        text, retryable, cause = "cancelled", False, None
        try:
            self.emit(ExchangeStarted(text=_content_text(content)))
            self.route.start_exchange()
            self._update_settings()
            self.log.add_user(content if note is None else (*coerce_blocks(content), Text(note)))
            outcome, text = await self._run_turns(turns)
        except _ExchangeCancelledError:
            pass
        except SegueError as error:
            self.error = error
            outcome, text, retryable = "failed", str(error), bool(getattr(error, "retryable", False))
            cause = getattr(error, "cause", None)
        finally:
            heartbeat.cancel()
            self._exchange_done = None
            done.set_result(None)
            ended = ExchangeEnded(
                outcome=outcome,
                text=text,
                turns=turns.count,
                usage=self.usage - usage_before,
                seconds=self._clock() - started,
                finish=turns.last.finish if turns.last is not None else None,
                retryable=retryable,
                cause=cause,
            )
            self.emit(ended)
        return ended

    async def _run_turns(self, turns: _ExchangeState) -> tuple[ExchangeOutcome, str]:
        while turns.count < self.settings.limits.max_turns:
            turn = await self.run_turn()
            turns.count += 1
            turns.last, outcomes = turn.reply, turn.outcomes
            if self._cancelled:
                raise _ExchangeCancelledError
            turns.cut_off = turns.cut_off + 1 if turn.is_cut_off else 0
            if turns.cut_off == _MAX_CUT_OFF:
                raise SegueError(
                    f"stopped: {_MAX_CUT_OFF} replies in a row were cut off at {self._describe_limit(turn.reply)}; "
                    "set a higher one (max_tokens), or ask for smaller pieces"
                )
            if outcomes:
                turns.paused = []
            elif turns.last.finish == "pause":
                turns.paused.append(turns.last.text)
            else:
                return "answered", "\n".join(text for text in (*turns.paused, turns.last.text) if text)
        count = format_count(self.settings.limits.max_turns, "turn")
        return "max-turns", f"stopped after {count}, the limit for one prompt; send another one to continue"

    async def run_turn(self) -> Turn:
        """Request one reply, and run its calls as one batch."""
        reply, calls = await self._request_until_complete()
        if not calls:
            return Turn(reply)
        if self._cancelled:
            return Turn(reply, tuple(await self._scheduler.cancel_calls(calls)))
        is_cut_off = reply.finish == "length" and any(call.broken for call in calls)
        text = (
            f"the call was cut off at {self._describe_limit(reply)}, and did not run; do it in smaller pieces, each of "
            "them well below that limit"
        )
        outcomes = await self._scheduler.run_batch(calls, cut_off_text=text if is_cut_off else None)
        return Turn(reply, tuple(outcomes), is_cut_off)

    def _describe_limit(self, reply: Reply) -> str:
        limit = self._sent_limit or (reply.usage.output if reply.usage is not None else 0)
        return f"the output limit of {format_count(limit, 'token')}" if limit else "the output limit of the model"

    def cancel(self) -> None:
        """Cancel the exchange: the reply in flight is recorded as incomplete, and every call gets an outcome."""
        self._cancelled = True
        if self._streaming is not None:
            self._streaming.cancel()
        self._scheduler.cancel()

    def switch(self, endpoint: Endpoint, why: str = "chosen") -> None:
        """Use another model from the next request on."""
        self.set_route(Fixed(endpoint, why))

    def set_route(self, route: Route) -> None:
        """Use another route from the next request on."""
        self.route = route

    async def close(self) -> None:
        """Cancel the exchange and release the conversation."""
        self.cancel()
        if self._exchange_done is not None:
            await asyncio.wait((self._exchange_done,))
        await self._scheduler.close()
        with suppress(SegueError):
            self.log.close()

    def emit(self, event: Event) -> None:
        """Pass an event to the listener. In a subagent, `task` is set."""
        if self._task is not None and event.task is None:
            event = msgspec.structs.replace(event, task=self._task)
        self.services.on_event(event)

    def add_usage(self, usage: Usage | None) -> None:
        """Add the usage of a reply or a subagent."""
        if usage is not None:
            self.usage += usage

    # -------------------------------------------------------------------------------------------------------- one reply

    async def _request_until_complete(self) -> tuple[Reply, list[ToolCall]]:
        """Send requests until a reply is complete; return it and its calls to run."""
        broken = 0
        repair = RequestRepair(self.log, self.services.sizes, self.settings.strategy, self.emit)
        while True:
            choice = self._pick_endpoint()
            endpoint = choice.endpoint
            try:
                return await self._request(endpoint, repair.output_cap, choice.first_byte)
            except ProviderError as error:
                self._raise_if_cancelled()
                if error.is_too_long and self.route.on_failure(endpoint, error):
                    continue
                if repair.apply(endpoint, error, self._sent_limit):
                    continue
                has_failover = self.route.on_failure(endpoint, error)
                if error.cause != "broken":
                    if not has_failover:
                        raise
                    continue
                broken += 1
                will_retry = broken <= self.settings.limits.stream_retries and (error.retryable or has_failover)
                self.emit(
                    StreamBroken(
                        provider=endpoint.provider,
                        model=endpoint.model,
                        why=error.break_reason or error.brief,
                        will_retry=will_retry,
                    )
                )
                if not will_retry:
                    raise

    def _pick_endpoint(self) -> Choice:
        """Pick the endpoint for the next request. A change is recorded and emitted."""
        choice = self.route.choose(RouteContext(self.log.chat))
        endpoint = choice.endpoint
        if endpoint != self._endpoint:
            if self._endpoint is not None:
                cost = self.services.switch_cost(endpoint) if self._task is None else None
                self.emit(ModelSwitched(provider=endpoint.provider, model=endpoint.model, why=choice.why, cost=cost))
            self.log.switch(endpoint.api, endpoint.model, provider=endpoint.provider, emulated=endpoint.is_emulated)
            self._endpoint = endpoint
        return choice

    def _raise_if_cancelled(self) -> None:
        """Raise if the exchange or its task was cancelled meanwhile."""
        if self._cancelled:
            raise _ExchangeCancelledError
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise asyncio.CancelledError

    async def _request(
        self, endpoint: Endpoint, output_cap: int | None, first_byte: float | None
    ) -> tuple[Reply, list[ToolCall]]:
        """Send one request and record the reply. The stream is read in its own task, so that it can be cancelled."""
        started = self._clock()
        self._raise_if_cancelled()
        rendered, data = self._render(endpoint, output_cap)
        self._raise_if_cancelled()
        self.log.mark_sent()
        self._streaming = streaming = asyncio.create_task(self._stream(endpoint, rendered, data, first_byte))
        try:
            reply = await streaming
        except asyncio.CancelledError:
            if streaming.done() and not streaming.cancelled() and streaming.exception() is None:
                # The reply was complete when the exchange was cancelled.
                self.log.record_broken(shorten_evidence(streaming.result()))
            if self._cancelled:
                raise _ExchangeCancelledError from None
            raise
        finally:
            self._streaming = None
        cut = [place for place, call in enumerate(reply.calls) if call.broken]
        added = self.log.add_reply(_clear_broken(reply))
        self.route.on_success(endpoint)
        self.add_usage(added.usage)
        self.emit(
            ReplyReceived(
                provider=endpoint.provider,
                model=endpoint.model,
                finish=added.finish,
                text=added.text,
                calls=len(added.calls),
                seconds=self._clock() - started,
                usage=added.usage,
            )
        )
        return added, _calls_to_run(added, cut)

    def _options_for(self, endpoint: Endpoint, output_cap: int | None) -> Options:
        """Return the options of the next request: of the session, the endpoint, or the conversation, in this order."""
        chat = self.log.chat
        options = chat.options.merge(endpoint.options).merge(self.settings.options)
        limit = self.services.sizes.output_limit(endpoint, chat.tokens, options.max_tokens)
        self._sent_limit = limit if output_cap is None else min(limit or output_cap, output_cap)
        return msgspec.structs.replace(options, max_tokens=self._sent_limit)

    def _render(self, endpoint: Endpoint, output_cap: int | None) -> tuple[Rendered, bytes]:
        """Render the next request; return it, and its body as it is sent."""
        options = self._options_for(endpoint, output_cap)
        rendered = self.log.render(
            endpoint.api, endpoint.model, profile=endpoint.profile, tool_format=endpoint.tool_format, options=options
        )
        stores = (options.vendor_options or {}).get("store") is True
        data = rendered.data if stores else keep_stateless(rendered.data, endpoint)
        data = place_cache_fields(data, endpoint, client=_CACHE_CLIENT, route="")
        self.requests += 1
        if self.settings.debug:
            for violation in check(
                data, cast("Api", endpoint.api), model=endpoint.model, profile=cast("Any", endpoint.profile)
            ):
                if violation.severity == "reject":
                    raise ProjectionError(
                        f"{endpoint.name} would reject this request ({violation.rule}): "
                        f"{violation.path}: {violation.message}"
                    )
        self.emit(
            RequestSent(
                provider=endpoint.provider,
                model=endpoint.model,
                api=endpoint.api,
                number=self.requests,
                messages=len(self.log.chat.state.history),
                findings=(
                    *(f"lost: {note}" for note in [self.toolbox.limit_note] if note),
                    *(
                        f"{finding.level}: {finding.message}"
                        for finding in rendered.report.findings
                        if finding.level != "note"
                    ),
                ),
            )
        )
        return rendered, data

    async def _stream(self, endpoint: Endpoint, rendered: Rendered, data: bytes, first_byte: float | None) -> Reply:
        """Stream the reply and emit its deltas. An incomplete reply is recorded as evidence."""
        stream = await self.services.client.open(
            endpoint, [data], rendered.open_reader, on_retry=self.emit, first_byte=first_byte
        )
        reader = stream.reader
        try:
            async with aclosing(stream):
                async for events in stream:
                    for event in events:
                        if isinstance(event, wire_events.TextDelta):
                            self.emit(TextDelta(text=event.text))
                        elif isinstance(event, wire_events.ThinkingDelta):
                            self.emit(ReasoningDelta(text=event.text))
            reply = reader.close()
            self._raise_if_cancelled()
        except (_ExchangeCancelledError, asyncio.CancelledError, ProviderError, RemoteProtocolError) as error:
            with suppress(RemoteProtocolError):
                self.log.record_broken(shorten_evidence(reader.close()))
            if isinstance(error, _ExchangeCancelledError | asyncio.CancelledError):
                raise
            if isinstance(error, ProviderError) and (error.cause == "broken" or not error.retryable):
                raise
            why = error.brief if isinstance(error, ProviderError) else str(error)
            raise ProviderError.broken(endpoint.provider, endpoint.model, why) from None
        if reply.finish == "error":
            self.log.record_broken(shorten_evidence(reply))
            raise ProviderError.broken(endpoint.provider, endpoint.model, reply.raw_finish or "the reply is incomplete")
        return reply

    # ------------------------------------------------------------------------------------ settings, lease and subagents

    def _update_settings(self) -> None:
        """Update the declared tools, and switch streaming on."""
        chat = self.log.chat
        changes: dict[str, Any] = {}
        if chat.tools != self.toolbox.declarations:
            changes["tools"] = self.toolbox.declarations
        if not chat.options.stream:
            changes["options"] = msgspec.structs.replace(chat.options, stream=True)
        if changes:
            self.log.update_settings(**changes)

    async def _renew_lease(self) -> None:
        """Renew the lease at intervals while the exchange runs."""
        while True:
            await asyncio.sleep(_HEARTBEAT)
            with suppress(SegueError):
                self.log.renew_lease()

    async def run_subagent(
        self, prompt: str, *, title: str, route: Route, toolbox: Toolbox, task: str
    ) -> ExchangeEnded:
        """Run an exchange in a session with its own history. Its events have the call id `task`."""
        system = "\n\n".join(filter(None, (SUBAGENT_SYSTEM, self.settings.subagent_context)))
        services = msgspec.structs.replace(self.services, toolbox=toolbox, on_event=self.emit, subagents=None)
        log = self.log.create_child(Conversation(system, toolbox.declarations, stream=True), title)
        first = route.endpoints[0]
        log.switch(first.api, first.model, provider=first.provider, emulated=first.is_emulated)
        child = Session(log, route, services, self.settings, task=task)
        try:
            return await child.ask(prompt)
        finally:
            self.add_usage(child.usage)
            await child.close()


class _ExchangeState:
    """The state of a running exchange."""

    def __init__(self) -> None:
        self.count = 0
        self.last: Reply | None = None
        self.cut_off = 0
        """How many replies in a row were cut off in a call."""
        self.paused: list[str] = []
        """Texts of replies that ended with `pause`."""


def _clear_broken(reply: Reply) -> Reply:
    """Clear `broken` on incomplete calls, so that they are recorded and get a result with an error text."""
    blocks = (msgspec.structs.replace(b, broken=False) if isinstance(b, ToolCall) else b for b in reply.blocks)
    return msgspec.structs.replace(reply, blocks=tuple(blocks)) if any(c.broken for c in reply.calls) else reply


def _calls_to_run(reply: Reply, cut: Container[int]) -> list[ToolCall]:
    """Return the calls that need an outcome. Those at the indices `cut` are incomplete and will not run."""
    calls = enumerate(reply.calls)
    return [msgspec.structs.replace(call, broken=at in cut) for at, call in calls if call.kind != "hosted"]


def _content_text(content: Any) -> str:
    return "\n".join(text for block in coerce_blocks(content) if isinstance(text := getattr(block, "text", None), str))
