"""The built-in tools. Each module defines one or two of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, partial

from segue.runtime.environ import child_environment
from segue.runtime.permissions import Permissions
from segue.runtime.tool_types import Context, Result, Tool
from segue.runtime.tools.fetch import Fetcher, fetch_url, fetch_with_stdlib
from segue.runtime.tools.read import list_dir, read_file
from segue.runtime.tools.search import glob, grep
from segue.runtime.tools.shell import shell
from segue.runtime.tools.shell_sandbox import ShellSandbox
from segue.runtime.tools.switch_model import SWITCH_MODEL
from segue.runtime.tools.task import Spawn, SubagentTask, task
from segue.runtime.tools.todo import todo
from segue.runtime.tools.write import edit_file, write_file


def standard_tools(
    *,
    permissions: Permissions | None = None,
    environment: Callable[[], Mapping[str, str]] = child_environment,
    fetcher: Fetcher = fetch_with_stdlib,
    spawn: Spawn | None = None,
    sandbox: ShellSandbox | None = None,
) -> list[Tool]:
    """Return all built-in tools. `task` is included only if `spawn` is given, the function that runs a subagent.

    `glob` and `grep` skip files that `permissions` deny to `read_file`; those of a `Toolbox` with these tools count
    too. `environment` returns the environment variables of shell commands, `fetcher` fetches a URL for `fetch_url`;
    its page has `is_cut_off` if the connection ended before the body did. Shell commands run in the
    `sandbox`, if given.
    """

    def is_denied(tool: str, path: str) -> bool:
        return permissions is not None and any(permissions.denies(name, path) for name in ("read_file", tool))

    tools = [
        read_file(),
        list_dir(),
        glob(partial(is_denied, "glob")),
        grep(partial(is_denied, "grep")),
        write_file(),
        edit_file(),
        shell(environment, sandbox),
        fetch_url(fetcher),
        todo(),
    ]
    return [*tools, task(spawn)] if spawn is not None else tools


@cache
def standard_names() -> frozenset[str]:
    """Return the names of all built-in tools, also of those that not every session has."""

    async def never(_order: SubagentTask, _context: Context) -> Result:
        raise NotImplementedError

    return frozenset({tool.name for tool in standard_tools(spawn=never)} | {SWITCH_MODEL})
