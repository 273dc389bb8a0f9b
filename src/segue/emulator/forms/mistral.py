"""Body validation of Mistral: only malformed messages; the conformance rules check everything else."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from segue.conformance.form import TEXT, Fault, either, entries, faults, maybe, members
from segue.emulator.forms.chat import OBJECT
from segue.emulator.wording.openai_style import steps_of
from segue.wire.base import ApiError

__all__ = ["finding", "refused"]

_FORM = members(messages=entries(members({"role": TEXT}, content=maybe(either(TEXT, entries(OBJECT))))))
_KINDS = {
    "string": ("string_type", "Input should be a valid string"),
    "list": ("list_type", "Input should be a valid list"),
    "any": ("string_type", "Input should be a valid string"),
}
_OBJECT = ("model_attributes_type", "Input should be a valid dictionary or object to extract fields from")


def finding(sort: str, message: str, value: object, *steps: str | int) -> ApiError:
    """Builds an error with one entry of pydantic's list."""
    return ApiError(422, message, details=({"type": sort, "loc": ["body", *steps], "msg": message, "input": value},))


def _told(fault: Fault) -> ApiError:
    steps = steps_of(fault.path)
    if fault.wrong == "missing":
        message = "Unable to extract tag using discriminator 'role'"
        return finding("union_tag_not_found", message, fault.value, *steps[:-1])
    return finding(*_KINDS.get(fault.form.kind, _OBJECT), fault.value, *steps)


def refused(body: Mapping[str, Any]) -> ApiError | None:
    """Returns the error for the first malformed message, `None` if the body can be parsed."""
    return next((_told(fault) for fault in faults(_FORM, body)), None)
