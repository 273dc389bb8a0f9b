"""Calls, results and declarations are rendered like the models' own templates, except for white space.

Where the text of a declaration is free, tags, keys and layout are still the template's.
"""

from __future__ import annotations

import re
from typing import Any

import pytest
from msgspec.structs import replace

from segue.wire.text.deepseek import DEEPSEEK_TEXT
from segue.wire.text.gemma import GEMMA
from segue.wire.text.hermes import HERMES
from segue.wire.text.kimi import KIMI_TEXT
from segue.wire.text.llama import LLAMA
from segue.wire.text.mistral import MISTRAL_TEXT
from segue.wire.text.regions import FoundCall
from segue.wire.text.scan import scan_text
from segue.wire.text.text_format import TextFormat
from segue.wire.text.xml import XML_VARIANTS
from tests.templates import models
from tests.templates.engine import prompt
from tests.templates.histories import (
    CALLS,
    DECLARATIONS,
    DECLARED,
    QUESTION,
    TOOLS,
    assistant_message,
    make_calls,
    render_added,
    results_of,
    strip_whitespace,
    tool_messages,
)

QWEN, GLM, MINIMAX = XML_VARIANTS["qwen"], XML_VARIANTS["glm"], XML_VARIANTS["minimax"]
RENDERED_FORMATS: dict[str, TextFormat] = {
    **dict.fromkeys((models.QWEN_25, models.QWEN_3, models.QWQ, models.HERMES_2, models.HERMES_3), HERMES),
    **dict.fromkeys((models.QWEN_CODER, models.QWEN_35), QWEN),
    **dict.fromkeys((models.GLM_46, models.GLM_47), GLM),
    models.MINIMAX_M2: MINIMAX,
    **dict.fromkeys((models.LLAMA_31, models.LLAMA_32, models.LLAMA_33), LLAMA),
    **dict.fromkeys((models.GEMMA_4, models.GEMMA_4_OLD), GEMMA),
    models.DEEPSEEK_31: DEEPSEEK_TEXT,
    **dict.fromkeys((models.KIMI_K2, models.KIMI_K2_NEW, models.KIMI_THINKING), KIMI_TEXT),
    **dict.fromkeys((models.DEVSTRAL, models.MINISTRAL_3), MISTRAL_TEXT),
}
"""Whose way to write is ours."""

CASES = [
    (template, odd)
    for template, form in RENDERED_FORMATS.items()
    for odd, calls in CALLS.items()
    if len(calls) == 1 or not form.one_call_per_reply
]


def _calls(template: str, odd: str) -> list[Any]:
    """Calls with the ids that Kimi's templates generate; no other of these templates renders ids."""
    calls = make_calls(CALLS[odd])
    if RENDERED_FORMATS[template] is not KIMI_TEXT:
        return calls
    return [replace(call, id=f"functions.{call.name}:{number}") for number, call in enumerate(calls)]


# Qwen's templates print Python literals. JSON literals are distinguished from text more reliably.
JSON = {"True": "true", "False": "false", "None": "null"}
PYTHON = re.compile("(?<=>\n)(?:True|False|None)(?=\n<)")


@pytest.mark.parametrize(("template", "odd"), CASES)
def test_calls(template: str, odd: str) -> None:
    form, calls = RENDERED_FORMATS[template], _calls(template, odd)
    pieces = scan_text(render_added(template, QUESTION, [assistant_message(calls)]), form, DECLARED)
    theirs = "".join(piece.raw_text for piece in pieces if isinstance(piece, FoundCall))
    if form is QWEN:
        theirs = PYTHON.sub(lambda word: JSON[word[0]], theirs)
    assert strip_whitespace(theirs).removesuffix("<|eot_id|>") == strip_whitespace(form.render_calls(calls))


# What of these templates' results is not ours, and why.
NOT_THEIRS = {
    **dict.fromkeys(
        (models.LLAMA_31, models.LLAMA_32, models.LLAMA_33),
        "text is written as a JSON string, since Jinja takes it for a list; Meta's own prompts have it bare",
    ),
    models.GEMMA_4_OLD: "results are turns of a role `tool`, with nothing that tells whose they are",
    models.KIMI_K2: "the copy has a back slash and an n where the vendor's template has a line break",
}


@pytest.mark.parametrize("template", [template for template in RENDERED_FORMATS if template not in NOT_THEIRS])
def test_results(template: str) -> None:
    form, calls = (
        RENDERED_FORMATS[template],
        _calls(template, "several" if not RENDERED_FORMATS[template].one_call_per_reply else "one"),
    )
    results = results_of(calls)
    theirs = strip_whitespace(prompt(template, [*QUESTION, assistant_message(calls), *tool_messages(results)]))
    if form is KIMI_TEXT:
        # Each is a turn of its own there.
        assert all(strip_whitespace(form.render_results([result])) in theirs for result in results)
    else:
        assert strip_whitespace(form.render_results(results)) in theirs


@pytest.mark.parametrize("template", NOT_THEIRS)
def test_results_with_a_known_difference(template: str) -> None:
    """The documented differences exist; without them the texts are the same."""
    form, calls = RENDERED_FORMATS[template], _calls(template, "one")
    (result,) = results_of(calls)
    theirs, ours = (
        render_added(template, [*QUESTION, assistant_message(calls)], tool_messages([result])),
        form.render_results([result]),
    )
    assert strip_whitespace(ours) not in strip_whitespace(theirs)
    if form is LLAMA:
        assert re.search(r'ipython<\|end_header_id\|>\s*"(.*)"<\|eot_id\|>', theirs)
        assert strip_whitespace(ours) in strip_whitespace(theirs.replace('\\"', '"'))
    elif form is GEMMA:
        assert strip_whitespace(f"<|turn>tool\n{result.text}<turn|>") in strip_whitespace(theirs)
    else:
        assert ours in theirs.replace("\\n", "\n")


def _between(text: str, start: str, end: str) -> str:
    """From the last of these starts that has such an end behind it."""
    found = text[text.index(start) :]
    return found[: found.index(end) + len(end)]


WHOLE = (
    *(models.QWEN_25, models.QWEN_3, models.QWQ, models.GLM_46, models.GLM_47, models.MINIMAX_M2),
    *(models.LLAMA_31, models.LLAMA_32, models.LLAMA_33),
    *(models.GEMMA_4, models.DEVSTRAL, models.MINISTRAL_3),
)
"""Templates whose declarations are ours to the last word."""


def options_of(template: str) -> dict[str, Any]:
    """Template options: Llama's would put tools before the first user text."""
    return {"tools_in_user_message": False} if RENDERED_FORMATS[template] is LLAMA else {}


@pytest.mark.parametrize("template", WHOLE)
def test_declarations(template: str) -> None:
    theirs = prompt(template, QUESTION, TOOLS, **options_of(template))
    assert strip_whitespace(RENDERED_FORMATS[template].render_tools(DECLARATIONS)) in strip_whitespace(theirs)


PARTS = {
    "Qwen3-Coder's list": (models.QWEN_CODER, "<tools>", "</tools>"),
    "Qwen 3.5's example": (models.QWEN_35, "<tool_call>", "</tool_call>"),
    "Hermes' example": (models.HERMES_3, "<tool_call>\n", "</tool_call>"),
    "Kimi's list": (models.KIMI_K2, "[{", "}]"),
}


@pytest.mark.parametrize(("template", "start", "end"), PARTS.values(), ids=PARTS)
def test_declarations_with_a_free_text(template: str, start: str, end: str) -> None:
    part = _between(prompt(template, QUESTION, TOOLS), start, end)
    ours = RENDERED_FORMATS[template].render_tools(DECLARATIONS).replace("<args-json-object>", "<args-dict>")
    assert strip_whitespace(part) in strip_whitespace(ours)


@pytest.mark.parametrize("template", [models.DEEPSEEK_31])
def test_a_template_that_declares_nothing(template: str) -> None:
    """V3.1's leaves the declarations to the system text, so no template defines their layout."""
    assert prompt(template, QUESTION, TOOLS) == prompt(template, QUESTION)
    called = DEEPSEEK_TEXT.render_calls(make_calls([("tool_call_name", {})]))
    assert called.replace("{}", "tool_call_arguments") in DEEPSEEK_TEXT.render_tools(DECLARATIONS)
