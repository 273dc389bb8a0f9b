"""Errors of the providers for rejected bodies: status, text, and the values of the body in it.

`validate` has those that come before the conversation is looked at, `error_for_verdict` those of the conformance rules.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Mapping
from importlib import import_module
from typing import Any, cast

from segue.conformance.rule import Verdict
from segue.emulator.errors import openai_chat
from segue.emulator.errors.broken_rule import BrokenRule, ErrorTexts, StandardErrors, build_error
from segue.emulator.http_messages import HttpRequest
from segue.models import parse_model
from segue.wire.base import ApiError
from segue.wire.registry import WIRES

_MODULES = frozenset(module.name for module in pkgutil.iter_modules(__path__))
for _api in WIRES:
    if (_name := _api.replace("-", "_")) not in _MODULES:
        raise ImportError(f"segue/emulator/errors/{_name}.py is missing: the error texts of {_api}", name=__name__)


def _load_texts(api: str) -> ErrorTexts:
    return cast("ErrorTexts", import_module(f"{__name__}.{api.replace('-', '_')}").ERROR_TEXTS)


def standard_errors(api: str) -> StandardErrors:
    """Return the provider's errors that are not about the body's content."""
    return _load_texts(api).standard


def validate(
    api: str, body: Mapping[str, Any], http_request: HttpRequest, *, profile: str | None = None
) -> ApiError | None:
    """Return the provider's error for an invalid body, `None` if it is valid."""
    is_chat, check = WIRES[api].base_api == "openai-chat", _load_texts(api).validate
    if is_chat and (check is None or profile is not None):
        error = openai_chat.validate_messages(body)
    else:
        error = check(body, http_request) if check is not None and profile is None else None
    if error is None and profile is None and _is_other_vendors_model(api, body.get("model")):
        return standard_errors(api).no_model(str(body["model"]))
    return error


def _is_other_vendors_model(api: str, model: object) -> bool:
    """Return whether the provider does not serve this model's family. Unknown names are accepted."""
    family = parse_model(model).family if isinstance(model, str) else ""
    served = WIRES[api].served_families
    return bool(family) and served is not None and family not in served


def first_broken_rule(verdict: Verdict) -> str:
    """Return the broken rule that the provider checks first."""
    order = {number: place for place, number in enumerate(_load_texts(verdict.api).rule_order)}
    broken = (violation.rule for violation in verdict.violations if violation.severity == "reject")
    return min(broken, key=lambda rule: order.get(rule, len(order)))


def error_for_verdict(body: Mapping[str, Any], verdict: Verdict, *, profile: str | None = None) -> ApiError:
    """Return the provider's error for an invalid body: that of the rule that it checks first."""
    texts = _load_texts(verdict.api)
    rules = texts.rules
    if profile is not None:
        from segue.emulator.errors.profiles import PROFILES

        rules = {**rules, **PROFILES.get(profile, {})}
    rule = first_broken_rule(verdict)
    violations = (each for each in verdict.violations if each.severity == "reject" and each.rule == rule)
    broken = BrokenRule(body, tuple(violations))
    return build_error(rules.get(rule, ApiError(400, broken.message)), broken)
