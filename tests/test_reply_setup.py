"""A reply reads a small part of its request: its cost does not grow with the history, and its ids are still new."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

import segue
from benchmarks._transcripts import body
from segue._stream import render_reply_body
from segue.canonical.blocks import Block, Origin, Text, ToolCall
from segue.canonical.request import Reply, Usage
from segue.conversion.sessions import clear
from segue.render.report import Report
from segue.wire.registry import WIRES
from tests.work import count_work

# The ids of Kimi's and Mistral's calls need the calls of the history: one by number, the other by hash.
SOURCES = ("openai-chat", "openai-responses", "anthropic", "gemini", "mistral", "kimi")
BODIES = {(source, size): body(source, size) for source in SOURCES for size in (60, 240)}
TARGETS = ("openai-chat", "anthropic", "gemini")


def reply_body(target: str, *blocks: Block) -> dict[str, Any]:
    return render_reply_body(Reply(blocks, "tool_calls", Usage(1, 1), "r", "m"), target)[0]


def new_call(target: str, raw_id: str | None = "call_new") -> ToolCall:
    return ToolCall("grep", {"path": "a"}, "c", origin=Origin(WIRES[target].provider, raw_id=raw_id))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("source", ["openai-chat", "openai-responses", "anthropic"])
def test_cost_of_a_reply_does_not_depend_on_the_history(source: str, target: str) -> None:
    reply = reply_body(target, Text("I look."), new_call(target))

    def convert_reply(size: int) -> int:
        converted = segue.convert(BODIES[source, size], source=source, target=target)
        converted.stream()
        # The findings of the conversion differ with the size.
        converted.report = Report()
        return count_work(lambda: (converted.reply(reply), converted.stream()))

    clear()
    convert_reply(60)
    assert convert_reply(240) == convert_reply(60)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("source", SOURCES)
def test_ids_are_the_same_for_a_dict_and_for_bytes(source: str, target: str) -> None:
    """Also ids that the history has already: of its first call, and the one that a call without an id gets."""
    data = BODIES[source, 60]
    whole: dict[str, Any] = msgspec.json.decode(data)
    slow, fast = (segue.convert(given, source=source, target=target) for given in (whole, data))
    sent_ids = [sent_id for _, sent_id in slow.report.emitted_calls]
    raw_ids = ("call_new", None, sent_ids[0], sent_ids[-1], *slow.report.seen[:1])
    for raw_id in raw_ids:
        reply = reply_body(target, new_call(target, raw_id))
        assert fast.reply(reply) == slow.reply(reply)


@pytest.mark.parametrize("source", SOURCES)
def test_call_ids_of_the_history_are_not_repeated(source: str) -> None:
    converted = segue.convert(BODIES[source, 60], source=source, target=source)
    sent_ids = [sent_id for _, sent_id in converted.report.emitted_calls]
    parse_reply = WIRES[source].parse_reply
    for raw_id in (sent_ids[0], sent_ids[-1]):
        reply = parse_reply(converted.reply(reply_body(source, new_call(source, raw_id))))
        assert reply.calls[0].origin.raw_id not in sent_ids


def test_result_of_an_earlier_call_is_paired() -> None:
    """A hosted result without its call in the reply: the messages of the history are parsed."""
    data = BODIES["anthropic", 60]
    result = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []}
    message = {"id": "m", "type": "message", "role": "assistant", "model": "m", "content": [result]}
    reply = {**message, "stop_reason": "end_turn", "usage": {"input_tokens": 1, "output_tokens": 1}}
    slow, fast = (
        segue.convert(given, source="anthropic", target="anthropic") for given in (msgspec.json.decode(data), data)
    )
    assert fast.reply(reply) == slow.reply(reply)
