"""Generated streams of each API: a text, two tool calls, and the fields that the provider sends with each event."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

from segue.wire.stream.aws_events import encode_aws_message
from segue.wire.stream.framing import encode_sse

Json = dict[str, Any]
SENTENCE = "the quick brown fox jumps over the lazy dog and then, having had enough of it, goes home to sleep."
TOOLS = ("write", "read")


def build_texts(count: int) -> list[str]:
    words = SENTENCE.split()
    return [f"{words[position % len(words)]} " for position in range(count)]


def build_arguments(count: int) -> list[str]:
    return ['{"text":"', *build_texts(count // 4), '"}']


def chat(count: int) -> Iterator[Json]:
    envelope = {"id": "chatcmpl-CXk1f", "object": "chat.completion.chunk", "created": 1761000000, "model": "gpt-4.1"}

    def chunk(delta: Json, reason: str | None = None) -> Json:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": reason}
        return {**envelope, "service_tier": "default", "system_fingerprint": "fp_a1b2c3", "choices": [choice]}

    yield chunk({"role": "assistant", "content": "", "refusal": None})
    yield from (chunk({"content": text}) for text in build_texts(count))
    for index, name in enumerate(TOOLS):
        function = {"name": name, "arguments": ""}
        yield chunk({"tool_calls": [{"index": index, "id": f"call_{index}", "type": "function", "function": function}]})
        for text in build_arguments(count):
            yield chunk({"tool_calls": [{"index": index, "function": {"arguments": text}}]})
    yield chunk({}, "tool_calls")
    yield {**chunk({}), "choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 9, "total_tokens": 18}}


def responses(count: int) -> Iterator[Json]:
    for number, event in enumerate(_responses_events(count)):
        padding = {"obfuscation": "PxT8bYk2qR"[number % 10 :]} if event["type"].endswith(".delta") else {}
        yield {"type": event["type"], "sequence_number": number, **event, **padding}


def _responses_events(count: int) -> Iterator[Json]:
    response = {"id": "resp_68f2d1c9", "object": "response", "created_at": 1761000000, "model": "gpt-4.1", "output": []}
    yield {"type": "response.created", "response": {**response, "status": "in_progress"}}
    item: Json = {"id": "msg_68f2d1ca", "type": "message", "status": "in_progress", "content": [], "role": "assistant"}
    yield {"type": "response.output_item.added", "output_index": 0, "item": item}
    position = {"item_id": item["id"], "output_index": 0, "content_index": 0}
    part: Json = {"type": "output_text", "annotations": [], "logprobs": [], "text": ""}
    yield {"type": "response.content_part.added", **position, "part": part}
    for text in build_texts(count):
        yield {"type": "response.output_text.delta", **position, "delta": text, "logprobs": []}
    whole = "".join(build_texts(count))
    yield {"type": "response.output_text.done", **position, "text": whole, "logprobs": []}
    yield {"type": "response.content_part.done", **position, "part": {**part, "text": whole}}
    output = [{**item, "status": "completed", "content": [{**part, "text": whole}]}]
    yield {"type": "response.output_item.done", "output_index": 0, "item": output[0]}
    for index, name in enumerate(TOOLS, 1):
        call = {"id": f"fc_68f2d1c{index}", "type": "function_call", "call_id": f"call_{index}", "name": name}
        added = {**call, "status": "in_progress", "arguments": ""}
        yield {"type": "response.output_item.added", "output_index": index, "item": added}
        position = {"item_id": call["id"], "output_index": index}
        for text in build_arguments(count):
            yield {"type": "response.function_call_arguments.delta", **position, "delta": text}
        arguments = "".join(build_arguments(count))
        yield {"type": "response.function_call_arguments.done", **position, "arguments": arguments}
        output.append({**call, "status": "completed", "arguments": arguments})
        yield {"type": "response.output_item.done", "output_index": index, "item": output[-1]}
    usage = {"input_tokens": 9, "output_tokens": 9, "total_tokens": 18}
    yield {
        "type": "response.completed",
        "response": {**response, "status": "completed", "output": output, "usage": usage},
    }


def anthropic(count: int) -> Iterator[Json]:
    message = {"id": "msg_01A", "type": "message", "role": "assistant", "model": "claude-sonnet-4-5", "content": []}
    usage = {"input_tokens": 9, "output_tokens": 1}
    yield {"type": "message_start", "message": {**message, "stop_reason": None, "stop_sequence": None, "usage": usage}}
    yield {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}
    yield {"type": "ping"}
    for text in build_texts(count):
        yield {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}}
    yield {"type": "content_block_stop", "index": 0}
    for index, name in enumerate(TOOLS, 1):
        block = {"type": "tool_use", "id": f"toolu_0{index}", "name": name, "input": {}}
        yield {"type": "content_block_start", "index": index, "content_block": block}
        for text in ("", *build_arguments(count)):
            delta = {"type": "input_json_delta", "partial_json": text}
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    end = {"stop_reason": "tool_use", "stop_sequence": None}
    yield {"type": "message_delta", "delta": end, "usage": {"output_tokens": 9}}
    yield {"type": "message_stop"}


def gemini(count: int) -> Iterator[Json]:
    def chunk(tokens: int, *parts: Json, reason: str | None = None) -> Json:
        candidate: Json = {"content": {"parts": list(parts), "role": "model"}, "index": 0}
        if reason is not None:
            candidate["finishReason"] = reason
        usage = {"promptTokenCount": 9, "candidatesTokenCount": tokens, "totalTokenCount": 9 + tokens}
        names = {"modelVersion": "gemini-2.5-flash", "responseId": "aBcDeF"}
        return {"candidates": [candidate], "usageMetadata": usage, **names}

    yield from (chunk(index, {"text": text}) for index, text in enumerate(build_texts(count)))
    arguments = json.loads("".join(build_arguments(count)))
    yield chunk(count, *({"functionCall": {"name": name, "args": arguments}} for name in TOOLS))
    yield chunk(count, {"text": ""}, reason="STOP")


def bedrock(count: int) -> Iterator[Json]:
    """Payloads of ConverseStream; `p` is the padding that the service adds to each."""
    padding = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
    for number, event in enumerate(_bedrock_events(count)):
        yield {**event, "p": padding[: 5 + 7 * number % 40]}


def _bedrock_events(count: int) -> Iterator[Json]:
    yield {"role": "assistant"}
    for text in build_texts(count):
        yield {"contentBlockIndex": 0, "delta": {"text": text}}
    yield {"contentBlockIndex": 0}
    for index, name in enumerate(TOOLS, 1):
        yield {"contentBlockIndex": index, "start": {"toolUse": {"name": name, "toolUseId": f"tooluse_{index}"}}}
        for text in build_arguments(count):
            yield {"contentBlockIndex": index, "delta": {"toolUse": {"input": text}}}
        yield {"contentBlockIndex": index}
    yield {"stopReason": "tool_use"}
    usage = {"inputTokens": 9, "outputTokens": 9, "totalTokens": 18}
    yield {"metrics": {"latencyMs": 900}, "usage": usage}


STREAMS: dict[str, Callable[[int], Iterator[Json]]] = {
    "openai-chat": chat,
    "openai-responses": responses,
    "anthropic": anthropic,
    "gemini": gemini,
    "bedrock": bedrock,
}


def frame_stream(api: str, payloads: list[bytes], size: int) -> list[bytes]:
    """Return the stream in reads of `size` bytes, or, for 0, of one event each."""
    events = [_frame(api, payload) for payload in payloads]
    if not size:
        return events
    stream = b"".join(events)
    return [stream[start : start + size] for start in range(0, len(stream), size)]


def _frame(api: str, payload: bytes) -> bytes:
    if api == "bedrock":
        kind = _bedrock_event_type(json.loads(payload))
        return encode_aws_message(payload, event_type=kind, content_type="application/json", message_type="event")
    if api == "gemini":
        return b"data: %b\r\n\r\n" % payload
    return encode_sse(payload, json.loads(payload)["type"] if api in ("anthropic", "openai-responses") else None)


def _bedrock_event_type(payload: Json) -> str:
    keys = {"role": "messageStart", "start": "contentBlockStart", "delta": "contentBlockDelta"}
    keys |= {"stopReason": "messageStop", "usage": "metadata"}
    return next((kind for key, kind in keys.items() if key in payload), "contentBlockStop")
