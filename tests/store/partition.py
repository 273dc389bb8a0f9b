"""A network that fails between a store and its PostgreSQL server: a proxy that reads the messages which it forwards."""

from __future__ import annotations

import select
import socket
import struct
import threading
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Kind = Literal["cut", "torn", "reply lost", "void", "held"]
KINDS: tuple[Kind, ...] = ("cut", "torn", "reply lost", "void")
# Messages that end a request: a query, the end of a group of messages, the end of the connection.
_REQUEST_ENDS = (b"Q", b"S", b"X")
_READY = b"Z"
_RESET = struct.pack("ii", 1, 0)


@dataclass(frozen=True)
class Failure:
    """What happens to request number `at`.

    `cut`: it does not arrive, the connection is reset. `torn`: half of it arrives, then a reset. `reply lost`: it is
    carried out, the connection is reset before the reply. `void`: it disappears, the connection stays open on both
    sides. `held`: it waits until `release` is called.
    """

    kind: Kind
    at: int


class Partition:
    """A proxy on loopback. `url` leads through it; `requests` has the requests of all connections so far."""

    def __init__(self, folder: Path) -> None:
        self._server = str(folder / ".s.PGSQL.5432")
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._closing, self._closed = socket.socketpair()
        self._threads = [threading.Thread(target=self._accept)]
        self._lock = threading.Lock()
        self._failure: Failure | None = None
        self.requests: list[bytes] = []
        self.is_held = threading.Event()
        self._released = threading.Event()
        port = self._listener.getsockname()[1]
        self.url = f"postgresql://postgres@127.0.0.1:{port}/postgres?sslmode=disable&gssencmode=disable"
        self._threads[0].start()

    def begin(self, failure: Failure | None) -> None:
        """Count the requests from here on."""
        with self._lock:
            self.requests, self._failure = [], failure
            self.is_held.clear()
            self._released.clear()

    def release(self) -> None:
        self._released.set()

    def close(self) -> None:
        self.release()
        self._closing.close()
        for thread in self._threads:
            thread.join()
        self._listener.close()
        self._closed.close()

    def _accept(self) -> None:
        while True:
            ready, _, _ = select.select([self._listener, self._closed], [], [])
            if self._closed in ready:
                return
            client, _ = self._listener.accept()
            server = socket.socket(socket.AF_UNIX)
            server.connect(self._server)
            self._threads.append(threading.Thread(target=self._forward, args=(client, server)))
            self._threads[-1].start()

    def _forward(self, client: socket.socket, server: socket.socket) -> None:
        with client, server, suppress(OSError):
            requests = _Messages(has_startup=True)
            while True:
                ready, _, _ = select.select([client, server, self._closed], [], [])
                if self._closed in ready:
                    return
                if server in ready:
                    data = server.recv(1 << 16)
                    client.sendall(data)
                    if not data:
                        return
                if client in ready:
                    data = client.recv(1 << 16)
                    if not data:
                        return
                    for request in requests.read(data):
                        if not self._pass_on(request, client, server):
                            return

    def _pass_on(self, request: bytes, client: socket.socket, server: socket.socket) -> bool:
        """Forward a request, or fail as planned; return whether the connection goes on."""
        with self._lock:
            failure = self._failure
            is_chosen = failure is not None and len(self.requests) == failure.at
            self.requests.append(request)
        if failure is None or not is_chosen:
            server.sendall(request)
            return True
        match failure.kind:
            case "cut":
                pass
            case "torn":
                server.sendall(request[: len(request) // 2])
            case "reply lost":
                server.sendall(request)
                replies = _Messages()
                while data := server.recv(1 << 16):
                    if any(reply.startswith(_READY) for reply in replies.read_each(data)):
                        break
            case "void":
                select.select([self._closed], [], [])
            case "held":
                self.is_held.set()
                self._released.wait()
                server.sendall(request)
                return True
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        return False


class _Messages:
    """A parser of PostgreSQL's messages: a type, a length, and the rest. The first of a client has no type."""

    def __init__(self, *, has_startup: bool = False) -> None:
        self._data = b""
        self._group = b""
        self._startup = has_startup

    def read_each(self, data: bytes) -> list[bytes]:
        """Return the complete messages."""
        self._data += data
        found: list[bytes] = []
        while True:
            type_length = 0 if self._startup else 1
            head = self._data[type_length : type_length + 4]
            end = type_length + int.from_bytes(head)
            if len(head) < 4 or len(self._data) < end:
                return found
            found.append(self._data[:end])
            self._data, self._startup = self._data[end:], False

    def read(self, data: bytes) -> list[bytes]:
        """Return the complete requests: groups of messages to which the server replies. The startup is one of them."""
        found: list[bytes] = []
        was_startup = self._startup
        for message in self.read_each(data):
            self._group += message
            if was_startup or message[:1] in _REQUEST_ENDS:
                found.append(self._group)
                self._group, was_startup = b"", False
        return found


@contextmanager
def partitioned(folder: Path) -> Generator[Partition]:
    partition = Partition(folder)
    try:
        yield partition
    finally:
        partition.close()
