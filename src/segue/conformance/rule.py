"""Rules, the problems their checks report, and the verdict on a body.

Each check has a rulebook number. A table of rules is plain data that the docs, the CLI and the tests iterate. Checking
never changes the body.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Generic, Literal, TypeVar

import msgspec

from segue.errors import format_count
from segue.models import Model, parse_model

Severity = Literal["reject", "risk"]
R = TypeVar("R")


class Violation(msgspec.Struct, frozen=True, gc=False):
    """One broken rule at one path.

    `reject`: the provider returns an error. `risk`: degraded output, or an error on some deployments only.
    """

    rule: str
    path: str
    message: str
    severity: Severity

    def __str__(self) -> str:
        return f"{self.rule} {self.severity} at {self.path or 'the body'}: {self.message}"


class Problem(msgspec.Struct, frozen=True, gc=False):
    """A problem that a check reports. `severity` is set only where it differs from the rule's."""

    path: str
    message: str
    severity: Severity | None = None


class ModelFilter(msgspec.Struct, frozen=True):
    """The models a rule applies to: `description` for readers, `matches` for the checker."""

    description: str
    matches: Callable[[Model], bool]


EVERY_MODEL = ModelFilter("every model", lambda _: True)


class Rule(msgspec.Struct, Generic[R], frozen=True):
    """A check with its rulebook number. A number may have several checks; `name` is unique.

    `is_general`: the rule covers what no other rule does, so it is not reported where another rule rejects the value
    or a part of it.
    """

    number: str
    name: str
    description: str
    severity: Severity
    applies_to: ModelFilter
    check: Callable[[R], Iterator[Problem]]
    is_general: bool = False

    def with_severity(self, severity: Severity) -> Rule[R]:
        """Return the same rule with another severity, for an API that shares it."""
        if severity == self.severity:
            return self
        check = self.check

        def without_severity(request: R) -> Iterator[Problem]:
            for problem in check(request):
                yield Problem(problem.path, problem.message)

        return Rule(
            self.number, self.name, self.description, severity, self.applies_to, without_severity, self.is_general
        )

    def find_violations(self, request: R) -> Iterator[Violation]:
        """Yield a violation for each path where the request breaks this rule."""
        for problem in self.check(request):
            yield Violation(self.number, problem.path, problem.message, problem.severity or self.severity)


class RuleTable(Generic[R]):
    """The rules of one module in the order of their definition."""

    def __init__(self) -> None:
        self._rules: list[Rule[R]] = []

    def rule(
        self,
        number: str,
        *,
        severity: Severity = "reject",
        applies_to: ModelFilter = EVERY_MODEL,
        is_general: bool = False,
    ) -> Callable[[Callable[[R], Iterator[Problem]]], Callable[[R], Iterator[Problem]]]:
        """Register the decorated generator as a check of this rule; its docstring becomes the rule's description."""

        def register(check: Callable[[R], Iterator[Problem]]) -> Callable[[R], Iterator[Problem]]:
            description = " ".join((check.__doc__ or "").split())
            self._rules.append(Rule(number, check.__name__, description, severity, applies_to, check, is_general))
            return check

        return register

    def __iter__(self) -> Iterator[Rule[R]]:
        return iter(self._rules)


class Verdict(msgspec.Struct, frozen=True):
    """Whether the provider would accept the body: no violation has the severity `reject`."""

    api: str
    model: str | None
    violations: tuple[Violation, ...]

    def __iter__(self) -> Iterator[Violation]:
        return iter(self.violations)

    def __len__(self) -> int:
        return len(self.violations)

    def __bool__(self) -> bool:
        return all(violation.severity != "reject" for violation in self.violations)

    def __repr__(self) -> str:
        numbers = ", ".join(dict.fromkeys(violation.rule for violation in self.violations))
        return f"<Verdict {self.api}: {'accepted' if self else 'rejected'}{f' ({numbers})' if numbers else ''}>"

    def __str__(self) -> str:
        checked = f"{self.api} ({self.model})" if self.model else self.api
        head = f"{checked}: {'accepted' if self else 'rejected'}, {format_count(len(self), 'violation')}"
        return "\n".join([head, *(f"  {violation}" for violation in self.violations)])

    def to_dict(self) -> dict[str, object]:
        """Return the verdict as plain JSON values."""
        return {
            "api": self.api,
            "model": self.model,
            "accepted": bool(self),
            "violations": [msgspec.to_builtins(violation) for violation in self.violations],
        }


_INDEX = re.compile(r"\[(\d+)\]")
_STEP = re.compile(r"[.\[]")


def _sort_key(violation: Violation) -> tuple[bool, list[int]]:
    """Sort violations outside `messages`, `input` and `contents` first, the others by their indexes."""
    path = violation.path
    return path.startswith(("messages", "input", "contents")), [int(index) for index in _INDEX.findall(path)]


def _parent_paths(path: str) -> Iterator[str]:
    """Yield the paths of the values that contain the value at this path."""
    return (path[: match.start()] for match in _STEP.finditer(path) if match.start())


class RuleSet(msgspec.Struct, Generic[R], frozen=True):
    """All rules of one API, the parser of its bodies, and why the other rulebook numbers have no check."""

    api: str
    parse: Callable[[Mapping[str, object], Model], R]
    rules: tuple[Rule[R], ...]
    not_checkable: Mapping[str, str]
    model_key: str = "model"

    def check(self, body: Mapping[str, object], model: str | None) -> Verdict:
        """Check a body. Raises `InputError` if it has no messages."""
        body_model = body.get(self.model_key)
        name = model or (body_model if isinstance(body_model, str) and body_model else None)
        parsed = parse_model(name)
        request = self.parse(body, parsed)
        rules = [rule for rule in self.rules if rule.applies_to.matches(parsed)]
        violations = [v for rule in rules if not rule.is_general for v in rule.find_violations(request)]
        rejected = {v.path for v in violations if v.severity == "reject"}
        rejected |= {parent for path in rejected for parent in _parent_paths(path)}
        general = (v for rule in rules if rule.is_general for v in rule.find_violations(request))
        violations += [v for v in general if v.path not in rejected]
        return Verdict(self.api, name, tuple(sorted(violations, key=_sort_key)))
