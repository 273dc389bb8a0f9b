"""An agent from what the user set and asked for: models, tools, the conversation and where it is kept.

`segue run` and `segue chat` both come through here, and differ only in who listens and who can be asked.
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
# What requests are compared by: an agent reads much more than it writes.
_TYPICAL = Usage(input=1_000_000, output=50_000)
# A conversation is made to fit when it fills so much of a model's context, and then to so much.
_FULL, _ROOMY = 0.85, 0.6


class Agent:
    """A session and all that it needs, from `async with` to its end.

    `model` is whom it asks first and `why`; `emulated` says that nobody real is asked. `ask_trust` is asked about the
    project's file, where somebody can be.
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

    # ---------------------------------------------------------------------------------------------- beginning and end

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
        book = self._book()
        if isinstance(book, StoredConversation) and not self._wishes.models:
            self._go_on_with(book)
        self.session = self._session(book)

    def _session(self, book: Book) -> Session:
        tools = self.known.config.settings.tools
        usual = Limits()
        limits = Limits(
            parallel=tools.parallel or usual.parallel,
            timeout=tools.timeout or usual.timeout,
            steps=self._wishes.steps or usual.steps,
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

    # -------------------------------------------------------------------------------------------------- who is asked

    @property
    def emulated(self) -> bool:
        return self._emulated is not None

    @property
    def model(self) -> str:
        return self.route.endpoints[0].name

    def endpoint(self, name: str) -> Endpoint:
        """A model by its name; an `InputError` where there is none."""
        if self._emulated is not None:
            return self.known.with_format(self._emulated.endpoint(name), self._wishes.tool_format)
        return self.known.endpoint(name, self._wishes.tool_format)

    def price(self, provider: str, model: str, usage: Usage) -> float | None:
        """What a reply cost; None where no price is known."""
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
        return self._among((f"{first.name}/{first.default}",), "emulated: no key is set, see segue models")

    def _go_on_with(self, book: StoredConversation) -> None:
        """Whoever was asked last in the conversation goes on, unless a route has its own say in it."""
        line = book.timeline
        if line.provider is None or line.model is None:
            return
        name = f"{line.provider}/{line.model}"
        if not isinstance(self.route, Fixed | Failover) or name == self.model:
            return
        others = [endpoint.name for endpoint in self.route.endpoints]
        try:
            lacks = self.known.endpoint(name).lacks_key
            why = f"there is no key for {name}"
        except SegueError as error:
            lacks, why = True, str(error)
        if lacks:
            if not self.emulated:
                self.why = f"{self.why}{'; ' if self.why else ''}the conversation's own can't be asked: {why}"
            return
        self._emulated = None
        goes_on = "it was asked last in this conversation"
        if name in others:
            self.route = self._among((name, *others), goes_on)
        else:
            self.route = self._among((name,), goes_on)

    def _among(self, names: Sequence[str], why: str, kind: str | None = None) -> Route:
        """A route over these; several are asked in their order unless something else is said."""
        self.why = why
        endpoints = [self.endpoint(name) for name in dict.fromkeys(names)]
        if kind == "round-robin":
            return RoundRobin(endpoints)
        return Fixed(endpoints[0]) if kind == "fixed" or len(endpoints) == 1 else Failover(endpoints)

    def _price_of(self, endpoint: Endpoint) -> float | None:
        return self.known.cost(endpoint.provider, endpoint.model, _TYPICAL)

    # ---------------------------------------------------------------------------------------------------- what is said

    @property
    def book(self) -> Book:
        return self.session.book

    @property
    def conversation(self) -> str | None:
        """The id under which it is kept."""
        return self.book.id if self.store is not None else None

    async def ask(self, content: Any) -> Ended:
        """An exchange, in a conversation that fits."""
        with suppress(SegueError):
            self._make_fit()
        return await self.session.ask(content)

    @property
    def keyless(self) -> bool:
        """Whether whoever would be asked now has no key, so that no request will go out."""
        return self.session.route.choose(Situation(self.book.chat)).endpoint.lacks_key

    def forget(self) -> None:
        """What nobody was ever asked is not kept."""
        book = self.book
        if self.store is None or any(message.speaker == "ai" for message in book.messages):
            return
        book.close()
        with suppress(SegueError):
            self.store.delete(book.id)

    async def take(self, book: Book) -> None:
        """Goes on with another conversation, with the route that there is."""
        self.route = self.session.route
        await self.session.close()
        self.session = self._session(book)

    def new(self) -> Book:
        """A conversation in which nothing was said."""
        usual = _SYSTEM if self.toolbox.declarations else None
        chat = Conversation(system=usual if self._wishes.system is None else self._wishes.system)
        return Memory(chat) if self.store is None else StoredConversation.create(self.store, chat)

    def kept(self, prefix: str) -> StoredConversation:
        """A conversation by the beginning of its id."""
        if self.store is None:
            raise InputError("nothing is kept here (--no-store)")
        return StoredConversation(self.store, self.store.find(prefix))

    def _book(self) -> Book:
        wishes = self._wishes
        if not wishes.latest and wishes.conversation is None:
            return self.new()
        assert self.store is not None
        if wishes.conversation is not None:
            name = wishes.conversation
        else:
            # What subagents said is kept too, and is nobody's to go on with.
            rows = (row for row in self.store.list(_LOOKED_AT) if not (row.title or "").startswith(_OF_TASKS))
            latest = next(rows, None)
            if latest is None:
                raise InputError("there is no conversation to go on with yet")
            name = latest.id
        book = self.kept(name)
        if wishes.fork:
            book = book.fork()
        if wishes.system is not None and wishes.system != book.chat.system:
            book.set(system=wishes.system)
        return book

    def _make_fit(self) -> None:
        strategy, contexts = self.known.config.settings.compress, [it.context for it in self.session.route.endpoints]
        smallest = min((context for context in contexts if context is not None), default=None)
        if strategy is None or smallest is None or self.book.chat.tokens < _FULL * smallest:
            return
        made = self.book.compress(strategy, int(_ROOMY * smallest))
        self.session.emit(Compressed(strategy=strategy, before=made.before, after=made.tokens))


def _untrusted(source: config.Source) -> str:
    return f"{source.path} is not trusted, so this does not count: {', '.join(source.withheld)}; segue trust trusts it"
