"""An unknown key of a body, message, call or part is sent or reported, never dropped in silence."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import segue
from tests.budget import sample
from tests.conversations.table import CASES
from tests.properties import checks

_KEY, _VALUE = "x_unknown_key", "value-of-the-unknown-key"
_CLIENTS = Path(__file__).parents[1] / "data/client_bodies.jsonl"


def _bodies() -> Iterator[tuple[str, str, dict[str, Any]]]:
    for case in CASES:
        yield case.name, case.source, case.body
    for number, line in enumerate(_CLIENTS.read_text().splitlines()):
        row = json.loads(line)
        yield f"client {number}", row["source"], row["body"]


def _mutations(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Every copy of the value with the unknown key in one of its objects, with the path of that object."""
    if isinstance(value, dict):
        if not _WHOLE.fullmatch(str(value.get("type"))):
            yield path, {**value, _KEY: _VALUE}
        for key, member in value.items():
            for where, changed in _mutations(member, f"{path}.{key}"):
                yield where, {**value, key: changed}
    elif isinstance(value, list):
        for index, member in enumerate(value):
            for where, changed in _mutations(member, f"{path}[{index}]"):
                yield where, [*value[:index], changed, *value[index + 1 :]]


# What a provider runs, lists or cites, and reasoning, is converted and reported as a whole.
_WHOLE = re.compile(r"server_tool_use|mcp_\w+|\w+_tool_result|thinking|redacted_thinking|reasoning\S*")
# The objects that every client writes.
_PLACES = re.compile(
    r"(?:|\.messages\[\d+\](?:\.tool_calls\[\d+\](?:\.function|\.custom)?)?|\.thinking|\.systemInstruction|"
    r"\.messages\[\d+\]\.content\[\d+\]\.(?:image_url|input_audio|file|toolUse|toolResult)|"
    r"\.contents\[\d+\]\.parts\[\d+\]\.(?:functionCall|functionResponse|inlineData|fileData)|"
    r"\.messages\[\d+\]\.content\[\d+\](?:\.(?:image|document|video)(?:\.source)?|\.toolResult\.content\[\d+\])?|"
    r"\.output_config|\.output_format|\.metadata|\.response_format|\.text\.format|\.reasoning|\.tool_choice|"
    r"\.toolConfig\.toolChoice(?:\.\w+)?|\.outputConfig\.textFormat.*|\.additionalModelRequestFields\.\w+)"
)


def _is_dropped(body: dict[str, Any], source: str, target: str) -> bool:
    try:
        out = segue.convert(body, source=source, target=target)
    except segue.InputError:
        return False
    return _VALUE not in out.data.decode() and _KEY not in json.dumps(out.report.to_dict())


@pytest.mark.parametrize("target", checks.TARGETS)
def test_unknown_key_is_sent_or_reported(target: str) -> None:
    dropped = [
        f"{name} ({source}) {where}"
        for name, source, body in sample(_bodies(), 40, start=checks.TARGETS.index(target))
        if source != target
        for where, changed in _mutations(body)
        if _PLACES.fullmatch(where) and _is_dropped(changed, source, target)
    ]
    assert dropped == []
