"""Translates the tool calls of one client into those of another, with their results, by the table of tools.

A call without a counterpart keeps its name and content. No argument is dropped unless it has no effect.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Mapping
from typing import Any, cast

from msgspec import Struct

from segue.canonical.blocks import Block, Message, Text, ToolCall, ToolResponse, edit_block, text_of
from segue.sessions.client import CANONICAL
from segue.sessions.codex_programs import parse_program
from segue.sessions.patches import FileEdit, FileWrite, parse_patch, render_edit, render_write
from segue.sessions.tools import MCP_NAMES, TOOLS, Argument, Operation, ToolRow
from segue.sessions.values import list_of, object_of

# Of paths on Linux, macOS and Windows.
_ROOT = re.compile(r"/|\\|[A-Za-z]:[/\\]")
# A shell, also of Windows, that gets a script as its last argument.
_SHELL = re.compile(r"(?:.*[/\\])?(?:bash|sh|zsh|cmd|powershell|pwsh)(?:\.exe)?", re.IGNORECASE | re.DOTALL)
_SHELL_FLAGS = frozenset({"-c", "-lc", "/c", "-command", "-noprofile", "-nologo"})
_PICTURE = re.compile(r"\.(png|jpe?g|gif|webp)$", re.IGNORECASE)
_NAMESPACE = "functions::"
# It calls tools that are not declared: those of MCP servers, and seldom used ones.
_QWEN_CALL = "tool_call"
# Of an argument, in the command of a row.
_PLACEHOLDER = re.compile(r"\{(\w+)\}")
_URL = re.compile(r"https?://\S+")
_NOT_WORD = re.compile(r"\W", re.ASCII)
_EXEC_HEADER = re.compile(
    r"\A(?!Output:\n)(?:Chunk ID: .*\n)?(?:Exit code: (?P<first>-?\d+)\n)?(?:Script completed\n)?(?:Wall time:? .*\n)?"
    r"(?:Process exited with code (?P<second>-?\d+)\n)?(?:Original token count: .*\n)?Output:\n"
)
# The key of a plan item's text, by the form of the items.
_ITEM_TEXTS = {"steps": "step", "todos": "content", "descriptions": "description"}
_STATUSES = {"open": "pending", "doing": "in_progress", "done": "completed"}
# The command may have several lines.
_REPORT = re.compile(
    r"\A(?:<untrusted_context>\n)?(?:Command: .*?\nDirectory: [^\n]*\n)?Output: (?P<output>.*?)(?:\nError: \(none\))?"
    r"(?:\nExit Code: (?P<code>-?\d+))?(?:\nSignal: \(none\))?(?:\nBackground PIDs: [^\n]*)?"
    r"(?:\nProcess Group PGID: [^\n]*)?(?:\n</untrusted_context>)?\Z",
    re.DOTALL,
)
_EXIT_END = re.compile(r"(?:\n\n|\A)Command exited with code (?P<code>-?\d+)\Z")
_EXIT_LINE = re.compile(r"\AExit code (?P<code>-?\d+)\n?")


class Translated(Struct, frozen=True):
    """A message with the tools of another client, and the names of the tools that were translated or kept.

    `removed` are lines of the report about arguments that the other tool has no place for."""

    message: Message
    changed: tuple[tuple[str, str], ...] = ()
    kept: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()


class _Step(Struct, frozen=True):
    """How a call was translated: the rows of its tool at both ends, by which its result is translated too."""

    source: ToolRow
    target: ToolRow


class Translator:
    """Translates the messages of one client for another, in order: results follow their calls.

    `servers` are names of MCP servers, for clients whose names of tools do not show where that of the server ends.
    """

    def __init__(self, source: str, target: str, cwd: str | None, servers: Collection[str] = ()) -> None:
        names = "|".join(map(re.escape, sorted(servers, key=len, reverse=True))) or "(?!)"
        self._mcp_name = re.compile(MCP_NAMES[source].pattern.format(servers=names)) if source in MCP_NAMES else None
        self._source = source
        self._target = target
        self._cwd = cwd
        self._steps: dict[str, _Step] = {}
        self._names: dict[str, str] = {}
        self._removed: list[str] = []

    def translate(self, message: Message) -> Translated:
        changed: list[tuple[str, str]] = []
        kept: list[str] = []
        blocks: list[Block] = []
        self._removed = []
        for block in message.blocks:
            if isinstance(block, ToolCall) and block.kind != "hosted":
                translated = self._translate_call(block)
                if translated.name != block.name or translated.arguments is not block.arguments:
                    changed.append((block.name, translated.name))
                    self._names[block.id] = translated.name
                elif not self._is_native(block.name):
                    kept.append(block.name)
                blocks.append(translated)
            elif isinstance(block, ToolResponse) and not block.hosted:
                blocks.append(self._translate_result(block))
            else:
                blocks.append(block)
        if all(new is old for new, old in zip(blocks, message.blocks, strict=True)):
            return Translated(message, (), tuple(kept))
        return Translated(message.with_blocks(tuple(blocks)), tuple(changed), tuple(kept), tuple(self._removed))

    def _is_native(self, name: str) -> bool:
        servers = MCP_NAMES.get(self._target)
        if servers is not None and servers.has_servers and self._translate_mcp_name(name) == name:
            return True
        return any(name in row.names for row in TOOLS.get(self._target, ()))

    def _translate_call(self, call: ToolCall) -> ToolCall:
        call = self._unwrap(call)
        name = self._translate_mcp_name(call.name)
        if name is not None:
            return call if name == call.name else edit_block(call, name=name)
        found = self._parse(call)
        if found is None:
            return call
        source, operation, values = found
        rendered = self._render(operation, values, {key: each.name for key, each in source.arguments.items()})
        if rendered is None:
            return call
        row, name, arguments = rendered
        self._steps[call.id] = _Step(source, row)
        if name == call.name and arguments == call.arguments:
            return call
        kind = "custom" if isinstance(arguments, str) else "function"
        return edit_block(call, name=name, arguments=arguments, kind=kind)

    def _unwrap(self, call: ToolCall) -> ToolCall:
        """Return a call without Codex's namespace; a program of one call, and Qwen Code's `tool_call`, as that call."""
        if self._source in ("qwen", CANONICAL) and call.name == _QWEN_CALL and isinstance(call.arguments, dict):
            fields = cast("dict[str, Any]", call.arguments)
            name, arguments = fields.get("name"), fields.get("arguments")
            is_call = isinstance(name, str) and isinstance(arguments, dict) and len(fields) == 2
            return edit_block(call, name=name, arguments=arguments) if is_call else call
        if self._source not in ("codex", CANONICAL) or not call.name.startswith(_NAMESPACE):
            return call
        name = call.name.removeprefix(_NAMESPACE)
        nested = parse_program(call.arguments) if name == "exec" and isinstance(call.arguments, str) else None
        if nested is None:
            return edit_block(call, name=name)
        name, arguments = nested
        return edit_block(
            call, name=name, arguments=arguments, kind="custom" if isinstance(arguments, str) else "function"
        )

    def _translate_mcp_name(self, name: str) -> str | None:
        """Return the target's name for a tool of an MCP server; None for other tools."""
        target = MCP_NAMES.get(self._target)
        found = self._mcp_name.fullmatch(name) if self._mcp_name is not None else None
        if found is None or target is None or self._find_row(name) is not None:
            return None
        server = _NOT_WORD.sub("_", found[1]) if target.word_only else found[1]
        return target.form.format(server=server, tool=found[2])

    def _find_row(self, name: str, arguments: object = None) -> ToolRow | None:
        """Return the row of a tool. segue's own conversations may have tools of other clients: they can be imported."""
        own = next((row for row in TOOLS.get(self._source, ()) if name in row.names), None)
        if self._source != CANONICAL or (own is not None and _accepts(own, arguments)):
            return own
        rows = (row for rows in TOOLS.values() for row in rows if name in row.names and _accepts(row, arguments))
        return next(rows, own)

    # ------------------------------------------------------------------------------------------------------- arguments

    def _parse(self, call: ToolCall) -> tuple[ToolRow, Operation, dict[str, Any]] | None:
        """Return the row of a call's tool, the operation, and its arguments.

        None for a tool without a row, and for arguments that are damaged: several items, or a patch without its text.
        """
        row = self._find_row(call.name, call.arguments)
        if row is None or call.arguments_text is not None or call.broken:
            return None
        if row.free_text is not None:
            text = call.arguments
            if isinstance(text, dict) and len(cast("dict[str, Any]", text)) == 1:
                (text,) = cast("dict[str, Any]", text).values()
            return (row, row.operation, {row.free_text: text}) if isinstance(text, str) else None
        if not isinstance(call.arguments, dict):
            return None
        arguments = _take_items(cast("dict[str, Any]", call.arguments), row)
        if arguments is None:
            return None
        names = {argument.name: (key, argument) for key, argument in row.arguments.items()}
        values: dict[str, Any] = {}
        for name, value in arguments.items():
            if name in row.implied and row.implied[name] == value:
                continue
            key, argument = names.get(name, (name, None))
            values[key] = _read_value(value, argument) if argument is not None else value
        if row.operation == "patch" and not isinstance(values.get("text"), str):
            return None
        if (last := row.arguments.get("count")) is not None and last.form == "last-line":
            values = _shift(values, 1 - _first_line(values))
        if (prompt := row.arguments.get("prompt")) is not None and prompt.form == "with-url":
            values = _split_url(values)
        command = values.get("command")
        if row.operation == "shell" and isinstance(command, list):
            values["command"] = _join_command(cast("list[Any]", command))
        is_picture = row.operation == "read" and isinstance(values.get("path"), str) and _PICTURE.search(values["path"])
        return row, "picture" if is_picture else row.operation, values

    def _render(
        self, operation: Operation, values: dict[str, Any], own_names: Mapping[str, str]
    ) -> tuple[ToolRow, str, Any] | None:
        """Return the target's row for an operation, and the call's name and arguments; None without a counterpart.

        An argument that the target's tool does not have keeps its own name.
        """
        rows: dict[Operation, ToolRow] = {row.operation: row for row in reversed(TOOLS.get(self._target, ()))}
        chosen = self._choose(operation, values, rows)
        if chosen is None or (row := rows.get(chosen[0])) is None:
            return None
        values = chosen[1]
        if row.free_text is not None:
            rest = values.keys() - {row.free_text}
            return (row, row.names[0], values[row.free_text]) if not rest else None
        if row.command is not None:
            return self._render_command(row, values, rows.get("shell"), own_names)
        if (last := row.arguments.get("count")) is not None and last.form == "last-line":
            values = _shift(values, _first_line(values) - 1)
        if (prompt := row.arguments.get("prompt")) is not None and prompt.form == "with-url":
            values = _join_url(values)
        arguments: dict[str, Any] = {}
        for key, value in values.items():
            argument = row.arguments.get(key)
            if argument is None:
                arguments[own_names.get(key, key)] = value
            else:
                arguments[argument.name] = _write_value(value, argument)
        return row, row.names[0], _put_items(arguments, row)

    def _choose(
        self, operation: Operation, values: dict[str, Any], rows: Mapping[Operation, ToolRow]
    ) -> tuple[Operation, dict[str, Any]] | None:
        """Return an operation that the target has: a patch for an edit or a write, or one of those for a patch.

        A write that a patch can't express is a command; None for such an edit. A target that has all three uses one or
        the other, by its model; edits are what most models have.
        """
        if operation == "picture" and operation not in rows:
            return "read", values
        if operation == "patch" and "edit" in rows:
            change = parse_patch(values["text"]) if values.keys() == {"text"} else None
            match change:
                case FileWrite():
                    return "write", {"path": self._absolute(change.path), "content": change.content}
                case FileEdit():
                    return "edit", {"path": self._absolute(change.path), "old": change.old, "new": change.new}
                case None:
                    return operation, values
        row = rows.get(operation)
        if operation not in ("edit", "write") or (row is not None and row.command is None):
            return operation, values
        patch = _as_patch(operation, values)
        if patch is None:
            is_writable = row is not None and _are_texts(values.get("path"), values.get("content"))
            return (operation, values) if is_writable else None
        if "note" in values:
            self._removed.append("the reason of an edit removed: a patch has no place for it")
        return "patch", {"text": patch}

    def _absolute(self, path: str) -> str:
        if self._cwd is None or _ROOT.match(path):
            return path
        separator = "/" if self._cwd.startswith("/") else "\\"
        return f"{self._cwd.rstrip(separator)}{separator}{path}"

    def _render_command(
        self, row: ToolRow, values: dict[str, Any], shell: ToolRow | None, own_names: Mapping[str, str]
    ) -> tuple[ToolRow, str, Any] | None:
        if shell is None or row.command is None:
            return None
        values = dict(values)
        words: list[str] = []
        for word in row.command.split():
            if word == "{flags}":
                given = [(key, form) for key, form in row.flags.items() if values.get(key) not in (None, False)]
                words += [form.format(shlex.quote(str(values.pop(key)))) for key, form in given]
            elif (found := _PLACEHOLDER.search(word)) is None:
                words.append(word)
            elif (value := values.pop(found[1], None)) is not None:
                words.append(word.replace(found[0], shlex.quote(str(value))))
            elif found[1] == "path":
                words.remove("--")
            else:
                return None
        command = " ".join(words)
        numbers = {key: values.pop(key) for key in ("line", "count") if isinstance(values.get(key), int)}
        if numbers:
            first = numbers.get("line", 1)
            last = first + numbers["count"] - 1 if "count" in numbers else "$"
            command += f" | sed -n '{first},{last}p'"
        rest = {own_names.get(key, key): value for key, value in values.items()}
        return shell, shell.names[0], {shell.arguments["command"].name: command, **rest}

    # --------------------------------------------------------------------------------------------------------- results

    def _translate_result(self, response: ToolResponse) -> ToolResponse:
        if response.name and response.name != (name := self._names.get(response.call_id, response.name)):
            response = edit_block(response, name=name)
        step = self._steps.get(response.call_id)
        blocks = response.content
        if step is None or not blocks or not all(isinstance(block, Text) for block in blocks):
            return response
        text, code = _read_result(text_of(blocks), step.source, error=response.error)
        written, error = _write_result(text, code, step.target, error=response.error)
        if (text_of(blocks), response.error) == (written, error):
            return response
        return edit_block(response, content=(Text(written),), error=error)


def _as_patch(operation: Operation, values: dict[str, Any]) -> str | None:
    """Return an edit or a write as a patch; None if a patch can't express it.

    A patch has no place for the note of an edit.
    """
    values = {key: value for key, value in values.items() if operation != "edit" or key != "note"}
    texts = {key: values.get(key) for key in ("path", "content", "old", "new")}
    path = texts["path"]
    if operation == "write" and values.keys() == {"path", "content"} and _are_texts(path, texts["content"]):
        return render_write(FileWrite(cast("str", path), cast("str", texts["content"])))
    if operation == "edit" and values.keys() == {"path", "old", "new"} and _are_texts(*values.values()):
        return render_edit(FileEdit(cast("str", path), cast("str", texts["old"]), cast("str", texts["new"])))
    return None


def _are_texts(*values: object) -> bool:
    return all(isinstance(value, str) for value in values)


def _accepts(row: ToolRow, arguments: object) -> bool:
    """Return whether all arguments are among those of a tool."""
    if row.free_text is not None or not isinstance(arguments, dict):
        return isinstance(arguments, str) == (row.free_text is not None)
    names = {argument.item_of or argument.name for argument in row.arguments.values()}
    return cast("dict[str, Any]", arguments).keys() <= names | row.implied.keys()


def _join_command(parts: list[Any]) -> Any:
    """Return a command given as a list: the script that a shell gets, else the words quoted."""
    if not all(isinstance(part, str) for part in parts):
        return parts
    flags = [part.lower() for part in parts[1:-1]]
    if flags and _SHELL.fullmatch(parts[0]) and _SHELL_FLAGS.issuperset(flags):
        return parts[-1]
    return shlex.join(parts)


def _first_line(values: Mapping[str, Any]) -> int:
    line = values.get("line")
    return line if isinstance(line, int) else 1


def _shift(values: dict[str, Any], lines: int) -> dict[str, Any]:
    """Return arguments with the number of lines as the last line, or the last line as their number."""
    count = values.get("count")
    return {**values, "count": count + lines} if isinstance(count, int) else values


def _split_url(values: dict[str, Any]) -> dict[str, Any]:
    """Return arguments with the first URL of the prompt, which is removed from its end."""
    prompt = values.get("prompt")
    found = _URL.search(prompt) if isinstance(prompt, str) else None
    if found is None or "url" in values:
        return values
    rest = found.string[: found.start()].removesuffix(" ") if found.end() == len(found.string) else found.string
    others = {key: value for key, value in values.items() if key != "prompt"}
    return {"url": found[0], **({"prompt": rest} if rest else {}), **others}


def _join_url(values: dict[str, Any]) -> dict[str, Any]:
    """Return arguments with the URL at the end of the prompt, unless that has it."""
    url, prompt = values.get("url"), values.get("prompt", "")
    if not isinstance(url, str) or not isinstance(prompt, str):
        return values
    others = {key: value for key, value in values.items() if key not in ("url", "prompt")}
    return {"prompt": prompt if url in prompt else f"{prompt} {url}" if prompt else url, **others}


def _item_names(row: ToolRow) -> dict[str, str]:
    """Return the arguments that are in the only item of a list, with the name of that list."""
    return {argument.name: argument.item_of for argument in row.arguments.values() if argument.item_of is not None}


def _take_items(arguments: dict[str, Any], row: ToolRow) -> dict[str, Any] | None:
    """Return arguments with those in the only item of a list beside the others; None if there are several items."""
    for name in set(_item_names(row).values()) & arguments.keys():
        items = list_of(arguments[name])
        if len(items) != 1 or not isinstance(items[0], dict):
            return None
        rest = {key: value for key, value in arguments.items() if key != name}
        arguments = {**rest, **cast("dict[str, Any]", items[0])}
    return arguments


def _put_items(arguments: dict[str, Any], row: ToolRow) -> dict[str, Any]:
    """Return arguments with those that belong there in the only item of a list."""
    lists = _item_names(row)
    written = {key: value for key, value in arguments.items() if key not in lists}
    for key, name in lists.items():
        if key in arguments:
            written.setdefault(name, [{}])[0][key] = arguments[key]
    return written


def _read_value(value: Any, argument: Argument) -> Any:
    """Return a client's value in the form of the operation."""
    match argument.form:
        case "seconds":
            return round(value * 1000) if isinstance(value, int | float) else value
        case "from-zero":
            return value + 1 if isinstance(value, int) else value
        case "states":
            return _rename_items(value, {"state": "status"}, _STATUSES)
        case "steps" | "todos" | "descriptions":
            return _rename_items(value, {_ITEM_TEXTS[argument.form]: "text"})
        case "same" | "last-line" | "with-url":
            return value


def _write_value(value: Any, argument: Argument) -> Any:
    """Return the value of an operation in the client's form."""
    match argument.form:
        case "seconds":
            return (value // 1000 if value % 1000 == 0 else value / 1000) if isinstance(value, int | float) else value
        case "from-zero":
            return value - 1 if isinstance(value, int) else value
        case "states":
            return _rename_items(value, {"status": "state"}, {new: old for old, new in _STATUSES.items()})
        case "steps" | "todos" | "descriptions":
            return _rename_items(value, {"text": _ITEM_TEXTS[argument.form]})
        case "same" | "last-line" | "with-url":
            return value


def _rename_items(items: Any, names: Mapping[str, str], values: Mapping[str, str] | None = None) -> Any:
    """Rename the keys of plan items, and the values of the keys that are renamed."""
    if not isinstance(items, list):
        return items
    renamed: list[Any] = []
    for item in cast("list[Any]", items):
        fields = object_of(item)
        new = {
            names.get(key, key): (values or {}).get(value, value) if key in names and isinstance(value, str) else value
            for key, value in fields.items()
        }
        renamed.append(new if fields else item)
    return renamed


def _read_result(text: str, row: ToolRow, *, error: bool) -> tuple[str, int | None]:
    """Return the output of a tool and its exit code, without the header that the client writes."""
    match row.header:
        case "exec":
            found = _EXEC_HEADER.match(text)
            code = (found["first"] or found["second"]) if found else None
            return (text[found.end() :], int(code) if code else None) if found else (text, None)
        case "exit-line":
            found = _EXIT_LINE.match(text) if error else None
            return (text[found.end() :], int(found["code"])) if found else (text, None if error else 0)
        case "report":
            found = _REPORT.match(text)
            output = found["output"] if found and found["output"] != "(empty)" else ""
            return (output, int(found["code"] or 0)) if found else (text, None)
        case "exit-end":
            found = _EXIT_END.search(text) if error else None
            return (text[: found.start()], int(found["code"])) if found else (text, None if error else 0)
        case "none":
            return text, None


def _write_result(text: str, code: int | None, row: ToolRow, *, error: bool) -> tuple[str, bool]:
    """Return a tool's output with the client's header, and whether it is an error."""
    match row.header:
        case "exec" if code is not None:
            return f"Process exited with code {code}\nOutput:\n{text}", False
        case "exit-line" if code:
            return f"Exit code {code}\n{text}", True
        case "report" if code is not None:
            return f"Output: {text}" + (f"\nExit Code: {code}" if code else ""), False
        case "exit-end" if code:
            return "\n\n".join(filter(None, (text, f"Command exited with code {code}"))), True
        case "none" if code:
            return f"Exit code {code}\n{text}", error
        case _:
            return text, error
