"""smolagents: a `ToolCallingAgent`. Its history has calls and results as text; its answer is a call of a tool."""

# pyright: reportMissingImports=false, reportUntypedBaseClass=false

from __future__ import annotations

from typing import Any

from smolagents import LogLevel, OpenAIModel, Tool, ToolCallingAgent

from tests.frameworks.task import QUESTION
from tests.frameworks.upstreams import Upstreams


def _make_tool(upstreams: Upstreams, tool_name: str, parameter: str) -> Tool:
    class Lookup(Tool):
        name = tool_name
        description = f"Look up by {parameter}."
        inputs = {parameter: {"type": "string", "description": f"The {parameter}."}}  # noqa: RUF012
        output_type = "string"
        skip_forward_signature_validation = True

        def forward(self, **arguments: str) -> str:
            return upstreams.tools.record(tool_name, arguments)

    return Lookup()


def run(upstreams: Upstreams, streamed: bool) -> str:
    with upstreams.client() as client:
        models = {
            name: OpenAIModel(name, api_key="unused", client_kwargs={"http_client": client})
            for name in upstreams.running
        }

        def choose_model(_step: Any, agent: Any) -> None:
            agent.model = models[upstreams.model]

        agent = ToolCallingAgent(
            tools=[_make_tool(upstreams, "get_weather", "city"), _make_tool(upstreams, "get_time", "zone")],
            model=models[upstreams.model],
            step_callbacks=[choose_model],
            stream_outputs=streamed,
            verbosity_level=LogLevel.OFF,
        )
        return str(agent.run(QUESTION))
