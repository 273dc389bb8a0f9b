"""A conversation rendered as text gives the prompt that the model's own template renders for the structured one.

`segue.convert(…, tool_format=…)` makes plain messages; the model's template is run on them, and on the structured
history with its tools. The prompts are the same but for white space and for the differences that are named here: each
is a rewriting of the template's prompt with its reason, and one that changes nothing fails.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from msgspec import Struct

import segue
from segue.canonical.blocks import ToolCall
from segue.wire.text.llama import LLAMA
from segue.wire.text.text_format import TextFormat
from tests.templates import models
from tests.templates.engine import prompt
from tests.templates.histories import (
    CALLS,
    DECLARATIONS,
    QUESTION,
    TOOLS,
    Messages,
    assistant_message,
    make_calls,
    make_id,
    results_of,
    strip_whitespace,
    tool_messages,
)
from tests.templates.test_rendering import RENDERED_FORMATS, options_of

_QUESTION_TEXT = str(QUESTION[1]["content"])


class Difference(Struct, frozen=True):
    """Why the template's prompt differs, and how it is rewritten to ours."""

    why: str
    rewrite: Callable[[str], str]


def _replace(old: str, new: str) -> Callable[[str], str]:
    return lambda text: text.replace(old, new)


def _substitute(pattern: str, new: str) -> Callable[[str], str]:
    return lambda text: re.sub(pattern, new, text, flags=re.DOTALL)


_ROLE = "a server without tools has no role for results: a human tells them"


def _role(old: str, new: str) -> Difference:
    return Difference(_ROLE, _replace(old, new))


_QWEN = (
    Difference(
        "Python's words are printed; JSON's are told from text more surely", _substitute(r"(?<=>\n)True(?=\n<)", "true")
    ),
)
_LLAMA = (
    _role("ipython<|end_header_id|>", "user<|end_header_id|>"),
    Difference(
        "text is written as a JSON string, since Jinja takes it for a list",
        lambda text: re.sub(r'"(?:\{\\"degrees.*?\})"', lambda found: json.loads(found[0]), text),
    ),
)
_KIMI = (
    Difference(
        _ROLE, _substitute(r"<\|im_system\|>\w+<\|im_middle\|>## Return", "<|im_user|>user<|im_middle|>## Return")
    ),
    Difference(
        "each result is a turn of its own; turns of one speaker would follow one another here",
        _substitute(
            r"<\|im_end\|><\|im_user\|>user<\|im_middle\|>## Return of functions.look:1",
            "## Return of functions.look:1",
        ),
    ),
)
_MISTRAL = (
    Difference(_ROLE, _substitute(r"((?:\[TOOL_RESULTS\](?:(?!\[/).)*\[/TOOL_RESULTS\])+)", r"[INST]\1[/INST]")),
)
DIFFERENCES: dict[str, tuple[Difference, ...]] = {
    **dict.fromkeys((models.QWEN_25, models.QWEN_3, models.QWQ), ()),
    **dict.fromkeys((models.HERMES_2, models.HERMES_3), (_role("<|im_start|>tool\n", "<|im_start|>user\n"),)),
    **dict.fromkeys((models.QWEN_CODER, models.QWEN_35), _QWEN),
    **dict.fromkeys((models.GLM_46, models.GLM_47), (_role("<|observation|>", "<|user|>"),)),
    models.MINIMAX_M2: (_role("]~b]tool\n", "]~b]user\n"),),
    **dict.fromkeys((models.LLAMA_31, models.LLAMA_32, models.LLAMA_33), _LLAMA),
    models.GEMMA_4: (
        Difference(_ROLE, _replace("<tool_call|><|tool_response>", "<tool_call|><turn|><|turn>user<|tool_response>")),
        Difference(
            "the model's turn goes on behind results; here it begins anew",
            _substitute(r"<tool_response\|>(?!<\|tool_response>)", "<tool_response|><turn|><|turn>model"),
        ),
    ),
    models.DEEPSEEK_31: (
        Difference(_ROLE, _substitute("(?<!<｜tool▁output▁end｜>)(?=<｜tool▁output▁begin｜>)", "<｜User｜>")),
        Difference(
            "the model's turn goes on behind results; here it begins anew, and that with a thought",
            _substitute(
                "<｜tool▁output▁end｜>(?!<｜tool▁output▁begin｜>)",
                "<｜tool▁output▁end｜><｜Assistant｜><think></think>",
            ),
        ),
    ),
    models.KIMI_K2: (
        *_KIMI,
        Difference(
            "TPL-09: this copy numbers the calls of each message from 0",
            _replace("functions.look:0", "functions.look:2"),
        ),
        Difference(
            "the copy has a back slash and an n for a line break", _substitute(r"(## Return of \S+?:\d)\\n", r"\1 ")
        ),
    ),
    **dict.fromkeys((models.KIMI_K2_NEW, models.KIMI_THINKING), _KIMI),
    **dict.fromkeys((models.DEVSTRAL, models.MINISTRAL_3), _MISTRAL),
}

# The system turn holds the same, but in another place or wording; test_rendering checks the declarations.
OTHER_HEADS = {
    **dict.fromkeys((models.HERMES_2, models.HERMES_3), "the template has its own system turn, with or without tools"),
    **dict.fromkeys((models.QWEN_CODER, models.QWEN_35), "the words are ours; Qwen 3.5 lists JSON"),
    **dict.fromkeys((models.GLM_46, models.GLM_47), "the tools have a system turn of their own before the first one"),
    **dict.fromkeys((models.LLAMA_31, models.LLAMA_32, models.LLAMA_33), "tools stand before what the system says"),
    models.DEEPSEEK_31: "the template declares no tools at all",
    **dict.fromkeys(
        (models.KIMI_K2, models.KIMI_K2_NEW, models.KIMI_THINKING), "tools have a turn that is called for them"
    ),
    **dict.fromkeys((models.DEVSTRAL, models.MINISTRAL_3), "tools stand behind the system turn, not in it"),
}

# The template drops text beside calls, or puts it after the results.
NO_TEXT = {models.HERMES_2, models.HERMES_3, models.LLAMA_31, models.LLAMA_32, models.LLAMA_33, models.GEMMA_4}


def _history(form: TextFormat, text: str) -> Messages:
    """Two rounds of calls; the first has one call where a reply may have only one."""
    first = make_calls(CALLS["several" if form is not LLAMA else "one"])
    second = [ToolCall(name, arguments, make_id(2)) for name, arguments in CALLS["quotes and lines"][:1]]
    return [
        *QUESTION,
        assistant_message(first, text),
        *tool_messages(results_of(first)),
        assistant_message(second, text),
        *tool_messages(results_of(second)),
        {"role": "assistant", "content": "It is cold."},
        {"role": "user", "content": "And tomorrow?"},
    ]


def _with_kimis_ids(messages: Messages) -> Messages:
    """The ids that Kimi generates, as its API has them in histories."""
    calls = [call for message in messages for call in message.get("tool_calls", ())]
    ids = {call["id"]: f"functions.{call['function']['name']}:{number}" for number, call in enumerate(calls)}
    text = json.dumps(messages)
    for old, new in ids.items():
        text = text.replace(f'"{old}"', f'"{new}"')
    return json.loads(text)


def _body(messages: Messages) -> dict[str, Any]:
    """The history as the Chat API has it: arguments are text there, and results have no names."""
    body = json.loads(json.dumps({"model": "some-model", "messages": messages, "tools": TOOLS}))
    for message in body["messages"]:
        if message["role"] == "tool":
            del message["name"]
        for call in message.get("tool_calls", ()):
            call["function"]["arguments"] = json.dumps(call["function"]["arguments"])
    return body


def _prompts(template: str, text: str) -> tuple[str, str]:
    form = RENDERED_FORMATS[template]
    messages = _history(form, text)
    if form.name == "kimi-text":
        messages = _with_kimis_ids(messages)
    converted = segue.convert(
        _body(messages), source="openai-chat", target="openai-chat", tool_format=form.name, model=template
    ).body
    assert "tools" not in converted
    theirs = prompt(template, messages, TOOLS, add_generation_prompt=True, **options_of(template))
    return theirs, prompt(template, converted["messages"], add_generation_prompt=True)


CASES = [
    (template, words)
    for template in DIFFERENCES
    for words in ("", "I have a look.")
    if not words or template not in NO_TEXT
]


@pytest.mark.parametrize(("template", "text"), CASES)
def test_a_conversation(template: str, text: str) -> None:
    theirs, ours = _prompts(template, text)
    their_head, _, theirs = theirs.partition(_QUESTION_TEXT)
    our_head, _, ours = ours.partition(_QUESTION_TEXT)
    for difference in DIFFERENCES[template]:
        rewritten = difference.rewrite(theirs)
        assert rewritten != theirs, f"no such difference: {difference.why}"
        theirs = rewritten
    assert strip_whitespace(ours) == strip_whitespace(theirs)
    assert (strip_whitespace(our_head) != strip_whitespace(their_head)) == (template in OTHER_HEADS)
    assert "Be brief." in our_head
    assert strip_whitespace(RENDERED_FORMATS[template].render_tools(DECLARATIONS)) in strip_whitespace(our_head)


def test_every_format_is_compared() -> None:
    """Except a copy of Gemma 4's that renders results without names (test_rendering)."""
    assert RENDERED_FORMATS.keys() - DIFFERENCES.keys() == {models.GEMMA_4_OLD}
