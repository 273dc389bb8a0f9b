"""The rulebook: what providers accept and reject, one numbered rule each, with the evidence for it.

`rulebook.json` holds the rules. The checker, the emulators' error texts, `segue rules` and `docs/rules.md` use its
numbers; the checks themselves are in `segue.conformance`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from difflib import get_close_matches
from functools import cache
from importlib import resources
from typing import Any, Literal

import msgspec

from segue.errors import InputError

Evidence = Literal["measured", "several reports", "documented", "one report", "inferred"]


class RulebookEntry(msgspec.Struct, frozen=True, omit_defaults=True):
    """One rule. `error_text` is the provider's message as users reported it, with ids shortened.

    `violation_example` is the smallest fragment of a body that breaks the rule; rules that only state what is accepted
    have none. `handling` describes how segue conforms to the rule. `oracle` names third-party code that confirms it.
    `evidence` is the strongest kind that part of the rule has; `measured` says which part a recorded status code of the
    provider shows, and what the rest rests on.
    """

    id: str
    api: str
    topic: str
    rule: str
    source: str
    evidence: Evidence
    handling: str
    violation_example: Any = None
    error_status: int | None = None
    error_text: str | None = None
    oracle: str | None = None
    measured: str | None = None


@cache
def load_rulebook() -> Mapping[str, RulebookEntry]:
    """Return all rules by number, in the order of the rulebook."""
    data = resources.files("segue.specs").joinpath("rulebook.json").read_bytes()
    return {entry.id: entry for entry in msgspec.json.decode(data, type=list[RulebookEntry])}


def find_rule(number: str) -> RulebookEntry:
    """Return the rule with this number, in upper or lower case. Raises `InputError` with the nearest numbers."""
    rulebook = load_rulebook()
    wanted = number.strip().upper()
    # ANT-7 is ANT-07.
    entry = rulebook.get(wanted) or rulebook.get(re.sub(r"-(\d)$", r"-0\1", wanted))
    if entry is None:
        near = get_close_matches(wanted, rulebook, 3)
        hint = f"; did you mean {' or '.join(near)}?" if near else "; `segue rules` lists all of them"
        raise InputError(f"there is no rule {number!r}{hint}", path="rule")
    return entry
