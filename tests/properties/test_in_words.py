"""Tools told in words: for every text format and target, nothing is refused, lost or mixed up; and calls come back."""

from __future__ import annotations

import json
from itertools import product
from typing import Any

import pytest
from hypothesis import assume, given, note
from hypothesis import strategies as st

import segue
from segue.canonical.blocks import Text, ToolCall
from segue.streaming import reply_body
from segue.wire.text.registry import FORMATS
from tests.budget import examples

from . import checks
from .generators import source_models, stories
from .readers import read
from .spell import spell
from .story import WORD

NAMES = tuple(form.name for form in FORMATS)
CASES = tuple(product(NAMES, checks.TARGETS))
EVERY_CASE = pytest.mark.parametrize(("form", "target"), CASES)


@EVERY_CASE
@examples(10, items=len(CASES))
@given(data=st.data())
def test_a_story_in_words_keeps_its_sense(form: str, target: str, data: st.DataObject) -> None:
    source = data.draw(st.sampled_from((target, *checks.TARGETS)))
    story = data.draw(stories())
    assume(source != "gemini" or not story.blurs_when_joined())
    model = data.draw(st.sampled_from((None, *source_models(story, source))))
    body = spell(story, source, model)
    note(f"body: {checks.dumped(body)}")
    out = segue.convert(body, source=source, target=target, tool_format=form)
    note(f"made: {checks.dumped(out.body)}")
    verdict = segue.check(out.body, target, model=checks.model_of(body) if source == target else None)
    assert verdict, str(verdict)
    reading = read(out.body, target)
    assert not reading.interactions
    assert not reading.surplus
    said = checks.dumped(out.body)
    losers = {result.call for result in story.losers}
    for call, result in story.answers.items():
        assert call in said, f"the call {call} is lost"
        if result is not None and call not in losers and (word := _word(result)):
            assert word in said, f"the result of {call} is lost"
            assert said.index(call) < said.index(word), f"the result of {call} stands before it"


def _word(result: Any) -> str | None:
    found = WORD.search(result.text) if isinstance(result.text, str) else None
    return found[0] if found else None


def body_with_tools(api: str) -> dict[str, Any]:
    chat = {
        "model": "m",
        "messages": [{"role": "user", "content": "go"}],
        "tools": [
            {
                "type": "function",
                "function": {
                    "name": name,
                    "parameters": {
                        "type": "object",
                        "properties": {"text": {"type": "string"}, "n": {"type": "integer"}, "list": {"type": "array"}},
                    },
                },
            }
            for name in ("read_file", "search")
        ],
    }
    return segue.convert(chat, source="openai-chat", target=api).body


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
@given(calls=CALLS, words=st.sampled_from(["", "I look.", "a < b: "]))
def test_calls_in_words_come_back(form: str, target: str, calls: list[tuple[str, Any]], words: str) -> None:
    """What the format's own renderer writes, the model writes: it comes back as calls."""
    style = next(one for one in FORMATS if one.name == form)
    given = calls[:1] if style.one_call else calls
    made = [
        ToolCall(name, arguments, id=f"functions.{name}:{place}" if form == "kimi-text" else f"abcdefg{place:02}")
        for place, (name, arguments) in enumerate(given)
    ]
    said = f"{words}\n{style.render_calls(made)}" if words else style.render_calls(made)
    note(said)
    asked = segue.convert(body_with_tools("openai-chat"), source="openai-chat", target=target, tool_format=form)
    reply = asked.reply(reply_body(segue.Reply((Text(said),), id="r1", model="m"), target)[0])
    found = reply["choices"][0]["message"].get("tool_calls") or []
    assert [(call["function"]["name"], json.loads(call["function"]["arguments"])) for call in found] == given
    assert reply["choices"][0]["finish_reason"] == "tool_calls"
    assert (reply["choices"][0]["message"]["content"] or "").strip() == words.strip()
