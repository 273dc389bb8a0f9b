"""Whole recorded runs, request by request: every upstream body continues the one before it, so that caches are read.

The prompt of a request is its tools, its system text and its messages. Two requests have the same bytes up to the last
assistant message of the first one, wherever the client itself sent the same conversation again.

What an API does not allow:

- `anthropic` and `bedrock` cache only what is marked, and the markers move to the newest messages. They are not part of
  the prompt, so they are removed here before the comparison. Only a block can be marked: `anthropic` gets a string as
  one text block while it is marked, and as a string again later, which is the same prompt.
- `anthropic` with thinking needs the thinking of a tool loop (ANT-24). Without it thinking is disabled, which changes
  `max_tokens` in front of the messages: an option, not a part of the prompt.
- Claude Code's billing header stays in a body for Anthropic, which does not count it as part of the prompt.
- What follows the last assistant message may change: a target that needs results in one message, or text after them,
  gets both merged once the client adds to them.
"""

from __future__ import annotations

import json
import lzma
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec import Raw

import segue
from segue.bridge.caching import place_cache_key, place_markers, remove_billing_header
from segue.wire.detect_body import detect_source
from segue.wire.registry import WIRES

RECORDED = Path(__file__).parents[2] / "benchmarks" / "data"
RUNS = sorted(path.name.partition(".")[0] for path in RECORDED.glob("*.jsonl.xz"))
CLAUDE_CODE = "claude-"
CACHE_POINT = {"cachePoint": {"type": "default"}}
PROMPT_KEYS = ("system", "instructions", "systemInstruction", "tools", "toolConfig")
REPLY_TYPES = ("function_call", "custom_tool_call", "reasoning")
# Requests that do not continue the one before, because the client itself changed its prompt: a new list of tools, the
# end of a separate conversation that finds a title, or a history that was written anew when the session was resumed.
REWRITTEN = {
    "claude-odd-toolsearch": [1],
    "gemini-on-anthropic": [4],
    "gemini-on-openai-chat": [4],
    "opencode-on-anthropic": [1],
    "opencode-on-openai-chat": [1],
    "pi-on-openai-chat": [4],
    "qwen-on-anthropic": [4],
    "qwen-on-openai-chat": [4],
}


@cache
def load_run(name: str) -> list[bytes]:
    requests = lzma.decompress((RECORDED / f"{name}.jsonl.xz").read_bytes()).splitlines()
    if name.startswith(CLAUDE_CODE):
        return [add_billing_header(request, number) for number, request in enumerate(requests)]
    return requests


def add_billing_header(request: bytes, number: int) -> bytes:
    """Return the request with the header that Claude Code sends; in the recorded runs it is filler."""
    body = json.loads(request)
    header = f"x-anthropic-billing-header: cc_version=2.1.325.{number:03x}; cc_entrypoint=cli; cch={number:05x};"
    body["system"][0] = {"type": "text", "text": header}
    return msgspec.json.encode(body)


def convert(request: bytes, source: str, target: str) -> bytes:
    wire = WIRES[target]
    if wire.provider != "anthropic":
        request, _ = remove_billing_header(request)
    data = segue.convert(request, source=source, target=target, model=wire.default_model).data
    data = place_markers(data, target, wire.default_model)
    return place_cache_key(data, provider=wire.provider, client="c", route="r")


def remove_markers(value: Any) -> Any:
    """Return a value without markers; a list of one text block, as which a marked string is sent, is a string again."""
    match value:
        case dict():
            return {key: remove_markers(item) for key, item in value.items() if key != "cache_control"}
        case list():
            match [remove_markers(item) for item in value if item != CACHE_POINT]:
                case [{"type": "text", "text": text, **others}] if not others:
                    return text
                case items:
                    return items
        case _:
            return value


class Prompt:
    """The prompt of a body, as bytes."""

    def __init__(self, data: bytes, target: str) -> None:
        key = WIRES[target].conversation_key
        if target in ("anthropic", "bedrock"):
            body = remove_markers(json.loads(data))
            body.pop("max_tokens", None)
            data, _ = remove_billing_header(msgspec.json.encode(body))
        self.data = data
        members = msgspec.json.decode(data, type=dict[str, Raw])
        self.fields = {name: bytes(members[name]) for name in PROMPT_KEYS if name in members}
        self.cache_key = members.get("prompt_cache_key")
        self.items = list(map(bytes, msgspec.json.decode(members[key], type=list[Raw])))
        before = list(members)[: list(members).index(key)]
        self.start = b"{" + b"".join(b'"%b":%b,' % (name.encode(), members[name]) for name in before)
        self.start += b'"%b":[' % key.encode()

    def up_to_last_reply(self) -> bytes:
        """Return the bytes of the body up to and including the last assistant message."""
        replies = [number for number, item in enumerate(self.items) if is_reply(json.loads(item))]
        return self.start + b",".join(self.items[: replies[-1] + 1] if replies else [])


def is_reply(item: dict[str, Any]) -> bool:
    return item.get("role") in ("assistant", "model") or item.get("type") in REPLY_TYPES


def iter_pairs(name: str, target: str) -> Iterator[tuple[int, Prompt, Prompt]]:
    """Yield the prompts of each request and of the one before."""
    requests = load_run(name)
    source = detect_source(json.loads(requests[0]))
    prompts = [Prompt(convert(request, source, target), target) for request in requests]
    for number, (earlier, later) in enumerate(pairwise(prompts), start=1):
        yield number, earlier, later


@pytest.mark.parametrize("name", RUNS)
@pytest.mark.parametrize("target", list(WIRES))
def test_each_body_begins_with_the_bytes_of_the_one_before(name: str, target: str) -> None:
    for number, earlier, later in iter_pairs(name, target):
        beginning = earlier.up_to_last_reply()
        assert earlier.data.startswith(beginning)
        if number in REWRITTEN.get(name, []):
            continue
        assert later.data.startswith(beginning), number
        assert later.fields == earlier.fields
        assert later.cache_key == earlier.cache_key


@pytest.mark.parametrize("name", REWRITTEN)
def test_client_rewrote_its_own_prompt(name: str) -> None:
    requests = [json.loads(request) for request in load_run(name)]
    key = WIRES[detect_source(requests[0])].conversation_key
    for number in REWRITTEN[name]:
        earlier, later = requests[number - 1 : number + 1]
        same_messages = later[key][: len(earlier[key])] == earlier[key]
        assert not same_messages or earlier.get("tools") != later.get("tools")
