"""One exchange, as each API answers it: two calls at once, then a third, then the last word; whole and as a stream."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any, NamedTuple

Answer = Any


class Call(NamedTuple):
    id: str
    tool: str
    arguments: dict[str, Any]


def _calls(*ids: str) -> list[list[Call]]:
    return [
        [Call(ids[0], "get_weather", {"city": "Lisbon"}), Call(ids[1], "get_weather", {"city": "Oslo"})],
        [Call(ids[2], "get_time", {"zone": "Europe/Oslo"})],
        [],
    ]


WORDS = ("Let me look.", "And the time.", "Lisbon 21 °C, Oslo 4 °C, and it is noon in Oslo.")
THOUGHTS = ("Two cities, two calls.", "The time is missing.", "All is there.")


def _halves(text: str) -> list[str]:
    cuts = [0, len(text) // 2, len(text)]
    return [text[a:b] for a, b in pairwise(cuts)]


# ---------------------------------------------------------------------------------------------------------------- Chat


def chat(model: str = "gpt-4.1", ids: tuple[str, ...] = ("call_a1", "call_b2", "call_c3"), **more: Any) -> list[Answer]:
    made: list[Answer] = []
    for number, calls in enumerate(_calls(*ids)):
        message: dict[str, Any] = {"role": "assistant", "content": WORDS[number], **more}
        if calls:
            message["tool_calls"] = [_chat_call(call) for call in calls]
        finish = "tool_calls" if calls else "stop"
        choice = {"index": 0, "message": message, "finish_reason": finish, "logprobs": None}
        made.append(
            {
                "id": f"chatcmpl-{number}",
                "object": "chat.completion",
                "created": 1,
                "model": model,
                "choices": [choice],
                "usage": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15},
            }
        )
    return made


def _chat_call(call: Call) -> dict[str, Any]:
    return {"id": call.id, "type": "function", "function": {"name": call.tool, "arguments": json.dumps(call.arguments)}}


def chat_streams(model: str = "gpt-4.1", ids: tuple[str, ...] = ("call_a1", "call_b2", "call_c3")) -> list[Answer]:
    return [_chat_stream(model, number, calls) for number, calls in enumerate(_calls(*ids))]


def _chat_stream(model: str, number: int, calls: list[Call]) -> Answer:
    def chunk(delta: Any, finish: str | None = None) -> tuple[None, Any]:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        head = {"id": f"chatcmpl-{number}", "object": "chat.completion.chunk", "created": 1, "model": model}
        return None, {**head, "choices": [choice]}

    events: list[Any] = [chunk({"role": "assistant", "content": ""})]
    events += [chunk({"content": half}) for half in _halves(WORDS[number])]
    for index, call in enumerate(calls):
        entry = _chat_call(call)
        first, second = _halves(entry["function"]["arguments"])
        entry["function"]["arguments"] = first
        events.append(chunk({"tool_calls": [{"index": index, **entry}]}))
        events.append(chunk({"tool_calls": [{"index": index, "function": {"arguments": second}}]}))
    return [*events, chunk({}, "tool_calls" if calls else "stop"), (None, "[DONE]")]


# ----------------------------------------------------------------------------------------------------------- Responses


def responses(model: str = "gpt-5.1") -> list[Answer]:
    return [_response(model, number, calls) for number, calls in enumerate(_calls("call_a1", "call_b2", "call_c3"))]


def _items(number: int, calls: list[Call]) -> list[dict[str, Any]]:
    reasoning = {
        "id": f"rs_{number}",
        "type": "reasoning",
        "summary": [{"type": "summary_text", "text": THOUGHTS[number]}],
        "encrypted_content": f"gAAAA{number}",
    }
    text = {"type": "output_text", "text": WORDS[number], "annotations": [], "logprobs": []}
    message = {"id": f"msg_{number}", "type": "message", "role": "assistant", "status": "completed", "content": [text]}
    made = [
        {
            "id": f"fc_{call.id}",
            "type": "function_call",
            "call_id": call.id,
            "name": call.tool,
            "arguments": json.dumps(call.arguments),
            "status": "completed",
        }
        for call in calls
    ]
    return [reasoning, message, *made]


def _response(model: str, number: int, calls: list[Call]) -> dict[str, Any]:
    return {
        "id": f"resp_{number}",
        "object": "response",
        "created_at": 1,
        "status": "completed",
        "model": model,
        "output": _items(number, calls),
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "metadata": {},
        "temperature": 1.0,
        "top_p": 1.0,
        "usage": {
            "input_tokens": 10,
            "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
            "output_tokens": 5,
            "output_tokens_details": {"reasoning_tokens": 2},
            "total_tokens": 15,
        },
    }


def response_streams(model: str = "gpt-5.1") -> list[Answer]:
    streams: list[Answer] = []
    for whole in responses(model):
        payloads: list[dict[str, Any]] = [
            {"type": "response.created", "response": {**whole, "status": "in_progress", "output": []}}
        ]
        for index, item in enumerate(whole["output"]):
            place = {"output_index": index, "item_id": item["id"]}
            payloads += [
                {"type": "response.output_item.added", "output_index": index, "item": _opened(item)},
                *({**event, **place} for event in _deltas(item)),
                {"type": "response.output_item.done", "output_index": index, "item": item},
            ]
        payloads.append({"type": "response.completed", "response": whole})
        streams.append([(event["type"], {**event, "sequence_number": n}) for n, event in enumerate(payloads)])
    return streams


def _opened(item: dict[str, Any]) -> dict[str, Any]:
    empty = {"message": {"content": []}, "function_call": {"arguments": ""}, "reasoning": {"summary": []}}
    return {**item, **empty[item["type"]]}


def _deltas(item: dict[str, Any]) -> list[dict[str, Any]]:
    match item["type"]:
        case "function_call":
            kind, text = "response.function_call_arguments", item["arguments"]
            steps = [{"type": f"{kind}.delta", "delta": half} for half in _halves(text)]
            return [*steps, {"type": f"{kind}.done", "arguments": text, "name": item["name"]}]
        case "message":
            part = item["content"][0]
            at = {"content_index": 0}
            steps = [
                {"type": "response.output_text.delta", "delta": half, "logprobs": [], **at}
                for half in _halves(part["text"])
            ]
            return [
                {"type": "response.content_part.added", "part": {**part, "text": ""}, **at},
                *steps,
                {"type": "response.output_text.done", "text": part["text"], "logprobs": [], **at},
                {"type": "response.content_part.done", "part": part, **at},
            ]
        case _:
            return []


# ----------------------------------------------------------------------------------------------------------- Anthropic


def messages(model: str = "claude-sonnet-4-5") -> list[Answer]:
    return [_message(model, number, calls) for number, calls in enumerate(_calls("toolu_a1", "toolu_b2", "toolu_c3"))]


def _message(model: str, number: int, calls: list[Call]) -> dict[str, Any]:
    return {
        "id": f"msg_{number}",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": [
            {"type": "thinking", "thinking": THOUGHTS[number], "signature": "c2lnbmVk"},
            {"type": "text", "text": WORDS[number]},
            *({"type": "tool_use", "id": call.id, "name": call.tool, "input": call.arguments} for call in calls),
        ],
        "stop_reason": "tool_use" if calls else "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": 10, "output_tokens": 5},
    }


def message_streams(model: str = "claude-sonnet-4-5") -> list[Answer]:
    return [_message_stream(whole) for whole in messages(model)]


def _message_stream(whole: dict[str, Any]) -> Answer:
    payloads: list[dict[str, Any]] = [
        {"type": "message_start", "message": {**whole, "content": [], "stop_reason": None}}
    ]
    for index, block in enumerate(whole["content"]):
        match block["type"]:
            case "text":
                start = {"type": "text", "text": ""}
                deltas = [{"type": "text_delta", "text": half} for half in _halves(block["text"])]
            case "thinking":
                start = {"type": "thinking", "thinking": "", "signature": ""}
                deltas = [{"type": "thinking_delta", "thinking": half} for half in _halves(block["thinking"])]
                deltas.append({"type": "signature_delta", "signature": block["signature"]})
            case _:
                start = {**block, "input": {}}
                halves = _halves(json.dumps(block["input"]))
                deltas = [{"type": "input_json_delta", "partial_json": half} for half in halves]
        payloads.append({"type": "content_block_start", "index": index, "content_block": start})
        payloads += [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
        payloads.append({"type": "content_block_stop", "index": index})
    stop = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
    payloads += [{"type": "message_delta", "delta": stop, "usage": {"output_tokens": 5}}, {"type": "message_stop"}]
    return [(event["type"], event) for event in payloads]


# -------------------------------------------------------------------------------------------------------------- Gemini


def candidates(model: str = "gemini-2.5-flash", *, signed: bool = False, ids: bool = False) -> list[Answer]:
    return [
        _candidate(model, number, calls, signed=signed, ids=ids)
        for number, calls in enumerate(_calls("fc_a1", "fc_b2", "fc_c3"))
    ]


def _candidate(model: str, number: int, calls: list[Call], *, signed: bool, ids: bool) -> dict[str, Any]:
    parts: list[dict[str, Any]] = [{"text": THOUGHTS[number], "thought": True}, {"text": WORDS[number]}]
    for index, call in enumerate(calls):
        named = {"id": call.id} if ids else {}
        part: dict[str, Any] = {"functionCall": {**named, "name": call.tool, "args": call.arguments}}
        if signed and index == 0:
            part["thoughtSignature"] = "c2lnbmVk"
        parts.append(part)
    return {
        "candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": "STOP", "index": 0}],
        "usageMetadata": {"promptTokenCount": 10, "candidatesTokenCount": 5, "totalTokenCount": 15},
        "modelVersion": model,
        "responseId": f"r{number}",
    }


def candidate_streams(model: str = "gemini-2.5-flash", **wishes: bool) -> list[Answer]:
    """One part an event, as parallel calls come."""
    streams: list[Answer] = []
    for whole in candidates(model, **wishes):
        candidate = whole["candidates"][0]
        steps = [{"index": 0, "content": {"role": "model", "parts": [part]}} for part in candidate["content"]["parts"]]
        steps[-1]["finishReason"] = "STOP"
        streams.append([(None, {**whole, "candidates": [step]}) for step in steps])
    return streams
