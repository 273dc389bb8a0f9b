"""Tool declarations of Anthropic bodies: ANT-34 to ANT-36, and ANT-41.

Tools of a type other than `custom` are defined by the provider; only the uniqueness of their names is checked.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from segue.conformance.anthropic.request import AnthropicRequest
from segue.conformance.lookup import member, object_or_empty
from segue.conformance.rule import Problem, RuleTable
from segue.conformance.values import format_list, has_text, is_list, is_object, quote, type_name

table: RuleTable[AnthropicRequest] = RuleTable()

_NAME = re.compile(r"[a-zA-Z0-9_-]+")
_PROPERTY = re.compile(r"[a-zA-Z0-9_.-]{1,64}")
_LONG_NAME = 64
_LONGEST_NAME = 128


@table.rule("ANT-34")
def names_valid(request: AnthropicRequest) -> Iterator[Problem]:
    """Tool names, declared and replayed, are up to 64 (on newer deployments 128) letters, digits, `_` and `-`."""
    for tool in request.tools:
        if tool.is_custom:
            yield from _check_name(f"{tool.path}.name", tool.data.get("name"))
    for block in request.blocks_of("tool_use"):
        yield from _check_name(f"{block.path}.name", block.data.get("name"))


def _check_name(path: str, name: object) -> Iterator[Problem]:
    if not has_text(name):
        yield Problem(path, f"the name is {type_name(name)}; letters, digits, '_' and '-' are expected")
    elif not _NAME.fullmatch(name):
        yield Problem(path, f"the name {quote(name)} has characters other than letters, digits, '_' and '-'")
    elif len(name) > _LONGEST_NAME:
        yield Problem(path, f"the name {quote(name)} has {len(name)} characters; at most {_LONGEST_NAME} are allowed")
    elif len(name) > _LONG_NAME:
        seen = f"the name {quote(name)} has {len(name)} characters"
        yield Problem(path, f"{seen}; older deployments allow {_LONG_NAME}", "risk")


@table.rule("ANT-35")
def names_unique(request: AnthropicRequest) -> Iterator[Problem]:
    """No two tools of a request have the same name."""
    first: dict[str, str] = {}
    for tool in request.tools:
        name = tool.data.get("name")
        if has_text(name) and first.setdefault(name, tool.path) != tool.path:
            yield Problem(f"{tool.path}.name", f"{quote(name)} is already the name of {first[name]}")


@table.rule("ANT-36")
def schema_is_object(request: AnthropicRequest) -> Iterator[Problem]:
    """The input_schema of a custom tool describes an object."""
    declared = request.body.get("tools")
    if declared is not None and not is_list(declared):
        yield Problem("tools", f"tools is {type_name(declared)}; a list is expected")
    for tool in request.tools:
        schema = tool.data.get("input_schema")
        if not tool.is_custom:
            continue
        if not is_object(schema):
            yield Problem(
                f"{tool.path}.input_schema", f"input_schema is {type_name(schema)}; a JSON Schema is expected"
            )
        elif schema.get("type") != "object":
            seen = quote(schema["type"]) if "type" in schema else "missing"
            yield Problem(f"{tool.path}.input_schema.type", f"the type of the schema is {seen}; 'object' is expected")


@table.rule("ANT-36", severity="risk")
def tools_declared(request: AnthropicRequest) -> Iterator[Problem]:
    """If messages contain calls or results, at least one tool is declared; gateways enforce it."""
    if not request.tools and any(block_type in request.blocks_by_type for block_type in ("tool_use", "tool_result")):
        yield Problem("tools", "the history has tool calls or results but no tools are declared; gateways reject it")


def find_invalid_properties(schema: object) -> str | None:
    """Return the message for top-level properties with invalid names, `None` if all are valid."""
    names = object_or_empty(member(schema, "properties"))
    invalid = [name for name in names if not _PROPERTY.fullmatch(name)]
    return f"Property keys should match pattern '^{_PROPERTY.pattern}$': {format_list(invalid)}" if invalid else None


@table.rule("ANT-41")
def properties_valid(request: AnthropicRequest) -> Iterator[Problem]:
    """The top-level properties of an input_schema are named with 1 to 64 letters, digits, `_`, `.` and `-`."""
    for tool in request.tools:
        message = find_invalid_properties(tool.data.get("input_schema")) if tool.is_custom else None
        if message is not None:
            yield Problem(f"{tool.path}.input_schema.properties", message)
