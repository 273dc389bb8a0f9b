"""The agent runtime: a scheduler for tool calls, a turn loop, and clients for all providers.

This package exports the names that a program needs; each is imported on first use.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from segue.runtime.book import Memory
    from segue.runtime.functions import tool
    from segue.runtime.permissions import Permissions
    from segue.runtime.providers import Endpoint, resolve
    from segue.runtime.scheduler import Limits
    from segue.runtime.session import Session
    from segue.runtime.switching import ByRule, Failover, Fixed, RoundRobin, Rule
    from segue.runtime.toolbox import Toolbox
    from segue.runtime.tools import standard_tools
    from segue.runtime.upstream import Upstream

__all__ = [
    "ByRule",
    "Endpoint",
    "Failover",
    "Fixed",
    "Limits",
    "Memory",
    "Permissions",
    "RoundRobin",
    "Rule",
    "Session",
    "Toolbox",
    "Upstream",
    "resolve",
    "standard_tools",
    "tool",
]

_ROOM_OF = {
    "ByRule": "switching",
    "Endpoint": "providers",
    "Failover": "switching",
    "Fixed": "switching",
    "Limits": "scheduler",
    "Memory": "book",
    "Permissions": "permissions",
    "RoundRobin": "switching",
    "Rule": "switching",
    "Session": "session",
    "Toolbox": "toolbox",
    "Upstream": "upstream",
    "resolve": "providers",
    "standard_tools": "tools",
    "tool": "functions",
}


def __getattr__(name: str) -> object:
    if name not in _ROOM_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(f"{__name__}.{_ROOM_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
