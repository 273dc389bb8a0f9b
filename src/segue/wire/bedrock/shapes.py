"""Validation of Converse requests by the service model in `segue.specs`, except for values that the parser repairs.

Replies of the service have members and values of enumerations that its model lacks, and clients send them back: in
messages, unknown members are not validated, and enumerations nowhere. A content block of a newer type becomes text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Any, cast

from msgspec.structs import replace

from segue.errors import InputError
from segue.specs.types import Spec, bounded, closed_object, load_types
from segue.wire.json_values import JsonObject, json_type_name, require_list, require_object
from segue.wire.mixed_body import find_item_api, find_message_api, find_tool_api

# Members that may be missing or null.
_REPAIRED = frozenset(
    {
        *("ConverseRequest.modelId", "ConverseRequest.system", "ConverseRequest.toolConfig", "ConverseRequest.tools"),
        *("Message.content", "ToolUseBlock.toolUseId", "ToolUseBlock.input"),
        *("ToolResultBlock.toolUseId", "ToolResultBlock.content", "ToolResultBlock.status"),
        *("ReasoningTextBlock.text", "ReasoningTextBlock.signature", "DocumentBlock.name"),
        *("ToolConfiguration.tools", "ToolSpecification.inputSchema"),
    }
)
# Lists that may also be text.
_ACCEPT_TEXT = frozenset({"ConverseRequest.system", "Message.content", "ToolResultBlock.content"})
# Members whose length and pattern are not validated: ids and names are mapped, empty texts and lists are dropped.
_UNBOUNDED = frozenset(
    {
        *("ToolUseBlock.toolUseId", "ToolUseBlock.name", "ToolResultBlock.toolUseId", "DocumentBlock.name"),
        *("SystemContentBlock.text", "ToolSpecification.name", "ToolSpecification.description"),
        *("SpecificToolChoice.name", "ToolConfiguration.tools", "ConverseRequest.tools"),
    }
)
_REPLACED: Mapping[str, Spec] = {
    "ConverseRequest.modelId": bounded("string", 1, 2048),
    "ConverseRequest.additionalModelRequestFields": Spec(kind="object"),
    # BED-09: `tool_use` is in the replies of Claude.
    "ToolUseBlock.type": Spec(kind="string", values=("server_tool_use", "tool_use")),
    "S3Location.uri": bounded("string", 1, 1024, r"s3://[.\-a-z0-9]+(/.*)?"),
    "ToolSpecification.inputSchema": closed_object(json=Spec(kind="object", nullable=True)),
}
# Unions that may have several members, which the parser splits. Null members of them are ignored.
_SPLIT_UNIONS = frozenset({"ContentBlock", "ToolResultContentBlock", "SystemContentBlock", "Tool"})

_PYTHON_TYPES: Mapping[str, tuple[str, tuple[type, ...]]] = {
    "string": ("a string", (str,)),
    "boolean": ("a boolean", (bool,)),
    "integer": ("an integer", (int,)),
    "number": ("a number", (int, float)),
    "object": ("an object", (dict,)),
    # Base64 text in JSON, bytes in boto3.
    "bytes": ("bytes", (str, bytes, bytearray)),
}


@cache
def _request_type() -> Spec:
    types = load_types("bedrock")
    request = types["ConverseRequest"]
    # `convert_tools` passes `tools` here.
    members = {**request.members, "tools": types["ToolConfiguration"].members["tools"]}
    return replace(request, members=members, required=("messages",))


def request_keys() -> frozenset[str]:
    """Return the members of a request; the service rejects any other (BED-09)."""
    return frozenset(load_types("bedrock")["ConverseRequest"].members)


def validate_request(body: JsonObject) -> None:
    """Raise `InputError` with the path of the first value that does not have its type."""
    _validate(body, _request_type())


def _validate(value: Any, spec: Spec, *, bounded: bool = True, in_messages: bool = False) -> None:
    """`in_messages`: unknown members are not validated."""
    if spec.exactly_one:
        _validate_union(require_object(value), spec, in_messages=in_messages)
    elif spec.closed:
        _validate_structure(require_object(value), spec, in_messages=in_messages)
    elif spec.kind in ("list", "map"):
        items = spec.items or Spec()
        is_list = spec.kind == "list"
        for key, item in enumerate(require_list(value)) if is_list else require_object(value).items():
            try:
                if not is_list or not _is_foreign(item, items.name):
                    _validate(item, items, in_messages=in_messages)
            except InputError as error:
                raise error.with_prefix(f"[{key}]" if is_list else str(key)) from None
    elif spec.kind == "any":
        return
    else:
        _validate_scalar(value, spec, bounded=bounded)
    if bounded and (spec.minimum is not None or spec.maximum is not None):
        _validate_size(value, spec)


def _is_foreign(item: Any, type_name: str) -> bool:
    """Return whether the wire of another API parses this message or tool."""
    if type_name not in ("Message", "Tool") or not isinstance(item, dict):
        return False
    fields = cast("JsonObject", item)
    if type_name == "Tool":
        return find_tool_api(fields) not in (None, "bedrock")
    is_item = "role" not in fields and find_item_api(fields) is not None
    return is_item or bool(fields.get("tool_calls")) or find_message_api(fields, "bedrock") is not None


def _validate_scalar(value: Any, spec: Spec, *, bounded: bool) -> None:
    name, types = _PYTHON_TYPES[spec.kind]
    integral = spec.kind == "integer" and isinstance(value, float) and value.is_integer()
    if not (integral or isinstance(value, types)) or (isinstance(value, bool) and spec.kind != "boolean"):
        raise InputError(f"{name} was expected, not {json_type_name(value)}")
    if bounded and spec.pattern and not re.fullmatch(spec.pattern, str(value)):
        raise InputError(f"{value!r} does not match {spec.pattern}")


def _validate_size(value: Any, spec: Spec) -> None:
    number = isinstance(value, int | float)
    size = value if number else len(value)
    minimum = spec.minimum or 0
    if size < minimum or (spec.maximum is not None and size > spec.maximum):
        bounds = f"from {minimum} to {spec.maximum}" if spec.maximum is not None else f"of at least {minimum}"
        raise InputError(f"a {'number' if number else 'length'} {bounds} was expected, not {size}")


def _validate_union(value: JsonObject, spec: Spec, *, in_messages: bool) -> None:
    may_split = spec.name in _SPLIT_UNIONS
    present = [key for key, member in value.items() if member is not None or not may_split]
    known = [key for key in present if key in spec.members]
    if not present:
        raise InputError(f"one of {', '.join(spec.members)} was expected")
    if not known and not in_messages:
        raise InputError(f"one of {', '.join(spec.members)} was expected", path=present[0])
    if len(known) > 1 and not may_split:
        raise InputError(f"one member was expected, not {', '.join(known)}")
    for key in known:
        _validate_member(value[key], spec, key, in_messages=in_messages)


def _validate_structure(value: JsonObject, spec: Spec, *, in_messages: bool) -> None:
    for key in spec.members:
        if key not in value and key in spec.required and f"{spec.name}.{key}" not in _REPAIRED:
            raise InputError(f"`{key}` is missing", path=key)
    is_request = spec.name == "ConverseRequest"
    for key, member in value.items():
        if key in spec.members:
            _validate_member(member, spec, key, in_messages=in_messages or (is_request and key == "messages"))
        elif spec.members and not (is_request or in_messages):
            raise InputError(f"unknown member; known members: {', '.join(spec.members)}", path=key)


def _validate_member(value: Any, owner: Spec, key: str, *, in_messages: bool) -> None:
    place = f"{owner.name}.{key}"
    spec = _REPLACED.get(place) or owner.members[key]
    is_repaired = value is None and (spec.nullable or place in _REPAIRED)
    if is_repaired or (isinstance(value, str) and place in _ACCEPT_TEXT):
        return
    try:
        _validate(value, spec, bounded=place not in _UNBOUNDED, in_messages=in_messages)
    except InputError as error:
        raise error.with_prefix(key) from None
