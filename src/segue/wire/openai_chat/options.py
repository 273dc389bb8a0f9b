"""Request options ⇄ `Options`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, get_args

import msgspec

from segue.canonical.request import Effort, Options, Reasoning, ResponseFormat, ToolChoice
from segue.errors import InputError
from segue.models import Model
from segue.render.report import Report
from segue.wire import mixed_body
from segue.wire.json_values import (
    json_type_name,
    object_list,
    object_or_none,
    optional_boolean,
    optional_integer,
    optional_object,
    optional_string,
    optional_strings,
    require_object,
)
from segue.wire.names import NameRule
from segue.wire.openai_chat.dialect import ChatDialect, JsonObject
from segue.wire.openai_shared import (
    convert_budget_to_effort,
    drop_undeclared_choice,
    parse_format,
    parse_mode,
    parse_vendor_options,
    render_vendor_options,
    require_mode,
)
from segue.wire.options import (
    OptionTypes,
    budget_for_effort,
    drop_options,
    effort_for_budget,
    parse_plain_options,
    render_plain_options,
    validate_options,
)

_EFFORTS: tuple[Effort, ...] = get_args(Effort)
# With the usual keys; `option_keys` of a dialect replaces some of them.
_PLAIN_OPTIONS: dict[str, str | None] = {
    "parallel": "parallel_tool_calls",
    "temperature": "temperature",
    "top_p": "top_p",
    "top_k": None,
    "stream": "stream",
    "seed": "seed",
    "presence_penalty": "presence_penalty",
    "frequency_penalty": "frequency_penalty",
    "user": "user",
}
_OTHER_KEYS = frozenset(
    {"max_completion_tokens", "max_tokens", "stop", "tool_choice", "function_call", "reasoning_effort", "thinking"}
    | {"response_format", "thinking.type", "tool_choice.type", "tool_choice.name"}
    | {f"tool_choice.{kind}.{key}" for kind in ("function", "custom") for key in ("name",)}
    | {f"tool_choice.allowed_tools.{key}" for key in ("mode", "tools")}
    | {"response_format.type", "response_format.schema", "function_call.name"}
    | {f"response_format.json_schema.{key}" for key in ("name", "description", "schema", "strict")}
)
_CHOICE_TYPES = ("function", "custom", "allowed_tools")
_COMMON_OPTION_TYPES: OptionTypes = {
    "n": optional_integer,
    "logprobs": optional_boolean,
    "top_logprobs": optional_integer,
    "stream_options": optional_object,
}
_SWITCH_KEYS = frozenset({"enable_thinking", "thinking_budget"})


def option_keys(dialect: ChatDialect) -> frozenset[str]:
    """Return the body keys that are parsed into `Options`."""
    plain_keys = {key for key in _plain_keys(dialect).values() if key is not None}
    user_keys = frozenset({"safety_identifier"}) if dialect.vendor_options else frozenset[str]()
    return (
        _OTHER_KEYS
        | plain_keys
        | user_keys
        | (_SWITCH_KEYS if dialect.reasoning_option == "switch" else frozenset[str]())
    )


def _plain_keys(dialect: ChatDialect) -> Mapping[str, str | None]:
    return {**_PLAIN_OPTIONS, **dialect.option_keys} if dialect.option_keys else _PLAIN_OPTIONS


# ------------------------------------------------------------------------------------------------------------- parsing


def parse_options(body: Mapping[str, Any], dialect: ChatDialect) -> Options:
    limit, old_limit = (optional_integer(body.get(key), key) for key in ("max_completion_tokens", "max_tokens"))
    plain = parse_plain_options(_plain_keys(dialect), body.get)
    if dialect.vendor_options and (user := optional_string(body.get("safety_identifier"), "safety_identifier")):
        plain["user"] = user
    stop = body.get("stop")
    validate_options(_COMMON_OPTION_TYPES, body.get)
    validate_options(dialect.option_types, body.get)
    foreign = mixed_body.parse_choice(body.get("tool_choice"), mixed_body.CHAT)
    if foreign is not None and foreign.parallel is not None:
        plain["parallel"] = foreign.parallel
    return Options(
        **plain,
        max_tokens=old_limit if limit is None else limit,
        stop=(stop,) if isinstance(stop, str) else optional_strings(stop, "stop") or None,
        tool_choice=_parse_choice(body) if foreign is None else foreign.tool_choice,
        reasoning=_parse_reasoning(body, dialect),
        response_format=_parse_format(optional_object(body.get("response_format"), "response_format")),
        vendor_options=parse_vendor_options(body) if dialect.vendor_options else None,
    )


def _parse_choice(body: Mapping[str, Any]) -> ToolChoice | None:
    value = body.get("tool_choice")
    if value is None and (legacy_choice := body.get("function_call")) is not None:
        if isinstance(legacy_choice, str):
            return parse_mode(_current_mode(legacy_choice))
        name = optional_string(require_object(legacy_choice, "function_call").get("name"), "function_call.name")
        return None if name is None else ToolChoice("tool", name)
    if value is None:
        return None
    choice = object_or_none(value)
    if choice is None:
        return require_mode(_current_mode(value))
    if not isinstance(choice.get("type"), str):
        raise InputError(f"a string was expected, not {json_type_name(choice.get('type'))}", path="tool_choice.type")
    path = f"tool_choice.{choice['type']}"
    detail = optional_object(choice.get(choice["type"]), path)
    if detail is None and choice["type"] not in _CHOICE_TYPES:
        raise InputError(f"unknown type; expected one of {', '.join(_CHOICE_TYPES)}", path="tool_choice.type")
    detail = require_object(detail, path)
    if choice["type"] == "allowed_tools":
        mode = parse_mode(_current_mode(optional_string(detail.get("mode"), f"{path}.mode")))
        return mode and msgspec.structs.replace(mode, allowed=_parse_allowed(detail.get("tools")))
    name = optional_string(detail.get("name"), f"{path}.name")
    return None if name is None else ToolChoice("tool", name)


def _parse_allowed(value: object) -> tuple[str, ...] | None:
    entries = object_list(value)
    details = [object_or_none(entry.get(str(entry.get("type")))) or {} for entry in entries]
    names = tuple(name for detail in details if isinstance(name := detail.get("name"), str))
    return names or None


def _current_mode(value: object) -> object:
    # `any` is Mistral's older name.
    return "required" if value == "any" else value


def _parse_reasoning(body: Mapping[str, Any], dialect: ChatDialect) -> Reasoning | None:
    raw_effort = body.get("reasoning_effort")
    if raw_effort is not None and (not isinstance(raw_effort, str) or not raw_effort):
        actual = "an empty one" if raw_effort == "" else json_type_name(raw_effort)
        raise InputError(f"a string was expected, not {actual}", path="reasoning_effort")
    effort: Effort | None = None
    if raw_effort is not None:
        effort = next((candidate for candidate in _EFFORTS if candidate == raw_effort), None)
    enabled: bool | None = False if effort == "none" else None
    if raw_effort is not None and effort is None and dialect.reasoning_option == "effort":
        # An unknown, perhaps newer, effort: reasoning is enabled, its amount unknown.
        enabled = True
    budget: int | None = None
    if dialect.reasoning_option in ("thinking", "graded"):
        thinking = optional_object(body.get("thinking"), "thinking") or {}
        switch = optional_string(thinking.get("type"), "thinking.type")
        enabled = switch == "enabled" if switch in ("enabled", "disabled") else enabled
    if dialect.reasoning_option == "switch":
        enabled = optional_boolean(body.get("enable_thinking"), "enable_thinking")
        effort, budget = None, optional_integer(body.get("thinking_budget"), "thinking_budget")
    if dialect.template_options and enabled is None:
        # COMP-18
        template = optional_object(body.get("chat_template_kwargs"), "chat_template_kwargs") or {}
        enabled = optional_boolean(template.get("enable_thinking"), "chat_template_kwargs.enable_thinking")
    reasoning = Reasoning(enabled=enabled, effort=effort, budget=budget)
    return None if reasoning == Reasoning() else reasoning


def _parse_format(value: JsonObject | None) -> ResponseFormat | None:
    kind = optional_string((value or {}).get("type"), "response_format.type")
    path = "response_format.json_schema"
    schema_format = optional_object((value or {}).get("json_schema"), path) if kind == "json_schema" else None
    return parse_format(kind, schema_format, path)


# ----------------------------------------------------------------------------------------------------------- rendering


def fit_options(
    options: Options, dialect: ChatDialect, model: Model, declared: frozenset[str], report: Report
) -> Options:
    """Change options of another API to those that the target accepts; report each change."""
    options = drop_undeclared_choice(options, declared, report)
    options = _fit_required_choice(options, dialect, declared, report)
    unnamed = [field for field, key in _plain_keys(dialect).items() if key is None]
    options = drop_options(options, report, f"{dialect.name} has no such option", *unnamed)
    if options.stop is not None and len(options.stop) > dialect.stop_limit:
        message = f"`stop` cut to {dialect.stop_limit} sequences, the maximum"
        report.add("adjusted", message, subject="stop", level="lost")
        options = msgspec.structs.replace(options, stop=options.stop[: dialect.stop_limit])
    options = dialect.adjust_options(options, model, report)
    if dialect.reasoning_option in ("effort", "graded"):
        options = convert_budget_to_effort(options, report)
    reasoning = options.reasoning
    if reasoning is not None and reasoning.visible and dialect.vendor_options:
        report.add("adjusted", f"reasoning is not shown: {dialect.name} has no option for it", subject="reasoning")
    return options


def _fit_required_choice(options: Options, dialect: ChatDialect, declared: frozenset[str], report: Report) -> Options:
    """Replace `required`, where it is not supported, by the only declared tool or by `auto`."""
    choice = options.tool_choice
    if choice is None or choice.mode != "required" or dialect.required_choice:
        return options
    only = next(iter(declared)) if len(declared) == 1 else None
    replacement = "auto" if only is None else f"{only}, the only tool"
    message = f"`tool_choice` set to {replacement}: {dialect.name} does not support required"
    report.add("adjusted", message, subject="tool_choice")
    new_choice = ToolChoice("auto") if only is None else ToolChoice("tool", only)
    return msgspec.structs.replace(options, tool_choice=new_choice)


def render_options(
    options: Options,
    dialect: ChatDialect,
    project_name: Callable[[str], str],
    custom_tools: frozenset[str],
    original: Mapping[str, Any],
) -> JsonObject:
    """Return all options as body fields, with the keys of the same-API body `original`. `custom_tools` are names."""
    body = _render_choice(options.tool_choice, project_name, custom_tools, original)
    limit_key = (
        "max_tokens" if "max_tokens" in original and "max_completion_tokens" not in original else dialect.max_tokens_key
    )
    if options.max_tokens is not None:
        body[limit_key] = options.max_tokens
    if options.stop:
        body["stop"] = list(options.stop)
    body.update(_render_reasoning(options.reasoning, dialect))
    if options.response_format is not None:
        body["response_format"] = _render_format(options.response_format)
    return body | render_plain_options(options, _plain_keys(dialect))


def render_chat_vendor_options(options: Options, dialect: ChatDialect, report: Report) -> JsonObject:
    """Render the options that both OpenAI APIs have, from a Responses body."""
    if not dialect.vendor_options or options.vendor_options is None:
        return {}
    rendered = render_vendor_options(options, "user")
    if "metadata" in rendered and rendered.get("store") is not True:
        # Rejected otherwise: "The 'metadata' parameter is only allowed when 'store' is enabled."
        del rendered["metadata"]
        message = "`metadata` dropped: only accepted together with `store`"
        report.add("adjusted", message, subject="metadata", level="note")
    return rendered


def _render_choice(
    choice: ToolChoice | None,
    project_name: Callable[[str], str],
    custom_tools: frozenset[str],
    original: Mapping[str, Any],
) -> JsonObject:
    if choice is None:
        return {}
    is_legacy = "function_call" in original and "tool_choice" not in original
    if choice.mode != "tool" or choice.name is None:
        return {"function_call" if is_legacy else "tool_choice": choice.mode}
    name = project_name(choice.name)
    if is_legacy:
        return {"function_call": {"name": name}}
    kind = "custom" if choice.name in custom_tools else "function"
    return {"tool_choice": {"type": kind, kind: {"name": name}}}


def _render_reasoning(reasoning: Reasoning | None, dialect: ChatDialect) -> JsonObject:
    if reasoning is None:
        return {}
    effort = reasoning.effort
    if effort is None and reasoning.budget is not None:
        effort = effort_for_budget(reasoning.budget)
    if reasoning.enabled is False:
        effort = "none"
    if dialect.reasoning_option == "effort":
        return {} if effort is None else {"reasoning_effort": effort}
    if effort is None and not (reasoning.enabled or reasoning.adaptive or reasoning.visible):
        return {}
    if dialect.reasoning_option == "switch":
        return _render_switch(reasoning, effort)
    rendered: JsonObject = {"thinking": {"type": "disabled" if effort == "none" else "enabled"}}
    if dialect.reasoning_option == "graded" and effort is not None and effort != "none":
        rendered["reasoning_effort"] = effort
    return rendered


def _render_switch(reasoning: Reasoning, effort: Effort | None) -> JsonObject:
    if effort == "none":
        return {"enable_thinking": False}
    rendered: JsonObject = (
        {} if reasoning.enabled is None and reasoning.budget is not None else {"enable_thinking": True}
    )
    budget = reasoning.budget if reasoning.budget is not None else budget_for_effort(reasoning.effort or "none")
    if budget:
        rendered["thinking_budget"] = budget
    return rendered


def _render_format(form: ResponseFormat) -> JsonObject:
    match form.kind:
        case "text":
            return {"type": "text"}
        case "json":
            return {"type": "json_object"}
        case "schema":
            json_schema: JsonObject = {"name": NameRule().project(form.name or "response")}
            if form.schema is not None:
                json_schema["schema"] = form.schema
            if form.strict is not None:
                json_schema["strict"] = form.strict
            return {"type": "json_schema", "json_schema": json_schema}
