"""Nothing is lost silently: any history, from every format that is read, through every one that is written."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from segue.canonical.json import encode_json
from segue.corpora import Row, convert_session
from segue.corpora.output import Settings, render_row
from segue.corpora.reading import plan_data
from segue.corpora.turns import build_turns
from segue.corpora.units import Counts, read_unit
from segue.errors import InputError
from tests.budget import examples
from tests.properties.bodies import build_body
from tests.properties.generators import scenarios
from tests.properties.scenario import MARKER, Scenario
from tests.sessions.test_properties import build_lines

ROW_FORMATS = ("openai", "template", "sharegpt", "sts", "atif", "adp")
BATCHES = {"openai-batch": "openai-chat", "anthropic-batch": "anthropic", "gemini-batch": "gemini"}
APIS = ("openai-chat", "openai-responses", "anthropic", "gemini", "bedrock")
TARGETS = (*ROW_FORMATS, *BATCHES, *APIS)
CLIENTS = {name: name for name in ("claude", "codex", "qwen", "pi", "opencode")} | {"gemini-cli": "gemini"}
REQUESTS: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "openai-batch": lambda body: {"custom_id": "a", "method": "POST", "url": "/v1/chat/completions", "body": body},
    "anthropic-batch": lambda body: {"custom_id": "a", "params": body},
    "gemini-batch": lambda body: {"key": "a", "request": body},
}


def encode_lines(lines: list[dict[str, Any]]) -> bytes:
    return b"".join(encode_json(line) + b"\n" for line in lines)


def build_source(scenario: Scenario, source: str) -> bytes:
    """Return a history as the content of a file of a format."""
    if source in CLIENTS:
        return encode_lines(build_lines(CLIENTS[source], scenario))
    if source in BATCHES:
        return encode_lines([REQUESTS[source](build_body(scenario, BATCHES[source]))])
    if source in APIS:
        return encode_lines([build_body(scenario, source, "some-model")])
    body = build_body(scenario, "openai-chat")
    return encode_lines(convert_session(encode_json(body), to=source, source="openai-chat", keep_secrets=True))


def read(data: bytes, source: str) -> tuple[list[Row], Counts]:
    counts = Counts()
    found = list(read_unit(plan_data(data, source), counts))
    rows = [each for each in found if isinstance(each, Row)]
    if len(rows) < len(found):
        raise InputError(str(found))
    counts.verify()
    return rows, counts


def pairs(row: Row) -> list[tuple[str, set[str], str, set[str]]]:
    """Return the calls of a row with the markers in their arguments, and those of their results."""
    turns = build_turns(row).turns
    results = {turn.result.call_id: turn for turn in turns if turn.result is not None}
    return [
        (call.name, markers(str(call.arguments) + str(call.arguments_text)), call.id, markers(results[call.id].text))
        for turn in turns
        for call in turn.calls
    ]


def texts(row: Row, *, reasoning: bool) -> set[str]:
    """Return the markers of all that a row holds."""
    turns = build_turns(row).turns
    found = [turn.text for turn in turns]
    found += [f"{call.arguments} {call.arguments_text}" for turn in turns for call in turn.calls]
    return markers(str(found + [turn.reasoning for turn in turns if reasoning]))


def markers(text: str) -> set[str]:
    return set(MARKER.findall(text))


@pytest.mark.parametrize("source", [*CLIENTS, *ROW_FORMATS, *BATCHES, *APIS])
def test_every_call_keeps_its_one_result_through_every_format_and_back(source: str):
    @given(scenario=scenarios(), targets=st.sets(st.sampled_from(TARGETS), min_size=3, max_size=3))
    @examples(50, items=20)
    def check(scenario: Scenario, targets: set[str]) -> None:
        try:
            rows, counts = read(build_source(scenario, source), source)
        except KeyError:
            # The writers of these clients need the ids of calls.
            assert source in ("pi", "opencode")
            return
        except InputError as error:
            if "no messages" in error.message or "empty" in error.message:
                return
            raise
        assert counts.files == 1
        assert counts.files_rejected == 0
        for row in rows:
            before = pairs(row)
            for target in sorted(targets):
                written = Counts()
                try:
                    lines = render_row(row, Settings(target, keep_secrets=True), written, "1")
                except InputError:
                    # An API may not accept this history at all; the command writes a reject.
                    assert target in (*APIS, *BATCHES)
                    continue
                (back,), _ = read(encode_lines(lines), target)
                after = pairs(back)
                assert len(after) == len(before), target
                if target in ROW_FORMATS:
                    assert texts(row, reasoning=target != "openai") <= markers(json.dumps(lines)), target
                assert written.calls == len(before)
                for (_, arguments, _, result), (_, new_arguments, _, new_result) in zip(before, after, strict=True):
                    assert arguments == new_arguments, target
                    assert result <= new_result, target

    check()
