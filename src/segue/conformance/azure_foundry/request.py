"""A Foundry body parsed for its rules: a Responses request, and mismatches with the service's own schema."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import msgspec

from segue.conformance.openai_responses.request import ResponsesRequest
from segue.conformance.openai_responses.request import parse_request as parse_responses_request
from segue.conformance.rule import Problem
from segue.conformance.values import is_list, is_object
from segue.models import Model
from segue.specs.types import Mismatch, ValueKind, find_mismatches, load_types


class FoundryRequest(msgspec.Struct, frozen=True):
    """The body, parsed once for all rules."""

    responses: ResponsesRequest
    problems: Mapping[str, Sequence[Problem]]
    """Rule → mismatches of the body with the schema."""
    rejected_paths: frozenset[str]
    """The paths of all mismatches: the model behind the service never receives them."""

    @property
    def body(self) -> Mapping[str, object]:
        return self.responses.body


_ITEM = re.compile(r"input\[\d+\]")
_JSON_TYPE_NAMES: Mapping[ValueKind, str] = {"list": "array", "map": "object", "bytes": "string"}


def _rule_number(mismatch: Mismatch) -> str:
    """Return the rule that a mismatch breaks: AZF-03 if there is no more specific one."""
    place = _ITEM.sub("", mismatch.path, count=1) if _ITEM.match(mismatch.path) else ""
    if place == ".type" and mismatch.kind == "choice":
        return "AZF-08"
    if place == ".arguments" and mismatch.kind == "type" and mismatch.spec.kind == "string":
        return "AZF-10"
    if (
        place == ".id"
        and mismatch.kind == "missing"
        and is_object(mismatch.value)
        and mismatch.value.get("type") == "reasoning"
    ):
        return "AZF-11"
    return "AZF-03"


def _json_type(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float):
        return "integer" if isinstance(value, int) else "number"
    if isinstance(value, str):
        return "string"
    return "array" if is_list(value) else "object" if is_object(value) else type(value).__name__


def _format_message(mismatch: Mismatch) -> str:
    spec = mismatch.spec
    match mismatch.kind:
        case "type" if spec.any_of:
            expected = ", ".join(
                dict.fromkeys(_JSON_TYPE_NAMES.get(option.kind, option.kind) for option in spec.any_of)
            )
            return f"Expected one of: {expected}; got {_json_type(mismatch.value)}"
        case "type":
            return f"Expected {_JSON_TYPE_NAMES.get(spec.kind, spec.kind)}, got {_json_type(mismatch.value)}"
        case "missing":
            return f"Required property '{mismatch.key}' is missing"
        case "choice":
            return f"Invalid discriminator {mismatch.value!r:.80}. Allowed: {', '.join(sorted(spec.variants))}"
        case "value":
            return f"Invalid value {mismatch.value!r:.80}. Allowed: {', '.join(spec.values)}"
        case "short" | "long" | "pattern" | "unknown" | "none" | "several":
            return f"{mismatch.path} has more than the {spec.maximum} that are allowed"


def parse_request(body: Mapping[str, object], model: Model) -> FoundryRequest:
    """Parse a body; any object is accepted."""
    problems: dict[str, list[Problem]] = {}
    rejected: set[str] = set()
    for mismatch in find_mismatches(load_types("azure-foundry")["CreateResponse"], body):
        problems.setdefault(_rule_number(mismatch), []).append(Problem(mismatch.path, _format_message(mismatch)))
        rejected.add(mismatch.path)
    return FoundryRequest(parse_responses_request(body, model), problems, frozenset(rejected))
