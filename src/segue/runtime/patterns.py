"""Regular expressions and globs from untrusted sources, matched in linear time.

Python's `re` can take exponential time on a short pattern, and blocks all other threads meanwhile. So patterns from
models, files and rules are matched by the regex engine of jsonschema-rs, which does not backtrack.
"""

from __future__ import annotations

import re
from functools import lru_cache

import jsonschema_rs

from segue.runtime.tool_types import ToolError

_MAX_LENGTH = 2_000
_LITERAL_BRACE = re.compile(r"(?<!\\)\{(?!\d+(?:,\d*)?\})")


class Pattern:
    """A regular expression; `matches` returns whether it is found anywhere in a text."""

    def __init__(self, regex: str, *, ignore_case: bool = False) -> None:
        if len(regex) > _MAX_LENGTH:
            raise ToolError(f"the pattern is longer than {_MAX_LENGTH:,} characters")
        flagged = f"(?i:{regex})" if ignore_case else regex
        # Braces that are no repeat count are literal, as in `interface{}`.
        for text in (flagged, _LITERAL_BRACE.sub(r"\\{", flagged)):
            try:
                options = jsonschema_rs.RegexOptions(size_limit=4_000_000)
                self.matches = jsonschema_rs.validator_for({"pattern": text}, pattern_options=options).is_valid
                return
            except ValueError:
                continue
        raise ToolError(_describe_error(regex))


def _describe_error(regex: str) -> str:
    try:
        re.compile(regex)
    except re.error as error:
        return f"the pattern is not a regular expression: {error}"
    return "look-around, back-references, comments and very large repeats are not known here; write the pattern without"


def _escape(text: str) -> str:
    return re.sub(r"([\\.+*?()|\[\]{}^$/#&~-])", r"\\\1", text)


def glob_to_regex(glob: str) -> str:
    """Translate a file glob: `*` and `?` match within one name, `**` across folders; also `{a,b}` and `[abc]`."""
    regex: list[str] = []
    at, depth = 0, 0
    while at < len(glob):
        letter = glob[at]
        if glob.startswith("**/", at) and (at == 0 or glob[at - 1] == "/"):
            regex.append("(?:[^/]*/)*")
            at += 3
            continue
        if glob.startswith("**", at):
            regex.append(".*")
            at += 2
            continue
        at += 1
        match letter:
            case "*":
                regex.append("[^/]*")
            case "?":
                regex.append("[^/]")
            case "[":
                end = glob.find("]", at + 1 + (glob[at : at + 1] in ("!", "^")))
                if end < 0:
                    regex.append(r"\[")
                else:
                    inner = glob[at:end]
                    negated = inner[:1] in ("!", "^")
                    inner = re.sub(r"([\\\[\]&~^])", r"\\\1", inner[negated:])
                    regex.append(f"[{'^/' if negated else ''}{inner}]")
                    at = end + 1
            case "{" if "}" in glob[at:]:
                regex.append("(?:")
                depth += 1
            case "}" if depth:
                regex.append(")")
                depth -= 1
            case "," if depth:
                regex.append("|")
            case "\\" if at < len(glob):
                regex.append(_escape(glob[at]))
                at += 1
            case _:
                regex.append(_escape(letter))
    return f"^{''.join(regex)}{')' * depth}$"


@lru_cache(maxsize=512)
def path_pattern(glob: str) -> Pattern:
    """Return the pattern of a glob for paths separated by `/`."""
    return Pattern(glob_to_regex(glob))


@lru_cache(maxsize=512)
def rule_pattern(glob: str, *, ignore_case: bool = False) -> Pattern:
    """Return the pattern of a rule's glob: `*` matches any characters, also `/`, but stays within the host of a URL."""
    url = re.match(r"[^/]*://[^/]*/?", glob)
    host = url[0] if url else ""
    head = _rule_to_regex(host, any_="[^/?#@]*", one="[^/?#@]")
    body = _rule_to_regex(glob[len(host) :], any_="(?s:.)*", one="(?s:.)")
    return Pattern(f"^{head}{body}$", ignore_case=ignore_case)


def _rule_to_regex(glob: str, *, any_: str, one: str) -> str:
    tokens = re.split(r"(\*\*/|\*+|\?)", glob)
    wildcards = {"?": one, "**/": f"(?:{any_}/)?"}
    return "".join(wildcards.get(token) or (any_ if token.startswith("*") else _escape(token)) for token in tokens)
