"""Request bodies of `/v1/messages`: parsed to `Request`, rendered from `Transcript`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from segue.canonical.blocks import Block, Message, Native, Opaque, Speaker, Text
from segue.canonical.json import are_identical
from segue.canonical.pairing import pair
from segue.canonical.request import Request
from segue.errors import InputError
from segue.models import parse_model
from segue.render.compaction import replaces_messages
from segue.render.constraints import TEXTS
from segue.render.report import Report
from segue.render.transcript import Transcript
from segue.wire import mixed_body
from segue.wire.anthropic.capabilities import API, DEFAULT_MODEL
from segue.wire.anthropic.items import BODY_API, drop_text_keys, parse_content, render_block, with_unmodelled
from segue.wire.anthropic.options import drop_beside_summary, fit_effort, fit_options, parse_options, render_options
from segue.wire.anthropic.tools import parse_tools, render_tools
from segue.wire.base import RenderContext
from segue.wire.json_values import (
    JsonObject,
    json_type_name,
    optional_object,
    optional_string,
    require_list,
    require_object,
)
from segue.wire.merge import intact_fragment, merge_changes, set_or_remove
from segue.wire.mixed_body import has_results
from segue.wire.options import find_fitted, render_changes
from segue.wire.tools import drop_undeclared_choice

_SPEAKERS: dict[str, Speaker] = {"user": "human", "assistant": "ai", "system": "system"}
BODY_KEYS = frozenset(
    {"model", "messages", "system", "tools", "tool_choice", "thinking", "max_tokens", "temperature", "top_p", "top_k"}
    | {"stop_sequences", "stream", "metadata.user_id", "output_config.effort"}
    | {f"{form}.{key}" for form in ("output_config.format", "output_format") for key in ("type", "schema")}
    | {f"thinking.{key}" for key in ("type", "budget_tokens", "display")}
    | {f"tool_choice.{key}" for key in ("type", "name", "disable_parallel_tool_use")}
)
_MODEL_SPECIFIC = frozenset({"thinking", "temperature", "top_p", "top_k"})
_MESSAGE_KEYS = frozenset({"role", "content"})
_ROLES: dict[Speaker, str] = {"human": "user", "tool": "user", "ai": "assistant", "system": "system"}


# ------------------------------------------------------------------------------------------------------------------ in


def parse_request(body: Mapping[str, Any]) -> Request:
    if "messages" not in body:
        raise InputError("`messages` is missing", path="messages")
    model = optional_string(body.get("model"), "model")
    messages: list[Message] = []
    for index, item in enumerate(require_list(body["messages"], "messages")):
        try:
            message = require_object(item)
            if message.keys() == _MESSAGE_KEYS or not mixed_body.add_message(messages, message, BODY_API):
                messages.append(_parse_message(message))
        except InputError as error:
            raise error.with_prefix(f"messages[{index}]") from None
    return Request(
        messages=pair(messages),
        system=_parse_system(body.get("system")),
        tools=parse_tools(body.get("tools")),
        options=parse_options(body),
        model=model,
        continues=_parse_thread(body.get("thread")),
        summarizes=isinstance(body.get("compaction"), dict),
        native=Native(API, body),
    )


def _parse_thread(value: Any) -> str | None:
    """Return whether the body continues a thread whose earlier calls are stored by the provider."""
    thread = optional_object(value, "thread") or {}
    return "a thread" if optional_string(thread.get("type"), "thread.type") == "continue" else None


def _parse_message(message: JsonObject) -> Message:
    role = message.get("role")
    if not isinstance(role, str):
        raise InputError(f"a string was expected as `role`, not {json_type_name(role)}", path="role")
    speaker = _SPEAKERS.get(role)
    if speaker is None:
        raise InputError(f"unknown role {role!r}; user, assistant or system was expected", path="role")
    calls: tuple[Block, ...] = ()
    if "tool_calls" in message:
        message, calls = mixed_body.split_calls(message, BODY_API)
    content = message.get("content")
    blocks = (*_parse_message_content(content, speaker), *calls)
    if speaker == "human" and has_results(blocks):
        speaker = "tool"
    # ANT-16: null is rejected.
    intact = content is not None
    for block in blocks:
        if block.native is not None and not (block.native.intact and block.native.api == API):
            intact = False
    return Message(speaker, blocks, native=Native(API, message, intact))


def _parse_message_content(content: Any, speaker: Speaker) -> tuple[Block, ...]:
    if isinstance(content, str):
        return (Text(content),) if content else ()
    if isinstance(content, list):
        return parse_content(cast("list[Any]", content))
    if content is None and speaker == "ai":
        return ()
    raise InputError(f"a string or a list of blocks was expected, not {json_type_name(content)}", path="content")


def _parse_system(value: Any) -> tuple[Text, ...]:
    if value is None or value == "":
        return ()
    if isinstance(value, str):
        return (Text(value),)
    if not isinstance(value, list):
        raise InputError(f"a string or a list of text blocks was expected, not {json_type_name(value)}", path="system")
    texts: list[Text] = []
    for index, item in enumerate(cast("list[Any]", value)):
        block = require_object(item, f"system[{index}]")
        kind, text = block.get("type"), block.get("text")
        if not isinstance(kind, str) or not kind:
            raise InputError(
                f"a string was expected as `type`, not {json_type_name(kind)}", path=f"system[{index}].type"
            )
        if kind == "text" and not isinstance(text, str):
            raise InputError(f"a string was expected, not {json_type_name(text)}", path=f"system[{index}].text")
        content = text if isinstance(text, str) else TEXTS.unsupported.format(kind=kind)
        texts.append(Text(content, native=Native(API, block)))
    return tuple(texts)


# ----------------------------------------------------------------------------------------------------------------- out


def render_items(transcript: Transcript, context: RenderContext) -> list[JsonObject]:
    """Render the messages of a request."""
    return [_render_message(message, context) for message in transcript.messages]


def render_request(transcript: Transcript, context: RenderContext) -> JsonObject:
    # Before the messages: calls have the parameter names of the declarations.
    tools = render_tools(transcript.tools, context)
    messages = render_items(transcript, context)
    if transcript.is_same_api:
        return _render_same_api(transcript, context, messages, tools)
    body: JsonObject = {"model": transcript.model} if transcript.model else {}
    model = parse_model(transcript.rules_model or DEFAULT_MODEL)
    tool_names = [
        tool.name for tool in transcript.tools if tool.kind != "hosted" or intact_fragment(tool.native, API) is not None
    ]
    options = drop_undeclared_choice(transcript.options, tool_names, context.report)
    fields = render_options(
        fit_options(options, model, context.report),
        model,
        context.report,
        has_tools=bool(tools),
        project_name=context.names.render,
    )
    body["max_tokens"] = fields.pop("max_tokens")
    system = _render_system(transcript.system, context.report)
    if any(not text.text.strip() for text in transcript.system):
        context.report.add("dropped", "blank system text dropped", subject="system", level="note")
    if system:
        body["system"] = system
    body["messages"] = messages
    if tools:
        body["tools"] = tools
    return body | fields


def _render_message(message: Message, context: RenderContext) -> JsonObject:
    rendered = [render_block(block, context) for block in message.blocks]
    original = intact_fragment(message.native, API)
    if original is not None:
        content: Any = original.get("content")
        if not isinstance(content, list) or are_identical(rendered, cast("list[Any]", content)):
            return original
        return {**original, "content": rendered}
    body: JsonObject = {"role": _ROLES[message.speaker], "content": _render_content(message, rendered)}
    if message.native is not None and message.native.api == API:
        return {**message.native.fragment, **body}
    return body


def _render_content(message: Message, rendered: list[JsonObject]) -> str | list[JsonObject]:
    if len(rendered) == 1 and isinstance(message.blocks[0], Text) and message.blocks[0].native is None:
        return message.blocks[0].text
    return rendered


def _render_system(system: tuple[Text, ...], report: Report) -> str | list[JsonObject]:
    # ANT-19: blank text is rejected
    texts = [text for text in system if text.text.strip()]
    if len(texts) == 1 and texts[0].native is None:
        return texts[0].text
    return [_render_system_text(text, report) for text in texts]


def _render_system_text(text: Text, report: Report) -> JsonObject:
    original = intact_fragment(text.native, API)
    if original is not None:
        return drop_text_keys(original, report)
    return with_unmodelled({"type": "text", "text": text.text}, text.native)


def _render_same_api(
    transcript: Transcript, context: RenderContext, messages: list[JsonObject], tools: list[JsonObject]
) -> JsonObject:
    """Return the original body with only the changes merged into it."""
    request = transcript.request
    fragment: Mapping[str, Any] = request.native.fragment if request.native is not None else {}
    body = _merge_options(fragment, transcript, context)
    system = _render_system(transcript.system, context.report)
    original_system: Any = fragment.get("system")
    if isinstance(system, str) or not isinstance(original_system, list):
        changed = any(not text.text.strip() for text in transcript.system) or transcript.system != request.system
    else:
        changed = not are_identical(system, cast("list[Any]", original_system))
    if changed:
        set_or_remove(body, "system", system)
    original: Any = fragment.get("tools")
    if not are_identical(tools, original or []):
        set_or_remove(body, "tools", tools)
    body["messages"] = messages
    if not request.summarizes and not transcript.contents.has_omitted:
        return body
    blocks = (block for message in transcript.messages for block in message.blocks)
    replaced = any(isinstance(block, Opaque) and replaces_messages(block) for block in blocks)
    return drop_beside_summary(body, context.report, requested=request.summarizes, replaced=replaced)


def _merge_options(fragment: Mapping[str, Any], transcript: Transcript, context: RenderContext) -> JsonObject:
    request = transcript.request
    has_other_model = request.model != transcript.model
    unfit = _MODEL_SPECIFIC if has_other_model else find_fitted(request.options, transcript.options)
    dropped, has_tools = unfit & fragment.keys(), bool(transcript.tools)
    before, after = render_changes(
        render_options, transcript, context, DEFAULT_MODEL, has_tools=has_tools, dropped=dropped
    )
    mixed_body.forget_foreign_choice(before, fragment, mixed_body.ANTHROPIC)
    before["model"], after["model"] = request.model, transcript.model
    body = merge_changes(fragment, before, after)
    # What is rejected before and after the change is in neither rendering, so the difference does not remove it.
    for key in unfit - after.keys():
        body.pop(key, None)
    if request.options.reasoning != transcript.options.reasoning:
        set_or_remove(body, "thinking", after.get("thinking"))
    for key in ("output_config", "metadata", "thinking"):
        inner = fragment.get(key)
        if not isinstance(inner, dict) or before.get(key) == after.get(key):
            continue
        # `disabled` accepts no other key; otherwise unmodelled fields stay.
        if key != "thinking" or after.get(key, {}).get("type") in ("enabled", "adaptive"):
            set_or_remove(body, key, merge_changes(cast("JsonObject", inner), before.get(key, {}), after.get(key, {})))
    if isinstance(config := body.get("output_config"), dict) and config:
        fitted = fit_effort(cast("JsonObject", config), parse_model(transcript.model), context.report)
        set_or_remove(body, "output_config", fitted)
    return body
