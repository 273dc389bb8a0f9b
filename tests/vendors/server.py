"""A provider on loopback that answers with what it was given, in order, and keeps the bodies that it got."""

from __future__ import annotations

import json
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any


class CannedServer(ThreadingHTTPServer):
    """`answers` are JSON values, lists of stream events as (name, value), the bytes of a stream, or functions that make
    one of these of path and body. Streams are of the type `kind`."""

    daemon_threads = True

    def __init__(self, answers: Sequence[Any], kind: str) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answers = list(answers)
        self.kind = kind
        self.requests: list[tuple[str, bytes]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    server: CannedServer  # pyright: ignore[reportIncompatibleVariableOverride]

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        self.server.requests.append((self.path, body))
        if not self.server.answers:
            return self._send(500, "application/json", b'{"error": {"message": "one request too many"}}')
        answer = self.server.answers.pop(0)
        if callable(answer):
            answer = answer(self.path, body)
        if isinstance(answer, list):
            answer = b"".join(_event(name, value) for name, value in answer)
        if isinstance(answer, bytes):
            return self._send(200, self.server.kind, answer)
        return self._send(200, "application/json", json.dumps(answer).encode())

    def _send(self, status: int, kind: str, data: bytes) -> None:
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:
        pass


def _event(name: str | None, value: Any) -> bytes:
    data = value if isinstance(value, str) else json.dumps(value)
    return (f"event: {name}\n" if name else "").encode() + f"data: {data}\n\n".encode()


@contextmanager
def serve_canned(answers: Sequence[Any], kind: str = "text/event-stream") -> Generator[CannedServer]:
    with CannedServer(answers, kind) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
