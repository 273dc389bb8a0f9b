"""What each provider caches, for how long, and how its usage reports it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from segue.emulator.prompt_cache import LIFETIMES, CacheRules, marker_lifetime
from segue.models import Model
from segue.wire.json_values import JsonObject, object_or_none

_MAX_LOOK_BACK = 20
_CLAUDE = CacheRules(marked="none", look_back=_MAX_LOOK_BACK, reports_writes=True)
_OPENAI_SETTINGS = (
    "prompt_cache_key",
    "text.format",
    "text.verbosity",
    "response_format",
    "verbosity",
    "reasoning.effort",
    "reasoning_effort",
    "service_tier",
)
_CLAUDE_SETTINGS = ("output_config.effort", "thinking.type")

MISTRAL = CacheRules(minimum=64, step=64, lifetime=math.inf)
# Hours to days.
DEEPSEEK = CacheRules(minimum=64, step=64, lifetime=LIFETIMES["24h"])


def claude_rules(body: Mapping[str, Any], model: Model) -> CacheRules:
    """Return the rules of Anthropic: prompts are cached up to markers; one in the body is at the last block."""
    marker = object_or_none(body.get("cache_control"))
    rules = _CLAUDE._replace(minimum=_claude_minimum(model), settings=_CLAUDE_SETTINGS)
    return rules if marker is None else rules._replace(marked="last", lifetime=marker_lifetime(marker, rules.lifetime))


def bedrock_rules(model: Model) -> CacheRules:
    settings = tuple(f"additionalModelRequestFields.{path}" for path in _CLAUDE_SETTINGS)
    return _CLAUDE._replace(minimum=_claude_minimum(model), settings=settings)


def _claude_minimum(model: Model) -> int:
    if model.line in ("opus", "fable", "mythos") and model.at_least(4, 5):
        return 512 if model.at_least(5) else {8: 1024, 7: 2048}.get(model.version[1], 4096)
    if model.line == "haiku":
        return 4096 if model.at_least(4, 5) else 2048
    return 1024


def openai_rules(body: Mapping[str, Any], model: Model) -> CacheRules:
    """Return the rules of OpenAI: from GPT-5.6 on, prompts are cached up to their end and to breakpoints."""
    if model.family != "gpt" or model.line == "o" or not model.at_least(5, 6):
        extended = body.get("prompt_cache_retention") == "24h"
        return CacheRules(lifetime=LIFETIMES["24h" if extended else "5m"], settings=_OPENAI_SETTINGS[:1])
    options = object_or_none(body.get("prompt_cache_options")) or {}
    return CacheRules(
        lifetime=marker_lifetime(options, LIFETIMES["30m"]),
        marked="none" if options.get("mode") == "explicit" else "last",
        reports_writes=True,
        settings=_OPENAI_SETTINGS,
    )


def gemini_rules(model: Model) -> CacheRules:
    """Return the rules of implicit caches, whose life is not specified."""
    return CacheRules(minimum=1024 if "flash" in model.name else 4096, lifetime=math.inf)


def kimi_rules(body: Mapping[str, Any]) -> CacheRules:
    lifetime = marker_lifetime(body.get("prompt_cache_options"), LIFETIMES["5m"])
    return CacheRules(minimum=256, step=256, lifetime=lifetime)


def qwen_rules(model: Model, *, has_markers: bool) -> CacheRules:
    """Return the rules of Alibaba: prompts with markers are cached up to these, from Qwen4 on also to their end."""
    if not has_markers:
        return CacheRules()
    return _CLAUDE._replace(marked="last" if model.at_least(4) else "none")


# -------------------------------------------------------------------------------------------------------------- usage


def _by_lifetime(written: Mapping[float, int], key: str, *names: str) -> JsonObject:
    return {key.format(name): written.get(LIFETIMES[name], 0) for name in names}


def anthropic_usage(usage: JsonObject, written: Mapping[float, int]) -> JsonObject:
    return {**usage, "cache_creation": _by_lifetime(written, "ephemeral_{}_input_tokens", "5m", "1h")}


def bedrock_usage(usage: JsonObject, written: Mapping[float, int]) -> JsonObject:
    names = {seconds: name for name, seconds in LIFETIMES.items()}
    details = [{"ttl": names[seconds], "inputTokens": tokens} for seconds, tokens in written.items()]
    return {**usage, "cacheDetails": details} if details else usage


def responses_usage(usage: JsonObject, written: Mapping[float, int]) -> JsonObject:
    if not written:
        return usage
    details = {"cache_write_tokens_details": _by_lifetime(written, "ttl_{}_tokens", "30m", "12h")}
    return {**usage, "input_tokens_details": {**usage["input_tokens_details"], **details}}


def kimi_usage(usage: JsonObject, written: Mapping[float, int]) -> JsonObject:
    return {**usage, "cached_tokens": usage["prompt_tokens_details"]["cached_tokens"]}


def deepseek_usage(usage: JsonObject, written: Mapping[float, int]) -> JsonObject:
    hit = usage["prompt_tokens_details"]["cached_tokens"]
    return {**usage, "prompt_cache_hit_tokens": hit, "prompt_cache_miss_tokens": usage["prompt_tokens"] - hit}


def qwen_usage(usage: JsonObject, written: Mapping[float, int]) -> JsonObject:
    details = dict(usage["prompt_tokens_details"])
    total = details.pop("cache_write_tokens", 0)
    by_life = {"cache_creation": _by_lifetime(written, "ephemeral_{}_input_tokens", "5m")}
    more = {"cache_creation_input_tokens": total, **by_life} if total else {}
    return {**usage, "prompt_tokens_details": {**details, **more}}
