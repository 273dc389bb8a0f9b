"""What OpenAI's two APIs share: which models take what, bytes and URLs of media, and error bodies."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from typing import Any, cast

import msgspec

from segue.canonical.blocks import Media, Native
from segue.canonical.jsontext import write_text
from segue.canonical.request import Effort, Options
from segue.models import Model
from segue.render.report import Report
from segue.wire.base import ApiError, Fetch
from segue.wire.effort import effort_of
from segue.wire.fields import JsonObject, object_or_none, string_or_none

__all__ = [
    "AUDIO_FORMATS",
    "AUDIO_TYPES",
    "TOOL_KEYS",
    "data_of",
    "data_url",
    "fetched",
    "fit_to_model",
    "is_gpt",
    "is_openai",
    "left_out",
    "parse_error",
    "reasons",
    "render_error",
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
    return native is not None and native.api in ("openai-chat", "openai-responses")


def left_out(options: Options, report: Report, why: str, *names: str) -> Options:
    """The options without these; each that was set is reported."""
    said = [name for name in names if getattr(options, name) is not None]
    for name in said:
        report.add("adjusted", f"{name} is left out: {why}", subject=name)
    return msgspec.structs.replace(options, **dict.fromkeys(said)) if said else options


def fit_to_model(options: Options, model: Model, report: Report) -> Options:
    """Without what OpenAI's models refuse, by generation. A model that can't be told is given all."""
    if reasons(model):
        options = left_out(options, report, "reasoning models refuse it", *_REFUSED_WHILE_REASONING)
    asked = options.reasoning
    if asked is None or model.family != "gpt" or not model.version:
        return options
    if asked.enabled is False or asked.effort == "none":
        # Older models have no word for it: those that do not reason need none, the others always do.
        nameable = is_gpt(model) and model.at_least(5, 1)
        return options if nameable else msgspec.structs.replace(options, reasoning=None)
    if not reasons(model):
        return left_out(options, report, "this model does not reason", "reasoning")
    effort = asked.effort or (None if asked.budget is None else effort_of(asked.budget))
    known = _efforts(model)
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


# --------------------------------------------------------------------------------------------------------------- media

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


def parse_error(status: int, body: Mapping[str, Any]) -> ApiError:
    """An error, also where a server leaves the envelope out, lists what it found, or says no more than a sentence."""
    inner = body.get("error", body)
    said = object_or_none(inner) or {"message": inner}
    message = said.get("message") or said.get("detail")
    code, param = said.get("code"), said.get("param")
    usual = _ERROR_KINDS.get(status, "server_error" if status >= 500 else "invalid_request_error")
    return ApiError(
        status,
        _sentence(message) or "the provider gave no reason",
        kind=string_or_none(said.get("type")) or usual,
        code=None if code is None else str(code),
        param=None if param is None else str(param),
    )


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
