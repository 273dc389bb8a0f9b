"""The connection to one MCP server (extra `mcp`), which is started as a process or reached by HTTP.

One task opens and closes the connection. A server that ends is restarted by the next call, a limited number of times.
Its process gets the same environment as a shell, without secrets.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import re
import shutil
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from msgspec import Struct

from segue.errors import InputError
from segue.runtime.environ import child_environment
from segue.runtime.masking import protect_process_memory
from segue.runtime.mcp_tools import Declaration, LeftOut, convert_tools, make_tools
from segue.runtime.tool_types import Arguments, Context, Result, Tool, ToolError

if TYPE_CHECKING:
    import mcp

_VARIABLE = re.compile(r"\$\{(\w+)\}")
_MAX_PAGES = 50
_MAX_RESTARTS = 3
_STOP_TIMEOUT = 10.0
_CALL_TIMEOUT = 120.0
_READ_TIMEOUT = 3_600.0
_MISSING_EXTRA = "MCP servers need the extra: pip install 'segue[mcp]'"


class McpServerConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """One server of the configuration: a `command` with `args`, or a `url`.

    `env` lists secret variables that the process may inherit, or sets variables (`NAME=value`). In `env` and `headers`,
    `${NAME}` is replaced by the value of that variable. `timeout` is the time limit of a call in seconds (default: the
    limit for all tools), `start` the time limit for starting the server.
    """

    command: str | None = None
    args: tuple[str, ...] = ()
    env: tuple[str, ...] = ()
    folder: str | None = None
    url: str | None = None
    headers: dict[str, str] = {}
    timeout: float | None = None
    start: float = 30.0
    enabled: bool = True


def _substitute_variables(text: str, environ: Mapping[str, str], where: str) -> str:
    """Replace each `${NAME}` by the variable's value; `InputError` if it is not set."""
    for name in _VARIABLE.findall(text):
        if name not in environ:
            raise InputError(f"the variable {name} is not set", path=where)
    return _VARIABLE.sub(lambda match: environ[match[1]], text)


class ServerConnection:
    """One server: its connection task and its tools."""

    def __init__(
        self,
        name: str,
        server: McpServerConfig,
        folder: Path,
        environ: Mapping[str, str],
        keys: Sequence[str],
        on_change: Callable[[], None],
    ) -> None:
        self.name = name
        self.tools: tuple[Tool, ...] = ()
        self.left_out: tuple[LeftOut, ...] = ()
        self.problem = ""
        self._server = server
        self._folder = folder
        self._environ = environ
        self._keys = keys
        self._on_change = on_change
        self._client: mcp.Client | None = None
        self._task: asyncio.Task[None] | None = None
        self._wake = asyncio.Event()
        self._stopping = False
        self._stale = False
        self._lost = False
        self._restarts = 0
        self._connecting = asyncio.Lock()
        self._stderr_lines: deque[str] = deque(maxlen=20)
        self._transport_errors: deque[str] = deque(maxlen=1)
        self._refused: list[LeftOut] = []

    # -------------------------------------------------------------------------------------------------------- lifecycle

    async def connect(self) -> None:
        """Start the server if it does not run; a failure is recorded in `problem`."""
        async with self._connecting:
            if self._client is not None and not self._lost:
                return
            await self._stop()
            self._stopping = self._lost = self._stale = False
            self._transport_errors.clear()
            ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._task = asyncio.create_task(self._run(ready), name=f"mcp {self.name}")
            try:
                async with asyncio.timeout(self._server.start):
                    await asyncio.shield(ready)
                self.problem = ""
            except TimeoutError:
                await self._stop()
                self.problem = f"not ready after {self._server.start:g} seconds{self._last_stderr_line()}"
            except asyncio.CancelledError:
                await self._stop()
                raise
            except Exception as error:  # noqa: BLE001
                await self._stop()
                reason = self._transport_errors[-1] if self._transport_errors else _error_text(error)
                self.problem = f"{reason}{self._last_stderr_line()}"

    async def close(self) -> None:
        async with self._connecting:
            await self._stop()
            self.tools = ()

    async def _stop(self) -> None:
        task, self._task = self._task, None
        connected, self._client = self._client is not None, None
        if task is None:
            return
        self._stopping = True
        self._wake.set()
        if not connected:
            task.cancel()
        try:
            async with asyncio.timeout(_STOP_TIMEOUT):
                await asyncio.shield(asyncio.wait({task}))
        except TimeoutError:
            task.cancel()
            await asyncio.wait({task}, timeout=_STOP_TIMEOUT)
        except asyncio.CancelledError:
            task.cancel()
            raise

    async def _run(self, ready: asyncio.Future[None]) -> None:
        """Open the connection, update the tools on changes, and close the connection. Never raises."""
        try:
            async with AsyncExitStack() as stack:
                client = await stack.enter_async_context(self._make_client(await self._transport(stack)))
                self.tools, self.left_out = await self._list_tools(client)
                self._client = client
                stack.push_async_callback(_cancel_and_wait, asyncio.create_task(self._subscribe(client)))
                if not ready.done():
                    ready.set_result(None)
                await self._wait_for_changes(client)
        except asyncio.CancelledError:
            pass
        except BaseException as error:  # noqa: BLE001
            if not ready.done():
                ready.set_exception(error if isinstance(error, Exception) else RuntimeError(str(error)))
        finally:
            self._client = None
            if not ready.done():
                ready.set_exception(RuntimeError("it ended before it was ready"))
            # Retrieved here, as there may be no waiter any more.
            with suppress(asyncio.CancelledError):
                ready.exception()

    async def _wait_for_changes(self, client: mcp.Client) -> None:
        while not self._stopping:
            await self._wake.wait()
            self._wake.clear()
            if self._stale and not self._stopping:
                self._stale = False
                with suppress(Exception):
                    async with asyncio.timeout(self._server.start):
                        tools, self.left_out = await self._list_tools(client)
                    if _tool_signatures(tools) != _tool_signatures(self.tools):
                        self.tools = tools
                        self._on_change()

    async def _on_message(self, message: Any) -> None:
        if message is None or type(message).__name__ == "ToolListChangedNotification":
            self._stale = True
            self._wake.set()

    async def _subscribe(self, client: mcp.Client) -> None:
        """Subscribe to tool list changes, which newer servers require."""
        with suppress(Exception):
            async with client.listen(tools_list_changed=True) as changes:
                # The tools may have changed before the subscription.
                await self._on_message(None)
                async for _ in changes:
                    await self._on_message(None)

    # -------------------------------------------------------------------------------------------------------- transport

    async def _transport(self, stack: AsyncExitStack) -> Any:
        server = self._server
        if server.url is not None:
            import httpx2

            from segue.runtime.mcp_http import connect_http, make_http_client

            headers = {
                name: _substitute_variables(value, self._environ, f"mcp.{self.name}.headers.{name}")
                for name, value in server.headers.items()
            }
            limits = httpx2.Timeout(30.0, read=max(_READ_TIMEOUT, (server.timeout or 0) + 30))
            client = make_http_client(headers, limits, self._transport_errors.append)
            await stack.enter_async_context(client)
            return connect_http(server.url, client)
        from segue.runtime.mcp_process import run_server

        assignments = [text for text in server.env if "=" in text]
        environment = child_environment(
            self._environ, keep=[text for text in server.env if "=" not in text], keys=self._keys
        )
        for text in assignments:
            name, _, value = text.partition("=")
            environment[name] = _substitute_variables(value, self._environ, f"mcp.{self.name}.env")
        protect_process_memory()
        folder = self._folder / (server.folder or ".")
        command = _find_command(server.command or "", folder, environment)
        on_error = self._transport_errors.append
        return run_server([command, *server.args], folder, environment, self._stderr_lines, on_error)

    def _make_client(self, transport: Any) -> mcp.Client:
        from mcp import Client

        from segue.runtime.mcp_messages import drop_invalid

        def on_drop(name: str, reason: str) -> None:
            self._refused.append(LeftOut(name, reason))

        return Client(drop_invalid(transport, on_drop), message_handler=self._on_message, cache=None)

    def _last_stderr_line(self) -> str:
        return f"; last line of its stderr: {self._stderr_lines[-1][:300]}" if self._stderr_lines else ""

    # ------------------------------------------------------------------------------------------------------------ tools

    async def _list_tools(self, client: mcp.Client) -> tuple[tuple[Tool, ...], tuple[LeftOut, ...]]:
        declared: list[Declaration] = []
        left_out: list[LeftOut] = []
        cursor: str | None = None
        seen: set[str] = set()
        for _ in range(_MAX_PAGES):
            self._refused.clear()
            page = await client.list_tools(cursor=cursor)
            usable, unusable = convert_tools(page.tools)
            declared += usable
            left_out += [*self._refused, *unusable]
            # Servers write the end of the list also as an empty cursor.
            cursor = page.next_cursor
            if not cursor or cursor in seen:
                break
            seen.add(cursor)
        if cursor:
            left_out.append(LeftOut("all further tools", f"the list does not end after {len(seen)} pages"))
        server = self._server
        tools, repeated = make_tools(
            self.name,
            declared,
            self._call,
            timeout=(server.timeout or _CALL_TIMEOUT) + server.start + 10,
            has_own_timeout=server.timeout is not None,
        )
        return tools, (*left_out, *repeated)

    async def _call(self, tool: str, arguments: Arguments, context: Context) -> Result:
        from segue.runtime.mcp_results import convert_result

        client = await self._get_client()
        seconds = self._server.timeout or context.time_limit or _CALL_TIMEOUT

        async def report(progress: float, total: float | None, message: str | None) -> None:
            context.progress(message or (f"{progress:g} of {total:g}" if total else f"{progress:g}"))

        try:
            async with asyncio.timeout(seconds):
                result = await client.call_tool(tool, dict(arguments), progress_callback=report)
        except TimeoutError:
            raise ToolError(f"{self.name} did not answer within {seconds:g} seconds") from None
        except Exception as error:  # noqa: BLE001
            raise ToolError(self._call_error(error)) from None
        self._restarts = 0
        return convert_result(result)

    def _call_error(self, error: Exception) -> str:
        """Return the error text of a failed call. If the server has ended, marks it for a restart."""
        import mcp_types

        if getattr(error, "code", None) != mcp_types.CONNECTION_CLOSED and self._client is not None:
            return f"{self.name}: {_error_text(error)}"
        self._lost = True
        if self._transport_errors:
            return f"{self.name}: {self._transport_errors[-1]}; the next call connects again"
        if self._server.url is not None:
            return f"{self.name}: {_error_text(error)}; the next call connects again"
        return f"the MCP server {self.name} has ended{self._last_stderr_line()}; the next call starts it again"

    async def _get_client(self) -> mcp.Client:
        if self._lost or self._client is None:
            if self._restarts >= _MAX_RESTARTS:
                raise ToolError(f"the MCP server {self.name} ended {_MAX_RESTARTS} times; it is not started again")
            self._restarts += 1
            await self.connect()
        if self._client is None:
            raise ToolError(f"the MCP server {self.name} can't be reached: {self.problem or 'it was closed'}")
        return self._client


def _tool_signatures(tools: Sequence[Tool]) -> list[tuple[str, str, Mapping[str, Any]]]:
    """Return the declared parts of the tools, for comparison."""
    return [(tool.name, tool.description, tool.parameters) for tool in tools]


def _error_text(error: BaseException) -> str:
    """Return an error in one line, unwrapped from exception groups."""
    while isinstance(error, BaseExceptionGroup):
        error = cast("BaseException", error.exceptions[0])
    match error:
        case ModuleNotFoundError():
            return _MISSING_EXTRA
        case FileNotFoundError():
            return f"there is no command {error.filename}"
        case InputError():
            return str(error)
        case ValueError():
            from segue.runtime.mcp_messages import describe_error

            return f"the response is invalid: {describe_error(error)[:500]}"
        case _:
            return " ".join(str(error).split())[:500] or type(error).__name__


# The SDK logs warnings about servers; without a handler, logging would print them to the terminal.
for _name in ("mcp", "client"):
    logging.getLogger(_name).addHandler(logging.NullHandler())


# ------------------------------------------------------------------------------------------------------------ processes


async def _cancel_and_wait(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.wait({task})


def _find_command(command: str, folder: Path, environment: Mapping[str, str]) -> str:
    """Return the path of a command; `FileNotFoundError` if it does not exist."""
    path = (
        shutil.which(str(folder / command)) if "/" in command else shutil.which(command, path=environment.get("PATH"))
    )
    if path is None:
        raise FileNotFoundError(errno.ENOENT, "no such command", command)
    return path
