"""`python -m tests.clients.recorder with CLIENT …`: the command `segue`, whose gateway records what its client sends.

Each exchange with a model is a line of JSON in the file that the variable `SEGUE_RECORDING` names.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import segue.gateway.server
from segue.cli import main
from segue.gateway.app import Gateway, Receive, Scope, SendEvent

VARIABLE = "SEGUE_RECORDING"
# Others are of the connection, or have the key.
_KEPT_HEADERS = frozenset({"content-type", "anthropic-version", "anthropic-beta", "openai-beta"})


class RecordingGateway(Gateway):
    """A gateway that appends each POST request and its response to a file, in the order in which requests end."""

    async def __call__(self, scope: Scope, receive: Receive, send: SendEvent) -> None:
        if scope["type"] != "http" or scope["method"] != "POST":
            await super().__call__(scope, receive, send)
            return
        sent, received = bytearray(), bytearray()

        async def receive_event() -> Any:
            event = await receive()
            received.extend(event.get("body", b""))
            return event

        async def send_event(event: Any) -> None:
            sent.extend(event.get("body", b""))
            await send(event)

        await super().__call__(scope, receive_event, send_event)
        query = scope["query_string"].decode()
        headers = {name.decode(): value.decode() for name, value in scope["headers"]}
        exchange = {
            "path": scope["path"] + (f"?{query}" if query else ""),
            "headers": {name: value for name, value in headers.items() if name in _KEPT_HEADERS},
            "body": json.loads(received),
            "response": sent.decode(errors="replace"),
        }
        with Path(os.environ[VARIABLE]).open("a") as file:
            file.write(f"{json.dumps(exchange)}\n")


if __name__ == "__main__":
    segue.gateway.server.Gateway = RecordingGateway
    main()
