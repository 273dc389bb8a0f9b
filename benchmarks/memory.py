"""The peak memory of one conversion above the body itself, as a multiple of the body's size.

Each conversion runs in a process of its own. The bodies are a generated session with text results, and a session with
images in messages and results.

    make bench                                 all of it, bodies of 100 MB
    python benchmarks/memory.py --quick        bodies of 10 MB
    python benchmarks/memory.py --write        the table also into docs/speed.md
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

from _measure import format_table, write_page
from _transcripts import body

import segue

MB = 1_000_000
TARGETS = ("openai-chat", "openai-responses", "anthropic", "gemini", "bedrock")
MESSAGES_PER_MB = 560
SMALL = b'{"messages":[{"role":"user","content":"hi"}]}'


def image_body(size: int) -> bytes:
    """Return a Messages body with images of 1 MB, in user messages and in results."""

    def image(number: int) -> dict[str, object]:
        data = f"iVBORw0KGgo{number:09}".ljust(MB, "A")
        return {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}}

    messages: list[dict[str, object]] = []
    for number in range(0, size // MB, 2):
        call = {"type": "tool_use", "id": f"toolu_{number}", "name": "screenshot", "input": {}}
        result = {"type": "tool_result", "tool_use_id": f"toolu_{number}", "content": [image(number)]}
        messages += [
            {"role": "user", "content": [{"type": "text", "text": "Look."}, image(number + 1)]},
            {"role": "assistant", "content": [call]},
            {"role": "user", "content": [result]},
            {"role": "assistant", "content": "Done."},
        ]
    tools = [{"name": "screenshot", "input_schema": {"type": "object", "properties": {}}}]
    request = {"model": "claude-sonnet-4-5", "max_tokens": 1000, "tools": tools, "messages": messages[:-1]}
    return json.dumps(request, separators=(",", ":")).encode()


def peak_memory() -> int:
    """Return the peak memory of this process in bytes."""
    if sys.platform == "linux":
        # `ru_maxrss` would include the peak of the parent process before the fork.
        lines = Path("/proc/self/status").read_text().splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def measure_here(file: str, source: str, target: str) -> None:
    """Convert a file and print the growth of this process's peak memory."""
    segue.convert(SMALL, source="openai-chat", target="anthropic")
    data = Path(file).read_bytes()
    before = peak_memory()
    converted = segue.convert(data, source=source, target=target)  # type: ignore[arg-type]
    assert converted.data
    print((peak_memory() - before) / len(data))


def measure(file: Path, source: str, target: str) -> float:
    command = [sys.executable, __file__, "--convert", str(file), source, target]
    return float(subprocess.run(command, check=True, capture_output=True).stdout)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--convert", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.convert:
        measure_here(*options.convert)
        return
    size = 10 if options.quick else 100
    rows: list[list[str]] = []
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "body.json"
        for source in (*TARGETS, "images"):
            api = "anthropic" if source == "images" else source
            data = image_body(size * MB) if source == "images" else body(source, size * MESSAGES_PER_MB)
            file.write_bytes(data)
            peaks = [f"{measure(file, api, target):.1f}" for target in TARGETS]
            rows.append([f"{source}, {len(data) / MB:.0f} MB", *peaks])
    table = format_table(["× the body", *TARGETS], rows)
    print(table)
    if options.write:
        write_page(table, "memory")


if __name__ == "__main__":
    main()
