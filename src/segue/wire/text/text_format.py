"""A text tool format: one frozen value that parses tool calls from a model's text and renders them as text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, cast

from msgspec import Struct

from segue.canonical.blocks import ToolCall
from segue.canonical.request import Tool
from segue.wire.json_values import JsonObject

if TYPE_CHECKING:
    from segue.wire.text.regions import Opener


class ResultText(Struct, frozen=True, gc=False):
    """A tool result as text, with the projected name and id of its call."""

    name: str
    id: str
    text: str
    error: bool = False


class TextFormat(Struct, frozen=True):
    """A text tool format. `provider` is recorded as the origin of parsed calls; `text` where it is unknown.

    `markers` are strings by which text of this format is detected. `render_tools` renders tool declarations and calling
    instructions for the system text, `render_calls` a model's calls, `render_results` their results; ids and names are
    already projected. `one_call_per_reply`: a reply can hold at most one call. `eos_tokens` are the end-of-sequence
    tokens of the format's models, which some servers leave in the text.
    """

    name: str
    title: str
    openers: tuple[Opener, ...]
    markers: tuple[str, ...]
    render_tools: Callable[[Sequence[Tool]], str]
    render_calls: Callable[[Sequence[ToolCall]], str]
    render_results: Callable[[Sequence[ResultText]], str]
    provider: str = "text"
    one_call_per_reply: bool = False
    eos_tokens: tuple[str, ...] = ()


def render_spaced_json(value: object, *, indent: int | None = None) -> str:
    """Render JSON with a blank after each comma and colon, as chat templates do."""
    # Imported here, because only text tool formats need it.
    from json import dumps

    return dumps(value, ensure_ascii=False, indent=indent)


def function_declaration(tool: Tool) -> JsonObject:
    """Return a tool declaration in the form that chat templates take."""
    parameters = tool.parameters or {"type": "object", "properties": {}}
    function = {"name": tool.name, "description": tool.description or "", "parameters": parameters}
    return {"type": "function", "function": function}


def call_arguments(call: ToolCall) -> Any:
    """Return the arguments of a call; text that is not valid JSON stays text."""
    return call.arguments if call.arguments_text is None else call.arguments_text


def named_arguments(call: ToolCall) -> JsonObject:
    """Return the arguments of a call as an object, for formats that only have named arguments."""
    arguments = call_arguments(call)
    if call.arguments_text is not None:
        return {"_raw": call.arguments_text} if call.arguments_text.strip() else {}
    return cast("JsonObject", arguments) if isinstance(arguments, dict) else {"value": arguments}
