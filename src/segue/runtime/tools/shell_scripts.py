"""Scripts of `sed` and `awk` that neither write a file nor run a program.

The parsers support less syntax than the programs, and only what all versions of these parse alike. Anything else is not
harmless.
"""

from __future__ import annotations

import re

# Longer scripts are not examined.
_MAX_SCRIPT = 2_000


def _delimited(delimiter: str, *, has_sets: bool = True) -> str:
    """Return the pattern of a text up to a delimiter.

    Programs differ in where a set (`[a/]`) ends, and in whether a delimiter in it ends the text. So a set may contain
    neither a delimiter nor a bracket, other than those of a class (`[:alpha:]`) and a `]` at its beginning.
    """
    plain = rf"(?!{delimiter})[^\\\n\[]" if has_sets else rf"(?!{delimiter})[^\\\n]"
    member = rf"\[:[a-z]+:\]|(?!{delimiter})[^\[\]\\\n]|\\[^\[\]\n]"
    sets = rf"|\[\^?+\]?+(?:{member})*+\]" if has_sets else ""
    return rf"(?:{plain}|\\.{sets})*+{delimiter}"


# --------------------------------------------------------------------------------------------------------------- sed

_SED_SPACE = re.compile(r"[\s;]*")
_SED_ADDRESS = rf"(?:\d+(?:~\d+)?|\$|/{_delimited('/')}[IM]*)"
_SED_PREFIX = re.compile(rf"(?:{_SED_ADDRESS}(?:[ \t]*,[ \t]*(?:[+~]\d+|{_SED_ADDRESS}))?)?[ \t]*!?[ \t]*")
# Others have a meaning in a regular expression, or end a command.
_SED_DELIMITER = "[-/|,:#@%!_+=~]"
# `e`, `r`, `R`, `w`, `W`, and the flags `e` and `w` of `s` are not harmless.
_SED_COMMANDS = (
    r"[pPdDqQ=nNgGhHxzlF]",
    rf"s(?P<s>{_SED_DELIMITER}){_delimited('(?P=s)')}{_delimited('(?P=s)', has_sets=False)}[gpiImM\d]*",
    rf"y(?P<y>{_SED_DELIMITER}){_delimited('(?P=y)')}{_delimited('(?P=y)', has_sets=False)}",
    r":[ \t]*\w+",
    r"[btT][ \t]*\w*",
)
_SED_COMMAND = re.compile(rf"(?:{'|'.join(_SED_COMMANDS)})[ \t]*(?=[;}}\n]|\Z)")
# A text on the next line may be a command, if another version of sed takes `a` for part of a label: `:x;a\\`.
_SED_TEXT = re.compile(r"[aic]\\?[ \t]*[^\s\\][^\n\\]*(?=\n|\Z)")


def is_harmless_sed(script: str) -> bool:
    """Return whether each command of a sed script is known to be harmless."""
    if len(script) > _MAX_SCRIPT:
        return False
    at = _skip(_SED_SPACE, script, 0)
    while at < len(script):
        if script[at] != "}":
            at = _skip(_SED_PREFIX, script, at)
            command = _SED_COMMAND.match(script, at) or _SED_TEXT.match(script, at)
            if command is None and script[at : at + 1] != "{":
                return False
            at = command.end() if command else at + 1
        else:
            at += 1
        at = _skip(_SED_SPACE, script, at)
    return True


def _skip(pattern: re.Pattern[str], text: str, at: int) -> int:
    match = pattern.match(text, at)
    return match.end() if match else at


# --------------------------------------------------------------------------------------------------------------- awk

_AWK_RISKY = re.compile(r"system|getline|@|\\\r?\n")
_AWK_REDIRECTION = re.compile(r"[>|]")
# A comment that contains a backslash is not supported: it may continue on the next line.
_AWK_SPACE = re.compile(r"(?:[ \t\r]|#[^\n\\]*+(?!\\))*+")
_AWK_TOKEN = re.compile(r""""(?:[^"\\\n]|\\.)*"|[A-Za-z_]\w*|[\d.]+|&&|\|\||[<>=!]=|>>|\+\+|--|[^"\\#]""")
_AWK_REGEX = re.compile(rf"/{_delimited('/')}")
# Behind these a slash begins a regular expression. Behind a name, a number or `]` it divides.
_BEFORE_REGEX = frozenset(["", "\n", "(", ",", "{", "}", ";", "!", "~", "&&", "||"])
_AWK_KEYWORD_NAMES = """
BEGIN END break case continue default delete do else exit for func function if in length next nextfile print printf
return switch while
"""
_AWK_KEYWORDS = frozenset(_AWK_KEYWORD_NAMES.split())


def is_harmless_awk(script: str) -> bool:
    """Return whether an awk script runs no program and writes no file."""
    if len(script) > _MAX_SCRIPT or _AWK_RISKY.search(script):
        return False
    if not _AWK_REDIRECTION.search(script):
        return True
    tokens = _split_awk(script)
    return tokens is not None and not _has_redirection(tokens)


def _split_awk(script: str) -> list[str] | None:
    """Split a script into tokens; None if a slash may both divide and begin a regular expression."""
    tokens: list[str] = []
    at = _skip(_AWK_SPACE, script, 0)
    while at < len(script):
        before = tokens[-1] if tokens else ""
        is_regex = script[at] == "/" and before in _BEFORE_REGEX
        match = (_AWK_REGEX if is_regex else _AWK_TOKEN).match(script, at)
        if match is None or (match[0] == "/" and not _is_operand(before)):
            return None
        tokens.append(match[0])
        at = _skip(_AWK_SPACE, script, match.end())
    return tokens


def _is_operand(token: str) -> bool:
    return token not in _AWK_KEYWORDS and (token == "]" or re.fullmatch(r"[\w.]+", token) is not None)


def _has_redirection(tokens: list[str]) -> bool:
    """Return whether the output of a `print` is redirected; elsewhere, and in parentheses, `>` compares.

    A new line does not always end a `print`: `;` and `}` do.
    """
    is_print, depth = False, 0
    for token in tokens:
        if token in ("|", ">>") or (is_print and depth <= 0 and token in (">", ">=")):
            return True
        depth += (token == "(") - (token == ")")
        if token in ("print", "printf"):
            is_print, depth = True, 0
        elif token in (";", "}"):
            is_print = False
    return False
