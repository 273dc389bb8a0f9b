"""Properties of every text format: nothing is lost, splits change nothing, rendered calls are parsed back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from segue.canonical.request import Tool
from segue.wire.text.regions import FoundCall
from segue.wire.text.scan import CallScanner, scan_text
from segue.wire.text.text_format import ResultText, TextFormat
from tests.budget import examples
from tests.wire.text.formats import CALL, DECLARED, EACH, OTHER, call_lists, cut, declared_for, fragments, texts
from tests.wire.text.parsing import scan_parts, text_of

every_format = pytest.mark.parametrize("form", EACH.values(), ids=EACH)


@every_format
@examples(3, items=len(EACH))
@given(data=st.data())
def test_no_character_is_lost_and_splits_change_nothing(form: TextFormat, data: st.DataObject):
    text = data.draw(texts(form))
    declared = data.draw(st.sampled_from([None, DECLARED]))
    whole = scan_text(text, form, declared)
    assert text_of(whole) == text
    parts = cut(text, data.draw(st.lists(st.integers(0, 2000), max_size=6)))
    assert scan_parts(parts, form, declared) == whole


@every_format
@examples(3, items=len(EACH))
@given(data=st.data())
def test_rendered_calls_are_parsed_back(form: TextFormat, data: st.DataObject):
    calls = data.draw(call_lists(form))
    text = form.render_calls(calls)
    pieces = scan_text(text, form, declared_for(calls))
    assert text_of(pieces) == text
    assert [piece for piece in pieces if isinstance(piece, str) and piece.strip()] == []
    read = [(piece.name, piece.arguments) for piece in pieces if isinstance(piece, FoundCall)]
    assert read == [(call.name, call.arguments) for call in calls]


def conversation(form: TextFormat) -> str:
    calls = form.render_calls([CALL] if form.one_call_per_reply else [CALL, OTHER])
    broken = calls[: len(calls) // 3]
    quoted = f"```\n{calls}\n```"
    return f"I'll look < 3 `x`.\n{calls}\nSo {broken}\n{quoted}\n{calls}\nDone."


@every_format
def test_every_split_in_two_gives_the_same(form: TextFormat):
    text = conversation(form)
    whole = scan_text(text, form, DECLARED)
    assert sum(isinstance(piece, FoundCall) for piece in whole) >= 2
    for place in range(len(text)):
        assert scan_parts([text[:place], text[place:]], form, DECLARED) == whole, text[:place]


@every_format
@pytest.mark.parametrize("size", [1, 2, 3, 7, 10])
def test_chunks_of_any_size_give_the_same(form: TextFormat, size: int):
    text = conversation(form)
    parts = [text[start : start + size] for start in range(0, len(text), size)]
    assert scan_parts(parts, form, DECLARED) == scan_text(text, form, DECLARED)


@every_format
def test_text_is_emitted_at_once_without_partial_markers(form: TextFormat):
    call = form.render_calls([CALL])
    scanner = CallScanner(form, DECLARED)
    assert scanner.feed("Let me see.\n") == ["Let me see.\n"]
    shown = [piece for sign in call for piece in scanner.feed(sign)]
    assert [piece for piece in shown if isinstance(piece, str)] == []
    pieces = shown + scanner.feed("\nThere.") + scanner.close()
    assert [type(piece) for piece in pieces] == [FoundCall, str]
    assert text_of(pieces) == f"{call}\nThere."


@every_format
@pytest.mark.parametrize("around", ["```\n{}\n```", "```xml\n{}\n```\n", "~~~\n{}\n~~~", "  ```\n{}\n  ```", "a `{}`"])
def test_quoted_call_is_no_call(form: TextFormat, around: str):
    text = around.format(form.render_calls([CALL]))
    assert scan_text(text, form, DECLARED) == [text]


@every_format
@pytest.mark.parametrize(
    "behind", ["```\nx\n```\n", "````\n```\n````\n", "```py\nx```\n", "~~~\n```\n~~~\n", "`a` ``` b\n"]
)
def test_call_after_a_quotation_is_parsed(form: TextFormat, behind: str):
    pieces = scan_text(behind + form.render_calls([CALL]), form, DECLARED)
    assert [piece.arguments for piece in pieces if isinstance(piece, FoundCall)] == [CALL.arguments]


@every_format
def test_a_call_cut_off_anywhere_is_never_half_a_call(form: TextFormat):
    """It may be complete where only its closing tag is missing."""
    call = form.render_calls([CALL])
    for place in range(len(call)):
        found = [piece for piece in scan_text(call[:place], form, DECLARED) if isinstance(piece, FoundCall)]
        assert all(piece.arguments == CALL.arguments for piece in found), call[:place]


@every_format
def test_a_broken_call_does_not_hide_the_next(form: TextFormat):
    """A truncated call followed by a complete one."""
    call = form.render_calls([CALL])
    for place in range(1, len(call)):
        text = f"{call[:place]}\n{call}"
        found = [piece for piece in scan_text(text, form, DECLARED) if isinstance(piece, FoundCall)]
        assert found, text
        assert found[-1].arguments == CALL.arguments, text


@every_format
def test_every_fragment_alone_keeps_its_characters(form: TextFormat):
    for text in fragments(form):
        assert text_of(scan_text(text, form)) == text


@every_format
def test_declarations_and_results_contain_their_input(form: TextFormat):
    schema = {
        "type": "object",
        "properties": {"city": {"type": "string", "description": "where"}},
        "required": ["city"],
    }
    text = form.render_tools([Tool("get_weather", "Tells the weather.", schema), Tool("bare")])
    assert all(word in text for word in ("get_weather", "Tells the weather.", "city", "where", "bare"))
    results = form.render_results([ResultText("get_weather", "c1", "Sunny <b>"), ResultText("bare", "c2", "two")])
    assert results.index("Sunny <b>") < results.index("two")
