"""The shapes of a Converse request equal botocore's service model; a violation names its path."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any

import pytest

import segue
from segue.wire.bedrock import shapes
from tests import converse
from tests.conversations.build import PDF, PNG, bedrock, converse_user, tool_spec

_TYPES: dict[object, str] = {
    "a string": "string",
    "a boolean": "boolean",
    "an integer": "integer",
    "a number": "float",
    "an object": "structure",
    "bytes": "blob",
    shapes.OneOf: "string",
    shapes.Pattern: "string",
    shapes.ListOf: "list",
    shapes.MapOf: "map",
    shapes.Record: "structure",
    shapes.Union: "structure",
}


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"toolConfig": {"tools": [tool_spec(description=5)]}}, "toolConfig.tools[0].toolSpec.description"),
        ({"toolConfig": {"tools": [{"cachePoint": 5}]}}, "toolConfig.tools[0].cachePoint"),
        (
            {"messages": [converse_user({"guardContent": {"text": {"text": "a", "qualifiers": ["x"]}}})]},
            "messages[0].content[0].guardContent.text.qualifiers[0]",
        ),
        ({"messages": [converse_user({"video": {"source": {}}})]}, "messages[0].content[0].video.format"),
        ({"messages": [converse_user({"document": {"source": {}}})]}, "messages[0].content[0].document.source"),
        (
            {"messages": [converse_user({"document": {"source": {"bytes": PDF, "text": "a"}}})]},
            "messages[0].content[0].document.source",
        ),
        ({"messages": [converse_user({"toolUse": {"name": "f", "type": "x"}})]}, "messages[0].content[0].toolUse.type"),
        (
            {"messages": [converse_user({"citationsContent": {"citations": [{"location": {"web": {"url": -1}}}]}})]},
            "messages[0].content[0].citationsContent.citations[0].location.web.url",
        ),
        ({"additionalModelRequestFields": ""}, "additionalModelRequestFields"),
        ({"guardrailConfig": 5}, "guardrailConfig"),
        ({"requestMetadata": {"team": 5}}, "requestMetadata.team"),
        ({"inferenceConfig": {"maxTokens": True}}, "inferenceConfig.maxTokens"),
        ({"inferenceConfig": {"maxTokens": 0}}, "inferenceConfig.maxTokens"),
        ({"inferenceConfig": {"temperature": 1.5}}, "inferenceConfig.temperature"),
    ],
)
def test_invalid_value_error_names_the_path(change: dict[str, Any], path: str) -> None:
    with pytest.raises(segue.InputError) as caught:
        segue.convert({**bedrock(converse_user("Hi.")), **change}, source="bedrock", target="openai-chat")
    assert caught.value.path == path


@pytest.mark.parametrize(
    "change",
    [
        {"messages": [converse_user({"toolUse": {"name": "f", "input": "{}"}})]},
        {"messages": [converse_user({"toolResult": {"toolUseId": None, "content": "text", "status": None}})]},
        {"messages": [{"role": "user", "content": "Hi."}, {"role": "user"}], "system": "Be brief."},
        {"messages": [converse_user({"reasoningContent": {"reasoningText": {"signature": None}}})]},
        {"messages": [converse_user({"text": "", "cachePoint": {"type": "default"}})], "aNewMember": 5},
        {"toolConfig": {"tools": [{"toolSpec": {"name": "", "description": ""}}]}},
    ],
)
def test_values_repaired_by_the_parser_pass(change: dict[str, Any]) -> None:
    shapes.validate_shape({**bedrock(converse_user("Hi.")), **change}, shapes.REQUEST)


@pytest.mark.parametrize("source", [{"bytes": PNG}, {"bytes": base64.b64decode(PNG)}])
def test_bytes_are_accepted_as_base64_and_as_bytes(source: dict[str, Any]) -> None:
    shapes.validate_shape(bedrock(converse_user({"image": {"format": "png", "source": source}})), shapes.REQUEST)


def test_null_members_count_as_missing() -> None:
    body = {"messages": [converse_user({"text": "Hi.", "image": None})]}
    given = {**body, "modelId": None, "system": None, "toolConfig": None}
    assert segue.repair(given, "bedrock").body == {"messages": [converse_user("Hi.")]}


def test_shapes_equal_the_service_model() -> None:
    """Members that the parser repairs may be missing; nothing else differs."""
    assert [*_differences(shapes.REQUEST, converse.operation().input_shape, "")] == [".tools is unknown"]


def _differences(form: Any, shape: Any, path: str) -> Iterator[str]:
    while isinstance(form, shapes.Repairable | shapes.Bounded):
        form = form.shape
    if form != "anything" and _TYPES[form if isinstance(form, str) else type(form)] != shape.type_name:
        yield f"{path} is {shape.type_name}"
    if list(getattr(form, "values", [])) != list(getattr(shape, "enum", [])) and form != "anything":
        yield f"{path} is one of {shape.enum}"
    if isinstance(form, shapes.ListOf):
        yield from _differences(form.item, shape.member, f"{path}[]")
    if isinstance(form, shapes.MapOf):
        yield from _differences(form.item, shape.value, f"{path}{{}}")
    if isinstance(form, shapes.Record | shapes.Union):
        yield from (f"{path}.{key} is unknown" for key in form.members if key not in shape.members)
        yield from (f"{path}.{key} is left out" for key in shape.members if key not in form.members)
        if isinstance(form, shapes.Union) > shape.is_tagged_union:
            yield f"{path} is no union"
        for key in set(form.members) & set(shape.members):
            mended = isinstance(form.members[key], shapes.Repairable) or form.members[key] == "anything"
            held = key in getattr(form, "required", ())
            if key != "messages" and not mended and held != (key in shape.required_members):
                yield f"{path}.{key} is {'not ' * held}needed"
            yield from _differences(form.members[key], shape.members[key], f"{path}.{key}")
