"""The catalogue of providers, with the user's configuration merged in, and `Endpoint`: one model of one provider.

The catalogue is `providers.toml`, loaded on first use. API keys come from environment variables only: a configuration
file can set the name of the variable, but not the key.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, cast
from urllib.parse import SplitResult, urlsplit, urlunsplit

import msgspec
from msgspec import Struct

from segue import entry_points
from segue.bridge import aws
from segue.bridge.addresses import is_local
from segue.bridge.secret import Secret
from segue.canonical.request import Options
from segue.errors import InputError, mismatch_error, require_string
from segue.models import is_same_model, parse_model
from segue.redaction import redact
from segue.specs.prices import find_context
from segue.specs.providers import load_providers
from segue.wire.anthropic.capabilities import capabilities_of
from segue.wire.detect_model import detect
from segue.wire.registry import SERVERS, find_wire_or_server

Environ = Mapping[str, str]
Config = Mapping[str, Any]

_CHAT = "openai-chat"
# Local servers may require a key and accept any.
_PLACEHOLDER_KEY = Secret("local")
_SETTINGS = frozenset(
    {"title", "api", "profile", "base_url", "key_variable", "tool_format", "model", "models", "headers"}
)
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_KEY_HEADERS = frozenset({"authorization", "proxy-authorization", "x-api-key", "x-goog-api-key", "api-key", "cookie"})
NO_MODEL = "-"
"""In the place of a model, in the endpoint of a request for a list of models."""
_CLAUDE_APIS = ("anthropic", "bedrock")
_ARN = "arn:aws:bedrock"
# Minimum similarity for a «did you mean» suggestion.
_MIN_SIMILARITY = 0.7
# What is shown of a long model name.
_MAX_NAME = 120


class Model(Struct, frozen=True):
    """Sizes of a model in tokens, and configured prices in dollars per million tokens."""

    context: int | None = None
    max_output: int | None = None
    input: float | None = None
    output: float | None = None
    cache_read: float | None = None
    cache_write: float | None = None
    cache_write_1h: float | None = None


class Provider(Struct, frozen=True):
    """A row of the catalogue; `providers.toml` documents the columns."""

    name: str
    title: str
    api: str
    base_url: str = ""
    profile: str | None = None
    url_variables: tuple[str, ...] = ()
    path: str = ""
    keys: tuple[str, ...] = ()
    bearer: tuple[str, ...] = ()
    signed: bool = False
    headers: Mapping[str, str] = {}
    fixed_headers: Mapping[str, str] = {}
    default: str = ""
    aliases: tuple[str, ...] = ()
    tool_format: str = "auto"
    models: Mapping[str, Model] = {}

    @property
    def variables(self) -> tuple[str, ...]:
        """All environment variables that can hold the API key, for messages."""
        signing = ("AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",) if self.signed else ()
        return (*self.keys, *self.bearer, *signing)

    def find_model(self, model: str) -> Model | None:
        """Return the catalogue entry of a model; the model name may have a date or a prefix."""
        exact = self.models.get(model)
        return exact or next((row for name, row in self.models.items() if is_same_model(name, model)), None)


class Endpoint(Struct, frozen=True):
    """One model at one provider, with its credentials. The key is in no repr and can't be serialized.

    `bearer` sends the key as a bearer token instead of in the API's own header. `variables` are the environment
    variables that can hold the key. `signer` provides AWS credentials instead of a key. `context` and `max_output` are
    sizes in tokens, None if unknown. `options` are the user's for this model, under those of a request.
    """

    provider: str
    model: str
    api: str
    base_url: str
    profile: str | None = None
    tool_format: str = "auto"
    key: Secret | None = None
    context: int | None = None
    bearer: bool = False
    headers: tuple[tuple[str, str], ...] = ()
    variables: tuple[str, ...] = ()
    signer: aws.CredentialSource | None = None
    region: str | None = None
    max_output: int | None = None
    options: Options | None = None
    is_emulated: bool = False
    has_caller_key: bool = False
    """Whether the key is that of a gateway's client, and not the gateway's own."""

    @property
    def name(self) -> str:
        """`provider/model`; the provider alone for requests that are not for one model."""
        return self.provider if self.model == NO_MODEL else f"{self.provider}/{self.model}"

    @property
    def lacks_key(self) -> bool:
        """Whether a key is needed and none is set."""
        return self.key is None and self.signer is None and bool(self.variables)


# -------------------------------------------------------------------------------------------------------- the catalogue


def catalogue(config: Config | None = None) -> dict[str, Provider]:
    """Return all providers by name: the shipped and the installed ones, merged with the user's configuration."""
    providers = dict(_load_shipped())
    for name, settings in (*_load_installed().items(), *(config or {}).items()):
        row = validate_settings(name, settings)
        owner = next((provider for provider in providers.values() if name in (provider.name, *provider.aliases)), None)
        if owner is not None and owner.name != name:
            # Configured by an alias: it is reported by that name, and still found by its own.
            del providers[owner.name]
            aliases = (owner.name, *(alias for alias in owner.aliases if alias != name))
            owner = msgspec.structs.replace(owner, name=name, aliases=aliases)
        providers[name] = _merge_settings(owner, name, row)
    return providers


@cache
def _load_shipped() -> Mapping[str, Provider]:
    shipped: dict[str, Provider] = {}
    for name, row in load_providers().items():
        models = {model: _parse_sizes(sizes) for model, sizes in row.get("models", {}).items()}
        shipped[name] = msgspec.convert({**row, "name": name, "models": models}, Provider)
    return shipped


@cache
def _load_installed() -> Config:
    """Return the settings of the providers of installed packages, by the entry points `segue.providers`."""
    installed: dict[str, Any] = {}
    for name, entry in entry_points.find("segue.providers").items():
        if name in _load_shipped():
            raise InputError("segue has a provider of this name", path=f"entry point {name} of {entry.group}")
        installed[name] = entry_points.load(entry, dict)
        validate_settings(name, installed[name])
    return installed


def _parse_sizes(sizes: int | list[int]) -> dict[str, int]:
    """Parse a cell of the column `models`."""
    return dict(zip(("context", "max_output"), sizes if isinstance(sizes, list) else [sizes], strict=False))


def validate_settings(name: str, settings: object) -> dict[str, Any]:
    """Validate a `[providers.NAME]` table, and return it with the name of its API in full."""
    where = f"providers.{name}"
    if not isinstance(settings, Mapping):
        raise InputError("expected a table", path=where)
    row = dict(cast("Mapping[str, Any]", settings))
    if "/" in name or not name:
        raise InputError("a provider name must not be empty or contain a slash", path=where)
    for key, value in row.items():
        if key not in _SETTINGS:
            near = difflib.get_close_matches(key, _SETTINGS, 1)
            hint = f"did you mean {near[0]}?" if near else f"expected one of {', '.join(sorted(_SETTINGS))}"
            raise InputError(f"unknown setting; {hint}", path=f"{where}.{key}")
        if key not in ("models", "headers", "key_variable"):
            require_string(value, f"{where}.{key}")
    if "base_url" in row:
        _normalize_url(row["base_url"].replace("{region}", "region"), "", path=f"{where}.base_url")
    if "api" in row:
        api_row = find_wire_or_server(row["api"], argument=f"{where}.api")
        row = {**({"profile": api_row.profile} if api_row.profile else {}), **row, "api": api_row.name}
    if (profile := row.get("profile")) is not None:
        server, separator, model = profile.partition(":")
        if server not in SERVERS:
            expected = ", ".join(sorted(SERVERS))
            raise InputError(f"{profile!r} is not a known profile; expected one of {expected}", path=f"{where}.profile")
        if separator and not parse_model(model).family:
            raise InputError(f"{model!r} is no model of a known family", path=f"{where}.profile")
    return row


def _merge_settings(provider: Provider | None, name: str, row: dict[str, Any]) -> Provider:
    where = f"providers.{name}"
    if provider is None:
        if not row.get("base_url"):
            raise InputError("a custom provider needs a base_url", path=where)
        server = (row.get("profile") or "").partition(":")[0]
        provider = Provider(name, title=name, api=SERVERS[server].name if server else "")
    changes = {key: row[key] for key in ("title", "api", "profile", "base_url", "tool_format") if key in row}
    if "base_url" in row:
        # The configuration file takes precedence over environment variables.
        changes |= {"url_variables": ()}
    if "api" in row and "profile" not in row:
        changes["profile"] = None
    if "key_variable" in row:
        changes |= {
            "keys": _parse_variables(row["key_variable"], f"{where}.key_variable"),
            "bearer": (),
            "signed": False,
        }
    if "model" in row:
        changes["default"] = row["model"]
    if "models" in row:
        changes["models"] = {**provider.models, **_parse_models(row["models"], f"{where}.models")}
        changes.setdefault("default", provider.default or next(iter(changes["models"]), ""))
    if "headers" in row:
        changes["fixed_headers"] = _parse_headers(row["headers"], f"{where}.headers")
    merged = msgspec.structs.replace(provider, **changes)
    if not merged.api:
        known = f"{_CHAT}, or another one that `segue apis` lists"
        raise InputError(f"a custom provider needs the API of its server: {known}", path=f"{where}.api")
    return merged


def _parse_names(value: object, path: str) -> tuple[str, ...]:
    names = cast("list[object]", value) if isinstance(value, list) else [value]
    for name in names:
        require_string(name, path)
    return tuple(cast("list[str]", names))


def _parse_variables(value: object, path: str) -> tuple[str, ...]:
    """Parse the names of environment variables. What is no such name may be a key, and is not repeated."""
    names = _parse_names(value, path)
    if not all(_VARIABLE.fullmatch(name) and redact(name) == name for name in names):
        raise InputError("expected the name of an environment variable; an API key must not be in a file", path=path)
    return names


def _parse_headers(table: object, path: str) -> dict[str, str]:
    try:
        headers = msgspec.convert(table, dict[str, str])
    except msgspec.ValidationError as error:
        raise mismatch_error(error, path) from None
    secret = next((name for name in headers if name.lower() in _KEY_HEADERS), None)
    if secret is not None:
        raise InputError(
            "an API key must not be in a file; set key_variable to the name of its environment variable",
            path=f"{path}.{secret}",
        )
    variable = next((name for name, value in headers.items() if "${" in value), None)
    if variable is not None:
        raise InputError("variables are not replaced in headers of a provider", path=f"{path}.{variable}")
    bad = next((name for name, value in headers.items() if not (name + value).isprintable()), None)
    if bad is not None:
        raise InputError("a header must be one line of printable characters", path=f"{path}.{bad!r}")
    return {name.lower(): value for name, value in headers.items()}


def _parse_models(value: object, path: str) -> dict[str, Model]:
    """Parse a list of model names, or a table with sizes and prices of each."""
    if isinstance(value, list):
        return dict.fromkeys(_parse_names(cast("list[object]", value), path), Model())
    try:
        return msgspec.convert(value, dict[str, Model])
    except msgspec.ValidationError as error:
        raise InputError(f"expected model names, or tables with sizes and prices: {error}", path=path) from None


# ------------------------------------------------------------------------------------------------------------ endpoints


def resolve(name: str, environ: Environ, config: Config | None = None) -> Endpoint:
    """Return the endpoint for `provider/model`, a provider (its default model), or a model.

    A model alone belongs to the first provider of `config` that lists it, else to its vendor.

    `environ` has the variables with keys and base URLs, such as `os.environ`. `config` adds or changes providers: the
    `[providers]` table of a configuration file.
    """
    require_string(name, "model")
    providers = catalogue(config)
    provider, model = _split_name(name.strip(), providers, config or {})
    if not model:
        raise InputError(f"no model of {provider.name} is named; write {provider.name}/MODEL", path="model")
    return _make_endpoint(provider, model, environ)


def first_available(environ: Environ, config: Config | None = None) -> Endpoint | None:
    """Return the default model of the first provider whose key is set. AWS configuration files alone don't count."""
    for provider in catalogue(config).values():
        if not provider.default or not provider.variables:
            continue
        has_key = any(environ.get(variable, "").strip() for variable in (*provider.keys, *provider.bearer))
        can_sign = provider.signed and environ.get("AWS_ACCESS_KEY_ID") and environ.get("AWS_SECRET_ACCESS_KEY")
        if not has_key and not can_sign:
            continue
        try:
            return _make_endpoint(provider, provider.default, environ)
        except InputError:
            # A key without a base URL or region.
            continue
    return None


def _split_name(name: str, providers: Mapping[str, Provider], config: Config) -> tuple[Provider, str]:
    first, slash, rest = name.partition("/")
    provider = _find_provider(first, providers)
    if provider is not None:
        return provider, rest if slash else provider.default
    own = next(
        (row for row in map(providers.get, config) if row is not None and name in (*row.models, row.default)), None
    )
    if own is not None:
        return own, name
    if slash and not name.startswith(_ARN):
        names = [alias for row in providers.values() for alias in (row.name, *row.aliases)]
        near = difflib.get_close_matches(first.lower(), names, 3, _MIN_SIMILARITY)
        hint = f"did you mean {' or '.join(near)}?" if near else f"expected one of {', '.join(providers)}"
        raise InputError(f"{first!r} is not a known provider; {hint}", path="model")
    detected = detect(name)
    owner = _find_owner(detected.target)
    if detected.target == _CHAT:
        # Many providers serve Chat Completions: only OpenAI's own models imply their provider.
        owner = _find_owner("openai-responses") if detected.model.family == "gpt" else None
    if owner is None:
        raise InputError(
            f"can't determine the provider of {name!r}: write PROVIDER/{name[:_MAX_NAME]}; "
            f"expected one of {', '.join(providers)}",
            path="model",
        )
    return providers[owner], name


def _find_owner(api: str) -> str | None:
    """Return the provider of models that are named without one: the first with this API and without a profile."""
    return next((name for name, row in _load_shipped().items() if (row.api, row.profile) == (api, None)), None)


def _find_provider(name: str, providers: Mapping[str, Provider]) -> Provider | None:
    name = name.lower()
    return providers.get(name) or next((row for row in providers.values() if name in row.aliases), None)


def _make_endpoint(provider: Provider, model: str, environ: Environ) -> Endpoint:
    region = aws.find_region(environ) if provider.signed else None
    base_url = _find_base_url(provider, environ, region)
    key, bearer = _find_key(provider, environ)
    signer = aws.find_credentials(environ) if provider.signed and key is None else None
    if key is None and not provider.variables and is_local(base_url):
        key = _PLACEHOLDER_KEY
    entry = provider.find_model(model) or Model()
    from_environ = {header: environ[variable] for header, variable in provider.headers.items() if environ.get(variable)}
    return Endpoint(
        provider.name,
        model,
        provider.api,
        base_url,
        profile=provider.profile,
        tool_format=provider.tool_format,
        key=key,
        context=entry.context or (None if is_local(base_url) else find_context(provider.name, model)),
        bearer=bearer,
        headers=tuple({**from_environ, **provider.fixed_headers}.items()),
        variables=provider.variables,
        signer=signer,
        region=(region or "us-east-1") if provider.signed else None,
        max_output=entry.max_output or _find_claude_maximum(provider, model),
    )


def _find_claude_maximum(provider: Provider, model: str) -> int | None:
    """Return the maximum of output tokens of a Claude model that is not in the catalogue."""
    return capabilities_of(parse_model(model)).max_tokens if provider.api in _CLAUDE_APIS else None


def _find_key(provider: Provider, environ: Environ) -> tuple[Secret | None, bool]:
    for variable in (*provider.keys, *provider.bearer):
        value = environ.get(variable, "").strip()
        if not value:
            continue
        if not (value.isascii() and value.isprintable()) or " " in value:
            raise InputError(f"{variable} is not a valid API key: expected ASCII characters without spaces")
        return Secret(value), variable in provider.bearer
    return None, False


def _find_base_url(provider: Provider, environ: Environ, region: str | None) -> str:
    """Return the base URL: from the configuration, the provider's own environment variable, or the catalogue."""
    variable = next((name for name in provider.url_variables if environ.get(name, "").strip()), None)
    if variable is not None:
        url, setting = environ[variable].strip(), variable
    else:
        url, setting = provider.base_url, f"providers.{provider.name}.base_url"
        if "{region}" in url:
            if region is None:
                raise InputError(f"no region for {provider.name}: set AWS_REGION")
            url = url.replace("{region}", region)
    if not url:
        raise InputError(f"no base URL for {provider.name}: set {_join_or(provider.url_variables)}")
    return _normalize_url(url, provider.path, path=setting)


def _normalize_url(url: str, suffix: str, *, path: str) -> str:
    """Return the URL with the suffix of the API. An error names the setting or variable `path`."""
    parts = _split_url(url)
    if parts is None or parts.scheme not in ("http", "https") or not parts.hostname:
        raise InputError("not a valid URL: expected https://… or http://…", path=path)
    if parts.username or parts.password:
        raise InputError("the URL contains a user name or password; set the API key in its own variable", path=path)
    own = parts.path.rstrip("/")
    if suffix and suffix.split("/")[1] not in own.split("/"):
        own += suffix
    elif suffix and own.endswith("/" + suffix.split("/")[1]) and not own.endswith(suffix):
        own = own.removesuffix("/" + suffix.split("/")[1]) + suffix
    return urlunsplit((parts.scheme, parts.netloc, own, "", ""))


def _split_url(url: str) -> SplitResult | None:
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        return None
    return parts if url.isprintable() and " " not in url else None


def _join_or(names: Sequence[str]) -> str:
    return " or ".join(names)
