"""Schemas and values for the tests of schema translation, and the targets' own rules as walks over what came out.

The walks are written from the vendors' pages and error messages, apart from the code that they judge.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import jsonschema
from hypothesis import assume
from hypothesis import strategies as st

Schema = Any

# ------------------------------------------------------------------------------------------------------------ schemas

KEYS = st.sampled_from(["a", "b", "c", "d e", "$x"])
TEXTS = st.sampled_from(["", "a", "ab", "abc", "b"])
NUMBERS = st.sampled_from([-1, 0, 1, 2, 3, 0.5, 1.0, 2.5])
SCALARS = st.none() | st.booleans() | NUMBERS | TEXTS
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3), max_leaves=5
)
OBJECTS = st.dictionaries(KEYS, VALUES, max_size=4)
TYPE_NAMES = st.sampled_from(["string", "number", "integer", "boolean", "object", "array", "null"])
NAMES = ("one", "two")
TARGETS = ("#/$defs/one", "#/$defs/two", "#", "#/properties/a")
REFS = st.sampled_from([*TARGETS, "#anchored"])


def _only(**keywords: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({}, optional=keywords)


def _nodes(inner: st.SearchStrategy[Schema]) -> st.SearchStrategy[Schema]:
    several = st.lists(inner, min_size=1, max_size=3)
    named = st.dictionaries(KEYS, inner, max_size=3)
    count = st.integers(0, 3)
    keys = st.lists(KEYS, max_size=2, unique=True)
    object_ = _only(
        type=st.just("object"),
        properties=named,
        required=keys,
        additionalProperties=st.booleans() | inner,
        patternProperties=st.dictionaries(st.sampled_from(["^a", "b"]), inner, min_size=1, max_size=1),
        minProperties=count,
        maxProperties=count,
        propertyNames=inner,
        dependentRequired=st.dictionaries(KEYS, keys, max_size=1),
        dependentSchemas=st.dictionaries(KEYS, inner, max_size=1),
        unevaluatedProperties=st.booleans() | inner,
        description=st.just("Words."),
    )
    array = _only(
        type=st.just("array"),
        items=inner,
        prefixItems=several,
        minItems=count,
        maxItems=count,
        uniqueItems=st.booleans(),
        contains=inner,
        minContains=count,
        maxContains=count,
        unevaluatedItems=st.booleans() | inner,
    )
    combined = _only(
        type=TYPE_NAMES | st.lists(TYPE_NAMES, min_size=1, max_size=3, unique=True),
        properties=named,
        required=keys,
        allOf=several,
        anyOf=several,
        oneOf=several,
        description=st.just("Combined."),
        additionalProperties=st.booleans(),
        unevaluatedProperties=st.booleans(),
        **{"not": inner, "if": inner, "then": inner, "else": inner, "$ref": REFS},
    )
    scalar = _only(
        type=TYPE_NAMES | st.lists(TYPE_NAMES, min_size=1, max_size=3, unique=True),
        enum=st.lists(VALUES, min_size=1, max_size=4),
        const=VALUES,
        minLength=count,
        maxLength=count,
        pattern=st.sampled_from(["^a", "b$", "^(?!a)"]),
        format=st.sampled_from(["uri", "date-time", "int32"]),
        minimum=NUMBERS,
        maximum=NUMBERS,
        exclusiveMinimum=NUMBERS,
        exclusiveMaximum=NUMBERS,
        multipleOf=st.sampled_from([1, 2, 0.5]),
        default=SCALARS,
        examples=st.lists(SCALARS, max_size=2),
        title=st.just("Title"),
    )
    return object_ | array | combined | scalar | st.booleans()


LEAVES = st.fixed_dictionaries({"type": TYPE_NAMES}) | st.fixed_dictionaries({"$ref": REFS}) | st.booleans()
NODES = st.recursive(LEAVES, _nodes, max_leaves=8)
ROOTS = NODES.filter(lambda node: isinstance(node, dict))


@st.composite
def documents(draw: st.DrawFn) -> dict[str, Any]:
    """A whole schema of 2020-12, references included. In-place loops, which have no meaning, are left out."""
    root: Any = draw(ROOTS)
    if draw(st.booleans()):
        root = {"type": "object", "properties": {"a": draw(NODES), "b": draw(NODES)}, **root}
    root = {**root, "$defs": {"one": draw(NODES), "two": {"$anchor": "anchored", **_dict(draw(NODES))}}}
    if "properties" not in root or "a" not in root["properties"]:
        root["properties"] = {"a": True, **root.get("properties", {})}
    assume(not any(goes_round(ref, root) for ref in TARGETS))
    return root


def goes_round(ref: str, root: dict[str, Any], seen: frozenset[str] = frozenset()) -> bool:
    """Whether a reference comes back to itself without going into a value."""
    places = {"#": root, "#/$defs/one": root["$defs"]["one"], "#/properties/a": root["properties"]["a"]}
    met = _met_in_place(places.get(ref, root["$defs"]["two"]))
    names = ("#/$defs/two" if name == "#anchored" else name for name in met)
    return any(name == ref or name in seen or goes_round(name, root, seen | {ref}) for name in names)


def _met_in_place(schema: Schema) -> Iterator[str]:
    if not isinstance(schema, dict):
        return
    if "$ref" in schema:
        yield schema["$ref"]
    inner = [member for key in ("allOf", "anyOf", "oneOf") for member in schema.get(key, ())]
    inner += [schema[key] for key in ("not", "if", "then", "else") if key in schema]
    for member in [*inner, *schema.get("dependentSchemas", {}).values()]:
        yield from _met_in_place(member)


def _dict(schema: Schema) -> dict[str, Any]:
    return schema if isinstance(schema, dict) else ({} if schema else {"not": {}})


_LEAF = st.sampled_from(
    [
        {"type": "string"},
        {"type": "string", "minLength": 1, "format": "uri"},
        {"type": "integer", "minimum": 0},
        {"type": ["number", "null"]},
        {"enum": ["a", "b"]},
        {"const": 1},
        {"type": "boolean", "default": True},
        {"$ref": "#/$defs/one"},
        {"$ref": "#/$defs/one", "description": "One."},
    ]
)


def _typed_nodes(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    closed: Any = st.sampled_from([{"additionalProperties": False}, {"additionalProperties": False}, {}])
    object_ = st.builds(
        lambda named, rest, needed: {"type": "object", "properties": named, "required": needed, **rest},
        st.dictionaries(KEYS.filter(lambda key: key in ("a", "b", "c")), inner, min_size=1, max_size=3),
        closed,
        st.lists(st.sampled_from(["a", "b"]), max_size=1),
    )
    array = st.builds(lambda items: {"type": "array", "items": items, "maxItems": 2}, inner)
    unions = st.builds(
        lambda key, members: {key: members},
        st.sampled_from(["anyOf", "oneOf", "allOf"]),
        st.lists(inner, min_size=1, max_size=2),
    )
    return object_ | array | unions


_PROPERTIES = st.dictionaries(
    st.sampled_from(["a", "b", "c"]), st.recursive(_LEAF, _typed_nodes, max_leaves=6), min_size=1, max_size=3
)
_ONE = st.recursive(_LEAF.filter(lambda schema: "$ref" not in schema), _typed_nodes, max_leaves=3)


@st.composite
def typed_objects(draw: st.DrawFn) -> dict[str, Any]:
    """An object schema with a type on every node, as strict modes require; sometimes an open one."""
    properties = draw(_PROPERTIES)
    one = draw(_ONE)
    root = {"type": "object", "properties": properties, "additionalProperties": False, "$defs": {"one": one}}
    assume(not _loops(one))
    return {**root, "required": draw(st.lists(st.sampled_from(sorted(properties)), unique=True))}


def _loops(one: Schema) -> bool:
    return "#/$defs/one" in _met_in_place(one)


def is_valid(value: Any, schema: Schema) -> bool:
    """The verdict of an independent validator."""
    return jsonschema.Draft202012Validator(schema).is_valid(value)


# ----------------------------------------------------------------------------------------------- walks over the result


SINGLE = frozenset(
    {"items", "additionalProperties", "additionalItems", "not", "if", "then", "else", "contains", "propertyNames"}
    | {"unevaluatedItems", "unevaluatedProperties"}
)


def subschemas(schema: Schema, path: str = "") -> Iterator[tuple[str, Schema]]:
    yield path, schema
    if not isinstance(schema, dict):
        return
    for key, value in schema.items():
        if key in ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies"):
            for name, inner in value.items():
                if isinstance(inner, dict | bool):
                    yield from subschemas(inner, f"{path}/{key}/{name}")
        elif key in ("allOf", "anyOf", "oneOf", "prefixItems") or (key == "items" and isinstance(value, list)):
            for index, inner in enumerate(value):
                yield from subschemas(inner, f"{path}/{key}/{index}")
        elif key in SINGLE:
            yield from subschemas(value, f"{path}/{key}")


def types(node: dict[str, Any]) -> list[str]:
    types_ = node.get("type", [])
    return types_ if isinstance(types_, list) else [types_]


def _references_lead_somewhere(schema: Schema, key: str = "$defs") -> Iterator[str]:
    for path, node in subschemas(schema):
        ref = node.get("$ref") if isinstance(node, dict) else None
        if ref is not None and ref != "#":
            name = ref.removeprefix(f"#/{key}/")
            if name not in schema.get(key, {}):
                yield f"{path}: {ref} leads nowhere"


def _object_at_the_top(schema: Schema, *refused: str) -> Iterator[str]:
    if schema.get("type") not in ("object", "OBJECT"):
        yield f"the type at the top is {schema.get('type')}"
    for key in schema.keys() & {*refused, "$ref"}:
        yield f"{key} at the top"
    if "properties" not in schema and schema.get("type") == "object":
        yield "object schema missing properties"


def plain_complaints(schema: Schema) -> Iterator[str]:
    yield from _object_at_the_top(schema)
    yield from _references_lead_somewhere(schema)


def openai_complaints(schema: Schema) -> Iterator[str]:
    yield from _object_at_the_top(schema, "oneOf", "anyOf", "allOf", "enum", "const", "not")
    yield from _references_lead_somewhere(schema)
    for path, node in subschemas(schema):
        if isinstance(node, dict) and "array" in types(node) and "items" not in node:
            yield f"{path}: array schema missing items"


_STRICT_WORDS = frozenset(
    {"type", "properties", "required", "additionalProperties", "items", "anyOf", "enum", "const", "$ref", "$defs"}
    | {"description", "title", "pattern", "format", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"}
    | {"multipleOf", "minItems", "maxItems"}
)


def _closed(schema: Schema, *, all_required: bool) -> Iterator[str]:
    for path, node in subschemas(schema):
        if isinstance(node, dict) and "object" in types(node):
            if node.get("additionalProperties") is not False:
                yield f"{path}: 'additionalProperties' is required to be supplied and to be false"
            if all_required and set(node.get("required", ())) != set(node.get("properties", ())):
                yield f"{path}: 'required' must include every key in properties"


def _keywords_of(schema: Schema, allowed: frozenset[str]) -> Iterator[str]:
    for path, node in subschemas(schema):
        if isinstance(node, bool):
            if not path.endswith("/additionalProperties"):
                yield f"{path}: a boolean for a schema"
        elif node.keys() - allowed:
            yield f"{path}: {sorted(node.keys() - allowed)} are not permitted"


def openai_strict_complaints(schema: Schema) -> Iterator[str]:
    yield from openai_complaints(schema)
    yield from _closed(schema, all_required=True)
    yield from _keywords_of(schema, _STRICT_WORDS)
    for path, node in subschemas(schema):
        if isinstance(node, dict) and not node.keys() & {"type", "anyOf", "$ref"}:
            yield f"{path}: schema must have a 'type' key"
        if isinstance(node, dict) and "$ref" in node and len(node) > (2 if path == "" else 1):
            yield f"{path}: $ref cannot have keywords {sorted(node)}"
        if isinstance(node, dict) and node.get("format") in ("uri", "int32"):
            yield f"{path}: {node['format']} is not a valid format"


def deepseek_strict_complaints(schema: Schema) -> Iterator[str]:
    yield from _closed(schema, all_required=True)
    yield from _keywords_of(schema, (_STRICT_WORDS | {"default"}) - {"minItems", "maxItems"})


def anthropic_complaints(schema: Schema) -> Iterator[str]:
    yield from _object_at_the_top(schema, "oneOf", "anyOf", "allOf")
    yield from _references_lead_somewhere(schema)
    jsonschema.Draft202012Validator.check_schema(schema)


def bedrock_complaints(schema: Schema) -> Iterator[str]:
    yield from _object_at_the_top(schema, "oneOf", "anyOf", "allOf", "enum", "const", "not")
    yield from _references_lead_somewhere(schema)


def nova_complaints(schema: Schema) -> Iterator[str]:
    yield from bedrock_complaints(schema)
    for path, node in subschemas(schema):
        if isinstance(node, dict) and node.keys() & {"$ref", "$defs"}:
            yield f"{path}: there is no place for definitions"


def anthropic_strict_complaints(schema: Schema) -> Iterator[str]:
    keywords = frozenset(
        {"type", "properties", "required", "additionalProperties", "items", "anyOf", "enum", "const", "$ref", "$defs"}
        | {"description", "title", "default", "format", "minItems"}
    )
    yield from anthropic_complaints(schema)
    yield from _closed(schema, all_required=False)
    yield from _keywords_of(schema, keywords)


def mistral_complaints(schema: Schema) -> Iterator[str]:
    jsonschema.Draft7Validator.check_schema(schema)
    yield from _object_at_the_top(schema)
    yield from _references_lead_somewhere(schema, "definitions")
    late = {"$schema", "$id", "$defs", "prefixItems", "dependentRequired", "dependentSchemas", "unevaluatedItems"}
    late |= {"unevaluatedProperties", "minContains", "maxContains"}
    for path, node in subschemas(schema):
        if isinstance(node, bool):
            continue
        if late & node.keys():
            yield f"{path}: {sorted(late & node.keys())} are not of draft 7"
        if "$ref" in node and node.keys() - {"$ref", "description", "title", "default", "examples", "definitions"}:
            yield f"{path}: keywords beside $ref"


def gemini_complaints(schema: Schema) -> Iterator[str]:
    keywords = frozenset(
        {"type", "format", "title", "description", "enum", "items", "prefixItems", "minItems", "maxItems", "minimum"}
        | {"maximum", "anyOf", "properties", "additionalProperties", "required"}
    )
    yield from _object_at_the_top(schema, "anyOf")
    yield from _keywords_of(schema, keywords)
    for path, node in subschemas(schema):
        if isinstance(node, dict) and not all(isinstance(v, str | int | float) for v in node.get("enum", ())):
            yield f"{path}: enum of something else than strings and numbers"
        if isinstance(node, dict) and not set(node.get("required", ())) <= set(node.get("properties", ())):
            yield f"{path}: a required property is not defined"


def gemini_openapi_complaints(schema: Schema) -> Iterator[str]:
    keywords = frozenset(
        {"type", "format", "title", "description", "nullable", "enum", "items", "minItems", "maxItems", "minimum"}
        | {"maximum", "minLength", "maxLength", "pattern", "minProperties", "maxProperties", "anyOf", "properties"}
        | {"required"}
    )
    yield from _object_at_the_top(schema, "anyOf")
    yield from _keywords_of(schema, keywords)
    for path, node in subschemas(schema):
        kind = node.get("type")
        if "anyOf" in node:
            if len(node) > 1:
                yield f"{path}: specified other fields alongside any_of"
        elif kind not in ("STRING", "NUMBER", "INTEGER", "BOOLEAN", "OBJECT", "ARRAY", "NULL"):
            yield f"{path}: type must be specified"
        if "enum" in node and (kind != "STRING" or not all(isinstance(v, str) and v for v in node["enum"])):
            yield f"{path}: enum only for non-empty strings"
        if kind == "ARRAY" and "items" not in node:
            yield f"{path}.items: missing field"
        if node.keys() & {"properties", "required"} and kind != "OBJECT":
            yield f"{path}: only allowed for OBJECT type"
        if not set(node.get("required", ())) <= set(node.get("properties", ())):
            yield f"{path}: property is not defined"
        if "properties" in node and not node["properties"]:
            yield f"{path}.properties: should be non-empty for OBJECT type"
        if kind == "STRING" and node.get("format") not in (None, "enum", "date-time"):
            yield f"{path}.format: only 'enum' and 'date-time' are supported for STRING type"


_MFJS: dict[str, frozenset[str]] = {
    "object": frozenset({"properties", "required", "additionalProperties", "default"}),
    "array": frozenset({"items", "minItems", "maxItems", "default"}),
    "string": frozenset({"minLength", "maxLength", "pattern", "enum", "default"}),
    "boolean": frozenset({"enum", "default"}),
    "null": frozenset({"enum", "default"}),
    "number": frozenset({"minimum", "maximum", "enum", "default"}),
    "integer": frozenset({"minimum", "maximum", "enum", "default"}),
}


def kimi_complaints(schema: Schema) -> Iterator[str]:
    """Moonshot's validator at its strictest level."""
    yield from _object_at_the_top(schema, "anyOf")
    yield from _references_lead_somewhere(schema)
    common = {"type", "description", "title"}
    for path, node in subschemas(schema):
        if isinstance(node, bool):
            if not path.endswith("/additionalProperties"):
                yield f"{path}: must be an object"
            continue
        own = node.keys() - ({"$defs"} if path == "" else set())
        for key in ("anyOf", "$ref"):
            if key in own and own - {key, "description", "title"}:
                yield f"{path}: {sorted(own)} beside {key}"
        kinds = types(node)
        if not own & {"type", "anyOf", "$ref"}:
            yield f"{path}: type is not defined"
        if len(kinds) == 1 and own - common - _MFJS[kinds[0]]:
            yield f"{path}: invalid keywords {sorted(own - common - _MFJS[kinds[0]])}"
        if len(kinds) > 1 and own - common:
            yield f"{path}: {sorted(own - common)} with several types"
        if not set(node.get("required", ())) <= set(node.get("properties", ())):
            yield f"{path}: a required property is not defined in properties"
        for name in node.get("properties", ()):
            if name in ("", "$defs", "$ref", "anyOf", "required", "additionalProperties"):
                yield f"{path}: property name {name!r} is reserved"
            if "/" in name and path.startswith("/$defs"):
                yield f"{path}: a slash in {name!r}"
        if "enum" in node and len({type(value) for value in node["enum"]} - {float}) > 1:
            yield f"{path}: an enum of mixed types"
        if any(own & {"description", "title"} & member.keys() for member in node.get("anyOf", ())):
            yield f"{path}: conflicting keywords found in anyOf with parent"
        for low, high in (("minimum", "maximum"), ("minLength", "maxLength"), ("minItems", "maxItems")):
            if low in node and high in node and node[low] > node[high]:
                yield f"{path}: {low} cannot be greater than {high}"
        if path.count("/properties/") > 30:
            yield f"{path}: schema depth exceeds maximum limit of 30"


WALKS: dict[str, Callable[[Schema], Iterator[str]]] = {
    "plain": plain_complaints,
    "openai": openai_complaints,
    "deepseek": openai_complaints,
    "openai-strict": openai_strict_complaints,
    "deepseek-strict": deepseek_strict_complaints,
    "anthropic": anthropic_complaints,
    "anthropic-strict": anthropic_strict_complaints,
    "bedrock": bedrock_complaints,
    "nova": nova_complaints,
    "gemini": gemini_complaints,
    "gemini-openapi": gemini_openapi_complaints,
    "mistral": mistral_complaints,
    "kimi": kimi_complaints,
}
