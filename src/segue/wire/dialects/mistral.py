"""The dialect `mistral`. What a request may contain depends on the model's tokenizer (`Model.tokenizer_version`)."""

from __future__ import annotations

import msgspec

from segue.canonical.request import Effort, Options, Reasoning
from segue.models import OPEN_FAMILIES, Model, cache_by_model
from segue.render.constraints import Constraints
from segue.render.report import Report
from segue.wire.ids import mistral_scheme
from segue.wire.json_values import optional_boolean, optional_object, optional_string
from segue.wire.openai_chat import errors, make_wire
from segue.wire.openai_chat.dialect import ChatDialect, fit_reasoning, is_reasoning_off
from segue.wire.options import budget_for_effort, closest_effort, drop_options
from segue.wire.schema import rules as schema_rules

# MIS-01, MIS-02: newer tokenizers accept other ids, but the API was seen to require these for all models.
_IDS = mistral_scheme()
_TEXT_ONLY_LINES = frozenset({"codestral", "devstral", "mathstral", "mixtral", "nemo", "saba", "tiny", "voxtral"})
# MIS-13
_ALLOWED_KEYS = {
    "body": "model messages temperature top_p top_k max_tokens min_tokens stream stop random_seed metadata n tools "
    "tool_choice parallel_tool_calls presence_penalty frequency_penalty repetition_penalty logprobs top_logprobs "
    "prompt_logprobs top_prompt_logprobs prediction response_format reasoning_effort prompt_mode guardrails "
    "prompt_cache_key service_tier safe_prompt",
    **dict.fromkeys(("system", "user"), "role content"),
    "assistant": "role content tool_calls prefix",
    "tool": "role content tool_call_id name",
    "call": "id type index function",
    "call.function": "name arguments",
    "tools.function": "name description parameters strict",
    "text": "type text",
}
_PART_TYPES = "text document_url reference file resource resource_link"
_MEDIA_PART_TYPES = "image_url input_audio"
# MIS-14
_ROLE_PART_TYPES = {
    "system": "thinking input_audio",
    "assistant": "thinking",
    "user": _MEDIA_PART_TYPES,
    "tool": _MEDIA_PART_TYPES,
}


def _supports_reasoning(model: Model) -> bool:
    """Return whether reasoning can be sent; other known models answer that reasoning input is not enabled."""
    adjustable = model.line in ("small", "medium") and model.tokenizer_version in (0, 15)
    return (
        model.family != "mistral"
        or model.reasons_by_default
        or adjustable
        or (model.line, model.tokenizer_version) == ("large", 15)
    )


@cache_by_model
def _constraints(model: Model) -> Constraints:
    supports_images = model.line == "pixtral" or (
        model.line not in _TEXT_ONLY_LINES and model.tokenizer_version not in (3, 7)
    )
    media = {"image"} if supports_images else {"audio"} if model.line == "voxtral" else {"document"}
    return Constraints(
        "mistral",
        "mistral",
        id_pattern=_IDS.pattern,
        # MIS-07: newer validators accept a user message after a result; the API rejected it on every generation.
        filler_after_results=True,
        # MIS-11
        calls_without_text=model.tokenizer_version == 3,
        # MIS-15
        first_speaker="human",
        first_can_call=False,
        ending="marked",  # MIS-10, MIS-14
        later_system="text",  # MIS-09
        allows_system_after_reply=False,
        reasoning_replay="plain" if _supports_reasoning(model) else "refused",
        accepts_unknown_reasoning=True,
        # MIS-11
        # MIS-17
        option_ranges={"temperature": (0, 1.5), "top_p": (0, 1)},
        empty_message_speakers=frozenset({"human", "system"}),
        media_in_user=frozenset({"document", *media}),
        # MIS-14
        # MIS-13: no key for it
        keeps_own_errors=False,
        keeps_own_result_media=model.tokenizer_version >= 15,
        text_only_results=model.tokenizer_version < 15,
    )


def _adjust_options(options: Options, model: Model, report: Report) -> Options:
    if options.temperature == 0 and options.top_p not in (None, 1):
        options = drop_options(options, report, "temperature is 0", "top_p")
    options = fit_reasoning(
        options, report, "always" if model.reasons_by_default else "optional" if _supports_reasoning(model) else "never"
    )
    if (reasoning := options.reasoning) is None or is_reasoning_off(reasoning):
        return options
    levels: tuple[Effort, ...] = ("none", "low", "medium", "high") if model.line == "large" else ("none", "high")
    effort = reasoning.effort or ("high" if reasoning.budget is None else None)
    if effort not in levels:
        effort = closest_effort((reasoning.budget or 0) if effort is None else budget_for_effort(effort), levels)
        message = f"reasoning effort set to {effort}: the model supports only {', '.join(levels)}"
        report.add("adjusted", message, subject="reasoning")
    return msgspec.structs.replace(options, reasoning=Reasoning(effort=effort))


WIRE = make_wire(
    ChatDialect(
        name="mistral",
        provider="mistral",
        default_model="mistral-medium-latest",
        constraints=_constraints,
        streamed_calls=False,  # MIS-16
        usage_at_end=True,
        reasoning_parts=True,
        prefill_key="prefix",
        named_results=True,
        object_arguments=True,
        untyped=True,
        empty_lists=True,
        media=frozenset({"image", "document", "audio"}),
        string_media=True,
        empty_tools=False,
        parameters_required=True,
        option_types={"safe_prompt": optional_boolean, "prompt_mode": optional_string, "prediction": optional_object},
        option_keys={"seed": "random_seed", "top_k": "top_k", "user": None},
        allowed_keys={place: frozenset(keys.split()) for place, keys in _ALLOWED_KEYS.items()},
        allowed_part_types={
            role: frozenset(f"{_PART_TYPES} {more}".split()) for role, more in _ROLE_PART_TYPES.items()
        },
        error_finish="error",
        render_error=errors.render_mistral_error,
        schema_rules=schema_rules.MISTRAL,
        adjust_options=_adjust_options,
    ),
    title="Mistral",
    id_scheme=lambda _model: _IDS,
    tool_format="mistral",
    # MIS-01: it accepts only its own id form, which every other chat API accepts too.
    tool_formats=frozenset({"mistral"}),
    tool_format_ids=_IDS,
    families=("mistral",),
    served_families=OPEN_FAMILIES,
    # speakeasy-sdk/python 3.7.0 … mistralai, mistral-client-python/…, … ai-sdk/mistral/3.0.69
    client_agent="mistral",
)
