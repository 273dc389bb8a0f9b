"""How fast a stream of one API is told in another's words, bytes in to bytes out, without a network.

The floor is msgspec's decode and encode of the same payloads, one by one: what it costs to look at them at all. All
take turns in one process, and the least CPU time of several rounds counts.

    make bench                                 all of it, with the peer
    python benchmarks/stream.py --quick        segue alone, small
    python benchmarks/stream.py --write        the table also into docs/speed.md
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
from convert import Work, least, put_into_page, table

import segue

Json = dict[str, Any]
WORDS = ("the quick brown fox jumps over the lazy dog", "and then, having had enough of it, goes home to sleep.")
TOKENS = [word for line in WORDS for word in line.split()]
READS = {"one event a read": 0, "1.4 kB a read": 1400, "16 kB a read": 16384}
"""How much of a stream is read at a time: as a slow model writes it, as packets come, or as they are waiting."""
PAIRS = (("openai-chat", "anthropic"), ("anthropic", "openai-responses"), ("gemini", "openai-chat"))
"""From whose stream to whose."""
ASKED: Json = {
    "model": "m",
    "messages": [{"role": "user", "content": "go"}],
    "tools": [
        {"type": "function", "function": {"name": name, "parameters": {"type": "object"}}} for name in ("write", "read")
    ],
    "stream": True,
    "stream_options": {"include_usage": True},
}


def tokens(count: int) -> list[str]:
    return [f"{TOKENS[place % len(TOKENS)]} " for place in range(count)]


def chat(count: int) -> Iterator[Json]:
    around = {"id": "chatcmpl-CXk1f", "object": "chat.completion.chunk", "created": 1761000000, "model": "gpt-4.1"}

    def chunk(delta: Json, reason: str | None = None) -> Json:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": reason}
        return {**around, "service_tier": "default", "system_fingerprint": "fp_a1b2c3", "choices": [choice]}

    yield chunk({"role": "assistant", "content": "", "refusal": None})
    yield from (chunk({"content": token}) for token in tokens(count))
    for place, name in enumerate(("write", "read")):
        function = {"name": name, "arguments": ""}
        yield chunk({"tool_calls": [{"index": place, "id": f"call_{place}", "type": "function", "function": function}]})
        for token in ('{"text":"', *tokens(count // 4), '"}'):
            yield chunk({"tool_calls": [{"index": place, "function": {"arguments": token}}]})
    yield chunk({}, "tool_calls")
    yield {**chunk({}), "choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 9, "total_tokens": 18}}


def anthropic(count: int) -> Iterator[Json]:
    message = {"id": "msg_01A", "type": "message", "role": "assistant", "model": "claude-sonnet-4-5", "content": []}
    usage = {"input_tokens": 9, "output_tokens": 1}
    yield {"type": "message_start", "message": {**message, "stop_reason": None, "stop_sequence": None, "usage": usage}}
    yield {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}
    yield {"type": "ping"}
    for token in tokens(count):
        yield {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": token}}
    yield {"type": "content_block_stop", "index": 0}
    for place, name in enumerate(("write", "read"), 1):
        block = {"type": "tool_use", "id": f"toolu_0{place}", "name": name, "input": {}}
        yield {"type": "content_block_start", "index": place, "content_block": block}
        for token in ("", '{"text":"', *tokens(count // 4), '"}'):
            delta = {"type": "input_json_delta", "partial_json": token}
            yield {"type": "content_block_delta", "index": place, "delta": delta}
        yield {"type": "content_block_stop", "index": place}
    end = {"stop_reason": "tool_use", "stop_sequence": None}
    yield {"type": "message_delta", "delta": end, "usage": {"output_tokens": 9}}
    yield {"type": "message_stop"}


def gemini(count: int) -> Iterator[Json]:
    def chunk(told: int, *parts: Json, reason: str | None = None) -> Json:
        candidate: Json = {"content": {"parts": list(parts), "role": "model"}, "index": 0}
        if reason is not None:
            candidate["finishReason"] = reason
        usage = {"promptTokenCount": 9, "candidatesTokenCount": told, "totalTokenCount": 9 + told}
        named = {"modelVersion": "gemini-2.5-flash", "responseId": "aBcDeF"}
        return {"candidates": [candidate], "usageMetadata": usage, **named}

    yield from (chunk(place, {"text": token}) for place, token in enumerate(tokens(count)))
    text = "".join(tokens(count // 4))
    yield chunk(count, *({"functionCall": {"name": name, "args": {"text": text}}} for name in ("write", "read")))
    yield chunk(count, {"text": ""}, reason="STOP")


STREAMS: dict[str, Callable[[int], Iterator[Json]]] = {"openai-chat": chat, "anthropic": anthropic, "gemini": gemini}
NAMES = {
    "openai-chat": "openai_chat",
    "openai-responses": "openai_responses",
    "anthropic": "anthropic",
    "gemini": "google",
}


def framed(api: str, payloads: list[bytes], size: int) -> list[bytes]:
    """The stream as it is read from a connection: so many bytes at a time, or, for 0, each event by itself."""
    named = [b"event: %b\n" % json.loads(one)["type"].encode() if api == "anthropic" else b"" for one in payloads]
    events = [b"%bdata: %b\n\n" % pair for pair in zip(named, payloads, strict=True)]
    if not size:
        return events
    told = b"".join(events)
    return [told[start : start + size] for start in range(0, len(told), size)]


def floor(payloads: list[bytes]) -> Work:
    read, write = msgspec.json.Decoder().decode, msgspec.json.Encoder().encode

    def work() -> None:
        for payload in payloads:
            write(read(payload))

    return work


def ours(server: str, client: str, packets: list[bytes]) -> Work:
    body = segue.convert(ASKED, source="openai-chat", target=client).body
    converted = segue.convert(body, source=client, target=server)

    def work() -> bytes:
        stream = converted.stream()
        return b"".join([*map(stream.feed, packets), stream.close()])

    return work


def rosetta(server: str, client: str, payloads: list[bytes]) -> Work:
    """Payloads to payloads: it leaves framing to its gateway."""
    from llm_rosetta.pipeline import ConversionPipeline

    read, write = msgspec.json.Decoder().decode, msgspec.json.Encoder().encode
    body = segue.convert(ASKED, source="openai-chat", target=client).body

    def work() -> None:
        pipeline = ConversionPipeline(NAMES[client], NAMES[server])
        pipeline.convert_request(dict(body))
        processor = pipeline.create_stream_processor()
        for payload in payloads:
            for event in processor.process_chunk(read(payload)):
                write(event)

    work()
    return work


def measured(server: str, client: str, count: int, rounds: int, *, peers: bool) -> list[str]:
    payloads = [json.dumps(one, separators=(",", ":")).encode() for one in STREAMS[server](count)]
    works = [floor(payloads), *(ours(server, client, framed(server, payloads, size)) for size in READS.values())]
    if peers:
        try:
            works.append(rosetta(server, client, payloads))
        except (ImportError, AttributeError, TypeError, ValueError, KeyError) as error:
            print(f"(left out: llm-rosetta: {type(error).__name__}: {error})")
    base, *others = [seconds / len(payloads) * 1e6 for seconds in least(works, rounds)]
    mine, theirs = others[: len(READS)], others[len(READS) :]
    told = [f"{each:.2f} ({each / base:.2f} ×)" for each in mine]
    peer = [f"{each:.2f} ({each / mine[-1]:.1f} × segue)" for each in theirs] or ["not installed"]
    return [f"{server} → {client}", f"{base:.2f}", *told, *peer]


def main() -> None:
    parser = argparse.ArgumentParser(description="Measures streams against the floor and a peer.")
    parser.add_argument("--quick", action="store_true", help="a short stream, few rounds, no peer")
    parser.add_argument("--rounds", type=int, default=25)
    parser.add_argument("--write", action="store_true", help="put the table into docs/speed.md")
    asked = parser.parse_args()
    count, rounds = (500, 9) if asked.quick else (2000, asked.rounds)
    rows = [measured(server, client, count, rounds, peers=not asked.quick) for server, client in PAIRS]
    told = table(["µs an event", "floor", *READS, "llm-rosetta, payloads alone"], rows)
    print(told)
    if asked.write:
        put_into_page(told, "stream")


if __name__ == "__main__":
    main()
