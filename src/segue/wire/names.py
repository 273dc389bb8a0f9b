"""Tool names as a target can spell them: one to one, and back again on replies.

A name that the target takes stays. Any other gets its forbidden characters replaced and a hash of the whole name
behind it, so what a name becomes never depends on which other names there are.
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
    """`allowed` is a character class; names are 1 to `limit` characters of it, the first one of `first` if that is set.

    At home also what only some of the API's models are known to take (`home_allowed`, `home_limit`) stays, and a name
    in two parts where the API keeps them apart (`home_joint` stands between them). `home_free`: names of free-text
    tools are not known to be looked at.
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
    """Whether at home the names of tools that are not declared stay, whatever they are."""
    bound: frozenset[str] | None = None
    """The names that this rule is for; None where it is for all."""

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
"""What takes every name as it is."""


class NameMap:
    """The names of one request, both ways."""

    def __init__(self, rule: NameRule, names: Iterable[str] = ()) -> None:
        self._rule = rule
        self._out: dict[str, str] = {}
        self._back: dict[str, str] = {}
        for name in names:
            self.render(name)

    def render(self, name: str) -> str:
        """The target's spelling."""
        spelled = self._out.get(name)
        if spelled is None:
            spelled = self._rule.project(name)
            if self._back.setdefault(spelled, name) != name:
                raise ProjectionError(f"the tool names {name!r} and {self._back[spelled]!r} both become {spelled!r}")
            self._out[name] = spelled
        return spelled

    def keep(self, name: str) -> None:
        """Leaves a name as it is, whatever is in it."""
        self._out[name] = self._back[name] = name

    def parse(self, spelled: str) -> str:
        """The name that the target's spelling stands for; a name we never gave stays as it is."""
        return self._back.get(spelled, spelled)

    @property
    def changed(self) -> list[tuple[str, str]]:
        return [(name, spelled) for name, spelled in self._out.items() if name != spelled]
