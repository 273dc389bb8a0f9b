"""Error texts of the providers for rejected bodies: status, text, and the values of the body in it."""

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
    """Returns the provider's errors that are not about the body's content."""
    return _words(api).troubles


def first_told(verdict: Verdict) -> str:
    """Returns the broken rule that the provider checks first."""
    order = {number: place for place, number in enumerate(_words(verdict.api).first)}
    broken = (violation.rule for violation in verdict.violations if violation.severity == "reject")
    return min(broken, key=lambda rule: order.get(rule, len(order)))


def refusal(body: Mapping[str, Any], verdict: Verdict, *, profile: str | None = None) -> ApiError:
    """Returns the provider's error for an invalid body: that of the rule that it checks first."""
    texts = _words(verdict.api)
    rules = texts.rules
    if profile is not None:
        from segue.emulator.wording.profiles import PROFILES

        rules = {**rules, **PROFILES.get(profile, {})}
    rule = first_told(verdict)
    broken = (one for one in verdict.violations if one.severity == "reject" and one.rule == rule)
    fault = Fault(body, tuple(broken))
    build_error = rules.get(rule)
    return ApiError(400, fault.message) if build_error is None else build_error(fault)
