"""Decides which words of a simple command a wildcard of a permission rule may match; a rule must contain the others.

For the programs of `shell_table`, these are the words that the table lists. For other programs, and behind an operand
that the table does not list (`git add …`, `python x.py …`), they are all words but the options whose names usually run
another program, choose a configuration or write a file. In doubt a word is not covered.
"""

from __future__ import annotations

import math
import re
from collections import deque
from collections.abc import Sequence
from fnmatch import fnmatchcase
from functools import cache
from pathlib import PurePosixPath

from msgspec import Struct

from segue.runtime.guarded_names import has_guarded_part
from segue.runtime.tools.shell_scripts import is_harmless_awk, is_harmless_sed
from segue.runtime.tools.shell_table import READERS, READING, RESPONSE_FILES, WORK

_VERSION = re.compile(r"[-.\d]+$")
# The machine that a compiler is for, or whose tool it is: `x86_64-linux-gnu-gcc`, `llvm-nm`.
_MACHINE = re.compile(r"^(?:[\w.]+-)+")
_NUMBER = re.compile(r"-\d+[A-Za-z]?")
# The first word may be options without a dash: `tar tf x`.
_DASHLESS = ("tar", "bsdtar", "gtar")
# Without a scheme curl chooses one by the name of the host, and wget by what follows a colon.
_GUESSED = r"(?!(?:dict|ftp|imap|ldap|pop3|smtp)\.)[a-z0-9][a-z0-9.-]*(?::\d+)?(?=/|$)"
_WEB = re.compile(rf"(?:https?://|{_GUESSED})[^\0- {{[\x7f]*", re.IGNORECASE | re.ASCII)
_SCRIPT_OPTIONS = frozenset(["-e", "--expression"])

# Parts of option names that write a file or run a program, which may be shortened: `--output-file`, `--exec-p`.
_PART_NAMES = """
output out outfile outdir write save dump log logfile report junitxml xml html export target dest destination prefix
inplace place delete exec execute execdir command cmd program prog run eval script hook hooks shell rsh pager editor
config configuration rcfile plugin plugins load require import preload pack receive filter viewer renderer browser
action sequence template override pre preprocessor wrapper askpass proxy upload engine chdir sendmail inspect
privileged volume mount
"""
_PARTS = tuple(_PART_NAMES.split())
# The last parts of the names of harmless settings: `--output-format`, `--log-level`.
_SETTINGS = frozenset(["color", "encoding", "format", "level", "mode", "style", "type", "width"])
_LETTERS = frozenset("cCeEoO")
_MAX_CLUSTER = 4
# In longer clusters no path is searched for: they are not covered.
_MAX_GLUED = 256
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*[+:?!]*=", re.DOTALL)


class ShellWord(Struct, frozen=True):
    """A word of a command, without quotes. The shell may expand it: to an option, to several words, a guarded name."""

    text: str
    may_be_option: bool = False
    may_be_many: bool = False
    may_be_guarded: bool = False


class Coverage(Struct, frozen=True):
    """The words that every rule must contain (`uncovered`), and the `operands` that it must, unless it begins with `*`.

    `may_write` is whether the command may create files or change the folder.
    """

    uncovered: tuple[str, ...]
    operands: tuple[str, ...]
    may_write: bool


class _Row(Struct, frozen=True):
    """A row of the table.

    `options` has the patterns of the value of each option; none if the value is in the same word or absent, and None
    for an option without a value. `limit` is the number of operands, `after` the options that have to precede them.
    """

    operands: tuple[str, ...]
    limit: float
    after: frozenset[str]
    options: dict[str, list[str] | None]
    has_names: bool
    is_reader: bool
    is_work: bool

    def parse_option(self, word: str) -> tuple[list[str], str | None] | None:
        """Return the options in a word, and the value in it, of the last one; None if one is not listed."""
        if word.startswith("--") or self.has_names:
            name, equals, value = word.partition("=")
            is_listed = name in self.options and (not equals or self.options[name] is not None)
            return ([name], value if equals else None) if is_listed else None
        if word[1:].isascii() and word[1:].isdigit() and "-NUM" in self.options:
            return ["-NUM"], None
        names: list[str] = []
        for at, letter in enumerate(word[1:], 2):
            names.append(f"-{letter}")
            if names[-1] not in self.options:
                return None
            if self.options[names[-1]] is not None:
                return names, word[at:] or None
        return (names, None) if names else None

    def covers_operand(self, text: str, count: int, options: set[str]) -> bool:
        """Return whether another operand is covered, after so many and after these options."""
        is_preceded = not self.after or not self.after.isdisjoint(options)
        return is_preceded and count < self.limit and all(_matches(text, kind) for kind in self.operands)


def _matches(text: str, pattern: str) -> bool:
    """Return whether a text matches a glob, or does not for one that begins with `!`; `web` is an address."""
    if pattern == "web":
        return _WEB.fullmatch(text) is not None
    return not fnmatchcase(text, pattern[1:]) if pattern.startswith("!") else fnmatchcase(text, pattern)


@cache
def _read_table() -> dict[str, _Row]:
    rows: dict[str, _Row] = {}
    for section in (READERS, READING, WORK):
        for line in re.sub(r"\n  |\n#.*", " ", section).strip().split("\n"):
            names, operands, options = (part.strip() for part in f"{line} ".split(" |", 2))
            programs, _, subcommands = names.partition(": ")
            row = _make_row(operands, options, section)
            for program in programs.split(", "):
                keys = [f"{program} {name}" for name in subcommands.split(", ")] if subcommands else [program]
                rows.setdefault(program, _make_row("none", "", READING))
                rows.update(dict.fromkeys(keys, row))
    return rows


@cache
def _list_parents() -> frozenset[str]:
    """Return the programs and subcommands that have subcommands of their own in the table."""
    return frozenset(key[: space.start()] for key in _read_table() for space in re.finditer(" ", key))


def _make_row(operands: str, options: str, section: str) -> _Row:
    kinds, _, after = (part.split() for part in operands.partition("with"))
    patterns: dict[str, list[str] | None] = {} if "code" in kinds else {"--help": None, "--version": None}
    for option in options.split():
        name, equals, pattern = option.partition("=")
        if name.endswith("["):
            patterns[name[:-1]] = []
        else:
            patterns[name] = [*(patterns.get(name) or []), pattern or "*"] if equals else None
    return _Row(
        operands=tuple("*" if kind in ("any", "1", "none") else kind for kind in kinds),
        limit=0 if {"none", "code"} & set(kinds) else 1 if "1" in kinds else math.inf,
        after=frozenset(after),
        options=patterns,
        has_names=any(name[1] != "-" and len(name) > 2 and name != "-NUM" for name in patterns),
        is_reader=section is READERS,
        is_work=section is WORK,
    )


def _find_name(program: str) -> str:
    """Return the name of a program in the table, also for one with a folder or version: `/usr/bin/python3.12`."""
    name = program.rpartition("/")[2]
    bare_name = _VERSION.sub("", name)
    tool = _MACHINE.sub("", bare_name)
    names = (name, bare_name, *([tool] if tool in RESPONSE_FILES else []))
    return next((key for key in names if key in _read_table() or key in RESPONSE_FILES), name)


def find_coverage(words: Sequence[ShellWord]) -> Coverage:
    """Find the words of a simple command that a wildcard does not cover."""
    check = _Check(words[0].text)
    rest = deque(words[1:])
    while rest:
        check.read(rest)
    check.finish()
    is_reading = check.row is not None and not check.row.is_work
    may_write = not is_reading or bool(check.uncovered or check.operands)
    if may_write:
        guarded = [word.text for word in words[1:] if word.may_be_guarded or _has_guarded_path(word.text)]
        check.uncovered += sorted(set(guarded) - set(check.uncovered))
    return Coverage(tuple(check.uncovered), tuple(check.operands), may_write)


class _Check:
    """The words of one command, one after the other, and what the table covers of them."""

    def __init__(self, program: str) -> None:
        self.key = _find_name(program)
        self.row = _read_table().get(self.key)
        self._has_response_files = self.key in RESPONSE_FILES
        self.uncovered: list[str] = []
        self.operands: list[str] = []
        self._options: set[str] = set()
        self._count = 0
        self._is_ended = False
        self._has_script = False
        self._may_have_value = False
        self._before = 0

    def read(self, rest: deque[ShellWord]) -> None:
        """Read the next word, with the value if it is an option that has one."""
        row, word = self.row, rest.popleft()
        if self._is_response_file(word):
            self.uncovered.append(word.text)
        elif row is None or (self.operands and not row.is_work):
            self._read_by_name(word)
        elif row.operands == ("text",):
            return
        elif word.may_be_option and not row.is_reader:
            self.uncovered.append(word.text)
        elif word.text == "--" and not self._is_ended and not row.has_names:
            self._is_ended = True
        elif word.text[:1] == "-" and word.text != "-" and (row.is_work or not self._is_ended):
            self._read_option(word.text, word.text, row, rest)
        elif self.key in _DASHLESS and not (self._options or self.uncovered):
            # Their values follow in other words: a letter that is not listed is no value.
            is_listed = all(f"-{letter}" in row.options for letter in word.text)
            self._read_option(word.text, f"-{word.text}" if is_listed else "-", row, rest)
        elif (found := self._find_subcommand(word, rest)) is not None:
            self.key, self.row, self._before = found, _read_table()[found], len(self.uncovered)
            if self.row.is_work:
                self.operands.append(word.text)
        else:
            self._read_operand(word, row)

    def finish(self) -> None:
        row = self.row
        if row is not None and row.operands == ("code",) and not (self._options or self.uncovered or self.operands):
            self.uncovered.append("-")

    def _is_response_file(self, word: ShellWord) -> bool:
        return self._has_response_files and word.text.startswith("@")

    def _read_by_name(self, word: ShellWord) -> None:
        if word.may_be_option or _has_risky_name(word.text):
            self.uncovered.append(word.text)

    def _read_option(self, word: str, option: str, row: _Row, rest: deque[ShellWord]) -> None:
        parsed = row.parse_option(option)
        self._may_have_value = parsed is None
        if parsed is None:
            self.uncovered.append(word)
            return
        names, value = parsed
        self._options.update(names)
        patterns = row.options[names[-1]]
        if not patterns:
            return
        if value is None:
            following = rest.popleft() if rest else ShellWord("")
            value = following.text
            is_option = value[:1] == "-" and value != "-" and not _NUMBER.fullmatch(value)
            may_be_option = is_option or (following.may_be_option and not row.is_reader)
            if may_be_option or self._is_open(following, row) or self._is_response_file(following):
                self.uncovered.append(value)
        is_script = row.operands == ("script",) and names[-1] in _SCRIPT_OPTIONS
        if not any(_matches(value, pattern) for pattern in patterns) or (is_script and self._count):
            self.uncovered.append(word)
        if is_script:
            self._read_script(value)

    def _read_script(self, script: str) -> None:
        self._has_script = True
        if not (is_harmless_sed if self.key.endswith("sed") else is_harmless_awk)(script):
            self.uncovered.append(script)

    def _find_subcommand(self, word: ShellWord, rest: deque[ShellWord]) -> str | None:
        """Return the row of a subcommand of one or two words; the second is then read."""
        if self._count or word.may_be_many:
            return None
        if rest and f"{self.key} {word.text} {rest[0].text}" in _read_table():
            return f"{self.key} {word.text} {rest.popleft().text}"
        key = f"{self.key} {word.text}"
        return key if key in _read_table() else None

    def _read_operand(self, word: ShellWord, row: _Row) -> None:
        if row.operands == ("script",):
            if not self._has_script:
                self._read_script(word.text)
                if self._is_open(word, row):
                    self.uncovered.append(word.text)
        elif self._is_open(word, row) or not row.covers_operand(word.text, self._count, self._options):
            is_parent = self.key in _list_parents()
            if not self._count and self._may_have_value and is_parent:
                # The value of an option that is not listed, before the subcommand.
                self.uncovered.append(word.text)
                self._may_have_value = False
                return
            # A rule with an option that is not listed covers the operands too: `date -s *`.
            if len(self.uncovered) == self._before or row.operands == ("code",) or is_parent:
                (self.uncovered if _has_risky_name(word.text) else self.operands).append(word.text)
        self._count += 1

    @staticmethod
    def _is_open(word: ShellWord, row: _Row) -> bool:
        """Return whether the shell may expand a word to operands that the row does not cover."""
        if not word.may_be_many:
            return False
        is_prefixed = word.text[:1] not in "*?[{$"
        is_any = all(kind == "*" or (is_prefixed and kind == "!+*") for kind in row.operands)
        return row.limit == 1 or not is_any


def _has_guarded_path(word: str) -> bool:
    """Return whether a word is a guarded path or contains one as a value: `of=.git/x`, `-t.git/hooks`."""
    paths = [word, *word.split("=")]
    if word.startswith("-") and not word.startswith("--"):
        cluster = word.partition("/")[0]
        if len(cluster) > _MAX_GLUED:
            return True
        paths.extend(word[start:] for start in range(1, len(cluster)))
    return any(has_guarded_part(PurePosixPath(path).parts) for path in paths)


def _has_risky_name(word: str) -> bool:
    """Return whether a word of an unknown program is an option with the name of a risky one, or sets a variable."""
    name = word.lstrip("-").partition("=")[0]
    if not word.startswith("-"):
        return _ASSIGNMENT.match(word) is not None
    steps = re.split("[-_.]", name.lower())
    if len(steps) > 1 and (steps[0] in ("no", "without", "dry") or steps[-1] in _SETTINGS):
        return False
    if any(part.startswith(step) for step in steps if len(step) > 2 for part in _PARTS):
        return True
    letters = re.split(r"[=/.,]", word[1:], maxsplit=1)[0]
    return not word.startswith("--") and not _LETTERS.isdisjoint(letters[:_MAX_CLUSTER])
