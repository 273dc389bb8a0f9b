"""Parsing of shell commands for permission rules.

Only simple commands can be matched by a glob. The parser deliberately supports less syntax than a shell: for anything
else it returns no parts, and the command has to be approved as a whole.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from msgspec import Struct, structs

from segue.runtime.tool_types import PartForm
from segue.runtime.tools.shell_coverage import Coverage, ShellWord, find_coverage
from segue.runtime.tools.shell_wrappers import unwrap

_OPERATORS = ("&&", "||", "|&", ";", "|", "&", "\n")
# Redirections to /dev/null or between streams are harmless.
_HARMLESS = re.compile(
    r"(?:[0-9]*>&[0-9]|[0-9]*>>?[ \t]*/dev/null|&>>?[ \t]*/dev/null|<[ \t]*/dev/null)(?=[ \t\n;&|]|$)"
)
_SPACES = " \t\n"
# Keywords, and builtins that change what later commands do.
_RESERVED_NAMES = """
! [[ ]] { } case coproc do done elif else esac fi for function if in select then until while
eval source . trap alias unalias hash enable bind complete compgen fc history mapfile readarray
"""
_RESERVED = frozenset(_RESERVED_NAMES.split())
_SEPARATORS = re.compile(r"&&|\|\||\$\(|[;&|\n`(){}<>]|\b(?:then|do|else|elif|if|while|until|eval)\b")
_SHELLS = frozenset(("bash", "dash", "ksh", "sh", "zsh"))
_EXEC_OPTIONS = frozenset(("-exec", "-execdir", "-ok", "-okdir", "-x", "-X", "--exec", "--exec-batch"))
_MAX_STARTS = 32
_MAX_NAME = 64
_EXPANSION = re.compile(r"[$*?\[{]")
# A word that may expand to a guarded name: `.gi*`, `{.git,x}`. `.[dev]` matches no name that is long enough.
_HIDDEN_NAME = re.compile(r"(?:^|/)\.(?!\[[^]/]*\]$)[^/]*[*?\[{]|[{,]\.")
_OPEN_VARIABLE = re.compile(r"\$\{\w+\Z")
# A parameter may hold an option, several words or a guarded name. These two are paths in every shell.
_PARAMETER = re.compile(r"\$(?:\w|[{@*#?!$-])")
_COMPLEX_PARAMETER = re.compile(r"\$\{(?!\w+\})")
_KNOWN_PARAMETER = re.compile(r"\A\$(?:HOME|PWD|\{HOME\}|\{PWD\})(?=/|\Z)")


class _Word(Struct, frozen=True):
    """A word of a command: its text without quotes, and its `shape`, in which quoted special characters are `x`."""

    text: str
    shape: str
    start: int


def split_simple_commands(text: str) -> tuple[str, ...] | None:
    """Split a command into simple commands; None if it has other constructs."""
    parts: list[str] = []
    part: list[str] = []
    at, quote = 0, ""
    text = text.strip(_SPACES)
    while at < len(text):
        letter = text[at]
        if letter == "\\" and quote != "'":
            part.append(text[at : at + 2] if text[at + 1 : at + 2] != "\n" else "")
            at += 2
            continue
        if quote != "'" and (letter == "`" or text.startswith(("$(", "$[", "$'", '$"'), at)):
            return None
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "'\"":
            quote = letter
        elif harmless := _redirect_length(text, at, part):
            at += harmless
            continue
        elif operator := next((known for known in _OPERATORS if text.startswith(known, at)), None):
            parts.append("".join(part))
            part = []
            at += len(operator)
            continue
        elif letter in "<>(){}#" and not _is_in_word(text, at):
            return None
        elif not letter.isprintable() and letter not in _SPACES:
            # Programs and locales differ in which other characters are spaces.
            return None
        part.append(letter)
        at += 1
    parts.append("".join(part))
    commands = tuple(command for command in (part.strip(_SPACES) for part in parts) if command)
    if quote or not commands or any(_has_reserved_name(command) for command in commands):
        return None
    return commands


def _has_reserved_name(command: str) -> bool:
    """Return whether a keyword is where a program is expected, also behind wrappers (`time if …`, `command eval`)."""
    words = [word.text for word in _parse_arguments(command)]
    start = unwrap(words).start
    return any(words[at] in _RESERVED for at in {0, start or 0} if at < len(words))


def _redirect_length(text: str, at: int, part: list[str]) -> int:
    """Return the length of a harmless redirection at this position, or 0."""
    if part and not part[-1].isspace() and text[at].isdigit():
        return 0
    match = _HARMLESS.match(text, at)
    return len(match[0]) if match else 0


def _is_in_word(text: str, at: int) -> bool:
    """Return whether a character is in a word (`{a,b}.txt`, `${x}`, `a#b`), where it starts no group or comment."""
    before = text[at - 1] if at else " "
    match text[at]:
        case "{":
            return text[at + 1 : at + 2] not in ("", " ", "\t", "\n")
        case "}" | "#":
            return not before.isspace() and before not in ";&|"
        case _:
            return False


def _parse_arguments(command: str) -> list[_Word]:
    """Split a simple command into words as a shell does, before expansion."""
    words: list[_Word] = []
    text, shape = "", ""
    start, quote, at = -1, "", 0
    while at < len(command):
        letter = command[at]
        if not quote and letter in _SPACES:
            if start >= 0:
                words.append(_Word(text, shape, start))
            text, shape, start = "", "", -1
            at += 1
            continue
        start = at if start < 0 else start
        if letter == "\\" and quote != "'":
            at += 1
            text += command[at : at + 1]
            shape += _hide(command[at : at + 1])
        elif letter in ("'", '"') and quote in ("", letter):
            quote = "" if quote else letter
        else:
            text += letter
            is_active = not quote or (quote == '"' and _is_in_parameter(letter, shape))
            shape += letter if is_active else _hide(letter)
        at += 1
    return words if start < 0 else [*words, _Word(text, shape, start)]


def _is_in_parameter(letter: str, before: str) -> bool:
    """Return whether a character in double quotes belongs to a parameter: `$X`, `${X}`."""
    return (
        letter == "$"
        or (letter == "{" and before.endswith("$"))
        or (letter == "}" and _OPEN_VARIABLE.search(before[-_MAX_NAME:]) is not None)
    )


def _hide(letter: str) -> str:
    return "x" if letter in "*?[]{}$~" else letter


def inner_command_tokens(command: str) -> list[str]:
    """Return the tokens of a simple command behind plain wrappers; empty if there are other wrappers or expansions."""
    tokens = _parse_arguments(command)
    inner = unwrap([token.text for token in tokens])
    if inner.start is None or not inner.is_plain or not inner.is_recognized:
        return []
    is_fixed = not any(_EXPANSION.search(token.shape) for token in tokens[inner.start : inner.start + 2])
    return [token.text for token in tokens[inner.start :]] if is_fixed else []


def list_part_forms(commands: Sequence[str], folder: Path) -> tuple[tuple[PartForm, ...], ...]:
    """Return the forms of each of the simple commands that run in a folder.

    A glob that begins with `*` and has a fixed part may match a file in the folder with the name of an option. If there
    is none, the glob is harmless, unless another of the commands may create a file or change the folder.
    """
    has_options = any("*" in command or "[" in command for command in commands) and _has_option_files(folder)
    writers = [at for at, command in enumerate(commands) if _may_write(command)]
    return tuple(
        list_forms(command, may_match_option=has_options or any(writer != at for writer in writers))
        for at, command in enumerate(commands)
    )


def _may_write(command: str) -> bool:
    words = _parse_arguments(command)
    inner = unwrap([word.text for word in words])
    return inner.start is None or not inner.is_recognized or _find_coverage(words[inner.start :]).may_write


def _has_option_files(folder: Path) -> bool:
    try:
        return any(path.name.startswith(("-", "@")) for path in folder.iterdir())
    except OSError:
        return True


def list_forms(command: str, *, may_match_option: bool = True) -> tuple[PartForm, ...]:
    """Return the forms of a simple command that an allow rule may match.

    The forms are the whole command and, after plain wrappers only, the inner command. A rule must contain the words
    that no wildcard covers; for the whole command also the wrappers and the program that they run. `may_match_option`
    states whether a file may have the name of an option.
    """
    words = _parse_arguments(command)
    texts = [word.text for word in words]
    inner = unwrap(texts)
    if inner.start is None or not inner.is_recognized:
        is_harmless = inner.is_plain and inner.is_recognized
        return (PartForm(command, () if is_harmless else tuple(texts)),)
    found = _find_coverage(words[inner.start :], may_match_option=may_match_option)
    before = texts[: inner.start + 1] if inner.start else ()
    whole = PartForm(command, (*before, *found.uncovered), found.operands)
    if not inner.start or not inner.is_plain:
        return (whole,)
    return whole, PartForm(command[words[inner.start].start :], found.uncovered, found.operands)


def _find_coverage(words: Sequence[_Word], *, may_match_option: bool = True) -> Coverage:
    found = find_coverage([_make_shell_word(word.text, word.shape, may_match_option) for word in words])
    program = [words[0].text] if _EXPANSION.search(words[0].shape) else []
    # `${a[$(b)]}` runs a command, `${a:=b}` sets a variable.
    complex_words = [word.text for word in words[1:] if _COMPLEX_PARAMETER.search(word.shape)]
    more = [text for text in (*program, *complex_words) if text not in found.uncovered]
    return structs.replace(found, uncovered=(*more, *found.uncovered)) if more else found


def _make_shell_word(text: str, shape: str, may_match_option: bool) -> ShellWord:
    has_parameter = _PARAMETER.search(_KNOWN_PARAMETER.sub("", shape)) is not None
    return ShellWord(
        text,
        may_be_option=has_parameter or _may_become_option(shape, may_match_option or not shape.strip("*?")),
        may_be_many=has_parameter or _EXPANSION.search(shape) is not None,
        may_be_guarded=has_parameter or _HIDDEN_NAME.search(shape) is not None,
    )


def _may_become_option(shape: str, may_match_option: bool) -> bool:
    """Return whether a glob or braces may expand to an option: `{--output=a,b}`, `[-]o`, `*`."""
    match shape[:1]:
        case "*":
            return may_match_option
        case "{":
            return "-" in shape or "@" in shape
        case "[":
            return may_match_option or "-" in shape or "@" in shape
        case "?":
            return len(shape) > 1
        case first:
            return first == "-" and "{" in shape


def find_commands(text: str) -> tuple[str, ...]:
    """Return every possible command in a text, in all forms that a deny rule may match, also false positives."""
    commands: dict[str, None] = {}
    texts = [text]
    for script in texts:
        for part in _SEPARATORS.split(script):
            words = part.split()
            with suppress(ValueError):
                words = shlex.split(part)
            for start in _find_starts(words):
                program = words[start].rpartition("/")[2]
                commands[" ".join(words[start:])] = None
                commands[" ".join([program, *words[start + 1 :]])] = None
                if program in _SHELLS:
                    texts.extend(word for word in words[start + 1 : start + 4] if word not in texts)
    return tuple(commands)


def _find_starts(words: Sequence[str]) -> list[int]:
    """Return where commands may begin: the first word, behind wrappers, and behind `find -exec`."""
    inner = unwrap(words)
    starts = {0, *inner.wrappers, len(words) if inner.start is None else inner.start}
    if not inner.is_recognized:
        starts.update(range(len(words)))
    starts.update(at + 1 for at, word in enumerate(words) if word in _EXEC_OPTIONS)
    return sorted(start for start in starts if start < len(words))[:_MAX_STARTS]
