"""`Gateway`: the ASGI application. It lets requests in, runs their relays, and writes one log line for each.

Everything between the two APIs is done by `segue.bridge`. A client that goes away cancels its request at the provider;
a client that reads slowly slows the provider down, because each write waits until the connection takes it.
"""

from __future__ import annotations

import asyncio
import re
import secrets
import time
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, MutableMapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from segue.bridge.actions import EndResponse, Respond
from segue.bridge.api_paths import guess_api
from segue.bridge.bridge import Bridge
from segue.bridge.relay import Relay
from segue.bridge.reply_relay import ReplyRelay
from segue.bridge.shell import AsyncShell, run_async_exchange
from segue.canonical.request import Usage
from segue.gateway.bodies import BodyError, BodyMemory, DisconnectedError, read_body
from segue.gateway.body_log import BodyLog
from segue.gateway.budgets import NANO
from segue.gateway.client_auth import ClientAuth
from segue.gateway.client_keys import find_keys
from segue.gateway.control_api import ControlApi, json_response
from segue.gateway.conversations import ConversationMemory
from segue.gateway.conversions import ConversionThreads, StepRunner
from segue.gateway.hooks import Hooks
from segue.gateway.host_check import HostCheck
from segue.gateway.limits import Admission, Denied
from segue.gateway.metrics import Metrics
from segue.gateway.passthrough import Passthrough, PassthroughRequest
from segue.gateway.passthrough_routes import PassthroughRoute, find_path_error
from segue.gateway.request_log import PASSTHROUGH, RequestLog, RequestRecord
from segue.gateway.responses import Receive, Response, Scope, SendEvent
from segue.gateway.spending import MeteredShell, Spending
from segue.gateway.usage import CLIENT_CLOSED_STATUS

_OWN_STATE_PATH = "/v1/key"
_ERROR_STATUS = 400
_MAX_BODY = 64 * 2**20
_KEEP_ALIVE_SECONDS = 15.0
_DRAIN_SECONDS = 1.0
_MAX_CONTROL_BODY = 64 * 2**10
_MAX_LOGGED_PATH = 300
_MAX_PATH = 2000
# The reasons of what the HTTP server refuses, by status; 0 is a connection that is closed at once.
_REFUSALS = {0: "connections", 408: "timeout", 413: "too-large", 431: "head-too-large"}
_REQUEST_ID = re.compile("[A-Za-z0-9._:/+=@-]{1,128}")
_TRACE = re.compile("[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}")


class Gateway:
    """An ASGI application for all APIs. `shell` has the connections to providers and the store.

    `host_check` and `hooks` can be replaced while it runs.
    `refresh` is called before each request: it applies changes of other processes.
    """

    def __init__(
        self,
        bridge: Bridge,
        shell: Callable[[Relay, Admission], MeteredShell],
        *,
        host_check: HostCheck,
        clients: ClientAuth,
        control: ControlApi,
        passthrough: Passthrough,
        refresh: Callable[[], None],
        metrics: Metrics,
        spending: Spending,
        conversations: ConversationMemory,
        hooks: Hooks,
        log: RequestLog,
        memory: BodyMemory,
        conversions: ConversionThreads,
        bodies: BodyLog | None = None,
    ) -> None:
        self._bridge = bridge
        self._shell = shell
        self.host_check = host_check
        self._clients = clients
        self._control = control
        self._passthrough = passthrough
        self._refresh = refresh
        self._metrics = metrics
        self._spending = spending
        self._conversations = conversations
        self.hooks = hooks
        self._log = log
        self._bodies = bodies
        self._memory = memory
        self._conversions = conversions
        self._drains: set[asyncio.Task[None]] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: SendEvent) -> None:
        if scope["type"] == "http":
            await self._serve(scope, receive, send)

    async def _serve(self, scope: Scope, receive: Receive, send: SendEvent) -> None:
        headers = _join_headers(scope["headers"])
        record = RequestRecord(
            _find_request_id(headers),
            scope["method"],
            scope["path"][:_MAX_LOGGED_PATH],
            traceparent=_keep_if(_TRACE, headers.get("traceparent", "")),
        )
        response = Response(send, record, lambda: guess_api(scope["method"], _raw_path(scope)[:_MAX_PATH], headers))
        self._metrics.active += 1
        try:
            await self._answer(scope, headers, receive, response)
        except (DisconnectedError, asyncio.CancelledError):
            record.status = CLIENT_CLOSED_STATUS
            record.error = "the client closed the connection"
        except Exception as error:  # noqa: BLE001  a request never ends the server, and its client gets an answer
            # The message of an unexpected error may quote the body.
            await response.send_bug(type(error).__name__)
        finally:
            self._metrics.active -= 1
            record.seconds = time.monotonic() - response.began
            if response.is_logged:
                self._write(record)

    def _write(self, record: RequestRecord) -> None:
        self._metrics.add_request(record)
        self._metrics.add_findings(record.findings)
        self._log.write(record)

    def add_refusal(self, status: int, message: str) -> None:
        """Record a request that the HTTP server did not pass on, because it is not valid, too large or too slow."""
        record = RequestRecord(_find_request_id({}), "-", "-", status=status, error=message)
        record.reason = _REFUSALS.get(status, "http")
        self._write(record)

    async def _answer(self, scope: Scope, headers: Mapping[str, str], receive: Receive, response: Response) -> None:
        self._refresh()
        path = _raw_path(scope)
        query: str = scope["query_string"].decode("latin-1")
        refusal = self.host_check.check(headers)
        if refusal is not None and (probe := self._control.answer_probe(scope["method"], path, headers)) is not None:
            await response.send_local(probe)
            return
        if refusal is not None:
            await response.send_error(refusal.status, refusal.message, reason=refusal.reason)
            return
        if len(path) > _MAX_PATH:
            await response.send_error(414, f"the path has more than {_MAX_PATH:,} characters", reason="path")
            return
        if self._control.is_change(scope["method"], path, headers):
            await self._change(headers, receive, response)
            return
        local = self._control.answer(scope["method"], path, headers)
        if local is not None:
            await response.send_local(local)
            return
        if headers.get("upgrade", "").strip().lower() == "websocket":
            await response.send_error(
                426, "WebSocket connections are not supported here; send POST requests", reason="websocket"
            )
            return
        keys = find_keys(headers, query)
        if (scope["method"], path) == ("GET", _OWN_STATE_PATH):
            await self._describe_client(keys, response)
            return
        route = self._passthrough.find(scope["method"], path, headers)
        # What the gateway answers itself, such as the list of models, uses nothing up.
        is_counted = route is not None or scope["method"] != "GET"
        admission, client_key = await self._clients.admit(keys, is_counted=is_counted)
        response.record.client, response.record.group = admission.client, admission.group
        if isinstance(admission, Denied):
            await response.send_denial(admission)
            return
        # A route that passes the client's credentials on gets those for the provider, not the client key.
        vendor_keys = tuple(key for key in keys if key != client_key)
        async with admission:
            if route is not None:
                items = [(name.decode("latin-1").lower(), value.decode("latin-1")) for name, value in scope["headers"]]
                request = PassthroughRequest(scope["method"], path, query, items, vendor_keys, client_key or "")
                await self._pass_on(route, request, admission, receive, response)
            else:
                if client_key:
                    headers = {name: value for name, value in headers.items() if client_key not in value}
                url = f"{path}?{query}" if query else path
                await self._convert(scope["method"], url, headers, admission, receive, response)

    async def _describe_client(self, keys: Sequence[str], response: Response) -> None:
        """Show a client its own limits and budgets."""
        state = await self._clients.describe(keys)
        if isinstance(state, Denied):
            response.record.client = state.client
            await response.send_denial(state)
        else:
            response.record.client, response.record.group = state["client"], state["group"] or ""
            await response.send_local(json_response(200, state, is_logged=True))

    async def _convert(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str],
        admission: Admission,
        receive: Receive,
        response: Response,
    ) -> None:
        """Answer a request of an API with a relay."""
        try:
            with self._memory.open() as share:
                started = time.monotonic()
                body = await read_body(receive, headers, share, min(_MAX_BODY, self._memory.limit))
                response.waited += time.monotonic() - started
                if body and self.hooks.has("request"):
                    checked = await self.hooks.run("request", self._describe(url, response), body)
                    if isinstance(checked, Denied):
                        await response.send_denial(checked)
                        return
                    body = checked
                steps = self._conversions.open(len(body))
                relay = await steps.run(partial(self._bridge.open, method, url, headers, body, client=admission.client))
        except BodyError as error:
            await response.send_error(error.status, str(error), retry_after=error.retry_after)
            return
        response.kept = bytearray() if self._bodies is not None else None
        shell = self._shell(relay, admission)
        try:
            await self._run(relay, shell, steps, receive, response)
        finally:
            if self._bodies is not None:
                await self._bodies.write(response.record.request_id, body, bytes(response.kept or b""))
            response.record.add_relay(relay)
            if (denied := shell.denied or response.denied) is not None:
                response.record.reason, response.record.error = denied.reason, denied.message
            if _is_fallback(relay):
                self._metrics.count("segue_fallbacks_total", route=response.record.route)
            if relay.usage is not None and relay.target is not None:
                self._add_usage(response.record, relay.target, relay.usage, admission)
            response.record.overhead = time.monotonic() - response.began - response.waited - shell.waited
            spending = relay.spending
            cost = self._spending.settle(spending)
            if isinstance(relay, ReplyRelay) and spending:
                switch = self._conversations.find_switch(admission.client, relay, self._spending.cost)
                if switch is not None:
                    response.record.switch, response.record.switch_cost = str(switch), switch.cost.now
                self._conversations.add(admission.client, relay, *spending[-1])
            if cost is not None:
                admission.cost += cost
                response.record.cost = cost / NANO

    async def _pass_on(
        self,
        route: PassthroughRoute,
        request: PassthroughRequest,
        admission: Admission,
        receive: Receive,
        response: Response,
    ) -> None:
        """Answer a request of a passthrough route."""
        record = response.record
        record.api, record.operation = route.endpoint.api, PASSTHROUGH
        record.route, record.target = route.name, route.endpoint.provider
        if not self._clients.allows_passthrough(admission.client, route.name):
            await response.send_error(403, f"the client key {admission.client} does not allow the route {route.name}")
        elif (why := find_path_error(request.path, request.query)) is not None:
            await response.send_error(400, why)
        elif not (request.has_body and self.hooks.has("request")):
            await self._pass_paid(route, request, admission, receive, response)
        else:
            with self._memory.open() as share:
                try:
                    limit = min(_MAX_BODY, self._memory.limit)
                    body = await read_body(receive, dict(request.headers), share, limit)
                except BodyError as error:
                    await response.send_error(error.status, str(error), retry_after=error.retry_after)
                    return
                checked = await self.hooks.run("request", self._describe(request.path, response), body)
                if isinstance(checked, Denied):
                    await response.send_denial(checked)
                    return
                replayed = _replay(checked, receive)
                await self._pass_paid(route, request.with_body(checked), admission, replayed, response)

    async def _pass_paid(
        self,
        route: PassthroughRoute,
        request: PassthroughRequest,
        admission: Admission,
        receive: Receive,
        response: Response,
    ) -> None:
        """Pass a request on; what it costs is reserved before, unless the client pays itself."""
        record, flat = response.record, round(route.settings.cost * NANO)
        is_paid = route.settings.auth == "gateway"
        denial = await admission.reserve(flat) if is_paid and admission.has_budgets else None
        if denial is not None:
            await response.send_denial(denial)
            return
        usage = cost = None
        check = partial(self.hooks.run, "reply", self._describe(request.path, response))
        try:
            usage = await self._passthrough.run(
                route, request, receive, response, check if self.hooks.has("reply") else None
            )
        finally:
            if usage is not None:
                record.add_usage(usage)
                self._add_usage(record, record.target, usage, admission)
                cost = self._spending.find_cost(record.target, record.model, usage)
            # A request that was cancelled has no status yet.
            is_answered = record.status < _ERROR_STATUS or response.denied is not None
            if is_paid and is_answered and (cost is not None or request.method == "POST"):
                spent = flat if cost is None else cost
                admission.cost += spent
                record.cost = spent / NANO

    def _add_usage(self, record: RequestRecord, target: str, usage: Usage, admission: Admission) -> None:
        self._metrics.add_usage(record, target, usage)
        admission.tokens += usage.input + usage.output

    async def _change(self, headers: Mapping[str, str], receive: Receive, response: Response) -> None:
        try:
            with self._memory.open() as share:
                body = await read_body(receive, headers, share, _MAX_CONTROL_BODY)
        except BodyError as error:
            await response.send_error(error.status, str(error), retry_after=error.retry_after)
        else:
            await response.send_local(self._control.change(body))

    async def _run(
        self, relay: Relay, shell: AsyncShell, steps: StepRunner, receive: Receive, response: Response
    ) -> None:
        """Send the response of a relay while the client is there."""
        watcher = asyncio.create_task(_watch(relay, steps, receive, response, asyncio.current_task()))
        chunks = run_async_exchange(relay, shell, steps=steps)
        is_ended = False
        held: list[bytes] | None = [] if isinstance(relay, ReplyRelay) and self.hooks.has("reply") else None
        response.is_held = held is not None
        head: Respond | None = None
        try:
            async for chunk in chunks:
                if isinstance(chunk, Respond) and held is not None and chunk.status < _ERROR_STATUS:
                    head = chunk
                elif isinstance(chunk, bytes) and held is not None and head is not None:
                    held.append(chunk)
                elif isinstance(chunk, Respond):
                    await response.start(chunk.status, chunk.headers)
                    if response.record.stream and chunk.status < _ERROR_STATUS:
                        response.record.first = time.monotonic() - response.began
                elif isinstance(chunk, EndResponse):
                    is_ended = True
                    break
                else:
                    await response.write(chunk)
            if head is not None:
                await self._send_checked(head, b"".join(held or ()), response)
            else:
                await response.end()
        finally:
            watcher.cancel()
            if is_ended:
                self._drain(chunks)
            else:
                await chunks.aclose()

    async def _send_checked(self, head: Respond, data: bytes, response: Response) -> None:
        """Send a reply that hooks have seen."""
        checked = await self.hooks.run("reply", self._describe("", response), data)
        if isinstance(checked, Denied):
            response.denied = checked
            await response.send_denial(checked)
            return
        length = {"content-length": str(len(checked))} if "content-length" in head.headers else {}
        await response.start(head.status, {**head.headers, **length})
        await response.end(checked)

    def _describe(self, url: str, response: Response) -> Mapping[str, str]:
        """Return what hooks get to know about a request besides its body."""
        record = response.record
        return {
            "request_id": record.request_id,
            "client": record.client,
            "group": record.group,
            "path": url.partition("?")[0] or record.path,
        }

    def _drain(self, chunks: AsyncGenerator[object, None]) -> None:
        """Read the rest of a provider's response, which is usually there already, so that its connection is kept."""
        task = asyncio.create_task(_read_rest(chunks))
        self._drains.add(task)
        task.add_done_callback(self._drains.discard)


def _replay(body: bytes, receive: Receive) -> Receive:
    """Return a `receive` that gives this body first."""
    events: list[MutableMapping[str, Any]] = [{"type": "http.request", "body": body, "more_body": False}]

    async def replay() -> MutableMapping[str, Any]:
        return events.pop() if events else await receive()

    return replay


async def _read_rest(chunks: AsyncGenerator[object, None]) -> None:
    try:
        with suppress(TimeoutError):
            async with asyncio.timeout(_DRAIN_SECONDS):
                async for _ in chunks:
                    pass
    finally:
        await chunks.aclose()


def _join_headers(items: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    """Return headers by lower-case name. Of one that is sent again the last value counts, but no encoding is lost."""
    headers: dict[str, str] = {}
    for raw_name, raw_value in items:
        name, value = raw_name.decode("latin-1").lower(), raw_value.decode("latin-1")
        headers[name] = f"{headers[name]}, {value}" if name == "content-encoding" and name in headers else value
    return headers


def _raw_path(scope: Scope) -> str:
    """Return the path as the client sent it, without decoding."""
    return scope["raw_path"].decode("latin-1") if scope.get("raw_path") else scope["path"]


def _find_request_id(headers: Mapping[str, str]) -> str:
    """Return the client's id of a request, if it can stand in a log line and a header; else a new one."""
    return _keep_if(_REQUEST_ID, headers.get("x-request-id", "")) or f"req_{secrets.token_hex(8)}"


def _keep_if(pattern: re.Pattern[str], value: str) -> str:
    return value if pattern.fullmatch(value) else ""


def _is_fallback(relay: Relay) -> bool:
    """Return whether another target than the first one replied."""
    return relay.route is not None and relay.finish is not None and relay.target != relay.route.targets[0].name


async def _watch(
    relay: Relay, steps: StepRunner, receive: Receive, response: Response, running: asyncio.Task[None] | None
) -> None:
    """Cancel the exchange when the client goes away, and keep a silent stream open."""
    while True:
        try:
            async with asyncio.timeout(_KEEP_ALIVE_SECONDS):
                event = await receive()
        except TimeoutError:
            if response.is_idle(_KEEP_ALIVE_SECONDS) and not steps.is_running and not response.is_held:
                await response.carry_out(relay.keep_alive())
            continue
        if event["type"] == "http.disconnect" and running is not None:
            running.cancel()
            return
