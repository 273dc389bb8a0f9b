"""The tools `glob` and `grep`, which search files by name and by content."""

from __future__ import annotations

import errno
import os
import stat
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

from segue.canonical.json import replace_surrogates
from segue.errors import format_count
from segue.runtime.patterns import Pattern, path_pattern
from segue.runtime.sandbox import ResolvedPath, check_access, make_approval_request, open_file, resolve
from segue.runtime.tool_types import ApprovalRequest, Arguments, Context, Tool, ToolError
from segue.runtime.tools.text_encoding import decode
from segue.runtime.tools.walk import Entry, walk

_IsDenied = Callable[[str], bool]
"""Whether a rule denies reading the file with this display path."""

_DEFAULT_FILES = 1_000
_DEFAULT_MATCHES = 200
_MAX_MATCHES = 2_000
_MAX_WIDTH = 500
_MAX_FILE_SIZE = 10_000_000
# Why files were skipped; a count precedes it.
_DENIED = "skipped: a rule denies reading them"
_LINK = "skipped: links are not followed"
_IRREGULAR = "skipped: pipes, devices and the like"
_TOO_LARGE = f"skipped: larger than {_MAX_FILE_SIZE // 1_000_000} MB"
_UNREADABLE = "could not be read"


def _display_below(place: ResolvedPath, path: str) -> str:
    """Return the display path of a path relative to a resolved folder."""
    return path if place.display == "." else f"{place.display.rstrip('/')}/{path}"


def _add_toolbox_rules(tool: str, is_denied: _IsDenied, context: Context) -> _IsDenied:
    """Return a function for the paths that this function denies, or a rule of the toolbox."""
    return lambda path: is_denied(path) or any(context.is_denied(name, path) for name in ("read_file", tool))


# ----------------------------------------------------------------------------------------------------------------- glob


def _run_glob(arguments: Arguments, context: Context, is_denied: _IsDenied) -> str:
    place = resolve(arguments.get("path") or ".", context.folder)
    check_access(context, "glob", place)
    text: str = arguments["pattern"].removeprefix("./")
    if text.startswith("/") or ".." in text.split("/"):
        raise ToolError("the pattern is relative to path; give the folder there and not in the pattern")
    pattern = path_pattern(text if "/" in text else f"**/{text}")
    limit = arguments.get("limit", _DEFAULT_FILES)
    paths: list[str] = []
    include_ignored = arguments.get("ignored", False)
    for entry in walk(place, include_ignored=include_ignored, is_cancelled=context.cancelled.is_set):
        if pattern.matches(entry.path) and not is_denied(_display_below(place, entry.path)):
            if len(paths) == limit:
                return replace_surrogates(
                    "\n".join([*paths, f"[the first {limit:,}; there are more, so narrow the pattern]"])
                )
            paths.append(_display_below(place, entry.path) + ("/" if entry.is_folder else ""))
    if not paths:
        ignored = "" if include_ignored else " (files that git ignores were left out)"
        return f"no match for {text} in {place.display}{ignored}"
    return replace_surrogates("\n".join(paths))


def glob(is_denied: _IsDenied = lambda path: False) -> Tool:
    return Tool(
        "glob",
        "Finds files and folders by name, recursively. * matches within one name, ** across folders; {a,b} and [abc] "
        "are supported. «*.py» finds all Python files, «src/**/test_*.ts» the TypeScript tests below src. Files that "
        "git ignores, .git and node_modules are skipped.",
        {
            "type": "object",
            "properties": {
                "pattern": {"type": "string", "minLength": 1, "description": "The glob, relative to path."},
                "path": {"type": "string", "description": "The folder to search. Default: the working folder."},
                "ignored": {"type": "boolean", "description": "Include files that git ignores. Default false."},
                "limit": {
                    "type": "integer",
                    "minimum": 1,
                    "maximum": 10_000,
                    "description": f"Default {_DEFAULT_FILES}.",
                },
            },
            "required": ["pattern"],
            "additionalProperties": False,
        },
        lambda arguments, context: _run_glob(arguments, context, _add_toolbox_rules("glob", is_denied, context)),
        approval_request=lambda arguments, folder: _search_approval("glob", arguments, folder),
        summarize=lambda arguments: str(arguments.get("pattern", "")),
    )


def _search_approval(tool: str, arguments: Arguments, folder: Path) -> ApprovalRequest:
    return make_approval_request(tool, "search", resolve(arguments.get("path") or ".", folder))


# ----------------------------------------------------------------------------------------------------------------- grep


class _Search:
    """The patterns, limits and results of one search."""

    def __init__(self, arguments: Arguments) -> None:
        text: str = arguments["pattern"]
        if arguments.get("literal", False):
            text = "".join(f"\\{letter}" if letter in r"\.+*?()|[]{}^$/" else letter for letter in text)
        ignore_case = arguments.get("ignore_case", False)
        self.line_pattern = Pattern(text, ignore_case=ignore_case)
        # Without anchors the whole text is matched first: one match instead of one for each line.
        anchored = "\\A" in text or "\\z" in text or "^" in text or "$" in text
        self.file_pattern = None if anchored else self.line_pattern
        self.context_lines: int = arguments.get("context", 0)
        self.names_only: bool = arguments.get("files_only", False)
        self.remaining: int = arguments.get("limit", _DEFAULT_MATCHES)
        self.has_more = False
        self.skipped: Counter[str] = Counter()
        self.lines: list[str] = []

    def search_text(self, display_path: str, data: bytes) -> None:
        decoded = decode(data)
        if decoded is None or (self.file_pattern is not None and not self.file_pattern.matches(decoded.text)):
            return
        lines = [line.rstrip("\r") for line in decoded.text.split("\n")]
        if lines and not lines[-1]:
            lines.pop()
        matching = (number for number, line in enumerate(lines) if self.line_pattern.matches(line))
        if self.names_only:
            if next(matching, None) is not None:
                self._add(display_path)
        else:
            self._add_matches(display_path, lines, matching)

    def _add(self, line: str) -> None:
        if self.remaining:
            self.remaining -= 1
            self.lines.append(line)
        else:
            self.has_more = True

    def _add_matches(self, display_path: str, lines: list[str], matching: Iterator[int]) -> None:
        matches = list(islice(matching, self.remaining + 1))
        if len(matches) > self.remaining:
            self.has_more = True
            matches.pop()
        self.remaining -= len(matches)
        chosen = set(matches)
        last = -1
        for match in matches:
            start = max(match - self.context_lines, last + 1)
            if self.context_lines and self.lines and start > last + 1:
                self.lines.append("--")
            end = min(match + self.context_lines + 1, len(lines))
            for at in range(start, end):
                mark = ":" if at in chosen else "-"
                self.lines.append(f"{display_path}{mark}{at + 1}{mark}{_shorten(lines[at])}")
            last = max(last, end - 1)


def _shorten(line: str) -> str:
    return line if len(line) <= _MAX_WIDTH else f"{line[:_MAX_WIDTH]}…"


def _read_content(entry: Entry) -> bytes | str:
    """Return the content of a file, or the reason why it was skipped."""
    try:
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        handle = os.open(entry.name, flags, dir_fd=entry.handle)
    except OSError as error:
        return _LINK if error.errno == errno.ELOOP else _UNREADABLE
    with os.fdopen(handle, "rb") as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            return _IRREGULAR
        if status.st_size > _MAX_FILE_SIZE:
            return _TOO_LARGE
        return file.read(_MAX_FILE_SIZE)


def _run_grep(arguments: Arguments, context: Context, is_denied: _IsDenied) -> str:
    place = resolve(arguments.get("path") or ".", context.folder)
    check_access(context, "grep", place)
    search = _Search(arguments)
    if place.path.is_dir():
        _search_tree(search, place, arguments, context, is_denied)
    elif is_denied(place.display):
        raise ToolError(f"a rule denies reading {place.display}")
    else:
        with os.fdopen(open_file(place), "rb") as file:
            search.search_text(place.display, file.read(_MAX_FILE_SIZE))
    notes: list[str] = []
    if search.has_more:
        notes.append("there are more matches; narrow the pattern or the path")
    notes += [f"{_format_file_count(count)} {reason}" for reason, count in search.skipped.items()]
    if not search.lines:
        notes.insert(0, f"no match in {place.display}")
    return replace_surrogates("\n".join([*search.lines, *(f"[{note}]" for note in notes)]))


def _search_tree(
    search: _Search, place: ResolvedPath, arguments: Arguments, context: Context, is_denied: _IsDenied
) -> None:
    file_glob = arguments.get("glob")
    names = path_pattern(file_glob if "/" in file_glob else f"**/{file_glob}") if file_glob else None
    for entry in walk(place, include_ignored=arguments.get("ignored", False), is_cancelled=context.cancelled.is_set):
        if entry.is_folder or (names is not None and not names.matches(entry.path)):
            continue
        if context.cancelled.is_set() or search.has_more:
            return
        display_path = _display_below(place, entry.path)
        if is_denied(display_path):
            search.skipped[_DENIED] += 1
            continue
        data = _read_content(entry)
        if isinstance(data, bytes):
            search.search_text(display_path, data)
        else:
            search.skipped[data] += 1


def _format_file_count(count: int) -> str:
    return format_count(count, "file")


def grep(is_denied: _IsDenied = lambda path: False) -> Tool:
    return Tool(
        "grep",
        "Searches the contents of files line by line with a regular expression (no look-around, no back-references). "
        "Returns «path:line number:line». Files that git ignores, .git, node_modules and binary files are skipped.",
        {
            "type": "object",
            "properties": {
                "pattern": {"type": "string", "minLength": 1, "description": "The regular expression."},
                "path": {"type": "string", "description": "A folder or a file. Default: the working folder."},
                "glob": {"type": "string", "description": "Only files that match, such as *.py or src/**/*.ts."},
                "ignore_case": {"type": "boolean", "description": "Default false."},
                "literal": {"type": "boolean", "description": "Match the pattern as plain text. Default false."},
                "context": {
                    "type": "integer",
                    "minimum": 0,
                    "maximum": 20,
                    "description": "Lines to show before and after each match. Default 0.",
                },
                "files_only": {"type": "boolean", "description": "Return only the names of files. Default false."},
                "ignored": {"type": "boolean", "description": "Include files that git ignores. Default false."},
                "limit": {
                    "type": "integer",
                    "minimum": 1,
                    "maximum": _MAX_MATCHES,
                    "description": f"How many matches at most. Default {_DEFAULT_MATCHES}.",
                },
            },
            "required": ["pattern"],
            "additionalProperties": False,
        },
        lambda arguments, context: _run_grep(arguments, context, _add_toolbox_rules("grep", is_denied, context)),
        approval_request=lambda arguments, folder: _search_approval("grep", arguments, folder),
        summarize=lambda arguments: str(arguments.get("pattern", "")),
    )
