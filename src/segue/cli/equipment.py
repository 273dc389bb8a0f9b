"""The tools of an agent: built-in ones, those of installed packages, and those of configured MCP servers."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from segue.cli import streams
from segue.cli.config import Config
from segue.cli.known import Known
from segue.cli.wishes import Wishes
from segue.errors import InputError

if TYPE_CHECKING:
    from segue.runtime.mcp import Servers
    from segue.runtime.toolbox import Source, Toolbox
    from segue.runtime.tooling import Tool

__all__ = ["Equipment", "check_rules"]

# The tool that the session itself provides.
_TASK = "task"


class Equipment:
    """Tool settings of configuration and flags. `servers` are the MCP servers that were started."""

    def __init__(self, known: Known, wishes: Wishes) -> None:
        self._known = known
        self._said = known.config.settings.tools
        self._wished = wishes.allow
        self._allow = (*self._said.allow, *wishes.allow)
        self._chosen = self._said.only if wishes.tools is None else wishes.tools
        self.servers: Servers | None = None

    @property
    def has_tasks(self) -> bool:
        """Whether the agent may start subagents."""
        return self._chosen is None or _TASK in self._chosen

    async def toolbox(self, folder: Path) -> Toolbox:
        """The tools for this folder, with the permission rules of configuration and flags."""
        from segue.runtime.environ import child_environment
        from segue.runtime.permissions import Permissions
        from segue.runtime.toolbox import Toolbox
        from segue.runtime.tools import standard_tools

        check_rules(self._known.config, self._wished)
        permissions = Permissions(allow=self._allow, ask=self._said.ask, deny=self._said.deny, folder=folder)
        if self._chosen == ():
            return Toolbox((), folder, permissions)
        environment = partial(child_environment, keep=self._said.env, keys=self._known.key_variables)
        standard = standard_tools(permissions=permissions, environment=environment)
        sources = await self._served(folder)
        toolbox = Toolbox(_with_installed(standard), folder, permissions, sources=sources)
        if self._chosen is None:
            return toolbox
        return toolbox.only(name for name in self._chosen if name != _TASK)

    async def _served(self, folder: Path) -> list[Source]:
        """Start the MCP servers. A failing one is reported and skipped."""
        config = self._known.config
        if not config.settings.mcp:
            return []
        from segue.runtime.mcp import Servers, read_servers

        try:
            servers = read_servers({name: server.said for name, server in config.settings.mcp.items()})
        except InputError as error:
            raise config.blamed(error) from None
        self.servers = Servers(servers, folder=folder, keys=self._known.key_variables)
        await self.servers.start()
        for name, problem in self.servers.problems.items():
            streams.say(f"MCP server {name} is not available: {problem}")
        return [self.servers.tools]

    async def close(self) -> None:
        if self.servers is not None:
            await self.servers.close()


def check_rules(config: Config, wished: Sequence[str] = ()) -> None:
    """Raise for an invalid permission rule, naming its file or flag."""
    from segue.runtime.permissions import parse_rule

    places = [
        (f"{source.path}: tools.{verdict}", rule)
        for source in config.sources
        for verdict in ("allow", "ask", "deny")
        for rule in getattr(source.settings.tools, verdict)
    ]
    for where, rule in (*places, *(("--allow", rule) for rule in wished)):
        try:
            parse_rule(rule)
        except InputError as error:
            raise streams.Unreadable(f"{where}: {error}") from None


def _with_installed(tools: list[Tool]) -> list[Tool]:
    """Add the tools of installed packages. One whose name is taken or that fails to load is reported and skipped."""
    from segue.runtime.functions import installed_tools

    found, problems = installed_tools()
    names = {tool.name for tool in tools} | {_TASK}
    added = list(tools)
    for tool in found:
        if tool.name in names:
            problems.append(f"tool {tool.name} of an installed package is ignored: the name is already in use")
            continue
        names.add(tool.name)
        added.append(tool)
    for problem in problems:
        streams.say(problem)
    return added
