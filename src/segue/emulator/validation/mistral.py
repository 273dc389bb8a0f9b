"""Body validation of Mistral: only malformed messages; the conformance rules check everything else."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from segue.conformance.chat_types import OBJECT
from segue.emulator.errors.openai_style import parse_path
from segue.emulator.http_messages import HttpRequest
from segue.specs.types import STRING, Mismatch, any_of, find_mismatches, list_of, nullable, object_of
from segue.wire.base import ApiError

_SPEC = object_of(messages=list_of(object_of({"role": STRING}, content=nullable(any_of(STRING, list_of(OBJECT))))))
_KINDS = {
    "string": ("string_type", "Input should be a valid string"),
    "list": ("list_type", "Input should be a valid list"),
    "any": ("string_type", "Input should be a valid string"),
}
_OBJECT = ("model_attributes_type", "Input should be a valid dictionary or object to extract fields from")


def pydantic_error(error_type: str, message: str, value: object, *steps: str | int) -> ApiError:
    """Build an error with one entry of pydantic's list."""
    return ApiError(
        422, message, details=({"type": error_type, "loc": ["body", *steps], "msg": message, "input": value},)
    )


def _mismatch_error(mismatch: Mismatch) -> ApiError:
    steps = parse_path(mismatch.path)
    if mismatch.kind == "missing":
        message = "Unable to extract tag using discriminator 'role'"
        return pydantic_error("union_tag_not_found", message, mismatch.value, *steps[:-1])
    return pydantic_error(*_KINDS.get(mismatch.spec.kind, _OBJECT), mismatch.value, *steps)


def validate(body: Mapping[str, Any], _http_request: HttpRequest) -> ApiError | None:
    """Return the error for the first malformed message, `None` if the body can be parsed."""
    return next((_mismatch_error(mismatch) for mismatch in find_mismatches(_SPEC, body)), None)
