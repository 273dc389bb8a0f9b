"""Passthrough routes: requests that are passed on to a provider as they are, because segue does not translate them.

Only the path below the base URL of the configured provider comes from the client. A path that could lead elsewhere is
rejected, whatever its encoding.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Literal
from urllib.parse import unquote

from msgspec import Meta, Struct

from segue.bridge.api_paths import find_api_path
from segue.bridge.providers import Endpoint
from segue.errors import InputError
from segue.gateway.client_keys import KEY_HEADERS, drop_keys
from segue.gateway.control_api import OWN_PATHS

_SEGMENTS = frozenset({".", ".."})
# All characters that RFC 3986 allows in a path and a query.
_PATH = re.compile(r"/[A-Za-z0-9._~!$&'()*+,;=:@%/-]*")
_QUERY = re.compile(r"[A-Za-z0-9._~!$&'()*+,;=:@%/?-]*")
_BAD_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")
_MAX_DECODINGS = 4
_VERSION = re.compile(r"/v\d\w*")
# Headers of one connection (RFC 9110), and those that the gateway sets itself.
HOP_HEADERS = frozenset(
    {"connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "proxy-connection", "te", "trailer"}
    | {"transfer-encoding", "upgrade"}
)
_OWN_HEADERS = frozenset(
    {"host", "expect", "accept-encoding", "user-agent", "authorization", "cookie", "origin", "referer", "forwarded"}
    | {"x-request-id", *KEY_HEADERS}
)
_FORWARDED = "x-forwarded-"


class PassthroughSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """A `[[gateway.passthrough]]` table: requests at `path` and below it go to `provider`.

    `to` replaces `path` in the provider's URL. Requests that segue could translate are passed on with `always`, or with
    `to` below a path of one's own, such as `/raw`.
    `cost` is what a request reserves of budgets, in dollars, and costs where its usage or price is not known.
    """

    path: str
    provider: str
    name: str = ""
    to: str | None = None
    auth: Literal["gateway", "client"] = "gateway"
    always: bool = False
    max_mb: Annotated[int, Meta(ge=1)] = 512
    cost: Annotated[float, Meta(ge=0)] = 0.05

    def __post_init__(self) -> None:
        for key, path in (("path", self.path), ("to", self.to or "/")):
            if find_path_error(path) is not None or "?" in path:
                raise ValueError(f"{key} {path!r} is not a path such as /v1/embeddings")
        if self.path.rstrip("/") in OWN_PATHS:
            raise ValueError(f"path {self.path!r} is one that the gateway answers itself")
        if not self.provider or "/" in self.provider:
            raise ValueError(f"{self.provider!r} is not the name of a provider")

    def matches(self, path: str) -> bool:
        prefix = self.path.rstrip("/")
        return path == prefix or path.startswith(f"{prefix}/")

    def takes(self, method: str, path: str, headers: Mapping[str, str]) -> bool:
        """Return whether a request is passed on.

        One that segue translates is with `always`, or where `to` replaces a prefix before the whole path of the API.
        """
        if not self.matches(path):
            return False
        if self.always or find_api_path(method, path, headers) is None:
            return True
        prefix = self.path.rstrip("/")
        is_own = self.to is not None and prefix != "" and _VERSION.fullmatch(prefix) is None
        return is_own and find_api_path(method, path[len(prefix) :], headers) is not None

    def shadows(self, later: PassthroughSettings) -> bool:
        """Return whether a later route is never used beside this one."""
        return self.matches(later.path.rstrip("/") or "/") and (self.always or not (later.always or later.to))


class PassthroughRoute(Struct, frozen=True):
    """A passthrough route with its endpoint, whose model is not used."""

    settings: PassthroughSettings
    endpoint: Endpoint

    @property
    def name(self) -> str:
        return self.settings.name or self.settings.path

    def build_path(self, path: str, query: str, client_key: str = "") -> str:
        """Return the path below the provider's base URL. The query parameter `key` is that of the client."""
        prefix, to = self.settings.path.rstrip("/"), self.settings.to
        if to is not None:
            path = to.rstrip("/") + path[len(prefix) :]
        query = drop_keys(query, client_key)
        return f"{path or '/'}?{query}" if query else path or "/"


def build_routes(
    routes: Sequence[PassthroughSettings], resolve: Callable[[str], Endpoint]
) -> tuple[PassthroughRoute, ...]:
    """Resolve the providers; raise `InputError` for one that is unknown, or that signs each body."""
    built: list[PassthroughRoute] = []
    for index, settings in enumerate(routes):
        path = f"gateway.passthrough[{index}].provider"
        try:
            endpoint = resolve(f"{settings.provider}/raw")
        except InputError as error:
            raise InputError(error.message, path=path) from None
        if endpoint.signer is not None:
            raise InputError(f"{settings.provider} needs a key here: signed requests can't be passed on", path=path)
        built.append(PassthroughRoute(settings, endpoint))
    return tuple(built)


def find_path_error(path: str, query: str = "") -> str | None:
    """Return why a path can't be passed on; None if it can only lead below the base URL."""
    if not path.startswith("/"):
        return "the path must begin with a slash"
    if not (_PATH.fullmatch(path) and _QUERY.fullmatch(query)) or _BAD_ESCAPE.search(path):
        return "the path or the query has a character that is not allowed in a URL"
    decoded = path
    for _ in range(_MAX_DECODINGS):
        is_stable = unquote(decoded, "latin-1") == decoded
        # A server may decode the path once more, or take ; for the end of a segment.
        segments = [segment.partition(";")[0] for segment in re.split(r"[/\\]", decoded)]
        if not _SEGMENTS.isdisjoint(segments) or "//" in decoded or "\\" in decoded or not decoded.isprintable():
            return "the path has an empty or relative segment"
        if is_stable:
            return None
        if decoded.count("/") != unquote(decoded, "latin-1").count("/"):
            return "the path has an encoded slash"
        decoded = unquote(decoded, "latin-1")
    return "the path is encoded too often"


def request_headers(headers: Sequence[tuple[str, str]], client_key: str = "") -> dict[str, str]:
    """Return the headers of a client that are passed on: none of its connection, of its keys, or of its browser.

    Many servers take `x_api_key` for `x-api-key`.
    """
    dropped = _OWN_HEADERS | HOP_HEADERS | _named_in_connection(headers)
    kept: dict[str, str] = {}
    for name, value in headers:
        known = name.replace("_", "-")
        if known not in dropped and not known.startswith(_FORWARDED) and not (client_key and client_key in value):
            kept[name] = f"{kept[name]}, {value}" if name in kept else value
    return kept


def response_headers(headers: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return the headers of a provider's response that are passed on: none of its connection, and no cookies."""
    dropped = HOP_HEADERS | {"set-cookie", "alt-svc", "date", "server"} | _named_in_connection(headers)
    return [(name, value) for name, value in headers if name not in dropped]


def _named_in_connection(headers: Sequence[tuple[str, str]]) -> frozenset[str]:
    values = [value for name, value in headers if name == "connection"]
    return frozenset(name.strip().lower().replace("_", "-") for value in values for name in value.split(","))
