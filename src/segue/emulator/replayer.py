"""Answers the requests of one API from recorded exchanges, without a network.

Several recordings of the same request are replayed in their order, and then again from the first. Requests are compared
by method, path, query and body, without what varies from run to run: the tables of this module list what is ignored,
and docs/testing.md describes them. Headers are never compared.
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import cycle
from typing import Any, cast
from urllib.parse import parse_qsl

import msgspec
from msgspec import UNSET

from segue.canonical.json import encode_json_sorted, encode_json_text
from segue.emulator import errors
from segue.emulator.http_messages import MAX_BODY_BYTES, HttpRequest, HttpResponse, RequestLog
from segue.emulator.providers.provider import Provider
from segue.emulator.recording_secrets import SecretRemover
from segue.emulator.recordings import Recording, RequestPart, ResponsePart
from segue.wire.base import ApiError


class Replayer:
    """Replays the recordings of its API; `recordings` are those of all APIs with their file names."""

    def __init__(self, provider: Provider, recordings: Sequence[tuple[str, Recording]], log: RequestLog) -> None:
        self.provider = provider
        self._log = log
        self._recordings = [pair for pair in recordings if pair[1].api == provider.api]
        self._contents = [read_content(recording.request) for _, recording in self._recordings]
        by_key: dict[bytes, list[int]] = {}
        for index, content in enumerate(self._contents):
            for key in dict.fromkeys(content.keys):
                by_key.setdefault(key, []).append(index)
        self._next_by_key = {key: cycle(indexes) for key, indexes in by_key.items()}

    @property
    def count(self) -> int:
        """The number of recordings."""
        return len(self._recordings)

    @property
    def max_body_bytes(self) -> int:
        return MAX_BODY_BYTES

    async def handle(self, http_request: HttpRequest) -> HttpResponse:
        record = self._log.open(self.provider.api, http_request)
        request = SecretRemover(http_request).clean_request(http_request)
        record.describe(request.body.json)
        content = read_content(request)
        matching = [self._next_by_key[key] for key in content.keys if key in self._next_by_key]
        if not matching:
            response = self.provider.make_error_response(self._unmatched_error(content), http_request, record)
        else:
            record.recording, recording = self._recordings[next(matching[0])]
            response = _replay(recording.response)
            record.status, record.streamed = response.status, recording.response.chunks is not UNSET
        self._log.close(record)
        return response

    async def close(self) -> None:
        """Nothing is open."""

    def _unmatched_error(self, content: RequestContent) -> ApiError:
        message = f"no recording matches {content.method} {content.path}"
        if not self._recordings:
            message = f"{message}: there are no recordings of {self.provider.api}"
        else:
            index = find_nearest(content, self._contents)
            difference = describe_difference(content, self._contents[index])
            message = f"{message}; the nearest is {self._recordings[index][0]}, which differs in {difference}"
        changes: dict[str, Any] = {"status": 404, "message": message}
        return msgspec.structs.replace(
            errors.standard_errors(self.provider.api).no_route(content.method, content.path), **changes
        )


def _replay(recorded: ResponsePart) -> HttpResponse:
    """Return a recorded response. One that broke off ends with a reset of the connection."""
    content = b"".join(recorded.pieces) if recorded.chunks is UNSET else _send_chunks(recorded.pieces)
    return HttpResponse(recorded.status, content, content_type=None, headers=recorded.headers, reset=recorded.broken)


async def _send_chunks(chunks: Sequence[bytes]) -> AsyncGenerator[bytes]:
    for chunk in chunks:
        yield chunk


# ----------------------------------------------------------------------------------------------- comparison of requests

VOLATILE_FIELDS = frozenset(
    {"client_metadata", "idempotency_key", "labels", "metadata", "prompt_cache_key", "request_id", "requestMetadata"}
    | {"safety_identifier", "session_id", "trace_id", "user"}
)
"""Fields of a body that identify the user, the session or the request."""
VOLATILE_QUERY = re.compile(r"(?i)(?:key|access_token|trace|request_id|x-amz-.*)")
"""Parameters of a query."""
_MONTH = r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*"
VOLATILE_TEXTS: Mapping[str, re.Pattern[str]] = {
    "date": re.compile(
        r"\b\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?:Z|[+-]\d\d:?\d\d)?)?"
        rf"|\b(?:(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*,? )?(?:{_MONTH} \d\d?|\d\d? {_MONTH}),? \d{{4}}\b"
    ),
    "uuid": re.compile(r"\b[0-9a-fA-F]{8}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{12}\b"),
    "nonce": re.compile(r"\bcch=[0-9A-Za-z]+"),
}
"""Texts anywhere in a body, ignored where no recording has exactly the same: dates, UUIDs, Claude Code's nonce."""
_MAX_SHOWN = 60
_ABSENT = object()


@dataclass(frozen=True)
class RequestContent:
    """What is compared of a request: the method and the path, and a JSON value of query and body."""

    method: str
    path: str
    value: Mapping[str, Any]

    @property
    def keys(self) -> tuple[bytes, bytes]:
        """Two digests: of the content, and of the content without volatile texts."""
        text = f"{self.method} {self.path} {_encode(self.value)}"
        return sha256(text.encode()).digest(), sha256(_replace_volatile(text).encode()).digest()


def read_content(request: RequestPart) -> RequestContent:
    """Return what is compared of a request whose secrets are removed."""
    pairs = [pair for pair in parse_qsl(request.query, keep_blank_values=True) if not VOLATILE_QUERY.fullmatch(pair[0])]
    body = request.body
    given = next((value for value in (body.json, body.text, body.sha256) if value is not UNSET), None)
    if isinstance(given, dict):
        fields = cast("dict[str, Any]", given)
        given = {name: value for name, value in fields.items() if name not in VOLATILE_FIELDS}
    query = dict(sorted(pairs))
    return RequestContent(request.method, request.path, {"body": given, **({"query": query} if query else {})})


def find_nearest(content: RequestContent, recorded: Sequence[RequestContent]) -> int:
    """Return the index of the recorded request that is the most similar."""

    def similarity(index: int) -> tuple[bool, bool, float]:
        other = recorded[index]
        return other.path == content.path, other.method == content.method, _similarity(other.value, content.value)

    # The last of several, as a conversation grows.
    return max(range(len(recorded)), key=lambda index: (similarity(index), index))


def describe_difference(received: RequestContent, recorded: RequestContent) -> str:
    """Describe the first difference, for an error message."""
    for name in ("method", "path"):
        if getattr(received, name) != getattr(recorded, name):
            return f"{name}: recorded {getattr(recorded, name)}, received {getattr(received, name)}"
    for path, old, new in _find_differences(recorded.value, received.value, ""):
        return f"{path.removeprefix('body.') or 'body'}: recorded {_show(old)}, received {_show(new)}"
    return "no difference"


def _find_differences(old: Any, new: Any, path: str) -> Iterator[tuple[str, Any, Any]]:
    if isinstance(old, dict) and isinstance(new, dict):
        before, after = cast("dict[str, Any]", old), cast("dict[str, Any]", new)
        for key in dict.fromkeys((*after, *before)):
            inner_path = f"{path}.{key}" if path else key
            yield from _find_differences(before.get(key, _ABSENT), after.get(key, _ABSENT), inner_path)
    elif isinstance(old, list) and isinstance(new, list):
        items, others = cast("list[Any]", old), cast("list[Any]", new)
        for index in range(max(len(items), len(others))):
            first = items[index] if index < len(items) else _ABSENT
            second = others[index] if index < len(others) else _ABSENT
            yield from _find_differences(first, second, f"{path}[{index}]")
    elif old is _ABSENT or new is _ABSENT or _replace_volatile(_encode(old)) != _replace_volatile(_encode(new)):
        yield path, old, new


def _similarity(old: Any, new: Any) -> float:
    """Return a number from 0 (nothing in common) to 1 (equal)."""
    if old == new:
        return 1.0
    if isinstance(old, dict) and isinstance(new, dict):
        before, after = cast("dict[str, Any]", old), cast("dict[str, Any]", new)
        total = len(before.keys() | after.keys())
        return sum(_similarity(before[key], after[key]) for key in before.keys() & after.keys()) / total
    if isinstance(old, list) and isinstance(new, list):
        items, others = cast("list[Any]", old), cast("list[Any]", new)
        return sum(map(_similarity, items, others)) / max(len(items), len(others))
    if isinstance(old, str) and isinstance(new, str):
        words, other_words = set(old.split()), set(new.split())
        return len(words & other_words) / max(len(words | other_words), 1)
    return 0.0


def _replace_volatile(text: str) -> str:
    for name, pattern in VOLATILE_TEXTS.items():
        text = pattern.sub(f"<{name}>", text)
    return text


def _encode(value: Any) -> str:
    return encode_json_sorted(value).decode()


def _show(value: Any) -> str:
    if value is _ABSENT:
        return "nothing"
    text = encode_json_text(value)
    return text if len(text) <= _MAX_SHOWN else f"{text[: _MAX_SHOWN - 1]}…"
