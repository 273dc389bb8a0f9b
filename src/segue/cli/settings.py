"""Parses and validates configuration files. An error is one line with the file, the key and the reason.

model = "anthropic/claude-sonnet-4-5"     # or models = ["…", "…"], tried in this order
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

[prices."openai/gpt-4.1"]                  # dollars per million tokens
input = 2.0
output = 8.0

[models."anthropic/claude-sonnet-5"]       # sizes and options of a model
max_tokens = 32_000
effort = "low"

[aliases]
sonnet = "anthropic/claude-sonnet-5"

[gateway]                                  # `segue serve`; cli/gateway_settings.py has all settings
port = 8787

[[gateway.routes]]
model = "claude-*"
targets = ["moonshot/kimi-k2.6", "sonnet"]
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

from segue.cli.request_options import parse_options
from segue.cli.streams import BadInputError, format_os_error
from segue.errors import InputError
from segue.specs.prices import Prices

T = TypeVar("T", bound=Struct)
TOptions = TypeVar("TOptions", bound="OptionSettings")
NonEmptyText = Annotated[str, Meta(min_length=1)]
Seconds = Annotated[float, Meta(gt=0)]
Count = Annotated[int, Meta(ge=1)]
Money = Annotated[float, Meta(ge=0)]
RouteName: TypeAlias = Literal["fixed", "failover", "round-robin", "rules"]
Strategy: TypeAlias = Literal["dense", "truncate-results", "drop-oldest"]
When: TypeAlias = Literal["long", "images", "otherwise"]
SandboxMode: TypeAlias = Literal["on", "network", "off"]

_TYPE_NAMES = {
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
    "sandbox": get_args(SandboxMode),
}
_KEY_NAMES = frozenset({"api_key", "apikey", "key", "token", "secret", "auth_token", "api_token"})
_KEY_HINT = (
    "is not a setting, because a file must not hold a key: "
    "set key_variable to the name of the environment variable that holds it"
)
_MODEL_TABLES = "models"


class OptionSettings(Struct, frozen=True):
    """Options of requests to a model, or to all models of a provider."""

    max_tokens: Count | None = None
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    seed: int | None = None
    stop: str | tuple[str, ...] | None = None
    parallel: bool | None = None
    effort: NonEmptyText | None = None
    thinking: bool | int | NonEmptyText | None = None
    store: bool | None = None
    service_tier: NonEmptyText | None = None
    verbosity: NonEmptyText | None = None

    @property
    def values(self) -> dict[str, Any]:
        """The options that are set, by name."""
        names = OptionSettings.__struct_fields__
        return {name: value for name in names if (value := getattr(self, name)) is not None}


class ModelOptions(OptionSettings, frozen=True):
    """A table `[models."provider/model"]`: the sizes of a model in tokens, and options of requests to it."""

    context: Count | None = None
    max_output: Count | None = None


class ModelSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """Sizes in tokens and prices (dollars per million tokens) of a model."""

    context: Count | None = None
    max_output: Count | None = None
    input: Money | None = None
    output: Money | None = None
    cache_read: Money | None = None
    cache_write: Money | None = None


class ProviderSettings(OptionSettings, frozen=True):
    """A provider that the user adds, or changes to a known one. `model` is its default model."""

    title: NonEmptyText | None = None
    api: NonEmptyText | None = None
    profile: NonEmptyText | None = None
    base_url: NonEmptyText | None = None
    key_variable: NonEmptyText | tuple[NonEmptyText, ...] | None = None
    tool_format: NonEmptyText | None = None
    model: NonEmptyText | None = None
    models: tuple[NonEmptyText, ...] | Mapping[str, ModelSettings] | None = None
    headers: Mapping[str, str] | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the set fields as plain values, without the options of requests."""
        values = msgspec.json.decode(msgspec.json.encode(self))
        names = set(values).difference(OptionSettings.__struct_fields__)
        return {name: value for name, value in values.items() if value is not None and name in names}


class ToolSettings(Struct, frozen=True):
    """Tool permissions and limits. `env` names variables passed to shells; `only` restricts the available tools.

    `sandbox` is for shell commands: `on` where bubblewrap works, `network` the same with network, or `off`.
    """

    allow: tuple[NonEmptyText, ...] = ()
    ask: tuple[NonEmptyText, ...] = ()
    deny: tuple[NonEmptyText, ...] = ()
    env: tuple[NonEmptyText, ...] = ()
    only: tuple[NonEmptyText, ...] | None = None
    timeout: Seconds | None = None
    parallel: Count | None = None
    max_declared: Count | None = None
    sandbox: SandboxMode | None = None


class McpServerSettings(Struct, frozen=True):
    """An MCP server: a command, as one list or with separate `args`, or a URL."""

    command: NonEmptyText | tuple[NonEmptyText, ...] = ()
    args: tuple[str, ...] = ()
    env: tuple[NonEmptyText, ...] = ()
    folder: NonEmptyText | None = None
    url: NonEmptyText | None = None
    headers: Mapping[str, str] = {}
    timeout: Seconds | None = None
    start: Seconds | None = None
    enabled: bool = True

    @property
    def program(self) -> tuple[str, ...]:
        """The command and its arguments; empty for a URL."""
        return (*((self.command,) if isinstance(self.command, str) else self.command), *self.args)

    def to_dict(self) -> dict[str, Any]:
        """Return the set fields as plain values, with the command split into `command` and `args`."""
        values = msgspec.json.decode(msgspec.json.encode(self))
        program = self.program
        values |= {"command": program[0], "args": program[1:]} if program else {"command": None, "args": []}
        return {name: value for name, value in values.items() if value is not None}


class Price(Struct, frozen=True):
    """Dollars per million tokens. Cache reads and writes cost the same as `input` where not set."""

    input: Money
    output: Money
    cache_read: Money | None = None
    cache_write: Money | None = None

    def cost(self, *, input: int, output: int, cache_read: int = 0, cache_write: int = 0) -> float:
        """Return the cost of a usage; `input` includes cached tokens."""
        prices = Prices(self.input, self.output, self.cache_read, self.cache_write)
        return prices.cost(input=input, output=output, cache_read=cache_read, cache_write=cache_write)


class RoutingRuleSettings(Struct, frozen=True):
    """The models to use under a condition; the first matching rule applies, and of its models the cheapest."""

    when: When
    model: NonEmptyText | None = None
    models: tuple[NonEmptyText, ...] = ()
    tokens: Count | None = None

    @property
    def model_names(self) -> tuple[str, ...]:
        return self.models or ((self.model,) if self.model is not None else ())


class Settings(Struct, frozen=True):
    """The settings of one file, or of all files merged."""

    model: NonEmptyText | tuple[NonEmptyText, ...] | None = None
    models: tuple[NonEmptyText, ...] = ()
    model_tables: Mapping[str, ModelOptions] = {}
    """The tables `[models."provider/model"]`, if `models` is a table and not a list."""
    route: RouteName | None = None
    store: NonEmptyText | None = None
    compress: Strategy | None = None
    rules: tuple[RoutingRuleSettings, ...] = ()
    providers: Mapping[str, ProviderSettings] = {}
    tools: ToolSettings = ToolSettings()
    mcp: Mapping[str, McpServerSettings] = {}
    prices: Mapping[str, Price] = {}
    aliases: Mapping[str, NonEmptyText] = {}
    gateway: Mapping[str, Any] = {}
    """The settings of `segue serve`, validated where they are used."""

    @property
    def model_names(self) -> tuple[str, ...]:
        """The configured models in order of preference."""
        if isinstance(self.model, tuple):
            return self.model
        return self.models or ((self.model,) if self.model is not None else ())


def read(file: Path) -> bytes:
    """Read a file once, so that the bytes checked for trust are the bytes used."""
    try:
        return file.read_bytes()
    except OSError as error:
        raise BadInputError(f"can't read {file}: {format_os_error(error)}") from None


def parse(file: Path, data: bytes) -> Settings:
    """Parse and validate the settings of a file."""
    try:
        values = tomllib.loads(data.decode())
    except UnicodeDecodeError as error:
        raise BadInputError(f"can't read {file}: {error}") from None
    except tomllib.TOMLDecodeError as error:
        raise BadInputError(f"{file} is not TOML: {error}") from None
    settings = _Reader(f"{file}: ").read_settings(values)
    if settings.model is not None and settings.models:
        raise BadInputError(f"{file}: set either model or models, not both")
    return settings


def from_variables(variables: Mapping[str, str]) -> Settings:
    """Read `SEGUE_MODEL` (comma-separated), `SEGUE_ROUTE` and `SEGUE_COMPRESS`."""
    values: dict[str, Any] = {
        name: value for name in ("route", "compress") if (value := variables.get(f"SEGUE_{name.upper()}"))
    }
    models = [name.strip() for name in variables.get("SEGUE_MODEL", "").split(",")]
    values["models"] = [name for name in models if name]
    return _Reader("SEGUE_", str.upper).read_settings(values)


class _Reader:
    """Converts tables to structs one by one, so that an error names the full path of the setting."""

    def __init__(self, prefix: str, format_path: Callable[[str], str] = str) -> None:
        self._prefix = prefix
        self._format_path = format_path

    def read_settings(self, values: dict[str, Any]) -> Settings:
        self._check_keys(values, Settings, "")
        model_tables: dict[str, Any] = {}
        if isinstance(values.get(_MODEL_TABLES), dict):
            model_tables = {_MODEL_TABLES: values[_MODEL_TABLES]}
            values = {name: value for name, value in values.items() if name != _MODEL_TABLES}
        tables = {
            "model_tables": self._check_options(
                self._read_tables(model_tables, _MODEL_TABLES, ModelOptions), _MODEL_TABLES
            ),
            "providers": {
                name: self._check_provider(name, provider)
                for name, provider in self._check_options(
                    self._read_tables(values, "providers", ProviderSettings), "providers"
                ).items()
            },
            "mcp": {
                name: self._check_server(name, server)
                for name, server in self._read_tables(values, "mcp", McpServerSettings).items()
            },
            "prices": self._read_tables(values, "prices", Price),
            "tools": self._read_table(values.get("tools", {}), ToolSettings, "tools"),
            "rules": self._read_rules(values.get("rules", [])),
        }
        plain = self._read_table({name: value for name, value in values.items() if name not in tables}, Settings, "")
        return msgspec.structs.replace(plain, **tables)

    def _read_tables(self, values: dict[str, Any], name: str, kind: type[T]) -> dict[str, T]:
        tables: object = values.get(name, {})
        if not isinstance(tables, dict):
            raise self._error(name, "expected a table")
        return {
            key: self._read_table(table, kind, f"{name}.{key}")
            for key, table in cast("dict[str, object]", tables).items()
        }

    def _check_provider(self, name: str, provider: ProviderSettings) -> ProviderSettings:
        from segue.bridge.providers import validate_settings

        try:
            validate_settings(name, provider.to_dict())
        except InputError as error:
            raise self._error(error.path, error.message) from None
        return provider

    def _check_options(self, tables: dict[str, TOptions], path: str) -> dict[str, TOptions]:
        for name, table in tables.items():
            try:
                parse_options(table.values)
            except InputError as error:
                raise self._error(f"{path}.{name}", str(error)) from None
        return tables

    def _check_server(self, name: str, server: McpServerSettings) -> McpServerSettings:
        if bool(server.program) == bool(server.url):
            raise self._error(f"mcp.{name}", "expected either command or url")
        return server

    def _read_rules(self, tables: object) -> tuple[RoutingRuleSettings, ...]:
        if not isinstance(tables, list):
            raise self._error("rules", "expected a list of tables, [[rules]]")
        rules = [
            self._read_table(table, RoutingRuleSettings, f"rules[{index}]")
            for index, table in enumerate(cast("list[object]", tables))
        ]
        for index, rule in enumerate(rules):
            if (rule.model is not None) == bool(rule.models):
                raise self._error(f"rules[{index}]", "expected either model or models")
            if (rule.when == "long") != (rule.tokens is not None):
                raise self._error(f"rules[{index}].tokens", 'required with when = "long", not allowed otherwise')
        return tuple(rules)

    def _read_table(self, value: object, kind: type[T], path: str) -> T:
        if not isinstance(value, dict):
            raise self._error(path, "expected a table")
        self._check_keys(cast("dict[str, object]", value), kind, path)
        try:
            return msgspec.convert(value, kind)
        except msgspec.ValidationError as error:
            message, _, location = str(error).partition(" - at `$")
            path += location.rstrip("`").replace("[...]", "")
            raise self._error(path, _format_validation_error(message, path.rpartition(".")[2])) from None

    def _check_keys(self, keys: Iterable[str], kind: type[Struct], path: str) -> None:
        names = [name for name in kind.__struct_fields__ if name != "model_tables"]
        for key in keys:
            if key not in names:
                if kind is ProviderSettings and key in _KEY_NAMES:
                    raise self._error(f"{path}.{key}", _KEY_HINT, separator=" ")
                near = get_close_matches(key, names, 1)
                hint = f"did you mean {near[0]}?" if near else f"known settings: {', '.join(names)}"
                raise self._error(f"{path}.{key}", f"is not a setting; {hint}", separator=" ")

    def _error(self, path: str, text: str, separator: str = ": ") -> BadInputError:
        return BadInputError(f"{self._prefix}{self._format_path(path.lstrip('.'))}{separator}{text}")


def _describe_types(names: list[str]) -> str:
    kept = [name for name in names if name != "null"] or names
    return " or ".join(_TYPE_NAMES.get(name, name) for name in kept)


def _format_validation_error(message: str, key: str) -> str:
    """Rewrite msgspec's message in terms of TOML."""
    message = re.sub(r"`(\w+(?: \| \w+)*)`", lambda match: _describe_types(match[1].split(" | ")), message)
    message = message.replace("of length >= 1", "that is not empty").replace("Invalid enum value", "unknown value")
    message = message.replace("Object missing required field", "missing setting")
    known = f"; known values: {', '.join(_CHOICES[key])}" if message.startswith("unknown value") else ""
    return message[:1].lower() + message[1:] + known
