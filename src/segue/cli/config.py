"""What the user set: a flag, else a `SEGUE_*` variable, else `.segue.toml` of the project, else the user's file.

The project's file is the nearest one above the working directory. It may come with somebody else's project: what could
run a program, let one run, send a key elsewhere or say where conversations are kept counts only after the user has
trusted that very file, and it can name a file for the store but no server. Lists of `[tools]` add up, so that no file
takes back what another denies.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias, TypeVar

import click
from msgspec import json
from msgspec.structs import replace

from segue.cli import streams, trusted
from segue.cli.settings import Mcp, Provider, Settings, Tools, from_variables, parsed, read
from segue.cli.streams import Unreadable
from segue.errors import InputError

__all__ = [
    "Config",
    "Source",
    "distrusted_store",
    "load",
    "project_file",
    "source",
    "store",
    "tool_format",
    "user_file",
    "wanted",
]

T = TypeVar("T")
Ask: TypeAlias = "Callable[[Path, Sequence[str]], bool]"
"""Asks the user whether a file is trusted, telling what in it would count then, with its values."""

_PROJECT = ".segue.toml"
_USER = "config.toml"
_WITHHELD = ("base_url", "key_variable", "headers")


@dataclass(frozen=True)
class Source:
    """A file, and which of its settings don't count because it isn't trusted."""

    path: Path
    settings: Settings
    project: bool = False
    trusted: bool = True
    withheld: tuple[str, ...] = ()


@dataclass(frozen=True)
class Config:
    """All that is set, and where it was read."""

    settings: Settings
    sources: tuple[Source, ...] = ()

    def blamed(self, error: InputError) -> Unreadable:
        """What is wrong with a table, with the file that it stands in."""
        table, _, rest = error.path.partition(".")
        name = rest.partition(".")[0]
        file = next((it.path for it in self.sources if name in getattr(it.settings, table, ())), None)
        return Unreadable(f"{file}: {error}" if file else str(error))

    @property
    def untrusted(self) -> Source | None:
        """The file that says more than it may."""
        return next((source for source in self.sources if source.withheld), None)

    def chosen_by(self) -> str:
        """Where the model was set: a variable or a file."""
        if from_variables(os.environ).chosen:
            return "SEGUE_MODEL"
        return next((str(source.path) for source in self.sources if source.settings.chosen), "")


# ------------------------------------------------------------------------------------------------------ all together


def load(*, trusting: bool = False, ask: Ask | None = None) -> Config:
    """Everything that is set. `trusting` takes the project's file as trusted this time, `ask` asks and remembers."""
    sources = tuple(source(file, trusting=trusting, ask=ask) for file, _ in _places())
    layers = [from_variables(os.environ), *(each.settings for each in sources)]
    whole = layers[0]
    for below in layers[1:]:
        whole = _over(whole, below)
    if whole.route == "rules" and not whole.rules:
        raise Unreadable(f"the route is by rules, but there are no [[rules]] in {_PROJECT} or {user_file()}")
    return Config(whole, sources)


def tool_format(flag: str | None, api: str) -> str:
    """How tools are written for an API."""
    chosen = flag or os.environ.get("SEGUE_TOOL_FORMAT")
    if chosen:
        return chosen
    for file, _ in _places():
        provider = parsed(file, read(file)).providers.get(api)
        if provider is not None and provider.tool_format is not None:
            return provider.tool_format
    return "auto"


def store(*, trusting: bool = False) -> str | None:
    """Where the files say that conversations are kept; `SEGUE_STORE` counts more, and is not looked at here.

    What a project's file says is checked at once, and counts when it is trusted.
    """
    from segue.errors import InputError
    from segue.store import file_of

    for file, project in _places():
        data = read(file)
        given = parsed(file, data).store
        if given is None:
            continue
        try:
            named = file_of(given)
        except InputError as error:
            raise Unreadable(f"{file}: {error}") from None
        if named is None and project:
            raise Unreadable(f"{file}: store must be a file here; a server is named in your own {_USER}")
        if project and not trusting and not trusted.is_trusted(file, data):
            continue
        return given if named is None else str(file.parent / Path(given).expanduser())
    return None


def distrusted_store() -> Path | None:
    """The project's file whose `store` does not count, as long as nobody trusts it."""
    file = project_file()
    if file is None:
        return None
    data = read(file)
    return file if parsed(file, data).store is not None and not trusted.is_trusted(file, data) else None


# ------------------------------------------------------------------------------------------------------------- files


def project_file() -> Path | None:
    """The nearest one above the working directory."""
    if not streams.in_a_folder():
        return None
    here = Path.cwd()
    return next((folder / _PROJECT for folder in (here, *here.parents) if (folder / _PROJECT).is_file()), None)


def user_file() -> Path:
    return Path(click.get_app_dir("segue")) / _USER


def _places() -> Iterator[tuple[Path, bool]]:
    """The files that are there, the one that counts most first, and whether it is the project's."""
    if project := project_file():
        yield project, True
    if (user := user_file()).is_file():
        yield user, False


def source(file: Path, *, trusting: bool = False, ask: Ask | None = None) -> Source:
    """What one file says, as far as it counts."""
    project = file.name == _PROJECT
    data = read(file)
    settings = parsed(file, data)
    wants = _wants(settings) if project else {}
    if not wants or trusting or trusted.is_trusted(file, data):
        return Source(file, settings, project)
    if ask is not None and ask(file, [f"{name} = {value}" for name, value in wants.items()]):
        trusted.remember(file, data)
        return Source(file, settings, project)
    return Source(file, _harmless(settings), project, trusted=False, withheld=tuple(wants))


def wanted(file: Path) -> tuple[dict[str, str], bytes]:
    """What in a project's file counts only when it is trusted, with its values, and the bytes that say so."""
    data = read(file)
    return _wants(parsed(file, data)), data


def _wants(settings: Settings) -> dict[str, str]:
    """What somebody else's file may not decide: its keys, and what each says, in full."""
    said: dict[str, object] = {} if settings.store is None else {"store": settings.store}
    said |= {f"tools.{key}": rules for key in ("allow", "env") if (rules := getattr(settings.tools, key))}
    said |= {f"mcp.{name}": _server(server) for name, server in settings.mcp.items()}
    said |= {
        f"providers.{name}.{key}": value
        for name, provider in settings.providers.items()
        for key in _WITHHELD
        if (value := getattr(provider, key)) is not None
    }
    return {name: json.encode(value).decode() for name, value in said.items()}


def _server(server: Mcp) -> dict[str, object]:
    usual = Mcp()
    said = {name: getattr(server, name) for name in Mcp.__struct_fields__ if name not in ("command", "args")}
    told = {name: value for name, value in said.items() if value != getattr(usual, name)}
    return {"command": server.program, **told} if server.program else told


def _harmless(settings: Settings) -> Settings:
    providers = {name: replace(provider, **dict.fromkeys(_WITHHELD)) for name, provider in settings.providers.items()}
    tools = replace(settings.tools, allow=(), env=())
    return replace(settings, store=None, tools=tools, mcp={}, providers=providers)


# ---------------------------------------------------------------------------------------------------- one over another


def _over(upper: Settings, lower: Settings) -> Settings:
    """What either says; where both do, the upper one. Who names a model does not mean the lower one's route."""
    models = upper if upper.chosen else lower
    return Settings(
        model=models.model,
        models=models.models,
        route=upper.route if upper.chosen else _first(upper.route, lower.route),
        store=_first(upper.store, lower.store),
        compress=_first(upper.compress, lower.compress),
        rules=upper.rules or lower.rules,
        providers=_providers(upper.providers, lower.providers),
        tools=_tools(upper.tools, lower.tools),
        mcp={**lower.mcp, **upper.mcp},
        prices={**lower.prices, **upper.prices},
    )


def _providers(upper: Mapping[str, Provider], lower: Mapping[str, Provider]) -> dict[str, Provider]:
    """Key by key: a project that says how tools are written keeps the user's address."""
    made = dict(lower)
    for name, provider in upper.items():
        below = lower.get(name, Provider())
        said = {key: _first(getattr(provider, key), getattr(below, key)) for key in Provider.__struct_fields__}
        made[name] = Provider(**said)
    return made


def _tools(upper: Tools, lower: Tools) -> Tools:
    if upper.only is not None and lower.only is not None:
        only = tuple(name for name in upper.only if name in lower.only)
    else:
        only = _first(upper.only, lower.only)
    return Tools(
        allow=_both(upper.allow, lower.allow),
        ask=_both(upper.ask, lower.ask),
        deny=_both(upper.deny, lower.deny),
        env=_both(upper.env, lower.env),
        only=only,
        timeout=_first(upper.timeout, lower.timeout),
        parallel=_first(upper.parallel, lower.parallel),
    )


def _first(upper: T | None, lower: T | None) -> T | None:
    return upper if upper is not None else lower


def _both(upper: Sequence[str], lower: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*upper, *lower)))
