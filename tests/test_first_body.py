"""A short conversation is converted by the full pipeline; a long one makes a template."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import pytest

import segue
from benchmarks._transcripts import RENDERERS, body
from segue import fast, pipeline
from segue.canonical.json import encode_json
from segue.fast import memory
from segue.pipeline import Conversion, ConvertJob
from segue.wire.registry import WIRES
from tests.bodies.chat import assistant_calls, call, result, user

SHORT = {api: body(api, 12) for api in RENDERERS}


@pytest.fixture(autouse=True)
def conversions(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Conversion]]:
    """The conversions of the full pipeline."""
    made: list[Conversion] = []

    def convert_request(*args, **options) -> Conversion:
        made.append(pipeline.convert_request(*args, **options))
        return made[-1]

    for module in ("segue._convert", "segue.fast.body_template"):
        monkeypatch.setattr(f"{module}.convert_request", convert_request)
    fast.clear()
    yield made
    fast.clear()


@pytest.mark.parametrize("target", ["anthropic", "openai-chat"])
@pytest.mark.parametrize("source", RENDERERS)
def test_first_body_is_converted_once_by_the_full_pipeline(
    source: str, target: str, conversions: list[Conversion]
) -> None:
    first, second = (segue.convert(SHORT[source], source=source, target=target) for _ in range(2))
    assert conversions[0].rendered.report is first.report
    assert second.data == first.data
    assert second.report.to_dict() == first.report.to_dict()


def test_changes_of_the_first_result_do_not_reach_the_second() -> None:
    def convert() -> segue.Converted:
        return segue.convert(SHORT["anthropic"], source="anthropic", target="anthropic")

    first = convert()
    expected = first.data
    first.report.add("model", "another finding")
    first.report.seen.clear()
    for value in first.body.values():
        if isinstance(value, list | dict):
            value.clear()
    second = convert()
    assert second.data == expected
    assert msgspec.json.encode(second.body) == expected
    assert second.report.seen
    assert not second.report.findings_of("model")


def test_large_first_body_takes_the_fast_path(monkeypatch: pytest.MonkeyPatch, conversions: list[Conversion]) -> None:
    monkeypatch.setattr(memory, "_MAX_SHORT_SIZE", 1000)
    data = body("anthropic", 120)
    converted = segue.convert(data, source="anthropic", target="openai-chat")
    assert [len(conversion.request.messages) < 60 for conversion in conversions] == [True]
    assert converted.data == segue.convert(msgspec.json.decode(data), source="anthropic", target="openai-chat").data


def test_conversation_that_became_long_makes_a_template(conversions: list[Conversion]) -> None:
    items: list[object] = [user("go")]
    lengths: list[int] = []
    for number in range(30):
        items += [assistant_calls(call(f"call_{number}", "f")), result(f"call_{number}", "found")]
        data = encode_json({"model": "gpt-5", "messages": items})
        converted = segue.convert(data, source="openai-chat", target="anthropic")
        lengths += [len(conversion.request.messages) for conversion in conversions]
        conversions.clear()
        assert converted.data == segue.convert(msgspec.json.decode(data), source="openai-chat", target="anthropic").data
        conversions.clear()
    first, template = lengths
    assert first == 3
    assert template < 20


def test_number_of_noted_lengths_is_limited() -> None:
    remembered = memory.ConversationMemory(max_count=2)
    job = ConvertJob(target=WIRES["anthropic"], source=WIRES["openai-chat"])
    for name in "abc":
        data = encode_json({"model": name * 40, "messages": [{"role": "user", "content": "go"}] * 3})
        remembered.add(data, pipeline.convert_request(msgspec.json.decode(data), job), job)
    starts = [encode_json({"model": name * 40, "messages": []}) for name in "abc"]
    assert [remembered.needs_template(start, job, 2) for start in starts] == [False, True, True]
    assert [remembered.needs_template(start, job, 3) for start in starts] == [False, False, False]


def test_later_conversations_with_the_same_beginning_make_a_template(conversions: list[Conversion]) -> None:
    lengths: list[int] = []
    for number in range(4):
        items = [user(f"go {number}"), assistant_calls(call("call_1", "f")), result("call_1", "found")]
        data = encode_json({"model": "m" * 80, "messages": items})
        segue.convert(data, source="openai-chat", target="anthropic")
        lengths.append(sum(len(conversion.request.messages) for conversion in conversions))
        conversions.clear()
    assert lengths == [3, 3, 3, 0]
