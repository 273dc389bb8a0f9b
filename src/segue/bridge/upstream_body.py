"""Fields of an upstream body that neither its history nor its options decide: prompt cache and stored state.

The functions take and return the bytes of a body. Fields that the body has are kept.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Raw

from segue.bridge.caching import place_cache_key, place_markers
from segue.bridge.providers import Endpoint
from segue.canonical.json import decode_members, encode_json
from segue.wire.registry import WIRES


def prepend_fields(data: bytes, fields: Mapping[str, Any]) -> bytes:
    """Return a JSON object with more fields at its beginning."""
    return data if not fields else encode_json(dict(fields))[:-1] + b"," + data[data.index(b"{") + 1 :]


def keep_stateless(data: bytes, endpoint: Endpoint) -> bytes:
    """Store nothing at the provider of a Responses API, unless the body requests it: the sender has the history."""
    wanted = WIRES[endpoint.api].stateless_fields
    if not wanted or endpoint.profile is not None:
        return data
    fields = decode_members(data)
    if fields.get("store") == Raw(b"true"):
        return data
    return prepend_fields(data, {key: value for key, value in wanted.items() if key not in fields})


def place_cache_fields(data: bytes, endpoint: Endpoint, *, client: str, route: str) -> bytes:
    """Let the provider cache the beginning of the prompt: by markers, or by a key of the conversation."""
    data = place_markers(data, endpoint.api, endpoint.model)
    return place_cache_key(data, provider=endpoint.provider, client=client, route=route)
