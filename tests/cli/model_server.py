"""A small local model server: lists of models, and the same streamed answer to every request."""

from __future__ import annotations

import json
import threading
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

_CHUNK = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
_ANSWER = [
    {"choices": [{"index": 0, "delta": {"role": "assistant", "content": "Hello."}, "finish_reason": None}]},
    {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
]


class ModelServer:
    """A running server; `bodies` are those of the requests for replies."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.bodies: list[dict[str, Any]] = []


@contextmanager
def serve_models(lists: Mapping[str, Any]) -> Generator[ModelServer]:
    """Serve a JSON value for each path in `lists`, and answers."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._send(200 if self.path in lists else 404, json.dumps(lists.get(self.path, {})).encode())

        def do_POST(self) -> None:
            served.bodies.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
            events = [*(json.dumps({**_CHUNK, **chunk}) for chunk in _ANSWER), "[DONE]"]
            data = "".join(f"data: {event}\n\n" for event in events).encode()
            self._send(200, data, "text/event-stream")

        def _send(self, status: int, data: bytes, kind: str = "application/json") -> None:
            self.send_response(status)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: Any) -> None:
            """Print nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    served = ModelServer(f"http://127.0.0.1:{server.server_address[1]}")
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield served
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
