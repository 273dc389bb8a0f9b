"""HTTP requests for each API: URL, headers, and the body in fragments. Pure functions: no network, no clock.

If the URL contains the model, the key `model` is removed from the body: from the fragment that holds it, without
parsing the others.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import cache
from importlib import metadata
from typing import NamedTuple

import msgspec

from segue.bridge import aws
from segue.bridge.providers import Endpoint
from segue.wire.registry import WIRES

_JSON = "application/json"


class HttpRequest(NamedTuple):
    """An HTTP request. Its `headers` hold the API key and are never displayed.

    `first_byte` is the longest wait for the head of the response in seconds, in place of that of the client.
    """

    method: str
    url: str
    headers: Mapping[str, str]
    body: Sequence[bytes] = ()
    first_byte: float | None = None

    def __repr__(self) -> str:
        return f"<HttpRequest {self.method} {self.url}>"


def reply_request(
    endpoint: Endpoint,
    fragments: Sequence[bytes],
    *,
    now: datetime,
    credentials: aws.Credentials | None = None,
    stream: bool = True,
    headers: Mapping[str, str] | None = None,
) -> HttpRequest:
    """Return the request for a reply, streamed or whole.

    `credentials` come from the endpoint's signer; `now` is UTC. `headers` are those of the caller that are passed on.
    """
    body = list(fragments)
    wire = WIRES[endpoint.api]
    if "{model}" in wire.path:
        body = _remove_key(body, wire.model_key.encode())
    accept = wire.http.stream_type if stream else _JSON
    own_headers = wire.http.add_betas({"content-type": _JSON, "accept": accept, **(headers or {})}, body)
    path = (stream and wire.stream_path) or wire.path
    request = HttpRequest("POST", _build_url(endpoint, path), own_headers, body)
    return _add_auth_headers(endpoint, request, now, credentials)


def count_request(
    endpoint: Endpoint,
    path: str,
    body: bytes,
    *,
    now: datetime,
    credentials: aws.Credentials | None = None,
    headers: Mapping[str, str] | None = None,
) -> HttpRequest:
    """Return the request for the provider's token counter at a path below the base URL."""
    request = HttpRequest(
        "POST", _build_url(endpoint, path), {"content-type": _JSON, "accept": _JSON, **(headers or {})}, [body]
    )
    return _add_auth_headers(endpoint, request, now, credentials)


def raw_request(
    endpoint: Endpoint, method: str, path: str, headers: Mapping[str, str], *, now: datetime
) -> HttpRequest:
    """Return a request at a path below the base URL, with the headers of the caller and the key of the endpoint.

    The version that both the base URL and the path have (`/v1`) is not repeated.
    """
    base, first = endpoint.base_url, path.partition("?")[0].split("/")[1]
    if first and base.endswith(f"/{first}"):
        base = base.removesuffix(f"/{first}")
    return _add_auth_headers(endpoint, HttpRequest(method, base + path, headers), now, None)


def loaded_models_request(endpoint: Endpoint, *, now: datetime) -> HttpRequest | None:
    """Return the request for the models that a server has in memory; None if it has no such list."""
    if endpoint.profile != "ollama":
        return None
    url = f"{endpoint.base_url.removesuffix('/v1')}/api/ps"
    return _add_auth_headers(endpoint, HttpRequest("GET", url, {"accept": _JSON}), now, None)


def models_request(
    endpoint: Endpoint, *, now: datetime, credentials: aws.Credentials | None = None, needs_key: bool = False
) -> HttpRequest:
    """Return the request for the list of models; with `needs_key`, one that fails if the API key is not valid."""
    form = WIRES[endpoint.api].http
    # OpenRouter's model list does not need a key.
    path = "/key" if endpoint.profile == "openrouter" and needs_key else form.models_path
    url = form.build_models_url(_build_url(endpoint, path))
    return _add_auth_headers(endpoint, HttpRequest("GET", url, {"accept": _JSON}), now, credentials)


def _build_url(endpoint: Endpoint, path: str) -> str:
    """Return the URL of a path: a version that the base URL ends with takes the place of that of the path."""
    base, form = endpoint.base_url, WIRES[endpoint.api].http
    if form.base_version and re.search(form.base_version, base):
        path = "/" + path.split("/", 2)[2]
    return base + form.build_path(path, endpoint.model)


def _add_auth_headers(
    endpoint: Endpoint, request: HttpRequest, now: datetime, credentials: aws.Credentials | None
) -> HttpRequest:
    wire = WIRES[endpoint.api]
    headers = {**wire.http.headers, **request.headers, "user-agent": _user_agent(), **dict(endpoint.headers)}
    if endpoint.key is not None:
        name = "authorization" if endpoint.bearer else wire.key_header
        headers[name] = endpoint.key.reveal() if name != "authorization" else f"Bearer {endpoint.key.reveal()}"
    elif credentials is not None:
        signed = {name: value for name, value in headers.items() if name == "content-type"}
        headers |= aws.sign(
            credentials,
            method=request.method,
            url=request.url,
            headers=signed,
            body=request.body,
            region=endpoint.region or "us-east-1",
            service="bedrock",
            now=now,
        )
    return request._replace(headers=headers)


@cache
def _user_agent() -> str:
    return f"segue/{metadata.version('segue')}"


# ------------------------------------------------------------------------------------- removing the model from the body


def _remove_key(body: list[bytes], key: bytes) -> list[bytes]:
    """Remove a top-level key from the body; it can be in the first or last fragment only."""
    leading = (
        re.compile(rb'\{\s*"%b"\s*:\s*"(?:[^"\\]|\\.)*"\s*(,?)\s*' % key, re.DOTALL).match(body[0]) if body else None
    )
    if leading is not None:
        return [b"{" + body[0][leading.end() :], *body[1:]]
    pattern = re.compile(rb'"%b"\s*:' % key)
    if not body or not any(pattern.search(fragment) for fragment in {body[0], body[-1]}):
        return body
    # Rare, and possibly only text inside a message: the whole body is parsed, one level deep.
    members = msgspec.json.decode(b"".join(body), type=dict[str, msgspec.Raw])
    if members.pop(key.decode(), None) is None:
        return body
    return [msgspec.json.encode(members)]
