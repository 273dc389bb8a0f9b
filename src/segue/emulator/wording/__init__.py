"""What providers say of a body that they refuse: their status, their words, the values of the body put in."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any, cast

from segue.conformance.rule import Verdict
from segue.emulator.wording.fault import Fault, Troubles, Words
from segue.wire.base import ApiError

__all__ = ["first_told", "refusal", "troubles"]


def _words(api: str) -> Words:
    return cast("Words", import_module(f"{__name__}.{api.replace('-', '_')}").WORDS)


def troubles(api: str) -> Troubles:
    """What the provider says where the body is not to blame."""
    return _words(api).troubles


def first_told(verdict: Verdict) -> str:
    """The broken rule that the provider looks at first."""
    order = {number: place for place, number in enumerate(_words(verdict.api).first)}
    broken = (violation.rule for violation in verdict.violations if violation.severity == "reject")
    return min(broken, key=lambda rule: order.get(rule, len(order)))


def refusal(body: Mapping[str, Any], verdict: Verdict, *, profile: str | None = None) -> ApiError:
    """The provider's error for a body that breaks its rules: of the rule that it looks at first."""
    words = _words(verdict.api)
    rules = words.rules
    if profile is not None:
        from segue.emulator.wording.profiles import PROFILES

        rules = {**rules, **PROFILES.get(profile, {})}
    rule = first_told(verdict)
    broken = (one for one in verdict.violations if one.severity == "reject" and one.rule == rule)
    fault = Fault(body, tuple(broken))
    word = rules.get(rule)
    return ApiError(400, fault.message) if word is None else word(fault)
