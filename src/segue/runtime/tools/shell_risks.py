"""Options and operands of programs that run other programs or write files.

Wildcards in permission rules do not match them: a rule has to contain them. A table lists what is known about common
programs. For all others, and for long options in general, the usual names of such options decide, with false positives
rather than false negatives.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from itertools import pairwise, takewhile
from pathlib import PurePosixPath

from segue.runtime.guarded_names import has_guarded_part
from segue.runtime.tools.shell_risk_rows import Row, find_row, find_subcommand, merge_rows
from segue.runtime.tools.shell_scripts import is_harmless_awk, is_harmless_sed

_SED_SCRIPT = re.compile(r"-[a-zA-Z]*e")
_MAX_CLUSTER = 4
# In longer clusters no path is searched for: they are risky.
_MAX_GLUED = 256

# Parts of option names that write a file or run a program: `--output-file`, `--exec-path`, `-execdir`.
_PART_NAMES = """
output out outfile write save dump log logfile report junitxml xml html export target dest destination prefix inplace
exec execdir ok okdir fprint fprint0 fprintf fls delete command cmd program prog run eval script hook hooks shell rsh
pager editor config configuration rcfile plugin plugins load require import preload pack filter viewer browser action
extcmd difftool mergetool sequence template override pre preprocessor wrapper askpass proxy upload helper engine chdir
sendmail inspect outdir renderer execute
"""
_PARTS = frozenset(_PART_NAMES.split())
# Long options of any program, which may be shortened: `--outp`, `--upl`.
_LONG_NAMES = """
output exec upload-pack receive-pack config config-env command compress-program use-compress-program to-command
rsh rsync-path in-place open-files-in-pager extcmd files0-from junit-xml write-out log-file
"""
_LONG = tuple(_LONG_NAMES.split())

# The last parts of the names of harmless settings: `--output-format`, `--log-level`.
_SETTINGS = frozenset(["color", "encoding", "format", "level", "mode", "style", "type", "width"])

_ASSIGNMENT = re.compile(r"[^-=\s][^=]*=", re.DOTALL)
_TAR_HARMLESS = frozenset("tvfzjJapw")
_TAR_LONG = frozenset(
    ["list", "verbose", "file", "gzip", "bzip2", "xz", "zstd", "auto-compress", "exclude", "wildcards"]
)
_UNZIP_LISTS = frozenset("ltvzZp")
_UNZIP_HARMLESS = _UNZIP_LISTS | frozenset("cqCMhms12")
_CURL_FILE = re.compile(r"@|-[^-]*H@|--header=@|--expand-")
# What is not a path in the folder, or not known before expansion.
_EXPANDED = re.compile(r"[:$*?`]")
_TRANSPORT = re.compile(r"(?:ext|fd)::|.*(?:://|@)-")


def find_risky_arguments(words: Sequence[str], hiding: Collection[str] = ()) -> Iterator[str]:
    """Yield the words of a simple command, after expansion, that run a program or write a file.

    `hiding` are those whose expansion may contain a guarded name.
    """
    program = find_row(words[0])
    rows = [program]
    operands: list[str] = []
    later_operands = frozenset[str]()
    # The value of an option may come before the subcommand: `npm --loglevel silent config`.
    early_count = 1 + any(word.startswith("-") for word in words[1:2])
    is_value = is_ended = False
    are_flags = True
    for word, following in pairwise((*words[1:], "")):
        if is_value:
            is_value = False
            continue
        is_option = word.startswith("-") and word != "-"
        if is_ended or not is_option:
            operands.append(word)
            is_early = len(operands) <= early_count
            if word in later_operands or (is_early and word in program.operands):
                yield word
            if is_early and (subcommand := find_subcommand(words[0], word)):
                rows = [merge_rows(program, subcommand)] if are_flags else [*rows, subcommand]
                later_operands |= subcommand.operands
            are_flags = False
        # Some programs pass what is after `--` to another one, and `--` may be the value of an option.
        if is_option and any(_is_risky_option(word, following, row) for row in rows):
            yield word
        elif word == "--":
            is_ended = True
        elif is_option:
            is_value = not is_ended and _needs_value(word, following, program)
            are_flags = are_flags and word[2:] in program.long_flags
    checks = frozenset[str]().union(*(row.checks for row in rows))
    for check in sorted(checks & _CHECKS.keys()):
        yield from _CHECKS[check](words[1:], operands)
    if "@writes" in checks or not (program.is_harmless or "@reads" in checks):
        yield from (word for word in words[1:] if word in hiding or _has_guarded_path(word))


def has_risky_options(program: str) -> bool:
    """Return whether any option or operand of a program, known or not, is risky."""
    return not find_row(program).is_harmless


def may_write(program: str) -> bool:
    """Return whether a program may write files or change the folder, also without a risky option."""
    row = find_row(program)
    return not row.is_harmless and ("@reads" not in row.checks or bool(row.operands))


def _has_guarded_path(word: str) -> bool:
    """Return whether a word is a guarded path or contains one as a value: `of=.git/x`, `-t.git/hooks`."""
    paths = [word, *word.split("=")]
    if word.startswith("-") and not word.startswith("--"):
        cluster = word.partition("/")[0]
        if len(cluster) > _MAX_GLUED:
            return True
        paths.extend(word[start:] for start in range(1, len(cluster)))
    return any(has_guarded_part(PurePosixPath(path).parts) for path in paths)


def _is_risky_option(word: str, following: str, row: Row) -> bool:
    """Return whether an option is risky; the `following` word may be its value."""
    if _has_harmless_value(word, following, row):
        return False
    name = word.lstrip("-").partition("=")[0]
    if word.startswith("--"):
        if not name or name in row.long_values or name in row.long_flags:
            return False
        return _is_risky_long(name) or name in row.single_dash or any(known.startswith(name) for known in row.long)
    if re.split("[,:]", name, maxsplit=1)[0] in row.single_dash or name.startswith(row.prefixes):
        return True
    if word[1:] in row.long_values:
        return False
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


def _has_harmless_value(word: str, following: str, row: Row) -> bool:
    """Return whether the option has a value with which it is harmless: `-p no:x`, `--project=tsconfig.json`."""
    if word.startswith("--"):
        name, equals, value = word[2:].partition("=")
    else:
        cluster = word[1:].lstrip("".join(row.flags))
        name, equals, value = cluster[:1], "", cluster[1:]
    value = value if equals or value else following
    patterns = [pattern for known, pattern in row.value_patterns if known == name]
    return any(_is_inside(value) if pattern == "@inside" else fnmatchcase(value, pattern) for pattern in patterns)


def _is_inside(path: str) -> bool:
    """Return whether a path is relative to the working folder, and not above it."""
    return bool(path) and path[0] not in "/~-=" and not _EXPANDED.search(path) and ".." not in PurePosixPath(path).parts


def _is_risky_long(name: str) -> bool:
    steps = name.lower().split("-")
    if len(steps) > 1 and (steps[0] in ("no", "without", "dry") or steps[-1] in _SETTINGS):
        return False
    return _has_risky_part(name) or any(known.startswith(name.lower()) for known in _LONG)


def _has_risky_part(name: str) -> bool:
    return any(step in _PARTS for step in re.split(r"[-_.]", name.lower()))


def _needs_value(word: str, following: str, row: Row) -> bool:
    """Return whether the following word is the value of a harmless option.

    In a cluster the letters before the option have to be known: an unknown one may have the rest as its value.
    """
    if word.lstrip("-") in row.long_values:
        return True
    if _has_harmless_value(word, following, row) and not _has_harmless_value(word, "", row):
        return True
    return not word.startswith("--") and word[-1] in row.values and row.flags.issuperset(word[1:-1])


# ------------------------------------------------------------------------------------------------------------- operands


def _check_sed(words: Sequence[str], operands: Sequence[str]) -> Iterator[str]:
    options = [at for at, word in enumerate(words) if _SED_SCRIPT.match(word)]
    scripts = [words[at].partition("e")[2] or "".join(words[at + 1 : at + 2]) for at in options]
    if not options or "--" in words[: options[0]]:
        scripts.extend(operands[:1])
    yield from (script for script in scripts if not is_harmless_sed(script))


def _check_awk(words: Sequence[str], operands: Sequence[str]) -> Iterator[str]:
    yield from (word for word in operands if not is_harmless_awk(word))


def _check_compiler(words: Sequence[str], operands: Sequence[str]) -> Iterator[str]:
    """Yield what is passed on to a linker and risky there (`-Wl,-o,x`), and a linker that is a path."""
    for word in words:
        passed = word.split(",")[1:] if word.startswith("-Wl,") else ()
        is_risky = any(
            part[:1] == "@" or (part[:1] == "-" and _is_risky_option(part, "", find_row("ld"))) for part in passed
        )
        if is_risky or (word.startswith("-fuse-ld=") and "/" in word):
            yield word


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
    "@compiler": _check_compiler,
    "@curl": _check_curl,
    "@last": lambda words, operands: operands[1:][-1:],
    "@operands": lambda words, operands: operands,
    "@plus": lambda words, operands: (word for word in operands if word.startswith("+")),
    "@response": lambda words, operands: (word for word in operands if word.startswith("@")),
    # `-` is the standard output.
    "@second": lambda words, operands: (word for word in operands[1:] if word != "-"),
    "@sed": _check_sed,
    "@tar": _check_tar,
    "@transport": lambda words, operands: filter(_TRANSPORT.match, operands),
    "@unzip": _check_unzip,
}
"""The checks of the table. Each takes the words after the program and the operands among them, and yields the risky."""
