"""Function declarations, their names and schemas, and the tool choice: GEM-23 and GEM-31."""

from __future__ import annotations

import re
from collections.abc import Iterator

from segue.conformance.gemini.fields import check_fields, iter_entries, message
from segue.conformance.gemini.request import GeminiRequest, Node, make_node
from segue.conformance.rule import Problem, RuleTable
from segue.conformance.values import format_list, has_text, is_object, quote, type_name

table: RuleTable[GeminiRequest] = RuleTable()

_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_.:-]*")
_PARAMETER = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]{0,63}")
_LONG_NAME = 64
_LONGEST_NAME = 128
_MAX_DEPTH = 64
_STRING_FORMATS = ("", "enum", "date-time")
_MODES_WITH_NAMES = ("ANY", "VALIDATED")
# These tools have functions of their own, so the declared names are not complete.
_TOOLS_WITH_FUNCTIONS = ("computer_use", "mcp_servers")


@table.rule("GEM-23")
def declarations_known(request: GeminiRequest) -> Iterator[Problem]:
    """tools and toolConfig have only fields that the API knows; schemas are its subset of OpenAPI."""
    for name in ("tools", "tool_config"):
        spec = message("GenerateContentRequest").members[name]
        yield from check_fields(request.node.get(name), spec, request.node.path_of(name))


@table.rule("GEM-23")
def names_valid(request: GeminiRequest) -> Iterator[Problem]:
    """A function name is a letter or `_`, then letters, digits and `_.:-`, at most 64 characters together.

    The SDK documents 128. A replayed name only has to be present; an invalid one is a risk.
    """
    for declared in request.declarations:
        yield from _check_name(declared)
    for content in request.contents:
        for call in content.calls:
            name = call.get("name")
            if name in (None, ""):
                yield Problem(call.path_of("name"), "function_call.name: Name cannot be empty.")
        for replayed in (*content.calls, *content.responses):
            if replayed.text("name") and not _NAME.fullmatch(replayed.text("name")):
                seen = f"the name {quote(replayed.get('name'))} is not valid in a declaration"
                yield Problem(replayed.path_of("name"), seen, "risk")


def _check_name(declared: Node) -> Iterator[Problem]:
    name = declared.get("name")
    if name is not None and not isinstance(name, str):
        return
    if not name or not _NAME.fullmatch(name):
        expected = "Must start with a letter or an underscore. Must be alphameric, underscores, dots, colons, or dashes"
        yield Problem(declared.path_of("name"), f"Invalid function name. {expected}: {quote(name)}")
    elif len(name) > _LONGEST_NAME:
        yield Problem(declared.path_of("name"), f"Invalid function name. It has {len(name)} characters")
    elif len(name) > _LONG_NAME:
        seen = f"the name {quote(name)} has {len(name)} characters; most endpoints allow {_LONG_NAME}"
        yield Problem(declared.path_of("name"), seen, "risk")


@table.rule("GEM-23")
def declared_once(request: GeminiRequest) -> Iterator[Problem]:
    """No function is declared twice, not even in different tools."""
    first: dict[str, str] = {}
    for declared in request.declarations:
        name = declared.text("name")
        if name and first.setdefault(name, declared.path) != declared.path:
            seen = f"Duplicate function declaration found: {quote(name)}, already declared at {first[name]}"
            yield Problem(declared.path_of("name"), seen)


@table.rule("GEM-23")
def one_parameters_schema(request: GeminiRequest) -> Iterator[Problem]:
    """Either parameters or parametersJsonSchema is given, for an object; the same for the response."""
    for declared in request.declarations:
        for name in ("parameters", "response"):
            if name in declared.data and f"{name}_json_schema" in declared.data:
                seen = f"{declared.keys[f'{name}_json_schema']} and {name} are mutually exclusive"
                yield Problem(declared.path_of(f"{name}_json_schema"), seen)
        parameters = declared.child("parameters")
        schema_type = parameters.text("type").upper()
        if schema_type and schema_type != "OBJECT":
            seen = f"parameters schema should be of type OBJECT, it is {quote(schema_type)}"
            yield Problem(parameters.path_of("type"), seen)
        elif is_object(declared.get("parameters")) and "type" not in parameters.data:
            yield Problem(
                parameters.path_of("type"), "parameters schema should be of type OBJECT; Vertex requires it", "risk"
            )
        json_schema = declared.get("parameters_json_schema")
        if json_schema is not None and not is_object(json_schema):
            seen = f"the schema is {type_name(json_schema)}; an object is expected"
            yield Problem(declared.path_of("parameters_json_schema"), seen, "risk")


@table.rule("GEM-23")
def schemas_complete(request: GeminiRequest) -> Iterator[Problem]:
    """An ARRAY has items, an enum has non-empty strings, and every required name is a property."""
    for declared in request.declarations:
        for name in ("parameters", "response"):
            for schema in _walk_schemas(declared.child(name)):
                yield from _check_schema(schema)


def _walk_schemas(root: Node, depth: int = 1) -> Iterator[Node]:
    """Yield a schema and its subschemas, down to the depth limit of `check_fields`."""
    if depth > _MAX_DEPTH:
        return
    yield root
    if is_object(root.get("items")):
        yield from _walk_schemas(root.child("items"), depth + 1)
    for inner in root.children("any_of"):
        yield from _walk_schemas(inner, depth + 1)
    properties = root.get("properties")
    for key, inner in properties.items() if is_object(properties) else ():
        if is_object(inner):
            yield from _walk_schemas(make_node(inner, f"{root.path_of('properties')}.{key}"), depth + 1)


def _check_schema(schema: Node) -> Iterator[Problem]:
    schema_type = schema.text("type").upper()
    if schema_type == "ARRAY" and "items" not in schema.data:
        yield Problem(schema.path_of("items"), "items: missing field.")
    if "enum" in schema.data:
        yield from _check_enum(schema, schema_type)
    if schema_type == "STRING" and schema.text("format") not in _STRING_FORMATS:
        seen = "only 'enum' and 'date-time' are supported for STRING type by older endpoints"
        yield Problem(schema.path_of("format"), seen, "risk")
    properties = schema.get("properties")
    for where, name in iter_entries(schema.get("required"), schema.path_of("required")):
        if has_text(name) and not (is_object(properties) and name in properties):
            yield Problem(where, f"{quote(name)} is required but not a property", "risk")


def _check_enum(schema: Node, schema_type: str) -> Iterator[Problem]:
    if schema_type != "STRING":
        yield Problem(schema.path_of("enum"), "enum: only allowed for STRING type by older endpoints", "risk")
    for where, value in iter_entries(schema.get("enum"), schema.path_of("enum")):
        if value == "":
            yield Problem(where, "a value of an enum cannot be empty")


@table.rule("GEM-23")
def allowed_names_declared(request: GeminiRequest) -> Iterator[Problem]:
    """allowedFunctionNames needs the mode ANY or VALIDATED and lists declared functions."""
    config = request.node.child("tool_config").child("function_calling_config")
    allowed = config.get("allowed_function_names")
    if not allowed:
        return
    mode = config.get("mode")
    if (mode is None or isinstance(mode, str)) and config.text("mode").upper() not in _MODES_WITH_NAMES:
        seen = f"allowed_function_names needs mode ANY or VALIDATED, not {quote(mode or 'AUTO')}"
        yield Problem(config.path_of("allowed_function_names"), seen)
    if request.has_cached_content or any(name in tool.data for tool in request.tools for name in _TOOLS_WITH_FUNCTIONS):
        return
    declared = {function.text("name") for function in request.declarations}
    for where, name in iter_entries(allowed, config.path_of("allowed_function_names")):
        if has_text(name) and name not in declared:
            yield Problem(where, f"no declared function has the name {quote(name)}")


@table.rule("GEM-31", severity="risk")
def parameter_names_documented(request: GeminiRequest) -> Iterator[Problem]:
    """The name of a parameter is documented as a letter or `_`, then letters, digits and `_`, at most 64 characters."""
    for declared in request.declarations:
        parameters = declared.child("parameters")
        properties = parameters.get("properties")
        invalid = [name for name in properties if not _PARAMETER.fullmatch(name)] if is_object(properties) else []
        if invalid:
            seen = f"{format_list(invalid)} should be letters, digits and '_'; dots, dashes and '$' are not documented"
            yield Problem(parameters.path_of("properties"), seen)
