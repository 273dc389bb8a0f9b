"""What providers say of a body that they refuse: their status, their words, the values of the body put in."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any, cast

from segue.conformance.rule import Verdict
from segue.emulator.wording.fault import Fault, Troubles, Words
from segue.wire.base import ApiError

__all__ = ["refusal", "troubles"]


def _words(api: str) -> Words:
    return cast("Words", import_module(f"{__name__}.{api.replace('-', '_')}").WORDS)


def troubles(api: str) -> Troubles:
    """What the provider says where the body is not to blame."""
    return _words(api).troubles


def refusal(body: Mapping[str, Any], verdict: Verdict, *, profile: str | None = None) -> ApiError:
    """The provider's error for a body that breaks its rules: of the rule that it looks at first."""
    words = _words(verdict.api)
    rules = words.rules
    if profile is not None:
        from segue.emulator.wording.profiles import PROFILES

        rules = {**rules, **PROFILES.get(profile, {})}
    broken = [violation for violation in verdict.violations if violation.severity == "reject"]
    order = {number: place for place, number in enumerate(words.first)}
    first = min(broken, key=lambda violation: order.get(violation.rule, len(order)))
    fault = Fault(body, tuple(violation for violation in broken if violation.rule == first.rule))
    word = rules.get(first.rule)
    return ApiError(400, fault.message) if word is None else word(fault)
