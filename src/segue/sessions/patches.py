"""Patches in the form of Codex's `apply_patch`, and single edits and writes in that form; diffs for the screen.

Only a patch of one file has a counterpart in other clients: a new file is a write, one changed place is an edit.
"""

from __future__ import annotations

import difflib

from msgspec import Struct

_BEGIN, _END = "*** Begin Patch", "*** End Patch"
_ADD, _UPDATE = "*** Add File: ", "*** Update File: "


class FileWrite(Struct, frozen=True):
    path: str
    content: str


class FileEdit(Struct, frozen=True):
    path: str
    old: str
    new: str


def parse_patch(text: str) -> FileWrite | FileEdit | None:
    """Return the one write or edit that a patch consists of; None for any other patch."""
    lines = text.strip("\n").split("\n")
    if len(lines) < 3 or lines[0].strip() != _BEGIN or lines[-1].strip() != _END:
        return None
    head, body = lines[1], lines[2:-1]
    if any(line.startswith("*** ") for line in body):
        return None
    if head.startswith(_ADD) and all(line.startswith("+") for line in body):
        return FileWrite(head[len(_ADD) :], "".join(f"{line[1:]}\n" for line in body))
    if head.startswith(_UPDATE):
        return _parse_update(head[len(_UPDATE) :], body)
    return None


def _parse_update(path: str, body: list[str]) -> FileEdit | None:
    if body and body[0].rstrip() == "@@":
        body = body[1:]
    # A line without a sign is an empty line of context.
    body = [line or " " for line in body]
    if not body or any(line[0] not in " +-" for line in body) or not any(line[0] != " " for line in body):
        return None
    old = [line[1:] for line in body if line[0] != "+"]
    new = [line[1:] for line in body if line[0] != "-"]
    return FileEdit(path, "\n".join(old), "\n".join(new)) if old else None


def render_write(write: FileWrite) -> str | None:
    """Return a write as a patch; None for content with carriage returns, or without a newline at its end."""
    if not write.content.endswith("\n") or "\r" in write.content:
        return None
    lines = write.content[:-1].split("\n")
    return "\n".join([_BEGIN, f"{_ADD}{write.path}", *(f"+{line}" for line in lines), _END, ""])


def render_edit(edit: FileEdit) -> str | None:
    """Return an edit as a patch; None without old text, or with carriage returns, which a patch can't have."""
    if not edit.old or "\r" in edit.old + edit.new:
        return None
    removed = [f"-{line}" for line in edit.old.split("\n")]
    added = [f"+{line}" for line in edit.new.split("\n")]
    return "\n".join([_BEGIN, f"{_UPDATE}{edit.path}", "@@", *removed, *added, _END, ""])


def render_diff(edit: FileEdit) -> str:
    """Return an edit as a unified diff for the screen. Lines count from the beginning of the edit, not of the file."""
    old, new = edit.old.splitlines(), edit.new.splitlines()
    return "".join(f"{line}\n" for line in difflib.unified_diff(old, new, edit.path, edit.path, lineterm=""))
