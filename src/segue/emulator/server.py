"""An emulated provider that listens: uvicorn on a thread of its own, on loopback."""

from __future__ import annotations

import asyncio
import socket
import struct
import threading
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any
from urllib.parse import parse_qsl, unquote

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from segue.emulator.app import App
from segue.emulator.chaos import Chaos
from segue.emulator.exchange import Answer, Asked, Recorded
from segue.emulator.model.script import Script
from segue.emulator.providers import PROVIDERS
from segue.errors import InputError, checked_profile
from segue.wire.profiles import PROFILES

__all__ = ["Emulator", "start"]

_LOOPBACK = "127.0.0.1"


class Emulator:
    """A running provider. `stop()` it, or use it in a `with` statement."""

    def __init__(self, app: App, port: int, *, host: str = _LOOPBACK) -> None:
        self.api = app.provider.api
        self._app = app
        try:
            self._socket = socket.create_server((host, port), backlog=256)
        except OSError as error:
            raise InputError(f"can't listen on {host}:{port}: {error.strerror or error}", path="port") from None
        self.port: int = self._socket.getsockname()[1]
        self.url = f"http://{host}:{self.port}"
        self._config = uvicorn.Config(
            self._serve,
            interface="asgi3",
            http="h11",
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
        )
        self._state = ServerState()
        self._ready = threading.Event()
        self._stop: Callable[[], object] | None = None
        self._thread = threading.Thread(target=self._run, name=f"segue emulate {self.api}", daemon=True)
        self._thread.start()
        self._ready.wait()

    @property
    def base_url(self) -> str:
        """What the provider's own client takes as its base URL."""
        return self.url + self._app.provider.base

    @property
    def requests(self) -> list[Recorded]:
        """Every request so far, with the body, the verdict and what became of it."""
        return list(self._app.requests)

    def stop(self) -> None:
        """Ends at once; connections that are open are closed. To stop twice changes nothing."""
        if self._stop is not None:
            stop, self._stop = self._stop, None
            stop()
            self._thread.join()

    def __enter__(self) -> Emulator:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _run(self) -> None:
        asyncio.run(self._listen())

    async def _listen(self) -> None:
        """uvicorn's protocol without its server, which looks only ten times a second whether it is to end."""
        self._config.load()
        loop, over = asyncio.get_running_loop(), asyncio.Event()
        self._stop = partial(loop.call_soon_threadsafe, over.set)

        connected = partial(H11Protocol, config=self._config, server_state=self._state, app_state={})
        server = await loop.create_server(connected, sock=self._socket)
        self._ready.set()
        await over.wait()
        server.close()
        for connection in list(self._state.connections):
            _transport(connection).abort()
        for task in list(self._state.tasks):
            task.cancel()
        await asyncio.gather(*self._state.tasks, return_exceptions=True)

    # ------------------------------------------------------------------------------------------------------------ ASGI

    async def _serve(self, scope: Mapping[str, Any], receive: Callable[[], Any], send: Callable[[Any], Any]) -> None:
        body = b""
        while True:
            event = await receive()
            if event["type"] != "http.request":
                return
            body += event.get("body", b"")
            if not event.get("more_body"):
                break
        asked = _asked(scope, body)
        try:
            answer = self._app.answer(asked)
        except Exception as error:  # noqa: BLE001  a client gets an answer, whatever happens
            answer = self._app.broke_down(asked, error)
        if answer.delay:
            await asyncio.sleep(answer.delay)
        if answer.status == 0:
            self._reset(scope)
            return
        await self._send(answer, scope, send)

    async def _send(self, answer: Answer, scope: Mapping[str, Any], send: Callable[[Any], Any]) -> None:
        headers = [(b"content-type", answer.kind.encode())]
        headers += [(name.encode(), value.encode()) for name, value in answer.headers.items()]
        content = answer.content
        if isinstance(content, bytes):
            length = len(content) * 2 if answer.reset else len(content)
            headers.append((b"content-length", str(length).encode()))
        await send({"type": "http.response.start", "status": answer.status, "headers": headers})
        if isinstance(content, bytes):
            await send({"type": "http.response.body", "body": content, "more_body": answer.reset})
        else:
            async for piece in content:
                await send({"type": "http.response.body", "body": piece, "more_body": True})
        if answer.reset:
            await asyncio.sleep(0.01)
            self._reset(scope)
        elif not isinstance(content, bytes):
            await send({"type": "http.response.body", "body": b""})

    def _reset(self, scope: Mapping[str, Any]) -> None:
        """Takes the connection down as a crash does, without a closing word."""
        for connection in list(self._state.connections):
            if getattr(connection, "client", None) == scope.get("client"):
                transport = _transport(connection)
                bare = transport.get_extra_info("socket")
                if bare is not None:
                    bare.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                transport.abort()


def _transport(connection: Any) -> Any:
    return connection.transport


def _asked(scope: Mapping[str, Any], body: bytes) -> Asked:
    raw_path: bytes = scope.get("raw_path") or scope["path"].encode()
    query: bytes = scope["query_string"]
    return Asked(
        method=scope["method"],
        path=unquote(raw_path.decode("latin-1")),
        query=dict(parse_qsl(query.decode("latin-1"), keep_blank_values=True)),
        headers={name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]},
        body=body,
        raw_path=raw_path.decode("latin-1"),
        raw_query=query.decode("latin-1"),
    )


def start(
    api: str,
    *,
    port: int = 0,
    host: str = _LOOPBACK,
    script: str | Path | Script | None = None,
    strict: bool = True,
    profile: str | None = None,
    keys: Iterable[str] = (),
    faults: Iterable[str] | Mapping[str, float] = (),
    seed: int = 0,
    patience: float = 30.0,
    told: Callable[[Recorded], None] | None = None,
) -> Emulator:
    """Starts the provider of this API on loopback.

    `port` 0 takes any that is free. `script` is the text of one, or the path of a file; without it the built-in model
    answers, and it goes on where a script ends. With `strict` off every body is answered and what is wrong with it
    only recorded. `keys` are the only ones let in; without any, every key is. `faults` are told in `chaos.Chaos`, and
    last `patience` seconds where all they do is to make one wait. `told` is called for each request.
    """
    if api not in PROVIDERS:
        raise InputError(f"{api!r} is not a known API; known are {', '.join(PROVIDERS)}", path="api")
    checked_profile(profile, api, PROFILES, on="openai-chat")
    app = App(
        PROVIDERS[api](seed),
        profile=profile,
        strict=strict,
        keys=frozenset(keys),
        script=_script(script),
        chaos=Chaos(faults, seed),
        patience=patience,
        told=told,
    )
    return Emulator(app, port, host=host)


def _script(given: str | Path | Script | None) -> Script | None:
    if given is None or isinstance(given, Script):
        return given
    if isinstance(given, Path):
        try:
            return Script.parse(given.read_text("utf-8"), str(given))
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"can't read the script {given}: {error}", path="script") from None
    return Script.parse(given)
