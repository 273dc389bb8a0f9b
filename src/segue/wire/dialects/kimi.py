"""The dialect `kimi`: Moonshot's models on the chat wire.

K2 has ids in its prompt, so they need its own form; K3 ignores ids and pairs by order and name.
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
# KIM-03, KIM-08: any non-empty id is accepted.
_K3_IDS = prefix_scheme("kimi-k3", "call_", limit=64, lawful=r"[\s\S]+")
# Video needs K2.5 or newer; images also work on the vision models of `moonshot-v1`.
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
    """Reasoning is only on or off, on models that have it; while it is on, no tool can be forced."""
    options = fit_reasoning(options, report, "asked" if model.thinking else "never")
    options = fit_user(options, OPENAI_USERS, report)
    reasoning, off = options.reasoning, is_off(options.reasoning)
    if reasoning is not None and not off and (reasoning.effort is not None or reasoning.budget is not None):
        report.add(
            "adjusted",
            "reasoning effort and budget dropped: the model has reasoning on or off only",
            subject="reasoning",
        )
    forced = options.tool_choice is not None and options.tool_choice.mode in ("required", "tool")
    if forced and model.thinking and not off:
        report.add(
            "adjusted", "tool_choice set to auto: no tool can be forced while reasoning is on", subject="tool_choice"
        )
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
        # The vision guide has base64 and uploaded files; only a help page mentions URLs. Base64 is certain.
        media_urls=False,
        max_temperature=1,
        stop_limit=5,
        schemas=schema_rules.KIMI,
        render_error=errors.render_bare_error,
        adjust=_adjusted,
    )
)
