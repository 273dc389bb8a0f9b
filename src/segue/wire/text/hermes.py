"""`hermes`: JSON between `<tool_call>` and `</tool_call>`, the format of Hermes, Qwen 2.5 and Qwen 3 (TPL-01).

Small models also write the JSON without tags; `declared_json` parses it where the tool is declared.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec.structs import replace

from segue.canonical.blocks import ToolCall
from segue.canonical.request import Tool
from segue.wire.text.declared_json import DECLARED_JSON_OPENERS
from segue.wire.text.escaped import escaped_openers
from segue.wire.text.json_calls import parse_json_calls
from segue.wire.text.lenient_json import JsonScanner
from segue.wire.text.regions import FoundCall, Reading, Region, Segment, literal_opener
from segue.wire.text.text_format import ResultText, TextFormat, call_arguments, function_declaration, render_spaced_json

_OPEN, _CLOSE = "<tool_call>", "</tool_call>"
_TAGS = re.compile(f"(?<={_CLOSE})|{_OPEN}")


class _Calls(Region):
    """One or more calls and the closing tag, which may be missing."""

    def read(self) -> Reading[list[Segment]]:
        self.take(len(_OPEN))
        return (yield from read_tagged_calls(self, _CLOSE, _TAGS))


def read_tagged_calls(region: Region, closing: str, tags: re.Pattern[str]) -> Reading[list[Segment]]:
    """Read consecutive objects, or a list of them, up to a closing tag. The opening tag is already consumed."""
    segments: list[Segment] = []
    while True:
        yield from region.skip_space()
        if not (yield from region.peek("{", "[")):
            return [*segments, region.build_broken_call("no call after the tag", tags)]
        start = region.checkpoint
        scan = JsonScanner("<")
        is_complete = yield from region.take_json(scan)
        text = region.text_since(start)
        if not is_complete:
            calls = _repair_json(text) if (yield from region.take_marker(closing)) else None
            if calls is None:
                why = "invalid JSON" if scan.broken and not scan.stopped else "unterminated JSON"
                return [*segments, region.build_broken_call(why, tags)]
            return [*segments, replace(calls[0], raw_text=region.flush_taken()), *calls[1:]]
        next_marker = yield from _take_closing(region, closing)
        calls = parse_json_calls(text)
        if isinstance(calls, str):
            return [*segments, region.build_broken_call(calls, tags)]
        segments += [replace(calls[0], raw_text=region.flush_taken()), *calls[1:]]
        if next_marker != "{":
            return segments


def _repair_json(text: str) -> list[FoundCall] | None:
    """Parse JSON without its last bracket, which small models forget before the tag."""
    calls = parse_json_calls(text + ("]" if text.startswith("[") else "}"))
    return None if isinstance(calls, str) else calls


def _take_closing(region: Region, closing: str) -> Reading[str]:
    """Return what follows an object: the closing tag, which is consumed, another object, or something else.

    A surplus brace before the tag is consumed with it.
    """
    end = region.checkpoint
    yield from region.skip_space()
    marker = yield from region.peek(closing, "{", "}")
    if marker == "}":
        region.take(1)
        yield from region.skip_space()
        marker = yield from region.peek(closing)
    if marker == closing:
        region.take(len(closing))
    else:
        region.rewind(end)
    return marker


def _render_tools(tools: Sequence[Tool]) -> str:
    listed = "\n".join(render_spaced_json(function_declaration(tool)) for tool in tools)
    return (
        "# Tools\n\nYou may call one or more functions to assist with the user query.\n\n"
        "You are provided with function signatures within <tools></tools> XML tags:\n"
        f"<tools>\n{listed}\n</tools>\n\n"
        "For each function call, return a json object with function name and arguments within "
        "<tool_call></tool_call> XML tags:\n"
        '<tool_call>\n{"name": <function-name>, "arguments": <args-json-object>}\n</tool_call>'
    )


def _render_calls(calls: Sequence[ToolCall]) -> str:
    """Render calls; tags in strings are escaped, so that simple parsers do not take them for tags."""
    rendered = [render_spaced_json({"name": call.name, "arguments": call_arguments(call)}) for call in calls]
    safe = [_TAG_IN_STRING.sub(r"\\u003c\1", text) for text in rendered]
    return "\n".join(f"{_OPEN}\n{text}\n{_CLOSE}" for text in safe)


_TAG_IN_STRING = re.compile(r"<(/?tool_call>)")


def _render_results(results: Sequence[ResultText]) -> str:
    return "\n".join(f"<tool_response>\n{result.text}\n</tool_response>" for result in results)


HERMES = TextFormat(
    name="hermes",
    title="Hermes, Qwen 2.5 and 3: JSON between tags",
    openers=(literal_opener(_OPEN, _Calls), *escaped_openers((_OPEN,), _Calls), *DECLARED_JSON_OPENERS),
    markers=("<tool_call>\n{", "<tool_call>{", "<tool_call>\n[", "<tool_call>["),
    render_tools=_render_tools,
    render_calls=_render_calls,
    render_results=_render_results,
    eos_tokens=("<|im_end|>", "<|endoftext|>"),
)
