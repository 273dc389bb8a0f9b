"""The tools of the coding clients: which of them do the same, and how their arguments correspond. Data only.

An operation is a purpose that tools of several clients share, with arguments of its own. A row gives the tool of one
client for an operation. Arguments without a counterpart keep their names.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from msgspec import Struct

Operation = Literal[
    "shell",  # command, folder, timeout, note
    "read",  # path, line (from 1), count
    "picture",  # path
    "list",  # path
    "find",  # pattern, path: files by name
    "search",  # pattern, path, glob: text in files
    "write",  # path, content
    "edit",  # path, old, new, all, note
    "patch",  # text: a patch in the form of apply_patch
    "plan",  # items
    "fetch",  # url, prompt
    "web",  # query
    "agent",  # prompt, kind, note: a task for a subagent
    "skill",  # name, args
    "notebook",  # path, cell, source, type, mode: a cell of a notebook
]
ValueForm = Literal[
    "same",
    "seconds",  # of a duration in milliseconds
    "from-zero",  # of a number from one
    "steps",  # plan items as `step` and `status`
    "todos",  # plan items as `content`, `status` and `activeForm`
    "states",  # plan items as `text` and `state`: open, doing, done
    "descriptions",  # plan items as `description` and `status`
    "last-line",  # of a number of lines, the last of them
    "with-url",  # of a prompt, with the URL at its end
]


class Argument(Struct, frozen=True):
    """A client's name for an argument, and the form of its value. `item_of`: it is in the only item of this list."""

    name: str
    form: ValueForm = "same"
    item_of: str | None = None


class ToolRow(Struct, frozen=True):
    """The tool of a client for an operation. The first name is written; all are recognised.

    `arguments` maps the operation's arguments to the client's. `implied` are the client's arguments that have no
    effect with this value, and are dropped. With `command` the client has no such tool, or only if the user enables it:
    the operation is a command of its shell, in which the arguments are quoted; without a path, it has no `--`. The
    `flags` are added for arguments that are given. `free_text` is the operation's argument that is the whole input of
    the tool. `header` is the form of its results.
    """

    operation: Operation
    names: tuple[str, ...] = ()
    arguments: Mapping[str, Argument] = {}
    implied: Mapping[str, object] = {}
    command: str | None = None
    flags: Mapping[str, str] = {}
    free_text: str | None = None
    header: Literal["exit-line", "exit-end", "exec", "report", "none"] = "none"


def _named(**names: str | Argument) -> dict[str, Argument]:
    return {key: Argument(name) if isinstance(name, str) else name for key, name in names.items()}


# A pattern or a path may begin with `-`.
_READ, _LIST = "cat -n -- {path}", "ls -la -- {path}"
_FIND, _SEARCH = "rg --files --glob={pattern} -- {path}", "rg -n {flags} --regexp={pattern} -- {path}"
_GREP_FLAGS = {"glob": "--glob={}", "-i": "-i", "-A": "-A {}", "-B": "-B {}", "-C": "-C {}", "type": "--type={}"}

TOOLS: Mapping[str, tuple[ToolRow, ...]] = {
    "claude": (
        ToolRow(
            "shell",
            ("Bash",),
            _named(command="command", timeout="timeout", note="description"),
            {"run_in_background": False},
            header="exit-line",
        ),
        ToolRow("read", ("Read",), _named(path="file_path", line="offset", count="limit")),
        ToolRow("picture", ("Read",), _named(path="file_path")),
        ToolRow("list", ("LS",), _named(path="path")),
        ToolRow("find", ("Glob",), _named(pattern="pattern", path="path")),
        ToolRow("search", ("Grep",), _named(pattern="pattern", path="path", glob="glob")),
        ToolRow("write", ("Write",), _named(path="file_path", content="content")),
        ToolRow(
            "edit",
            ("Edit",),
            _named(path="file_path", old="old_string", new="new_string", all="replace_all"),
            {"replace_all": False},
        ),
        ToolRow("plan", ("TodoWrite",), _named(items=Argument("todos", "todos"))),
        ToolRow("fetch", ("WebFetch",), _named(url="url", prompt="prompt")),
        ToolRow("web", ("WebSearch",), _named(query="query")),
        ToolRow(
            "agent",
            ("Agent", "Task"),
            _named(prompt="prompt", kind="subagent_type", note="description"),
            {"run_in_background": False},
        ),
        ToolRow("skill", ("Skill",), _named(name="skill", args="args")),
        ToolRow(
            "notebook",
            ("NotebookEdit",),
            _named(path="notebook_path", cell="cell_id", source="new_source", type="cell_type", mode="edit_mode"),
        ),
    ),
    "codex": (
        ToolRow(
            "shell",
            ("exec_command", "shell_command", "shell"),
            _named(command="cmd", folder="workdir", note="justification", timeout="timeout_ms"),
            header="exec",
        ),
        ToolRow("read", command=_READ),
        ToolRow("picture", ("view_image",), _named(path="path")),
        ToolRow("list", command=_LIST),
        ToolRow("find", command=_FIND),
        ToolRow("search", command=_SEARCH, flags=_GREP_FLAGS),
        # For files that a patch can't write.
        ToolRow("write", command="printf %s {content} > {path}"),
        ToolRow("patch", ("apply_patch",), free_text="text", header="exec"),
        ToolRow("plan", ("update_plan",), _named(items=Argument("plan", "steps"))),
    ),
    "gemini": (
        ToolRow(
            "shell",
            ("run_shell_command",),
            _named(command="command", folder="dir_path", note="description"),
            {"is_background": False},
            header="report",
        ),
        ToolRow(
            "read", ("read_file",), _named(path="file_path", line="start_line", count=Argument("end_line", "last-line"))
        ),
        ToolRow("picture", ("read_file",), _named(path="file_path")),
        ToolRow("list", ("list_directory",), _named(path="dir_path")),
        ToolRow("find", ("glob",), _named(pattern="pattern", path="dir_path")),
        ToolRow(
            "search",
            ("grep_search", "search_file_content"),
            _named(pattern="pattern", path="dir_path", glob="include_pattern"),
        ),
        ToolRow("write", ("write_file",), _named(path="file_path", content="content")),
        ToolRow(
            "edit",
            ("replace",),
            _named(path="file_path", old="old_string", new="new_string", all="allow_multiple", note="instruction"),
            {"allow_multiple": False},
        ),
        ToolRow("plan", ("write_todos",), _named(items=Argument("todos", "descriptions"))),
        ToolRow("fetch", ("web_fetch",), _named(prompt=Argument("prompt", "with-url"))),
        ToolRow("web", ("google_web_search",), _named(query="query")),
        ToolRow("agent", ("invoke_agent",), _named(prompt="prompt", kind="agent_name")),
        ToolRow("skill", ("activate_skill",), _named(name="name")),
    ),
    "qwen": (
        ToolRow(
            "shell",
            ("run_shell_command",),
            _named(command="command", folder="directory", timeout="timeout", note="description"),
            {"is_background": False},
            header="report",
        ),
        ToolRow("read", ("read_file",), _named(path="file_path", line=Argument("offset", "from-zero"), count="limit")),
        ToolRow("picture", ("read_file",), _named(path="file_path")),
        ToolRow("list", ("list_directory",), _named(path="path"), command=_LIST),
        ToolRow("find", ("glob",), _named(pattern="pattern", path="path")),
        ToolRow("search", ("grep_search", "search_file_content"), _named(pattern="pattern", path="path", glob="glob")),
        ToolRow("write", ("write_file",), _named(path="file_path", content="content")),
        ToolRow(
            "edit",
            ("edit", "replace"),
            _named(path="file_path", old="old_string", new="new_string", all="replace_all"),
            {"replace_all": False},
        ),
        ToolRow("plan", ("todo_write",), _named(items=Argument("todos", "todos"))),
        ToolRow("fetch", ("web_fetch",), _named(url="url", prompt="prompt")),
        ToolRow("web", ("web_search",), _named(query="query")),
        ToolRow(
            "agent",
            ("agent", "task"),
            _named(prompt="prompt", kind="subagent_type", note="description"),
            {"run_in_background": False},
        ),
        ToolRow("skill", ("skill",), _named(name="skill", args="args")),
        ToolRow(
            "notebook",
            ("notebook_edit",),
            _named(path="notebook_path", cell="cell_id", source="new_source", type="cell_type", mode="edit_mode"),
        ),
    ),
    "opencode": (
        ToolRow("shell", ("bash",), _named(command="command", folder="workdir", timeout="timeout", note="description")),
        ToolRow("read", ("read",), _named(path="filePath", line="offset", count="limit")),
        ToolRow("picture", ("read",), _named(path="filePath")),
        # It reads folders, too. Older versions had a tool for them.
        ToolRow("list", ("read", "list"), _named(path="filePath")),
        ToolRow("find", ("glob",), _named(pattern="pattern", path="path")),
        ToolRow("search", ("grep",), _named(pattern="pattern", path="path", glob="include")),
        ToolRow("write", ("write",), _named(path="filePath", content="content")),
        ToolRow(
            "edit",
            ("edit",),
            _named(path="filePath", old="oldString", new="newString", all="replaceAll"),
            {"replaceAll": False},
        ),
        # In place of the two before, for some models.
        ToolRow("patch", ("apply_patch",), _named(text="patchText")),
        ToolRow("plan", ("todowrite",), _named(items=Argument("todos", "todos"))),
        ToolRow("fetch", ("webfetch",), _named(url="url")),
        ToolRow("web", ("websearch",), _named(query="query")),
        ToolRow("agent", ("task",), _named(prompt="prompt", kind="subagent_type", note="description")),
        ToolRow("skill", ("skill",), _named(name="name")),
    ),
    "pi": (
        ToolRow(
            "shell", ("bash",), _named(command="command", timeout=Argument("timeout", "seconds")), header="exit-end"
        ),
        ToolRow("read", ("read",), _named(path="path", line="offset", count="limit")),
        ToolRow("picture", ("read",), _named(path="path")),
        ToolRow("list", ("ls",), _named(path="path"), command=_LIST),
        ToolRow("find", ("find",), _named(pattern="pattern", path="path"), command=_FIND),
        ToolRow(
            "search", ("grep",), _named(pattern="pattern", path="path", glob="glob"), command=_SEARCH, flags=_GREP_FLAGS
        ),
        ToolRow("write", ("write",), _named(path="path", content="content")),
        ToolRow(
            "edit",
            ("edit",),
            _named(path="path", old=Argument("oldText", item_of="edits"), new=Argument("newText", item_of="edits")),
        ),
    ),
    "segue": (
        ToolRow("shell", ("shell",), _named(command="command", timeout=Argument("timeout", "seconds"))),
        ToolRow("read", ("read_file",), _named(path="path", line="start_line", count="lines")),
        ToolRow("list", ("list_dir",), _named(path="path")),
        ToolRow("find", ("glob",), _named(pattern="pattern", path="path")),
        ToolRow("search", ("grep",), _named(pattern="pattern", path="path", glob="glob")),
        ToolRow("write", ("write_file",), _named(path="path", content="content")),
        ToolRow(
            "edit",
            ("edit_file",),
            _named(path="path", old="old_string", new="new_string", all="replace_all"),
            {"replace_all": False},
        ),
        ToolRow("plan", ("todo",), _named(items=Argument("items", "states"))),
        ToolRow("fetch", ("fetch_url",), _named(url="url")),
    ),
}


class McpName(Struct, frozen=True):
    """How a client names the tools of MCP servers: `form` is written, `pattern` is recognised.

    `{servers}` in the pattern stands for the names of the user's servers. `word_only`: other characters than letters,
    digits and `_` in the server's name are written as `_`. `has_servers`: the client can have the same server.
    """

    form: str
    pattern: str
    word_only: bool = False
    has_servers: bool = True


MCP_NAMES: Mapping[str, McpName] = {
    "claude": McpName("mcp__{server}__{tool}", r"mcp__(.+?)__(.+)"),
    # A namespace for each server, which the writer splits off; older versions have one name.
    "codex": McpName("mcp__{server}__{tool}", r"mcp__(.+?)(?:::|__)(.+)", word_only=True),
    # The client, too, takes the first "_" for the end of the server's name.
    "gemini": McpName("mcp_{server}_{tool}", r"mcp_(?!_)([^_]+)_(.+)"),
    "qwen": McpName("mcp__{server}__{tool}", r"mcp__(.+?)__(.+)"),
    # A name does not show where that of the server ends: only those in the user's settings are recognised.
    "opencode": McpName("{server}_{tool}", r"({servers})_(.+)"),
    # pi has no servers of its own; its extensions choose their names.
    "pi": McpName("mcp__{server}__{tool}", r"mcp__(.+?)__(.+)", has_servers=False),
    # With a prefix in conversations that were imported.
    "segue": McpName("{server}__{tool}", r"(?:mcp__)?(.+?)__(.+)"),
}
