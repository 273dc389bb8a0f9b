"""`generateContent` bodies ⇄ `Request` and `Transcript`.

The model is part of the URL. A `model` in the body, as logs have it, is parsed and rendered back.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any, cast

import msgspec

from segue.canonical.blocks import Block, Message, Native, Speaker, Text, Thinking, ToolCall, ToolResponse
from segue.canonical.json import are_identical
from segue.canonical.pairing import pair
from segue.canonical.request import Request
from segue.errors import InputError
from segue.models import parse_model
from segue.render.constraints import TEXTS
from segue.render.transcript import Transcript
from segue.wire import mixed_body
from segue.wire.base import RenderContext
from segue.wire.gemini.capabilities import API, DEFAULT_MODEL
from segue.wire.gemini.fields import JsonObject, as_list, both_cases, find_key, get_field, get_text, get_text_strict
from segue.wire.gemini.items import BODY_API, GeminiContext, data_fields, parse_parts, render_parts
from segue.wire.gemini.options import OPTION_KEYS, fit_tool_choice, merge_options, parse_options, render_options
from segue.wire.gemini.request_types import drop_invalid_fields
from segue.wire.gemini.tools import merge_tools, parse_tools, render_tools
from segue.wire.json_values import json_type_name, require_object
from segue.wire.merge import intact_fragment
from segue.wire.mixed_body import has_results
from segue.wire.schema import render_format_schema, rules
from segue.wire.tools import drop_undeclared_choice

# GEM-07: `function` is the old role of results. The vendor's own examples also have roles in capitals.
_SPEAKERS: dict[str, Speaker] = {"user": "human", "model": "ai", "function": "human"}
_CONTENT_KEYS = frozenset({"role", "parts"})
BODY_KEYS = (
    both_cases("model", "contents", "systemInstruction", "tools")
    | OPTION_KEYS
    | {f"{outer}.{key}" for outer in both_cases("systemInstruction") for key in ("parts", "role", "text")}
)


# ------------------------------------------------------------------------------------------------------------------ in


def parse_request(body: Mapping[str, Any]) -> Request:
    model = get_text_strict(body, "model")
    if get_field(body, "contents") is None:
        raise InputError("`contents` is missing", path="contents")
    contents: list[Message] = []
    for index, item in enumerate(as_list(body["contents"], "contents")):
        try:
            content = require_object(item)
            if content.keys() == _CONTENT_KEYS or not mixed_body.add_message(contents, content, BODY_API):
                contents.append(_parse_content(content))
        except InputError as error:
            raise error.with_prefix(f"contents[{index}]") from None
    return Request(
        messages=_pair_messages(contents),
        system=_parse_system(get_field(body, "systemInstruction"), find_key(body, "systemInstruction")),
        tools=parse_tools(body.get("tools")),
        options=parse_options(body),
        model=model,
        # Cached content precedes the contents of the body.
        continues=get_text_strict(body, "cachedContent"),
        native=Native(API, body),
    )


def _parse_content(content: JsonObject) -> Message:
    role = content.get("role")
    speaker = _SPEAKERS.get(role.lower() or "user") if isinstance(role, str) else "human" if role is None else None
    if speaker is None:
        shown_role = repr(role) if isinstance(role, str) else json_type_name(role)
        raise InputError(f"the role user or model was expected, not {shown_role}", path="role")
    calls: tuple[Block, ...] = ()
    if "tool_calls" in content:
        content, calls = mixed_body.split_calls(content, BODY_API)
    elif "parts" not in content and content.keys() - {"role"}:
        # A content without parts is empty, but other keys hold the words of another API's message.
        raise InputError("`parts` is missing", path="parts")
    blocks, intact = parse_parts(as_list(content.get("parts"), "parts"), None, from_model=speaker == "ai")
    if speaker == "human" and has_results(blocks):
        speaker = "tool"
    return Message(speaker, (*blocks, *calls), native=Native(API, content, intact and not calls))


def _pair_messages(contents: Sequence[Message]) -> tuple[Message, ...]:
    """Return the messages with canonical ids. Consecutive replies with calls are one turn in several contents."""
    turns: list[list[Message]] = []
    runs = [list(group) for _, group in groupby(contents, lambda message: message.speaker)]
    for index, run in enumerate(runs):
        following = runs[index + 1] if index + 1 < len(runs) else []
        if run[0].speaker == "ai" and any(map(_call_positions, run)):
            turns += _split_run(run, following)
        else:
            turns += [[message] for message in run]
    messages: list[Message] = []
    for turn, merged in zip(turns, pair([_merge_messages(turn) for turn in turns], positional=True), strict=True):
        messages += [merged] if len(turn) == 1 else _split_turn(turn, merged)
    return tuple(messages)


def _split_run(run: list[Message], following: list[Message]) -> list[list[Message]]:
    """Split consecutive replies into turns: one if all calls have results, else split before each further signed one.

    Only the first call of a turn is signed (GEM-15), so another signed call means that results were lost in between.
    """
    results = sum(isinstance(block, ToolResponse) for message in following for block in message.blocks)
    if results >= sum(len(_call_positions(message)) for message in run):
        return [run]
    steps: list[list[Message]] = [[]]
    for message in run:
        calls = _call_positions(message)
        signed = bool(calls) and calls[0] > 0 and isinstance(message.blocks[calls[0] - 1], Thinking)
        if signed and any(map(_call_positions, steps[-1])):
            steps.append([])
        steps[-1].append(message)
    return steps


def _call_positions(message: Message) -> list[int]:
    """Return the block positions of calls that the client runs."""
    return [
        position
        for position, block in enumerate(message.blocks)
        if isinstance(block, ToolCall) and block.kind != "hosted"
    ]


def _merge_messages(turn: list[Message]) -> Message:
    return turn[0] if len(turn) == 1 else Message("ai", tuple(block for message in turn for block in message.blocks))


def _split_turn(turn: list[Message], merged: Message) -> list[Message]:
    """Return the original messages of a turn, with the ids and the turn key of the merged one."""
    messages: list[Message] = []
    start = 0
    for message in turn:
        stop = start + len(message.blocks)
        messages.append(msgspec.structs.replace(message, blocks=merged.blocks[start:stop], turn_key=merged.turn_key))
        start = stop
    return messages


def _parse_system(value: Any, path: str) -> tuple[Text, ...]:
    if value is None:
        return ()
    # Some clients send a string here; the API expects an object.
    if isinstance(value, str):
        return (Text(value),) if value else ()
    texts: list[Text] = []
    for index, item in enumerate(as_list(require_object(value, path).get("parts"), f"{path}.parts")):
        part = require_object(item, f"{path}.parts[{index}]")
        kind = next((key for key, member in part.items() if member is not None), "nothing")
        try:
            text = get_text_strict(part, "text")
        except InputError as error:
            raise error.with_prefix(f"{path}.parts[{index}]") from None
        texts.append(Text(TEXTS.unsupported.format(kind=kind) if text is None else text, native=Native(API, part)))
    return tuple(texts)


# ----------------------------------------------------------------------------------------------------------------- out


def render_items(transcript: Transcript, render_context: RenderContext) -> list[JsonObject]:
    """Render the contents of a request."""
    contents = _render_contents(transcript, render_context)
    if transcript.is_same_api:
        return drop_invalid_fields({"contents": contents}, "request", render_context.report).get("contents", [])
    return _drop_invalid_content_fields(transcript, contents, render_context)


def _render_contents(transcript: Transcript, render_context: RenderContext) -> list[JsonObject]:
    model = parse_model(transcript.rules_model or DEFAULT_MODEL)
    context = GeminiContext(render_context, model, new_ids=transcript.policy.ids == "canonical")
    return [_render_message(message, context) for message in transcript.messages]


def _drop_invalid_content_fields(
    transcript: Transcript, contents: list[JsonObject], render_context: RenderContext
) -> list[JsonObject]:
    return [
        drop_invalid_fields(content, "content", render_context.report) if _has_own_blocks(message) else content
        for message, content in zip(transcript.messages, contents, strict=True)
    ]


def render_request(transcript: Transcript, render_context: RenderContext) -> JsonObject:
    model = parse_model(transcript.rules_model or DEFAULT_MODEL)
    contents = _render_contents(transcript, render_context)
    if transcript.is_same_api and transcript.request.native is not None:
        return _render_same_api(transcript, render_context, transcript.request.native.fragment, contents)
    tools = render_tools(transcript.tools, render_context)
    body: JsonObject = {}
    system = _render_system(transcript.system)
    if any(not text.text.strip() for text in transcript.system):
        render_context.report.add("dropped", "blank system text dropped", subject="system", level="note")
    if system is not None:
        body["systemInstruction"] = system
    body["contents"] = _drop_invalid_content_fields(transcript, contents, render_context)
    if tools:
        body["tools"] = tools
    form = render_format_schema(transcript.options.response_format, rules.GEMINI, render_context.report)
    functions = frozenset(tool.name for tool in transcript.tools if tool.kind != "hosted")
    options = drop_undeclared_choice(transcript.options, functions, render_context.report)
    options = msgspec.structs.replace(options, response_format=form)
    if tools and not functions and options.tool_choice is not None:
        reason = "`tool_choice` dropped: it cannot select hosted tools"
        render_context.report.add("adjusted", reason, subject="tool_choice")
        options = msgspec.structs.replace(options, tool_choice=None)
    return body | render_options(
        options, model, render_context.report, has_tools=bool(tools), project_name=render_context.names.render
    )


def _has_own_blocks(message: Message) -> bool:
    return any(block.native is not None and block.native.api == API for block in message.blocks)


def _render_same_api(
    transcript: Transcript, render_context: RenderContext, fragment: Mapping[str, Any], contents: list[JsonObject]
) -> JsonObject:
    """Return the original body with the changes merged into it."""
    request = transcript.request
    body = merge_options(fragment, transcript, render_context)
    key = find_key(fragment, "systemInstruction")
    instruction = get_field(fragment, key)
    if transcript.system != request.system or isinstance(instruction, str):
        instruction = _render_system(transcript.system)
    system = _valid_system(instruction)
    if system is not fragment.get(key):
        body.pop(key, None)
        body |= {key: system} if system else {}
    if not _is_unchanged(contents, fragment["contents"]):
        body["contents"] = contents
    tools = merge_tools(fragment.get("tools"), transcript.tools, render_context)
    if tools is not None:
        body["tools"] = tools
    fit_tool_choice(body, parse_model(transcript.model or DEFAULT_MODEL), render_context.report)
    return drop_invalid_fields(body, "request", render_context.report)


def _valid_system(instruction: Any) -> JsonObject | None:
    """GEM-10: the system instruction with exactly one data field per part."""
    if not isinstance(instruction, dict):
        return None
    system = cast("JsonObject", instruction)
    parts = as_list(system.get("parts"), "parts")
    kept = [part for part in parts if len(data_fields(part)) == 1]
    texts = [{"text": part["text"]} for part in parts if len(data_fields(part)) > 1 and get_text(part, "text")]
    return system if len(kept) == len(parts) else {**system, "parts": [*kept, *texts]} if kept or texts else None


def _is_unchanged(rendered: list[JsonObject], original: Any) -> bool:
    """Return whether these are the original objects; a single object may replace a list of one."""
    if not isinstance(original, list):
        return len(rendered) == 1 and rendered[0] == original
    return are_identical(rendered, cast("list[Any]", original))


def _render_message(message: Message, context: GeminiContext) -> JsonObject:
    rendered = render_parts(message.blocks, context, from_model=message.speaker == "ai")
    native = message.native
    if native is None or native.api != API:
        return {"role": "model" if message.speaker == "ai" else "user", "parts": rendered}
    original = intact_fragment(native, API)
    if original is not None and _is_unchanged(rendered, original.get("parts")) and _has_valid_role(message, original):
        return original
    changed = {**native.fragment, "parts": rendered}
    return changed if _has_valid_role(message, changed) else {**changed, "role": _role(message)}


def _role(message: Message) -> str:
    return "model" if message.speaker == "ai" else "user"


def _has_valid_role(message: Message, content: JsonObject) -> bool:
    """Return whether the role of a content is valid for this speaker."""
    role = content.get("role") or "user"
    return role == _role(message) or (role == "function" and message.speaker == "tool")


def _render_system(system: Sequence[Text]) -> JsonObject | None:
    # GEM-09, GEM-28
    parts = [intact_fragment(text.native, API) or {"text": text.text} for text in system if text.text.strip()]
    return {"parts": parts} if parts else None
