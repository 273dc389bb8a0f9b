"""Chat completions as servers stream them: each server's quirks by name."""

from __future__ import annotations

import json
from typing import Any

import pytest

import segue
from segue.canonical.blocks import Text, Thinking, ToolCall
from segue.errors import RemoteProtocolError
from segue.wire.registry import WIRES
from segue.wire.stream.events import BlockEnd, BlockStart, Failed, InputDelta, TextDelta, UsageUpdate
from tests.streams.chat_events import STOP, TOOLS, X, calls, chunk, encode_chunks, entry
from tests.streams.parsing import TURN, Body, join_deltas, read, splits
from tests.streams.rendering import render_stream

# The stream, and the calls in it: raw id, name and arguments.
QUIRKS: dict[str, tuple[list[Body], list[tuple[str | None, str, Any]]]] = {
    "by the book": (
        [
            calls(entry(0, "a", "f", "")),
            calls(entry(0, arguments='{"x"')),
            calls(entry(0, arguments=":1}")),
            calls(entry(1, "b", "g", "")),
            calls(entry(1, arguments="{}")),
            TOOLS,
        ],
        [("a", "f", X), ("b", "g", {})],
    ),
    "two calls in turns": (
        [
            calls(entry(0, "a", "f", '{"x"'), entry(1, "b", "g", '{"x"')),
            calls(entry(1, arguments=":1}")),
            calls(entry(0, arguments=":1}")),
            TOOLS,
        ],
        [("a", "f", X), ("b", "g", X)],
    ),
    "index missing": (
        [
            calls(entry(None, "a", "f", '{"x"')),
            calls(entry(arguments=":1}")),
            calls(entry(None, "b", "g", '{"x":1}')),
            TOOLS,
        ],
        [("a", "f", X), ("b", "g", X)],
    ),
    "index null": (
        [
            calls({**entry(None, "a", "f", '{"x"'), "index": None}),
            calls({**entry(arguments=":1}"), "index": None}),
            TOOLS,
        ],
        [("a", "f", X)],
    ),
    "index always 0, each call whole": (
        [calls(entry(0, "a", "f", '{"x":1}')), calls(entry(0, "b", "f", '{"x":2}')), TOOLS],
        [("a", "f", X), ("b", "f", {"x": 2})],
    ),
    "index always 0, in pieces": (
        [
            calls(entry(0, "a", "f", "")),
            calls(entry(0, arguments='{"x":')),
            calls(entry(0, arguments="1}")),
            calls(entry(0, "b", "g", "")),
            calls(entry(0, arguments='{"x":')),
            calls(entry(0, arguments="1}")),
            TOOLS,
        ],
        [("a", "f", X), ("b", "g", X)],
    ),
    "index always 0, no ids": (
        [calls(entry(0, None, "f", '{"x":1}')), calls(entry(0, None, "f", '{"x":2}')), STOP],
        [(None, "f", X), (None, "f", {"x": 2})],
    ),
    "index wrong": ([calls(entry(0, "a", "f", '{"x"')), calls(entry(1, arguments=":1}")), TOOLS], [("a", "f", X)]),
    "index counted up with each delta": (
        [calls(entry(0, "a", "f", '{"x"')), calls(entry(1, "a", None, ":")), calls(entry(2, "a", None, "1}")), TOOLS],
        [("a", "f", X)],
    ),
    "index as text": (
        [calls(entry("0", "a", "f", '{"x"')), calls(entry("0", arguments=":1}")), TOOLS],
        [("a", "f", X)],
    ),
    "index from 1": (
        [calls(entry(1, "a", "f", '{"x":1}')), calls(entry(2, "b", "g", '{"x":1}')), TOOLS],
        [("a", "f", X), ("b", "g", X)],
    ),
    "id in every delta": (
        [calls(entry(0, "a", "f", '{"x"')), calls(entry(0, "a", None, ":1")), calls(entry(0, "a", None, "}")), TOOLS],
        [("a", "f", X)],
    ),
    "id empty later": ([calls(entry(0, "a", "f", '{"x"')), calls(entry(0, "", "", ":1}")), TOOLS], [("a", "f", X)]),
    "id empty": ([calls(entry(0, "", "f", '{"x":1}')), TOOLS], [(None, "f", X)]),
    "id only in the second delta": (
        [calls(entry(0, None, "f", "")), calls(entry(0, "a", None, '{"x":1}')), TOOLS],
        [("a", "f", X)],
    ),
    "id changed in mid-call": (
        [calls(entry(0, "a", "f", '{"x"')), calls(entry(0, "b", "f", ":")), calls(entry(0, "c", None, "1}")), TOOLS],
        [("a", "f", X)],
    ),
    "id with a new one at the same index": (
        [calls(entry(0, "a", "f", '{"x":1}')), calls(entry(0, "b", "g", "{}")), TOOLS],
        [("a", "f", X), ("b", "g", {})],
    ),
    "ids of two calls in one": ([calls(entry(0, "call_acall_b", "f", '{"x":1}')), TOOLS], [("call_acall_b", "f", X)]),
    "one id for two calls": (
        [calls(entry(0, "a", "f", '{"x":1}'), entry(1, "a", "f", '{"x":2}')), TOOLS],
        [("a", "f", X), ("a", "f", {"x": 2})],
    ),
    "a canonical id for two calls": (
        [calls(entry(0, "hist_tool_abc", "f", '{"x":1}'), entry(1, "hist_tool_abc", "f", '{"x":2}')), TOOLS],
        [("hist_tool_abc", "f", X), ("hist_tool_abc", "f", {"x": 2})],
    ),
    "name split": (
        [
            calls(entry(0, "a", "get_", "")),
            calls(entry(0, None, "weather", "")),
            calls(entry(0, arguments='{"x":1}')),
            TOOLS,
        ],
        [("a", "get_weather", X)],
    ),
    "name repeated": ([calls(entry(0, "a", "f", '{"x"')), calls(entry(0, "a", "f", ":1}")), TOOLS], [("a", "f", X)]),
    "name repeated without an id": (
        [calls(entry(0, "a", "f", '{"x"')), calls(entry(0, None, "f", ":1}")), TOOLS],
        [("a", "f", X)],
    ),
    "name growing": (
        [
            calls(entry(0, "a", "get", "")),
            calls(entry(0, "a", "get_weather", "")),
            calls(entry(0, arguments="{}")),
            TOOLS,
        ],
        [("a", "get_weather", {})],
    ),
    "sent again with more arguments": (
        [calls(entry(0, "a", "f", '{"x"')), calls(entry(0, "a", "f", '{"x":1}')), TOOLS],
        [("a", "f", X)],
    ),
    "sent again whole at the end": (
        [
            calls(entry(0, "a", "f", '{"x":')),
            calls(entry(0, arguments="1}")),
            calls(entry(0, "a", "f", '{"x":1}')),
            TOOLS,
        ],
        [("a", "f", X)],
    ),
    "arguments as an object": ([calls(entry(0, "a", "f", X)), TOOLS], [("a", "f", X)]),
    "arguments missing": ([calls(entry(0, "a", "f")), TOOLS], [("a", "f", {})]),
    "arguments null": (
        [calls({**entry(0, "a"), "function": {"name": "f", "arguments": None}}), TOOLS],
        [("a", "f", {})],
    ),
    "arguments empty": ([calls(entry(0, "a", "f", "")), TOOLS], [("a", "f", {})]),
    "arguments {} first and then the real ones": (
        [calls(entry(0, "a", "f", "{}")), calls(entry(0, arguments='{"x"')), calls(entry(0, arguments=":1}")), TOOLS],
        [("a", "f", X)],
    ),
    "arguments that are {}, in two pieces": (
        [calls(entry(0, "a", "f", "{")), calls(entry(0, arguments="}")), TOOLS],
        [("a", "f", {})],
    ),
    "several calls in one delta": (
        [calls(entry(0, "a", "f", '{"x":1}'), entry(1, "b", "f", '{"x":1}'), entry(2, "c", "g", "{}")), TOOLS],
        [("a", "f", X), ("b", "f", X), ("c", "g", {})],
    ),
    "several calls without index or id": (
        [calls(entry(None, None, "f", '{"x":1}'), entry(None, None, "f", '{"x":1}')), TOOLS],
        [(None, "f", X), (None, "f", X)],
    ),
    "a call after the finish": ([TOOLS, calls(entry(0, "a", "f", '{"x":1}'))], [("a", "f", X)]),
    "finish stop": ([calls(entry(0, "a", "f", '{"x":1}')), STOP], [("a", "f", X)]),
    "finish twice": ([calls(entry(0, "a", "f", '{"x":1}')), TOOLS, TOOLS], [("a", "f", X)]),
    "no finish, but an end": ([calls(entry(0, "a", "f", '{"x":1}'))], [("a", "f", X)]),
    "calls as one object": ([chunk({"tool_calls": entry(0, "a", "f", '{"x":1}')}), TOOLS], [("a", "f", X)]),
    "calls null": ([chunk({"content": "hi", "tool_calls": None}), STOP], []),
    "an old call": (
        [
            chunk({"function_call": {"name": "f", "arguments": ""}}),
            chunk({"function_call": {"arguments": '{"x":1}'}}),
            chunk({}, "function_call"),
        ],
        [(None, "f", X)],
    ),
}


@pytest.mark.parametrize("quirk", QUIRKS)
def test_quirk(quirk: str) -> None:
    chunks, expected = QUIRKS[quirk]
    data = encode_chunks(chunks)
    events, reply = read("openai-chat", data)
    assert [(call.raw_id, call.name, call.arguments) for call in reply.calls] == expected
    assert not any(call.broken for call in reply.calls)
    assert reply.finish == ("tool_calls" if expected else "stop")
    assert len({call.id for call in reply.calls}) == len(expected)
    calls_ended = [event.block for event in events if isinstance(event, BlockEnd) and isinstance(event.block, ToolCall)]
    assert [(call.id, call.arguments) for call in calls_ended] == [(call.id, call.arguments) for call in reply.calls]
    for pieces in splits(data):
        assert join_deltas(read("openai-chat", pieces)) == join_deltas((events, reply))


def test_a_call_has_its_canonical_id_from_its_start() -> None:
    chunks = [calls(entry(0, "a", "f", "")), calls(entry(0, arguments='{"x":1}')), TOOLS]
    events, _ = read("openai-chat", encode_chunks(chunks))
    start = next(event for event in events if isinstance(event, BlockStart))
    assert isinstance(start.block, ToolCall)
    expected = segue.canonical_tool_id(provider="openai", raw_id="a", tool_name="f", turn_key=TURN, call_index=0)
    assert start.block.id == expected


def test_assemble_names_calls_by_the_documented_turn() -> None:
    reply = segue.assemble(encode_chunks(QUIRKS["by the book"][0]), "openai-chat")
    expected = segue.canonical_tool_id(provider="openai", raw_id="a", tool_name="f", turn_key="turn-0", call_index=0)
    assert reply.calls[0].id == expected


# ---------------------------------------------------------------------------------------------------------- cut off


def test_arguments_cut_off_by_the_length_limit() -> None:
    events, reply = read("openai-chat", encode_chunks([calls(entry(0, "a", "f", '{"x":')), chunk({}, "length")]))
    (call,) = reply.calls
    assert (call.broken, call.arguments, call.arguments_text, reply.finish) == (True, None, '{"x":', "length")
    assert [event.block for event in events if isinstance(event, BlockEnd)] == [
        ToolCall("f", None, call.id, '{"x":', origin=call.origin, broken=True)
    ]


@pytest.mark.parametrize("arguments", ["", "{", "{}", '{"x":1', '{"x":1}'])
def test_a_stream_without_an_end_keeps_what_came(arguments: str) -> None:
    chunks = [chunk({"content": "Hel"}), calls(entry(0, "a", "f", '{"y":2}')), calls(entry(1, "b", "g", arguments))]
    events, reply = read("openai-chat", encode_chunks(chunks, done=False))
    assert reply.text == "Hel"
    assert reply.finish == "error"
    assert isinstance(events[-1], Failed)
    first, second = reply.calls
    assert (first.broken, first.arguments) == (False, {"y": 2})
    # Nothing can be added to an object that is closed and has something in it.
    assert second.broken == (arguments != '{"x":1}')
    assert second.arguments == ({"x": 1} if arguments == '{"x":1}' else None)


def test_an_error_in_the_middle() -> None:
    chunks = [chunk({"content": "Hel"}), {"error": {"message": "overloaded", "type": "server_error", "code": 503}}]
    events, reply = read("openai-chat", encode_chunks(chunks))
    assert (reply.text, reply.finish, reply.raw_finish) == ("Hel", "error", "overloaded")
    assert isinstance(events[-1], Failed)
    assert events[-1].error.message == "overloaded"


def test_an_error_and_nothing_else() -> None:
    with pytest.raises(RemoteProtocolError, match="overloaded") as caught:
        segue.assemble(encode_chunks([{"error": {"message": "overloaded", "type": "server_error"}}]), "openai-chat")
    assert caught.value.kind == "server_error"


@pytest.mark.parametrize("data", [b"", b"\n\n", b": ping\n\n", b"data: [DONE]\n\n", b"<html>no</html>", b"{}", b"[]"])
def test_no_reply_at_all(data: bytes) -> None:
    with pytest.raises(RemoteProtocolError):
        segue.assemble(data, "openai-chat")


# ------------------------------------------------------------------------------------------------------- what is said


def test_text_between_calls() -> None:
    chunks = [chunk({"content": "a"}), calls(entry(0, "a", "f", '{"x":1}')), chunk({"content": "b"}), STOP]
    events, reply = read("openai-chat", encode_chunks(chunks))
    assert reply.text == "ab"
    kinds = [type(event.block) for event in events if isinstance(event, BlockEnd)]
    assert kinds == [Text, ToolCall, Text] or kinds == [Text, Text, ToolCall]


def test_usage_and_role_alone() -> None:
    usage = {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7}
    chunks = [
        chunk({"role": "assistant", "content": ""}),
        chunk({"content": "hi"}),
        STOP,
        {**STOP, "choices": [], "usage": usage},
    ]
    events, reply = read("openai-chat", encode_chunks(chunks))
    assert reply.usage is not None
    assert (reply.usage.input, reply.usage.output) == (3, 4)
    assert isinstance(events[-2], UsageUpdate)


def test_kimi_usage_in_the_choice() -> None:
    last = chunk({}, "stop")
    last["choices"][0]["usage"] = {"prompt_tokens": 3, "completion_tokens": 4}
    _, reply = read("kimi", encode_chunks([chunk({"content": "hi"}), last]))
    assert reply.usage is not None
    assert reply.usage.output == 4


@pytest.mark.parametrize("key", ["reasoning_content", "reasoning"])
def test_reasoning_by_either_key(key: str) -> None:
    events, reply = read(
        "openai-chat", encode_chunks([chunk({key: "hm"}), chunk({key: "m"}), chunk({"content": "hi"}), STOP])
    )
    assert (reply.thinking, reply.text) == ("hmm", "hi")
    assert [type(event.block) for event in events if isinstance(event, BlockEnd)] == [Thinking, Text]


def test_reasoning_between_tags() -> None:
    chunks = [chunk({"content": text}) for text in ("<th", "ink>h", "mm</thi", "nk>\n", "\nhi", " <think>")]
    reply = segue.assemble(encode_chunks([*chunks, STOP]), "openai-chat")
    assert (reply.thinking, reply.text) == ("hmm", "hi <think>")


def test_reasoning_in_parts() -> None:
    thought = {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}
    chunks = [chunk({"content": [thought]}), chunk({"content": [thought]}), chunk({"content": "hi"}), STOP]
    _, reply = read("mistral", encode_chunks(chunks))
    assert (reply.thinking, reply.text) == ("hmhm", "hi")


def test_halves_of_a_character_are_joined() -> None:
    events, reply = read(
        "openai-chat", encode_chunks([chunk({"content": "a \ud83d"}), chunk({"content": "\ude00!"}), STOP])
    )
    assert reply.text == "a 😀!"
    assert "".join(event.text for event in events if isinstance(event, TextDelta)) == "a 😀!"


def test_halves_of_a_character_are_joined_in_arguments() -> None:
    pieces = ['{"x":"\ud83d', '\ude00"}']
    chunks = [calls(entry(0, "a", "f", "")), *(calls(entry(0, arguments=piece)) for piece in pieces), TOOLS]
    _, reply = read("openai-chat", encode_chunks(chunks))
    assert reply.calls[0].arguments == {"x": "😀"}


def test_lone_half_of_a_character_is_replaced() -> None:
    odd = chunk({"content": "a\ud83d", "annotations": [{"\ud83d": "\ud83d"}]}, id="\ud83d", model="m\ud83d")
    events, reply = read(
        "openai-chat", encode_chunks([odd, calls(entry(0, "\ud83d", "f\ud83d", '{"x":"\ud83d')), TOOLS])
    )
    assert (reply.text, reply.id, reply.model) == ("a\ufffd", "\ufffd", "m\ufffd")
    assert [(call.raw_id, call.name, call.arguments_text) for call in reply.calls] == [
        ("\ufffd", "f\ufffd", '{"x":"\ufffd')
    ]
    assert b"f\xef\xbf\xbd" in render_stream("openai-chat", events)


def test_whole_message_after_its_deltas_adds_only_the_end() -> None:
    last = {"index": 0, "message": {"role": "assistant", "content": "hi"}, "finish_reason": "length"}
    _, reply = read("openai-chat", encode_chunks([chunk({"content": "hi"}), {**STOP, "choices": [last]}], done=False))
    assert (reply.text, reply.finish) == ("hi", "length")


def test_text_after_the_start_of_arguments_continues_them() -> None:
    chunks = [calls(entry(0, "a", "f", '{"x":')), calls({"index": 0, "custom": {"input": "*** Begin"}}), TOOLS]
    (call,) = read("openai-chat", encode_chunks(chunks))[1].calls
    assert (call.kind, call.arguments, call.arguments_text) == ("function", None, '{"x":*** Begin')


def test_logprobs_and_annotations_are_kept_for_same_api() -> None:
    first = chunk({"content": "a"})
    first["choices"][0]["logprobs"] = {"content": [{"token": "a", "logprob": -1}]}
    chunks = [first, chunk({"annotations": [{"type": "url_citation"}]}), {**STOP, "system_fingerprint": "fp"}]
    _, reply = read("openai-chat", encode_chunks(chunks))
    assert reply.native is not None
    choice = reply.native.fragment["choices"][0]
    assert choice["logprobs"] == {"content": [{"token": "a", "logprob": -1}]}
    assert choice["message"]["annotations"] == [{"type": "url_citation"}]
    assert reply.native.fragment["system_fingerprint"] == "fp"


def test_other_choices_are_counted() -> None:
    other = chunk({"content": "no"})
    other["choices"][0]["index"] = 1
    _, reply = read("openai-chat", encode_chunks([chunk({"content": "yes"}), other, STOP]))
    assert (reply.text, reply.other_choices) == ("yes", 1)


def test_whole_reply_where_a_stream_was_requested() -> None:
    message = {
        "role": "assistant",
        "content": "hi",
        "tool_calls": [{"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}],
    }
    body = {"id": "c", "model": "m", "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}]}
    events, reply = read("openai-chat", json.dumps(body).encode())
    assert (reply.text, [call.name for call in reply.calls], reply.finish) == ("hi", ["f"], "tool_calls")
    assert any(isinstance(event, InputDelta) for event in events)


def test_decoded_payloads() -> None:
    chunks = QUIRKS["by the book"][0]
    assert segue.assemble(chunks, "openai-chat") == segue.assemble(encode_chunks(chunks), "openai-chat")
    assert segue.assemble([encode_chunks([one], done=False) for one in chunks], "openai-chat").calls[0].arguments == X
    recorded = json.dumps([{"event": "message", "data": one} for one in chunks]).encode()
    assert segue.assemble(recorded, "openai-chat").calls[0].arguments == X


def test_kimi_tokens_that_leak_into_text_are_calls() -> None:
    text = (
        "I look.<|tool_calls_section_begin|><|tool_call_begin|>functions.read_file:3<|tool_call_argument_begin|>"
        '{"path": "a"}<|tool_call_end|><|tool_calls_section_end|>'
    )
    chunks = [chunk({"content": text[start : start + 5]}) for start in range(0, len(text), 5)]
    reply = segue.assemble(encode_chunks([*chunks, STOP]), "kimi")
    assert [(call.raw_id, call.name, call.arguments) for call in reply.calls] == [
        ("functions.read_file:3", "read_file", {"path": "a"})
    ]
    assert (reply.text, reply.finish) == ("I look.", "tool_calls")
    assert reply.calls[0].origin.provider == "kimi"


@pytest.mark.parametrize("client", ["anthropic", "gemini", "openai-responses", "openai-chat"])
def test_the_words_of_an_audio_model_reach_every_client_as_in_a_whole_reply(client: str) -> None:
    pieces: list[Body] = [
        {"id": "a1"},
        {"transcript": "Good "},
        {"data": "AA", "transcript": "morning."},
        {"expires_at": 9},
    ]
    data = encode_chunks([*(chunk({"audio": piece}) for piece in pieces), STOP])
    body = segue.convert({"messages": [{"role": "user", "content": "Hi."}]}, source="openai-chat", target=client).body
    converted = segue.convert(body, source=client, target="openai-chat", model="gpt-4o-audio-preview")
    stream = converted.stream()
    streamed = segue.assemble(stream.feed(data) + stream.close(), client)
    audio = {"id": "a1", "data": "AA", "transcript": "Good morning.", "expires_at": 9}
    message = {"role": "assistant", "content": None, "audio": audio}
    choices = [{"index": 0, "message": message, "finish_reason": "stop"}]
    whole = converted.reply({"id": "c", "object": "chat.completion", "model": "m", "choices": choices})
    assert "Good morning." in str(whole)
    assert streamed.text == WIRES[client].parse_reply(whole).text
