"""TPL-01 to TPL-16: each rule shown with its template, and that segue's output complies.

`served` is a server's preparation of a segue body before it runs the template: arguments are parsed (COMP-14, COMP-17),
and parts of text are joined for templates that take nothing but text.
"""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from jinja2.exceptions import TemplateError, UndefinedError

import segue
from segue.canonical.blocks import ToolCall
from segue.wire.text.regions import FoundCall
from segue.wire.text.scan import scan_text
from tests.templates import models
from tests.templates.engine import prompt
from tests.templates.histories import (
    CALLS,
    DECLARED,
    QUESTION,
    TOOLS,
    Messages,
    assistant_message,
    make_calls,
    render_added,
    results_of,
    tool_messages,
)

TWO = make_calls(CALLS["several"])
ONE = TWO[:1]
ANSWERED: Messages = [*QUESTION, assistant_message(TWO), *tool_messages(results_of(TWO))]
SWAPPED: Messages = [*QUESTION, assistant_message(TWO), *tool_messages(results_of(TWO))[::-1]]
ORPHAN: Messages = [*QUESTION, *tool_messages(results_of(ONE))]
THANKS: Messages = [{"role": "user", "content": "Thanks."}]


def as_text(message: dict[str, Any]) -> dict[str, Any]:
    """A message whose arguments are text, as the Chat API has them."""
    calls = [
        {**call, "function": {**call["function"], "arguments": json.dumps(call["function"]["arguments"])}}
        for call in message["tool_calls"]
    ]
    return {**message, "tool_calls": calls}


def served(messages: Messages, *, model: str, **how: Any) -> Messages:
    body = {
        "model": "some-model",
        "messages": [as_text(message) if "tool_calls" in message else message for message in messages],
        "tools": TOOLS,
    }
    rendered = segue.convert(body, source="openai-chat", target="openai-chat", model=model, **how).body["messages"]
    for message in rendered:
        if isinstance(message["content"], list):
            message["content"] = "\n".join(part["text"] for part in message["content"])
        for call in message.get("tool_calls", ()):
            call["function"]["arguments"] = json.loads(call["function"]["arguments"])
    return rendered


def by_llama_cpp(messages: Messages, *, model: str) -> Messages:
    return served(messages, model=model, profile="llama.cpp")


def found(text: str, template: str) -> list[tuple[str, Any]]:
    pieces = scan_text(text, models.FORMAT_OF[template], DECLARED)
    return [(piece.name, piece.arguments) for piece in pieces if isinstance(piece, FoundCall)]


@pytest.mark.parametrize("template", [models.QWEN_25, models.QWEN_3, models.QWQ, models.HERMES_2, models.HERMES_3])
def test_tpl_01_json_between_tags_without_ids(template: str) -> None:
    rendered = render_added(template, QUESTION, ANSWERED[2:])
    assert '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Paris", "days": 3}}\n</tool_call>' in rendered
    assert "<tool_response>\nIt is\nblue.\n</tool_response>" in rendered
    assert not any(call.id in rendered for call in TWO)
    header = "tool" if template in (models.HERMES_2, models.HERMES_3) else "user"
    assert re.search(rf"<\|im_start\|>{header}\s+<tool_response>", rendered)


@pytest.mark.parametrize("template", [models.QWEN_25, models.QWEN_3, models.QWQ, models.HERMES_2, models.HERMES_3])
def test_tpl_01_arguments_as_text_are_read_as_well(template: str) -> None:
    """Qwen 2.5's template encodes them twice, which is parsed as well."""
    rendered = render_added(template, QUESTION, [as_text(assistant_message(TWO))])
    assert ("\\" in rendered) == (template in (models.QWEN_25, models.QWQ))
    assert found(rendered, template) == CALLS["several"]


@pytest.mark.parametrize("template", [models.LLAMA_31, models.LLAMA_32, models.LLAMA_33])
def test_tpl_02_one_call_a_message(template: str) -> None:
    with pytest.raises(TemplateError, match="only supports single tool-calls"):
        prompt(template, ANSWERED)
    in_words = prompt(template, served(ANSWERED, model="some-model", tool_format="llama"))
    natively = prompt(template, by_llama_cpp(ANSWERED, model="Llama-3.1-8B-Instruct"), TOOLS)
    for rendered in (in_words, natively):
        behind = rendered[rendered.index("What is it like?") :]
        assert found(behind, template) == CALLS["several"]
        assert re.search("get_weather.*degrees.*look.*blue", behind, re.DOTALL)
    assert "ipython<|end_header_id|>" in natively


def test_tpl_02_the_models_own_tools_have_a_tag() -> None:
    call = [ToolCall("brave_search", {"query": "snow"}, "callabc00")]
    rendered = render_added(models.LLAMA_31, QUESTION, [assistant_message(call)], builtin_tools=["brave_search"])
    assert '<|python_tag|>brave_search.call(query="snow")<|eom_id|>' in rendered
    assert found(rendered, models.LLAMA_31) == [("brave_search", {"query": "snow"})]


def test_tpl_02_arguments_as_text_are_encoded_twice() -> None:
    rendered = render_added(models.LLAMA_31, QUESTION, [as_text(assistant_message(ONE))])
    assert '"parameters": "{\\"city\\"' in rendered
    assert found(rendered, models.LLAMA_31) == CALLS["several"][:1]


@pytest.mark.parametrize("template", [models.QWEN_CODER, models.QWEN_35])
def test_tpl_03_arguments_must_be_a_mapping(template: str) -> None:
    with pytest.raises(TypeError, match="Can only get item pairs from a mapping"):
        prompt(template, [*QUESTION, as_text(assistant_message(ONE))])
    assert "<function=get_weather>\n<parameter=city>\nParis\n</parameter>\n" in prompt(
        template, [*QUESTION, assistant_message(ONE)]
    )
    # As text there is no value that could have a wrong type.
    text_prompt = prompt(template, served(ANSWERED, model="some-model", tool_format="xml"))
    assert "<function=get_weather>\n<parameter=city>\nParis\n</parameter>\n" in text_prompt


def test_tpl_04_user_message_is_required_and_system_comes_first() -> None:
    silent = [message for message in ANSWERED if message["role"] != "user"]
    later = [*QUESTION, {"role": "assistant", "content": "Well."}, QUESTION[0], *THANKS]
    with pytest.raises(TemplateError, match="No user query found"):
        prompt(models.QWEN_35, silent)
    with pytest.raises(TemplateError, match="System message must be at the beginning"):
        prompt(models.QWEN_35, later)
    for messages in (silent, later):
        assert prompt(models.QWEN_35, by_llama_cpp(messages, model="Qwen3.5-4B"), TOOLS)
    text_prompt = served(later, model="Qwen3.5-4B", profile="llama.cpp", tool_format="xml")
    assert "Be brief." in prompt(models.QWEN_35, text_prompt).partition("Well.")[2]


def test_tpl_05_glm_takes_no_text_for_arguments() -> None:
    with pytest.raises(TemplateError, match="Invalid tool call arguments passed"):
        prompt(models.GLM_46, [*QUESTION, as_text(assistant_message(ONE))])
    assert "<|observation|>\n<tool_response>\n" in prompt(models.GLM_46, ANSWERED)


@pytest.mark.parametrize(("template", "model"), [(models.GLM_46, "GLM-4.6"), (models.MINIMAX_M2, "MiniMax-M2")])
def test_tpl_05_and_06_content_that_is_null_is_printed(template: str, model: str) -> None:
    silent = [{**message, "content": None} if "tool_calls" in message else message for message in ANSWERED]
    assert "None" in prompt(template, silent)
    assert "None" not in prompt(template, by_llama_cpp(silent, model=model), TOOLS)
    assert "None" not in prompt(template, served(silent, model=model, tool_format="xml"))


@pytest.mark.parametrize("template", [models.MINIMAX_M2, models.MINIMAX_M3])
def test_tpl_06_minimax_takes_no_orphan_and_no_text_for_arguments(template: str) -> None:
    with pytest.raises(TemplateError, match="no previous assistant message with a tool call"):
        prompt(template, ORPHAN)
    with pytest.raises(UndefinedError, match="items"):
        prompt(template, [*QUESTION, as_text(assistant_message(ONE))])
    for rendered in (by_llama_cpp(ORPHAN, model=template), served(ORPHAN, model=template, tool_format="xml")):
        assert "degrees" in prompt(template, rendered)


def test_tpl_06_m3_has_tags_of_its_own() -> None:
    """The rule's tags are those of M2."""
    assert '<minimax:tool_call>\n<invoke name="get_weather">\n<parameter name="city">Paris' in prompt(
        models.MINIMAX_M2, ANSWERED
    )
    assert ']<]minimax[>[<invoke name="get_weather">]<]minimax[>[<city>Paris]<]minimax[>[</city>' in prompt(
        models.MINIMAX_M3, ANSWERED
    )


def test_tpl_07_the_names_of_r1_and_of_v31() -> None:
    fenced = render_added(models.DEEPSEEK_R1, QUESTION, [assistant_message(ONE)])
    assert (
        '<｜tool▁call▁begin｜>function<｜tool▁sep｜>get_weather\n```json\n{"city": "Paris", "days": 3}\n```' in fenced
    )
    bare = render_added(models.DEEPSEEK_31, QUESTION, [assistant_message(ONE)])
    assert '<｜tool▁call▁begin｜>get_weather<｜tool▁sep｜>{"city": "Paris", "days": 3}<｜tool▁call▁end｜>' in bare


def test_tpl_07_v31_encodes_text_twice() -> None:
    """So it needs arguments as objects. Its double encoding is parsed as well."""
    rendered = render_added(models.DEEPSEEK_31, QUESTION, [as_text(assistant_message(ONE))])
    assert '<｜tool▁sep｜>"{\\"city\\"' in rendered
    assert found(rendered, models.DEEPSEEK_31) == CALLS["several"][:1]
    assert '<｜tool▁sep｜>{"city"' in prompt(
        models.DEEPSEEK_31, served(ANSWERED, model="deepseek-v3.1", tool_format="deepseek-text")
    )


def test_tpl_08_elements_and_where_results_stand() -> None:
    older, newer = prompt(models.DEEPSEEK_32, ANSWERED), prompt(models.DEEPSEEK_4, ANSWERED)
    for rendered in (older, newer):
        assert '<｜DSML｜invoke name="get_weather">\n<｜DSML｜parameter name="city" string="true">Paris<' in rendered
        assert '<｜DSML｜parameter name="days" string="false">3</｜DSML｜parameter>' in rendered
    assert "<｜DSML｜function_calls>" in older
    assert '<function_results>\n<result>{"degrees": 4}</result>' in older
    assert "<｜DSML｜tool_calls>" in newer
    assert '<｜User｜><tool_result>{"degrees": 4}</tool_result>' in newer


def test_tpl_09_which_copies_of_kimi_k2_are_patched() -> None:
    """Moonshot's own template writes the id of the message; none of these copies does.

    The newer two number all calls of the conversation, the older one those of each message. Under ids that count as
    Moonshot's own API does, the newer ones write what Moonshot's would: so segue counts.
    """
    history: Messages = [*ANSWERED, assistant_message(ONE), *tool_messages(results_of(ONE))]
    for template in (models.KIMI_K2_NEW, models.KIMI_THINKING):
        rendered = prompt(template, history)
        assert re.findall(r"begin\|>(functions\S+?)<", rendered) == [
            "functions.get_weather:0",
            "functions.look:1",
            "functions.get_weather:2",
        ]
        assert re.findall("## Return of (.*)", rendered) == re.findall(r"begin\|>(functions\S+?)<", rendered)
        nameless = [{key: value for key, value in message.items() if key != "name"} for message in ORPHAN]
        assert "## Return of functions.unknown:0" in prompt(template, nameless)
    rendered = prompt(models.KIMI_K2, history)
    assert re.findall(r"begin\|>(functions\S+?)<", rendered) == [
        "functions.get_weather:0",
        "functions.look:1",
        "functions.get_weather:0",
    ]
    assert "## Return of callabc00" in rendered

    ours = by_llama_cpp(history, model="Kimi-K2-Instruct")
    ids = [call["id"] for message in ours for call in message.get("tool_calls", ())]
    assert ids == re.findall(r"begin\|>(functions\S+?)<", prompt(models.KIMI_K2_NEW, ours))
    in_words = prompt(models.KIMI_K2_NEW, served(history, model="Kimi-K2-Instruct", tool_format="kimi-text"))
    in_words = in_words.partition("What is it like?")[2]
    assert re.findall(r"begin\|>(functions\S+?)<", in_words) == ids
    assert re.findall("## Return of (functions.*?:[0-9]+)\n", in_words) == ids


def test_tpl_10_kimi_k3_sorts_results_by_their_ids() -> None:
    history: Messages = [*SWAPPED, assistant_message(ONE), *tool_messages(results_of(ONE))]
    rendered = prompt(models.KIMI_K3, history)
    assert re.findall(r'call tool="(\w+)" index="(\d)"', rendered) == [
        ("get_weather", "1"),
        ("look", "2"),
        ("get_weather", "1"),
    ]
    results = re.findall(r'role="tool" tool="(\w+)" index="(\d)"<\|sep\|>(\S+)', rendered)
    assert [(name, index) for name, index, _ in results] == [("get_weather", "1"), ("look", "2"), ("get_weather", "1")]
    assert results[0][2].startswith('{"degrees"')


def test_tpl_11_gemma_4_has_results_in_the_models_turn() -> None:
    rendered = prompt(models.GEMMA_4, ANSWERED)
    assert '<|tool_call>call:get_weather{city:<|"|>Paris<|"|>,days:3}<tool_call|>' in rendered
    assert "<tool_call|><|tool_response>response:get_weather" in rendered


def test_tpl_11_gemma_4_drops_orphans_and_spoils_text() -> None:
    assert "degrees" not in prompt(models.GEMMA_4, ORPHAN)
    for rendered in (
        by_llama_cpp(ORPHAN, model="gemma-4-31b-it"),
        served(ORPHAN, model="gemma-4", tool_format="gemma"),
    ):
        assert "degrees" in prompt(models.GEMMA_4, rendered)
    spoilt = render_added(models.GEMMA_4, QUESTION, [as_text(assistant_message(TWO))])
    assert 'call:get_weather{{"city": "Paris"' in spoilt
    assert found(spoilt, models.GEMMA_4) != CALLS["several"]
    text_prompt = prompt(models.GEMMA_4, served(ANSWERED, model="gemma-4", tool_format="gemma"))
    assert found(text_prompt.partition("What is it like?")[2], models.GEMMA_4) == CALLS["several"]


def test_tpl_11_gemma_2_has_no_system() -> None:
    """segue has no profile for this template: llama.cpp's server puts system text before the user's by itself."""
    with pytest.raises(TemplateError, match="System role not supported"):
        prompt(models.GEMMA_2, QUESTION)
    folded = [{"role": "user", "content": f"{QUESTION[0]['content']}\n\n{QUESTION[1]['content']}"}]
    assert prompt(models.GEMMA_2, folded)


def test_tpl_12_gpt_oss_writes_the_first_call_alone() -> None:
    """The other call is lost, and its result is under the first one's name."""
    rendered = prompt(models.GPT_OSS, ANSWERED)
    assert "to=functions.get_weather" in rendered
    assert "to=functions.look" not in rendered
    assert rendered.count("<|start|>functions.get_weather to=assistant") == 2
    rendered = prompt(models.GPT_OSS, by_llama_cpp(ANSWERED, model="openai/gpt-oss-120b"), TOOLS)
    assert re.search(
        "to=functions.get_weather.*<.start.>functions.get_weather to=assistant.*degrees.*"
        "to=functions.look.*<.start.>functions.look to=assistant.*blue",
        rendered,
        re.DOTALL,
    )


def test_tpl_13_gpt_oss_accepts_text_or_reasoning_beside_calls() -> None:
    both = {**assistant_message(ONE, "I have a look."), "thinking": "It is winter."}
    with pytest.raises(TemplateError, match="Cannot pass both content and thinking"):
        prompt(models.GPT_OSS, [*QUESTION, both])
    silent = {**assistant_message(ONE), "content": None}
    with pytest.raises(TypeError, match="NoneType"):
        prompt(models.GPT_OSS, [*QUESTION, silent])
    thought = {**assistant_message(ONE, "I have a look."), "reasoning_content": "It is winter."}
    for message in (thought, silent):
        rendered = by_llama_cpp([*QUESTION, message, *tool_messages(results_of(ONE))], model="gpt-oss-120b")
        for part in rendered:
            # So the server hands reasoning on.
            if (thinking := part.pop("reasoning_content", None)) is not None:
                part["thinking"] = thinking
        whole = prompt(models.GPT_OSS, rendered, TOOLS)
        assert "to=functions.get_weather" in whole
        assert ("I have a look." in whole) == ("It is winter." in whole) == (message is thought)


MISTRALS = {
    models.NEMO: "Mistral-Nemo-Instruct-2407",
    models.SMALL_32: "Mistral-Small-3.2-24B-Instruct-2506",
    models.DEVSTRAL: "Devstral-Small-2507",
    models.MINISTRAL_3: "Ministral-3-14B-Reasoning-2512",
}


@pytest.mark.parametrize("template", MISTRALS)
def test_tpl_14_ids_of_nine_characters(template: str) -> None:
    other: Messages = json.loads(json.dumps(ANSWERED).replace("callabc0", "call_a"))
    if template in (models.NEMO, models.SMALL_32):
        with pytest.raises(TemplateError, match="alphanumeric strings with length 9"):
            prompt(template, other)
        assert "callabc00" in prompt(template, ANSWERED)
    else:
        assert "call_a" not in prompt(template, other)
    ours = by_llama_cpp(other, model=MISTRALS[template])
    ids = [call["id"] for message in ours for call in message.get("tool_calls", ())]
    assert all(re.fullmatch("[a-zA-Z0-9]{9}", one) for one in ids)
    assert found(prompt(template, ours), template) == CALLS["several"]
    assert "It is\nblue." in prompt(template, served(other, model=MISTRALS[template], tool_format="mistral-text"))


UNEVEN: dict[str, Messages] = {
    "two humans": [*QUESTION, *THANKS],
    "a human behind results": [*ANSWERED, *THANKS],
    "two replies": [*QUESTION, *[{"role": "assistant", "content": "Well."}] * 2, *THANKS],
    "a reply first": [{"role": "assistant", "content": "Well."}, *THANKS],
}


@pytest.mark.parametrize("uneven", UNEVEN)
@pytest.mark.parametrize("template", [template for template in MISTRALS if template != models.DEVSTRAL])
def test_tpl_15_turns_alternate(template: str, uneven: str) -> None:
    """Unsloth's copy of Devstral's template was patched not to mind."""
    with pytest.raises(TemplateError, match="roles must alternate"):
        prompt(template, UNEVEN[uneven])
    assert "Thanks." in prompt(template, by_llama_cpp(UNEVEN[uneven], model=MISTRALS[template]), TOOLS)


POSITIONAL = [
    *(models.GLM_46, models.MINIMAX_M2, models.DEEPSEEK_31, models.DEEPSEEK_32, models.HERMES_3),
    *(models.QWEN_25, models.QWEN_CODER, models.KIMI_K2_NEW, models.MINISTRAL_3),
]


@pytest.mark.parametrize("template", POSITIONAL)
def test_tpl_16_results_are_distinguished_by_order(template: str) -> None:
    assert prompt(template, SWAPPED).index("blue") < prompt(template, SWAPPED).index("degrees")
    form = models.FORMAT_OF[template]
    in_words = prompt(template, served(SWAPPED, model=template, tool_format=form.name))
    assert in_words.index("degrees") < in_words.index("blue")
    natively = prompt(template, by_llama_cpp(SWAPPED, model=template))
    assert natively.index("degrees") < natively.index("blue")


def test_tpl_16_gemma_4_names_what_it_reorders() -> None:
    """Names distinguish results, unless one tool was called twice."""
    twice = make_calls(CALLS["the same twice"])
    swapped: Messages = [*QUESTION, assistant_message(twice), *tool_messages(results_of(twice))[::-1]]
    assert prompt(models.GEMMA_4, swapped).index("blue") < prompt(models.GEMMA_4, swapped).index("degrees")
    in_words = prompt(models.GEMMA_4, served(swapped, model="gemma-4", tool_format="gemma"))
    assert in_words.index("degrees") < in_words.index("blue")
