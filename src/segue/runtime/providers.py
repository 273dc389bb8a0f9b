"""Who there is to ask: a catalogue as data, with the user's additions, and one model of it as an `Endpoint`.

The catalogue is `providers.toml`, read when it is first asked for. Keys come from variables only; a file can name the
variable, never hold the key.
"""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources
from typing import Any, cast
from urllib.parse import SplitResult, urlsplit, urlunsplit

import msgspec
from msgspec import Struct

from segue.errors import InputError, text_argument
from segue.models import same_model
from segue.runtime import aws
from segue.runtime.secret import Secret
from segue.wire.by_model import detect
from segue.wire.profiles import PROFILES
from segue.wire.registry import WIRES

__all__ = ["Endpoint", "Model", "Provider", "Secret", "catalogue", "first_available", "is_local", "resolve"]

Environ = Mapping[str, str]
Config = Mapping[str, Any]

_CHAT = "openai-chat"
# Whoever listens on this machine may want a key to be there, and takes any.
_ANY_KEY = Secret("local")
_SETTINGS = frozenset(
    {"title", "api", "profile", "base_url", "key_variable", "tool_format", "model", "models", "headers"}
)
_KEY_HEADERS = frozenset({"authorization", "proxy-authorization", "x-api-key", "x-goog-api-key", "api-key", "cookie"})
# The provider of a bare model name, by the API that speaks to it.
_HOMES = {"kimi": "moonshot", "qwen": "dashscope", "openai-responses": "openai", "azure-foundry": "azure"}
_ARN = "arn:aws:bedrock"
# From here on a name may be another one mistyped; below, they have some letters in common.
_ALIKE = 0.7


class Model(Struct, frozen=True):
    """What is known of a model. Prices are in dollars for a million tokens, as somebody's own file gives them."""

    context: int | None = None
    input: float | None = None
    output: float | None = None
    cache_read: float | None = None
    cache_write: float | None = None


class Provider(Struct, frozen=True):
    """A row of the catalogue; `providers.toml` says what the columns mean."""

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
        """All that a key may stand in."""
        signing = ("AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",) if self.signed else ()
        return (*self.keys, *self.bearer, *signing)

    def known(self, model: str) -> Model | None:
        """What is known of the model, also under a name with a date or a prefix."""
        exact = self.models.get(model)
        return exact or next((row for name, row in self.models.items() if same_model(name, model)), None)


class Endpoint(Struct, frozen=True):
    """One model at one provider, and how to get in. The key is in no repr, and can't be dumped.

    `bearer` says that the key is a bearer token, whatever header the API is used to. `variables` are those that the key
    may come from. `signer` is Amazon's way instead of a key.
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
    signer: aws.Source | None = None
    region: str | None = None

    @property
    def name(self) -> str:
        return f"{self.provider}/{self.model}"

    @property
    def lacks_key(self) -> bool:
        return self.key is None and self.signer is None and bool(self.variables)


# ------------------------------------------------------------------------------------------------------- the catalogue


def catalogue(config: Config | None = None) -> dict[str, Provider]:
    """Every provider by name: those of segue, then those of the user's own making."""
    known = dict(_shipped())
    for name, settings in (config or {}).items():
        row = _settings(name, settings)
        home = next((provider.name for provider in known.values() if name in (provider.name, *provider.aliases)), name)
        known[home] = _changed(known.get(home), home, row)
    return known


@cache
def _shipped() -> Mapping[str, Provider]:
    data = resources.files("segue.runtime").joinpath("providers.toml").read_text("utf-8")
    rows: dict[str, dict[str, Any]] = tomllib.loads(data)
    for row in rows.values():
        row["models"] = {name: {"context": context} for name, context in row.get("models", {}).items()}
    return {name: msgspec.convert({"name": name, **row}, Provider) for name, row in rows.items()}


def _settings(name: str, given: object) -> dict[str, Any]:
    """A table of the user's, looked through."""
    where = f"providers.{name}"
    if not isinstance(given, Mapping):
        raise InputError("a table was expected", path=where)
    row = dict(cast("Mapping[str, Any]", given))
    if "/" in name or not name:
        raise InputError("a provider's name has no slash in it", path=where)
    for key, value in row.items():
        if key not in _SETTINGS:
            near = difflib.get_close_matches(key, _SETTINGS, 1)
            hint = f"did you mean {near[0]}?" if near else f"known are {', '.join(sorted(_SETTINGS))}"
            raise InputError(f"is no setting; {hint}", path=f"{where}.{key}")
        if key not in ("models", "headers", "key_variable"):
            text_argument(value, f"{where}.{key}")
    if (api := row.get("api")) is not None and api not in WIRES:
        raise InputError(f"{api!r} is not a known API; known are {', '.join(WIRES)}", path=f"{where}.api")
    if (profile := row.get("profile")) is not None and profile not in PROFILES:
        raise InputError(f"{profile!r} is no profile; known are {', '.join(PROFILES)}", path=f"{where}.profile")
    return row


def _changed(known: Provider | None, name: str, row: dict[str, Any]) -> Provider:
    where = f"providers.{name}"
    if known is None:
        if not row.get("base_url"):
            raise InputError("a provider of your own needs its base_url", path=where)
        known = Provider(name, title=name, api=_CHAT)
    changes = {key: row[key] for key in ("title", "api", "profile", "base_url", "tool_format") if key in row}
    if "base_url" in row:
        # What is written down counts more than what is found in the environment.
        changes |= {"url_variables": ()}
    if "api" in row and "profile" not in row:
        changes["profile"] = None
    if "key_variable" in row:
        changes |= {"keys": _names(row["key_variable"], f"{where}.key_variable"), "bearer": (), "signed": False}
    if "model" in row:
        changes["default"] = row["model"]
    if "models" in row:
        changes["models"] = {**known.models, **_models(row["models"], f"{where}.models")}
        changes.setdefault("default", known.default or next(iter(changes["models"]), ""))
    if "headers" in row:
        changes["fixed_headers"] = _headers(row["headers"], f"{where}.headers")
    return msgspec.structs.replace(known, **changes)


def _names(given: object, path: str) -> tuple[str, ...]:
    names = cast("list[object]", given) if isinstance(given, list) else [given]
    for name in names:
        text_argument(name, path)
    return tuple(cast("list[str]", names))


def _headers(given: object, path: str) -> dict[str, str]:
    try:
        headers = msgspec.convert(given, dict[str, str])
    except msgspec.ValidationError as error:
        raise InputError(str(error).lower(), path=path) from None
    secret = next((name for name in headers if name.lower() in _KEY_HEADERS), None)
    if secret is not None:
        raise InputError(
            "a key does not belong into a file; name its variable as key_variable", path=f"{path}.{secret}"
        )
    bad = next((name for name, value in headers.items() if not (name + value).isprintable()), None)
    if bad is not None:
        raise InputError("a header is one line", path=f"{path}.{bad!r}")
    return {name.lower(): value for name, value in headers.items()}


def _models(given: object, path: str) -> dict[str, Model]:
    """A list of names, or a table that says more of each."""
    if isinstance(given, list):
        return dict.fromkeys(_names(cast("list[object]", given), path), Model())
    try:
        return msgspec.convert(given, dict[str, Model])
    except msgspec.ValidationError as error:
        raise InputError(f"names, or tables with context and prices, were expected: {error}", path=path) from None


# ------------------------------------------------------------------------------------------------------- one of them


def resolve(name: str, environ: Environ, config: Config | None = None) -> Endpoint:
    """The endpoint of `provider/model`, of a provider alone (its default model), or of a model alone (its home)."""
    text_argument(name, "model")
    known = catalogue(config)
    provider, model = _parted(name.strip(), known)
    if not model:
        raise InputError(f"which model? say {provider.name}/MODEL", path="model")
    return _endpoint(provider, model, environ)


def first_available(environ: Environ, config: Config | None = None) -> Endpoint | None:
    """The first provider whose key is set, with its default model. Files of Amazon's tools alone don't count."""
    for provider in catalogue(config).values():
        if not provider.default or not provider.variables:
            continue
        named = any(environ.get(variable, "").strip() for variable in (*provider.keys, *provider.bearer))
        signs = provider.signed and environ.get("AWS_ACCESS_KEY_ID") and environ.get("AWS_SECRET_ACCESS_KEY")
        if not named and not signs:
            continue
        try:
            return _endpoint(provider, provider.default, environ)
        except InputError:
            # A key without a place or a region to use it at.
            continue
    return None


def _parted(name: str, known: Mapping[str, Provider]) -> tuple[Provider, str]:
    first, slash, rest = name.partition("/")
    provider = _named(first, known)
    if provider is not None:
        return provider, rest if slash else provider.default
    if slash and not name.startswith(_ARN):
        names = [spelling for row in known.values() for spelling in (row.name, *row.aliases)]
        near = difflib.get_close_matches(first.lower(), names, 3, _ALIKE)
        hint = f"did you mean {' or '.join(near)}?" if near else f"known are {', '.join(known)}"
        raise InputError(f"{first!r} is not a known provider; {hint}", path="model")
    told = detect(name)
    home = _HOMES.get(told.target, told.target)
    if home == _CHAT:
        # The plain wire is spoken by many: only OpenAI's own models have their home there.
        home = "openai" if told.model.family == "gpt" else ""
    if home not in known:
        raise InputError(f"whose model is {name!r}? say PROVIDER/{name}; known are {', '.join(known)}", path="model")
    return known[home], name


def _named(name: str, known: Mapping[str, Provider]) -> Provider | None:
    name = name.lower()
    return known.get(name) or next((row for row in known.values() if name in row.aliases), None)


def _endpoint(provider: Provider, model: str, environ: Environ) -> Endpoint:
    region = aws.region_of(environ) if provider.signed else None
    base_url = _place(provider, environ, region)
    key, bearer = _key(provider, environ)
    signer = aws.found(environ) if provider.signed and key is None else None
    if key is None and not provider.variables and is_local(base_url):
        key = _ANY_KEY
    found = provider.known(model)
    named = {header: environ[variable] for header, variable in provider.headers.items() if environ.get(variable)}
    return Endpoint(
        provider.name,
        model,
        provider.api,
        base_url,
        profile=provider.profile,
        tool_format=provider.tool_format,
        key=key,
        context=found.context if found is not None else None,
        bearer=bearer,
        headers=tuple({**named, **provider.fixed_headers}.items()),
        variables=provider.variables,
        signer=signer,
        region=(region or "us-east-1") if provider.signed else None,
    )


def _key(provider: Provider, environ: Environ) -> tuple[Secret | None, bool]:
    for variable in (*provider.keys, *provider.bearer):
        value = environ.get(variable, "").strip()
        if not value:
            continue
        if not (value.isascii() and value.isprintable()) or " " in value:
            raise InputError(f"{variable} holds something that is no key: one word of plain characters was expected")
        return Secret(value), variable in provider.bearer
    return None, False


def _place(provider: Provider, environ: Environ, region: str | None) -> str:
    """Where the provider is: as the user wrote it down, as an official variable has it, or as everybody knows."""
    variable = next((name for name in provider.url_variables if environ.get(name, "").strip()), None)
    if variable is not None:
        given, whence = environ[variable].strip(), variable
    else:
        given, whence = provider.base_url, f"providers.{provider.name}.base_url"
        if "{region}" in given:
            if region is None:
                raise InputError(f"{provider.name} has no region: set AWS_REGION")
            given = given.replace("{region}", region)
    if not given:
        raise InputError(f"{provider.name} has no address: set {_either(provider.url_variables)}")
    return _checked(given, provider.path, whence)


def _checked(url: str, path: str, whence: str) -> str:
    place = _split(url)
    if place is None or place.scheme not in ("http", "https") or not place.hostname:
        raise InputError(f"{whence} is no address: https://… was expected")
    if place.username or place.password:
        raise InputError(f"{whence} holds a name or a password; a key belongs into its own variable")
    own = place.path.rstrip("/")
    if path and path.split("/")[1] not in own.split("/"):
        own += path
    elif path and own.endswith("/" + path.split("/")[1]) and not own.endswith(path):
        own = own.removesuffix("/" + path.split("/")[1]) + path
    return urlunsplit((place.scheme, place.netloc, own, "", ""))


def _split(url: str) -> SplitResult | None:
    try:
        place = urlsplit(url)
        _ = place.port
    except ValueError:
        return None
    return place if url.isprintable() and " " not in url else None


def is_local(url: str) -> bool:
    """Whether an address is on this machine."""
    host = urlsplit(url).hostname or ""
    return host in ("localhost", "::1") or host.startswith("127.")


def _either(names: Sequence[str]) -> str:
    return " or ".join(names)
