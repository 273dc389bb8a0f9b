"""Server profiles: servers of the Chat Completions API with rules of their own (COMP-*).

A profile is the rule set of openai-chat with changes: checks that the server does not make are left out, others are
only a risk, and the server's own checks are added. Each module here lists its profiles in `PROFILES`. Every COMP number
is either a check of a profile or a row of `NOT_CHECKABLE`.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Iterator, Mapping
from importlib import import_module

from segue.conformance.chat_request import ChatRequest, parse_request
from segue.conformance.profiles.profile import Profile
from segue.conformance.rule import RuleSet

NOT_CHECKABLE: Mapping[str, str] = {
    "COMP-03": "about the calls of replies, not about replayed ones",
    "COMP-06": "about reply streams; a request body holds no deltas",
    "COMP-13": "about replies: native calls without id and type; in requests both are optional",
    "COMP-20": "about the start options of the server",
    "COMP-24": "about reply streams; a request body holds no deltas",
}


def _load_profiles() -> Iterator[Profile]:
    for entry in pkgutil.iter_modules(__path__):
        yield from getattr(import_module(f"{__name__}.{entry.name}"), "PROFILES", ())


PROFILES: Mapping[str, Profile] = {profile.name: profile for profile in _load_profiles()}
RULE_SETS: Mapping[str, RuleSet[ChatRequest]] = {
    name: RuleSet("openai-chat", parse_request, tuple(profile.rules()), NOT_CHECKABLE)
    for name, profile in PROFILES.items()
}
