"""Schemas that some value fits, built of the keywords that tools are declared with."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

Schema = dict[str, Any]

SAMPLE_TEXTS = st.sampled_from(
    [
        "",
        "Hi!",
        "What is the weather in Lisbon and Oslo for the next 3 days?",
        "Read src/app.py, then write 'done' to notes.txt",
        "Mail anna@example.org on 2026-03-05 at 14:05 about https://example.com/a",
        "Order A-1042 and #7: alpha, beta; 12.5 or -3, twenty of each, c d e",
        "a b c ab abc red 1 2 3",
    ]
)
KEYS = st.sampled_from(["city", "path", "count", "tags", "id", "mode", "when", "a b", "$x"])
PATTERNS = st.sampled_from(
    [
        r"^[A-Z]{3}$",
        r"^\d{4}-\d{2}$",
        r"^[a-z0-9-]+$",
        r"^(foo|bar)-\d+$",
        r"^#(?:[0-9a-fA-F]{6})$",
        r"[aeiou]x",
        r"^\+?[1-9]\d{1,14}$",
        r"^v\d+\.\d+\.\d+$",
        r"^.{3,}$",
        r"^[^/\s]+$",
        r"\S",
        r"^(?P<year>\d\d)\b",
        r"^[\w.-]+@[\w-]+\.[a-z]{2,}$",
        r"^(?!x)[a-z]{2}$",
        r"^\[[^\]]*\]$",
        r"^[\u0041-\x5a]{2}$",
        r"^[A-Z][a-z]+(?: [A-Z][a-z]+)*$",
        "",
    ]
)
FORMATS = st.sampled_from(
    ["date", "date-time", "time", "email", "uri", "uuid", "ipv4", "ipv6", "hostname", "duration", "int32", "other"]
)
SCALARS = st.sampled_from([None, True, False, 0, 1, -2.5, "", "a", "Lisbon"])
SUGGESTIONS = st.fixed_dictionaries({}, optional={"default": SCALARS, "examples": st.lists(SCALARS, max_size=2)})
"""What a schema suggests; it need not be true."""


@st.composite
def texts(draw: st.DrawFn) -> Schema:
    least = draw(st.integers(0, 40))
    lengths: Schema = draw(
        st.sampled_from([{}, {"minLength": least}, {"maxLength": least}, {"minLength": least, "maxLength": least + 1}])
    )
    more: Any = draw(st.sampled_from(["lengths", "pattern", "format", "long"]))
    if more == "pattern":
        return {"type": "string", "pattern": draw(PATTERNS)}
    if more == "format":
        return {"type": "string", "format": draw(FORMATS)}
    if more == "long":
        return {"type": "string", "pattern": "^[a-z-]+$", "minLength": least}
    return {"type": "string", **lengths}


@st.composite
def numbers(draw: st.DrawFn) -> Schema:
    low = draw(st.integers(-100, 100) | st.sampled_from([-0.5, 0.25, 10**12]))
    step = draw(st.sampled_from([None, 1, 2, 5, 7, 0.5, 0.25, 0.1, 0.01]))
    high = low + draw(st.integers(2, 30)) + (2 * step if step else 0)
    bounds = draw(
        st.sampled_from(
            [
                {},
                {"minimum": low},
                {"exclusiveMinimum": low},
                {"maximum": high},
                {"exclusiveMaximum": high},
                {"minimum": low, "maximum": high},
                {"exclusiveMinimum": low, "exclusiveMaximum": high},
            ]
        )
    )
    if draw(st.booleans()) and step is None:
        return {"type": "number", "exclusiveMinimum": low, "exclusiveMaximum": low + 0.5}
    whole = step in (None, 1, 2, 5, 7) and draw(st.booleans())
    return {"type": "integer" if whole else "number", **bounds, **({"multipleOf": step} if step else {})}


LEAVES = st.one_of(
    texts(),
    numbers(),
    st.fixed_dictionaries({"enum": st.lists(SCALARS, min_size=1, max_size=3)}),
    st.fixed_dictionaries({"const": SCALARS}),
    st.sampled_from([{"type": "boolean"}, {"type": "null"}, {}, {"type": ["string", "null"]}, {"type": ["null"]}]),
    st.just({"$ref": "#/$defs/one"}),
)


@st.composite
def objects(draw: st.DrawFn, inner: st.SearchStrategy[Schema]) -> Schema:
    properties = draw(st.dictionaries(KEYS, inner, max_size=4))
    schema: Schema = {"type": "object", "properties": properties}
    if properties:
        schema["required"] = draw(st.lists(st.sampled_from(sorted(properties)), unique=True))
    rest = draw(st.sampled_from(["unsaid", "closed", "schema", "undeclared", "several"]))
    if rest == "closed":
        schema["additionalProperties"] = False
        schema["minProperties"] = draw(st.integers(0, len(properties)))
    elif rest == "schema":
        schema["additionalProperties"] = draw(inner)
        schema["minProperties"] = draw(st.integers(0, 3))
    elif rest == "undeclared":
        schema["required"] = [*schema.get("required", ()), "other"]
    elif rest == "several":
        schema["maxProperties"] = len(properties) + 1
        schema["minProperties"] = len(properties)
    return schema


@st.composite
def arrays(draw: st.DrawFn, inner: st.SearchStrategy[Schema]) -> Schema:
    least = draw(st.integers(0, 4))
    bounds = draw(
        st.sampled_from([{}, {"minItems": least}, {"maxItems": least}, {"minItems": least, "maxItems": least}])
    )
    if draw(st.booleans()):
        return {"type": "array", "items": draw(inner), **bounds}
    items = draw(st.sampled_from([{"type": "string"}, {"type": "integer", "minimum": 3}, {"type": "number"}]))
    held = {"type": "object", "properties": {"n": items}, "required": ["n"]} if draw(st.booleans()) else items
    return {"type": "array", "items": held, "uniqueItems": True, **bounds}


@st.composite
def combined(draw: st.DrawFn, inner: st.SearchStrategy[Schema]) -> Schema:
    how = draw(st.sampled_from(["anyOf", "one of types", "one of tags", "all of one", "all of objects", "nullable"]))
    if how == "anyOf":
        return {"anyOf": draw(st.lists(inner, min_size=1, max_size=3))}
    if how == "nullable":
        return {"anyOf": [draw(inner), {"type": "null"}], "default": None}
    if how == "one of types":
        return {"oneOf": draw(st.permutations([{"type": "string"}, {"type": "integer"}, {"type": "array"}]))}
    if how == "one of tags":
        kinds = [
            {"properties": {"kind": {"const": kind}, kind: draw(inner)}, "required": ["kind", kind]} for kind in "xy"
        ]
        return {"type": "object", "oneOf": kinds}
    if how == "all of one":
        return {"allOf": [draw(inner), {"description": "Words."}]}
    first = {"type": "object", "properties": {"left": draw(inner)}, "required": ["left"]}
    return {"allOf": [first, {"properties": {"right": draw(inner)}, "required": ["right"]}]}


RECURSIVE: list[Schema] = [
    {"type": "array", "items": {"$ref": "#"}},
    {"anyOf": [{"$ref": "#"}, {"type": "null"}]},
    {"type": "object", "properties": {"next": {"$ref": "#"}}},
]


def _nodes(inner: st.SearchStrategy[Schema]) -> st.SearchStrategy[Schema]:
    made = objects(inner) | arrays(inner) | combined(inner)
    return st.builds(lambda node, suggested: {**suggested, **node}, made, SUGGESTIONS)


NODES = st.recursive(
    st.builds(lambda node, suggested: {**suggested, **node}, LEAVES, SUGGESTIONS), _nodes, max_leaves=10
)


@st.composite
def tools(draw: st.DrawFn) -> Schema:
    """The parameters of a tool."""
    schema = draw(objects(NODES | st.sampled_from(RECURSIVE)))
    one = draw(st.recursive(texts() | numbers(), _nodes, max_leaves=4))
    return {**schema, "$defs": {"one": one}}
