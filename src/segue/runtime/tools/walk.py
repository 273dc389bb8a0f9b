"""`walk`: the files below a folder. Links are not followed, and files that git ignores are skipped."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Generator, Iterator
from contextlib import suppress
from pathlib import PurePosixPath

from msgspec import Struct

from segue.runtime.patterns import Pattern, glob_to_regex
from segue.runtime.sandbox import ResolvedPath, open_folder
from segue.runtime.tool_types import ToolError

_SKIPPED_NAMES = """
.git .hg .svn .jj node_modules __pycache__ .venv venv .tox .nox .mypy_cache .ruff_cache .pytest_cache .hypothesis
.eggs .gradle .terraform .next .nuxt .cache
"""
_SKIPPED = frozenset(_SKIPPED_NAMES.split())
_MAX_IGNORE_FILE = 200_000


class Entry(Struct, frozen=True):
    """A file or folder in the tree. `path` is relative to the start of the walk, `name` to the open folder `handle`."""

    path: str
    name: str
    handle: int
    is_folder: bool


class _IgnoreRule(Struct, frozen=True):
    """One line of a .gitignore in the folder `base`."""

    base: str
    pattern: Pattern
    folders_only: bool
    negated: bool

    def matches(self, path: str, folder: bool) -> bool:
        if self.folders_only and not folder:
            return False
        below = path[len(self.base) + 1 :] if self.base else path
        return self.pattern.matches(below)


def _read_gitignore(handle: int, base: str) -> list[_IgnoreRule]:
    try:
        file = os.open(".gitignore", os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=handle)
    except OSError:
        return []
    with os.fdopen(file, "rb") as opened:
        if not stat.S_ISREG(os.fstat(opened.fileno()).st_mode):
            return []
        text = opened.read(_MAX_IGNORE_FILE).decode("utf-8", "replace")
    rules: list[_IgnoreRule] = []
    for line in text.splitlines():
        line = line.rstrip()
        if not line or line.startswith("#"):
            continue
        negated = line.startswith("!")
        line = line.removeprefix("!").removeprefix("\\")
        folders = line.endswith("/")
        line = line.rstrip("/")
        glob = line.lstrip("/") if "/" in line else f"**/{line}"
        with suppress(ToolError):
            rules.append(_IgnoreRule(base, Pattern(glob_to_regex(glob)), folders, negated))
    return rules


def _is_ignored(path: str, folder: bool, rules: list[_IgnoreRule]) -> bool:
    last = next((rule for rule in reversed(rules) if rule.matches(path, folder)), None)
    return last is not None and not last.negated


def walk(
    place: ResolvedPath, *, include_ignored: bool = False, is_cancelled: Callable[[], bool] = lambda: False
) -> Generator[Entry]:
    """Yield the files and folders below a folder, sorted by name.

    With `include_ignored` also those that git ignores. The handle of an entry is valid until the next entry. The walk
    ends when `is_cancelled` returns True.
    """
    handle = open_folder(place)
    try:
        yield from _walk_folder(handle, include_ignored, is_cancelled)
    finally:
        os.close(handle)


def _walk_folder(top: int, include_ignored: bool, is_cancelled: Callable[[], bool]) -> Iterator[Entry]:
    rules: dict[str, list[_IgnoreRule]] = {}
    # `fwalk` opens folders by handle, so a folder that is replaced by a link meanwhile is not entered.
    for root, folders, files, handle in os.fwalk(".", dir_fd=top):
        if is_cancelled():
            return
        base = root[2:]
        above = rules.get(str(PurePosixPath(base).parent) if "/" in base else "", []) if base else []
        here = above if include_ignored else above + _read_gitignore(handle, base)
        rules[base] = here
        folders.sort()
        kept: list[str] = []
        for name in folders:
            path = f"{base}/{name}" if base else name
            if include_ignored or not (name in _SKIPPED or _is_ignored(path, True, here)):
                kept.append(name)
                yield Entry(path, name, handle, True)
        folders[:] = kept
        for name in sorted(files):
            path = f"{base}/{name}" if base else name
            if include_ignored or not _is_ignored(path, False, here):
                yield Entry(path, name, handle, False)
