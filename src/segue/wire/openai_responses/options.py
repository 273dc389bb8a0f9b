"""Request options ⇄ `Options`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, cast, get_args

import msgspec

from segue.canonical.json import are_identical
from segue.canonical.request import Effort, Options, Reasoning, ResponseFormat, ToolChoice
from segue.errors import InputError
from segue.models import Model
from segue.wire import mixed_body
from segue.wire.json_values import (
    JsonObject,
    object_list,
    object_or_none,
    optional_boolean,
    optional_integer,
    optional_object,
    optional_string,
    optional_strings,
    require_object,
    string_or_none,
)
from segue.wire.names import NameRule
from segue.wire.openai_responses.context import ResponsesContext, ResponsesDialect
from segue.wire.openai_shared import (
    VENDOR_OPTIONS,
    convert_budget_to_effort,
    drop_undeclared_choice,
    fit_options_to_model,
    parse_format,
    parse_mode,
    parse_vendor_options,
    render_vendor_options,
    require_mode,
)
from segue.wire.options import (
    OptionTypes,
    drop_options,
    effort_for_budget,
    parse_plain_options,
    render_plain_options,
    validate_options,
)

_EFFORTS: tuple[Effort, ...] = get_args(Effort)
_PLAIN_OPTIONS = {
    "parallel": "parallel_tool_calls",
    "temperature": "temperature",
    "top_p": "top_p",
    "max_tokens": "max_output_tokens",
    "stream": "stream",
}
OPTION_KEYS = frozenset(
    {
        *_PLAIN_OPTIONS.values(),
        "tool_choice",
        "reasoning.effort",
        "reasoning.summary",
        *(f"tool_choice.{key}" for key in ("type", "name", "mode", "tools")),
        *(f"text.format.{key}" for key in ("type", "name", "description", "schema", "strict")),
        "user",
        "safety_identifier",
    }
)
VENDOR_OPTION_KEYS = VENDOR_OPTIONS | {"verbosity": "text.verbosity"}
_OPTION_TYPES: OptionTypes = {
    "include": optional_strings,
    "truncation": optional_string,
    "background": optional_boolean,
    "top_logprobs": optional_integer,
    "max_tool_calls": optional_integer,
    "prompt": optional_object,
    "stream_options": optional_object,
}
_UNSUPPORTED_OPTIONS = ("top_k", "stop", "seed", "presence_penalty", "frequency_penalty")
_MIN_TOKENS = 16


# ------------------------------------------------------------------------------------------------------------------ in


def parse_options(body: Mapping[str, Any], dialect: ResponsesDialect) -> Options:
    text = optional_object(body.get("text"), "text") or {}
    form = optional_object(text.get("format"), "text.format") or {}
    verbosity = optional_string(text.get("verbosity"), "text.verbosity")
    user_ids = [optional_string(body.get(key), key) for key in ("safety_identifier", "user")]
    validate_options(_OPTION_TYPES, body.get)
    plain = parse_plain_options(_PLAIN_OPTIONS, body.get)
    foreign = mixed_body.parse_choice(body.get("tool_choice"), mixed_body.RESPONSES)
    if foreign is not None and foreign.parallel is not None:
        plain["parallel"] = foreign.parallel
    return Options(
        **plain,
        tool_choice=_parse_choice(body.get("tool_choice")) if foreign is None else foreign.tool_choice,
        reasoning=_parse_reasoning(optional_object(body.get("reasoning"), "reasoning"), dialect),
        response_format=parse_format(optional_string(form.get("type"), "text.format.type"), form, "text.format"),
        user=user_ids[0] or user_ids[1],
        vendor_options=parse_vendor_options({**body, "verbosity": verbosity}) if dialect.vendor_options else None,
    )


def _parse_choice(value: object) -> ToolChoice | None:
    if value is None:
        return None
    if isinstance(value, str):
        return require_mode(value)
    choice = require_object(value, "tool_choice")
    kind = optional_string(choice.get("type"), "tool_choice.type")
    optional_string(choice.get("name"), "tool_choice.name")
    if kind == "allowed_tools":
        mode = parse_mode(optional_string(choice.get("mode"), "tool_choice.mode"))
        return mode and msgspec.structs.replace(mode, allowed=_parse_allowed(choice.get("tools")))
    name = _choice_name(choice)
    return ToolChoice("tool", name) if name else None


def _choice_name(entry: JsonObject) -> str | None:
    """Return the tool name of an entry; for hosted tools its label or type."""
    if (kind := entry.get("type")) in ("function", "custom"):
        # Clients of Chat Completions nest it.
        return string_or_none(entry.get("name") or (object_or_none(entry.get(str(kind))) or {}).get("name"))
    return string_or_none(entry.get("name") or entry.get("server_label") or entry.get("type"))


def _parse_allowed(value: object) -> tuple[str, ...] | None:
    entries = object_list(value)
    return tuple(name for entry in entries if (name := _choice_name(entry))) or None


def _parse_reasoning(value: JsonObject | None, dialect: ResponsesDialect) -> Reasoning | None:
    if value is None:
        return None
    raw_effort, *summaries = (
        optional_string(value.get(key), f"reasoning.{key}") for key in ("effort", "summary", "generate_summary")
    )
    effort: Effort | None = next((candidate for candidate in _EFFORTS if candidate == raw_effort), None)
    if raw_effort is not None and effort is None and not dialect.vendor_options:
        # AZF-03: the list of efforts is closed there.
        raise InputError(
            f"unknown effort {raw_effort!r}; expected one of {', '.join(_EFFORTS)}", path="reasoning.effort"
        )
    visible = any(summaries)
    if effort is None and not visible:
        return None
    return Reasoning(enabled=False if effort == "none" else None, effort=effort, visible=visible)


# ----------------------------------------------------------------------------------------------------------------- out


def fit_options(options: Options, model: Model, declared: frozenset[str], context: ResponsesContext) -> Options:
    """Change options of another API to those that the target accepts; report each change."""
    report = context.report
    options = drop_undeclared_choice(options, declared, report)
    options = drop_options(options, report, f"{context.dialect.name} has no such option", *_UNSUPPORTED_OPTIONS)
    if options.max_tokens is not None and options.max_tokens < _MIN_TOKENS:
        report.add("adjusted", f"`max_output_tokens` raised to {_MIN_TOKENS}, the minimum", subject="max_tokens")
        options = msgspec.structs.replace(options, max_tokens=_MIN_TOKENS)
    form = options.response_format
    if form is not None and form.kind == "schema" and form.schema is None:
        options = drop_options(options, report, "it has no schema", "response_format")
    return convert_budget_to_effort(fit_options_to_model(options, model, report), report)


def render_options(
    options: Options,
    dialect: ResponsesDialect,
    project_name: Callable[[str], str],
    custom_tools: frozenset[str],
    original: Mapping[str, Any],
) -> JsonObject:
    """Return all options as body fields, with the keys of the same-API body `original`. `custom_tools` are names."""
    body: JsonObject = {}
    if options.tool_choice is not None:
        body["tool_choice"] = _render_choice(options.tool_choice, project_name, custom_tools)
    body |= render_plain_options(options, _PLAIN_OPTIONS)
    if reasoning := _render_reasoning(options.reasoning, has_summaries=dialect.summaries):
        body["reasoning"] = reasoning
    if options.response_format is not None:
        body["text"] = {"format": _render_format(options.response_format)}
    if options.user is not None:
        body["user" if "user" in original and "safety_identifier" not in original else "safety_identifier"] = (
            options.user
        )
    return body


def add_vendor_options(options: Options, rendered: JsonObject) -> JsonObject:
    """Add the options that both OpenAI APIs have, from a Chat Completions body."""
    if options.vendor_options is None:
        return rendered
    vendor = render_vendor_options(options, "safety_identifier")
    verbosity = vendor.pop("verbosity", None)
    merged = {key: value for key, value in rendered.items() if key not in ("user", "safety_identifier")} | vendor
    return merged if verbosity is None else {**merged, "text": {**merged.get("text", {}), "verbosity": verbosity}}


def _render_choice(
    choice: ToolChoice, project_name: Callable[[str], str], custom_tools: frozenset[str]
) -> str | JsonObject:
    if choice.mode != "tool" or choice.name is None:
        return choice.mode
    return {"type": "custom" if choice.name in custom_tools else "function", "name": project_name(choice.name)}


def _render_reasoning(reasoning: Reasoning | None, *, has_summaries: bool) -> JsonObject:
    if reasoning is None:
        return {}
    if reasoning.is_off:
        return {"effort": "none"}
    effort = reasoning.effort or (None if reasoning.budget is None else effort_for_budget(reasoning.budget))
    rendered: JsonObject = {} if effort is None else {"effort": effort}
    return {**rendered, "summary": "auto"} if reasoning.visible and has_summaries else rendered


def _render_format(form: ResponseFormat) -> JsonObject:
    match form.kind:
        case "text":
            return {"type": "text"}
        case "json":
            return {"type": "json_object"}
        case "schema":
            rendered: JsonObject = {
                "type": "json_schema",
                "name": NameRule().project(form.name or "response"),
                "schema": form.schema,
            }
            return rendered if form.strict is None else {**rendered, "strict": form.strict}


def project_allowed_tools(choice: JsonObject, project_name: Callable[[str], str]) -> JsonObject:
    """Project the tool names in `allowed_tools`; return the same object if they do not change."""
    entries = cast("list[object]", choice["tools"]) if isinstance(choice.get("tools"), list) else []
    projected = [_project_entry(entry, project_name) for entry in entries]
    return choice if are_identical(projected, entries) else {**choice, "tools": projected}


def _project_entry(value: object, project_name: Callable[[str], str]) -> object:
    entry = object_or_none(value) or {}
    name = entry.get("name")
    if not isinstance(name, str) or entry.get("type") not in ("function", "custom") or project_name(name) == name:
        return value
    return {**entry, "name": project_name(name)}
