"""`glob` and `grep`: searching files by name and by content."""

from __future__ import annotations

import errno
import os
import stat
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

from segue.runtime.confine import Place, admit, locate, open_file, question_for
from segue.runtime.patterns import Pattern, path_glob
from segue.runtime.tooling import Arguments, Context, Question, Tool, ToolError
from segue.runtime.tools.texts import decode, valid
from segue.runtime.tools.walking import Entry, walk

__all__ = ["Hidden", "glob", "grep"]

Hidden = Callable[[str], bool]
"""Whether a rule denies reading the file with this display path."""

_FILES = 1_000
_MATCHES = 200
_MOST_MATCHES = 2_000
_WIDTH = 500
_LARGEST = 10_000_000
# Why files were skipped; a count precedes it.
_DENIED = "passed over: a rule forbids to read them"
_LINK = "passed over: links are not followed"
_IRREGULAR = "passed over: pipes, devices and the like"
_TOO_LARGE = f"passed over: larger than {_LARGEST // 1_000_000} MB"
_UNREADABLE = "could not be read"


def _at(place: Place, path: str) -> str:
    """The display path of a path relative to a resolved folder."""
    return path if place.shown == "." else f"{place.shown.rstrip('/')}/{path}"


# ----------------------------------------------------------------------------------------------------------------- glob


def _glob(arguments: Arguments, context: Context, hidden: Hidden) -> str:
    place = locate(arguments.get("path") or ".", context.folder)
    admit(context, "glob", place)
    text: str = arguments["pattern"].removeprefix("./")
    if text.startswith("/") or ".." in text.split("/"):
        raise ToolError("the pattern is relative to path; give the folder there and not in the pattern")
    pattern = path_glob(text if "/" in text else f"**/{text}")
    limit = arguments.get("limit", _FILES)
    found: list[str] = []
    everything = arguments.get("ignored", False)
    for entry in walk(place, everything=everything, stop=context.cancelled.is_set):
        if pattern.in_(entry.path) and not hidden(_at(place, entry.path)):
            if len(found) == limit:
                return valid("\n".join([*found, f"[the first {limit:,}; there are more, so narrow the pattern]"]))
            found.append(_at(place, entry.path) + ("/" if entry.folder else ""))
    if not found:
        ignored = "" if everything else " (files that git ignores were left out)"
        return f"nothing fits {text} in {place.shown}{ignored}"
    return valid("\n".join(found))


def glob(hidden: Hidden = lambda path: False) -> Tool:
    return Tool(
        "glob",
        "Finds files and folders by name, recursively. * stays within one name, ** crosses folders, {a,b} and [abc] "
        "work: «*.py» finds all Python files below, «src/**/test_*.ts» those of a part. What git ignores, .git and "
        "node_modules are left out.",
        {
            "type": "object",
            "properties": {
                "pattern": {"type": "string", "minLength": 1, "description": "The glob, relative to path."},
                "path": {"type": "string", "description": "Where to look. Default: the working folder."},
                "ignored": {"type": "boolean", "description": "Look at what git ignores, too. Default false."},
                "limit": {"type": "integer", "minimum": 1, "maximum": 10_000, "description": f"Default {_FILES}."},
            },
            "required": ["pattern"],
            "additionalProperties": False,
        },
        lambda arguments, context: _glob(arguments, context, hidden),
        question=lambda arguments, folder: _ask("glob", arguments, folder),
        shown=lambda arguments: str(arguments.get("pattern", "")),
    )


def _ask(tool: str, arguments: Arguments, folder: Path) -> Question:
    return question_for(tool, "search", locate(arguments.get("path") or ".", folder))


# ----------------------------------------------------------------------------------------------------------------- grep


class _Search:
    """The patterns, limits and results of one search."""

    def __init__(self, arguments: Arguments) -> None:
        text: str = arguments["pattern"]
        if arguments.get("literal", False):
            text = "".join(f"\\{letter}" if letter in r"\.+*?()|[]{}^$/" else letter for letter in text)
        ignore_case = arguments.get("ignore_case", False)
        self.line = Pattern(text, ignore_case=ignore_case)
        # Without anchors the whole text is matched first: one match instead of one for each line.
        anchored = "\\A" in text or "\\z" in text or "^" in text or "$" in text
        self.file = None if anchored else self.line
        self.around: int = arguments.get("context", 0)
        self.names_only: bool = arguments.get("files_only", False)
        self.left: int = arguments.get("limit", _MATCHES)
        self.more = False
        self.skipped: Counter[str] = Counter()
        self.found: list[str] = []

    def look(self, shown: str, data: bytes) -> None:
        decoded = decode(data)
        if decoded is None or (self.file is not None and not self.file.in_(decoded.text)):
            return
        lines = [line.rstrip("\r") for line in decoded.text.split("\n")]
        if lines and not lines[-1]:
            lines.pop()
        matching = (number for number, line in enumerate(lines) if self.line.in_(line))
        if self.names_only:
            if next(matching, None) is not None:
                self._take(shown)
        else:
            self._quote(shown, lines, matching)

    def _take(self, line: str) -> None:
        if self.left:
            self.left -= 1
            self.found.append(line)
        else:
            self.more = True

    def _quote(self, shown: str, lines: list[str], matching: Iterator[int]) -> None:
        matches = list(islice(matching, self.left + 1))
        if len(matches) > self.left:
            self.more = True
            matches.pop()
        self.left -= len(matches)
        chosen = set(matches)
        last = -1
        for match in matches:
            start = max(match - self.around, last + 1)
            if self.around and self.found and start > last + 1:
                self.found.append("--")
            end = min(match + self.around + 1, len(lines))
            for at in range(start, end):
                mark = ":" if at in chosen else "-"
                self.found.append(f"{shown}{mark}{at + 1}{mark}{_short(lines[at])}")
            last = max(last, end - 1)


def _short(line: str) -> str:
    return line if len(line) <= _WIDTH else f"{line[:_WIDTH]}…"


def _content(entry: Entry) -> bytes | str:
    """The content of a file, or the reason why it was skipped."""
    try:
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        handle = os.open(entry.name, flags, dir_fd=entry.handle)
    except OSError as error:
        return _LINK if error.errno == errno.ELOOP else _UNREADABLE
    with os.fdopen(handle, "rb") as file:
        found = os.fstat(file.fileno())
        if not stat.S_ISREG(found.st_mode):
            return _IRREGULAR
        if found.st_size > _LARGEST:
            return _TOO_LARGE
        return file.read(_LARGEST)


def _grep(arguments: Arguments, context: Context, hidden: Hidden) -> str:
    place = locate(arguments.get("path") or ".", context.folder)
    admit(context, "grep", place)
    search = _Search(arguments)
    if place.path.is_dir():
        _search_tree(search, place, arguments, context, hidden)
    elif hidden(place.shown):
        raise ToolError(f"a rule forbids to read {place.shown}")
    else:
        with os.fdopen(open_file(place), "rb") as file:
            search.look(place.shown, file.read(_LARGEST))
    notes: list[str] = []
    if search.more:
        notes.append("there are more matches; narrow the pattern or the path")
    notes += [f"{_files(count)} {why}" for why, count in search.skipped.items()]
    if not search.found:
        notes.insert(0, f"nothing fits in {place.shown}")
    return valid("\n".join([*search.found, *(f"[{note}]" for note in notes)]))


def _search_tree(search: _Search, place: Place, arguments: Arguments, context: Context, hidden: Hidden) -> None:
    file_glob = arguments.get("glob")
    names = path_glob(file_glob if "/" in file_glob else f"**/{file_glob}") if file_glob else None
    for entry in walk(place, everything=arguments.get("ignored", False), stop=context.cancelled.is_set):
        if entry.folder or (names is not None and not names.in_(entry.path)):
            continue
        if context.cancelled.is_set() or search.more:
            return
        shown = _at(place, entry.path)
        if hidden(shown):
            search.skipped[_DENIED] += 1
            continue
        data = _content(entry)
        if isinstance(data, bytes):
            search.look(shown, data)
        else:
            search.skipped[data] += 1


def _files(count: int) -> str:
    return f"{count:,} file{'' if count == 1 else 's'}"


def grep(hidden: Hidden = lambda path: False) -> Tool:
    return Tool(
        "grep",
        "Searches the contents of files line by line with a regular expression (no look-around, no back-references). "
        "Gives «path:line number:line». What git ignores, .git, node_modules and binary files are left out.",
        {
            "type": "object",
            "properties": {
                "pattern": {"type": "string", "minLength": 1, "description": "The regular expression."},
                "path": {"type": "string", "description": "A folder or a file. Default: the working folder."},
                "glob": {"type": "string", "description": "Only files whose name fits, such as *.py or src/**/*.ts."},
                "ignore_case": {"type": "boolean", "description": "Default false."},
                "literal": {"type": "boolean", "description": "Take the pattern as plain text. Default false."},
                "context": {
                    "type": "integer",
                    "minimum": 0,
                    "maximum": 20,
                    "description": "Lines to show before and after each match. Default 0.",
                },
                "files_only": {"type": "boolean", "description": "Give only the names of files. Default false."},
                "ignored": {"type": "boolean", "description": "Look at what git ignores, too. Default false."},
                "limit": {
                    "type": "integer",
                    "minimum": 1,
                    "maximum": _MOST_MATCHES,
                    "description": f"How many matches at most. Default {_MATCHES}.",
                },
            },
            "required": ["pattern"],
            "additionalProperties": False,
        },
        lambda arguments, context: _grep(arguments, context, hidden),
        question=lambda arguments, folder: _ask("grep", arguments, folder),
        shown=lambda arguments: str(arguments.get("pattern", "")),
    )
