"""The protobuf messages of a Gemini request as its JSON parser accepts them: field names and their types.

Names are in snake case here; the parser also accepts camelCase, null for an absent field, and one value for a list.
`check_fields` reports what it rejects; values of type `any` or `object` are not checked further.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache

from segue.conformance.rule import Problem
from segue.conformance.values import is_list, is_object, quote, type_name

__all__ = [
    "DATA_FIELDS",
    "FIELDS",
    "OTHER_ENDPOINT_FIELDS",
    "check_fields",
    "find_unknown_part_key",
    "is_invalid_base64",
    "iter_entries",
    "to_camel",
    "to_snake",
]

# The data fields of a part, of which it has exactly one.
DATA_FIELDS = (
    *("text", "inline_data", "file_data", "function_call", "function_response", "executable_code"),
    *("code_execution_result", "tool_call", "tool_response"),
)

# Message: its fields with their types, as in the SDK (google-genai 3.1.0); `[]` is a list, `{}` a map, a field
# without a type is a string. `signature` and `result` have their own rules.
_MESSAGES = """
request: model contents=[]content system_instruction=content tools=[]tool tool_config=tool_config
    safety_settings=[]object generation_config=object cached_content service_tier=any store=any labels=object
    continuation_token=any model_armor_config=object output_config=object
content: role parts=[]part
part: text inline_data=blob file_data=file_data function_call=function_call function_response=function_response
    executable_code=executable_code code_execution_result=code_execution_result tool_call=tool_call
    tool_response=tool_response thought=bool thought_signature=signature part_metadata=object media_resolution=any
    video_metadata=object audio_transcription=object media_processing=any speech_metadata=object
blob: data=bytes display_name mime_type
file_data: file_uri display_name mime_type
function_call: id name args=struct partial_args=[]object will_continue=bool
function_response: id name response=result parts=[]function_response_part will_continue=bool scheduling=any
function_response_part: inline_data=blob file_data=file_data media_processing=any
executable_code: id code language=any
code_execution_result: id outcome=any output
tool_call: id tool_type=any args=struct
tool_response: id tool_type=any response=struct
tool: function_declarations=[]function_declaration retrieval=object computer_use=object file_search=object
    google_search=object google_maps=object code_execution=object enterprise_web_search=object
    google_search_retrieval=object parallel_ai_search=object url_context=object mcp_servers=[]object
    exa_ai_search=object
function_declaration: name description parameters=schema parameters_json_schema=any response=schema
    response_json_schema=any behavior=any
schema: type=type format title description nullable=bool enum=[]string items=schema properties={}schema
    property_ordering=[]string required=[]string any_of=[]schema pattern default=any example=any max_items=any
    min_items=any max_length=any min_length=any maximum=any minimum=any max_properties=any min_properties=any
    additional_properties=any defs={}schema ref
tool_config: function_calling_config=function_calling_config retrieval_config=object
    include_server_side_tool_invocations=bool
function_calling_config: mode=mode allowed_function_names=[]string stream_function_call_arguments=bool
"""


def _parse_fields(lines: str) -> dict[str, str]:
    fields = (field.partition("=") for field in lines.split())
    return {name: field_type or "string" for name, _, field_type in fields}


FIELDS: Mapping[str, Mapping[str, str]] = {
    message: _parse_fields(lines) for message, lines in re.findall(r"^(\w+):((?:.|\n )*)", _MESSAGES, re.MULTILINE)
}

# Fields that only Vertex or newer endpoints have; other endpoints report an unknown name.
OTHER_ENDPOINT_FIELDS = frozenset(
    {
        *(("request", "model_armor_config"), ("request", "output_config")),
        *(("function_call", "partial_args"), ("function_call", "will_continue")),
        *(("tool", "retrieval"), ("tool", "enterprise_web_search"), ("tool", "parallel_ai_search")),
        *(("tool", "exa_ai_search"), ("function_calling_config", "stream_function_call_arguments")),
        *(("schema", "additional_properties"), ("schema", "defs"), ("schema", "ref")),
    }
)

_ENUMS: Mapping[str, frozenset[str]] = {
    "type": frozenset(
        {"TYPE_UNSPECIFIED", "STRING", "NUMBER", "INTEGER", "BOOLEAN", "ARRAY", "OBJECT", "NULL"},
    ),
    "mode": frozenset({"MODE_UNSPECIFIED", "AUTO", "ANY", "NONE", "VALIDATED"}),
}
_MAX_DEPTH = 64
_ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
_BASE64 = re.compile(r"(?:[A-Za-z0-9_-]*|[A-Za-z0-9+/]*)(={0,2})")


@cache
def to_camel(name: str) -> str:
    """Returns the camelCase name of a field."""
    head, *rest = name.split("_")
    return head + "".join(word.capitalize() for word in rest)


_NAMES: Mapping[str, str] = {to_camel(name): name for fields in FIELDS.values() for name in fields}


def to_snake(key: str) -> str:
    """Returns the snake_case field name of a key; unknown keys are returned unchanged."""
    return _NAMES.get(key, key)


def iter_entries(value: object, path: str) -> Iterator[tuple[str, object]]:
    """Yields the entries of a list field with their paths: a single value counts as one entry, null as none."""
    if is_list(value):
        yield from ((f"{path}[{position}]", entry) for position, entry in enumerate(value))
    elif value is not None:
        yield path, value


def is_invalid_base64(text: str) -> bool:
    """True if the parser can't decode this: invalid characters, a wrong length, or trailing bits."""
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


def check_fields(value: object, field_type: str, path: str, depth: int = 0) -> Iterator[Problem]:
    """Reports unknown names and wrong types in a value of this type."""
    if value is None or field_type in ("any", "result"):
        return
    if field_type.startswith("[]"):
        for place, entry in iter_entries(value, path):
            yield from check_fields(entry, field_type[2:], place, depth)
    elif is_list(value):
        yield Problem(path, "Proto field is not repeating, cannot start list.")
    elif field_type.startswith("{}"):
        if not is_object(value):
            yield _invalid_value(path, "a map", value)
            return
        for key, entry in value.items():
            yield from check_fields(entry, field_type[2:], f"{path}.{key}", depth)
    elif field_type in FIELDS:
        yield from _check_message(value, field_type, path, depth + 1)
    else:
        yield from _check_scalar(value, field_type, path)


def find_unknown_part_key(part: Mapping[str, object]) -> str | None:
    """Returns the key of the only data of a part if it is an object under an unknown name: a newer part type."""
    present = [key for key, entry in part.items() if entry is not None]
    unknown = [key for key in present if to_snake(key) not in FIELDS["part"]]
    if len(unknown) != 1 or not is_object(part[unknown[0]]) or any(to_snake(key) in DATA_FIELDS for key in present):
        return None
    return unknown[0]


def _check_message(value: object, message: str, path: str, depth: int) -> Iterator[Problem]:
    if not is_object(value):
        yield _invalid_value(path, message, value)
    elif depth > _MAX_DEPTH:
        yield Problem(path, "the request exceeds the maximum allowed nesting depth", "risk")
    else:
        fields = FIELDS[message]
        newer = find_unknown_part_key(value) if message == "part" else None
        for key, entry in value.items():
            place = f"{path}.{key}" if path else str(key)
            name = to_snake(key)
            if key == newer:
                yield Problem(place, f"unknown part type, possibly a newer one: Unknown name {quote(key)}", "risk")
            elif name not in fields:
                yield Problem(place, f"Invalid JSON payload received. Unknown name {quote(key)}: Cannot find field.")
            elif (message, name) in OTHER_ENDPOINT_FIELDS and entry is not None:
                yield Problem(place, f"not supported by every endpoint: Unknown name {quote(key)}", "risk")
            else:
                yield from check_fields(entry, fields[name], place, depth)


def _check_scalar(value: object, field_type: str, path: str) -> Iterator[Problem]:
    if field_type in ("struct", "object"):
        if not is_object(value):
            yield _invalid_value(path, "google.protobuf.Struct" if field_type == "struct" else "a message", value)
    elif field_type == "bool":
        if not isinstance(value, bool) and value not in ("true", "false"):
            yield _invalid_value(path, "TYPE_BOOL", value)
    elif field_type in _ENUMS:
        known = isinstance(value, str) and value.upper() in _ENUMS[field_type]
        if not known and (isinstance(value, bool) or not isinstance(value, int)):
            yield _invalid_value(path, field_type.capitalize(), value)
    elif not isinstance(value, str):
        yield _invalid_value(path, "TYPE_STRING" if field_type == "string" else "TYPE_BYTES", value)
    elif field_type == "bytes" and is_invalid_base64(value):
        yield _invalid_value(path, "TYPE_BYTES", value, "Base64 decoding failed for ")


def _invalid_value(path: str, expected: str, value: object, why: str = "") -> Problem:
    shown = quote(value) if isinstance(value, str) else type_name(value)
    return Problem(path, f"Invalid value ({expected}), {why}{shown}")
