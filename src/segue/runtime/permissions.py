"""Permission rules, the approvals of this session, and the denial texts for the model.

A rule is a tool name, or a tool name with a glob for the call's subject: `read_file`, `write_file(src/*)`,
`shell(git status *)`, `fetch_url(https://docs.python.org/*)`, `github__*`. `*` matches any characters, `/` included.
Paths are resolved paths, relative to the working folder if inside it. An allow rule with a relative pattern covers only
paths inside the folder, one with an absolute pattern only paths outside. Deny and ask rules match a path in every form.

Precedence: deny rules, «always» answers of this session, ask rules, allow rules, then the tool's own approval request.
If approval is needed and there is no approver, the call is denied.

- A glob for `shell` matches one simple command. Of `a && b`, `a | b` and the like each part has to be allowed; a
  command with substitutions, redirections or grouping is allowed only by the rule `shell` without a glob, or by its
  exact text. `git log *` also allows `git log`, and both behind a plain wrapper (`timeout 5 git log`). An option that
  runs a program or writes a file (`--output`, `-o`, `--exec`, `-c` …) is not matched by wildcards; the rule has to
  contain it. A deny rule is matched against every part that can be recognised; it prevents accidents and is not a
  security boundary, as a shell command can be written in many ways.
- Guarded paths (`.git`, `.segue.toml`, start-up files, secrets) are allowed only by a rule with the exact path.
- Deny and ask rules ignore case; allow rules do not.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import shlex
import threading
from collections import Counter
from collections.abc import Collection, Iterable
from difflib import get_close_matches
from pathlib import Path
from typing import Literal, TypeAlias

from msgspec import Struct

from segue.errors import InputError
from segue.runtime.patterns import rule_pattern
from segue.runtime.tool_types import ApprovalRequest, Approver, Denial, PartForm, ToolError

RuleAction: TypeAlias = Literal["allow", "ask", "deny"]
_RULE = re.compile(r"([\w*?.:/-]+)\s*(?:\((.+)\))?", re.DOTALL)


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
        if self.tool == "shell" and pattern.endswith(" *") and "*" not in pattern[:-2]:
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
        """Return whether the rule and a path are both relative, which is inside the working folder, or absolute."""
        return not request.path or (self.pattern or "").startswith("/") == request.subject.startswith("/")

    def includes_arguments(self, words: Iterable[str]) -> bool:
        """Return whether the rule itself contains all of these words, so that no wildcard has to match them.

        The value of an option may be a wildcard: `--output=*`.
        """
        own = _parse_arguments(self.pattern or "")
        for word in words:
            found = next((text for text in own if _is_literal(text, word) or _matches_value(text, word)), None)
            if found is None:
                return False
            own.remove(found)
        return True


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
    if pattern is not None and tool != "shell" and "://" not in pattern:
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


class Permissions:
    """The permission rules, and the «always» answers of this session."""

    def __init__(
        self,
        *,
        allow: Iterable[str] = (),
        ask: Iterable[str] = (),
        deny: Iterable[str] = (),
        folder: Path | None = None,
    ) -> None:
        self._rules = {
            action: _parse_rules(action, texts, folder)
            for action, texts in (("deny", deny), ("ask", ask), ("allow", allow))
        }
        self._folder = None if folder is None else folder.resolve()
        self._always: set[tuple[str, str]] = set()
        self._ask_lock = asyncio.Lock()

    def decide(self, request: ApprovalRequest) -> tuple[RuleAction, PermissionRule | None]:
        """Return the action for an approval request, and the rule that it comes from.

        The rule is None if the action comes from an «always» answer or from the tool's own default.
        """
        for action in ("deny", "ask"):
            rule = self._find_rule(action, request)
            if rule is not None and (action == "deny" or not self._is_always_allowed(request)):
                return action, rule
        if not request.needed or self._is_always_allowed(request):
            return "allow", None
        rule = self._find_allow_rule(request)
        return ("ask", None) if rule is None else ("allow", rule)

    def denies(self, tool: str, subject: str) -> bool:
        """Return whether a deny rule matches this path. `glob` and `grep` skip such files."""
        if not self._rules["deny"]:
            return False
        path = "" if self._folder is None else os.path.normpath(self._folder / subject)
        return self._find_rule("deny", ApprovalRequest(tool, subject, "", path=path)) is not None

    def validate_tool_names(self, known: Collection[str]) -> None:
        """Raise `InputError` for a rule with an unknown tool. MCP tools (`server__tool`) are not checked."""
        for action, rules in self._rules.items():
            for at, rule in enumerate(rules):
                if "__" in rule.tool or any(rule.matches_tool(name) for name in known):
                    continue
                near = get_close_matches(rule.tool.casefold(), known, n=3, cutoff=0.5)
                names = f"did you mean {' or '.join(near)}?" if near else f"known tools: {', '.join(sorted(known))}"
                raise InputError(f"unknown tool in {action} rule {_quote(str(rule))}: {names}", path=f"{action}[{at}]")

    async def check(self, request: ApprovalRequest, approve: Approver | None) -> str | None:
        """Return None if the call may run, else the denial text for the model."""
        action, rule = self.decide(request)
        if action == "ask" and approve is not None:
            # One approval at a time. An «always» answer given meanwhile may make this one unnecessary.
            async with self._ask_lock:
                action, rule = self.decide(request)
                if action == "ask":
                    return await self._ask(request, approve)
        match action:
            case "allow":
                return None
            case "deny":
                return f"denied: the rule {_quote(str(rule))} forbids this; find another way, or tell the user"
            case "ask":
                return _format_denial(request, rule)

    async def _ask(self, request: ApprovalRequest, approve: Approver) -> str | None:
        match await approve(request):
            case "once":
                return None
            case "always":
                self._always.add((request.tool, request.subject))
                return None
            case Denial(reason):
                return f"denied: the user said no to this: {reason}"
            case "no":
                return "denied: the user said no to this; don't try it in another way, ask what to do instead"

    def _is_always_allowed(self, request: ApprovalRequest) -> bool:
        return (request.tool, request.subject) in self._always

    def _find_rule(self, action: RuleAction, request: ApprovalRequest) -> PermissionRule | None:
        subjects = (request.subject, *request.aliases, *(form.text for forms in request.parts for form in forms))
        for rule in self._rules[action]:
            if rule.matches_tool(request.tool) and (
                any(rule.matches_subject(subject, ignore_case=True) for subject in subjects)
                or rule.matches_path(request)
            ):
                return rule
        return None

    def _find_allow_rule(self, request: ApprovalRequest) -> PermissionRule | None:
        rules = [rule for rule in self._rules["allow"] if rule.matches_tool(request.tool)]
        exact = next((rule for rule in rules if rule.pattern == request.subject), None)
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
            if rule.may_allow(request) and rule.matches_subject(form.text) and rule.includes_arguments(form.required):
                return rule
    return None


def _parse_rules(action: str, texts: Iterable[str], folder: Path | None) -> tuple[PermissionRule, ...]:
    rules: list[PermissionRule] = []
    for at, text in enumerate(texts):
        try:
            rules.append(parse_rule(text, folder=folder))
        except InputError as error:
            raise error.with_prefix(f"{action}[{at}]") from None
    return tuple(rules)


def _quote(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _format_denial(request: ApprovalRequest, rule: PermissionRule | None) -> str:
    allowing = PermissionRule(request.tool, request.subject or None)
    remedy = (
        f"the rule {_quote(str(rule))} asks each time"
        if rule is not None
        else f"the rule allow = [{_quote(str(allowing))}] would allow it"
    )
    return f"denied: {request.title} needs leave, and nobody is there to give it; {remedy}. Go on without, or stop"


class Grants:
    """Approvals that were given and are not used yet.

    A tool consumes the approval for what it is about to do. If that differs from what was approved, there is none.
    """

    def __init__(self) -> None:
        self._remaining: Counter[tuple[str, str, str]] = Counter()
        self._lock = threading.Lock()

    def add(self, request: ApprovalRequest) -> None:
        with self._lock:
            self._remaining[_grant_key(request)] += 1

    def consume(self, request: ApprovalRequest) -> bool:
        key = _grant_key(request)
        with self._lock:
            if not self._remaining[key]:
                del self._remaining[key]
                return False
            self._remaining[key] -= 1
            return True


def _grant_key(request: ApprovalRequest) -> tuple[str, str, str]:
    return request.tool, request.subject, request.allowed_by
