"""`llama`: the formats of Llama 3 and 4 (TPL-02). JSON without a tag, and three others.

    {"name": "f", "parameters": {…}}      at the start or on its own line, several separated by `;` or line breaks
    <|python_tag|>f.call(key="value")     a built-in tool of the model; or JSON as above
    <function=f>{…}</function>            Llama 3.1, by some prompts
    [f(key=1), g()]                       Llama 3.2 and 4; the latter also between <|python_start|> and <|python_end|>

Without a tag it is a call only if the tool is declared, or if the declared tools are unknown.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec.structs import replace

from segue.canonical.blocks import ToolCall
from segue.canonical.request import Tool
from segue.wire.text.call_reader import IDENTIFIER, CallReader
from segue.wire.text.json_calls import convert_python_calls, parse_json_calls
from segue.wire.text.lenient_json import JsonScanner
from segue.wire.text.regions import FoundCall, Match, Opener, Reading, Segment, literals_opener
from segue.wire.text.text_format import TextFormat, call_arguments, function_declaration, render_spaced_json

_PYTHON_TAG, _FUNCTION_TAG, _FUNCTION_END = "<|python_tag|>", "<function=", "</function>"
_PYTHON_START = "<|python_start|>"
_EOS_TOKENS = ("<|python_end|>", "<|eom_id|>", "<|eot_id|>", "<|eom|>", "<|eot|>")
_EOS_PATTERN = re.compile("|".join(map(re.escape, _EOS_TOKENS)))
_IN_TAG = re.compile(r"[^<>\s]*+")
_NEXT_CALL = re.compile(r"(?<=\n)[{\[]|<\|python_(?:tag|start)\|>|<function=")
# Python code without a tool name goes to the first of these that is declared.
_INTERPRETERS = ("code_interpreter", "ipython", "python")


class _CallReader(CallReader):
    eos_tokens, next_call = _EOS_TOKENS, _NEXT_CALL


class _UntaggedCalls(_CallReader):
    def read(self) -> Reading[list[Segment]]:
        return (yield from self.read_calls(tagged=False))


class _TaggedCalls(_CallReader):
    def read(self) -> Reading[list[Segment]]:
        tag = yield from self.take_marker(_PYTHON_TAG, _PYTHON_START, _FUNCTION_TAG)
        if tag == _FUNCTION_TAG:
            return (yield from self._read_function())
        yield from self.skip_space()
        if (yield from self.peek("{", "[")):
            return (yield from self.read_calls(tagged=True))
        start = self.checkpoint
        name = yield from self.take_match(IDENTIFIER)
        is_tool = name.endswith(".call") or (self.declared.is_given and self.declared.can_call(name))
        if name and is_tool and (yield from self.peek("(")):
            return (yield from self._read_python_call(name.removesuffix(".call")))
        return (yield from self._read_code(start))

    def _read_python_call(self, name: str) -> Reading[list[Segment]]:
        start = self.checkpoint
        scan = JsonScanner("<", calls=True)
        is_complete = yield from self.take_json(scan)
        calls = (
            parse_json_calls(convert_python_calls(name + self.text_since(start)))
            if is_complete
            else "unterminated call"
        )
        if isinstance(calls, str):
            return [self.build_broken_call(calls, _NEXT_CALL)]
        yield from self.take_eos()
        return [replace(calls[0], raw_text=self.flush_taken())]

    def _read_code(self, start: int) -> Reading[list[Segment]]:
        """Read code without a tool name, for the code interpreter. Without one the tag is plain text."""
        tool = next((name for name in _INTERPRETERS if self.declared.is_given and self.declared.can_call(name)), None)
        if tool is None or (yield from self.at_end()):
            return [self.build_broken_call("no call after the tag")]
        yield from self.take_until(_EOS_PATTERN, max(map(len, _EOS_TOKENS)))
        code = self.text_since(start)
        yield from self.take_eos()
        return [FoundCall(tool, {"code": code}, raw_text=self.flush_taken())]

    def _read_function(self) -> Reading[list[Segment]]:
        name = yield from self.take_match(_IN_TAG)
        if not name or not (yield from self.take_marker(">")):
            return [self.build_broken_call("no tool name")]
        yield from self.skip_space()
        if not (yield from self.peek("{")):
            return [self.build_broken_call("no arguments after the tag")]
        start = self.checkpoint
        is_complete = yield from self.take_json(JsonScanner("<"))
        text = self.text_since(start)
        calls = (
            parse_json_calls(f'{{"name":{render_spaced_json(name)},"arguments":{text}}}')
            if is_complete
            else "unterminated call"
        )
        if isinstance(calls, str):
            yield from self.take_marker(_FUNCTION_END)
            return [self.build_broken_call(calls, _NEXT_CALL)]
        end = self.checkpoint
        yield from self.skip_space()
        if not (yield from self.take_marker(_FUNCTION_END)):
            self.rewind(end)
        yield from self.take_eos()
        return [replace(calls[0], raw_text=self.flush_taken())]


def _match_untagged(_text: str, _position: int, at_line_start: bool, _ended: bool) -> Match:
    return _UntaggedCalls if at_line_start else "no"


def _render_tools(tools: Sequence[Tool]) -> str:
    listed = "".join(f"{render_spaced_json(function_declaration(tool), indent=4)}\n\n" for tool in tools)
    return (
        "You have access to the following functions. To call a function, please respond with JSON for a function call."
        'Respond in the format {"name": function name, "parameters": dictionary of argument name and its value}.'
        f"Do not use variables.\n\n{listed}"
    ).rstrip()


def _render_calls(calls: Sequence[ToolCall]) -> str:
    return "; ".join(render_spaced_json({"name": call.name, "parameters": call_arguments(call)}) for call in calls)


LLAMA = TextFormat(
    name="llama",
    title="Llama 3 and 4: bare JSON, Python lists and tags",
    openers=(literals_opener((_PYTHON_TAG, _PYTHON_START, _FUNCTION_TAG), _TaggedCalls), Opener("{[", _match_untagged)),
    markers=(_PYTHON_TAG, _PYTHON_START, '"parameters"', "<|eom_id|>"),
    render_tools=_render_tools,
    render_calls=_render_calls,
    render_results=lambda results: "\n\n".join(result.text for result in results),
    one_call_per_reply=True,
    eos_tokens=(*_EOS_TOKENS, "<|end_of_text|>"),
)
