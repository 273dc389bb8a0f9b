"""Invalid input to items and conversations: an error that names the path, and nothing lost."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import segue
from segue.canonical.blocks import ToolCall

MCP = {"type": "mcp_call", "id": "m", "server_label": "s", "name": "n", "arguments": "{}", "output": "o"}
UNKNOWN = {"type": "wibble", "x": "kept"}


@pytest.mark.parametrize(
    ("call", "path"),
    [
        (lambda: segue.render_item("x", "openai"), "blocks"),
        (lambda: segue.render_item([], "openai"), "blocks"),
        (lambda: segue.render_item(segue.parse_item(MCP, "openai"), "anthropic"), "blocks"),
        (lambda: segue.render_item(segue.parse_item(MCP, "openai"), "nobody"), "provider"),
        (lambda: segue.parse_item(MCP, "nobody"), "provider"),
        (lambda: segue.parse_item(MCP, "openai", "NoSuchType"), "wire_type"),
        (lambda: segue.Conversation().add_blocks([1]), "blocks[0]"),
    ],
)
def test_input_error_names_the_path(call: Callable[[], Any], path: str) -> None:
    with pytest.raises(segue.InputError) as raised:
        call()
    assert raised.value.path == path


def test_unknown_type_is_kept_for_same_api_and_becomes_text_cross_api() -> None:
    blocks = segue.parse_item(UNKNOWN, "openai")
    assert segue.render_item(blocks, "openai") == UNKNOWN
    chat = segue.Conversation()
    chat.add_user("Go on.")
    chat.add_blocks(*blocks)
    chat.add_user("And now?")
    assert UNKNOWN in chat.render("openai-responses").body["input"]
    assert "kept" in chat.render("anthropic").data.decode()


@pytest.mark.parametrize(
    ("beside", "wire_type"), [({"output": None}, "RunStepFunctionToolCall"), ({}, "ChatFunctionToolCall")]
)
def test_pending_output_distinguishes_a_step_from_a_call(beside: dict[str, Any], wire_type: str) -> None:
    step = {"id": "call_1", "type": "function", "function": {"name": "f", "arguments": "{}", **beside}}
    (call,) = segue.parse_item(step, "openai")
    assert isinstance(call, ToolCall)
    assert call.origin.wire_type == wire_type
    assert segue.render_item([call], "openai") == step


def test_non_string_id_counts_as_missing() -> None:
    body = {"input": [{"type": "memory_search_call", "id": [1], "results": None}]}
    assert segue.check(segue.convert(body, source="azure-foundry", target="anthropic").body, "anthropic")


@pytest.mark.parametrize("target", ["anthropic", "openai-chat", "gemini"])
def test_failure_without_text_gets_a_text(target: str) -> None:
    failed = {"toolResult": {"toolUseId": "a", "content": [], "status": "error"}}
    messages = [
        {"role": "user", "content": [{"text": "Go."}]},
        {"role": "assistant", "content": [{"toolUse": {"toolUseId": "a", "name": "f", "input": {}}}]},
        {"role": "user", "content": [failed]},
    ]
    made = segue.convert({"messages": messages}, source="bedrock", target=target)
    assert "[failed without a message]" in made.data.decode()
    assert made.report.findings_of("inserted")


def test_reply_has_the_requested_model() -> None:
    model = "us.anthropic.claude-sonnet-4-5-20250929-v1:0"
    body = {"messages": [{"role": "user", "content": "Go."}]}
    made = segue.convert(body, source="openai-chat", target="bedrock", model=model)
    message = {"role": "assistant", "content": [{"text": "Done."}]}
    assert made.reply({"output": {"message": message}, "stopReason": "end_turn"})["model"] == model
