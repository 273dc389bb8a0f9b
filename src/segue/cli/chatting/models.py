"""Commands that say whom to ask, and how tools are written for it. All of them take effect at the next request."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import msgspec

from segue.cli.chatting.command import Command, Offer
from segue.cli.chatting.figures import short
from segue.cli.chatting.looks import Row, table
from segue.errors import InputError
from segue.runtime.providers import Endpoint
from segue.runtime.switching import ByRule, Failover, Fixed, RoundRobin, Route

if TYPE_CHECKING:
    from segue.cli.chatting.loop import Chat

__all__ = ["COMMANDS", "kind_of"]

_AUTO = "auto"
_KINDS: dict[str, Callable[[Sequence[Endpoint]], Route]] = {
    "fixed": lambda endpoints: Fixed(endpoints[0]),
    "failover": Failover,
    "round-robin": RoundRobin,
}
_ABOUT = {
    "fixed": "one model",
    "failover": "the first that answers",
    "round-robin": "another one for each exchange",
    "rules": "by the rules of the configuration",
}


def kind_of(route: Route) -> str:
    match route:
        case Failover():
            return "failover"
        case RoundRobin():
            return "round-robin"
        case ByRule():
            return "rules"
        case _:
            return "fixed"


# ------------------------------------------------------------------------------------------------------------- models


async def _model(chat: Chat, words: str) -> None:
    if not words:
        endpoint = chat.endpoint
        chat.tell(f"{endpoint.name} over {endpoint.api}, tools as {_told(endpoint)}; /models lists others")
        return
    _take(chat, Fixed(_usable(chat, words)))


async def _models(chat: Chat, words: str) -> None:
    rows: list[Row] = []
    names = [name for name in chat.agent.known.providers if not words or name == words or words in name]
    if not names:
        raise InputError(f"there is no provider {words!r}; /provider lists them")
    for name in names:
        provider = chat.agent.known.providers[name]
        key = "" if _has_key(chat, name) else f"  set {provider.variables[0] if provider.variables else 'a model'}"
        rows += [[], [("class:bold", f"  {provider.title}"), ("class:dim", key)]]
        cells = [
            (
                "▸" if chat.endpoint.name == f"{name}/{model}" else " ",
                f"{name}/{model}",
                f"{short(row.context)} tokens" if row.context else "",
            )
            for model, row in provider.models.items()
        ]
        rows += table(cells or [("", f"{name}/…", "any")], ("class:mark", "class:name", "class:dim"), chat.width)
    chat.say([*rows, []])


async def _provider(chat: Chat, words: str) -> None:
    if words:
        _take(chat, Fixed(_usable(chat, words)))
        return
    cells = [
        (
            "▸" if chat.endpoint.provider == name else " ",
            name,
            "ready" if _has_key(chat, name) else "no key",
            provider.default,
        )
        for name, provider in chat.agent.known.providers.items()
    ]
    chat.say([[], *table(cells, ("class:mark", "class:name", "", "class:dim"), chat.width), []])


def _usable(chat: Chat, name: str) -> Endpoint:
    endpoint = chat.agent.endpoint(name)
    if endpoint.lacks_key:
        raise InputError(f"{endpoint.provider} has no key: set {' or '.join(endpoint.variables)} and start again")
    return endpoint


def _has_key(chat: Chat, provider: str) -> bool:
    try:
        return not chat.agent.endpoint(f"{provider}/{chat.agent.known.providers[provider].default or '-'}").lacks_key
    except InputError:
        return False


def _take(chat: Chat, route: Route) -> None:
    """From the next request on. A reply in flight stays with whoever began it."""
    before = chat.endpoint
    chat.session.take(route)
    endpoint = chat.endpoint
    meanwhile = f"; the reply in flight and its tools stay with {before.name}" if chat.busy else ""
    others = f", {kind_of(route)} of {len(route.endpoints)}" if len(route.endpoints) > 1 else ""
    chat.tell(f"→ {endpoint.name}{others} from the next request on{meanwhile}", "class:mark")
    if before.tool_format != _AUTO and endpoint.tool_format == _AUTO:
        chat.tell("  tools are written as the model is used to again (auto)")


# -------------------------------------------------------------------------------------------------------------- route


async def _route(chat: Chat, words: str) -> None:
    route = chat.session.route
    if not words:
        rows = [("▸" if end.name == chat.endpoint.name else " ", end.name) for end in route.endpoints]
        kind = kind_of(route)
        head: Row = [("", "  "), ("class:bold", kind), ("class:dim", f"  {_ABOUT[kind]}")]
        chat.say([[], head, *table(rows, ("class:mark", "class:name"), chat.width), []])
        return
    kind, *names = words.split()
    if kind not in _KINDS:
        raise InputError(f"{kind!r} is no route; there are {', '.join(_KINDS)}, each with models behind it")
    endpoints = [_usable(chat, name) for name in names] or list(route.endpoints)
    _take(chat, _KINDS[kind](endpoints))


# --------------------------------------------------------------------------------------------------------- toolformat


async def _toolformat(chat: Chat, words: str) -> None:
    from segue.wire.formats import TOOL_FORMATS, known_format

    endpoint = chat.endpoint
    if not words:
        rows = [(_AUTO, f"as {endpoint.model} is used to: {_habit(endpoint)}", "")]
        rows += [
            (name, _way(name), "" if endpoint.api in form.wires else f"not over {endpoint.api}")
            for name, form in TOOL_FORMATS.items()
        ]
        marked = [("▸" if row[0] == endpoint.tool_format else " ", *row) for row in rows]
        state = "auto" if endpoint.tool_format == _AUTO else "manual"
        head: Row = [("", "  tools are written as "), ("class:bold", _told(endpoint)), ("class:dim", f" ({state})")]
        chat.say([[], head, *table(marked, ("class:mark", "class:name", "", "class:dim"), chat.width), []])
        return
    form = known_format(words.lower())
    if form is not None and endpoint.api not in form.wires:
        fitting = [name for name, other in TOOL_FORMATS.items() if endpoint.api in other.wires]
        raise InputError(f"{endpoint.api} does not take {words!r}; it takes auto, {', '.join(fitting)}")
    if isinstance(chat.session.route, ByRule):
        raise InputError("rules choose the model here; name one with /model first")
    chat.session.take(_formatted(chat.session.route, words.lower()))
    how = f"auto: {_habit(endpoint)}" if form is None else f"{form.name}, whatever the model is used to"
    chat.tell(f"→ tools are written as {how}, from the next request on", "class:mark")


def _formatted(route: Route, name: str) -> Route:
    def changed(endpoint: Endpoint) -> Endpoint:
        return msgspec.structs.replace(endpoint, tool_format=name)

    return _KINDS[kind_of(route)]([changed(endpoint) for endpoint in route.endpoints])


def _told(endpoint: Endpoint) -> str:
    return _habit(endpoint) if endpoint.tool_format == _AUTO else endpoint.tool_format


def _habit(endpoint: Endpoint) -> str:
    """How the model is used to tools, where nothing else is said."""
    import segue

    row = next((row for row in segue.formats() if row.name == endpoint.api), None)
    return (row.tool_format if row is not None else None) or segue.detect(endpoint.model).tool_format or endpoint.api


def _way(name: str) -> str:
    from segue.wire.text.registry import TEXT_FORMATS

    return "in words" if name in TEXT_FORMATS else "declared"


# ------------------------------------------------------------------------------------------------------------- offers


def _offer_models(chat: Chat) -> list[Offer]:
    return [
        (f"{name}/{model}", provider.title)
        for name, provider in chat.agent.known.providers.items()
        for model in provider.models
    ]


def _offer_providers(chat: Chat) -> list[Offer]:
    return [(name, provider.title) for name, provider in chat.agent.known.providers.items()]


def _offer_routes(chat: Chat) -> list[Offer]:
    return [(kind, _ABOUT[kind]) for kind in _KINDS] + _offer_models(chat)


def _offer_formats(chat: Chat) -> list[Offer]:
    from segue.wire.formats import TOOL_FORMATS

    return [(_AUTO, "as the model is used to"), *((name, _way(name)) for name in TOOL_FORMATS)]


COMMANDS = (
    Command("model", "whom to ask from the next request on", _model, "[PROVIDER/MODEL]", offers=_offer_models),
    Command("models", "the models that are known", _models, "[PROVIDER]", offers=_offer_providers),
    Command("provider", "a provider's default model", _provider, "[NAME]", offers=_offer_providers),
    Command("route", "fixed, failover, round-robin", _route, "[KIND [MODEL…]]", offers=_offer_routes, most=1_000),
    Command("toolformat", "how tools are written", _toolformat, "[NAME|auto]", offers=_offer_formats),
)
