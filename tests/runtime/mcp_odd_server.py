"""An MCP server that sends what it is given: lists from a file, one page a line, and responses from the arguments."""

import json
import sys
from pathlib import Path


def send(identifier: object, text: str) -> None:
    print(f'{{"jsonrpc": "2.0", "id": {json.dumps(identifier)}, {text}}}', flush=True)


def serve(pages: list[str]) -> None:
    listed = 0
    for line in sys.stdin:
        message = json.loads(line)
        match message.get("method"):
            case "initialize":
                info = {"name": "odd", "version": "1"}
                result = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": info}
                send(message["id"], f'"result": {json.dumps(result)}')
            case "tools/list":
                send(message["id"], pages[min(listed, len(pages) - 1)])
                listed += 1
            case "tools/call":
                arguments = message["params"]["arguments"]
                print(arguments.get("noise", ""), end="")
                send(message["id"], arguments.get("answer", '"result": {"content": []}'))
            case _ if "id" in message:
                send(message["id"], '"error": {"code": -32601, "message": "unknown"}')
            case _:
                pass


if __name__ == "__main__":
    serve(Path(sys.argv[1]).read_text().splitlines())
