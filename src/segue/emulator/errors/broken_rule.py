"""A broken rule with the body, from which a provider's error text is built."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from msgspec import Struct

from segue.conformance.rule import Violation
from segue.wire.base import ApiError

_STEP = re.compile(r"([^.\[\]]+)|\[(\d+)\]")


class BrokenRule(Struct, frozen=True):
    """All violations of one rule in a body, in order."""

    body: Mapping[str, Any]
    violations: tuple[Violation, ...]

    @property
    def path(self) -> str:
        """The path of the first violation: `messages[1].content[0]`."""
        return self.violations[0].path

    @property
    def dotted_path(self) -> str:
        """The path as `messages.1.content.0`."""
        return self.path.replace("[", ".").replace("]", "")

    @property
    def steps(self) -> tuple[str | int, ...]:
        return tuple(name or int(index) for name, index in _STEP.findall(self.path))

    @property
    def message(self) -> str:
        """The message of the first violation, for rules without a provider's text."""
        return self.violations[0].message

    def value_at(self, *steps: str | int) -> Any:
        """Return the value at these path steps of the body, or None."""
        value: Any = self.body
        for step in steps:
            try:
                value = value[step]
            except (KeyError, IndexError, TypeError):
                return None
        return value

    @property
    def value(self) -> Any:
        """The value at the path, or None."""
        return self.value_at(*self.steps)


ErrorBuilder: TypeAlias = Callable[[BrokenRule], ApiError]


class StandardErrors(Struct, frozen=True):
    """The provider's errors that are not about the content of the body."""

    no_key: ApiError
    bad_key: ApiError
    bad_json: ApiError
    no_route: Callable[[str, str], ApiError]
    """By method and path."""
    no_model: Callable[[str], ApiError]
    """By model name."""
    rate_limited: ApiError
    server_error: ApiError
    overloaded: ApiError
    context_length: ApiError
    """The prompt has more tokens than the model takes."""
    wrong_method: Callable[[str, str], ApiError] | None = None
    """By method and path; without it a wrong method gives `no_route`."""
    max_body_bytes: int = 50 * 2**20
    """The maximum size of a body in bytes."""
    too_large: ApiError = ApiError(413, "Request Entity Too Large")


class ErrorTexts(Struct, frozen=True):
    """The error texts of one API. `rule_order` lists the rules that it checks before all others."""

    rules: Mapping[str, ErrorBuilder]
    standard: StandardErrors
    rule_order: tuple[str, ...] = ()
