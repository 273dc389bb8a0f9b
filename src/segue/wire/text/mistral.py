"""`mistral-text`: `[TOOL_CALLS]`, in the versions of Mistral's tokenizers (TPL-14).

Up to v7 a list of objects follows, with ids from v3 on; from v11 each call has a name, an id and arguments; from v13
the id is gone. v13 is rendered: current models were trained on it, and it needs no nine-character ids. Results are then
rendered in the order of the calls, since nothing else pairs them.
"""

from __future__ import annotations

from collections.abc import Sequence

from segue.canonical.blocks import ToolCall
from segue.canonical.request import Tool
from segue.wire.fields import object_or_none, string_or_none
from segue.wire.text.base import Answered, Lost, Piece, TextFormat
from segue.wire.text.loose import NotReadableError, read_loose, repeated
from segue.wire.text.marks import MarkedReader, Marks, call_of, call_with, opener
from segue.wire.text.reader import Reading
from segue.wire.text.spoken import arguments_of, function_of, spaced

__all__ = ["MISTRAL_TEXT"]

_CALLS, _ID, _ARGUMENTS = "[TOOL_CALLS]", "[CALL_ID]", "[ARGS]"
_MARKS = Marks({"calls": _CALLS, "id": _ID, "arguments": _ARGUMENTS})
_OPENING, _SEPARATORS = _MARKS.only("calls"), _MARKS.only("id", "arguments")
_NAME_ENDS = _MARKS.joined({"object": "{"})
_LONGEST_NAME = 256


class _Calls(MarkedReader):
    marks, opening, closing = _MARKS, _OPENING, Marks({})

    def read(self) -> Reading[list[Piece]]:
        yield from self.past(_OPENING)
        opened = self.mark
        yield from self.space()
        if not (yield from self.here(_MARKS)):
            sign = yield from self.sign()
            if sign == "[":
                self.take(1)
            if sign in ("[", "{"):
                return (yield from self._objects(listed=sign == "["))
        start = self.mark
        mark = yield from self.find(_NAME_ENDS, _LONGEST_NAME)
        if not mark:
            self.give_back(opened)
            return [self.lost("no call")]
        name, raw_id = self.since(start), None
        if mark == "id":
            yield from self.past(_SEPARATORS)
            start = self.mark
            mark = yield from self.find(_NAME_ENDS, _LONGEST_NAME)
            raw_id = self.since(start).strip() or None
        if mark not in ("arguments", "object"):
            return [self.lost("no arguments")]
        yield from self.past(_SEPARATORS)
        text = yield from self.value()
        if not text:
            return (yield from self.broken("unterminated arguments"))
        return [call_of(name, text, self.written(), raw_id)]

    def _objects(self, *, listed: bool) -> Reading[list[Piece]]:
        """Read calls as objects, in a list or one alone. Each is parsed separately."""
        segments: list[Piece] = []
        while True:
            yield from self.space()
            start = self.mark
            if (yield from self.sign()) != "{":
                yield from self.one_of("]")
                return [*segments, self.lost("no call")]
            if not (yield from self.balanced()):
                return [*segments, *(yield from self.broken("unterminated call"))]
            text = self.since(start)
            has_more = listed and (yield from self._between_objects())
            segments.append(_call_of(text, self.written()))
            if not has_more:
                return segments

    def _between_objects(self) -> Reading[bool]:
        """Consume the separator or the end of the list; return whether another object follows."""
        end = self.mark
        yield from self.space()
        yield from self.one_of(",")
        yield from self.space()
        if (yield from self.one_of("]")):
            return False
        if (yield from self.sign()) in ("{", ""):
            return (yield from self.sign()) == "{"
        self.give_back(end)
        return False


def _call_of(text: str, written: str) -> Piece:
    try:
        value = object_or_none(read_loose(text))
    except NotReadableError as error:
        return Lost(written, str(error))
    if value is None:
        return Lost(written, "no tool name")
    function = object_or_none(value.get("function")) or value
    name, raw_id = string_or_none(function.get("name")), string_or_none(value.get("id"))
    arguments = function.get("arguments", function.get("parameters", {}))
    return call_with(name or "", arguments, written, raw_id, repeated(text, value))


def _render_tools(tools: Sequence[Tool]) -> str:
    return f"[AVAILABLE_TOOLS]{spaced([function_of(tool) for tool in tools])}[/AVAILABLE_TOOLS]"


def _render_calls(calls: Sequence[ToolCall]) -> str:
    return "".join(f"{_CALLS}{call.name}{_ARGUMENTS}{spaced(arguments_of(call))}" for call in calls)


def _render_results(results: Sequence[Answered]) -> str:
    return "".join(f"[TOOL_RESULTS]{result.text}[/TOOL_RESULTS]" for result in results)


MISTRAL_TEXT = TextFormat(
    name="mistral-text",
    title="Mistral: [TOOL_CALLS], in the versions of its tokenizers",
    openers=(opener(_OPENING, _Calls),),
    markers=(_CALLS,),
    render_tools=_render_tools,
    render_calls=_render_calls,
    render_results=_render_results,
    provider="mistral",
    ends=("</s>",),
)
