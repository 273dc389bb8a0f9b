"""Options: `inferenceConfig`, `outputConfig`, `toolChoice` and the model-specific fields ⇄ `Options`.

`render_options` returns the fields that the target model accepts. Same-API, the original and the new options are both
rendered and only the difference is merged into the body, so unchanged fields stay as the client sent them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, cast

from msgspec.structs import replace

from segue.canonical.json import encode_json_text, parse_argument_text
from segue.canonical.request import Effort, Options, Reasoning, ResponseFormat, ToolChoice
from segue.models import Model
from segue.render.report import Report
from segue.wire.anthropic.capabilities import Capabilities as ClaudeCapabilities
from segue.wire.anthropic.capabilities import capabilities_of as claude_capabilities_of
from segue.wire.anthropic.options import (
    drop_rejected_sampling,
    fit_budget,
    is_thinking,
    parse_reasoning,
    render_reasoning,
)
from segue.wire.bedrock.capabilities import capabilities_of
from segue.wire.json_values import (
    JsonObject,
    object_or_none,
    optional_integer,
    optional_object,
    optional_string,
    optional_strings,
    string_or_none,
)
from segue.wire.options import (
    clamp_effort,
    drop_blank_stops,
    effort_for_budget,
    parse_plain_options,
    present_options,
    report_dropped,
)
from segue.wire.schema import render_format_schema, rules

MODEL_FIELDS = "additionalModelRequestFields"
_EFFORTS: tuple[Effort, ...] = ("low", "medium", "high")
_PLAIN_OPTIONS = {"max_tokens": "maxTokens", "temperature": "temperature", "top_p": "topP"}
_UNSUPPORTED_OPTIONS = ("seed", "presence_penalty", "frequency_penalty", "user")


# ------------------------------------------------------------------------------------------------------------------ in


def parse_options(body: Mapping[str, Any]) -> Options:
    config, extra, output, tools = (
        optional_object(body.get(key), key) or {}
        for key in ("inferenceConfig", MODEL_FIELDS, "outputConfig", "toolConfig")
    )
    if not (config or extra or output or tools):
        return Options()
    inner = optional_object(extra.get("inferenceConfig"), f"{MODEL_FIELDS}.inferenceConfig") or {}
    top_k = optional_integer(extra.get("top_k"), f"{MODEL_FIELDS}.top_k")
    inner_top_k = optional_integer(inner.get("topK"), f"{MODEL_FIELDS}.inferenceConfig.topK")
    return Options(
        **parse_plain_options(_PLAIN_OPTIONS, config.get, lambda key: f"inferenceConfig.{key}"),
        top_k=inner_top_k if top_k is None else top_k,
        stop=optional_strings(config.get("stopSequences"), "inferenceConfig.stopSequences"),
        tool_choice=_parse_choice(optional_object(tools.get("toolChoice"), "toolConfig.toolChoice") or {}),
        reasoning=_parse_reasoning(body.get("modelId"), extra, output),
        response_format=_parse_format(optional_object(output.get("textFormat"), "outputConfig.textFormat") or {}),
    )


def _parse_choice(choice: JsonObject) -> ToolChoice | None:
    match choice:
        case {"auto": dict()}:
            return ToolChoice("auto")
        case {"any": dict()}:
            return ToolChoice("required")
        case {"tool": {"name": str(name)}}:
            return ToolChoice("tool", name)
        case _:
            return None


def _parse_reasoning(model: object, extra: JsonObject, output: JsonObject) -> Reasoning | None:
    """Parse the reasoning of each family: `thinking` or `reasoning_config` of Claude, `reasoningConfig` of Nova, the
    efforts of gpt-oss and Qwen.

    `reasoning_config` is an object for Claude and text for Qwen (BED-09).
    """
    nova = optional_object(extra.get("reasoningConfig"), f"{MODEL_FIELDS}.reasoningConfig") or {}
    config = extra.get("reasoning_config")
    efforts = (
        optional_string(nova.get("maxReasoningEffort"), f"{MODEL_FIELDS}.reasoningConfig.maxReasoningEffort"),
        optional_string(extra.get("reasoning_effort"), f"{MODEL_FIELDS}.reasoning_effort"),
        config if isinstance(config, str) else None,
    )
    known_effort: Effort | None = next((step for step in _EFFORTS if step in efforts), None)
    if nova.get("type") in ("enabled", "disabled"):
        return Reasoning(enabled=nova["type"] == "enabled", effort=known_effort)
    if known_effort is not None:
        return Reasoning(effort=known_effort)
    key = "reasoning_config" if extra.get("thinking") is None else "thinking"
    inner = optional_object(extra.get("output_config"), f"{MODEL_FIELDS}.output_config") or {}
    effort = optional_string(inner.get("effort"), f"{MODEL_FIELDS}.output_config.effort")
    thinking = None if isinstance(extra.get(key), str) and key == "reasoning_config" else extra.get(key)
    fields = {"thinking": thinking, "model": model, "output_config": {"effort": output.get("effort", effort)}}
    return parse_reasoning(fields, f"{MODEL_FIELDS}.{key}")


def _parse_format(form: JsonObject) -> ResponseFormat | None:
    match form:
        case {"type": "json_schema", "structure": {"jsonSchema": {"schema": str(text)} as inner}}:
            schema = object_or_none(parse_argument_text(text)[0])
            name = string_or_none(cast("JsonObject", inner).get("name"))
            return None if schema is None else ResponseFormat("schema", schema, name, strict=True)
        case _:
            return None


# ----------------------------------------------------------------------------------------------------------------- out


def fit_options(options: Options, model: Model, report: Report) -> Options:
    """Replace a response schema of another API that this one rejects."""
    form = options.response_format
    if form is None or form.schema is None or not _supports_schemas(model):
        return options
    return replace(options, response_format=render_format_schema(form, rules.ANTHROPIC_STRICT, report))


def _supports_schemas(model: Model) -> bool:
    return model.family == "claude" and claude_capabilities_of(model).schemas


def render_options(
    options: Options, model: Model, report: Report, *, has_tools: bool, project_name: Callable[[str], str]
) -> JsonObject:
    """Return the fields by body key, `toolChoice` outside of `toolConfig`. `has_tools`: tools are declared."""
    extra, effort = _render_reasoning(options, model, report)
    is_on = is_thinking(extra.get("thinking"))
    rejected = drop_rejected_sampling(options, _claude_capabilities(model), is_on, report)
    config = _render_config(options, model, extra, rejected, report)
    if "thinking" in extra and "maxTokens" in config:
        extra["thinking"] = fit_budget(extra["thinking"], config["maxTokens"], report)
    if options.top_k is not None and "top_k" not in rejected:
        extra |= _render_top_k(options.top_k, model, report)
    output: JsonObject = {}
    form = _render_format(options.response_format, model, report)
    if form is not None:
        output["textFormat"] = form
    if effort is not None:
        output["effort"] = effort
    choice = _render_choice(options, model, report, project_name) if has_tools else None
    if not has_tools and options.tool_choice is not None:
        report_dropped(report, "no tool is declared", "tool_choice")
    if options.parallel is False:
        message = "`parallel_tool_calls` dropped: the API has no such option"
        report.add("adjusted", message, subject="parallel_tool_calls", level="lost")
    if options.stream:
        report_dropped(report, "the API selects streaming by the URL", "stream")
    report_dropped(report, "the API has no such option", *present_options(options, *_UNSUPPORTED_OPTIONS))
    extra = {key: value for key, value in extra.items() if value is not None}
    fields = {"inferenceConfig": config, "toolChoice": choice, MODEL_FIELDS: extra, "outputConfig": output}
    return {key: value for key, value in fields.items() if value}


def _render_reasoning(options: Options, model: Model, report: Report) -> tuple[JsonObject, Effort | None]:
    """Return the model-specific reasoning fields, and `outputConfig.effort`."""
    reasoning = options.reasoning
    if reasoning is None or reasoning == Reasoning():
        return {}, None
    if model.family == "claude":
        thinking, effort = render_reasoning(reasoning, claude_capabilities_of(model), report)
        return ({} if thinking is None else {"thinking": thinking}), effort
    disabled = reasoning.is_off
    effort = reasoning.effort or (
        effort_for_budget(reasoning.budget, available=_EFFORTS) if reasoning.budget else "medium"
    )
    step = clamp_effort(effort, _EFFORTS)
    match capabilities_of(model).reasoning_form:
        case "nova":
            enabled = {"type": "enabled", "maxReasoningEffort": step}
            return {"reasoningConfig": {"type": "disabled"} if disabled or step is None else enabled}, None
        case "gpt":
            return {"reasoning_effort": "low" if disabled else step}, None
        case "qwen":
            return {} if disabled else {"reasoning_config": step}, None
        case _:
            if not disabled:
                report_dropped(report, "the model has no option for it", "reasoning")
            return {}, None


def _claude_capabilities(model: Model) -> ClaudeCapabilities:
    return claude_capabilities_of(model) if model.family == "claude" else ClaudeCapabilities()


def _render_config(
    options: Options, model: Model, extra: JsonObject, rejected: frozenset[str], report: Report
) -> JsonObject:
    config: JsonObject = {}
    if options.max_tokens is not None and options.max_tokens < 1:
        report_dropped(report, "must be at least 1", "max_tokens")
    elif options.max_tokens is not None:
        config["maxTokens"] = _limit(options.max_tokens, _claude_capabilities(model).max_tokens, "max_tokens", report)
    for name in present_options(options, "temperature", "top_p"):
        if name not in rejected:
            config[_PLAIN_OPTIONS[name]] = getattr(options, name)
    if stop := drop_blank_stops(options, report):
        config["stopSequences"] = stop
    reasoning = object_or_none(extra.get("reasoningConfig")) or {}
    if reasoning.get("maxReasoningEffort") == "high":
        # Nova's guide «Extended thinking»: at the highest effort these are rejected.
        for key in _PLAIN_OPTIONS.values():
            if config.pop(key, None) is not None:
                report_dropped(report, "not accepted at the highest effort", key)
    return config


def _limit(value: Any, ceiling: int | None, name: str, report: Report) -> Any:
    if ceiling is None or value <= ceiling:
        return value
    report.add("adjusted", f"`{name}` reduced to {ceiling}, the maximum", subject=name)
    return ceiling


def _render_top_k(top_k: int, model: Model, report: Report) -> JsonObject:
    match capabilities_of(model).top_k_path:
        case "top_k":
            return {"top_k": top_k}
        case "inferenceConfig.topK":
            return {"inferenceConfig": {"topK": top_k}}
        case _:
            report_dropped(report, "the model has no known field for it", "top_k")
            return {}


def _render_choice(
    options: Options, model: Model, report: Report, project_name: Callable[[str], str]
) -> JsonObject | None:
    choice = options.tool_choice
    if choice is None:
        return None
    # BED-09: there is no `none`
    if choice.mode == "none":
        message = "`tool_choice` none dropped: the API has no such choice, so the model may call tools"
        report.add("adjusted", message, subject="tool_choice", level="lost")
        return None
    if choice.mode == "auto":
        return {"auto": {}} if capabilities_of(model).forced_choice else None
    # ANT-30: from 5.5 on no tool can be forced at all
    if not capabilities_of(model).forced_choice or not _claude_capabilities(model).forced_choice:
        report_dropped(report, "the model cannot be forced to call a tool", "tool_choice")
        return None
    return {"tool": {"name": project_name(choice.name)}} if choice.mode == "tool" and choice.name else {"any": {}}


def _render_format(form: ResponseFormat | None, model: Model, report: Report) -> JsonObject | None:
    if form is None or form.kind == "text":
        return None
    if form.kind != "schema" or form.schema is None or not _supports_schemas(model):
        report_dropped(report, "only JSON schemas are supported, by Claude 4.1 or newer", "response_format")
        return None
    name_field = {"name": form.name} if form.name else {}
    return {"type": "json_schema", "structure": {"jsonSchema": {"schema": encode_json_text(form.schema), **name_field}}}
