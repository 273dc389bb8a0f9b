"""What servers were seen to send that no book tells of, and what becomes of it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from segue.canonical.blocks import ToolCall
from segue.render.report import Report
from segue.wire.events import Start
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
