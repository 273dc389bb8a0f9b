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
from segue.wire.text.base import Answered, Piece, TextFormat
from segue.wire.text.elements import Elements
from segue.wire.text.marks import MarkedReader, Marks, call_of, opener
from segue.wire.text.reader import Reading
from segue.wire.text.spoken import arguments_of, function_of, spaced
from segue.wire.text.typed import Declared

__all__ = ["KIMI_TEXT"]

_BEGIN, _ARGUMENTS, _END = "<|tool_call_begin|>", "<|tool_call_argument_begin|>", "<|tool_call_end|>"
_SECTION, _SECTION_END = "<|tool_calls_section_begin|>", "<|tool_calls_section_end|>"
_MARKS = Marks(
    {
        "section": (_SECTION, "<|tool_call_section_begin|>"),
        "begin": _BEGIN,
        "arguments": _ARGUMENTS,
        "end": _END,
        "section end": (_SECTION_END, "<|tool_call_section_end|>"),
    }
)
_OPENING, _CALL, _SEPARATOR = _MARKS.only("section", "begin"), _MARKS.only("begin"), _MARKS.only("arguments")
_CLOSING, _ENDS, _SECTION_ENDS = _MARKS.only("end", "section end"), _MARKS.only("end"), _MARKS.only("section end")
_LONGEST_ID = 512


class _Call(MarkedReader):
    """One call, with the section's tokens if they come directly before or after it."""

    marks, opening, closing = _MARKS, _OPENING, _CLOSING

    def read(self) -> Reading[list[Piece]]:
        if (yield from self.past(_OPENING)) == "section":
            opened = self.mark
            yield from self.space()
            if not (yield from self.past(_CALL)):
                if not (yield from self.past(_SECTION_ENDS)):
                    self.give_back(opened)
                return [self.lost("no call")]
        start = self.mark
        if not (yield from self.find(_MARKS, _LONGEST_ID)):
            self.give_back(start)
            return [self.lost("no id")]
        raw_id = self.since(start).strip()
        if not (yield from self.past(_SEPARATOR)):
            return (yield from self.broken("no arguments"))
        text = yield from self.value()
        if text is None or (not text and not (yield from self.here(_CLOSING))):
            return (yield from self.broken("unterminated arguments"))
        yield from self.closers(_ENDS, _SECTION_ENDS)
        return [call_of(_name_of(raw_id, self.declared), text, self.written(), raw_id)]


_NUMBERED = re.compile(r"(.+):\d+", re.DOTALL)


def _name_of(raw_id: str, declared: Declared) -> str:
    """The tool name in an id `functions.name:3`, whose prefix or number may be missing."""
    body = raw_id.removeprefix("functions.")
    numbered = _NUMBERED.fullmatch(body)
    before_colon = body.rpartition(":")[0]
    likely = numbered[1] if numbered is not None else before_colon if body != raw_id and before_colon else body
    if declared.given and not declared.knows(likely):
        for other in (body, before_colon, raw_id, likely.rpartition(".")[2]):
            if declared.knows(other):
                return other
    return likely


def _spelled_id(name: str, raw_id: str) -> str:
    """The id of a rendered call. An id that does not hold the tool name is appended to it."""
    if re.fullmatch(rf"(functions\.)?{re.escape(name)}:\d+", raw_id) or (raw_id == name and ":" not in name):
        return raw_id
    return f"functions.{name}:{quote(raw_id, safe='') or 0}"


_SEP = "<|sep|>"
_K3 = Elements(
    Marks(
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
    name="tool",
    key="key",
    is_text=lambda attributes: attributes["type"] == "string" if "type" in attributes else None,
    attribute=unescape,
)


def _render_tools(tools: Sequence[Tool]) -> str:
    listed = spaced([function_of(tool) for tool in tools])
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
    parts = [f"{_BEGIN}{_spelled_id(one.name, one.id)}{_ARGUMENTS}{spaced(arguments_of(one))}{_END}" for one in calls]
    return f"{_SECTION}{''.join(parts)}{_SECTION_END}"


def _render_results(results: Sequence[Answered]) -> str:
    return "\n\n".join(f"## Return of {_spelled_id(one.name, one.id)}\n{one.text}" for one in results)


KIMI_TEXT = TextFormat(
    name="kimi-text",
    title="Kimi K2 and K3: special tokens, and ids that hold the name",
    openers=(opener(_OPENING, _Call), _K3.opener),
    markers=(_SECTION, "<|tool_call_section_begin|>", _ARGUMENTS, f"<|open|>tools{_SEP}", "<|open|>call tool="),
    render_tools=_render_tools,
    render_calls=_render_calls,
    render_results=_render_results,
    provider="kimi",
    ends=("<|im_end|>", "[EOS]"),
)
