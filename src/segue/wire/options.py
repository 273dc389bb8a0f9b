"""Steps that the `options.py` of the wires share: plain options, stop sequences, dropped options, user ids, effort.

A plain option has the same value on both sides. A wire lists its plain options in a table, canonical field → API key.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from hashlib import sha256
from typing import Any, Protocol, TypeAlias

import msgspec

from segue.canonical.request import Effort, Options
from segue.models import Model, parse_model
from segue.render.report import Report, field_level
from segue.render.transcript import Transcript
from segue.wire.base import RenderContext
from segue.wire.json_values import JsonObject, optional_boolean, optional_integer, optional_number, optional_string

_VALUE_PARSERS: dict[str, Callable[[object, str], Any]] = {
    "max_tokens": optional_integer,
    "temperature": optional_number,
    "top_p": optional_number,
    "top_k": optional_integer,
    "parallel": optional_boolean,
    "stream": optional_boolean,
    "seed": optional_integer,
    "presence_penalty": optional_number,
    "frequency_penalty": optional_number,
    "user": optional_string,
}
OptionTypes: TypeAlias = Mapping[str, Callable[[object, str], object]]
"""Options without a canonical field, which are only sent same-API, with the parser that validates the value."""
# Names of options in reports where they differ from the canonical name.
_REPORT_NAMES = {"parallel": "parallel_tool_calls"}


def parse_plain_options(
    keys: Mapping[str, str | None], get: Callable[[str], object], get_path: Callable[[str], str] = str
) -> dict[str, Any]:
    """Return the plain options that are set, by canonical field. `get_path` returns the path of a key."""
    return {
        field: _VALUE_PARSERS[field](value, get_path(key))
        for field, key in keys.items()
        if key is not None and (value := get(key)) is not None
    }


def validate_options(types: OptionTypes, get: Callable[[str], object], get_path: Callable[[str], str] = str) -> None:
    """Raise `InputError` for an option without a canonical field whose value has the wrong type."""
    for key, parse in types.items():
        if (value := get(key)) is not None:
            parse(value, get_path(key))


def render_plain_options(options: Options, keys: Mapping[str, str | None]) -> JsonObject:
    """Return the plain options that are set, by API key, in the order of the table."""
    return {
        key: value for field, key in keys.items() if key is not None and (value := getattr(options, field)) is not None
    }


def drop_blank_stops(options: Options, report: Report) -> list[str]:
    """Return the stop sequences without blank ones, which some APIs reject."""
    stops = options.stop or ()
    kept = [text for text in stops if text.strip()]
    if len(kept) < len(stops):
        report_dropped(report, "blank stop sequences are rejected", "stop")
    return kept


def drop_options(options: Options, report: Report, reason: str, *names: str) -> Options:
    """Return the options without these names; report each that was set, with the reason."""
    present = present_options(options, *names) if names else ()
    if not present:
        return options
    report_dropped(report, reason, *(_REPORT_NAMES.get(name, name) for name in present))
    return msgspec.structs.replace(options, **dict.fromkeys(present))


def present_options(options: Options, *names: str) -> list[str]:
    """Return the names of the options that are set."""
    return [name for name in names if getattr(options, name) not in (None, ())]


def report_dropped(report: Report, reason: str, *names: str) -> None:
    """Report options that are not sent to the target, in place of earlier changes of their values."""
    for name in names:
        report.add("adjusted", f"`{name}` dropped: {reason}", subject=name, level=field_level(name), is_drop=True)


def find_fitted(before: Options, after: Options) -> frozenset[str]:
    """Return the names of the plain options that the passes changed."""
    return frozenset(name for name in _VALUE_PARSERS if getattr(before, name) != getattr(after, name))


class RenderOptions(Protocol):
    """Renders options as fields of a body. `has_tools`: tools are declared; `project_name` projects tool names."""

    def __call__(
        self, options: Options, model: Model, report: Report, *, has_tools: bool, project_name: Callable[[str], str]
    ) -> JsonObject: ...


def render_changes(
    render: RenderOptions,
    transcript: Transcript,
    context: RenderContext,
    default_model: str,
    *,
    has_tools: bool,
    dropped: frozenset[str] = frozenset(),
) -> tuple[JsonObject, JsonObject]:
    """Return the options of a same-API body and those of the transcript as fields of a body.

    `has_tools`: the transcript declares tools. What rendering changes now and did not before is reported; of the
    `dropped` options in any case.
    """
    request, before, after = transcript.request, Report(), Report()
    old_model, new_model = (parse_model(name or default_model) for name in (request.model, transcript.model))
    old = render(request.options, old_model, before, has_tools=bool(request.tools), project_name=str)
    names = context.names.render
    new = render(transcript.options, new_model, after, has_tools=has_tools, project_name=names)
    findings = (found for found in after.findings if found.subject in dropped or found not in before.findings)
    context.report.extend(findings, drops=after.drops)
    return old, new


# ------------------------------------------------------------------------------------------------------------ user ids

# From OpenAI's reference of `safety_identifier` and its error for a longer `user`. A hash has exactly 64 digits.
OPENAI_USER_PATTERN = r"[\s\S]{0,64}"


def hash_invalid_user_id(options: Options, pattern: str, report: Report) -> Options:
    """Return the options with a user id that matches `pattern`: an invalid id is replaced by its SHA-256 hash."""
    if options.user is None or re.fullmatch(pattern, options.user):
        return options
    report.add("adjusted", "user id replaced by its hash: the target does not accept it", subject="user", level="note")
    return msgspec.structs.replace(options, user=sha256(options.user.encode()).hexdigest())


# -------------------------------------------------------------------------------------------- effort ⇄ thinking tokens

_BUDGETS: dict[Effort, int] = {
    "minimal": 1024,
    "low": 2048,
    "medium": 8192,
    "high": 16384,
    "xhigh": 32768,
    "max": 65536,
}


def budget_for_effort(effort: Effort) -> int:
    """Return the thinking tokens for an effort; 0 for `none`."""
    return _BUDGETS.get(effort, 0)


def effort_for_budget(budget: int, *, available: tuple[Effort, ...] = ("low", "medium", "high")) -> Effort:
    """Return the smallest `available` effort whose budget covers this one, else the largest."""
    if budget <= 0:
        return "none"
    for effort in available:
        if _BUDGETS[effort] >= budget:
            return effort
    return available[-1]


def clamp_effort(effort: Effort | None, available: tuple[Effort, ...]) -> Effort | None:
    """Return the effort itself, or the highest `available` one below it, or the lowest."""
    if effort is None or effort == "none" or not available:
        return None
    below: list[Effort] = [step for step in available if _BUDGETS[step] <= _BUDGETS[effort]]
    return below[-1] if below else available[0]


def closest_effort(budget: int, available: tuple[Effort, ...]) -> Effort:
    """Return the `available` effort whose budget is nearest, also `none`; the higher of two that are equally near."""
    return min(available, key=lambda effort: (abs(budget_for_effort(effort) - budget), -budget_for_effort(effort)))
