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
from tests.conversations.reply_shapes import append_reply, reply_shapes, request_of
from tests.conversations.table import CASES
from tests.properties import checks

_KEY, _VALUE = "x_unknown_key", "value-of-the-unknown-key"
_CLIENTS = Path(__file__).parents[1] / "data/client_bodies.jsonl"


def _bodies() -> Iterator[tuple[str, str, dict[str, Any]]]:
    for case in CASES:
        yield case.name, case.source, case.body
    for shape in reply_shapes():
        yield str(shape), shape.api, append_reply(shape.api, request_of(shape.api), shape.body)
    for number, line in enumerate(_CLIENTS.read_text().splitlines()):
        row = json.loads(line)
        yield f"client {number}", row["source"], row["body"]


def _mutations(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Every copy of the value with the unknown key in one of its objects, with the path of that object."""
    if isinstance(value, dict):
        if not _WHOLE.match(str(value.get("type"))):
            yield path, {**value, _KEY: _VALUE}
        for key, member in value.items():
            for where, changed in _mutations(member, f"{path}.{key}"):
                yield where, {**value, key: changed}
    elif isinstance(value, list):
        for index, member in enumerate(value):
            for where, changed in _mutations(member, f"{path}[{index}]"):
                yield where, [*value[:index], changed, *value[index + 1 :]]


# Reasoning, and what stands for other items, is sent or reported as a whole.
_WHOLE = re.compile(r"(?:thinking|redacted_thinking|reasoning\S*|compaction\S*|item_reference|mcp_list_tools)$")
# Declared tools of the client's, by their types.
_CLIENT_TOOLS = re.compile(r"(?:bash|text_editor|memory|computer)_\d+|shell|local_shell|apply_patch")
# The objects that every client writes.
_PLACES = re.compile(
    r"(?:|\.messages\[\d+\](?:\.tool_calls\[\d+\](?:\.function|\.custom)?)?|\.thinking|\.systemInstruction|"
    r"\.messages\[\d+\]\.content\[\d+\]\.(?:image_url|input_audio|file|toolUse|toolResult)|"
    r"\.contents\[\d+\]\.parts\[\d+\]\.(?:functionCall|functionResponse|inlineData|fileData)|"
    r"\.messages\[\d+\]\.content\[\d+\](?:\.(?:image|document|video)(?:\.source)?|\.toolResult\.content\[\d+\])?|"
    r"\.output_config|\.output_format|\.metadata|\.response_format|\.text\.format|\.reasoning|\.tool_choice|"
    r"\.toolConfig\.toolChoice(?:\.\w+)?|\.outputConfig\.textFormat.*|\.additionalModelRequestFields\.\w+|"
    r"\.contents\[\d+\]\.parts\[\d+\]\.(?:toolCall|toolResponse|executableCode|codeExecutionResult))"
)
# What a provider runs, approves or finds, and its results.
_PROVIDER_MADE = re.compile(
    r"server_tool_use|mcp_tool_use|\w+_tool_result|\w+_call|\w+_output|\w+_approval_\w+|program"
)
_INNER_PLACES = re.compile(
    r"caller|agent_reference|environment|tools\[\d+\]|results\[\d+\](?:\.memory_item)?|"
    r"output(?:\[\d+\](?:\.outcome)?)?|outputs\[\d+\]|error"
)


def _is_place(path: str, body: dict[str, Any]) -> bool:
    """Whether the object at this path is one that a client writes, or one of a provider's tool in an item."""
    if _PLACES.fullmatch(path):
        return True
    found = re.match(r"\.(?:input|messages|tools)\[\d+\](?:\.content\[\d+\])?", path)
    if found is None:
        return False
    item = _find(body, found[0])
    kind = str(item.get("type")) if isinstance(item, dict) else ""
    if path.startswith(".tools"):
        return path == found[0] and _CLIENT_TOOLS.fullmatch(kind) is not None
    inner = path.removeprefix(found[0]).removeprefix(".")
    is_made = _PROVIDER_MADE.fullmatch(kind) is not None
    return is_made and (not inner or _INNER_PLACES.fullmatch(inner) is not None)


def _is_dropped(body: dict[str, Any], source: str, target: str, where: str) -> bool:
    """Whether the value is not sent, and no finding names its key, or the object with it as a whole."""
    try:
        out = segue.convert(body, source=source, target=target)
    except segue.InputError:
        return False
    if _VALUE in out.data.decode() or _KEY in json.dumps(out.report.to_dict()):
        return False
    found = _find(body, where)
    names = {where.rpartition(".")[2], found.get("type"), next(iter(found))}
    return not any(finding.subject in names for finding in out.report.findings)


def _find(body: dict[str, Any], where: str) -> Any:
    value: Any = body
    for key, index in re.findall(r"\.(\w+)|\[(\d+)\]", where):
        value = value[key or int(index)]
    return value


@pytest.mark.parametrize("target", checks.TARGETS)
def test_unknown_key_is_sent_or_reported(target: str) -> None:
    dropped = [
        f"{name} ({source}) {where}"
        for name, source, body in sample(_bodies(), 40, start=checks.TARGETS.index(target))
        if source != target
        for where, changed in _mutations(body)
        if _is_place(where, body) and _is_dropped(changed, source, target, where)
    ]
    assert dropped == []
