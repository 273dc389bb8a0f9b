"""Function declarations, their names and schemas, and the tool choice: GEM-23."""

from __future__ import annotations

import re
from collections.abc import Iterator

from segue.conformance.gemini.request import GeminiRequest, Node, node
from segue.conformance.gemini.shape import each, walk
from segue.conformance.rule import Finding, Table
from segue.conformance.values import is_object, is_text, kind, quoted

__all__ = ["table"]

table: Table[GeminiRequest] = Table()

_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_.:-]*")
_LONG_NAME = 64
_LONGEST_NAME = 128
_DEEPEST = 64
_STRING_FORMATS = ("", "enum", "date-time")
_CHOOSING = ("ANY", "VALIDATED")
# These tools have functions of their own, so the declared names are not complete.
_BRINGING = ("computer_use", "mcp_servers")


# GEM-23
@table.rule("GEM-23")
def declarations_known(request: GeminiRequest) -> Iterator[Finding]:
    """tools and toolConfig have only fields that the API knows; schemas are its subset of OpenAPI."""
    yield from walk(request.node.get("tools"), "[]tool", request.node.at("tools"))
    yield from walk(request.node.get("tool_config"), "tool_config", request.node.at("tool_config"))


# GEM-23
@table.rule("GEM-23")
def names_valid(request: GeminiRequest) -> Iterator[Finding]:
    """A function name starts with a letter or `_`, goes on with letters, digits and `_.:-`, and has 64 characters.

    The SDK documents 128. A replayed name must only be present.
    """
    for declared in request.declarations:
        yield from _name(declared)
    for content in request.contents:
        for call in content.calls:
            name = call.get("name")
            if name in (None, ""):
                yield Finding(call.at("name"), "function_call.name: Name cannot be empty.")
        for replayed in (*content.calls, *content.responses):
            if replayed.text("name") and not _NAME.fullmatch(replayed.text("name")):
                seen = f"the name {quoted(replayed.get('name'))} is not valid in a declaration"
                yield Finding(replayed.at("name"), seen, "risk")


def _name(declared: Node) -> Iterator[Finding]:
    name = declared.get("name")
    if name is not None and not isinstance(name, str):
        return
    if not name or not _NAME.fullmatch(name):
        expected = "Must start with a letter or an underscore. Must be alphameric, underscores, dots, colons, or dashes"
        yield Finding(declared.at("name"), f"Invalid function name. {expected}: {quoted(name)}")
    elif len(name) > _LONGEST_NAME:
        yield Finding(declared.at("name"), f"Invalid function name. It has {len(name)} characters")
    elif len(name) > _LONG_NAME:
        seen = f"the name {quoted(name)} has {len(name)} characters; most endpoints allow {_LONG_NAME}"
        yield Finding(declared.at("name"), seen, "risk")


# GEM-23
@table.rule("GEM-23")
def declared_once(request: GeminiRequest) -> Iterator[Finding]:
    """No function is declared twice, not even in different tools."""
    first: dict[str, str] = {}
    for declared in request.declarations:
        name = declared.text("name")
        if name and first.setdefault(name, declared.path) != declared.path:
            seen = f"Duplicate function declaration found: {quoted(name)}, already declared at {first[name]}"
            yield Finding(declared.at("name"), seen)


# GEM-23
@table.rule("GEM-23")
def one_parameters_schema(request: GeminiRequest) -> Iterator[Finding]:
    """Either parameters or parametersJsonSchema is given, for an object; the same for the response."""
    for declared in request.declarations:
        for name in ("parameters", "response"):
            if name in declared.data and f"{name}_json_schema" in declared.data:
                seen = f"{declared.keys[f'{name}_json_schema']} and {name} are mutually exclusive"
                yield Finding(declared.at(f"{name}_json_schema"), seen)
        parameters = declared.child("parameters")
        schema_type = parameters.text("type").upper()
        if schema_type and schema_type != "OBJECT":
            seen = f"parameters schema should be of type OBJECT, it is {quoted(schema_type)}"
            yield Finding(parameters.at("type"), seen)
        elif is_object(declared.get("parameters")) and "type" not in parameters.data:
            yield Finding(
                parameters.at("type"), "parameters schema should be of type OBJECT; Vertex requires it", "risk"
            )
        json_schema = declared.get("parameters_json_schema")
        if json_schema is not None and not is_object(json_schema):
            seen = f"the schema is {kind(json_schema)}; an object is expected"
            yield Finding(declared.at("parameters_json_schema"), seen, "risk")


# GEM-23
@table.rule("GEM-23")
def schemas_complete(request: GeminiRequest) -> Iterator[Finding]:
    """An ARRAY has items, an enum has non-empty strings, and every required name is a property."""
    for declared in request.declarations:
        for name in ("parameters", "response"):
            for schema in _schemas(declared.child(name)):
                yield from _schema(schema)


def _schemas(root: Node, depth: int = 1) -> Iterator[Node]:
    """Yields a schema and its subschemas, down to the depth limit of `check_fields`."""
    if depth > _DEEPEST:
        return
    yield root
    if is_object(root.get("items")):
        yield from _schemas(root.child("items"), depth + 1)
    for inner in root.children("any_of"):
        yield from _schemas(inner, depth + 1)
    properties = root.get("properties")
    for key, inner in properties.items() if is_object(properties) else ():
        if is_object(inner):
            yield from _schemas(node(inner, f"{root.at('properties')}.{key}"), depth + 1)


def _schema(schema: Node) -> Iterator[Finding]:
    sort = schema.text("type").upper()
    if sort == "ARRAY" and "items" not in schema.data:
        yield Finding(schema.at("items"), "items: missing field.")
    if "enum" in schema.data:
        yield from _enum(schema, sort)
    if sort == "STRING" and schema.text("format") not in _STRING_FORMATS:
        seen = "only 'enum' and 'date-time' are supported for STRING type by older endpoints"
        yield Finding(schema.at("format"), seen, "risk")
    properties = schema.get("properties")
    for where, name in each(schema.get("required"), schema.at("required")):
        if is_text(name) and not (is_object(properties) and name in properties):
            yield Finding(where, f"{quoted(name)} is required but not a property", "risk")


def _enum(schema: Node, sort: str) -> Iterator[Finding]:
    if sort != "STRING":
        yield Finding(schema.at("enum"), "enum: only allowed for STRING type by older endpoints", "risk")
    for where, value in each(schema.get("enum"), schema.at("enum")):
        if value == "":
            yield Finding(where, "a value of an enum cannot be empty")


# GEM-23
@table.rule("GEM-23")
def allowed_names_declared(request: GeminiRequest) -> Iterator[Finding]:
    """allowedFunctionNames needs the mode ANY or VALIDATED and lists declared functions."""
    config = request.node.child("tool_config").child("function_calling_config")
    allowed = config.get("allowed_function_names")
    if not allowed:
        return
    mode = config.get("mode")
    if (mode is None or isinstance(mode, str)) and config.text("mode").upper() not in _CHOOSING:
        seen = f"allowed_function_names needs mode ANY or VALIDATED, not {quoted(mode or 'AUTO')}"
        yield Finding(config.at("allowed_function_names"), seen)
    if request.has_cache or any(name in tool.data for tool in request.tools for name in _BRINGING):
        return
    declared = {function.text("name") for function in request.declarations}
    for where, name in each(allowed, config.at("allowed_function_names")):
        if is_text(name) and name not in declared:
            yield Finding(where, f"no declared function has the name {quoted(name)}")
