"""The registry: one row for each API and each server profile.

The packages of the five wires are listed here. Dialects and server profiles are the modules of `wire/dialects`. Each
has a constant `WIRE`, or `WIRES` for several. A row is imported when it is first used, so that a conversion imports two
wires. The command line, the tests and the docs iterate the tables, which imports all rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache, cached_property, lru_cache
from importlib import import_module

from msgspec import Struct

from segue.errors import InputError, require_string, unknown_name_error, validate_profile
from segue.models import parse_model, tokenize_name
from segue.specs.providers import load_services, providers_by_name
from segue.wire import dialects
from segue.wire.base import Wire

_BASE_WIRES = ("openai_chat", "openai_responses", "anthropic", "gemini", "bedrock")
# The first dialects in lists and tables; others follow in alphabetical order of their modules.
_FIRST = ("azure_foundry", "mistral", "kimi", "deepseek", "qwen")


@cache
def _list_dialects() -> tuple[str, ...]:
    """Return the modules of `wire/dialects`, in the order of their rows."""
    from pkgutil import iter_modules

    found = [module.name for module in iter_modules(dialects.__path__)]
    return (*_FIRST, *(name for name in found if name not in _FIRST))


def _import_rows(stem: str) -> tuple[Wire, ...]:
    """Return the rows of a wire or of a module with dialects."""
    module = import_module(f"segue.wire.{stem}" if stem in _BASE_WIRES else f"{dialects.__name__}.{stem}")
    rows = (module.WIRE,) if hasattr(module, "WIRE") else getattr(module, "WIRES", ())
    if not rows:
        raise ImportError(f"{module.__name__} has no constant WIRE", name=module.__name__, path=module.__file__)
    return rows


def _import_all() -> Iterator[Wire]:
    """Yield all rows in order; each module is imported when its turn comes."""
    for stem in _BASE_WIRES:
        yield from _import_rows(stem)
    for stem in _list_dialects():
        yield from _import_rows(stem)


class WireTable(Mapping[str, Wire]):
    """The APIs or the server profiles, by name. A row is imported at its first lookup; an iteration imports all."""

    def __init__(self, *, servers: bool) -> None:
        self._servers = servers
        self._used: dict[str, Wire] = {}

    def __getitem__(self, name: str) -> Wire:
        row = self._used.get(name)
        if row is None:
            row = self._used[name] = self._find(name)
        return row

    def __contains__(self, name: object) -> bool:
        return name in self._used or super().__contains__(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._all)

    def __len__(self) -> int:
        return len(self._all)

    def _find(self, name: str) -> Wire:
        """Return a row: from the module that has its name, or else from any module."""
        stem = name.replace("-", "_")
        if stem in _BASE_WIRES or stem in _list_dialects():
            for row in _import_rows(stem):
                if self._name_of(row) == name:
                    return row
        return self._all[name]

    @cached_property
    def _all(self) -> Mapping[str, Wire]:
        rows: dict[str, Wire] = {}
        for row in _import_all():
            name = self._name_of(row)
            if name in rows:
                raise ImportError(f"two rows of the registry have the name {name}")
            if name is not None:
                rows[name] = row
        return rows

    def _name_of(self, row: Wire) -> str | None:
        """Return the name of a row in this table; None if it is in the other one."""
        if self._servers:
            return row.profile
        return row.name if row.profile is None else None


WIRES: Mapping[str, Wire] = WireTable(servers=False)
SERVERS: Mapping[str, Wire] = WireTable(servers=True)
"""APIs by name, and server profiles by name."""


def find_wire_or_server(name: str, profile: str | None = None, *, argument: str) -> Wire:
    """Return the row of an API, provider, server profile or service with this name, or of `profile` if that is set.

    `SERVER:MODEL` is the profile of a server with the rules of this model for names of no known family.

    Raises `InputError` for an unknown name and suggests the nearest one.
    """
    require_string(name, argument)
    row = WIRES.get(name) or _find_provider_row(name)
    if row is None:
        raise unknown_name_error("API", name, WIRES, path=argument, others=provider_names())
    if profile is None:
        return row
    require_string(profile, "profile")
    server, separator, model = profile.partition(":")
    validate_profile(server, row.name, {server: wire.name for server, wire in SERVERS.items()})
    if row.profile not in (None, server):
        raise InputError(f"{name} has the profile {row.profile}; it can't have {profile} too", path="profile")
    if not separator:
        return SERVERS[server]
    serving = SERVERS[server].serving
    if serving is None or not parse_model(model).family:
        why = f"{model!r} is no model of a known family" if serving is not None else f"{server} serves no other models"
        raise InputError(why, path="profile")
    return serving(model)


def provider_names() -> tuple[str, ...]:
    """Return the names of providers, server profiles and services, which stand for an API."""
    return (*providers_by_name(), *SERVERS, *load_services())


def _find_provider_row(name: str) -> Wire | None:
    provider = providers_by_name().get(name)
    if provider is not None:
        return SERVERS[provider["profile"]] if "profile" in provider else WIRES[provider["api"]]
    api = load_services().get(name)
    return SERVERS.get(name) or (WIRES[api] if api is not None else None)


def apis_of_provider(name: str) -> tuple[str, ...]:
    """Return the APIs on the host of a provider; none for the name of an API itself."""
    if name in WIRES:
        return ()
    rows = providers_by_name()
    url = rows[name].get("base_url") if name in rows else None
    return (
        () if url is None else tuple(dict.fromkeys(row["api"] for row in rows.values() if row.get("base_url") == url))
    )


def find_wire(name: str, *, argument: str) -> Wire:
    """Return the wire of an API by the names of `find_wire_or_server`; for a server profile the wire of its API."""
    return WIRES[find_wire_or_server(name, argument=argument).name]


@lru_cache(maxsize=256)
def api_of_family(family: str) -> str | None:
    """Return the API of the vendor that makes the models of a family; None if segue does not implement one."""
    if not family:
        return None
    # If two APIs of one vendor serve a family, the first one is used.
    return next((row.name for row in _import_all() if row.profile is None and family in row.families), None)


def family_of_model(model: str) -> str:
    """Return the family of a model name: one that `parse_model` has rules for, or one that an API lists; else `""`."""
    family = parse_model(model).family
    return family or next((token for token in tokenize_name(model) if api_of_family(token) is not None), "")


def api_of_model(model: str) -> str | None:
    """Return the API of the vendor that makes this model; None for an unknown vendor or API."""
    return api_of_family(family_of_model(model))


def vendor_of_model(model: str) -> str | None:
    """Return the provider of the catalogue that makes this model; None for an unknown vendor."""
    api = api_of_model(model)
    rows = providers_by_name().items()
    return next((name for name, row in rows if row["api"] == api and "profile" not in row), None) if api else None


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
    from segue.wire.text.registry import FORMATS

    names = Format.__struct_fields__
    wires = [Format(*(getattr(wire, name) for name in names)) for wire in WIRES.values()]
    return (*wires, *(Format(form.name, "text", None, form.provider, "", form.name, form.title) for form in FORMATS))


def find_caller_wire(api: str, path: str, user_agent: str) -> Wire:
    """Return the row of a caller of an API: that of the dialect that its client speaks, or its path begins with."""
    first = path.split("/", 2)[1] if path.startswith("/") else ""
    agent = user_agent.lower()
    spoken = (row for row in _dialects_with_clients(api) if row.name == first or (row.client_agent or "") in agent)
    return next(spoken, WIRES[api])


@cache
def _dialects_with_clients(api: str) -> tuple[Wire, ...]:
    return tuple(row for row in WIRES.values() if row.on == api and row.client_agent is not None)
