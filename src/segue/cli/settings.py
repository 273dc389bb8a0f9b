"""Parses and validates configuration files. An error is one line with the file, the key and the reason.

model = "anthropic/claude-sonnet-4-5"     # or models = ["…", "…"], tried in this order
strategy = "failover"                      # or fixed, round-robin, rules
store = "~/chats.db"
compress = "dense"

[[rules]]                                  # or images, failed, otherwise
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

[gateway]                                  # `segue serve`; gateway/settings.py has all settings
port = 8787

[[gateway.routes]]
model = "claude-*"
targets = ["moonshot/kimi-k2.6", "sonnet"]
"""

from __future__ import annotations

import math
import re
import tomllib
from collections import abc
from collections.abc import Callable, Iterable, Mapping, Sequence
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Literal, TypeAlias, TypeVar, Union, cast, get_args, get_origin

import msgspec
from msgspec import Meta, Struct

from segue.cli.request_options import parse_options
from segue.cli.streams import BadInputError, format_os_error
from segue.errors import InputError
from segue.specs.prices import Prices

T = TypeVar("T", bound=Struct)
NonEmptyText = Annotated[str, Meta(min_length=1)]
Seconds = Annotated[float, Meta(gt=0)]
Count = Annotated[int, Meta(ge=1)]
Money = Annotated[float, Meta(ge=0)]
Lines = Annotated[int, Meta(ge=0, le=1_000)]
RoutingStrategy: TypeAlias = Literal["fixed", "failover", "round-robin", "rules"]
CompressionStrategy: TypeAlias = Literal["dense", "truncate-results", "drop-oldest"]
When: TypeAlias = Literal["long", "images", "failed", "otherwise"]
Preference: TypeAlias = Literal["first", "cheapest"]
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
    cache_write_1h: Money | None = None


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
    first_lines: Lines | None = None
    last_lines: Lines | None = None


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
    """Dollars per million tokens. Cache reads and writes cost as much as `input` where not set."""

    input: Money
    output: Money
    cache_read: Money | None = None
    cache_write: Money | None = None
    cache_write_1h: Money | None = None

    @property
    def prices(self) -> Prices:
        return Prices(self.input, self.output, self.cache_read, self.cache_write, self.cache_write_1h)


class RoutingRuleSettings(Struct, frozen=True):
    """The models to use under a condition; the first matching rule applies, and of its models the cheapest."""

    when: When
    model: NonEmptyText | None = None
    models: tuple[NonEmptyText, ...] = ()
    tokens: Count | None = None
    count: Count | None = None
    command: NonEmptyText | None = None
    prefer: Preference = "cheapest"

    @property
    def model_names(self) -> tuple[str, ...]:
        return self.models or ((self.model,) if self.model is not None else ())


class Settings(Struct, frozen=True):
    """The settings of one file, or of all files merged."""

    model: NonEmptyText | tuple[NonEmptyText, ...] | None = None
    models: tuple[NonEmptyText, ...] = ()
    model_tables: Mapping[str, ModelOptions] = {}
    """The tables `[models."provider/model"]`, if `models` is a table and not a list."""
    strategy: RoutingStrategy | None = None
    store: NonEmptyText | None = None
    compress: CompressionStrategy | None = None
    switch_cost_above: Annotated[int, Meta(ge=0)] | None = None
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
    settings = TableReader(f"{file}: ").read_settings(values)
    if settings.model is not None and settings.models:
        raise BadInputError(f"{file}: set either model or models, not both")
    return settings


def from_variables(variables: Mapping[str, str]) -> Settings:
    """Read `SEGUE_MODEL` (comma-separated), `SEGUE_STRATEGY` and `SEGUE_COMPRESS`."""
    values: dict[str, Any] = {
        name: value for name in ("strategy", "compress") if (value := variables.get(f"SEGUE_{name.upper()}"))
    }
    models = [name.strip() for name in variables.get("SEGUE_MODEL", "").split(",")]
    values["models"] = [name for name in models if name]
    return TableReader("SEGUE_", str.upper).read_settings(values)


class TableReader:
    """Converts tables to structs from the inside out, so that an error names the full path of the setting."""

    def __init__(self, prefix: str, format_path: Callable[[str], str] = str) -> None:
        self._prefix = prefix
        self._format_path = format_path

    def read_settings(self, values: dict[str, Any]) -> Settings:
        tables = values.get(_MODEL_TABLES)
        if isinstance(tables, dict):
            values = {name: value for name, value in values.items() if name != _MODEL_TABLES}
        settings = self.read(values, Settings, "")
        if isinstance(tables, dict):
            models: Any = self._read_nested(cast("object", tables), Mapping[str, ModelOptions], _MODEL_TABLES)
            settings = msgspec.structs.replace(settings, model_tables=models)
        self._check_options(settings.model_tables, _MODEL_TABLES)
        self._check_options(settings.providers, "providers")
        for name, provider in settings.providers.items():
            self._check_provider(name, provider)
        for name, server in settings.mcp.items():
            if bool(server.program) == bool(server.url):
                raise self._error(f"mcp.{name}", "expected either command or url")
        for index, rule in enumerate(settings.rules):
            if (rule.model is not None) == bool(rule.models):
                raise self._error(f"rules[{index}]", "expected either model or models")
            for name, when in (("tokens", "long"), ("count", "failed")):
                if (rule.when == when) != (getattr(rule, name) is not None):
                    raise self._error(f"rules[{index}].{name}", f'required with when = "{when}", not allowed otherwise')
            if rule.command is not None:
                self._check_command(rule, f"rules[{index}].command")
        return settings

    def _check_command(self, rule: RoutingRuleSettings, path: str) -> None:
        from segue.runtime.permission_rules import parse_rule

        if rule.when != "failed":
            raise self._error(path, 'only allowed with when = "failed"')
        try:
            parse_rule(f"shell({rule.command})")
        except InputError as error:
            raise self._error(path, str(error)) from None

    def read(self, value: object, kind: type[T], path: str) -> T:
        """Read a table."""
        if not isinstance(value, dict):
            raise self._error(path, "expected a table")
        table, types = cast("dict[str, object]", value), _field_types(kind)
        self._check_keys(table, kind, path)
        for key, item in table.items():
            if isinstance(item, float) and not math.isfinite(item):
                raise self._error(f"{path}.{key}", f"expected a number, not {item}")
        read = {key: self._read_nested(item, types[key], f"{path}.{key}") for key, item in table.items()}
        try:
            return msgspec.convert(read, kind)
        except msgspec.ValidationError as error:
            message, _, location = str(error).partition(" - at `$")
            location = location.rstrip("`").replace("[...]", "")
            known = _find_choices(types.get(re.sub(r"\[.*", "", location.lstrip("."))))
            raise self._error(path + location, _format_validation_error(message, known)) from None

    def _read_nested(self, value: object, kind: Any, path: str) -> object:
        """Read the tables in a value. Any other value is validated together with the table that it is in."""
        if isinstance(kind, type) and issubclass(kind, Struct):
            return self.read(value, kind, path)
        origin, arguments = get_origin(kind), get_args(kind)
        if origin in (Union, UnionType):
            mapping = next((each for each in arguments if get_origin(each) is abc.Mapping), None)
            if mapping is None or not isinstance(value, dict):
                return value
            return self._read_nested(cast("object", value), mapping, path)
        if origin is abc.Mapping and _is_struct(arguments[1]):
            if not isinstance(value, dict):
                raise self._error(path, "expected a table")
            tables = cast("dict[str, object]", value)
            return {name: self.read(table, arguments[1], f"{path}.{name}") for name, table in tables.items()}
        if origin is tuple and _is_struct(arguments[0]):
            if not isinstance(value, list):
                raise self._error(path, f"expected a list of tables, [[{path.lstrip('.')}]]")
            items = enumerate(cast("list[object]", value))
            return tuple(self.read(item, arguments[0], f"{path}[{index}]") for index, item in items)
        return value

    def _check_provider(self, name: str, provider: ProviderSettings) -> None:
        from segue.bridge.providers import validate_settings

        try:
            validate_settings(name, provider.to_dict())
        except InputError as error:
            raise self._error(error.path, error.message) from None

    def _check_options(self, tables: Mapping[str, OptionSettings], path: str) -> None:
        for name, table in tables.items():
            try:
                parse_options(table.values)
            except InputError as error:
                raise self._error(f"{path}.{name}", str(error)) from None

    def _check_keys(self, keys: Iterable[str], kind: type[Struct], path: str) -> None:
        names = [name for name in _field_types(kind) if name != "model_tables"]
        for key in keys:
            if key not in names:
                if kind is ProviderSettings and key in _KEY_NAMES:
                    raise self._error(f"{path}.{key}", _KEY_HINT, separator=" ")
                near = get_close_matches(key, names, 1)
                hint = f"did you mean {near[0]}?" if near else f"known settings: {', '.join(names)}"
                raise self._error(f"{path}.{key}", f"is not a setting; {hint}", separator=" ")

    def _error(self, path: str, text: str, separator: str = ": ") -> BadInputError:
        return BadInputError(f"{self._prefix}{self._format_path(path.lstrip('.'))}{separator}{text}")


@cache
def _field_types(kind: type[Struct]) -> dict[str, Any]:
    return {field.encode_name: field.type for field in msgspec.structs.fields(kind)}


def _is_struct(kind: object) -> bool:
    return isinstance(kind, type) and issubclass(kind, Struct)


def _find_choices(kind: Any) -> tuple[str, ...]:
    """Return the values of a Literal type, or of one in a union."""
    if get_origin(kind) is Literal:
        return get_args(kind)
    return next((found for each in get_args(kind) if (found := _find_choices(each))), ())


def _describe_types(names: list[str]) -> str:
    kept = [name for name in names if name != "null"] or names
    return " or ".join(_TYPE_NAMES.get(name, name) for name in kept)


def _format_validation_error(message: str, choices: Sequence[str]) -> str:
    """Rewrite msgspec's message in terms of TOML."""
    message = re.sub(r"`(\w+(?: \| \w+)*)`", lambda match: _describe_types(match[1].split(" | ")), message)
    message = message.replace("of length >= 1", "that is not empty").replace("Invalid enum value", "unknown value")
    message = message.replace("Object missing required field", "missing setting")
    known = f"; known values: {', '.join(choices)}" if choices and message.startswith("unknown value") else ""
    return message[:1].lower() + message[1:] + known
