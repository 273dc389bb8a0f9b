"""`hermes`: JSON between `<tool_call>` and `</tool_call>`, as Hermes, Qwen 2.5 and Qwen 3 write it (TPL-01)."""

from __future__ import annotations

from collections.abc import Sequence

from segue.canonical.blocks import ToolCall
from segue.canonical.jsontext import write_text
from segue.canonical.request import Tool
from segue.wire.fields import JsonObject, object_or_none
from segue.wire.text.base import Answered, Closed, Found, Lost, Piece, TextFormat, literal
from segue.wire.text.loose import JsonScan, NotReadableError, read_loose
from segue.wire.text.typed import Declared

__all__ = ["HERMES"]

_OPEN, _CLOSE = "<tool_call>", "</tool_call>"


class _Call:
    """One call: an object, and the closing tag, which may be missing at the end of the text."""

    def __init__(self, _declared: Declared) -> None:
        self._text: list[str] = []
        self._scan = JsonScan()
        self._length = 0
        self._end: int | None = None
        self._skip = len(_OPEN)

    def feed(self, text: str) -> Closed | None:
        self._text.append(text)
        start, self._skip = min(self._skip, len(text)), max(0, self._skip - len(text))
        if self._end is None:
            end = self._scan.feed(text, start)
            self._end = None if end is None else self._length + end
        self._length += len(text)
        return None if self._end is None else self._closed("".join(self._text), self._end, ended=False)

    def close(self) -> Closed:
        text = "".join(self._text)
        if self._end is None:
            return Closed([Lost(text, "the call has no end")], "")
        return self._closed(text, self._end, ended=True) or Closed([text], "")

    def _closed(self, text: str, end: int, *, ended: bool) -> Closed | None:
        behind = end
        while behind < len(text) and text[behind].isspace():
            behind += 1
        if text.startswith(_CLOSE, behind):
            behind += len(_CLOSE)
        elif not ended and _CLOSE.startswith(text[behind:]):
            return None
        else:
            behind = end
        return Closed([_call_of(text[len(_OPEN) : end], text[:behind])], text[behind:])


def _call_of(inner: str, written: str) -> Piece:
    try:
        value = object_or_none(read_loose(inner.strip()))
    except NotReadableError as error:
        return Lost(written, f"not JSON: {error}")
    name = None if value is None else value.get("name")
    if value is None or not isinstance(name, str) or not name:
        return Lost(written, "no tool is named")
    arguments = value.get("arguments", value.get("parameters"))
    if isinstance(arguments, str):
        try:
            arguments = read_loose(arguments)
        except NotReadableError:
            return Found(name, None, arguments, written=written)
    return Found(name, {} if arguments is None else arguments, written=written)


def _declared(tool: Tool) -> JsonObject:
    parameters = tool.parameters or {"type": "object", "properties": {}}
    function = {"name": tool.name, "description": tool.description or "", "parameters": parameters}
    return {"type": "function", "function": function}


def _render_tools(tools: Sequence[Tool]) -> str:
    listed = "\n".join(write_text(_declared(tool)) for tool in tools)
    return (
        "# Tools\n\nYou may call one or more functions to assist with the user query.\n\n"
        "You are provided with function signatures within <tools></tools> XML tags:\n"
        f"<tools>\n{listed}\n</tools>\n\n"
        "For each function call, return a json object with function name and arguments within "
        "<tool_call></tool_call> XML tags:\n"
        '<tool_call>\n{"name": <function-name>, "arguments": <args-json-object>}\n</tool_call>'
    )


def _render_calls(calls: Sequence[ToolCall]) -> str:
    said = [write_text({"name": call.name, "arguments": call.arguments}) for call in calls]
    return "\n".join(f"{_OPEN}\n{text}\n{_CLOSE}" for text in said)


def _render_results(results: Sequence[Answered]) -> str:
    return "\n".join(f"<tool_response>\n{result.text}\n</tool_response>" for result in results)


HERMES = TextFormat(
    name="hermes",
    title="Hermes, Qwen 2.5 and 3: JSON between tags",
    openers=(literal(_OPEN, _Call),),
    markers=("<tool_call>\n{", "<tool_call>{"),
    render_tools=_render_tools,
    render_calls=_render_calls,
    render_results=_render_results,
)
