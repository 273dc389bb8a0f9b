"""Parsing of shell commands for permission rules.

Only simple commands can be matched by a glob. The parser deliberately supports less syntax than a shell: for anything
else it returns no parts, and the command has to be approved as a whole.
"""

from __future__ import annotations

import re
import shlex
from contextlib import suppress

_OPERATORS = ("&&", "||", "|&", ";", "|", "&", "\n")
# Redirections to /dev/null or between streams are harmless.
_HARMLESS = re.compile(r"(?:\d*>&\d|\d*>>?\s*/dev/null|&>>?\s*/dev/null|<\s*/dev/null)(?=[\s;&|]|$)")
_RESERVED_NAMES = """
! [[ ]] { } case coproc do done elif else esac fi for function if in select then time until while
eval exec source . builtin command trap alias
"""
_RESERVED = frozenset(_RESERVED_NAMES.split())
_SEPARATORS = re.compile(r"&&|\|\||\$\(|[;&|\n`(){}<>]|\b(?:then|do|else|elif|if|while|until|exec|eval|time)\b")
_PREFIXES_NAMES = """
sudo doas env command builtin exec nohup nice time xargs setsid stdbuf timeout
"""
_PREFIXES = frozenset(_PREFIXES_NAMES.split())
_ASSIGNMENT = re.compile(r"\w+=\S*")

# Parts of option names that write a file or run a program: `--output-file`, `--exec-path`, `-execdir`.
_RISKY_PART_NAMES = """
output out outfile write save dump log logfile report junitxml xml html export target dest destination prefix inplace
exec execdir ok okdir fprint fprint0 fprintf fls delete command cmd program prog run eval script hook hooks shell rsh
pager editor config configuration rcfile plugin plugins load require import preload pack filter viewer browser action
extcmd difftool mergetool sequence template override
"""
_RISKY_PARTS = frozenset(_RISKY_PART_NAMES.split())
# Long options may be abbreviated: `--outp`, `--upl`.
_RISKY_LONG_NAMES = """
output exec upload-pack receive-pack config config-env command compress-program use-compress-program to-command
checkpoint-action rsh rsync-path in-place open-files-in-pager extcmd files0-from junit-xml write-out log-file
"""
_RISKY_LONG = tuple(_RISKY_LONG_NAMES.split())
# Programs without short options that write files or run programs.
_SAFE_SHORT_NAMES = """
cat cut du egrep fgrep grep head ls ps rg stat tail tr wc
"""
_SAFE_SHORT = frozenset(_SAFE_SHORT_NAMES.split())
_RISKY_SHORT = {
    "sed": "i",
    "perl": "ie",
    "ruby": "ie",
    "node": "ep",
    "rsync": "e",
    "tar": "IFCx",
    "php": "r",
    "lua": "e",
}
_RISKY_SHORT_DEFAULT = "cCoO"
_MAX_CLUSTER = 4
_VARIABLE = re.compile(r"\$\{\w+\}")
_SINGLE_QUOTED = re.compile(r"'[^']*'")


def split_simple_commands(text: str) -> tuple[str, ...] | None:
    """Split a command into simple commands; None if it has other constructs."""
    parts: list[str] = []
    part: list[str] = []
    at, quote = 0, ""
    text = text.strip()
    while at < len(text):
        letter = text[at]
        if letter == "\\" and quote != "'":
            part.append(text[at : at + 2] if text[at + 1 : at + 2] != "\n" else "")
            at += 2
            continue
        if quote != "'" and (letter == "`" or text.startswith(("$(", "$'", '$"'), at)):
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
        part.append(letter)
        at += 1
    parts.append("".join(part))
    commands = tuple(command for command in (part.strip() for part in parts) if command)
    if quote or not commands or any(_first_token(command) in _RESERVED for command in commands):
        return None
    return commands


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


def _first_token(command: str) -> str:
    return command.split(maxsplit=1)[0]


def find_risky_options(command: str) -> tuple[str, ...]:
    """Return the options of a simple command that write a file or run a program, or might do so after expansion.

    A heuristic by the usual names of such options, with false positives rather than false negatives.
    """
    try:
        words = shlex.split(command)
    except ValueError:
        return (command,)
    # Nothing is expanded within single quotes. With double quotes the single quotes can't be found this way.
    raw = command if '"' in command else _SINGLE_QUOTED.sub("''", command)
    options = [word for word in raw.split() if _may_become_option(word)]
    program = words[0].rpartition("/")[2] if words else ""
    for word in words[1:]:
        name = word.partition("=")[0]
        if (word.startswith("--") and _is_risky_long(name[2:])) or (
            word.startswith("-") and not word.startswith("--") and _is_risky_short(program, name[1:])
        ):
            options.append(name)
    return tuple(options)


def _may_become_option(word: str) -> bool:
    """Return whether shell expansion may yield an option: `{--output=a,b}`, `${X:---output=a}`, `-$X`, `[-]o`."""
    bare = _VARIABLE.sub("$", word).lstrip("\"'\\")
    if "$" in bare and ("-" in bare or "{" in bare):
        return True
    first = bare[:1]
    return (first in ("{", "[") and "-" in bare) or (first == "?" and len(bare) > 1) or (first == "-" and "{" in bare)


def _is_risky_long(name: str) -> bool:
    if not name:
        return False
    steps = re.split(r"[-_.]", name.lower())
    if steps[0] in ("no", "without") and len(steps) > 1:
        return False
    return any(step in _RISKY_PARTS for step in steps) or any(known.startswith(name.lower()) for known in _RISKY_LONG)


def _is_risky_short(program: str, name: str) -> bool:
    if len(name) > 1 and _is_risky_long(name):
        return True
    if not name or program in _SAFE_SHORT:
        return False
    letters = _RISKY_SHORT_DEFAULT + _RISKY_SHORT.get(program, "")
    return name[0] in letters or any(letter in letters for letter in name[:_MAX_CLUSTER] if name.isalpha())


def find_commands(text: str) -> tuple[str, ...]:
    """Return all that may be a command in a text, in all forms a deny rule may use; false positives are accepted."""
    commands: dict[str, None] = {}
    for part in _SEPARATORS.split(text):
        words = part.split()
        with suppress(ValueError):
            words = shlex.split(part)
        while words:
            commands[" ".join(words)] = None
            base = words[0].rpartition("/")[2]
            commands[" ".join([base, *words[1:]])] = None
            if not (base in _PREFIXES or words[0].startswith("-") or _ASSIGNMENT.fullmatch(words[0])):
                break
            words = words[1:]
    return tuple(commands)
