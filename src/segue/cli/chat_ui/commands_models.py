"""Chat commands for model, provider, route and tool format. They take effect at the next request."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import msgspec

from segue._conversation import Conversation
from segue.bridge.providers import NO_MODEL, Endpoint
from segue.canonical.request import Options
from segue.cli.brief import EMPTY
from segue.cli.chat_ui.command import Command, Suggestion
from segue.cli.chat_ui.line_ui import LineUI
from segue.cli.chat_ui.model_list import list_models
from segue.cli.chat_ui.styles import Row, format_table
from segue.cli.request_options import NAMES, describe_options, parse_options, parse_value
from segue.errors import InputError
from segue.runtime.routing import ByRule, Failover, Fixed, RoundRobin, Route, RouteContext
from segue.view.brief import make_brief
from segue.view.format import format_short
from segue.view.sanitize import sanitize_line

if TYPE_CHECKING:
    from segue.cli.chat_ui.chat import Chat

_AUTO, _DEFAULT = "auto", "default"
_BRIEF = " --brief"
_ROUTES: dict[str, Callable[[Sequence[Endpoint]], Route]] = {
    "fixed": lambda endpoints: Fixed(endpoints[0]),
    "failover": Failover,
    "round-robin": RoundRobin,
}
_ROUTE_DESCRIPTIONS = {
    "fixed": "one model",
    "failover": "the first model that answers",
    "round-robin": "the next model for each exchange",
    "rules": "by the rules in the configuration",
}


def _route_kind(route: Route) -> str:
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
        chat.print_line(
            f"{endpoint.name}, API {endpoint.api}, tool format {_tool_format_name(endpoint)}; /models lists others"
        )
        # A copy, because a render is remembered as the last request, and the conversation may go on meanwhile.
        copied = Conversation.load(chat.session.log.chat.dump())
        rows = await asyncio.to_thread(list_models, chat.agent, copied, endpoint, chat.width)
        chat.print_rows([[], *rows, []])
        return
    name = arguments.removesuffix(_BRIEF).strip()
    if len(name.split()) > 1:
        raise InputError(f"too many arguments: {sanitize_line(arguments)!r}; usage: /model PROVIDER/MODEL [--brief]")
    endpoint = await _require_endpoint(chat, name)
    if not arguments.endswith(_BRIEF):
        _switch_route(chat, Fixed(endpoint))
        return
    brief = make_brief(chat.session.log.messages)
    if brief.is_empty:
        raise InputError(EMPTY)
    earlier = chat.agent.conversation_id
    if isinstance(chat.ui, LineUI):
        raise InputError(f"the hand-over is edited in the input line of a terminal; segue brief {earlier} prints it")
    await chat.switch_to(chat.agent.new_log())
    _switch_route(chat, Fixed(endpoint))
    kept = f"; the whole conversation stays in {earlier}" if earlier else ""
    chat.print_line(f"the hand-over is in the input line: edit it, and send it with Enter{kept}")
    chat.ui.restore_input(str(brief).rstrip())


async def _models(chat: Chat, arguments: str) -> None:
    rows: list[Row] = []
    known = chat.agent.providers
    found = known.find_provider(arguments) if arguments else None
    names = [found.name] if found is not None else [name for name in known.by_name if arguments in name]
    if not names:
        raise InputError(f"no provider matches {arguments!r}; /provider lists them")
    for name in names:
        provider = chat.agent.providers.by_name[name]
        key = "" if _has_key(chat, name) else f"  set {provider.variables[0] if provider.variables else 'a model'}"
        rows += [[], [("class:bold", f"  {provider.title}"), ("class:dim", key)]]
        cells = [
            (
                "▸" if chat.endpoint.name == f"{name}/{model}" else " ",
                f"{name}/{model}",
                f"{format_short(row.context)} tokens" if row.context else "",
            )
            for model, row in provider.models.items()
        ]
        rows += format_table(cells or [("", f"{name}/…", "any")], ("class:mark", "class:name", "class:dim"), chat.width)
    chat.print_rows([*rows, []])


async def _provider(chat: Chat, arguments: str) -> None:
    if arguments:
        _switch_route(chat, Fixed(await _require_endpoint(chat, arguments)))
        return
    cells = [
        (
            "▸" if chat.endpoint.provider == name else " ",
            name,
            "ready" if _has_key(chat, name) else "no key",
            provider.default,
        )
        for name, provider in chat.agent.providers.by_name.items()
    ]
    chat.print_rows([[], *format_table(cells, ("class:mark", "class:name", "", "class:dim"), chat.width), []])


async def _require_endpoint(chat: Chat, name: str) -> Endpoint:
    if not chat.agent.is_emulated:
        await chat.agent.find_served(name)
    endpoint = chat.agent.endpoint(name)
    if endpoint.lacks_key:
        raise InputError(
            f"no key for {endpoint.provider}: set {' or '.join(endpoint.variables)}, or run "
            f"segue keys set {endpoint.provider}; then restart"
        )
    return endpoint


def _has_key(chat: Chat, provider: str) -> bool:
    try:
        return not chat.agent.endpoint(
            f"{provider}/{chat.agent.providers.by_name[provider].default or NO_MODEL}"
        ).lacks_key
    except InputError:
        return False


def _switch_route(chat: Chat, route: Route) -> None:
    """Set the route from the next request on; the current reply and its tools stay with their model."""
    previous = chat.endpoint
    chat.session.set_route(route)
    endpoint = chat.endpoint
    cost = chat.agent.switch_cost(endpoint)
    meanwhile = f"; the current reply and its tools stay with {previous.name}" if chat.is_busy else ""
    others = f", {_route_kind(route)} of {len(route.endpoints)}" if len(route.endpoints) > 1 else ""
    chat.print_line(f"→ {endpoint.name}{others} from the next request{meanwhile}", "class:mark")
    if cost is not None:
        chat.print_line(f"  {cost}", "class:dim")
    if previous.tool_format != _AUTO and endpoint.tool_format == _AUTO:
        chat.print_line("  tool format reset to auto")


# -------------------------------------------------------------------------------------------------------------- route


async def _route(chat: Chat, arguments: str) -> None:
    route = chat.session.route
    if not arguments:
        kind, current = _route_kind(route), chat.endpoint.name
        rows = [("▸" if end.name == current else "", end.name, "") for end in route.endpoints]
        if isinstance(route, ByRule):
            context = RouteContext(chat.session.log.chat)
            first = next((rule for rule in route.rules if rule.matches(context)), None)
            rows = [
                ("▸" if rule is first and end.name == current else "", end.name, rule.why if number == 0 else "")
                for rule in route.rules
                for number, end in enumerate(rule.endpoints)
            ]
        head: Row = [("", "  "), ("class:bold", kind), ("class:dim", f"  {_ROUTE_DESCRIPTIONS[kind]}")]
        chat.print_rows([[], head, *format_table(rows, ("class:mark", "class:name", "class:dim"), chat.width), []])
        return
    kind, *names = arguments.split()
    if kind == "rules":
        if names:
            raise InputError("the models of rules are those of the configuration; usage: /route rules")
        _switch_route(chat, chat.agent.rules_route())
        return
    if kind not in _ROUTES:
        raise InputError(f"unknown route {kind!r}; use {', '.join(_ROUTES)}, followed by models, or rules")
    endpoints = [await _require_endpoint(chat, name) for name in names] or list(route.endpoints)
    _switch_route(chat, _ROUTES[kind](endpoints))


# ----------------------------------------------------------------------------------------------------------- options


async def _set(chat: Chat, arguments: str) -> None:
    agent, endpoint = chat.agent, chat.endpoint
    configured = describe_options(endpoint.options or Options())
    own = describe_options(agent.request_options)
    if not arguments:
        rows = [(name, value, "set here") for name, value in own.items()]
        rows += [
            (name, value, f"configured for {endpoint.name}") for name, value in configured.items() if name not in own
        ]
        head: Row = [("class:dim", "  no options are set" if not rows else "  options of requests")]
        chat.print_rows([[], head, *format_table(rows, ("class:name", "", "class:dim"), chat.width)])
        chat.print_line(f"/set NAME VALUE; names: {', '.join(NAMES)}")
        return
    name, _, value = arguments.replace("=", " ", 1).partition(" ")
    values = {key: parse_value(text) for key, text in own.items() if key != name}
    if value.strip() not in ("", _DEFAULT):
        values[name] = parse_value(value)
    elif name not in own:
        raise InputError(f"{name} is not set here; usage: /set NAME VALUE")
    agent.set_request_options(parse_options(values))
    state = values.get(name, "back to its default")
    chat.print_line(f"→ {name} {state} from the next request", "class:mark")


def _suggest_options(chat: Chat) -> list[Suggestion]:
    return list(NAMES.items())


# --------------------------------------------------------------------------------------------------------- toolformat


async def _toolformat(chat: Chat, arguments: str) -> None:
    from segue.wire.tool_formats import find_tool_format, load_tool_formats

    endpoint = chat.endpoint
    if not arguments:
        rows = [(_AUTO, f"default of {endpoint.model}: {_default_tool_format(endpoint)}", "")]
        rows += [
            (name, _tool_format_kind(name), "" if endpoint.api in tool_format.wires else f"not with {endpoint.api}")
            for name, tool_format in load_tool_formats().items()
        ]
        marked = [("▸" if row[0] == endpoint.tool_format else " ", *row) for row in rows]
        state = "auto" if endpoint.tool_format == _AUTO else "manual"
        head: Row = [("", "  tool format "), ("class:bold", _tool_format_name(endpoint)), ("class:dim", f" ({state})")]
        chat.print_rows(
            [[], head, *format_table(marked, ("class:mark", "class:name", "", "class:dim"), chat.width), []]
        )
        return
    tool_format = find_tool_format(arguments.lower())
    if tool_format is not None and endpoint.api not in tool_format.wires:
        supported = [name for name, other in load_tool_formats().items() if endpoint.api in other.wires]
        raise InputError(f"{endpoint.api} does not support tool format {arguments!r}; use auto, {', '.join(supported)}")
    if isinstance(chat.session.route, ByRule):
        raise InputError("the model is chosen by rules; select one with /model first")
    chat.session.set_route(_with_tool_format(chat.session.route, arguments.lower()))
    description = f"auto ({_default_tool_format(endpoint)})" if tool_format is None else tool_format.name
    chat.print_line(f"→ tool format {description} from the next request", "class:mark")


def _with_tool_format(route: Route, name: str) -> Route:
    def with_format(endpoint: Endpoint) -> Endpoint:
        return msgspec.structs.replace(endpoint, tool_format=name)

    return _ROUTES[_route_kind(route)]([with_format(endpoint) for endpoint in route.endpoints])


def _tool_format_name(endpoint: Endpoint) -> str:
    return _default_tool_format(endpoint) if endpoint.tool_format == _AUTO else endpoint.tool_format


def _default_tool_format(endpoint: Endpoint) -> str:
    """Return the tool format of the API or model by default."""
    import segue

    row = next((row for row in segue.formats() if row.name == endpoint.api), None)
    return (row.tool_format if row is not None else None) or segue.detect(endpoint.model).tool_format or endpoint.api


def _tool_format_kind(name: str) -> str:
    from segue.wire.text.registry import TEXT_FORMATS

    return "as text" if name in TEXT_FORMATS else "native"


# -------------------------------------------------------------------------------------------------------- completion


def _suggest_models(chat: Chat) -> list[Suggestion]:
    return [
        (f"{name}/{model}", provider.title)
        for name, provider in chat.agent.providers.by_name.items()
        for model in provider.models
    ]


def _suggest_providers(chat: Chat) -> list[Suggestion]:
    return [(name, provider.title) for name, provider in chat.agent.providers.by_name.items()]


def _suggest_routes(chat: Chat) -> list[Suggestion]:
    return [(kind, _ROUTE_DESCRIPTIONS[kind]) for kind in _ROUTE_DESCRIPTIONS] + _suggest_models(chat)


def _suggest_formats(chat: Chat) -> list[Suggestion]:
    from segue.wire.tool_formats import load_tool_formats

    return [(_AUTO, "the model's default"), *((name, _tool_format_kind(name)) for name in load_tool_formats())]


COMMANDS = (
    Command(
        "model",
        "show or switch the model; --brief: in a new conversation with a hand-over to edit",
        _model,
        "[PROVIDER/MODEL [--brief]]",
        suggestions=_suggest_models,
        max_words=2,
    ),
    Command("models", "list known models", _models, "[PROVIDER]", suggestions=_suggest_providers),
    Command(
        "provider",
        "list providers, or switch to one's default model",
        _provider,
        "[NAME]",
        suggestions=_suggest_providers,
    ),
    Command(
        "route",
        "show or set the route: fixed, failover, round-robin, rules",
        _route,
        "[KIND [MODEL…]]",
        suggestions=_suggest_routes,
        max_words=1_000,
    ),
    Command(
        "set",
        "show or set options of requests; VALUE default unsets one",
        _set,
        "[NAME VALUE]",
        suggestions=_suggest_options,
        max_words=1_000,
    ),
    Command("toolformat", "show or set the tool format", _toolformat, "[NAME|auto]", suggestions=_suggest_formats),
)
