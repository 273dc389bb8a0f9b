"""`generateContent` bodies ⇄ `Request` and `Transcript`.

The model is part of the URL. Where a log has written it into the body, it is parsed and rendered back.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any, cast

import msgspec

from segue.canonical.blocks import Message, Native, Speaker, Text, Thinking, ToolCall, ToolResponse
from segue.canonical.pairing import pair
from segue.canonical.request import Request
from segue.errors import InputError
from segue.models import identify
from segue.render.demands import TEXTS
from segue.render.transcript import Transcript
from segue.wire.base import Projection
from segue.wire.gemini.fields import (
    JsonObject,
    both,
    items_of,
    kind_of,
    look,
    needed_text,
    object_of,
    spelled,
    text_at,
)
from segue.wire.gemini.items import API, members_of, own_fragment, parse_parts, render_parts
from segue.wire.gemini.keys import lawful
from segue.wire.gemini.options import (
    OPTION_KEYS,
    fit_choice,
    lay_options,
    parse_options,
    render_options,
)
from segue.wire.gemini.spelling import Spelling
from segue.wire.gemini.tools import lay_tools, parse_tools, render_tools
from segue.wire.gemini.traits import DEFAULT_MODEL
from segue.wire.schema import fitted_format, rules
from segue.wire.tools import declared_choice

__all__ = ["BODY_KEYS", "parse_request", "render_request"]

# GEM-07: `function` is the old role of results. The vendor's own examples also have roles in capitals.
_SPEAKERS: dict[str, Speaker] = {"user": "human", "model": "ai", "function": "human"}
BODY_KEYS = both("model", "contents", "systemInstruction", "tools") | OPTION_KEYS


# ------------------------------------------------------------------------------------------------------------------ in


def parse_request(body: Mapping[str, Any]) -> Request:
    model = text_at(body, "model")
    if look(body, "contents") is None:
        raise InputError("`contents` is missing", path="contents")
    contents: list[Message] = []
    for index, item in enumerate(items_of(body["contents"], "contents")):
        try:
            contents.append(_parse_content(item, model))
        except InputError as error:
            raise error.under(f"contents[{index}]") from None
    return Request(
        messages=_paired(contents),
        system=_parse_system(look(body, "systemInstruction"), spelled(body, "systemInstruction")),
        tools=parse_tools(body.get("tools")),
        options=parse_options(body),
        model=model,
        # Cached content precedes the contents of the body.
        continues=text_at(body, "cachedContent"),
        native=Native(API, body),
    )


def _parse_content(value: object, model: str | None) -> Message:
    content = object_of(value)
    role = content.get("role")
    speaker = _SPEAKERS.get(role.lower() or "user") if isinstance(role, str) else "human" if role is None else None
    if speaker is None:
        found = repr(role) if isinstance(role, str) else kind_of(role)
        raise InputError(f"the role user or model was expected, not {found}", path="role")
    blocks, intact = parse_parts(items_of(content.get("parts"), "parts"), model, own=speaker == "ai")
    if speaker == "human" and any(isinstance(block, ToolResponse) and not block.hosted for block in blocks):
        speaker = "tool"
    return Message(speaker, blocks, native=Native(API, content, intact))


def _paired(contents: Sequence[Message]) -> tuple[Message, ...]:
    """The messages with canonical ids. Consecutive replies with calls are one turn in several contents."""
    turns: list[list[Message]] = []
    runs = [list(found) for _, found in groupby(contents, lambda message: message.speaker)]
    for at, run in enumerate(runs):
        following = runs[at + 1] if at + 1 < len(runs) else []
        if run[0].speaker == "ai" and any(map(_calls, run)):
            turns += _steps(run, following)
        else:
            turns += [[message] for message in run]
    messages: list[Message] = []
    for turn, one in zip(turns, pair([_as_one(turn) for turn in turns], positional=True), strict=True):
        messages += [one] if len(turn) == 1 else _apart(turn, one)
    return tuple(messages)


def _steps(run: list[Message], following: list[Message]) -> list[list[Message]]:
    """The turns of consecutive replies: one if all calls have results, else split before each further signed call.

    Only the first call of a turn is signed (GEM-15), so another signed call means that results were lost in between.
    """
    results = sum(isinstance(block, ToolResponse) for message in following for block in message.blocks)
    if results >= sum(len(_calls(message)) for message in run):
        return [run]
    steps: list[list[Message]] = [[]]
    for message in run:
        calls = _calls(message)
        signed = bool(calls) and calls[0] > 0 and isinstance(message.blocks[calls[0] - 1], Thinking)
        if signed and any(map(_calls, steps[-1])):
            steps.append([])
        steps[-1].append(message)
    return steps


def _calls(message: Message) -> list[int]:
    """The block positions of calls that the client answers."""
    return [at for at, block in enumerate(message.blocks) if isinstance(block, ToolCall) and block.kind != "hosted"]


def _as_one(turn: list[Message]) -> Message:
    return turn[0] if len(turn) == 1 else Message("ai", tuple(block for message in turn for block in message.blocks))


def _apart(turn: list[Message], one: Message) -> list[Message]:
    """The original messages of a turn, with the ids and the turn key of the merged one."""
    messages: list[Message] = []
    start = 0
    for message in turn:
        stop = start + len(message.blocks)
        messages.append(msgspec.structs.replace(message, blocks=one.blocks[start:stop], turn_key=one.turn_key))
        start = stop
    return messages


def _parse_system(value: Any, path: str) -> tuple[Text, ...]:
    if value is None:
        return ()
    # Some clients send a string here; the API expects an object.
    if isinstance(value, str):
        return (Text(value),) if value else ()
    texts: list[Text] = []
    for index, item in enumerate(items_of(object_of(value, path).get("parts"), f"{path}.parts")):
        part = object_of(item, f"{path}.parts[{index}]")
        kind = next((key for key, member in part.items() if member is not None), "nothing")
        try:
            text = needed_text(part, "text")
        except InputError as error:
            raise error.under(f"{path}.parts[{index}]") from None
        texts.append(Text(TEXTS.unsupported.format(kind=kind) if text is None else text, native=Native(API, part)))
    return tuple(texts)


# ----------------------------------------------------------------------------------------------------------------- out


def render_request(transcript: Transcript, render_context: Projection) -> JsonObject:
    model = identify(transcript.model or DEFAULT_MODEL)
    context = Spelling(render_context, model, new_ids=transcript.policy.ids == "canonical")
    contents = [_render_message(message, context) for message in transcript.messages]
    if transcript.home and transcript.request.native is not None:
        return _render_at_home(transcript, render_context, transcript.request.native.fragment, contents)
    tools = render_tools(transcript.tools, render_context)
    body: JsonObject = {}
    system = _render_system(transcript.system)
    if any(not text.text.strip() for text in transcript.system):
        render_context.report.add("dropped", "dropped blank system text", subject="system")
    if system is not None:
        body["systemInstruction"] = system
    body["contents"] = [
        lawful(content, "content", render_context.report) if _is_partly_own(message) else content
        for message, content in zip(transcript.messages, contents, strict=True)
    ]
    if tools:
        body["tools"] = tools
    form = fitted_format(transcript.options.response_format, rules.GEMINI, render_context.report)
    functions = frozenset(tool.name for tool in transcript.tools if tool.kind != "hosted")
    options = declared_choice(transcript.options, functions, render_context.report)
    options = msgspec.structs.replace(options, response_format=form)
    if tools and not functions and options.tool_choice is not None:
        reason = "`tool_choice` dropped: it cannot select hosted tools"
        render_context.report.add("adjusted", reason, subject="tool_choice")
        options = msgspec.structs.replace(options, tool_choice=None)
    return body | render_options(
        options, model, render_context.report, declared=bool(tools), spell=render_context.names.render
    )


def _is_partly_own(message: Message) -> bool:
    return any(block.native is not None and block.native.api == API for block in message.blocks)


def _render_at_home(
    transcript: Transcript, render_context: Projection, fragment: Mapping[str, Any], contents: list[JsonObject]
) -> JsonObject:
    """The original body with the changes merged into it."""
    request = transcript.request
    body = lay_options(fragment, transcript, render_context)
    key = spelled(fragment, "systemInstruction")
    given = look(fragment, key)
    if transcript.system != request.system or isinstance(given, str):
        given = _render_system(transcript.system)
    system = _lawful_system(given)
    if system is not fragment.get(key):
        body.pop(key, None)
        body |= {key: system} if system else {}
    if not _is_same(contents, fragment["contents"]):
        body["contents"] = contents
    tools = lay_tools(fragment.get("tools"), transcript.tools, render_context)
    if tools is not None:
        body["tools"] = tools
    fit_choice(body, identify(transcript.model or DEFAULT_MODEL), render_context.report)
    return lawful(body, "request", render_context.report)


def _lawful_system(given: Any) -> JsonObject | None:
    """GEM-10: the system instruction with exactly one data field per part."""
    if not isinstance(given, dict):
        return None
    system = cast("JsonObject", given)
    parts = items_of(system.get("parts"), "parts")
    kept = [part for part in parts if len(members_of(part)) == 1]
    texts = [{"text": part["text"]} for part in parts if len(members_of(part)) > 1 and text_at(part, "text")]
    return system if len(kept) == len(parts) else {**system, "parts": [*kept, *texts]} if kept or texts else None


def _is_same(written: list[JsonObject], original: Any) -> bool:
    """Whether these are the original objects; a single object may replace a list of one."""
    if not isinstance(original, list):
        return len(written) == 1 and written[0] == original
    items = cast("list[Any]", original)
    return len(written) == len(items) and all(new is old for new, old in zip(written, items, strict=True))


def _render_message(message: Message, context: Spelling) -> JsonObject:
    written = render_parts(message.blocks, context, own=message.speaker == "ai")
    if message.name is not None:
        context.report.add("dropped", "dropped the message name: Gemini has no such field", subject=message.name)
    native = message.native
    if native is None or native.api != API:
        return {"role": "model" if message.speaker == "ai" else "user", "parts": written}
    own = own_fragment(native)
    if own is not None and _is_same(written, own.get("parts")) and _may_speak(message, own):
        return own
    changed = {**native.fragment, "parts": written}
    return changed if _may_speak(message, changed) else {**changed, "role": _role(message)}


def _role(message: Message) -> str:
    return "model" if message.speaker == "ai" else "user"


def _may_speak(message: Message, content: JsonObject) -> bool:
    """Whether the role of a content is valid for this speaker."""
    role = content.get("role") or "user"
    return role == _role(message) or (role == "function" and message.speaker == "tool")


def _render_system(system: Sequence[Text]) -> JsonObject | None:
    # GEM-09, GEM-28
    parts = [own_fragment(text.native) or {"text": text.text} for text in system if text.text.strip()]
    return {"parts": parts} if parts else None
