"""A minimal HTTP client: sends a body to the path of its API and returns the response."""

from __future__ import annotations

import http.client
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import msgspec

from segue.bridge.http_requests import reply_request
from segue.bridge.providers import Endpoint
from segue.bridge.secret import Secret
from segue.emulator.server import Emulator
from segue.errors import unknown_name_error
from segue.wire.registry import WIRES

_KEY = "segue-emulator"
_ORIGIN = "http://127.0.0.1"
# Only signed requests depend on the time.
_NOW = datetime(2026, 1, 1, tzinfo=UTC)


class Response(NamedTuple):
    status: int
    headers: Mapping[str, str]
    data: bytes

    @property
    def body(self) -> Any:
        """The decoded JSON of a whole reply."""
        return msgspec.json.decode(self.data)


class PreparedRequest(NamedTuple):
    """A request before it is sent."""

    path: str
    data: bytes
    headers: Mapping[str, str]


def build_request(
    api: str,
    body: Mapping[str, Any] | bytes,
    *,
    model: str | None = None,
    stream: bool = False,
    key: str | None = _KEY,
    headers: Mapping[str, str] | None = None,
) -> PreparedRequest:
    """Build the HTTP request of an API. A model in the path is `model`, else that of the body, else the default."""
    wire = WIRES[api]
    if not isinstance(body, bytes):
        body = dict(body)
        if "{model}" in wire.path:
            body_models = [body.pop(key, None) for key in ("modelId", "model")]
            model = model or next((name for name in body_models if isinstance(name, str)), None)
        else:
            body = {**body, **({"model": model} if model else {}), **({"stream": True} if stream else {})}
        body = msgspec.json.encode(body)
    endpoint = Endpoint(
        api,
        model or wire.default_model,
        api,
        _ORIGIN + wire.base_path,
        key=None if key is None or "authorization" in (headers or {}) else Secret(key),
    )
    request = reply_request(endpoint, (), now=_NOW, stream=stream)
    return PreparedRequest(request.url.removeprefix(_ORIGIN), body, {**request.headers, **(headers or {})})


def post(
    emulator: Emulator,
    body: Mapping[str, Any] | bytes,
    *,
    model: str | None = None,
    stream: bool = False,
    key: str | None = _KEY,
    headers: Mapping[str, str] | None = None,
    timeout: float = 30.0,
    api: str | None = None,
) -> Response:
    """Send one request to an emulated provider and return the response. By default the key is a placeholder.

    `api` is the API of the request, where the emulator has all.
    """
    name = api or emulator.api
    if name not in emulator.base_urls:
        raise unknown_name_error("API", name, emulator.base_urls, path="api")
    path, data, all_headers = build_request(name, body, model=model, stream=stream, key=key, headers=headers)
    path = path if emulator.api == name else f"/{name}{path}"
    url = urlsplit(emulator.url)
    connection = http.client.HTTPConnection(url.hostname or "", url.port, timeout=timeout)
    try:
        connection.request("POST", path, data, dict(all_headers))
        response = connection.getresponse()
        return Response(
            response.status, {name.lower(): value for name, value in response.getheaders()}, response.read()
        )
    finally:
        connection.close()
