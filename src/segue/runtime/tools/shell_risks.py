"""Options and operands of programs that run other programs or write files.

Wildcards in permission rules do not match them: a rule has to contain them. A table lists what is known about common
programs. For all others, and for long options in general, the usual names of such options decide, with false positives
rather than false negatives.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import cache
from itertools import takewhile
from pathlib import PurePosixPath

from msgspec import Struct

from segue.runtime.guarded_names import has_guarded_part
from segue.runtime.tools.shell_risk_table import READERS, RISKS

_DEFAULT_SHORT = frozenset("cCoO")
_MAX_CLUSTER = 4
# In longer clusters no path is searched for: they are risky.
_MAX_GLUED = 256

# Parts of option names that write a file or run a program: `--output-file`, `--exec-path`, `-execdir`.
_PART_NAMES = """
output out outfile write save dump log logfile report junitxml xml html export target dest destination prefix inplace
exec execdir ok okdir fprint fprint0 fprintf fls delete command cmd program prog run eval script hook hooks shell rsh
pager editor config configuration rcfile plugin plugins load require import preload pack filter viewer browser action
extcmd difftool mergetool sequence template override pre preprocessor wrapper askpass proxy upload helper engine chdir
sendmail
"""
_PARTS = frozenset(_PART_NAMES.split())
# Long options of any program, which may be shortened: `--outp`, `--upl`.
_LONG_NAMES = """
output exec upload-pack receive-pack config config-env command compress-program use-compress-program to-command
checkpoint-action rsh rsync-path in-place open-files-in-pager extcmd files0-from junit-xml write-out log-file
"""
_LONG = tuple(_LONG_NAMES.split())

_ASSIGNMENT = re.compile(r"[^-=\s][^=]*=", re.DOTALL)
_SED_ADDRESS = r"(?:\d+|\$|/(?:[^/\\\n]|\\.)*/I?)"
_SED_COMMAND = (
    rf"(?:{_SED_ADDRESS}(?:,[+~]?{_SED_ADDRESS})?)?\s*!?\s*"
    r"(?:[pdqQ=nNDGHhxgPz]|s/(?:[^/\\\n]|\\.)*/(?:[^/\\\n]|\\.)*/[gpiI\d]*|s\|(?:[^|\\\n]|\\.)*\|(?:[^|\\\n]|\\.)*\|[gpiI\d]*)"
)
# The scripts that are known to be harmless. `w`, `W`, `e`, the flags `w` and `e` of `s`, and the rest are not.
_SED_HARMLESS = re.compile(rf"\s*{_SED_COMMAND}\s*(?:;\s*{_SED_COMMAND}\s*)*;?\s*")
_SED_SCRIPT = re.compile(r"-[a-zA-Z]*e")
_AWK_RISKY = re.compile(r"system|getline|@|(?<!\|)\|(?!\|)|print.*>|>.*print", re.DOTALL)
_TAR_HARMLESS = frozenset("tvfzjJapw")
_TAR_LONG = frozenset(
    ["list", "verbose", "file", "gzip", "bzip2", "xz", "zstd", "auto-compress", "exclude", "wildcards"]
)
_UNZIP_LISTS = frozenset("ltvzZp")
_UNZIP_HARMLESS = _UNZIP_LISTS | frozenset("cqCMhms12")
_CURL_FILE = re.compile(r"@|-[^-]*H@|--header=@|--expand-")
_TRANSPORT = re.compile(r"(?:ext|fd)::|.*(?:://|@)-")
_VERSION = re.compile(r"[-.\d]+$")
# Longer scripts are not examined.
_MAX_SCRIPT = 2_000


class _Row(Struct, frozen=True):
    """What the table has on a program. `values` and `long_values` are harmless options with a value, `flags` without.

    `long_flags` are harmless long options, some of them only with the value that they are listed with.
    """

    short: frozenset[str] = _DEFAULT_SHORT
    values: frozenset[str] = frozenset()
    flags: frozenset[str] = frozenset()
    single_dash: frozenset[str] = frozenset()
    long: tuple[str, ...] = ()
    long_values: frozenset[str] = frozenset()
    long_flags: frozenset[str] = frozenset()
    operands: frozenset[str] = frozenset()
    checks: frozenset[str] = frozenset()
    is_known: bool = False

    @property
    def is_harmless(self) -> bool:
        return self.is_known and not (self.short or self.single_dash or self.long or self.operands or self.checks)


@cache
def _read_table() -> dict[str, _Row]:
    rows = {program: _make_row(()) for program in READERS.split()}
    for line in RISKS.replace("\n  ", " ").split("\n"):
        programs, *tokens = line.split() or [""]
        rows.update(dict.fromkeys(programs.split(","), _make_row(tokens)))
    return rows


def _make_row(tokens: Sequence[str]) -> _Row:
    short = [token[1:] for token in tokens if token.startswith("-") and not token.startswith("--")]
    long = [token[2:] for token in tokens if token.startswith("--")]
    return _Row(
        short=frozenset(name for name in short if len(name) == 1),
        values=frozenset(name[0] for name in short if name.endswith("=")),
        flags=frozenset(letter for name in short if name.endswith("?") for letter in name[:-1]),
        single_dash=frozenset(name for name in short if len(name) > 1 and name[-1] not in "=?"),
        long=tuple(name for name in long if name[-1] not in "=?"),
        long_values=frozenset(name[:-1] for name in long if name.endswith("=")),
        long_flags=frozenset(name[:-1] for name in long if name.endswith("?")),
        operands=frozenset(token for token in tokens if token[0] not in "-@"),
        checks=frozenset(token for token in tokens if token.startswith("@")),
        is_known=True,
    )


def _find_row(program: str) -> _Row:
    """Return the row of a program, also for a name with a folder or version: `/usr/bin/python3.12`."""
    name = program.rpartition("/")[2]
    table = _read_table()
    return table.get(name) or table.get(_VERSION.sub("", name)) or _Row()


def _merge_rows(row: _Row, subcommand: _Row) -> _Row:
    """Return the row of a program with a subcommand: what this lists as harmless is harmless."""
    return _Row(
        short=(row.short - subcommand.flags - subcommand.values) | subcommand.short,
        values=row.values | subcommand.values,
        flags=row.flags | subcommand.flags,
        single_dash=row.single_dash | subcommand.single_dash,
        long=row.long + subcommand.long,
        long_values=row.long_values | subcommand.long_values,
        long_flags=row.long_flags | subcommand.long_flags,
        operands=row.operands,
        checks=row.checks | subcommand.checks,
        is_known=True,
    )


def find_risky_arguments(words: Sequence[str], hiding: Collection[str] = ()) -> Iterator[str]:
    """Yield the words of a simple command, after expansion, that run a program or write a file.

    `hiding` are those whose expansion may contain a guarded name.
    """
    program = _find_row(words[0])
    rows = [program]
    operands: list[str] = []
    # The value of an option may come before the subcommand: `npm --loglevel silent config`.
    subcommands = 1 + any(word.startswith("-") for word in words[1:2])
    is_value = is_ended = False
    are_flags = True
    for word in words[1:]:
        if is_value:
            is_value = False
            continue
        is_option = word.startswith("-") and word != "-"
        if is_ended or not is_option:
            operands.append(word)
            if len(operands) <= subcommands:
                if subcommand := _read_table().get(f"{words[0].rpartition('/')[2]}/{word}"):
                    rows = [_merge_rows(program, subcommand)] if are_flags else [*rows, subcommand]
                if word in program.operands:
                    yield word
            are_flags = False
        # Some programs pass what is after `--` to another one, and `--` may be the value of an option.
        if is_option and any(_is_risky_option(word, row) for row in rows):
            yield word
        elif word == "--":
            is_ended = True
        elif is_option:
            is_value = not is_ended and _needs_value(word, program)
            are_flags = are_flags and word[2:] in program.long_flags
    checks = frozenset[str]().union(*(row.checks for row in rows))
    for check in sorted(checks & _CHECKS.keys()):
        yield from _CHECKS[check](words[1:], operands)
    if "@writes" in checks or not (program.is_harmless or "@reads" in checks):
        yield from (word for word in words[1:] if word in hiding or _has_guarded_path(word))


def has_risky_options(program: str) -> bool:
    """Return whether any option or operand of a program, known or not, is risky."""
    return not _find_row(program).is_harmless


def _has_guarded_path(word: str) -> bool:
    """Return whether a word is a guarded path or contains one as a value: `of=.git/x`, `-t.git/hooks`."""
    paths = [word, *word.split("=")]
    if word.startswith("-") and not word.startswith("--"):
        cluster = word.partition("/")[0]
        if len(cluster) > _MAX_GLUED:
            return True
        paths.extend(word[start:] for start in range(1, len(cluster)))
    return any(has_guarded_part(PurePosixPath(path).parts) for path in paths)


def _is_risky_option(word: str, row: _Row) -> bool:
    name = word.lstrip("-").partition("=")[0]
    if word.startswith("--"):
        if not name or name in row.long_values or not row.long_flags.isdisjoint((name, word[2:])):
            return False
        return _is_risky_long(name) or name in row.single_dash or any(known.startswith(name) for known in row.long)
    if name in row.single_dash:
        return True
    letters = re.split(r"[=/.,]", word[1:], maxsplit=1)[0]
    if row.is_known:
        for letter in letters[:1] if "@names" in row.checks else letters:
            if letter in row.values:
                return False
            if letter in row.short:
                return True
        return False
    # An unknown program: a long name after one dash, or a few letters.
    if len(name) > 1 and _has_risky_part(name):
        return True
    return letters[:1] in row.short or any(letter in row.short for letter in letters[:_MAX_CLUSTER])


def _is_risky_long(name: str) -> bool:
    steps = name.lower().partition("-")
    if steps[0] in ("no", "without") and steps[1]:
        return False
    return _has_risky_part(name) or any(known.startswith(name.lower()) for known in _LONG)


def _has_risky_part(name: str) -> bool:
    return any(step in _PARTS for step in re.split(r"[-_.]", name.lower()))


def _needs_value(word: str, row: _Row) -> bool:
    """Return whether the next word is the value of a harmless option.

    In a cluster the letters before the option have to be known: an unknown one may have the rest as its value.
    """
    if word.startswith("--"):
        return word[2:] in row.long_values
    return word[-1] in row.values and row.flags.issuperset(word[1:-1])


# ------------------------------------------------------------------------------------------------------------- operands


def _check_sed(words: Sequence[str], operands: Sequence[str]) -> Iterator[str]:
    options = [at for at, word in enumerate(words) if _SED_SCRIPT.match(word)]
    scripts = [words[at].partition("e")[2] or "".join(words[at + 1 : at + 2]) for at in options]
    if not options or "--" in words[: options[0]]:
        scripts.extend(operands[:1])
    for script in scripts:
        if len(script) > _MAX_SCRIPT or not _SED_HARMLESS.fullmatch(script):
            yield script


def _check_awk(words: Sequence[str], operands: Sequence[str]) -> Iterator[str]:
    yield from (word for word in operands if len(word) > _MAX_SCRIPT or _AWK_RISKY.search(word))


def _check_tar(words: Sequence[str], operands: Sequence[str]) -> Iterator[str]:
    for at, word in enumerate(words):
        archive = ""
        if word.startswith("--"):
            name, _, value = word[2:].partition("=")
            is_risky = name not in _TAR_LONG
            archive = value if name == "file" else ""
        elif word.startswith("-"):
            letters, _, archive = word[1:].partition("f")
            is_risky = not _TAR_HARMLESS.issuperset(letters)
        elif at == 0:
            # The first word is a cluster of options also without a dash.
            is_risky = not _TAR_HARMLESS.issuperset(word)
        else:
            is_risky, archive = False, word
        # A name with a colon is on another machine.
        if is_risky or ":" in archive.partition("/")[0]:
            yield word


def _check_unzip(words: Sequence[str], operands: Sequence[str]) -> Iterator[str]:
    options = list(takewhile(lambda word: word.startswith("-"), words))
    letters = frozenset("".join(word[1:] for word in options))
    if not letters & _UNZIP_LISTS or not letters <= _UNZIP_HARMLESS:
        yield from words
    yield from (word for word in words[len(options) :] if word.startswith("-"))


def _check_curl(words: Sequence[str], operands: Sequence[str]) -> Iterator[str]:
    """Yield what reads a file, and addresses that stand for several (`http://{a,b}/`)."""
    yield from filter(_CURL_FILE.match, words)
    yield from (word for word in operands if "{" in word or "[" in word)


_CHECKS: dict[str, Callable[[Sequence[str], Sequence[str]], Iterable[str]]] = {
    "@assignments": lambda words, operands: filter(_ASSIGNMENT.match, operands),
    "@awk": _check_awk,
    "@curl": _check_curl,
    "@operands": lambda words, operands: operands,
    "@plus": lambda words, operands: (word for word in operands if word.startswith("+")),
    "@response": lambda words, operands: (word for word in operands if word.startswith("@")),
    "@second": lambda words, operands: operands[1:],
    "@sed": _check_sed,
    "@tar": _check_tar,
    "@transport": lambda words, operands: filter(_TRANSPORT.match, operands),
    "@unzip": _check_unzip,
}
"""The checks of the table: the risky ones of the words after the program, and of those the operands."""
