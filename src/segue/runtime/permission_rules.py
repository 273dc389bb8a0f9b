"""Permission rules: a tool name or glob, and a glob for the subject of a call.

`Permissions` describes which calls they match.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterable
from pathlib import Path

from msgspec import Struct

from segue.errors import InputError
from segue.runtime.patterns import rule_pattern
from segue.runtime.tool_types import ApprovalRequest, PartForm, ToolError

_RULE = re.compile(r"([\w*?.:/-]+)\s*(?:\((.+)\))?", re.DOTALL)
# `..` as a part of a path, in any JSON string.
_PARENT = re.compile(r"(?<![^/\\\\\"=:])(?:\.|%2e){2}(?![^/\\\\\"?#%])", re.IGNORECASE)
_QUOTED = re.compile(r"""'[^']*'|"(?:\\.|[^"\\])*"|\\.""", re.DOTALL)
SHELL_TOOLS = ("shell", "unsandboxed_shell")
"""Tools whose subject is a command: running one, and running one outside of the sandbox."""


class PermissionRule(Struct, frozen=True):
    """A tool name or glob, and a glob for the call's subject; None matches every subject.

    `resolved` is the pattern of a path with the links in it resolved, if it differs.
    """

    tool: str
    pattern: str | None = None
    resolved: str | None = None

    def __str__(self) -> str:
        return self.tool if self.pattern is None else f"{self.tool}({self.pattern})"

    def matches_tool(self, tool: str) -> bool:
        return self.tool == tool or ("*" in self.tool and rule_pattern(self.tool).matches(tool))

    def matches_subject(self, subject: str, *, ignore_case: bool = False) -> bool:
        if self.pattern is None or self.pattern == subject:
            return True
        pattern = self.pattern
        if self.tool in SHELL_TOOLS and pattern.endswith(" *") and "*" not in pattern[:-2]:
            bare = pattern[:-2]
            if subject == bare or (ignore_case and subject.casefold() == bare.casefold()):
                return True
        return rule_pattern(pattern, ignore_case=ignore_case).matches(subject)

    def matches_path(self, request: ApprovalRequest) -> bool:
        """Return whether the rule matches the path of a request in any form."""
        if not request.path or self.pattern is None:
            return False
        patterns = [self.pattern] if self.resolved is None else [self.pattern, self.resolved]
        return any(
            rule_pattern(pattern, ignore_case=True).matches(path)
            for pattern in patterns
            for path in ((request.path,) if pattern.startswith("/") else (request.subject, *request.aliases))
        )

    def may_allow(self, request: ApprovalRequest) -> bool:
        """Return whether a wildcard stays within what the pattern names: a folder, a host, a path in the arguments."""
        pattern = self.pattern or "*"
        if request.path:
            # Both are relative (inside the working folder) or both absolute.
            return pattern.startswith("/") == request.subject.startswith("/")
        if pattern != "*" and re.match("https?://", request.subject):
            return re.match("[^/]*://", pattern) is not None
        if pattern != "*" and request.tool not in SHELL_TOOLS:
            return not _PARENT.search(request.subject) or _PARENT.search(pattern) is not None
        return True

    def covers(self, form: PartForm) -> bool:
        """Return whether the pattern equals the command, or contains every word that no wildcard may match.

        The value of an option may be a wildcard: `--output=*`.
        """
        pattern = self.pattern or ""
        own = _parse_arguments(pattern)
        is_exact = pattern == form.text and not _has_wildcard(pattern)
        operands = () if pattern[:1] in ("*", "?") else form.operands
        for argument in () if is_exact else (*form.required, *operands):
            found = next((text for text in own if _is_literal(text, argument) or _matches_value(text, argument)), None)
            if found is None:
                return False
            own.remove(found)
        return True


def _has_wildcard(command: str) -> bool:
    return re.search("[*?]", _QUOTED.sub("", command)) is not None


def _is_literal(text: str, word: str) -> bool:
    return text == word and "*" not in text and "?" not in text


def _matches_value(text: str, word: str) -> bool:
    name, equals, _ = text.partition("=")
    return bool(equals) and word.startswith(f"{name}=") and "*" not in name and rule_pattern(text).matches(word)


def _parse_arguments(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError:
        return text.split()


def parse_rule(text: str, *, folder: Path | None = None) -> PermissionRule:
    """Parse `tool` or `tool(glob)`. A path with `~` or inside the folder is converted to the form that tools use."""
    match = _RULE.fullmatch(text.strip())
    if match is None:
        raise InputError(f"{text!r} is not a valid rule; expected a tool name, or name(glob)")
    tool, pattern = match.groups()
    resolved = None
    if pattern is not None and tool not in SHELL_TOOLS and "://" not in pattern:
        if pattern.startswith("~/"):
            pattern = (Path.home() / pattern[2:]).as_posix()
        pattern = _make_relative(pattern, folder).removeprefix("./")
        resolved = _resolve_links(pattern, folder)
    rule = PermissionRule(tool, pattern, resolved)
    try:
        rule.matches_subject("")
        rule_pattern(resolved or "")
    except ToolError as error:
        raise InputError(f"{text!r} is not a valid rule: {error}") from None
    return rule


def _make_relative(pattern: str, folder: Path | None) -> str:
    """Return the pattern relative to the folder, if it begins with its path."""
    for base in () if folder is None else (folder.resolve(), folder.absolute()):
        if pattern == base.as_posix():
            return "."
        if pattern.startswith(f"{base.as_posix()}/"):
            return pattern[len(base.as_posix()) + 1 :]
    return pattern


def _resolve_links(pattern: str, folder: Path | None) -> str | None:
    """Return the pattern with links and `..` before its first wildcard resolved; None if that changes nothing."""
    if folder is None and not pattern.startswith("/"):
        return None
    fixed = re.split(r"[*?]", pattern, maxsplit=1)[0]
    head = fixed if fixed == pattern else fixed.rpartition("/")[0]
    if not head:
        return None
    try:
        real = os.path.realpath(Path(folder or "/", head))
    except ValueError:
        # A null character.
        return None
    resolved = _make_relative(real.rstrip("/") + pattern[len(head) :], folder)
    return resolved if resolved != pattern else None


def parse_rules(action: str, texts: Iterable[str], folder: Path | None) -> tuple[PermissionRule, ...]:
    """Parse a list of rules; an error has the path of the rule."""
    rules: list[PermissionRule] = []
    for at, text in enumerate(texts):
        try:
            rules.append(parse_rule(text, folder=folder))
        except InputError as error:
            raise error.with_prefix(f"{action}[{at}]") from None
    return tuple(rules)


def find_allow_rule(all_rules: Iterable[PermissionRule], request: ApprovalRequest) -> PermissionRule | None:
    """Return the rule that allows a call. All parts of a command must be allowed; the first one's rule is returned."""
    rules = [rule for rule in all_rules if rule.matches_tool(request.tool)]
    # In a rule `*` is a wildcard, while a shell expands it, possibly to an option.
    may_be_exact = not request.parts or not _has_wildcard(request.subject)
    exact = next((rule for rule in rules if rule.pattern == request.subject and may_be_exact), None)
    whole = next((rule for rule in rules if rule.pattern is None), None)
    match request.allowed_by:
        case "name":
            return exact
        case "tool":
            return exact or whole
        case "pattern":
            if exact or whole:
                return exact or whole
            parts = request.parts or ((PartForm(request.subject),),)
            matching = [_find_form_rule(rules, request, forms) for forms in parts]
            return matching[0] if all(matching) else None


def _find_form_rule(
    rules: Iterable[PermissionRule], request: ApprovalRequest, forms: Iterable[PartForm]
) -> PermissionRule | None:
    for form in forms:
        for rule in rules:
            if rule.may_allow(request) and rule.matches_subject(form.text) and rule.covers(form):
                return rule
    return None
