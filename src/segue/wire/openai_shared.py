"""Shared by OpenAI's two APIs: options by model, vendor options, media data, and error bodies."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal, cast

import msgspec

from segue.canonical.blocks import Media, Native
from segue.canonical.json import encode_json_text
from segue.canonical.request import Effort, Options, Reasoning, ResponseFormat, Tool, ToolChoice
from segue.errors import InputError
from segue.models import Model
from segue.render.ranges import BodyRange
from segue.render.report import Report
from segue.wire.base import ApiError, Fetch
from segue.wire.json_values import (
    JsonObject,
    object_or_none,
    objects_in,
    optional_boolean,
    optional_object,
    optional_schema,
    optional_string,
    string_or_none,
)
from segue.wire.options import OPENAI_USER_PATTERN, drop_options, effort_for_budget, hash_invalid_user_id

# -------------------------------------------------------------------------------------------------------------- models

_EFFORTS: tuple[Effort, ...] = ("minimal", "low", "medium", "high", "xhigh", "max")
OPENAI_RANGES: Mapping[str, tuple[float, float]] = {
    "temperature": (0, 2),
    "top_p": (0, 1),
    "presence_penalty": (-2, 2),
    "frequency_penalty": (-2, 2),
}
TOP_LOGPROBS = BodyRange(("top_logprobs",), 0, 20)
_REJECTED_WHILE_REASONING = ("temperature", "top_p", "presence_penalty", "frequency_penalty", "stop")


def is_gpt(model: Model) -> bool:
    return model.family == "gpt" and model.line != "o"


def is_reasoning_model(model: Model) -> bool:
    """Return whether the model is a known reasoning model; those named `…-chat-latest` are not."""
    if model.family != "gpt" or model.name.endswith("chat-latest"):
        return False
    return model.line == "o" or model.at_least(5)


def is_openai_native(native: Native | None) -> bool:
    """Return whether a fragment comes from one of OpenAI's two APIs, which accept the same schemas."""
    return native is not None and native.api in OPENAI_APIS


def fit_options_to_model(options: Options, model: Model, report: Report) -> Options:
    """Drop the options that OpenAI rejects for this model; for an unknown model none."""
    options = hash_invalid_user_id(options, OPENAI_USER_PATTERN, report)
    if is_reasoning_model(model):
        options = drop_options(options, report, "reasoning models reject it", *_REJECTED_WHILE_REASONING)
    reasoning = options.reasoning
    if reasoning is None:
        return options
    if reasoning.is_off:
        return _disable_reasoning(options, model, report)
    if _cannot_reason(model):
        return drop_options(options, report, "the model does not support reasoning", "reasoning")
    return _fit_effort(options, reasoning, model, report)


def _cannot_reason(model: Model) -> bool:
    return model.family == "llama" or (model.family == "gpt" and bool(model.version) and not is_reasoning_model(model))


def _disable_reasoning(options: Options, model: Model, report: Report) -> Options:
    """Disable reasoning with the effort `none` where the model has it; models without reasoning get no field."""
    if _cannot_reason(model):
        return msgspec.structs.replace(options, reasoning=None)
    if not model.name or (is_gpt(model) and model.at_least(5, 1)):
        return options
    reason = (
        "reasoning cannot be disabled on this model"
        if is_reasoning_model(model)
        else "not every model can disable reasoning"
    )
    return drop_options(options, report, reason, "reasoning")


def _fit_effort(options: Options, reasoning: Reasoning, model: Model, report: Report) -> Options:
    effort = reasoning.effort or (None if reasoning.budget is None else effort_for_budget(reasoning.budget))
    if effort == "none":
        disabled = msgspec.structs.replace(reasoning, enabled=False, effort=effort, budget=None)
        return _disable_reasoning(msgspec.structs.replace(options, reasoning=disabled), model, report)
    reasons_by_default = is_reasoning_model(model) and not (is_gpt(model) and model.at_least(5, 1))
    is_on = reasoning.enabled or reasoning.visible
    if effort is None and is_on and not reasons_by_default:
        message = "reasoning effort set to medium: the target enables reasoning by an effort"
        report.add("adjusted", message, subject="reasoning")
        return msgspec.structs.replace(options, reasoning=msgspec.structs.replace(reasoning, effort="medium"))
    supported = _supported_efforts(model) if is_reasoning_model(model) else _EFFORTS
    if effort is None or effort in supported:
        return options
    nearest = next(
        (step for step in reversed(supported) if _EFFORTS.index(step) < _EFFORTS.index(effort)), supported[0]
    )
    message = f"reasoning effort set to {nearest}: the model does not support {effort}"
    report.add("adjusted", message, subject="reasoning")
    return msgspec.structs.replace(options, reasoning=msgspec.structs.replace(reasoning, effort=nearest))


MODES: tuple[Literal["auto", "none", "required"], ...] = ("auto", "none", "required")


def parse_mode(value: object) -> ToolChoice | None:
    """Parse a tool choice that is a text; None for any other value."""
    return next((ToolChoice(mode) for mode in MODES if mode == value), None)


def require_mode(value: object) -> ToolChoice:
    mode = parse_mode(value)
    if mode is None:
        raise InputError(f"one of {', '.join(MODES)}, or an object, was expected", path="tool_choice")
    return mode


def find_custom_names(tools: Iterable[Tool]) -> frozenset[str]:
    return frozenset(tool.name for tool in tools if tool.kind == "custom")


def drop_undeclared_choice(options: Options, declared: frozenset[str], report: Report) -> Options:
    """Drop a choice of tools where none are declared, and that of a tool which is not."""
    if not declared:
        options = drop_options(options, report, "no tools are declared", "tool_choice", "parallel")
    choice = options.tool_choice
    if choice is not None and choice.mode == "tool" and choice.name not in declared:
        return drop_options(options, report, f"the tool {choice.name} is not declared", "tool_choice")
    return options


def parse_format(kind: str | None, fields: JsonObject | None, path: str) -> ResponseFormat | None:
    """Parse a response format of this type; the `fields` of a schema are at `path`."""
    match kind:
        case "text":
            return ResponseFormat("text")
        case "json_object":
            return ResponseFormat("json")
        case "json_schema" if fields is not None:
            return ResponseFormat(
                "schema",
                optional_schema(fields.get("schema"), f"{path}.schema"),
                optional_string(fields.get("name"), f"{path}.name"),
                optional_boolean(fields.get("strict"), f"{path}.strict"),
            )
        case _:
            return None


def convert_budget_to_effort(options: Options, report: Report) -> Options:
    """Convert a reasoning budget to an effort, for targets without budgets."""
    reasoning = options.reasoning
    if reasoning is None or reasoning.budget is None or reasoning.effort is not None or reasoning.enabled is False:
        return options
    effort = effort_for_budget(reasoning.budget)
    message = f"reasoning budget of {reasoning.budget} tokens converted to effort {effort}"
    report.add("adjusted", message, subject="reasoning")
    return msgspec.structs.replace(options, reasoning=msgspec.structs.replace(reasoning, effort=effort))


def _supported_efforts(model: Model) -> tuple[Effort, ...]:
    if not is_gpt(model):
        return _EFFORTS[1:4]
    if not model.at_least(5, 1):
        return _EFFORTS[:4]
    return _EFFORTS[1:] if model.at_least(5, 6) else _EFFORTS[1:5] if model.at_least(5, 2) else _EFFORTS[1:4]


# --------------------------------------------------------------------------------------------------------------- tools

# Flat (Responses), or under a key of their kind (Chat).
_TOOL_FIELDS = frozenset({"name", "description", "parameters", "strict", "format"})
TOOL_KEYS = _TOOL_FIELDS | {"type"} | {f"{kind}.{key}" for kind in ("function", "custom") for key in _TOOL_FIELDS}


# ------------------------------------------------------------------------------------------------------------- options

# Options that only OpenAI's two APIs have, with the parser of the value.
_VENDOR_OPTION_PARSERS: dict[str, Callable[[object, str], Any]] = {
    "store": optional_boolean,
    "metadata": optional_object,
    "service_tier": optional_string,
    "prompt_cache_key": optional_string,
    "prompt_cache_retention": optional_string,
    "verbosity": optional_string,
    "user": optional_string,
    "safety_identifier": optional_string,
}
VENDOR_OPTIONS = {name: name for name in _VENDOR_OPTION_PARSERS}


def parse_vendor_options(body: Mapping[str, Any]) -> JsonObject | None:
    """Parse the vendor options at the top level of a body."""
    values = {
        name: parse(value, name)
        for name, parse in _VENDOR_OPTION_PARSERS.items()
        if (value := body.get(name)) is not None
    }
    return values or None


def render_vendor_options(options: Options, user_key: str) -> JsonObject:
    """Render the vendor options. `user_key` is the key for a user id that came from another vendor's API."""
    fields = dict(options.vendor_options or {})
    if options.user is None:
        return {name: value for name, value in fields.items() if name not in ("user", "safety_identifier")}
    user_field = next((key for key in ("safety_identifier", "user") if key in fields), user_key)
    return {**fields, user_field: options.user}


# --------------------------------------------------------------------------------------------------------------- media

OPENAI_APIS = frozenset({"openai-chat", "openai-responses"})


def image_detail(detail: object) -> JsonObject | None:
    """Return the `detail` field of an image; None for `auto` and unknown values."""
    return {"detail": detail} if detail in ("low", "high", "original") else None


def is_openai_file(media: Media) -> bool:
    """Return whether the media is a file uploaded to OpenAI."""
    return media.file_id is not None and is_openai_native(media.native)


AUDIO_TYPES = {"wav": "audio/wav", "mp3": "audio/mpeg"}
AUDIO_FORMATS = {"audio/wav": "wav", "audio/x-wav": "wav", "audio/wave": "wav", "audio/mpeg": "mp3", "audio/mp3": "mp3"}


def split_data_url(url: str) -> tuple[str | None, str | None]:
    """Return the media type and base64 data of a data URL."""
    if not url.startswith("data:"):
        return None, None
    head, comma, data = url.partition(",")
    if not comma or not head.endswith(";base64"):
        return None, None
    return head[len("data:") :].split(";", 1)[0] or None, data


def data_url(mime: str, data: str) -> str:
    return f"data:{mime};base64,{data}"


def fetch_media(media: Media, fetch: Fetch | None) -> tuple[str | None, str | None]:
    """Return base64 data and media type; a URL is fetched if the caller passed `fetch`."""
    if media.data is not None or media.url is None or fetch is None:
        return media.data, media.mime
    content, mime = fetch(media.url)
    return b64encode(content).decode(), media.mime or mime


# -------------------------------------------------------------------------------------------------------------- errors

_ERROR_KINDS = {401: "authentication_error", 403: "permission_error", 404: "not_found_error", 429: "rate_limit_error"}
# HTTP status by error code, for errors without a status (in a failed reply).
_STATUS_BY_CODE = {
    "server_error": 500,
    "internal_error": 500,
    "rate_limit_exceeded": 429,
    "insufficient_quota": 429,
    "invalid_api_key": 401,
    "model_not_found": 404,
    "invalid_prompt": 400,
    "context_length_exceeded": 400,
}


def parse_error(status: int, body: Mapping[str, Any]) -> ApiError:
    """Parse an error body, with or without the `error` object; the message may be a list of problems."""
    inner = body.get("error", body)
    fields = object_or_none(inner) or {"message": inner}
    message = fields.get("message") or fields.get("detail")
    code, param = fields.get("code"), fields.get("param")
    status = status or _STATUS_BY_CODE.get(str(code), code if isinstance(code, int) and 400 <= code < 600 else 0)
    default_kind = _ERROR_KINDS.get(status, "server_error" if status >= 500 else "invalid_request_error")
    return ApiError(
        status,
        _message_text(message) or "the provider gave no reason",
        kind=string_or_none(fields.get("type")) or default_kind,
        code=None if code is None else str(code),
        param=None if param is None else str(param),
        details=_parse_details(fields.get("details")),
    )


def _parse_details(value: object) -> tuple[JsonObject, ...]:
    return tuple(objects_in(value))


def _message_text(message: object) -> str:
    """Return the text of a message; for a list of problems, the path and reason of each."""
    problem = object_or_none(message)
    if problem is not None:
        return _message_text(problem.get("detail")) if "detail" in problem else _problem_text(problem)
    if isinstance(message, list):
        return "; ".join(map(_message_text, cast("list[object]", message)))
    return "" if message is None else str(message)


def _problem_text(problem: JsonObject) -> str:
    steps = cast("list[object]", problem["loc"]) if isinstance(problem.get("loc"), list) else []
    path = ".".join(str(step) for step in steps if step != "body")
    reason = str(problem.get("msg") or problem.get("message") or encode_json_text(problem))
    return f"{path}: {reason}" if path else reason


def render_error(error: ApiError) -> JsonObject:
    return {"error": {"message": error.message, "type": error.kind, "param": error.param, "code": error.code}}
