"""The JSON parser of the Gemini API: which values it accepts for the messages of `segue.specs`.

Names are in snake_case here; the parser also accepts camelCase, null for an absent field, and one value for a list.
`check_fields` reports what it rejects. Objects whose members are not known are not checked further.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache

from segue.conformance.lookup import list_entries
from segue.conformance.rule import Problem
from segue.conformance.values import is_list, is_object, quote, type_name
from segue.specs.types import Spec, load_types

# The data fields of a part, of which it has exactly one.
DATA_FIELDS = (
    *("text", "inline_data", "file_data", "function_call", "function_response", "executable_code"),
    *("code_execution_result", "tool_call", "tool_response"),
)

# Fields that only Vertex or newer endpoints have; other endpoints report an unknown name.
OTHER_ENDPOINT_FIELDS = frozenset(
    {
        *(("GenerateContentRequest", "model_armor_config"), ("GenerateContentRequest", "output_config")),
        *(("FunctionCall", "partial_args"), ("FunctionCall", "will_continue")),
        *(("Tool", "retrieval"), ("Tool", "enterprise_web_search"), ("Tool", "parallel_ai_search")),
        *(("Tool", "exa_ai_search"), ("FunctionCallingConfig", "stream_function_call_arguments")),
        *(("Schema", "additional_properties"), ("Schema", "defs"), ("Schema", "ref")),
    }
)
_MAX_DEPTH = 64
_ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
_BASE64 = re.compile(r"(?:[A-Za-z0-9_-]*|[A-Za-z0-9+/]*)(={0,2})")


def message(name: str) -> Spec:
    """Return a message of the API by its name."""
    return load_types("gemini")[name]


@cache
def to_camel(name: str) -> str:
    """Return the camelCase name of a field."""
    head, *rest = name.split("_")
    return head + "".join(word.capitalize() for word in rest)


@cache
def _names() -> Mapping[str, str]:
    return {to_camel(name): name for spec in load_types("gemini").values() for name in spec.members}


def to_snake(key: str) -> str:
    """Return the snake_case field name of a key; unknown keys are returned unchanged."""
    return _names().get(key, key)


def iter_entries(value: object, path: str) -> Iterator[tuple[str, object]]:
    """Yield the entries of a list field with their paths: a single value counts as one entry, null as none."""
    if is_list(value):
        yield from list_entries(value, path)
    elif value is not None:
        yield path, value


def is_invalid_base64(text: str) -> bool:
    """Return whether the parser can't decode this: invalid characters, a wrong length, or trailing bits."""
    match = _BASE64.fullmatch(text)
    if match is None:
        return True
    padding = len(match[1])
    digits = len(text) - padding
    rest = digits % 4
    if rest == 1 or (padding and rest + padding != 4):
        return True
    if not rest:
        return False
    last = text[digits - 1]
    value = _ALPHABET.index(last) if last in _ALPHABET else 62 if last in "-+" else 63
    return value % (16 if rest == 2 else 4) != 0


def check_fields(value: object, spec: Spec, path: str, depth: int = 0) -> Iterator[Problem]:
    """Report unknown names and wrong types in a value of this type."""
    if value is None or spec.kind == "any":
        return
    if spec.kind == "list" and spec.items is not None:
        for place, entry in iter_entries(value, path):
            yield from check_fields(entry, spec.items, place, depth)
    elif is_list(value):
        yield Problem(path, "Proto field is not repeating, cannot start list.")
    elif spec.kind == "map" and spec.items is not None:
        if not is_object(value):
            yield _invalid_value(path, "a map", value)
            return
        for key, entry in value.items():
            yield from check_fields(entry, spec.items, f"{path}.{key}", depth)
    elif spec.members:
        yield from _check_message(value, spec, path, depth + 1)
    else:
        yield from _check_scalar(value, spec, path)


def find_unknown_part_key(part: Mapping[str, object]) -> str | None:
    """Return the key of the only data of a part if it is an object under an unknown name: a newer part type."""
    present = [key for key, entry in part.items() if entry is not None]
    unknown = [key for key in present if to_snake(key) not in message("Part").members]
    if len(unknown) != 1 or not is_object(part[unknown[0]]) or any(to_snake(key) in DATA_FIELDS for key in present):
        return None
    return unknown[0]


def _check_message(value: object, spec: Spec, path: str, depth: int) -> Iterator[Problem]:
    if not is_object(value):
        yield _invalid_value(path, _to_snake_name(spec.name), value)
    elif depth > _MAX_DEPTH:
        yield Problem(path, "the request exceeds the maximum allowed nesting depth", "risk")
    else:
        newer = find_unknown_part_key(value) if spec.name == "Part" else None
        for key, entry in value.items():
            place = f"{path}.{key}" if path else str(key)
            name = to_snake(key)
            if key == newer:
                yield Problem(place, f"unknown part type, possibly a newer one: Unknown name {quote(key)}", "risk")
            elif name not in spec.members:
                yield Problem(place, f"Invalid JSON payload received. Unknown name {quote(key)}: Cannot find field.")
            elif (spec.name, name) in OTHER_ENDPOINT_FIELDS and entry is not None:
                yield Problem(place, f"not supported by every endpoint: Unknown name {quote(key)}", "risk")
            elif (spec.name, name) != ("FunctionResponse", "response"):  # GEM-13 checks it
                yield from check_fields(entry, spec.members[name], place, depth)
                # GEM-18 checks signatures.
                if spec.name == "Blob" and name == "data" and isinstance(entry, str) and is_invalid_base64(entry):
                    yield _invalid_value(place, "TYPE_BYTES", entry, "Base64 decoding failed for ")


def _to_snake_name(name: str) -> str:
    return re.sub("(?<!^)(?=[A-Z])", "_", name).lower()


def _check_scalar(value: object, spec: Spec, path: str) -> Iterator[Problem]:
    match spec.kind:
        case "map":
            valid, expected = is_object(value), "google.protobuf.Struct"
        case "object":
            valid, expected = is_object(value), "a message"
        case "boolean":
            valid, expected = isinstance(value, bool) or value in ("true", "false"), "TYPE_BOOL"
        case "integer" | "number":
            valid, expected = is_number(value, spec), number_type(spec)
        case "string" if spec.values:
            known = isinstance(value, str) and value.upper() in spec.values
            valid = known or (isinstance(value, int) and not isinstance(value, bool))
            expected = spec.name.removeprefix("FunctionCallingConfig")
        case _:
            valid, expected = isinstance(value, str), "TYPE_STRING" if spec.kind == "string" else "TYPE_BYTES"
    if not valid:
        problem = _invalid_value(path, expected, value)
        # The service may have values of an enumeration that are newer than these types.
        yield Problem(path, problem.message, "risk") if spec.values and isinstance(value, str) else problem


def is_number(value: object, spec: Spec) -> bool:
    """Return whether the parser accepts this as a number: also a string with one, and 8192.0 for an integer."""
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            return False
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return spec.kind == "number" or isinstance(value, int) or value.is_integer()


def number_type(spec: Spec) -> str:
    """Return the parser's name of a number's type."""
    return "TYPE_INT32" if spec.kind == "integer" else "TYPE_FLOAT"


def _invalid_value(path: str, expected: str, value: object, why: str = "") -> Problem:
    shown = quote(value) if isinstance(value, str) else type_name(value)
    return Problem(path, f"Invalid value ({expected}), {why}{shown}")
