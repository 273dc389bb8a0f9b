"""The API key of a caller: removed from each request, or passed on to the vendor of the caller's API and no other.

A vendor is a provider of the shipped catalogue. Servers that speak a vendor's API are not that vendor: a key for OpenAI
is not sent to Groq, nor to a server of the configuration.
"""

from __future__ import annotations

from msgspec.structs import replace

from segue.bridge.caller import Caller
from segue.bridge.providers import Endpoint, catalogue
from segue.bridge.secret import Secret
from segue.wire.base import Wire
from segue.wire.registry import WIRES

_KEY_HEADERS = ("x-api-key", "x-goog-api-key", "api-key")
_BEARER = "bearer "


def use_caller_key(endpoint: Endpoint, caller: Caller) -> Endpoint:
    """Return the endpoint with the caller's key in place of its own, if it is the vendor of the caller's API.

    A signature is not passed on: it is made for one body, which the conversion changes.
    """
    if not _is_vendor(endpoint, caller.wire):
        return endpoint
    key = next((caller.headers[name] for name in _KEY_HEADERS if caller.headers.get(name)), None)
    if key is not None:
        return replace(endpoint, key=Secret(key), bearer=False, signer=None)
    authorization = caller.headers.get("authorization", "")
    if not authorization.lower().startswith(_BEARER):
        return endpoint
    return replace(endpoint, key=Secret(authorization[len(_BEARER) :].strip()), bearer=True, signer=None)


def _is_vendor(endpoint: Endpoint, wire: Wire) -> bool:
    row = catalogue().get(endpoint.provider)
    if row is None or row.profile is not None or endpoint.profile is not None:
        return False
    return WIRES[row.api].provider == WIRES[endpoint.api].provider == wire.provider
