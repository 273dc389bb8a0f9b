"""Server profiles: rows of the registry that `profile` selects, as differences from `openai-chat` (COMP-*).

They are one table because most have only a few fields; a larger profile can have its own module in this package.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from segue.models import Model
from segue.render.constraints import PLACEHOLDER_SIGNATURE
from segue.wire.ids import IdScheme, kimi_scheme, mistral_scheme
from segue.wire.openai_chat import OPENAI_IDS, Row, errors, make_server_wire
from segue.wire.schema import rules as schema_rules

_FAMILY_IDS = {"kimi": kimi_scheme(), "mistral": mistral_scheme()}


def _family_id_scheme(model: Model) -> IdScheme:
    """Return the id scheme of the served model, for servers that pass ids to its chat template (KIM-01, COMP-15)."""
    has_own_ids = model.family in _FAMILY_IDS and model.line != "k3"
    return _FAMILY_IDS[model.family] if has_own_ids else OPENAI_IDS


def _openrouter_ids(model: Model) -> IdScheme:
    """OAI-CHAT-01: only OpenAI's models limit the length."""
    return OPENAI_IDS if model.family == "gpt" else replace(OPENAI_IDS, pattern=r"[\s\S]+")


def _reasoning_by_model(model: Model) -> Row:
    """COMP-02: same-API reasoning is sent back to reasoning models only."""
    reasons = model.reasons_by_default or _is_gpt_oss(model) or model.family == "qwen"
    return {"reasoning_replay": "none" if reasons else "refused"}


def _is_gemma_3(model: Model) -> bool:
    return model.family == "gemma" and model.at_least(3) and not model.at_least(4)


def _is_gpt_oss(model: Model) -> bool:
    return model.name.rsplit("/", 1)[-1].lower().startswith("gpt-oss")


_MISTRAL_TURNS = {
    "alternation": "strict",
    "filler_after_results": True,
    "first_speaker": "human",
    "first_speaker_same_api": "human",
    "later_system_same_api": False,
}


_GEMMA_3_TURNS = {
    "later_system_same_api": False,
    "alternation": "strict",
    "filler_after_results": True,
    "first_speaker": "human",
    "first_speaker_same_api": "human",
}
_GEMMA_TURNS = {**_GEMMA_3_TURNS, "allows_system": False, "filler_after_results": False}


def _template_constraints(model: Model) -> Row:
    """What the chat template of the served model requires."""
    # TPL-15
    if model.family == "mistral":
        return _MISTRAL_TURNS
    # TPL-04
    if model.family == "qwen" and model.at_least(3, 5):
        return {"needs_user_message": True, "later_system_same_api": False}
    # TPL-11
    if model.family == "gemma" and model.version and not model.at_least(3):
        return _GEMMA_TURNS
    if _is_gemma_3(model):
        return _GEMMA_3_TURNS
    return _call_constraints(model)


def _call_constraints(model: Model) -> Row:
    """What the served model requires of calls."""
    # TPL-12, TPL-13
    if _is_gpt_oss(model):
        return {"one_call_per_message": True, "calls_without_text": True}
    # The template of Phi-4-mini shows a message's text or its calls, that of GigaChat3 one call.
    if model.family == "phi":
        return {"calls_without_text": True}
    if model.family == "gigachat":
        return {"one_call_per_message": True}
    # TPL-02
    return {"one_call_per_message": model.family == "llama" and not model.at_least(4)}


def _content_by_model(model: Model) -> Row:
    """TPL-13: null content fails, also in the templates of Gemma 3 and Granite."""
    refuses_null = _is_gpt_oss(model) or _is_gemma_3(model) or model.family == "granite"
    return {"empty_content": ""} if refuses_null else {}


def _openrouter_constraints(model: Model) -> Row:
    """COMP-21: every message with calls needs a signature; GEM-17 has a placeholder for it."""
    # COMP-22
    if model.family == "claude":
        return {"forced_choice_disables_reasoning": True}
    if model.family != "gemini" or not model.at_least(3):
        return {}
    row = {"reasoning_replay": "plain", "accepts_unknown_reasoning": True, "reasoning_required_on_calls": "always"}
    return {**row, "placeholder_signature": PLACEHOLDER_SIGNATURE}


_MEDIA = frozenset({"image", "audio", "document"})
# TPL-16: most templates render no ids.
_TEMPLATE_CONSTRAINTS = {"results_in_call_order": True}
_TOP_K_OPTION = {"top_k": "top_k"}
_FIREWORKS_KEYS = (
    "model messages tools tool_choice parallel_tool_calls functions function_call max_tokens max_completion_tokens "
    "temperature top_p top_k min_p typical_p frequency_penalty presence_penalty repetition_penalty n stop stream seed "
    "logprobs top_logprobs logit_bias echo echo_last ignore_eos response_format reasoning_effort reasoning_history "
    "thinking mirostat_target mirostat_lr prompt_truncate_len context_length_exceeded_behavior speculation prediction "
    "metadata user raw_output perf_metrics_in_response return_token_ids prompt_cache_key prompt_cache_isolation_key"
)


def _message_keys(keys: str) -> Mapping[str, frozenset[str]]:
    return dict.fromkeys(("system", "user", "assistant", "tool"), frozenset(keys.split()))


WIRES = (
    # COMP-01, COMP-02; `name` is documented to be rejected.
    make_server_wire(
        "groq",
        {
            "allowed_keys": _message_keys("role content tool_calls tool_call_id reasoning"),
            "render_error": errors.render_minimal_error,
        },
        by_model=_reasoning_by_model,
    ),
    # COMP-04
    make_server_wire(
        "cerebras",
        {
            "allowed_keys": _message_keys("role content name tool_calls tool_call_id reasoning"),
            "render_error": errors.render_cerebras_error,
        },
    ),
    # COMP-05
    make_server_wire("xai", {"empty_content": "", "render_error": errors.render_xai_error}),
    # COMP-09, COMP-10
    make_server_wire(
        "minimax",
        {
            "arguments": "json",
            "parameters_required": True,
            "schema_rules": schema_rules.MISTRAL,
            "render_error": errors.render_minimax_error,
        },
    ),
    # COMP-11
    make_server_wire(
        "z.ai", {"render_error": errors.render_coded_error}, {"first_speaker": "human", "needs_user_message": True}
    ),
    # COMP-12: its own `/api/chat` requires the object itself; `/v1` accepts a string that contains one.
    make_server_wire(
        "ollama",
        {"arguments": "object"},
        _TEMPLATE_CONSTRAINTS,
        by_model=_call_constraints,
        dialect_by_model=_content_by_model,
        ids=_family_id_scheme,
    ),
    # COMP-14, COMP-15
    make_server_wire(
        "vllm",
        {
            "arguments": "json",
            "glued_parts": True,
            "option_keys": _TOP_K_OPTION,
            "render_error": errors.render_status_code_error,
        },
        _TEMPLATE_CONSTRAINTS,
        by_model=_template_constraints,
        dialect_by_model=_content_by_model,
        ids=_family_id_scheme,
    ),
    # COMP-17, COMP-18; TPL-05, TPL-06, TPL-13: templates print null content or fail on it.
    make_server_wire(
        "llama.cpp",
        {
            "arguments": "json",
            "glued_parts": True,
            "template_options": True,
            "option_keys": _TOP_K_OPTION,
            "empty_content": "",
            "reasoning_key": "reasoning_content",
            "render_error": errors.render_llama_error,
        },
        {**_TEMPLATE_CONSTRAINTS, "ending": "prefill", "allows_prefill_while_reasoning": False},
        by_model=_template_constraints,
        ids=_family_id_scheme,
    ),
    # COMP-21
    make_server_wire(
        "openrouter",
        {
            "developer_role": True,
            "media": _MEDIA,
            "encrypted_reasoning": True,
            "option_keys": _TOP_K_OPTION,
            "render_error": errors.render_openrouter_error,
        },
        {"later_system": "developer", "media_in_user": _MEDIA},
        by_model=_openrouter_constraints,
        ids=_openrouter_ids,
    ),
    # COMP-23
    make_server_wire(
        "fireworks",
        {
            "option_keys": _TOP_K_OPTION,
            "allowed_keys": {
                "body": frozenset(_FIREWORKS_KEYS.split()),
                **_message_keys("role content reasoning_content tool_calls tool_call_id"),
            },
        },
    ),
)
