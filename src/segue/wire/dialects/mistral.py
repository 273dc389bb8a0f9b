"""The dialect `mistral`. What a request may contain depends on the model's tokenizer (`Model.generation`)."""

from __future__ import annotations

import msgspec

from segue.canonical.request import Effort, Options, Reasoning
from segue.models import Model
from segue.render.demands import Demands
from segue.render.report import Report
from segue.wire.effort import budget_of, closest
from segue.wire.idmap import mistral_scheme
from segue.wire.openai_chat import errors, make_wire
from segue.wire.openai_chat.dialect import ChatDialect, fit_reasoning, is_off, left_out
from segue.wire.schema import rules as schema_rules

__all__ = ["MISTRAL"]

# MIS-01, MIS-02: newer tokenizers accept other ids, but the API was seen to require these for all models.
_IDS = mistral_scheme()
_BLIND = frozenset({"codestral", "devstral", "mathstral", "mixtral", "nemo", "saba", "tiny", "voxtral"})
# MIS-13
_KEYS = {
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
_PARTS = "text document_url reference file resource resource_link"
_SENSES = "image_url input_audio"
# MIS-14
_MORE_PARTS = {"system": "thinking input_audio", "assistant": "thinking", "user": _SENSES, "tool": _SENSES}


def _reasons(model: Model) -> bool:
    """Whether reasoning can be sent; other known models answer that reasoning input is not enabled."""
    adjustable = model.line in ("small", "medium") and model.generation in (0, 15)
    return model.family != "mistral" or model.thinking or adjustable or (model.line, model.generation) == ("large", 15)


def _demands(model: Model) -> Demands:
    sees = model.line == "pixtral" or (model.line not in _BLIND and model.generation not in (3, 7))
    sense = {"image"} if sees else {"audio"} if model.line == "voxtral" else {"document"}
    return Demands(
        "mistral",
        "mistral",
        own_id=_IDS.lawful,
        # MIS-07: newer validators accept a user message after a result; the API rejected it on every generation.
        bridge=True,
        # MIS-11
        calls_alone=model.generation == 3,
        # MIS-15
        first="human",
        first_calls=False,
        ending="marked",  # MIS-10, MIS-14
        later_system="text",  # MIS-09
        system_after_reply=False,
        reasoning="plain" if _reasons(model) else "refused",
        # MIS-11
        empty_messages=frozenset({"human", "system"}),
        media_human=frozenset({"document", *sense}),
        # MIS-14
        media_at_home=model.generation >= 15,
        text_results=model.generation < 15,
    )


def _adjusted(options: Options, model: Model, report: Report) -> Options:
    if options.temperature == 0 and options.top_p not in (None, 1):
        options = left_out(options, report, "temperature is 0", "top_p")
    options = fit_reasoning(options, report, "always" if model.thinking else "asked" if _reasons(model) else "never")
    if (reasoning := options.reasoning) is None or is_off(reasoning):
        return options
    levels: tuple[Effort, ...] = ("none", "low", "medium", "high") if model.line == "large" else ("none", "high")
    effort = reasoning.effort or ("high" if reasoning.budget is None else None)
    if effort not in levels:
        effort = closest((reasoning.budget or 0) if effort is None else budget_of(effort), levels)
        report.add(
            "adjusted", f"reasoning effort set to {effort}: the model supports {', '.join(levels)}", subject="reasoning"
        )
    return msgspec.structs.replace(options, reasoning=Reasoning(effort=effort))


MISTRAL = make_wire(
    ChatDialect(
        name="mistral",
        provider="mistral",
        title="Mistral",
        default_model="mistral-medium-latest",
        demands=_demands,
        streamed_calls=False,  # MIS-16
        usage_at_end=True,
        ids=lambda _model: _IDS,
        tool_format="mistral",
        reasoning_parts=True,
        prefill_key="prefix",
        named_results=True,
        argument_objects=True,
        untyped_calls=True,
        media=frozenset({"image", "document", "audio"}),
        flat_media=True,
        max_temperature=1,
        empty_tools=False,
        parameters_wanted=True,
        option_keys={"seed": "random_seed", "top_k": "top_k", "user": None},
        known_keys={place: frozenset(keys.split()) for place, keys in _KEYS.items()},
        part_types={role: frozenset(f"{_PARTS} {more}".split()) for role, more in _MORE_PARTS.items()},
        error_finish="error",
        render_error=errors.render_mistral_error,
        schemas=schema_rules.MISTRAL,
        adjust=_adjusted,
    )
)
