"""Chat commands for model, provider, route and tool format. They take effect at the next request."""

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
    "failover": "the first model that answers",
    "round-robin": "the next model for each exchange",
    "rules": "by the rules in the configuration",
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


async def _model(chat: Chat, arguments: str) -> None:
    if not arguments:
        endpoint = chat.endpoint
        chat.tell(f"{endpoint.name}, API {endpoint.api}, tool format {_told(endpoint)}; /models lists others")
        return
    _take(chat, Fixed(_usable(chat, arguments)))


async def _models(chat: Chat, arguments: str) -> None:
    rows: list[Row] = []
    names = [name for name in chat.agent.known.providers if not arguments or name == arguments or arguments in name]
    if not names:
        raise InputError(f"unknown provider {arguments!r}; /provider lists them")
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


async def _provider(chat: Chat, arguments: str) -> None:
    if arguments:
        _take(chat, Fixed(_usable(chat, arguments)))
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
        raise InputError(f"no key for {endpoint.provider}: set {' or '.join(endpoint.variables)} and restart")
    return endpoint


def _has_key(chat: Chat, provider: str) -> bool:
    try:
        return not chat.agent.endpoint(f"{provider}/{chat.agent.known.providers[provider].default or '-'}").lacks_key
    except InputError:
        return False


def _take(chat: Chat, route: Route) -> None:
    """Set the route from the next request on; the current reply and its tools stay with their model."""
    previous = chat.endpoint
    chat.session.take(route)
    endpoint = chat.endpoint
    meanwhile = f"; the current reply and its tools stay with {previous.name}" if chat.busy else ""
    others = f", {kind_of(route)} of {len(route.endpoints)}" if len(route.endpoints) > 1 else ""
    chat.tell(f"→ {endpoint.name}{others} from the next request{meanwhile}", "class:mark")
    if previous.tool_format != _AUTO and endpoint.tool_format == _AUTO:
        chat.tell("  tool format reset to auto")


# -------------------------------------------------------------------------------------------------------------- route


async def _route(chat: Chat, arguments: str) -> None:
    route = chat.session.route
    if not arguments:
        rows = [("▸" if end.name == chat.endpoint.name else " ", end.name) for end in route.endpoints]
        kind = kind_of(route)
        head: Row = [("", "  "), ("class:bold", kind), ("class:dim", f"  {_ABOUT[kind]}")]
        chat.say([[], head, *table(rows, ("class:mark", "class:name"), chat.width), []])
        return
    kind, *names = arguments.split()
    if kind not in _KINDS:
        raise InputError(f"unknown route {kind!r}; use {', '.join(_KINDS)}, followed by models")
    endpoints = [_usable(chat, name) for name in names] or list(route.endpoints)
    _take(chat, _KINDS[kind](endpoints))


# --------------------------------------------------------------------------------------------------------- toolformat


async def _toolformat(chat: Chat, arguments: str) -> None:
    from segue.wire.formats import TOOL_FORMATS, known_format

    endpoint = chat.endpoint
    if not arguments:
        rows = [(_AUTO, f"default of {endpoint.model}: {_habit(endpoint)}", "")]
        rows += [
            (name, _way(name), "" if endpoint.api in tool_format.wires else f"not with {endpoint.api}")
            for name, tool_format in TOOL_FORMATS.items()
        ]
        marked = [("▸" if row[0] == endpoint.tool_format else " ", *row) for row in rows]
        state = "auto" if endpoint.tool_format == _AUTO else "manual"
        head: Row = [("", "  tool format "), ("class:bold", _told(endpoint)), ("class:dim", f" ({state})")]
        chat.say([[], head, *table(marked, ("class:mark", "class:name", "", "class:dim"), chat.width), []])
        return
    tool_format = known_format(arguments.lower())
    if tool_format is not None and endpoint.api not in tool_format.wires:
        supported = [name for name, other in TOOL_FORMATS.items() if endpoint.api in other.wires]
        raise InputError(f"{endpoint.api} does not support tool format {arguments!r}; use auto, {', '.join(supported)}")
    if isinstance(chat.session.route, ByRule):
        raise InputError("the model is chosen by rules; select one with /model first")
    chat.session.take(_formatted(chat.session.route, arguments.lower()))
    description = f"auto ({_habit(endpoint)})" if tool_format is None else tool_format.name
    chat.tell(f"→ tool format {description} from the next request", "class:mark")


def _formatted(route: Route, name: str) -> Route:
    def with_format(endpoint: Endpoint) -> Endpoint:
        return msgspec.structs.replace(endpoint, tool_format=name)

    return _KINDS[kind_of(route)]([with_format(endpoint) for endpoint in route.endpoints])


def _told(endpoint: Endpoint) -> str:
    return _habit(endpoint) if endpoint.tool_format == _AUTO else endpoint.tool_format


def _habit(endpoint: Endpoint) -> str:
    """The tool format of the API or model by default."""
    import segue

    row = next((row for row in segue.formats() if row.name == endpoint.api), None)
    return (row.tool_format if row is not None else None) or segue.detect(endpoint.model).tool_format or endpoint.api


def _way(name: str) -> str:
    from segue.wire.text.registry import TEXT_FORMATS

    return "as text" if name in TEXT_FORMATS else "native"


# -------------------------------------------------------------------------------------------------------- completion


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

    return [(_AUTO, "the model's default"), *((name, _way(name)) for name in TOOL_FORMATS)]


COMMANDS = (
    Command("model", "show or switch the model", _model, "[PROVIDER/MODEL]", offers=_offer_models),
    Command("models", "list known models", _models, "[PROVIDER]", offers=_offer_providers),
    Command(
        "provider", "list providers, or switch to one's default model", _provider, "[NAME]", offers=_offer_providers
    ),
    Command(
        "route",
        "show or set the route: fixed, failover, round-robin",
        _route,
        "[KIND [MODEL…]]",
        offers=_offer_routes,
        most=1_000,
    ),
    Command("toolformat", "show or set the tool format", _toolformat, "[NAME|auto]", offers=_offer_formats),
)
