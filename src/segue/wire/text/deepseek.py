"""`deepseek-text`: the formats of four generations of DeepSeek models (TPL-07, TPL-08), and variants of derived models.

V3 and R1 put the name after a separator and the arguments into a code fence; V3.1 puts the name before it and the
arguments unfenced; V3.2 and V4 write elements. Derived models write the special tokens with ASCII bars and underscores.
V3.1 is rendered: its JSON arguments can hold every value, while an element can't hold its own end tag, and older models
understand it, since it is their layout without the fence.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

from segue.canonical.blocks import ToolCall
from segue.canonical.request import Tool
from segue.wire.text.base import Answered, Piece, TextFormat
from segue.wire.text.elements import Elements
from segue.wire.text.marks import MarkedReader, Marks, call_of, opener
from segue.wire.text.reader import Reading
from segue.wire.text.spoken import arguments_of, function_of, spaced

__all__ = ["DEEPSEEK_TEXT"]

_BAR, _GAP = "\N{FULLWIDTH VERTICAL LINE}", "\N{LOWER ONE EIGHTH BLOCK}"
_BARS = tuple((left, right) for left in (_BAR, "|") for right in (_BAR, "|"))


def _token(*parts: str, gap: str = _GAP, bars: tuple[str, str] = _BARS[0]) -> str:
    return f"<{bars[0]}tool{gap}{gap.join(parts)}{bars[1]}>"


_CALLS, _CALLS_END = _token("calls", "begin"), _token("calls", "end")
_CALL, _CALL_END, _SEP = _token("call", "begin"), _token("call", "end"), _token("sep")
_OUTPUT, _OUTPUT_END = _token("output", "begin"), _token("output", "end")


def _spellings(*parts: str) -> list[str]:
    """A special token in all variants."""
    return [_token(*parts, gap=gap, bars=bars) for bars, gap in product(_BARS, (_GAP, "_", "\\_", " "))]


_MARKS = Marks(
    {
        "section": [*_spellings("calls", "begin"), *_spellings("calls")],
        "call": _spellings("call", "begin"),
        "separator": _spellings("sep"),
        "call end": _spellings("call", "end"),
        "section end": _spellings("calls", "end"),
    }
)
_OPENING, _BEGIN, _SEPARATOR = _MARKS.only("section", "call"), _MARKS.only("call"), _MARKS.only("separator")
_CLOSING, _ENDS = _MARKS.only("call end", "section end"), _MARKS.only("call end")
_SECTION_ENDS = _MARKS.only("section end")
_FENCE, _FENCE_END = Marks({"fence": ("```json", "```")}), Marks({"fence": "```"})
_NAME_ENDS = _MARKS.joined({"line": "\n", "fence": "```", "object": "{"})
_LONGEST_NAME = 256


class _Call(MarkedReader):
    """One call with a separator, and the section's tokens if they come directly before or after it."""

    marks, opening, closing = _MARKS, _OPENING, _CLOSING

    def read(self) -> Reading[list[Piece]]:
        kind = yield from self.past(_OPENING)
        start = self.mark
        if kind == "section":
            yield from self.space()
            if (yield from self.past(_SECTION_ENDS)):
                return [self.lost("no call")]
            kind = yield from self.past(_BEGIN)
            start = self.mark if kind else start
        mark = yield from self.find(_MARKS, _LONGEST_NAME)
        # R1 omits the begin token of the first call in a section.
        if not mark or (not kind and mark != "separator"):
            self.give_back(start)
            return [self.lost("no call")]
        name = self.since(start).strip()
        if not (yield from self.past(_SEPARATOR)):
            return (yield from self.broken("no arguments"))
        second = (yield from self._second_name()).strip()
        fenced = yield from self.past(_FENCE)
        text = yield from self._arguments(fenced=bool(fenced))
        if text is None:
            return (yield from self.broken("unterminated arguments"))
        yield from self.closers(*([_FENCE_END] if fenced else []), _ENDS, _SECTION_ENDS)
        if second and not text and not fenced and name != "function":
            second, text = "", second
        return [call_of(second or name, text.strip().removesuffix("```"), self.written())]

    def _second_name(self) -> Reading[str]:
        """Up to V3 the name follows the separator, and the call's type comes before it."""
        yield from self.space()
        if (yield from self.sign()) in ("{", "[", '"', "`") or (yield from self.here(_MARKS)):
            return ""
        start = self.mark
        if not (yield from self.find(_NAME_ENDS, _LONGEST_NAME)):
            return ""
        name = self.since(start)
        yield from self.space()
        return name

    def _arguments(self, *, fenced: bool) -> Reading[str | None]:
        yield from self.space()
        if (yield from self.here(_FENCE_END if fenced else _CLOSING)):
            return ""
        return (yield from self.value()) or None


def _element(tag: str) -> list[str]:
    """A tag of V3.2 and V4, with the special token's bars or ASCII ones."""
    return [tag.replace("DSML", f"{left}DSML{right}") for left, right in _BARS]


_DSML = Elements(
    Marks(
        {
            "section": [*_element("<DSMLfunction_calls>"), *_element("<DSMLtool_calls>")],
            "call": _element("<DSMLinvoke "),
            "parameter": _element("<DSMLparameter "),
            "parameter end": _element("</DSMLparameter>"),
            "call end": _element("</DSMLinvoke>"),
            "section end": [*_element("</DSMLfunction_calls>"), *_element("</DSMLtool_calls>")],
            "tag end": ">",
        }
    ),
    name="name",
    key="name",
    is_text=lambda attributes: attributes["string"] == "true" if "string" in attributes else None,
)


def _render_tools(tools: Sequence[Tool]) -> str:
    listed = "".join(
        f"### {tool.name}\nDescription: {tool.description or ''}\n\n"
        f"Parameters: {spaced(function_of(tool)['function']['parameters'])}\n\n"
        for tool in tools
    )
    return (
        f"## Tools\nYou have access to the following tools:\n\n{listed}"
        "IMPORTANT: To use tools, write exactly this:\n"
        f"{_CALLS}{_CALL}tool_call_name{_SEP}tool_call_arguments{_CALL_END}{_CALLS_END}\n\n"
        "Where:\n\n"
        "- `tool_call_name` is the name of one of these tools\n"
        "- `tool_call_arguments` is JSON that follows its Parameters\n"
        "- several calls follow one another without anything between them"
    )


def _render_calls(calls: Sequence[ToolCall]) -> str:
    rendered = [f"{_CALL}{call.name}{_SEP}{spaced(arguments_of(call))}{_CALL_END}" for call in calls]
    return f"{_CALLS}{''.join(rendered)}{_CALLS_END}" if rendered else ""


def _render_results(results: Sequence[Answered]) -> str:
    return "".join(f"{_OUTPUT}{result.text}{_OUTPUT_END}" for result in results)


DEEPSEEK_TEXT = TextFormat(
    name="deepseek-text",
    title="DeepSeek V3 to V4: special tokens and JSON, or elements",
    openers=(opener(_OPENING, _Call), _DSML.opener),
    markers=(
        *_spellings("calls", "begin"),
        *_spellings("sep"),
        *_element("<DSMLinvoke "),
        *_element("<DSMLfunction_calls>"),
    ),
    render_tools=_render_tools,
    render_calls=_render_calls,
    render_results=_render_results,
    provider="deepseek",
    ends=tuple(f"<{bar}end{gap}of{gap}sentence{bar}>" for bar, gap in product((_BAR, "|"), (_GAP, "_"))),
)
