"""`build_body(scenario, api, model)`: the scenario as a request body of that API, written from the rulebook.

A valid scenario gives a valid body, a broken one a broken body. A wire without a builder here gets the converted
Chat body, so that the properties cover it without further code.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import partial
from typing import Any

from tests.properties.bodies_anthropic import build_anthropic_body
from tests.properties.bodies_bedrock import build_bedrock_body
from tests.properties.bodies_chat import VENDORS, build_chat_body
from tests.properties.bodies_foundry import build_foundry_body
from tests.properties.bodies_gemini import build_gemini_body
from tests.properties.bodies_responses import build_responses_body
from tests.properties.scenario import Scenario

Body = dict[str, Any]

BUILDERS: dict[str, Callable[[Scenario, str | None], Body]] = {
    **{api: partial(build_chat_body, api=api) for api in VENDORS},
    "openai-responses": build_responses_body,
    "azure-foundry": build_foundry_body,
    "anthropic": build_anthropic_body,
    "gemini": build_gemini_body,
    "bedrock": build_bedrock_body,
}


def build_body(scenario: Scenario, api: str, model: str | None = None) -> Body:
    """A fresh body that shares no objects with the scenario."""
    if api in BUILDERS:
        return copy.deepcopy(BUILDERS[api](scenario, model))
    import segue

    return segue.convert(build_chat_body(scenario, None), source="openai-chat", target=api).body
