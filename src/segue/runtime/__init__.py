"""The agent runtime: sessions, the scheduler for tool calls, routes, tools, and a client for all providers.

The exported names are imported on first use.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from segue.runtime.conversation_log import ConversationLog, InMemoryLog
    from segue.runtime.function_tools import tool
    from segue.runtime.permissions import Permissions
    from segue.runtime.provider_client import ProviderClient
    from segue.runtime.providers import Endpoint, resolve
    from segue.runtime.routing import ByRule, Failover, Fixed, RoundRobin, Route, RoutingRule
    from segue.runtime.scheduler import Limits
    from segue.runtime.session import Session
    from segue.runtime.tool_types import ApprovalRequest, Context, Denial, ToolError
    from segue.runtime.toolbox import Toolbox
    from segue.runtime.tools import standard_tools

__all__ = [
    "ApprovalRequest",
    "ByRule",
    "Context",
    "ConversationLog",
    "Denial",
    "Endpoint",
    "Failover",
    "Fixed",
    "InMemoryLog",
    "Limits",
    "Permissions",
    "ProviderClient",
    "RoundRobin",
    "Route",
    "RoutingRule",
    "Session",
    "ToolError",
    "Toolbox",
    "resolve",
    "standard_tools",
    "tool",
]

_MODULES = {
    "ApprovalRequest": "tool_types",
    "ByRule": "routing",
    "Context": "tool_types",
    "ConversationLog": "conversation_log",
    "Denial": "tool_types",
    "Endpoint": "providers",
    "Failover": "routing",
    "Fixed": "routing",
    "Limits": "scheduler",
    "InMemoryLog": "conversation_log",
    "Permissions": "permissions",
    "RoundRobin": "routing",
    "Route": "routing",
    "RoutingRule": "routing",
    "Session": "session",
    "ToolError": "tool_types",
    "Toolbox": "toolbox",
    "ProviderClient": "provider_client",
    "resolve": "providers",
    "standard_tools": "tools",
    "tool": "function_tools",
}


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
