"""`Profile`: the rules of a server that serves an API of another vendor, and sets of checks that profiles share."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Generic, TypeVar

import msgspec

from segue.conformance import openai_chat
from segue.conformance.rule import Rule, RuleSet, RuleTable

R = TypeVar("R")


class Profile(msgspec.Struct, Generic[R], frozen=True):
    """The rules of one server: its own rules, and those of its API (`base`), chosen by the names of their checks.

    Checks in `omitted` are left out, and problems of those in `downgraded` are reported as risks.
    """

    name: str
    server: str
    own_rules: RuleTable[R]
    omitted: frozenset[str] = frozenset()
    downgraded: frozenset[str] = frozenset()
    base: RuleSet[Any] = openai_chat.RULE_SET

    def rules(self) -> Iterator[Rule[R]]:
        yield from self.own_rules
        for rule in self.base.rules:
            if rule.name not in self.omitted:
                yield rule.with_severity("risk") if rule.name in self.downgraded else rule


# Checks of what only OpenAI's own service refuses, and of its limits, which other servers may share.
OPENAI_ONLY = frozenset({"no_effort_with_functions", "search_supported"})
OPENAI_LIMITS = frozenset({"tools_within_limits", "options_in_range", "audio_supported", "system_role_supported"})
KEY_CHECKS = frozenset({"no_unknown_keys", "no_error_flag"})
PAIRING_CHECKS = frozenset(
    {"results_match_calls", "one_result_per_call", "ids_unique_in_turn", "no_system_among_results"}
)
# Servers with a chat template compare no ids: unpaired calls and results reach the model unchanged.
TEMPLATE_SERVER_CHECKS = OPENAI_LIMITS | PAIRING_CHECKS | {"calls_have_results", "names_valid", "results_are_text"}
SELF_HOSTED = OPENAI_ONLY | {
    *("call_has_id", "call_id_short", "arguments_are_strings", "no_unknown_keys", "minimax_arguments")
}
