"""What each member of a Converse request must be: the service model's shapes as data, and a walk that names the place
of what is none of them.

Members that the table doesn't know may be anything. So may those that the readers mend (`ANY`, `Mended`): arguments as
text, content as text, ids and schemas that are missing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf
from typing import Any, Literal, TypeAlias

from segue.errors import InputError
from segue.wire.fields import JsonObject, kind_of, list_of, object_of

__all__ = ["REQUEST", "hold"]


@dataclass(frozen=True)
class Word:
    """One of some strings."""

    known: tuple[str, ...]


@dataclass(frozen=True)
class Like:
    """A string that a pattern describes."""

    pattern: str


@dataclass(frozen=True)
class Many:
    each: Form


@dataclass(frozen=True)
class Keyed:
    """An object whose keys are the client's own."""

    each: Form


@dataclass(frozen=True)
class Record:
    members: Mapping[str, Form] = field(default_factory=dict[str, "Form"])
    needed: tuple[str, ...] = ()


@dataclass(frozen=True)
class Union:
    """An object with one member; with several where readers take them apart."""

    members: Mapping[str, Form]
    several: bool = False


@dataclass(frozen=True)
class Sized:
    """A form with bounds: of a number itself, else of its length."""

    form: Form
    least: int = 0
    most: float = inf


@dataclass(frozen=True)
class Mended:
    """A form that null, or a string in its place, is made into."""

    form: Form
    text: bool = False


Plain: TypeAlias = Literal["anything", "a string", "a boolean", "an integer", "a number", "an object", "bytes"]
Form: TypeAlias = Plain | Word | Like | Many | Keyed | Record | Union | Sized | Mended

ANY: Plain = "anything"
STRING: Plain = "a string"
FLAG: Plain = "a boolean"
INTEGER: Plain = "an integer"
NUMBER: Plain = "a number"
OBJECT: Plain = "an object"
BYTES: Plain = "bytes"
"""Base64 text in JSON, bytes in boto3."""

_PLAIN: dict[str, tuple[type, ...]] = {
    STRING: (str,),
    INTEGER: (int,),
    NUMBER: (int, float),
    OBJECT: (dict,),
    BYTES: (str, bytes, bytearray),
}

# --------------------------------------------------------------------------------------------------------------- media

_BUCKET = Like(r"s3://[.\-a-z0-9]+(/.*)?")
_S3 = Record({"uri": Sized(_BUCKET, 1, 1024), "bucketOwner": Like(r"[0-9]{12}")}, ("uri",))
_DATA = Sized(BYTES, 1)
_STORED = Union({"bytes": _DATA, "s3Location": _S3})
_TEXTS = Many(Union({"text": STRING}))
_ERROR = Record({"message": STRING})
_CITED = Record({"enabled": FLAG}, ("enabled",))


def _media(*formats: str, **more: Form) -> Record:
    return Record({"format": Word(formats), "source": _STORED, **more}, ("format", "source"))


_IMAGE = _media("png", "jpeg", "gif", "webp", error=_ERROR)
_VIDEO = _media("mkv", "mov", "mp4", "webm", "flv", "mpeg", "mpg", "wmv", "three_gp")
_AUDIO = _media(
    *("mp3", "opus", "wav", "aac", "flac", "mp4", "ogg", "mkv", "mka", "x-aac", "m4a", "mpeg", "mpga", "pcm", "webm"),
    error=_ERROR,
)
_DOCUMENT = Record(
    {
        "format": Word(("pdf", "csv", "doc", "docx", "xls", "xlsx", "html", "txt", "md")),
        "name": Mended(STRING),
        "source": Union({"bytes": _DATA, "s3Location": _S3, "text": STRING, "content": _TEXTS}),
        "context": STRING,
        "citations": _CITED,
    },
    ("source",),
)

# -------------------------------------------------------------------------------------------------------------- blocks

_CACHE_POINT = Record({"type": Word(("default",)), "ttl": Word(("5m", "1h"))}, ("type",))
_QUALIFIERS = Many(Word(("grounding_source", "query", "guard_content")))
_GUARDED = Union(
    {
        "text": Record({"text": STRING, "qualifiers": _QUALIFIERS}, ("text",)),
        "image": Record(
            {"format": Word(("png", "jpeg")), "source": Union({"bytes": _DATA})},
            ("format", "source"),
        ),
    }
)
_SEARCH_RESULT = Record(
    {"source": STRING, "title": STRING, "content": Many(Record({"text": STRING}, ("text",))), "citations": _CITED},
    ("source", "title", "content"),
)
_COUNT = Sized(INTEGER)
_SPAN: dict[str, Form] = {"start": _COUNT, "end": _COUNT}
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
    {"toolUseId": Mended(STRING), "name": STRING, "input": ANY, "type": Word(("server_tool_use",))},
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
    several=True,
)
_TOOL_RESULT = Record(
    {
        "toolUseId": Mended(STRING),
        "content": Mended(Many(_RESULT_PART), text=True),
        "status": Mended(Word(("success", "error"))),
        "type": STRING,
    }
)
_THOUGHT = Record({"text": Mended(STRING), "signature": Mended(STRING)})
_REASONING = Union({"reasoningText": _THOUGHT, "redactedContent": BYTES})
_REFERENCE = Record({"type": Sized(STRING, 1, 64), "name": Sized(STRING, 1, 128), "serverName": Sized(STRING, 1, 128)})
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
        "guardContent": _GUARDED,
        "cachePoint": _CACHE_POINT,
        "reasoningContent": _REASONING,
        "citationsContent": Record({"content": _TEXTS, "citations": Many(_CITATION)}),
        "searchResult": _SEARCH_RESULT,
        "toolAddition": _TOOL_CHANGE,
        "toolRemoval": _TOOL_CHANGE,
    },
    several=True,
)
_MESSAGE = Record(
    {"role": Word(("user", "assistant", "system")), "content": Mended(Many(_BLOCK), text=True)},
    ("role",),
)
_SYSTEM = Union({"text": STRING, "guardContent": _GUARDED, "cachePoint": _CACHE_POINT}, several=True)

# ------------------------------------------------------------------------------------------------ tools and the request

_SCHEMA = Mended(Record({"json": Mended(OBJECT)}))
_TOOLS = Many(
    Union(
        {
            "toolSpec": Record(
                {"name": STRING, "description": STRING, "inputSchema": _SCHEMA, "strict": FLAG},
                ("name",),
            ),
            "systemTool": Record({"name": Like(r"[a-zA-Z0-9_-]{1,64}")}, ("name",)),
            "cachePoint": _CACHE_POINT,
        },
        several=True,
    )
)
_CHOICE = Union({"auto": OBJECT, "any": OBJECT, "tool": Record({"name": STRING}, ("name",))})
_TOOL_CONFIG = Record({"tools": Mended(_TOOLS), "toolChoice": _CHOICE})
_OUTPUT = Record(
    {
        "textFormat": Record(
            {
                "type": Word(("json_schema",)),
                "structure": Union(
                    {"jsonSchema": Record({"schema": STRING, "name": STRING, "description": STRING}, ("schema",))}
                ),
            },
            ("type", "structure"),
        ),
        "effort": Sized(STRING, 0, 16),
    }
)
_GUARDRAIL = Like(r"|[a-z0-9]+|arn:aws(-[^:]+)?:bedrock:[a-z0-9-]{1,20}:[0-9]{12}:guardrail/[a-z0-9]+")
REQUEST = Record(
    {
        "modelId": Mended(Sized(STRING, 1, 2048)),
        "messages": Many(_MESSAGE),
        "system": Mended(Many(_SYSTEM), text=True),
        "inferenceConfig": Record(
            {
                "maxTokens": Sized(INTEGER, 1),
                "temperature": Sized(NUMBER, 0, 1),
                "topP": Sized(NUMBER, 0, 1),
                "stopSequences": Sized(Many(Sized(STRING, 1)), 0, 2500),
            }
        ),
        "toolConfig": Mended(_TOOL_CONFIG),
        # Tools by themselves are handed over here.
        "tools": Mended(_TOOLS),
        "guardrailConfig": Record(
            {
                "guardrailIdentifier": Sized(_GUARDRAIL, 0, 2048),
                "guardrailVersion": Like(r"|[1-9][0-9]{0,7}|DRAFT"),
                "trace": Word(("enabled", "disabled", "enabled_full")),
            }
        ),
        "additionalModelRequestFields": OBJECT,
        "promptVariables": Keyed(Union({"text": STRING})),
        "additionalModelResponseFieldPaths": Sized(Many(Sized(STRING, 1, 256)), 0, 10),
        "requestMetadata": Sized(Keyed(Like(r"[a-zA-Z0-9\s:_@$#=/+,-.]{0,256}")), 1, 16),
        "performanceConfig": Record({"latency": Word(("standard", "optimized"))}),
        "serviceTier": Record({"type": Word(("priority", "default", "flex", "reserved"))}, ("type",)),
        "outputConfig": _OUTPUT,
    },
    ("messages",),
)


# ------------------------------------------------------------------------------------------------------------ the walk


def hold(value: object, form: Form, path: str = "") -> None:
    """Raises where the value is not of its form."""
    match form:
        case Mended():
            if value is not None and not (form.text and isinstance(value, str)):
                hold(value, form.form, path)
        case Sized():
            hold(value, form.form, path)
            _hold_size(value, form, path)
        case Word() | Like():
            _hold_text(value, form, path)
        case Many():
            for index, item in enumerate(list_of(value, path)):
                hold(item, form.each, f"{path}[{index}]")
        case Keyed() | Record() | Union():
            _hold_members(object_of(value, path), form, path)
        case _:
            if not _is_plain(value, form):
                raise InputError(f"{form} was expected, not {kind_of(value)}", path=path)


def _hold_size(value: Any, form: Sized, path: str) -> None:
    number = isinstance(value, int | float)
    size = value if number else len(value)
    if not form.least <= size <= form.most:
        bounds = f"from {form.least} to {form.most}" if form.most < inf else f"of at least {form.least}"
        raise InputError(f"a {'number' if number else 'length'} {bounds} was expected, not {size}", path=path)


def _hold_text(value: object, form: Word | Like, path: str) -> None:
    hold(value, STRING, path)
    text = str(value)
    if isinstance(form, Like):
        if not re.fullmatch(form.pattern, text):
            raise InputError(f"{text!r} is not like {form.pattern}", path=path)
    elif text not in form.known:
        raise InputError(f"one of {', '.join(form.known)} was expected, not {text!r}", path=path)


def _hold_members(value: JsonObject, form: Keyed | Record | Union, path: str) -> None:
    members: Mapping[str, Form] = dict.fromkeys(value, form.each) if isinstance(form, Keyed) else form.members
    if isinstance(form, Record):
        for key in form.needed:
            if key not in value:
                raise InputError(f"`{key}` is missing", path=_under(path, key))
    if isinstance(form, Union):
        said = [key for key, member in value.items() if member is not None or not form.several]
        if not said:
            raise InputError(f"one of {', '.join(members)} was expected", path=path)
        known = [key for key in said if key in members]
        if not known and ".content[" not in path:
            # What a block of a message is may be newer than this table; it is told in words.
            raise InputError(f"one of {', '.join(members)} was expected", path=_under(path, said[0]))
        if len(known) > 1 and not form.several:
            raise InputError(f"one member was expected, not {', '.join(known)}", path=path)
        value = {key: value[key] for key in said}
    for key, member in value.items():
        if key in members:
            hold(member, members[key], _under(path, key))
        elif path and isinstance(form, Record) and members:
            raise InputError(f"there is no such member; there are {', '.join(members)}", path=_under(path, key))


def _is_plain(value: object, form: Plain) -> bool:
    if form == ANY or isinstance(value, bool):
        return form in (ANY, FLAG)
    return form != FLAG and isinstance(value, _PLAIN[form])


def _under(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key
