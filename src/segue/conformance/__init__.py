"""The conformance checker: predicts from the rulebook whether a provider accepts a finished request body.

It shares no code with the wires that render bodies. Any JSON value gives a `Verdict` or an `InputError`, in time linear
in its size. The body is never changed.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Iterator, Mapping
from importlib import import_module

from segue.conformance import profiles
from segue.conformance.anthropic.request import AnthropicRequest
from segue.conformance.azure_foundry.request import FoundryRequest
from segue.conformance.bedrock.request import BedrockRequest
from segue.conformance.chat_request import ChatRequest
from segue.conformance.gemini.request import GeminiRequest
from segue.conformance.openai_responses.request import ResponsesRequest
from segue.conformance.rule import ModelFilter, Problem, Rule, RuleSet, Severity, Verdict, Violation
from segue.conformance.values import format_list, is_object, quote, type_name
from segue.errors import InputError, validate_profile

__all__ = [
    "ModelFilter",
    "Problem",
    "Rule",
    "Severity",
    "Verdict",
    "Violation",
    "apis",
    "check_body",
    "not_checkable",
    "profile_api",
    "profile_names",
    "rules",
]

AnyRuleSet = (
    RuleSet[AnthropicRequest]
    | RuleSet[BedrockRequest]
    | RuleSet[ChatRequest]
    | RuleSet[FoundryRequest]
    | RuleSet[GeminiRequest]
    | RuleSet[ResponsesRequest]
)
AnyRule = (
    Rule[AnthropicRequest]
    | Rule[BedrockRequest]
    | Rule[ChatRequest]
    | Rule[FoundryRequest]
    | Rule[GeminiRequest]
    | Rule[ResponsesRequest]
)


def _load_rule_sets() -> Iterator[AnyRuleSet]:
    """Yield the `RULE_SET` of each module here that is named after an API."""
    for entry in pkgutil.iter_modules(__path__):
        module = import_module(f"{__name__}.{entry.name}")
        if hasattr(module, "RULE_SET"):
            yield module.RULE_SET


_RULE_SETS: Mapping[str, AnyRuleSet] = {rule_set.api: rule_set for rule_set in _load_rule_sets()}


def apis() -> tuple[str, ...]:
    """Return the APIs that have a rule set, sorted."""
    return tuple(sorted(_RULE_SETS))


def profile_names() -> tuple[str, ...]:
    """Return the names of the server profiles, sorted."""
    return tuple(sorted(profiles.RULE_SETS))


def profile_api(profile: str) -> str:
    """Return the API that a server profile is a variant of."""
    return profiles.RULE_SETS[profile].api


def check_body(
    body: Mapping[str, object], api: str, *, model: str | None = None, profile: str | None = None
) -> Verdict:
    """Check a body against the rules of its API and model; `model` overrides the body's own.

    `profile` names a server of the API with rules of its own. Raises `InputError` if the body is not a
    request of this API.
    """
    rule_set = _find_rule_set(api, profile)
    if not is_object(body):
        raise InputError(f"a request body must be an object, got {type_name(body)}")
    return rule_set.check(body, model)


def rules(api: str, profile: str | None = None) -> tuple[AnyRule, ...]:
    """Return the checks of an API with number, name, description, severity and the models they apply to."""
    return _find_rule_set(api, profile).rules


def not_checkable(api: str, profile: str | None = None) -> Mapping[str, str]:
    """Return the rulebook numbers without a check, each with the reason."""
    return _find_rule_set(api, profile).not_checkable


def _find_rule_set(api: str, profile: str | None = None) -> AnyRuleSet:
    if api not in _RULE_SETS:
        raise InputError(f"unknown API {quote(api)}; expected one of {format_list(apis())}", path="api")
    validate_profile(profile, api, {name: rule_set.api for name, rule_set in profiles.RULE_SETS.items()})
    return _RULE_SETS[api] if profile is None else profiles.RULE_SETS[profile]
