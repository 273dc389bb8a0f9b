"""`mistral-text`: `[TOOL_CALLS]` in its versions (TPL-14), compared with Mistral's own tokenizers."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import Any

import pytest
from hypothesis import given
from mistral_common.protocol.instruct.messages import AssistantMessage, ToolMessage, UserMessage
from mistral_common.protocol.instruct.request import InstructRequest
from mistral_common.protocol.instruct.tool_calls import Function, FunctionCall
from mistral_common.protocol.instruct.tool_calls import Tool as MistralTool
from mistral_common.protocol.instruct.tool_calls import ToolCall as MistralCall
from mistral_common.tokens.tokenizers.base import SpecialTokenPolicy, TokenizerVersion
from mistral_common.tokens.tokenizers.instruct import (
    InstructTokenizerV3,
    InstructTokenizerV7,
    InstructTokenizerV11,
    InstructTokenizerV13,
)
from mistral_common.tokens.tokenizers.tekken import Tekkenizer

from segue.canonical.blocks import ToolCall
from segue.canonical.request import Tool
from segue.wire.text.mistral import MISTRAL_TEXT
from segue.wire.text.regions import FoundCall
from segue.wire.text.scan import scan_text
from segue.wire.text.text_format import ResultText
from tests.budget import examples
from tests.wire.text.parsing import (
    CALLS,
    NamedArguments,
    assert_linear,
    calls,
    declared_for,
    lost,
    make_calls,
    plain_text,
    read,
)

T, A, N = "[TOOL_CALLS]", "[ARGS]", "[CALL_ID]"

READ = {
    "v3, a list with ids": (
        f'{T}[{{"name": "get", "arguments": {{"a": [1]}}, "id": "abcdefghi"}}, {{"name": "put", "arguments": {{}}}}]',
        [("get", {"a": [1]}), ("put", {})],
        "",
    ),
    "v2, a blank before the list": (f'{T} [{{"name": "get", "arguments": {{}}}}]\n', [("get", {})], "\n"),
    "v3, words before and behind": (f'ok {T}[{{"name": "get", "arguments": {{}}}}] bye', [("get", {})], "ok  bye"),
    "v3, arguments as text": (f'{T}[{{"name": "get", "arguments": "{{\\"a\\": 1}}"}}]', [("get", {"a": 1})], ""),
    "v3, the list without an end": (f'{T}[{{"name": "get", "arguments": {{}}}}', [("get", {})], ""),
    "an object without a list": (f'{T}{{"name": "get", "arguments": {{"a": 1}}}}', [("get", {"a": 1})], ""),
    "v11": (f'{T}get{N}abcdefghi{A}{{"a": 1}}', [("get", {"a": 1})], ""),
    "v13, several": (f'{T}get{A}{{"a": 1}}{T}put{A}{{}}', [("get", {"a": 1}), ("put", {})], ""),
    "v13, words before": (f"Let me see.{T}get{A}{{}}", [("get", {})], "Let me see."),
    "v13, blanks": (f"{T} get {A} {{}} {T}put\n{A}\n{{}}", [("get", {}), ("put", {})], " "),
    "the separator was dropped": (f'{T}get{{"a": 1}}{T}put{{}}', [("get", {"a": 1}), ("put", {})], ""),
    "markers in a string": (f'{T}get{A}{{"a": "{T}x{A}", "b": "]["}}', [("get", {"a": f"{T}x{A}", "b": "]["})], ""),
    "lists in lists": (f'{T}get{A}{{"a": [[], [{{}}]]}}', [("get", {"a": [[], [{}]]})], ""),
    "Python's words": (f"{T}get{A}{{'a': None, 'b': [True,],}}", [("get", {"a": None, "b": [True]})], ""),
    "quoted": (f"`{T}get{A}{{}}`\n```\n{T}get{A}{{}}\n```", [], f"`{T}get{A}{{}}`\n```\n{T}get{A}{{}}\n```"),
    "half a marker": ("a [TOOL_", [], "a [TOOL_"),
    "other brackets": ("[1] [TOOLS] [/INST] [TOOL_CALL]", [], "[1] [TOOLS] [/INST] [TOOL_CALL]"),
}


@pytest.mark.parametrize("case", READ)
def test_calls_are_parsed_and_the_rest_is_text(case: str) -> None:
    text, expected, around = READ[case]
    pieces = read(text, MISTRAL_TEXT)
    assert (calls(pieces), plain_text(pieces), lost(pieces)) == (expected, around, [])


LOST = {
    "v3, the second cut off": (f'{T}[{{"name": "get", "arguments": {{}}}}, {{"name": "pu', ['{"name": "pu'], ["get"]),
    "v3, one without a name": (
        f'{T}[{{"arguments": {{}}}}, {{"name": "put", "arguments": {{}}}}]',
        [f'{T}[{{"arguments": {{}}}}, '],
        ["put"],
    ),
    "v3, no calls": (f"{T}[] x", [f"{T}[]"], []),
    "v3, a new marker inside": (f'{T}[{{"name": {T}put{A}{{}}', [f'{T}[{{"name": '], ["put"]),
    "v13, cut off": (f'{T}get{A}{{"a": "x', [f'{T}get{A}{{"a": "x'], []),
    "v13, a new marker inside": (f'{T}get{A}{{"a": {T}put{A}{{}}', [f'{T}get{A}{{"a": '], ["put"]),
    "v13, no arguments": (f"{T}get{A}{T}put{A}{{}}", [f"{T}get{A}"], ["put"]),
    "v13, no name": (f"{T}{A}{{}}", [f"{T}{A}{{}}"], []),
    "v11, no arguments": (f"{T}get{N}abcdefghi{T}put{A}{{}}", [f"{T}get{N}abcdefghi"], ["put"]),
    "talked about": (f"{T} is a marker. {T}put{A}{{}}", [f"{T} is a marker. "], ["put"]),
    "alone at the end": (f"x {T}", [T], []),
}


@pytest.mark.parametrize("case", LOST)
def test_a_broken_call_stays_and_the_next_one_is_found(case: str) -> None:
    text, broken, names = LOST[case]
    pieces = read(text, MISTRAL_TEXT)
    assert (lost(pieces), [name for name, _ in calls(pieces)]) == (broken, names)


def test_ids_stay_as_they_are_written() -> None:
    text = f'{T}[{{"name": "a", "arguments": {{}}, "id": "abcdefghi"}}]{T}b{N}123456789{A}{{}}{T}c{A}{{}}'
    assert [piece.raw_id for piece in read(text, MISTRAL_TEXT) if isinstance(piece, FoundCall)] == [
        "abcdefghi",
        "123456789",
        None,
    ]


@given(CALLS)
@examples(0.6)
def test_rendered_calls_read_back(named_arguments: list[NamedArguments]) -> None:
    pieces = scan_text(
        MISTRAL_TEXT.render_calls(make_calls(named_arguments)), MISTRAL_TEXT, declared_for(named_arguments)
    )
    assert [(piece.name, piece.arguments) for piece in pieces if isinstance(piece, FoundCall)] == named_arguments
    assert len(pieces) == len(named_arguments)


@pytest.mark.parametrize(
    "text",
    [
        T,
        f"{T}[",
        f"{T}[{{",
        f"{T}a{A}",
        f"{T}a{A}{{",
        f'{T}a{A}{{"',
        f"{T}a{A}{{}}",
        "[",
        f"{T}a{N}",
        f"{T}a{A}{{}} ",
        f'{T}[{{"name": "a"}},',
    ],
)
def test_work_grows_with_the_text(text: str) -> None:
    assert_linear(text, MISTRAL_TEXT)


# Mistral's tokenizers: what they make of a conversation is read, and is what we write.

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
NESTED: dict[str, Any] = {"city": 'Zürich "x"', "n": [1, 2.5, None, True], "o": {"é": "[ARGS]", "p": []}}


ENCODERS = {3: InstructTokenizerV3, 7: InstructTokenizerV7, 11: InstructTokenizerV11, 13: InstructTokenizerV13}


@cache
def tokenizer(version: int) -> Any:
    """The encoder of a version, with the vocabulary of the package and the tokens added later."""
    data = json.loads(files("mistral_common").joinpath("data/tekken_240911.json").read_text())
    old: list[Any] = list(Tekkenizer.DEPRECATED_SPECIAL_TOKENS)
    new: list[Any] = [
        {"rank": len(old) + more, "token_str": token, "is_control": True} for more, token in enumerate((A, N))
    ]
    vocabulary = Tekkenizer(
        data["vocab"],
        special_tokens=old + new,
        pattern=data["config"]["pattern"],
        vocab_size=data["config"]["default_vocab_size"],
        num_special_tokens=data["config"]["default_num_special_tokens"],
        version=TokenizerVersion(f"v{version}"),
    )
    return ENCODERS[version](vocabulary)


def encoded(version: int, named_arguments: list[tuple[str, dict[str, Any], str]]) -> str:
    """The text of a conversation with these calls, special tokens and all."""
    request: Any = InstructRequest(
        messages=[
            UserMessage(content="Go."),
            AssistantMessage(
                content=None,
                tool_calls=[
                    MistralCall(id=raw_id, function=FunctionCall(name=name, arguments=json.dumps(arguments)))
                    for name, arguments, raw_id in named_arguments
                ],
            ),
            *[
                ToolMessage(content=f"result {number}", tool_call_id=one[2])
                for number, one in enumerate(named_arguments)
            ],
        ],
        available_tools=[MistralTool(function=Function(name="get", description="Gets.", parameters=SCHEMA))],
    )
    made = tokenizer(version)
    return made.decode(made.encode_instruct(request).tokens, special_token_policy=SpecialTokenPolicy.KEEP)


ENCODED_CALLS = [("get", NESTED, "abcdefghi"), ("put_it", {}, "123456789")]


@pytest.mark.parametrize("version", ENCODERS)
def test_mistral_encoding_is_parsed(version: int) -> None:
    reply = encoded(version, ENCODED_CALLS).partition("[/INST]")[2].partition("</s>")[0]
    found = [piece for piece in read(reply, MISTRAL_TEXT) if isinstance(piece, FoundCall)]
    assert [(piece.name, piece.arguments) for piece in found] == [
        (name, arguments) for name, arguments, _ in ENCODED_CALLS
    ]
    assert [piece.raw_id for piece in found] == [raw_id if version < 13 else None for *_, raw_id in ENCODED_CALLS]


def test_rendering_equals_mistral_encoding() -> None:
    calls_text = MISTRAL_TEXT.render_calls(
        [ToolCall(name, arguments, id=raw_id) for name, arguments, raw_id in ENCODED_CALLS]
    )
    results = MISTRAL_TEXT.render_results(
        [ResultText(one[0], one[2], f"result {number}") for number, one in enumerate(ENCODED_CALLS)]
    )
    tools = MISTRAL_TEXT.render_tools([Tool("get", "Gets.", SCHEMA)])
    assert encoded(13, ENCODED_CALLS) == f"<s>{tools}[INST]Go.[/INST]{calls_text}</s>{results}"
