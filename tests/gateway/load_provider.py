"""A provider for load tests: Anthropic's API on loopback, with a thought, many deltas and a tool call in each reply.

It checks what a client of another API can't: every earlier reply of a conversation comes back with its own thought.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn

MODEL = "claude-sonnet-4-5"
CALL = "look"


class Upstream:
    """A running provider. A reply has `events` deltas of text, each `size` characters long, `pace` seconds apart.

    `lost` describes the requests without all thoughts of their conversation, `left` counts the replies that were
    cancelled, and `sent` the bytes of all replies so far.
    """

    api = "anthropic"

    def __init__(self, *, events: int = 40, size: int = 8, pace: float = 0.0) -> None:
        self.events = events
        self.size = size
        self.pace = pace
        self.base_url = ""
        self.replies = 0
        self.active = 0
        self.left = 0
        self.sent = 0
        self.lost: list[str] = []

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        prompt, turn = self._check(json.loads(await _read_body(receive)))
        self.active += 1
        replying = asyncio.create_task(self._reply(prompt, turn, send))
        leaving = asyncio.create_task(_wait_for_disconnect(receive))
        await asyncio.wait((replying, leaving), return_when=asyncio.FIRST_COMPLETED)
        self.active -= 1
        self.left += not replying.done()
        for task in (replying, leaving):
            task.cancel()
        await asyncio.gather(replying, leaving, return_exceptions=True)

    def _check(self, body: Any) -> tuple[str, int]:
        """Return the first text of the conversation and the number of earlier replies, whose thoughts are checked."""
        prompt = _first_text(body["messages"][0]["content"])
        replies = [message for message in body["messages"] if message["role"] == "assistant"]
        for turn, message in enumerate(replies):
            thoughts = [block for block in message["content"] if block["type"] == "thinking"]
            if [block["signature"] for block in thoughts] != [_sign(prompt, turn)]:
                self.lost.append(f"{prompt}: turn {turn} of {len(replies)} has {thoughts}")
        return prompt, len(replies)

    async def _reply(self, prompt: str, turn: int, send: Any) -> None:
        headers = [(b"content-type", b"text/event-stream")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        for event in _events(prompt, turn, self.events, self.size):
            data = f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode()
            await send({"type": "http.response.body", "body": data, "more_body": True})
            self.sent += len(data)
            if event["type"] == "content_block_delta":
                await asyncio.sleep(self.pace)
        await send({"type": "http.response.body", "body": b""})
        self.replies += 1


def expected_text(prompt: str, turn: int, events: int, size: int) -> str:
    """Return the text of a whole reply."""
    return "".join(_piece(prompt, turn, number, size) for number in range(events))


def _piece(prompt: str, turn: int, number: int, size: int) -> str:
    return f"{prompt}/{turn}/{number} ".ljust(size, ".")


def _sign(prompt: str, turn: int) -> str:
    return f"signature of {prompt}, {turn}".encode().hex()


def _events(prompt: str, turn: int, events: int, size: int) -> Iterator[dict[str, Any]]:
    usage = {"input_tokens": 9, "output_tokens": 1}
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": MODEL, "content": [], "usage": usage}
    yield {"type": "message_start", "message": message}
    thinking = {"type": "thinking", "thinking": "", "signature": ""}
    yield {"type": "content_block_start", "index": 0, "content_block": thinking}
    yield _delta(0, type="thinking_delta", thinking=f"A thought about {prompt}.")
    yield _delta(0, type="signature_delta", signature=_sign(prompt, turn))
    yield {"type": "content_block_stop", "index": 0}
    yield {"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": ""}}
    for number in range(events):
        yield _delta(1, type="text_delta", text=_piece(prompt, turn, number, size))
    yield {"type": "content_block_stop", "index": 1}
    call = {"type": "tool_use", "id": f"toolu_{turn}", "name": CALL, "input": {}}
    yield {"type": "content_block_start", "index": 2, "content_block": call}
    yield _delta(2, type="input_json_delta", partial_json=json.dumps({"n": turn}))
    yield {"type": "content_block_stop", "index": 2}
    yield {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": events}}
    yield {"type": "message_stop"}


def _delta(index: int, **delta: str) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": index, "delta": delta}


def _first_text(content: Any) -> str:
    return content if isinstance(content, str) else content[0]["text"]


async def _read_body(receive: Any) -> bytes:
    body = b""
    while True:
        event = await receive()
        body += event.get("body", b"")
        if not event.get("more_body"):
            return body


async def _wait_for_disconnect(receive: Any) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


@contextmanager
def running_upstream(**options: Any) -> Generator[Upstream]:
    """Serve a provider in a thread until the end of the block."""
    upstream = Upstream(**options)
    config = uvicorn.Config(upstream, port=0, lifespan="off", log_config=None, timeout_keep_alive=600)
    server = uvicorn.Server(config)
    listening = config.bind_socket()
    upstream.base_url = f"http://127.0.0.1:{listening.getsockname()[1]}"
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    try:
        yield upstream
    finally:
        server.should_exit = server.force_exit = True
        thread.join()
        listening.close()
