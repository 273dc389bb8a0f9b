"""Deltas of a wrong type: content is never dropped silently, the stream is refused. Null is an absent value."""

import json

import pytest

import segue


def encode(*payloads):
    return b"".join(b"data: " + json.dumps(payload).encode() + b"\n\n" for payload in payloads)


def chat(delta):
    deltas = [{"role": "assistant", "content": "a"}, delta, {"content": "b"}]
    chunks = [
        {"id": "x", "object": "chat.completion.chunk", "choices": [{"index": 0, "delta": each}]} for each in deltas
    ]
    chunks[-1]["choices"][0]["finish_reason"] = "stop"
    return encode(*chunks)


def anthropic(block, delta):
    message = {"id": "m", "type": "message", "role": "assistant", "model": "c", "content": []}
    return encode(
        {"type": "message_start", "message": message},
        {"type": "content_block_start", "index": 0, "content_block": block},
        {"type": "content_block_delta", "index": 0, "delta": delta},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}},
        {"type": "message_stop"},
    )


def bedrock(delta):
    return encode(
        {"messageStart": {"role": "assistant"}},
        {"contentBlockDelta": {"contentBlockIndex": 0, "delta": {"text": "a"}}},
        {"contentBlockDelta": {"contentBlockIndex": 0, "delta": delta}},
        {"contentBlockStop": {"contentBlockIndex": 0}},
        {"messageStop": {"stopReason": "end_turn"}},
    )


def gemini(part):
    candidates = [{"content": {"role": "model", "parts": [each]}} for each in ({"text": "a"}, part)]
    return encode(*({"candidates": [candidate]} for candidate in candidates))


def responses(delta):
    return encode(
        {"type": "response.created", "response": {"id": "r", "object": "response", "output": []}},
        {"type": "response.output_text.delta", "item_id": "m", "output_index": 0, "content_index": 0, "delta": delta},
        {"type": "response.completed", "response": {"id": "r", "object": "response", "status": "completed"}},
    )


TEXT = {"type": "text", "text": ""}
WRONG = [
    *(("openai-chat", chat({"content": value}), "delta.content") for value in (5, True, {"a": 1})),
    ("openai-chat", chat({"content": ["x"]}), "delta.content[0]"),
    *(
        ("openai-chat", chat({"content": [{"type": "text", "text": value}]}), "delta.content[0].text")
        for value in (5, [])
    ),
    ("openai-chat", chat({"content": [{"type": "thinking", "thinking": [5]}]}), "delta.content[0]"),
    ("openai-chat", chat({"reasoning_content": 5}), "delta.reasoning_content"),
    ("openai-chat", chat({"refusal": ["x"]}), "delta.refusal"),
    ("openai-chat", chat({"tool_calls": 5}), "delta.tool_calls"),
    ("openai-chat", chat({"tool_calls": ["x"]}), "delta.tool_calls"),
    ("openai-chat", chat("x"), "delta"),
    ("mistral", chat({"content": 5}), "delta.content"),
    ("anthropic", anthropic({"type": "text", "text": 5}, {"type": "text_delta", "text": "a"}), "content_block.text"),
    ("anthropic", anthropic(TEXT, {"type": "text_delta", "text": 5}), "delta.text"),
    ("anthropic", anthropic(TEXT, "x"), "delta"),
    ("anthropic", anthropic({"type": "thinking"}, {"type": "thinking_delta", "thinking": ["x"]}), "delta.thinking"),
    ("bedrock", bedrock({"text": 5}), "delta.text"),
    ("bedrock", bedrock("x"), "delta"),
    ("bedrock", bedrock({"toolUse": "x"}), "delta.toolUse"),
    ("bedrock", bedrock({"reasoningContent": {"text": 5}}), "delta.reasoningContent.text"),
    ("bedrock", bedrock({"reasoningContent": {"signature": 5}}), "delta.reasoningContent.signature"),
    ("gemini", gemini({"text": 5}), "parts[0].text"),
    ("openai-responses", responses(5), "delta"),
    ("openai-responses", responses({"a": 1}), "delta"),
]


@pytest.mark.parametrize(("api", "data", "path"), WRONG)
def test_a_delta_of_a_wrong_type_is_refused_with_its_path(api, data, path):
    with pytest.raises(segue.RemoteProtocolError) as error:
        segue.assemble(data, api)
    assert str(error.value).startswith(f"not a stream of this API: {path}: ")


@pytest.mark.parametrize(
    ("api", "data"),
    [
        ("openai-chat", chat({"content": None, "refusal": None, "reasoning_content": None, "tool_calls": None})),
        ("openai-chat", chat(None)),
        ("openai-chat", chat({"content": ""})),
        ("anthropic", anthropic(TEXT, {"type": "text_delta", "text": None})),
        ("bedrock", bedrock({"text": None})),
        ("openai-responses", responses(None)),
    ],
)
def test_null_is_an_absent_value(api, data):
    assert segue.assemble(data, api).finish == "stop"
