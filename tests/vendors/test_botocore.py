"""botocore's client sends the bodies segue renders for Converse, and its own bodies round-trip unchanged."""

from __future__ import annotations

import base64
import json
from typing import Any
from urllib.parse import unquote

import pytest

import segue
from tests import converse
from tests.bodies.bedrock import assistant as converse_assistant
from tests.bodies.bedrock import user as converse_user
from tests.conversations.build import PNG, bedrock, thought, tool_result, tool_use
from tests.conversations.conversions import convert
from tests.conversations.replies import bedrock_reply
from tests.conversations.table import BY_NAME
from tests.vendors import boto
from tests.vendors.server import serve_canned

MODEL = "us.anthropic.claude-sonnet-4-5-20250929-v1:0"
NAMES = ("parallel_calls", "bedrock_one_call", "bedrock_documents", "gemini_one_call", "responses_two_servers")


def request_parameters(url: str, **parameters: Any) -> dict[str, Any]:
    return boto.connect(url).converse(**parameters)


@pytest.mark.parametrize("name", [name for name in NAMES if name in BY_NAME])
def test_botocore_sends_what_segue_wrote(name: str) -> None:
    body = {**convert(BY_NAME[name], "bedrock").body, "modelId": MODEL}
    with serve_canned([bedrock_reply({"text": "Hello."})]) as server:
        request_parameters(server.url, **converse.as_parameters(body))
    ((path, sent),) = server.requests
    assert unquote(path) == f"/model/{MODEL}/converse"
    assert json.loads(sent) == {key: value for key, value in body.items() if key != "modelId"}
    assert segue.check(sent, "bedrock", model=MODEL)


def test_client_with_bytes_continues_the_conversation() -> None:
    """Reply and request as boto3 has them: blobs are bytes, and the reply's message is appended as it is."""
    sealed = {"reasoningContent": {"redactedContent": base64.b64encode(b"sealed").decode()}}
    answer = bedrock_reply(thought("Hm."), sealed, tool_use("tooluse_1", value={"path": "a"}))
    picture = {"image": {"format": "png", "source": {"bytes": base64.b64decode(PNG)}}}
    first = bedrock(converse_user(picture, "Read it."), model=MODEL)
    with serve_canned([answer, bedrock_reply({"text": "Done."})]) as server:
        reply = request_parameters(server.url, **first)
        message = reply["output"]["message"]
        assert message["content"][1]["reasoningContent"]["redactedContent"] == b"sealed"
        longer = {**first, "messages": [*first["messages"], message, converse_user(tool_result("tooluse_1", "A"))]}
        request_parameters(server.url, **longer)
    sent = json.loads(server.requests[1][1])
    assert segue.convert(longer, source="bedrock", target="bedrock").body == {**sent, "modelId": MODEL}
    assert segue.convert(sent, target="bedrock", model=MODEL).body == {**sent, "modelId": MODEL}
    assert segue.convert(longer, target="openai-chat").source == "bedrock"


def test_botocore_reads_a_reply_that_segue_wrote() -> None:
    out = segue.convert(
        bedrock(converse_user("Go."), converse_assistant("Yes?"), converse_user("Go.")), target="anthropic"
    )
    given = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-sonnet-4-5",
        "content": [{"type": "tool_use", "id": "toolu_1", "name": "read_file", "input": {"path": "a"}}],
        "stop_reason": "tool_use",
        "stop_sequence": None,
        "usage": {"input_tokens": 11, "output_tokens": 7, "cache_read_input_tokens": 5},
    }
    with serve_canned([out.reply(given)]) as server:
        reply = request_parameters(server.url, **bedrock(converse_user("Go."), model=MODEL))
    assert reply["stopReason"] == "tool_use"
    assert reply["output"]["message"]["content"][0]["toolUse"]["input"] == {"path": "a"}
    assert reply["usage"] == {"inputTokens": 11, "outputTokens": 7, "totalTokens": 23, "cacheReadInputTokens": 5}
