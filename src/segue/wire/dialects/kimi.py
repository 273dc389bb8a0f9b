"""The dialect `kimi`: Moonshot's models on the chat wire.

K2 has ids in its prompt, so they must have its own form; K3 ignores ids and pairs by order and name.
"""

from __future__ import annotations

import msgspec

from segue.canonical.request import Options, ToolChoice
from segue.models import Model, cache_by_model
from segue.render.constraints import Constraints
from segue.render.report import Report
from segue.wire.ids import IdScheme, kimi_scheme, prefix_scheme
from segue.wire.names import NameRule
from segue.wire.openai_chat import errors, make_wire
from segue.wire.openai_chat.dialect import ChatDialect, fit_reasoning, is_reasoning_off
from segue.wire.options import OPENAI_USER_PATTERN, hash_invalid_user_id
from segue.wire.schema import rules as schema_rules

# KIM-01
_K2_IDS = kimi_scheme()
# KIM-03, KIM-08: any non-empty id is accepted.
_K3_IDS = prefix_scheme("kimi-k3", "call_", limit=64, pattern=r"[\s\S]+")
# Video needs K2.5 or newer; images also work on the vision models of `moonshot-v1`.
_MEDIA = frozenset({"image", "video"})


def _is_k3(model: Model) -> bool:
    return model.line == "k3"


def _ids(model: Model) -> IdScheme:
    return _K3_IDS if _is_k3(model) else _K2_IDS


@cache_by_model
def _constraints(model: Model) -> Constraints:
    return Constraints(
        "kimi",
        "kimi",
        # KIM-08
        pairs_by_position=_is_k3(model),
        id_pattern=_ids(model).pattern,
        later_system="text",
        reasoning_replay="plain",
        accepts_unknown_reasoning=True,
        # KIM-04
        reasoning_required_on_calls="default" if model.reasons_by_default else "requested",
        # KIM-06
        empty_text="refused",
        # KIM-05
        allows_reasoning_alone=False,
        option_ranges={"temperature": (0, 1), "top_p": (0, 1)},
        empty_message_speakers=frozenset({"human", "system"}),
        media_in_user=_MEDIA - {"video"} if model.line == "moonshot" else _MEDIA,
        text_only_results=True,
    )


def _adjust_options(options: Options, model: Model, report: Report) -> Options:
    """Reasoning is only on or off, on models that have it; while it is on, no tool can be forced."""
    options = fit_reasoning(options, report, "optional" if model.reasons_by_default else "never")
    options = hash_invalid_user_id(options, OPENAI_USER_PATTERN, report)
    reasoning, disabled = options.reasoning, is_reasoning_off(options.reasoning)
    if reasoning is not None and not disabled and (reasoning.effort is not None or reasoning.budget is not None):
        message = "reasoning effort and budget dropped: reasoning is only on or off on this model"
        report.add("adjusted", message, subject="reasoning", level="lost")
    forced = options.tool_choice is not None and options.tool_choice.mode in ("required", "tool")
    if forced and model.reasons_by_default and not disabled:
        message = "`tool_choice` set to auto: no tool can be forced while reasoning is on"
        report.add("adjusted", message, subject="tool_choice")
        options = msgspec.structs.replace(options, tool_choice=ToolChoice("auto"))
    return options


WIRE = make_wire(
    ChatDialect(
        name="kimi",
        provider="kimi",
        default_model="kimi-k2-0905-preview",
        constraints=_constraints,
        usage_at_end=True,
        reasoning_key="reasoning_content",
        reasoning_option="thinking",
        named_results=True,
        extra_call_types=frozenset({"builtin_function"}),
        media=_MEDIA,
        # The vision guide has base64 and uploaded files; only a help page mentions URLs. Base64 is certain.
        media_urls=False,
        stop_limit=5,
        schema_rules=schema_rules.KIMI,
        render_error=errors.render_minimal_error,
        adjust_options=_adjust_options,
    ),
    title="Moonshot Kimi",
    id_scheme=_ids,
    tool_format="kimi",
    tool_format_ids=_K2_IDS,
    families=("kimi",),
    served_families=frozenset({"kimi"}),
    # «function name is invalid, must start with a letter and can contain letters, numbers, underscores, and dashes»
    name_rule=lambda _model: NameRule(first_allowed="a-zA-Z"),
)
