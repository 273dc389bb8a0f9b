"""Body validation of DashScope: schema errors in the format of JSON Schema, others with its own prefix."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from segue.conformance.form import TEXT, Fault, either, faults, maybe, members, text
from segue.emulator.forms.chat import OBJECT, chosen_tool, messages, settings, tools
from segue.emulator.forms.openai_words import bad_function, functions
from segue.emulator.forms.schemas import shown
from segue.wire.base import ApiError

__all__ = ["refused"]

_CODE = "invalid_parameter_error"
_PREFIX = "<400> InternalError.Algo.InvalidParameter: "
_TOLD = ("text", "image_url", "video_url", "video")
_PARTS = {"text": members({"text": TEXT}), **dict.fromkeys((*_TOLD[1:], "input_audio", "file"), OBJECT)}
_ROLES = ("system", "assistant", "user", "tool", "function", "developer")
_MEMBERS = {
    **settings(),
    "messages": messages({role: None if role in ("tool", "function") else _PARTS for role in _ROLES}),
    "tools": tools(),
    "tool_choice": maybe(either(text("none", "auto", "required"), OBJECT)),
}
_FORM = members(None, **_MEMBERS)
_KINDS = {"list": "array", "map": "object", "any": "object"}


def _said(message: str) -> ApiError:
    return ApiError(400, message, code=_CODE)


def _dotted(path: str) -> str:
    return path.replace("[", ".").replace("]", "")


def _told(fault: Fault) -> ApiError:
    place, value, form = _dotted(fault.path), shown(fault.value), fault.form
    match fault.wrong:
        case "missing":
            return _said(f"'{fault.key}' is a required property - '{place.rpartition('.')[0]}'")
        case "choice" if ".content." in place:
            *most, last = (f"'{name}'" for name in _TOLD)
            return _said(f"Invalid value: {fault.value}. Supported values are: {','.join(most)} and {last}.")
        case "choice" | "value":
            known = list(form.choices or form.values)
            known = [name for name in known if name != "developer"]
            return _said(f"{value} is not one of {known} - '{place}'")
        case "short" | "long":
            bounds = f"[{form.least:g}, {form.most:g}]" if form.most is not None else f"[{form.least:g}, 65536]"
            return _said(f"{_PREFIX}Range of {place} should be {bounds}")
        case _ if form.either:
            return _said(f"{value} is not valid under any of the given schemas - '{place}'")
        case _:
            return _said(f"{value} is not of type '{_KINDS.get(form.kind, form.kind)}' - '{place}'")


def refused(body: Mapping[str, Any]) -> ApiError | None:
    """Returns the error for the first mismatch of a body with the spec, `None` if it is valid."""
    for fault in faults(_FORM, body):
        return _told(fault)
    for _, function in functions(body):
        if function.get("parameters") is not None:
            error = bad_function("", function.get("name"), function["parameters"])
            if error is not None:
                return _said(_PREFIX + error.message)
    undeclared = chosen_tool(body)
    return None if undeclared is None else _said(f"{_PREFIX}The tool '{undeclared}' in tool_choice is not in tools.")
