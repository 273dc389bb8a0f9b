"""Projects tool names and parameter names to names the target accepts, one to one, and maps them back in replies.

A valid name stays. In any other, invalid characters are replaced and a hash of the whole name is appended, so the
projection of a name never depends on the other names.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, lru_cache
from typing import Any

from msgspec import Struct

from segue.canonical.ids import short_hash
from segue.errors import ProjectionError
from segue.wire.schema.property_names import find_root_properties, rename_root_properties

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

    def find_invalid(self, names: Sequence[str]) -> list[str]:
        """Return the names that the target does not accept as they are."""
        is_valid = self.match_valid
        if all(map(is_valid, names)):
            return []
        return [name for name in names if not is_valid(name) and self.project(name) != name]

    @property
    def match_valid(self) -> Callable[[str], object]:
        """A function that matches names of one part that stay as they are."""
        first = self.first_allowed or self.allowed
        return _compile_valid_name(first, self.allowed, self.limit, self.separator).fullmatch

    @property
    def _valid_part(self) -> re.Pattern[str]:
        return _compile_valid_name(self.first_allowed or self.allowed, self.allowed, self.limit)

    def project(self, name: str) -> str:
        if self.only_names is not None and name and name not in self.only_names:
            return name
        if self.separator and self.separator in name:
            head, tail = name.split(self.separator, 1)
            return self.separator.join((NameRule().project(head), self._project_part(tail)))
        return self._project_part(name)

    def _project_part(self, name: str) -> str:
        if self._valid_part.fullmatch(name):
            return name
        readable = re.sub(rf"[^{self.allowed}]", "_", name)
        if self.first_allowed and readable and not re.match(f"[{self.first_allowed}]", readable):
            readable = f"_{readable}" if re.match(f"[{self.first_allowed}]", "_") else f"tool_{readable}"
        readable = readable[: self.limit - _HASH_LENGTH - 1]
        digest = re.sub("[^a-z0-9]", "0", short_hash(name, _HASH_LENGTH).lower())
        return f"{readable or 'tool'}_{digest}"


@cache
def _compile_valid_name(first: str, allowed: str, limit: int, separator: str = "") -> re.Pattern[str]:
    no_separator = rf"(?!.*{re.escape(separator)})" if separator else ""
    return re.compile(rf"{no_separator}(?=[{first}])[{allowed}]{{1,{limit}}}", re.DOTALL)


@lru_cache(maxsize=4096)
def _project_name(rule: NameRule, name: str) -> str:
    """Project a name that is not valid; cached, since a conversation declares the same tools at every turn."""
    return rule.project(name)


def clear_projected_names() -> None:
    """Clear the cache of projected names."""
    _project_name.cache_clear()


ANY_NAME = NameRule(allowed=r"\s\S", limit=1_000_000)
"""Accepts every name as it is."""
# ANT-41
CLAUDE_PARAMETERS = NameRule(allowed="a-zA-Z0-9_.-", limit=64)
"""The names that Claude accepts for the top-level properties of a tool's schema."""


class ParameterNames:
    """The projected parameter names of each tool, in both directions: only those at the top level of its schema.

    Schemas are rendered before calls. Names of a tool whose declared names are all valid are never changed.
    """

    def __init__(self) -> None:
        self._rules: dict[str, NameRule] = {}
        self._projected: dict[str, dict[str, str]] = {}
        self._originals: dict[str, dict[str, str]] = {}

    def render_schema(self, tool: str, schema: Mapping[str, Any], rule: NameRule) -> Mapping[str, Any]:
        """Return the schema of a tool with names that the rule accepts; the same object if they are valid."""
        names = find_root_properties(schema)
        invalid = rule.find_invalid(names)
        if not invalid:
            return schema
        self._rules[tool] = rule
        for name in invalid:
            self._project(tool, name, frozenset(names))
        return self.rename_schema(tool, schema)

    def rename_schema(self, tool: str, schema: Mapping[str, Any]) -> dict[str, Any]:
        """Return the schema of a rendered tool with the projected names."""
        return rename_root_properties(schema, self._projected[tool])

    def render_arguments(self, tool: str, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the arguments of a call with the projected names."""
        if tool not in self._projected:
            return arguments
        for name in arguments:
            # An undeclared parameter that has the projected name of another one.
            if name in self._originals[tool]:
                self._project(tool, name, frozenset(arguments))
        projected = self._projected[tool]
        return {projected.get(name, name): value for name, value in arguments.items()}

    def parse_arguments(self, tool: str, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the arguments of a reply's call with the original names; a projected name has priority."""
        originals = self._originals.get(tool, {})
        parsed = {name: value for name, value in arguments.items() if name not in originals}
        parsed |= {originals[name]: value for name, value in arguments.items() if name in originals}
        return {key: parsed[key] for key in dict.fromkeys(originals.get(name, name) for name in arguments)}

    def has_changed(self, tool: str) -> bool:
        """Return whether any parameter of the tool has another name at the target."""
        return tool in self._projected

    def _project(self, tool: str, name: str, others: frozenset[str]) -> None:
        projected = self._projected.setdefault(tool, {})
        originals = self._originals.setdefault(tool, {})
        if name in projected:
            return
        new, salt = self._rules[tool].project(name), 0
        while new in originals or new in others:
            salt += 1
            new = self._rules[tool].project(f"{name}${salt}")
        projected[name], originals[new] = new, name

    def copy(self) -> ParameterNames:
        copied = ParameterNames()
        copied._rules = self._rules.copy()
        copied._projected = {tool: names.copy() for tool, names in self._projected.items()}
        copied._originals = {tool: names.copy() for tool, names in self._originals.items()}
        return copied

    @property
    def changed(self) -> list[tuple[str, str, str]]:
        """Tool, parameter and projected parameter of each changed name."""
        return [(tool, name, new) for tool, names in self._projected.items() for name, new in names.items()]


class NameMap:
    """The tool names of one request, and the parameter names of each tool, in both directions."""

    def __init__(self, rule: NameRule, names: Iterable[str] = ()) -> None:
        self._rule = rule
        self._match_valid = rule.match_valid
        self._projected: dict[str, str] = {}
        self._originals: dict[str, str] = {}
        self.parameters = ParameterNames()
        for name in names:
            self.render(name)

    def render(self, name: str) -> str:
        """Return the projected name; raise `ProjectionError` if two names would get the same projection."""
        projected = self._projected.get(name)
        if projected is None:
            projected = name if self._match_valid(name) else _project_name(self._rule, name)
            if self._originals.setdefault(projected, name) != name:
                other = self._originals[projected]
                raise ProjectionError(f"the tool names {name!r} and {other!r} both become {projected!r}")
            self._projected[name] = projected
        return projected

    def keep(self, name: str) -> None:
        """Register a name that is sent unchanged, valid or not."""
        self._projected[name] = self._originals[name] = name

    def has_same_changes(self, other: NameMap) -> bool:
        """Return whether both maps change the same names of tools and parameters."""
        return self.changed == other.changed and self.parameters.changed == other.parameters.changed

    def copy(self) -> NameMap:
        copied = NameMap(self._rule)
        copied._projected, copied._originals = self._projected.copy(), self._originals.copy()
        copied.parameters = self.parameters.copy()
        return copied

    def parse(self, projected: str) -> str:
        """Return the canonical name of a projected one; a name that was not projected stays as it is."""
        return self._originals.get(projected, projected)

    @property
    def changed(self) -> list[tuple[str, str]]:
        return [(name, projected) for name, projected in self._projected.items() if name != projected]


# ---------------------------------------------------------------------------------------------------------- namespaces

NAMESPACE_SEPARATOR = "::"


def join_name(namespace: str, name: str) -> str:
    """Return the full name of a tool in a namespace. The separator is valid in neither part."""
    return f"{namespace}{NAMESPACE_SEPARATOR}{name}"


def split_name(name: str) -> tuple[str | None, str]:
    """Return the namespace (or None) and the bare name."""
    namespace, joint, bare = name.partition(NAMESPACE_SEPARATOR)
    return (namespace, bare) if joint else (None, name)
