"""The MCP servers of a session (extra `mcp`): their configuration, and the tools of all of them."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from segue.errors import InputError, format_count, mismatch_error
from segue.runtime.mcp_connection import McpServerConfig, ServerConnection
from segue.runtime.tool_types import Tool
from segue.runtime.toolbox import format_left_out

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,31}")


def parse_servers(table: Mapping[str, Any]) -> dict[str, McpServerConfig]:
    """Parse the configuration tables `[mcp.NAME]`, with `command` and `args`, or `url`."""
    servers: dict[str, McpServerConfig] = {}
    for name, entry in table.items():
        path = f"mcp.{name}"
        if not _NAME.fullmatch(name) or "__" in name:
            raise InputError("a server name consists of letters, digits, - and single _ only", path=path)
        try:
            server = msgspec.convert(entry, McpServerConfig)
        except msgspec.ValidationError as error:
            raise mismatch_error(error, path) from None
        if (server.command is None) == (server.url is None):
            raise InputError("give either command or url", path=path)
        if server.url is not None and not server.url.startswith(("http://", "https://")):
            raise InputError("url must begin with http:// or https://", path=f"{path}.url")
        servers[name] = server
    return servers


class McpServers:
    """The MCP servers of a session. `problems` gives the error of each server that is not available.

    `on_change` is called when the tools of a server have changed.
    """

    def __init__(
        self,
        servers: Mapping[str, McpServerConfig],
        *,
        folder: Path,
        environ: Mapping[str, str] | None = None,
        keys: Sequence[str] = (),
        on_change: Callable[[], None] = lambda: None,
    ) -> None:
        variables = os.environ if environ is None else environ
        self._connections = [
            ServerConnection(name, server, folder, variables, keys, on_change)
            for name, server in servers.items()
            if server.enabled
        ]

    async def start(self) -> None:
        """Start all servers in parallel. A failure is recorded in `problems` and does not affect the others."""
        await asyncio.gather(*(connection.connect() for connection in self._connections))

    def tools(self) -> tuple[Tool, ...]:
        """Return the current tools of all servers; a source for a `Toolbox`."""
        return tuple(tool for connection in self._connections for tool in connection.tools)

    @property
    def problems(self) -> dict[str, str]:
        return {connection.name: connection.problem for connection in self._connections if connection.problem}

    @property
    def left_out(self) -> dict[str, str]:
        """For each server with tools that can't be used, their number, names and reasons."""
        return {
            connection.name: format_left_out(connection.left_out)
            for connection in self._connections
            if connection.left_out
        }

    @property
    def states(self) -> dict[str, str]:
        """For each server, the number of its tools and what was left out, or its error."""
        left_out = self.left_out
        return {
            connection.name: connection.problem
            or "; ".join([format_count(len(connection.tools), "tool"), *filter(None, [left_out.get(connection.name)])])
            for connection in self._connections
        }

    async def close(self) -> None:
        """Stop all servers and their processes."""
        await asyncio.gather(*(connection.close() for connection in self._connections))
