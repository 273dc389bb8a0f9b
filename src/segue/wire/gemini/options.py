"""`generationConfig` and `toolConfig` ⇄ `Options`.

`render_options` gives what the target model accepts. Same-API, the original and the new options are both rendered and
only the difference is merged into the body, so unchanged values stay as the client sent them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, cast

from segue.canonical.request import Options, ResponseFormat, ToolChoice
from segue.errors import InputError
from segue.models import Model, identify
from segue.render.report import Report
from segue.render.transcript import Transcript
from segue.wire.base import Projection
from segue.wire.gemini.fields import (
    JsonObject,
    both,
    int_at,
    items_of,
    laid,
    look,
    number_at,
    object_at,
    object_or_none,
    spelled,
    text_at,
)
from segue.wire.gemini.openapi import parse_schema
from segue.wire.gemini.thinking import parse_reasoning, render_reasoning
from segue.wire.gemini.traits import DEFAULT_MODEL, Traits, traits_of

__all__ = ["OPTION_KEYS", "fit_choice", "lay_options", "parse_options", "render_options"]

_STOP_LIMIT = 5
_HOTTEST = 2
# Options with the same value on both sides: API key, canonical field.
_PLAIN = (
    ("maxOutputTokens", "max_tokens"),
    ("temperature", "temperature"),
    ("topP", "top_p"),
    ("topK", "top_k"),
    ("seed", "seed"),
    ("presencePenalty", "presence_penalty"),
    ("frequencyPenalty", "frequency_penalty"),
)
_THINKING = frozenset(
    f"{outer}.{key}" for outer in both("thinkingConfig") for key in both("thinkingBudget", "thinkingLevel")
)
_CHOICE = frozenset(
    f"{outer}.{key}" for outer in both("functionCallingConfig") for key in both("mode", "allowedFunctionNames")
)
_CONFIG = _THINKING | both(
    *(key for key, _ in _PLAIN), "stopSequences", "responseMimeType", "responseSchema", "responseJsonSchema"
)
OPTION_KEYS = frozenset(
    f"{outer}.{inner}"
    for name, keys in (("generationConfig", _CONFIG), ("toolConfig", _CHOICE))
    for outer in both(name)
    for inner in keys
)
_JSON = "application/json"
# Only accepted by some models: removed when a same-API body changes its model.
_BY_MODEL = ("presencePenalty", "frequencyPenalty", "thinkingConfig")


# ------------------------------------------------------------------------------------------------------------------ in


def parse_options(body: Mapping[str, Any]) -> Options:
    """Values of a wrong type are not parsed; they stay in the native fragment of the body."""
    config = object_at(body, "generationConfig")
    return Options(
        max_tokens=int_at(config, "maxOutputTokens"),
        temperature=number_at(config, "temperature"),
        top_p=number_at(config, "topP"),
        top_k=_whole(number_at(config, "topK")),
        stop=_parse_stop(look(config, "stopSequences")),
        tool_choice=_parse_choice(object_at(object_at(body, "toolConfig"), "functionCallingConfig")),
        reasoning=parse_reasoning(object_at(config, "thinkingConfig")),
        response_format=_parse_format(config),
        seed=int_at(config, "seed"),
        presence_penalty=number_at(config, "presencePenalty"),
        frequency_penalty=number_at(config, "frequencyPenalty"),
    )


def _whole(value: float | int | None) -> int | None:
    return int(value) if value is not None and value == int(value) else None


def _parse_stop(value: object) -> tuple[str, ...] | None:
    items = cast("list[object]", value) if isinstance(value, list) else []
    texts = tuple(item for item in items if isinstance(item, str))
    return texts if texts and len(texts) == len(items) else None


def _parse_choice(config: JsonObject) -> ToolChoice | None:
    given = look(config, "mode")
    if not isinstance(given, str | None):
        raise InputError("a string was expected", path=f"toolConfig.functionCallingConfig.{spelled(config, 'mode')}")
    mode = (given or "").upper()
    names: Any = look(config, "allowedFunctionNames")
    for index, name in enumerate(cast("list[Any]", names) if isinstance(names, list) else [names] if names else []):
        if not isinstance(name, str):
            path = f"toolConfig.functionCallingConfig.{spelled(config, 'allowedFunctionNames')}"
            raise InputError("a string was expected", path=f"{path}[{index}]" if isinstance(names, list) else path)
    allowed = tuple(str(name) for name in cast("list[Any]", names)) if isinstance(names, list) and names else None
    match mode:
        case "AUTO" | "VALIDATED":
            return ToolChoice("auto", allowed=allowed if mode == "VALIDATED" else None)
        case "ANY" if allowed is not None and len(allowed) == 1:
            return ToolChoice("tool", allowed[0])
        case "ANY":
            return ToolChoice("required", allowed=allowed)
        case "NONE":
            return ToolChoice("none")
        case _:
            return None


def _parse_format(config: JsonObject) -> ResponseFormat | None:
    mime = text_at(config, "responseMimeType")
    schema = object_or_none(look(config, "responseJsonSchema"))
    if schema is None and (own := object_or_none(look(config, "responseSchema"))) is not None:
        schema = parse_schema(own)
    match mime:
        case "application/json":
            return ResponseFormat("json") if schema is None else ResponseFormat("schema", schema)
        case "text/x.enum" if schema is not None:
            # A bare enum value instead of JSON; other APIs have no equivalent.
            return ResponseFormat("schema", schema)
        case "text/plain":
            return ResponseFormat("text")
        case _:
            return None


# ----------------------------------------------------------------------------------------------------------------- out


def render_options(
    options: Options, model: Model, report: Report, *, declared: bool, spell: Callable[[str], str]
) -> JsonObject:
    """The fields in body order. `has_tools`: whether tools are declared; `project_name` maps tool names."""
    traits = traits_of(model)
    config: JsonObject = {}
    for key, field in _PLAIN:
        value = getattr(options, field)
        if value is not None and not (key in _BY_MODEL and _refuses_penalty(key, value, traits, report)):
            config[key] = value
    if config.get("temperature", 0) > _HOTTEST:
        report.add("adjusted", f"`temperature` set to {_HOTTEST} (maximum)", subject="temperature")
        config["temperature"] = _HOTTEST
    if options.stop:
        config["stopSequences"] = list(options.stop[:_STOP_LIMIT])
        if len(options.stop) > _STOP_LIMIT:
            report.add("adjusted", f"kept {_STOP_LIMIT} stop sequences (maximum)", subject="stop")
    config |= _render_format(options.response_format, traits, declared, report)
    thinking = render_reasoning(options.reasoning, traits, report)
    if thinking is not None:
        config["thinkingConfig"] = thinking
    choice = _render_choice(options.tool_choice, declared, report, spell)
    _report_unsayable(options, report)
    return {
        **({} if choice is None else {"toolConfig": {"functionCallingConfig": choice}}),
        **({"generationConfig": config} if config else {}),
    }


def _refuses_penalty(key: str, value: float, traits: Traits, report: Report) -> bool:
    if traits.penalties or not value:
        return False
    report.add("adjusted", f"`{key}` dropped: not supported by the model", subject=key)
    return True


def _report_unsayable(options: Options, report: Report) -> None:
    if options.parallel is False:
        why = "Gemini cannot disable parallel calls"
        report.add("adjusted", f"`parallel_tool_calls` dropped: {why}", subject="parallel_tool_calls")
    if options.user is not None:
        report.add("adjusted", "`user` dropped: Gemini has no such option", subject="user")
    if options.stream:
        report.add("adjusted", "`stream` dropped: Gemini selects streaming by URL", subject="stream")


def _render_format(wanted: ResponseFormat | None, traits: Traits, declared: bool, report: Report) -> JsonObject:
    if wanted is None or wanted.kind == "text":
        return {}
    if declared and not traits.json_beside_tools:
        report.add(
            "adjusted", "`response_format` dropped: not supported together with tools", subject="response_format"
        )
        return {}
    if wanted.kind == "json" or wanted.schema is None:
        return {"responseMimeType": _JSON}
    return {"responseMimeType": _JSON, "responseJsonSchema": wanted.schema}


def _render_choice(
    choice: ToolChoice | None, declared: bool, report: Report, spell: Callable[[str], str]
) -> JsonObject | None:
    if choice is None:
        return None
    if not declared:
        report.add("adjusted", "`tool_choice` dropped: no tools are declared", subject="tool_choice")
        return None
    match choice.mode:
        case "none":
            return {"mode": "NONE"}
        case "auto":
            return {"mode": "VALIDATED", **_allowed(choice, spell)} if choice.allowed else {"mode": "AUTO"}
        case "required":
            return {"mode": "ANY", **_allowed(choice, spell)}
        case "tool":
            return {"mode": "ANY", **({"allowedFunctionNames": [spell(choice.name)]} if choice.name else {})}


def _allowed(choice: ToolChoice, spell: Callable[[str], str]) -> JsonObject:
    return {"allowedFunctionNames": [spell(name) for name in choice.allowed]} if choice.allowed else {}


def lay_options(fragment: Mapping[str, Any], transcript: Transcript, render_context: Projection) -> JsonObject:
    """The body with changed options and model name merged into it."""
    request = transcript.request
    known, new = Report(), Report()
    before = render_options(
        request.options,
        identify(request.model or DEFAULT_MODEL),
        known,
        declared=bool(request.tools),
        spell=lambda name: name,
    )
    after = render_options(
        transcript.options,
        identify(transcript.model or DEFAULT_MODEL),
        new,
        declared=bool(transcript.tools),
        spell=render_context.names.render,
    )
    render_context.report.findings.extend(finding for finding in new.findings if finding not in known.findings)
    body = _laid_over(fragment, before, after)
    if "model" in fragment and transcript.model is not None:
        body["model"] = transcript.model
    if request.model != transcript.model and transcript.model is not None:
        _fit_to_model(body, after)
    return _without_bare_schema(body, fragment)


def _without_bare_schema(body: JsonObject, fragment: Mapping[str, Any]) -> JsonObject:
    """Drop the response schema if `responseMimeType` was removed."""
    key = spelled(fragment, "generationConfig")
    config = object_or_none(body.get(key))
    if config is None or look(config, "responseMimeType") or not text_at(object_at(fragment, key), "responseMimeType"):
        return body
    schemas = both("responseSchema", "responseJsonSchema")
    return {**body, key: {name: value for name, value in config.items() if name not in schemas}}


def _laid_over(fragment: Mapping[str, Any], before: JsonObject, after: JsonObject) -> JsonObject:
    """The fragment with the difference of two renderings merged into it, recursively, keeping its key style."""
    body = dict(fragment)
    for name in [*before, *(name for name in after if name not in before)]:
        old, new = before.get(name), after.get(name)
        if old == new:
            continue
        key = spelled(fragment, name)
        inner = object_or_none(fragment.get(key))
        if inner is not None and isinstance(old or {}, dict) and isinstance(new or {}, dict):
            new = _laid_over(inner, cast("JsonObject", old or {}), cast("JsonObject", new or {})) or None
        if new is None:
            body.pop(key, None)
        else:
            body[key] = new
    return body


def _fit_to_model(body: JsonObject, after: JsonObject) -> None:
    """Replace the model-specific options of the original body by those of the new model."""
    key = spelled(body, "generationConfig")
    config = object_or_none(body.get(key))
    if config is None:
        return
    rendered = object_at(after, "generationConfig")
    made = {name: value for name, value in config.items() if name not in both(*_BY_MODEL)}
    for name in _BY_MODEL:
        value: Any = rendered.get(name)
        include_thoughts = look(object_at(config, name), "includeThoughts")
        if name == "thinkingConfig" and include_thoughts is not None:
            value = {**object_at(rendered, name), "includeThoughts": include_thoughts}
        if value is not None:
            made[spelled(config, name)] = value
    if made != config:
        body[key] = made


# Tools that add functions which are not declared in the body.
_BRINGING = both("computerUse", "mcpServers")


def fit_choice(body: JsonObject, model: Model, report: Report) -> None:
    """Fit `toolConfig` to the model and to the declared functions (GEM-23, GEM-24)."""
    config = object_at(body, "toolConfig")
    choice = object_at(config, "functionCallingConfig")
    names: Any = look(choice, "allowedFunctionNames")
    changed = config
    # A single name may replace a list of one.
    given = cast("list[Any]", names) if isinstance(names, list) else [names] if names else []
    if given:
        allowed = _callable(given, choice, body)
        if len(allowed) < len(given):
            report.add("adjusted", "dropped undeclared names from `allowedFunctionNames`", subject="tool_choice")
            fitted = laid(choice, allowedFunctionNames=allowed or None)
            # None of the required functions is declared: do not force a call of another one.
            forced = not allowed and str(look(choice, "mode")).upper() == "ANY"
            changed = laid(config, functionCallingConfig=laid(fitted, mode="AUTO") if forced else fitted)
    if not traits_of(model).server_tools and look(config, "includeServerSideToolInvocations"):
        report.add(
            "adjusted", "`includeServerSideToolInvocations` dropped: not supported by the model", subject="tool_config"
        )
        changed = laid(changed, includeServerSideToolInvocations=None)
    if changed is not config:
        body[spelled(body, "toolConfig")] = changed


def _callable(names: list[Any], choice: JsonObject, body: JsonObject) -> list[Any]:
    if str(look(choice, "mode") or "").upper() not in ("ANY", "VALIDATED"):
        return []
    tools: list[JsonObject] = items_of(body.get("tools"), "tools")
    if look(body, "cachedContent") or any(_BRINGING & tool.keys() for tool in tools):
        return names
    functions = [item for tool in tools for item in items_of(look(tool, "functionDeclarations"), "")]
    declared = {text_at(function, "name") for function in functions}
    return [name for name in names if name in declared]
