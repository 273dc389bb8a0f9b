"""The tools `read_file` and `list_dir`."""

from __future__ import annotations

import base64
import os
import stat
from pathlib import Path

from segue.canonical.blocks import Media, Text
from segue.canonical.json import replace_surrogates
from segue.errors import format_count
from segue.runtime.sandbox import ResolvedPath, check_access, make_approval_request, open_file, open_folder, resolve
from segue.runtime.tool_types import ApprovalRequest, Arguments, Context, Result, Tool, ToolError
from segue.runtime.tools.text_encoding import decode, describe_binary, format_size, image_mime

_DEFAULT_LINES = 2_000
_MAX_WIDTH = 2_000
_MAX_BYTES = 20_000_000
_MAX_IMAGE = 3_750_000
_MAX_ENTRIES = 1_000


def read_bytes(place: ResolvedPath, limit: int = _MAX_BYTES) -> tuple[bytes, int]:
    """Read the beginning of a file; also returns its full size."""
    with os.fdopen(open_file(place), "rb") as file:
        size = os.fstat(file.fileno()).st_size
        return file.read(limit), size


def _run_read(arguments: Arguments, context: Context) -> Result | str:
    place = resolve(arguments["path"], context.folder)
    check_access(context, "read_file", place)
    data, size = read_bytes(place)
    if mime := image_mime(data):
        return _image_result(place, data, size, mime)
    if size > len(data):
        return _read_large(place, size, arguments, context)
    decoded = decode(data)
    if decoded is None:
        raise ToolError(f"{place.display} is not a text: {describe_binary(data)}, {format_size(size)}")
    lines = decoded.text.split("\n" if "\n" in decoded.text else "\r")
    if lines and not lines[-1]:
        lines.pop()
    if not lines:
        return f"{place.display} is empty"
    start, count = arguments.get("start_line", 1), arguments.get("lines", _DEFAULT_LINES)
    if start > len(lines):
        raise ToolError(f"{place.display} has {format_count(len(lines), 'line')}; line {start:,} is past its end")
    part = lines[start - 1 : start - 1 + count]
    notes = [note for note in (decoded.note,) if note]
    if len(part) < len(lines):
        after = start + len(part)
        more = f"; continue with start_line={after}" if after <= len(lines) else ""
        notes.append(f"lines {start:,} to {after - 1:,} of {len(lines):,}{more}")
    return _format_lines(part, start, arguments, notes)


def _format_lines(lines: list[str], start: int, arguments: Arguments, notes: list[str]) -> str:
    shown = [line.rstrip("\r\n") for line in lines]
    if cut := sum(len(line) > _MAX_WIDTH for line in shown):
        shown = [line if len(line) <= _MAX_WIDTH else f"{line[:_MAX_WIDTH]}…" for line in shown]
        notes.append(f"{format_count(cut, 'line')} longer than {_MAX_WIDTH:,} characters cut")
    if arguments.get("numbered", True):
        width = len(str(start + len(shown) - 1))
        shown = [f"{number:>{width}}\t{line}" for number, line in enumerate(shown, start)]
    if notes:
        shown.append(f"[{'; '.join(notes)}]")
    return replace_surrogates("\n".join(shown))


def _read_large(place: ResolvedPath, size: int, arguments: Arguments, context: Context) -> str:
    """Read a range of lines of a file that is too large to load."""
    start, count = arguments.get("start_line", 1), arguments.get("lines", _DEFAULT_LINES)
    lines: list[str] = []
    with os.fdopen(open_file(place), "rb") as file:
        if b"\0" in file.peek(8192)[:8192]:
            raise ToolError(f"{place.display} is not a text: {describe_binary(file.peek(64))}, {format_size(size)}")
        number = 1
        while number < start + count and not context.cancelled.is_set():
            line = file.readline(_MAX_WIDTH * 8)
            if not line:
                break
            if number >= start:
                lines.append(line.decode("utf-8", "replace"))
            while line and not line.endswith(b"\n"):
                line = file.readline(1_000_000)
            number += 1
    if not lines:
        raise ToolError(f"{place.display} has no line {start:,}")
    after = start + len(lines)
    note = (
        f"lines {start:,} to {after - 1:,} of a file of {format_size(size)}; continue with start_line={after}, or use "
        "grep"
    )
    return _format_lines(lines, start, arguments, [note])


def _image_result(place: ResolvedPath, data: bytes, size: int, mime: str) -> Result:
    if size > _MAX_IMAGE:
        raise ToolError(f"{place.display} is a picture ({mime}, {format_size(size)}), too large to be shown")
    picture = Media("image", mime, base64.b64encode(data).decode(), name=place.path.name)
    return Result((Text(f"{place.display}: {mime}, {format_size(size)}"), picture))


def _read_approval(arguments: Arguments, folder: Path) -> ApprovalRequest:
    return make_approval_request("read_file", "read", resolve(arguments["path"], folder))


def read_file() -> Tool:
    return Tool(
        "read_file",
        "Reads a text file, or returns an image (PNG, JPEG, GIF, WebP). Lines are numbered, as «number, tab, line»; "
        "the numbers are not part of the file. Without a range, the first "
        f"{_DEFAULT_LINES:,} lines are returned, with a note how to continue.",
        {
            "type": "object",
            "properties": {
                "path": {"type": "string", "description": "The file, relative to the working folder or absolute."},
                "start_line": {"type": "integer", "minimum": 1, "description": "The first line to read, from 1."},
                "lines": {"type": "integer", "minimum": 1, "description": f"How many lines. Default {_DEFAULT_LINES}."},
                "numbered": {"type": "boolean", "description": "Whether lines are numbered. Default true."},
            },
            "required": ["path"],
            "additionalProperties": False,
        },
        _run_read,
        approval_request=_read_approval,
        summarize=lambda arguments: str(arguments.get("path", "")),
    )


# ------------------------------------------------------------------------------------------------------------- list_dir


def _describe_entry(handle: int, name: str) -> tuple[bool, str]:
    """Return whether the entry is a folder, and its line in the listing."""
    try:
        status = os.stat(name, dir_fd=handle, follow_symlinks=False)
        if stat.S_ISLNK(status.st_mode):
            return False, f"{name} -> {os.readlink(name, dir_fd=handle)}"
    except OSError:
        return False, f"{name} (can't be read)"
    if stat.S_ISDIR(status.st_mode):
        return True, f"{name}/"
    if stat.S_ISREG(status.st_mode):
        return False, f"{name} ({format_size(status.st_size)})"
    return False, f"{name} (not a regular file)"


def _run_list(arguments: Arguments, context: Context) -> str:
    place = resolve(arguments.get("path") or ".", context.folder)
    check_access(context, "list_dir", place)
    handle = open_folder(place)
    try:
        names = sorted(os.listdir(handle))  # noqa: PTH208
        entries = [_describe_entry(handle, name) for name in names[:_MAX_ENTRIES]]
    finally:
        os.close(handle)
    if not entries:
        return f"{place.display} is empty"
    lines = [line for _, line in sorted(entries, key=lambda entry: not entry[0])]
    if len(names) > len(entries):
        lines.append(f"[{len(entries):,} of {len(names):,} entries; use glob to find the others]")
    return replace_surrogates("\n".join(lines))


def _list_approval(arguments: Arguments, folder: Path) -> ApprovalRequest:
    return make_approval_request("list_dir", "list", resolve(arguments.get("path") or ".", folder))


def list_dir() -> Tool:
    return Tool(
        "list_dir",
        "Lists the entries of a folder: folders first (with a / at the end), then files with their sizes, and links "
        "with their targets. Not recursive; use glob for that.",
        {
            "type": "object",
            "properties": {"path": {"type": "string", "description": "The folder. Default: the working folder."}},
            "additionalProperties": False,
        },
        _run_list,
        approval_request=_list_approval,
        summarize=lambda arguments: str(arguments.get("path") or "."),
    )
