"""The text that a model's own template renders for calls is parsed back to the same calls."""

from __future__ import annotations

import pytest

from segue.wire.text.regions import BrokenCall, FoundCall
from segue.wire.text.registry import detect_format
from segue.wire.text.scan import CallScanner, scan_text
from tests.templates import models
from tests.templates.histories import (
    CALLS,
    DECLARED,
    QUESTION,
    assistant_message,
    make_calls,
    make_id,
    render_added,
    results_of,
    tool_messages,
)

TEMPLATES = [*models.FORMAT_OF]
# TPL-02: some take one call a message; test_rules shows it.
CASES = [
    (template, odd)
    for template, form in models.FORMAT_OF.items()
    for odd, calls in CALLS.items()
    if len(calls) == 1 or not form.one_call_per_reply
    # M3's template leaves out what is null.
    if template != models.MINIMAX_M3 or not any(None in arguments.values() for _, arguments in calls)
]


def _turn(template: str, odd: str, text: str) -> str:
    return render_added(template, QUESTION, [assistant_message(make_calls(CALLS[odd]), text)])


@pytest.mark.parametrize(("template", "odd"), CASES)
def test_calls(template: str, odd: str) -> None:
    form = models.FORMAT_OF[template]
    pieces = scan_text(_turn(template, odd, ""), form, DECLARED)
    assert [(piece.name, piece.arguments) for piece in pieces if isinstance(piece, FoundCall)] == CALLS[odd]
    assert not any(isinstance(piece, BrokenCall) for piece in pieces)


@pytest.mark.parametrize("template", TEMPLATES)
def test_calls_in_single_characters(template: str) -> None:
    odd = "several" if not models.FORMAT_OF[template].one_call_per_reply else "one"
    scanner = CallScanner(models.FORMAT_OF[template], DECLARED)
    pieces = [piece for sign in _turn(template, odd, "") for piece in scanner.feed(sign)] + scanner.close()
    assert [(piece.name, piece.arguments) for piece in pieces if isinstance(piece, FoundCall)] == CALLS[odd]


# Their templates have no place for text beside calls, or R1's for calls beside text.
NO_TEXT = {
    models.HERMES_2,
    models.HERMES_3,
    models.NEMO,
    models.SMALL_32,
    models.DEEPSEEK_R1,
    models.LLAMA_31,
    models.LLAMA_32,
    models.LLAMA_33,
    models.FUNCTIONARY,
}


@pytest.mark.parametrize("template", [template for template in TEMPLATES if template not in NO_TEXT])
def test_text_beside_calls_stays_text(template: str) -> None:
    pieces = scan_text(_turn(template, "several", "I have a look."), models.FORMAT_OF[template], DECLARED)
    assert [(piece.name, piece.arguments) for piece in pieces if isinstance(piece, FoundCall)] == CALLS["several"]
    assert "I have a look." in "".join(piece for piece in pieces if isinstance(piece, str))


@pytest.mark.parametrize("template", [models.NEMO, models.SMALL_32])
def test_ids_in_the_text(template: str) -> None:
    pieces = scan_text(_turn(template, "several", ""), models.FORMAT_OF[template], DECLARED)
    assert [piece.raw_id for piece in pieces if isinstance(piece, FoundCall)] == [make_id(0), make_id(1)]


@pytest.mark.parametrize("template", [models.KIMI_K2, models.KIMI_K2_NEW, models.KIMI_THINKING])
def test_ids_that_are_made_of_names(template: str) -> None:
    pieces = scan_text(_turn(template, "several", ""), models.FORMAT_OF[template], DECLARED)
    assert [piece.raw_id for piece in pieces if isinstance(piece, FoundCall)] == [
        "functions.get_weather:0",
        "functions.look:1",
    ]


@pytest.mark.parametrize("template", TEMPLATES)
def test_the_format_is_found_by_its_markers(template: str) -> None:
    found = detect_format(_turn(template, "one", ""))
    assert found is not None
    assert found.name == models.FORMAT_OF[template].name


@pytest.mark.parametrize("template", TEMPLATES)
def test_a_whole_history_holds_its_calls_and_no_others(template: str) -> None:
    """Two rounds of calls, results that look like JSON, and an answer."""
    form = models.FORMAT_OF[template]
    first, second = make_calls(CALLS["one"]), make_calls(CALLS["markup"])
    messages = [
        assistant_message(first),
        *tool_messages(results_of(first)),
        assistant_message(second),
        *tool_messages(results_of(second)),
        {"role": "assistant", "content": "It is cold."},
        {"role": "user", "content": "Thanks."},
    ]
    pieces = scan_text(render_added(template, QUESTION, messages), form, DECLARED)
    assert [(piece.name, piece.arguments) for piece in pieces if isinstance(piece, FoundCall)] == [
        *CALLS["one"],
        *CALLS["markup"],
    ]
    assert not any(isinstance(piece, BrokenCall) for piece in pieces)
