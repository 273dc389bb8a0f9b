"""The actions that a relay returns, and the inputs that it takes.

A shell carries out the actions in their order and feeds what comes back. It owns the sockets, the clock and the store;
the relay owns every decision.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from msgspec import Struct

from segue.bridge import aws
from segue.bridge.http_requests import HttpRequest


class Send(Struct, frozen=True):
    """Send this request to a provider; cancel the request that was sent before, if its response is not complete.

    Feed the `ResponseHead`, then the bytes of the response; call `close` at its end, or `fail` if the connection fails.
    """

    request: HttpRequest


class Authorize(Struct, frozen=True):
    """Fetch AWS credentials, which may block, and feed them."""

    signer: aws.CredentialSource


class Respond(Struct, frozen=True):
    """Send the status and headers of the response to the caller."""

    status: int
    headers: Mapping[str, str]


class Write(Struct, frozen=True):
    """Send bytes of the body to the caller."""

    data: bytes


class EndExchange(Struct, frozen=True):
    """End the response to the caller, and close the connection to the provider."""


class EndResponse(Struct, frozen=True):
    """End the response to the caller: the reply is complete, but the provider's response has not ended yet.

    Read on for a short time, so that the connection to the provider can be used again.
    """


class Read(Struct, frozen=True):
    """Read the next bytes of the provider's response; empty at its end. Only `drive` asks for it."""


class Load(Struct, frozen=True):
    """Load these entries of the store, and feed an `Entries` with those that exist."""

    keys: tuple[str, ...]


class Save(Struct, frozen=True):
    """Save these entries in the store before the next action."""

    entries: Mapping[str, bytes]


class Delete(Struct, frozen=True):
    """Delete these entries of the store."""

    keys: tuple[str, ...]


class Wait(Struct, frozen=True):
    """Wait, then feed an `Elapsed`."""

    seconds: float


Action: TypeAlias = Send | Read | Authorize | Respond | Write | EndExchange | EndResponse | Load | Save | Delete | Wait
"""The results that `drive` takes: a `ResponseHead` for `Send`, bytes for `Read`, credentials for `Authorize`, a mapping
for `Load`."""


class ResponseHead(Struct, frozen=True):
    """The status and headers of a provider's response. Header names are in lower case."""

    status: int
    headers: Mapping[str, str]


class Entries(Struct, frozen=True):
    """The entries of the store that a `Load` found."""

    found: Mapping[str, bytes]


class Elapsed(Struct, frozen=True):
    """The time of a `Wait` has passed."""


Input: TypeAlias = bytes | ResponseHead | Entries | Elapsed | aws.Credentials
