"""The first body of a conversation, which is converted whole, and kept until another one continues it."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import pytest

import segue
from benchmarks._transcripts import RENDERERS, body
from segue.conversion import convert, sessions
from segue.conversion.convert import Conversion

SHORT = {api: body(api, 12) for api in RENDERERS}


@pytest.fixture(autouse=True)
def conversions(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Conversion]]:
    """The conversions of the full pipeline."""
    made: list[Conversion] = []

    def convert_request(*args, **options) -> Conversion:
        made.append(convert.convert_request(*args, **options))
        return made[-1]

    monkeypatch.setattr("segue._convert.convert_request", convert_request)
    sessions.clear()
    yield made
    sessions.clear()


@pytest.mark.parametrize("target", ["anthropic", "openai-chat"])
@pytest.mark.parametrize("source", RENDERERS)
def test_first_body_is_converted_once(source: str, target: str, conversions: list[Conversion]) -> None:
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
