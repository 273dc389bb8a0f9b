"""Options: top-level fields of a body ⇄ `Options`.

`render_options` returns the fields that the target model accepts. Same-API, the original and the new options are both
rendered and only the difference is merged into the body, so unchanged fields stay as the client sent them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from msgspec.structs import replace

from segue.canonical.request import Effort, Options, ResponseFormat, ToolChoice
from segue.models import Model
from segue.render.report import Report
from segue.wire.anthropic.capabilities import Capabilities, capabilities_of
from segue.wire.anthropic.thinking import fit_budget, is_thinking, parse_reasoning, render_reasoning
from segue.wire.effort import budget_for_effort
from segue.wire.json_values import JsonObject, object_or_none, string_or_none, strings_or_none
from segue.wire.options import drop_blank_stops, parse_plain_options, present_options, report_dropped
from segue.wire.schema import render_format_schema, rules
from segue.wire.user_id import hash_invalid_user_id

_DEFAULT_MAX_TOKENS = 8192
_PLAIN_OPTIONS = {
    "max_tokens": "max_tokens",
    "temperature": "temperature",
    "top_p": "top_p",
    "top_k": "top_k",
    "stream": "stream",
}
_SAMPLING_OPTIONS = ("temperature", "top_p", "top_k")
_UNSUPPORTED_OPTIONS = ("seed", "presence_penalty", "frequency_penalty")
_USER_PATTERN = r"[\s\S]{0,256}"


# ------------------------------------------------------------------------------------------------------------------ in


def parse_options(body: Mapping[str, Any]) -> Options:
    """Parse the options of a body. Values of a wrong type are left in its native fragment."""
    choice = object_or_none(body.get("tool_choice")) or {}
    serial = choice.get("disable_parallel_tool_use")
    return Options(
        **parse_plain_options(_PLAIN_OPTIONS, body.get),
        stop=strings_or_none(body.get("stop_sequences")),
        tool_choice=_parse_choice(choice),
        parallel=not serial if isinstance(serial, bool) else None,
        reasoning=parse_reasoning(body),
        response_format=_parse_format(body),
        user=string_or_none((object_or_none(body.get("metadata")) or {}).get("user_id")),
    )


def _parse_choice(choice: JsonObject) -> ToolChoice | None:
    match choice:
        case {"type": "auto"}:
            return ToolChoice("auto")
        case {"type": "any"}:
            return ToolChoice("required")
        case {"type": "none"}:
            return ToolChoice("none")
        case {"type": "tool", "name": str(name)}:
            return ToolChoice("tool", name)
        case _:
            return None


def _parse_format(body: Mapping[str, Any]) -> ResponseFormat | None:
    config = object_or_none(body.get("output_config")) or {}
    form = object_or_none(config.get("format")) or object_or_none(body.get("output_format")) or {}
    schema = object_or_none(form.get("schema"))
    if form.get("type") != "json_schema" or schema is None:
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
        report.add(
            "adjusted",
            f"`max_tokens` set to {max_tokens}: Anthropic requires it, the body has none",
            subject="max_tokens",
        )
        return max_tokens
    if ceiling is not None and options.max_tokens > ceiling:
        report.add("adjusted", f"`max_tokens` reduced to {ceiling}, the model's maximum", subject="max_tokens")
        return ceiling
    return options.max_tokens


def _render_sampling(options: Options, capabilities: Capabilities, thinking: bool, report: Report) -> JsonObject:
    fields: JsonObject = {name: getattr(options, name) for name in present_options(options, *_SAMPLING_OPTIONS)}
    for name in list(fields):
        reason = _rejection_reason(name, fields, capabilities, thinking)
        if reason:
            report_dropped(report, reason, name)
            del fields[name]
    if fields.get("temperature", 0) > 1:
        report.add("adjusted", "`temperature` reduced to 1, the API's maximum", subject="temperature")
        fields["temperature"] = 1
    return fields


def _rejection_reason(name: str, fields: JsonObject, capabilities: Capabilities, thinking: bool) -> str:
    """Return the reason why the model rejects this sampling field, or an empty string."""
    if not capabilities.sampling:
        return "the model does not accept sampling options"
    valid_while_thinking = {"temperature": fields[name] == 1, "top_p": fields[name] >= 0.95, "top_k": False}
    if thinking and not valid_while_thinking[name]:
        return "not accepted while thinking is on"
    if name == "top_p" and "temperature" in fields and capabilities.one_sampling_option:
        return "the model accepts it or `temperature`, not both"
    return ""


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
            report.add(
                "adjusted",
                "`tool_choice` set to auto: the model cannot be forced to call a tool",
                subject="tool_choice",
            )
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
