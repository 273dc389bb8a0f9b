"""Requests to an emulated provider and their responses, broken ones included."""

from __future__ import annotations

import http.client
import socket
from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

import segue
from segue.canonical.request import Reply
from segue.emulator import Emulator
from segue.emulator.client import build_request
from segue.emulator.providers import PROVIDERS
from segue.wire.registry import WIRES

APIS = tuple(PROVIDERS)
TIMEOUT = 100.0
"""How long a client waits at most; nothing here takes that long."""


def _tool(name: str, **properties: str) -> dict[str, Any]:
    members = {key: {"type": "string", "description": text} for key, text in properties.items()}
    schema = {"type": "object", "properties": members, "required": list(members)}
    return {"type": "function", "function": {"name": name, "description": name, "parameters": schema}}


TOOLS = [_tool("get_weather", city="Which city"), _tool("get_time", zone="Which zone")]
QUESTION = "How is the weather in Lisbon?"
_REASONING_OPT_IN = frozenset({"anthropic", "bedrock", "gemini", "openai-responses", "azure-foundry", "qwen"})


def conversation(prompt: str = QUESTION) -> segue.Conversation:
    chat = segue.Conversation(tools=TOOLS)
    chat.add_user(prompt)
    return chat


def body_of(
    api: str, chat: segue.Conversation | str = QUESTION, *, model: str | None = None, thinks: bool = False
) -> dict[str, Any]:
    """A body that this API takes. `thinks`: in which the model shows its thoughts, wherever the API has such a word."""
    chat = conversation(chat) if isinstance(chat, str) else chat
    asked = thinks and api in _REASONING_OPT_IN
    chat.options = {"max_tokens": 4096, "reasoning": {"enabled": True, "budget": 1024} if asked else None}
    model = model or WIRES[api].default_model
    body = dict(chat.render(api, model).body)
    body["model"] = model
    if asked and api == "gemini":
        body.setdefault("generationConfig", {})["thinkingConfig"] = {"includeThoughts": True}
    if asked and api in ("openai-responses", "azure-foundry"):
        body["reasoning"] = {"effort": "medium", "summary": "auto"}
    return body


class HttpResult(NamedTuple):
    """The status (0 if nothing arrived), the headers, the body, and the exception that ended it."""

    status: int
    headers: Mapping[str, str]
    data: bytes
    exception: Exception | None = None

    @property
    def json(self) -> Any:
        return msgspec.json.decode(self.data)


def connect(emulator: Emulator) -> http.client.HTTPConnection:
    connection = http.client.HTTPConnection("127.0.0.1", emulator.port, timeout=TIMEOUT)
    connection.connect()
    return connection


def send_request(
    emulator: Emulator,
    body: Mapping[str, Any] | bytes | None = None,
    *,
    stream: bool = False,
    on: http.client.HTTPConnection | None = None,
    **options: Any,
) -> HttpResult:
    """One request, read piece by piece as it comes, so that what came before a break is not lost."""
    body = body_of(emulator.api) if body is None else body
    path, data, headers = build_request(emulator.api, body, stream=stream, **options)
    connection = on or connect(emulator)
    try:
        connection.request("POST", path, data, dict(headers))
        try:
            answer = connection.getresponse()
        except (OSError, http.client.HTTPException) as error:
            return HttpResult(0, {}, b"", error)
        came = b""
        exception: Exception | None = None
        try:
            while piece := answer.read1():
                came += piece
        except (OSError, http.client.HTTPException) as error:
            exception = error
        if exception is None and answer.length:
            exception = http.client.IncompleteRead(came, answer.length)
        answer.close()
        return HttpResult(answer.status, {name.lower(): value for name, value in answer.getheaders()}, came, exception)
    finally:
        if on is None:
            connection.close()


def open_response(emulator: Emulator, *, stream: bool, without: str = "") -> http.client.HTTPResponse:
    """An answer of which nothing but the head was read. `without`: what is taken out of the path."""
    path, data, headers = build_request(emulator.api, body_of(emulator.api), stream=stream)
    connection = connect(emulator)
    # The answer closes the connection.
    headers = {**headers, "connection": "close"}
    connection.request("POST", path.replace(without, ""), data, headers)
    return connection.getresponse()


def open_socket(emulator: Emulator, body: Mapping[str, Any] | None = None, *, stream: bool = False) -> socket.socket:
    """A socket that one request was written to, and nothing read from."""
    path, data, headers = build_request(emulator.api, body or body_of(emulator.api), stream=stream)
    header_lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    head = f"POST {path} HTTP/1.1\r\nhost: localhost\r\n{header_lines}content-length: {len(data)}\r\n\r\n"
    connection = socket.create_connection(("127.0.0.1", emulator.port), timeout=TIMEOUT)
    connection.sendall(head.encode() + data)
    return connection


def reply_of(emulator: Emulator, seen: HttpResult, *, stream: bool) -> Reply:
    """The reply as segue reads it."""
    if stream:
        return segue.assemble(seen.data, emulator.api)
    return WIRES[emulator.api].parse_reply(seen.json)
