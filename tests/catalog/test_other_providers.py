"""Every sample of Anthropic, Gemini, Azure Foundry and Bedrock, alone: its parsed blocks, and its rendering."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import msgspec
import pytest

from segue._items import parse_item, render_item
from segue.canonical.blocks import Block, Media, Opaque, Text, Thinking, ToolCall, ToolResponse, state_of
from segue.errors import InputError
from segue.wire.catalog.codecs import response_text
from segue.wire.catalog.entry import Entry, check_payload
from segue.wire.catalog.registry import SHAPES, get_entry
from segue.wire.json_values import get_path
from tests.catalog.expected_other_providers import EXPECTED, Expected
from tests.each import for_each

_SAMPLES = Path(__file__).parent / "samples"


class Sample(msgspec.Struct, frozen=True):
    provider: str
    wire_type: str
    case: str
    payload: dict[str, Any]
    correlates_on: str | None = None
    pair: str | None = None

    @property
    def entry(self) -> Entry:
        return get_entry(self.provider, self.wire_type)

    def parsed(self) -> list[Block]:
        return parse_item(self.payload, self.provider, self.wire_type)


def _samples() -> list[Sample]:
    found: list[Sample] = []
    for provider in EXPECTED:
        for path in sorted((_SAMPLES / provider).glob("*.json")):
            for row in json.loads(path.read_text()):
                where = {key: row.get(key) for key in ("correlates_on", "pair")}
                found.append(Sample(provider, path.stem, row["case"], row["payload"], **where))
    return found


SAMPLES = _samples()
every_sample = for_each("sample", SAMPLES, ids=lambda each: f"{each.provider}-{each.wire_type}-{each.case}")


def _tool_blocks(blocks: list[Block]) -> list[ToolCall | ToolResponse | Opaque]:
    return [block for block in blocks if isinstance(block, ToolCall | ToolResponse | Opaque)]


def _id_of(block: Block) -> str | None:
    return block.id if isinstance(block, ToolCall) else block.call_id if isinstance(block, ToolResponse) else None


def _summarize(blocks: list[Block]) -> list[Expected]:
    """Blocks in the form of the expectations; default values that these omit are left out."""
    summary: list[Expected] = []
    signature: str | None = None
    for block in blocks:
        match block:
            case Thinking():
                signature = block.signature
            case ToolCall():
                said_so: Expected = {"call": block.name, "arguments": block.arguments, "kind": block.kind}
                usual = {"signature": None, "parent": None, "awaited": True, "text": None}
                more = {
                    "signature": signature,
                    "parent": block.origin.parent,
                    "awaited": block.awaited,
                    "text": block.arguments_text,
                }
                summary.append(said_so | {key: value for key, value in more.items() if value != usual[key]})
            case ToolResponse():
                summary.append(_summarize_response(block))
            case Opaque():
                summary.append({"text": block.text})
            case _:
                raise AssertionError(block)
    return summary


def _summarize_response(block: ToolResponse) -> Expected:
    content = block.content or ()
    media = [(one.mime, one.data, one.url, one.file_id) for one in content if isinstance(one, Media)]
    opaque = [one.kind for one in content if isinstance(one, Opaque)]
    summary: Expected = {
        "words": response_text(block),
        "name": block.name,
        "hosted": block.hosted,
        "error": block.error,
    }
    more = {"media": media, "opaque": opaque, "outcome": block.outcome}
    return summary | {key: value for key, value in more.items() if value}


def test_every_type_has_a_shape_a_sample_and_an_expectation() -> None:
    for provider, expected in EXPECTED.items():
        assert {f"{each.wire_type}/{each.case}" for each in SAMPLES if each.provider == provider} == expected.keys()
        assert {each.wire_type for each in SAMPLES if each.provider == provider} == SHAPES[provider].keys()


@every_sample
def test_parsed_blocks(sample: Sample) -> None:
    expected = [dict(each) for each in EXPECTED[sample.provider][f"{sample.wire_type}/{sample.case}"]]
    items = [each.pop("item_id", None) for each in expected]
    blocks = sample.parsed()
    assert _summarize(blocks) == expected
    for block, item_id in zip(_tool_blocks(blocks), items, strict=True):
        assert item_id is None or block.origin.item_id == item_id


# Their payloads are the same to the last key.
_TWINS = {"RunStepFunctionToolCall": "RequiredFunctionToolCall"}


@every_sample
def test_type_is_detected(sample: Sample) -> None:
    blocks = _tool_blocks(parse_item(sample.payload, sample.provider))
    assert {block.origin.wire_type for block in blocks} == {_TWINS.get(sample.wire_type, sample.wire_type)}
    assert _summarize(list(blocks)) == _summarize(list(_tool_blocks(sample.parsed())))
    assert [_id_of(block) for block in blocks] == [_id_of(block) for block in _tool_blocks(sample.parsed())]


@every_sample
def test_ids(sample: Sample) -> None:
    entry, blocks = sample.entry, _tool_blocks(sample.parsed())
    raw_id = None if sample.correlates_on is None else get_path(sample.payload, sample.correlates_on)
    assert blocks[0].origin.raw_id == raw_id
    absent = "absent" if entry.identity == "absent" else "synthetic"
    for block in blocks:
        origin = block.origin
        assert (origin.provider, origin.wire_type, origin.family) == (sample.provider, sample.wire_type, entry.family)
        assert origin.identity == (entry.identity if raw_id is not None else absent)
        assert isinstance(block, Opaque) or _id_of(block)
    if entry.role == "call+output":
        assert len({_id_of(block) for block in blocks}) == 1


def test_calls_and_outputs_share_an_id() -> None:
    pairs: dict[tuple[str, str], set[str]] = defaultdict(set)
    raw_ids: dict[tuple[str, str], set[str | None]] = defaultdict(set)
    for sample in SAMPLES:
        if sample.pair is not None:
            first = _tool_blocks(sample.parsed())[0]
            pairs[sample.provider, sample.pair] |= {known} if (known := _id_of(first)) else set()
            raw_ids[sample.provider, sample.pair].add(first.origin.raw_id)
    assert len(pairs) > 40
    assert {pair: ids for pair, ids in pairs.items() if len(ids) != 1} == {}
    assert {pair: ids for pair, ids in raw_ids.items() if len(ids) != 1} == {}


@every_sample
def test_render_returns_the_payload(sample: Sample) -> None:
    assert render_item(sample.parsed(), sample.provider, sample.wire_type) == sample.payload
    assert render_item(sample.parsed(), sample.provider) == sample.payload


def _stripped(block: Block) -> Block:
    if isinstance(block, ToolResponse):
        content = tuple(_stripped(part) for part in block.content or ())
        return msgspec.structs.replace(block, content=content, native=None)
    return msgspec.structs.replace(block, native=None)


@every_sample
def test_rewritten_payload_parses_the_same(sample: Sample) -> None:
    blocks = sample.parsed()
    bare = [_stripped(block) for block in blocks]
    if "encrypted_content" in str(sample.payload) and sample.wire_type == "ResponseWebSearchToolResultBlock":
        with pytest.raises(InputError, match="the server's encrypted_content"):
            render_item(bare, sample.provider, sample.wire_type)
        return
    written = render_item(bare, sample.provider, sample.wire_type)
    check_payload(written, sample.entry)
    again = parse_item(written, sample.provider, sample.wire_type)
    expected = _summarize(bare)
    for each, block in zip(expected, _tool_blocks(bare), strict=False):
        # Without its native fragment only its canonical content is left.
        if each.pop("opaque", None) and isinstance(block, ToolResponse):
            each["words"] = "".join(one.text for one in block.content or () if isinstance(one, Text | Opaque))
    assert _summarize(again) == expected
    assert [_id_of(block) for block in _tool_blocks(again)] == [_id_of(block) for block in _tool_blocks(blocks)]
    assert [block.origin.item_id for block in _tool_blocks(again)] == [
        block.origin.item_id for block in _tool_blocks(blocks)
    ]


# --------------------------------------------------------------------------------------------------------- bad payloads


@every_sample
def test_a_required_field_that_is_missing_is_named(sample: Sample) -> None:
    entry = sample.entry
    root = f"{entry.member}." if entry.member else ""
    for name, spec in entry.fields.items():
        if spec.endswith(", optional"):
            continue
        inner = sample.payload[entry.member] if entry.member else sample.payload
        rest = {key: value for key, value in inner.items() if key != name}
        with pytest.raises(InputError) as caught:
            parse_item({entry.member: rest} if entry.member else rest, sample.provider, sample.wire_type)
        assert caught.value.path == f"{root}{name}"


@pytest.mark.parametrize(
    ("provider", "wire_type", "payload", "path"),
    [
        ("anthropic", "ResponseToolUseBlock", {"type": "tool_use", "id": 7, "name": "x", "input": {}}, "id"),
        ("anthropic", "ResponseToolUseBlock", {"type": "tool_use", "id": "a", "name": "x", "input": []}, "input"),
        (
            "anthropic",
            "RequestToolResultBlock",
            {"type": "tool_result", "tool_use_id": "a", "content": [{"type": "text", "text": 5}]},
            "content[0].text",
        ),
        (
            "anthropic",
            "UserToolResultEvent",
            {"type": "user.tool_result", "tool_use_id": "a", "content": [{"text": "no type"}]},
            "content[0].type",
        ),
        (
            "anthropic",
            "UserToolConfirmationEvent",
            {"type": "user.tool_confirmation", "tool_use_id": "a", "result": True},
            "result",
        ),
        ("gemini", "FunctionCall", {"functionCall": {"name": 5}}, "functionCall.name"),
        ("gemini", "FunctionCall", {"functionCall": "x"}, "functionCall"),
        ("gemini", "FunctionResponse", {"functionResponse": {"response": "x"}}, "functionResponse.response"),
        (
            "gemini",
            "LiveServerToolCall",
            {"toolCall": {"functionCalls": [{"name": "a"}, {"name": 5}]}},
            "toolCall.functionCalls[1].name",
        ),
        ("gemini", "LiveServerToolCall", {"toolCall": {"functionCalls": ["x"]}}, "toolCall.functionCalls[0]"),
        (
            "gemini",
            "LiveServerToolCallCancellation",
            {"toolCallCancellation": {"ids": [5]}},
            "toolCallCancellation.ids[0]",
        ),
        (
            "gemini",
            "InteractionFunctionCall",
            {"type": "function_call", "id": "a", "name": "x", "arguments": "{}"},
            "arguments",
        ),
        ("azure-foundry", "RequiredFunctionToolCall", {"type": "function", "id": "a", "function": {}}, "function.name"),
        (
            "azure-foundry",
            "RunStepFunctionToolCall",
            {"type": "function", "id": "a", "function": {"name": ["x"]}},
            "function.name",
        ),
        ("azure-foundry", "AgentsToolApproval", {"tool_call_id": "a", "approve": "yes"}, "approve"),
        ("bedrock", "ToolUse", {"toolUse": {"toolUseId": 4, "name": "x", "input": {}}}, "toolUse.toolUseId"),
        ("bedrock", "ToolResult", {"toolResult": {"toolUseId": "a", "content": "x"}}, "toolResult.content"),
        ("bedrock", "ToolResult", {"toolResult": {"toolUseId": "a", "content": ["x"]}}, "toolResult.content[0]"),
    ],
)
def test_a_wrong_type_is_named(provider: str, wire_type: str, payload: Expected, path: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_item(payload, provider, wire_type)
    assert caught.value.path == path


# --------------------------------------------------------------------------------------------------- beyond the samples


def _parse_and_summarize(payload: Expected, provider: str) -> list[Expected]:
    return _summarize(parse_item(payload, provider))


def test_only_the_members_that_are_there_are_written() -> None:
    live = {"toolCall": {"functionCalls": [{"id": "a", "name": "x", "args": {}}, {"id": "b", "name": "y", "args": {}}]}}
    first, second = parse_item(live, "gemini")
    assert render_item([first, second], "gemini") == live
    assert render_item([second], "gemini") == {"toolCall": {"functionCalls": [{"id": "b", "name": "y", "args": {}}]}}


def test_a_withdrawn_call_needs_an_id() -> None:
    (call,) = parse_item({"toolCall": {"functionCalls": [{"name": "x"}]}}, "gemini")
    with pytest.raises(InputError) as caught:
        render_item([call], "gemini", "LiveServerToolCallCancellation")
    assert caught.value.path == "blocks"


def test_members_without_ids_are_distinguished_by_position() -> None:
    calls = parse_item({"toolCall": {"functionCalls": [{"name": "x"}, {"name": "x"}]}}, "gemini")
    answers = parse_item({"toolResponse": {"functionResponses": [{"name": "x"}, {"name": "x"}]}}, "gemini")
    assert len({_id_of(call) for call in calls}) == 2
    assert [_id_of(call) for call in calls] == [_id_of(answer) for answer in answers]


def test_bedrock_content_of_every_kind() -> None:
    content = [
        {"text": "a"},
        {"json": [1]},
        {"image": {"format": "jpeg", "source": {"bytes": "AAAA"}}},
        {"document": {"format": "pdf", "name": "b", "source": {"s3Location": {"uri": "s3://x/b.pdf"}}}},
        {"document": {"format": "txt", "name": "c", "source": {"text": "plain"}}},
        {"video": {"format": "mp4", "source": {"bytes": "BBBB"}}},
        {"searchResult": {"source": "https://d.example", "title": "D", "content": [{"text": "found"}]}},
    ]
    (response,) = parse_item({"toolResult": {"toolUseId": "t", "content": content}}, "bedrock")
    assert _summarize([response]) == [
        {
            "words": "a\n[1]\nc\nplain\nD\nhttps://d.example\nfound",
            "name": None,
            "hosted": False,
            "error": False,
            "media": [
                ("image/jpeg", "AAAA", None, None),
                ("application/pdf", None, None, "s3://x/b.pdf"),
                ("video/mp4", "BBBB", None, None),
            ],
        }
    ]
    written = render_item([_stripped(response)], "bedrock")
    assert _summarize(parse_item(written, "bedrock")) == _summarize([response])


def test_bedrock_json_alone_is_the_value() -> None:
    (response,) = parse_item({"toolResult": {"toolUseId": "t", "content": [{"json": {"a": None}}]}}, "bedrock")
    assert isinstance(response, ToolResponse)
    assert response.structured == {"a": None}
    assert render_item([_stripped(response)], "bedrock") == {
        "toolResult": {"toolUseId": "t", "content": [{"json": {"a": None}}]}
    }


def test_foundry_output_that_is_not_there_yet() -> None:
    item = {"type": "openapi_call_output", "id": "i", "call_id": "c", "name": "x", "status": "in_progress"}
    (response,) = parse_item(item, "azure-foundry")
    assert isinstance(response, ToolResponse)
    assert state_of(response) == "pending"


def test_foundry_memory_search_that_failed() -> None:
    item = {"type": "memory_search_call", "id": "i", "status": "failed"}
    assert [each.get("error") for each in _parse_and_summarize(item, "azure-foundry")] == [None, True]


def test_foundry_code_interpreter_pictures() -> None:
    outputs = [{"type": "logs", "logs": "drawn"}, {"type": "image", "image": {"file_id": "f1"}}]
    item = {"type": "code_interpreter", "id": "i", "code_interpreter": {"input": "plot()", "outputs": outputs}}
    _, response = parse_item(item, "azure-foundry")
    assert isinstance(response, ToolResponse)
    assert response.content == (Text("drawn"), Media("image", file_id="f1"))
    assert render_item([_stripped(block) for block in parse_item(item, "azure-foundry")], "azure-foundry") == item


def test_foundry_connected_agent_with_object_arguments() -> None:
    inner = {"name": "surveyor", "arguments": '{"hull":"A"}', "output": "sound"}
    item = {"type": "connected_agent", "id": "i", "connected_agent": inner}
    assert _parse_and_summarize(item, "azure-foundry")[0]["arguments"] == {"hull": "A"}


def test_foundry_open_map_without_arguments() -> None:
    item = {"type": "openapi", "id": "i", "openapi": {"input": "berth 7", "output": "N-14"}}
    call, response = _parse_and_summarize(item, "azure-foundry")
    assert (call["call"], call["arguments"], response["words"]) == ("openapi", {"input": "berth 7"}, "N-14")


def test_interaction_result_of_parts() -> None:
    parts = [{"type": "text", "text": "seen"}, {"type": "image", "mime_type": "image/png", "data": "AAAA"}]
    step = {"type": "function_result", "call_id": "c", "name": "look", "result": parts}
    (response,) = parse_item(step, "gemini")
    assert _summarize([response])[0]["media"] == [("image/png", "AAAA", None, None)]
    assert render_item([_stripped(response)], "gemini") == step


def test_cross_api_text_makes_a_valid_server_result() -> None:
    for wire_type in SHAPES["anthropic"]:
        if not wire_type.endswith("ToolResultBlock") or wire_type == "ResponseWebSearchToolResultBlock":
            continue
        (pattern,) = (each for each in SAMPLES if each.wire_type == wire_type and each == _first(wire_type))
        (response,) = _tool_blocks(pattern.parsed())
        assert isinstance(response, ToolResponse)
        changed = msgspec.structs.replace(response, content=(Text("canal_fee"),), error=False, native=None)
        (again,) = parse_item(render_item([changed], "anthropic", wire_type), "anthropic")
        assert isinstance(again, ToolResponse)
        assert "canal_fee" in response_text(again)
        failed = msgspec.structs.replace(changed, error=True)
        (again,) = parse_item(render_item([failed], "anthropic", wire_type), "anthropic")
        assert isinstance(again, ToolResponse)
        assert again.error
        assert "canal_fee" in response_text(again)


def _first(wire_type: str) -> Sample:
    return next(each for each in SAMPLES if each.wire_type == wire_type)


def test_call_without_id_gets_one_where_required() -> None:
    (call,) = parse_item({"functionCall": {"name": "x", "args": {"a": 1}}}, "gemini")
    (answer,) = parse_item({"functionResponse": {"name": "x", "response": {"output": "ok"}}}, "gemini")
    assert isinstance(call, ToolCall)
    assert render_item(call, "anthropic") == {"type": "tool_use", "id": call.id, "name": "x", "input": {"a": 1}}
    assert render_item(answer, "bedrock") == {"toolResult": {"toolUseId": call.id, "content": [{"text": "ok"}]}}
    # Its own API goes without.
    assert render_item(_stripped(call), "gemini") == {"functionCall": {"name": "x", "args": {"a": 1}}}
