"""Client keys: the names, hashes and limits of the clients of a gateway. A key itself is never stored."""

from __future__ import annotations

import hmac
import re
from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import Annotated
from urllib.parse import parse_qs, parse_qsl, unquote_plus, urlencode

from msgspec import Meta, Struct

from segue.gateway.budgets import parse_budget

KEY_HEADERS = ("x-api-key", "x-goog-api-key", "api-key")
_PARAMETER = re.compile(r"[&;]*[^&;]+")
_SIGNS = re.compile(r"\[.*|\W", re.DOTALL)
_MAX_DECODINGS = 4
NAME_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9._@-]{0,63}$"
"""The names of clients: they are written to logs."""
_HASH_PATTERN = "^[0-9a-f]{64}$"
_Limit = Annotated[int, Meta(ge=1)]


class UseLimits(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Limits of a client or a group; None means no limit. `budgets` are such as `50/month`, in dollars."""

    requests_per_minute: _Limit | None = None
    tokens_per_minute: _Limit | None = None
    concurrent: _Limit | None = None
    budgets: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for text in self.budgets:
            parse_budget(text)

    @property
    def has_rates(self) -> bool:
        """Whether requests have to be counted."""
        return (self.requests_per_minute, self.tokens_per_minute, self.concurrent) != (None, None, None)


class GroupSettings(UseLimits, frozen=True, forbid_unknown_fields=True):
    """A table `[gateway.groups.NAME]`: limits that the clients of a group share."""


class Scope(Struct, frozen=True):
    """A client or a group, whose uses are counted together. `key` identifies it in the store."""

    key: str
    label: str
    limits: UseLimits


class ClientKey(UseLimits, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A client key and its limits; it is in one group or none. `expires` is in seconds since 1970.

    `models` are patterns of the model names that the client may send, `routes` of the names of routes that it may use;
    empty: all. `metrics`: it may read the metrics and the whole state of the gateway, which show all clients.
    """

    name: Annotated[str, Meta(pattern=NAME_PATTERN)]
    hash: Annotated[str, Meta(pattern=_HASH_PATTERN)]
    models: tuple[str, ...] = ()
    expires: float | None = None
    routes: tuple[str, ...] = ()
    group: str = ""
    metrics: bool = False


def hash_key(key: str) -> str:
    return sha256(key.encode()).hexdigest()


def find_keys(headers: Mapping[str, str], query: str) -> tuple[str, ...]:
    """Return the keys of a request, wherever the APIs have them: of a client, and of its vendor beside it."""
    found = [headers[name].strip() for name in KEY_HEADERS if headers.get(name)]
    scheme, _, token = headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer":
        found.append(token.strip())
    found += parse_qs(query).get("key", ())
    return tuple(dict.fromkeys(key for key in found if key))


def drop_keys(query: str, client_key: str = "") -> str:
    """Return a query without the parameter `key`, however its name is written, and without values with a client key.

    Some servers end a parameter at a semicolon, decode a name twice, or ignore its case, `$` or `[0]`.
    """
    parts = _PARAMETER.findall(query)
    kept = [part for part in parts if not _is_key_parameter(part.lstrip("&;"), client_key)]
    if len(kept) == len(parts):
        return query
    # As Latin-1, bytes that are not UTF-8 stay what they are.
    pairs = parse_qsl("".join(kept).lstrip("&;"), keep_blank_values=True, encoding="latin-1")
    return urlencode(pairs, encoding="latin-1")


def _is_key_parameter(part: str, client_key: str) -> bool:
    for _ in range(_MAX_DECODINGS):
        name = part.partition("=")[0]
        if _SIGNS.sub("", name).casefold() == "key" or (client_key and client_key in part):
            return True
        part = unquote_plus(part)
    return False


def has_secret(given: Iterable[str], expected: str) -> bool:
    """Return whether a secret is among these; each is compared in constant time."""
    return any(hmac.compare_digest(secret.encode(), expected.encode()) for secret in given)
