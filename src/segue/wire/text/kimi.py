"""`kimi-text`: calls between special tokens, each with an id that holds the tool name, as in Kimi K2 (TPL-09).

The name of the section around the calls is plural or singular, and the section may be missing; K3 writes elements
(TPL-10). K2's format is rendered: it has ids, and its JSON can hold any value.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import unescape
from urllib.parse import quote

from segue.canonical.blocks import ToolCall
from segue.canonical.request import Tool
from segue.wire.text.declared_tools import DeclaredTools
from segue.wire.text.elements import ElementFormat
from segue.wire.text.json_calls import parse_call
from segue.wire.text.regions import Marker, Reading, Segment, ThoughtRegion, literal_opener
from segue.wire.text.text_format import ResultText, TextFormat, call_arguments, function_declaration, render_spaced_json
from segue.wire.text.tokens import TokenRegion, TokenSet, token_opener

_BEGIN, _ARGUMENTS, _END = "<|tool_call_begin|>", "<|tool_call_argument_begin|>", "<|tool_call_end|>"
_SECTION, _SECTION_END = "<|tool_calls_section_begin|>", "<|tool_calls_section_end|>"
_TOKENS = TokenSet(
    {
        "section": (_SECTION, "<|tool_call_section_begin|>"),
        "begin": _BEGIN,
        "arguments": _ARGUMENTS,
        "end": _END,
        "section end": (_SECTION_END, "<|tool_call_section_end|>"),
    }
)
_OPENING, _CALL, _SEPARATOR = _TOKENS.select("section", "begin"), _TOKENS.select("begin"), _TOKENS.select("arguments")
_CLOSING, _ENDS, _SECTION_ENDS = (
    _TOKENS.select("end", "section end"),
    _TOKENS.select("end"),
    _TOKENS.select("section end"),
)
_LONGEST_ID = 512
_LONGEST_NOISE = 1024


class _Call(TokenRegion):
    """One call, with the section's tokens if they come directly before or after it."""

    tokens, opening, closing = _TOKENS, _OPENING, _CLOSING

    def read(self) -> Reading[list[Segment]]:
        if (yield from self.take_token(_OPENING)) == "section":
            opened = self.checkpoint
            yield from self.skip_space()
            if not (yield from self.take_token(_CALL)):
                return (yield from self._read_noise(opened))
        start = self.checkpoint
        if not (yield from self.take_until_token(_TOKENS, _LONGEST_ID)):
            self.rewind(start)
            return [self.build_broken_call("no id")]
        raw_id = self.text_since(start).strip()
        if not (yield from self.take_token(_SEPARATOR)):
            return (yield from self.take_broken_call("no arguments"))
        text = yield from self.take_value()
        if text is None or (not text and not (yield from self.peek_token(_CLOSING))):
            return (yield from self.take_broken_call("unterminated arguments"))
        yield from self.take_closers(_ENDS, _SECTION_ENDS)
        return [parse_call(_parse_tool_name(raw_id, self.declared), text, self.flush_taken(), raw_id)]

    def _read_noise(self, opened: int) -> Reading[list[Segment]]:
        """Read a section that begins with text. Its tokens are dropped if a call, or text and its end, follow."""
        if (yield from self.take_token(_SECTION_ENDS)):
            return [self.build_broken_call("no call after the opening token")]
        next_token = yield from self.take_until_token(_TOKENS, _LONGEST_NOISE)
        noise = self.text_since(opened)
        if next_token == "section end":
            yield from self.take_token(_SECTION_ENDS)
            end = self.text_since(opened)[len(noise) :]
            self.rewind(opened)
            token = self.flush_taken()
            self.take(len(noise) + len(end))
            self.flush_taken()
            return [Marker(token), noise, Marker(end)]
        self.rewind(opened)
        if next_token == "begin":
            return [Marker(self.flush_taken())]
        return [self.build_broken_call("no call after the opening token")]


_NUMBERED_ID = re.compile(r"(.+):\d+", re.DOTALL)


def _parse_tool_name(raw_id: str, declared: DeclaredTools) -> str:
    """Parse the tool name in an id `functions.name:3`, whose prefix or number may be missing."""
    body = raw_id.removeprefix("functions.")
    numbered = _NUMBERED_ID.fullmatch(body)
    before_colon = body.rpartition(":")[0]
    likely = numbered[1] if numbered is not None else before_colon if body != raw_id and before_colon else body
    if declared.is_given and not declared.can_call(likely):
        for candidate in (body, before_colon, raw_id, likely.rpartition(".")[2]):
            if declared.can_call(candidate):
                return candidate
    return likely


def _render_id(name: str, raw_id: str) -> str:
    """Render the id of a call. An id that does not hold the tool name is appended to it."""
    if re.fullmatch(rf"(functions\.)?{re.escape(name)}:\d+", raw_id) or (raw_id == name and ":" not in name):
        return raw_id
    return f"functions.{name}:{quote(raw_id, safe='') or 0}"


_SEP = "<|sep|>"
_K3 = ElementFormat(
    TokenSet(
        {
            "section": f"<|open|>tools{_SEP}",
            "call": "<|open|>call ",
            "parameter": "<|open|>argument ",
            "json": "<|open|>json",
            "parameter end": f"<|close|>argument{_SEP}",
            "json end": f"<|close|>json{_SEP}",
            "call end": f"<|close|>call{_SEP}",
            "section end": f"<|close|>tools{_SEP}",
            "tag end": _SEP,
        }
    ),
    name_attribute="tool",
    key_attribute="key",
    is_text=lambda attributes: attributes["type"] == "string" if "type" in attributes else None,
    unescape=unescape,
)


class _Thought(ThoughtRegion):
    opening, closing = f"<|open|>think{_SEP}", f"<|close|>think{_SEP}"


# The elements around the text of a reply; a prompt may begin the reasoning.
_WRAPPERS = TokenSet(
    {
        "open": [f"<|open|>{tag}{_SEP}" for tag in ("response", 'message role="assistant"')],
        "close": [f"<|close|>{tag}{_SEP}" for tag in ("response", "think", "message")],
    }
)


class _Wrapper(TokenRegion):
    """One tag of an element around the text."""

    tokens = opening = closing = _WRAPPERS

    def read(self) -> Reading[list[Segment]]:
        yield from self.take_token(_WRAPPERS)
        return [Marker(self.flush_taken())]


def _render_tools(tools: Sequence[Tool]) -> str:
    listed = render_spaced_json([function_declaration(tool) for tool in tools])
    return (
        "# Tools\n\nThese are the tools you may call, described in JSON Schema:\n\n"
        f"{listed}\n\n"
        "To call tools, end your reply with one section that holds all calls:\n\n"
        f"{_SECTION}{_BEGIN}functions.tool_name:0{_ARGUMENTS}{{...}}{_END}{_SECTION_END}\n\n"
        "The number behind the name counts all calls of the conversation from 0. "
        "What a call returned follows under the heading `## Return of functions.tool_name:0`."
    )


def _render_calls(calls: Sequence[ToolCall]) -> str:
    if not calls:
        return ""
    parts = [
        f"{_BEGIN}{_render_id(call.name, call.id)}{_ARGUMENTS}{render_spaced_json(call_arguments(call))}{_END}"
        for call in calls
    ]
    return f"{_SECTION}{''.join(parts)}{_SECTION_END}"


def _render_results(results: Sequence[ResultText]) -> str:
    return "\n\n".join(f"## Return of {_render_id(result.name, result.id)}\n{result.text}" for result in results)


KIMI_TEXT = TextFormat(
    name="kimi-text",
    title="Kimi K2 and K3: special tokens, and ids that hold the name",
    openers=(
        token_opener(_OPENING, _Call),
        _K3.opener,
        literal_opener(_Thought.opening, _Thought),
        token_opener(_WRAPPERS, _Wrapper),
    ),
    markers=(
        *(_SECTION, "<|tool_call_section_begin|>", _ARGUMENTS, f"<|open|>tools{_SEP}", "<|open|>call tool="),
        *(f"<|open|>response{_SEP}", f"<|close|>response{_SEP}"),
    ),
    render_tools=_render_tools,
    render_calls=_render_calls,
    render_results=_render_results,
    provider="kimi",
    eos_tokens=("<|im_end|>", "[EOS]", "<|end_of_msg|>"),
)
