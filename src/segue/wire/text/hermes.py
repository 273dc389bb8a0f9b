"""`hermes`: JSON between `<tool_call>` and `</tool_call>`, the format of Hermes, Qwen 2.5 and Qwen 3 (TPL-01)."""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec.structs import replace

from segue.canonical.blocks import ToolCall
from segue.canonical.request import Tool
from segue.wire.text.base import Answered, Found, Piece, TextFormat, literal
from segue.wire.text.loose import JsonScan
from segue.wire.text.reader import Reader, Reading
from segue.wire.text.spoken import arguments_of, calls_in, function_of, spaced

__all__ = ["HERMES", "tagged_objects"]

_OPEN, _CLOSE = "<tool_call>", "</tool_call>"
_TAGS = re.compile(f"(?<={_CLOSE})|{_OPEN}")


class _Calls(Reader):
    """One or more calls and the closing tag, which may be missing."""

    def read(self) -> Reading[list[Piece]]:
        self.take(len(_OPEN))
        return (yield from tagged_objects(self, _CLOSE, _TAGS))


def tagged_objects(reader: Reader, closing: str, tags: re.Pattern[str]) -> Reading[list[Piece]]:
    """Read consecutive objects, or a list of them, up to a closing tag. The opening tag is already consumed."""
    segments: list[Piece] = []
    while True:
        yield from reader.space()
        if not (yield from reader.ahead("{", "[")):
            return [*segments, reader.lost("no call after the tag", tags)]
        start = reader.mark
        scan = JsonScan("<")
        whole = yield from reader.json(scan)
        text = reader.since(start)
        if not whole:
            found = _mended(text) if (yield from reader.one_of(closing)) else None
            if found is None:
                why = "invalid JSON" if scan.broken and not scan.stopped else "unterminated JSON"
                return [*segments, reader.lost(why, tags)]
            return [*segments, replace(found[0], written=reader.written()), *found[1:]]
        behind = yield from _behind(reader, closing)
        found = calls_in(text)
        if isinstance(found, str):
            return [*segments, reader.lost(found, tags)]
        segments += [replace(found[0], written=reader.written()), *found[1:]]
        if behind != "{":
            return segments


def _mended(text: str) -> list[Found] | None:
    """The calls of JSON without its last bracket, which small models forget before the tag."""
    found = calls_in(text + ("]" if text.startswith("[") else "}"))
    return None if isinstance(found, str) else found


def _behind(reader: Reader, closing: str) -> Reading[str]:
    """Return what follows an object: the closing tag, which is consumed, another object, or something else.

    A surplus brace before the tag is consumed with it.
    """
    end = reader.mark
    yield from reader.space()
    found = yield from reader.ahead(closing, "{", "}")
    if found == "}":
        reader.take(1)
        yield from reader.space()
        found = yield from reader.ahead(closing)
    if found == closing:
        reader.take(len(closing))
    else:
        reader.give_back(end)
    return found


def _render_tools(tools: Sequence[Tool]) -> str:
    listed = "\n".join(spaced(function_of(tool)) for tool in tools)
    return (
        "# Tools\n\nYou may call one or more functions to assist with the user query.\n\n"
        "You are provided with function signatures within <tools></tools> XML tags:\n"
        f"<tools>\n{listed}\n</tools>\n\n"
        "For each function call, return a json object with function name and arguments within "
        "<tool_call></tool_call> XML tags:\n"
        '<tool_call>\n{"name": <function-name>, "arguments": <args-json-object>}\n</tool_call>'
    )


def _render_calls(calls: Sequence[ToolCall]) -> str:
    """Tags in strings are escaped, so that simple parsers do not take them for tags."""
    rendered = [spaced({"name": call.name, "arguments": arguments_of(call)}) for call in calls]
    safe = [_TAG_IN_STRING.sub(r"\\u003c\1", text) for text in rendered]
    return "\n".join(f"{_OPEN}\n{text}\n{_CLOSE}" for text in safe)


_TAG_IN_STRING = re.compile(r"<(/?tool_call>)")


def _render_results(results: Sequence[Answered]) -> str:
    return "\n".join(f"<tool_response>\n{result.text}\n</tool_response>" for result in results)


HERMES = TextFormat(
    name="hermes",
    title="Hermes, Qwen 2.5 and 3: JSON between tags",
    openers=(literal(_OPEN, _Calls),),
    markers=("<tool_call>\n{", "<tool_call>{", "<tool_call>\n[", "<tool_call>["),
    render_tools=_render_tools,
    render_calls=_render_calls,
    render_results=_render_results,
    ends=("<|im_end|>", "<|endoftext|>"),
)
