"""A real MCP server for the tests, with tools that behave and tools that don't: `stdio`, or `http` on a socket."""

import base64
import os
import subprocess
import sys
from pathlib import Path

import anyio
from mcp.server.mcpserver import Context, Image, MCPServer
from mcp_types import ToolAnnotations

server = MCPServer("trial", log_level="CRITICAL")
PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


@server.tool(annotations=ToolAnnotations(read_only_hint=True, destructive_hint=False))
def add(a: int, b: int) -> str:
    """Adds two numbers."""
    return str(a + b)


@server.tool()
def picture() -> Image:
    return Image(data=PIXEL, format="png")


@server.tool()
def both(name: str) -> dict[str, str]:
    """A value with a shape."""
    return {"name": name}


@server.tool()
def fails() -> str:
    raise ValueError("it went wrong")


@server.tool(name="with.dots and blanks")
def dotted() -> str:
    return "dotted"


@server.tool()
def environment() -> str:
    return "\n".join(sorted(os.environ))


@server.tool()
def dies() -> str:
    print("last words", file=sys.stderr, flush=True)
    os._exit(3)


@server.tool()
async def hangs(mark: str, ctx: Context) -> str:
    """Waits for ever, and says on disk when it is told to stop."""
    try:
        await ctx.report_progress(1, 2, "begun")
        await anyio.sleep(3600)
    except anyio.get_cancelled_exc_class():
        with Path(mark).open("w") as file:
            file.write("cancelled")
        raise
    return "never"


@server.tool()
def floods(size: int) -> str:
    for _ in range(1000):
        print("noise" * 50, file=sys.stderr)
    if "stdio" in sys.argv:
        os.write(1, b"this is no JSON\n" * 100)
    return "x" * size


@server.tool()
async def grows(ctx: Context) -> str:
    def grown() -> str:
        return "grown"

    server.add_tool(grown, name="grown")
    await ctx.notify_tools_changed()
    return "grew"


@server.tool()
def has_child(mark: str) -> str:
    """Leaves a process behind, as servers do."""
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(3600)"])
    with Path(mark).open("w") as file:
        file.write(f"{os.getpid()} {child.pid}")
    return "has"


if __name__ == "__main__":
    if sys.argv[1] == "stdio":
        server.run()
    else:
        import uvicorn

        uvicorn.run(server.streamable_http_app(), fd=int(sys.argv[2]), log_level="critical")
