"""The registry: one row for each API and each server profile.

The five wires are listed here. Dialects and server profiles are the modules of `wire/dialects`: each has a constant
`WIRE`, or `WIRES` for several. The command line, the tests and the docs iterate these tables.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Iterator
from importlib import import_module
from types import ModuleType

from msgspec import Struct

from segue.errors import InputError, require_string, unknown_name_error, validate_profile
from segue.models import parse_model, tokenize_name
from segue.specs.providers import load_services, providers_by_name
from segue.wire import dialects
from segue.wire.anthropic import ANTHROPIC
from segue.wire.base import Wire
from segue.wire.bedrock import BEDROCK
from segue.wire.gemini import GEMINI
from segue.wire.mixed_body import register_parsers
from segue.wire.openai_chat import OPENAI_CHAT
from segue.wire.openai_responses import OPENAI_RESPONSES
from segue.wire.text.registry import FORMATS

_BASE_WIRES = (OPENAI_CHAT, OPENAI_RESPONSES, ANTHROPIC, GEMINI, BEDROCK)
# The first dialects in lists and tables; others follow in alphabetical order of their modules.
_FIRST = ("azure_foundry", "mistral", "kimi", "deepseek", "qwen")


def _load_dialects() -> Iterator[Wire]:
    modules = [module.name for module in pkgutil.iter_modules(dialects.__path__)]
    for name in (*_FIRST, *(name for name in modules if name not in _FIRST)):
        yield from _wires_of(import_module(f"{dialects.__name__}.{name}"))


def _wires_of(module: ModuleType) -> tuple[Wire, ...]:
    wires = (module.WIRE,) if hasattr(module, "WIRE") else getattr(module, "WIRES", ())
    if not wires:
        raise ImportError(f"{module.__name__} has no constant WIRE", name=module.__name__, path=module.__file__)
    return wires


def _index_by_name(wires: Iterator[Wire]) -> tuple[dict[str, Wire], dict[str, Wire]]:
    apis: dict[str, Wire] = {wire.name: wire for wire in _BASE_WIRES}
    servers: dict[str, Wire] = {}
    for wire in wires:
        table, name = (apis, wire.name) if wire.profile is None else (servers, wire.profile)
        if name in table:
            raise ImportError(f"two rows of the registry have the name {name}")
        table[name] = wire
    return apis, servers


WIRES, SERVERS = _index_by_name(_load_dialects())
"""APIs by name, and server profiles by name."""
register_parsers({name: wire.parse_request for name, wire in WIRES.items()})


def find_wire_or_server(name: str, profile: str | None = None, *, argument: str) -> Wire:
    """Return the row of an API, provider, server profile or service with this name, or of `profile` if that is set.

    Raises `InputError` for an unknown name and suggests the nearest one.
    """
    require_string(name, argument)
    row = WIRES.get(name) or _find_provider_row(name)
    if row is None:
        raise unknown_name_error("API", name, WIRES, path=argument, others=provider_names())
    if profile is None:
        return row
    validate_profile(profile, row.name, {server: wire.name for server, wire in SERVERS.items()})
    if row.profile not in (None, profile):
        raise InputError(f"{name} has the profile {row.profile}; it can't have {profile} too", path="profile")
    return SERVERS[profile]


def provider_names() -> tuple[str, ...]:
    """Return the names of providers, server profiles and services, which stand for an API."""
    return (*providers_by_name(), *SERVERS, *load_services())


def _find_provider_row(name: str) -> Wire | None:
    provider = providers_by_name().get(name)
    if provider is not None:
        return SERVERS[provider["profile"]] if "profile" in provider else WIRES[provider["api"]]
    api = load_services().get(name)
    return SERVERS.get(name) or (WIRES[api] if api is not None else None)


def find_wire(name: str, *, argument: str) -> Wire:
    """Return the wire of an API by the names of `find_wire_or_server`; for a server profile the wire of its API."""
    return WIRES[find_wire_or_server(name, argument=argument).name]


# If two APIs of one vendor serve a family, the first one is used.
_FAMILY_APIS = {family: wire.name for wire in reversed(WIRES.values()) for family in wire.families}


def api_of_family(family: str) -> str | None:
    """Return the API of the vendor that makes the models of a family; None if segue does not implement one."""
    return _FAMILY_APIS.get(family)


def family_of_model(model: str) -> str:
    """Return the family of a model name: one that `parse_model` has rules for, or one that an API lists; else `""`."""
    family = parse_model(model).family
    return family or next((token for token in tokenize_name(model) if token in _FAMILY_APIS), "")


def api_of_model(model: str) -> str | None:
    """Return the API of the vendor that makes this model; None for an unknown vendor or API."""
    return _FAMILY_APIS.get(family_of_model(model))


class Format(Struct, frozen=True):
    """A row of the registry, as users see it. `on` is the wire that a dialect is a variant of.

    A `text` format is not an API: `tool_format` selects it on any API, and it has no default model.
    """

    name: str
    kind: str
    on: str | None
    provider: str
    default_model: str
    tool_format: str
    title: str


def formats() -> tuple[Format, ...]:
    """Return every API that segue implements, and every text tool format."""
    names = Format.__struct_fields__
    wires = [Format(*(getattr(wire, name) for name in names)) for wire in WIRES.values()]
    return (*wires, *(Format(form.name, "text", None, form.provider, "", form.name, form.title) for form in FORMATS))
