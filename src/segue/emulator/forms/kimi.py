"""Body validation of Moonshot, in the style of its other errors; the exact texts are not known."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from segue.conformance.form import ANY, TEXT, Fault, faults, maybe, members
from segue.emulator.forms.chat import OBJECT, chosen_tool, messages, settings, tools
from segue.emulator.forms.openai_words import bad_function, functions
from segue.wire.base import ApiError

__all__ = ["refused"]

_PARTS = {"text": members(text=TEXT), "image_url": OBJECT, "video_url": OBJECT, "file": OBJECT}
_BUILTIN = members({"function": members({"name": TEXT})})
_MEMBERS = {
    **settings(),
    "messages": messages({"system": _PARTS, "user": _PARTS, "assistant": _PARTS, "tool": None, "function": None}),
    "tools": tools(builtin_function=_BUILTIN),
    "tool_choice": maybe(ANY),
}
_FORM = members(None, **_MEMBERS)
_KINDS = {"string": "a string", "integer": "an integer", "number": "a number", "boolean": "a boolean", "list": "a list"}
_MESSAGE = re.compile(r"messages\[(\d+)\]")


def _said(message: str) -> ApiError:
    return ApiError(400, f"Invalid request: {message}")


def _told(fault: Fault, body: Mapping[str, Any]) -> ApiError:
    found = _MESSAGE.match(fault.path)
    at = int(found[1]) if found else 0
    match fault.wrong:
        case "choice" if fault.path.endswith(".role"):
            return _said(f"unsupported role '{fault.value}' in the message at position {at}")
        case "choice" if found:
            role = body["messages"][at]["role"]
            return _said(f"unsupported content type '{fault.value}' in message with role '{role}'")
        case "choice":
            return _said(f"unsupported tool type '{fault.value}'")
        case "missing":
            return _said(f"{fault.path} is required")
        case "short" | "long":
            return _said(f"invalid {fault.path}: {fault.value}")
        case _ if fault.form.either:
            return _said(f"{fault.path} must be a string or a list")
        case _:
            return _said(f"{fault.path} must be {_KINDS.get(fault.form.kind, 'an object')}")


def refused(body: Mapping[str, Any]) -> ApiError | None:
    """Returns the error for the first mismatch of a body with the spec, `None` if it is valid."""
    for fault in faults(_FORM, body):
        return _told(fault, body)
    if body.get("messages") == []:
        return _said("messages must not be empty")
    for _, function in functions(body):
        if function.get("parameters") is not None:
            error = bad_function("", function.get("name"), function["parameters"])
            if error is not None:
                return _said(error.message[:1].lower() + error.message[1:])
    undeclared = chosen_tool(body)
    return None if undeclared is None else _said(f"tool_choice: tool {undeclared} is not found in tools")
