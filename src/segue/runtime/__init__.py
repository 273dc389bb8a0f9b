"""The agent runtime: sessions, the scheduler for tool calls, routes, tools, and a client for all providers.

The exported names are imported on first use.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from segue.bridge.providers import Endpoint, resolve
    from segue.runtime.conversation_log import ConversationLog, InMemoryLog
    from segue.runtime.function_tools import tool
    from segue.runtime.permissions import Permissions
    from segue.runtime.provider_client import ProviderClient
    from segue.runtime.routing import ByRule, Failover, Fixed, RoundRobin, Route, RoutingRule
    from segue.runtime.scheduler import Limits
    from segue.runtime.session import Session, SessionServices, SessionSettings
    from segue.runtime.subagents import Subagents
    from segue.runtime.tool_types import AllowRules, ApprovalRequest, ApprovalScope, Context, Denial, ToolError
    from segue.runtime.toolbox import Toolbox
    from segue.runtime.tools import standard_tools

__all__ = [
    "AllowRules",
    "ApprovalRequest",
    "ApprovalScope",
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
    "SessionServices",
    "SessionSettings",
    "Subagents",
    "ToolError",
    "Toolbox",
    "resolve",
    "standard_tools",
    "tool",
]

_MODULES = {
    "AllowRules": "segue.runtime.tool_types",
    "ApprovalScope": "segue.runtime.tool_types",
    "ApprovalRequest": "segue.runtime.tool_types",
    "ByRule": "segue.runtime.routing",
    "Context": "segue.runtime.tool_types",
    "ConversationLog": "segue.runtime.conversation_log",
    "Denial": "segue.runtime.tool_types",
    "Endpoint": "segue.bridge.providers",
    "Failover": "segue.runtime.routing",
    "Fixed": "segue.runtime.routing",
    "Limits": "segue.runtime.scheduler",
    "InMemoryLog": "segue.runtime.conversation_log",
    "Permissions": "segue.runtime.permissions",
    "RoundRobin": "segue.runtime.routing",
    "Route": "segue.runtime.routing",
    "RoutingRule": "segue.runtime.routing",
    "Session": "segue.runtime.session",
    "SessionServices": "segue.runtime.session",
    "SessionSettings": "segue.runtime.session",
    "Subagents": "segue.runtime.subagents",
    "ToolError": "segue.runtime.tool_types",
    "Toolbox": "segue.runtime.toolbox",
    "ProviderClient": "segue.runtime.provider_client",
    "resolve": "segue.bridge.providers",
    "standard_tools": "segue.runtime.tools",
    "tool": "segue.runtime.function_tools",
}


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(_MODULES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
