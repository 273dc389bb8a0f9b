"""The file and shell tools of a coding agent, recognised by their names and parameters, and the calls of them.

Users of such tools do not name them («what does this project do?»), so calls are made by patterns in their text.
Nothing is changed or run unless the text has the command with all its values.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, TypeAlias, cast

from msgspec import Struct

from segue.canonical.request import Tool
from segue.emulator.model.arguments import is_valid, make_arguments
from segue.emulator.model.exchange import Exchange, format_result, is_failure
from segue.emulator.model.prompt_values import tokenize
from segue.emulator.steps import CallStep

Role: TypeAlias = Literal["read", "list", "glob", "grep", "write", "edit", "shell", "fetch"]

CHANGING_ROLES: frozenset[Role] = frozenset({"write", "edit", "shell"})
# Of each role: alternatives of words in the tool's name, and its parameters with their names; «?» marks optional ones.
_ROLES: tuple[tuple[Role, str, str], ...] = (
    (
        "edit",
        "edit|replace",
        "path=path,file_path old=old_string,old,old_text,old_str new=new_string,new,new_text,new_str",
    ),
    ("write", "write|create file|save file", "path=path,file_path,filename content=content,text,contents"),
    ("read", "read|cat|view file|open file", "path=path,file_path,filename,file"),
    ("list", "list|ls|dir", "path?=path,folder,directory,dir"),
    ("glob", "glob|find file", "pattern=pattern,glob"),
    ("grep", "grep|search file|search code", "pattern=pattern,query,regex path?=path,folder"),
    ("shell", "shell|bash|exec|terminal|run command", "command=command,cmd"),
    ("fetch", "fetch", "url=url,uri"),
)
_MAX_TEXT = 2_000
"""Characters of the text that are searched for commands."""
_ATTACHMENT = re.compile(r"\n\s*\n|\n(?=diff --git |--- |```|[{\[<]|Traceback )")
_QUOTED = re.compile(r"`([^`\n]+)`|\"([^\"\n]+)\"|(?<!\w)'([^'\n]+)'(?!\w)|“([^”\n]+)”")
_EXTENSIONS = (
    "c|cfg|conf|cpp|cs|css|csv|diff|env|go|h|html?|ini|ipynb|java|js|json|jsonl|jsx|kt|lock|log|lua|md|patch|php|py|rb"
    "|rs|rst|sh|sql|svg|swift|toml|tsx?|txt|xml|ya?ml"
)
_PATH = rf"(?P<path>(?<![\w/.~-])[\w.~/@-]*(?:[\w-]\.(?:{_EXTENSIONS})\b|\w/(?!\w))|(?<!\S)\.[a-z]\w{{2,}})"
_FILE = r"(?:the\s+)?(?:file\s+)?(?P<path>\0\d+\0|\S*[./]\w\S*)"
_NO_CONTENT = r"(?:it|this|that|them|something|everything)\b"
_NO_PATTERN = r"(?:the|an?|me|my|out|in|at|around)\b"
_NO_FOLDER = r"(?:this|the|an?|my|our|your|it|here|there|working|current)\b"
# In order: the first pattern that matches makes the calls. Quoted texts are one word here.
_COMMANDS: tuple[tuple[Role, str], ...] = (
    ("write", rf"\b(?:write|save|put)\s+(?!{_NO_CONTENT})(?P<content>\S+)\s+(?:to|into|in|as)\s+{_FILE}"),
    ("write", rf"\b(?:create|make|write)\s+(?:a\s+)?{_FILE}\s+(?:with|saying)\s+(?:the\s+text\s+)?(?P<content>\S+)$"),
    ("edit", rf"\b(?:replace|change)\s+(?P<old>\S+)\s+(?:with|by|to)\s+(?P<new>\S+)\s+in\s+{_FILE}"),
    (
        "shell",
        r"(?:^|\b(?:please|you|then)\s+)(?:run|execute)\s+(?!(?:the|an?|my|all|this|it)\b)(?P<command>\0\d+\0|.+)",
    ),
    ("shell", r"^\$?\s*(?P<command>(?:git|npm|cargo|pytest|uv|docker|pip)\s+[a-z-][^\n?]*)$"),
    ("fetch", r"(?P<url>\bhttps?://[^\s<>\"'`)\]]*[^\s<>\"'`)\].,;:!?])"),
    ("glob", r"(?P<pattern>(?<!\S)[\w./]*\*[\w./*]*\w)"),
    (
        "grep",
        rf"\b(?:grep|search|look|find)\s+(?:for\s+|all\s+)?(?!{_NO_PATTERN})(?P<pattern>\S+)(?:\s+in\s+(?P<path>\S+))?",
    ),
    ("grep", r"\bwhere\s+(?:is|are)\s+(?P<pattern>[\w.]+)\s+(?:defined|used|called)\b"),
    ("read", _PATH),
    ("read", r"^(?:read|open|cat)\s+(?:the\s+file\s+)?(?P<path>[\w./-]+)$"),
    ("list", r"^(?:list|ls|dir)\s+(?!(?:the|all|my|files?)\b)(?P<path>[\w./~-]+)"),
    ("list", rf"\b(?:files|what(?:'s|\s+is))\s+in\s+(?:the\s+)?(?!{_NO_FOLDER})(?P<path>[\w./~-]+)"),
    ("list", r"^(?:list|ls|dir)\b|\b(?:list|show|which|what)\b.*\b(?:files|folders?|director(?:y|ies))\b"),
)
_ABOUT_PROJECT = re.compile(
    r"\b(?:this|the|my|our|your)\s+(?:\w+\s+)?(?:project|repo(?:sitory)?|code ?base|code|app|program|package|library)\b"
    r"|\blook (?:a)?round\b|\bwhat(?:'s| is) (?:this|in here|here)\b|\bwhat do you see\b|\breadme\b",
    re.IGNORECASE,
)
_QUESTION = re.compile(r"(?:how|why|what|should|when|do|does|is|explain)\b", re.IGNORECASE)
_CHANGE_VERB = re.compile(
    r"^(?:please\s+)?(?:add|append|change|create|delete|edit|fix|implement|insert|move|refactor|remove|rename|replace"
    r"|run|save|update|write)\b",
    re.IGNORECASE,
)
_README = re.compile(r"^\W*(?:\d+\s+)?(?P<name>readme(?:\.(?:md|rst|txt))?)(?![\w./])", re.IGNORECASE | re.MULTILINE)


# What a shell does in place of other tools. The values are quoted, except for patterns of file names.
_SHELL_COMMANDS: Mapping[Role, str] = {
    "read": "cat {path}",
    "list": "ls {path}",
    "glob": "ls -d {pattern}",
    "grep": "grep -rn {pattern} {path}",
    "write": "printf '%s\\n' {content} > {path} && echo wrote {path}",
    "fetch": "curl -s {url}",
}
_SCRIPT = "const r = await tools.exec_command({{cmd: {command}}});\ntext(r.output ?? r);\n"


class _RoleTool(Struct, frozen=True):
    """A tool with a role; `parameters` maps the values of the role to the names of its parameters.

    A `script` tool is Codex's `exec`, whose text is a program that calls a shell.
    """

    tool: Tool
    parameters: Mapping[str, str]
    is_script: bool = False


class FileTools(Struct, frozen=True):
    tools_by_role: Mapping[Role, _RoleTool]
    other_tools: tuple[Tool, ...]

    def role_of(self, name: str) -> Role | None:
        return next((role for role, found in self.tools_by_role.items() if found.tool.name == name), None)

    def make_calls(self, text: str) -> list[CallStep]:
        """Return the calls of the first command in the text; a look at the folder for a question about the project."""
        question, attachment = split_attachment(text)
        calls: list[CallStep] = []
        for role, values in _find_commands(question):
            call = self._make_call(role, values)
            if call is not None and call not in calls:
                calls.append(call)
        if calls or attachment or not _ABOUT_PROJECT.search(question):
            return calls
        call = self._make_call("list", {})
        return [] if call is None else [call]

    def follow_up(self, exchange: Exchange) -> list[CallStep]:
        """Return a call that reads the README, after the folder was listed for a question about the project."""
        question, _ = split_attachment(exchange.text)
        if len(exchange.calls) != 1 or not _ABOUT_PROJECT.search(question) or next(_find_commands(question), None):
            return []
        result = exchange.result(exchange.calls[0])
        if self.role_of(exchange.calls[0].name) != "list" or result is None or is_failure(result):
            return []
        found = _README.search(format_result(result))
        call = self._make_call("read", {"path": found["name"]}) if found else None
        return [] if call is None else [call]

    def _make_call(self, role: Role, values: Mapping[str, str]) -> CallStep | None:
        """Return the call; None if there is no tool for it, or the arguments are not valid."""
        found = self.tools_by_role.get(role)
        if found is None:
            found, values = self.tools_by_role.get("shell"), _make_shell_values(role, values)
        if found is None or (role != "list" and not values):
            return None
        if found.is_script:
            script = _SCRIPT.format(command=json.dumps(values["command"], ensure_ascii=False))
            is_custom = found.tool.kind == "custom"
            return CallStep(found.tool.name, text=script) if is_custom else CallStep(found.tool.name, {"input": script})
        schema = found.tool.parameters or {}
        generated: Any = make_arguments(schema, "")
        required: Sequence[str] = schema.get("required") or ()
        arguments = {name: generated[name] for name in required if name in generated}
        arguments |= {found.parameters[key]: value for key, value in values.items() if key in found.parameters}
        return CallStep(found.tool.name, arguments) if is_valid(schema, arguments) else None


def _make_shell_values(role: Role, values: Mapping[str, str]) -> Mapping[str, str]:
    """Return the values of a shell's call that does what a tool of this role does; none if it can't."""
    if role not in _SHELL_COMMANDS:
        return {}
    quoted = {key: value if role == "glob" else shlex.quote(value) for key, value in values.items()}
    return {"command": _SHELL_COMMANDS[role].format(**{"path": ".", **quoted})}


def find_file_tools(tools: Sequence[Tool]) -> FileTools | None:
    """Return the file tools among these; None unless one is a shell, or one reads files and another finds them."""
    tools_by_role: dict[Role, _RoleTool] = {}
    others: list[Tool] = []
    for tool in tools:
        role, found = _match_role(tool)
        if role is None or found is None or role in tools_by_role:
            others.append(tool)
        else:
            tools_by_role[role] = found
    if "shell" not in tools_by_role and not (
        "read" in tools_by_role and {"list", "glob", "grep"} & tools_by_role.keys()
    ):
        return None
    return FileTools(tools_by_role, tuple(others))


def split_attachment(text: str) -> tuple[str, str]:
    """Split the text into the question and what follows it: piped text, code, a diff."""
    question, attachment = (*_ATTACHMENT.split(text.strip(), maxsplit=1), "")[:2]
    return question[:_MAX_TEXT].strip(), attachment.strip()


def needs_change(text: str) -> bool:
    """Return whether the text begins with a command to change or run something."""
    return _CHANGE_VERB.match(text.strip()) is not None


def _find_commands(question: str) -> Iterator[tuple[Role, dict[str, str]]]:
    """Yield all matches of the first pattern that matches: the role, and its values by name."""
    quoted: list[str] = []

    def hide(match: re.Match[str]) -> str:
        text = next(part for part in match.groups() if part is not None)
        if re.fullmatch(_PATH, text):
            return text
        quoted.append(text)
        return f"\0{len(quoted) - 1}\0"

    def restore(value: str) -> str:
        value = value if value.endswith("\0") else value.rstrip(" .,;:!?")
        return re.sub("\0(\\d+)\0", lambda match: quoted[int(match[1])], value)

    hidden = " ".join(_QUOTED.sub(hide, question.replace("\0", " ")).split())
    is_question = _QUESTION.match(question) is not None
    for role, pattern in _COMMANDS:
        if is_question and role in CHANGING_ROLES:
            continue
        matches = list(re.finditer(pattern, hidden, re.IGNORECASE))
        for match in matches:
            values = {key: restore(value) for key, value in match.groupdict().items() if value is not None}
            if "path" in values:
                # `@FILE` names a file in many clients.
                values["path"] = values["path"].removeprefix("@") or values["path"]
            is_folder = role == "read" and values["path"].endswith("/")
            yield "list" if is_folder else role, values
        if matches:
            return


def _match_role(tool: Tool) -> tuple[Role | None, _RoleTool | None]:
    properties: object = (tool.parameters or {}).get("properties")
    if "exec" in tokenize(tool.name) and (
        tool.kind == "custom" or (isinstance(properties, dict) and [*properties] == ["input"])
    ):
        return "shell", _RoleTool(tool, {}, is_script=True)
    if tool.kind != "function" or not isinstance(properties, dict):
        return None, None
    words = set(tokenize(tool.name))
    for role, names, parameters in _ROLES:
        if any(words.issuperset(alternative.split()) for alternative in names.split("|")):
            found = _match_parameters(parameters, cast("dict[str, object]", properties))
            if found is not None:
                return role, _RoleTool(tool, found)
    return None, None


def _match_parameters(wanted: str, properties: Mapping[str, object]) -> dict[str, str] | None:
    found: dict[str, str] = {}
    for part in wanted.split():
        key, _, names = part.partition("=")
        name = next((name for name in names.split(",") if name in properties), None)
        if name is not None:
            found[key.rstrip("?")] = name
        elif not key.endswith("?"):
            return None
    return found
