"""Calls without the tags of their format, or with escaped ones: calls only where the tool is declared."""

from __future__ import annotations

from typing import Any

import pytest

import segue
from segue.canonical.request import Tool
from segue.wire.text.declared_tools import DeclaredTools
from segue.wire.text.gemma import GEMMA
from segue.wire.text.hermes import HERMES
from segue.wire.text.registry import detect_format
from segue.wire.text.scan import CallScanner
from segue.wire.text.text_format import TextFormat
from segue.wire.text.xml import XML
from tests.wire.text.parsing import calls, plain_text, read

SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
    "required": ["city"],
}
DECLARED = DeclaredTools([Tool("get_weather", parameters=SCHEMA), Tool("now", parameters={"type": "object"})])
W = '{"name": "get_weather", "arguments": {"city": "Paris"}}'
PARIS = ("get_weather", {"city": "Paris"})
NOW = ("now", {})

JSON_CALLS: dict[str, tuple[str, list[Any], str]] = {
    "bare": (W, [PARIS], ""),
    "bare, after text": (f"I look.\n\n  {W}\nThen more.", [PARIS], "I look.\n\n  \nThen more."),
    "bare, several": (f'{W}\n{{"name": "now", "arguments": {{}}}}', [PARIS, NOW], ""),
    "bare, a list": (f'[{W}, {{"name": "now", "parameters": {{}}}}]', [PARIS, NOW], ""),
    "bare, on several lines": (W.replace(" ", "\n  "), [PARIS], ""),
    "bare, as the API has it": (
        '{"id":"a","type": "function", "function": {"name": "get_weather", "arguments": "{\\"city\\": \\"Paris\\"}"}}',
        [PARIS],
        "",
    ),
    "bare, in Python's quotes": (W.replace('"', "'"), [PARIS], ""),
    "fenced as JSON": (f"```json\n{W}\n```", [PARIS], ""),
    "fenced as a tool call": (f"Sure:\n```tool_call\n{W}\n```\nDone.", [PARIS], "Sure:\n\nDone."),
    "fenced without a language": (f"```\n{W}\n```\n", [PARIS], "\n"),
    "fenced with tildes": (f"~~~~ json\n{W}\n~~~~~", [PARIS], ""),
    "fenced, several": (f'```json\n{W}\n{{"name": "now"}}\n```', [PARIS, NOW], ""),
    "fenced, a list": (f"```JSON\n[{W},\n{W}]\n```", [PARIS, PARIS], ""),
    "fenced twice": (f"```json\n{W}\n```\n\n```json\n{W}\n```", [PARIS, PARIS], "\n\n"),
    "fenced, with fences in a string": (
        '```json\n{"name": "get_weather", "arguments": {"city": "\\n```\\n"}}\n```',
        [("get_weather", {"city": "\n```\n"})],
        "",
    ),
    "fenced without an end": (f"```json\n{W}\n", [PARIS], ""),
    "after a fence that is none": (f'```json\n{{"a": 1}}\n```\n{W}', [PARIS], '```json\n{"a": 1}\n```\n'),
    "escaped tags": (f"&lt;tool_call&gt;\n{W.replace(chr(34), '&quot;')}\n&lt;/tool_call&gt;!", [PARIS], "!"),
}

JSON_TEXTS: dict[str, str] = {
    "an undeclared tool": W.replace("get_weather", "get_news"),
    "an undeclared tool, fenced": f"```json\n{W.replace('get_weather', 'get_news')}\n```",
    "a package": '```json\n{"name": "my-package", "version": "1.0"}\n```\n',
    "any object": 'See:\n{"city": "Paris"}\n[1, 2]\n{}',
    "in the middle of a line": f"Write {W} to call it.",
    "in backticks": f"`{W}`",
    "a declaration": '{"name": "get_weather", "parameters": {"type": "object", "properties": {"city": {}}}}',
    "required arguments are missing": '{"name": "get_weather", "arguments": {"days": 1}}',
    "more than the call in a fence": f"```json\n{W}\nor so\n```",
    "code around the call in a fence": f"```json\n// call\n{W}\n```",
    "a fence in a fence": f"````\n```json\n{W}\n```\n````",
    "another language": f"```python\n{W}\n```",
    "a call quoted after a fence that is none": f'```json\n{{"a": 1}}\n<tool_call>{W}</tool_call>\n```',
    "escaped tags of an undeclared tool": f"&lt;tool_call&gt;{W.replace('get_weather', 'f')}&lt;/tool_call&gt;",
    "an entity": "a &lt; b &amp; c &lt;tool_call&gt; and \\u003ctool",
}


@pytest.mark.parametrize("case", JSON_CALLS)
def test_json_of_a_declared_tool_is_a_call(case: str):
    text, expected, rest = JSON_CALLS[case]
    pieces = read(text, HERMES, DECLARED)
    assert (calls(pieces), plain_text(pieces)) == (expected, rest)
    assert calls(read(text, HERMES)) == []


@pytest.mark.parametrize("case", JSON_TEXTS)
def test_other_json_stays_text(case: str):
    text = JSON_TEXTS[case]
    pieces = read(text, HERMES, DECLARED)
    assert calls(pieces) == []
    assert "".join(piece if isinstance(piece, str) else piece.raw_text for piece in pieces) == text


@pytest.mark.parametrize("opening", ["```json\n", "```\n", "", "["])
def test_json_that_is_no_call_is_passed_on_at_once(opening: str):
    scanner = CallScanner(HERMES, DECLARED)
    text = f'{opening}{{"name": "my-package", "version": "1.0", "more": ['
    passed = "".join(piece for sign in text for piece in scanner.feed(sign) if isinstance(piece, str))
    assert len(passed) >= len(text) - 1


GLM = "<tool_call>get_weather\n<arg_key>city</arg_key>\n<arg_value>{}</arg_value>\n</tool_call>"


@pytest.mark.parametrize(
    ("text", "city"),
    [
        (GLM.format("Paris").replace("\n", "\\n"), "Paris"),
        (GLM.format("a < b").replace("<", "&lt;").replace(">", "&gt;"), "a < b"),
        (GLM.format("a & b").replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;"), "a & b"),
        (GLM.format("Paris").replace("<", "&#60;").replace("&#60;tool", "&lt;tool", 1).replace(">", "&gt;"), "Paris"),
        (GLM.format('"é"\\').replace("\\", "\\\\").replace("<", "\\u003c").replace(">", "\\u003e"), '"é"\\'),
        (GLM.format("Paris").replace("<", "\\<").replace(">", "\\>").replace("_", "\\_"), "Paris"),
        (
            "<function=get_weather><parameter=city>Paris</parameter></function>".replace("<", "&lt;").replace(
                ">", "&gt;"
            ),
            "Paris",
        ),
    ],
)
def test_escaped_markup_of_a_declared_tool_is_a_call(text: str, city: str):
    pieces = read(f"So: {text} ok &lt;", XML, DECLARED)
    assert (calls(pieces), plain_text(pieces)) == ([("get_weather", {"city": city})], "So:  ok &lt;")
    if not text.startswith("<"):
        assert calls(read(text, XML)) == []
        other = text.replace("get_weather", "other").replace("get\\_weather", "other")
        assert calls(read(other, XML, DECLARED)) == []


FENCE = "```tool_code\n{}\n```"
GEMMA_CALLS: dict[str, tuple[str, list[Any]]] = {
    "keywords in parentheses": ('call:get_weather(city="Paris")', [PARIS]),
    "positional": ('call:get_weather("Paris", 2)', [("get_weather", {"city": "Paris", "days": 2})]),
    "colons in parentheses": ('call:get_weather(city: "Paris")', [PARIS]),
    "braces": ('call:get_weather{city:<|"|>Paris<|"|>}', [PARIS]),
    "tokens as quotes in parentheses": ('call:get_weather(city=<|"|>Paris<|"|>)', [PARIS]),
    "brackets in strings": ("call:get_weather(city='a) \"b\" (')", [("get_weather", {"city": 'a) "b" ('})]),
    "nothing in parentheses": ("call:now()", [NOW]),
    "several": ('call:get_weather(city="Paris")\ncall:now{}', [PARIS, NOW]),
    "between tokens": ('<|tool_call>call:get_weather(city="Paris")<tool_call|>', [PARIS]),
    "between tokens, without the prefix": ("<|tool_call>get_weather('Paris')<tool_call|>", [PARIS]),
    "the end token alone": ('call:get_weather(city="Paris")<tool_call|>', [PARIS]),
    "code, positional": (FENCE.format("get_weather('Paris')"), [PARIS]),
    "code, printed": (FENCE.format("print(default_api.get_weather(city='Paris'))"), [PARIS]),
    "code, assigned and printed": (FENCE.format("x = get_weather('Paris')  # look\nprint(x)\nnow()"), [PARIS, NOW]),
    "code over several lines": (FENCE.format("get_weather(\n    city='Paris',\n)"), [PARIS]),
    "code in tags": ("<tool_code>\nget_weather('Paris')\n</tool_code>", [PARIS]),
    "code with values of all kinds": (
        FENCE.format("now(a=-1, b=(1.5, None), c={'x': [True]}, d='it' 's')"),
        [("now", {"a": -1, "b": [1.5, None], "c": {"x": [True]}, "d": "its"})],
    ),
}


@pytest.mark.parametrize("case", GEMMA_CALLS)
def test_gemma(case: str):
    text, expected = GEMMA_CALLS[case]
    pieces = read(f"{text}\nSo.", GEMMA, DECLARED)
    assert calls(pieces) == expected
    assert plain_text(pieces).strip() == "So."


@pytest.mark.parametrize(
    "text",
    [
        'call:get_news(city="Paris")',
        'You may call:get_weather(city="Paris")',
        "call: me (now)",
        "call:get_weather",
        '`call:get_weather(city="Paris")`',
        '```\ncall:get_weather(city="Paris")\n```',
        "call:get_weather(city=open('x').read())",
        FENCE.format("import os\nget_weather('Paris')"),
        FENCE.format("get_weather(now())"),
        FENCE.format("get_weather(1, 2, 3)"),
        "so\ncal",
    ],
)
def test_no_call_of_gemma(text: str):
    pieces = read(text, GEMMA, DECLARED)
    assert calls(pieces) == []
    assert "".join(piece if isinstance(piece, str) else piece.raw_text for piece in pieces) == text


@pytest.mark.parametrize("form", [HERMES, XML, GEMMA], ids=lambda form: form.name)
@pytest.mark.parametrize(
    "text", ["a\0b", "\0", "call:\0", "```json\n\0", "```tool_code\n\0\n```", "&lt;tool_call&gt;\0"]
)
def test_nul_is_text(form: TextFormat, text: str):
    assert segue.extract(text, form.name, tools=[]).text == text


THOUGHT = "<|channel>thought\nHm.<channel|>"


@pytest.mark.parametrize(
    ("text", "answer", "thinking"),
    [
        (f"The answer.{THOUGHT}", "The answer.", "Hm."),
        (f"{THOUGHT}A.{THOUGHT}B.", "A.B.", "Hm.Hm."),
        ("A.<|channel>thought\n<channel|>", "A.", ""),
        ("A.<|channel>thoughtHm.<channel|>", "A.", "Hm."),
        ("A.<|channel>thought\nHm", "A.", "Hm"),
        (f"`{THOUGHT}`", f"`{THOUGHT}`", ""),
        (f"```\n{THOUGHT}\n```", f"```\n{THOUGHT}\n```", ""),
    ],
)
def test_thought_channel_after_the_answer(text: str, answer: str, thinking: str):
    extracted = segue.extract(text, "gemma")
    assert ("".join(extracted.text.split("\n\n")), "".join(extracted.thinking.split())) == (answer, thinking)


@pytest.mark.parametrize(
    ("text", "name"),
    [(W, "hermes"), (f"Hi.\n```json\n{W}\n```", "hermes"), ('call:f(a="b")', "gemma"), (f"A.{THOUGHT}", "gemma")],
)
def test_format_is_detected(text: str, name: str):
    found = detect_format(text)
    assert found is not None
    assert found.name == name
