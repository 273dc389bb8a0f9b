"""`read_file` and `list_dir`."""

from __future__ import annotations

import base64
import os
import stat
from pathlib import Path

from segue.canonical.blocks import Media, Text
from segue.runtime.confine import Place, admit, locate, open_file, open_folder, question_for
from segue.runtime.tooling import Arguments, Context, Question, Result, Tool, ToolError
from segue.runtime.tools.texts import decode, kind_of, picture_mime, size_words, valid

__all__ = ["list_dir", "read_bytes", "read_file"]

_LINES = 2_000
_WIDTH = 2_000
_WHOLE = 20_000_000
_PICTURE = 3_750_000
_ENTRIES = 1_000


def read_bytes(place: Place, most: int = _WHOLE) -> tuple[bytes, int]:
    """Reads the beginning of a file; also returns its full size."""
    with os.fdopen(open_file(place), "rb") as file:
        size = os.fstat(file.fileno()).st_size
        return file.read(most), size


def _read(arguments: Arguments, context: Context) -> Result | str:
    place = locate(arguments["path"], context.folder)
    admit(context, "read_file", place)
    data, size = read_bytes(place)
    if mime := picture_mime(data):
        return _picture(place, data, size, mime)
    if size > len(data):
        return _long(place, size, arguments, context)
    found = decode(data)
    if found is None:
        raise ToolError(f"{place.shown} is not a text: {kind_of(data)}, {size_words(size)}")
    lines = found.text.split("\n" if "\n" in found.text else "\r")
    if lines and not lines[-1]:
        lines.pop()
    if not lines:
        return f"{place.shown} is empty"
    start, most = arguments.get("start_line", 1), arguments.get("lines", _LINES)
    if start > len(lines):
        raise ToolError(f"{place.shown} has {len(lines):,} lines; line {start:,} is behind its end")
    part = lines[start - 1 : start - 1 + most]
    notes = [note for note in (found.note,) if note]
    if len(part) < len(lines):
        after = start + len(part)
        more = f"; go on with start_line={after}" if after <= len(lines) else ""
        notes.append(f"lines {start:,} to {after - 1:,} of {len(lines):,}{more}")
    return _page(part, start, arguments, notes)


def _page(lines: list[str], start: int, arguments: Arguments, notes: list[str]) -> str:
    shown = [line.rstrip("\r\n") for line in lines]
    if cut := sum(len(line) > _WIDTH for line in shown):
        shown = [line if len(line) <= _WIDTH else f"{line[:_WIDTH]}…" for line in shown]
        notes.append(f"{cut:,} lines are longer than {_WIDTH:,} characters and were cut")
    if arguments.get("numbered", True):
        width = len(str(start + len(shown) - 1))
        shown = [f"{number:>{width}}\t{line}" for number, line in enumerate(shown, start)]
    if notes:
        shown.append(f"[{'; '.join(notes)}]")
    return valid("\n".join(shown))


def _long(place: Place, size: int, arguments: Arguments, context: Context) -> str:
    """Reads a range of lines of a file that is too large to load."""
    start, most = arguments.get("start_line", 1), arguments.get("lines", _LINES)
    lines: list[str] = []
    with os.fdopen(open_file(place), "rb") as file:
        if b"\0" in file.peek(8192)[:8192]:
            raise ToolError(f"{place.shown} is not a text: {kind_of(file.peek(64))}, {size_words(size)}")
        number = 1
        while number < start + most and not context.cancelled.is_set():
            line = file.readline(_WIDTH * 8)
            if not line:
                break
            if number >= start:
                lines.append(line.decode("utf-8", "replace"))
            while line and not line.endswith(b"\n"):
                line = file.readline(1_000_000)
            number += 1
    if not lines:
        raise ToolError(f"{place.shown} has no line {start:,}")
    after = start + len(lines)
    note = (
        f"lines {start:,} to {after - 1:,} of a file of {size_words(size)}; go on with start_line={after}, or use grep"
    )
    return _page(lines, start, arguments, [note])


def _picture(place: Place, data: bytes, size: int, mime: str) -> Result:
    if size > _PICTURE:
        raise ToolError(f"{place.shown} is a picture ({mime}, {size_words(size)}), too large to be shown")
    picture = Media("image", mime, base64.b64encode(data).decode(), name=place.path.name)
    return Result((Text(f"{place.shown}: {mime}, {size_words(size)}"), picture))


def _ask_read(arguments: Arguments, folder: Path) -> Question:
    return question_for("read_file", "read", locate(arguments["path"], folder))


def read_file() -> Tool:
    return Tool(
        "read_file",
        "Reads a text file, or shows a picture (PNG, JPEG, GIF, WebP). Lines come numbered, as «number, tab, line»; "
        f"the numbers are no part of the file. Without a range the first {_LINES:,} lines are given, and how to go on.",
        {
            "type": "object",
            "properties": {
                "path": {"type": "string", "description": "The file, relative to the working folder or absolute."},
                "start_line": {"type": "integer", "minimum": 1, "description": "The first line to read, from 1."},
                "lines": {"type": "integer", "minimum": 1, "description": f"How many lines. Default {_LINES}."},
                "numbered": {"type": "boolean", "description": "Whether lines are numbered. Default true."},
            },
            "required": ["path"],
            "additionalProperties": False,
        },
        _read,
        question=_ask_read,
        shown=lambda arguments: str(arguments.get("path", "")),
    )


# ------------------------------------------------------------------------------------------------------------- list_dir


def _entry(handle: int, name: str) -> tuple[bool, str]:
    """Whether the entry is a folder, and its line in the listing."""
    try:
        found = os.stat(name, dir_fd=handle, follow_symlinks=False)
        if stat.S_ISLNK(found.st_mode):
            return False, f"{name} -> {os.readlink(name, dir_fd=handle)}"
    except OSError:
        return False, f"{name} (can't be looked at)"
    if stat.S_ISDIR(found.st_mode):
        return True, f"{name}/"
    if stat.S_ISREG(found.st_mode):
        return False, f"{name} ({size_words(found.st_size)})"
    return False, f"{name} (not a regular file)"


def _list(arguments: Arguments, context: Context) -> str:
    place = locate(arguments.get("path") or ".", context.folder)
    admit(context, "list_dir", place)
    handle = open_folder(place)
    try:
        names = sorted(os.listdir(handle))  # noqa: PTH208
        entries = [_entry(handle, name) for name in names[:_ENTRIES]]
    finally:
        os.close(handle)
    if not entries:
        return f"{place.shown} is empty"
    lines = [line for _, line in sorted(entries, key=lambda entry: not entry[0])]
    if len(names) > len(entries):
        lines.append(f"[{len(entries):,} of {len(names):,} entries; use glob to find the others]")
    return valid("\n".join(lines))


def _ask_list(arguments: Arguments, folder: Path) -> Question:
    return question_for("list_dir", "list", locate(arguments.get("path") or ".", folder))


def list_dir() -> Tool:
    return Tool(
        "list_dir",
        "Lists what is in a folder: folders first (with a / at the end), then files with their sizes; links with where "
        "they lead. Not recursive; use glob for that.",
        {
            "type": "object",
            "properties": {
                "path": {"type": "string", "description": "The folder. Default: the working folder."},
            },
            "additionalProperties": False,
        },
        _list,
        question=_ask_list,
        shown=lambda arguments: str(arguments.get("path") or "."),
    )
