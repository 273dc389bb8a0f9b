"""The stored form: versioned JSON that preserves unknown types and fields.

A block of an unknown type is decoded to `Opaque` and encoded again unchanged; unknown fields are kept in `extra`.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, cast

import msgspec
from msgspec import Struct

from segue.canonical import blocks as _blocks
from segue.canonical.blocks import Block, Message, Native, Opaque, Origin
from segue.canonical.history import Interaction
from segue.canonical.jsontext import read, write
from segue.canonical.learning import learnt
from segue.canonical.request import Options, Reasoning, Reply, Request, ResponseFormat, Tool, ToolChoice, Usage
from segue.errors import InputError

__all__ = [
    "VERSION",
    "decode_block",
    "decode_interaction",
    "decode_message",
    "decode_reply",
    "decode_request",
    "dumped",
    "dumps",
    "loads",
]

VERSION = 1
STORED = "segue"

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
_NESTED: dict[str, type[Struct]] = {
    "native": Native,
    "origin": Origin,
    "options": Options,
    "tool_choice": ToolChoice,
    "reasoning": Reasoning,
    "response_format": ResponseFormat,
    "usage": Usage,
}


def dumped(value: object) -> Any:
    """Encode a canonical value as plain JSON values; fields with their default value are omitted."""
    if isinstance(value, tuple | list):
        return [dumped(item) for item in cast("tuple[object, ...]", value)]
    if not isinstance(value, Struct):
        return value
    if isinstance(value, Opaque) and value.native is not None and value.native.api == STORED:
        return dict(value.native.fragment)
    tag = value.__struct_config__.tag
    fields: dict[str, Any] = {"type": tag} if isinstance(tag, str) else {}
    for name, (attribute, default) in _fields(type(value)).items():
        item = getattr(value, attribute)
        if name == "extra":
            fields.update(cast("Mapping[str, Any]", item or {}))
        elif item is not default and item is not msgspec.UNSET and item != default:
            fields[name] = dumped(item)
    return fields


@cache
def _fields(kind: type[Struct]) -> dict[str, tuple[str, Any]]:
    """Map the stored name of each field to its attribute and default. Cached, since msgspec's lookup is slow."""
    return {field.encode_name: (field.name, field.default) for field in msgspec.structs.fields(kind)}


def dumps(value: Request | Reply | Message, **more: Any) -> bytes:
    """Encode a whole value in its stored form, with further top-level fields of the caller."""
    return write({STORED: VERSION, "kind": type(value).__name__.lower(), **more, "value": dumped(value)})


def loads(data: bytes) -> tuple[Request, dict[str, Any]]:
    """Decode a stored request; also return the whole envelope with the caller's top-level fields."""
    stored, _ = read(data)
    envelope = _object(stored, "")
    if STORED not in envelope:
        raise InputError("not a stored conversation: the field `segue` with its version is missing")
    if envelope[STORED] != VERSION:
        raise InputError(
            f"stored version {envelope[STORED]!r} is not supported; this segue reads version {VERSION}", path=STORED
        )
    return decode_request(_object(envelope.get("value"), "value")), envelope


def decode_request(stored: Mapping[str, Any]) -> Request:
    request = _built(Request, stored, "value", skip=("messages", "system", "tools"))
    return msgspec.structs.replace(
        request,
        messages=tuple(
            decode_message(item, f"value.messages[{i}]") for i, item in enumerate(stored.get("messages", ()))
        ),
        system=tuple(decode_block(item, f"value.system[{i}]") for i, item in enumerate(stored.get("system", ()))),
        tools=tuple(_built(Tool, item, f"value.tools[{i}]") for i, item in enumerate(stored.get("tools", ()))),
    )


def decode_message(stored: object, path: str) -> Message:
    fields = _object(stored, path)
    blocks = tuple(decode_block(item, f"{path}.blocks[{i}]") for i, item in enumerate(fields.get("blocks", ())))
    message = _built(Message, {**fields, "blocks": ()}, path)
    return msgspec.structs.replace(message, blocks=blocks)


def decode_reply(stored: object, path: str) -> Reply:
    fields = _object(stored, path)
    blocks = tuple(decode_block(item, f"{path}.blocks[{i}]") for i, item in enumerate(fields.get("blocks", ())))
    reply = _built(Reply, {**fields, "blocks": ()}, path)
    return msgspec.structs.replace(reply, blocks=blocks, beside=tuple(reply.beside))


def decode_block(stored: object, path: str) -> Block:
    fields = _object(stored, path)
    kind = str(fields.get("type", ""))
    if kind not in _BLOCK_TYPES:
        return Opaque(kind, native=Native(STORED, fields))
    known = {name: value for name, value in fields.items() if name != "type"}
    content = known.pop("content", None) if kind == "tool_response" else None
    block = cast("Block", _built(_BLOCK_TYPES[kind], known, path))
    if isinstance(block, _blocks.ToolResponse) and content is not None:
        inner = tuple(decode_block(item, f"{path}.content[{i}]") for i, item in enumerate(content))
        block = msgspec.structs.replace(block, content=inner)
    return block


def decode_interaction(stored: object, path: str) -> Interaction:
    fields = _object(stored, path)

    def block(value: object, name: str) -> Any:
        return decode_block(value, f"{path}.{name}") if value is not None else None

    return Interaction(
        call=block(fields.get("call"), "call"),
        turn_key=str(fields.get("turn_key", "")),
        completion=block(fields.get("completion"), "completion"),
        evidence=[block(item, "evidence") for item in fields.get("evidence", ())],
        seen=bool(fields.get("seen", False)),
        original=block(fields.get("original"), "original"),
        taken_back=bool(fields.get("taken_back", False)),
    )


def _built(kind: type[Struct], stored: object, path: str, *, skip: tuple[str, ...] = ()) -> Any:
    fields = _object(stored, path)
    names = _fields(kind)
    known: dict[str, Any] = {}
    extra: dict[str, Any] = {}
    for name, value in fields.items():
        if name in skip:
            continue
        if name not in names or name == "extra":
            extra[name] = value
        elif name in _NESTED and value is not None:
            known[name] = _built(_NESTED[name], value, f"{path}.{name}")
        else:
            known[name] = value
    for name in skip:
        known[name] = ()
    if extra and "extra" in names:
        known["extra"] = extra
    try:
        if not _holds_structs(known):
            return msgspec.convert(known, learnt(kind))
        return kind(**{names[name][0]: value for name, value in _tupled(known).items()})
    except (msgspec.ValidationError, TypeError) as error:
        raise InputError(f"not a stored {kind.__name__}: {error}", path=path) from None


def _holds_structs(known: Mapping[str, Any]) -> bool:
    return any(isinstance(value, Struct) for value in known.values())


def _tupled(known: Mapping[str, Any]) -> dict[str, Any]:
    return {name: tuple(cast("list[Any]", value)) if name == "stop" else value for name, value in known.items()}


def _object(value: object, path: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise InputError("an object was expected", path=path)
    return cast("dict[str, Any]", value)
