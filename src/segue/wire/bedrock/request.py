"""Request bodies of Converse: parsed to `Request`, rendered from `Transcript`.

The HTTP API has the model in the URL; boto3 passes it as the argument `modelId`, which this wire expects in the body.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from segue.canonical.blocks import Block, Media, Message, Native, Speaker, Text
from segue.canonical.contents import Contents
from segue.canonical.pairing import pair
from segue.canonical.request import Request, Tool
from segue.errors import InputError
from segue.models import Model, parse_model
from segue.render.constraints import TEXTS
from segue.render.report import Report, field_level
from segue.render.transcript import Transcript
from segue.wire import mixed_body
from segue.wire.base import RenderContext
from segue.wire.bedrock.capabilities import API, DEFAULT_MODEL, capabilities_of
from segue.wire.bedrock.items import (
    BODY_API,
    CACHE_POINT,
    parse_content,
    render_block,
    split_fragment,
    with_cache_point,
)
from segue.wire.bedrock.media import rename_documents
from segue.wire.bedrock.options import MODEL_FIELDS, fit_options, parse_options, render_options
from segue.wire.bedrock.shapes import request_keys, validate_request
from segue.wire.bedrock.tools import parse_tools, render_tools
from segue.wire.json_values import (
    JsonObject,
    json_type_name,
    object_or_none,
    optional_string,
    require_list,
    require_object,
)
from segue.wire.merge import intact_fragment, merge_changes, set_or_remove
from segue.wire.mixed_body import has_results
from segue.wire.options import render_changes

# BED-10: the service model lists the role `system`
_SPEAKERS: dict[str, Speaker] = {"user": "human", "assistant": "ai", "system": "system"}
_ROLES: dict[Speaker, str] = {"human": "user", "tool": "user", "ai": "assistant", "system": "system"}
_SCHEMA = "outputConfig.textFormat.structure.jsonSchema"
BODY_KEYS = frozenset(
    {"modelId", "messages", "system", "inferenceConfig", "outputConfig.effort", "outputConfig.textFormat.type"}
    | {f"{_SCHEMA}.{key}" for key in ("schema", "name", "description")}
    | {"toolConfig.tools", *(f"toolConfig.toolChoice.{mode}.name" for mode in ("auto", "any", "tool"))}
    | {f"{MODEL_FIELDS}.{key}" for key in ("reasoning_config", "reasoning_effort", "top_k", "inferenceConfig.topK")}
    | {
        f"{MODEL_FIELDS}.{outer}.{key}"
        for outer in ("thinking", "reasoning_config")
        for key in ("type", "budget_tokens", "display")
    }
    | {f"{MODEL_FIELDS}.reasoningConfig.{key}" for key in ("type", "maxReasoningEffort")}
    | {f"{MODEL_FIELDS}.output_config.effort"}
)
_NESTED = ("inferenceConfig", MODEL_FIELDS, "outputConfig")


# ------------------------------------------------------------------------------------------------------------------ in


def parse_request(body: Mapping[str, Any]) -> Request:
    validate_request(dict(body))
    model = optional_string(body.get("modelId"), "modelId")
    messages: list[Message] = []
    for index, item in enumerate(require_list(body["messages"], "messages")):
        try:
            message = require_object(item)
            if not mixed_body.add_message(messages, message, BODY_API):
                messages.append(_parse_message(message))
        except InputError as error:
            raise error.with_prefix(f"messages[{index}]") from None
    return Request(
        messages=pair(messages),
        system=_parse_system(body.get("system")),
        tools=_parse_tool_config(body),
        options=parse_options(body),
        model=model,
        native=Native(API, body),
    )


def _parse_tool_config(body: Mapping[str, Any]) -> tuple[Tool, ...]:
    config = body.get("toolConfig")
    # `convert_tools` passes a list of declarations as `tools`.
    if config is None:
        return parse_tools(body.get("tools"), "tools")
    return parse_tools(require_object(config, "toolConfig").get("tools"), "toolConfig.tools")


def _parse_message(message: JsonObject) -> Message:
    role = message.get("role")
    speaker = _SPEAKERS.get(role) if isinstance(role, str) else None
    if speaker is None:
        shown_role = repr(role) if isinstance(role, str) else json_type_name(role)
        raise InputError(f"the role user, assistant or system was expected, not {shown_role}", path="role")
    message, calls = mixed_body.split_calls(message, BODY_API)
    content: Any = message.get("content")
    # Only a list is valid, but clients of other APIs send a string.
    if isinstance(content, str) or content is None:
        blocks: tuple[Block, ...] = (Text(content),) if content else ()
        intact = False
    else:
        blocks, intact = parse_content(require_list(content, "content"), None)
    if speaker == "human" and has_results(blocks):
        speaker = "tool"
    return Message(speaker, (*blocks, *calls), native=Native(API, message, intact and not calls))


def _parse_system(value: Any) -> tuple[Text, ...]:
    if value is None:
        return ()
    if isinstance(value, str):
        return (Text(value),) if value else ()
    texts: list[Text] = []
    for index, item in enumerate(require_list(value, "system")):
        block = require_object(item, f"system[{index}]")
        match block:
            case {"text": str(text)} | {"guardContent": {"text": {"text": str(text)}}}:
                texts.append(Text(text, native=Native(API, block)))
            case {"cachePoint": point}:
                if texts and isinstance(point, dict):
                    texts[-1] = with_cache_point(texts[-1], cast("JsonObject", point))
            case _:
                kind = next((key for key, member in block.items() if member is not None), "nothing")
                if kind == "text":
                    path = f"system[{index}].text"
                    raise InputError(f"a string was expected, not {json_type_name(block['text'])}", path=path)
                texts.append(Text(TEXTS.unsupported.format(kind=kind), native=Native(API, block)))
    return tuple(texts)


# ----------------------------------------------------------------------------------------------------------------- out


def render_items(transcript: Transcript, context: RenderContext) -> list[JsonObject]:
    """Render the messages of a request."""
    messages = [_render_message(message, context) for message in transcript.messages]
    if _may_have_documents(transcript.contents):
        messages = rename_documents(messages, context.report)
    if capabilities_of(parse_model(transcript.rules_model or DEFAULT_MODEL)).error_flag:
        return messages
    return [_drop_status(message, context.report) for message in messages]


def render_request(transcript: Transcript, context: RenderContext) -> JsonObject:
    model = parse_model(transcript.rules_model or DEFAULT_MODEL)
    # Before the messages: calls have the parameter names of the declarations.
    tools = render_tools(transcript.tools, context, model)
    messages = render_items(transcript, context)
    if any(not text.text.strip() for text in transcript.system):
        context.report.add("dropped", "blank system text dropped", subject="system", level="note")
    if transcript.is_same_api:
        return _render_same_api(transcript, context, messages, tools)
    options = fit_options(transcript.options, model, context.report)
    fields = render_options(options, model, context.report, has_tools=bool(tools), project_name=context.names.render)
    body: JsonObject = {"modelId": transcript.model} if transcript.model else {}
    system = _render_system(transcript.system)
    if system:
        body["system"] = system
    body["messages"] = messages
    choice = fields.pop("toolChoice", None)
    if tools:
        body["toolConfig"] = {"tools": tools} if choice is None else {"tools": tools, "toolChoice": choice}
    return body | fields


def _may_have_documents(contents: Contents) -> bool:
    """Return whether a document may be rendered: from media, or from a block of this API."""
    natives = [block.native for block in (*contents.blocks, *contents.parts)]
    return contents.has_type(Media) or API in {native.api for native in natives if native is not None}


def _render_message(message: Message, context: RenderContext) -> JsonObject:
    rendered = [item for block in message.blocks for item in render_block(block, context)]
    native = message.native
    if native is None or native.api != API:
        return {"role": _ROLES[message.speaker], "content": rendered}
    original = intact_fragment(native, API)
    if original is not None and rendered == _drop_stray_cache_points(original["content"]):
        return original
    return {**native.fragment, "role": _ROLES[message.speaker], "content": rendered}


def _drop_stray_cache_points(content: list[Any]) -> list[Any]:
    """Return the content without cache points that follow nothing or another cache point."""
    kept: list[Any] = []
    for item in content:
        if CACHE_POINT not in item or (kept and CACHE_POINT not in kept[-1]):
            kept.append(item)
    return kept


def _drop_status(message: JsonObject, report: Report) -> JsonObject:
    """BED-09: some models reject the `status` of tool results."""
    with_status = [item for item in message["content"] if "status" in (item.get("toolResult") or {})]
    if not with_status:
        return message
    why = "`status` of tool results dropped: the model rejects it"
    report.add("dropped", why, subject="status", fault="projection")
    content = [
        {**item, "toolResult": {key: value for key, value in item["toolResult"].items() if key != "status"}}
        if "toolResult" in item
        else item
        for item in message["content"]
    ]
    return {**message, "content": content}


def _render_system(system: Sequence[Text]) -> list[JsonObject]:
    rendered: list[JsonObject] = []
    for text in system:
        # BED-08
        if not text.text.strip():
            continue
        original = intact_fragment(text.native, API)
        rendered += [{"text": text.text}] if original is None else split_fragment(original)
    return rendered


def _render_same_api(
    transcript: Transcript, context: RenderContext, messages: list[JsonObject], tools: list[JsonObject]
) -> JsonObject:
    """Return the original body with only the changes merged into it."""
    request = transcript.request
    fragment: Mapping[str, Any] = request.native.fragment if request.native is not None else {}
    before, after = render_changes(render_options, transcript, context, DEFAULT_MODEL, has_tools=bool(tools))
    model = {"modelId": transcript.model} if transcript.model is not None else {}
    body = merge_changes(fragment, {"modelId": request.model}, model)
    for key in ("modelId", "toolConfig"):
        if body.get(key) is None:
            body.pop(key, None)
    for key in sorted(body.keys() - request_keys()):
        del body[key]
        context.report.add("dropped", f"`{key}` dropped: not a field of Converse requests", subject=key)
    for key in _NESTED:
        inner = object_or_none(fragment.get(key)) or {}
        if before.get(key) != after.get(key):
            inner = merge_changes(inner, before.get(key, {}), after.get(key, {}))
        if key == MODEL_FIELDS and _model_family(request.model) != _model_family(transcript.model):
            inner = _replace_model_fields(inner, after.get(key, {}), context.report)
        if key == MODEL_FIELDS and request.options.reasoning != transcript.options.reasoning:
            inner = {name: value for name, value in inner.items() if name != "reasoning_config"}
        if inner != (object_or_none(fragment.get(key)) or {}):
            set_or_remove(body, key, inner)
    blank = any(not text.text.strip() for text in transcript.system)
    malformed = "system" in fragment and not isinstance(fragment["system"], list)
    if blank or malformed or transcript.system != request.system:
        set_or_remove(body, "system", _render_system(transcript.system))
    _merge_tools(body, tools, before.get("toolChoice"), after.get("toolChoice"))
    body["messages"] = messages
    return body


def _model_family(model: str | None) -> Model:
    return Model("", parse_model(model or DEFAULT_MODEL).family)


def _replace_model_fields(inner: JsonObject, after: JsonObject, report: Report) -> JsonObject:
    """Replace the model-specific fields when the model family changes; report each dropped one."""
    for key in sorted(inner.keys() - after.keys()):
        message = f"`{key}` dropped: a field for another model family"
        report.add("dropped", message, subject=key, fault="projection", level=field_level(key))
    return dict(after)


def _merge_tools(body: JsonObject, tools: list[JsonObject], before: Any, after: Any) -> None:
    original = object_or_none(body.get("toolConfig"))
    config: JsonObject = dict(original or {})
    if tools != _drop_stray_cache_points(config.get("tools") or []):
        config["tools"] = tools
    if before != after:
        set_or_remove(config, "toolChoice", after)
    if not tools:
        config = {}
    if config != (original or {}) or (original is not None and not config):
        set_or_remove(body, "toolConfig", config)
