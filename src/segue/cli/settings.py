"""What a configuration file may say, read and checked. What is wrong with it is one line: the file, the key, and why.

model = "anthropic/claude-sonnet-4-5"     # or models = ["…", "…"], asked in this order
route = "failover"                         # or fixed, round-robin, rules
store = "~/chats.db"
compress = "dense"

[[rules]]
when = "long"
tokens = 100_000
model = "gemini/gemini-2.5-pro"

[providers.local]
api = "openai-chat"
base_url = "http://127.0.0.1:8000/v1"

[tools]
allow = ["shell(git status)"]

[mcp.files]
command = ["mcp-files", "."]

[prices."openai/gpt-4.1"]                  # for a million tokens
input = 2.0
output = 8.0
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias, TypeVar, cast, get_args

import msgspec
from msgspec import Meta, Struct

from segue.cli.streams import Unreadable, reason

__all__ = ["Mcp", "Model", "Price", "Provider", "Rule", "Settings", "Tools", "from_variables", "parsed", "read"]

T = TypeVar("T", bound=Struct)
Words = Annotated[str, Meta(min_length=1)]
Seconds = Annotated[float, Meta(gt=0)]
Count = Annotated[int, Meta(ge=1)]
Money = Annotated[float, Meta(ge=0)]
RouteName: TypeAlias = Literal["fixed", "failover", "round-robin", "rules"]
Strategy: TypeAlias = Literal["dense", "truncate-results", "drop-oldest"]
When: TypeAlias = Literal["long", "images", "otherwise"]

_KINDS = {
    "str": "text",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "array": "a list",
    "object": "a table",
    "null": "nothing",
}
_CHOICES: Mapping[str, tuple[str, ...]] = {
    "route": get_args(RouteName),
    "compress": get_args(Strategy),
    "when": get_args(When),
}
_MILLION = 1_000_000


class Model(Struct, frozen=True, forbid_unknown_fields=True):
    """What is known of a model; prices are for a million tokens."""

    context: Count | None = None
    input: Money | None = None
    output: Money | None = None
    cache_read: Money | None = None
    cache_write: Money | None = None


class Provider(Struct, frozen=True):
    """A provider of one's own, or what is different about a known one. `model` is the one where none is named."""

    title: Words | None = None
    api: Words | None = None
    profile: Words | None = None
    base_url: Words | None = None
    key_variable: Words | tuple[Words, ...] | None = None
    tool_format: Words | None = None
    model: Words | None = None
    models: tuple[Words, ...] | Mapping[str, Model] | None = None
    headers: Mapping[str, str] | None = None

    @property
    def said(self) -> dict[str, Any]:
        """What is set, as plain values."""
        told = msgspec.json.decode(msgspec.json.encode(self))
        return {name: value for name, value in told.items() if value is not None}


class Tools(Struct, frozen=True):
    """What tools may do. `env` names variables that shells get; `only` the tools that there are."""

    allow: tuple[Words, ...] = ()
    ask: tuple[Words, ...] = ()
    deny: tuple[Words, ...] = ()
    env: tuple[Words, ...] = ()
    only: tuple[Words, ...] | None = None
    timeout: Seconds | None = None
    parallel: Count | None = None


class Mcp(Struct, frozen=True):
    """A server of tools: a program, as one list or with its `args` apart, or an address."""

    command: Words | tuple[Words, ...] = ()
    args: tuple[str, ...] = ()
    env: tuple[Words, ...] = ()
    folder: Words | None = None
    url: Words | None = None
    headers: Mapping[str, str] = {}
    timeout: Seconds | None = None
    start: Seconds | None = None
    enabled: bool = True

    @property
    def program(self) -> tuple[str, ...]:
        """The program and its arguments; nothing where it is an address."""
        return (*((self.command,) if isinstance(self.command, str) else self.command), *self.args)

    @property
    def said(self) -> dict[str, Any]:
        """What is set, as plain values."""
        told = msgspec.json.decode(msgspec.json.encode(self))
        program = self.program
        told |= {"command": program[0], "args": program[1:]} if program else {"command": None, "args": []}
        return {name: value for name, value in told.items() if value is not None}


class Price(Struct, frozen=True):
    """What a million tokens cost. What is read from or written to a cache costs as `input` where nothing is said."""

    input: Money
    output: Money
    cache_read: Money | None = None
    cache_write: Money | None = None

    def of(self, *, input: int, output: int, cache_read: int = 0, cache_write: int = 0) -> float:
        """`input` counts everything read, cached or not."""
        read = self.input if self.cache_read is None else self.cache_read
        written = self.input if self.cache_write is None else self.cache_write
        plain = max(0, input - cache_read - cache_write)
        spent = plain * self.input + cache_read * read + cache_write * written + output * self.output
        return spent / _MILLION


class Rule(Struct, frozen=True):
    """Which model is asked where something holds; the first that does decides. Of several models the cheapest is."""

    when: When
    model: Words | None = None
    models: tuple[Words, ...] = ()
    tokens: Count | None = None

    @property
    def chosen(self) -> tuple[str, ...]:
        return self.models or ((self.model,) if self.model is not None else ())


class Settings(Struct, frozen=True):
    """One file, or all of them together."""

    model: Words | None = None
    models: tuple[Words, ...] = ()
    route: RouteName | None = None
    store: Words | None = None
    compress: Strategy | None = None
    rules: tuple[Rule, ...] = ()
    providers: Mapping[str, Provider] = {}
    tools: Tools = Tools()
    mcp: Mapping[str, Mcp] = {}
    prices: Mapping[str, Price] = {}

    @property
    def chosen(self) -> tuple[str, ...]:
        """The models that are named, the first choice first."""
        return self.models or ((self.model,) if self.model is not None else ())


def read(file: Path) -> bytes:
    """The bytes of a file: what was read is what is judged, and what is used."""
    try:
        return file.read_bytes()
    except OSError as error:
        raise Unreadable(f"can't read {file}: {reason(error)}") from None


def parsed(file: Path, data: bytes) -> Settings:
    """What a file says."""
    try:
        said = tomllib.loads(data.decode())
    except UnicodeDecodeError as error:
        raise Unreadable(f"can't read {file}: {error}") from None
    except tomllib.TOMLDecodeError as error:
        raise Unreadable(f"{file} is not TOML: {error}") from None
    whole = _Reader(f"{file}: ").settings(said)
    if whole.model is not None and whole.models:
        raise Unreadable(f"{file}: model and models both name a model; keep one")
    return whole


def from_variables(variables: Mapping[str, str]) -> Settings:
    """What `SEGUE_MODEL` (several parted by commas), `SEGUE_ROUTE` and `SEGUE_COMPRESS` say."""
    said: dict[str, Any] = {
        name: value for name in ("route", "compress") if (value := variables.get(f"SEGUE_{name.upper()}"))
    }
    models = [name.strip() for name in variables.get("SEGUE_MODEL", "").split(",")]
    said["models"] = [name for name in models if name]
    return _Reader("SEGUE_", str.upper).settings(said)


class _Reader:
    """Tables become values, each under its own name, so that a fault is told with its whole path."""

    def __init__(self, where: str, spelled: Callable[[str], str] = str) -> None:
        self._where = where
        self._spelled = spelled

    def settings(self, said: dict[str, Any]) -> Settings:
        self._known(said, Settings, "")
        tables = {
            "providers": self._named(said, "providers", Provider),
            "mcp": {name: self._server(name, it) for name, it in self._named(said, "mcp", Mcp).items()},
            "prices": self._named(said, "prices", Price),
            "tools": self._value(said.get("tools", {}), Tools, "tools"),
            "rules": self._rules(said.get("rules", [])),
        }
        plain = self._value({name: value for name, value in said.items() if name not in tables}, Settings, "")
        return msgspec.structs.replace(plain, **tables)

    def _named(self, said: dict[str, Any], name: str, kind: type[T]) -> dict[str, T]:
        tables: object = said.get(name, {})
        if not isinstance(tables, dict):
            raise self._fault(name, "expected a table")
        return {key: self._value(it, kind, f"{name}.{key}") for key, it in cast("dict[str, object]", tables).items()}

    def _server(self, name: str, server: Mcp) -> Mcp:
        if bool(server.program) == bool(server.url):
            raise self._fault(f"mcp.{name}", "expected either command or url")
        return server

    def _rules(self, tables: object) -> tuple[Rule, ...]:
        if not isinstance(tables, list):
            raise self._fault("rules", "expected a list of tables, [[rules]]")
        made = [self._value(it, Rule, f"rules[{at}]") for at, it in enumerate(cast("list[object]", tables))]
        for at, rule in enumerate(made):
            if (rule.model is not None) == bool(rule.models):
                raise self._fault(f"rules[{at}]", "expected either model or models")
            if (rule.when == "long") != (rule.tokens is not None):
                raise self._fault(f"rules[{at}].tokens", 'goes with when = "long", and only with it')
        return tuple(made)

    def _value(self, said: object, kind: type[T], path: str) -> T:
        if not isinstance(said, dict):
            raise self._fault(path, "expected a table")
        self._known(cast("dict[str, object]", said), kind, path)
        try:
            return msgspec.convert(said, kind)
        except msgspec.ValidationError as error:
            words, _, at = str(error).partition(" - at `$")
            path += at.rstrip("`").replace("[...]", "")
            raise self._fault(path, _told(words, path.rpartition(".")[2])) from None

    def _known(self, said: Iterable[str], kind: type[Struct], path: str) -> None:
        names = kind.__struct_fields__
        for key in said:
            if key not in names:
                near = get_close_matches(key, names, 1)
                hint = f"did you mean {near[0]}?" if near else f"known are {', '.join(names)}"
                raise self._fault(f"{path}.{key}", f"is no setting; {hint}", between=" ")

    def _fault(self, path: str, words: str, between: str = ": ") -> Unreadable:
        return Unreadable(f"{self._where}{self._spelled(path.lstrip('.'))}{between}{words}")


def _told(words: str, key: str) -> str:
    """msgspec's sentence in this program's words."""
    words = re.sub(r"`(\w+)(?: \| null)?`", lambda found: _KINDS.get(found[1], found[1]), words)
    words = words.replace("of length >= 1", "that is not empty").replace("Invalid enum value", "unknown value")
    words = words.replace("Object missing required field", "needs also")
    known = f"; known are {', '.join(_CHOICES[key])}" if words.startswith("unknown value") else ""
    return words[:1].lower() + words[1:] + known
