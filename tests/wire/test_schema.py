"""Schema translation: for any input the target's rules hold, and every valid value stays valid.

Verdicts are those of the `jsonschema` package; the targets' rules are the walks in `schemas.py`.
"""

from __future__ import annotations

import json
import subprocess
import sys
from importlib import resources
from typing import Annotated, Any, Literal

import jsonschema
import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from segue.canonical.json import MAX_DEPTH
from segue.canonical.request import ResponseFormat, Tool
from segue.render.report import Report
from segue.wire.draft7 import is_draft7
from segue.wire.schema import render_format_schema, render_schema, render_tool_schema
from segue.wire.schema.forced_nulls import drop_forced_nulls
from segue.wire.schema.root import normalize_schema
from segue.wire.schema.rules import (
    ANTHROPIC,
    ANTHROPIC_STRICT,
    GEMINI,
    GEMINI_OPENAPI,
    KIMI,
    MISTRAL,
    OPENAI,
    OPENAI_STRICT,
    ROWS,
    UNRESTRICTED,
    SchemaRules,
)
from tests.budget import examples
from tests.wire.schemas import OBJECTS, VALUES, WALKS, documents, is_valid, subschemas, typed_objects

OPEN_ROWS = [row for row in ROWS if not row.strict]
STRICT_ROWS = [row for row in ROWS if row.strict]
EVERY_OPEN_ROW = pytest.mark.parametrize("row", OPEN_ROWS, ids=lambda row: row.name)
EVERY_STRICT_ROW = pytest.mark.parametrize("row", STRICT_ROWS, ids=lambda row: row.name)
MANY = st.lists(OBJECTS, min_size=10, max_size=10)


def translate(schema: Any, row: SchemaRules) -> tuple[dict[str, Any], list[str]]:
    report = Report()
    node = render_schema(schema, row, report, subject="t")
    return node, [finding.message for finding in report.findings]


def translate_strict(schema: Any, row: SchemaRules) -> tuple[dict[str, Any] | None, list[str]]:
    """The schema of a strict tool, or None where the tool is not declared as strict."""
    report = Report()
    node, strict = render_tool_schema(Tool("t", parameters=schema, strict=True), UNRESTRICTED, report, strict=row)
    return (node if strict else None), [finding.message for finding in report.findings]


def properties(schema: dict[str, Any], row: SchemaRules) -> dict[str, Any]:
    return translate({"type": "object", "properties": schema}, row)[0]["properties"]


# ---------------------------------------------------------------------------------------------------------- properties


@EVERY_OPEN_ROW
@examples(4, items=len(OPEN_ROWS))
@given(schema=documents(), values=MANY)
def test_result_is_valid_and_accepts_every_value(row: SchemaRules, schema: dict[str, Any], values: list[Any]) -> None:
    before = json.dumps(schema)
    out, _ = translate(schema, row)
    assert json.dumps(schema) == before, "the input was changed"
    assert json.loads(json.dumps(out)) == out
    assert list(WALKS[row.name](out)) == []
    assert translate(out, row)[0] == out, "a second fitting changes something"
    read = normalize_schema(out)
    for value in values:
        if row.openapi and has_lists_in_lists(value):
            continue  # `items` must name a type there, so «anything» ends somewhere
        if is_valid(value, schema):
            assert is_valid(value, read), value


def has_lists_in_lists(value: Any) -> bool:
    if isinstance(value, list):
        return any(isinstance(item, list) or has_lists_in_lists(item) for item in value)
    return isinstance(value, dict) and any(map(has_lists_in_lists, value.values()))


@EVERY_STRICT_ROW
@examples(3, items=len(STRICT_ROWS))
@given(schema=typed_objects(), values=MANY)
def test_a_strict_subset_holds_or_is_not_used(row: SchemaRules, schema: dict[str, Any], values: list[Any]) -> None:
    out, messages = translate_strict(schema, row)
    if out is None:
        assert any("`strict` dropped" in message for message in messages)
        return
    assert list(WALKS[row.name](out)) == []
    assert translate_strict(out, row)[0] == out
    # That objects are closed and their keys all there is what strict means; nothing else may be lost.
    loose = loosened(out)
    for value in values:
        if is_valid(value, schema):
            assert is_valid(value, loose), value


def loosened(schema: Any) -> Any:
    if isinstance(schema, list):
        return [loosened(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    kept: dict[str, Any] = {}
    for key, value in schema.items():
        if key in ("properties", "$defs"):
            kept[key] = {name: loosened(inner) for name, inner in value.items()}
        elif key in ("items", "anyOf"):
            kept[key] = loosened(value)
        elif key not in ("required", "additionalProperties"):
            kept[key] = value
    return kept


@examples(3)
@given(schema=typed_objects(), value=OBJECTS)
def test_nulls_forced_by_strict_mode_are_removed(schema: dict[str, Any], value: Any) -> None:
    """Arguments for the strict declaration are valid for the original declaration."""
    out, _ = translate_strict(schema, OPENAI_STRICT)
    if out is not None and is_valid(value, out) and is_valid(without_keys_of_null(value), schema):
        assert is_valid(drop_forced_nulls(value, schema), schema)


def without_keys_of_null(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: without_keys_of_null(inner) for key, inner in value.items() if inner is not None}
    return [without_keys_of_null(item) for item in value] if isinstance(value, list) else value


@examples(3)
@given(schema=documents(), values=st.lists(VALUES, min_size=10, max_size=10))
def test_reading_changes_no_verdict(schema: dict[str, Any], values: list[Any]) -> None:
    read = normalize_schema(schema)
    for value in values:
        assert is_valid(value, read) == is_valid(value, schema), value


COMBINING = ["$ref", "$dynamicRef", "$id", "id", "$defs", "anyOf", "allOf", "oneOf", "not", "if", "dependencies"]
NESTING = ["properties", "items", "prefixItems", "additionalProperties", "required", "propertyOrdering", "nullable"]
PLAIN_KEYWORDS = [
    "type",
    "enum",
    "const",
    "default",
    "minimum",
    "exclusiveMinimum",
    "minItems",
    "pattern",
    "format",
    "a",
]
KEYWORDS = [*COMBINING, *NESTING, *PLAIN_KEYWORDS]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 3) | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(KEYWORDS) | st.text(max_size=3), inner, max_size=5)
    ),
    max_leaves=12,
)
GARBAGE = st.dictionaries(st.sampled_from(["type", "properties", "items", "$ref", "anyOf", "$defs", "required"]), JSON)


@EVERY_OPEN_ROW
@examples(3, items=len(OPEN_ROWS))
@given(schema=GARBAGE)
def test_any_json_is_read(row: SchemaRules, schema: dict[str, Any]) -> None:
    out, _ = translate(schema, row)
    assert list(WALKS[row.name](out)) == []
    translate_strict(schema, OPENAI_STRICT)
    render_format_schema(ResponseFormat("schema", schema, strict=True), row, Report(), strict=OPENAI_STRICT)


# ------------------------------------------------------------------------------------------------- validity in draft 7


@examples(0.2)
@given(schemas=MANY)
def test_draft_7_verdicts_are_those_of_the_jsonschema_package(schemas: list[dict[str, Any]]) -> None:
    # Patterns and URIs are not checked, `writeOnly` is not part of this edition.
    meta_validator = jsonschema.Draft7Validator(jsonschema.Draft7Validator.META_SCHEMA)
    fixed = [{"pattern": "["}, {"$id": "::"}, {"writeOnly": 1}, {"type": []}, {"items": [{"required": ["a", "a"]}]}]
    for schema in (*schemas, *fixed):
        assert is_draft7(schema) == meta_validator.is_valid(schema), schema


def test_draft_7_meta_schema_is_that_of_the_jsonschema_package() -> None:
    stored = json.loads(resources.files("segue.specs").joinpath("draft7.json").read_bytes())
    assert stored == jsonschema.Draft7Validator.META_SCHEMA


@pytest.mark.parametrize("keyword", ["not", "items"])
def test_draft_7_check_handles_the_deepest_schema_of_a_body(keyword: str) -> None:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(MAX_DEPTH):
        schema = {keyword: schema}
    assert is_draft7(schema)


@pytest.mark.parametrize(("target", "loaded"), [("anthropic", False), ("mistral", True)])
def test_only_a_conversion_that_checks_a_schema_loads_the_validator(target: str, loaded: bool) -> None:
    tool = {"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}
    body = {"model": "m", "messages": [{"role": "user", "content": "hi"}], "tools": [tool]}
    code = (
        "import segue, sys\n"
        f"segue.convert({body!r}, source='mistral', target={target!r}, model='m')\n"
        "print('jsonschema_rs' in sys.modules)"
    )
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == str(loaded)


# -------------------------------------------------------------------------------------------------------- older drafts

DRAFT_4 = "http://json-schema.org/draft-04/schema#"
DRAFT_6 = "http://json-schema.org/draft-06/schema#"
DRAFT_7 = "http://json-schema.org/draft-07/schema#"
DRAFT_2019 = "https://json-schema.org/draft/2019-09/schema"
JUDGES = {
    DRAFT_4: jsonschema.Draft4Validator,
    DRAFT_6: jsonschema.Draft6Validator,
    DRAFT_7: jsonschema.Draft7Validator,
    DRAFT_2019: jsonschema.Draft201909Validator,
}
OLD: list[tuple[str, dict[str, Any]]] = [
    (DRAFT_4, {"minimum": 1, "exclusiveMinimum": True, "maximum": 3, "exclusiveMaximum": False}),
    (DRAFT_4, {"exclusiveMinimum": True}),
    (DRAFT_4, {"id": "http://x/a", "definitions": {"n": {"type": "integer"}}, "items": {"$ref": "#/definitions/n"}}),
    (DRAFT_4, {"definitions": {"n": {"id": "#num", "type": "integer"}}, "items": {"$ref": "#num"}}),
    (DRAFT_6, {"items": [{"type": "integer"}, {"const": "a"}], "additionalItems": False}),
    (DRAFT_7, {"items": [{"type": "integer"}], "additionalItems": {"type": "string"}}),
    (DRAFT_7, {"items": {"type": "integer"}, "additionalItems": False}),
    (DRAFT_7, {"dependencies": {"a": ["b"], "b": {"properties": {"c": {"type": "string"}}, "required": ["c"]}}}),
    (DRAFT_7, {"definitions": {"n": {"type": "integer"}}, "items": {"$ref": "#/definitions/n", "minimum": 99}}),
    (DRAFT_7, {"if": {"type": "integer"}, "then": {"minimum": 2}, "else": {"type": "string"}}),
    (DRAFT_7, {"properties": {"a": {"$ref": "#/properties/b/items/0"}, "b": {"items": [{"type": "string"}]}}}),
    (DRAFT_7, {"properties": {"a b": {"type": "integer"}, "c": {"$ref": "#/properties/a%20b"}}}),
    (DRAFT_7, {"properties": {"a/b": {"type": "integer"}, "c": {"$ref": "#/properties/a~1b"}}}),
    (DRAFT_2019, {"type": ["array", "integer"], "items": {"$recursiveRef": "#"}}),
    (DRAFT_2019, {"items": [{"type": "integer"}], "unevaluatedItems": False}),
    (DRAFT_2019, {"$defs": {"n": {"$anchor": "num", "type": "integer"}}, "items": {"$ref": "#num"}}),
    (
        DRAFT_2019,
        {"$id": "http://x/root", "$defs": {"n": {"$id": "other", "type": "integer"}}, "items": {"$ref": "other"}},
    ),
]


@pytest.mark.parametrize(("draft", "schema"), OLD, ids=[f"{draft[-20:]}-{i}" for i, (draft, _) in enumerate(OLD)])
@examples(0.2, items=len(OLD))
@given(values=st.lists(VALUES, min_size=20, max_size=20))
def test_older_drafts_keep_their_verdicts(draft: str, schema: dict[str, Any], values: list[Any]) -> None:
    old = {"$schema": draft, **schema}
    read = normalize_schema(old)
    jsonschema.Draft202012Validator.check_schema(read)
    validator = JUDGES[draft](old)
    fixed = [
        [1],
        ["a"],
        [1, "a"],
        [1, "a", 2],
        [0, 5],
        {"a": 1},
        {"a": 1, "b": 2, "c": "x"},
        0,
        1,
        2,
        3,
        [[1], 2],
        {"c": 1},
    ]
    for value in [*fixed, *values]:
        # To draft 4, 1.0 is no integer; later drafts cannot express that.
        if draft != DRAFT_4 or ".0" not in json.dumps(value):
            assert is_valid(value, read) == validator.is_valid(value), value


def test_dynamic_references_to_one_anchor():
    schema = {"$dynamicAnchor": "node", "type": "object", "properties": {"next": {"$dynamicRef": "#node"}}}
    assert normalize_schema(schema) == {"type": "object", "properties": {"next": {"$ref": "#"}}}


@pytest.mark.parametrize(
    ("given", "read"),
    [
        ({"type": "STRING", "nullable": True}, {"type": ["string", "null"]}),
        ({"type": "STRING", "nullable": False}, {"type": "string"}),
        ({"type": "STRING", "enum": ["a"], "nullable": True}, {"type": ["string", "null"], "enum": ["a", None]}),
        (
            {"nullable": True, "anyOf": [{"type": "STRING"}]},
            {"anyOf": [{"anyOf": [{"type": "string"}]}, {"type": "null"}]},
        ),
        ({"type": "ARRAY", "minItems": "1", "maxItems": "3"}, {"type": "array", "minItems": 1, "maxItems": 3}),
        ({"type": "string", "example": "x"}, {"type": "string", "examples": ["x"]}),
        (
            {
                "type": "OBJECT",
                "properties": {"a": {"type": "STRING"}, "b": {"type": "NUMBER"}},
                "propertyOrdering": ["b"],
            },
            {"type": "object", "properties": {"b": {"type": "number"}, "a": {"type": "string"}}},
        ),
        ({"type": "integer", "minLength": 2.0}, {"type": "integer", "minLength": 2}),
    ],
)
def test_openapi_and_proto_json_are_read(given: dict[str, Any], read: dict[str, Any]) -> None:
    assert normalize_schema(given) == read


def test_invalid_keywords_are_dropped_and_reported():
    schema = {"type": "object", "properties": {"a": {"type": "strnig", "minLength": "x"}, "b": 3}, "required": "a"}
    out, messages = translate(schema, OPENAI)
    assert out == {"type": "object", "properties": {"a": {}, "b": {}}}
    assert messages == [
        "schema: invalid `type` dropped (at properties.a.type)",
        "schema: invalid `minLength` dropped (at properties.a.minLength)",
        "schema: invalid subschema dropped (at properties.b)",
        "schema: invalid `required` dropped (at required)",
    ]


def test_dangling_reference_accepts_anything():
    schema = {"type": "object", "properties": {"a": {"$ref": "https://example.com/pet.json"}, "b": {"$ref": "#/nope"}}}
    out, messages = translate(schema, ANTHROPIC)
    assert out["properties"] == {"a": {}, "b": {}}
    assert len(messages) == 2
    assert all("unresolvable reference" in message for message in messages)


# ----------------------------------------------------------------------------------------------------------- the words


def test_keywords_become_description_text():
    text = {
        "type": "string",
        "minLength": 3,
        "maxLength": 9,
        "pattern": "^a",
        "format": "uri",
        "description": "The name.",
    }
    assert properties({"a": text}, GEMINI)["a"] == {
        "type": "string",
        "format": "uri",
        "description": "The name. (at least 3 characters; at most 9 characters; pattern ^a)",
    }


@pytest.mark.parametrize(
    ("node", "expected"),
    [
        ({"type": "number", "exclusiveMinimum": 0}, "more than 0"),
        ({"type": "number", "multipleOf": 0.5}, "a multiple of 0.5"),
        ({"type": "array", "items": {"type": "string"}, "uniqueItems": True}, "no item twice"),
        ({"type": "array", "contains": {"type": "string"}}, "holds string"),
        ({"type": "object", "dependentRequired": {"a": ["b", "c"]}}, "a needs b, c"),
        ({"type": "object", "patternProperties": {"^x": {"type": "string"}}}, "keys like ^x: string"),
        ({"type": "object", "propertyNames": {"maxLength": 3}}, "keys: at most 3 characters"),
        ({"type": "boolean", "const": True}, "always true"),
        ({"type": "string", "not": {"enum": ["a"]}}, "not one of a"),
        ({"type": "string", "default": "x", "examples": ["y", "z"]}, "default x; for example y, z"),
    ],
)
def test_description_text_for_kimi_and_gemini(node: dict[str, Any], expected: str) -> None:
    rows = (GEMINI,) if "default" in node else (GEMINI, KIMI)
    for row in rows:
        assert properties({"a": node}, row)["a"]["description"] == expected


def test_description_text_is_bounded():
    many = {"type": "object", "enum": [{"n": "x" * 1000, "i": i} for i in range(1000)]}
    assert len(properties({"a": many}, GEMINI)["a"]["description"]) < 300


def test_findings_are_reported_once_per_keyword():
    schema = {"type": "object", "properties": {f"p{i}": {"type": "string", "minLength": i} for i in range(9)}}
    assert translate(schema, GEMINI)[1] == ["schema: `minLength` moved to the description (at p0, p1, p2 and 6 more)"]


# ------------------------------------------------------------------------------------------------------ what is merged


def test_alternatives_at_the_top_become_one_object():
    schema = {
        "type": "object",
        "properties": {"stock": {"type": "string"}, "year": {"type": "integer"}},
        "anyOf": [{"required": ["stock"]}, {"required": ["year"]}],
    }
    for row in (OPENAI, ANTHROPIC, KIMI, GEMINI):
        out, messages = translate(schema, row)
        assert out["properties"] == schema["properties"]
        assert "required" not in out
        assert "stock (string, needed)" in out["description"]
        assert messages == ["schema: alternatives merged into one object (at the top)"]


def test_a_discriminated_union_of_closed_objects_keeps_its_types():
    def closed(kind: str, **fields: Any) -> dict[str, Any]:
        keys = {"kind": {"const": kind}, **fields}
        return {"type": "object", "properties": keys, "required": list(keys), "additionalProperties": False}

    schema = {"oneOf": [closed("cat", meow={"type": "string"}), closed("dog", bark={"type": "integer"})]}
    out, _ = translate(schema, ANTHROPIC)
    assert out["properties"] == {
        "kind": {"enum": ["cat", "dog"]},
        "meow": {"type": "string"},
        "bark": {"type": "integer"},
    }
    assert out["required"] == ["kind"]
    assert out["additionalProperties"] is False


def test_all_of_becomes_one_merged_object():
    parts = [
        {"properties": {"a": {"type": "number", "minimum": 1}}, "required": ["a"]},
        {"properties": {"a": {"type": "integer", "maximum": 5}, "b": {"type": "string"}}},
    ]
    out, messages = translate({"type": "object", "allOf": parts}, KIMI)
    assert out["properties"] == {"a": {"type": "integer", "minimum": 1, "maximum": 5}, "b": {"type": "string"}}
    assert out["required"] == ["a"]
    assert messages == []


@pytest.mark.parametrize("row", [UNRESTRICTED, OPENAI, ANTHROPIC, GEMINI, KIMI, MISTRAL], ids=lambda row: row.name)
def test_parameters_that_are_no_object_become_one(row: SchemaRules) -> None:
    out, _ = translate({"type": "array", "items": {"type": "string"}}, row)
    assert out["properties"] == {"value": {"type": "array", "items": {"type": "string"}}}
    assert out["required"] == ["value"]


@EVERY_OPEN_ROW
@pytest.mark.parametrize("empty", [None, {}, {"type": "object"}, {"properties": {}}, {"type": ["object", "null"]}])
def test_no_parameters(row: SchemaRules, empty: dict[str, Any] | None) -> None:
    report = Report()
    expected = {"type": "OBJECT"} if row.openapi else {"type": "object", "properties": {}}
    assert render_schema(empty, row, report, subject="t") == expected
    assert report.findings == []


# ----------------------------------------------------------------------------------------------------- single targets


def test_unsatisfiable_alternative_is_dropped():
    node = {"anyOf": [{"not": {}}, {"type": "string"}, False]}
    for row in (KIMI, GEMINI):
        assert properties({"a": node}, row)["a"] == {"type": "string"}


def test_not_is_dropped_around_a_weakened_schema():
    """A weaker schema under `not` would be a stronger one."""
    strange = {"type": "array", "contains": {"type": "integer"}, "maxContains": 2}
    for inner in (strange, {"$ref": "#/$defs/s"}):
        schema = {"type": "object", "properties": {"a": {"not": inner}}, "$defs": {"s": strange}}
        out, _ = translate(schema, MISTRAL)
        assert "not" not in out["properties"]["a"]


def test_openai_needs_items():
    assert properties({"a": {"type": ["array", "null"]}}, OPENAI)["a"] == {"type": ["array", "null"], "items": {}}


def test_mistral_gets_draft_7():
    schema = {
        "type": "object",
        "$defs": {"n": {"type": "integer"}},
        "properties": {
            "t": {"type": "array", "prefixItems": [{"type": "string"}], "items": False},
            "n": {"$ref": "#/$defs/n", "minimum": 1, "description": "A number."},
        },
        "dependentRequired": {"t": ["n"]},
        "dependentSchemas": {"t": {"minProperties": 2}},
    }
    out, messages = translate(schema, MISTRAL)
    assert messages == []
    assert out == {
        "type": "object",
        "properties": {
            "t": {"type": "array", "items": [{"type": "string"}], "additionalItems": False},
            "n": {"minimum": 1, "description": "A number.", "allOf": [{"$ref": "#/definitions/n"}]},
        },
        "dependencies": {"t": {"allOf": [{"required": ["n"]}, {"minProperties": 2}]}},
        "definitions": {"n": {"type": "integer"}},
    }


def test_kimi_puts_types_into_the_alternatives():
    node = {"type": ["string", "null"], "minLength": 1, "description": "Why."}
    assert properties({"a": node}, KIMI)["a"] == {
        "description": "Why.",
        "anyOf": [{"type": "string", "minLength": 1}, {"type": "null"}],
    }
    mixed = {"enum": ["a", 1, None]}
    assert properties({"a": mixed}, KIMI)["a"] == {
        "anyOf": [{"type": "string", "enum": ["a"]}, {"type": "integer", "enum": [1]}, {"type": "null"}]
    }


def test_kimi_schema_has_no_duplicates():
    node = {"type": ["string", "null"], "format": "date", "description": "When.", "title": "T"}
    assert properties({"a": node}, KIMI)["a"] == {
        "title": "T",
        "description": "When. (format date)",
        "anyOf": [{"type": "string"}, {"type": "null"}],
    }


def test_kimi_keeps_a_recursion_that_ends():
    tree = {
        "type": "object",
        "properties": {"v": {"type": "string"}, "next": {"$ref": "#/$defs/tree"}},
        "required": ["v"],
    }
    schema = {"type": "object", "properties": {"root": {"$ref": "#/$defs/tree"}}, "required": ["root"]}
    out, messages = translate({**schema, "$defs": {"tree": tree}}, KIMI)
    assert out == {**schema, "$defs": {"tree": tree}}
    assert messages == []
    endless = {**tree, "required": ["next"]}
    out, messages = translate({**schema, "$defs": {"tree": endless}}, KIMI)
    assert "required" not in out
    assert messages == ["schema: `required` moved to the description: the recursion never ends (at the top)"]


def test_gemini_gets_references_written_out():
    schema = {
        "type": "object",
        "properties": {"from": {"$ref": "#/$defs/p", "description": "Start."}, "next": {"$ref": "#"}},
        "$defs": {"p": {"type": "object", "properties": {"x": {"type": "number"}}}},
    }
    out, messages = translate(schema, GEMINI)
    point = {"type": "object", "properties": {"x": {"type": "number"}}, "description": "Start."}
    inner = {"from": point, "next": {"description": "the whole again"}}
    assert out["properties"] == {"from": point, "next": {"type": "object", "properties": inner}}
    assert messages == [
        "schema: references inlined (at from, next, next.from)",
        "schema: recursion cut off: any value is accepted there (at next.next)",
    ]


def test_older_gemini_gets_openapi():
    node = {"anyOf": [{"type": "string", "enum": ["a", "b"]}, {"type": "null"}], "description": "Which."}
    listed = {"type": ["integer", "string", "null"]}
    assert properties({"a": node, "b": listed, "c": {"const": 3}}, GEMINI_OPENAPI) == {
        "a": {"type": "STRING", "enum": ["a", "b"], "nullable": True, "description": "Which."},
        "b": {"anyOf": [{"type": "INTEGER", "nullable": True}, {"type": "STRING"}]},
        "c": {"type": "INTEGER", "description": "always 3"},
    }


# ------------------------------------------------------------------------------------------------------------- strict


def test_optional_keys_may_be_null_in_a_strict_tool():
    schema = {
        "type": "object",
        "properties": {"city": {"type": "string"}, "unit": {"enum": ["C", "F"]}, "where": {"$ref": "#/$defs/p"}},
        "required": ["city"],
        "additionalProperties": False,
        "$defs": {"p": {"type": "object", "properties": {"x": {"type": "number"}}, "required": ["x"]}},
    }
    out, messages = translate_strict(schema, OPENAI_STRICT)
    assert out is not None
    assert out["required"] == ["city", "unit", "where"]
    assert out["properties"]["unit"] == {"type": ["string", "null"], "enum": ["C", "F", None]}
    assert out["properties"]["where"] == {"anyOf": [{"$ref": "#/$defs/p"}, {"type": "null"}]}
    assert out["$defs"]["p"]["additionalProperties"] is False
    assert messages == [
        "schema: optional properties made required and nullable (at unit, where)",
        "schema: undeclared properties forbidden (at $defs.p)",
    ]
    arguments = {"city": "Bern", "unit": None, "where": {"x": 1}}
    assert drop_forced_nulls(arguments, schema) == {"city": "Bern", "where": {"x": 1}}


@pytest.mark.parametrize(
    ("node", "why"),
    [
        ({"type": "object", "additionalProperties": {"type": "string"}}, "allows undeclared properties"),
        ({"type": "object"}, "allows undeclared properties"),
        ({}, "accepts any value"),
        ({"type": "array"}, "accepts any value"),
    ],
)
def test_unsupported_schema_is_not_strict(node: dict[str, Any], why: str) -> None:
    out, messages = translate_strict({"type": "object", "properties": {"a": node}, "required": ["a"]}, OPENAI_STRICT)
    assert out is None
    assert why in messages[0]


def test_response_is_unconstrained_where_no_schema_is_supported():
    report = Report()
    form = ResponseFormat("schema", {"type": "array", "items": {"type": "string"}}, strict=True)
    assert render_format_schema(form, OPENAI, report, strict=OPENAI_STRICT) is None
    assert [finding.kind for finding in report.findings] == ["adjusted", "adjusted"]
    assert render_format_schema(form, GEMINI, Report()) == form
    closed = {"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": False}
    assert render_format_schema(ResponseFormat("schema", closed), ANTHROPIC_STRICT, Report()) == ResponseFormat(
        "schema", closed
    )


# --------------------------------------------------------------------------------------------------- adversarial sizes


def nested(depth: int) -> dict[str, Any]:
    """Each definition refers to the next one twice: 2ⁿ when it is written out."""
    defs = {
        f"d{i}": {"properties": {"l": {"$ref": f"#/$defs/d{i + 1}"}, "r": {"$ref": f"#/$defs/d{i + 1}"}}}
        for i in range(depth)
    }
    return {"type": "object", "properties": {"x": {"$ref": "#/$defs/d0"}}, "$defs": {**defs, f"d{depth}": {}}}


def doubled(depth: int, key: str) -> dict[str, Any]:
    defs = {f"d{i}": {key: [{"$ref": f"#/$defs/d{i + 1}"}] * 3, "maxProperties": i} for i in range(depth)}
    return {"$ref": "#/$defs/d0", "$defs": {**defs, f"d{depth}": {"type": "object"}}}


def tangled(count: int) -> dict[str, Any]:
    everybody = {f"p{i}": {"allOf": [{"$ref": f"#/$defs/d{i}"}, {"minProperties": 1}]} for i in range(count)}
    defs = {f"d{i}": {"type": "object", "properties": everybody} for i in range(count)}
    return {"type": "object", "properties": {"x": {"$ref": "#/$defs/d0"}}, "$defs": defs}


def chained(length: int) -> dict[str, Any]:
    defs = {f"d{i}": {"$ref": f"#/$defs/d{i + 1}"} for i in range(length)}
    return {"type": "object", "properties": {"x": {"$ref": "#/$defs/d0"}}, "$defs": {**defs, f"d{length}": {}}}


def deep(depth: int) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(depth):
        schema = {"type": "object", "properties": {"a": schema}}
    return schema


@EVERY_OPEN_ROW
@pytest.mark.parametrize(
    "schema",
    [nested(40), doubled(40, "allOf"), doubled(40, "anyOf"), tangled(12), chained(2000), deep(160)],
    ids=["nested", "all_of", "any_of", "tangled", "chained", "deep"],
)
def test_size_stays_bounded(row: SchemaRules, schema: dict[str, Any]) -> None:
    out, _ = translate(schema, row)
    given = sum(1 for _ in subschemas(schema))
    assert sum(1 for _ in subschemas(out)) < 60 * given + 8000
    assert list(WALKS[row.name](out)) == []


@EVERY_OPEN_ROW
def test_a_large_plain_schema_is_not_cut(row: SchemaRules) -> None:
    schema = {"type": "object", "properties": {f"p{i}": {"type": "string"} for i in range(2000)}}
    out, messages = translate(schema, row)
    assert len(out["properties"]) == 2000
    assert out["properties"]["p1999"]["type"] in ("string", "STRING")
    assert messages == []


# --------------------------------------------------------------------------------------------------------- real schemas


class Cat(pydantic.BaseModel):
    kind: Literal["cat"]
    name: str = pydantic.Field(min_length=1, pattern="^[A-Z]", description="What it answers to.")


class Dog(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="forbid")
    kind: Literal["dog"]
    age: int = pydantic.Field(gt=0, lt=30)


class Node(pydantic.BaseModel):
    """A tree."""

    value: int | None = None
    pet: Annotated[Cat | Dog, pydantic.Field(discriminator="kind")]
    pair: tuple[int, str] = (1, "a")
    scores: dict[str, float] = {}
    children: list[Node] = []


CAT = {"kind": "cat", "name": "Tom"}
DOG = {"kind": "dog", "age": 3}

# As servers of the Model Context Protocol and zod write them.
REAL: dict[str, tuple[dict[str, Any], list[Any]]] = {
    "pydantic": (
        Node.model_json_schema(),
        [{"pet": CAT}, {"pet": DOG, "children": [{"pet": CAT, "value": None}], "pair": [2, "b"], "scores": {"x": 1.5}}],
    ),
    "pydantic_union": (pydantic.TypeAdapter(Cat | Dog).json_schema(), [CAT, DOG]),
    "zod": (
        {
            "$schema": "http://json-schema.org/draft-07/schema#",
            "type": "object",
            "properties": {
                "urls": {"type": "array", "items": {"type": "string", "format": "uri"}, "minItems": 1},
                "headers": {
                    "type": "object",
                    "additionalProperties": {"type": "string"},
                    "propertyNames": {"type": "string"},
                },
                "more": {"type": "array", "items": {"$ref": "#/properties/headers"}},
                "mode": {"anyOf": [{"type": "string", "const": "fast"}, {"not": {}}, {"type": "number", "minimum": 1}]},
                "when": {"type": ["string", "null"], "format": "date-time", "default": None},
            },
            "required": ["urls"],
            "additionalProperties": False,
        },
        [
            {"urls": ["http://a"]},
            {"urls": ["http://a"], "headers": {"a": "b"}, "more": [{"c": "d"}], "mode": 2, "when": None},
        ],
    ),
    "zod_named": (
        {
            "$ref": "#/definitions/Input",
            "definitions": {
                "Input": {
                    "type": "object",
                    "properties": {"path": {"type": "string"}, "depth": {"type": "integer", "exclusiveMinimum": 0}},
                    "required": ["path"],
                    "additionalProperties": False,
                }
            },
            "$schema": "http://json-schema.org/draft-07/schema#",
        },
        [{"path": "/"}, {"path": "/", "depth": 1}],
    ),
    "mcp_filter": (
        {
            "type": "object",
            "properties": {
                "filter[name]": {"type": "string"},
                "pages": {
                    "anyOf": [
                        {"type": "array", "items": {"type": "integer", "exclusiveMinimum": True, "minimum": 0}},
                        {"type": "string", "minLength": 1},
                    ]
                },
                "data": {"allOf": [{"type": "object", "properties": {"id": {"type": "string"}}}, {"required": ["id"]}]},
            },
            "oneOf": [{"required": ["pages"]}, {"required": ["data"]}],
        },
        [{"pages": [1, 2]}, {"pages": "1-3"}, {"data": {"id": "x"}, "filter[name]": "y"}],
    ),
    "typebox": (
        {
            "type": "object",
            "allOf": [
                {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]},
                {"type": "object", "properties": {"b": {"type": "number"}}},
            ],
            "unevaluatedProperties": False,
        },
        [{"a": "x"}, {"a": "x", "b": 1}],
    ),
}


@EVERY_OPEN_ROW
@pytest.mark.parametrize("name", REAL)
def test_real_schemas(row: SchemaRules, name: str) -> None:
    schema, values = REAL[name]
    out, _ = translate(schema, row)
    assert list(WALKS[row.name](out)) == []
    read = normalize_schema(out)
    for value in values:
        assert is_valid(value, read), value


def test_a_pydantic_model_for_openai_strict():
    class Point(pydantic.BaseModel):
        model_config = pydantic.ConfigDict(extra="forbid")
        x: float
        label: str | None = None

    out, _ = translate_strict(Point.model_json_schema(), OPENAI_STRICT)
    assert out == {
        "type": "object",
        "properties": {
            "x": {"type": "number", "title": "X"},
            "label": {"title": "Label", "description": "default null", "anyOf": [{"type": "string"}, {"type": "null"}]},
        },
        "required": ["x", "label"],
        "additionalProperties": False,
        "title": "Point",
    }
