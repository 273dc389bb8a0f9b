"""Types of a Converse request: the shapes of the AWS service model as data, and their validation.

Unknown members of the request are not validated. `ANY` and `Repairable` mark values that the parser repairs: arguments
or content as text, missing ids and schemas.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf
from typing import Any, Literal, TypeAlias

from segue.errors import InputError
from segue.wire.json_values import JsonObject, json_type_name, require_list, require_object

__all__ = ["REQUEST", "validate_shape"]


@dataclass(frozen=True)
class OneOf:
    """One of some strings."""

    values: tuple[str, ...]


@dataclass(frozen=True)
class Pattern:
    """A string that matches a pattern."""

    pattern: str


@dataclass(frozen=True)
class ListOf:
    item: Shape


@dataclass(frozen=True)
class MapOf:
    """An object with arbitrary keys."""

    item: Shape


@dataclass(frozen=True)
class Record:
    members: Mapping[str, Shape] = field(default_factory=dict[str, "Shape"])
    required: tuple[str, ...] = ()


@dataclass(frozen=True)
class Union:
    """An object with one member, or several where the parser splits them."""

    members: Mapping[str, Shape]
    allow_several: bool = False


@dataclass(frozen=True)
class Bounded:
    """A number in a range, or a string, list or map whose length is in a range."""

    shape: Shape
    minimum: int = 0
    maximum: float = inf


@dataclass(frozen=True)
class Repairable:
    """A shape whose value may also be null, or text if `accepts_text`; the parser repairs such values."""

    shape: Shape
    accepts_text: bool = False


Primitive: TypeAlias = Literal["anything", "a string", "a boolean", "an integer", "a number", "an object", "bytes"]
Shape: TypeAlias = Primitive | OneOf | Pattern | ListOf | MapOf | Record | Union | Bounded | Repairable

ANY: Primitive = "anything"
STRING: Primitive = "a string"
FLAG: Primitive = "a boolean"
INTEGER: Primitive = "an integer"
NUMBER: Primitive = "a number"
OBJECT: Primitive = "an object"
BYTES: Primitive = "bytes"
"""Base64 text in JSON, bytes in boto3."""

_PRIMITIVE_TYPES: dict[str, tuple[type, ...]] = {
    STRING: (str,),
    INTEGER: (int,),
    NUMBER: (int, float),
    OBJECT: (dict,),
    BYTES: (str, bytes, bytearray),
}

# --------------------------------------------------------------------------------------------------------------- media

_BUCKET = Pattern(r"s3://[.\-a-z0-9]+(/.*)?")
_S3 = Record({"uri": Bounded(_BUCKET, 1, 1024), "bucketOwner": Pattern(r"[0-9]{12}")}, ("uri",))
_DATA = Bounded(BYTES, 1)
_SOURCE = Union({"bytes": _DATA, "s3Location": _S3})
_TEXTS = ListOf(Union({"text": STRING}))
_ERROR = Record({"message": STRING})
_CITATIONS_CONFIG = Record({"enabled": FLAG}, ("enabled",))


def _media(*formats: str, **more: Shape) -> Record:
    return Record({"format": OneOf(formats), "source": _SOURCE, **more}, ("format", "source"))


_IMAGE = _media("png", "jpeg", "gif", "webp", error=_ERROR)
_VIDEO = _media("mkv", "mov", "mp4", "webm", "flv", "mpeg", "mpg", "wmv", "three_gp")
_AUDIO = _media(
    *("mp3", "opus", "wav", "aac", "flac", "mp4", "ogg", "mkv", "mka", "x-aac", "m4a", "mpeg", "mpga", "pcm", "webm"),
    error=_ERROR,
)
_DOCUMENT = Record(
    {
        "format": OneOf(("pdf", "csv", "doc", "docx", "xls", "xlsx", "html", "txt", "md")),
        "name": Repairable(STRING),
        "source": Union({"bytes": _DATA, "s3Location": _S3, "text": STRING, "content": _TEXTS}),
        "context": STRING,
        "citations": _CITATIONS_CONFIG,
    },
    ("source",),
)

# -------------------------------------------------------------------------------------------------------------- blocks

_CACHE_POINT = Record({"type": OneOf(("default",)), "ttl": OneOf(("5m", "1h"))}, ("type",))
_QUALIFIERS = ListOf(OneOf(("grounding_source", "query", "guard_content")))
_GUARD_CONTENT = Union(
    {
        "text": Record({"text": STRING, "qualifiers": _QUALIFIERS}, ("text",)),
        "image": Record(
            {"format": OneOf(("png", "jpeg")), "source": Union({"bytes": _DATA})},
            ("format", "source"),
        ),
    }
)
_SEARCH_RESULT = Record(
    {
        "source": STRING,
        "title": STRING,
        "content": ListOf(Record({"text": STRING}, ("text",))),
        "citations": _CITATIONS_CONFIG,
    },
    ("source", "title", "content"),
)
_COUNT = Bounded(INTEGER)
_SPAN: dict[str, Shape] = {"start": _COUNT, "end": _COUNT}
_IN_DOCUMENT = Record({"documentIndex": _COUNT, **_SPAN})
_LOCATION = Union(
    {
        "web": Record({"url": STRING, "domain": STRING}),
        "documentChar": _IN_DOCUMENT,
        "documentPage": _IN_DOCUMENT,
        "documentChunk": _IN_DOCUMENT,
        "searchResultLocation": Record({"searchResultIndex": _COUNT, **_SPAN}),
    }
)
_CITATION = Record({"title": STRING, "source": STRING, "sourceContent": _TEXTS, "location": _LOCATION})
_TOOL_USE = Record(
    {"toolUseId": Repairable(STRING), "name": STRING, "input": ANY, "type": OneOf(("server_tool_use",))},
    ("name",),
)
_RESULT_PART = Union(
    {
        "json": ANY,
        "text": STRING,
        "image": _IMAGE,
        "document": _DOCUMENT,
        "video": _VIDEO,
        "searchResult": _SEARCH_RESULT,
    },
    allow_several=True,
)
_TOOL_RESULT = Record(
    {
        "toolUseId": Repairable(STRING),
        "content": Repairable(ListOf(_RESULT_PART), accepts_text=True),
        "status": Repairable(OneOf(("success", "error"))),
        "type": STRING,
    }
)
_REASONING_TEXT = Record({"text": Repairable(STRING), "signature": Repairable(STRING)})
_REASONING = Union({"reasoningText": _REASONING_TEXT, "redactedContent": BYTES})
_REFERENCE = Record(
    {"type": Bounded(STRING, 1, 64), "name": Bounded(STRING, 1, 128), "serverName": Bounded(STRING, 1, 128)}
)
_TOOL_CHANGE = Record({"tool": _REFERENCE}, ("tool",))
_BLOCK = Union(
    {
        "text": STRING,
        "image": _IMAGE,
        "document": _DOCUMENT,
        "video": _VIDEO,
        "audio": _AUDIO,
        "toolUse": _TOOL_USE,
        "toolResult": _TOOL_RESULT,
        "guardContent": _GUARD_CONTENT,
        "cachePoint": _CACHE_POINT,
        "reasoningContent": _REASONING,
        "citationsContent": Record({"content": _TEXTS, "citations": ListOf(_CITATION)}),
        "searchResult": _SEARCH_RESULT,
        "toolAddition": _TOOL_CHANGE,
        "toolRemoval": _TOOL_CHANGE,
    },
    allow_several=True,
)
_MESSAGE = Record(
    {"role": OneOf(("user", "assistant", "system")), "content": Repairable(ListOf(_BLOCK), accepts_text=True)},
    ("role",),
)
_SYSTEM = Union({"text": STRING, "guardContent": _GUARD_CONTENT, "cachePoint": _CACHE_POINT}, allow_several=True)

# ------------------------------------------------------------------------------------------------ tools and the request

_SCHEMA = Repairable(Record({"json": Repairable(OBJECT)}))
_TOOLS = ListOf(
    Union(
        {
            "toolSpec": Record(
                {"name": STRING, "description": STRING, "inputSchema": _SCHEMA, "strict": FLAG},
                ("name",),
            ),
            "systemTool": Record({"name": Pattern(r"[a-zA-Z0-9_-]{1,64}")}, ("name",)),
            "cachePoint": _CACHE_POINT,
        },
        allow_several=True,
    )
)
_CHOICE = Union({"auto": OBJECT, "any": OBJECT, "tool": Record({"name": STRING}, ("name",))})
_TOOL_CONFIG = Record({"tools": Repairable(_TOOLS), "toolChoice": _CHOICE})
_OUTPUT = Record(
    {
        "textFormat": Record(
            {
                "type": OneOf(("json_schema",)),
                "structure": Union(
                    {"jsonSchema": Record({"schema": STRING, "name": STRING, "description": STRING}, ("schema",))}
                ),
            },
            ("type", "structure"),
        ),
        "effort": Bounded(STRING, 0, 16),
    }
)
_GUARDRAIL = Pattern(r"|[a-z0-9]+|arn:aws(-[^:]+)?:bedrock:[a-z0-9-]{1,20}:[0-9]{12}:guardrail/[a-z0-9]+")
REQUEST = Record(
    {
        "modelId": Repairable(Bounded(STRING, 1, 2048)),
        "messages": ListOf(_MESSAGE),
        "system": Repairable(ListOf(_SYSTEM), accepts_text=True),
        "inferenceConfig": Record(
            {
                "maxTokens": Bounded(INTEGER, 1),
                "temperature": Bounded(NUMBER, 0, 1),
                "topP": Bounded(NUMBER, 0, 1),
                "stopSequences": Bounded(ListOf(Bounded(STRING, 1)), 0, 2500),
            }
        ),
        "toolConfig": Repairable(_TOOL_CONFIG),
        # `convert_tools` passes tools here.
        "tools": Repairable(_TOOLS),
        "guardrailConfig": Record(
            {
                "guardrailIdentifier": Bounded(_GUARDRAIL, 0, 2048),
                "guardrailVersion": Pattern(r"|[1-9][0-9]{0,7}|DRAFT"),
                "trace": OneOf(("enabled", "disabled", "enabled_full")),
            }
        ),
        "additionalModelRequestFields": OBJECT,
        "promptVariables": MapOf(Union({"text": STRING})),
        "additionalModelResponseFieldPaths": Bounded(ListOf(Bounded(STRING, 1, 256)), 0, 10),
        "requestMetadata": Bounded(MapOf(Pattern(r"[a-zA-Z0-9\s:_@$#=/+,-.]{0,256}")), 1, 16),
        "performanceConfig": Record({"latency": OneOf(("standard", "optimized"))}),
        "serviceTier": Record({"type": OneOf(("priority", "default", "flex", "reserved"))}, ("type",)),
        "outputConfig": _OUTPUT,
    },
    ("messages",),
)


# ---------------------------------------------------------------------------------------------------------- validation


def validate_shape(value: object, shape: Shape, path: str = "") -> None:
    """Raises `InputError` with the path if the value does not have the shape."""
    match shape:
        case Repairable():
            if value is not None and not (shape.accepts_text and isinstance(value, str)):
                validate_shape(value, shape.shape, path)
        case Bounded():
            validate_shape(value, shape.shape, path)
            _validate_size(value, shape, path)
        case OneOf() | Pattern():
            _validate_text(value, shape, path)
        case ListOf():
            for index, item in enumerate(require_list(value, path)):
                validate_shape(item, shape.item, f"{path}[{index}]")
        case MapOf() | Record() | Union():
            _validate_members(require_object(value, path), shape, path)
        case _:
            if not _is_primitive(value, shape):
                raise InputError(f"{shape} was expected, not {json_type_name(value)}", path=path)


def _validate_size(value: Any, shape: Bounded, path: str) -> None:
    number = isinstance(value, int | float)
    size = value if number else len(value)
    if not shape.minimum <= size <= shape.maximum:
        bounds = f"from {shape.minimum} to {shape.maximum}" if shape.maximum < inf else f"of at least {shape.minimum}"
        raise InputError(f"a {'number' if number else 'length'} {bounds} was expected, not {size}", path=path)


def _validate_text(value: object, shape: OneOf | Pattern, path: str) -> None:
    validate_shape(value, STRING, path)
    text = str(value)
    if isinstance(shape, Pattern):
        if not re.fullmatch(shape.pattern, text):
            raise InputError(f"{text!r} does not match {shape.pattern}", path=path)
    elif text not in shape.values:
        raise InputError(f"one of {', '.join(shape.values)} was expected, not {text!r}", path=path)


def _validate_members(value: JsonObject, shape: MapOf | Record | Union, path: str) -> None:
    members: Mapping[str, Shape] = dict.fromkeys(value, shape.item) if isinstance(shape, MapOf) else shape.members
    if isinstance(shape, Record):
        for key in shape.required:
            if key not in value:
                raise InputError(f"`{key}` is missing", path=_under(path, key))
    if isinstance(shape, Union):
        present = [key for key, member in value.items() if member is not None or not shape.allow_several]
        if not present:
            raise InputError(f"one of {', '.join(members)} was expected", path=path)
        known = [key for key in present if key in members]
        if not known and ".content[" not in path:
            # A content block may be of a newer type than this table; it is converted to text.
            raise InputError(f"one of {', '.join(members)} was expected", path=_under(path, present[0]))
        if len(known) > 1 and not shape.allow_several:
            raise InputError(f"one member was expected, not {', '.join(known)}", path=path)
        value = {key: value[key] for key in present}
    for key, member in value.items():
        if key in members:
            validate_shape(member, members[key], _under(path, key))
        elif path and isinstance(shape, Record) and members:
            raise InputError(f"unknown member; known members: {', '.join(members)}", path=_under(path, key))


def _is_primitive(value: object, shape: Primitive) -> bool:
    if shape == ANY or isinstance(value, bool):
        return shape in (ANY, FLAG)
    return shape != FLAG and isinstance(value, _PRIMITIVE_TYPES[shape])


def _under(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key
