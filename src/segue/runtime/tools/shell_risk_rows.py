"""The rows of the table of risky options and operands, by program and subcommand."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache

from msgspec import Struct

from segue.runtime.tools.shell_risk_table import READERS, RISKS

_DEFAULT_SHORT = frozenset("cCoO")
_VERSION = re.compile(r"[-.\d]+$")
# The machine that a compiler is for: `x86_64-linux-gnu-gcc`.
_MACHINE = re.compile(r"^(?:\w+-)+(?=(?:gcc|g\+\+|cc|c\+\+|clang|clang\+\+|gfortran|cpp|ld|as)$)")


class Row(Struct, frozen=True):
    """The row of a program. `values` and `long_values` are harmless options with a value, `flags` without.

    `long_flags` are harmless long options. `value_patterns` are the values with which an option is harmless; `prefixes`
    are the beginnings of names with one dash.
    """

    short: frozenset[str] = _DEFAULT_SHORT
    values: frozenset[str] = frozenset()
    flags: frozenset[str] = frozenset()
    single_dash: frozenset[str] = frozenset()
    prefixes: tuple[str, ...] = ()
    long: tuple[str, ...] = ()
    long_values: frozenset[str] = frozenset()
    long_flags: frozenset[str] = frozenset()
    value_patterns: frozenset[tuple[str, str]] = frozenset()
    operands: frozenset[str] = frozenset()
    checks: frozenset[str] = frozenset()
    is_known: bool = False

    @property
    def is_harmless(self) -> bool:
        risky = (self.short, self.single_dash, self.prefixes, self.long, self.operands, self.checks)
        return self.is_known and not any(risky)


@cache
def _read_table() -> dict[str, Row]:
    rows = {program: _make_row(()) for program in READERS.split()}
    for line in RISKS.replace("\n  ", " ").split("\n"):
        programs, *tokens = line.split() or [""]
        rows.update(dict.fromkeys(programs.split(","), _make_row(tokens)))
    return rows


def _make_row(tokens: Sequence[str]) -> Row:
    patterns = [token for token in tokens if token.startswith("-") and token.endswith("?") and "=" in token]
    options = [token for token in tokens if token.startswith("-") and token not in patterns]
    short = [token[1:] for token in options if not token.startswith("--")]
    long = [token[2:] for token in options if token.startswith("--")]
    values = [name[:-1] for name in short if name.endswith("=")]
    return Row(
        short=frozenset(name for name in short if len(name) == 1),
        values=frozenset(name for name in values if len(name) == 1),
        flags=frozenset(letter for name in short if name.endswith("?") for letter in name[:-1]),
        single_dash=frozenset(name for name in short if len(name) > 1 and name[-1] not in "=?*"),
        prefixes=tuple(name[:-1] for name in short if name.endswith("*")),
        long=tuple(name for name in long if name[-1] not in "=?"),
        long_values=frozenset(
            [name[:-1] for name in long if name.endswith("=")] + [name for name in values if name[1:]]
        ),
        long_flags=frozenset(name[:-1] for name in long if name.endswith("?")),
        value_patterns=frozenset(_split_pattern(token) for token in patterns),
        operands=frozenset(token for token in tokens if token[0] not in "-@"),
        checks=frozenset(token for token in tokens if token.startswith("@")),
        is_known=True,
    )


def _split_pattern(token: str) -> tuple[str, str]:
    """Split `-p=no:*?` into the name of the option and the pattern of its value."""
    name, _, value = token.lstrip("-")[:-1].partition("=")
    return name, value


def find_row(program: str) -> Row:
    """Return the row of a program, also for a name with a folder or version: `/usr/bin/python3.12`."""
    name = program.rpartition("/")[2]
    bare_name = _VERSION.sub("", name)
    table = _read_table()
    return table.get(name) or table.get(bare_name) or table.get(_MACHINE.sub("", bare_name)) or Row()


def merge_rows(row: Row, subcommand: Row) -> Row:
    """Return the row of a program with a subcommand. Options in its harmless ones are not risky for the program."""
    return Row(
        short=(row.short - subcommand.flags - subcommand.values) | subcommand.short,
        values=row.values | subcommand.values,
        flags=row.flags | subcommand.flags,
        single_dash=row.single_dash | subcommand.single_dash,
        prefixes=row.prefixes + subcommand.prefixes,
        long=row.long + subcommand.long,
        long_values=row.long_values | subcommand.long_values,
        long_flags=row.long_flags | subcommand.long_flags,
        value_patterns=row.value_patterns | subcommand.value_patterns,
        operands=row.operands,
        checks=row.checks | subcommand.checks,
        is_known=True,
    )


def find_subcommand(program: str, operand: str) -> Row | None:
    """Return the row of a subcommand, if the operand is one that the table lists."""
    return _read_table().get(f"{program.rpartition('/')[2]}/{operand}")
