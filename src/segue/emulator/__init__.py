"""Emulated providers on loopback: they accept and reject the same bodies as the real ones, and call tools.

One process may run any number of them. The same seed and the same requests give the same replies, ids included.
The public names are loaded on first use, so that importing the pytest plugin is cheap.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from segue.emulator.client import Response, post
    from segue.emulator.http_messages import RecordedRequest
    from segue.emulator.server import Emulator, start

__all__ = ["Emulator", "RecordedRequest", "Response", "post", "start"]

_MODULE_OF = {
    "Emulator": "server",
    "RecordedRequest": "http_messages",
    "Response": "client",
    "post": "client",
    "start": "server",
}


def __getattr__(name: str) -> object:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
