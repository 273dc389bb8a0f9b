"""The model and the usage of a passthrough request, from the ends of its bodies.

Streams of Anthropic and Responses name the model in their first event, and long replies before their content; Gemini
and embeddings at the end. Bedrock names it in the path of the request only.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import unquote

import msgspec
from msgspec import Struct

from segue.canonical.request import Usage
from segue.wire.json_values import object_or_none

_HEAD = 1 << 16
_TAIL = 1 << 14
_USAGE = re.compile(rb'(?<!\\)"(?:usage|usageMetadata)"\s*:\s*(?=\{)')
_MODEL = re.compile(rb'(?<!\\)"model"\s*:\s*"([^"\\]{1,200})"')
_GEMINI_MODEL = re.compile(rb'(?<!\\)"modelVersion"\s*:\s*"([^"\\]{1,200})"')
_FORM_MODEL = re.compile(rb'name="model"\r\n(?:[^\r\n]+\r\n)*\r\n([^\r\n]{1,200})\r\n')
_PATH_MODEL = re.compile(r"/model/([^/]+)/|/models/([^/:]+)")
_INPUT = ("prompt_tokens", "input_tokens", "promptTokenCount", "inputTokens")
_OUTPUT = ("completion_tokens", "output_tokens", "candidatesTokenCount", "outputTokens")
_CACHE_READ = ("cache_read_input_tokens", "cacheReadInputTokens")
_CACHE_WRITE = ("cache_creation_input_tokens", "cacheWriteInputTokens")


class BodyEnds:
    """The first and the last bytes of a body, which is not kept whole."""

    def __init__(self, data: bytes = b"") -> None:
        self.head = self.tail = b""
        self._size = 0
        self.add(data)

    def add(self, data: bytes) -> None:
        self.head += data[: _HEAD - len(self.head)]
        self.tail = (self.tail + data[-_TAIL:])[-_TAIL:]
        self._size += len(data)

    @property
    def is_whole(self) -> bool:
        """Whether `head` is the whole body."""
        return self._size == len(self.head)


class _NamedModel(Struct):
    model: str = ""


def find_model(response: BodyEnds, path: str, request: BodyEnds) -> str:
    """Return the model that a response names, else the path or the body of its request; empty if none does."""
    named = [*_GEMINI_MODEL.findall(response.tail)[-1:], *_MODEL.findall(response.head)[:1]]
    named += _MODEL.findall(response.tail)[-1:]
    if named:
        return named[0].decode("utf-8", "replace")
    in_path = _PATH_MODEL.search(path)
    if in_path is not None:
        return unquote(in_path[1] or in_path[2])
    if (field := _FORM_MODEL.search(request.head)) is not None:
        return field[1].decode("utf-8", "replace")
    try:
        return msgspec.json.decode(request.head, type=_NamedModel).model if request.is_whole else ""
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return ""


def find_usage(response: BodyEnds) -> Usage | None:
    """Return the usage at the end of a response; None if it has none.

    Input that only the first event of a stream has is added.
    """
    fields = _find_object(response.tail, -1)
    if fields is None:
        return None
    if not any(name in fields for name in _INPUT):
        fields = {**(_find_object(response.head, 0) or {}), **fields}
    details = object_or_none(fields.get("prompt_tokens_details") or fields.get("input_tokens_details")) or {}
    count, output = _number(fields, _INPUT), _number(fields, _OUTPUT) + _number(fields, ("thoughtsTokenCount",))
    if any(isinstance(fields.get(name), int) for name in (*_CACHE_READ, *_CACHE_WRITE)):
        # The input of Anthropic and Bedrock is without the cached tokens.
        reads, writes = _number(fields, _CACHE_READ), _number(fields, _CACHE_WRITE)
        kinds = object_or_none(fields.get("cache_creation")) or {}
        hour = _number(kinds, ("ephemeral_1h_input_tokens",))
        return Usage(count + reads + writes, output, reads, writes, 0, hour)
    cached = _number(details, ("cached_tokens",)) or _number(fields, ("cachedContentTokenCount",))
    return Usage(count, output, cached) if count or output else None


def _find_object(data: bytes, position: int) -> Mapping[str, Any] | None:
    """Return the usage object at this position among those of a part of a body; None if it is not there or cut off."""
    matches = list(_USAGE.finditer(data))
    if not matches:
        return None
    try:
        found, _ = json.JSONDecoder().raw_decode(data[matches[position].end() :].decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return None
    return object_or_none(found)


def _number(fields: Mapping[str, Any], names: Sequence[str]) -> int:
    found = (fields[name] for name in names if isinstance(fields.get(name), int))
    return max(0, next(found, 0))
