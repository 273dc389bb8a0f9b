"""OpenAI Agents: an agent on a client of OpenAI that has an HTTP client of its own."""

# pyright: reportMissingImports=false

from __future__ import annotations

import asyncio
from typing import Any

import agents
import openai

from tests.frameworks.task import INSTRUCTIONS, QUESTION
from tests.frameworks.upstreams import Upstreams


class _ChooseModel(agents.RunHooks[Any]):
    """Changes the model of the agent after each reply."""

    def __init__(self, upstreams: Upstreams, models: dict[str, Any]) -> None:
        self._upstreams = upstreams
        self._models = models

    async def on_llm_end(self, context: Any, agent: Any, response: Any) -> None:
        agent.model = self._models[self._upstreams.model]


def _run(upstreams: Upstreams, streamed: bool, model_class: Any) -> str:
    agents.set_tracing_disabled(True)

    async def run() -> str:
        async with openai.AsyncOpenAI(api_key="unused", http_client=upstreams.async_client()) as client:
            models = {name: model_class(name, client) for name in upstreams.running}
            tools: list[Any] = [agents.function_tool(function) for function in upstreams.tools.functions]
            agent = agents.Agent("helper", instructions=INSTRUCTIONS, tools=tools, model=models[upstreams.model])
            hooks = _ChooseModel(upstreams, models)
            if not streamed:
                return (await agents.Runner.run(agent, QUESTION, hooks=hooks)).final_output
            result = agents.Runner.run_streamed(agent, QUESTION, hooks=hooks)
            async for _ in result.stream_events():
                pass
            return result.final_output

    return asyncio.run(run())


def run_chat(upstreams: Upstreams, streamed: bool) -> str:
    return _run(upstreams, streamed, agents.OpenAIChatCompletionsModel)


def run_responses(upstreams: Upstreams, streamed: bool) -> str:
    return _run(upstreams, streamed, agents.OpenAIResponsesModel)
