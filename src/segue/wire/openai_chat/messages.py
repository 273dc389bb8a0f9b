"""`messages` entries ⇄ canonical messages.

Same-API, a message is sent as the original object unless an id or tool name in it changes; then only the objects on the
path to that value are copied. A fragment that the API would reject is never marked intact.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from msgspec import UNSET
from msgspec.structs import replace

from segue.canonical.blocks import (
    Block,
    Message,
    Native,
    Opaque,
    Origin,
    Text,
    Thinking,
    ToolCall,
    ToolResponse,
    join_paragraphs,
    join_texts,
)
from segue.canonical.ids import raw_id_or_none
from segue.canonical.json import are_identical, encode_json_text
from segue.errors import InputError
from segue.wire.json_values import (
    JsonObject,
    object_or_none,
    optional_object,
    optional_string,
    require_list,
    require_object,
    require_string,
    string_or_none,
)
from segue.wire.merge import replace_modelled_fields
from segue.wire.mixed_body import has_results
from segue.wire.openai_chat.dialect import ChatContext, ChatDialect, drop_unknown_keys
from segue.wire.openai_chat.items import (
    is_filled,
    is_legacy_call,
    parse_call,
    parse_content,
    parse_legacy_call,
    render_call,
    render_content,
    render_legacy_call,
)
from segue.wire.openai_chat.reasoning import DETAILS_KEY, REASONING_KEYS, find_encrypted_reasoning, parse_reasoning

_ROLES = ("system", "developer", "user", "assistant", "tool", "function")
MESSAGE_KEYS = frozenset(
    {
        "role",
        "content",
        "name",
        "refusal",
        "reasoning_content",
        "reasoning",
        "audio",
        "tool_calls",
        "function_call",
        "tool_call_id",
    }
)
ERROR_KEY = "is_error"
_STRING_KEYS = ("name", "refusal", "reasoning_content", "reasoning", "tool_call_id")
_RARE_KEYS = frozenset({*_STRING_KEYS, "audio"} - {"tool_call_id"})
# An assistant message with these keys has a text and calls.
_PLAIN_KEYS = frozenset({"role", "content", "tool_calls"})
_VALID_NAME = re.compile(r"[^\s<|\\/>]{1,64}")
_NO_MEDIA = frozenset[str]()
_NO_KEYS = frozenset[str]()


# ------------------------------------------------------------------------------------------------------------- parsing


def parse_message(message: JsonObject, dialect: ChatDialect) -> Message:
    role = message.get("role")
    if not isinstance(role, str):
        raise InputError(f"a role was expected: one of {', '.join(_ROLES)}", path="role")
    match role:
        case "tool" | "function":
            return _parse_result(message, role, dialect)
        case "assistant":
            blocks = parse_assistant(message, dialect)
            intact = _is_valid_assistant(message, dialect) and _are_intact(blocks, dialect)
            native = Native(dialect.name, message, intact and _are_calls_listed(message, blocks))
            prefill = dialect.prefill_key is not None and message.get(dialect.prefill_key) is True
            name = string_or_none(message.get("name"))
            return Message("ai", tuple(blocks), name=name, prefill=prefill, native=native)
        case "user" | "system" | "developer":
            _validate_fields(message)
            if "content" not in message:
                raise InputError("`content` is missing", path="content")
            content = message["content"]
            blocks = parse_content(content, dialect, role)
            intact = isinstance(content, str) or (
                bool(content) and _are_intact(blocks, dialect) and not _has_calls(blocks)
            )
            native = Native(dialect.name, message, intact)
            speaker = "tool" if has_results(blocks) else "human" if role == "user" else "system"
            return Message(speaker, tuple(blocks), name=string_or_none(message.get("name")), native=native)
        case _:
            raise InputError(f"unknown role {role!r}; expected one of {', '.join(_ROLES)}", path="role")


def parse_assistant(message: JsonObject, dialect: ChatDialect, model: str | None = None) -> list[Block]:
    """Parse the blocks of an assistant message: reasoning, text, then calls. `model` is the model of a reply."""
    if message.keys() <= _PLAIN_KEYS and isinstance(message.get("content"), str | None):
        blocks = parse_content(message.get("content"), dialect, "assistant")
    else:
        blocks = _parse_fields(message, dialect, model)
    if (entries := message.get("tool_calls")) is not None:
        for index, entry in enumerate(require_list(entries, "tool_calls")):
            try:
                call = require_object(entry)
                if string_or_none(call.get("id")) or is_filled(call) or "function" not in call:
                    blocks.append(parse_call(call, dialect, model))
            except InputError as error:
                raise error.with_prefix(f"tool_calls[{index}]") from None
    legacy_call = optional_object(message.get("function_call"), "function_call") or {}
    if is_filled(legacy_call):
        blocks.append(parse_legacy_call(legacy_call, dialect, model))
    return blocks


def _parse_fields(message: JsonObject, dialect: ChatDialect, model: str | None) -> list[Block]:
    """Parse the blocks of an assistant message that are no calls."""
    origin = Origin(dialect.reasoning_provider, model, identity="absent")
    blocks: list[Block] = [*parse_reasoning(message, dialect, origin)]
    blocks += parse_content(message.get("content"), dialect, "assistant", origin if dialect.reasoning_parts else None)
    if isinstance(refusal := message.get("refusal"), str) and refusal:
        blocks.append(Text(refusal, refusal=True))
    if is_filled(audio := object_or_none(message.get("audio"))) and audio is not None:
        transcript = string_or_none(audio.get("transcript")) or ""
        blocks.append(Opaque("audio", text=transcript, native=Native(dialect.name, audio)))
    # COMP-21
    if (
        dialect.encrypted_reasoning
        and (encrypted := find_encrypted_reasoning(message.get("reasoning_details"))) is not None
    ):
        blocks.append(Thinking(signature=encrypted, origin=Origin(dialect.provider, model, identity="absent")))
    return blocks


def _are_intact(blocks: Sequence[Block], dialect: ChatDialect) -> bool:
    """Return whether every part can be sent unchanged; calls are sent on their own, and results are no parts."""
    for block in blocks:
        native = block.native
        if isinstance(block, ToolResponse) or (
            native is not None
            and not isinstance(block, ToolCall)
            and not (native.intact and native.api == dialect.name)
        ):
            return False
    return True


def _has_calls(blocks: Sequence[Block]) -> bool:
    return any(isinstance(block, ToolCall) for block in blocks)


def _are_calls_listed(message: JsonObject, blocks: Sequence[Block]) -> bool:
    """Return whether no call is in the content, where other APIs have them."""
    listed = len(message.get("tool_calls") or ()) + (message.get("function_call") is not None)
    return [*map(type, blocks)].count(ToolCall) == listed


def _is_valid_assistant(message: Mapping[str, Any], dialect: ChatDialect) -> bool:
    """Return whether the message can be sent unchanged. Raises `InputError` for a field of the wrong type."""
    _validate_fields(message)
    for index, entry in enumerate(message.get("tool_calls") or ()):
        if type(entry.get("id")) is not str:
            optional_string(entry.get("id"), f"tool_calls[{index}].id")
    if message.keys() <= _PLAIN_KEYS and message.get("content"):
        return True
    # KIM-04: the vendor ignores reasoning under any other key than its own.
    key = dialect.reasoning_key
    has_other_place = dialect.reasoning_parts or (key is not None and key not in message)
    if has_other_place and not message.keys().isdisjoint((*REASONING_KEYS, DETAILS_KEY)):
        return False
    if message.get("function_call") and not dialect.legacy_calls:
        return False
    if (audio := object_or_none(message.get("audio"))) is not None and not is_filled(audio):
        return False
    for key in ("refusal", "audio"):
        if message.get(key) and not dialect.accepts_key(key):
            return False
    content = message.get("content")
    if isinstance(content, str) or content:
        return True
    # COMP-05
    if dialect.empty_content is not None:
        return False
    # OAI-CHAT-11: without content there must be a call, a refusal or audio; a list of parts is never empty.
    has_output = any(message.get(key) for key in ("tool_calls", "function_call", "refusal", "audio"))
    return has_output and (content is None or dialect.empty_lists)


def _validate_fields(message: Mapping[str, Any]) -> None:
    """Raise `InputError` for a field of the wrong type; replies, which are parsed by the same code, may have those."""
    if _RARE_KEYS.isdisjoint(message) and isinstance(message.get("tool_call_id", ""), str):
        return
    for key in _STRING_KEYS:
        if (value := message.get(key)) is not None:
            require_string(value, key)
    optional_object(message.get("audio"), "audio")


def _parse_result(message: JsonObject, role: str, dialect: ChatDialect) -> Message:
    content = message.get("content")
    blocks: Sequence[Block] = [Text(content)] if isinstance(content, str) else ()
    if not isinstance(content, str):
        blocks = parse_content(content, dialect, role)
        if has_results(blocks):
            return _parse_nested_results(message, blocks, dialect)
    # OAI-CHAT-11: a tool message must have content; only the legacy `function` message may have null.
    intact = isinstance(content, str) or bool(blocks) or (role == "function" and "content" in message)
    intact = intact and (role == "tool" or dialect.legacy_calls) and _are_intact(blocks, dialect)
    _validate_fields(message)
    native = Native(dialect.name, message, intact)
    raw_id = raw_id_or_none(message.get("tool_call_id"))
    identity = "absent" if role == "function" else "natural" if raw_id else "synthetic"
    response = ToolResponse(
        name=string_or_none(message.get("name")) or None,
        content=tuple(blocks),
        # Not a field of the API, but clients of other APIs send it.
        error=message.get(ERROR_KEY) is True,
        is_complete=True,
        origin=Origin(dialect.provider, None, raw_id, identity=identity),
        native=native,
    )
    return Message("tool", (response,), native=native)


def _parse_nested_results(message: JsonObject, blocks: Sequence[Block], dialect: ChatDialect) -> Message:
    """Parse a tool message whose content is results of another API. An id that they lack is the message's."""
    raw_id = raw_id_or_none(message.get("tool_call_id"))
    results = [
        replace(block, origin=replace(block.origin, raw_id=block.origin.raw_id or raw_id))
        for block in blocks
        if isinstance(block, ToolResponse)
    ]
    others = tuple(block for block in blocks if not isinstance(block, ToolResponse | ToolCall))
    if others:
        results[0] = replace(results[0], content=(*others, *(results[0].content or ())), native=None)
    return Message("tool", tuple(results), native=Native(dialect.name, message, intact=False))


# ----------------------------------------------------------------------------------------------------------- rendering


def render_messages(messages: Sequence[Message], system: Sequence[Text], context: ChatContext) -> list[JsonObject]:
    """Render all messages of a request; `system` is the text before them."""
    rendered: list[JsonObject] = []
    if system:
        rendered.append({"role": "system", "content": render_content(system, context, _NO_MEDIA)})
    head = True
    for message in messages:
        head = head and message.speaker == "system"
        match message.speaker:
            case "ai":
                rendered.append(_render_assistant_message(message, context))
            case "tool":
                rendered.extend(_render_results(message, context))
            case "human":
                rendered.append(_render_text_message(message, "user", context))
            case "system":
                role = "developer" if context.dialect.developer_role and not head else "system"
                rendered.append(_render_text_message(message, role, context))
    if context.dialect.glued_parts:
        rendered = [_join_text_parts(message) for message in rendered]
    if context.dialect.allowed_keys:
        rendered = [_drop_unknown_message_keys(message, context) for message in rendered]
    return rendered


def _join_text_parts(message: JsonObject) -> JsonObject:
    """Join neighbouring text parts of a message; returns the same object if there are none."""
    content: object = message.get("content")
    if not isinstance(content, list):
        return message
    joined: list[JsonObject] = []
    for part in cast("list[JsonObject]", content):
        if joined and part.get("type") == joined[-1].get("type") == "text":
            joined[-1] = {**joined[-1], "text": join_paragraphs([joined[-1]["text"], part["text"]])}
        else:
            joined.append(part)
    if len(joined) == len(cast("list[JsonObject]", content)):
        return message
    return {**message, "content": joined[0]["text"] if len(joined) == 1 else joined}


def _drop_unknown_message_keys(message: JsonObject, context: ChatContext) -> JsonObject:
    """Drop rejected keys of the message and its parts; returns the same object if there are none."""
    message = drop_unknown_keys(message, message["role"], context)
    if not isinstance(message.get("content"), list):
        return message
    parts = cast("list[JsonObject]", message["content"])
    kept = [drop_unknown_keys(part, part["type"], context) for part in parts]
    return message if are_identical(kept, parts) else {**message, "content": kept}


def _render_text_message(message: Message, role: str, context: ChatContext) -> JsonObject:
    native = context.own_native(message.native)
    if native is not None and native.intact:
        fragment = cast("JsonObject", native.fragment)
        unknown = fragment["role"] == "developer" and not context.dialect.developer_role
        return {**fragment, "role": "system"} if unknown else fragment
    kinds = context.dialect.media if role == "user" else _NO_MEDIA
    if native is not None and role != "user" and native.fragment.get("role") in _system_roles(context):
        role = native.fragment["role"]
    rendered: JsonObject = {"role": role, "content": render_content(message.blocks, context, kinds) or ""}
    return _with_name(message, rendered, native)


def _system_roles(context: ChatContext) -> tuple[str, ...]:
    return ("system", "developer") if context.dialect.developer_role else ("system",)


def _with_name(
    message: Message, rendered: JsonObject, native: Native | None, extra_keys: frozenset[str] = _NO_KEYS
) -> JsonObject:
    if message.name is not None and _VALID_NAME.fullmatch(message.name):
        rendered["name"] = message.name
    if native is None or native.fragment.get("role") != rendered["role"]:
        return rendered
    return replace_modelled_fields(native.fragment, rendered, MESSAGE_KEYS | extra_keys)


def _render_assistant_message(message: Message, context: ChatContext) -> JsonObject:
    native = context.own_native(message.native)
    # The message may have been parsed by the rules of another server of this API.
    if native is not None and native.intact and _is_valid_assistant(native.fragment, context.dialect):
        return render_assistant_same_api(message.blocks, native.fragment, context)
    rendered = render_assistant(message.blocks, context, context.dialect.reasoning_key)
    if rendered["content"] is None and native is not None and native.fragment.get("content") == "":
        rendered["content"] = ""
    prefill_key = context.dialect.prefill_key
    if prefill_key is None or native is None or native.fragment.get(prefill_key) is not True:
        return _with_name(message, rendered, native)
    if message.prefill:
        rendered[prefill_key] = True
    return _with_name(message, rendered, native, frozenset({prefill_key}))


def render_assistant(blocks: Sequence[Block], context: ChatContext, reasoning_key: str | None) -> JsonObject:
    """Render a new assistant message, without its original fragment."""
    content: list[Block] = []
    thoughts: list[Thinking] = []
    refusals: list[str] = []
    calls: list[JsonObject] = []
    extra: JsonObject = {}
    for block in blocks:
        own_native = context.own_native(block.native)
        if isinstance(block, Thinking) and not context.dialect.reasoning_parts:
            thoughts.append(block)
        elif isinstance(block, ToolCall):
            if is_legacy_call(block, own_native, context):
                extra["function_call"] = render_legacy_call(block, context)
            else:
                calls.append(render_call(block, context))
        elif (
            isinstance(block, Text)
            and block.refusal
            and context.dialect.accepts_key("refusal")
            and not (own_native and own_native.intact)
        ):
            refusals.append(block.text)
        elif _is_audio(block) and own_native and "id" in own_native.fragment and context.dialect.accepts_key("audio"):
            extra["audio"] = {"id": own_native.fragment["id"]}
        else:
            content.append(block)
    rendered = render_content(content, context, _NO_MEDIA)
    # OAI-CHAT-11: null only if the message has something else.
    empty_content = context.dialect.empty_content if calls or any(refusals) or extra else ""
    message: JsonObject = {"role": "assistant", "content": empty_content if rendered is None else rendered}
    if refusals:
        message["refusal"] = "\n".join(refusals)
    if thoughts:
        message.update(_render_reasoning(thoughts, calls, context, reasoning_key))
    message.update(extra)
    # OAI-CHAT-07: never an empty list
    if calls:
        message["tool_calls"] = calls
    return message


def _render_reasoning(
    thoughts: Sequence[Thinking], calls: Sequence[JsonObject], context: ChatContext, reasoning_key: str | None
) -> JsonObject:
    # COMP-21
    encrypted = next((block.signature for block in thoughts if block.signature), None)
    if encrypted is not None and calls and context.dialect.encrypted_reasoning:
        entry = {"type": "reasoning.encrypted", "data": encrypted, "id": calls[0]["id"], "index": 0}
        return {"reasoning_details": [entry]}
    if reasoning_key is not None:
        return {reasoning_key: "\n".join(block.text for block in thoughts if block.text)}
    # OAI-CHAT-17, OAI-CHAT-22
    context.report.add("reasoning", f"reasoning dropped: {context.dialect.name} has no field for it")
    return {}


def _is_audio(block: Block) -> bool:
    return isinstance(block, Opaque) and block.kind == "audio"


def render_assistant_same_api(blocks: Sequence[Block], fragment: Mapping[str, Any], context: ChatContext) -> JsonObject:
    """Return the fragment with projected ids and names; the same object if they do not change."""
    changes: JsonObject = {}
    entries: list[JsonObject] = []
    for block in blocks:
        if not isinstance(block, ToolCall):
            continue
        if is_legacy_call(block, context.own_native(block.native), context):
            legacy_call = render_legacy_call(block, context)
            if legacy_call is not fragment.get("function_call"):
                changes["function_call"] = legacy_call
        else:
            entries.append(render_call(block, context))
    original_calls = cast("list[object]", fragment.get("tool_calls") or [])
    if len(original_calls) != len(entries) or any(a is not b for a, b in zip(entries, original_calls, strict=True)):
        changes["tool_calls"] = entries
    # OAI-CHAT-07: an empty list is rejected.
    if fragment.get("tool_calls") == [] and not context.dialect.empty_lists:
        return {key: value for key, value in fragment.items() if key != "tool_calls"} | changes
    return {**fragment, **changes} if changes else cast("JsonObject", fragment)


def _render_results(message: Message, context: ChatContext) -> Iterator[JsonObject]:
    others: list[Block] = []
    for block in message.blocks:
        if isinstance(block, ToolResponse):
            yield _render_result(block, context)
        else:
            others.append(block)
    if others:
        yield {"role": "user", "content": render_content(others, context, context.dialect.media) or ""}


def _render_result(response: ToolResponse, context: ChatContext) -> JsonObject:
    own_native = context.own_native(response.native)
    is_orphan = own_native is not None and own_native.intact and response.call_id not in context.ids
    legacy = response.call_id in context.legacy_calls or is_orphan
    role = "function" if legacy else "tool"
    key, value = (
        ("name", context.project_name(response.name or ""))
        if legacy
        else ("tool_call_id", context.ids.render(response.call_id))
    )
    original = cast(
        "JsonObject", own_native.fragment if own_native is not None and own_native.fragment.get("role") == role else {}
    )
    if own_native is not None and own_native.intact and original:
        changes = {key: value}
        if response.name and isinstance(original.get("name"), str):
            changes["name"] = context.project_name(response.name)
        return (
            original if all(original.get(key) == value for key, value in changes.items()) else {**original, **changes}
        )
    rendered: JsonObject = {"role": role, key: value, "content": _render_result_content(response, context, legacy)}
    # KIM-08
    if response.name and (context.dialect.named_results or "name" in original):
        rendered["name"] = context.project_name(response.name)
    return replace_modelled_fields(original, rendered, MESSAGE_KEYS) if original else rendered


def _render_result_content(response: ToolResponse, context: ChatContext, legacy: bool) -> str | list[JsonObject]:
    if not response.content:
        return "" if response.structured is UNSET else encode_json_text(response.structured)
    # OAI-CHAT-12: text only
    content = render_content(response.content, context, _NO_MEDIA) or ""
    if legacy and not isinstance(content, str):
        return join_texts(str(part.get("text", "")) for part in content)
    return content
