"""Selects the API of a request on a port that serves one API or all of them.

With several APIs, each has its prefix, `/anthropic`. Without a prefix the path selects the API, and where several have
the same path, the key header, the model name, and then the order of the registry.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Protocol

from segue.canonical.json import parse_json_object
from segue.emulator.http_messages import HttpRequest, HttpResponse
from segue.emulator.providers.provider import Provider
from segue.emulator.request_log import RequestLog
from segue.errors import InputError
from segue.wire.base import ApiError
from segue.wire.registry import api_of_model

ALL_APIS = "all"
_AUTHORIZATION = "authorization"
_VERSION_HEADERS = {"anthropic-version": "anthropic"}


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
