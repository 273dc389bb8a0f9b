"""What servers were seen to send that no book tells of, and what becomes of it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from segue.canonical.blocks import ToolCall
from segue.render.report import Report
from segue.wire.events import Failed, Opened
from segue.wire.registry import WIRES

from .chat_events import STOP, TOOLS, calls, chunk, entry, streamed
from .reading import payloads_of, read
from .writing import written

NO_JSON = "{'city': 'Rome'}"


def input_told(*pieces: str) -> tuple[str, list[str]]:
    """The input of a chat call of these pieces as an Anthropic client gets it, and what is reported."""
    report = Report(target="anthropic")
    chunks = [calls(entry(0, "call_1", "weather", "")), *(calls(entry(0, arguments=piece)) for piece in pieces), TOOLS]
    events, _ = read("openai-chat", streamed(chunks))
    told = payloads_of(written("anthropic", events, report))
    deltas = [payload["delta"] for payload in told if payload["type"] == "content_block_delta"]
    return "".join(delta["partial_json"] for delta in deltas), [finding.message for finding in report.findings]


@pytest.mark.parametrize(
    "pieces",
    [[NO_JSON], list(NO_JSON), ["{", "'city': 'Rome'}"], ['{"city": \'Rome\'}'], ["{city:", "'Rome'}"], ["Ro", "me"]],
)
def test_arguments_that_are_no_json_are_told_as_raw_text(pieces: list[str]) -> None:
    told, reported = input_told(*pieces)
    assert json.loads(told) == {"_raw": "".join(pieces)}
    assert reported == ["arguments that are not valid JSON are sent as `_raw`"]


@pytest.mark.parametrize("pieces", [['{"a":{"b":1}', "}"], list('{ "a" : {"b":1}}'), ["{", "}"], [' {"a":"}', '"}']])
def test_arguments_that_are_json_are_told_as_they_came(pieces: list[str]) -> None:
    assert input_told(*pieces) == ("".join(pieces), [])


def test_arguments_that_turn_out_to_be_no_json_are_reported() -> None:
    told, reported = input_told('{"city": "Rome", ', "'unit': 'C'}")
    assert told == "{\"city\": \"Rome\", 'unit': 'C'}"
    assert reported == ["arguments that are not valid JSON had gone out before that was known"]


def test_an_error_beside_choices_is_an_error() -> None:
    failed = chunk({"content": ""}, "error", error={"code": 502, "message": "Provider disconnected"})
    events, reply = read("openai-chat", streamed([chunk({"content": "Hel"}), failed]))
    assert isinstance(events[-1], Failed)
    assert (events[-1].error.status, events[-1].error.message) == (502, "Provider disconnected")
    assert (reply.text, reply.finish, reply.cause) == ("Hel", "error", "Provider disconnected")
    assert reply.native is not None
    assert "error" not in reply.native.fragment


def test_an_error_in_the_first_chunk_is_told_once_at_home() -> None:
    failed = chunk({"role": "assistant", "content": ""}, "error", error={"code": 502, "message": "gone"})
    events, _ = read("openai-chat", streamed([failed, STOP]))
    told = payloads_of(written("openai-chat", events))
    assert [payload.get("error", {}).get("message") for payload in told] == [None, "gone"]


def test_a_choice_that_ends_with_an_error_is_one() -> None:
    events, reply = read("openai-chat", streamed([chunk({"content": "Hel"}), chunk({}, "error")]))
    assert isinstance(events[-1], Failed)
    assert (reply.finish, reply.cause) == ("error", "the provider ended the reply with `error`")


def test_a_first_chunk_without_a_name_does_not_name_the_reply() -> None:
    filtered: Any = [{"prompt_index": 0, "content_filter_results": {}}]
    first = {"choices": [], "created": 0, "id": "", "model": "", "object": "", "prompt_filter_results": filtered}
    events, reply = read("openai-chat", streamed([first, chunk({"content": "Hi"}), STOP]))
    assert isinstance(events[0], Opened)
    assert (events[0].id, events[0].model, events[0].created) == ("chatcmpl-1", "gpt-4.1", 17)
    assert (reply.id, reply.model, reply.created) == ("chatcmpl-1", "gpt-4.1", 17)
    assert reply.native is not None
    assert reply.native.fragment["prompt_filter_results"] == filtered


def test_audio_that_is_told_in_pieces_grows() -> None:
    pieces = [{"id": "audio_1", "transcript": "Hel"}, {"transcript": "lo"}, {"data": "AA"}, {"data": "BB"}]
    chunks = [*(chunk({"audio": piece}) for piece in pieces), chunk({"audio": {"expires_at": 7}}), STOP]
    _, reply = read("openai-chat", streamed(chunks))
    assert reply.native is not None
    audio = reply.native.fragment["choices"][0]["message"]["audio"]
    assert audio == {"id": "audio_1", "transcript": "Hello", "data": "AABB", "expires_at": 7}


def test_what_deepseek_found_in_its_cache_is_counted() -> None:
    usage = {"prompt_tokens": 9, "completion_tokens": 2, "prompt_cache_hit_tokens": 5, "prompt_cache_miss_tokens": 4}
    _, reply = read("openai-chat", streamed([chunk({"content": "Hi"}), {**STOP, "usage": usage}]))
    assert reply.usage is not None
    assert reply.usage.cache_read == 5
