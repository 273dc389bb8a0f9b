"""Server profiles: servers that serve `openai-chat` with rules of their own (COMP-*), as differences from it.

A profile is data: the columns of the constraints and the fields of the dialect that differ. `_BASE` applies to all of
them: a server that implements the common API, without what only OpenAI has.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import msgspec

from segue.models import Model
from segue.render.demands import Demands
from segue.wire.base import Wire
from segue.wire.idmap import IdScheme, kimi_scheme, mistral_scheme
from segue.wire.openai_chat import OPENAI_DIALECT, errors, make_wire
from segue.wire.schema import rules as schema_rules

__all__ = ["PROFILES", "Profile", "profiled"]

Row = Mapping[str, Any]


def _nothing_more(_model: Model) -> Row:
    return {}


class Profile(msgspec.Struct, frozen=True):
    """`dialect` and `constraints` hold what differs; `by_model` returns the constraints that depend on the model."""

    dialect: Row = {}
    demands: Row = {}
    by_model: Callable[[Model], Row] = _nothing_more
    ids: Callable[[Model], IdScheme] = OPENAI_DIALECT.ids


_IDS = {"kimi": kimi_scheme(), "mistral": mistral_scheme()}


def _ids_of_family(model: Model) -> IdScheme:
    """The id scheme of the served model, for servers that pass ids to its chat template (KIM-01, COMP-15)."""
    own = model.family in _IDS and model.line != "k3"
    return _IDS[model.family] if own else OPENAI_DIALECT.ids(model)


def _where_models_reason(model: Model) -> Row:
    """COMP-02: same-API reasoning is sent back to reasoning models only."""
    reasons = model.thinking or _is_gpt_oss(model) or model.family == "qwen"
    return {"reasoning": "none" if reasons else "refused"}


def _is_gpt_oss(model: Model) -> bool:
    return model.name.rsplit("/", 1)[-1].lower().startswith("gpt-oss")


_MISTRAL_TURNS = {
    "alternation": "strict",
    "bridge": True,
    "first": "human",
    "first_at_home": "human",
    "later_system_at_home": False,
}


def _as_templates_have_it(model: Model) -> Row:
    """What the chat template of the served model requires."""
    # TPL-15
    if model.family == "mistral":
        return _MISTRAL_TURNS
    # TPL-04
    if model.family == "qwen" and model.at_least(3, 5):
        return {"human_wanted": True, "later_system_at_home": False}
    # TPL-12, TPL-13
    if _is_gpt_oss(model):
        return {"calls_one_by_one": True, "calls_alone": True}
    # TPL-02
    return {"calls_one_by_one": model.family == "llama" and not model.at_least(4)}


def _sealed_for_gemini(model: Model) -> Row:
    """COMP-21: every message with calls needs a signature; GEM-17 has a placeholder for it."""
    if model.family != "gemini" or not model.at_least(3):
        return {}
    row = {"reasoning": "plain", "reasoning_on_calls": "always"}
    return {**row, "placeholder_signature": "skip_thought_signature_validator"}


_PLAIN = Profile(
    {
        "default_model": "",
        "developer": False,
        "custom_tools": False,
        "kindred_options": False,
        "old_calls": False,
        "refusals": False,
        "broken_arguments": False,
        "media": frozenset({"image"}),
        "limit_key": "max_tokens",
        "description_limit": None,
        "strict_schemas": None,
    },
    {
        "loose_without_id": False,
        "later_system": "text",
        "reasoning_refuses_tools": False,
        "file_ids": frozenset[str](),
        "media_human": frozenset({"image"}),
    },
)
_MEDIA = frozenset({"image", "audio", "document"})
# TPL-16: most templates render no ids.
_TEMPLATES = {"in_call_order": True}
_TOP_K = {"top_k": "top_k"}
_FIREWORKS = (
    "model messages tools tool_choice parallel_tool_calls functions function_call max_tokens max_completion_tokens "
    "temperature top_p top_k min_p typical_p frequency_penalty presence_penalty repetition_penalty n stop stream seed "
    "logprobs top_logprobs logit_bias echo echo_last ignore_eos response_format reasoning_effort reasoning_history "
    "thinking mirostat_target mirostat_lr prompt_truncate_len context_length_exceeded_behavior speculation prediction "
    "metadata user raw_output perf_metrics_in_response return_token_ids prompt_cache_key prompt_cache_isolation_key"
)


def _keys_of_messages(keys: str) -> Mapping[str, frozenset[str]]:
    return dict.fromkeys(("system", "user", "assistant", "tool"), frozenset(keys.split()))


PROFILES: Mapping[str, Profile] = {
    # COMP-01, COMP-02; `name` is documented to be rejected.
    "groq": Profile(
        {
            "known_keys": _keys_of_messages("role content tool_calls tool_call_id reasoning"),
            "render_error": errors.render_bare_error,
        },
        by_model=_where_models_reason,
    ),
    # COMP-04
    "cerebras": Profile(
        {
            "known_keys": _keys_of_messages("role content name tool_calls tool_call_id reasoning"),
            "render_error": errors.render_cerebras_error,
        }
    ),
    # COMP-05
    "xai": Profile({"empty_content": "", "render_error": errors.render_xai_error}),
    # COMP-09, COMP-10
    "minimax": Profile(
        {
            "arguments": "json",
            "parameters_wanted": True,
            "schemas": schema_rules.MISTRAL,
            "render_error": errors.render_minimax_error,
        }
    ),
    # COMP-11
    "z.ai": Profile(
        {"render_error": errors.render_coded_error},
        {"unique_ids": "conversation", "first": "human", "human_wanted": True},
    ),
    # COMP-12: its own `/api/chat` requires the object itself; `/v1` accepts a string that contains one.
    "ollama": Profile({"arguments": "object"}, _TEMPLATES, ids=_ids_of_family),
    # COMP-14, COMP-15
    "vllm": Profile(
        {"arguments": "json", "option_keys": _TOP_K, "render_error": errors.render_numbered_error},
        _TEMPLATES,
        by_model=_as_templates_have_it,
        ids=_ids_of_family,
    ),
    # COMP-17, COMP-18; TPL-05, TPL-06, TPL-13: templates print null content or fail on it.
    "llama.cpp": Profile(
        {
            "arguments": "json",
            "template_options": True,
            "option_keys": _TOP_K,
            "empty_content": "",
            "reasoning_key": "reasoning_content",
            "render_error": errors.render_llama_error,
        },
        {**_TEMPLATES, "ending": "prefill", "prefill_while_reasoning": False},
        by_model=_as_templates_have_it,
        ids=_ids_of_family,
    ),
    # COMP-21
    "openrouter": Profile(
        {
            "developer": True,
            "media": _MEDIA,
            "sealed_reasoning": True,
            "option_keys": _TOP_K,
            "render_error": errors.render_openrouter_error,
        },
        {"later_system": "developer", "media_human": _MEDIA},
        by_model=_sealed_for_gemini,
    ),
    # COMP-23
    "fireworks": Profile(
        {
            "option_keys": _TOP_K,
            "known_keys": {
                "body": frozenset(_FIREWORKS.split()),
                **_keys_of_messages("role content reasoning_content tool_calls tool_call_id"),
            },
        }
    ),
}


@cache
@cache
def profiled(name: str) -> Wire:
    """`openai-chat` with the rules of this server profile."""
    profile = PROFILES[name]

    def demands(model: Model) -> Demands:
        own = {"own_id": profile.ids(model).lawful}
        row = {**_PLAIN.demands, **profile.demands, **profile.by_model(model), **own}
        return msgspec.structs.replace(OPENAI_DIALECT.demands(model), **row)

    fields = {**_PLAIN.dialect, **profile.dialect, "demands": demands, "ids": profile.ids}
    return make_wire(msgspec.structs.replace(OPENAI_DIALECT, **fields))
