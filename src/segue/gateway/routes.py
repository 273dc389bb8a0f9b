"""Routes: which models a caller's model name stands for.

A route has a pattern for names (`claude-*`), and targets: the first is preferred, the others are fallbacks, or all take
turns. Conditions select routes by the size of the request, by images and by reasoning. The first route that matches is
used. A name that no route matches is that of a model itself (`provider/model`), or is served by the default targets.
A name with a provider, or an alias, is served by its route or its own model, and never by other targets.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from fnmatch import fnmatchcase
from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Struct

from segue.bridge.failover import Conditions, Preference, rotate
from segue.bridge.listings import ModelEntry
from segue.bridge.provider_errors import missing_key_error
from segue.bridge.providers import Endpoint
from segue.bridge.routes import CachePolicy, CountPolicy, Route, RouteQuery
from segue.errors import InputError
from segue.render.constraints import Policy
from segue.wire.registry import WIRES

_ATTEMPTS = 2
Balance = Literal["failover", "round-robin"]


class RouteSettings(Conditions, frozen=True, forbid_unknown_fields=True):
    """A `[[gateway.routes]]` table. `model` is a name or a pattern."""

    targets: tuple[str, ...]
    model: str = "*"
    name: str = ""
    balance: Balance = "failover"
    prefer: Preference = "first"
    caller: str | None = None
    cache: CachePolicy = "auto"
    token_counting: CountPolicy = "estimate"
    attempts: Annotated[int, Meta(ge=1)] = _ATTEMPTS
    auth: Literal["gateway", "client"] = "gateway"
    buffer_tool_calls: bool = False
    policy: Policy = Policy()

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.caller is not None and self.caller not in WIRES:
            raise ValueError(f"unknown caller {self.caller!r}; expected one of {', '.join(WIRES)}")
        if self.prefer == "cheapest" and self.balance == "round-robin":
            raise ValueError(
                'prefer = "cheapest" decides which target comes first, so that balance can\'t be round-robin'
            )

    def matches(self, query: RouteQuery) -> bool:
        """Return whether the route is used for a request."""
        return fnmatchcase(query.model or "", self.model) and self.match(query)

    def shadows(self, later: RouteSettings) -> bool:
        """Return whether a later route is never used beside this one."""
        # With other wildcards than *, a pattern may match the text of another one, but not all of its names.
        is_plain = self.model == "*" or not ({*self.model} & {*"?["} or "[" in later.model)
        matches = self.model == later.model or (is_plain and fnmatchcase(later.model, self.model))
        return matches and self.covers(later)


class _Row:
    """A route with its endpoints resolved, and the turn of the next request."""

    def __init__(self, settings: RouteSettings, endpoints: Sequence[Endpoint], name: str) -> None:
        self.settings = settings
        self.name = name
        self._endpoints = tuple(endpoints)
        self._turn = itertools.count()

    @property
    def endpoints(self) -> tuple[Endpoint, ...]:
        return self._endpoints

    def build(self, *, is_default: bool = False) -> Route:
        settings, endpoints = self.settings, self._endpoints
        if settings.balance == "round-robin":
            endpoints = rotate(endpoints, next(self._turn))
        return Route(
            self.name,
            endpoints,
            caller=settings.caller,
            policy=settings.policy,
            cache=settings.cache,
            token_counting=settings.token_counting,
            attempts=settings.attempts,
            pass_credentials=settings.auth == "client",
            prefer=settings.prefer,
            is_default=is_default,
            buffer_tool_calls=settings.buffer_tool_calls,
        )


class _Names(Struct, frozen=True):
    """The names of models in one load of the configuration."""

    resolve: Callable[[str], Endpoint]
    aliases: Mapping[str, str] = {}

    def is_chosen(self, name: str) -> bool:
        """Return whether a name is that of one model: with its provider, or an alias."""
        return "/" in name or name in self.aliases


def _name_routes(routes: Sequence[RouteSettings]) -> Iterator[str]:
    """Yield the names of routes: one without a name has its pattern, with a number where that is taken."""
    taken = {settings.name for settings in routes}
    for settings in routes:
        numbered = (f"{settings.model} {number}" for number in itertools.count(2))
        name = settings.name or next(
            name for name in (settings.model, *itertools.islice(numbered, len(routes))) if name not in taken
        )
        taken.add(name)
        yield name


def _build_row(settings: RouteSettings, path: str, names: _Names, name: str = "") -> _Row:
    if not settings.targets:
        raise InputError("at least one target is needed", path=path)
    try:
        endpoints = [names.resolve(names.aliases.get(name, name)) for name in settings.targets]
    except InputError as error:
        raise InputError(error.message, path=path) from None
    return _Row(settings, endpoints, name or settings.name)


class RouteTable:
    """All routes of a gateway. They can be replaced while it runs; requests that have begun keep theirs.

    `resolve` returns the endpoint of a model name.
    """

    def __init__(self, resolve: Callable[[str], Endpoint]) -> None:
        self._lock = threading.Lock()
        self._rows: tuple[_Row, ...] = ()
        self._default: _Row | None = None
        self._prefers_default = False
        self._override: _Row | None = None
        self._buffers_tool_calls = False
        self._names = _Names(resolve)

    def configure(
        self,
        routes: Sequence[RouteSettings],
        *,
        default: Sequence[str] = (),
        prefers_default: bool = False,
        aliases: Mapping[str, str] | None = None,
        resolve: Callable[[str], Endpoint] | None = None,
        buffer_tool_calls: bool = False,
    ) -> None:
        """Replace the routes; raise `InputError` if a target can't be resolved, and keep the old ones then.

        `resolve` replaces the one that the table was made with: the providers may have changed too.
        `default` are the targets of names that are unknown; with `prefers_default`, of all names without a provider.
        `buffer_tool_calls` is that of all routes.
        """
        names = _Names(resolve or self._names.resolve, aliases or {})
        rows = tuple(
            _build_row(settings, f"gateway.routes[{index}].targets", names, name)
            for index, (settings, name) in enumerate(zip(routes, _name_routes(routes), strict=True))
        )
        settings = RouteSettings(tuple(default), name="default")
        default_row = _build_row(settings, "model", names) if default else None
        with self._lock:
            self._rows, self._default, self._names = rows, default_row, names
            self._prefers_default, self._buffers_tool_calls = prefers_default, buffer_tool_calls

    def override(self, models: Sequence[str]) -> tuple[str, ...]:
        """Serve all names without a provider with these models from now on; with none, with the routes again.

        Return the new targets.
        """
        row = _build_row(RouteSettings(tuple(models), name="override"), "model", self._names) if models else None
        if row is not None and all(endpoint.lacks_key for endpoint in row.endpoints):
            raise InputError(missing_key_error(row.endpoints[0]).message, path="model")
        with self._lock:
            self._override = row
        return tuple(endpoint.name for endpoint in row.endpoints) if row is not None else ()

    @property
    def in_force(self) -> tuple[str, ...]:
        """The models that serve names without a provider: those of `override`, else the default ones."""
        row = self._override or self._default
        return tuple(endpoint.name for endpoint in row.endpoints) if row is not None else ()

    def is_chosen(self, name: str) -> bool:
        """Return whether a name is that of one model, which neither `override` nor the default targets serve."""
        return self._names.is_chosen(name)

    def is_overridden(self, model: str | None) -> bool:
        """Return whether `override` decides about a name: one without a provider that is no alias."""
        return self._override is not None and not self.is_chosen(model or "")

    def find(self, query: RouteQuery) -> Route:
        """Return the route of a request; raise `InputError` if there is none."""
        route = self._find(query)
        return msgspec.structs.replace(route, buffer_tool_calls=True) if self._buffers_tool_calls else route

    def _find(self, query: RouteQuery) -> Route:
        with self._lock:
            override, rows, default, names = self._override, self._rows, self._default, self._names
        name = query.model or ""
        if override is not None and not names.is_chosen(name):
            return override.build()
        row = next((row for row in rows if row.settings.matches(query)), None)
        if row is not None:
            return row.build()
        if default is not None and (not name or (self._prefers_default and not names.is_chosen(name))):
            return default.build(is_default=bool(name))
        try:
            target = names.aliases.get(name, name)
            return Route(target, (names.resolve(target),), attempts=_ATTEMPTS)
        except InputError:
            if default is None or names.is_chosen(name):
                raise
            return default.build(is_default=True)

    @property
    def targets(self) -> tuple[Endpoint, ...]:
        """The targets of all routes."""
        with self._lock:
            rows = [row for row in (self._override, *self._rows, self._default) if row is not None]
        return tuple(endpoint for row in rows for endpoint in row.endpoints)

    @property
    def paid_targets(self) -> tuple[Endpoint, ...]:
        """The targets that the gateway pays for, each once."""
        with self._lock:
            rows = [row for row in (self._override, *self._rows, self._default) if row is not None]
        paid = (row for row in rows if row.settings.auth == "gateway")
        return tuple({endpoint.name: endpoint for row in paid for endpoint in row.endpoints}.values())

    @property
    def problems(self) -> Mapping[str, str]:
        """Why targets of routes, and aliases, can't be served, by their names."""
        with self._lock:
            rows = [row for row in (self._override, *self._rows, self._default) if row is not None]
            names, routed = self._names, self._rows
        found: dict[str, str] = {}
        for row in rows:
            for endpoint in row.endpoints:
                if endpoint.lacks_key and row.settings.auth != "client":
                    found[endpoint.name] = missing_key_error(endpoint).message
        for alias, model in names.aliases.items():
            try:
                endpoint = names.resolve(model)
            except InputError as error:
                found[alias] = error.message
            else:
                if endpoint.lacks_key and self._find_row(alias, routed) is None:
                    found[alias] = missing_key_error(endpoint).message
        return found

    def _find_row(self, name: str, rows: Iterable[_Row]) -> _Row | None:
        return next((row for row in rows if fnmatchcase(name, row.settings.model)), None)

    def list_models(self, allows: Callable[[str, str], bool] = lambda _name, _route: True) -> tuple[ModelEntry, ...]:
        """Return the names that callers can use: those of routes without patterns, aliases, and the targets.

        Names whose targets all lack their key are left out, and those that `allows` refuses with the name of the route.
        """
        with self._lock:
            first, names = self._override or self._default, self._names
            rows = self._rows if first is None else (first, *self._rows)
            routed = self._rows
        entries: dict[str, ModelEntry] = {}

        def add(name: str, endpoints: Sequence[Endpoint]) -> None:
            row = self._find_row(name, routed)
            served = endpoints if row is None else row.endpoints
            has_key = (row is not None and row.settings.auth == "client") or not all(e.lacks_key for e in served)
            if has_key and allows(name, row.name if row is not None else endpoints[0].name):
                target = endpoints[0]
                entries.setdefault(name, ModelEntry(name, target.provider, context=target.context))

        for row in rows:
            if not set(row.settings.model) & set("*?["):
                add(row.settings.model, row.endpoints)
        for alias, model in names.aliases.items():
            with suppress(InputError):
                add(alias, (names.resolve(model),))
        for row in rows:
            for target in row.endpoints:
                add(target.name, (target,))
        return tuple(entries.values())
