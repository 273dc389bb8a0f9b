"""Options: top-level fields of a body ⇄ `Options`.

`render_options` returns the fields that the target model accepts. Same-API, the original and the new options are both
rendered and only the difference is merged into the body, so unchanged fields stay as the client sent them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from msgspec.structs import replace

from segue.canonical.request import Effort, Options, Reasoning, ResponseFormat, ToolChoice
from segue.errors import InputError
from segue.models import Model, parse_model
from segue.render.report import Report
from segue.wire import mixed_body
from segue.wire.anthropic.capabilities import Capabilities, capabilities_of
from segue.wire.json_values import (
    JsonObject,
    object_or_none,
    optional_boolean,
    optional_integer,
    optional_list,
    optional_object,
    optional_schema,
    optional_string,
    optional_strings,
)
from segue.wire.options import (
    OptionTypes,
    budget_for_effort,
    clamp_effort,
    drop_blank_stops,
    effort_for_budget,
    hash_invalid_user_id,
    parse_plain_options,
    present_options,
    report_dropped,
    validate_options,
)
from segue.wire.schema import render_format_schema, rules

_DEFAULT_MAX_TOKENS = 8192
_PLAIN_OPTIONS = {
    "max_tokens": "max_tokens",
    "temperature": "temperature",
    "top_p": "top_p",
    "top_k": "top_k",
    "stream": "stream",
}
_OPTION_TYPES: OptionTypes = {
    "cache_control": optional_object,
    "context_management": optional_object,
    "inference_geo": optional_string,
    "mcp_servers": optional_list,
    "service_tier": optional_string,
    "speed": optional_string,
}
_SAMPLING_OPTIONS = ("temperature", "top_p", "top_k")
_UNSUPPORTED_OPTIONS = ("seed", "presence_penalty", "frequency_penalty")
_USER_PATTERN = r"[\s\S]{0,256}"


# ------------------------------------------------------------------------------------------------------------------ in


def parse_options(body: Mapping[str, Any]) -> Options:
    validate_options(_OPTION_TYPES, body.get)
    foreign = mixed_body.parse_choice(body.get("tool_choice"), mixed_body.ANTHROPIC)
    choice = (optional_object(body.get("tool_choice"), "tool_choice") or {}) if foreign is None else {}
    serial = optional_boolean(choice.get("disable_parallel_tool_use"), "tool_choice.disable_parallel_tool_use")
    metadata = optional_object(body.get("metadata"), "metadata") or {}
    return Options(
        **parse_plain_options(_PLAIN_OPTIONS, body.get),
        stop=optional_strings(body.get("stop_sequences"), "stop_sequences"),
        tool_choice=_parse_choice(choice) if foreign is None else foreign.tool_choice,
        parallel=None if serial is None else not serial,
        reasoning=parse_reasoning(body),
        response_format=_parse_format(body),
        user=optional_string(metadata.get("user_id"), "metadata.user_id"),
    )


def _parse_choice(choice: JsonObject) -> ToolChoice | None:
    if not choice:
        return None
    for key in ("type", "name"):
        optional_string(choice.get(key), f"tool_choice.{key}")
    match choice:
        case {"type": "auto"}:
            return ToolChoice("auto")
        case {"type": "any"}:
            return ToolChoice("required")
        case {"type": "none"}:
            return ToolChoice("none")
        case {"type": "tool", "name": str(name)}:
            return ToolChoice("tool", name)
        case {"type": "tool"}:
            raise InputError("a tool choice of this type needs a name", path="tool_choice.name")
        case {"type": str()}:
            raise InputError("unknown type; expected one of auto, any, none, tool", path="tool_choice.type")
        case _:
            return None


def _parse_format(body: Mapping[str, Any]) -> ResponseFormat | None:
    if body.get("output_config") is None and body.get("output_format") is None:
        return None
    config = optional_object(body.get("output_config"), "output_config") or {}
    form, path = optional_object(config.get("format"), "output_config.format"), "output_config.format"
    if form is None:
        form, path = optional_object(body.get("output_format"), "output_format") or {}, "output_format"
    schema = optional_schema(form.get("schema"), f"{path}.schema")
    if optional_string(form.get("type"), f"{path}.type") != "json_schema" or schema is None:
        return None
    # Replies of this API always follow their schema.
    return ResponseFormat("schema", schema, strict=True)


# ----------------------------------------------------------------------------------------------------------------- out


def fit_options(options: Options, model: Model, report: Report) -> Options:
    """Replace a user id and a response schema of another API that this one rejects."""
    options = hash_invalid_user_id(options, _USER_PATTERN, report)
    form = options.response_format
    if form is None or form.schema is None or not capabilities_of(model).schemas:
        return options
    return replace(options, response_format=render_format_schema(form, rules.ANTHROPIC_STRICT, report))


def render_options(
    options: Options, model: Model, report: Report, *, has_tools: bool, project_name: Callable[[str], str]
) -> JsonObject:
    """Return the fields in body order. `has_tools`: tools are declared; `project_name` projects tool names."""
    capabilities = capabilities_of(model)
    thinking, effort = render_reasoning(options.reasoning, capabilities, report)
    max_tokens = _render_max_tokens(options, capabilities, thinking, effort, report)
    thinking = fit_budget(thinking, max_tokens, report)
    fields: JsonObject = {
        "max_tokens": max_tokens,
        "tool_choice": _render_choice(options, capabilities, report, project_name) if has_tools else None,
        "thinking": thinking,
        **_render_sampling(options, capabilities, is_thinking(thinking), report),
        "stop_sequences": drop_blank_stops(options, report) or None,
        "output_config": _render_output_config(options, effort, capabilities, report),
        "stream": options.stream,
        "metadata": None if options.user is None else {"user_id": options.user},
    }
    if not has_tools and (options.tool_choice is not None or options.parallel is not None):
        report_dropped(report, "no tool is declared", "tool_choice")
    report_dropped(report, "the API has no such option", *present_options(options, *_UNSUPPORTED_OPTIONS))
    return {key: value for key, value in fields.items() if value is not None}


def _render_max_tokens(
    options: Options, capabilities: Capabilities, thinking: JsonObject | None, effort: Effort | None, report: Report
) -> int:
    ceiling = capabilities.max_tokens
    if options.max_tokens is None:
        max_tokens = _DEFAULT_MAX_TOKENS
        if thinking is not None and is_thinking(thinking):
            max_tokens += thinking.get("budget_tokens") or budget_for_effort(effort or "medium")
        max_tokens = max_tokens if ceiling is None else min(max_tokens, ceiling)
        message = f"`max_tokens` set to {max_tokens}: Anthropic requires it, the body has none"
        report.add("adjusted", message, subject="max_tokens")
        return max_tokens
    if ceiling is not None and options.max_tokens > ceiling:
        report.add("adjusted", f"`max_tokens` reduced to {ceiling}, the model's maximum", subject="max_tokens")
        return ceiling
    return options.max_tokens


def _render_sampling(options: Options, capabilities: Capabilities, thinking: bool, report: Report) -> JsonObject:
    rejected = drop_rejected_sampling(options, capabilities, thinking, report)
    return {
        name: getattr(options, name) for name in present_options(options, *_SAMPLING_OPTIONS) if name not in rejected
    }


def drop_rejected_sampling(
    options: Options, capabilities: Capabilities, thinking: bool, report: Report
) -> frozenset[str]:
    """Return and report the sampling options that a model rejects, in combination or with thinking."""
    reasons: dict[str, str] = {}
    for name in present_options(options, *_SAMPLING_OPTIONS):
        value = getattr(options, name)
        is_valid_while_thinking = {"temperature": value == 1, "top_p": value >= 0.95, "top_k": False}[name]
        has_temperature = options.temperature is not None and "temperature" not in reasons
        if not capabilities.sampling:
            reasons[name] = "the model does not accept sampling options"
        elif thinking and not is_valid_while_thinking:
            reasons[name] = "not accepted while thinking is on"
        elif name == "top_p" and has_temperature and capabilities.one_sampling_option:
            reasons[name] = "the model accepts it or `temperature`, not both"
    for name, reason in reasons.items():
        report_dropped(report, reason, name)
    return frozenset(reasons)


def _render_choice(
    options: Options, capabilities: Capabilities, report: Report, project_name: Callable[[str], str]
) -> JsonObject | None:
    choice = options.tool_choice
    if choice is None:
        return {"type": "auto", "disable_parallel_tool_use": True} if options.parallel is False else None
    if choice.mode == "none":
        return {"type": "none"}
    rendered: JsonObject = {"type": "auto"}
    if choice.mode in ("required", "tool"):
        # ANT-30: from 5.5 on no tool can be forced at all
        if not capabilities.forced_choice:
            message = "`tool_choice` set to auto: the model cannot be forced to call a tool"
            report.add("adjusted", message, subject="tool_choice")
        elif choice.mode == "tool" and choice.name:
            rendered = {"type": "tool", "name": project_name(choice.name)}
        else:
            rendered = {"type": "any"}
    if options.parallel is False:
        rendered["disable_parallel_tool_use"] = True
    return rendered


def _render_output_config(
    options: Options, effort: Effort | None, capabilities: Capabilities, report: Report
) -> JsonObject | None:
    config: JsonObject = {} if effort is None else {"effort": effort}
    form = options.response_format
    if form is not None and form.kind != "text":
        if form.schema is not None and form.kind == "schema" and capabilities.schemas:
            config["format"] = {"type": "json_schema", "schema": form.schema}
        else:
            report_dropped(report, "only JSON schemas are supported, by Claude 4.1 or newer", "response_format")
    return config or None


# ----------------------------------------------------------------------------------------------------------- reasoning

_MIN_BUDGET = 1024
_EFFORTS: tuple[Effort, ...] = ("minimal", "low", "medium", "high", "xhigh", "max")


def parse_reasoning(body: Mapping[str, Any], path: str = "thinking") -> Reasoning | None:
    """Parse `thinking`, which is at `path`, and the effort."""
    if body.get("thinking") is None and body.get("output_config") is None:
        return None
    thinking = optional_object(body.get("thinking"), path) or {}
    effort = _parse_effort(body)
    budget = optional_integer(thinking.get("budget_tokens"), f"{path}.budget_tokens")
    visible = optional_string(thinking.get("display"), f"{path}.display") != "omitted"
    match optional_string(thinking.get("type"), f"{path}.type"):
        case "enabled":
            return Reasoning(enabled=True, effort=effort, budget=budget, visible=visible)
        case "adaptive":
            return Reasoning(enabled=True, effort=effort, adaptive=True, visible=visible)
        case "disabled" | "between_tools":
            return Reasoning(enabled=False, effort=effort)
        case _ if effort is None:
            return None
        case _:
            # Effort applies to all output; alone it does not enable thinking where that is off by default.
            model = parse_model(body.get("model") if isinstance(body.get("model"), str) else None)
            disabled = model.family == "claude" and bool(model.version) and not capabilities_of(model).thinks_by_default
            return Reasoning(enabled=False if disabled else None, effort=effort)


def _parse_effort(body: Mapping[str, Any]) -> Effort | None:
    config = optional_object(body.get("output_config"), "output_config") or {}
    effort = optional_string(config.get("effort"), "output_config.effort")
    return next((known for known in _EFFORTS if known == effort), None)


def render_reasoning(
    reasoning: Reasoning | None, capabilities: Capabilities, report: Report
) -> tuple[JsonObject | None, Effort | None]:
    """Return the values of `thinking` and of `output_config.effort`."""
    if reasoning is None or reasoning == Reasoning():
        return None, None
    if reasoning.is_off:
        return _render_disabled(reasoning, capabilities, report)
    if capabilities.adaptive and (reasoning.budget is None or reasoning.adaptive or not capabilities.budgets):
        effort = reasoning.effort
        if reasoning.budget is not None and effort is None:
            effort = effort_for_budget(reasoning.budget, available=capabilities.efforts)
            why = (
                "the current tool loop does not begin with thinking"
                if capabilities.budgets
                else "the model has no budgets"
            )
            report.add("adjusted", f"thinking budget sent as effort {effort}: {why}", subject="reasoning")
        display = {"display": "summarized"} if reasoning.visible and capabilities.hides_thinking else {}
        return {"type": "adaptive", **display}, clamp_effort(effort, capabilities.efforts)
    if not capabilities.budgets:
        message = "`reasoning` dropped: the model does not support reasoning"
        report.add("adjusted", message, subject="reasoning", level="lost")
        return None, None
    budget = reasoning.budget or budget_for_effort(reasoning.effort or "medium")
    effort = clamp_effort(reasoning.effort, capabilities.efforts) if reasoning.budget is not None else None
    return {"type": "enabled", "budget_tokens": max(_MIN_BUDGET, budget)}, effort


def fit_effort(config: JsonObject, model: Model, report: Report) -> JsonObject:
    """Return an `output_config` of this API without an effort that the model rejects (ANT-42)."""
    effort, capabilities = config.get("effort"), capabilities_of(model)
    if effort is None or effort in capabilities.efforts or (effort in _EFFORTS[1:] and capabilities.any_effort):
        return config
    known: Effort | None = next((step for step in _EFFORTS if step == effort), None)
    nearest = clamp_effort(known, capabilities.efforts)
    change = "dropped" if nearest is None else f"set to {nearest}"
    report.add("adjusted", f"effort {change}: the model does not support {effort}", subject="reasoning")
    return {key: value for key, value in {**config, "effort": nearest}.items() if key != "effort" or nearest}


# ANT-47: fields that are not accepted in a request for a summary; the last one not beside a signed summary either.
_BESIDE_SUMMARY = (
    ("context_management",),
    ("stop_sequences",),
    ("output_config", "format"),
    ("output_config", "task_budget", "remaining"),
)


def drop_beside_summary(body: JsonObject, report: Report, *, requested: bool, replaced: bool) -> JsonObject:
    """Return the body without fields that are not accepted where a summary is `requested`, or has `replaced` messages.

    A forced tool becomes a free choice.
    """
    for path in _BESIDE_SUMMARY if requested else _BESIDE_SUMMARY[-1:] if replaced else ():
        shorter = _without_path(body, path)
        if shorter is not body:
            report.add("dropped", f"`{'.'.join(path)}` dropped: not accepted with a compaction", subject=path[0])
            body = shorter
    choice = object_or_none(body.get("tool_choice")) or {}
    if requested and choice.get("type") in ("any", "tool"):
        report.add("adjusted", "`tool_choice` dropped: not accepted with a compaction", subject="tool_choice")
        body = {key: value for key, value in body.items() if key != "tool_choice"}
    return body


def _without_path(body: JsonObject, path: tuple[str, ...]) -> JsonObject:
    """Return the object without the field at the path; the same object if it has none, or an empty one."""
    key, *rest = path
    if not rest:
        return {name: value for name, value in body.items() if name != key} if body.get(key) else body
    inner = object_or_none(body.get(key))
    shorter = None if inner is None else _without_path(inner, tuple(rest))
    return body if shorter is None or shorter is inner else {**body, key: shorter}


def _render_disabled(
    reasoning: Reasoning, capabilities: Capabilities, report: Report
) -> tuple[JsonObject | None, Effort | None]:
    if capabilities.disabled_type is not None:
        # While thinking is off, efforts above `high` are rejected.
        return {"type": capabilities.disabled_type}, clamp_effort(reasoning.effort, capabilities.efforts[:3])
    if capabilities.thinks_by_default:
        message = "reasoning effort set to low: thinking cannot be disabled on this model"
        report.add("adjusted", message, subject="reasoning")
        return None, "low"
    return None, None


def is_thinking(thinking: JsonObject | None) -> bool:
    return thinking is not None and thinking["type"] in ("enabled", "adaptive")


def fit_budget(thinking: JsonObject | None, max_tokens: int, report: Report) -> JsonObject | None:
    """Reduce the budget below `max_tokens`, or drop thinking where less than the minimum of 1024 would be left."""
    if thinking is None or thinking.get("budget_tokens", 0) < max_tokens:
        return thinking
    if max_tokens <= _MIN_BUDGET:
        message = f"thinking dropped: `max_tokens` {max_tokens} is too small for a budget"
        report.add("adjusted", message, subject="reasoning", level="lost")
        return None
    budget = max(_MIN_BUDGET, max_tokens // 2)
    report.add("adjusted", f"thinking budget reduced to {budget} to fit `max_tokens`", subject="reasoning")
    return {**thinking, "budget_tokens": budget}
