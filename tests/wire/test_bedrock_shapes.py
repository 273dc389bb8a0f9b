"""A Converse request that does not match the service model is rejected with the path of the value."""

from __future__ import annotations

import base64
from typing import Any

import pytest

import segue
from segue.specs.types import load_types
from segue.wire.bedrock import shapes
from tests.bodies.bedrock import user as converse_user
from tests.conversations.build import PDF, PNG, bedrock, tool_spec


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"toolConfig": {"tools": [tool_spec(description=5)]}}, "toolConfig.tools[0].toolSpec.description"),
        ({"toolConfig": {"tools": [{"cachePoint": 5}]}}, "toolConfig.tools[0].cachePoint"),
        (
            {"messages": [converse_user({"guardContent": {"text": {"text": "a", "qualifiers": [5]}}})]},
            "messages[0].content[0].guardContent.text.qualifiers[0]",
        ),
        ({"messages": [converse_user({"video": {"source": {}}})]}, "messages[0].content[0].video.format"),
        ({"messages": [converse_user({"document": {"source": {}}})]}, "messages[0].content[0].document.source"),
        (
            {"messages": [converse_user({"document": {"source": {"bytes": PDF, "text": "a"}}})]},
            "messages[0].content[0].document.source",
        ),
        ({"messages": [converse_user({"toolUse": {"name": "f", "type": 5}})]}, "messages[0].content[0].toolUse.type"),
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
    shapes.validate_request({**bedrock(converse_user("Hi.")), **change})


@pytest.mark.parametrize("source", [{"bytes": PNG}, {"bytes": base64.b64decode(PNG)}])
def test_bytes_are_accepted_as_base64_and_as_bytes(source: dict[str, Any]) -> None:
    shapes.validate_request(bedrock(converse_user({"image": {"format": "png", "source": source}})))


def test_null_members_count_as_missing() -> None:
    body = {"messages": [converse_user({"text": "Hi.", "image": None})]}
    given = {**body, "modelId": None, "system": None, "toolConfig": None}
    assert segue.repair(given, "bedrock").body == {"messages": [converse_user("Hi.")]}


@pytest.mark.parametrize(
    ("kind", "form", "mime"), [("image", "tiff", "image/tiff"), ("document", "odt", "application/odt")]
)
def test_format_newer_than_the_service_model_is_not_taken_for_another(kind: str, form: str, mime: str) -> None:
    media = {"format": form, "source": {"bytes": "AAAA"}, **({"name": "a"} if kind == "document" else {})}
    body = {"messages": [converse_user({kind: media}, {"text": "See."})]}
    assert segue.convert(body, source="bedrock", target="bedrock").body == body
    assert f"data:{mime};base64,AAAA" in str(segue.convert(body, source="bedrock", target="openai-chat").body)


@pytest.mark.parametrize(("kind", "mime", "form"), [("image", "image/png", "png"), ("video", "video/mp4", "mp4")])
def test_type_in_place_of_a_format_becomes_the_format(kind: str, mime: str, form: str) -> None:
    """BED-09: the service rejects the type, so that it is repaired also at home."""
    body, repaired = (
        {"messages": [converse_user({kind: {"format": name, "source": {"bytes": "AAAA"}}}, {"text": "See."})]}
        for name in (mime, form)
    )
    assert not segue.check(body, "bedrock", model="amazon.nova-pro-v1:0")
    assert segue.convert(body, source="bedrock", target="bedrock").body == repaired
    assert segue.check(repaired, "bedrock", model="amazon.nova-pro-v1:0")


def test_places_are_members_of_the_service_model() -> None:
    types = load_types("bedrock")
    for place in (shapes._REPAIRED | shapes._ACCEPT_TEXT | shapes._UNBOUNDED | shapes._REPLACED.keys()) - {
        "ConverseRequest.tools"
    }:
        name, _, member = place.partition(".")
        assert member in types[name].members, place
    assert shapes._SPLIT_UNIONS <= types.keys()
