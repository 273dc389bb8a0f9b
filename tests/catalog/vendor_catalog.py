"""The catalog as extracted from the vendors' SDKs, and its samples."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent


@cache
def catalogue() -> list[dict[str, Any]]:
    return json.loads((HERE / "catalog.json").read_text())


@dataclass(frozen=True)
class Sample:
    provider: str
    wire_type: str
    case: str
    correlates_on: str | None
    pair: str | None
    payload: dict[str, Any]
    boundary: str

    def __str__(self) -> str:
        return f"{self.provider}-{self.wire_type}-{self.case}"


def _samples() -> Iterator[Sample]:
    for file in sorted((HERE / "samples").glob("*/*.json")):
        for sample in json.loads(file.read_text()):
            yield Sample(
                file.parent.name,
                file.stem,
                sample["case"],
                sample["correlates_on"],
                sample.get("pair"),
                sample["payload"],
                sample["boundary"],
            )


@cache
def samples() -> tuple[Sample, ...]:
    return tuple(_samples())
