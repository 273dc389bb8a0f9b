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

__all__ = ["ANY_NAME", "NameMap", "NameRule"]

_HASH = 8


class NameRule(Struct, frozen=True):
    """Names have 1 to `limit` characters of the class `allowed`; the first one is of `first_allowed` if that is set.

    Same-API, `same_api_allowed` and `same_api_limit` extend this to what only some of the API's models accept, and
    `same_api_separator` is kept between two parts of a name. `same_api_custom_unchecked`: the API is not known to
    validate names of custom tools.
    """

    allowed: str = "a-zA-Z0-9_-"
    limit: int = 64
    home_allowed: str = ""
    home_limit: int = 0
    first: str = ""
    home_joint: str = ""
    home_free: bool = False
    joint: str = ""
    replayed: bool = False
    """True if same-API names of undeclared tools are kept as they are."""
    bound: frozenset[str] | None = None
    """The names that this rule applies to; None for all names."""

    def at_home(self, declared: Iterable[str] = ()) -> NameRule:
        limit = max(self.limit, self.home_limit)
        joint = self.home_joint or self.joint
        bound = frozenset(declared) if self.replayed else None
        return NameRule(self.home_allowed + self.allowed, limit, first=self.first, joint=joint, bound=bound)

    def project(self, name: str) -> str:
        if self.bound is not None and name and name not in self.bound:
            return name
        if self.joint and self.joint in name:
            head, tail = name.split(self.joint, 1)
            return self.joint.join((NameRule().project(head), self._projected(tail)))
        return self._projected(name)

    def _projected(self, name: str) -> str:
        if _lawful(self.first or self.allowed, self.allowed, self.limit).fullmatch(name):
            return name
        readable = re.sub(rf"[^{self.allowed}]", "_", name)
        if self.first and readable and not re.match(f"[{self.first}]", readable):
            readable = f"_{readable}" if re.match(f"[{self.first}]", "_") else f"tool_{readable}"
        readable = readable[: self.limit - _HASH - 1]
        digest = re.sub("[^a-z0-9]", "0", short_hash(name, _HASH).lower())
        return f"{readable or 'tool'}_{digest}"


@cache
def _lawful(first: str, allowed: str, limit: int) -> re.Pattern[str]:
    return re.compile(rf"(?=[{first}])[{allowed}]{{1,{limit}}}")


ANY_NAME = NameRule(allowed=r"\s\S", limit=1_000_000)
"""Accepts every name as it is."""


class NameMap:
    """The tool names of one request, in both directions."""

    def __init__(self, rule: NameRule, names: Iterable[str] = ()) -> None:
        self._rule = rule
        self._out: dict[str, str] = {}
        self._back: dict[str, str] = {}
        for name in names:
            self.render(name)

    def render(self, name: str) -> str:
        """The projected name; raises `ProjectionError` if two names would get the same projection."""
        projected = self._out.get(name)
        if projected is None:
            projected = self._rule.project(name)
            if self._back.setdefault(projected, name) != name:
                other = self._back[projected]
                raise ProjectionError(f"the tool names {name!r} and {other!r} both become {projected!r}")
            self._out[name] = projected
        return projected

    def keep(self, name: str) -> None:
        """Registers a name that is sent unchanged, valid or not."""
        self._out[name] = self._back[name] = name

    def parse(self, projected: str) -> str:
        """The canonical name of a projected one; a name that was not projected stays as it is."""
        return self._back.get(projected, projected)

    @property
    def changed(self) -> list[tuple[str, str]]:
        return [(name, projected) for name, projected in self._out.items() if name != projected]
