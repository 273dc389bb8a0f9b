"""One API of an emulator with all of them, for tests that need a base URL and the requests of this API."""

from __future__ import annotations

from typing import Any, cast

from segue.emulator import Emulator, RecordedRequest


class OneApi:
    def __init__(self, emulator: Emulator, api: str, base_url: str | None = None) -> None:
        self.api = api
        self.base_url = base_url or emulator.base_urls[api]
        self._emulator = emulator

    @property
    def requests(self) -> list[RecordedRequest]:
        return [request for request in self._emulator.requests if request.api == self.api]


def one_api(emulator: Emulator, api: str, base_url: str | None = None) -> Emulator:
    """What the vendors' chats use of an emulator."""
    return cast("Emulator", cast("Any", OneApi(emulator, api, base_url)))
