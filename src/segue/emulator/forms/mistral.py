"""What Mistral says where no messages can be read at all; everything else of the form is the judge's."""

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


def finding(sort: str, said: str, value: object, *steps: str | int) -> ApiError:
    """One entry of the list that pydantic makes."""
    return ApiError(422, said, details=({"type": sort, "loc": ["body", *steps], "msg": said, "input": value},))


def _told(fault: Fault) -> ApiError:
    steps = steps_of(fault.path)
    if fault.wrong == "missing":
        said = "Unable to extract tag using discriminator 'role'"
        return finding("union_tag_not_found", said, fault.value, *steps[:-1])
    return finding(*_KINDS.get(fault.form.kind, _OBJECT), fault.value, *steps)


def refused(body: Mapping[str, Any]) -> ApiError | None:
    """The first thing that keeps a body from being read."""
    return next((_told(fault) for fault in faults(_FORM, body)), None)
