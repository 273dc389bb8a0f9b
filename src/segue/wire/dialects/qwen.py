"""The dialect `qwen`: Alibaba's DashScope, in its mode that is compatible with the chat wire.

Some models never reason, some always do, and for the others `enable_thinking` decides.
"""

from __future__ import annotations

import re
from typing import Literal

import msgspec

from segue.canonical.request import Options, Reasoning, ToolChoice
from segue.models import OPEN_FAMILIES, Model, cache_by_model
from segue.render.constraints import Constraints
from segue.render.report import Report
from segue.wire.base import BodyTool
from segue.wire.ids import prefix_scheme
from segue.wire.names import NameRule
from segue.wire.openai_chat import errors, make_wire
from segue.wire.openai_chat.dialect import ChatDialect, fit_reasoning, is_reasoning_off
from segue.wire.options import budget_for_effort, drop_options
from segue.wire.schema import rules as schema_rules

_IDS = prefix_scheme("qwen", "call_", limit=64, pattern=r"[\s\S]+")
# A budget above the model's maximum is rejected; without a budget the maximum applies.
_MAX_BUDGET = 32_768


def _name_parts(model: Model) -> set[str]:
    return set(re.findall(r"[a-z]+", model.name.lower()))


def _supports_images(model: Model) -> bool:
    return bool({"vl", "omni", "qvq"} & _name_parts(model)) or model.at_least(3, 5)


def _reasoning_support(model: Model) -> Literal["never", "optional", "always"]:
    parts = _name_parts(model)
    if {"thinking", "qwq", "qvq"} & parts:
        return "always"
    older = bool(model.version) and not model.at_least(3)
    return "never" if older or {"instruct", "coder"} & parts or model.name.startswith("qwen-max") else "optional"


@cache_by_model
def _constraints(model: Model) -> Constraints:
    return Constraints(
        "qwen",
        "qwen",
        id_pattern=_IDS.pattern,
        # QWEN-04
        first_speaker="human",
        needs_user_message=True,
        ending="prefill",
        later_system="text",
        reasoning_replay="plain",
        accepts_unknown_reasoning=True,
        # «'messages' must contain the word 'json'»: also from models that treat a schema as plain JSON mode.
        json_word="anywhere",
        json_word_for_schemas=True,
        option_ranges={"temperature": (0, 1.99), "top_p": (0, 1)},
        empty_message_speakers=frozenset({"human", "ai", "system"}),
        media_in_user=frozenset({"image", "video"}) if _supports_images(model) else frozenset[str](),
        keeps_own_result_media=True,
    )


def _adjust_options(options: Options, model: Model, report: Report) -> Options:
    """While reasoning is on: no forced tool, no response format, and on the open models only streamed replies."""
    options = fit_reasoning(options, report, support := _reasoning_support(model))
    if is_reasoning_off(reasoning := options.reasoning) or (reasoning is None and not model.reasons_by_default):
        return options
    forced = options.tool_choice is not None and options.tool_choice.mode in ("required", "tool")
    has_format = options.response_format is not None and options.response_format.kind != "text"
    lacks_stream = re.search(r"\bqwen3-\d+(\.\d+)?b", model.name.lower()) is not None and not options.stream
    if support == "optional" and (forced or has_format or lacks_stream):
        conflict = "a forced tool" if forced else "a response format" if has_format else "a reply that is not streamed"
        message = f"reasoning disabled: the model does not support it with {conflict}"
        report.add("adjusted", message, subject="reasoning")
        return msgspec.structs.replace(options, reasoning=Reasoning(enabled=False))
    if forced:
        message = "`tool_choice` set to auto: no tool can be forced while reasoning is on"
        report.add("adjusted", message, subject="tool_choice")
        options = msgspec.structs.replace(options, tool_choice=ToolChoice("auto"))
    if has_format:
        options = drop_options(options, report, "not supported while reasoning is on", "response_format")
    budget = 0 if reasoning is None else reasoning.budget or budget_for_effort(reasoning.effort or "none")
    if budget > _MAX_BUDGET:
        message = f"reasoning budget dropped: budgets above {_MAX_BUDGET} tokens may be rejected"
        report.add("adjusted", message, subject="reasoning", level="lost")
        options = msgspec.structs.replace(options, reasoning=Reasoning(enabled=True))
    return options


WIRE = make_wire(
    ChatDialect(
        name="qwen",
        provider="qwen",
        default_model="qwen-plus",
        constraints=_constraints,
        reasoning_key="reasoning_content",
        reasoning_option="switch",
        prefill_key="partial",
        arguments="object",
        # «tool_choice is one of the strings that should be ["none", "auto"]»; the object form is accepted.
        required_choice=False,
        hosted_tools=False,
        media=frozenset({"image", "video"}),
        option_keys={"top_k": "top_k", "user": None},
        schema_rules=schema_rules.QWEN,
        render_error=errors.render_qwen_error,
        adjust_options=_adjust_options,
    ),
    title="Alibaba Qwen (DashScope)",
    id_scheme=lambda _model: _IDS,
    tool_format="qwen",
    families=("qwen",),
    served_families=OPEN_FAMILIES,
    base_path="/compatible-mode/v1",
    body_tool=BodyTool("enable_search", "search_options", with_functions=False),
    name_rule=lambda _model: NameRule(same_api_allowed=r"\s\S", same_api_limit=10_000),
)
