"""The kinds of errors that providers send: how each is recognised, and whether the same request can succeed later.

This is the only table of them. `find_kind` reads it for every provider's status, codes and text; each wire has the form
in which clients of its API get a kind (`segue.wire.error_forms`); failover and retries depend on the kind alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from typing import Literal

from msgspec import Struct

from segue.limit_errors import is_too_long

ErrorKind = Literal[
    "too-long",  # the request does not fit into the model's context
    "too-large",  # the body has too many bytes or items
    "no-credit",  # the quota or the credit is used up
    "rate-limited",  # too many requests or tokens for now
    "overloaded",  # no capacity for now
    "failed",  # an internal error
    "policy",  # the content is not allowed
    "invalid",  # the request is not valid
    "client-key",  # the client's own key is missing or wrong
    "client-access",  # the client may not do this
    "provider-key",  # the key of segue for the provider is missing or wrong
    "no-key",  # segue has no key for the provider
    "provider-access",  # the account of that key may not use the model
    "unknown-model",
    "unknown-path",
    "unknown-reference",  # an earlier response, thread or item that the provider does not have
    "unreachable",
    "timeout",
    "broken",  # the reply broke off, or is not valid
]
ProviderErrorCause = Literal[
    "auth",  # the provider rejects the key, or it lacks permission
    "broken",  # the reply broke off, or is not a valid reply
    "key",  # no API key is configured
    "missing",  # no such model, or no such URL
    "network",  # the provider can't be reached, or the connection broke before the reply
    "overloaded",  # overloaded or unavailable
    "rate-limited",  # too many requests, or no credit left
    "refused",  # the provider rejects the request
    "timeout",  # no response in time
]


class KindRow(Struct, frozen=True):
    """`brief` follows the provider's name. `is_final`: the same request would fail again.

    `fails_over`: another target of a route can take the request over.
    """

    cause: ProviderErrorCause
    brief: str
    is_final: bool
    fails_over: bool = True


KINDS: Mapping[ErrorKind, KindRow] = {
    # Only a target with a larger context takes it over.
    "too-long": KindRow("refused", "rejected the request as too long", is_final=True, fails_over=False),
    "too-large": KindRow("refused", "rejected the request as too large", is_final=True, fails_over=False),
    "no-credit": KindRow("rate-limited", "has no credit left", is_final=True),
    "rate-limited": KindRow("rate-limited", "is rate limited", is_final=False),
    "overloaded": KindRow("overloaded", "is overloaded", is_final=False),
    "failed": KindRow("overloaded", "has an internal error", is_final=False),
    "policy": KindRow("refused", "rejected the request", is_final=True, fails_over=False),
    "invalid": KindRow("refused", "rejected the request", is_final=True, fails_over=False),
    "client-key": KindRow("auth", "rejected the key", is_final=True),
    "client-access": KindRow("auth", "denied access", is_final=True),
    "provider-key": KindRow("auth", "rejected the key", is_final=True),
    "no-key": KindRow("key", "has no key", is_final=True),
    "provider-access": KindRow("auth", "denied access", is_final=True),
    "unknown-model": KindRow("missing", "has no such model", is_final=True),
    "unknown-path": KindRow("missing", "has no such path", is_final=True),
    "unknown-reference": KindRow("refused", "rejected the request", is_final=True, fails_over=False),
    "unreachable": KindRow("network", "can't be reached", is_final=False),
    "timeout": KindRow("timeout", "timed out", is_final=False),
    "broken": KindRow("broken", "broke off", is_final=False),
}
KIND_OF_CAUSE: Mapping[ProviderErrorCause, ErrorKind] = {
    "auth": "provider-key",
    "broken": "broken",
    "key": "no-key",
    "missing": "unknown-model",
    "network": "unreachable",
    "overloaded": "overloaded",
    "rate-limited": "rate-limited",
    "refused": "invalid",
    "timeout": "timeout",
}
"""The kind of an error of which only the cause is known."""
FAILOVER_CAUSES = frozenset[ProviderErrorCause](row.cause for row in KINDS.values() if row.fails_over)

OVERLOAD_CODES = frozenset(
    {"overloaded_error", "engine_overloaded_error", "engine_overloaded", "server_is_overloaded", "slow_down"}
    | {"service_tier_capacity_exceeded", "3505", "unavailable", "serviceunavailable", "service_unavailable"}
    | {"service_unavailable_error", "serviceunavailableexception", "modelnotreadyexception"}
    | {"insufficient_system_resource", "compaction_unavailable"}
)
"""Codes, and a finish reason (DeepSeek's)."""


def _match(pattern: str) -> Callable[[str], bool]:
    compiled = re.compile(pattern, re.IGNORECASE)
    return lambda message: compiled.search(message) is not None


class _KindPattern(Struct, frozen=True):
    """What shows that an error is of a kind: one of these codes (in lower case), statuses, or a text."""

    kind: ErrorKind
    codes: frozenset[str] = frozenset()
    statuses: Collection[int] = ()
    matches_text: Callable[[str], bool] | None = None

    def matches(self, status: int, names: Collection[str], message: str) -> bool:
        return (
            not self.codes.isdisjoint(names)
            or status in self.statuses
            or (self.matches_text is not None and self.matches_text(message))
        )


# The first one that matches decides: codes tell more than a status, and some providers send a misleading status.
_KIND_PATTERNS = (
    # Z.ai has numbers, and so has Mistral.
    _KindPattern("too-long", frozenset({"context_length_exceeded", "request_too_large", "1261", "3051"})),
    _KindPattern(
        "no-credit",
        frozenset(
            {"insufficient_quota", "exceeded_current_quota_error", "arrearage", "billing_hard_limit_reached"}
            | {"billing_error", "insufficient_balance", "insufficient_credits", "servicequotaexceededexception"}
            | {"usage_not_included", "usage_limit_reached", "quota_exhausted"}
        ),
        {402},
        _match(r"credit balance is too low|^insufficient balance\b|^payment required\b|\bhas no credit left\b"),
    ),
    _KindPattern(
        "provider-key",
        frozenset(
            {"api_key_invalid", "invalid_api_key", "authentication_error", "invalid_authentication_error"}
            | {"unrecognizedclientexception", "invalidsignatureexception", "expiredtokenexception"}
            | {"missingauthenticationtokenexception"}
        ),
        {401},
    ),
    # Some providers reject content with the status of a missing permission.
    _KindPattern(
        "policy",
        frozenset(
            {"cyber_policy", "bio_policy", "misalignment_policy_violation", "content_policy_violation"}
            | {"content_filter", "data_inspection_failed"}
        ),
        matches_text=_match(
            r"\b(?:flagged|moderation|content[ _-](?:filter|policy)|usage (?:guidelines|polic(?:y|ies)))"
        ),
    ),
    # The key is valid, but the account may not use the model.
    _KindPattern(
        "provider-access",
        frozenset({"accessdeniedexception", "permission_error", "permission_denied"}),
        {403},
        _match(r"\borgani[sz]ation must be verified\b"),
    ),
    _KindPattern(
        "unknown-model", frozenset({"model_not_found", "model_not_exist", "invalid_model", "resourcenotfoundexception"})
    ),
    _KindPattern(
        "unknown-reference",
        frozenset(
            {"previous_response_not_found", "response_not_found", "conversation_not_found", "thread_not_found"}
            | {"item_not_found", "message_not_found", "container_not_found", "thread_unsupported_request"}
        ),
        matches_text=_match(r"\b(?:item|response|conversation|thread|container) with id\b.{0,200}?\bnot found\b"),
    ),
    _KindPattern("timeout", statuses={408, 504}),
    _KindPattern("overloaded", OVERLOAD_CODES, {503, 529}),
    _KindPattern(
        "rate-limited",
        frozenset(
            {"rate_limit_error", "rate_limit_exceeded", "rate_limit_reached_error", "rate_limited"}
            | {"throttlingexception", "limit_requests", "resource_exhausted", "too_many_requests"}
        ),
        {429},
    ),
    _KindPattern("too-long", statuses={413}, matches_text=is_too_long),
    _KindPattern(
        "failed",
        frozenset({"modelerrorexception", "modelstreamerrorexception", "internalserverexception"})
        | {"server_error", "api_error"},
        {409, 424, 425, *range(500, 600)},
    ),
    _KindPattern(
        "unknown-model",
        statuses={404},
        matches_text=_match(
            r"\b(?:invalid|unknown|unrecognized|unsupported|no such|not a valid) model\b|model identifier is invalid"
            r"|\bmodel\b[ :]*(?:[`'\"][^`'\"]*[`'\"]|\S*[\d/-]\S*)?,? ?"
            r"(?:is |was |does )?(?:not (?:exist|found)|is invalid)"
        ),
    ),
)


def find_kind(status: int, codes: Collection[str | None], message: str) -> ErrorKind:
    """Return the kind of a provider's error. The status is 0 where it is not known, as in a stream."""
    names = {code.lower() for code in codes if code}
    for pattern in _KIND_PATTERNS:
        if pattern.matches(status, names, message):
            return pattern.kind
    return "invalid" if status else "broken"
