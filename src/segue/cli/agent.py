"""Builds an agent from configuration and flags: models, tools, the conversation and its store.

Shared by `segue run` and `segue chat`, which differ only in the event listener and the approval prompt.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import time
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import msgspec

from segue._conversation import Conversation
from segue.bridge.failover import REQUESTS
from segue.bridge.listings import ModelEntry
from segue.bridge.providers import NO_MODEL, Endpoint
from segue.canonical.request import Options, Usage
from segue.cli import config, project_context, streams, trust_store, user_store
from segue.cli.agent_tools import AgentTools
from segue.cli.model_choice import choose_models
from segue.cli.options import RunOptions
from segue.cli.project_context import ProjectContext
from segue.cli.providers import Providers
from segue.cli.settings import RoutingRuleSettings
from segue.errors import InputError, SegueError
from segue.runtime.checkpoint_journal import prune
from segue.runtime.checkpoints import Checkpoints
from segue.runtime.conversation_log import ConversationLog, InMemoryLog
from segue.runtime.events import ConversationCompressed, Event, ExchangeEnded, ReplyReceived
from segue.runtime.model_limits import ModelLimits
from segue.runtime.request_repair import COMPRESS_TO, DEFAULT_STRATEGY
from segue.runtime.routing import ByRule, Failover, Fixed, RoundRobin, Route, RouteContext, RoutingRule
from segue.runtime.scheduler import Limits
from segue.runtime.session import EventListener, Session, SessionServices, SessionSettings
from segue.runtime.subagents import Subagents
from segue.runtime.tool_types import Approver
from segue.runtime.tools.switch_model import find_requested
from segue.store.conversation import StoredConversation
from segue.store.events import Switched

if TYPE_CHECKING:
    from types import TracebackType

    from segue import SwitchCost
    from segue.emulator.models import EmulatedModels
    from segue.runtime.provider_client import ProviderClient
    from segue.runtime.toolbox import Toolbox
    from segue.store.base import ConversationStore

_SYSTEM = (
    "You are an agent at a command line. Use the tools to look and to act, and don't guess what you can look up. Paths "
    "are relative to the working folder. If a call is denied, continue without it, or state what you need. Answer in "
    "plain text, and include only what the user needs."
)
_SUBAGENT_TITLE_PREFIX = "task: "
_MAX_SCANNED = 200
# A conversation is compressed above this share of the model's context.
_COMPRESS_ABOVE = 0.85
# Seconds for the list of models of a server.
_LIST_TIMEOUT = 5.0


class Agent:
    """A session with its models, tools and store; an async context manager that opens and closes them.

    `model_reason` is how the first model was chosen; `is_emulated` is True if no real provider is used. `confirm_trust`
    prompts the user about an untrusted project file, `confirm_instructions` about instruction files in untrusted
    folders; None without a terminal.
    """

    def __init__(
        self,
        options: RunOptions,
        *,
        on_event: EventListener = lambda event: None,
        approve: Approver | None = None,
        confirm_trust: config.ConfirmTrust | None = None,
        confirm_instructions: Callable[[Sequence[Path]], bool] | None = None,
    ) -> None:
        self._options = options
        self._on_event = on_event
        self._approve = approve
        self._confirm_trust = confirm_trust
        self._confirm_instructions = confirm_instructions
        self._stack = AsyncExitStack()
        self._emulated: EmulatedModels | None = None
        self.providers: Providers
        self.route: Route
        self.model_reason = ""
        self.store: ConversationStore | None = None
        self.tools: AgentTools
        self._subagents: Subagents
        self.toolbox: Toolbox
        self.context: ProjectContext
        self.session: Session
        self.sizes = ModelLimits()
        self.request_options = options.request_options or Options()
        """The options that flags and `/set` set; they take precedence over the configuration."""
        self.checkpoints: Checkpoints
        self._checkpoint_folder: Path
        self._client: ProviderClient
        self._replied_at: dict[str, float] = {}
        """When each model replied in this conversation, the newest last; of stored conversations the log knows it."""
        self._served: dict[str, str] = {}
        """The model that is used of each server that was named without one."""
        self._listed: set[str] = set()
        """The models whose sizes were looked up in the list of their server."""

    # ------------------------------------------------------------------------------------------------------ lifecycle

    async def __aenter__(self) -> Self:
        try:
            await self._build()
        except BaseException:
            await self._stack.aclose()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            await self.session.close()
            self.discard_if_empty(self.log)
        finally:
            await self._stack.aclose()

    async def _build(self) -> None:
        from segue.runtime.provider_client import ProviderClient

        if not streams.has_working_folder():
            raise streams.BadInputError(streams.FOLDER_GONE)
        loaded = config.load(trusting=self._options.trusting, confirm=self._confirm_trust)
        if loaded.untrusted_file is not None and self._confirm_trust is None:
            streams.print_message(loaded.untrusted_file.describe_ignored())
        self.providers = Providers(loaded)
        self._client = ProviderClient()
        self._stack.push_async_callback(self._client.close)
        if not self._options.emulated:
            rules = (name for rule in loaded.settings.rules for name in rule.model_names)
            for name in self._options.models or (*loaded.settings.model_names, *rules):
                await self.find_served(name)
        continues = self._options.latest or self._options.conversation is not None
        if not continues:
            self.route = self._build_route()
        self.tools = AgentTools(self.providers, self._options)
        self._stack.push_async_callback(self.tools.close)
        self._subagents = Subagents(self.endpoint)
        self.toolbox = await self.tools.build_toolbox(Path.cwd(), self._subagents)
        # Before a conversation is stored.
        try:
            self.toolbox.validate_rules()
        except InputError as error:
            raise self.tools.locate_rule_error(error) from None
        self._take_first_context(git_state=not continues)
        if self._options.keep:
            self.store = self._stack.enter_context(user_store.connect(create=True, quiet=True, files=loaded.files))
            self._checkpoint_folder = user_store.checkpoint_folder()
            prune(self._checkpoint_folder)
        else:
            self._checkpoint_folder = user_store.scratch_folder()
            self._stack.callback(shutil.rmtree, self._checkpoint_folder, ignore_errors=True)
        log = self._open_log()
        try:
            if continues:
                self.route = self._build_route(log)
            self._resume_model(log)
            self.session = self._build_session(log)
            if isinstance(self.route, ByRule):
                emulated = "emulated; " if self.is_emulated else ""
                self.model_reason = f"{emulated}by rules: {self.route.choose(RouteContext(log.chat)).why}"
        except BaseException:
            log.close()
            self.discard_if_empty(log)
            raise
        if note := self.session.toolbox.limit_note:
            streams.print_message(f"{note}; max_declared in [tools] sets the limit, only selects tools")

    def _take_first_context(self, *, git_state: bool) -> None:
        """Take the context; ask whether to trust a folder with instruction files, or report that they are not used."""
        self.context = self._take_context(git_state=git_state)
        ignored = [file.path for file in self.context.files if not file.is_trusted]
        if not ignored or not self.toolbox.declarations or self._options.system is not None:
            return
        if self._confirm_instructions is None:
            names = ", ".join(map(str, ignored))
            streams.print_message(f"{names} not used: the folder is not trusted; run segue trust to trust it")
        elif self._confirm_instructions(ignored):
            for path in ignored:
                trust_store.add_folder(path.parent)
            self.context = self._take_context(git_state=git_state)

    def _build_session(self, log: ConversationLog) -> Session:
        tools = self.providers.config.settings.tools
        default = Limits()
        limits = Limits(
            parallel=tools.parallel or default.parallel,
            timeout=tools.timeout or default.timeout,
            max_turns=self._options.max_turns or default.max_turns,
        )
        self.checkpoints = Checkpoints(self._checkpoint_folder, self.toolbox.folder, log.id)
        services = SessionServices(
            client=self._client,
            toolbox=self.toolbox,
            on_event=self._observe,
            approve=self._approve,
            subagents=self._subagents,
            sizes=self.sizes,
            record_changes=self.checkpoints.recorder,
            switch_cost=partial(self.switch_cost, is_brief=True),
        )
        settings = SessionSettings(
            limits=limits,
            debug=self._options.debug,
            options=self.request_options,
            strategy=self.providers.config.settings.compress or DEFAULT_STRATEGY,
            subagent_context=self.context.text if self._options.system is None else "",
        )
        return Session(log, self.route, services, settings)

    # --------------------------------------------------------------------------------------------------------- models

    @property
    def is_emulated(self) -> bool:
        return self._emulated is not None

    @property
    def next_endpoint(self) -> Endpoint:
        """The endpoint of the next request, as far as it is known before the request."""
        return self.session.route.choose(RouteContext(self.log.chat)).endpoint

    def endpoint(self, name: str) -> Endpoint:
        """Return the endpoint of a model; raises `InputError` for an unknown name."""
        if self._emulated is not None:
            emulated = self._emulated.endpoint(self.providers.expand_alias(name), self.providers.by_name)
            return self.providers.with_settings(emulated, self._options.tool_format)
        return self.providers.endpoint(self._served.get(name, name), self._options.tool_format)

    async def find_served(self, name: str) -> None:
        """Find the model that a server has which is named without one: one in its memory, else the first it lists."""
        row = self.providers.lacks_default(name)
        if row is None or name in self._served:
            return
        endpoint = self.providers.endpoint(f"{row.name}/{NO_MODEL}")
        served = await self._client.list_loaded_models(endpoint) or await self._client.list_models(endpoint)
        if not served:
            raise InputError(f"{endpoint.base_url} has no models: load one first, or write {row.name}/MODEL")
        self._served[name] = f"{row.name}/{served[0].name}"
        self._learn_sizes(row.name, served)

    def _learn_sizes(self, provider: str, entries: Sequence[ModelEntry]) -> None:
        for entry in entries:
            endpoint = self.providers.endpoint(f"{provider}/{entry.name}")
            if endpoint.context is None:
                self.sizes.learn(endpoint, context=entry.context)

    def context_of(self, endpoint: Endpoint) -> int | None:
        """Return the context size of a model, also one that was learned."""
        return self.sizes.sizes(endpoint).context

    async def _look_up_sizes(self) -> None:
        """Look up unknown context sizes in the lists of the servers, once for each model."""
        for endpoint in self.session.route.endpoints:
            if self.context_of(endpoint) is None and endpoint.name not in self._listed and not self.is_emulated:
                self._listed.add(endpoint.name)
                with suppress(SegueError):
                    listed = await self._client.list_models(endpoint, timeout=_LIST_TIMEOUT)
                    self._learn_sizes(endpoint.provider, [entry for entry in listed if entry.name == endpoint.model])

    def set_request_options(self, options: Options) -> None:
        """Use these options from the next request on."""
        self.request_options = options
        self.session.settings = msgspec.structs.replace(self.session.settings, options=options)

    def price(self, provider: str, model: str, usage: Usage) -> float | None:
        """Return the cost of a reply in dollars; None where no price is known."""
        return None if self.is_emulated else self.providers.cost(provider, model, usage)

    def switch_cost(self, target: Endpoint, *, is_brief: bool = False) -> SwitchCost | None:
        """Predict what the switch of the conversation to a model costs; None if it has that model, or is short.

        With `is_brief`, a known cost is returned for short conversations, too.
        """
        chat, ages = self.log.chat, self._ages
        last = next(reversed(ages), None) or self._imported_model
        if last is None or last == target.name:
            return None
        cost = chat.switch_cost(target.name, current=last, ages=ages, cost_of=self.providers.cost)
        is_short = chat.tokens < self.providers.switch_cost_above
        return None if is_short and (not is_brief or cost.now is None) else cost

    @property
    def _ages(self) -> dict[str, float]:
        """The seconds since the last reply of each model, the newest last; of those whose usage is known."""
        if isinstance(self.log, StoredConversation):
            return self.log.ages
        return {name: time.monotonic() - at for name, at in self._replied_at.items()}

    @property
    def _imported_model(self) -> str | None:
        """The model of a conversation whose replies have no model of their own, as that of another client."""
        state = self.log.state if isinstance(self.log, StoredConversation) else None
        if state is None or state.model is None or self.log.chat.state.predict_tokens(state.model)[1] is None:
            return None
        return f"{state.provider}/{state.model}" if state.provider is not None else None

    def requests_cost(self, endpoint: Endpoint, chat: Conversation) -> float | None:
        """Predict what the next requests of a conversation to a model cost, for the choice between models."""
        ages = self._ages if chat is self.log.chat else {}
        return chat.requests_cost(endpoint.name, REQUESTS, ages=ages, cost_of=self.providers.cost)

    def _observe(self, event: Event) -> None:
        if isinstance(event, ReplyReceived) and event.task is None and event.usage is not None:
            name = f"{event.provider}/{event.model}"
            self._replied_at.pop(name, None)
            self._replied_at[name] = time.monotonic()
        self._on_event(event)

    def _build_route(self, log: ConversationLog | None = None) -> Route:
        """Return the route; where no model can be used, it is the last one of the conversation."""
        settings, given = self.providers.config.settings, self._options.models
        choice = choose_models(self.providers, given, emulated=self._options.emulated, required=False)
        if choice.is_emulated:
            from segue.emulator.models import EmulatedModels

            self._emulated = EmulatedModels()
            self._stack.callback(self._emulated.close)
        if settings.strategy == "rules" and not given:
            return self.rules_route()
        if not choice.names:
            last = log.state if isinstance(log, StoredConversation) else None
            if last is None or last.provider is None or last.model is None:
                raise InputError(choice.why)
            return self._make_route((f"{last.provider}/{last.model}",), "last used in this conversation")
        is_served = bool(given) and given[0] in self._served
        is_configured = choice.names == settings.model_names and not given and not choice.is_emulated
        why = "the model that the server has" if is_served and not choice.is_emulated else choice.why
        return self._make_route(choice.names, why, settings.strategy if is_configured else None)

    def rules_route(self) -> Route:
        """Return the route by the rules of the configuration."""
        settings = self.providers.config.settings
        if not settings.rules:
            raise InputError("the configuration has no [[rules]]")
        rules = [self._build_rule(rule) for rule in settings.rules]
        if settings.model_names:
            rules.append(RoutingRule("otherwise", tuple(map(self.endpoint, settings.model_names)), prefer="first"))
        return ByRule(rules, cost=self.requests_cost)

    def _build_rule(self, rule: RoutingRuleSettings) -> RoutingRule:
        endpoints = tuple(map(self.endpoint, rule.model_names))
        return RoutingRule(rule.when, endpoints, rule.tokens or rule.count or 0, rule.command, rule.prefer)

    def _resume_model(self, log: ConversationLog) -> None:
        """Put the conversation's last model first, unless one is named, or the route is round-robin or by rules."""
        if not isinstance(log, StoredConversation) or self._options.models:
            return
        state = log.state
        if state.provider is None or state.model is None:
            return
        name = f"{state.provider}/{state.model}"
        if (requested := find_requested(log.messages)) is not None:
            # It is in the history, so that it holds where the route is by rules, too.
            with suppress(SegueError):
                if self.endpoint(requested.model).name == name or not requested.has_reply:
                    self.route = self._make_route((requested.model,), f"requested by the model: {requested.reason}")
                    return
        if not isinstance(self.route, Fixed | Failover) or name == self.route.endpoints[0].name:
            return
        others = [endpoint.name for endpoint in self.route.endpoints]
        try:
            lacks_key = self.providers.endpoint(name).lacks_key
            problem = f"no key for {name}"
        except SegueError as error:
            lacks_key, problem = True, str(error)
        last_used = "last used in this conversation"
        if self.is_emulated and (lacks_key or self._options.emulated):
            with suppress(SegueError):
                self.route = self._make_route((name,), f"{self.model_reason}; {last_used}")
            return
        if lacks_key:
            earlier = f"{self.model_reason}; " if self.model_reason else ""
            self.model_reason = f"{earlier}the conversation's last model can't be used: {problem}"
            return
        self._emulated = None
        if name in others:
            self.route = self._make_route((name, *others), last_used)
        else:
            self.route = self._make_route((name,), last_used)

    def _make_route(self, names: Sequence[str], reason: str, kind: str | None = None) -> Route:
        """Return a route over these models; several are a failover in this order unless `kind` is given."""
        endpoints = [self.endpoint(name) for name in dict.fromkeys(names)]
        self.model_reason = reason
        if kind == "round-robin":
            return RoundRobin(endpoints)
        return Fixed(endpoints[0]) if kind == "fixed" or len(endpoints) == 1 else Failover(endpoints)

    # --------------------------------------------------------------------------------------------------- conversation

    @property
    def log(self) -> ConversationLog:
        return self.session.log

    @property
    def conversation_id(self) -> str | None:
        """The id in the store; None where the conversation is not stored."""
        return self.log.id if self.store is not None else None

    async def ask(self, content: Any, *, is_start: bool = False) -> ExchangeEnded:
        """Run an exchange; the conversation is compressed first where it nearly fills the context.

        The model gets a note on the context that changed, and on files that were restored since the last exchange.
        With `is_start`, the context is that of the agent's start, a moment ago.
        """
        if self.log.messages:
            await self._look_up_sizes()
        with suppress(SegueError):
            self._compress_if_full()
        chat = self.log.chat
        if not is_start:
            self.context = self._take_context()
        restored = await asyncio.to_thread(self.checkpoints.begin_exchange)
        notes = [self.context.changes_since(chat.system, chat.messages), restored]
        return await self.session.ask(content, note="\n\n".join(filter(None, notes)) or None)

    async def ask_once(self, system: str, text: str, *, on_event: EventListener) -> ExchangeEnded:
        """Run an exchange without tools, outside the conversation."""
        from segue.runtime.toolbox import Toolbox

        services = SessionServices(
            client=self._client,
            toolbox=Toolbox((), self.toolbox.folder, self.toolbox.permissions),
            on_event=on_event,
            sizes=self.sizes,
        )
        settings = SessionSettings(options=self.request_options)
        session = Session(InMemoryLog(Conversation(system=system)), self.session.route, services, settings)
        try:
            return await session.ask(text)
        finally:
            await session.close()

    def _take_context(self, *, git_state: bool = False) -> ProjectContext:
        return project_context.take(self.toolbox.folder, trusting=self._options.trusting, git_state=git_state)

    @property
    def lacks_key(self) -> bool:
        """Whether the next request would fail because its provider has no key."""
        return self.next_endpoint.lacks_key

    def discard_unanswered(self) -> None:
        """Delete a conversation that no model has answered."""
        log = self.log
        if self.store is None or any(message.speaker == "ai" for message in log.messages):
            return
        log.close()
        with suppress(SegueError):
            self.store.delete(log.id)

    def discard_if_empty(self, log: ConversationLog) -> None:
        """Delete a conversation without messages."""
        if self.store is not None and not log.messages:
            with suppress(SegueError):
                self.store.delete(log.id)

    async def switch_log(self, log: ConversationLog) -> None:
        """Continue with another conversation on the same route."""
        self.route = self.session.route
        await self.session.close()
        self._replied_at.clear()
        self.session = self._build_session(log)

    def new_log(self) -> ConversationLog:
        """Return a new, empty conversation."""
        self.route, self.context = self.session.route, self._take_context(git_state=True)
        return self._create_log()

    def _create_log(self) -> ConversationLog:
        """Create a conversation that begins with the context, and with the first model of the route."""
        default = f"{_SYSTEM}\n\n{self.context.text}" if self.toolbox.declarations else None
        system = default if self._options.system is None else self._options.system
        chat = Conversation(system, self.toolbox.declarations, stream=True)
        if self.store is None:
            return InMemoryLog(chat)
        first = self.route.endpoints[0]
        target = Switched.of(first.api, first.model, first.provider, emulated=first.is_emulated)
        return StoredConversation.create(self.store, chat, folder=_folder(), target=target)

    def open_stored(self, name: str) -> StoredConversation:
        """Return a stored conversation by its number, or the beginning or end of its id.

        If it belongs to no folder, or to one that no longer exists, it belongs to this folder from now on.
        """
        if self.store is None:
            raise InputError("conversations are not stored (--no-store)")
        log = StoredConversation(self.store, self.store.find_id(name))
        folder = self.store.get(log.id).folder
        if folder is None or not Path(folder).is_dir():
            # A store that can't be written is reported by the first message.
            with suppress(SegueError):
                self.store.set_folder(log.id, _folder())
        return log

    @property
    def other_folder(self) -> str | None:
        """The folder that the conversation belongs to, if it is not this one."""
        if self.store is None:
            return None
        with suppress(SegueError):
            folder = self.store.get(self.log.id).folder
            return folder if folder != _folder() else None
        return None

    def _open_log(self) -> ConversationLog:
        options = self._options
        if not options.latest and options.conversation is None:
            return self._create_log()
        assert self.store is not None
        log = self.open_stored(options.conversation if options.conversation is not None else self._latest_id())
        if options.fork:
            log = log.fork()
            self.store.set_folder(log.id, _folder())
        if options.system is not None and options.system != log.chat.system:
            log.update_settings(system=options.system)
        return log

    def _latest_id(self) -> str:
        """Return the id of the latest conversation of this folder, with `--all-folders` of all."""
        assert self.store is not None
        rows = self.store.list(_MAX_SCANNED, folder=None if self._options.any_folder else _folder())
        # Subagents' conversations are stored too, but are not continued.
        latest = next((row for row in rows if not (row.title or "").startswith(_SUBAGENT_TITLE_PREFIX)), None)
        if latest is not None:
            return latest.id
        if self._options.any_folder or not self.store.list(1):
            raise InputError("no stored conversation to continue")
        raise InputError(
            "no stored conversation belongs to this folder; -c --all-folders continues the latest of all, "
            "segue log lists them"
        )

    def _compress_if_full(self) -> None:
        strategy, contexts = (
            self.providers.config.settings.compress,
            [self.context_of(endpoint) for endpoint in self.session.route.endpoints],
        )
        smallest = min((context for context in contexts if context is not None), default=None)
        if strategy is None or smallest is None or self.log.chat.tokens < _COMPRESS_ABOVE * smallest:
            return
        compressed = self.log.compress(strategy, int(COMPRESS_TO * smallest))
        self.session.emit(ConversationCompressed(strategy=strategy, before=compressed.before, after=compressed.tokens))


def _folder() -> str:
    """Return the working folder with links resolved, as it is stored."""
    return os.path.realpath(Path.cwd())
