"""Answers the requests of one API from recorded exchanges, without a network.

Several recordings of the same request are replayed in their order, and then again from the first.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from itertools import cycle
from typing import Any

import msgspec
from msgspec import UNSET

from segue.emulator import errors
from segue.emulator.http_messages import MAX_BODY_BYTES, HttpRequest, HttpResponse, RequestLog
from segue.emulator.matching import RequestContent, describe_difference, find_nearest, read_content
from segue.emulator.providers.provider import Provider
from segue.emulator.recording_secrets import SecretRemover
from segue.emulator.recordings import Recording, ResponsePart
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
