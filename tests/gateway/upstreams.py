"""A plain HTTP server on loopback that records requests and answers as a test needs it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from msgspec import Struct


class Received(Struct):
    """A request that reached the server. Header names are in lower case."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes


class Upstream:
    """The server: its `requests`, and the number of its connections that clients closed within a response."""

    def __init__(self, answer: Callable[[Handler], None]) -> None:
        self.requests: list[Received] = []
        self.closed = threading.Event()
        self.answer = answer
        self.url = ""


class Handler(BaseHTTPRequestHandler):
    """Reads a request whole, and lets the test answer it."""

    protocol_version = "HTTP/1.1"
    upstream: Upstream

    def handle_any(self) -> None:
        received = Received(self.command, self.path, {name.lower(): value for name, value in self.headers.items()}, b"")
        self.upstream.requests.append(received)
        if self.headers.get("transfer-encoding") == "chunked":
            while size := int(self.rfile.readline(), 16):
                received.body += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
        else:
            received.body = self.rfile.read(int(self.headers.get("content-length", 0)))
        try:
            self.upstream.answer(self)
        except ConnectionError:
            self.upstream.closed.set()
            self.close_connection = True

    do_GET = do_POST = do_DELETE = do_PUT = do_HEAD = handle_any  # noqa: N815  the names of the base class

    def reply(self, data: bytes, status: int = 200, **headers: str) -> None:
        self.send_response(status)
        for name, value in {"content-type": "application/json", **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def begin_chunks(self, content_type: str = "text/event-stream") -> None:
        self.send_response(200)
        self.send_header("content-type", content_type)
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()

    def write_chunk(self, data: bytes) -> None:
        self.wfile.write(b"%x\r\n%b\r\n" % (len(data), data))
        self.wfile.flush()

    def log_message(self, format: str, *args: Any) -> None:
        pass


@contextmanager
def running_upstream(answer: Callable[[Handler], None]) -> Generator[Upstream]:
    upstream = Upstream(answer)
    handler = type("BoundHandler", (Handler,), {"upstream": upstream})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    upstream.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield upstream
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
