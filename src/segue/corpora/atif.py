"""ATIF 1.8 (`ATIF-v1.8`): a trajectory of steps; the calls of a step and their results are in that step.

Results have no error flag: `extra.is_error` says it. Media are a path or a URL, which may be a `data:` URL.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from segue.canonical.blocks import Media, Text, ToolResponse
from segue.corpora.chat import render_tools
from segue.corpora.rows import Parsed, Provenance, Row, make_call, mark, row_from_chat
from segue.corpora.turns import Turn, Turns, arguments_object, make_target, media_url
from segue.errors import InputError
from segue.sessions.values import list_of, object_of, string_of

VERSION = "ATIF-v1.8"
_MEDIA = ("image", "audio")
_IMAGES = frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"})
_AUDIO = frozenset(f"audio/{name}" for name in ("wav", "mpeg", "mp4", "aac", "ogg", "flac", "webm", "aiff"))
ATIF = make_target("atif", user=_MEDIA, results=_MEDIA, assistant=_MEDIA, has_error_flag=True)
_ROLES = {"system": "system", "user": "user", "agent": "assistant"}


def is_trajectory(value: Mapping[str, Any]) -> bool:
    return str(value.get("schema_version", "")).startswith("ATIF") and isinstance(value.get("steps"), list)


def parse(value: Mapping[str, Any]) -> Parsed:
    """Parse a trajectory, and each of its subagents as a row of its own."""
    agent = object_of(value.get("agent"))
    steps = list_of(value.get("steps"))
    messages = [message for at, step in enumerate(steps, 1) for message in _parse_step(object_of(step), at, agent)]
    if not messages:
        raise InputError("this trajectory has no steps", path="steps")
    version = string_of(agent.get("version")) or ""
    session = string_of(value.get("session_id")) or string_of(value.get("trajectory_id")) or ""
    place = Provenance(session=session, client_version=version)
    rows, count = [row_from_chat(messages, list_of(agent.get("tool_definitions")), place)], len(steps)
    for inner in list_of(value.get("subagent_trajectories")):
        parsed = parse(object_of(inner))
        for row in parsed.rows:
            records = frozenset(record + count for record in row.records)
            rows.append(msgspec.structs.replace(row, flags=("sidechain",), records=records))
        count += parsed.records
    return Parsed(tuple(rows), count)


def _parse_step(step: dict[str, Any], at: int, agent: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    role = _ROLES.get(str(step.get("source")))
    if role is None:
        raise InputError(f"unknown source {step.get('source')!r}", path=f"steps[{at - 1}].source")
    entry: dict[str, Any] = {"role": role, "content": _parse_content(step.get("message"))}
    model = string_of(step.get("model_name")) or string_of(agent.get("model_name"))
    calls = [object_of(call) for call in list_of(step.get("tool_calls"))]
    if role == "assistant":
        if string_of(step.get("reasoning_content")):
            entry["reasoning_content"] = step["reasoning_content"]
        if calls:
            entry["tool_calls"] = [
                make_call(call.get("tool_call_id"), call.get("function_name"), call.get("arguments")) for call in calls
            ]
    # A step that is copied from another trajectory is not to be trained on.
    weight = 0 if role == "assistant" and step.get("is_copied_context") else None
    yield mark(entry, at, model=model if role == "assistant" else None, weight=weight)
    for result in map(object_of, list_of(object_of(step.get("observation")).get("results"))):
        content = _parse_content(result.get("content"))
        call_id = string_of(result.get("source_call_id"))
        if call_id is None and not calls:
            yield mark({"role": "user", "content": content}, at)
            continue
        failed = object_of(result.get("extra")).get("is_error") is True
        yield mark({"role": "tool", "tool_call_id": call_id, "content": content}, at, error=failed or None)


def _parse_content(content: Any) -> Any:
    return [_parse_part(object_of(part)) for part in list_of(content)] or content or ""


def _parse_part(part: Mapping[str, Any]) -> dict[str, Any]:
    source = object_of(part.get("source"))
    match part.get("type"):
        case "image":
            return {"type": "image_url", "image_url": {"url": source.get("path")}}
        case "audio" if str(source.get("path", "")).startswith("data:"):
            data = str(source["path"]).partition(",")[2]
            return {"type": "input_audio", "input_audio": {"data": data, "format": _audio_format(source)}}
        case "audio":
            return {"type": "text", "text": f"[audio: {source.get('path')}]"}
        case _:
            return {"type": "text", "text": part.get("text")}


def _audio_format(source: Mapping[str, Any]) -> str:
    name = str(source.get("media_type", "audio/wav")).rpartition("/")[2]
    return "mp3" if name == "mpeg" else name


def render(row: Row, turns: Turns, _number: str) -> dict[str, Any]:
    steps: list[dict[str, Any]] = []
    for turn in turns.turns:
        if turn.result is not None:
            steps[_find_step(steps, turn.result.call_id)]["observation"]["results"].append(_render_result(turn))
            continue
        steps.append(_render_step(turn, len(steps) + 1))
    models = turns.models
    tools = render_tools(turns.tools)
    agent = {
        "name": row.provenance.format or "unknown",
        "version": row.provenance.client_version or "unknown",
        **({"model_name": models[0]} if models else {}),
        **({"tool_definitions": tools} if tools else {}),
    }
    session = {"session_id": row.provenance.session} if row.provenance.session else {}
    return {"schema_version": VERSION, **session, "agent": agent, "steps": steps}


def _find_step(steps: Sequence[Mapping[str, Any]], call_id: str) -> int:
    for at in reversed(range(len(steps))):
        if any(call["tool_call_id"] == call_id for call in steps[at].get("tool_calls", ())):
            return at
    raise AssertionError(call_id)


def _render_step(turn: Turn, number: int) -> dict[str, Any]:
    source = "agent" if turn.role == "assistant" else turn.role
    step: dict[str, Any] = {"step_id": number, "source": source, "message": _render_content(turn)}
    if turn.role != "assistant":
        return step
    if turn.model:
        step["model_name"] = turn.model
    if turn.reasoning:
        step["reasoning_content"] = turn.reasoning
    if turn.calls:
        step["tool_calls"] = [
            {"tool_call_id": call.id, "function_name": call.name, "arguments": arguments_object(call)}
            for call in turn.calls
        ]
        step["observation"] = {"results": []}
    return {**step, "extra": {"weight": turn.weight}} if turn.weight is not None else step


def _render_result(turn: Turn) -> dict[str, Any]:
    result = turn.result
    assert isinstance(result, ToolResponse)
    rendered: dict[str, Any] = {"source_call_id": result.call_id, "content": _render_content(turn)}
    facts = {**({"is_error": True} if result.error else {}), **({"missing": True} if result.synthetic else {})}
    return {**rendered, "extra": facts} if facts else rendered


def _render_content(turn: Turn) -> str | list[dict[str, Any]]:
    if not any(isinstance(block, Media) for block in turn.blocks):
        return turn.text
    return [_render_part(block) for block in turn.blocks]


def _render_part(block: Text | Media) -> dict[str, Any]:
    if isinstance(block, Text):
        return {"type": "text", "text": block.text}
    known, other = (_IMAGES, "image/png") if block.kind == "image" else (_AUDIO, "audio/wav")
    mime = {"audio/mp3": "audio/mpeg", "image/jpg": "image/jpeg"}.get(block.mime or "", block.mime or other)
    if mime not in known:
        return {"type": "text", "text": f"[{block.kind} of the type {mime}: {media_url(block)}]"}
    return {"type": block.kind, "source": {"media_type": mime, "path": media_url(block)}}
