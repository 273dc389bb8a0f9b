"""A broken rule as the provider meets it, and what its own words for it can be made of."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from msgspec import Struct

from segue.conformance.rule import Violation
from segue.wire.base import ApiError

__all__ = ["Fault", "Troubles", "Word", "Words"]

_STEP = re.compile(r"([^.\[\]]+)|\[(\d+)\]")


class Fault(Struct, frozen=True):
    """All violations of one rule in a body, the first of them first."""

    body: Mapping[str, Any]
    violations: tuple[Violation, ...]

    @property
    def path(self) -> str:
        """Where, as the judge writes it: `messages[1].content[0]`."""
        return self.violations[0].path

    @property
    def dotted(self) -> str:
        """The same as `messages.1.content.0`."""
        return self.path.replace("[", ".").replace("]", "")

    @property
    def steps(self) -> tuple[str | int, ...]:
        return tuple(name or int(index) for name, index in _STEP.findall(self.path))

    @property
    def message(self) -> str:
        """The judge's words, for want of the provider's."""
        return self.violations[0].message

    def at(self, *steps: str | int) -> Any:
        """What stands at these steps into the body, or None."""
        value: Any = self.body
        for step in steps:
            try:
                value = value[step]
            except (KeyError, IndexError, TypeError):
                return None
        return value

    @property
    def value(self) -> Any:
        """What stands at the path, or None."""
        return self.at(*self.steps)


Word: TypeAlias = Callable[[Fault], ApiError]


class Troubles(Struct, frozen=True):
    """What the provider answers where the body is not to blame, or can't be read at all."""

    no_key: ApiError
    bad_key: ApiError
    bad_json: ApiError
    no_route: Callable[[str, str], ApiError]
    """By method and path."""
    no_model: Callable[[str], ApiError]
    """By the model's name; kept for deployments and routes that have none."""
    rate_limited: ApiError
    failed: ApiError
    overloaded: ApiError
    wrong_method: Callable[[str, str], ApiError] | None = None
    """By method and path; where it is not known, a path that is asked in the wrong way is no path."""
    largest: int = 50 * 2**20
    """How many bytes a body may have."""
    too_large: ApiError = ApiError(413, "Request Entity Too Large")


class Words(Struct, frozen=True):
    """The words of one API. `first` are the numbers of the rules that it looks at before all others, in their order."""

    rules: Mapping[str, Word]
    troubles: Troubles
    first: tuple[str, ...] = ()
