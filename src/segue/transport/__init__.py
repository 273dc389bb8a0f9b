"""Transports for httpx2: any vendor's SDK on any provider's model.

    client = openai.OpenAI(http_client=httpx2.Client(transport=Transport("anthropic/claude-sonnet-5")))

The SDK sends its own API's requests; the transport converts each one, sends it to the provider, and converts the reply
back. `segue.transport.httpx` has the same for httpx. The SDK brings the HTTP library: the names are loaded on first
use, so that each of the two works without the other.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from segue.transport.httpx2 import AsyncTransport, Transport, async_client, client

__all__ = ["AsyncTransport", "Transport", "async_client", "client"]


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(f"{__name__}.httpx2"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
