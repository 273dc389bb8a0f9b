"""`BackgroundLoop`: an event loop in a thread of its own, for functions that also work inside of a running loop."""

from __future__ import annotations

import asyncio
import atexit
import selectors
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

from segue.http_client import HttpClient

_Value = TypeVar("_Value")


class BackgroundLoop:
    """An event loop and its HTTP client, started on first use and stopped when the process ends."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._client: HttpClient | None = None

    @property
    def client(self) -> HttpClient:
        """The HTTP client. It belongs to the loop."""
        if self._client is None:
            self._client = HttpClient()
        return self._client

    def submit(self, work: Coroutine[Any, Any, _Value]) -> Future[_Value]:
        """Run a coroutine in the loop. Cancelling the future cancels the coroutine."""
        return asyncio.run_coroutine_threadsafe(work, self._start())

    def _start(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            # A forked process has no thread of its parent.
            if self._loop is None or self._thread is None or not self._thread.is_alive():
                if self._loop is not None:
                    # Its connections are the parent's: they are neither closed here nor reported as left open.
                    self._loop.set_exception_handler(lambda _loop, _context: None)
                self._client = None
                self._loop = _make_loop()
                self._thread = threading.Thread(target=self._loop.run_forever, name="segue requests", daemon=True)
                self._thread.start()
                atexit.register(self.stop)
            return self._loop

    def stop(self) -> None:
        """Close all connections and end the thread. The next use starts another one."""
        with self._lock:
            loop, thread = self._loop, self._thread
            client, self._client = self._client, None
            self._loop = self._thread = None
        atexit.unregister(self.stop)
        if loop is None or thread is None or not thread.is_alive():
            return
        if client is not None:
            asyncio.run_coroutine_threadsafe(client.close(), loop).result(timeout=5)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(timeout=5)
        loop.close()


def _make_loop() -> asyncio.AbstractEventLoop:
    """Return an event loop that shares no state with a forked process.

    With epoll, a child that drops a connection it inherited would stop the events of the parent's.
    """
    poll = getattr(selectors, "PollSelector", None)
    return asyncio.new_event_loop() if poll is None else asyncio.SelectorEventLoop(poll())
