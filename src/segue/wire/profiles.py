"""Servers that speak `openai-chat` with rules of their own (COMP-*), as differences from the plain wire.

A profile is data: which columns of the demands and which fields of the dialect are others. `plain` holds for each of
them: a server that knows the common wire, and nothing that only OpenAI has.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import msgspec

from segue.errors import InputError
from segue.models import Model
from segue.render.demands import Demands
from segue.wire.base import Wire
from segue.wire.idmap import IdScheme, kimi_scheme, mistral_scheme
from segue.wire.openai_chat import OPENAI_DIALECT, make_wire

__all__ = ["PROFILES", "Profile", "profiled"]

_IDS = {"kimi": kimi_scheme(), "mistral": mistral_scheme()}


def _ids_of_family(model: Model) -> IdScheme:
    """Where a server hands ids on to the template of the model it runs, they are that model's own (KIM-01, COMP-15)."""
    own = model.family in _IDS and model.line != "k3"
    return _IDS[model.family] if own else OPENAI_DIALECT.ids(model)


class Profile(msgspec.Struct, frozen=True):
    """`dialect` and `demands` name what differs; `ids` is set where they follow the model."""

    dialect: Mapping[str, Any] = {}
    demands: Mapping[str, Any] = {}
    ids: Callable[[Model], IdScheme] | None = None


_PLAIN = Profile(
    dialect={
        "developer": False,
        "custom_tools": False,
        "old_calls": False,
        "refusals": False,
        "media": frozenset({"image"}),
        "limit_key": "max_tokens",
        "description_limit": None,
    },
    demands={
        "loose_without_id": False,
        "later_system": "text",
        "reasoning_refuses_tools": False,
        "media_human": frozenset({"image"}),
    },
)
_ROLES = ("system", "user", "assistant", "tool")
# COMP-01, COMP-04: any other key of a message is refused, `name` and `reasoning_content` among them.
_FEW_KEYS = {role: frozenset({"role", "content", "tool_calls", "tool_call_id"}) for role in _ROLES}
_FIREWORKS = (
    "model messages tools tool_choice parallel_tool_calls functions function_call max_tokens max_completion_tokens "
    "temperature top_p top_k min_p typical_p top_a frequency_penalty presence_penalty repetition_penalty n stop stream "
    "seed logprobs top_logprobs logit_bias echo echo_last ignore_eos response_format reasoning_effort "
    "reasoning_history thinking mirostat_target mirostat_lr prompt_truncate_len context_length_exceeded_behavior "
    "speculation prediction metadata user raw_output perf_metrics_in_response safe_tokenization return_token_ids "
    "prompt_token_ids prompt_cache_key prompt_cache_isolation_key service_tier sampling_mask"
)

PROFILES: Mapping[str, Profile] = {
    # COMP-02
    "groq": Profile({"known_keys": _FEW_KEYS}, {"reasoning": "refused"}),
    "cerebras": Profile({"known_keys": _FEW_KEYS}, {"reasoning": "refused"}),
    # COMP-05
    "xai": Profile({"empty_content": ""}),
    # COMP-08, COMP-09, COMP-10
    "minimax": Profile({"arguments": "json", "parameters_wanted": True}, {"unique_ids": "conversation"}),
    # COMP-11
    "z.ai": Profile({}, {"unique_ids": "conversation", "first": "human", "human_wanted": True}),
    # COMP-12: objects are wanted by its own `/api/chat`; `/v1` takes strings.
    "ollama": Profile(ids=_ids_of_family),
    # COMP-14, COMP-15
    "vllm": Profile({"arguments": "json"}, ids=_ids_of_family),
    # COMP-17, COMP-18
    "llama.cpp": Profile(
        {"arguments": "json"}, {"ending": "prefill", "prefill_while_reasoning": False}, ids=_ids_of_family
    ),
    # COMP-21: `reasoning_details` go home untouched, like every key of a message.
    "openrouter": Profile(
        {"developer": True, "media": frozenset({"image", "audio", "document"})},
        {"later_system": "developer", "media_human": frozenset({"image", "audio", "document"})},
    ),
    # COMP-23
    "fireworks": Profile({"known_keys": {"body": frozenset(_FIREWORKS.split())}}),
}


@cache
def profiled(name: str) -> Wire:
    """`openai-chat` as this server speaks it."""
    profile = PROFILES.get(name)
    if profile is None:
        raise InputError(f"{name!r} is not a known profile; known are {', '.join(PROFILES)}", path="profile")
    ids = profile.ids or OPENAI_DIALECT.ids

    def demands(model: Model) -> Demands:
        row = {**_PLAIN.demands, **profile.demands, "own_id": ids(model).lawful}
        return msgspec.structs.replace(OPENAI_DIALECT.demands(model), **row)

    fields = {**_PLAIN.dialect, **profile.dialect, "demands": demands, "ids": ids}
    return make_wire(msgspec.structs.replace(OPENAI_DIALECT, **fields))
