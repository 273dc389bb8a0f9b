"""LangChain: `create_agent` with the chat models that take an HTTP client or a transport."""

# pyright: reportMissingImports=false

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from langchain.agents import create_agent
from langchain.agents.middleware import wrap_model_call
from langchain_core.messages import AIMessage
from langchain_openai import ChatOpenAI

from tests.frameworks.task import INSTRUCTIONS, QUESTION
from tests.frameworks.upstreams import Upstreams

_KEY = "unused"
_ASKED: Any = {"messages": [{"role": "user", "content": QUESTION}]}


def _run(upstreams: Upstreams, streamed: bool, make_model: Callable[[str], Any]) -> str:
    models = {name: make_model(name) for name in upstreams.running}

    @wrap_model_call
    def choose_model(request: Any, handler: Callable[[Any], Any]) -> Any:
        return handler(request.override(model=models[upstreams.model]))

    agent = create_agent(
        models[upstreams.model],
        tools=list(upstreams.tools.functions),
        system_prompt=INSTRUCTIONS,
        middleware=[choose_model],
    )
    if streamed:
        texts = [
            message.text
            for message, _ in agent.stream(_ASKED, stream_mode="messages")
            if isinstance(message, AIMessage)
        ]
        return "".join(texts)
    return agent.invoke(_ASKED)["messages"][-1].text


def run_chat(upstreams: Upstreams, streamed: bool) -> str:
    client = upstreams.client()
    return _run(upstreams, streamed, lambda model: ChatOpenAI(model=model, api_key=_KEY, http_client=client))


def run_chat_async(upstreams: Upstreams, streamed: bool) -> str:
    async def run() -> str:
        async with upstreams.async_client() as client:
            models = {
                name: ChatOpenAI(model=name, api_key=_KEY, http_async_client=client) for name in upstreams.running
            }

            @wrap_model_call
            async def choose_model(request: Any, handler: Callable[[Any], Any]) -> Any:
                return await handler(request.override(model=models[upstreams.model]))

            agent = create_agent(
                models[upstreams.model],
                tools=list(upstreams.tools.functions),
                system_prompt=INSTRUCTIONS,
                middleware=[choose_model],
            )
            if not streamed:
                return (await agent.ainvoke(_ASKED))["messages"][-1].text
            texts = [
                message.text
                async for message, _ in agent.astream(_ASKED, stream_mode="messages")
                if isinstance(message, AIMessage)
            ]
            return "".join(texts)

    return asyncio.run(run())


def run_responses(upstreams: Upstreams, streamed: bool) -> str:
    client = upstreams.client()
    return _run(
        upstreams,
        streamed,
        lambda model: ChatOpenAI(
            model=model,
            api_key=_KEY,
            http_client=client,
            use_responses_api=True,
            output_version="responses/v1",
            store=False,
            include=["reasoning.encrypted_content"],
        ),
    )


def run_google(upstreams: Upstreams, streamed: bool) -> str:
    from langchain_google_genai import ChatGoogleGenerativeAI

    recorded = upstreams.client(is_httpx2=False)
    options = {"transport": recorded._transport, "event_hooks": recorded.event_hooks}
    return _run(
        upstreams, streamed, lambda model: ChatGoogleGenerativeAI(model=model, api_key=_KEY, client_args=options)
    )


def run_mistral(upstreams: Upstreams, streamed: bool) -> str:
    from langchain_mistralai import ChatMistralAI

    client = upstreams.client(is_httpx2=False, base_url="https://api.mistral.ai/v1")
    return _run(upstreams, streamed, lambda model: ChatMistralAI(model_name=model, api_key=_KEY, client=client))
