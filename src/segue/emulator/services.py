"""The services of a port, built from the arguments of `start`: emulated providers, recorders or replayers.

On a port with several APIs, each has its prefix, `/anthropic`. Without a prefix the path selects the API, and where
several have the same path, the key header, the model name, and then the order of the registry.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from time import monotonic
from typing import Any, Protocol

from segue.canonical.json import parse_json_object
from segue.emulator.app import App
from segue.emulator.faults import FaultPlan
from segue.emulator.http_messages import HttpRequest, HttpResponse, RequestLog
from segue.emulator.model.script import Script
from segue.emulator.providers import PROVIDERS
from segue.emulator.providers.provider import Provider
from segue.emulator.recorder import Recorder, parse_upstreams
from segue.emulator.recordings import RecordingFolder, read_recordings
from segue.emulator.replayer import Replayer
from segue.emulator.steps import ScriptFunction
from segue.errors import InputError, format_os_error, require_string
from segue.http_client import HttpClient
from segue.wire.base import ApiError
from segue.wire.registry import SERVERS, WIRES, api_of_model, find_wire_or_server

ALL_APIS = "all"
_AUTHORIZATION = "authorization"
_VERSION_HEADERS = {"anthropic-version": "anthropic"}
_EMPTY: tuple[Any, ...] = ((), [], {}, "")


class Service(Protocol):
    """Handles the requests of one API."""

    provider: Provider

    @property
    def max_body_bytes(self) -> int: ...
    async def handle(self, http_request: HttpRequest) -> HttpResponse: ...
    async def close(self) -> None: ...


class Router:
    """The services of a port by API. A single one gets all requests, without a prefix."""

    def __init__(self, services: Mapping[str, Service], log: RequestLog) -> None:
        self.services = services
        self.log = log
        self.name = ALL_APIS if len(services) > 1 else next(iter(services))

    @property
    def base_paths(self) -> Mapping[str, str]:
        """The path of the base URL for the client of each API."""
        paths = {api: service.provider.base_path for api, service in self.services.items()}
        return paths if self.name != ALL_APIS else {api: f"/{api}{path}" for api, path in paths.items()}

    @property
    def max_body_bytes(self) -> int:
        return max(service.max_body_bytes for service in self.services.values())

    async def handle(self, http_request: HttpRequest) -> HttpResponse:
        if self.name != ALL_APIS:
            return await self.services[self.name].handle(http_request)
        http_request = self._split_prefix(http_request)
        api = http_request.prefix.removeprefix("/") or self._find_api(http_request)
        if api is None:
            return self._unknown_path(http_request)
        service = self.services[api]
        if len(http_request.body) > service.max_body_bytes:
            http_request = replace(http_request, body=b"", is_complete=False)
        return await service.handle(http_request)

    async def close(self) -> None:
        for service in self.services.values():
            await service.close()

    def _split_prefix(self, http_request: HttpRequest) -> HttpRequest:
        first, _, rest = http_request.path.removeprefix("/").partition("/")
        return replace(http_request, prefix=f"/{first}", path=f"/{rest}") if first in self.services else http_request

    def _find_api(self, http_request: HttpRequest) -> str | None:
        """Return the API of a request without a prefix; None for a path that no API has."""
        candidates = [api for api, service in self.services.items() if service.provider.has_path(http_request.path)]
        if len(candidates) < 2:
            return candidates[0] if candidates else None
        headers = http_request.headers
        by_version = [api for name, api in _VERSION_HEADERS.items() if name in headers and api in candidates]
        key_headers = {api: self.services[api].provider.wire.key_header for api in candidates}
        by_key = [api for api, name in key_headers.items() if name != _AUTHORIZATION and name in headers]
        by_model = [api for api in [api_of_model(_read_model(http_request))] if api in candidates]
        return [*by_version, *by_key, *by_model, *candidates][0]

    def _unknown_path(self, http_request: HttpRequest) -> HttpResponse:
        """Return an error in the form of the first API."""
        provider = next(iter(self.services.values())).provider
        prefixes = ", ".join(f"/{api}" for api in self.services)
        error = ApiError(404, f"no API has the path {http_request.path}; the prefixes are {prefixes}")
        record = self.log.open("", http_request)
        response = provider.make_error_response(error, http_request, record)
        self.log.close(record)
        return response


def _read_model(http_request: HttpRequest) -> str:
    try:
        model = parse_json_object(http_request.body)[0].get("model")
    except InputError:
        return ""
    return model if isinstance(model, str) else ""


@dataclass(frozen=True, kw_only=True)
class EmulationOptions:
    """The arguments of `start` for emulated providers."""

    script: str | Path | Script | ScriptFunction | None = None
    strict: bool = True
    profile: str | None = None
    keys: str | Iterable[str] = ()
    faults: Iterable[str] | Mapping[str, float] = ()
    seed: int = 0
    patience: float = 30.0
    clock: Callable[[], float] = monotonic

    @property
    def changed(self) -> list[str]:
        """The names of the options that do not have their default."""
        values: dict[str, Any] = {each.name: getattr(self, each.name) for each in fields(self)}
        defaults: dict[str, Any] = {each.name: each.default for each in fields(self)}
        return [name for name, value in values.items() if value != defaults[name] and value not in _EMPTY]


@dataclass(frozen=True, kw_only=True)
class RecordingOptions:
    """The arguments of `start` for recorded exchanges."""

    record: str | Path | None = None
    upstream: str | Mapping[str, str] | None = None
    replay: str | Path | None = None


def build_router(api: str, log: RequestLog, emulation: EmulationOptions, recording: RecordingOptions) -> Router:
    """Return the services of an API, or of all. Raises `InputError` for arguments that are not valid together."""
    if recording.record is None and recording.upstream is not None:
        raise InputError("it is used only with `record`", path="upstream")
    if recording.record is None and recording.replay is None:
        return _emulate(api, log, emulation)
    if emulation.changed:
        raise InputError("it can't be combined with `record` or `replay`", path=emulation.changed[0])
    apis = tuple(WIRES) if api == ALL_APIS else (find_wire_or_server(api, argument="api").name,)
    if recording.record is None:
        return _replay(apis, log, recording.replay or "")
    if recording.replay is not None:
        raise InputError("it can't be combined with `record`", path="replay")
    upstreams = parse_upstreams(recording.upstream, apis)
    folder, client = RecordingFolder(Path(recording.record)), HttpClient()
    recorders = {name: Recorder(PROVIDERS[name](0), upstreams.get(name), folder, client, log) for name in apis}
    return Router(recorders, log)


def _replay(apis: tuple[str, ...], log: RequestLog, folder: str | Path) -> Router:
    recordings = read_recordings(Path(folder))
    replayers = {name: Replayer(PROVIDERS[name](0), recordings, log) for name in apis}
    if not any(replayer.count for replayer in replayers.values()):
        raise InputError(f"{folder} has no recordings of {apis[0]}", path="replay")
    return Router(replayers, log)


def _emulate(api: str, log: RequestLog, options: EmulationOptions) -> Router:
    if not _is_seconds(options.patience):
        raise InputError(f"a number of seconds was expected, not {options.patience!r}", path="patience")
    keys, scripted_reply = _check_keys(options.keys), _load_script(options.script)
    faults = FaultPlan(options.faults, options.seed)

    def make_app(name: str, profile: str | None) -> Service:
        return App(
            PROVIDERS[name](options.seed),
            profile=profile,
            strict=options.strict,
            keys=keys,
            scripted_reply=scripted_reply,
            faults=faults,
            patience=options.patience,
            clock=options.clock,
            log=log,
        )

    profiles = _profiles_by_api(api, options.profile)
    return Router({name: make_app(name, profile) for name, profile in profiles.items()}, log)


def _profiles_by_api(api: str, profile: str | None) -> dict[str, str | None]:
    """Return the APIs to emulate, each with its server profile. With all APIs, a profile applies to its own."""
    if api != ALL_APIS:
        row = find_wire_or_server(api, profile, argument="api")
        return {row.name: row.profile}
    if profile is None:
        return dict.fromkeys(WIRES)
    owner = SERVERS[profile].name if profile in SERVERS else "openai-chat"
    row = find_wire_or_server(owner, profile, argument="api")
    return {name: row.profile if name == row.name else None for name in WIRES}


def _is_seconds(value: object) -> bool:
    return isinstance(value, int | float) and not math.isnan(value) and value >= 0


def _check_keys(value: str | Iterable[str]) -> frozenset[str]:
    keys = frozenset([value] if isinstance(value, str) else value)
    for key in keys:
        require_string(key, "keys")
    return keys


def _load_script(value: str | Path | Script | ScriptFunction | None) -> ScriptFunction:
    """Return the function that a script is, or one that returns its replies in their order."""
    if callable(value):
        return value
    script = _parse_script(value)
    replies = list(script.turns) if script is not None else []
    return lambda _: replies.pop(0) if replies else None


def _parse_script(value: str | Path | Script | None) -> Script | None:
    if value is None or isinstance(value, Script):
        return value
    if isinstance(value, Path):
        try:
            return Script.parse(value.read_text("utf-8"), str(value))
        except (OSError, UnicodeDecodeError) as error:
            why = format_os_error(error) if isinstance(error, OSError) else "it is not UTF-8"
            raise InputError(f"can't read the script {value}: {why}", path="script") from None
    try:
        return Script.parse(value)
    except InputError as error:
        if not _looks_like_path(value):
            raise
        raise InputError(f"{error.message}; for a script file pass Path({value!r})", path="script") from None


def _looks_like_path(text: object) -> bool:
    """Return whether this is one word with a dot or a slash, which is not a valid script."""
    return isinstance(text, str) and len(text.split()) == 1 and any(mark in text for mark in "./\\")
