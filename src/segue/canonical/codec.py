"""The stored form: versioned JSON that preserves unknown types and fields.

A field is stored under its own name. A block of an unknown type is decoded to `Opaque` and encoded again unchanged;
unknown fields are kept in `extra`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any, cast

import msgspec
from msgspec import Struct

from segue.canonical import blocks as _blocks
from segue.canonical.blocks import Block, Message, Native, Opaque, Origin, Shortening
from segue.canonical.history import Interaction
from segue.canonical.json import encode_json, parse_json
from segue.canonical.request import Options, Reasoning, Reply, Request, ResponseFormat, Tool, ToolChoice, Usage
from segue.canonical.type_warmup import warm_type
from segue.errors import InputError

VERSION = 1
FORMAT_KEY = "segue"

_BLOCK_TYPES: dict[str, type[Struct]] = {
    "text": _blocks.Text,
    "thinking": _blocks.Thinking,
    "tool_call": _blocks.ToolCall,
    "tool_response": _blocks.ToolResponse,
    "media": _blocks.Media,
    "code": _blocks.Code,
    "opaque": _blocks.Opaque,
}
# Fields that are structs themselves; everything else is plain JSON.
_STRUCT_FIELDS: dict[str, type[Struct]] = {
    "native": Native,
    "origin": Origin,
    "options": Options,
    "tool_choice": ToolChoice,
    "reasoning": Reasoning,
    "response_format": ResponseFormat,
    "usage": Usage,
    "shortened": Shortening,
}
# The names of fields as they were stored by earlier versions.
_FORMER_NAMES: dict[type[Struct], dict[str, str]] = {
    _blocks.Thinking: {"sealed": "encrypted"},
    _blocks.Opaque: {"silent": "omit_reason"},
    Options: {"kindred": "vendor_options"},
    Reply: {"cause": "raw_finish", "others": "other_choices", "beside": "unknown_fields"},
    Interaction: {"seen": "sent", "taken_back": "rewound"},
}


def encode_value(value: object) -> Any:
    """Encode a canonical value as plain JSON values; fields with their default value are omitted."""
    if isinstance(value, tuple | list):
        return [encode_value(item) for item in cast("tuple[object, ...]", value)]
    if not isinstance(value, Struct):
        return value
    if isinstance(value, Opaque) and value.native is not None and value.native.api == FORMAT_KEY:
        return dict(value.native.fragment)
    tag = value.__struct_config__.tag
    fields: dict[str, Any] = {"type": tag} if isinstance(tag, str) else {}
    for name, default in _defaults(type(value)).items():
        item = getattr(value, name)
        if name == "extra":
            fields.update(cast("Mapping[str, Any]", item or {}))
        elif item is not default and item is not msgspec.UNSET and item != default:
            fields[name] = item if type(item) is str else encode_value(item)
    return fields


def use_former_names(value: Any) -> Any:
    """Return an encoded message or block with the names under which earlier versions stored its fields."""
    if isinstance(value, list):
        return [use_former_names(item) for item in cast("list[Any]", value)]
    if not isinstance(value, dict):
        return value
    fields = cast("dict[str, Any]", value)
    kind = _BLOCK_TYPES.get(str(fields.get("type")))
    former = {now: name for name, now in _FORMER_NAMES.get(kind, {}).items()} if kind is not None else {}
    return {
        former.get(name, name): use_former_names(item) if name in ("blocks", "content") else item
        for name, item in fields.items()
    }


@cache
def _defaults(kind: type[Struct]) -> dict[str, Any]:
    """Map the name of each field to its default. Cached, since msgspec's lookup is slow."""
    return {field.name: field.default for field in msgspec.structs.fields(kind)}


def dumps(value: Request | Reply | Message, **extra_fields: Any) -> bytes:
    """Encode a value in its stored form: an envelope with the version, the value and `extra_fields`."""
    return encode_json(
        {FORMAT_KEY: VERSION, "kind": type(value).__name__.lower(), **extra_fields, "value": encode_value(value)}
    )


def loads(data: bytes) -> tuple[Request, dict[str, Any]]:
    """Decode a stored request; also return its envelope, which has the extra fields."""
    stored, _ = parse_json(data)
    envelope = _require_object(stored, "")
    if FORMAT_KEY not in envelope:
        raise InputError("not a stored conversation: the field `segue` with its version is missing")
    if envelope[FORMAT_KEY] != VERSION:
        message = f"stored version {envelope[FORMAT_KEY]!r} is not supported; this version of segue reads {VERSION}"
        raise InputError(message, path=FORMAT_KEY)
    return decode_request(_require_object(envelope.get("value"), "value")), envelope


def decode_request(stored: Mapping[str, Any]) -> Request:
    request = _decode_struct(Request, stored, "value", skip=("messages", "system", "tools"))
    return msgspec.structs.replace(
        request,
        messages=tuple(
            decode_message(item, f"value.messages[{i}]") for i, item in enumerate(stored.get("messages", ()))
        ),
        system=tuple(decode_block(item, f"value.system[{i}]") for i, item in enumerate(stored.get("system", ()))),
        tools=tuple(_decode_struct(Tool, item, f"value.tools[{i}]") for i, item in enumerate(stored.get("tools", ()))),
    )


def decode_message(stored: object, path: str) -> Message:
    try:
        message = msgspec.convert(stored, warm_type(Message))
    except (msgspec.ValidationError, RecursionError):
        # Decoded field by field: values that this version does not expect are kept, or reported with their path.
        pass
    else:
        if not _has_extra((message, *message.blocks)):
            return message
    fields = _require_object(stored, path)
    blocks = tuple(decode_block(item, f"{path}.blocks[{i}]") for i, item in enumerate(fields.get("blocks", ())))
    message = _decode_struct(Message, {**fields, "blocks": ()}, path)
    return msgspec.structs.replace(message, blocks=blocks)


def decode_reply(stored: object, path: str) -> Reply:
    fields = _require_object(stored, path)
    blocks = tuple(decode_block(item, f"{path}.blocks[{i}]") for i, item in enumerate(fields.get("blocks", ())))
    reply = _decode_struct(Reply, {**fields, "blocks": ()}, path)
    return msgspec.structs.replace(reply, blocks=blocks, unknown_fields=tuple(reply.unknown_fields))


def decode_block(stored: object, path: str) -> Block:
    fields = _require_object(stored, path)
    kind = str(fields.get("type", ""))
    if kind not in _BLOCK_TYPES:
        return Opaque(kind, native=Native(FORMAT_KEY, fields))
    block_fields = {name: value for name, value in fields.items() if name != "type"}
    content = block_fields.pop("content", None) if kind == "tool_response" else None
    block = cast("Block", _decode_struct(_BLOCK_TYPES[kind], block_fields, path))
    if isinstance(block, _blocks.ToolResponse) and content is not None:
        inner = tuple(decode_block(item, f"{path}.content[{i}]") for i, item in enumerate(content))
        block = msgspec.structs.replace(block, content=inner)
    return block


def _has_extra(items: Iterable[Message | Block]) -> bool:
    """Return whether a value that was decoded at once has an `extra`: a key of that name is an unknown field."""
    return any(
        item.extra is not None or (isinstance(item, _blocks.ToolResponse) and _has_extra(item.content or ()))
        for item in items
    )


def decode_interaction(stored: object, path: str) -> Interaction:
    fields = _rename_former(Interaction, _require_object(stored, path))

    def block(value: object, name: str) -> Any:
        return decode_block(value, f"{path}.{name}") if value is not None else None

    return Interaction(
        call=block(fields.get("call"), "call"),
        turn_key=str(fields.get("turn_key", "")),
        completion=block(fields.get("completion"), "completion"),
        evidence=[block(item, "evidence") for item in fields.get("evidence", ())],
        sent=bool(fields.get("sent", False)),
        original=block(fields.get("original"), "original"),
        rewound=bool(fields.get("rewound", False)),
    )


def _decode_struct(kind: type[Struct], stored: object, path: str, *, skip: tuple[str, ...] = ()) -> Any:
    fields = _rename_former(kind, _require_object(stored, path))
    names = _defaults(kind)
    values: dict[str, Any] = {}
    extra: dict[str, Any] = {}
    for name, value in fields.items():
        if name in skip:
            continue
        if name not in names or name == "extra":
            extra[name] = value
        elif name in _STRUCT_FIELDS and value is not None:
            values[name] = _decode_struct(_STRUCT_FIELDS[name], value, f"{path}.{name}")
        else:
            values[name] = value
    for name in skip:
        values[name] = ()
    if extra and "extra" in names:
        values["extra"] = extra
    try:
        if not _has_structs(values):
            return msgspec.convert(values, warm_type(kind))
        return kind(**_convert_stop(values))
    except (msgspec.ValidationError, TypeError) as error:
        raise InputError(f"not a stored {kind.__name__}: {error}", path=path) from None


def _rename_former(kind: type[Struct], fields: dict[str, Any]) -> dict[str, Any]:
    """Return the fields under their present names."""
    former = _FORMER_NAMES.get(kind)
    return fields if former is None else {former.get(name, name): value for name, value in fields.items()}


def _has_structs(values: Mapping[str, Any]) -> bool:
    return any(isinstance(value, Struct) for value in values.values())


def _convert_stop(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values with the list of stop sequences as a tuple."""
    return {name: tuple(cast("list[Any]", value)) if name == "stop" else value for name, value in values.items()}


def _require_object(value: object, path: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise InputError("an object was expected", path=path)
    return cast("dict[str, Any]", value)
