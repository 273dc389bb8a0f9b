"""`deepseek-text`: what DeepSeek's models write (TPL-07, TPL-08), in four generations and in the spellings of copies.

V3 and R1 put the name behind a separator and the arguments into a fence, V3.1 the name before it and the arguments
bare; V3.2 and V4 write elements. Copies write the special tokens with plain bars and underscores. Rendered is V3.1:
its arguments are JSON, so every value can be told, where an element can't hold its own end, and older models read it
as well, since it is their layout without the fence.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import TypeAlias

from segue.canonical.blocks import ToolCall
from segue.canonical.request import Tool
from segue.wire.text.base import Answered, Lost, Piece, TextFormat
from segue.wire.text.elements import Elements
from segue.wire.text.spoken import arguments_of, function_of, spaced
from segue.wire.text.tape import Marks, Reading, Tape, broken, call_of, closers, opener, value
from segue.wire.text.typed import Declared

__all__ = ["DEEPSEEK_TEXT"]

_BAR, _GAP = "\N{FULLWIDTH VERTICAL LINE}", "\N{LOWER ONE EIGHTH BLOCK}"
_BARS = tuple(product((_BAR, "|"), repeat=2))


def _token(*words: str, gap: str = _GAP, bars: tuple[str, str] = _BARS[0]) -> str:
    return f"<{bars[0]}tool{gap}{gap.join(words)}{bars[1]}>"


_CALLS, _CALLS_END = _token("calls", "begin"), _token("calls", "end")
_CALL, _CALL_END, _SEP = _token("call", "begin"), _token("call", "end"), _token("sep")
_OUTPUT, _OUTPUT_END = _token("output", "begin"), _token("output", "end")


def _spellings(*words: str) -> list[str]:
    """A special token as it is, and as copies of the models spell it out."""
    return [_token(*words, gap=gap, bars=bars) for bars, gap in product(_BARS, (_GAP, "_", "\\_", " "))]


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


def _read(tape: Tape, _declared: Declared) -> Reading[list[Piece]]:
    kind = yield from tape.take(_OPENING)
    opened = tape.at
    if kind == "section":
        yield from tape.space()
        if (yield from tape.take(_SECTION_ENDS)):
            return [Lost(tape.whole()[: tape.at], "no call follows")]
        kind = yield from tape.take(_BEGIN)
        opened = tape.at if kind else opened
    begun = tape.at
    mark = yield from tape.find(_MARKS, _LONGEST_NAME)
    # R1 leaves out what begins the first call of a section.
    if not mark or (not kind and mark != "separator"):
        return [Lost(tape.whole()[:opened], "no call follows")]
    head = begun, tape.at
    if not (yield from tape.take(_SEPARATOR)):
        return (yield from broken(tape, _CLOSING, "no arguments follow"))
    name, place, fenced = yield from _behind_separator(tape)
    if place is None:
        return (yield from broken(tape, _CLOSING, "the arguments have no end"))
    end = yield from closers(tape, *([_FENCE_END] if fenced else []), _ENDS, _SECTION_ENDS)
    text = tape.whole()
    first, second = text[slice(*head)].strip(), text[slice(*name)].strip()
    said = text[slice(*place)].strip().removesuffix("```")
    if second and not said and first != "function" and not fenced:
        second, said = "", second
    return [call_of(second or first, said, text[:end])]


_Place: TypeAlias = tuple[int, int]


def _behind_separator(tape: Tape) -> Reading[tuple[_Place, _Place | None, bool]]:
    """Where a name stands and where the arguments do, None if they have no end; and whether they are in a fence."""
    yield from tape.space()
    start = tape.at
    sign = yield from tape.sign()
    name = start, start
    if sign not in ("{", "[", '"', "`") and not (yield from tape.here(_MARKS)):
        if not (yield from tape.find(_NAME_ENDS, _LONGEST_NAME)):
            return name, None, False
        name = start, tape.at
        yield from tape.space()
    fenced = bool((yield from tape.take(_FENCE)))
    yield from tape.space()
    if (yield from tape.here(_FENCE_END if fenced else _CLOSING)):
        return name, (tape.at, tape.at), fenced
    if (yield from tape.here(_MARKS)):
        return name, None, fenced
    return name, (yield from value(tape, _MARKS)), fenced


def _element(tag: str) -> list[str]:
    """A tag of V3.2 and V4, with the bars of the special token or plain ones."""
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
    said = [f"{_CALL}{call.name}{_SEP}{spaced(arguments_of(call))}{_CALL_END}" for call in calls]
    return f"{_CALLS}{''.join(said)}{_CALLS_END}" if said else ""


def _render_results(results: Sequence[Answered]) -> str:
    return "".join(f"{_OUTPUT}{result.text}{_OUTPUT_END}" for result in results)


DEEPSEEK_TEXT = TextFormat(
    name="deepseek-text",
    title="DeepSeek V3 to V4: special tokens and JSON, or elements",
    openers=(opener(_OPENING, _read), _DSML.opener),
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
)
