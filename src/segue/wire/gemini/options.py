"""`generationConfig` and `toolConfig` ⇄ `Options`.

`render_options` returns the fields that the target model accepts. Same-API, the original and the new options are both
rendered and only the difference is merged into the body, so unchanged fields stay as the client sent them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, cast, get_args

from segue.canonical.request import Effort, Options, Reasoning, ResponseFormat, ToolChoice
from segue.errors import InputError
from segue.models import Model
from segue.render.report import Report
from segue.render.transcript import Transcript
from segue.wire.base import RenderContext
from segue.wire.gemini.capabilities import DEFAULT_MODEL, Capabilities, capabilities_of
from segue.wire.gemini.fields import (
    JsonObject,
    as_list,
    both_cases,
    find_key,
    get_field,
    get_numeric,
    get_object,
    get_object_strict,
    get_text,
    get_text_strict,
    join_path,
    object_or_none,
    replace_fields,
)
from segue.wire.json_values import (
    optional_boolean,
    optional_integer,
    optional_number,
    optional_schema,
    optional_strings,
)
from segue.wire.options import (
    OptionTypes,
    budget_for_effort,
    clamp_effort,
    effort_for_budget,
    parse_plain_options,
    render_changes,
    render_plain_options,
    report_dropped,
    validate_options,
)
from segue.wire.schema.openapi import parse_schema

_STOP_LIMIT = 5
_PLAIN_OPTIONS = {
    "max_tokens": "maxOutputTokens",
    "temperature": "temperature",
    "top_p": "topP",
    "top_k": "topK",
    "seed": "seed",
    "presence_penalty": "presencePenalty",
    "frequency_penalty": "frequencyPenalty",
}
_CONFIG_TYPES: OptionTypes = {
    "candidateCount": optional_integer,
    "logprobs": optional_integer,
    "responseLogprobs": optional_boolean,
}
_THINKING_KEYS = frozenset(
    f"{outer}.{key}"
    for outer in both_cases("thinkingConfig")
    for key in both_cases("thinkingBudget", "thinkingLevel", "includeThoughts")
)
_CHOICE_KEYS = frozenset(
    f"{outer}.{key}"
    for outer in both_cases("functionCallingConfig")
    for key in both_cases("mode", "allowedFunctionNames")
)
_CONFIG_KEYS = _THINKING_KEYS | both_cases(
    *_PLAIN_OPTIONS.values(), "stopSequences", "responseMimeType", "responseSchema", "responseJsonSchema"
)
OPTION_KEYS = frozenset(
    f"{outer}.{inner}"
    for name, keys in (("generationConfig", _CONFIG_KEYS), ("toolConfig", _CHOICE_KEYS))
    for outer in both_cases(name)
    for inner in keys
)
_JSON_MIME = "application/json"
_PENALTIES = ("presencePenalty", "frequencyPenalty")
# Only accepted by some models: removed when a same-API body changes its model.
_MODEL_SPECIFIC = (*_PENALTIES, "thinkingConfig")


# ------------------------------------------------------------------------------------------------------------------ in


def parse_options(body: Mapping[str, Any]) -> Options:
    config, path = get_object_strict(body, "generationConfig")
    tool_config, tool_path = get_object_strict(body, "toolConfig")
    if not config and not tool_config:
        return Options()

    def get_path(name: str) -> str:
        return join_path(path, find_key(config, name))

    get_value = partial(get_numeric, config)
    plain = parse_plain_options(_PLAIN_OPTIONS | {"top_k": None}, get_value, get_path)
    validate_options(_CONFIG_TYPES, get_value, get_path)
    # A float, unlike in other APIs.
    top_k = optional_number(get_numeric(config, "topK"), get_path("topK"))
    plain["top_k"] = int(top_k) if top_k is not None and top_k == int(top_k) else None
    return Options(
        **plain,
        stop=_parse_strings(get_field(config, "stopSequences"), get_path("stopSequences")),
        tool_choice=_parse_choice(*get_object_strict(tool_config, "functionCallingConfig", tool_path)),
        reasoning=_parse_reasoning(*get_object_strict(config, "thinkingConfig", path)),
        response_format=_parse_format(config, path),
    )


def _parse_strings(value: object, path: str) -> tuple[str, ...] | None:
    """Return the strings of a list; a single string may replace a list of one."""
    return ((value,) if value else None) if isinstance(value, str) else optional_strings(value, path) or None


def _parse_choice(config: JsonObject, path: str) -> ToolChoice | None:
    mode = (get_text_strict(config, "mode", path) or "").upper()
    names = get_field(config, "allowedFunctionNames")
    allowed = _parse_strings(names, join_path(path, find_key(config, "allowedFunctionNames")))
    match mode:
        case "AUTO" | "VALIDATED":
            return ToolChoice("auto", allowed=allowed if mode == "VALIDATED" else None)
        case "ANY" if allowed is not None and len(allowed) == 1:
            return ToolChoice("tool", allowed[0])
        case "ANY":
            return ToolChoice("required", allowed=allowed)
        case "NONE":
            return ToolChoice("none")
        case "" | "MODE_UNSPECIFIED":
            return None
        case _:
            message = f"unknown mode {mode}; expected one of AUTO, ANY, NONE, VALIDATED"
            raise InputError(message, path=join_path(path, find_key(config, "mode")))


def _parse_format(config: JsonObject, path: str) -> ResponseFormat | None:
    mime = get_text_strict(config, "responseMimeType", path)
    schema, gemini_schema = (
        optional_schema(get_field(config, name), join_path(path, find_key(config, name)))
        for name in ("responseJsonSchema", "responseSchema")
    )
    if schema is None and gemini_schema is not None:
        schema = parse_schema(gemini_schema)
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
    options: Options, model: Model, report: Report, *, has_tools: bool, project_name: Callable[[str], str]
) -> JsonObject:
    """Return the fields in body order. `has_tools`: tools are declared; `project_name` projects tool names."""
    capabilities = capabilities_of(model)
    config = render_plain_options(options, _PLAIN_OPTIONS)
    for key in _PENALTIES:
        if config.get(key) and not capabilities.penalties:
            report_dropped(report, "not supported by the model", key)
            del config[key]
    if options.stop:
        config["stopSequences"] = list(options.stop[:_STOP_LIMIT])
        if len(options.stop) > _STOP_LIMIT:
            message = f"only the first {_STOP_LIMIT} stop sequences kept: the maximum"
            report.add("adjusted", message, subject="stop", level="lost")
    config |= _render_format(options.response_format, capabilities, has_tools, report)
    thinking = _render_reasoning(options.reasoning, capabilities, report)
    if thinking is not None:
        config["thinkingConfig"] = thinking
    choice = _render_choice(options.tool_choice, has_tools, report, project_name)
    _report_unsupported(options, report)
    return {
        **({} if choice is None else {"toolConfig": {"functionCallingConfig": choice}}),
        **({"generationConfig": config} if config else {}),
    }


def _report_unsupported(options: Options, report: Report) -> None:
    if options.parallel is False:
        report_dropped(report, "Gemini cannot disable parallel calls", "parallel_tool_calls")
    if options.user is not None:
        report_dropped(report, "Gemini has no such option", "user")
    if options.stream:
        report_dropped(report, "Gemini selects streaming by URL", "stream")


def _render_format(
    form: ResponseFormat | None, capabilities: Capabilities, has_tools: bool, report: Report
) -> JsonObject:
    if form is None or form.kind == "text":
        return {}
    if has_tools and not capabilities.json_with_tools:
        report_dropped(report, "not supported together with tools", "response_format")
        return {}
    if form.kind == "json" or form.schema is None:
        return {"responseMimeType": _JSON_MIME}
    return {"responseMimeType": _JSON_MIME, "responseJsonSchema": form.schema}


def _render_choice(
    choice: ToolChoice | None, has_tools: bool, report: Report, project_name: Callable[[str], str]
) -> JsonObject | None:
    if choice is None:
        return None
    if not has_tools:
        report_dropped(report, "no tools are declared", "tool_choice")
        return None
    match choice.mode:
        case "none":
            return {"mode": "NONE"}
        case "auto":
            return (
                {"mode": "VALIDATED", **_render_allowed(choice, project_name)} if choice.allowed else {"mode": "AUTO"}
            )
        case "required":
            return {"mode": "ANY", **_render_allowed(choice, project_name)}
        case "tool":
            return {"mode": "ANY", **({"allowedFunctionNames": [project_name(choice.name)]} if choice.name else {})}


def _render_allowed(choice: ToolChoice, project_name: Callable[[str], str]) -> JsonObject:
    return {"allowedFunctionNames": [project_name(name) for name in choice.allowed]} if choice.allowed else {}


def merge_options(fragment: Mapping[str, Any], transcript: Transcript, render_context: RenderContext) -> JsonObject:
    """Return the body with changed options and model name merged into it."""
    has_other_model = transcript.request.model != transcript.model and transcript.model is not None
    dropped = frozenset(_PENALTIES) if has_other_model else frozenset[str]()
    before, after = render_changes(
        render_options, transcript, render_context, DEFAULT_MODEL, has_tools=bool(transcript.tools), dropped=dropped
    )
    body = _merge_changes(fragment, before, after)
    if "model" in fragment and transcript.model is not None:
        body["model"] = transcript.model
    if has_other_model:
        _fit_to_model(body, after)
    return _drop_untyped_schema(body, fragment)


def _drop_untyped_schema(body: JsonObject, fragment: Mapping[str, Any]) -> JsonObject:
    """Drop the response schema if `responseMimeType` was removed."""
    key = find_key(fragment, "generationConfig")
    config = object_or_none(body.get(key))
    if (
        config is None
        or get_field(config, "responseMimeType")
        or not get_text(get_object(fragment, key), "responseMimeType")
    ):
        return body
    schemas = both_cases("responseSchema", "responseJsonSchema")
    return {**body, key: {name: value for name, value in config.items() if name not in schemas}}


def _merge_changes(fragment: Mapping[str, Any], before: JsonObject, after: JsonObject) -> JsonObject:
    """Merge the difference of two renderings into the fragment, recursively, keeping its key style."""
    body = dict(fragment)
    for name in [*before, *(name for name in after if name not in before)]:
        old, new = before.get(name), after.get(name)
        if old == new:
            continue
        key = find_key(fragment, name)
        inner = object_or_none(fragment.get(key))
        if inner is not None and isinstance(old or {}, dict) and isinstance(new or {}, dict):
            new = _merge_changes(inner, cast("JsonObject", old or {}), cast("JsonObject", new or {})) or None
        if new is None:
            body.pop(key, None)
        else:
            body[key] = new
    return body


def _fit_to_model(body: JsonObject, after: JsonObject) -> None:
    """Replace the model-specific options of the original body by those of the new model."""
    key = find_key(body, "generationConfig")
    config = object_or_none(body.get(key))
    if config is None:
        return
    rendered = get_object(after, "generationConfig")
    fitted = {name: value for name, value in config.items() if name not in both_cases(*_MODEL_SPECIFIC)}
    for name in _MODEL_SPECIFIC:
        value: Any = rendered.get(name)
        if value is not None:
            fitted[find_key(config, name)] = value
    if config and not fitted:
        del body[key]
    elif fitted != config:
        body[key] = fitted


# Tools that add functions which are not declared in the body.
_TOOLS_WITH_FUNCTIONS = both_cases("computerUse", "mcpServers")


def fit_tool_choice(body: JsonObject, model: Model, report: Report) -> None:
    """Fit `toolConfig` to the model and to the declared functions (GEM-23, GEM-24)."""
    config = get_object(body, "toolConfig")
    choice = get_object(config, "functionCallingConfig")
    names: Any = get_field(choice, "allowedFunctionNames")
    changed = config
    # A single name may replace a list of one.
    listed = cast("list[Any]", names) if isinstance(names, list) else [names] if names else []
    if listed:
        allowed = _callable_names(listed, choice, body)
        if len(allowed) < len(listed):
            report.add("adjusted", "undeclared names dropped from `allowedFunctionNames`", subject="tool_choice")
            fitted = replace_fields(choice, allowedFunctionNames=allowed or None)
            # None of the required functions is declared: do not force a call of another one.
            forced = not allowed and str(get_field(choice, "mode")).upper() == "ANY"
            changed = replace_fields(
                config, functionCallingConfig=replace_fields(fitted, mode="AUTO") if forced else fitted
            )
    if not capabilities_of(model).server_tools and get_field(config, "includeServerSideToolInvocations"):
        message = "`includeServerSideToolInvocations` dropped: not supported by the model"
        report.add("adjusted", message, subject="tool_config", level="lost")
        changed = replace_fields(changed, includeServerSideToolInvocations=None)
    if changed is not config:
        body[find_key(body, "toolConfig")] = changed


def _callable_names(names: list[Any], choice: JsonObject, body: JsonObject) -> list[Any]:
    if str(get_field(choice, "mode") or "").upper() not in ("ANY", "VALIDATED"):
        return []
    tools: list[JsonObject] = as_list(body.get("tools"), "tools")
    if get_field(body, "cachedContent") or any(_TOOLS_WITH_FUNCTIONS & tool.keys() for tool in tools):
        return names
    functions = [item for tool in tools for item in as_list(get_field(tool, "functionDeclarations"), "")]
    declared = {get_text(function, "name") for function in functions}
    return [name for name in names if name in declared]


# ----------------------------------------------------------------------------------------------------------- reasoning

_EFFORTS: tuple[Effort, ...] = get_args(Effort)
_DYNAMIC_BUDGET = -1


def _parse_reasoning(config: Mapping[str, Any], path: str) -> Reasoning | None:
    level = (get_text_strict(config, "thinkingLevel", path) or "").lower()
    effort: Effort | None = next((known for known in _EFFORTS if known == level), None)
    budget = optional_integer(
        get_numeric(config, "thinkingBudget"), join_path(path, find_key(config, "thinkingBudget"))
    )
    shown_path = join_path(path, find_key(config, "includeThoughts"))
    visible = optional_boolean(get_field(config, "includeThoughts"), shown_path) or False
    match budget:
        case None:
            return Reasoning(effort=effort, visible=visible) if effort is not None or visible else None
        case 0:
            return Reasoning(enabled=False, effort=effort, visible=visible)
        case _ if budget < 0:
            return Reasoning(enabled=True, effort=effort, adaptive=True, visible=visible)
        case _:
            return Reasoning(enabled=True, effort=effort, budget=budget, visible=visible)


def _render_reasoning(reasoning: Reasoning | None, capabilities: Capabilities, report: Report) -> JsonObject | None:
    """Return the value of `thinkingConfig`."""
    if reasoning is None or reasoning == Reasoning():
        return None
    amount: JsonObject | None = None
    if capabilities.thinking_levels:
        amount = _render_level(reasoning, capabilities.thinking_levels, report)
    elif capabilities.thinking_budget is not None:
        amount = _render_budget(reasoning, capabilities, capabilities.thinking_budget, report)
    elif not reasoning.is_off:
        message = "`reasoning` dropped: the model does not support reasoning"
        report.add("adjusted", message, subject="reasoning", level="lost")
        return None
    shows = reasoning.visible and amount != {"thinkingBudget": 0}
    return {"includeThoughts": True, **(amount or {})} if shows else amount


def _render_level(reasoning: Reasoning, levels: tuple[Effort, ...], report: Report) -> JsonObject | None:
    if reasoning.is_off:
        message = f"thinking level set to {levels[0]}: thinking cannot be disabled on this model"
        report.add("adjusted", message, subject="reasoning")
        return {"thinkingLevel": levels[0].upper()}
    effort = reasoning.effort
    if effort is None and reasoning.budget is not None:
        effort = effort_for_budget(reasoning.budget, available=levels)
        report.add("adjusted", f"thinking budget sent as level {effort}: the model has no budgets", subject="reasoning")
    # Without a level the model chooses how much to think.
    level = clamp_effort(effort, levels)
    if level is not None and level != effort:
        report.add("adjusted", f"reasoning effort {effort} sent as thinking level {level}", subject="reasoning")
    return None if level is None else {"thinkingLevel": level.upper()}


def _render_budget(
    reasoning: Reasoning, capabilities: Capabilities, limits: tuple[int, int], report: Report
) -> JsonObject | None:
    minimum, maximum = limits
    if reasoning.is_off:
        if capabilities.can_disable_thinking:
            return {"thinkingBudget": 0}
        message = f"thinking budget set to {minimum}: thinking cannot be disabled on this model"
        report.add("adjusted", message, subject="reasoning")
        return {"thinkingBudget": minimum}
    if reasoning.budget is None and reasoning.effort is None:
        return {"thinkingBudget": _DYNAMIC_BUDGET}
    requested = reasoning.budget or budget_for_effort(reasoning.effort or "medium")
    budget = max(minimum, min(requested, maximum))
    if reasoning.budget is not None and budget != requested:
        report.add("adjusted", f"thinking budget limited to the range {minimum} to {maximum}", subject="reasoning")
    return {"thinkingBudget": budget}
