"""`GatewayServer`: builds the application from its settings, and serves it with uvicorn until it is stopped."""

from __future__ import annotations

import asyncio
import gc
import os
import secrets
import signal
import threading
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from datetime import UTC, datetime
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from segue._switch_cost import SwitchCost
from segue.bridge.body_limits import BodyLimits
from segue.bridge.bridge import Bridge
from segue.bridge.entries import AsyncEntries, AsyncEntryMemory
from segue.bridge.failover import TargetPauses
from segue.bridge.http_requests import HttpRequest
from segue.bridge.listings import ModelEntry
from segue.bridge.provider_errors import TransportError
from segue.bridge.relay import Relay
from segue.bridge.routes import Route, RouteQuery, Router
from segue.conversion.sessions import conversations
from segue.errors import InputError, ProviderError
from segue.gateway.app import Gateway
from segue.gateway.bodies import BodyMemory
from segue.gateway.body_log import BodyLog
from segue.gateway.budgets import NANO, BudgetLine, BudgetState, format_dollars
from segue.gateway.client_auth import ClientAuth
from segue.gateway.client_key_file import ClientKeyFile
from segue.gateway.control_api import ControlApi
from segue.gateway.conversations import ConversationMemory
from segue.gateway.conversions import ConversionThreads
from segue.gateway.entry_store import EntryLimits
from segue.gateway.gateway_record import GatewayRecord, write_record
from segue.gateway.hooks import Hooks
from segue.gateway.host_check import HostCheck
from segue.gateway.limits import Admission, ProcessLimits
from segue.gateway.metrics import Metrics
from segue.gateway.passthrough import Passthrough
from segue.gateway.passthrough_routes import build_routes
from segue.gateway.request_log import RequestLog
from segue.gateway.routes import RouteTable
from segue.gateway.setting_warnings import find_warnings
from segue.gateway.settings import AT_START, GatewayContext, GatewayRoutes, GatewaySettings
from segue.gateway.shared_entries import SharedEntries, open_entries
from segue.gateway.shared_limits import SharedLimits, crosses_alert, describe_budget
from segue.gateway.shared_metrics import SharedMetrics
from segue.gateway.shared_pauses import SharedPauses
from segue.gateway.shared_route import SharedRoute
from segue.gateway.spending import MeteredShell, Spending
from segue.gateway.workers import Supervisor, WorkerHandoff
from segue.http_client import HttpClient
from segue.http_server import HttpServer, bind, format_url, start_in_thread
from segue.processes import start_time

_DRAIN_SECONDS = 30
# New objects before garbage is searched for; Python's own value is 700.
_GARBAGE_THRESHOLD = 20_000
_OPEN_FILES = 65_536
_NOTICE_SECONDS = 10


class GatewayServer:
    """A gateway that is built and bound, but does not serve yet. `url` is its base URL.

    With a `handoff` it is one of several workers, which share a socket, a token and the route.
    """

    def __init__(
        self, settings: GatewaySettings, context: GatewayContext, handoff: WorkerHandoff | None = None
    ) -> None:
        self._settings = settings
        self._context = context
        self._handoff = handoff
        self._unused: list[str] = []
        """The settings that were changed since the start, but are used after a restart only."""
        loaded = context.load_routes()
        settings.validate(loaded.clients, is_emulated=context.is_emulated)
        self._log = RequestLog(as_json=context.log_json, usage_file=settings.usage_file, output=context.log_output)
        settings.check_certificate(self._log.write_message)
        self._log.check_usage_file()
        self._bodies = BodyLog(context.body_file, self._log.write_message) if context.body_file is not None else None
        if self._bodies is not None:
            self._bodies.check()
        self.table = RouteTable(context.resolve)
        self._passthrough = Passthrough(self._open_client, settings.timeout)
        self._spending = Spending(loaded.cost, settings.unknown_price)
        self._conversations = ConversationMemory()
        self._configure(loaded)
        self.socket = handoff.open_socket() if handoff is not None else bind(settings.host, settings.port)
        self.url = format_url(self.socket, "http" if settings.certificate is None else "https")
        self.token = handoff.token if handoff is not None else secrets.token_urlsafe(24)
        record = Path(handoff.record) if handoff is not None else None
        self._route = SharedRoute(self.table.override, self.reload, record.with_suffix(".route") if record else None)
        self._client: HttpClient | None = None
        self._server: HttpServer | None = None
        self._conversions = ConversionThreads(settings.large_size)
        self._routing = threading.Lock()
        self._notices: set[asyncio.Task[None]] = set()
        pauses = SharedPauses(record.with_suffix(".pauses")) if record else None
        self._pauses = TargetPauses(context.clock, pauses, self._report_key)
        self._metrics = Metrics(lambda: self._pauses.find_paused(self.table.targets))
        self._shared_metrics = SharedMetrics(self._metrics, record.with_suffix(".metrics")) if record else None
        self._shared = self._open_entries()
        self._entries: AsyncEntries = self._shared or AsyncEntryMemory(settings.entries_size)
        self._limits = SharedLimits(self._shared, self._report_spending) if self._shared is not None else None
        self._clients = ClientAuth(
            loaded.clients,
            always_needs_key=settings.needs_client_keys is not None,
            limits=self._limits or ProcessLimits(),
            groups=loaded.groups,
        )
        self._client_file = ClientKeyFile(
            context.client_file, context.load_clients, self._clients, self._log.write_message
        )
        self._memory = BodyMemory(settings.pending_size)
        self._bridge = self._build_bridge()
        self.app = self._build_app()
        self._use(settings)

    def _use(self, settings: GatewaySettings) -> None:
        """Use these settings for new requests."""
        self._settings = settings
        self._passthrough.timeout, self._spending.unknown_price = settings.timeout, settings.unknown_price
        self._bridge.configure(
            body_limits=BodyLimits(settings.max_messages, settings.max_calls),
            first_byte=settings.first_byte,
            compaction_limit=settings.compaction_size,
        )
        self._clients.always_needs_key = settings.needs_client_keys is not None
        self.app.host_check = HostCheck(hosts=settings.allowed_hosts, origins=settings.allowed_origins)
        self.app.hooks = Hooks(settings.hooks, self._open_client, self._log.write_message)

    def _open_entries(self) -> SharedEntries | None:
        """Return the shared entries; raise if it can never be used, except in a worker, which may be new."""
        settings, where = self._settings, self._settings.store
        if where is None:
            return None
        limits = EntryLimits(settings.store_size, settings.store_days * 86_400)
        mark = Path(self._handoff.record).with_suffix(".store") if self._handoff is not None else None
        log = self._log.write_message
        entries = SharedEntries(lambda: open_entries(where, limits), self._metrics, log, mark=mark)
        if self._handoff is None:
            try:
                entries.start()
            except BaseException:
                self.socket.close()
                raise
        return entries

    def _build_bridge(self) -> Bridge:
        return Bridge(
            Router(self._find_route, self._list_models),
            keys=self._context.keys,
            now=lambda: datetime.now(UTC),
            random=secrets.token_bytes,
            pauses=self._pauses,
        )

    def _build_app(self) -> Gateway:
        return Gateway(
            self._bridge,
            self._open_shell,
            host_check=HostCheck(),
            clients=self._clients,
            control=ControlApi(
                self.token,
                self._shared_metrics or self._metrics,
                may_read_metrics=self._clients.may_read_metrics,
                change=self._route.change,
                switch_cost=self._predict_switch,
                reload=self._route.reload,
                status=self.describe,
            ),
            passthrough=self._passthrough,
            refresh=self._refresh,
            metrics=self._metrics,
            spending=self._spending,
            conversations=self._conversations,
            hooks=Hooks((), self._open_client, self._log.write_message),
            log=self._log,
            memory=self._memory,
            conversions=self._conversions,
            bodies=self._bodies,
        )

    def _predict_switch(self) -> SwitchCost | None:
        """Predict what the present models cost in the conversation that was answered last."""
        if not self.table.in_force:
            return None
        spending, above = self._spending, self._switch_cost_above
        return self._conversations.predict_newest(self.table.targets[0], spending.cost, self.table.is_overridden, above)

    def _report_key(self, error: ProviderError) -> None:
        self._log.write_message(f"{error.message}; the target is paused until it accepts a request")

    def _report_spending(self, line: BudgetLine, state: BudgetState, cost: int) -> None:
        """Show what is left of a budget, and report that a large part of it is spent, once for each period."""
        left = max(0, line.budget.amount - state.spent - state.held) / NANO
        self._metrics.set_gauge("segue_budget_remaining", left, budget=line.label, period=line.budget.period)
        if not crosses_alert(line, state, cost):
            return
        amount = format_dollars(state.spent)
        text = f"{amount} of the budget of {line.label}, {line.budget}, are spent{line.reset_text}"
        self._log.write_message(text)
        self._metrics.count("segue_budget_alerts_total", budget=line.label, period=line.budget.period)
        if self._settings.budget_webhook is not None:
            body = {"text": text, "budget": line.label, **describe_budget(line, state)}
            task = asyncio.create_task(self._notify(self._settings.budget_webhook, body))
            self._notices.add(task)
            task.add_done_callback(self._notices.discard)

    async def _notify(self, url: str, body: Mapping[str, Any]) -> None:
        """Send a message to a webhook; a failure is logged."""
        request = HttpRequest("POST", url, {"content-type": "application/json"}, [msgspec.json.encode(body)])
        try:
            async with asyncio.timeout(_NOTICE_SECONDS):
                response = await self._open_client().send(request)
                response.close()
                failure = f"it answered with {response.status}" if response.status >= 300 else ""
        except (TimeoutError, TransportError) as error:
            failure = str(error) or f"no answer within {_NOTICE_SECONDS} s"
        if failure:
            self._log.write_message(f"the message to budget_webhook was not delivered: {failure}")

    def _find_route(self, query: RouteQuery) -> Route:
        # Called in any thread, while another one may resolve a name or take a turn.
        with self._routing:
            return self._find_allowed_route(query)

    def _find_allowed_route(self, query: RouteQuery) -> Route:
        if not self._clients.allows_model(query.client, query.model):
            raise InputError(f"the client key {query.client} does not allow the model {query.model!r}", path="model")
        route = self._leave_unpriced_out(self.table.find(query), query.client)
        if not self.table.is_overridden(query.model) and not self._clients.allows_route(query.client, route.name):
            raise InputError(f"the client key {query.client} does not allow the route {route.name}", path="model")
        if route.prefer == "first":
            return route
        return replace(route, order=partial(self._conversations.sort, query.client, self._spending.cost))

    def _leave_unpriced_out(self, route: Route, client: str) -> Route:
        """Return a route without the targets that a client with budgets can't use, if one is left then."""
        if route.pass_credentials or not self._clients.has_budgets(client):
            return route
        targets = tuple(filter(self._spending.has_price, route.targets))
        return replace(route, targets=targets) if targets else route

    def _list_models(self, client: str) -> tuple[ModelEntry, ...]:
        allows_model, allows_route = self._clients.allows_model, self._clients.allows_route
        return self.table.list_models(lambda name, route: allows_model(client, name) and allows_route(client, route))

    def _refresh(self) -> None:
        """Apply changes of the client keys, and of the route by another worker."""
        self._client_file.refresh()
        self._route.refresh()

    def _open_client(self) -> HttpClient:
        if self._client is None:
            self._client = HttpClient()
        return self._client

    def _open_shell(self, relay: Relay, admission: Admission) -> MeteredShell:
        client, timeout = self._open_client(), self._settings.timeout
        return MeteredShell(client, self._entries, timeout, relay, admission, self._spending, self._conversations)

    async def _close(self) -> None:
        client, self._client = self._client, None
        self._conversions.close()
        try:
            if self._limits is not None:
                await self._limits.close()
            if client is not None:
                await client.close()
        finally:
            if self._shared is not None:
                self._shared.close()

    def reload(self) -> None:
        """Load settings and client keys again; raise `InputError` and keep the old ones if they are not valid."""
        loaded = self._context.load_routes()
        settings = loaded.settings or self._settings
        settings.validate(loaded.clients, is_emulated=self._context.is_emulated)
        self._configure(loaded)
        at_start = {name: getattr(self._settings, name) for name in AT_START}
        self._unused = sorted(name for name, value in at_start.items() if getattr(settings, name) != value)
        self._use(replace(settings, **at_start))
        if self._unused:
            self._log.write_message(f"changed, but used after a restart only: {', '.join(self._unused)}")
        self._clients.groups = loaded.groups
        self._client_file.replace(loaded.clients, is_reload=True)
        for warning in self.warnings:
            self._log.write_message(warning)

    def _configure(self, loaded: GatewayRoutes) -> None:
        passthrough = build_routes(loaded.passthrough, loaded.resolve or self._context.resolve)
        self.table.configure(
            loaded.routes,
            default=loaded.default,
            prefers_default=loaded.prefers_default,
            aliases=loaded.aliases,
            resolve=loaded.resolve,
            buffer_tool_calls=loaded.buffer_tool_calls,
        )
        self._passthrough.replace(passthrough)
        self._spending.cost = loaded.cost
        self._switch_cost_above = loaded.switch_cost_above

    @property
    def problems(self) -> list[str]:
        """What can't be served, a line for each target, alias or passthrough route."""
        return [
            *(
                f"{name} can't be served: {why}; requests for it go to the next target, or fail"
                for name, why in self.table.problems.items()
            ),
            *(f"{name} can't be served: {why}; its requests fail" for name, why in self._passthrough.problems.items()),
        ]

    @property
    def warnings(self) -> list[str]:
        """What can't be served, targets that clients with budgets can't use, and settings that may be mistakes."""
        targets = self.table.paid_targets if self._clients.has_budgets() else ()
        return [
            *self.problems,
            *(
                f"clients with budgets can't use {target.name}: {self._spending.describe_missing_price(target)}"
                for target in targets
                if not self._spending.has_price(target)
            ),
            *find_warnings(self._settings),
        ]

    def describe(self) -> Mapping[str, Any]:
        """Return the state for `/readyz` and `segue route`."""
        targets = self._describe_targets()
        states = {row["state"] for row in targets}
        store = {} if self._shared is None else {"store": "failing" if self._shared.is_failing else "ok"}
        is_degraded = states > {"ok"} or "failing" in store.values() or bool(self.problems)
        return {
            "status": "not-ready" if states == {"no-key"} else "degraded" if is_degraded else "ready",
            "url": self.url,
            "emulated": self._context.is_emulated,
            "models": [entry.name for entry in self.table.list_models()],
            "in_force": self.table.in_force,
            "targets": targets,
            **({"needs_restart": self._unused} if self._unused else {}),
            **store,
        }

    def _describe_targets(self) -> list[dict[str, str]]:
        """Return the state of each target: `ok`, `paused` with the cause, or `no-key` with what to set."""
        problems, targets = self.table.problems, self.table.targets
        paused = self._pauses.find_paused(targets)
        rows: dict[str, dict[str, str]] = {}
        for target in targets:
            name, pause = target.name, self._pauses.find(target)
            row = rows[name] = {"target": name, "state": "ok"}
            if name in problems:
                row |= {"state": "no-key", "reason": problems[name]}
            elif paused[name]:
                row |= {"state": "paused", **({} if pause is None else {"reason": pause.cause})}
        return list(rows.values())

    def run(self, on_ready: Callable[[], None] = lambda: None) -> None:
        """Serve until SIGINT or SIGTERM, which let open requests finish. SIGHUP reloads the routes."""
        if threading.current_thread() is threading.main_thread():
            _collect_less_garbage()
            conversations.expect_sessions(self._settings.conversations_size)
            _raise_file_limit()
        with asyncio.Runner(loop_factory=_find_loop_factory()) as runner:
            runner.run(self.serve(on_ready))

    def run_workers(self, command: Sequence[str], on_ready: Callable[[], None] = lambda: None) -> int:
        """Serve with several processes. `command` starts one, which reads its `WorkerHandoff` from standard input.

        Return the number of the signal that ended them.
        """
        if self._shared is not None:
            self._shared.close()
        with write_record(self._record()) as record:
            handoff = WorkerHandoff(self.socket.fileno(), self.token, str(record))
            supervisor = Supervisor(command, self._settings.workers, handoff, self.socket, self._log.write_message)
            return asyncio.run(supervisor.run(on_ready, _DRAIN_SECONDS))

    @contextmanager
    def running(self) -> Generator[None]:
        """Serve in a thread until the end of the block."""
        thread = start_in_thread("segue gateway", self.run)
        try:
            yield
        finally:
            self.stop()
            thread.join()

    def stop(self) -> None:
        """Stop serving; open requests are ended."""
        if self._server is not None:
            self._server.stop()

    async def serve(self, on_ready: Callable[[], None] = lambda: None) -> None:
        settings = self._settings
        server = self._server = HttpServer(
            self.app,
            self._context.connections,
            has_date=True,
            certificate=settings.certificate_file,
            private_key=settings.private_key_file,
            drain_seconds=_DRAIN_SECONDS,
            on_refusal=self.app.add_refusal,
        )
        loop = asyncio.get_running_loop()
        with suppress(NotImplementedError, AttributeError, ValueError, RuntimeError):
            loop.add_signal_handler(signal.SIGHUP, self._reload_on_signal)
        if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
            # The server raises the signal again after the drain; the default action would end the process too early.
            signal.signal(signal.SIGTERM, server.handle_exit)
        with write_record(self._record()) if self._handoff is None else nullcontext():
            tasks = [asyncio.create_task(self._memory.keep_trimmed())]
            if self._shared is not None and (self._handoff is not None or self._shared.is_failing):
                tasks.append(asyncio.create_task(self._shared.check()))
            if self._shared_metrics:
                tasks.append(asyncio.create_task(self._shared_metrics.publish()))
            try:
                await server.listen(self.socket, on_ready)
            finally:
                for task in tasks:
                    task.cancel()
                await self._close()

    def _record(self) -> GatewayRecord:
        certificate = self._settings.certificate_file
        file = str(certificate.absolute()) if certificate else ""
        return GatewayRecord(self.url, self.token, os.getpid(), file, start_time(os.getpid()))

    def _reload_on_signal(self) -> None:
        try:
            self.reload()
        except InputError as error:
            self._log.write_message(f"the configuration was not loaded again: {error}")
        else:
            self._log.write_message("the configuration was loaded again")


def _find_loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """Return the constructor of uvloop's event loop, if it is installed; None stands for the one of asyncio."""
    return None if find_spec("uvloop") is None else import_module("uvloop").new_event_loop


def _collect_less_garbage() -> None:
    """Search for cyclic garbage less often: an exchange leaves hardly any, and what is loaded by now stays in use."""
    gc.freeze()
    gc.set_threshold(_GARBAGE_THRESHOLD)


def _raise_file_limit() -> None:
    """Let the connections of clients, also those without a TLS handshake yet, leave room for those to providers."""
    with suppress(ImportError, OSError, ValueError):
        import resource

        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        if soft != resource.RLIM_INFINITY:
            highest = _OPEN_FILES if hard == resource.RLIM_INFINITY else min(hard, _OPEN_FILES)
            resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, highest), hard))
