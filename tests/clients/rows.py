"""The rows and columns of the table: clients with their tools and flags, and providers with a model that thinks."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from tests.clients import mcp_server

PROMPTS = (
    "TASK-ONE: read alpha.txt and beta.txt, then run the command.",
    "TASK-TWO: run the other command.",
    "TASK-THREE: run the last command.",
)


class ServerRow(Struct, frozen=True):
    """How a client uses the tool of an MCP server.

    `build_files` returns the files that configure the server, by their names below the home, given its command;
    `flags` are more arguments then, in which `{home}` is the home. `search` is the call that finds the tool, where the
    client defers it. `build_call` returns the call with this word; without it, the tool is called by its own name.
    """

    build_files: Callable[[Sequence[str]], Mapping[str, str]]
    search: tuple[str, Mapping[str, Any]] | None = None
    build_call: Callable[[str], tuple[str, Mapping[str, Any]]] = lambda word: (mcp_server.TOOL, {"word": word})
    flags: tuple[str, ...] = ()


class ClientRow(Struct, frozen=True):
    """One client: its tools for reading a file and running a command, and its flags.

    `only_tool` is declared by the requests of the conversation itself, and not by those that the client sends beside it
    (titles, memory). `build_arguments` gets the prompt, and whether the last session is resumed. `settings` are files
    of the user, by their names below the home, that make the client request reasoning. `program` is the client's name
    for `segue with`, where it is not that of the row. `wraps_commands`: commands are run by a program in free text.
    `picture_tool` is the tool that reads pictures, and its argument, where that is not `read_tool`. `server` is None
    if the client has no MCP servers. `tasks` are those that the client is run with; empty for all.
    `more_arguments` are further ones of the shell tool. `takes_lists`: the tools take lists of files and of commands.
    `resumes`: a session can be resumed without a terminal.
    """

    read_tool: str
    path_argument: str
    shell_tool: str
    command_argument: str
    only_tool: str
    build_arguments: Callable[[str, bool], tuple[str, ...]]
    variables: Mapping[str, str] = {}
    settings: Mapping[str, str] = {}
    program: str | None = None
    wraps_commands: bool = False
    picture_tool: tuple[str, str] | None = None
    server: ServerRow | None = None
    tasks: tuple[str, ...] = ()
    more_arguments: Mapping[str, str] = {}
    takes_lists: bool = False
    resumes: bool = True

    def build_read(self, path: Path) -> dict[str, Any]:
        if self.read_tool == self.shell_tool:
            return self.build_command(f"cat {path}")
        if self.takes_lists:
            return {self.path_argument: [{"path": str(path)}]}
        return {self.path_argument: str(path)}

    def build_picture_call(self, path: Path) -> tuple[str, dict[str, str]]:
        tool, argument = self.picture_tool or (self.read_tool, self.path_argument)
        return tool, {argument: str(path)}

    def build_command(self, command: str) -> dict[str, Any]:
        if self.takes_lists:
            return {self.command_argument: [command]}
        text = f"text((await tools.exec_command({{cmd: {json.dumps(command)}}})).output);"
        return {self.command_argument: text if self.wraps_commands else command, **self.more_arguments}


_QUALIFIED_TOOL = f"mcp__{mcp_server.SERVER}__{mcp_server.TOOL}"


def _describe_server(command: Sequence[str], **more: Any) -> dict[str, Any]:
    return {mcp_server.SERVER: {"command": command[0], "args": command[1:], **more}}


def _claude(prompt: str, resumed: bool) -> tuple[str, ...]:
    allowed = ("Read", "Bash", "ToolSearch", _QUALIFIED_TOOL)
    return ("-p", prompt, *(("--continue",) if resumed else ()), "--allowedTools", *allowed)


_CLAUDE_SERVER = ServerRow(
    lambda command: {"servers.json": json.dumps({"mcpServers": _describe_server(command)})},
    ("ToolSearch", {"query": f"select:{_QUALIFIED_TOOL}", "max_results": 3}),
    flags=("--mcp-config", "{home}/servers.json"),
)


def _codex(prompt: str, resumed: bool) -> tuple[str, ...]:
    return _codex_exec(prompt, resumed, "-m", "gpt-5.5")


def _codex_exec(prompt: str, resumed: bool, *more: str) -> tuple[str, ...]:
    flags = ("--skip-git-repo-check", "-c", 'sandbox_mode="danger-full-access"', *more)
    return ("exec", *(("resume", "--last") if resumed else ()), *flags, prompt)


def _codex_files(command: Sequence[str]) -> dict[str, str]:
    lines = f"command = {json.dumps(command[0])}\nargs = {json.dumps(command[1:])}\n"
    return {".codex/config.toml": f"[mcp_servers.{mcp_server.SERVER}]\n{lines}"}


def _codex_exec_call(word: str) -> tuple[str, Mapping[str, Any]]:
    call = f"await tools.{_QUALIFIED_TOOL}({{word: {json.dumps(word)}}})"
    return "exec", {"input": f"text(JSON.stringify({call}));"}


def _gemini(prompt: str, resumed: bool) -> tuple[str, ...]:
    flags = ("--approval-mode", "yolo", "--skip-trust", "-m", "gemini-2.5-pro")
    return ("-p", prompt, *flags, *(("--resume", "latest") if resumed else ()))


def _qwen(prompt: str, resumed: bool) -> tuple[str, ...]:
    return ("-p", prompt, "--approval-mode", "yolo", *(("--continue",) if resumed else ()))


_QWEN_VALUES: Mapping[str, Any] = {"model": {"generationConfig": {"extra_body": {"reasoning_effort": "high"}}}}
_QWEN_SETTINGS = {".qwen/settings.json": json.dumps(_QWEN_VALUES)}
_QWEN_SERVER = ServerRow(
    lambda command: {
        ".qwen/settings.json": json.dumps({**_QWEN_VALUES, "mcpServers": _describe_server(command, trust=True)})
    },
    ("tool_search", {"query": f"select:{_QUALIFIED_TOOL}"}),
    lambda word: ("tool_call", {"name": _QUALIFIED_TOOL, "arguments": {"word": word}}),
)


def _opencode(prompt: str, resumed: bool) -> tuple[str, ...]:
    return ("run", *(("-c",) if resumed else ()), "--pure", "--auto", prompt)


_OPENCODE_VALUES: Mapping[str, Any] = {"agent": {"build": {"reasoningEffort": "high"}}}
_OPENCODE_SETTINGS = {".config/opencode/opencode.json": json.dumps(_OPENCODE_VALUES)}
_OPENCODE_SERVER = ServerRow(
    lambda command: {
        ".config/opencode/opencode.json": json.dumps(
            {**_OPENCODE_VALUES, "mcp": {mcp_server.SERVER: {"type": "local", "command": command}}}
        )
    }
)


def _pi(prompt: str, resumed: bool) -> tuple[str, ...]:
    flags = ("--offline", "--thinking", "medium", "--tools", "read,bash")
    return ("-p", *(("-c",) if resumed else ()), *flags, prompt)


def _copilot(prompt: str, resumed: bool) -> tuple[str, ...]:
    flags = ("--allow-all-tools", "--reasoning-effort", "high", *(("--continue",) if resumed else ()))
    return ("-p", prompt, *flags)


def _cline(prompt: str, resumed: bool) -> tuple[str, ...]:
    return (prompt, "--thinking", "high")


CLIENT_ROWS: Mapping[str, ClientRow] = {
    "claude": ClientRow("Read", "file_path", "Bash", "command", "Bash", _claude, server=_CLAUDE_SERVER),
    "codex": ClientRow(
        "exec_command",
        "cmd",
        "exec_command",
        "cmd",
        "exec_command",
        _codex,
        picture_tool=("view_image", "path"),
        server=ServerRow(_codex_files, ("tool_search", {"query": "stamp a word"})),
    ),
    "gemini": ClientRow(
        "read_file",
        "file_path",
        "run_shell_command",
        "command",
        "run_shell_command",
        _gemini,
        server=ServerRow(
            lambda command: {".gemini/settings.json": json.dumps({"mcpServers": _describe_server(command, trust=True)})}
        ),
    ),
    "qwen": ClientRow(
        "read_file",
        "file_path",
        "run_shell_command",
        "command",
        "agent",
        _qwen,
        settings=_QWEN_SETTINGS,
        server=_QWEN_SERVER,
    ),
    "opencode": ClientRow(
        "read",
        "filePath",
        "bash",
        "command",
        "bash",
        _opencode,
        {
            "OPENCODE_DISABLE_AUTOUPDATE": "1",
            "OPENCODE_DISABLE_MODELS_FETCH": "1",
            "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
            "OPENCODE_DISABLE_DEFAULT_PLUGINS": "1",
        },
        _OPENCODE_SETTINGS,
        server=_OPENCODE_SERVER,
    ),
    "pi": ClientRow("read", "path", "bash", "command", "bash", _pi, {"PI_OFFLINE": "1", "PI_TELEMETRY": "0"}),
    "codex-exec": ClientRow(
        "exec",
        "input",
        "exec",
        "input",
        "exec",
        _codex_exec,
        program="codex",
        wraps_commands=True,
        server=ServerRow(_codex_files, build_call=_codex_exec_call),
    ),
    "copilot": ClientRow(
        "view",
        "path",
        "bash",
        "command",
        "bash",
        _copilot,
        tasks=("plain", "switch", "restart"),
        more_arguments={"description": "Run the command"},
    ),
    "cline": ClientRow(
        "read_files",
        "files",
        "run_commands",
        "commands",
        "run_commands",
        _cline,
        tasks=("plain",),
        takes_lists=True,
        resumes=False,
    ),
}

UPSTREAMS: Mapping[str, str] = {
    "openai-chat": "gpt-4.1",
    "openai-responses": "gpt-5.6-terra",
    "anthropic": "claude-sonnet-5",
    "gemini": "gemini-3.8-flash",
    "bedrock": "us.anthropic.claude-sonnet-5",
    "azure-foundry": "gpt-5",
    "mistral": "magistral-medium-latest",
    "kimi": "kimi-k2-thinking",
    "deepseek": "deepseek-reasoner",
    "qwen": "qwen3.5-plus",
}
"""The providers, each with a model that returns its reasoning where the API has it."""

CHANGED_MODELS: Mapping[str, str] = {"anthropic": "kimi", "bedrock": "deepseek"}
"""The provider that `segue route` selects for the second of three prompts, by that of the others."""
