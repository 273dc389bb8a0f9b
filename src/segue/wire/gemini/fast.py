"""The fast path: plain conversations ⇄ `contents`, without the full pipeline."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Literal

from msgspec import UNSET, Struct, UnsetType

from segue.canonical.blocks import Text, join_texts
from segue.canonical.fast_history import (
    REASONING,
    STRUCTURED,
    Content,
    FastEvent,
    FastHistory,
    FastPathUnsupportedError,
    FastSystemMessage,
    FastTurn,
    FastUserMessage,
    add_results,
    reject_envelopes,
    require_text,
)
from segue.canonical.json import encode_json_text
from segue.render.fast_passes import FastRenderOptions
from segue.render.reasoning import has_reasoning_content
from segue.wire.fast_path import FastPath
from segue.wire.gemini.media import BASE64_PATTERN
from segue.wire.gemini.request import BODY_KEYS
from segue.wire.gemini.results import parse_response

POSITION_SCHEME = "position"
"""The id scheme of models that pair calls and results by order: ids are not sent."""

# Common keys of bodies that have no canonical field.
_COMMON_KEYS = frozenset({"cachedContent", "generationConfig", "labels", "safetySettings", "toolConfig"})
_OUTPUT_KEYS = ("output", "result", "content")
_signature_pattern = re.compile(BASE64_PATTERN)


class _FunctionCall(Struct, forbid_unknown_fields=True, omit_defaults=True, gc=False):
    id: str | UnsetType = UNSET
    name: str = ""
    args: dict[str, Any] | UnsetType = UNSET


class _FunctionResponse(Struct, forbid_unknown_fields=True, omit_defaults=True, gc=False):
    id: str | UnsetType = UNSET
    name: str = ""
    response: dict[str, Any] | UnsetType = UNSET


class _Part(Struct, rename="camel", forbid_unknown_fields=True, omit_defaults=True, gc=False):
    """The member that is set is the type of a part; any part may have a signature."""

    text: str | UnsetType = UNSET
    function_call: _FunctionCall | UnsetType = UNSET
    function_response: _FunctionResponse | UnsetType = UNSET
    thought: bool | UnsetType = UNSET
    thought_signature: str | UnsetType = UNSET


class _Content(Struct, forbid_unknown_fields=True, gc=False):
    role: Literal["user", "model"]
    parts: list[_Part]


# ------------------------------------------------------------------------------------------------------------- reading


def _parse(items: list[_Content]) -> FastHistory:
    history = FastHistory()
    replied = False
    for index, item in enumerate(items):
        has_open_calls = len(history.raw_ids) > len(history.results)
        if item.role == "model":
            turn = _parse_reply(item.parts, index, history)
            # Consecutive model contents with calls are one reply: left to the full pipeline.
            if has_open_calls or (replied and turn.start < turn.stop):
                raise FastPathUnsupportedError
        elif has_open_calls:
            _parse_results(item.parts, history)
        else:
            history.add(FastUserMessage(require_text(_parse_user_texts(item.parts))), index)
        replied = item.role == "model"
    if len(history.raw_ids) > len(history.results):
        raise FastPathUnsupportedError
    return history


def _parse_user_texts(parts: list[_Part]) -> list[str]:
    texts = [part.text for part in parts if isinstance(part.text, str)]
    if len(texts) < len(parts) or any(part.thought or part.thought_signature for part in parts):
        raise FastPathUnsupportedError
    return texts


def _parse_reply(parts: list[_Part], index: int, history: FastHistory) -> FastTurn:
    reject_envelopes([part.thought_signature for part in parts])
    start = len(history.raw_ids)
    texts: list[str] = []
    thoughts = signatures = contents = 0
    first_signed = False
    for part in parts:
        signed = bool(part.thought_signature)
        if signed:
            reject_envelopes([part.thought_signature])
        contents += has_reasoning_content(part.text or "" if part.thought else "", part.thought_signature or None)
        call = part.function_call
        if call is not UNSET:
            if part.text is not UNSET or part.thought or not call.name:
                raise FastPathUnsupportedError
            first_signed = signed if len(history.raw_ids) == start else first_signed
            history.raw_ids.append(None if call.id is UNSET else call.id)
            history.names.append(call.name)
            history.arguments.append({} if call.args is UNSET else call.args)
            signatures += signed
        elif part.text is UNSET or part.function_response is not UNSET:
            raise FastPathUnsupportedError
        elif part.thought:
            thoughts += 1
        elif part.text and len(history.raw_ids) == start:
            texts.append(part.text)
            signatures += signed
        elif not part.text and signed:
            signatures += 1
        else:
            raise FastPathUnsupportedError
    stop = len(history.raw_ids)
    if start == stop or texts:
        require_text(texts)
    has_reasoning = thoughts > 0 or signatures > 0
    variant = (first_signed, thoughts > 0, signatures > 0, contents > 0)
    turn = FastTurn(texts or None, start, stop, variant)
    history.add(turn, index, *([REASONING, variant] if has_reasoning else []))
    return turn


def _parse_results(parts: list[_Part], history: FastHistory) -> None:
    """Parse the results of the last reply; any other part is left to the full pipeline."""
    names: list[str] = []
    ids: list[str | None] = []
    texts: list[Content] = []
    failed: list[bool] = []
    for part in parts:
        response = part.function_response
        if response is UNSET or part.text is not UNSET or part.thought or part.thought_signature:
            raise FastPathUnsupportedError
        if response.response is UNSET:
            raise FastPathUnsupportedError
        text, is_error = _parse_result(response.response, response.name, history)
        ids.append(None if response.id is UNSET else response.id)
        texts.append(text)
        failed.append(is_error)
        names.append(response.name)
    start = len(history.results)
    add_results(history, ids, texts, failed)
    calls = dict(zip(history.raw_ids[start:], history.names[start:], strict=True))
    expected = history.names[start:] if None in calls else [calls[raw_id] for raw_id in ids]
    if names != expected:
        raise FastPathUnsupportedError


def _parse_result(response: dict[str, Any], tool: str, history: FastHistory) -> tuple[str, bool]:
    """Return the text of a result, or its value as JSON text, and whether the call failed."""
    if len(response) == 1:
        for key in _OUTPUT_KEYS:
            if isinstance(text := response.get(key), str):
                return text, False
    content, value, failed = parse_response(response, tool)
    match content:
        case (Text(text=text),):
            return text, failed
        case () if value is not UNSET:
            history.mark_last(STRUCTURED)
            return encode_json_text(value), failed
        case _:
            raise FastPathUnsupportedError


def _can_pass_through(items: list[_Content]) -> bool:
    """Return whether all signatures are valid base64 (GEM-18)."""
    signatures = [part.thought_signature for item in items for part in item.parts]
    return all(signature is UNSET or _signature_pattern.fullmatch(signature) for signature in signatures)


# ------------------------------------------------------------------------------------------------------------- writing


def _render(history: FastHistory, events: Sequence[FastEvent], options: FastRenderOptions) -> list[_Content]:
    items: list[_Content] = []
    names = history.sent_names
    # GEM-11
    ids = history.sent_ids if options.id_scheme != POSITION_SCHEME else [UNSET] * len(names)
    calls = [
        _FunctionCall(call_id, name, value) for call_id, name, value in zip(ids, names, history.arguments, strict=True)
    ]
    call_parts = [_Part(function_call=call) for call in calls]
    failed = set(history.error_results)
    responses = [_render_result(text, index in failed) for index, text in enumerate(history.results)]
    results = [
        _FunctionResponse(call_id, name, response)
        for call_id, name, response in zip(ids, names, responses, strict=True)
    ]
    result_parts = [_Part(function_response=result) for result in results]
    for event in events:
        if isinstance(event, FastUserMessage):
            items.append(_Content("user", _render_parts(event.content)))
            continue
        if isinstance(event, FastSystemMessage):
            raise FastPathUnsupportedError
        start, stop = event.start, event.stop
        items.append(_Content("model", [*_render_parts(event.content or []), *call_parts[start:stop]]))
        if start < stop:
            # GEM-17
            if event.placeholder is not None:
                call_parts[start].thought_signature = event.placeholder
            items.append(_Content("user", result_parts[start:stop]))
    return items


def _render_result(content: Content, failed: bool) -> dict[str, str]:
    # GEM-14
    return {"error" if failed else "output": content if isinstance(content, str) else join_texts(content)}


def _render_parts(content: Content) -> list[_Part]:
    return [_Part(content)] if isinstance(content, str) else [_Part(text) for text in content]


GEMINI_FAST_PATH = FastPath(
    conversation_key="contents",
    items_type=list[_Content],
    body_keys=(BODY_KEYS | _COMMON_KEYS) - {"contents"},
    parse=_parse,
    render=_render,
    is_reply=lambda item: item.role == "model",
    can_pass_through=_can_pass_through,
)
