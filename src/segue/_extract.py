"""`segue.extract`: extract tool calls from a model's text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from segue._literals import TextFormat
from segue._tools import parse_declaration
from segue.canonical.blocks import Text, ToolCall
from segue.canonical.json import parse_json
from segue.canonical.request import Reply, Tool
from segue.errors import InputError, UndetectedApiError, format_count, require_string
from segue.render.report import Report
from segue.wire.stream.parse import DEFAULT_TURN_KEY
from segue.wire.text.declared_tools import DeclaredTools
from segue.wire.text.extractor import TextExtractor, extract_from_reply
from segue.wire.text.registry import detect_format, find_format


class Extracted:
    """Tool calls extracted from a text. `text` is the rest of it, `thinking` the reasoning at its beginning.

    `format` is the text tool format, or None if none was detected.
    """

    def __init__(self, reply: Reply, report: Report, format: str | None) -> None:
        self.text: str = reply.text
        self.thinking: str = reply.thinking
        self.calls: tuple[ToolCall, ...] = reply.calls
        self.report = report
        self.format = format

    def __repr__(self) -> str:
        return f"<Extracted from {self.format or 'plain text'}: {format_count(len(self.calls), 'call')}>"


def extract(text: str, format: TextFormat = "auto", *, tools: object = None) -> Extracted:
    """Extract the tool calls from a text; `auto` detects the format by its markers.

    `tools` are declarations of any API. Arguments in a format without types are converted to the declared types.
    """
    require_string(text, "text")
    require_string(format, "format")
    form = detect_format(text) if format == "auto" else find_format(format)
    report = Report()
    declared = DeclaredTools(None if tools is None else _parse_tools(tools))
    extractor = TextExtractor(form, turn_key=DEFAULT_TURN_KEY, declared=declared, report=report)
    reply = extract_from_reply(Reply((Text(text),)), extractor)
    return Extracted(reply, report, None if form is None else form.name)


def _parse_tools(tools: object) -> list[Tool]:
    """Parse tool declarations: a list, JSON, or an object with a `tools` list."""
    value = parse_json(tools)[0] if isinstance(tools, bytes | bytearray | str) else tools
    if isinstance(value, Mapping):
        value = cast("Mapping[str, Any]", value).get("tools")
    if not isinstance(value, Sequence) or isinstance(value, str | bytes):
        raise InputError("a list of tool declarations was expected", path="tools")
    entries = cast("Sequence[object]", value)
    parsed: list[Tool] = []
    for place, entry in enumerate(entries):
        if not isinstance(entry, Mapping):
            raise InputError("a tool's declaration must be an object", path=f"tools[{place}]")
        try:
            parsed += parse_declaration(cast("Mapping[str, Any]", entry), place)
        except UndetectedApiError as error:
            # `extract` has no argument `source`.
            raise InputError(error.reason, path=error.path) from None
    return parsed
