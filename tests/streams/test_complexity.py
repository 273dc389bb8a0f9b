"""The work of a stream grows with its length and no faster: calls, deltas, blocks and items, of every API, however a
server numbers and orders them. Counted in lines run, not in seconds."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import pytest

import segue
from segue.wire.registry import WIRES
from segue.wire.stream.aws_events import encode_aws_message
from tests.budget import sample
from tests.streams.parsing import TURN, sse
from tests.streams.test_api_pairs import request_body
from tests.work import count_work

Payload = dict[str, Any]
Payloads = Callable[[int], Iterator[Payload]]

# ----------------------------------------------------------------------------------------------------------------- chat


def chat(**delta: Any) -> Payload:
    return {"id": "r1", "model": "m", "choices": [{"index": 0, "delta": delta}]}


def entry(index: int | None, call_id: str | None, name: str | None, arguments: str | None) -> Payload:
    fields = {"index": index, "id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}
    return {key: value for key, value in fields.items() if value is not None}


def chat_call(*fields: Any) -> Payload:
    return chat(tool_calls=[entry(*fields)])


def chat_calls_at_once(n: int) -> Iterator[Payload]:
    yield chat(tool_calls=[entry(i, f"c{i}", "f", '{"a":1}') for i in range(n)])


def chat_open_calls(n: int) -> Iterator[Payload]:
    yield from (chat_call(i, f"c{i}", "f", '{"a":"}') for i in range(n))
    yield from (chat_call(i, None, None, '}"}') for i in range(n))


CHAT: dict[str, Payloads] = {
    "calls": lambda n: (chat_call(i, f"c{i}", "f", '{"a":1}') for i in range(n)),
    "calls at once": chat_calls_at_once,
    "open calls": chat_open_calls,
    "calls without ids": lambda n: (chat_call(i, None, "f", '{"a":1}') for i in range(n)),
    "calls without indexes": lambda n: (chat_call(None, f"c{i}", "f", '{"a":1}') for i in range(n)),
    "calls without both": lambda n: (chat_call(None, None, "f", '{"a":1}') for _ in range(n)),
    "one index": lambda n: (chat_call(0, f"c{i}", "f", '{"a":1}') for i in range(n)),
    "one id": lambda n: (chat_call(i, "c", "f", '{"a":1}') for i in range(n)),
    "deltas": lambda n: (chat_call(0, "c" if i == 0 else None, "f" if i == 0 else None, '{"a":"') for i in range(n)),
    "deltas with names": lambda n: (chat_call(0, "c", "f", '{"a":"' if i == 0 else "x}") for i in range(n)),
    "names in parts": lambda n: (chat_call(0, "c", f"f{i}", None) for i in range(n)),
    "white space": lambda n: (chat_call(0, "c", "f" if i == 0 else None, " " * 9) for i in range(n)),
    "legacy after calls": lambda n: (
        payload
        for i in range(n)
        for payload in (chat_call(i, f"c{i}", "f", "{}"), chat(function_call={"name": "g", "arguments": "x"}))
    ),
    "text": lambda n: (chat(content="word ") for _ in range(n)),
    "text and reasoning": lambda n: (
        chat(content="word ") if i % 2 else chat(reasoning_content="thought ") for i in range(n)
    ),
    "audio": lambda n: (chat(audio={"id": "a", "data": "eA=="}) for _ in range(n)),
    "unknown fields": lambda n: (chat(**{f"key_{i}": [i]}) for i in range(n)),
}

# ------------------------------------------------------------------------------------------------------------ responses


def event(kind: str, **fields: Any) -> Payload:
    return {"type": f"response.{kind}", **fields}


def item(i: int, **fields: Any) -> Payload:
    return {"type": "function_call", "id": f"fc_{i}", "call_id": f"c{i}", "name": "f", "arguments": "", **fields}


def responses_calls(n: int, *, index: bool = True, done: bool = True) -> Iterator[Payload]:
    for i in range(n):
        at = {"output_index": i} if index else {}
        yield event("output_item.added", item=item(i), **at)
        yield event("function_call_arguments.delta", **at, **({"item_id": f"fc_{i}"} if index else {}), delta='{"a":1}')
        if done:
            yield event("output_item.done", item=item(i, arguments='{"a":1}'), **at)


def responses_parts(n: int, item_type: str, part: str, index_key: str) -> Iterator[Payload]:
    yield event("output_item.added", item={"type": item_type, "id": "i"}, output_index=0)
    for i in range(n):
        yield event(f"{part}.delta", item_id="i", output_index=0, delta="word ", **{index_key: i})
        yield event(f"{part}.done", item_id="i", output_index=0, text="word ", **{index_key: i})


def responses_output(n: int) -> Iterator[Payload]:
    yield from responses_calls(n, done=False)
    output = [item(i, arguments='{"a":1}') for i in range(n)]
    yield event("completed", response={"id": "r", "status": "completed", "output": output})


RESPONSES: dict[str, Payloads] = {
    "calls": responses_calls,
    "open calls": lambda n: responses_calls(n, done=False),
    "calls without indexes": lambda n: responses_calls(n, index=False),
    "output at the end": responses_output,
    "parts": lambda n: responses_parts(n, "message", "output_text", "content_index"),
    "summaries": lambda n: responses_parts(n, "reasoning", "reasoning_summary_text", "summary_index"),
    "ids that change": lambda n: (
        event("output_text.delta", item_id=f"m{i}", output_index=0, content_index=0, delta="word ") for i in range(n)
    ),
    "no ids": lambda n: (
        event("output_text.done", text="word ")
        if i % 2
        else event("output_item.done", item={"type": "message", "role": "assistant", "content": []})
        for i in range(n)
    ),
    "texts without items": lambda n: (event("output_text.delta", delta="word ") for _ in range(n)),
    "repeated ends": lambda n: (
        event("output_text.delta", item_id="m", output_index=0, content_index=0, delta="word ")
        if i % 2
        else event("output_text.done", item_id="m", output_index=0, content_index=0, text="word ")
        for i in range(n)
    ),
}

# ------------------------------------------------------------------------------------------------------------ anthropic

START = {"type": "message_start", "message": {"id": "m", "role": "assistant", "model": "m", "content": []}}


def block_start(i: int | None, **block: Any) -> Payload:
    return {"type": "content_block_start", **({} if i is None else {"index": i}), "content_block": block}


def block_delta(i: int | None, **delta: Any) -> Payload:
    return {"type": "content_block_delta", **({} if i is None else {"index": i}), "delta": delta}


def tool_use(i: int) -> Payload:
    return {"type": "tool_use", "id": f"toolu_{i}", "name": "f", "input": {}}


def input_delta(i: int | None) -> Payload:
    return block_delta(i, type="input_json_delta", partial_json='{"a":1}' if i is not None else "1")


def anthropic_calls(n: int, *, stop: bool = True, deltas: bool = True) -> Iterator[Payload]:
    yield START
    for i in range(n):
        yield block_start(i, **tool_use(i))
        if deltas:
            yield input_delta(i)
        if stop:
            yield {"type": "content_block_stop", "index": i}


def anthropic_open_calls(n: int, *, index: bool = True) -> Iterator[Payload]:
    yield START
    yield from (block_start(i if index else None, **tool_use(i)) for i in range(n))
    yield from (input_delta(i if index else None) for i in range(n))
    yield from ({"type": "content_block_stop", **({"index": i} if index else {})} for i in range(n))


def anthropic_mixed(n: int) -> Iterator[Payload]:
    yield START
    yield from (block_start(i, **tool_use(i)) for i in range(n))
    yield from (block_delta(None, type="text_delta", text="word ") for _ in range(n))


ANTHROPIC: dict[str, Payloads] = {
    "calls": anthropic_calls,
    "calls without stops": lambda n: anthropic_calls(n, stop=False),
    "calls without input": lambda n: anthropic_calls(n, deltas=False),
    "open calls": anthropic_open_calls,
    "open calls without indexes": lambda n: anthropic_open_calls(n, index=False),
    "stray texts": anthropic_mixed,
    "one index": lambda n: (block_start(0, **tool_use(i)) for i in range(n)),
    "texts": lambda n: (
        block_start(i // 2, type="text", text="")
        if i % 2 == 0
        else block_delta(i // 2, type="text_delta", text="word ")
        for i in range(n)
    ),
    "strays": lambda n: (
        block_delta(i // 2, type="text_delta" if i % 2 else "thinking_delta", text="w", thinking="t") for i in range(n)
    ),
    "citations": lambda n: (
        block_start(0, type="text", text="") if i == 0 else block_delta(0, type="citations_delta", citation={"n": i})
        for i in range(n)
    ),
    "fields": lambda n: ({"type": "message_delta", "delta": {}, "usage": {f"key_{i}": i}} for i in range(n)),
}

# -------------------------------------------------------------------------------------------------------------- bedrock


def bedrock_calls(n: int, *, stop: bool = True, hosted: bool = False, index: bool = True) -> Iterator[Payload]:
    yield {"messageStart": {"role": "assistant"}}
    kind = {"type": "server_tool_use"} if hosted else {}
    for i in range(n):
        at = {"contentBlockIndex": i} if index else {}
        yield {"contentBlockStart": {"start": {"toolUse": {"toolUseId": f"c{i}", "name": "f", **kind}}, **at}}
        yield {"contentBlockDelta": {"delta": {"toolUse": {"input": '{"a":1}'}}, **at}}
        if stop:
            yield {"contentBlockStop": at}


def bedrock_open_calls(n: int) -> Iterator[Payload]:
    for i in range(n):
        yield {"contentBlockStart": {"start": {"toolUse": {"toolUseId": f"c{i}", "name": "f"}}, "contentBlockIndex": i}}
    yield from ({"contentBlockStop": {}} for _ in range(n))


BEDROCK: dict[str, Payloads] = {
    "calls": bedrock_calls,
    "calls without stops": lambda n: bedrock_calls(n, stop=False),
    "calls without indexes": lambda n: bedrock_calls(n, index=False),
    "hosted calls": lambda n: bedrock_calls(n, hosted=True),
    "open calls": bedrock_open_calls,
    "texts": lambda n: ({"contentBlockDelta": {"delta": {"text": "word "}, "contentBlockIndex": i}} for i in range(n)),
    "texts and reasoning": lambda n: (
        {"contentBlockDelta": {"delta": {"text": "w"} if i % 2 else {"reasoningContent": {"text": "t"}}}}
        for i in range(n)
    ),
}

# --------------------------------------------------------------------------------------------------------------- gemini


def gemini(*parts: Payload) -> Payload:
    return {"candidates": [{"content": {"role": "model", "parts": list(parts)}, "index": 0}]}


def function_call(i: int, **fields: Any) -> Payload:
    return {"functionCall": {"id": f"c{i}", "name": "f", "args": {"a": i}, **fields}}


def gemini_snapshots(n: int) -> Iterator[Payload]:
    """The text so far in each chunk, then chunks that continue it."""
    yield from (gemini({"text": "A text that is long enough to be sure. "[: 13 * i]}) for i in (1, 2, 3))
    yield from (gemini({"text": f"{i}, "}) for i in range(n))


def gemini_partial_call(n: int) -> Iterator[Payload]:
    for i in range(n):
        part = {"jsonPath": "$.a", "stringValue": "word ", "willContinue": True}
        yield gemini({"functionCall": {"name": "f" if i == 0 else "", "partialArgs": [part], "willContinue": True}})


GEMINI: dict[str, Payloads] = {
    "calls": lambda n: (gemini(function_call(i)) for i in range(n)),
    "calls at once": lambda n: iter([gemini(*map(function_call, range(n)))]),
    "one id": lambda n: (gemini(function_call(0, args={"a": i})) for i in range(n)),
    "texts": lambda n: (gemini({"text": "word "}) for _ in range(n)),
    "texts and thoughts": lambda n: (gemini({"text": "word ", "thought": bool(i % 2)}) for i in range(n)),
    "cumulative texts": gemini_snapshots,
    "parts of a cumulative stream": lambda n: (
        payload for i in range(n) for payload in (*gemini_snapshots(1), gemini({"text": f"{i}", "thought": True}))
    ),
    "partial arguments": gemini_partial_call,
}

STREAMS: dict[str, dict[str, Payloads]] = {
    "openai-chat": CHAT,
    "openai-responses": RESPONSES,
    "anthropic": ANTHROPIC,
    "bedrock": BEDROCK,
    "gemini": GEMINI,
}
CASES = [(api, name) for api, streams in STREAMS.items() for name in streams]
CLIENTS = ("openai-chat", "openai-responses", "anthropic", "gemini")
CONVERTED = [(*case, client) for number, case in enumerate(CASES) for client in sample(CLIENTS, 4, start=number)]


def encode(api: str, payloads: Iterator[Payload]) -> bytes:
    if api != "bedrock":
        return sse(*payloads)
    return b"".join(
        encode_aws_message(json.dumps(fields).encode(), event_type=kind, message_type="event")
        for payload in payloads
        for kind, fields in payload.items()
    )


def parse(api: str, data: bytes, size: int) -> None:
    parser = WIRES[api].open_stream(TURN)
    for at in range(0, len(data), size):
        parser.feed(data[at : at + size])
        parser.events()
    parser.close()


@cache
def converted(client: str, api: str) -> segue.Converted:
    return segue.convert(request_body(client), source=client, target=api)


def bridge(client: str, api: str, data: bytes) -> None:
    stream = converted(client, api).stream()
    stream.feed(data)
    stream.close()


def assert_linear(action: Callable[[bytes], object], api: str, name: str) -> None:
    """The first ten stand for what is done once; of the rest, 120 are four times as many as 30."""
    data = {number: encode(api, STREAMS[api][name](number)) for number in (10, 40, 130)}
    action(data[10])
    once, short, long = (count_work(lambda number=number: action(data[number])) for number in data)
    assert long - once < 4.3 * (short - once) + 100, (once, short, long)


@pytest.mark.parametrize("size", [10**9, 50], ids=["at once", "in fifties"])
@pytest.mark.parametrize(("api", "name"), CASES)
def test_work_of_a_stream_grows_with_its_length(api: str, name: str, size: int) -> None:
    assert_linear(lambda data: parse(api, data, size), api, name)


@pytest.mark.parametrize(("api", "name", "client"), CONVERTED)
def test_work_of_a_converted_stream_grows_with_its_length(api: str, name: str, client: str) -> None:
    assert_linear(lambda data: bridge(client, api, data), api, name)
