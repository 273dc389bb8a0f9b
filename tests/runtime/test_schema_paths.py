"""The work of argument validation is limited by the number of paths through the schema."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from segue.runtime import toolbox
from segue.runtime.schema_paths import has_more_paths
from segue.runtime.tool_types import Tool
from segue.runtime.toolbox import Toolbox
from tests.work import count_work


def doubling(levels: int, keyword: str = "anyOf") -> dict[str, Any]:
    """A schema with twice as many paths at each level."""
    definitions: dict[str, Any] = {
        f"d{level}": {keyword: [{"$ref": f"#/$defs/d{level + 1}"}] * 2} for level in range(levels)
    }
    definitions[f"d{levels}"] = {"type": "string"}
    return {"type": "object", "$defs": definitions, "properties": {"x": {"$ref": "#/$defs/d0"}}}


@pytest.mark.parametrize("keyword", ["anyOf", "oneOf", "allOf"])
def test_paths_are_counted_in_linear_work(keyword: str) -> None:
    assert not has_more_paths(doubling(5, keyword), 1_000)
    assert has_more_paths(doubling(20, keyword), 1_000)
    once, twice = (count_work(lambda n=n: has_more_paths(doubling(n, keyword), 1_000)) for n in (20, 40))
    assert twice < 2.2 * once
    assert has_more_paths(doubling(5_000, keyword), 1_000)


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#"},
        {"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"},
        {"$ref": "#/$defs/missing"},
        {"$ref": "other.json#/a"},
        {"allOf": [{"$ref": "#/allOf/1"}, {"$ref": "#/allOf/9"}]},
        {"$defs": {"a/b~": {}}, "$ref": "#/$defs/a~1b~0"},
        {"enum": ["x"] * 5_000},
    ],
)
def test_other_schemas_have_few_paths(schema: dict[str, Any]) -> None:
    assert not has_more_paths(schema, 20)


def test_arguments_are_not_validated_if_the_schema_has_too_many_paths(monkeypatch: pytest.MonkeyPatch) -> None:
    tools = [Tool(f"t{levels}", "d", doubling(levels), lambda arguments, context: "x") for levels in (5, 30)]
    box = Toolbox(tools, Path())
    assert "invalid arguments for t5" in (box.validate_arguments(tools[0], {"x": 1}) or "")
    monkeypatch.setattr(toolbox, "_make_validator", None)
    assert box.validate_arguments(tools[1], {"x": 1}) is None
