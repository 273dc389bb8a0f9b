"""Bodies that frameworks sent, in `tests/data/frameworks/`: one JSON object a line, one file an HTTP library."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

FOLDER = Path(__file__).parent.parent / "data" / "frameworks"


class Recorded(NamedTuple):
    """A request: the agent and how it ran, the URL, and the body."""

    name: str
    url: str
    body: dict[str, Any]


def write_recorded(recorded: Sequence[Recorded], library: str) -> None:
    FOLDER.mkdir(exist_ok=True)
    lines = [json.dumps(one._asdict(), ensure_ascii=False) + "\n" for one in recorded]
    (FOLDER / f"{library}.jsonl").write_text("".join(lines), "utf-8")


def read_recorded() -> list[Recorded]:
    files = sorted(FOLDER.glob("*.jsonl"))
    return [
        Recorded(f"{file.stem} {row['name']}", row["url"], row["body"])
        for file in files
        for row in map(json.loads, file.read_text("utf-8").splitlines())
    ]
