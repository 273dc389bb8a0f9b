"""`mistral-text`: `[TOOL_CALLS]`, in the versions of Mistral's tokenizers (TPL-14).

Up to v7 a list of objects follows, with ids from v3 on; from v11 each call has a name, an id, and arguments; from v13
the id is gone. Rendered is v13: the models of today were trained on it, and it asks for no ids of nine signs. What
came back is told in the order of the calls then, since nothing else pairs them.
"""

from __future__ import annotations

from collections.abc import Sequence

from segue.canonical.blocks import ToolCall
from segue.canonical.request import Tool
from segue.wire.fields import object_or_none, string_or_none
from segue.wire.text.base import Answered, Lost, Piece, TextFormat
from segue.wire.text.loose import NotReadableError, read_loose
from segue.wire.text.spoken import arguments_of, function_of, spaced
from segue.wire.text.tape import Marks, Reading, Tape, broken, call_of, call_with, opener, value
from segue.wire.text.typed import Declared

__all__ = ["MISTRAL_TEXT"]

_CALLS, _ID, _ARGUMENTS = "[TOOL_CALLS]", "[CALL_ID]", "[ARGS]"
_MARKS = Marks({"calls": _CALLS, "id": _ID, "arguments": _ARGUMENTS})
_OPENING, _SEPARATORS = _MARKS.only("calls"), _MARKS.only("id", "arguments")
_NOTHING = Marks({})
_NAME_ENDS = _MARKS.joined({"object": "{"})
_LONGEST_NAME = 256


def _read(tape: Tape, _declared: Declared) -> Reading[list[Piece]]:
    yield from tape.take(_OPENING)
    opened = tape.at
    yield from tape.space()
    mark = yield from tape.here(_MARKS)
    if not mark and (yield from tape.sign()) in ("[", "{"):
        return (yield from _list(tape))
    begun = tape.at
    mark = yield from tape.find(_NAME_ENDS, _LONGEST_NAME)
    if mark in ("", "calls"):
        return [Lost(tape.whole()[: tape.at if mark else opened], "no call follows")]
    name, told = (begun, tape.at), None
    if mark == "id":
        yield from tape.take(_SEPARATORS)
        begun = tape.at
        mark = yield from tape.find(_NAME_ENDS, _LONGEST_NAME)
        told = begun, tape.at
    if mark not in ("arguments", "object"):
        return [Lost(tape.whole()[: tape.at], "no arguments follow")]
    yield from tape.take(_SEPARATORS)
    place = yield from value(tape, _MARKS)
    if place is None or place[0] == place[1]:
        return (yield from broken(tape, _NOTHING, "the arguments have no end"))
    text = tape.whole()
    raw_id = None if told is None else text[slice(*told)].strip() or None
    return [call_of(text[slice(*name)], text[slice(*place)], text[: place[1]], raw_id)]


def _list(tape: Tape) -> Reading[list[Piece]]:
    """Calls as objects, in a list or one alone. Each is read by itself: a broken one leaves the others be."""
    parts: list[tuple[int, int]] = []
    start = tape.at
    alone = (yield from tape.sign()) == "{"
    stop = yield from tape.balanced(_MARKS, parts=parts)
    end, text = tape.at, tape.whole()
    if alone:
        parts = [(start, end)] if stop is None else []
    pieces: list[Piece] = []
    passed = 0
    for place in parts:
        is_last = place is parts[-1] and (stop is None or (tape.ended and text[place[1] : end].strip() in ("", ",")))
        behind = end if is_last else place[1]
        pieces.append(_call_of(text[slice(*place)], text[passed:behind]))
        passed = behind
    if passed < end:
        pieces.append(Lost(text[passed:end], "no call follows" if stop is None else "the list of calls has no end"))
    return pieces


def _call_of(text: str, written: str) -> Piece:
    try:
        told = object_or_none(read_loose(text))
    except NotReadableError as error:
        return Lost(written, f"not JSON: {error}")
    if told is None:
        return Lost(written, "no tool is named")
    function = object_or_none(told.get("function")) or told
    name, raw_id = string_or_none(function.get("name")), string_or_none(told.get("id"))
    arguments = function.get("arguments", function.get("parameters", {}))
    return call_with(name or "", arguments, written, raw_id)


def _render_tools(tools: Sequence[Tool]) -> str:
    return f"[AVAILABLE_TOOLS]{spaced([function_of(tool) for tool in tools])}[/AVAILABLE_TOOLS]"


def _render_calls(calls: Sequence[ToolCall]) -> str:
    return "".join(f"{_CALLS}{call.name}{_ARGUMENTS}{spaced(arguments_of(call))}" for call in calls)


def _render_results(results: Sequence[Answered]) -> str:
    return "".join(f"[TOOL_RESULTS]{result.text}[/TOOL_RESULTS]" for result in results)


MISTRAL_TEXT = TextFormat(
    name="mistral-text",
    title="Mistral: [TOOL_CALLS], in the versions of its tokenizers",
    openers=(opener(_OPENING, _read),),
    markers=(_CALLS,),
    render_tools=_render_tools,
    render_calls=_render_calls,
    render_results=_render_results,
    provider="mistral",
)
