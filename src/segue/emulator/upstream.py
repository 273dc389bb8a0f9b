"""The upstream of a recorder: the URL of a real provider, and the URL of each request there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from segue.bridge.addresses import is_local
from segue.emulator.http_messages import HttpRequest
from segue.errors import InputError, require_string, unknown_name_error


@dataclass(frozen=True)
class Upstream:
    """A base URL. One that is given for all APIs gets the prefix of a request too."""

    base_url: str
    with_prefix: bool = False

    def build_url(self, http_request: HttpRequest) -> str:
        """Return the URL of a request, escaped as the client sent it."""
        path = http_request.raw_path
        if not self.with_prefix:
            path = path.removeprefix(http_request.prefix)
        query = f"?{http_request.raw_query}" if http_request.raw_query else ""
        return _join_paths(self.base_url, path) + query


def _join_paths(base_url: str, path: str) -> str:
    """Join them without repeating the end of the base URL, as in `https://host/v1` and `/v1/messages`."""
    segments = urlsplit(base_url).path.split("/")[1:]
    for start in range(len(segments)):
        end = "/" + "/".join(segments[start:])
        if path == end or path.startswith(f"{end}/"):
            return base_url + path[len(end) :]
    return base_url + path


def parse_upstreams(value: str | Mapping[str, str] | None, apis: Sequence[str]) -> dict[str, Upstream]:
    """Return the upstream of each API. A single URL is that of all of them."""
    if value is None:
        raise InputError("the URL of the real provider is needed with `record`", path="upstream")
    if isinstance(value, Mapping):
        for api in value:
            if api not in apis:
                raise unknown_name_error("API", api, apis, path="upstream")
        if not value:
            raise InputError("the URL of at least one API is needed", path="upstream")
        return {api: Upstream(_check_url(url)) for api, url in value.items()}
    url = _check_url(value)
    return {api: Upstream(url, with_prefix=len(apis) > 1) for api in apis}


def _check_url(url: str) -> str:
    """Return the URL without a final slash. Keys are sent there: only over TLS, or on this machine."""
    require_string(url, "upstream")
    try:
        parts = urlsplit(url)
        is_valid = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_valid, parts = False, urlsplit("")
    if not is_valid or any(char.isspace() or not char.isprintable() for char in url):
        raise InputError("a URL such as https://api.example.com was expected", path="upstream")
    if parts.username is not None or parts.password is not None or parts.query or parts.fragment:
        raise InputError("a URL without user name, query and fragment was expected", path="upstream")
    if parts.scheme == "http" and not is_local(url):
        raise InputError("http is allowed for this machine only; use https", path="upstream")
    return url.rstrip("/")
