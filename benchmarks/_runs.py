"""Recorded runs of real clients: the request bodies of one session in order.

`data/CLIENT-on-TARGET.jsonl.xz` has one body a line. The clients are Claude Code, Codex, Gemini CLI, Qwen Code,
opencode and pi; prose was replaced by filler of the same length.
"""

from __future__ import annotations

import lzma
from pathlib import Path
from typing import Any, NamedTuple

from _measure import decode, encode

from segue.wire.detect_body import detect_source

DATA = Path(__file__).parent / "data"
CONVERSATION_KEYS = ("messages", "input", "contents")


class Run(NamedTuple):
    """The requests of one session, as bytes."""

    name: str
    source: str
    requests: list[bytes]


def load_runs(name_contains: str = "") -> list[Run]:
    return [_load(path) for path in sorted(DATA.glob("*.jsonl.xz")) if name_contains in path.name]


def _load(path: Path) -> Run:
    requests = lzma.decompress(path.read_bytes()).splitlines()
    return Run(path.name.partition(".")[0], detect_source(decode(requests[0])), requests)


def conversation_key(body: dict[str, Any]) -> str:
    return next(key for key in CONVERSATION_KEYS if key in body)


def vary(requests: list[bytes], number: int, words: int = 0) -> list[bytes]:
    """Return the requests with a number in the first text of the first user message, the same in all of them.

    No repetition of a measurement can then profit from an earlier one. `words` more make it longer.
    """
    return [_vary_body(request, f"{number} " + "word " * words) for request in requests]


def _vary_body(data: bytes, prefix: str) -> bytes:
    body = decode(data)
    items = body[conversation_key(body)]
    first = next(item for item in items if item.get("role") == "user")
    parts = first.get("content", first.get("parts"))
    if isinstance(parts, str):
        first["content"] = prefix + parts
    else:
        part = next(part for part in parts if "text" in part)
        part["text"] = prefix + part["text"]
    return encode(body)
