"""Permission rules and modes, the approvals of this session, and the denial texts for the model.

A rule is a tool name, or a tool name with a glob for the call's subject: `read_file`, `write_file(src/*)`,
`shell(git status *)`, `fetch_url(https://docs.python.org/*)`, `github__*`. `*` matches any characters, `/` included.
Paths are resolved paths, relative to the working folder if inside it. An allow rule with a relative pattern covers only
paths inside the folder, one with an absolute pattern only paths outside. Deny and ask rules match a path in every form.

Precedence: deny rules, the mode `plan`, «always» answers of this session, ask rules, the mode `edits`, allow rules with
those of this session, then the tool's own approval request. If approval is needed and there is no approver, the call is
denied.

- A glob for `shell` matches one simple command. Of `a && b`, `a | b` and the like each part has to be allowed; a
  command with substitutions, redirections or grouping is allowed only by the rule `shell` without a glob, or by its
  exact text. `git log *` also allows `git log`, and both behind a plain wrapper (`timeout 5 git log`). Wildcards cover
  the reading forms of a command (`tools.shell_coverage`); the rule has to contain all other words. A deny rule is
  matched against every part that can be recognised; it prevents accidents and is not a security boundary, as a shell
  command can be written in many ways.
- `unsandboxed_shell(…)` allows commands to run outside of the sandbox, with the same patterns.
- Guarded paths (`.git`, `.segue.toml`, start-up files, secrets) are allowed only by a rule with the exact path.
- Deny and ask rules ignore case; allow rules do not.
"""

from __future__ import annotations

import asyncio
import json
import os
import threading
from collections import Counter
from collections.abc import Collection, Iterable
from difflib import get_close_matches
from pathlib import Path
from typing import Literal, TypeAlias

import msgspec

from segue.errors import InputError
from segue.runtime.permission_rules import PermissionRule, find_allow_rule, parse_rule, parse_rules
from segue.runtime.tool_types import AllowRules, ApprovalRequest, ApprovalScope, Approver, Denial

RuleAction: TypeAlias = Literal["allow", "ask", "deny"]
PermissionMode: TypeAlias = Literal["ask", "edits", "plan"]
"""`ask` follows the rules; `edits` also allows all edits inside the working folder; `plan` denies every change."""
# An «always» answer for a file covers both.
_EDIT_TOOLS = ("write_file", "edit_file")


class Permissions:
    """The permission rules, and the mode and the answers of this session."""

    def __init__(
        self,
        *,
        allow: Iterable[str] = (),
        ask: Iterable[str] = (),
        deny: Iterable[str] = (),
        folder: Path | None = None,
    ) -> None:
        self._rules = {
            action: parse_rules(action, texts, folder)
            for action, texts in (("deny", deny), ("ask", ask), ("allow", allow))
        }
        self.mode: PermissionMode = "ask"
        self._folder = None if folder is None else folder.resolve()
        self._session_rules: list[PermissionRule] = []
        self._always: dict[tuple[str, str], None] = {}
        self._ask_lock = asyncio.Lock()

    def list_rules(self) -> list[tuple[str, str]]:
        """Return all rules with their action; those of this session last, an «always» answer as a rule."""
        rows = [(action, str(rule)) for action, rules in self._rules.items() for rule in rules]
        session = [*map(str, self._session_rules), *(str(PermissionRule(*key)) for key in self._always)]
        return [*rows, *(("allow (this chat)", rule) for rule in session)]

    def allow(self, *rules: str) -> None:
        """Add allow rules for this session. They do not override ask rules; `InputError` for an invalid one."""
        parsed = [parse_rule(text, folder=self._folder) for text in rules]
        self._session_rules += [rule for rule in parsed if rule not in self._session_rules]

    def decide(self, request: ApprovalRequest) -> tuple[RuleAction, PermissionRule | None]:
        """Return the action for an approval request, and the rule that it comes from.

        The rule is None if the action comes from the mode, an «always» answer or from the tool's own default.
        """
        if (rule := self._find_rule("deny", request)) is not None:
            return "deny", rule
        if self.mode == "plan" and request.needed and request.changes:
            return "deny", None
        is_always_allowed = (request.tool, request.subject) in self._always
        if not is_always_allowed and (rule := self._find_rule("ask", request)) is not None:
            return "ask", rule
        if not request.needed or is_always_allowed or (self.mode == "edits" and request.is_edit):
            return "allow", None
        rule = find_allow_rule((*self._rules["allow"], *self._session_rules), request)
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
                validate_tool_name(rule, known, action, path=f"{action}[{at}]")

    async def check(self, request: ApprovalRequest, approve: Approver | None) -> str | None:
        """Return None if the call may run, else the denial text for the model."""
        action, rule = self.decide(request)
        if action == "ask" and approve is not None:
            # One approval at a time. An «always» answer given meanwhile may make this one unnecessary.
            async with self._ask_lock:
                action, rule = self.decide(request)
                if action == "ask":
                    # A wider rule would not override the rule that asks.
                    scopes = () if rule is not None else self._find_scopes(request)
                    return await self._ask(msgspec.structs.replace(request, scopes=scopes), approve)
        match action:
            case "allow":
                return None
            case "deny":
                return self.explain_denial(rule)
            case "ask":
                return _format_denial(request, rule)

    def explain_denial(self, rule: PermissionRule | None) -> str:
        """Return the denial text for the model: of a deny rule, or of the mode `plan` if there is none."""
        if rule is None:
            return (
                "denied: plan mode is on: you can read files, but not change files or run commands. Describe the "
                "changes that you plan; the user can switch the mode"
            )
        return f"denied: the deny rule {_quote(str(rule))} matches this call; try another way, or report it to the user"

    async def _ask(self, request: ApprovalRequest, approve: Approver) -> str | None:
        match await approve(request):
            case "once":
                return None
            case "always":
                tools = _EDIT_TOOLS if request.is_edit or request.tool in _EDIT_TOOLS else (request.tool,)
                self._always |= dict.fromkeys((tool, request.subject) for tool in tools)
                return None
            case AllowRules(rules):
                self.allow(*rules)
                return None
            case Denial(reason):
                return f"denied: the user rejected this call: {reason}"
            case "no":
                return "denied: the user rejected this call; don't try it in another way, ask how to proceed"

    def _find_scopes(self, request: ApprovalRequest) -> tuple[ApprovalScope, ...]:
        """Return the scopes of the request whose rules would allow this call."""
        return tuple(
            scope
            for scope in request.scopes
            if find_allow_rule([parse_rule(rule, folder=self._folder) for rule in scope.rules], request) is not None
        )

    def _find_rule(self, action: RuleAction, request: ApprovalRequest) -> PermissionRule | None:
        subjects = (request.subject, *request.aliases, *(form.text for forms in request.parts for form in forms))
        for rule in self._rules[action]:
            if rule.matches_tool(request.tool) and (
                any(rule.matches_subject(subject, ignore_case=True) for subject in subjects)
                or rule.matches_path(request)
            ):
                return rule
        return None


def validate_tool_name(rule: PermissionRule, known: Collection[str], action: str, *, path: str = "") -> None:
    """Raise `InputError` if the tool of a rule is unknown, with similar names. MCP tools are not checked."""
    if "__" in rule.tool or any(rule.matches_tool(name) for name in known):
        return
    near = get_close_matches(rule.tool.casefold(), known, n=3, cutoff=0.5)
    names = f"did you mean {' or '.join(near)}?" if near else f"known tools: {', '.join(sorted(known))}"
    raise InputError(f"unknown tool in {action} rule {_quote(str(rule))}: {names}", path=path)


def _quote(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _format_denial(request: ApprovalRequest, rule: PermissionRule | None) -> str:
    allowing = PermissionRule(request.tool, request.subject or None)
    if rule is not None:
        remedy = f"the ask rule {_quote(str(rule))} requires approval of each call"
    elif find_allow_rule([allowing], request) is not None:
        remedy = f"the setting allow = [{_quote(str(allowing))}] would allow it"
    else:
        remedy = (
            "no rule can contain this command, because * and ? are wildcards in rules; write the command without them"
        )
    return (
        f"denied: {request.title} needs approval, and there is no prompt for it; {remedy}. Continue without it, or stop"
    )


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
