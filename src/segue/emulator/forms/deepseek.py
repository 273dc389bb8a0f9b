"""Body validation of DeepSeek: the JSON deserializer reports types, the service ranges."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from segue.conformance.form import TEXT, Fault, Form, either, faults, maybe, members, sized, text
from segue.emulator.forms.chat import OBJECT, chosen_tool, messages, settings, tools
from segue.emulator.forms.openai_words import bad_function, functions
from segue.wire.base import ApiError

__all__ = ["refused"]

_CODE = "invalid_request_error"
_TEXT = {"text": members({"text": TEXT})}
_MEMBERS = {
    **settings(),
    "messages": messages({"system": _TEXT, "user": _TEXT, "assistant": _TEXT, "tool": None}),
    "tools": tools(),
    "tool_choice": maybe(either(text("none", "auto", "required"), OBJECT)),
    "max_tokens": maybe(sized("integer", 1)),
}
_FORM = members(None, **_MEMBERS)
_RANGES = {
    "temperature": "[0, 2.0]",
    "top_p": "(0, 1.0]",
    "max_tokens": "[1, 393216]",
    "max_completion_tokens": "[1, 393216]",
    "presence_penalty": "[-2.0, 2.0]",
    "frequency_penalty": "[-2.0, 2.0]",
    "top_logprobs": "[0, 20]",
    "n": "[1, 1]",
}
_EXPECTED = {
    "string": "a string",
    "integer": "u32",
    "number": "f32",
    "boolean": "a boolean",
    "list": "a sequence",
}
_DEEP = re.compile(r"(messages\[\d+\]|tools\[\d+\])\..+")


def _said(message: str) -> ApiError:
    return ApiError(400, message, code=_CODE)


def _seen(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return f"boolean `{json.dumps(value)}`"
        case int():
            return f"integer `{value}`"
        case float():
            return f"floating point `{value}`"
        case str():
            return f"string {json.dumps(value, ensure_ascii=False)}"
        case list() | tuple():
            return "sequence"
        case _:
            return "map"


def _expected(form: Form, path: str) -> str:
    if form.kind == "object":
        return "internally tagged enum ChatCompletionRequestMessage" if "messages" in path else "a map"
    return _EXPECTED.get(form.kind, "a string")


def _unread(fault: Fault) -> str:
    place = _DEEP.sub(r"\1", fault.path)
    match fault.wrong:
        case "missing":
            return f"{place}: missing field `{fault.key}`"
        case "choice" | "value":
            known = [f"`{name}`" for name in fault.form.choices or fault.form.values]
            expected = known[0] if len(known) == 1 else f"one of {', '.join(known)}"
            where = fault.path if fault.path.endswith(".role") else place
            return f"{where}: unknown variant `{fault.value}`, expected {expected}"
        case _ if fault.path.endswith(".content"):
            return f"{place}: data did not match any variant of untagged enum ChatCompletionRequestContent"
        case _:
            return f"{place}: invalid type: {_seen(fault.value)}, expected {_expected(fault.form, fault.path)}"


def refused(body: Mapping[str, Any], data: bytes) -> ApiError | None:
    """Returns the error for the first mismatch, `None` if valid; `data` is the body's text, for its line and column."""
    for fault in faults(_FORM, body):
        if fault.wrong in ("short", "long"):
            known = _RANGES.get(fault.path)
            rest = f", the valid range of {fault.path} is {known}" if known else ""
            return _said(f"Invalid {fault.path} value{rest}")
        lines = data.rstrip().split(b"\n")
        place = f"line {len(lines)} column {len(lines[-1])}"
        return _said(f"Failed to deserialize the JSON body into the target type: {_unread(fault)} at {place}")
    if body.get("messages") == []:
        return _said("Empty input messages")
    for _, function in functions(body):
        if function.get("parameters") is not None:
            error = bad_function("", function.get("name"), function["parameters"])
            if error is not None:
                return _said(error.message)
    undeclared = chosen_tool(body) if body.get("tools") else None
    return None if undeclared is None else _said(f"The tool '{undeclared}' in tool_choice is not found in tools")
