"""`build_body(scenario, api, model)`: the scenario as a request body of that API, written from the rulebook.

A valid scenario gives a valid body, a broken one a broken body. A wire without a builder here gets the converted
Chat body, so that the properties cover it without further code.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import partial
from typing import Any

from .spell_anthropic import spell_anthropic
from .spell_bedrock import spell_bedrock
from .spell_chat import VENDORS, spell_chat
from .spell_foundry import spell_foundry
from .spell_gemini import spell_gemini
from .spell_responses import spell_responses
from .story import Story

Body = dict[str, Any]

SPELLINGS: dict[str, Callable[[Story, str | None], Body]] = {
    **{api: partial(spell_chat, api=api) for api in VENDORS},
    "openai-responses": spell_responses,
    "azure-foundry": spell_foundry,
    "anthropic": spell_anthropic,
    "gemini": spell_gemini,
    "bedrock": spell_bedrock,
}


def spell(scenario: Story, api: str, model: str | None = None) -> Body:
    """A fresh body that shares no objects with the scenario."""
    if api in SPELLINGS:
        return copy.deepcopy(SPELLINGS[api](scenario, model))
    import segue

    return segue.convert(spell_chat(scenario, None), source="openai-chat", target=api).body
