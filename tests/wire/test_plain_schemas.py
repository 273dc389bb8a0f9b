"""A plain schema is rendered in one walk, with the result of the full renderer."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import segue.wire.schema as schemas
from segue.canonical.json import encode_json
from segue.render.report import Finding, Report
from segue.wire.schema.changes import SchemaChanges
from segue.wire.schema.plain import render_plain
from segue.wire.schema.root import render_document, render_nearly_plain
from segue.wire.schema.rules import GEMINI, OPENAI, ROWS, SchemaRules
from tests.budget import examples
from tests.wire.schemas import KEYS, documents

EVERY_ROW = pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
TYPES = ["string", "number", "integer", "boolean", "object", "array"]
# Valid values, and a few that are invalid or belong to an older draft.
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "type": st.sampled_from(
        [*TYPES, *TYPES, "null", "STRING", ["string", "null"], ["string", "string"], [], [{}], {}, 1]
    ),
    "title": st.sampled_from(["T", "", None]),
    "description": st.sampled_from(["Words.", "", "Words.", 1]),
    "enum": st.sampled_from(
        [["a", "b"], ["a"], ["a", "a"], ["", "a"], [1, 2], ["a", 1], [None], [], "a", [True, False]]
    ),
    "const": st.sampled_from(["a", 1, None]),
    "default": st.sampled_from(["a", 1, None, {}]),
    "required": st.lists(KEYS, max_size=2) | st.just("a"),
    "additionalProperties": st.booleans() | st.just(None),
    "minimum": st.sampled_from([0, 1, 3, 0.5, True, "1"]),
    "maximum": st.sampled_from([1, 2, 2.5, None]),
    "exclusiveMinimum": st.sampled_from([0, True]),
    "minLength": st.sampled_from([0, 1, 1.0, "1", -1]),
    "maxItems": st.sampled_from([1, 2, True]),
    "format": st.sampled_from(["date", "uri", 1]),
    "pattern": st.sampled_from(["^a", "(?=a)"]),
    "nullable": st.booleans(),
    "$comment": st.just("Words."),
    "encrypted": st.just(True),
}


def _nodes(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    parts = {
        "properties": st.dictionaries(KEYS, inner, max_size=3),
        "items": inner | st.booleans() | st.just([]),
        "additionalProperties": inner,
        "anyOf": st.lists(inner, max_size=2),
        "allOf": st.lists(inner, max_size=2),
        "not": inner,
    }
    keywords = st.dictionaries(st.sampled_from([*VALUES, *parts]), st.none(), max_size=3)

    @st.composite
    def node(draw: st.DrawFn) -> Any:
        kind = draw(st.sampled_from(TYPES))
        likely = {"object": ["properties", "required"], "array": ["items"]}.get(kind, [])
        keys = draw(st.permutations(list(dict.fromkeys(["type", "description", *likely, *draw(keywords)]))))
        dropped = draw(st.sampled_from([None, None, None, *keys]))
        built = {key: draw({**VALUES, **parts}[key]) for key in keys if key not in (dropped, "type")}
        return built if dropped == "type" else {key: built.get(key, kind) for key in keys if key != dropped}

    return node()


LEAVES = st.sampled_from([{"type": kind} for kind in TYPES] + [{"type": "string", "description": "Words."}])
NODES = st.recursive(LEAVES, _nodes, max_leaves=6)


@st.composite
def parameters(draw: st.DrawFn) -> dict[str, Any]:
    properties = draw(st.dictionaries(KEYS, NODES, max_size=3))
    root = {"type": "object", "properties": properties, "required": sorted(properties)[:1]}
    extra = draw(st.dictionaries(st.sampled_from([*VALUES, "$schema", "anyOf"]), st.none(), max_size=2))
    values = {**VALUES, "$schema": st.just("http://json-schema.org/draft-07/schema#"), "anyOf": st.just([{}])}
    root |= {key: draw(values[key]) for key in extra}
    kept = draw(st.permutations(list(root)))[: draw(st.integers(2, len(root)))]
    return {key: root[key] for key in kept}


def find_findings(changes: SchemaChanges) -> list[Finding]:
    report = Report()
    changes.report(report, subject="", kind="tools")
    return report.findings


def assert_full_renderer_agrees(schema: dict[str, Any], row: SchemaRules) -> bool:
    """Return whether the schema is plain."""
    before = encode_json(schema)
    plain = render_plain(schema, row)
    assert encode_json(schema) == before
    if plain is None:
        return False
    changes = SchemaChanges()
    full = render_document(schema, row, changes, wrap=True)
    assert encode_json(plain) == encode_json(full)
    assert find_findings(changes) == []
    return True


def assert_nearly_plain_schema_equals_that_of_the_full_renderer(schema: dict[str, Any], row: SchemaRules) -> bool:
    """Return whether the schema is nearly plain."""
    before = encode_json(schema)
    changes, full_changes = SchemaChanges(), SchemaChanges()
    nearly_plain = render_nearly_plain(schema, row, changes)
    assert encode_json(schema) == before
    if nearly_plain is None:
        assert find_findings(changes) == []
        return False
    full = render_document(schema, row, full_changes, wrap=True)
    assert encode_json(nearly_plain) == encode_json(full)
    assert find_findings(changes) == find_findings(full_changes)
    assert changes.widened == full_changes.widened
    return True


@EVERY_ROW
@examples(8, items=len(ROWS))
@given(schema=parameters() | documents())
def test_plain_schema_equals_that_of_the_full_renderer(row: SchemaRules, schema: dict[str, Any]) -> None:
    assert_full_renderer_agrees(schema, row)
    assert_nearly_plain_schema_equals_that_of_the_full_renderer(schema, row)


ORDINARY: dict[str, Any] = {
    "type": "object",
    "properties": {
        "path": {"type": "string", "description": "The file."},
        "limit": {"type": "integer", "minimum": 1, "description": "How many lines."},
        "mode": {"type": "string", "enum": ["text", "hex"]},
        "edits": {"type": "array", "items": {"type": "object", "properties": {"old": {"type": "string"}}}},
    },
    "required": ["path"],
    "additionalProperties": False,
}


@EVERY_ROW
def test_ordinary_schema_is_plain_except_in_strict_subsets_and_openapi(row: SchemaRules) -> None:
    assert assert_full_renderer_agrees(ORDINARY, row) is not (row.strict or row.openapi)
    assert assert_full_renderer_agrees({"$schema": "x", **ORDINARY}, row) is not (row.strict or row.openapi)


ODD_LEAVES: dict[str, Any] = {
    "limit": {"type": "integer", "exclusiveMinimum": 0, "default": "x"},
    "any": {"description": "Any value."},
    "both": {"type": ["string", "null"], "minLength": 1, "pattern": "(?=a)"},
    "object": {"type": "object", "encrypted": True},
    "name": {"type": "string", "maxLength": 5, "minLength": 9, "default": None},
    "format": {"type": "string", "format": "date", "enum": [1, "a"]},
    "turns": {"oneOf": [{"type": "string", "enum": ["all"]}, {"type": "string", "pattern": "^[1-9]"}], "title": "n"},
    "either": {"description": "Two.", "anyOf": [{"type": "string"}, {"type": "integer", "maximum": 9}], "default": 1},
}


SUBSETS = [row for row in ROWS if row.keywords and not row.strict and not row.openapi]


@pytest.mark.parametrize("row", SUBSETS, ids=lambda row: row.name)
def test_odd_nodes_of_a_plain_schema_equal_those_of_the_full_renderer(row: SchemaRules) -> None:
    inner = {"type": "array", "items": {"type": "object", "properties": ODD_LEAVES}}
    schema: dict[str, Any] = {**ORDINARY, "properties": {**ORDINARY["properties"], **ODD_LEAVES, "inner": inner}}
    assert assert_nearly_plain_schema_equals_that_of_the_full_renderer(schema, row)
    # References, and nodes with others in them, need the full renderer.
    for odd in ({"$ref": "#"}, {"anyOf": [{"type": "array"}]}, {"type": "object", "required": ["a"]}):
        schema["properties"]["odd"] = odd
        assert not assert_nearly_plain_schema_equals_that_of_the_full_renderer(schema, row)


def test_unchanged_schema_is_the_same_object() -> None:
    assert schemas.render_schema(ORDINARY, OPENAI, Report(), subject="t") is ORDINARY
    assert schemas.render_schema({"$schema": "x", **ORDINARY}, OPENAI, Report(), subject="t") == ORDINARY


def test_changed_schema_is_a_new_object_each_time() -> None:
    schema = {"$schema": "x", **ORDINARY}
    first = schemas.render_schema(schema, GEMINI, Report(), subject="t")
    first["properties"].clear()
    assert (
        schemas.render_schema(schema, GEMINI, Report(), subject="t")["properties"].keys()
        == ORDINARY["properties"].keys()
    )
