"""The API key of a caller: removed from each request, or passed on to the vendor of the caller's API and no other.

A vendor is a provider of the shipped catalogue. Servers that speak a vendor's API are not that vendor: a key for OpenAI
is not sent to Groq, nor to a server of the configuration.
"""

from __future__ import annotations

from msgspec.structs import replace

from segue.bridge.caller import Caller, own_error
from segue.bridge.providers import Endpoint, catalogue
from segue.bridge.secret import Secret
from segue.wire.base import ApiError, Wire
from segue.wire.registry import WIRES

_KEY_HEADERS = ("x-api-key", "x-goog-api-key", "api-key")
_BEARER = "bearer "


def use_caller_key(endpoint: Endpoint, caller: Caller) -> Endpoint | None:
    """Return the endpoint with the caller's key in place of its own; None if it can't be used without its own.

    It can if it is the vendor of the caller's API and the caller sent a key, or if it needs no key. A signature is not
    passed on: it is made for one body, which the conversion changes.
    """
    if not _is_vendor(endpoint, caller.wire):
        return endpoint if not endpoint.variables else None
    key = next((caller.headers[name] for name in _KEY_HEADERS if caller.headers.get(name)), None)
    if key is not None:
        return replace(endpoint, key=Secret(key), bearer=False, signer=None, has_caller_key=True)
    authorization = caller.headers.get("authorization", "")
    if not authorization.lower().startswith(_BEARER):
        return None
    key = authorization[len(_BEARER) :].strip()
    return replace(endpoint, key=Secret(key), bearer=True, signer=None, has_caller_key=True)


def missing_caller_key_error(endpoint: Endpoint, caller: Caller) -> ApiError:
    """Return the error for a request without a key that the endpoint can be used with."""
    if _is_vendor(endpoint, caller.wire):
        message = f"this route needs your own key for {endpoint.provider} in {expected_key_headers(endpoint)}"
    else:
        message = f"this route passes your own key on, but {endpoint.provider} is not the vendor of your API"
    return own_error(401, message, caller.wire)


def expected_key_headers(endpoint: Endpoint) -> str:
    """Return the headers in which a caller may send its key for an endpoint, for messages."""
    own = WIRES[endpoint.api].key_header
    return "the header Authorization (Bearer)" if own == "authorization" else f"the header {own} or Authorization"


def _is_vendor(endpoint: Endpoint, wire: Wire) -> bool:
    row = catalogue().get(endpoint.provider)
    if row is None or row.profile is not None or endpoint.profile is not None:
        return False
    return WIRES[row.api].provider == WIRES[endpoint.api].provider == wire.provider
