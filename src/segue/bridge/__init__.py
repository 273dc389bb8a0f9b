"""One HTTP exchange between a caller of one API and a provider of another, without IO.

`Bridge.open` takes a caller's request and returns a `Relay`. Its actions (send this request, write these bytes, load or
save these entries, wait) are carried out by a shell, which feeds back what it receives: the transport under a vendor's
SDK, the gateway, or `segue.complete`. The exported names are imported on first use.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from segue.bridge.api_paths import ApiPath, find_api_path
    from segue.bridge.bridge import Bridge
    from segue.bridge.relay import Relay
    from segue.bridge.routes import Route, RouteQuery, Router

__all__ = ["ApiPath", "Bridge", "Relay", "Route", "RouteQuery", "Router", "find_api_path"]

_MODULES = {
    "Bridge": "bridge",
    "Relay": "relay",
    "Route": "routes",
    "RouteQuery": "routes",
    "Router": "routes",
    "ApiPath": "api_paths",
    "find_api_path": "api_paths",
}


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    globals()[name] = value
    return value
