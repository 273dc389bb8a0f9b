"""The tools of a Chat Completions body and the tool choice, compared by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from segue.conformance.values import is_object
from segue.emulator.json_values import object_or_none, objects_in


def declared_names(body: Mapping[str, Any]) -> set[str]:
    """Return the names of the declared tools."""
    inner = [object_or_none(tool.get(str(tool.get("type")))) or {} for tool in objects_in(body.get("tools"))]
    return {str(definition.get("name")) for definition in inner}


def chosen_name(choice: object) -> str | None:
    """Return the tool name in a tool choice."""
    if not is_object(choice):
        return None
    inner = choice.get(str(choice.get("type")))
    name = inner.get("name") if is_object(inner) else None
    return name if isinstance(name, str) else None


def undeclared_choice(body: Mapping[str, Any]) -> str | None:
    """Return the name in tool_choice if no such tool is declared."""
    name = chosen_name(body.get("tool_choice"))
    return name if name is not None and name not in declared_names(body) else None
