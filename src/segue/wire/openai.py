"""Shared by OpenAI's two APIs: options by model, vendor options, media data, and error bodies."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from typing import Any, cast

import msgspec

from segue.canonical.blocks import Media, Native
from segue.canonical.jsontext import write_text
from segue.canonical.request import Effort, Options, Reasoning
from segue.models import Model
from segue.render.report import Report
from segue.wire.base import ApiError, Fetch
from segue.wire.effort import effort_of
from segue.wire.fields import JsonObject, object_or_none, string_or_none
from segue.wire.users import OPENAI_USERS, fit_user

__all__ = [
    "APIS",
    "AUDIO_FORMATS",
    "AUDIO_TYPES",
    "KINDRED",
    "TOOL_KEYS",
    "data_of",
    "data_url",
    "detail_of",
    "fetched",
    "fit_to_model",
    "has_file",
    "is_gpt",
    "is_openai",
    "left_out",
    "parse_error",
    "parse_kindred",
    "reasons",
    "render_error",
    "render_kindred",
    "with_effort",
]


# -------------------------------------------------------------------------------------------------------------- models

_STEPS: tuple[Effort, ...] = ("minimal", "low", "medium", "high", "xhigh", "max")
_REFUSED_WHILE_REASONING = ("temperature", "top_p", "presence_penalty", "frequency_penalty", "stop")


def is_gpt(model: Model) -> bool:
    return model.family == "gpt" and model.line != "o"


def reasons(model: Model) -> bool:
    """Whether the model is a known reasoning model; those named `…-chat-latest` are not."""
    if model.family != "gpt" or model.name.endswith("chat-latest"):
        return False
    return model.line == "o" or model.at_least(5)


def is_openai(native: Native | None) -> bool:
    """Whether a fragment comes from one of OpenAI's two APIs, which accept the same schemas."""
    return native is not None and native.api in APIS


# Names of options in reports where they differ from the canonical name.
_KEYS = {"parallel": "parallel_tool_calls"}


def left_out(options: Options, report: Report, why: str, *names: str) -> Options:
    """The options without these names; each that was set is reported with the reason."""
    present = [name for name in names if getattr(options, name) is not None]
    for name in present:
        key = _KEYS.get(name, name)
        report.add("adjusted", f"{key} dropped: {why}", subject=key)
    return msgspec.structs.replace(options, **dict.fromkeys(present)) if present else options


def fit_to_model(options: Options, model: Model, report: Report) -> Options:
    """The options without those that OpenAI rejects for this model; for unknown models nothing is dropped."""
    options = fit_user(options, OPENAI_USERS, report)
    if reasons(model):
        options = left_out(options, report, "reasoning models reject it", *_REFUSED_WHILE_REASONING)
    reasoning = options.reasoning
    if reasoning is None:
        return options
    if reasoning.enabled is False or reasoning.effort == "none":
        return _switched_off(options, model, report)
    if _never_reasons(model):
        return left_out(options, report, "the model does not support reasoning", "reasoning")
    return _with_effort(options, reasoning, model, report)


def _never_reasons(model: Model) -> bool:
    return model.family == "llama" or (model.family == "gpt" and bool(model.version) and not reasons(model))


def _switched_off(options: Options, model: Model, report: Report) -> Options:
    """Disables reasoning with the effort `none` where the model has it; models without reasoning get no field."""
    if _never_reasons(model):
        return msgspec.structs.replace(options, reasoning=None)
    if not model.name or (is_gpt(model) and model.at_least(5, 1)):
        return options
    why = "reasoning cannot be disabled on this model" if reasons(model) else "not every model can disable reasoning"
    return left_out(options, report, why, "reasoning")


def _with_effort(options: Options, reasoning: Reasoning, model: Model, report: Report) -> Options:
    effort = reasoning.effort or (None if reasoning.budget is None else effort_of(reasoning.budget))
    if effort == "none":
        off = msgspec.structs.replace(reasoning, enabled=False, effort=effort, budget=None)
        return _switched_off(msgspec.structs.replace(options, reasoning=off), model, report)
    by_default = reasons(model) and not (is_gpt(model) and model.at_least(5, 1))
    if effort is None and reasoning.enabled and not reasoning.adaptive and not by_default:
        report.add(
            "adjusted",
            "reasoning effort set to medium: the target enables reasoning by its effort",
            subject="reasoning",
        )
        return msgspec.structs.replace(options, reasoning=msgspec.structs.replace(reasoning, effort="medium"))
    known = _efforts(model) if reasons(model) else _STEPS
    if effort is None or effort in known:
        return options
    nearest = next((step for step in reversed(known) if _STEPS.index(step) < _STEPS.index(effort)), known[0])
    report.add(
        "adjusted", f"reasoning effort set to {nearest}: the model does not support {effort}", subject="reasoning"
    )
    return msgspec.structs.replace(options, reasoning=msgspec.structs.replace(reasoning, effort=nearest))


def with_effort(options: Options, report: Report) -> Options:
    """The options with a reasoning budget converted to an effort, for targets without budgets."""
    reasoning = options.reasoning
    if reasoning is None or reasoning.budget is None or reasoning.effort is not None or reasoning.enabled is False:
        return options
    effort = effort_of(reasoning.budget)
    report.add(
        "adjusted", f"reasoning budget of {reasoning.budget} tokens converted to effort {effort}", subject="reasoning"
    )
    return msgspec.structs.replace(options, reasoning=msgspec.structs.replace(reasoning, effort=effort))


def _efforts(model: Model) -> tuple[Effort, ...]:
    if not is_gpt(model):
        return _STEPS[1:4]
    if not model.at_least(5, 1):
        return _STEPS[:4]
    return _STEPS[1:] if model.at_least(5, 6) else _STEPS[1:5] if model.at_least(5, 2) else _STEPS[1:4]


# --------------------------------------------------------------------------------------------------------------- tools

# Flat (Responses), or under a key of their kind (Chat).
_DETAILS = frozenset({"name", "description", "parameters", "strict", "format"})
TOOL_KEYS = _DETAILS | {"type"} | {f"{kind}.{key}" for kind in ("function", "custom") for key in _DETAILS}


# ------------------------------------------------------------------------------------------------------------- options

# Options that only OpenAI's two APIs have, with the type of the value.
_KINDRED: dict[str, type] = {
    "store": bool,
    "metadata": dict,
    "service_tier": str,
    "prompt_cache_key": str,
    "prompt_cache_retention": str,
    "verbosity": str,
    "user": str,
    "safety_identifier": str,
}
KINDRED = {name: name for name in _KINDRED}


def parse_kindred(body: Mapping[str, Any]) -> JsonObject | None:
    """The vendor options of a body, which has all of them at its top level."""
    found = {name: body[name] for name, kind in _KINDRED.items() if isinstance(body.get(name), kind)}
    return found or None


def render_kindred(options: Options, usual: str) -> JsonObject:
    """The vendor options for a body. `user_key` is the key for a user id that came from another vendor's API."""
    fields = dict(options.kindred or {})
    if options.user is None:
        return {name: value for name, value in fields.items() if name not in ("user", "safety_identifier")}
    leading = next((key for key in ("safety_identifier", "user") if key in fields), usual)
    return {**fields, leading: options.user}


# --------------------------------------------------------------------------------------------------------------- media

APIS = frozenset({"openai-chat", "openai-responses"})


def detail_of(detail: object) -> JsonObject | None:
    """The `detail` of an image, where it is not left to the model."""
    return {"detail": detail} if detail in ("low", "high", "original") else None


def has_file(media: Media) -> bool:
    """Whether the media is a file uploaded to OpenAI."""
    return media.file_id is not None and is_openai(media.native)


AUDIO_TYPES = {"wav": "audio/wav", "mp3": "audio/mpeg"}
AUDIO_FORMATS = {
    "audio/wav": "wav",
    "audio/x-wav": "wav",
    "audio/wave": "wav",
    "audio/mpeg": "mp3",
    "audio/mp3": "mp3",
}


def data_of(url: str) -> tuple[str | None, str | None]:
    """Media type and base64 of a data URL."""
    if not url.startswith("data:"):
        return None, None
    head, comma, data = url.partition(",")
    if not comma or not head.endswith(";base64"):
        return None, None
    return head[len("data:") :].split(";", 1)[0] or None, data


def data_url(mime: str, data: str) -> str:
    return f"data:{mime};base64,{data}"


def fetched(media: Media, fetch: Fetch | None) -> tuple[str | None, str | None]:
    """Base64 data and media type; a URL is fetched where the caller gave `fetch`."""
    if media.data is not None or media.url is None or fetch is None:
        return media.data, media.mime
    content, mime = fetch(media.url)
    return b64encode(content).decode(), media.mime or mime


# -------------------------------------------------------------------------------------------------------------- errors

_ERROR_KINDS = {401: "authentication_error", 403: "permission_error", 404: "not_found_error", 429: "rate_limit_error"}
# HTTP status by error code, for errors without a status (in a failed reply).
_CODES = {
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
    """Parses an error, also one without envelope, with a list of problems, or of only a string."""
    inner = body.get("error", body)
    fields = object_or_none(inner) or {"message": inner}
    message = fields.get("message") or fields.get("detail")
    code, param = fields.get("code"), fields.get("param")
    status = status or _CODES.get(str(code), code if isinstance(code, int) and 400 <= code < 600 else 0)
    usual = _ERROR_KINDS.get(status, "server_error" if status >= 500 else "invalid_request_error")
    return ApiError(
        status,
        _sentence(message) or "the provider gave no reason",
        kind=string_or_none(fields.get("type")) or usual,
        code=None if code is None else str(code),
        param=None if param is None else str(param),
        details=_details(fields.get("details")),
    )


def _details(found: object) -> tuple[JsonObject, ...]:
    listed = cast("list[object]", found) if isinstance(found, list) else []
    return tuple(detail for detail in map(object_or_none, listed) if detail is not None)


def _sentence(message: object) -> str:
    """The text of a message; of a list of problems, path and reason of each."""
    found = object_or_none(message)
    if found is not None:
        return _sentence(found.get("detail")) if "detail" in found else _finding(found)
    if isinstance(message, list):
        return "; ".join(map(_sentence, cast("list[object]", message)))
    return "" if message is None else str(message)


def _finding(found: JsonObject) -> str:
    place = cast("list[object]", found["loc"]) if isinstance(found.get("loc"), list) else []
    where = ".".join(str(step) for step in place if step != "body")
    reason = str(found.get("msg") or found.get("message") or write_text(found))
    return f"{where}: {reason}" if where else reason


def render_error(error: ApiError) -> JsonObject:
    return {"error": {"message": error.message, "type": error.kind, "param": error.param, "code": error.code}}
