"""Parts ⇄ canonical blocks.

A part of the model becomes one block, and its signature another: a `Thinking` block without text right before the block
that it signs (GEM-21). So signatures are dropped together with reasoning, and a kept signature stays with its part. A
signature in a separate part (with an empty text) has that part as its fragment.

Same-API, a part with an intact fragment is sent as the original object; only signature, id and name are merged into it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, assert_never, cast

import msgspec
from msgspec import UNSET

from segue.canonical.blocks import Block, Code, Media, Native, Opaque, Origin, Text, Thinking, ToolCall, ToolResponse
from segue.canonical.envelope import is_envelope
from segue.canonical.ids import raw_id_or_none
from segue.canonical.json import encode_json_text, parse_argument_text
from segue.errors import InputError
from segue.models import Model
from segue.wire.base import RenderContext, WireContext
from segue.wire.code import fence_code
from segue.wire.gemini.capabilities import API, capabilities_of
from segue.wire.gemini.fields import (
    JsonObject,
    both_cases,
    find_key,
    get_field,
    get_object,
    get_text,
    get_text_strict,
    replace_fields,
)
from segue.wire.gemini.media import BASE64_PATTERN, parse_file, parse_inline, render_media
from segue.wire.gemini.request_types import is_part_field, is_unknown_part
from segue.wire.gemini.results import parse_result_content, render_result_content
from segue.wire.json_values import require_object
from segue.wire.media import report_dropped_name, report_unsupported
from segue.wire.merge import intact_fragment
from segue.wire.mixed_body import BodyApi, parse_item, parse_reasoning_item
from segue.wire.tools import describe_hosted, render_arguments_object

CODE_EXECUTION = "code_execution"
BODY_API = BodyApi(API, API, API)


# ------------------------------------------------------------------------------------------------------------------ in


def parse_parts(parts: list[Any], model: str | None, *, from_model: bool = True) -> tuple[tuple[Block, ...], bool]:
    """Parse parts; also return whether the API accepts them unchanged. `from_model`: the role is `model`."""
    blocks: list[Block] = []
    intact = bool(parts)
    for index, item in enumerate(parts):
        try:
            part_blocks = _parse_part(require_object(item), model, from_model)
        except InputError as error:
            raise error.with_prefix(f"parts[{index}]") from None
        for block in part_blocks:
            if block.native is not None and not (block.native.intact and block.native.api == API):
                intact = False
        blocks += part_blocks
    return tuple(blocks), intact


def _parse_foreign(part: JsonObject, from_model: bool) -> Block | None:
    return parse_item(part, BODY_API) or (parse_reasoning_item(part, BODY_API) if from_model else None)


def _parse_part(part: JsonObject, model: str | None, from_model: bool) -> list[Block]:
    if len(part) == 1:
        ((key, value),) = part.items()
        if key == "text" and isinstance(value, str) and value:
            return [Text(value, native=Native(API, part))]
        if key in ("functionCall", "functionResponse") and value is not None:
            return [_PARSERS[key](part, model)]
    origin = Origin(API, model, identity="absent")
    signature = get_text_strict(part, "thoughtSignature") or None
    signature = signature if from_model else None
    members = data_fields(part)
    if not members and (block := _parse_foreign(part, from_model)) is not None:
        return [block]
    if from_model and members and get_field(part, "thought") is True and not members[0].startswith("function"):
        return [_parse_thought(part, signature, origin)]
    text = get_text_strict(part, "text")
    if not members or (members == ["text"] and not text):
        return _parse_without_data(part, signature, origin)
    signed: list[Block] = [Thinking(signature=signature, origin=origin)] if signature else []
    if len(members) == 1:
        return [*signed, _PARSERS[members[0]](part, model)]
    # GEM-10: one data field per part
    fragments = [{find_key(part, name): get_field(part, name)} for name in members]
    blocks = [_PARSERS[name](fragment, model) for name, fragment in zip(members, fragments, strict=True)]
    return [*signed, *(block for block in blocks if not (isinstance(block, Text) and not block.text))]


def data_fields(part: JsonObject) -> list[str]:
    """Return the data fields that a part has; exactly one is valid."""
    present = {_DATA_FIELDS[key] for key, value in part.items() if key in _DATA_FIELDS and value is not None}
    return list(present) if len(present) < 2 else [name for name in _PARSERS if name in present]


def _parse_thought(part: JsonObject, signature: str | None, origin: Origin) -> Block:
    text = get_text_strict(part, "text") or ""
    return Thinking(text, signature, origin=origin, native=Native(API, part))


def _parse_without_data(part: JsonObject, signature: str | None, origin: Origin) -> list[Block]:
    """Parse a part with empty text, without data, or of an unknown type."""
    is_clip = get_field(part, "videoMetadata") is not None
    unknown = [key for key, value in part.items() if not is_part_field(key) and value is not None]
    if get_field(part, "text") is None and (unknown or is_clip):
        signed: list[Block] = [Thinking(signature=signature, origin=origin)] if signature else []
        kind = "videoMetadata" if is_clip else unknown[0]
        # GEM-10: the clip of the media before it may be a part of its own.
        return [*signed, Opaque(kind, native=Native(API, part, intact=is_clip or is_unknown_part(part)))]
    # GEM-10, GEM-21: a part without data is rejected; a signature may be sent alone, with an empty text.
    native = Native(API, part, get_field(part, "text") is not None)
    if signature is None:
        return [Text("", native=native)]
    return [Thinking(signature=signature, origin=origin, native=native)]


def _parse_text(part: JsonObject, _model: str | None) -> Block:
    return Text(get_text(part, "text") or "", native=Native(API, part))


def _get_member(part: JsonObject, member: str) -> JsonObject:
    return require_object(get_field(part, member), find_key(part, member))


def parse_origin(inner: JsonObject, model: str | None, path: str = "") -> Origin:
    """Return the origin of a call or result at `path`. Every type may have an id, and many have none."""
    text = get_text_strict(inner, "id", path)
    raw_id = raw_id_or_none(text)
    invalid_id = text if raw_id is None and text else None
    return Origin(API, model, raw_id, invalid_id, "nullable" if raw_id is None else "natural")


def _parse_arguments(arguments: Any) -> tuple[Any, str | None, bool]:
    """Return the value, the exact text if it is not valid JSON, and whether it is an object as required (GEM-14)."""
    if isinstance(arguments, str):
        return *parse_argument_text(arguments), False
    return {} if arguments is None else arguments, None, arguments is None or isinstance(arguments, dict)


def _parse_call(part: JsonObject, model: str | None) -> Block:
    inner, path = _get_member(part, "functionCall"), find_key(part, "functionCall")
    arguments, text, intact = _parse_arguments(get_field(inner, "args"))
    return ToolCall(
        get_text_strict(inner, "name", path) or "",
        arguments,
        arguments_text=text,
        origin=parse_origin(inner, model, path),
        native=Native(API, part, intact),
    )


def mark_cut_off(call: ToolCall) -> ToolCall:
    """Return a call whose arguments would have continued, with their text up to there, which is not valid JSON."""
    text = encode_json_text(call.arguments).removesuffix("}")
    return msgspec.structs.replace(call, arguments=None, arguments_text=text, broken=True)


def is_cut_off(call: ToolCall) -> bool:
    """Return whether the arguments of a call in a whole reply would have continued."""
    native = call.native
    return native is not None and get_field(get_object(native.fragment, "functionCall"), "willContinue") is True


def _parse_response(part: JsonObject, model: str | None) -> Block:
    inner, path = _get_member(part, "functionResponse"), find_key(part, "functionResponse")
    content, structured, failed, intact = parse_result_content(inner)
    return ToolResponse(
        name=get_text_strict(inner, "name", path) or None,
        content=content,
        structured=structured,
        error=failed,
        is_complete=True,
        origin=parse_origin(inner, model, path),
        native=Native(API, part, intact),
    )


# Parts of hosted tools (code execution, server-side tools). Same-API, they are sent back unchanged with their own ids
# (GEM-24); cross-API, the `hosted` policy decides.


def _parse_code(part: JsonObject, model: str | None) -> Block:
    inner = _get_member(part, "executableCode")
    arguments = {key: value for key, value in inner.items() if key != "id"}
    return ToolCall(
        CODE_EXECUTION, arguments, kind="hosted", origin=parse_origin(inner, model), native=Native(API, part)
    )


def _parse_code_result(part: JsonObject, model: str | None) -> Block:
    inner = _get_member(part, "codeExecutionResult")
    output = get_text_strict(inner, "output")
    return ToolResponse(
        name=CODE_EXECUTION,
        content=(Text(output),) if output else (),
        error=get_field(inner, "outcome") not in (None, "OUTCOME_OK", "OUTCOME_UNSPECIFIED"),
        is_complete=True,
        hosted=True,
        origin=parse_origin(inner, model),
        native=Native(API, part),
    )


def _server_tool_name(inner: JsonObject) -> str:
    return (get_text_strict(inner, "toolType") or "server_tool").lower()


def _parse_server_call(part: JsonObject, model: str | None) -> Block:
    inner = _get_member(part, "toolCall")
    arguments = get_field(inner, "args")
    return ToolCall(
        _server_tool_name(inner),
        {} if arguments is None else arguments,
        kind="hosted",
        origin=parse_origin(inner, model),
        native=Native(API, part),
    )


def _parse_server_result(part: JsonObject, model: str | None) -> Block:
    inner = _get_member(part, "toolResponse")
    response = get_field(inner, "response")
    return ToolResponse(
        name=_server_tool_name(inner),
        content=(),
        structured=UNSET if response is None else response,
        is_complete=True,
        hosted=True,
        origin=parse_origin(inner, model),
        native=Native(API, part),
    )


# The parser of each data field.
_PARSERS: dict[str, Callable[[JsonObject, str | None], Block]] = {
    "functionCall": _parse_call,
    "functionResponse": _parse_response,
    "text": _parse_text,
    "inlineData": lambda part, _model: parse_inline(part),
    "fileData": lambda part, _model: parse_file(part),
    "executableCode": _parse_code,
    "codeExecutionResult": _parse_code_result,
    "toolCall": _parse_server_call,
    "toolResponse": _parse_server_result,
}
# The data field of each key, in both cases.
_DATA_FIELDS = {key: name for name in _PARSERS for key in both_cases(name)}
ITEM_KEYS = both_cases(*_PARSERS, "thought", "thoughtSignature", "role", "parts") | {
    f"{outer}.{key}"
    for name, keys in {
        "functionCall": ("id", "name", "args"),
        "functionResponse": ("id", "name", "response", "parts", "willContinue", "scheduling"),
        "inlineData": ("data", "mimeType", "displayName"),
        "fileData": ("fileUri", "mimeType", "displayName"),
        "executableCode": ("id", "language", "code"),
        "codeExecutionResult": ("id", "outcome", "output"),
        "toolCall": ("id", "toolType", "args"),
        "toolResponse": ("id", "toolType", "response"),
    }.items()
    for outer in both_cases(name)
    for key in both_cases(*keys)
}


# ----------------------------------------------------------------------------------------------------------------- out


class GeminiContext(WireContext):
    """The state of one rendering: projected ids and names, and which calls are sent with an id.

    A call and its result both have an id or neither has one (GEM-11). Older models pair by position and get no ids,
    except for same-API calls that had one. `project_call` must be called before `project_response` of its result.
    """

    def __init__(self, render_context: RenderContext, model: Model, *, new_ids: bool = False) -> None:
        super().__init__(render_context, API)
        self.capabilities = capabilities_of(model)
        self._new_ids = new_ids
        self._projected: dict[str, tuple[str | None, str]] = {}
        self._call_names: dict[str, str] = {}
        self._same_ids: set[str] = set()

    def project_call(self, call: ToolCall, original: JsonObject | None) -> tuple[str | None, str]:
        """Return the projected id (or None) and name of a call. `original` is its fragment, if it came from Gemini."""
        had_no_id = original is not None and not get_field(original, "id")
        writes_id = self.capabilities.call_ids or original is not None
        stays_without_id = had_no_id and not (self._new_ids and self.capabilities.call_ids)
        projected_id = self.ids.render(call.id) if writes_id and not stays_without_id else None
        if original is not None and projected_id == (get_field(original, "id") or None):
            self._same_ids.add(call.id)
        self._call_names[call.id] = call.name
        self._projected[call.id] = projected_id, self.project_name(call.name)
        return self._projected[call.id]

    def project_response(self, response: ToolResponse, original: JsonObject | None) -> tuple[str | None, str]:
        """Return the projected id (or None) and name of a result (GEM-13); its own if its call is not in the body."""
        call_id, name = self._projected.get(response.call_id) or (None, self.project_name(response.name or ""))
        original_name = get_field(original, "name") if original is not None else None
        if original_name and original_name != self._call_names.get(response.call_id, original_name):
            message = f"function response {original_name!r} renamed: its name must match its call"
            self.report.add("name", message, call_id=response.call_id, subject=original_name)
        if original is not None and (response.call_id in self._same_ids or response.call_id not in self._projected):
            return get_field(original, "id") or None, name
        return call_id, name


def render_parts(blocks: Sequence[Block], context: GeminiContext, *, from_model: bool = True) -> list[JsonObject]:
    """Render blocks as parts. `from_model`: the role is `model`, so that signatures are separate blocks."""
    if not from_model:
        visible = [block for block in blocks if not isinstance(block, Thinking)]
        return [_drop_invalid_signature(_render_block(block, context), context) for block in visible]
    parts: list[JsonObject] = []
    signature: str | None = None
    for block in blocks:
        if isinstance(block, Thinking):
            if signature is not None:
                parts.append(_signature_part(signature))
            signature = block.signature if is_signature_of_next(block) else None
            if signature is None:
                parts.append(intact_fragment(block.native, API) or _render_thought(block))
        else:
            parts.append(_with_signature(_render_block(block, context), signature))
            signature = None
    return parts if signature is None else [*parts, _signature_part(signature)]


def _drop_invalid_signature(part: JsonObject, context: GeminiContext) -> JsonObject:
    """GEM-18, GEM-21: a signature in a user part has no effect, but it must be base64."""
    signature = get_text(part, "thoughtSignature")
    if signature is None or (re.fullmatch(BASE64_PATTERN, signature) and not is_envelope(signature)):
        return part
    why = "it is an envelope of segue" if is_envelope(signature) else "it is not valid base64"
    context.report.add("reasoning", f"thought signature dropped: {why}")
    return replace_fields(part, thoughtSignature=None)


def is_signature_of_next(block: Block) -> bool:
    """Return whether this is the signature of the next block and not a part of its own."""
    return isinstance(block, Thinking) and bool(block.signature) and not block.text and block.native is None


def _with_signature(part: JsonObject, signature: str | None) -> JsonObject:
    """Return the part with this signature, or without one."""
    return (
        part
        if (get_field(part, "thoughtSignature") or None) == signature
        else replace_fields(part, thoughtSignature=signature)
    )


def _signature_part(signature: str) -> JsonObject:
    return {"text": "", "thoughtSignature": signature}


def _render_thought(block: Thinking) -> JsonObject:
    if not block.text and block.signature:
        return _signature_part(block.signature)
    part: JsonObject = {"text": block.text, "thought": True}
    return replace_fields(part, thoughtSignature=block.signature) if block.signature else part


def _render_block(block: Text | ToolCall | ToolResponse | Media | Code | Opaque, context: GeminiContext) -> JsonObject:
    original = intact_fragment(block.native, API)
    match block:
        case ToolCall():
            return _render_call(block, original, context)
        case ToolResponse():
            return _render_response(block, original, context)
        case _ if original is not None:
            return original
        case Text():
            return {"text": block.text}
        case Media():
            part = render_media(block, context.fetch, urls=context.capabilities.media_urls)
            if part is None:
                return {"text": report_unsupported(block, context.report)}
            report_dropped_name(block, part, context.report)
            return part
        case Code():
            return {"text": fence_code(block)}
        case Opaque():
            return {"text": report_unsupported(block, context.report)}
        case _:
            assert_never(block)


def _render_call(call: ToolCall, original: JsonObject | None, context: GeminiContext) -> JsonObject:
    if call.kind == "hosted":
        # GEM-24: unchanged, with their own ids
        if original is not None:
            return original
        if call.origin.provider == API:
            return {"text": describe_hosted(call, context.report)}
    base = original or _edited_fragment(call.native)
    inner = get_object(base, "functionCall")
    call_id, name = context.project_call(call, inner if base else None)
    changes: JsonObject = {"id": call_id, "name": name}
    if original is None:
        changes["args"] = render_arguments_object(call, context.report)
    return _merge_into_part(base, "functionCall", inner, changes)


def _render_response(response: ToolResponse, original: JsonObject | None, context: GeminiContext) -> JsonObject:
    if response.hosted:
        if original is not None:
            return original
        if response.origin.provider == API:
            return {"text": describe_hosted(response, context.report)}
    base = original or _edited_fragment(response.native)
    inner = get_object(base, "functionResponse")
    call_id, name = context.project_response(response, inner if base else None)
    changes: JsonObject = {"id": call_id, "name": name}
    if original is None:
        content, media = render_result_content(response, context.report)
        changes |= {"response": content, "parts": media or None}
    return _merge_into_part(base, "functionResponse", inner, changes)


def _merge_into_part(part: JsonObject, member: str, inner: JsonObject, changes: JsonObject) -> JsonObject:
    """Return the part with these changes merged into its member; the same object if nothing changes. `""` is no id."""
    if not part:
        return {member: {key: value for key, value in changes.items() if value is not None}}
    if changes["id"] is None and not get_field(inner, "id"):
        del changes["id"]
    merged = replace_fields(inner, **changes)
    return part if merged is inner else {**part, find_key(part, member): merged}


def _edited_fragment(native: Native | None) -> JsonObject:
    """Return the fragment of an edited Gemini block: its unknown fields are kept."""
    return cast("JsonObject", native.fragment) if native is not None and native.api == API else {}
