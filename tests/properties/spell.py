"""`spell(story, api, model)`: the story as a request body of that API, written from the rulebook.

A clean story gives a body that the judge accepts, a broken one a broken body. A wire that has no spelling here gets
the Chat body converted, so that it joins the properties without further code.
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


def spell(story: Story, api: str, model: str | None = None) -> Body:
    """A fresh body that shares nothing with the story."""
    if api in SPELLINGS:
        return copy.deepcopy(SPELLINGS[api](story, model))
    import segue

    return segue.convert(spell_chat(story, None), source="openai-chat", target=api).body
