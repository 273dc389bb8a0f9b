"""Server profiles: servers of the Chat Completions or the Responses API with rules of their own (COMP-*, DS-11).

A profile is the rule set of its API with changes: checks that the server does not make are left out, others are
only a risk, and the server's own checks are added. Each module here lists its profiles in `PROFILES`. Every COMP number
is either a check of a profile or a row of `NOT_CHECKABLE`.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any

from segue.conformance import openai_chat
from segue.conformance.profiles.profile import Profile
from segue.conformance.rule import RuleSet

NOT_CHECKABLE: Mapping[str, str] = {
    "COMP-03": "about the calls of replies, not about replayed ones",
    "COMP-06": "about reply streams; a request body holds no deltas",
    "COMP-13": "about replies: native calls without id and type; in requests both are optional",
    "COMP-20": "about the start options of the server",
    "COMP-24": "about reply streams; a request body holds no deltas",
}


def _find_not_checkable(profile: Profile[Any]) -> Mapping[str, str]:
    return NOT_CHECKABLE if profile.base is openai_chat.RULE_SET else profile.base.not_checkable


def _load_profiles() -> Iterator[Profile[Any]]:
    for entry in pkgutil.iter_modules(__path__):
        yield from getattr(import_module(f"{__name__}.{entry.name}"), "PROFILES", ())


PROFILES: Mapping[str, Profile[Any]] = {profile.name: profile for profile in _load_profiles()}
RULE_SETS: Mapping[str, RuleSet[Any]] = {
    name: RuleSet(profile.base.api, profile.base.parse, tuple(profile.rules()), _find_not_checkable(profile))
    for name, profile in PROFILES.items()
}
