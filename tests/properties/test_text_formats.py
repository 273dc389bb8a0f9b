"""Tools as prompt text: for every text format and target the body is valid and complete, and calls are parsed back."""

from __future__ import annotations

import json
from itertools import product
from typing import Any

import pytest
from hypothesis import assume, given, note
from hypothesis import strategies as st

import segue
from segue._stream import render_reply_body
from segue.canonical.blocks import Text, ToolCall
from segue.wire.text.registry import FORMATS
from tests.bodies import chat
from tests.budget import examples
from tests.properties import checks
from tests.properties.bodies import build_body
from tests.properties.generators import scenarios, source_models
from tests.properties.readers import read
from tests.properties.scenario import MARKER

NAMES = tuple(form.name for form in FORMATS)
CASES = tuple(product(NAMES, checks.TARGETS))
EVERY_CASE = pytest.mark.parametrize(("form", "target"), CASES)


@EVERY_CASE
@examples(10, items=len(CASES))
@given(data=st.data())
def test_scenario_as_text_keeps_its_content(form: str, target: str, data: st.DataObject) -> None:
    source = data.draw(st.sampled_from((target, *checks.TARGETS)))
    scenario = data.draw(scenarios())
    assume(source != "gemini" or not scenario.is_ambiguous_when_joined())
    model = data.draw(st.sampled_from((None, *source_models(scenario, source))))
    body = build_body(scenario, source, model)
    note(f"body: {checks.dump_json(body)}")
    out = segue.convert(body, source=source, target=target, tool_format=form)
    note(f"made: {checks.dump_json(out.body)}")
    verdict = segue.check(out.body, target, model=checks.model_of(body) if source == target else None)
    assert verdict, str(verdict)
    reading = read(out.body, target)
    assert not reading.interactions
    assert not reading.surplus
    body_text = checks.dump_json(out.body)
    losers = {result.call for result in scenario.discarded_results}
    for call, result in scenario.results.items():
        assert call in body_text, f"the call {call} is lost"
        if result is not None and call not in losers and (marker := _find_marker(result)):
            assert marker in body_text, f"the result of {call} is lost"
            assert body_text.index(call) < body_text.index(marker), f"the result of {call} stands before it"


def _find_marker(result: Any) -> str | None:
    found = MARKER.search(result.text) if isinstance(result.text, str) else None
    return found[0] if found else None


def body_with_tools(api: str) -> dict[str, Any]:
    properties = {"text": {"type": "string"}, "n": {"type": "integer"}, "list": {"type": "array"}}
    tools = [
        chat.tool(name, parameters={"type": "object", "properties": properties}) for name in ("read_file", "search")
    ]
    return segue.convert(chat.body(chat.user("go"), model="m", tools=tools), source="openai-chat", target=api).body


ARGUMENTS = st.fixed_dictionaries(
    {},
    optional={
        "text": st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=20)
        | st.sampled_from(["10", "a < b", "{}", '"', "it's", "line\nbreak", "true", "</x>", "[TOOL", "```"]),
        "n": st.integers(-1000, 1000),
        "list": st.lists(st.integers(0, 9) | st.sampled_from(["a", "b<"]), max_size=3),
    },
)
CALLS = st.lists(st.tuples(st.sampled_from(["read_file", "search"]), ARGUMENTS), min_size=1, max_size=3)


@EVERY_CASE
@examples(5, items=len(CASES))
@given(calls=CALLS, text=st.sampled_from(["", "I look.", "a < b: "]))
def test_calls_in_text_are_parsed_back(form: str, target: str, calls: list[tuple[str, Any]], text: str) -> None:
    """Calls in the model's text, as the format's renderer writes them, are parsed as calls."""
    style = next(one for one in FORMATS if one.name == form)
    given = calls[:1] if style.one_call_per_reply else calls
    made = [
        ToolCall(name, arguments, id=f"functions.{name}:{place}" if form == "kimi-text" else f"abcdefg{place:02}")
        for place, (name, arguments) in enumerate(given)
    ]
    body_text = f"{text}\n{style.render_calls(made)}" if text else style.render_calls(made)
    note(body_text)
    converted = segue.convert(body_with_tools("openai-chat"), source="openai-chat", target=target, tool_format=form)
    reply = converted.reply(render_reply_body(segue.Reply((Text(body_text),), id="r1", model="m"), target)[0])
    found = reply["choices"][0]["message"].get("tool_calls") or []
    assert [(call["function"]["name"], json.loads(call["function"]["arguments"])) for call in found] == given
    assert reply["choices"][0]["finish_reason"] == "tool_calls"
    assert (reply["choices"][0]["message"]["content"] or "").strip() == text.strip()
