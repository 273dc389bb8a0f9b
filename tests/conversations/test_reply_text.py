"""Texts of replies that hold tags of the model's template: the same whole and streamed, in any split."""

from __future__ import annotations

from typing import Any

import pytest

import segue
from segue.wire.registry import WIRES
from tests.conversations.build import call, output_text, part_text
from tests.conversations.replies import anthropic_reply, bedrock_reply, chat_reply, gemini_reply, responses_reply
from tests.conversations.reply_shapes import encode_stream, request_of, stream_payloads
from tests.each import for_each
from tests.streams.chat_events import chunk

K3_CALL = (
    '<|open|>tools<|sep|><|open|>call tool="read_file" index="1"<|sep|>'
    '<|open|>argument key="path" type="string"<|sep|>a<|close|>argument<|sep|>'
    "<|close|>call<|sep|><|close|>tools<|sep|>"
)
K3_END = "<|close|>response<|sep|><|close|>message<|sep|><|end_of_msg|>"
# The model, its text, and what it says: reasoning, text, names of calls.
TEXTS: dict[str, tuple[str, str, str, str, list[str]]] = {
    "kimi k3 answers": ("kimi-k3", f"<|open|>response<|sep|>Hi.{K3_END}", "", "Hi.", []),
    "kimi k3 in the middle of its response": ("kimi-k3", f"Hi.{K3_END}", "", "Hi.", []),
    "kimi k3 thinks": (
        "kimi-k3",
        f"<|open|>think<|sep|>Hm.<|close|>think<|sep|><|open|>response<|sep|>Hi.{K3_END}",
        *("Hm.", "Hi.", []),
    ),
    "kimi k3 thinks and calls": (
        "kimi-k3",
        f"<|open|>think<|sep|>Hm.<|close|>think<|sep|><|open|>response<|sep|>Hi.<|close|>response<|sep|>{K3_CALL}",
        *("Hm.", "Hi.", ["read_file"]),
    ),
    "kimi k3 calls": ("kimi-k3", f"<|open|>response<|sep|><|close|>response<|sep|>{K3_CALL}", "", "", ["read_file"]),
    "kimi k3 quotes its tags": ("kimi-k3", f"It is `{K3_END}`.", "", f"It is `{K3_END}`.", []),
    "minimax m3 thinks": ("MiniMax-M3", "<mm:think>Hm.</mm:think>\nHi.", "Hm.", "Hi.", []),
    "minimax m3 does not think": ("MiniMax-M3", "</mm:think>Hi.", "", "Hi.", []),
    "seed-oss thinks": ("Seed-OSS-36B-Instruct", "<seed:think>Hm.</seed:think>Hi.", "Hm.", "Hi.", []),
    "qwen does not think": ("qwen3-32b", "\n\n</think>\n\nHi.", "", "Hi.", []),
    "reasoning without an end": ("qwen3-32b", "<think>Hi.", "Hi.", "Hi.", []),
    "reasoning of blanks without an end": ("qwen3-32b", "<think>\n", "\n", "", []),
    "minimax m3 does not end its reasoning": ("MiniMax-M3", "<mm:think>\nHi.", "\nHi.", "Hi.", []),
}


def _reply(name: str, finish: str = "stop") -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The whole reply, and its stream of one character a chunk."""
    model, text, *_ = TEXTS[name]
    body = chat_reply(content=text, model=model, finish=finish)
    first, *_, last = stream_payloads("openai-chat", body)
    return body, [first, *(chunk({"content": char}, model=model) for char in text), last]


def _read(reply: segue.Reply) -> tuple[str, str, list[str]]:
    return reply.thinking, reply.text, [call.name for call in reply.calls]


@pytest.mark.parametrize("name", TEXTS)
@for_each("caller", ["anthropic", "openai-responses", "gemini", "bedrock", "kimi"])
def test_tags_of_the_template_are_no_text(name: str, caller: str) -> None:
    model, _, thinking, text, calls = TEXTS[name]
    converted = segue.convert(request_of(caller), source=caller, target="openai-chat", model=model)
    body, payloads = _reply(name)
    whole = WIRES[caller].parse_reply(converted.reply(body))
    stream = converted.stream()
    streamed = segue.assemble(stream.feed(encode_stream("openai-chat", payloads)) + stream.close(), caller)
    assert _read(whole) == _read(streamed)
    # Anthropic's and AWS's clients get no reasoning that others made.
    assert _read(whole) in ((thinking, text, calls), ("", text, calls))
    assert stream.reply is not None
    assert _read(stream.reply) == (thinking, text, calls)
    assert whole.finish == streamed.finish == ("tool_calls" if calls else "stop")


@pytest.mark.parametrize("name", ["kimi k3 answers", "kimi k3 thinks", "kimi k3 thinks and calls"])
@for_each("api", ["openai-chat", "kimi"])
def test_elements_of_kimi_k3_are_no_text_at_home(name: str, api: str) -> None:
    model, _, thinking, text, calls = TEXTS[name]
    converted = segue.convert(request_of("openai-chat"), source=api, target=api, model=model)
    body, payloads = _reply(name)
    stream = converted.stream()
    streamed = segue.assemble(stream.feed(encode_stream("openai-chat", payloads)) + stream.close(), api)
    assert _read(WIRES[api].parse_reply(converted.reply(body))) == _read(streamed) == (thinking, text, calls)


@pytest.mark.parametrize("name", TEXTS)
def test_tags_of_the_template_are_no_extracted_text(name: str) -> None:
    _, given, thinking, text, calls = TEXTS[name]
    extracted = segue.extract(given)
    assert (extracted.thinking, extracted.text, [call.name for call in extracted.calls]) == (thinking, text, calls)


@for_each("caller", ["anthropic", "openai-responses"])
def test_reasoning_that_was_cut_off_is_not_the_answer(caller: str) -> None:
    body, payloads = _reply("reasoning without an end", finish="length")
    converted = segue.convert(request_of(caller), source=caller, target="openai-chat")
    stream = converted.stream()
    streamed = segue.assemble(stream.feed(encode_stream("openai-chat", payloads)) + stream.close(), caller)
    whole = WIRES[caller].parse_reply(converted.reply(body))
    assert whole.text == streamed.text == ""
    assert whole.finish == streamed.finish == "length"


@for_each("caller", ["anthropic", "openai-responses"])
def test_reasoning_before_a_call_is_not_the_answer(caller: str) -> None:
    body = chat_reply(call("call_1"), content="<think>I read it.")
    converted = segue.convert(request_of(caller), source=caller, target="openai-chat")
    stream = converted.stream()
    data = stream.feed(encode_stream("openai-chat", stream_payloads("openai-chat", body))) + stream.close()
    streamed, whole = segue.assemble(data, caller), WIRES[caller].parse_reply(converted.reply(body))
    assert whole.text == streamed.text == ""
    assert whole.finish == streamed.finish == "tool_calls"


def _reply_of_text(api: str, text: str) -> dict[str, Any]:
    match WIRES[api].base_api:
        case "anthropic":
            return anthropic_reply({"type": "text", "text": text})
        case "bedrock":
            return bedrock_reply({"text": text})
        case "gemini":
            return gemini_reply(part_text(text))
        case "openai-responses":
            return responses_reply(output_text(text, "msg_1"))
        case _:
            return chat_reply(content=text)


HERMES_CALL = '<tool_call>\n{"name": "read_file", "arguments": {"path": "a"}}\n</tool_call>'
KIMI_CALL = (
    "<|tool_calls_section_begin|><|tool_call_begin|>functions.read_file:0<|tool_call_argument_begin|>"
    '{"path": "a"}<|tool_call_end|><|tool_calls_section_end|>'
)
# The model, the tool format, and the text of the reply.
HOME_TEXTS = {
    "reasoning": ("gpt-5", "hermes", "<think>Hm.</think>\n\nHi."),
    "reasoning alone": ("gpt-5", "hermes", "<think>Hm.</think>"),
    "reasoning without an end": ("gpt-5", "hermes", "<think>Hi."),
    "reasoning and a call": ("gpt-5", "hermes", f"<think>Hm.</think>Hi.{HERMES_CALL}"),
    "call": ("gpt-5", "hermes", HERMES_CALL),
    "text like reasoning": ("gpt-5", "auto", "<think>Hm.</think>Hi."),
    "text like reasoning, and a call that leaked": ("kimi-k2", "auto", f"<think>Hm.</think>Hi.{KIMI_CALL}"),
    "call that leaked": ("kimi-k2", "auto", f"Hi.{KIMI_CALL}"),
}


@pytest.mark.parametrize("name", HOME_TEXTS)
@for_each("api", WIRES)
def test_text_at_home_says_the_same_whole_and_streamed(name: str, api: str) -> None:
    """Reasoning, calls and texts, the reason of the end, and the findings, byte by byte."""
    model, tool_format, text = HOME_TEXTS[name]
    converted = segue.convert(request_of(api), source=api, target=api, model=model, tool_format=tool_format)
    body = _reply_of_text(api, text)
    whole = WIRES[api].parse_reply(converted.reply(body))
    assert converted.reply_report is not None
    stream, parser = converted.stream(), WIRES[api].open_stream("")
    data = encode_stream(api, stream_payloads(api, body))
    parser.feed(b"".join(stream.feed(data[at : at + 1]) for at in range(len(data))) + stream.close())
    streamed = parser.close()
    assert list(map(_shape, streamed.blocks)) == list(map(_shape, whole.blocks))
    assert (streamed.finish, streamed.raw_finish) == (whole.finish, whole.raw_finish)
    assert _messages(stream.report) == _messages(converted.reply_report)


def _messages(report: segue.Report) -> list[tuple[str, ...]]:
    return sorted((finding.kind, finding.level, finding.message, finding.subject or "") for finding in report.findings)


def _shape(block: segue.Block) -> tuple[str, ...]:
    names = ("text", "signature", "name", "arguments_text")
    return type(block).__name__, *(str(getattr(block, name, None) or "") for name in names)
