"""A Foundry body parsed for its rules: a Responses request, and mismatches with the service's own schema."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import msgspec

from segue.conformance.azure_foundry.body import BODY
from segue.conformance.form import Fault, Kind, faults
from segue.conformance.openai_responses.request import ResponsesRequest
from segue.conformance.openai_responses.request import read as read_responses
from segue.conformance.rule import Finding
from segue.conformance.values import is_list, is_object
from segue.models import Model

__all__ = ["FoundryRequest", "read"]


class FoundryRequest(msgspec.Struct, frozen=True):
    """The body, parsed once for all rules."""

    responses: ResponsesRequest
    found: Mapping[str, Sequence[Finding]]
    """Rule → mismatches of the body with the schema."""
    refused: frozenset[str]
    """The paths of all mismatches: the model behind the service never receives them."""

    @property
    def body(self) -> Mapping[str, object]:
        return self.responses.body


_ITEM = re.compile(r"input\[\d+\]")
_SPOKEN: Mapping[Kind, str] = {"list": "array", "map": "object", "bytes": "string"}


def _number(fault: Fault) -> str:
    """Returns the rule that a mismatch breaks: AZF-03 if there is no more specific one."""
    place = _ITEM.sub("", fault.path, count=1) if _ITEM.match(fault.path) else ""
    if place == ".type" and fault.wrong == "choice":
        return "AZF-08"
    if place == ".arguments" and fault.wrong == "type" and fault.form.kind == "string":
        return "AZF-10"
    if (
        place == ".id"
        and fault.wrong == "missing"
        and is_object(fault.value)
        and fault.value.get("type") == "reasoning"
    ):
        return "AZF-11"
    return "AZF-03"


def _kind(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float):
        return "integer" if isinstance(value, int) else "number"
    if isinstance(value, str):
        return "string"
    return "array" if is_list(value) else "object" if is_object(value) else type(value).__name__


def _told(fault: Fault) -> str:
    form = fault.form
    match fault.wrong:
        case "type" if form.either:
            expected = ", ".join(dict.fromkeys(_SPOKEN.get(option.kind, option.kind) for option in form.either))
            return f"Expected one of: {expected}; got {_kind(fault.value)}"
        case "type":
            return f"Expected {_SPOKEN.get(form.kind, form.kind)}, got {_kind(fault.value)}"
        case "missing":
            return f"Required property '{fault.key}' is missing"
        case "choice":
            return f"Invalid discriminator {fault.value!r:.80}. Allowed: {', '.join(sorted(form.choices))}"
        case "value":
            return f"Invalid value {fault.value!r:.80}. Allowed: {', '.join(form.values)}"
        case "short" | "long" | "pattern" | "unknown" | "none" | "several":
            return f"{fault.path} has more than the {form.most} that are allowed"


def read(body: Mapping[str, object], model: Model) -> FoundryRequest:
    """Parses a body; any object is accepted."""
    found: dict[str, list[Finding]] = {}
    rejected: set[str] = set()
    for fault in faults(BODY, body):
        found.setdefault(_number(fault), []).append(Finding(fault.path, _told(fault)))
        rejected.add(fault.path)
    return FoundryRequest(read_responses(body, model), found, frozenset(rejected))
