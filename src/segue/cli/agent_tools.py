"""The tools of an agent: built-in ones, those of installed packages, and those of configured MCP servers."""

from __future__ import annotations

import asyncio
import re
import shutil
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from segue.cli import streams, user_store
from segue.cli.config import Config
from segue.cli.options import RunOptions
from segue.cli.providers import Providers
from segue.errors import InputError

if TYPE_CHECKING:
    from segue.runtime.mcp import McpServers
    from segue.runtime.subagents import Subagents
    from segue.runtime.tool_types import Tool
    from segue.runtime.toolbox import Toolbox, ToolSource
    from segue.runtime.tools.shell_sandbox import ShellSandbox

# Other arguments of an MCP server may be data that commands may change.
_SCRIPT = re.compile(r".+\.([cm]?[jt]s|jar|lua|php|pl|py|rb|sh)")


class AgentTools:
    """Tool settings of configuration and flags. `servers` are the MCP servers that were started."""

    def __init__(self, providers: Providers, options: RunOptions) -> None:
        self._providers = providers
        self._settings = providers.config.settings.tools
        self._flag_rules = options.allow
        self._function_files = options.functions
        self._allow = (*self._settings.allow, *options.allow)
        self._names = self._settings.only if options.tools is None else options.tools
        self.servers: McpServers | None = None
        self.sandbox: ShellSandbox | str = "no tools"
        """The sandbox of shell commands, or the reason why there is none."""
        self._temporary: Path | None = None

    async def build_toolbox(self, folder: Path, subagents: Subagents) -> Toolbox:
        """Return the tools for this folder, with the permission rules of configuration and flags."""
        from segue.runtime.environ import child_environment
        from segue.runtime.function_tools import load_functions
        from segue.runtime.permissions import Permissions
        from segue.runtime.toolbox import MAX_DECLARED, Toolbox
        from segue.runtime.tools import standard_tools

        validate_rules(self._providers.config, self._flag_rules)
        permissions = Permissions(allow=self._allow, ask=self._settings.ask, deny=self._settings.deny, folder=folder)
        if self._names == ():
            return Toolbox((), folder, permissions)
        environment = partial(child_environment, keep=self._settings.env, keys=self._providers.key_variables)
        self.sandbox = await self._find_sandbox(folder)
        sandbox = None if isinstance(self.sandbox, str) else self.sandbox
        standard = standard_tools(environment=environment, sandbox=sandbox)
        standard += [tool for file in self._function_files for tool in load_functions(Path(file))]
        standard.append(subagents.tool)
        if (models := self._find_switch_models()) is not None:
            standard.append(subagents.make_switch_tool(models))
        sources = await self._start_servers(folder)
        limit = self._settings.max_declared or MAX_DECLARED
        toolbox = Toolbox(
            _add_installed(standard),
            folder,
            permissions,
            sources=sources,
            max_declared=limit,
            secrets=lambda: self._providers.stored_keys.revealed,
        )
        return toolbox if self._names is None else toolbox.only(self._names)

    def _find_switch_models(self) -> Sequence[str] | None:
        """Return the models that a rule names for `switch_model`; None without a rule for it: then there is no tool."""
        from segue.runtime.permission_rules import parse_rule
        from segue.runtime.tools.switch_model import SWITCH_MODEL

        rules = [rule for rule in map(parse_rule, (*self._allow, *self._settings.ask)) if rule.tool == SWITCH_MODEL]
        return list(dict.fromkeys(rule.pattern for rule in rules if rule.pattern)) if rules else None

    def locate_rule_error(self, error: InputError) -> streams.BadInputError:
        """Return the error of a rule, whose path is such as `allow[0]`, with its file or flag."""
        action, _, at = error.path.rstrip("]").partition("[")
        rule = (self._allow if action == "allow" else getattr(self._settings, action))[int(at)]
        files = (source for source in self._providers.config.files if rule in getattr(source.settings.tools, action))
        where = next((f"{source.path}: tools.{action}" for source in files), "--allow")
        return streams.BadInputError(f"{where}: {error.message}")

    async def _find_sandbox(self, folder: Path) -> ShellSandbox | str:
        from segue.runtime.tools.shell_sandbox import find_sandbox

        mode = self._settings.sandbox or "on"
        if mode == "off":
            return "off in the configuration"
        self._temporary = user_store.scratch_folder()
        return await asyncio.to_thread(
            find_sandbox, self._temporary, has_network=mode == "network", programs=tuple(self._list_programs(folder))
        )

    def _list_programs(self, folder: Path) -> Iterator[Path]:
        """Yield the files that segue runs for its tools: functions, and commands and scripts of MCP servers."""
        yield from map(Path, self._function_files)
        for server in self._providers.config.settings.mcp.values():
            for index, word in enumerate(server.program):
                if (index == 0 and "/" in word) or _SCRIPT.fullmatch(word):
                    yield folder / (server.folder or ".") / word

    async def _start_servers(self, folder: Path) -> list[ToolSource]:
        """Start the MCP servers. A failing one is reported and skipped."""
        config = self._providers.config
        if not config.settings.mcp:
            return []
        from segue.runtime.mcp import McpServers, parse_servers

        try:
            servers = parse_servers({name: server.to_dict() for name, server in config.settings.mcp.items()})
        except InputError as error:
            raise config.locate_error(error) from None
        self.servers = McpServers(servers, folder=folder, keys=self._providers.key_variables)
        await self.servers.start()
        for name, problem in self.servers.problems.items():
            streams.print_message(f"MCP server {name} is not available: {problem}")
        for name, left_out in self.servers.left_out.items():
            streams.print_message(f"tools of the MCP server {name}: {left_out}")
        return [self.servers.tools]

    async def close(self) -> None:
        if self.servers is not None:
            await self.servers.close()
        if self._temporary is not None:
            shutil.rmtree(self._temporary, ignore_errors=True)


def validate_rules(config: Config, flag_rules: Sequence[str] = ()) -> None:
    """Raise for an invalid permission rule, naming its file or flag."""
    from segue.runtime.permission_rules import parse_rule

    places = [
        (f"{source.path}: tools.{action}", rule)
        for source in config.files
        for action in ("allow", "ask", "deny")
        for rule in getattr(source.settings.tools, action)
    ]
    for where, rule in (*places, *(("--allow", rule) for rule in flag_rules)):
        try:
            parse_rule(rule)
        except InputError as error:
            raise streams.BadInputError(f"{where}: {error}") from None


def _add_installed(tools: list[Tool]) -> list[Tool]:
    """Add the tools of installed packages. One whose name is taken or that fails to load is reported and skipped."""
    from segue.runtime.function_tools import installed_tools

    installed, problems = installed_tools()
    names = {tool.name for tool in tools}
    added = list(tools)
    for tool in installed:
        if tool.name in names:
            problems.append(f"tool {tool.name} of an installed package is ignored: the name is already in use")
            continue
        names.add(tool.name)
        added.append(tool)
    for problem in problems:
        streams.print_message(problem)
    return added
