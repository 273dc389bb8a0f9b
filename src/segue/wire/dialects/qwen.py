"""The dialect `qwen`: Alibaba's DashScope, in its mode that is compatible with the chat wire.

Some models never think, some always do, and those between are told with `enable_thinking`.
"""

from __future__ import annotations

import re
from typing import Literal

import msgspec

from segue.canonical.request import Options, Reasoning, ToolChoice
from segue.models import Model
from segue.render.demands import Demands
from segue.render.report import Report
from segue.wire.effort import budget_of
from segue.wire.idmap import prefix_scheme
from segue.wire.names import NameRule
from segue.wire.openai_chat import errors, make_wire
from segue.wire.openai_chat.dialect import ChatDialect, fit_reasoning, is_off, left_out
from segue.wire.schema import rules as schema_rules

__all__ = ["QWEN"]

_IDS = prefix_scheme("qwen", "call_", limit=64, lawful=r"[\s\S]+")
# More than any model takes is refused; not to say it means as much as there is.
_MOST_THINKING = 32_768


def _names(_model: Model) -> NameRule:
    return NameRule(home_allowed=r"\s\S", home_limit=10_000)


def _words(model: Model) -> set[str]:
    return set(re.findall(r"[a-z]+", model.name.lower()))


def _sees(model: Model) -> bool:
    return bool({"vl", "omni", "qvq"} & _words(model)) or model.at_least(3, 5)


def _thinks(model: Model) -> Literal["never", "asked", "always"]:
    words = _words(model)
    if {"thinking", "qwq", "qvq"} & words:
        return "always"
    older = bool(model.version) and not model.at_least(3)
    return "never" if older or {"instruct", "coder"} & words or model.name.startswith("qwen-max") else "asked"


def _demands(model: Model) -> Demands:
    return Demands(
        "qwen",
        "qwen",
        own_id=_IDS.lawful,
        # QWEN-04
        first="human",
        human_wanted=True,
        ending="prefill",
        later_system="text",
        reasoning="plain",
        # «'messages' must contain the word 'json'»: also by models that take a schema for plain JSON.
        json_word="anywhere",
        json_word_for_schemas=True,
        empty_messages=frozenset({"human", "ai", "system"}),
        media_human=frozenset({"image", "video"}) if _sees(model) else frozenset[str](),
        media_at_home=True,
    )


def _adjusted(options: Options, model: Model, report: Report) -> Options:
    """Thinking goes with a free choice of tools and of form, and on the open models with streams only."""
    options = fit_reasoning(options, report, thinks := _thinks(model))
    if is_off(asked := options.reasoning) or (asked is None and not model.thinking):
        return options
    forced = options.tool_choice is not None and options.tool_choice.mode in ("required", "tool")
    formed = options.response_format is not None and options.response_format.kind != "text"
    unstreamed = re.search(r"\bqwen3-\d+(\.\d+)?b", model.name.lower()) is not None and not options.stream
    if thinks == "asked" and (forced or formed or unstreamed):
        why = "a forced tool" if forced else "a form for the answer" if formed else "a reply in one piece"
        report.add("adjusted", f"thinking can't go with {why}: switched off", subject="reasoning")
        return msgspec.structs.replace(options, reasoning=Reasoning(enabled=False))
    if forced:
        report.add("adjusted", "no tool can be forced while the model thinks: left to it", subject="tool_choice")
        options = msgspec.structs.replace(options, tool_choice=ToolChoice("auto"))
    if formed:
        options = left_out(options, report, "the model thinks", "response_format")
    budget = 0 if asked is None else asked.budget or budget_of(asked.effort or "none")
    if budget > _MOST_THINKING:
        report.add("adjusted", "a budget beyond what every model takes is not said", subject="reasoning")
        options = msgspec.structs.replace(options, reasoning=Reasoning(enabled=True))
    return options


QWEN = make_wire(
    ChatDialect(
        name="qwen",
        provider="qwen",
        title="Alibaba Qwen (DashScope)",
        default_model="qwen-plus",
        demands=_demands,
        ids=lambda _model: _IDS,
        tool_format="qwen",
        names=_names,
        reasoning_key="reasoning_content",
        reasoning_option="switch",
        prefill_key="partial",
        arguments="object",
        # «tool_choice is one of the strings that should be ["none", "auto"]»; the object form is taken.
        required_choice=False,
        hosted_tools=False,
        media=frozenset({"image", "video"}),
        max_temperature=1.99,
        option_keys={"top_k": "top_k", "user": None},
        schemas=schema_rules.QWEN,
        render_error=errors.render_qwen_error,
        adjust=_adjusted,
    )
)
