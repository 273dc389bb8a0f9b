"""Problems for values of a type that the API does not accept, found by comparing a body with a `Spec`.

Types are checked: a required member that is missing, an unknown role, a value of another type; and, apart from them,
the ranges of numeric options. Unknown members, items and parts, and other bounds, are left to the other rules.
`Parser` describes what the JSON parser of a vendor accepts in place of the declared type.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

import msgspec

from segue.conformance.rule import Problem, Severity
from segue.conformance.values import quote, type_name
from segue.specs.types import Mismatch, Spec, find_mismatches

_KINDS: Mapping[str, str] = {
    "string": "a string",
    "integer": "an integer",
    "number": "a number",
    "boolean": "a boolean",
    "list": "a list",
    "object": "an object",
    "map": "an object",
}
_TOOL_TYPE = re.compile(r"tools\[\d+\]\.type")
_BELOW_AND_ABOVE = ("short", "long")
_INTEGER = re.compile(r"[+-]?\d+")
_NUMBER = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?")


class Parser(msgspec.Struct, frozen=True):
    """What the JSON parser of a vendor makes of values of a related type; `None` means that it accepts them."""

    integral_floats: Severity | None = "risk"
    """`8192.0` for an integer."""
    numeric_strings: Severity | None = "reject"
    """`"0.5"` for a number."""
    nulls: Severity = "reject"
    """Null where the published type does not allow it."""


STRICT = Parser()
# pydantic converts numbers, unless a field is declared strict.
PYDANTIC = Parser(integral_floats=None, numeric_strings="risk", nulls="risk")


def is_integral_float(mismatch: Mismatch) -> bool:
    """Return whether the value is a float without a fraction, where an integer is expected."""
    value = mismatch.value
    kinds = {mismatch.spec.kind, *(option.kind for option in mismatch.spec.any_of)}
    return mismatch.kind == "type" and "integer" in kinds and isinstance(value, float) and value.is_integer()


def find_type_problems(spec: Spec, value: object, path: str = "", *, parser: Parser = STRICT) -> Iterator[Problem]:
    """Yield a problem for each value of a wrong type, each missing member and each unknown role."""
    for mismatch in find_mismatches(spec, value, path):
        severity = _find_severity(mismatch, parser)
        if severity is not None:
            yield Problem(mismatch.path, _format_message(mismatch), severity)


def find_range_problems(
    spec: Spec, options: Mapping[str, object], path: str = "", *, parser: Parser = STRICT
) -> Iterator[Problem]:
    """Yield a problem for each numeric option of a body that is outside the range of its spec."""
    for name, value in options.items():
        option = spec.members.get(name)
        if option is None or option.kind not in ("integer", "number"):
            continue
        # A string with a number, where the parser does not convert it, is of a wrong type.
        is_text = isinstance(value, str) and parser.numeric_strings != "reject" and _NUMBER.fullmatch(value)
        number = float(value) if is_text and isinstance(value, str) else value
        place = f"{path}.{name}" if path else name
        for mismatch in find_mismatches(option, number, place):
            if mismatch.kind in _BELOW_AND_ABOVE:
                yield Problem(place, f"{name} is {value}; {describe_range(option)} is expected")


def describe_range(spec: Spec) -> str:
    """Return the range of a number: `0 to 2`, `1 or more`."""
    return f"{spec.minimum:g} or more" if spec.maximum is None else f"{spec.minimum:g} to {spec.maximum:g}"


def _find_severity(mismatch: Mismatch, parser: Parser) -> Severity | None:
    # Some servers treat a tool without a type as a function, and null as none.
    if _TOOL_TYPE.fullmatch(mismatch.path) and (mismatch.kind == "missing" or mismatch.value is None):
        return None
    match mismatch.kind:
        case "missing":
            return "reject"
        case "choice" | "value":
            return "reject" if mismatch.path.endswith(".role") else None
        case "type" if mismatch.value is None:
            return "reject" if mismatch.path.startswith("messages") else parser.nulls
        case "type" if is_integral_float(mismatch):
            return parser.integral_floats
        case "type" if _is_numeric(mismatch):
            return parser.numeric_strings
        case "type":
            return "reject"
        case _:
            return None


def _is_numeric(mismatch: Mismatch) -> bool:
    """Return whether the value is a string with a number of the expected kind."""
    pattern = {"integer": _INTEGER, "number": _NUMBER}.get(mismatch.spec.kind)
    return pattern is not None and isinstance(mismatch.value, str) and pattern.fullmatch(mismatch.value) is not None


def describe_kind(spec: Spec) -> str:
    """Return the expected type with its article: `a string or a list`."""
    if spec.any_of:
        return " or ".join(dict.fromkeys(describe_kind(option) for option in spec.any_of))
    return _KINDS.get(spec.kind, "another value")


def _format_message(mismatch: Mismatch) -> str:
    name = mismatch.path.rpartition(".")[2] or "the body"
    match mismatch.kind:
        case "missing":
            return f"{mismatch.key} is missing"
        case "choice" | "value":
            known = ", ".join(mismatch.spec.variants or mismatch.spec.values)
            return f"the role is {quote(mismatch.value)}; one of {known} is expected"
        case _:
            seen = "a float" if is_integral_float(mismatch) else type_name(mismatch.value)
            return f"{name} is {seen}; {describe_kind(mismatch.spec)} is expected"
