"""Streams of each API with odd events, framings and reads, as bytes; a seed chooses them."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Iterator
from itertools import accumulate, pairwise
from typing import Any

from segue.canonical.blocks import Block, Origin, Text, Thinking, ToolCall
from segue.canonical.request import Reply, Usage
from segue.wire.registry import WIRES
from segue.wire.stream.aws_events import encode_aws_message
from segue.wire.stream.events import reply_events
from segue.wire.stream.framing import Frame, FrameDecoder, encode_sse
from tests.streams.rendering import render_in_steps, split_deltas

APIS = ("openai-chat", "openai-responses", "anthropic", "gemini", "bedrock")
ERRORS: dict[str, dict[str, Any]] = {
    "openai-chat": {"error": {"message": "overloaded", "type": "server_error"}},
    "openai-responses": {"type": "error", "code": "server_error", "message": "overloaded"},
    "anthropic": {"type": "error", "error": {"type": "overloaded_error", "message": "overloaded"}},
    "gemini": {"error": {"code": 503, "message": "overloaded", "status": "UNAVAILABLE"}},
    "bedrock": {"message": "overloaded"},
}
TOKENS = ("the ", "fox", '"', "\\", "\n", "\r", "\u6771", "\U0001f600", "}", '"},"p":"', " ", "{}", "null", "data: ")
PADDINGS = ("", "abc", "aZ0" * 5, "a b", "\u00e9", 'a"b', "a\\b")
# Fields that readers ignore or whose last value they use, at any depth of a payload.
VARIABLE_FIELDS = ("p", "obfuscation", "sequence_number", "candidatesTokenCount")
# Half of a surrogate pair, and bytes that are not valid UTF-8.
INVALID_TEXTS = (rb"\ud83d", rb"\ude00", b"\xff")
ASTRAL = "\U0001f600".encode()


def build_reads(api: str, chance: random.Random) -> list[bytes]:
    """The bytes of a stream as they are read: an event a read, or split and joined otherwise."""
    family = WIRES[api].on or api
    family = family if family in APIS else "openai-chat"
    frames = _build_frames(api, chance)
    if chance.random() < 0.2:
        _interleave(frames, chance)
    framing = chance.choices(("native", "sse", "json"), (8, 1, 1))[0]
    events = list(_encode_frames(family, framing, _vary_frames(family, frames, chance), chance))
    return _split_reads(events, chance)


def _build_frames(api: str, chance: random.Random) -> list[Frame]:
    events = split_deltas(reply_events(_build_reply(api, chance)), chance.choice([1, 1, 3]))
    return [frame for read in render_in_steps(api, events, ids="native") for frame in FrameDecoder().feed(read)]


def _build_reply(api: str, chance: random.Random) -> Reply:
    def text() -> str:
        return "".join(chance.choices(TOKENS, k=chance.randrange(4, 40)))

    provider = WIRES[api].provider
    blocks: list[Block] = []
    for number in range(chance.randrange(1, 5)):
        origin = Origin(provider, raw_id=f"call_{number}")
        call = ToolCall("search", {"query": text()}, id=f"hist_tool_{number}", origin=origin)
        thinking = Thinking(text(), origin=Origin(provider, identity="absent"))
        blocks.append(chance.choice([Text(text()), call, thinking]))
    return Reply(tuple(blocks), chance.choice(["stop", "tool_calls", "length"]), Usage(3, 7), "r1", "m")


def _interleave(frames: list[Frame], chance: random.Random) -> None:
    """Move some events among others, so that two blocks are open."""
    for _ in range(chance.randrange(1, 12)):
        position = chance.randrange(len(frames))
        frames.insert(max(0, position + chance.randrange(-6, 7)), frames.pop(position))


def _vary_frames(family: str, frames: Iterable[Frame], chance: random.Random) -> Iterator[Frame]:
    """Vary the payloads: fields that differ from event to event, or that one event has alone; errors; odd names."""
    has_padding, has_usage, is_odd = chance.random() < 0.4, chance.random() < 0.5, chance.random() < 0.5
    separators = chance.choice([(",", ":"), (", ", ": ")])
    for number, (name, data) in enumerate(frames):
        if data == b"[DONE]":
            yield name, data
            continue
        payload = json.loads(data)
        payload = _vary_payload(payload, chance) if is_odd and chance.random() < 0.2 else payload
        if has_padding:
            # The first chunk of Chat Completions has the padding that the reply keeps.
            usual = not number or chance.random() < 0.9
            padding = "a" * chance.randrange(1, 9) if usual else chance.choice(PADDINGS)
            payload["p" if family == "bedrock" else "obfuscation"] = padding
        if has_usage and "candidates" in payload:
            payload["usageMetadata"] = {"promptTokenCount": 9, "totalTokenCount": chance.randrange(999)}
        data = json.dumps(payload, separators=separators, ensure_ascii=chance.random() < 0.5).encode()
        if is_odd and chance.random() < 0.02:
            data = data.replace(ASTRAL, chance.choice(INVALID_TEXTS))
        if is_odd and chance.random() < 0.01:
            name, data = "error" if family == "anthropic" else None, json.dumps(ERRORS[family]).encode()
        if is_odd and chance.random() < 0.02:
            name = chance.choice([None, "ping"])
        yield name, data


def _vary_payload(payload: dict[str, Any], chance: random.Random) -> dict[str, Any]:
    """A payload with another field, or another choice."""
    match chance.randrange(5):
        case 0:
            return {**payload, "x_unknown": chance.randrange(3)}
        case 1:
            key = chance.choice(VARIABLE_FIELDS)
            fields = chance.choice(list(_find_objects(payload)))
            fields[key] = "x" * chance.randrange(9) if key in ("p", "obfuscation") else chance.randrange(3000)
        case 2 if payload.get("choices"):
            return {**payload, "choices": [*payload["choices"], {**payload["choices"][0], "index": 1}]}
        case 3 if payload.get("choices"):
            return {**payload, "usage": {"prompt_tokens": 3, "completion_tokens": chance.randrange(9)}}
        case 4 if payload.get("candidates"):
            return {**payload, "candidates": [*payload["candidates"], {**payload["candidates"][0], "index": 1}]}
        case _:
            pass
    return payload


def _find_objects(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        yield value
    for member in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _find_objects(member)


def _encode_frames(family: str, framing: str, frames: Iterable[Frame], chance: random.Random) -> Iterator[bytes]:
    line_end = chance.choice([b"\n", b"\n", b"\r\n", b"\r"])
    has_ids, has_data_lines = chance.random() < 0.1, chance.random() < 0.1
    for number, (name, data) in enumerate(frames):
        if family == "bedrock" and framing == "native":
            message = encode_aws_message(data, event_type=name or "metadata", message_type="event")
            yield message[:-1] + b"?" if chance.random() < 0.002 else message
            continue
        if family == "bedrock":
            name, data = None, b'{"%b":%b}' % ((name or "metadata").encode(), data)
        if framing == "json":
            yield data + b"\n"
            continue
        if has_data_lines:
            data = data.replace(b",", b",\ndata: ", 1)
        event = (b"id: %d\n" % number if has_ids else b"") + encode_sse(data, name)
        if chance.random() < 0.03:
            event = chance.choice([b": ping\n\n", b": ping\n", b"event: ping\n\n", b"retry: 3\n", b"\n"]) + event
        yield event.replace(b"\n", line_end)


def _split_reads(events: list[bytes], chance: random.Random) -> list[bytes]:
    kind = chance.choices(("events", "some joined", "lines", "bytes", "late ends"), (4, 4, 1, 1, 1))[0]
    stream = b"".join(events)
    match kind:
        case "events":
            return events
        case "lines":
            return [line for event in events for line in event.splitlines(keepends=True)]
        case "bytes":
            return [stream[start : start + 1] for start in range(len(stream))]
        case "late ends":
            late = chance.randrange(1, 8)
            cuts = [end - late for end in accumulate(map(len, events))]
            return [stream[start:stop] for start, stop in pairwise([0, *cuts, len(stream)])]
        case _:
            return list(_join_some(events, chance))


def _join_some(events: Iterable[bytes], chance: random.Random) -> Iterator[bytes]:
    held = b""
    for event in events:
        if chance.random() < 0.04:
            held += event
            continue
        read, held = held + event, b""
        cut = chance.randrange(len(read)) if chance.random() < 0.04 else 0
        yield from (part for part in (read[:cut], read[cut:]) if part)
    if held:
        yield held
