"""Every OpenAI and Mistral sample: parsed, rendered back, and rewritten without its native fragment."""

from __future__ import annotations

from itertools import groupby
from typing import Any

import msgspec
import pytest
from msgspec import UNSET

from segue._items import parse_item, render_item
from segue.canonical.blocks import Block, Media, Opaque, Text, ToolCall, ToolResponse, text_of
from segue.errors import InputError
from segue.wire.catalog.entry import load_entries
from segue.wire.catalog.mistral import MISTRAL
from segue.wire.catalog.openai import OPENAI
from segue.wire.catalog.registry import get_entry
from segue.wire.json_values import get_path
from segue.wire.registry import WIRES
from tests.catalog.expected_openai_mistral import EXPECTED
from tests.catalog.vendor_catalog import Sample, samples
from tests.each import for_each

SAMPLES = [sample for sample in samples() if sample.provider in ("openai", "mistral")]
SHAPES = {"openai": OPENAI, "mistral": MISTRAL}
# Types with equal payloads: only the surface that they came from distinguishes them.
LOOK_ALIKE = {"RequiredActionFunctionToolCall", "RunStepFunctionToolCall"}
every_sample = for_each("sample", SAMPLES)


def summarize(block: Block) -> dict[str, Any]:
    match block:
        case ToolCall():
            return {"call": block.name, "arguments": block.arguments, "kind": block.kind}
        case ToolResponse():
            content = tuple(_plain(inner) for inner in block.content or ())
            known = {"structured": block.structured, "error": block.error, "hosted": block.hosted}
            return {"output": block.name, "content": content, **known}
        case Opaque():
            return {"answer": block.text}
        case _:
            raise AssertionError(block)


def _plain(block: Block) -> str | Media:
    if isinstance(block, Text):
        return block.text
    assert isinstance(block, Media)
    return msgspec.structs.replace(block, native=None, extra=None)


def canonical_id(block: Block) -> str | None:
    return block.id if isinstance(block, ToolCall) else block.call_id if isinstance(block, ToolResponse) else None


def ids_of(block: Block) -> tuple[str | None, ...]:
    assert isinstance(block, ToolCall | ToolResponse | Opaque)
    return canonical_id(block), block.origin.raw_id, block.origin.item_id, block.origin.identity


def bare(block: Block) -> Block:
    """The block and its content without native fragments."""
    if isinstance(block, ToolResponse) and block.content is not None:
        block = msgspec.structs.replace(block, content=tuple(bare(inner) for inner in block.content))
    return msgspec.structs.replace(block, native=None)


def test_every_type_has_a_shape_and_a_sample() -> None:
    for provider, shapes in SHAPES.items():
        known = {entry.wire_type for entry in load_entries() if entry.provider == provider}
        assert known == set(shapes)
        assert known == {sample.wire_type for sample in SAMPLES if sample.provider == provider}
    assert {(sample.provider, sample.wire_type, sample.case) for sample in SAMPLES} == set(EXPECTED)


@every_sample
def test_parsed_blocks(sample: Sample) -> None:
    blocks = parse_item(sample.payload, sample.provider, sample.wire_type)
    assert [summarize(block) for block in blocks] == EXPECTED[sample.provider, sample.wire_type, sample.case]


@every_sample
def test_type_is_detected(sample: Sample) -> None:
    blocks = parse_item(sample.payload, sample.provider)
    given = parse_item(sample.payload, sample.provider, sample.wire_type)
    assert [summarize(block) for block in blocks] == [summarize(block) for block in given]
    assert [canonical_id(block) for block in blocks] == [canonical_id(block) for block in given]
    if sample.wire_type not in LOOK_ALIKE:
        families = {get_entry(sample.provider, block.origin.wire_type or "").family for block in blocks}  # type: ignore[union-attr]
        assert families == {get_entry(sample.provider, sample.wire_type).family}


@every_sample
def test_ids(sample: Sample) -> None:
    entry = get_entry(sample.provider, sample.wire_type)
    raw_id = None if sample.correlates_on is None else get_path(sample.payload, sample.correlates_on)
    for block in parse_item(sample.payload, sample.provider, sample.wire_type):
        assert isinstance(block, ToolCall | ToolResponse | Opaque)
        origin = block.origin
        assert (origin.provider, origin.wire_type, origin.family) == (sample.provider, sample.wire_type, entry.family)
        assert origin.raw_id == raw_id
        if raw_id is None:
            assert origin.identity == ("absent" if entry.identity == "absent" else "synthetic")
        elif entry.identity == "absent":
            assert (origin.identity, origin.item_id) == ("conflated", raw_id)
        else:
            assert origin.identity == entry.identity
        if not isinstance(block, Opaque):
            assert canonical_id(block)


def test_calls_and_outputs_are_paired() -> None:
    paired = sorted((s for s in SAMPLES if s.pair), key=lambda s: (s.provider, s.pair))
    met = 0
    for _, group in groupby(paired, key=lambda s: (s.provider, s.pair)):
        blocks = [block for s in group for block in parse_item(s.payload, s.provider, s.wire_type)]
        ids = {canonical_id(block) for block in blocks if not isinstance(block, Opaque)}
        assert len(ids) == 1
        assert len({block.origin.raw_id for block in blocks}) == 1  # type: ignore[union-attr]
        met += len(blocks) > 1
    assert met > 20


@every_sample
def test_render_returns_the_payload(sample: Sample) -> None:
    blocks = parse_item(sample.payload, sample.provider, sample.wire_type)
    assert render_item(blocks, sample.provider) == sample.payload
    assert render_item(blocks, sample.provider, sample.wire_type) == sample.payload


@every_sample
def test_rewritten_payload_parses_the_same(sample: Sample) -> None:
    blocks = parse_item(sample.payload, sample.provider, sample.wire_type)
    anew = render_item([bare(block) for block in blocks], sample.provider)
    again = parse_item(anew, sample.provider, sample.wire_type)
    assert [summarize(block) for block in again] == [summarize(block) for block in blocks]
    assert [ids_of(block) for block in again] == [ids_of(block) for block in blocks]


WITHIN = [s for s in SAMPLES if (shape := SHAPES[s.provider][s.wire_type]).enclosing_body is not None]


# Families whose tools have the label of their server before their name in a body.
LABELLED = ("mcp", "mcp-approval")


@pytest.mark.parametrize("sample", WITHIN, ids=str)
def test_parses_the_same_as_in_a_body(sample: Sample) -> None:
    inside = SHAPES[sample.provider][sample.wire_type].enclosing_body
    assert inside is not None
    messages = WIRES[inside.api].parse_request(inside.wrap(sample.payload)).messages
    there = [block for message in messages for block in message.blocks if isinstance(block, ToolCall | ToolResponse)]
    here = parse_item(sample.payload, sample.provider, sample.wire_type)
    for block, other in zip(there, here, strict=False):
        assert isinstance(other, type(block))
        if isinstance(block, ToolCall):
            assert isinstance(other, ToolCall)
            assert block.arguments == other.arguments
            assert other.name == (block.name.rpartition(".")[2] if other.origin.family in LABELLED else block.name)
        elif isinstance(other, ToolResponse):
            assert block.content == other.content


# -------------------------------------------------------------------------------------------------- beyond the samples

TURN = {"turn_id": "turn_1"}
PNG = "data:image/png;base64,iVBORw0KGgo="
FAILURES = [
    ("AgentFunctionCallOutput", {"type": "function_call_output", "status": "failed", "error": "broke"}, "broke"),
    ("AgentSessionToolResult", {"type": "agent.session.input.tool_result", "success": False, "output": "half"}, "half"),
    (
        "AgentMCPCall",
        {
            "type": "mcp_call",
            "server_label": "yard",
            "name": "find",
            "arguments": {},
            "output": None,
            "error": {"code": 5, "message": "no such crate"},
            "status": "failed",
        },
        "no such crate",
    ),
    (
        "AgentCommandExecution",
        {"type": "command_execution", "command": "make", "output": "no rule", "exit_code": 2, "status": "failed"},
        "no rule\n[exit code 2]",
    ),
    ("AgentCommandExecution", {"type": "command_execution", "command": "make", "status": "failed"}, ""),
    ("AgentCloseSubagentCall", {"type": "close_subagent_call", "status": "failed"}, ""),
    (
        "CodeInterpreterToolCall",
        {"type": "code_interpreter_call", "container_id": "c", "code": None, "outputs": None, "status": "failed"},
        "",
    ),
    ("FileSearchToolCall", {"type": "file_search_call", "queries": ["q"], "status": "failed"}, ""),
    ("WebSearchToolCall", {"type": "web_search_call", "action": {"type": "search"}, "status": "failed"}, ""),
    ("ImageGenToolCall", {"type": "image_generation_call", "result": None, "status": "failed"}, ""),
]
WHO = {"id": "item_1", "call_id": "call_1", "sender_agent_id": "a", "recipient_agent_id": "b", **TURN}


@pytest.mark.parametrize(("wire_type", "fields", "text"), FAILURES)
def test_failure_is_an_error_with_its_text(wire_type: str, fields: dict[str, Any], text: str) -> None:
    payload = {**{key: value for key, value in WHO.items() if key in get_entry("openai", wire_type).fields}, **fields}
    blocks = parse_item(payload, "openai", wire_type)
    response = blocks[-1]
    assert isinstance(response, ToolResponse)
    assert (response.error, text_of(response.content)) == (True, text)
    again = parse_item(render_item([bare(block) for block in blocks], "openai"), "openai", wire_type)[-1]
    assert isinstance(again, ToolResponse)
    assert (again.error, text_of(again.content)) == (True, text)


@pytest.mark.parametrize(
    ("wire_type", "payload", "pictures"),
    [
        (
            "CodeInterpreterToolCall",
            {
                "id": "ci_1",
                "type": "code_interpreter_call",
                "container_id": "c",
                "code": "plot()",
                "outputs": [{"type": "image", "url": PNG}, {"type": "image", "url": "https://cdn.example/a.png"}],
                "status": "completed",
            },
            [Media("image", "image/png", "iVBORw0KGgo="), Media("image", url="https://cdn.example/a.png")],
        ),
        (
            "AgentFunctionCallOutput",
            {
                "id": "item_1",
                "type": "function_call_output",
                "call_id": "call_1",
                "output": [{"type": "input_image", "image_url": PNG}, {"type": "input_image", "file_id": "file-1"}],
                "status": "completed",
                **TURN,
            },
            [Media("image", "image/png", "iVBORw0KGgo="), Media("image", file_id="file-1")],
        ),
    ],
)
def test_pictures_stay_pictures(wire_type: str, payload: dict[str, Any], pictures: list[Media]) -> None:
    blocks = parse_item(payload, "openai", wire_type)
    again = parse_item(render_item([bare(block) for block in blocks], "openai"), "openai", wire_type)
    for response in (blocks[-1], again[-1]):
        assert isinstance(response, ToolResponse)
        assert [_plain(block) for block in response.content or ()] == pictures


@pytest.mark.parametrize(("status", "state"), [("cancelled", (False, "cancelled")), ("error", (True, None))])
def test_realtime_call_status(status: str, state: tuple[bool, str | None]) -> None:
    event = {"type": "tool_call.ended", "id": "va_1", "name": "fare", "ts": 1.5, "arguments": "{}", "status": status}
    response = parse_item(event, "mistral")[0]
    assert isinstance(response, ToolResponse)
    assert (response.error, response.outcome) == state
    assert render_item(bare(response), "mistral")["status"] == status


@pytest.mark.parametrize("raw_id", [None, "", "null"])
def test_missing_id_in_every_form(raw_id: str | None) -> None:
    call = parse_item({"id": raw_id, "function": {"name": "fare", "arguments": "{}"}}, "mistral")[0]
    answer = parse_item({"role": "tool", "tool_call_id": "null", "name": "fare", "content": "2.40"}, "mistral")[0]
    assert isinstance(call, ToolCall)
    assert isinstance(answer, ToolResponse)
    assert call.origin.raw_id is None
    assert call.origin.identity == "synthetic"
    assert call.id == answer.call_id
    assert "id" not in render_item(bare(call), "mistral")


def test_text_around_a_legacy_function_call_is_kept() -> None:
    message = {"role": "assistant", "content": "One moment.", "function_call": {"name": "ping", "arguments": "{}"}}
    text, call = parse_item(message, "openai")
    assert isinstance(text, Text)
    assert text.text == "One moment."
    assert isinstance(call, ToolCall)
    assert render_item([text, call], "openai") == message


def test_a_structured_result_is_written_as_text_where_only_text_goes() -> None:
    response = ToolResponse("c", "fare", structured={"eur": 2.4}, content=())
    response = msgspec.structs.replace(response, origin=msgspec.structs.replace(response.origin, raw_id="call_1"))
    assert render_item(response, "openai", "FunctionToolCallOutput")["output"] == '{"eur":2.4}'
    assert response.structured is not UNSET


@every_sample
def test_a_missing_field_is_named(sample: Sample) -> None:
    entry = get_entry(sample.provider, sample.wire_type)
    root = f"{entry.member}." if entry.member is not None else ""
    required = [name for name, spec in entry.fields.items() if not spec.endswith(", optional")]
    for name in required:
        payload = msgspec.json.decode(msgspec.json.encode(sample.payload))
        del get_path(payload, entry.member or "")[name]
        with pytest.raises(InputError) as caught:
            parse_item(payload, sample.provider, sample.wire_type)
        assert caught.value.path == f"{root}{name}"


@every_sample
def test_a_value_of_a_wrong_type_is_named(sample: Sample) -> None:
    entry = get_entry(sample.provider, sample.wire_type)
    root = f"{entry.member}." if entry.member is not None else ""
    texts = [name for name, spec in entry.fields.items() if spec in ("str", "str|null, optional", "str, optional")]
    for name in texts:
        payload = msgspec.json.decode(msgspec.json.encode(sample.payload))
        get_path(payload, entry.member or "")[name] = 7
        with pytest.raises(InputError) as caught:
            parse_item(payload, sample.provider, sample.wire_type)
        assert caught.value.path == f"{root}{name}"


@pytest.mark.parametrize(
    ("provider", "payload", "path"),
    [
        ("openai", {"type": "function_call_output", "call_id": 5, "output": "x"}, "call_id"),
        ("openai", {"type": "mcp_approval_response", "approval_request_id": "m", "approve": "yes"}, "approve"),
        ("openai", {"type": "function_call_output", "call_id": "c", "output": [{"text": "x"}]}, "output[0].type"),
        ("mistral", {"type": "function.call", "id": "e", "name": "fare", "arguments": "{}"}, "tool_call_id"),
        ("mistral", {"id": "c", "function": {"name": 5, "arguments": "{}"}}, "function.name"),
    ],
)
def test_bad_payloads_without_a_type(provider: str, payload: dict[str, Any], path: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_item(payload, provider)
    assert caught.value.path == path


@pytest.mark.parametrize(
    ("provider", "payload"),
    [("openai", {"type": "new_output", "output": "x"}), ("mistral", {"type": "new.entry", "name": "fare", "id": "e"})],
)
def test_named_type_is_never_taken_for_an_unnamed_one(provider: str, payload: dict[str, Any]) -> None:
    [block] = parse_item(payload, provider)
    assert isinstance(block, Opaque)
    assert block.kind == payload["type"]
    assert render_item(block, provider) == payload


def test_namespaced_name_is_rendered_in_two_fields() -> None:
    item = {"type": "function_call", "call_id": "c", "name": "book_berth", "namespace": "harbour", "arguments": "{}"}
    assert render_item([bare(block) for block in parse_item(item, "openai")], "openai") == item
