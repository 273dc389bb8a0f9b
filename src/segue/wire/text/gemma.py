"""`gemma`: the tool call formats of Google's open models (TPL-11).

Gemma 4 and FunctionGemma have special tokens around `call:name{key:value}` or `call:name(key="value")`, and tokens in
place of quotes; without the tokens it is a call only if the tool is declared. Gemma 3 writes Python into a `tool_code`
fence. Gemma 2 and 3, prompted for a list of calls or for JSON, write what `llama` parses. Gemma 4's format is rendered.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, cast

from msgspec.structs import replace

from segue.canonical.blocks import ToolCall
from segue.canonical.json import encode_json_text
from segue.canonical.request import Tool
from segue.wire.json_values import object_or_none
from segue.wire.text.declared_tools import DeclaredTools
from segue.wire.text.json_calls import build_call, convert_python_calls, parse_json_calls
from segue.wire.text.lenient_json import InvalidJsonError, find_repeated_key, parse_lenient
from segue.wire.text.python_calls import parse_python_calls, strip_module
from segue.wire.text.regions import FoundCall, Match, Opener, Reading, Segment, ThoughtRegion, literal_opener
from segue.wire.text.text_format import ResultText, TextFormat, named_arguments
from segue.wire.text.tokens import TokenRegion, TokenSet, token_opener

_OPEN, _CLOSE = "<|tool_call>", "<tool_call|>"
_KINDS = {"call": (_OPEN, "<start_function_call>"), "end": (_CLOSE, "<end_function_call>")}
_QUOTE = '<|"|>'
_QUOTES = (_QUOTE, "<escape>")
_STRINGS = {quote: TokenSet({quote: quote}) for quote in _QUOTES}
_TOKENS = TokenSet({**_KINDS, **{quote: quote for quote in _QUOTES}})
_CALL, _END = _TOKENS.select("call"), _TOKENS.select("end")
_NAME_ENDS = TokenSet({**_KINDS, "object": "{", "parenthesis": "("})
_LONGEST_NAME = 256


class _Call(TokenRegion):
    """`call:name{…}` or `call:name(…)` between tokens."""

    tokens, opening, closing = _TOKENS, _CALL, _END

    def read(self) -> Reading[list[Segment]]:
        yield from self.take_token(_CALL)
        start = self.checkpoint
        kind = yield from self.take_until_token(_NAME_ENDS, _LONGEST_NAME)
        if not kind:
            self.rewind(start)
            return [self.build_broken_call("no call after the opening token")]
        name = self.text_since(start).strip().removeprefix("call:")
        if kind not in ("object", "parenthesis"):
            return (yield from self.take_broken_call("no arguments"))
        start = self.checkpoint
        if not (yield from self.take_balanced(_STRINGS, is_call=kind == "parenthesis")):
            return (yield from self.take_broken_call("unterminated arguments"))
        text = self.text_since(start)
        yield from self.take_closers(_END)
        call = _parse_call(name, text, self.declared)
        if isinstance(call, str):
            return [self.build_broken_call(call)]
        return [replace(call, raw_text=self.flush_taken())]


class _BareCall(TokenRegion):
    """A call without the tokens, on a line of its own, of a declared tool."""

    tokens, opening, closing = _TOKENS, _CALL, _END

    def read(self) -> Reading[list[Segment]]:
        yield from self.take_marker(_BARE_CALL)
        name = yield from self.take_match(_TOOL_NAME, _LONGEST_NAME)
        bracket = yield from self.peek("{", "(")
        if not bracket or not self.declared.is_given or not self.declared.can_call(name):
            return self.reject()
        start = self.checkpoint
        if not (yield from self.take_balanced(_STRINGS, is_call=bracket == "(")):
            return [self.build_broken_call("unterminated arguments", _NEXT_CALL)]
        call = _parse_call(name, self.text_since(start), self.declared)
        if isinstance(call, str):
            return [self.build_broken_call(call)]
        yield from self.take_closers(_END)
        return [replace(call, raw_text=self.flush_taken())]


def _parse_call(name: str, text: str, declared: DeclaredTools) -> FoundCall | str:
    """Parse a call from its name and arguments, `{key:value}` or `(key=value)`; return the reason if it is invalid."""
    if text.startswith("("):
        quoted = _QUOTED.sub(lambda string: json.dumps(string[2]), text)
        calls = parse_python_calls(name + quoted, declared)
        if isinstance(calls, list) and len(calls) == 1:
            return calls[0]
        text = f"{{{text[1:-1]}}}"
    try:
        converted = _convert_to_json(text)
        arguments = parse_lenient(converted)
    except InvalidJsonError as error:
        return f"arguments: {error}"
    call = build_call(name, arguments, "", repeated_key=find_repeated_key(converted, arguments))
    return call if isinstance(call, FoundCall) else "no tool name"


_BARE_CALL = "call:"
_TOOL_NAME = re.compile(r"[\w.:/-]*+")
_NEXT_CALL = re.compile(r"(?<=\n)call:|<\|tool_call>|<start_function_call>")
_QUOTED = re.compile(r"(<\|\"\|>|<escape>)(.*?)\1", re.DOTALL)


def _match_bare(text: str, position: int, at_line_start: bool, ended: bool) -> Match:
    if not at_line_start:
        return "no"
    if text.startswith(_BARE_CALL, position):
        return _BareCall
    return "perhaps" if not ended and _BARE_CALL.startswith(text[position:]) else "no"


_CODE_TAGS = {"```tool_code": "```", "~~~tool_code": "~~~", "<tool_code>": "</tool_code>"}
_FENCE = TokenSet({end: tag for tag, end in _CODE_TAGS.items()})


class _Code(TokenRegion):
    """A code fence that holds only calls."""

    tokens = opening = closing = _FENCE

    def read(self) -> Reading[list[Segment]]:
        ends = yield from self.take_token(_FENCE)
        end = TokenSet({"end": ends})
        start = self.checkpoint
        is_closed = yield from self.take_until_token(end)
        text = self.text_since(start).strip()
        yield from self.take_token(end)
        calls = self._parse_calls(text)
        if isinstance(calls, str) or not is_closed:
            return [self.build_broken_call(calls if isinstance(calls, str) else "unterminated code")]
        return [replace(calls[0], raw_text=self.flush_taken()), *calls[1:]]

    def _parse_calls(self, text: str) -> list[FoundCall] | str:
        """Parse the code in Python syntax, else leniently line by line; return the reason if it is not only calls."""
        strict = parse_python_calls(text, self.declared)
        if isinstance(strict, list):
            return strict
        calls: list[FoundCall] = []
        for line in text.splitlines():
            found = parse_json_calls(convert_python_calls(_strip_print(line.strip()))) if line.strip() else []
            if isinstance(found, str):
                return found
            calls += [replace(call, name=strip_module(call.name, self.declared)) for call in found]
        return calls or "no call"


_PRINT_CALL = re.compile(r"print\s*\((.*)\)", re.DOTALL)


def _strip_print(code: str) -> str:
    printed = _PRINT_CALL.fullmatch(code)
    return code if printed is None else printed[1]


_THOUGHT = "<|channel>thought"


class _Thought(ThoughtRegion):
    opening, closing = _THOUGHT, "<channel|>"


# Gemma's value syntax: objects with bare keys, and strings between tokens instead of quotes. A string that holds the
# token is rendered as a JSON string, which is parsed as well.

_PLAIN_KEY = re.compile(r"[\w.$-]+")
_SPACE = re.compile(r"\s*+")
_BARE = re.compile(r"[^,{}\[\]]*+")
_KEY = re.compile(r"[^:,{}\[\]]++")
_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?")
_CONSTANTS = {"true": "true", "True": "true", "false": "false", "False": "false", "null": "null", "None": "null"}
_JSON_STRING = re.compile(r"\"(?:[^\"\\]|\\.)*+\"|'(?:[^'\\]|\\.)*+'", re.DOTALL)


def _render_value(value: Any) -> str:
    """Render a value as the chat template prints it: sorted keys, and Python's `None`."""
    parts: list[str] = []
    pending: list[tuple[bool, Any]] = [(False, value)]
    while pending:
        is_rendered, current = pending.pop()
        if is_rendered:
            parts.append(current)
        elif isinstance(current, Mapping):
            items = cast("Mapping[str, Any]", current)
            parts.append("{")
            pending.append((True, "}"))
            pending += reversed(
                [part for key in _sort_keys(items) for part in _item_parts(f"{_render_key(key)}:", items[key])][1:]
            )
        elif isinstance(current, list | tuple):
            parts.append("[")
            pending.append((True, "]"))
            pending += reversed([part for item in cast("Sequence[Any]", current) for part in _item_parts("", item)][1:])
        else:
            parts.append(_render_scalar(current))
    return "".join(parts)


def _item_parts(key: str, value: Any) -> tuple[tuple[bool, Any], ...]:
    return (True, ","), (True, key), (False, value)


def _render_scalar(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return _render_string(value) if isinstance(value, str) else str(value)


def _sort_keys(items: Mapping[str, Any]) -> list[str]:
    return sorted(items, key=str.lower)


def _render_key(key: str) -> str:
    return key if _PLAIN_KEY.fullmatch(key) else _render_string(key)


def _render_string(text: str) -> str:
    if _QUOTE in text:
        return encode_json_text(text).replace("<", "\\u003c")
    return f"{_QUOTE}{text}{_QUOTE}"


def _convert_to_json(text: str) -> str:
    """Convert Gemma's value syntax to JSON text; raises `InvalidJsonError` if it is not valid."""
    parts: list[str] = []
    inside: list[str] = []
    key_next = False
    position = _skip(_SPACE, text, 0)
    while position < len(text):
        char = text[position]
        if char in "{[,":
            inside += char.strip(",")
            key_next = inside[-1:] == ["{"]
            part, position = char, position + 1
        elif char in "}]":
            del inside[-1:]
            key_next = False
            part, position = char, position + 1
        elif key_next:
            key, _, position = _parse_word(text, position, _KEY)
            position = _skip(_SPACE, text, position)
            if not text.startswith(":", position):
                raise InvalidJsonError(f"colon expected at {position}")
            part, position, key_next = f"{json.dumps(key)}:", position + 1, False
        else:
            word, is_string, position = _parse_word(text, position, _BARE)
            part = json.dumps(word) if is_string else _convert_bare_word(word)
        parts.append(part)
        position = _skip(_SPACE, text, position)
    return "".join(parts)


def parse_value(text: str) -> Any:
    """Parse a value in Gemma's syntax; raises `InvalidJsonError` if it is not valid."""
    return parse_lenient(_convert_to_json(text))


def _skip(pattern: re.Pattern[str], text: str, position: int) -> int:
    skipped = pattern.match(text, position)
    return position if skipped is None else skipped.end()


def _parse_word(text: str, position: int, bare: re.Pattern[str]) -> tuple[str, bool, int]:
    """Return the string or bare word at this position, whether it is a string, and the position after it."""
    for quote in _QUOTES:
        if text.startswith(quote, position):
            end = text.find(quote, position + len(quote))
            if end < 0:
                raise InvalidJsonError("unterminated string")
            return text[position + len(quote) : end], True, end + len(quote)
    string = _JSON_STRING.match(text, position)
    if string is not None:
        return cast("str", parse_lenient(string[0])), True, string.end()
    end = _skip(bare, text, position)
    if end == position:
        raise InvalidJsonError(f"key or value expected at {position}")
    return text[position:end].strip(), False, end


def _convert_bare_word(word: str) -> str:
    """Convert a number or a constant of JSON or Python; any other unquoted text is a string."""
    return word if _NUMBER.fullmatch(word) else _CONSTANTS.get(word) or json.dumps(word)


def _render_declaration(tool: Tool) -> str:
    start = f"declaration:{tool.name}{{description:{_render_value(tool.description or '')}"
    schema = tool.parameters or {}
    if not schema:
        return start + "}"
    parts = [*_render_properties_and_required(schema), f"type:{_render_value(_render_type(schema))}"]
    return f"{start},parameters:{{{','.join(parts)}}}}}"


def _render_properties_and_required(schema: Mapping[str, Any]) -> list[str]:
    parts: list[str] = []
    if properties := object_or_none(schema.get("properties")):
        parts.append(f"properties:{{{_render_properties(properties)}}}")
    if required := schema.get("required"):
        parts.append(f"required:{_render_value(required)}")
    return parts


def _render_properties(properties: Mapping[str, Any]) -> str:
    schemas = [(key, object_or_none(properties[key]) or {}) for key in _sort_keys(properties)]
    return ",".join(f"{_render_key(key)}:{_render_property(schema)}" for key, schema in schemas)


def _render_property(schema: Mapping[str, Any]) -> str:
    """Render a property's schema, with the keywords that the chat template prints, in its order."""
    kind = _render_type(schema)
    parts: list[str] = []
    if description := schema.get("description"):
        parts.append(f"description:{_render_value(description)}")
    if schema.get("enum"):
        parts.append(f"enum:{_render_value(schema['enum'])}")
    if kind == "ARRAY" and (items := object_or_none(schema.get("items"))):
        parts.append(f"items:{_render_items(items)}")
    if schema.get("nullable"):
        parts.append("nullable:true")
    if kind == "OBJECT":
        parts += _render_properties_and_required(schema)
    parts.append(f"type:{_render_value(kind)}")
    return f"{{{','.join(parts)}}}"


def _render_items(schema: Mapping[str, Any]) -> str:
    """Render the schema of a list's items, with all its keywords."""
    parts: list[str] = []
    for key in _sort_keys(schema):
        if key == "properties":
            parts.append(f"properties:{{{_render_properties(object_or_none(schema[key]) or {})}}}")
        elif key == "type":
            parts.append(f"type:{_render_value(_render_type(schema))}")
        elif schema[key] is not None:
            parts.append(f"{_render_key(key)}:{_render_value(schema[key])}")
    return f"{{{','.join(parts)}}}"


def _render_type(schema: Mapping[str, Any]) -> Any:
    kind = schema.get("type")
    if isinstance(kind, list):
        return [str(name).upper() for name in cast("list[object]", kind)]
    return str(kind or ("object" if "properties" in schema else "string")).upper()


def _render_calls(calls: Sequence[ToolCall]) -> str:
    return "".join(f"{_OPEN}call:{call.name}{_render_value(named_arguments(call))}{_CLOSE}" for call in calls)


def _render_results(results: Sequence[ResultText]) -> str:
    return "".join(
        f"<|tool_response>response:{result.name}{_render_value({'value': result.text})}<tool_response|>"
        for result in results
    )


GEMMA = TextFormat(
    name="gemma",
    title="Gemma 4 and FunctionGemma: bare keys, and tokens in place of quotes",
    openers=(
        token_opener(_CALL, _Call),
        token_opener(_FENCE, _Code),
        literal_opener(_THOUGHT, _Thought),
        Opener("c", _match_bare, "a"),
    ),
    markers=(_OPEN, "<start_function_call>", *_CODE_TAGS, _THOUGHT),
    render_tools=lambda tools: "".join(f"<|tool>{_render_declaration(tool)}<tool|>" for tool in tools),
    render_calls=_render_calls,
    render_results=_render_results,
    eos_tokens=("<end_of_turn>", "<turn|>", "<eos>", "<start_function_response>", "<|tool_response>"),
)
