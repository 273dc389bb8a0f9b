"""Projects tool names to names the target accepts, one to one, and maps them back in replies.

A valid name stays. In any other, invalid characters are replaced and a hash of the whole name is appended, so the
projection of a name never depends on the other names.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache

from msgspec import Struct

from segue.canonical.ids import short_hash
from segue.errors import ProjectionError

_HASH_LENGTH = 8


class NameRule(Struct, frozen=True):
    """Names have 1 to `limit` characters of the class `allowed`; the first one is of `first_allowed` if that is set.

    Same-API, `same_api_allowed` and `same_api_limit` extend this to what only some of the API's models accept, and
    `same_api_separator` is kept between two parts of a name. `same_api_custom_unchecked`: the API is not known to
    validate names of custom tools.
    """

    allowed: str = "a-zA-Z0-9_-"
    limit: int = 64
    same_api_allowed: str = ""
    same_api_limit: int = 0
    first_allowed: str = ""
    same_api_separator: str = ""
    same_api_custom_unchecked: bool = False
    separator: str = ""
    same_api_keep_undeclared: bool = False
    """Whether same-API names of undeclared tools are kept as they are."""
    only_names: frozenset[str] | None = None
    """The names that this rule applies to; None for all names."""

    def for_same_api(self, declared: Iterable[str] = ()) -> NameRule:
        limit = max(self.limit, self.same_api_limit)
        separator = self.same_api_separator or self.separator
        only_names = frozenset(declared) if self.same_api_keep_undeclared else None
        return NameRule(
            self.same_api_allowed + self.allowed,
            limit,
            first_allowed=self.first_allowed,
            separator=separator,
            only_names=only_names,
        )

    def project(self, name: str) -> str:
        if self.only_names is not None and name and name not in self.only_names:
            return name
        if self.separator and self.separator in name:
            head, tail = name.split(self.separator, 1)
            return self.separator.join((NameRule().project(head), self._project_part(tail)))
        return self._project_part(name)

    def _project_part(self, name: str) -> str:
        if _valid_pattern(self.first_allowed or self.allowed, self.allowed, self.limit).fullmatch(name):
            return name
        readable = re.sub(rf"[^{self.allowed}]", "_", name)
        if self.first_allowed and readable and not re.match(f"[{self.first_allowed}]", readable):
            readable = f"_{readable}" if re.match(f"[{self.first_allowed}]", "_") else f"tool_{readable}"
        readable = readable[: self.limit - _HASH_LENGTH - 1]
        digest = re.sub("[^a-z0-9]", "0", short_hash(name, _HASH_LENGTH).lower())
        return f"{readable or 'tool'}_{digest}"


@cache
def _valid_pattern(first: str, allowed: str, limit: int) -> re.Pattern[str]:
    return re.compile(rf"(?=[{first}])[{allowed}]{{1,{limit}}}")


ANY_NAME = NameRule(allowed=r"\s\S", limit=1_000_000)
"""Accepts every name as it is."""


class NameMap:
    """The tool names of one request, in both directions."""

    def __init__(self, rule: NameRule, names: Iterable[str] = ()) -> None:
        self._rule = rule
        self._projected: dict[str, str] = {}
        self._originals: dict[str, str] = {}
        for name in names:
            self.render(name)

    def render(self, name: str) -> str:
        """Return the projected name; raise `ProjectionError` if two names would get the same projection."""
        projected = self._projected.get(name)
        if projected is None:
            projected = self._rule.project(name)
            if self._originals.setdefault(projected, name) != name:
                other = self._originals[projected]
                raise ProjectionError(f"the tool names {name!r} and {other!r} both become {projected!r}")
            self._projected[name] = projected
        return projected

    def keep(self, name: str) -> None:
        """Register a name that is sent unchanged, valid or not."""
        self._projected[name] = self._originals[name] = name

    def parse(self, projected: str) -> str:
        """Return the canonical name of a projected one; a name that was not projected stays as it is."""
        return self._originals.get(projected, projected)

    @property
    def changed(self) -> list[tuple[str, str]]:
        return [(name, projected) for name, projected in self._projected.items() if name != projected]
