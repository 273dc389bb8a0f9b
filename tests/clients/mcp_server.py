"""An MCP server on standard input and output with one tool, which appends a word to a file in the current folder.

It is started by the clients, with any Python and without packages. Clients defer the tools of servers: the model finds
them by a search.
"""

from __future__ import annotations

import base64
import json
import sys
from pathlib import Path

SERVER = "desk"
TOOL = "stamp_word"
PICTURE_WORD = "picture"
"""The word for which the result is a picture, too."""
_FILE = "ran.txt"
_DECLARATION = {
    "name": TOOL,
    "description": "Stamps a word: appends it to the list of words.",
    "inputSchema": {"type": "object", "properties": {"word": {"type": "string"}}, "required": ["word"]},
}


def _read_picture() -> str:
    return base64.b64encode(Path("red.png").read_bytes()).decode()


def _answer(method: str, params: dict[str, object]) -> dict[str, object]:
    if method == "initialize":
        return {
            "protocolVersion": params.get("protocolVersion"),
            "capabilities": {"tools": {}},
            "serverInfo": {"name": SERVER, "version": "1"},
        }
    if method == "tools/list":
        return {"tools": [_DECLARATION]}
    if method == "tools/call":
        arguments = params.get("arguments")
        word = str(arguments.get("word")) if isinstance(arguments, dict) else ""
        with Path(_FILE).open("a") as file:
            file.write(f"{word}\n")
        content = [{"type": "text", "text": f"RESULT-{word.upper()}"}]
        if word == PICTURE_WORD:
            content.append({"type": "image", "mimeType": "image/png", "data": _read_picture()})
        return {"content": content}
    return {}


def main() -> None:
    for line in sys.stdin:
        message = json.loads(line)
        if "id" in message:
            result = _answer(message["method"], message.get("params") or {})
            print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)


if __name__ == "__main__":
    main()
