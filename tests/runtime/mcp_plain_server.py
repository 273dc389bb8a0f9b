"""MCP servers without the SDK, which takes seconds to import: of an `old` protocol, a `silent` and a `broken` one."""

import json
import sys
import time


def old() -> None:
    """A server of an earlier protocol, written by hand: no discovery, unsolicited change notifications."""
    grown = False

    def send(**message: object) -> None:
        print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)

    for line in sys.stdin:
        message = json.loads(line)
        match message.get("method"):
            case "initialize":
                result = {
                    "protocolVersion": "2024-11-05",
                    "capabilities": {"tools": {"listChanged": True}},
                    "serverInfo": {"name": "old", "version": "1"},
                }
                send(id=message["id"], result=result)
            case "tools/list":
                names = ["grow", "grown"] if grown else ["grow"]
                bad = {"name": "bad", "inputSchema": {"type": "object", "properties": {"a": {"type": "no such"}}}}
                send(
                    id=message["id"],
                    result={"tools": [*({"name": n, "inputSchema": {"type": "object"}} for n in names), bad]},
                )
            case "tools/call":
                grown = True
                send(method="notifications/tools/list_changed")
                send(id=message["id"], result={"content": [{"type": "text", "text": "grew"}]})
            case _ if "id" in message:
                send(id=message["id"], error={"code": -32601, "message": "unknown"})
            case _:
                pass


if __name__ == "__main__":
    if sys.argv[1] == "old":
        old()
    elif sys.argv[1] == "silent":
        time.sleep(3600)
    else:
        print("\x1b[31mno such database", file=sys.stderr, flush=True)
        sys.exit(1)
