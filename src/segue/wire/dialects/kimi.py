"""The dialect `kimi`: Moonshot's models on the chat wire.

K2 reads ids as part of its prompt, so they have its own form; K3 reads none and goes by order and name.
"""

from __future__ import annotations

import msgspec

from segue.canonical.request import Options, ToolChoice
from segue.models import Model
from segue.render.demands import Demands
from segue.render.report import Report
from segue.wire.idmap import IdScheme, kimi_scheme, prefix_scheme
from segue.wire.names import NameRule
from segue.wire.openai_chat import errors, make_wire
from segue.wire.openai_chat.dialect import ChatDialect, fit_reasoning, is_off
from segue.wire.schema import rules as schema_rules
from segue.wire.users import OPENAI_USERS, fit_user

__all__ = ["KIMI"]

# KIM-01
_K2_IDS = kimi_scheme()
# KIM-03, KIM-08: any id will do, as long as there is one.
_K3_IDS = prefix_scheme("kimi-k3", "call_", limit=64, lawful=r"[\s\S]+")
# Films are for K2.5 and newer, pictures also for the vision models of `moonshot-v1`.
_MEDIA = frozenset({"image", "video"})


def _is_k3(model: Model) -> bool:
    return model.line == "k3"


def _ids(model: Model) -> IdScheme:
    return _K3_IDS if _is_k3(model) else _K2_IDS


def _demands(model: Model) -> Demands:
    return Demands(
        "kimi",
        "kimi",
        # KIM-08
        by_position=_is_k3(model),
        own_id=_ids(model).lawful,
        later_system="text",
        reasoning="plain",
        # KIM-04
        reasoning_on_calls="default" if model.thinking else "asked",
        # KIM-06
        empty_text="refused",
        # KIM-05
        reasoning_alone=False,
        empty_messages=frozenset({"human", "system"}),
        media_human=_MEDIA - {"video"} if model.line == "moonshot" else _MEDIA,
        text_results=True,
    )


def _adjusted(options: Options, model: Model, report: Report) -> Options:
    """Thinking is on or off, on models that have it at all; while it is on, no tool can be forced."""
    options = fit_reasoning(options, report, "asked" if model.thinking else "never")
    options = fit_user(options, OPENAI_USERS, report)
    asked, off = options.reasoning, is_off(options.reasoning)
    if asked is not None and not off and (asked.effort is not None or asked.budget is not None):
        report.add("adjusted", "thinking is on or off here, without a measure", subject="reasoning")
    forced = options.tool_choice is not None and options.tool_choice.mode in ("required", "tool")
    if forced and model.thinking and not off:
        report.add("adjusted", "no tool can be forced while the model thinks: left to it", subject="tool_choice")
        options = msgspec.structs.replace(options, tool_choice=ToolChoice("auto"))
    return options


KIMI = make_wire(
    ChatDialect(
        name="kimi",
        provider="kimi",
        title="Moonshot Kimi",
        default_model="kimi-k2-0905-preview",
        demands=_demands,
        usage_at_end=True,
        ids=_ids,
        tool_format="kimi",
        # «function name is invalid, must start with a letter and can contain letters, numbers, underscores, and dashes»
        names=lambda _model: NameRule(first="a-zA-Z"),
        reasoning_key="reasoning_content",
        reasoning_option="thinking",
        named_results=True,
        call_types=frozenset({"builtin_function"}),
        media=_MEDIA,
        # The guide to vision knows base64 and uploaded files; a help page speaks of addresses, too. Base64 is sure.
        media_urls=False,
        max_temperature=1,
        stop_limit=5,
        schemas=schema_rules.KIMI,
        render_error=errors.render_bare_error,
        adjust=_adjusted,
    )
)
