"""What all text formats say alike: a tool's declaration, and the arguments of a call, as JSON."""

from __future__ import annotations

from segue.canonical.blocks import ToolCall
from segue.canonical.jsontext import write_text
from segue.canonical.request import Tool
from segue.wire.fields import JsonObject

__all__ = ["declared_function", "said_arguments"]


def declared_function(tool: Tool) -> JsonObject:
    """The declaration of a tool, in the shape that chat templates get it in."""
    parameters = tool.parameters or {"type": "object", "properties": {}}
    function = {"name": tool.name, "description": tool.description or "", "parameters": parameters}
    return {"type": "function", "function": function}


def said_arguments(call: ToolCall) -> str:
    """The arguments as JSON; those that were none are a string that holds their exact text."""
    return write_text(call.arguments if call.arguments_text is None else call.arguments_text)
