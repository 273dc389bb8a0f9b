"""Builds an agent from configuration and flags: models, tools, the conversation and its store.

Shared by `segue run` and `segue chat`, which differ only in the event listener and the approval prompt.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from segue.canonical.request import Usage
from segue.cli import config, stored, streams
from segue.cli.emulated import Emulated
from segue.cli.equipment import Equipment
from segue.cli.known import Known
from segue.cli.wishes import Wishes
from segue.conversation import Conversation
from segue.errors import InputError, SegueError
from segue.runtime.book import Book, Memory
from segue.runtime.events import Compressed, Ended
from segue.runtime.providers import Endpoint
from segue.runtime.scheduler import Limits
from segue.runtime.session import Listen, Session
from segue.runtime.switching import ByRule, Failover, Fixed, RoundRobin, Route, Rule, Situation
from segue.runtime.tooling import Approve
from segue.store.conversation import StoredConversation

if TYPE_CHECKING:
    from types import TracebackType

    from segue.runtime.toolbox import Toolbox
    from segue.runtime.upstream import Upstream
    from segue.store.base import HistoryStore

__all__ = ["Agent"]

_SYSTEM = (
    "You are an agent at a command line. Use the tools to look and to act, and don't guess what you can look up. Paths "
    "are relative to the working folder. Where a call is denied, go on without it, or say what you would need. Answer "
    "in plain text, and say no more than was asked for."
)
_OF_TASKS = "task: "
_LOOKED_AT = 200
# Usage by which models are compared on price: an agent reads much more than it writes.
_TYPICAL = Usage(input=1_000_000, output=50_000)
# A conversation is compressed above the first share of the model's context, down to the second.
_FULL, _ROOMY = 0.85, 0.6


class Agent:
    """A session and everything it needs, for the duration of `async with`.

    `model` is the first model of the route and `model_reason` how it was chosen; `is_emulated` means that no real
    provider is used. `confirm_trust` asks the user about an untrusted project file; None where there is no terminal.
    """

    def __init__(
        self,
        wishes: Wishes,
        *,
        listen: Listen = lambda event: None,
        approve: Approve | None = None,
        ask_trust: config.Ask | None = None,
    ) -> None:
        self._wishes = wishes
        self._listen = listen
        self._approve = approve
        self._ask_trust = ask_trust
        self._stack = AsyncExitStack()
        self._emulated: Emulated | None = None
        self.known: Known
        self.route: Route
        self.why = ""
        self.store: HistoryStore | None = None
        self.tools: Equipment
        self.toolbox: Toolbox
        self.session: Session
        self._upstream: Upstream

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
        finally:
            await self._stack.aclose()

    async def _build(self) -> None:
        from segue.runtime.upstream import Upstream

        if not streams.in_a_folder():
            raise streams.Unreadable(streams.NO_FOLDER)
        loaded = config.load(trusting=self._wishes.trusting, ask=self._ask_trust)
        if loaded.untrusted is not None and self._ask_trust is None:
            streams.say(_untrusted(loaded.untrusted))
        self.known = Known(loaded)
        self.route = self._routed()
        self._upstream = Upstream()
        self._stack.push_async_callback(self._upstream.close)
        self.tools = Equipment(self.known, self._wishes)
        self._stack.push_async_callback(self.tools.close)
        self.toolbox = await self.tools.toolbox(Path.cwd())
        if self._wishes.keep:
            self.store = self._stack.enter_context(stored.opened(make=True, trusting=self._wishes.trusting, told=True))
        log = self._book()
        if isinstance(log, StoredConversation) and not self._wishes.models:
            self._go_on_with(log)
        self.session = self._session(log)

    def _session(self, book: Book) -> Session:
        tools = self.known.config.settings.tools
        default = Limits()
        limits = Limits(
            parallel=tools.parallel or default.parallel,
            timeout=tools.timeout or default.timeout,
            steps=self._wishes.steps or default.steps,
        )
        return Session(
            book,
            self.route,
            upstream=self._upstream,
            toolbox=self.toolbox,
            listen=self._listen,
            approve=self._approve,
            limits=limits,
            debug=self._wishes.debug,
            models=self.endpoint if self.tools.has_tasks else None,
        )

    # --------------------------------------------------------------------------------------------------------- models

    @property
    def emulated(self) -> bool:
        return self._emulated is not None

    @property
    def model(self) -> str:
        return self.route.endpoints[0].name

    def endpoint(self, name: str) -> Endpoint:
        """The endpoint of a model; raises `InputError` for an unknown name."""
        if self._emulated is not None:
            return self.known.with_format(self._emulated.endpoint(name), self._wishes.tool_format)
        return self.known.endpoint(name, self._wishes.tool_format)

    def price(self, provider: str, model: str, usage: Usage) -> float | None:
        """The cost of a reply in dollars; None where no price is known."""
        return None if self.emulated else self.known.cost(provider, model, usage)

    def _routed(self) -> Route:
        settings = self.known.config.settings
        if self._wishes.models:
            return self._among(self._wishes.models, "")
        if settings.route == "rules":
            self.why = "by rules"
            rules = [
                Rule(rule.when, tuple(map(self.endpoint, rule.chosen)), rule.tokens or 0) for rule in settings.rules
            ]
            return ByRule(rules, price=self._price_of)
        if settings.chosen:
            return self._among(settings.chosen, self.known.config.chosen_by(), settings.route)
        found = self.known.first()
        if found is not None:
            row = self.known.providers[found.provider]
            return self._among((found.name,), f"{self.known.key_of(row)} is set")
        self._emulated = Emulated(self.known)
        self._stack.callback(self._emulated.close)
        first = next(row for row in self.known.providers.values() if row.default)
        return self._among((f"{first.name}/{first.default}",), "emulated: no API key is set, see segue models")

    def _go_on_with(self, book: StoredConversation) -> None:
        """Put the conversation's last model first, unless the route is round-robin or by rules."""
        timeline = book.timeline
        if timeline.provider is None or timeline.model is None:
            return
        name = f"{timeline.provider}/{timeline.model}"
        if not isinstance(self.route, Fixed | Failover) or name == self.model:
            return
        others = [endpoint.name for endpoint in self.route.endpoints]
        try:
            lacks_key = self.known.endpoint(name).lacks_key
            why = f"no key for {name}"
        except SegueError as error:
            lacks_key, why = True, str(error)
        if lacks_key:
            if not self.emulated:
                self.why = f"{self.why}{'; ' if self.why else ''}the conversation's last model can't be used: {why}"
            return
        self._emulated = None
        last_used = "last used in this conversation"
        if name in others:
            self.route = self._among((name, *others), last_used)
        else:
            self.route = self._among((name,), last_used)

    def _among(self, names: Sequence[str], why: str, kind: str | None = None) -> Route:
        """A route over these models; several are a failover in this order unless `kind` is given."""
        self.why = why
        endpoints = [self.endpoint(name) for name in dict.fromkeys(names)]
        if kind == "round-robin":
            return RoundRobin(endpoints)
        return Fixed(endpoints[0]) if kind == "fixed" or len(endpoints) == 1 else Failover(endpoints)

    def _price_of(self, endpoint: Endpoint) -> float | None:
        return self.known.cost(endpoint.provider, endpoint.model, _TYPICAL)

    # --------------------------------------------------------------------------------------------------- conversation

    @property
    def book(self) -> Book:
        return self.session.book

    @property
    def conversation(self) -> str | None:
        """The id in the store; None where the conversation is not stored."""
        return self.book.id if self.store is not None else None

    async def ask(self, content: Any) -> Ended:
        """Run an exchange; the conversation is compressed first where it nearly fills the context."""
        with suppress(SegueError):
            self._make_fit()
        return await self.session.ask(content)

    @property
    def keyless(self) -> bool:
        """Whether the next request would fail because its provider has no key."""
        return self.session.route.choose(Situation(self.book.chat)).endpoint.lacks_key

    def forget(self) -> None:
        """Delete a conversation that no model has answered."""
        log = self.book
        if self.store is None or any(message.speaker == "ai" for message in log.messages):
            return
        log.close()
        with suppress(SegueError):
            self.store.delete(log.id)

    async def take(self, book: Book) -> None:
        """Continue with another conversation on the same route."""
        self.route = self.session.route
        await self.session.close()
        self.session = self._session(book)

    def new(self) -> Book:
        """A new, empty conversation."""
        default = _SYSTEM if self.toolbox.declarations else None
        chat = Conversation(system=default if self._wishes.system is None else self._wishes.system)
        return Memory(chat) if self.store is None else StoredConversation.create(self.store, chat)

    def kept(self, prefix: str) -> StoredConversation:
        """A stored conversation by a prefix of its id."""
        if self.store is None:
            raise InputError("conversations are not stored (--no-store)")
        return StoredConversation(self.store, self.store.find(prefix))

    def _book(self) -> Book:
        options = self._wishes
        if not options.latest and options.conversation is None:
            return self.new()
        assert self.store is not None
        if options.conversation is not None:
            name = options.conversation
        else:
            # Subagents' conversations are stored too, but are not continued.
            rows = (row for row in self.store.list(_LOOKED_AT) if not (row.title or "").startswith(_OF_TASKS))
            latest = next(rows, None)
            if latest is None:
                raise InputError("no stored conversation to continue")
            name = latest.id
        log = self.kept(name)
        if options.fork:
            log = log.fork()
        if options.system is not None and options.system != log.chat.system:
            log.set(system=options.system)
        return log

    def _make_fit(self) -> None:
        strategy, contexts = self.known.config.settings.compress, [it.context for it in self.session.route.endpoints]
        smallest = min((context for context in contexts if context is not None), default=None)
        if strategy is None or smallest is None or self.book.chat.tokens < _FULL * smallest:
            return
        compressed = self.book.compress(strategy, int(_ROOMY * smallest))
        self.session.emit(Compressed(strategy=strategy, before=compressed.before, after=compressed.tokens))


def _untrusted(source: config.Source) -> str:
    return f"{source.path} is not trusted; ignored settings: {', '.join(source.withheld)}; run segue trust to trust it"
