"""The rows and columns of the table: clients with their tools and flags, and providers with a model that thinks."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path

from msgspec import Struct

FIRST_PROMPT = "TASK-ONE: read alpha.txt and beta.txt, then run the command."
SECOND_PROMPT = "TASK-TWO: run the other command."


class ClientRow(Struct, frozen=True):
    """One client: its tools for reading a file and running a command, and its flags.

    `only_tool` is declared by the requests of the conversation itself, and not by those that the client sends beside it
    (titles, memory). `build_arguments` gets the prompt, and whether the last session is resumed. `settings` are files
    of the user, by their names below the home, that make the client request reasoning. `program` is the client's name
    for `segue with`, where it is not that of the row. `wraps_commands`: commands are run by a program in free text.
    `picture_tool` is the tool that reads pictures, and its argument, where that is not `read_tool`.
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

    def build_read(self, path: Path) -> dict[str, str]:
        if self.read_tool == self.shell_tool:
            return self.build_command(f"cat {path}")
        return {self.path_argument: str(path)}

    def build_picture_call(self, path: Path) -> tuple[str, dict[str, str]]:
        tool, argument = self.picture_tool or (self.read_tool, self.path_argument)
        return tool, {argument: str(path)}

    def build_command(self, command: str) -> dict[str, str]:
        text = f"text((await tools.exec_command({{cmd: {json.dumps(command)}}})).output);"
        return {self.command_argument: text if self.wraps_commands else command}


def _claude(prompt: str, resumed: bool) -> tuple[str, ...]:
    return ("-p", prompt, *(("--continue",) if resumed else ()), "--allowedTools", "Read", "Bash")


def _codex(prompt: str, resumed: bool) -> tuple[str, ...]:
    return _codex_exec(prompt, resumed, "-m", "gpt-5.5")


def _codex_exec(prompt: str, resumed: bool, *more: str) -> tuple[str, ...]:
    flags = ("--skip-git-repo-check", "-c", 'sandbox_mode="danger-full-access"', *more)
    return ("exec", *(("resume", "--last") if resumed else ()), *flags, prompt)


def _gemini(prompt: str, resumed: bool) -> tuple[str, ...]:
    flags = ("--approval-mode", "yolo", "--skip-trust", "-m", "gemini-2.5-pro")
    return ("-p", prompt, *flags, *(("--resume", "latest") if resumed else ()))


def _qwen(prompt: str, resumed: bool) -> tuple[str, ...]:
    return ("-p", prompt, "--approval-mode", "yolo", *(("--continue",) if resumed else ()))


_QWEN_SETTINGS = {
    ".qwen/settings.json": '{"model": {"generationConfig": {"extra_body": {"reasoning_effort": "high"}}}}'
}


def _opencode(prompt: str, resumed: bool) -> tuple[str, ...]:
    return ("run", *(("-c",) if resumed else ()), "--pure", "--auto", prompt)


_OPENCODE_SETTINGS = {".config/opencode/opencode.json": '{"agent": {"build": {"reasoningEffort": "high"}}}'}


def _pi(prompt: str, resumed: bool) -> tuple[str, ...]:
    flags = ("--offline", "--thinking", "medium", "--tools", "read,bash")
    return ("-p", *(("-c",) if resumed else ()), *flags, prompt)


CLIENT_ROWS: Mapping[str, ClientRow] = {
    "claude": ClientRow("Read", "file_path", "Bash", "command", "Bash", _claude),
    "codex": ClientRow(
        "exec_command", "cmd", "exec_command", "cmd", "exec_command", _codex, picture_tool=("view_image", "path")
    ),
    "gemini": ClientRow("read_file", "file_path", "run_shell_command", "command", "run_shell_command", _gemini),
    "qwen": ClientRow(
        "read_file", "file_path", "run_shell_command", "command", "agent", _qwen, settings=_QWEN_SETTINGS
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
    ),
    "pi": ClientRow("read", "path", "bash", "command", "bash", _pi, {"PI_OFFLINE": "1", "PI_TELEMETRY": "0"}),
    "codex-exec": ClientRow(
        "exec", "input", "exec", "input", "exec", _codex_exec, program="codex", wraps_commands=True
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
