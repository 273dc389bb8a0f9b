"""`xml`: calls as tags. One parser for all variants; Qwen3-Coder's is rendered by default (TPL-03, 05, 06).

    <tool_call><function=NAME><parameter=KEY>VALUE</parameter></function></tool_call>         Qwen3-Coder, Qwen 3.5
    <tool_call>NAME<arg_key>KEY</arg_key><arg_value>VALUE</arg_value></tool_call>             GLM
    <function_calls><invoke name="NAME"><parameter name="KEY">VALUE</parameter></invoke>…     Claude, MiniMax

The tags of MiniMax M3 are different; `minimax` parses them.

A value ends at its closing tag if the call continues after it; complete tags inside the value are part of it. Values
are not encoded, except that a tag of this format inside a value is escaped with a backslash after its `<`. Whether a
value is text or JSON follows from the declared schema; if the parameter is not declared, or accepts both, from its
text. Quoted names are decoded: entities in attributes, JSON elsewhere.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from msgspec import Struct

from segue.canonical.blocks import ToolCall
from segue.canonical.request import Tool
from segue.wire.json_values import object_or_none
from segue.wire.text import minimax
from segue.wire.text.escaped import escaped_openers
from segue.wire.text.hermes import read_tagged_calls
from segue.wire.text.lenient_json import InvalidJsonError, parse_lenient
from segue.wire.text.regions import FoundCall, Opener, Reading, Region, Segment, literals_opener
from segue.wire.text.text_format import (
    ResultText,
    TextFormat,
    function_declaration,
    named_arguments,
    render_spaced_json,
)


class _TagSet(Struct, frozen=True):
    """The tags of one variant. `parameter` begins a parameter, `value` its value where that has its own tag."""

    head: str
    parameter: str
    value_end: str
    end: str
    name_style: Literal["plain", "attribute", "element"]
    value: str = ""

    @property
    def value_tags(self) -> tuple[str, str, str, str]:
        """The tags that are tracked inside a value."""
        return (self.value or self.parameter, self.value_end, self.head, self.end)


def _invoke_tags(prefix: str) -> _TagSet:
    return _TagSet(
        head=f"<{prefix}invoke name=",
        parameter=f"<{prefix}parameter name=",
        value_end=f"</{prefix}parameter>",
        end=f"</{prefix}invoke>",
        name_style="attribute",
    )


_FUNCTION_TAGS = _TagSet("<function=", "<parameter=", "</parameter>", "</function>", "plain")
_ARG_KEY_TAGS = _TagSet("<tool_call>", "<arg_key>", "</arg_value>", "</tool_call>", "element", "<arg_value>")
_HEADS = {tag_set.head: tag_set for tag_set in (_FUNCTION_TAGS, _invoke_tags(""), _invoke_tags("antml:"))}
_WRAPPERS = tuple(
    f"<{name}>"
    for name in ("tool_call", "function_calls", "antml:function_calls", "minimax:tool_call", "seed:tool_call")
)
_CLOSERS = tuple(f"</{wrapper[1:]}" for wrapper in _WRAPPERS)
_OPENERS = (*_WRAPPERS, *_HEADS)
_NEXT_CALL = re.compile("|".join(map(re.escape, _OPENERS)))
_VALUE_PATTERNS = {
    tag_set.head: re.compile("|".join(map(re.escape, tag_set.value_tags)))
    for tag_set in (*_HEADS.values(), _ARG_KEY_TAGS)
}
_TOOL_NAME = re.compile(r"[\w.:/-]*+")
_IN_TAG = re.compile(r"[^<>]*+")
_ATTRIBUTE = re.compile(r"""\s*(?:"([^"]*)"|'([^']*)').*""", re.DOTALL)
_ESCAPABLE_TAG = re.compile(
    r"<(\\*+)(?=/?(?:\w+:)?(?:parameter|function|invoke|arg_key|arg_value|tool_call|function_calls)\b)"
)
_NO_END = "unterminated call"


def _unescape_value(value: str) -> str:
    return _ESCAPABLE_TAG.sub(lambda tag: f"<{tag[1][1:]}", value) if "<\\" in value else value


class _Calls(Region):
    """One call, or several between the same tags."""

    _strip_newlines = True
    _repeated_key: str | None = None

    def read(self) -> Reading[list[Segment]]:
        wrapper = yield from self.take_marker(*_WRAPPERS)
        # Seed writes no line breaks around values, so those at the ends belong to the value.
        self._strip_newlines = wrapper != "<seed:tool_call>"
        segments: list[Segment] = []
        while True:
            yield from self.skip_space()
            head = yield from self.take_marker(*_HEADS)
            begun = len(self.text_since(0))
            if head:
                call = yield from self._read_named_call(_HEADS[head])
            elif segments or "tool_call" not in wrapper:
                return [*segments, self.build_broken_call("no call after the tag")]
            elif (yield from self.peek("{", "[")):
                return (yield from read_tagged_calls(self, f"</{wrapper[1:]}", _NEXT_CALL))
            else:
                name = yield from self.take_match(_TOOL_NAME)
                call = (yield from self._read_call(_ARG_KEY_TAGS, name)) if name else "no call after the tag"
            if isinstance(call, str):
                return [*segments, self.build_broken_call(call, _NEXT_CALL if self.ended else None, begun)]
            has_more = yield from self._take_closing(wrapper)
            segments.append(FoundCall(*call, raw_text=self.flush_taken(), repeated_key=self._repeated_key))
            if not has_more:
                return segments

    def skip_space(self) -> Reading[None]:
        """Skip white space between tags. GLM also writes a line break there as a backslash and an `n`."""
        while True:
            yield from super().skip_space()
            if not (yield from self.take_marker("\\n")):
                return

    def _take_closing(self, wrapper: str) -> Reading[bool]:
        """Consume the closing tag; return whether another call between the same tags follows instead."""
        end = self.checkpoint
        yield from self.skip_space()
        if not (yield from self.take_marker(*_CLOSERS)):
            has_more = bool(wrapper) and bool((yield from self.peek(*_HEADS)))
            self.rewind(end)
            return has_more
        return False

    def _read_named_call(self, tag_set: _TagSet) -> Reading[tuple[str, Any] | str]:
        name = yield from self._read_name(tag_set)
        return (yield from self._read_call(tag_set, name)) if name else "no tool name"

    def _read_call(self, tag_set: _TagSet, name: str) -> Reading[tuple[str, Any] | str]:
        """Read name and arguments; return the reason if they are not valid. GLM's end tag is that of the wrapper."""
        arguments: dict[str, Any] = {}
        self._repeated_key = None
        while True:
            yield from self.skip_space()
            next_tag = yield from self.peek(tag_set.parameter, tag_set.end, *_CLOSERS)
            if next_tag != tag_set.parameter:
                break
            self.take(len(next_tag))
            key = yield from self._read_name(tag_set)
            if key is None or not (yield from self._take_value_tag(tag_set)):
                return _NO_END if self.ended else "parameter without a name"
            value = yield from self._read_value(tag_set, name)
            if value is None:
                return _NO_END
            if tag_set.name_style == "plain" and self._strip_newlines:
                value = value.removeprefix("\n").removesuffix("\n")
            self._repeated_key = key if key in arguments else self._repeated_key
            arguments[key] = self.declared.parse_argument(name, key, _unescape_value(value))
        if not next_tag:
            if not arguments or not (yield from self.at_end()):
                return _NO_END
            # An unterminated call may be cut off between two parameters. One missing tag is accepted.
            has_required = self.declared.has_required(name, arguments)
            if not (tag_set is _ARG_KEY_TAGS if has_required is None else has_required):
                return _NO_END
        elif next_tag == tag_set.end and tag_set is not _ARG_KEY_TAGS:
            self.take(len(next_tag))
        return name, arguments

    def _read_name(self, tag_set: _TagSet) -> Reading[str | None]:
        """Consume the rest of a tag that holds a name."""
        text = yield from self.take_match(_IN_TAG)
        closing = "</arg_key>" if tag_set.name_style == "element" else ">"
        if not (yield from self.take_marker(closing)):
            return None
        if tag_set.name_style != "attribute":
            return _unquote(text.strip())
        attribute = _ATTRIBUTE.fullmatch(text)
        return html.unescape(text.strip() if attribute is None else attribute[1] or attribute[2] or "")

    def _take_value_tag(self, tag_set: _TagSet) -> Reading[bool]:
        if not tag_set.value:
            return True
        yield from self.skip_space()
        return bool((yield from self.take_marker(tag_set.value)))

    def _read_value(self, tag_set: _TagSet, name: str) -> Reading[str | None]:
        """Read a value and its closing tag, which may be missing before the next parameter or the end of the call."""
        opening, closing, head, _end = tag_set.value_tags
        start, closed = self.checkpoint, -1
        values = calls = 0
        while token := (yield from self.take_until(_VALUE_PATTERNS[tag_set.head], max(map(len, tag_set.value_tags)))):
            tag_start = self.checkpoint
            self.take(len(token))
            if token == opening:
                key = "" if tag_set.value else (yield from self._read_name(tag_set))
                if key and not values and not calls and self.declared.has_parameter(name, key):
                    return self._end_value(start, tag_start, closed)
                values += key is not None
            elif token == head:
                calls += 1
            elif token == closing and values:
                values, closed = values - 1, tag_start
            elif token == closing:
                yield from self.skip_space()
                next_tag = yield from self.peek(tag_set.parameter, tag_set.end, *_CLOSERS)
                if next_tag or (yield from self.at_end()):
                    return "".join(self._taken[start:tag_start])
            elif calls:
                calls -= 1
            else:
                yield from self.skip_space()
                wrapped = bool((yield from self.peek(*_CLOSERS))) if tag_set is not _ARG_KEY_TAGS else False
                if wrapped or (yield from self.at_end()):
                    return self._end_value(start, tag_start, closed)
        return None

    def _end_value(self, start: int, end: int, closed: int) -> str:
        """End the value here, or at a closing tag right before that was attributed to a tag inside the value."""
        self.rewind(end)
        if closed >= 0 and not self.text_since(closed + 1).strip():
            end = closed
        return "".join(self._taken[start:end])


def _unquote(name: str) -> str:
    if name[:1] not in ('"', "'"):
        return name
    try:
        value = parse_lenient(name)
    except InvalidJsonError:
        return name
    return value if isinstance(value, str) else name


_XML_OPENERS: tuple[Opener, ...] = (literals_opener(_OPENERS, _Calls), *escaped_openers(_OPENERS, _Calls))


# Rendering: Qwen3-Coder's variant by default, those of GLM and MiniMax for their models.

_PLAIN_NAME = re.compile(r"""[^\s<>"']+""")


def _render_value(value: object) -> str:
    """Render text unchanged, anything else as JSON."""
    text = value if isinstance(value, str) else render_spaced_json(value)
    return _ESCAPABLE_TAG.sub(r"<\\\1", text) if "<" in text else text


def _render_name(name: str) -> str:
    return (
        name
        if _PLAIN_NAME.fullmatch(name)
        else render_spaced_json(name).replace("<", "\\u003c").replace(">", "\\u003e")
    )


_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "\n": "&#10;", "\r": "&#13;"}


def _escape_attribute(name: str) -> str:
    return "".join(_ENTITIES.get(sign, sign) for sign in name)


# Qwen3-Coder and Qwen 3.5


def _qwen_calls(calls: Sequence[ToolCall]) -> str:
    return "\n".join(f"<tool_call>\n{_qwen_call(call)}\n</tool_call>" for call in calls)


def _qwen_call(call: ToolCall) -> str:
    parts = [
        f"<parameter={_render_name(k)}>\n{_render_value(v)}\n</parameter>\n" for k, v in named_arguments(call).items()
    ]
    return f"<function={_render_name(call.name)}>\n{''.join(parts)}</function>"


def _render_elements(fields: Mapping[str, Any], skipped: tuple[str, ...]) -> list[str]:
    """Render each key as a tag, except those in `skipped`."""
    return [
        f"<{key}>{value if isinstance(value, str) else render_spaced_json(value)}</{key}>"
        for key, value in fields.items()
        if key not in skipped
    ]


def _qwen_parameter(name: str, schema: object) -> list[str]:
    fields = object_or_none(schema) or {}
    parts = [f"<name>{name}</name>"]
    if "type" in fields:
        parts.append(
            f"<type>{fields['type'] if isinstance(fields['type'], str) else render_spaced_json(fields['type'])}</type>"
        )
    if isinstance(fields.get("description"), str):
        parts.append(f"<description>{fields['description'].strip()}</description>")
    return ["<parameter>", *parts, *_render_elements(fields, ("name", "type", "description")), "</parameter>"]


def _qwen_tool(tool: Tool) -> str:
    schema = tool.parameters or {}
    lines = ["<function>", f"<name>{tool.name}</name>"]
    if tool.description:
        lines.append(f"<description>{tool.description.strip()}</description>")
    lines.append("<parameters>")
    for name, fields in (object_or_none(schema.get("properties")) or {}).items():
        lines += _qwen_parameter(name, fields)
    lines += _render_elements(schema, ("type", "properties"))
    return "\n".join([*lines, "</parameters>", "</function>"])


def _qwen_tools(tools: Sequence[Tool]) -> str:
    listed = "\n".join(_qwen_tool(tool) for tool in tools)
    return (
        f"# Tools\n\nYou have access to the following tools:\n\n<tools>\n{listed}\n</tools>\n\n"
        "If you choose to call a tool ONLY reply in the following format with NO suffix:\n\n"
        "<tool_call>\n<function=example_function_name>\n"
        "<parameter=example_parameter_1>\nvalue_1\n</parameter>\n"
        "<parameter=example_parameter_2>\nThis is the value for the second parameter\nthat can span\nmultiple lines\n"
        "</parameter>\n</function>\n</tool_call>\n\n"
        "<IMPORTANT>\nReminder:\n"
        "- A call MUST follow this format: a <function=...></function> block within <tool_call></tool_call> tags\n"
        "- Required parameters MUST be given\n"
        "- You may say in words why you call the tool BEFORE the call, but NOT after it\n"
        "- If no tool is of use, answer as usual and do not mention tools\n"
        "</IMPORTANT>"
    )


def _qwen_results(results: Sequence[ResultText]) -> str:
    return "\n".join(f"<tool_response>\n{result.text}\n</tool_response>" for result in results)


# GLM


def _glm_calls(calls: Sequence[ToolCall]) -> str:
    return "\n".join(_glm_call(call) for call in calls)


def _glm_call(call: ToolCall) -> str:
    parts = [
        f"<arg_key>{_render_name(key)}</arg_key>\n<arg_value>{_render_value(value)}</arg_value>\n"
        for key, value in named_arguments(call).items()
    ]
    return f"<tool_call>{call.name}\n{''.join(parts)}</tool_call>"


def _glm_tools(tools: Sequence[Tool]) -> str:
    listed = "\n".join(render_spaced_json(function_declaration(tool)) for tool in tools)
    return (
        "# Tools\n\nYou may call one or more functions to assist with the user query.\n\n"
        "You are provided with function signatures within <tools></tools> XML tags:\n"
        f"<tools>\n{listed}\n</tools>\n\n"
        "For each function call, output the function name and arguments within the following XML format:\n"
        "<tool_call>{function-name}\n<arg_key>{arg-key-1}</arg_key>\n<arg_value>{arg-value-1}</arg_value>\n"
        "<arg_key>{arg-key-2}</arg_key>\n<arg_value>{arg-value-2}</arg_value>\n...\n</tool_call>"
    )


# MiniMax


def _minimax_calls(calls: Sequence[ToolCall]) -> str:
    parts = "".join(f"{_minimax_call(call)}\n" for call in calls)
    return f"<minimax:tool_call>\n{parts}</minimax:tool_call>" if parts else ""


def _minimax_call(call: ToolCall) -> str:
    parts = [
        f'<parameter name="{_escape_attribute(key)}">{_render_value(value)}</parameter>\n'
        for key, value in named_arguments(call).items()
    ]
    return f'<invoke name="{_escape_attribute(call.name)}">\n{"".join(parts)}</invoke>'


def _minimax_tools(tools: Sequence[Tool]) -> str:
    listed = "".join(f"<tool>{render_spaced_json(function_declaration(tool)['function'])}</tool>\n" for tool in tools)
    return (
        "# Tools\nYou may call one or more tools to assist with the user query.\n"
        f"Here are the tools available in JSONSchema format:\n\n<tools>\n{listed}</tools>\n\n"
        "When making tool calls, use XML format to invoke tools and pass parameters:\n\n"
        '<minimax:tool_call>\n<invoke name="tool-name-1">\n<parameter name="param-key-1">param-value-1</parameter>\n'
        '<parameter name="param-key-2">param-value-2</parameter>\n...\n</invoke>\n</minimax:tool_call>'
    )


def _minimax_results(results: Sequence[ResultText]) -> str:
    return "\n".join(f"<response>{result.text}</response>" for result in results)


def _build_format(
    title: str,
    render_tools: Callable[[Sequence[Tool]], str],
    render_calls: Callable[[Sequence[ToolCall]], str],
    render_results: Callable[[Sequence[ResultText]], str],
) -> TextFormat:
    return TextFormat(
        name="xml",
        title=title,
        openers=(*_XML_OPENERS, minimax.OPENER),
        markers=(
            minimax.MARKER,
            "<function=",
            "<parameter=",
            "<arg_key>",
            "<invoke name=",
            "<minimax:tool_call>",
            "<function_calls>",
            "&lt;arg_key&gt;",
        ),
        render_tools=render_tools,
        render_calls=render_calls,
        render_results=render_results,
        eos_tokens=("<|im_end|>", "<|endoftext|>", "<|observation|>", "<|user|>"),
    )


XML = _build_format("Qwen3-Coder, Qwen 3.5, GLM, MiniMax: tags", _qwen_tools, _qwen_calls, _qwen_results)
XML_VARIANTS = {
    "qwen": XML,
    "glm": _build_format("GLM: keys and values as tags", _glm_tools, _glm_calls, _qwen_results),
    "minimax": _build_format("MiniMax: tags with attributes", _minimax_tools, _minimax_calls, _minimax_results),
}
"""By model family: all variants are parsed alike; the one that the model was trained on is rendered."""
