"""The requests of one port, numbered in the order of arrival."""

from __future__ import annotations

import threading
from collections.abc import Callable

from segue.emulator.http_messages import HttpRequest, RecordedRequest


class RequestLog:
    """All requests so far. `on_request` is called for each one when its record is complete."""

    def __init__(self, on_request: Callable[[RecordedRequest], None] | None = None) -> None:
        self._on_request = on_request
        self._opened = 0
        self._closed: list[RecordedRequest] = []

    @property
    def requests(self) -> list[RecordedRequest]:
        """The completed records; other threads may read them at any time."""
        return sorted(self._closed, key=lambda record: record.number)

    def open(self, api: str, http_request: HttpRequest) -> RecordedRequest:
        """Return the record of a request that has arrived."""
        self._opened += 1
        return RecordedRequest(self._opened, http_request.method, http_request.path, api=api)

    def close(self, record: RecordedRequest) -> None:
        """List a completed record. Exceptions of the listener go to `threading.excepthook`."""
        self._closed.append(record)
        if self._on_request is None:
            return
        try:
            self._on_request(record)
        except Exception as error:  # noqa: BLE001  the response is sent anyway
            details = (type(error), error, error.__traceback__, threading.current_thread())
            threading.excepthook(threading.ExceptHookArgs(details))
