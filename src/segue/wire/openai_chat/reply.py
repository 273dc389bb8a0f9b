"""Chat completions ⇄ `Reply`. `created` is 0 if unknown: rendering reads no clock."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from segue.canonical.blocks import Block, Native, Text, ToolCall, ToolResponse, edit_block
from segue.canonical.ids import short_hash
from segue.canonical.request import Finish, Reply, Usage
from segue.errors import InputError
from segue.wire.base import RenderContext
from segue.wire.json_values import (
    JsonObject,
    integer_or_none,
    list_or_empty,
    object_or_none,
    require_list,
    require_object,
    string_or_none,
    unknown_fields,
)
from segue.wire.merge import replace_modelled_fields
from segue.wire.openai_chat.dialect import ChatContext, ChatDialect
from segue.wire.openai_chat.messages import MESSAGE_KEYS, parse_assistant, render_assistant, render_assistant_same_api
from segue.wire.replies import count_output, report_extra_choices, token_count

ID_PREFIX = "chatcmpl-"
_FINISHES: dict[str, Finish] = {
    "stop": "stop",
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
    "length": "length",
    "content_filter": "filter",
    "model_length": "length",
    "insufficient_system_resource": "error",
    "error": "error",
}
_FINISH_REASONS: dict[Finish, str] = {
    "stop": "stop",
    "tool_calls": "tool_calls",
    "length": "length",
    "filter": "content_filter",
    # Neither reply is complete, and `length` is the only reason for an incomplete reply.
    "pause": "length",
    "error": "length",
}
# The second keys are those of DeepSeek, and of Qwen with explicit caching. Kimi's stand beside the details.
_CACHED_KEYS = ("cached_tokens", "prompt_cache_hit_tokens", "num_cached_tokens")
_WRITTEN_KEYS = ("cache_write_tokens", "cache_creation_input_tokens")
_REPLY_KEYS = frozenset({"id", "model", "choices", "usage"})
_CHOICE_KEYS = frozenset({"message", "finish_reason"})
_KNOWN_KEYS = frozenset({*_REPLY_KEYS, "object", "created", "system_fingerprint", "service_tier", "provider", "prompt"})
_KNOWN_CHOICE_KEYS = frozenset(
    {*_CHOICE_KEYS, "index", "native_finish_reason", "stop_reason", "usage", "content_filter_results"}
)
_KNOWN_MESSAGE_KEYS = MESSAGE_KEYS | {"reasoning_details", "function", "index", "prefix", "partial"}
# Clients read reasoning from this key, whatever key the vendor uses.
_REASONING_KEY = "reasoning_content"


def parse_reply(body: Mapping[str, Any], *, dialect: ChatDialect) -> Reply:
    """Parse the first choice of a reply."""
    choices = require_list(body.get("choices"), "choices")
    if not choices:
        raise InputError("a reply must have at least one choice", path="choices")
    choice = require_object(choices[0], "choices[0]")
    message = require_object(choice.get("message"), "choices[0].message")
    model = string_or_none(body.get("model"))
    try:
        blocks = parse_assistant(message, dialect, model)
    except InputError as error:
        raise error.with_prefix("choices[0].message") from None
    return Reply(
        tuple(blocks),
        finish=_parse_finish(choice.get("finish_reason"), blocks),
        # KIM-07
        usage=_parse_usage(find_usage(body)) or _parse_usage(choice.get("usage")),
        id=string_or_none(body.get("id")),
        model=model,
        created=integer_or_none(body.get("created")),
        raw_finish=string_or_none(choice.get("finish_reason")),
        other_choices=len(choices) - 1,
        unknown_fields=(
            *unknown_fields(message, _KNOWN_MESSAGE_KEYS),
            *unknown_fields(choice, _KNOWN_CHOICE_KEYS),
            *unknown_fields(body, _KNOWN_KEYS),
        ),
        native=Native(dialect.name, body),
    )


def _parse_finish(value: object, blocks: list[Block]) -> Finish:
    finish = _FINISHES.get(value, "stop") if isinstance(value, str) else "stop"
    # OAI-CHAT-19: a forced call ends with `stop`.
    if finish == "stop" and any(isinstance(block, ToolCall) for block in blocks):
        return "tool_calls"
    return finish


def _parse_usage(value: object) -> Usage | None:
    usage = object_or_none(value)
    if usage is None:
        return None
    read, written = _find_prompt_count(usage, _CACHED_KEYS), _find_prompt_count(usage, _WRITTEN_KEYS)
    reasoning = token_count(usage, "completion_tokens_details", "reasoning_tokens")
    output, reasoning = count_output(
        usage, "prompt_tokens", "completion_tokens", reasoning=reasoning, cached=read + written
    )
    prompt = token_count(usage, "prompt_tokens")
    # OpenRouter counts a prompt that Gemini caches and reads in one request as both.
    return Usage(prompt, output, read, min(written, max(0, prompt - read)), reasoning)


def find_usage(body: Mapping[str, Any]) -> object:
    """Return the token counts of a reply or chunk; Groq's streams have them in an object of their own."""
    usage = body.get("usage")
    return usage if usage is not None else (object_or_none(body.get("x_groq")) or {}).get("usage")


def _find_prompt_count(usage: JsonObject, keys: Sequence[str]) -> int:
    """Return the first count under one of these keys, in the details of the prompt or beside them."""
    counts = (token_count(usage, "prompt_tokens_details", key) or token_count(usage, key) for key in keys)
    return next(filter(None, counts), 0)


def render_reply(reply: Reply, render_context: RenderContext, *, dialect: ChatDialect) -> JsonObject:
    context = ChatContext(dialect, render_context, is_reply=True)
    own_native = context.own_native(reply.native)
    if own_native is not None:
        # A streamed reply has only its first choice.
        report_extra_choices(reply.other_choices + 1 - len(own_native.fragment.get("choices") or ()), context.report)
    if own_native is not None and own_native.intact:
        return _render_same_api(reply, own_native.fragment, context)
    message = render_assistant(blocks_for_client(reply.blocks, context), context, _REASONING_KEY)
    parts = list_or_empty(message["content"])
    if parts and not any(part["type"] == "thinking" for part in parts):
        # In a reply the text is one string.
        message["content"] = "".join(str(part.get("text", "")) for part in parts)
    if dialect.refusals:
        message.setdefault("refusal", None)
    choice: JsonObject = {
        "index": 0,
        "message": message,
        "logprobs": None,
        "finish_reason": render_finish(
            reply.finish, has_calls="tool_calls" in message, error_reason=dialect.error_finish
        ),
    }
    body: JsonObject = {
        "id": reply.id or _derive_id(reply),
        "object": "chat.completion",
        "created": reply.created or 0,
        "model": reply.model or "",
        "choices": [choice],
    }
    if reply.usage is not None:
        body["usage"] = render_usage(reply.usage)
    return body if own_native is None else _merge_reply(own_native.fragment, body)


def _render_same_api(reply: Reply, fragment: Mapping[str, Any], context: ChatContext) -> JsonObject:
    first, *others = cast("list[JsonObject]", fragment["choices"])
    message = render_assistant_same_api(reply.blocks, first["message"], context)
    body = cast("JsonObject", fragment)
    if message is not first["message"]:
        body = {**body, "choices": [{**first, "message": message}, *others]}
    return body if reply.id in (None, body.get("id")) else {**body, "id": reply.id}


def _merge_reply(fragment: Mapping[str, Any], body: JsonObject) -> JsonObject:
    """Merge an edited reply into its original body; unknown fields are kept."""
    first, *others = cast("list[JsonObject]", fragment.get("choices") or [{}])
    choice = replace_modelled_fields(first, {key: body["choices"][0][key] for key in _CHOICE_KEYS}, _CHOICE_KEYS)
    rendered = {key: value for key, value in body.items() if key in _REPLY_KEYS}
    return replace_modelled_fields(fragment, {**rendered, "choices": [choice, *others]}, _REPLY_KEYS)


def blocks_for_client(reply_blocks: Sequence[Block], context: ChatContext) -> list[Block]:
    """Return the blocks without hosted calls and results: the client would run those calls itself.

    Texts before and after a call become one string; a blank line separates them.
    """
    blocks: list[Block] = []
    has_text = needs_separator = False
    for block in reply_blocks:
        if (isinstance(block, ToolCall) and block.kind == "hosted") or isinstance(block, ToolResponse):
            message = f"call of the hosted tool {block.name or ''} dropped from the reply: the API cannot represent it"
            context.report.add("dropped", message, subject=block.name)
            needs_separator = True
        elif isinstance(block, Text) and not block.refusal and block.text:
            blocks.append(edit_block(block, text=f"\n\n{block.text}") if has_text and needs_separator else block)
            has_text, needs_separator = True, False
        else:
            blocks.append(block)
            needs_separator = True
    return blocks


def _derive_id(reply: Reply) -> str:
    seed = [reply.model or "", reply.text, reply.thinking, *(call.id for call in reply.calls)]
    return ID_PREFIX + short_hash("|".join(seed))


def render_finish(finish: Finish, *, has_calls: bool, error_reason: str | None = None) -> str:
    """Return the finish reason; `tool_calls` only with a call for the client, `error_reason` if the reply broke off."""
    if finish == "error" and error_reason is not None:
        return error_reason
    return "stop" if finish == "tool_calls" and not has_calls else _FINISH_REASONS[finish]


def render_usage(usage: Usage) -> JsonObject:
    input_details = {"cached_tokens": usage.cache_read}
    if usage.cache_write:
        input_details["cache_write_tokens"] = usage.cache_write
    return {
        "prompt_tokens": usage.input,
        "completion_tokens": usage.output,
        "total_tokens": usage.input + usage.output,
        "prompt_tokens_details": input_details,
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning},
    }
