"""The tool `shell`, which runs a command and ends all processes that the command started."""

from __future__ import annotations

import asyncio
import codecs
import shutil
import signal
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

import msgspec

from segue.runtime.environ import child_environment
from segue.runtime.masking import find_hidden_secrets, protect_process_memory
from segue.runtime.threads import run_in_thread
from segue.runtime.tool_types import ApprovalRequest, Arguments, Context, PartForm, Result, Tool, ToolError
from segue.runtime.tools.guarded_paths import GuardedPaths
from segue.runtime.tools.shell_commands import find_commands, list_part_forms, split_simple_commands
from segue.runtime.tools.shell_process import Remainder, ShellProcess
from segue.runtime.tools.shell_sandbox import ShellSandbox
from segue.runtime.tools.shell_scopes import list_scopes
from segue.runtime.tools.text_encoding import format_size

_TIMEOUT = 120
_MAX_TIMEOUT = 1_800
_HEAD = 100_000
_TAIL = 100_000
_LINGER = 0.2
_PROGRESS_INTERVAL = 0.1
_CHUNK = 65_536
_MAX_REMAINING = 10
_MAX_CAUSE = 200
# No pager, prompts or colours.
_NONINTERACTIVE_ENV = {"PAGER": "cat", "GIT_PAGER": "cat", "GIT_TERMINAL_PROMPT": "0", "TERM": "dumb", "NO_COLOR": "1"}


class _OutputBuffer:
    """Buffers the beginning and the end of a command's output, each up to a limit."""

    def __init__(self, on_progress: Callable[[str], None]) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._head: list[str] = []
        self._tail: deque[str] = deque()
        self._room = _HEAD
        self._held = 0
        self._omitted = 0
        self._line = ""
        self._on_progress = on_progress
        self._last_progress = float("-inf")

    def add(self, data: bytes, *, last: bool = False) -> None:
        text = self._decoder.decode(data, last)
        if not text:
            return
        head, rest = text[: self._room], text[self._room :]
        if head:
            self._head.append(head)
            self._room -= len(head)
        if rest:
            self._tail.append(rest)
            self._held += len(rest)
            while self._held - len(self._tail[0]) >= _TAIL:
                dropped = len(self._tail.popleft())
                self._held -= dropped
                self._omitted += dropped
        self._progress(text)

    def _progress(self, text: str) -> None:
        lines = (self._line + text)[-2_000:].replace("\r", "\n").split("\n")
        self._line = lines[-1]
        newest = next((line for line in reversed(lines) if line.strip()), None)
        if newest is not None and time.monotonic() - self._last_progress >= _PROGRESS_INTERVAL:
            self._last_progress = time.monotonic()
            self._on_progress(newest.strip()[:200])

    @property
    def text(self) -> str:
        tail = "".join(self._tail)
        gap = f"\n[{format_size(self._omitted)} left out here]\n" if self._omitted else ""
        return "".join(self._head) + gap + tail


async def _run_sandboxed(
    arguments: Arguments, context: Context, environment: Callable[[], Mapping[str, str]], sandbox: ShellSandbox
) -> Result:
    """Run a command inside of the sandbox; if that prevented something, outside of it with the user's approval."""
    outside = _approval_request(arguments, context.folder, tool="unsandboxed_shell")
    if context.is_allowed(outside):
        return await _run(arguments, context, environment)
    result, moved = await _run_inside(arguments, context, environment, sandbox)
    if result.error and sandbox.has_not_started(str(result.content)):
        # A path was removed while it was being mounted.
        result, moved = await _run_inside(arguments, context, environment, sandbox)
    if moved:
        cause = (
            f"the command created files that other programs run automatically; they were renamed: {', '.join(moved)}"
        )
        result = Result("\n".join(part for part in (str(result.content), f"[{cause}]") if part), error=True)
    else:
        cause = sandbox.find_cause(str(result.content)) if result.error else None
    if cause is None:
        return result
    title = f"{outside.title} again outside of the sandbox; it failed inside: {cause[:_MAX_CAUSE]}"
    denial = await context.check_permission(msgspec.structs.replace(outside, title=title))
    if denial is not None:
        reason = denial.removeprefix("denied: ")
        return Result(f"{result.content}\n[ran {sandbox.description}; not run again outside: {reason}]", error=True)
    context.progress("outside of the sandbox")
    again = await _run(arguments, context, environment)
    return Result(f"[failed in the sandbox ({cause[:_MAX_CAUSE]}) and run again outside]\n{again.content}", again.error)


async def _run_inside(
    arguments: Arguments, context: Context, environment: Callable[[], Mapping[str, str]], sandbox: ShellSandbox
) -> tuple[Result, list[str]]:
    """Run a command inside of the sandbox; return also the guarded paths that it created, which were renamed."""
    guarded = sandbox.start(await run_in_thread(GuardedPaths.find, context.folder, sandbox.programs))
    moved: list[str] = []
    try:
        result = await _run(arguments, context, environment, partial(sandbox.wrap, guarded=guarded))
    finally:
        moved += await run_in_thread(sandbox.end, guarded)
    return result, moved


async def _run(
    arguments: Arguments,
    context: Context,
    environment: Callable[[], Mapping[str, str]],
    wrap: Callable[[Sequence[str], Path], Sequence[str]] = lambda argv, _: argv,
) -> Result:
    command: str = arguments["command"]
    if "\0" in command:
        raise ToolError("a command can't have a null character in it")
    argv = [shutil.which("bash") or "/bin/sh", "-c", command]
    seconds = min(arguments.get("timeout", context.time_limit or _TIMEOUT), context.time_limit or _MAX_TIMEOUT)
    output = _OutputBuffer(context.progress)
    protect_process_memory()
    try:
        process = await ShellProcess.start(
            await run_in_thread(wrap, argv, context.folder),
            context.folder,
            {**environment(), **_NONINTERACTIVE_ENV, "PWD": str(context.folder)},
        )
    except OSError as error:
        raise ToolError(f"the shell could not be started: {error.strerror or error}") from None
    code = None
    try:
        async with asyncio.timeout(seconds):
            code = await _read_output(process, output)
    except TimeoutError:
        pass
    finally:
        remainder = await process.end()
    output.add(b"", last=True)
    return _make_result(output.text, code, seconds, remainder)


async def _read_output(process: ShellProcess, output: _OutputBuffer) -> int:
    """Read until the command has ended and its output is complete; return the exit code."""
    ended = asyncio.ensure_future(process.wait())
    try:
        while True:
            chunk = asyncio.ensure_future(process.output.read(_CHUNK))
            try:
                # Background processes may hold the pipe open for ever.
                await asyncio.wait(
                    {chunk} if ended.done() else {chunk, ended},
                    timeout=_LINGER if ended.done() else None,
                    return_when=asyncio.FIRST_COMPLETED,
                )
                if chunk.done():
                    if not chunk.result():
                        return await ended
                    output.add(chunk.result())
                elif ended.done():
                    async with asyncio.timeout(_LINGER):
                        output.add(await chunk)
            except TimeoutError:
                return ended.result()
            finally:
                chunk.cancel()
                with suppress(asyncio.CancelledError):
                    await chunk
    finally:
        ended.cancel()


def _make_result(text: str, code: int | None, seconds: float, remainder: Remainder) -> Result:
    output = text.rstrip("\n")
    if code is None:
        note = f"[not finished after {seconds:g} seconds; it was ended]"
    elif code < 0:
        name = signal.Signals(-code).name if -code in {known.value for known in signal.Signals} else str(-code)
        note = f"[ended by {name}]"
    else:
        note = f"[exit code {code}]" if code else "" if output else "[no output; exit code 0]"
    return Result("\n".join(part for part in (output, note, _describe_remainder(remainder)) if part), error=code != 0)


def _describe_remainder(remainder: Remainder) -> str:
    """Return a note on the processes that may still run, or an empty text."""
    if remainder.processes:
        names = ", ".join(remainder.processes[:_MAX_REMAINING])
        more = len(remainder.processes) - _MAX_REMAINING
        return f"[processes that could not be ended: {names}{f' and {more} more' if more > 0 else ''}]"
    return "[processes that this command started may still run]" if remainder.has_unknown else ""


def _approval_request(arguments: Arguments, folder: Path, *, tool: str = "shell") -> ApprovalRequest:
    command: str = arguments["command"].strip(" \t\n")
    parts = split_simple_commands(command)
    forms = list_part_forms(parts or (), folder)
    first, _, more = command.partition("\n")
    return ApprovalRequest(
        tool,
        command,
        f"run {first[:120]}{' …' if more or len(first) > 120 else ''}",
        command,
        aliases=find_commands(command),
        parts=forms,
        allowed_by="pattern" if parts else "tool",
        # A command with an argument that no wildcard matches is not the occasion for a wider rule.
        scopes=list_scopes(parts or (), tool) if all(_is_matchable(form) for form in forms) else (),
    )


def _is_matchable(forms: Iterable[PartForm]) -> bool:
    return any(not form.required for form in forms)


def shell(
    environment: Callable[[], Mapping[str, str]] = child_environment, sandbox: ShellSandbox | None = None
) -> Tool:
    """Make the tool. `environment` returns the environment variables of a command; with `sandbox` it runs there."""

    async def run(arguments: Arguments, context: Context) -> Result:
        finish = await run_in_thread(context.changes.before_command, arguments["command"])
        try:
            if sandbox is None:
                return await _run(arguments, context, environment)
            return await _run_sandboxed(arguments, context, environment, sandbox)
        finally:
            await run_in_thread(finish)

    return Tool(
        "shell",
        "Runs a command with bash in the working folder and returns its output (stdout and stderr together) and its "
        "exit code. Its stdin is empty. Background processes that it starts are ended with it. Prefer the other tools "
        "for reading, searching and changing files."
        + (f" It runs {sandbox.description}." if sandbox is not None else ""),
        {
            "type": "object",
            "properties": {
                "command": {"type": "string", "minLength": 1, "description": "The command."},
                "timeout": {
                    "type": "integer",
                    "minimum": 1,
                    "maximum": _MAX_TIMEOUT,
                    "description": f"Time limit in seconds. Default {_TIMEOUT}, or the limit that the user has set.",
                },
            },
            "required": ["command"],
            "additionalProperties": False,
        },
        run,
        blocking=False,
        timeout=_MAX_TIMEOUT + 30.0,
        timeout_mode="inside",
        approval_request=_approval_request,
        summarize=lambda arguments: str(arguments.get("command", "")).strip().partition("\n")[0],
        hidden_secrets=lambda: find_hidden_secrets(environment),
    )
