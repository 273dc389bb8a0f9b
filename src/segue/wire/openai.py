"""What OpenAI's two APIs share: which models take what, bytes and URLs of media, and error bodies."""

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
    """Whether the model is known to reason; those named `…-chat-latest` do not."""
    if model.family != "gpt" or model.name.endswith("chat-latest"):
        return False
    return model.line == "o" or model.at_least(5)


def is_openai(native: Native | None) -> bool:
    """Whether something was said to OpenAI already: its two APIs take the same schemas."""
    return native is not None and native.api in APIS


# What an option is called in reports where that is not the canonical name.
_KEYS = {"parallel": "parallel_tool_calls"}


def left_out(options: Options, report: Report, why: str, *names: str) -> Options:
    """The options without these; each that was set is reported."""
    said = [name for name in names if getattr(options, name) is not None]
    for name in said:
        key = _KEYS.get(name, name)
        report.add("adjusted", f"{key} is left out: {why}", subject=key)
    return msgspec.structs.replace(options, **dict.fromkeys(said)) if said else options


def fit_to_model(options: Options, model: Model, report: Report) -> Options:
    """Without what OpenAI's models refuse, by generation. What nobody knows of a model is not kept from it."""
    options = fit_user(options, OPENAI_USERS, report)
    if reasons(model):
        options = left_out(options, report, "reasoning models refuse it", *_REFUSED_WHILE_REASONING)
    asked = options.reasoning
    if asked is None:
        return options
    if asked.enabled is False or asked.effort == "none":
        return _switched_off(options, model, report)
    if _never_reasons(model):
        return left_out(options, report, "this model does not reason", "reasoning")
    return _with_effort(options, asked, model, report)


def _never_reasons(model: Model) -> bool:
    return model.family == "llama" or (model.family == "gpt" and bool(model.version) and not reasons(model))


def _switched_off(options: Options, model: Model, report: Report) -> Options:
    """Only newer models have the effort `none`. Those that never reason need no word for it."""
    if _never_reasons(model):
        return msgspec.structs.replace(options, reasoning=None)
    if not model.name or (is_gpt(model) and model.at_least(5, 1)):
        return options
    why = "this model always reasons" if reasons(model) else "not every model can be told not to reason"
    return left_out(options, report, why, "reasoning")


def _with_effort(options: Options, asked: Reasoning, model: Model, report: Report) -> Options:
    effort = asked.effort or (None if asked.budget is None else effort_of(asked.budget))
    if effort == "none":
        off = msgspec.structs.replace(asked, enabled=False, effort=effort, budget=None)
        return _switched_off(msgspec.structs.replace(options, reasoning=off), model, report)
    unasked = reasons(model) and not (is_gpt(model) and model.at_least(5, 1))
    if effort is None and asked.enabled and not asked.adaptive and not unasked:
        report.add("adjusted", "reasoning is switched on by an effort here: medium is asked for", subject="reasoning")
        return msgspec.structs.replace(options, reasoning=msgspec.structs.replace(asked, effort="medium"))
    known = _efforts(model) if reasons(model) else _STEPS
    if effort is None or effort in known:
        return options
    nearest = next((step for step in reversed(known) if _STEPS.index(step) < _STEPS.index(effort)), known[0])
    report.add("adjusted", f"this model has no effort {effort}: {nearest} is asked for", subject="reasoning")
    return msgspec.structs.replace(options, reasoning=msgspec.structs.replace(asked, effort=nearest))


def with_effort(options: Options, report: Report) -> Options:
    """The options with a budget said as an effort, where there is no word for tokens."""
    asked = options.reasoning
    if asked is None or asked.budget is None or asked.effort is not None or asked.enabled is False:
        return options
    effort = effort_of(asked.budget)
    report.add("adjusted", f"a budget of {asked.budget} tokens is said as effort {effort}", subject="reasoning")
    return msgspec.structs.replace(options, reasoning=msgspec.structs.replace(asked, effort=effort))


def _efforts(model: Model) -> tuple[Effort, ...]:
    if not is_gpt(model):
        return _STEPS[1:4]
    if not model.at_least(5, 1):
        return _STEPS[:4]
    return _STEPS[1:] if model.at_least(5, 6) else _STEPS[1:5] if model.at_least(5, 2) else _STEPS[1:4]


# --------------------------------------------------------------------------------------------------------------- tools

# All in one object, or under a key of their kind, as the two APIs have it.
_DETAILS = frozenset({"name", "description", "parameters", "strict", "format"})
TOOL_KEYS = _DETAILS | {"type"} | {f"{kind}.{key}" for kind in ("function", "custom") for key in _DETAILS}


# ------------------------------------------------------------------------------------------------------------- options

# What both APIs take and nobody else does, by the type of its value.
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
KINDRED = {word: word for word in _KINDRED}


def parse_kindred(body: Mapping[str, Any]) -> JsonObject | None:
    """The options that only OpenAI has; `body` has all of them at its top."""
    said = {word: body[word] for word, kind in _KINDRED.items() if isinstance(body.get(word), kind)}
    return said or None


def render_kindred(options: Options, usual: str) -> JsonObject:
    """The same for the other API. `usual` is the key of a user who was named to a third one."""
    said = dict(options.kindred or {})
    if options.user is None:
        return {word: value for word, value in said.items() if word not in ("user", "safety_identifier")}
    leading = next((key for key in ("safety_identifier", "user") if key in said), usual)
    return {**said, leading: options.user}


# --------------------------------------------------------------------------------------------------------------- media

APIS = frozenset({"openai-chat", "openai-responses"})


def detail_of(detail: object) -> JsonObject | None:
    """How closely a picture is to be looked at, where that is not left to the model."""
    return {"detail": detail} if detail in ("low", "high", "original") else None


def has_file(media: Media) -> bool:
    """Whether OpenAI holds the file."""
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
    """Base64 and media type, fetched where only a URL is known and the caller gave a way to."""
    if media.data is not None or media.url is None or fetch is None:
        return media.data, media.mime
    content, mime = fetch(media.url)
    return b64encode(content).decode(), media.mime or mime


# -------------------------------------------------------------------------------------------------------------- errors

_ERROR_KINDS = {401: "authentication_error", 403: "permission_error", 404: "not_found_error", 429: "rate_limit_error"}
# What a code says where no status does: a reply that failed bears an error without one.
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
    """An error, also where a server leaves the envelope out, lists what it found, or says no more than a sentence."""
    inner = body.get("error", body)
    said = object_or_none(inner) or {"message": inner}
    message = said.get("message") or said.get("detail")
    code, param = said.get("code"), said.get("param")
    status = status or _CODES.get(str(code), code if isinstance(code, int) and 400 <= code < 600 else 0)
    usual = _ERROR_KINDS.get(status, "server_error" if status >= 500 else "invalid_request_error")
    return ApiError(
        status,
        _sentence(message) or "the provider gave no reason",
        kind=string_or_none(said.get("type")) or usual,
        code=None if code is None else str(code),
        param=None if param is None else str(param),
        details=_details(said.get("details")),
    )


def _details(found: object) -> tuple[JsonObject, ...]:
    listed = cast("list[object]", found) if isinstance(found, list) else []
    return tuple(detail for detail in map(object_or_none, listed) if detail is not None)


def _sentence(message: object) -> str:
    """What a message says: itself, or of each finding in a list of them the place and the reason."""
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
