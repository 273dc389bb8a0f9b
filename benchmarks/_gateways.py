"""Gateways on loopback, each in a process of its own: segue, a bare pass-through, and the peers that are installed.

Each one is started with the command and the settings that its documentation has for production, with one worker. All
send requests of the Messages API to the same Chat provider, which answers at once with a fixed reply. The pass-through
is a uvicorn server with httptools and uvloop, as segue's is with the extra `gateway`.
"""

from __future__ import annotations

import asyncio
import importlib.metadata
import os
import re
import secrets
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

import aiohttp
import msgspec

EVENTS = 300
MODEL = "claude-sonnet-4-5"
KEY = f"sk-{secrets.token_hex(32)}"
_START_SECONDS = 120
_REPLY = (
    b'{"id":"chatcmpl-1","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,'
    b'"finish_reason":"stop","message":{"role":"assistant","content":"Done."}}],'
    b'"usage":{"prompt_tokens":9,"completion_tokens":2,"total_tokens":11}}'
)
_CHUNK = (
    b'data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,%b}]}\n\n'
)
_STREAM = [
    _CHUNK % b'"delta":{"role":"assistant","content":""},"finish_reason":null',
    *[_CHUNK % b'"delta":{"content":" word"},"finish_reason":null'] * EVENTS,
    _CHUNK % b'"delta":{},"finish_reason":"stop"',
    b"data: [DONE]\n\n",
]
_STREAM_FLAG = re.compile(rb'"stream":\s*true')
_SEGUE = """
model = "up/m"
[providers.up]
api = "openai-chat"
base_url = "{upstream}/v1"
key_variable = "UP_KEY"
"""
_METERED = """
[prices."up/m"]
input = 0.01
output = 0.01
[gateway.groups.backend]
budgets = ["500/month"]
"""
_LITELLM = """
model_list:
  - model_name: "*"
    litellm_params: {{model: hosted_vllm/m, api_base: "{upstream}/v1", api_key: key}}
litellm_settings: {{request_timeout: 600, set_verbose: False}}
general_settings: {{master_key: "{key}"}}
"""
_ROSETTA = """
{{"providers": {{"openai_chat": {{"api_key": "key", "base_url": "{upstream}/v1"}}}},
  "models": {{"{model}": "openai_chat"}},
  "server": {{"host": "127.0.0.1", "port": 8765, "open_on_no_keys": true}}}}
"""


# ------------------------------------------------------------------------------------ the provider and the pass-through


class Provider:
    """An ASGI application that answers at once. A stream has `pace` seconds between two events: `GET /pace/SECONDS`."""

    def __init__(self) -> None:
        self._pace = 0.0

    async def __call__(self, scope, receive, send) -> None:
        if scope["method"] == "GET":
            self._pace = float(scope["path"].rpartition("/")[2])
        is_stream = _STREAM_FLAG.search(await _read_body(receive)) is not None
        kind = b"text/event-stream" if is_stream else b"application/json"
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", kind)]})
        for chunk in _STREAM if is_stream else [_REPLY]:
            await send({"type": "http.response.body", "body": chunk, "more_body": True})
            if is_stream:
                await asyncio.sleep(self._pace)
        await send({"type": "http.response.body", "body": b""})


class PassThrough:
    """Sends each request on unchanged, and returns the response as it arrives."""

    def __init__(self, upstream: str) -> None:
        self._upstream = upstream
        self._session: aiohttp.ClientSession | None = None

    async def __call__(self, scope, receive, send) -> None:
        if self._session is None:
            self._session = aiohttp.ClientSession(auto_decompress=False, connector=aiohttp.TCPConnector(limit=0))
        body = await _read_body(receive)
        async with self._session.post(self._upstream + "/v1/chat/completions", data=body) as response:
            kind = response.headers["content-type"].encode()
            await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", kind)]})
            async for chunk in response.content.iter_any():
                await send({"type": "http.response.body", "body": chunk, "more_body": True})
        await send({"type": "http.response.body", "body": b""})


async def _read_body(receive) -> bytes:
    chunks: list[bytes] = []
    while True:
        event = await receive()
        chunks.append(event.get("body", b""))
        if not event.get("more_body"):
            return b"".join(chunks)


def serve(name: str, port: int, upstream: str) -> None:
    """Serve the provider or the pass-through in this process."""
    import uvicorn

    app = Provider() if name == "provider" else PassThrough(upstream)
    # A gateway is measured in turns: its connections to the provider stay open meanwhile.
    uvicorn.run(app, port=port, access_log=False, log_level="critical", lifespan="off", timeout_keep_alive=600)


# -------------------------------------------------------------------------------------------------------- the processes


class Server:
    """A server in a process of its own. `check` is a path that answers when it is ready."""

    def __init__(self, name: str, command: Sequence[str], port: int, **variables: str) -> None:
        self.name = name
        self.url = f"http://127.0.0.1:{port}"
        self._process = subprocess.Popen(
            command,
            env={**os.environ, **variables},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self._wait(port)

    def _wait(self, port: int) -> None:
        deadline = time.monotonic() + _START_SECONDS
        while self._process.poll() is None and time.monotonic() < deadline:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    return
            time.sleep(0.05)
        self.stop()
        raise SystemExit(f"{self.name} did not start")

    def cpu_seconds(self) -> float:
        """Return the CPU time of the process so far, with all its threads."""
        tasks = Path(f"/proc/{self._process.pid}/task").iterdir()
        return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1e9

    def resident_megabytes(self) -> float:
        lines = Path(f"/proc/{self._process.pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) / 1024

    def stop(self) -> None:
        self._process.terminate()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def start_provider() -> Server:
    return _start_own("provider", "")


def start_gateways(upstream: str, folder: Path, stack: ExitStack) -> list[Server]:
    """Start the pass-through, segue, and the peers that are installed, with their files in a folder.

    The stack stops them.
    """
    servers: list[Server] = []

    def add(server: Server) -> None:
        stack.callback(server.stop)
        servers.append(server)

    add(_start_own("pass-through", upstream))
    add(_start_segue(upstream, folder))
    for package, command, start in (
        ("litellm", "litellm", _start_litellm),
        ("llm-rosetta", "llm-rosetta-gateway", _start_rosetta),
    ):
        found = shutil.which(command, path=str(Path(sys.executable).parent))
        if found is None:
            print(f"(left out: {package} is not installed)")
        else:
            add(start(f"{package} {importlib.metadata.version(package)}", found, upstream, folder))
    return servers


def _start_own(name: str, upstream: str) -> Server:
    port = _find_port()
    script = Path(__file__).with_name("gateway.py")
    return Server(name, [sys.executable, str(script), "--serve", name, str(port), upstream], port)


def start_metered(upstream: str, folder: Path, stack: ExitStack) -> list[Server]:
    """Start segue alone, with a store and 1,000 client keys, and then with budgets of a client and its group."""
    servers: list[Server] = []
    for name, budgets in (("segue", None), ("a store, 1,000 keys", ()), ("budgets, a group", ("50/month", "9/day"))):
        place = folder / str(len(servers))
        servers.append(_start_segue(upstream, place, name, budgets))
        stack.callback(servers[-1].stop)
    return servers


def _start_segue(upstream: str, folder: Path, name: str = "segue", budgets: Sequence[str] | None = None) -> Server:
    """Start segue. With `budgets`, even without one, it has a store, and clients need one of 1,000 keys."""
    from segue.gateway.client_keys import ClientKey, hash_key

    port = _find_port()
    file = folder / "config" / "segue" / "config.toml"
    file.parent.mkdir(parents=True)
    store = [] if budgets is None else ["--store", str(folder / "store" / "entries.db")]
    file.write_text(_SEGUE.format(upstream=upstream) + (_METERED if budgets else ""))
    if budgets is not None:
        group = "backend" if budgets else ""
        keys = [ClientKey(f"client-{number}", hash_key(f"key-{number}"), group=group) for number in range(999)]
        keys.append(ClientKey("ada", hash_key(KEY), group=group, budgets=tuple(budgets)))
        client_file = file.with_name("client-keys.json")
        client_file.write_bytes(msgspec.json.encode(keys))
        client_file.chmod(0o600)
    names = {f"XDG_{kind.upper()}_HOME": str(folder / kind) for kind in ("config", "data", "state", "cache")}
    command = [sys.executable, "-m", "segue", "serve", "-m", "up/m", "--port", str(port), *store]
    return Server(name, command, port, **names, HOME=str(folder), UP_KEY="key")


def _start_litellm(name: str, command: str, upstream: str, folder: Path) -> Server:
    port = _find_port()
    file = folder / "litellm.yaml"
    file.write_text(_LITELLM.format(upstream=upstream, key=KEY))
    variables = {"LITELLM_MODE": "PRODUCTION", "LITELLM_LOG": "ERROR", "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    options = ["--config", str(file), "--host", "127.0.0.1", "--port", str(port), "--num_workers", "1"]
    return Server(name, [command, *options, "--telemetry", "False"], port, **variables)


def _start_rosetta(name: str, command: str, upstream: str, folder: Path) -> Server:
    port = _find_port()
    file = folder / "rosetta.jsonc"
    file.write_text(_ROSETTA.format(upstream=upstream, model=MODEL))
    options = ["--config", str(file), "--port", str(port), "--data-dir", str(folder), "--log-level", "error"]
    return Server(name, [command, *options, "--no-banner"], port)


def _find_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]
