"""Bounds of what a request costs: the tokens that its body may have, and those that the reply may have.

A token is taken for three bytes, and a request for 600 tokens more, for the text that providers add for tools. Of 521
recorded requests without tools that the provider runs, the reported input exceeds that for nine, by up to 3.7 times:
eight of them have tools of Anthropic, whose declarations stand for long texts.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, cast

import msgspec
from msgspec import Raw

from segue.canonical.json import decode_members

_BYTES_PER_TOKEN = 3
_OVERHEAD = 600
# What one picture or sealed reasoning has at most; a text of so many bytes has a character that base64 has not.
_BLOB_BYTES, _BLOB_TOKENS = 3000, 4800
_BLOB = re.compile(rb'"[A-Za-z0-9+/=_:;,.-]{%d,}+"' % _BLOB_BYTES)
_PDF = b"application/pdf"
_MARKERS = (b'"cache_control"', b'"cachePoint"')
_HOUR = re.compile(rb'"ttl"\s*:\s*"1h"')
# Where the APIs have the limit of a reply, and the number of replies.
_LIMITS = (
    ("max_completion_tokens",),
    ("max_tokens",),
    ("max_output_tokens",),
    ("generationConfig", "maxOutputTokens"),
    ("inferenceConfig", "maxTokens"),
)
_CHOICES = (("n",), ("generationConfig", "candidateCount"))


def bound_input(body: bytes) -> int:
    """Return the tokens that a body has at most, by its size. Of pictures, which are base64, a maximum is counted."""
    size, blobs = len(body), 0
    if _may_have_blob(body) and _PDF not in body:
        for found in _BLOB.finditer(body):
            length = len(found[0])
            size -= length
            blobs += min(_BLOB_TOKENS, length // _BYTES_PER_TOKEN)
    return size // _BYTES_PER_TOKEN + blobs + _OVERHEAD


def _may_have_blob(body: bytes) -> bool:
    """Return whether a part of the body without spaces is long enough: a fast test, which most bodies fail."""
    step = _BLOB_BYTES // 2
    return any(body.find(b" ", start, start + step) < 0 for start in range(0, len(body) - step, step))


def estimate_input(body: bytes) -> int:
    """Return the tokens that a body probably has."""
    return (bound_input(body) - _OVERHEAD) * _BYTES_PER_TOKEN // 4


def bound_output(body: bytes, default: int) -> int:
    """Return the tokens that the reply to a body has at most: by its own limit, else by `default`."""
    members = decode_members(body)
    limits = [limit for path in _LIMITS if (limit := _find_number(members, path)) is not None]
    choices = [number for path in _CHOICES if (number := _find_number(members, path)) is not None]
    return (max(limits) if limits else default) * max(choices, default=1)


def bound_written(body: bytes, tokens: int) -> tuple[int, int]:
    """Return how many of these tokens a request may write to the cache, and how many of them for an hour."""
    if not any(mark in body for mark in _MARKERS):
        return 0, 0
    return tokens, tokens if b'"1h"' in body and _HOUR.search(body) else 0


def _find_number(members: Mapping[str, Raw], path: tuple[str, ...]) -> int | None:
    raw = members.get(path[0])
    value: Any = None if raw is None else msgspec.json.decode(raw)
    for name in path[1:]:
        value = cast("dict[str, Any]", value).get(name) if isinstance(value, dict) else None
    return value if isinstance(value, int) and value > 0 else None
