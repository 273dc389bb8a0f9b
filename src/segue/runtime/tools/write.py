"""The tools `write_file` and `edit_file`, which replace files atomically."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from pathlib import Path

from segue.errors import format_count
from segue.runtime.sandbox import ResolvedPath, check_access, make_approval_request, replace_file, resolve
from segue.runtime.tool_types import ApprovalRequest, Arguments, Context, Tool, ToolError
from segue.runtime.tools.read import read_bytes
from segue.runtime.tools.text_encoding import DecodedText, decode, describe_binary, format_size

_MAX_FILE_SIZE = 20_000_000
_DIFF_LINES = 400
_DIFF_INPUT = 20_000


def _written_paths(arguments: Arguments, folder: Path) -> Sequence[Path]:
    try:
        return (resolve(arguments["path"], folder).path,)
    except (ToolError, KeyError, TypeError):
        return ()


def _format_diff(place: ResolvedPath, before: str, after: str) -> str:
    old, new = before.splitlines(), after.splitlines()
    if len(old) + len(new) > _DIFF_INPUT:
        return f"{len(old):,} lines become {len(new):,}; too long to be compared here"
    name = place.display
    lines = list(difflib.unified_diff(old, new, f"{name} (before)", f"{name} (after)", lineterm=""))
    if not lines and before != after:
        return "only line ends change"
    if len(lines) > _DIFF_LINES:
        lines = [*lines[:_DIFF_LINES], f"… and {format_count(len(lines) - _DIFF_LINES, 'line')} more"]
    return "\n".join(lines)


def _read_text(place: ResolvedPath) -> DecodedText:
    data, size = read_bytes(place, _MAX_FILE_SIZE)
    if size > len(data):
        raise ToolError(f"{place.display} is too large to be edited: {format_size(size)}")
    decoded = decode(data)
    if decoded is None:
        raise ToolError(f"{place.display} is not a text: {describe_binary(data)}, {format_size(size)}")
    return decoded


# ----------------------------------------------------------------------------------------------------------- write_file


def _encode_content(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise ToolError("the content has lone surrogates, which UTF-8 can't encode; nothing was written") from None


def _run_write(arguments: Arguments, context: Context) -> str:
    place = resolve(arguments["path"], context.folder)
    check_access(context, "write_file", place, change=True)
    content: str = arguments["content"]
    data = _encode_content(content)
    new = replace_file(place, data, context)
    count = content.count("\n") + bool(content and not content.endswith("\n"))
    lines = format_count(count, "line")
    return f"{'created' if new else 'replaced'} {place.display}: {lines}, {format_size(len(data))}"


def _write_approval(arguments: Arguments, folder: Path) -> ApprovalRequest:
    place = resolve(arguments["path"], folder)
    before, verb = "", "create"
    if place.path.exists():
        verb = "replace"
        try:
            before = _read_text(place).text
        except ToolError as error:
            return make_approval_request("write_file", verb, place, change=True, detail=str(error))
    return make_approval_request(
        "write_file", verb, place, change=True, detail=_format_diff(place, before, arguments["content"])
    )


def write_file() -> Tool:
    return Tool(
        "write_file",
        "Writes a whole text file (UTF-8) and creates missing folders. An existing file is replaced. To change a part "
        "of a file use edit_file.",
        {
            "type": "object",
            "properties": {
                "path": {"type": "string", "description": "The file, relative to the working folder or absolute."},
                "content": {"type": "string", "description": "All of the new content."},
            },
            "required": ["path", "content"],
            "additionalProperties": False,
        },
        _run_write,
        writes=_written_paths,
        approval_request=_write_approval,
        summarize=lambda arguments: str(arguments.get("path", "")),
    )


# ------------------------------------------------------------------------------------------------------------ edit_file


def _set_line_endings(text: str, end: str) -> str:
    return text.replace("\r\n", "\n").replace("\n", end)


def _apply_edit(place: ResolvedPath, text: str, arguments: Arguments) -> tuple[str, int]:
    """Return the text after the replacement, and the number of replacements."""
    old: str = arguments["old_string"]
    new: str = arguments["new_string"]
    if not old:
        raise ToolError("old_string is empty; use write_file to write a whole file")
    if old == new:
        raise ToolError("old_string and new_string are equal; there is nothing to change")
    if "\r\n" in text and text.count("\r\n") * 2 >= text.count("\n"):
        # Models write LF line endings, whatever the file has.
        new = _set_line_endings(new, "\r\n")
        if old not in text:
            old = _set_line_endings(old, "\r\n")
    elif old not in text and "\r\n" in old:
        old, new = _set_line_endings(old, "\n"), _set_line_endings(new, "\n")
    count = text.count(old)
    if not count:
        raise ToolError(f"old_string is not in {place.display}; nothing was changed{_describe_near_miss(text, old)}")
    if count > 1 and not arguments.get("replace_all", False):
        numbers = ", ".join(str(line) for line in _find_lines(text, old)[:10])
        raise ToolError(
            f"old_string occurs {count} times in {place.display} (lines {numbers}); nothing was changed. Include more "
            "surrounding lines so that it occurs once, or set replace_all"
        )
    return text.replace(old, new), count


def _find_lines(text: str, part: str) -> list[int]:
    numbers: list[int] = []
    at = text.find(part)
    while at >= 0 and len(numbers) < 50:
        numbers.append(text.count("\n", 0, at) + 1)
        at = text.find(part, at + len(part))
    return numbers


def _describe_near_miss(text: str, old: str) -> str:
    """Describe the most similar text in the file, to help the next attempt."""
    lines = text.splitlines()
    old_lines = [line for line in old.splitlines() if line.strip()]
    if not old_lines or not lines or len(lines) > _DIFF_INPUT:
        return ""
    first = " ".join(old_lines[0].split())
    flat = [" ".join(line.split()) for line in lines]
    span = max(len(old.splitlines()), 1)
    for number, line in enumerate(flat):
        if line == first and (flat[number : number + span] == [" ".join(row.split()) for row in old.splitlines()]):
            return f". With other whitespace it is at line {number + 1}:\n" + _quote_lines(lines, number, span)
    if first in flat:
        number = flat.index(first)
        return f". Its first line is line {number + 1}, but the lines after it differ:\n" + _quote_lines(
            lines, number, span
        )
    close = difflib.get_close_matches(first[:500], [line[:500] for line in flat if line], n=1, cutoff=0.75)
    if close:
        number = next(number for number, line in enumerate(flat) if line[:500] == close[0])
        return f". The most similar line is {number + 1}:\n" + _quote_lines(lines, number, span)
    return ""


def _quote_lines(lines: list[str], at: int, span: int) -> str:
    return "\n".join(line[:500] for line in lines[at : at + min(span, 20)])


def _run_edit(arguments: Arguments, context: Context) -> str:
    place = resolve(arguments["path"], context.folder)
    check_access(context, "edit_file", place, change=True)
    decoded = _read_text(place)
    after, count = _apply_edit(place, decoded.text, arguments)
    try:
        data = decoded.encode(after)
    except UnicodeEncodeError:
        raise ToolError(
            f"new_string has characters that {decoded.encoding}, the encoding of {place.display}, can't represent"
        ) from None
    replace_file(place, data, context)
    first = _find_lines(decoded.text, arguments["old_string"])
    where = f" at line {first[0]}" if count == 1 and first else ""
    return f"edited {place.display}{where}: {format_count(count, 'place')}, {format_size(len(data))}"


def _edit_approval(arguments: Arguments, folder: Path) -> ApprovalRequest:
    place = resolve(arguments["path"], folder)
    detail = "\n".join(
        [f"-{line}" for line in arguments["old_string"].splitlines()]
        + [f"+{line}" for line in arguments["new_string"].splitlines()]
    )
    # A file outside the folder is not read before approval, not even to show the diff.
    if place.is_inside:
        try:
            before = _read_text(place).text
            detail = _format_diff(place, before, _apply_edit(place, before, arguments)[0])
        except ToolError:
            # An earlier edit of the same batch may make it possible; if not, the call reports the error.
            detail += f"\n(this edit can't be applied to {place.display} as it is now)"
    return make_approval_request("edit_file", "edit", place, change=True, detail=detail)


def edit_file() -> Tool:
    return Tool(
        "edit_file",
        "Replaces text in a file. old_string must occur in the file exactly as given, with the same whitespace and "
        "indentation, and only once unless replace_all is set. It must not contain the line numbers of read_file.",
        {
            "type": "object",
            "properties": {
                "path": {"type": "string", "description": "The file, relative to the working folder or absolute."},
                "old_string": {"type": "string", "description": "The text to replace, with enough around it."},
                "new_string": {"type": "string", "description": "The text to put in its place."},
                "replace_all": {"type": "boolean", "description": "Replace every occurrence. Default false."},
            },
            "required": ["path", "old_string", "new_string"],
            "additionalProperties": False,
        },
        _run_edit,
        writes=_written_paths,
        approval_request=_edit_approval,
        summarize=lambda arguments: str(arguments.get("path", "")),
    )
