"""LlamaIndex: a `FunctionAgent` with the models of OpenAI."""

# pyright: reportMissingImports=false, reportUntypedBaseClass=false

from __future__ import annotations

import asyncio
from typing import Any

from llama_index.core.agent.workflow import FunctionAgent
from llama_index.llms.openai_like import OpenAILike, OpenAILikeResponses

from tests.frameworks.task import INSTRUCTIONS, QUESTION
from tests.frameworks.upstreams import Upstreams


class _SwitchingAgent(FunctionAgent):
    """A `FunctionAgent` whose model is chosen for each step."""

    choose: Any = None

    async def take_step(self, *args: Any, **options: Any) -> Any:
        self.llm = self.choose()
        return await super().take_step(*args, **options)


def _run(upstreams: Upstreams, streamed: bool, model_class: Any, **options: Any) -> str:
    async def run() -> str:
        async with upstreams.async_client() as client:
            models = {
                name: model_class(
                    model=name,
                    api_key="unused",
                    async_http_client=client,
                    is_chat_model=True,
                    is_function_calling_model=True,
                    **options,
                )
                for name in upstreams.running
            }
            agent = _SwitchingAgent(
                tools=list(upstreams.tools.functions),
                llm=models[upstreams.model],
                system_prompt=INSTRUCTIONS,
                streaming=streamed,
                choose=lambda: models[upstreams.model],
            )
            return str(await agent.run(QUESTION))

    return asyncio.run(run())


def run_chat(upstreams: Upstreams, streamed: bool) -> str:
    return _run(upstreams, streamed, OpenAILike)


def run_responses(upstreams: Upstreams, streamed: bool) -> str:
    return _run(upstreams, streamed, OpenAILikeResponses)
