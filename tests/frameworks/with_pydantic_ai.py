"""pydantic-ai: an agent with the models whose providers take an HTTP client."""

# pyright: reportMissingImports=false

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from pydantic_ai import Agent
from pydantic_ai.capabilities import SelectModel

from tests.frameworks.task import INSTRUCTIONS, QUESTION
from tests.frameworks.upstreams import IS_HTTPX2, Upstreams

_KEY = "unused"


def _run(upstreams: Upstreams, streamed: bool, make_model: Callable[[str, Any], Any], **options: Any) -> str:
    async def run() -> str:
        async with upstreams.async_client(**options) as client:
            models = {name: make_model(name, client) for name in upstreams.running}
            agent = Agent(
                models[upstreams.model],
                instructions=INSTRUCTIONS,
                tools=list(upstreams.tools.functions),
                capabilities=[SelectModel(lambda _: models[upstreams.model])],
            )
            if streamed:
                async with agent.run_stream(QUESTION) as result:
                    return await result.get_output()
            return (await agent.run(QUESTION)).output

    return asyncio.run(run())


def run_chat(upstreams: Upstreams, streamed: bool) -> str:
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    return _run(
        upstreams,
        streamed,
        lambda model, client: OpenAIChatModel(model, provider=OpenAIProvider(api_key=_KEY, http_client=client)),
    )


def run_responses(upstreams: Upstreams, streamed: bool) -> str:
    from pydantic_ai.models.openai import OpenAIResponsesModel
    from pydantic_ai.providers.openai import OpenAIProvider

    return _run(
        upstreams,
        streamed,
        lambda model, client: OpenAIResponsesModel(model, provider=OpenAIProvider(api_key=_KEY, http_client=client)),
    )


def run_anthropic(upstreams: Upstreams, streamed: bool) -> str:
    from pydantic_ai.models.anthropic import AnthropicModel
    from pydantic_ai.providers.anthropic import AnthropicProvider

    return _run(
        upstreams,
        streamed,
        lambda model, client: AnthropicModel(model, provider=AnthropicProvider(api_key=_KEY, http_client=client)),
        is_httpx2=True,
    )


def run_google(upstreams: Upstreams, streamed: bool) -> str:
    from pydantic_ai.models.google import GoogleModel
    from pydantic_ai.providers.google import GoogleProvider

    return _run(
        upstreams,
        streamed,
        lambda model, client: GoogleModel(model, provider=GoogleProvider(api_key=_KEY, http_client=client)),
        is_httpx2=IS_HTTPX2,
    )


def run_mistral(upstreams: Upstreams, streamed: bool) -> str:
    from pydantic_ai.models.mistral import MistralModel
    from pydantic_ai.providers.mistral import MistralProvider

    return _run(
        upstreams,
        streamed,
        lambda model, client: MistralModel(model, provider=MistralProvider(api_key=_KEY, http_client=client)),
        is_httpx2=True,
    )
