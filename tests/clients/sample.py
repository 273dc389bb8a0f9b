"""Recorded runs of the clients, small enough for the repository: what each client sent, request after request.

`make clients ARGS=--record` writes them to `tests/data/client_runs`, a file for each client. `make test` replays them.
A client sends back ids and sealed reasoning that it got. In a sample such a value is a reference to the reply that it
came from, `{{3.call_id.0}}`, so a replay sends the values that the gateway gives out then. Long texts are replaced by
filler, folders by those of a user. Parts that several requests have are stored once, in the first line of the file.
"""

from __future__ import annotations

import json
import re
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from tests.clients.run import Cell
from tests.clients.task import FILES

FOLDER = Path(__file__).parent.parent / "data" / "client_runs"
HOME = Path("/home/user")
WORK = HOME / "project"
# Runs with thoughts, so that a reply has a value for each reference.
CELLS = tuple(
    Cell(*name.split("."))
    for name in (
        "claude.kimi.plain",
        "claude.openai-responses.deferred",
        "claude.anthropic.switch",
        "claude.bedrock.cut-call",
        "codex.anthropic.plain",
        "codex.bedrock.deferred",
        "codex.openai-responses.deferred",
        "codex.anthropic.switch",
        "codex.deepseek.long-ids",
        "gemini.openai-responses.plain",
        "gemini.bedrock.picture",
        "qwen.deepseek.plain",
        "qwen.anthropic.repeated-ids",
        "opencode.anthropic.switch",
        "opencode.openai-responses.cut-call",
        "pi.qwen.plain",
        "pi.azure-foundry.constant-id",
        "codex-exec.gemini.plain",
        "codex-exec.kimi.empty-ids",
    )
)

_REFERENCE = re.compile(r"\{\{(?P<reply>\d+)\.(?P<key>\w+)\.(?P<number>\d+)\}\}")
_VALUE_KEYS = frozenset({"id", "call_id", "signature", "encrypted_content", "thoughtSignature"})
_MARKS = (*(content.strip() for content in FILES.values()), *FILES, "RESULT-", "ran.txt", "stamp_word", "TASK-")
_SHORT, _LONG, _CUT, _SHARED = 60, 400, 200, 200
# What identifies a machine or a session.
_PRIVATE = frozenset({"user_id", "prompt_cache_key", "client_metadata", "session_id", "safety_identifier"})


class Request(Struct, frozen=True):
    """A request of a client, whose body may have references, and the types of the calls in the reply to it."""

    path: str
    headers: Mapping[str, str]
    body: Any
    call_types: list[str]


class Run(Struct, frozen=True):
    """The requests of one run."""

    upstream: str
    misbehaviour: str
    requests: list[Request]


class _Head(Struct, frozen=True):
    """The first line of a file. `{"part": 0}` in the requests stands for the first of the parts."""

    client: str
    version: str
    parts: list[Any]


def list_samples() -> list[Cell]:
    """Return the cells that are recorded."""
    return [
        Cell(file.stem, run.upstream, run.misbehaviour)
        for file in sorted(FOLDER.glob("*.jsonl"))
        for run in _read(file)[1]
    ]


def load_sample(cell: Cell) -> list[Request]:
    """Return the requests of a recorded cell, with the shared parts in their places."""
    head, runs = _read(FOLDER / f"{cell.client}.jsonl")
    (run,) = (each for each in runs if (each.upstream, each.misbehaviour) == (cell.upstream, cell.misbehaviour))

    def expand(value: Any) -> Any:
        return head.parts[value["part"]] if _is_part(value) else value

    return [replace(each, body=_map_values(each.body, expand)) for each in run.requests]


def _read(file: Path) -> tuple[_Head, list[Run]]:
    first, *lines = file.read_bytes().splitlines()
    return msgspec.json.decode(first, type=_Head), [msgspec.json.decode(line, type=Run) for line in lines]


def find_values(response: str) -> dict[str, list[str]]:
    """Return the values of a reply that clients send back: of each key the different ones, in their order."""
    found: dict[str, list[str]] = {}
    for key, value in _walk_response(response):
        if key in _VALUE_KEYS and isinstance(value, str) and value and value not in found.setdefault(key, []):
            found[key].append(value)
    return found


def find_call_types(response: str) -> list[str]:
    """Return the different types of the calls in a reply, where the API has types."""
    types = {value for key, value in _walk_response(response) if key == "type" and isinstance(value, str)}
    return sorted(kind for kind in types if kind.endswith(("_call", "tool_use")) or kind == "function")


def _walk_response(response: str) -> Iterator[tuple[str, Any]]:
    lines = (line.removeprefix("data: ") for line in response.splitlines())
    payloads = [response] if response.startswith("{") else [line for line in lines if line.startswith("{")]
    for payload in payloads:
        fields = json.loads(payload)
        # A response repeats the tools that its request declares.
        fields.get("response", fields).pop("tools", None)
        yield from _walk(fields)


def fill_references(body: Any, replies: Sequence[Mapping[str, Sequence[str]]]) -> Any:
    """Replace references by the values of these replies."""

    def fill(value: Any) -> Any:
        match = _REFERENCE.fullmatch(value) if isinstance(value, str) else None
        return value if match is None else replies[int(match["reply"])][match["key"]][int(match["number"])]

    return _map_values(body, fill)


# ----------------------------------------------------------------------------------------------------------- recording


def write_samples(client: str, version: str, recordings: Mapping[Cell, Path], folder: Path) -> None:
    """Write the samples of a client from the recordings of its runs, each of which was in a folder below this one."""
    runs = [
        Run(cell.upstream, cell.misbehaviour, _read_recording(recording, folder / cell.name))
        for cell, recording in recordings.items()
    ]
    table = _PartTable([request.body for run in runs for request in run.requests])
    shared = [
        replace(run, requests=[replace(each, body=table.share(each.body)) for each in run.requests]) for run in runs
    ]
    head = _Head(client, version, table.parts)
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / f"{client}.jsonl").write_bytes(b"".join(msgspec.json.encode(line) + b"\n" for line in (head, *shared)))


def _read_recording(recording: Path, folder: Path) -> list[Request]:
    folders = {str(folder / "project"): str(WORK), str(folder / "home"): str(HOME)}
    references: dict[str, str] = {}
    requests: list[Request] = []
    for number, line in enumerate(recording.read_text().splitlines()):
        exchange = json.loads(line)
        body = _map_values(exchange["body"], lambda value: _shorten(value, folders, references))
        types = find_call_types(exchange["response"])
        requests.append(Request(_rename(exchange["path"], folders), exchange["headers"], body, types))
        for key, values in find_values(exchange["response"]).items():
            for index, value in enumerate(values):
                references.setdefault(value, f"{{{{{number}.{key}.{index}}}}}")
    return requests


def _rename(text: str, folders: Mapping[str, str]) -> str:
    for folder, name in folders.items():
        text = text.replace(folder, name).replace(re.sub(r"\W", "-", folder), re.sub(r"\W", "-", name))
    return text


def _shorten(value: Any, folders: Mapping[str, str], references: Mapping[str, str]) -> Any:
    """Return a value of a body as it is in the sample."""
    if isinstance(value, dict):
        members = cast("dict[str, Any]", value)
        return {key: inner for key, inner in members.items() if key not in _PRIVATE}
    if not isinstance(value, str):
        return value
    if value in references:
        return references[value]
    text = _rename(value, folders)
    is_data = len(text) <= _LONG and not re.search(r"\s", text)
    if len(text) <= _SHORT or is_data or text.startswith(("start:", "data:")):
        return text
    if any(mark in text[:_CUT] for mark in _MARKS):
        return text if len(text) <= _LONG else text[:_CUT]
    return f"Filler of {len(text)} characters, {zlib.crc32(text.encode()):08x}."


# --------------------------------------------------------------------------------------------------------------- parts


class _PartTable:
    """The parts that are in several bodies, or several times in one, and are long enough to be stored once."""

    def __init__(self, bodies: Sequence[Any]) -> None:
        self.parts: list[Any] = []
        texts = (json.dumps(value) for body in bodies for value in _walk_values(body) if isinstance(value, dict | list))
        counts = Counter(text for text in texts if len(text) >= _SHARED)
        self._shared = {text for text, count in counts.items() if count > 1}
        self._numbers: dict[str, int] = {}

    def share(self, value: Any) -> Any:
        """Return a value with the numbers of parts in their places."""
        text = json.dumps(value)
        if text not in self._shared:
            return self._share_members(value)
        if text not in self._numbers:
            self._numbers[text] = len(self.parts)
            self.parts.append(None)
            self.parts[self._numbers[text]] = self._share_members(value)
        return {"part": self._numbers[text]}

    def _share_members(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {key: self.share(inner) for key, inner in cast("dict[str, Any]", value).items()}
        return [self.share(inner) for inner in cast("list[Any]", value)] if isinstance(value, list) else value


def _is_part(value: Any) -> bool:
    return isinstance(value, dict) and list(cast("dict[str, Any]", value)) == ["part"]


def _map_values(value: Any, change: Any) -> Any:
    """Return a value with all that is in it changed, from the outside in."""
    value = change(value)
    if isinstance(value, dict):
        return {key: _map_values(inner, change) for key, inner in cast("dict[str, Any]", value).items()}
    return [_map_values(inner, change) for inner in cast("list[Any]", value)] if isinstance(value, list) else value


def _walk(value: Any) -> Iterator[tuple[str, Any]]:
    """Return all members of all objects, in their order."""
    if isinstance(value, dict):
        for key, inner in cast("dict[str, Any]", value).items():
            yield key, inner
            yield from _walk(inner)
    elif isinstance(value, list):
        for inner in cast("list[Any]", value):
            yield from _walk(inner)


def _walk_values(value: Any) -> Iterator[Any]:
    yield value
    inner = cast("dict[str, Any]", value).values() if isinstance(value, dict) else value
    if isinstance(value, dict | list):
        for each in cast("list[Any]", inner):
            yield from _walk_values(each)
