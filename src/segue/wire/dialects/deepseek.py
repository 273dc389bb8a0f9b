"""The dialect `deepseek`: DeepSeek's own API on the chat wire.

For reasoning models every replayed reply must have `reasoning_content`; R1 rejects that key.
"""

from __future__ import annotations

from segue.canonical.request import Options
from segue.models import Model, cache_by_model
from segue.render.constraints import Constraints
from segue.render.report import Report
from segue.wire.ids import prefix_scheme
from segue.wire.openai_chat import make_wire
from segue.wire.openai_chat.dialect import ChatDialect, fit_reasoning
from segue.wire.options import hash_invalid_user_id
from segue.wire.schema import rules as schema_rules

_IDS = prefix_scheme("deepseek", "call_", limit=64, pattern=r"[\s\S]+")


@cache_by_model
def _constraints(model: Model) -> Constraints:
    r1 = model.line == "r1"
    return Constraints(
        "deepseek",
        "deepseek",
        id_pattern=_IDS.pattern,
        # DS-07: `deepseek-reasoner` no longer means R1, the only model known to reject consecutive same-role messages.
        alternation="strict" if r1 else "merged" if model.line == "reasoner" else "free",
        # DS-08: only reasoning models were seen to reject another ending.
        ending="marked" if model.reasons_by_default else "prefill",
        allows_system_last=not model.reasons_by_default,
        later_system="text",
        # DS-04
        reasoning_replay="refused" if r1 else "plain",
        accepts_unknown_reasoning=True,
        # DS-01, DS-02
        reasoning_required_on_calls="never" if r1 else "default" if model.reasons_by_default else "requested",
        # DS-02: from V4 on (also the names without version), on messages without calls too.
        reasoning_required_on_text=not model.version or model.at_least(4),
        reasoning_by_default=model.reasons_by_default,
        can_disable_reasoning=model.line not in ("r1", "reasoner"),
        # DS-09
        reasoning_forbids_forced_choice=True,
        # «Prompt must contain the word 'json' in some form to use 'response_format' of type 'json_object'»
        json_word="anywhere",
        response_formats=frozenset({"json"}),
        option_ranges={"temperature": (0, 2)},
        empty_message_speakers=frozenset({"human", "ai", "system"}),
        text_only_results=True,
    )


def _adjust_options(options: Options, model: Model, report: Report) -> Options:
    options = hash_invalid_user_id(options, r"[a-zA-Z0-9_-]{1,512}", report)
    return fit_reasoning(options, report, "always" if model.line in ("r1", "reasoner") else "optional")


WIRE = make_wire(
    ChatDialect(
        name="deepseek",
        provider="deepseek",
        default_model="deepseek-chat",
        constraints=_constraints,
        usage_at_end=True,
        reasoning_key="reasoning_content",
        reasoning_option="graded",
        prefill_key="prefix",
        content_parts=False,
        media=frozenset(),
        stop_limit=16,
        empty_tools=False,
        hosted_tools=False,
        option_keys={"user": "user_id"},
        schema_rules=schema_rules.DEEPSEEK,
        adjust_options=_adjust_options,
    ),
    title="DeepSeek",
    id_scheme=lambda _model: _IDS,
    tool_format="deepseek",
    families=("deepseek",),
    served_families=frozenset({"deepseek"}),
    base_path="",
)
