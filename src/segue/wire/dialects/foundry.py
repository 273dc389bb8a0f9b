"""The dialect `azure-foundry`: agents of Azure AI Foundry, on the Responses wire.

Tools and instructions are part of the agent; a body only names it. Items of its tools occur in replies only: in a
request they become function calls. Reasoning is never sent back: the service accepts it for the newest turn only
(AZF-06), so the prefix would change a turn later.
"""

from __future__ import annotations

from typing import Any, cast

from msgspec.structs import replace

from segue.models import Model
from segue.render.demands import Demands
from segue.render.report import Report
from segue.wire.base import ApiError
from segue.wire.fields import JsonObject, object_or_none
from segue.wire.openai_responses import demands, make_wire
from segue.wire.openai_responses.foundry import (
    fitted_agent,
    fitted_body,
    hold_tool,
    is_id,
    lawful_id,
    mended_item,
    mended_tools,
    takes,
    takes_part,
)
from segue.wire.openai_responses.shared import ResponsesDialect

__all__ = ["AZURE_FOUNDRY"]

_NAME = "azure-foundry"


def _demands(model: Model) -> Demands:
    return replace(
        demands(model),
        api=_NAME,
        provider=_NAME,
        # AZF-06, AZF-11
        reasoning="refused",
        file_ids_of=frozenset({_NAME}),
    )


def _goes_on(response_id: str) -> bool:
    # AZF-07
    return is_id(response_id, "caresp")


def _mended_body(body: JsonObject, report: Report) -> JsonObject:
    """The body as the service accepts it, each change reported; the same object where nothing changes."""
    made = _with_reference(body, report)
    # AZF-01
    if made.get("agent_reference") is not None and "tools" in made:
        made = _without(made, "tools")
        report.add("tools", "tools dropped: the named agent has its own", subject="tools")
    previous = made.get("previous_response_id")
    if isinstance(previous, str) and previous and not _goes_on(previous):
        made = _without(made, "previous_response_id")
        message = f"previous_response_id {previous} dropped: it is not a response id of {_NAME}"
        report.add("dropped", message, subject="previous_response_id")
    given = made.get("tools")
    if isinstance(given, list) and (tools := mended_tools(cast("list[Any]", given), report)) is not given:
        made = {**made, "tools": tools}
    # AZF-03
    return fitted_body(made, report)


def _with_reference(body: JsonObject, report: Report) -> JsonObject:
    """AZF-02: the agent is named by `agent_reference`, with its type."""
    key = "agent_reference" if "agent_reference" in body else "agent"
    agent = object_or_none(body.get(key))
    if agent is None and not {"agent", "agent_reference"} & body.keys():
        return body
    if agent is None or not isinstance(agent.get("name"), str):
        report.add("dropped", f"{key} dropped: it names no agent", subject=key)
        return _without(_without(body, "agent"), "agent_reference")
    fitted = fitted_agent(agent, report)
    if key == "agent_reference" and fitted.get("type") == key and fitted is agent:
        return body if "agent" not in body else _without(body, "agent")
    report.add("adjusted", "agent sent as agent_reference", subject=key)
    named = {**fitted, "type": "agent_reference"}
    renamed = {"agent_reference" if name == key else name: value for name, value in body.items()}
    return {**_without(renamed, "agent"), "agent_reference": named}


def _without(body: JsonObject, key: str) -> JsonObject:
    return {name: value for name, value in body.items() if name != key}


def _render_error(error: ApiError) -> JsonObject:
    """OpenAI's error body with `details`, which may be empty."""
    fields = {"code": error.code, "message": error.message, "param": error.param, "type": error.kind}
    return {"error": {**fields, "details": list(error.details)}}


AZURE_FOUNDRY = make_wire(
    ResponsesDialect(
        _NAME,
        _NAME,
        lawful_id=lawful_id,
        takes=takes,
        takes_part=takes_part,
        files=frozenset({_NAME}),
        response_prefix="caresp",
        goes_on=_goes_on,
        hold_tool=hold_tool,
        mend_item=mended_item,
        mend_body=_mended_body,
    ),
    "Azure AI Foundry agents",
    "gpt-5",
    _demands,
    render_error=_render_error,
)
