"""The dialect `azure-foundry`: agents of Azure AI Foundry, on the Responses wire.

Tools and instructions are part of the agent; a body only names it. Items of its tools are valid in replies only; in
a request they become function calls. Encrypted reasoning is accepted for the newest turn only (AZF-06): a body that has
no other is sent as it is. Else none is sent back, because the prompt prefix would change one turn later.
"""

from __future__ import annotations

from typing import Any, cast

from msgspec.structs import replace

from segue.models import Model, cache_by_model
from segue.render.constraints import Constraints
from segue.render.report import Report
from segue.wire.base import ApiError
from segue.wire.json_values import JsonObject, object_or_none
from segue.wire.openai_responses import constraints, make_wire
from segue.wire.openai_responses.context import ResponsesDialect
from segue.wire.openai_responses.foundry import (
    accepts_item,
    accepts_part,
    derive_id,
    drop_invalid_body_fields,
    is_derived_id,
    is_item_id,
    is_valid_id,
    repair_agent,
    repair_item,
    repair_tools,
    validate_tool,
)
from segue.wire.openai_shared import OPENAI_RANGES

_NAME = "azure-foundry"


@cache_by_model
def _constraints(model: Model) -> Constraints:
    return replace(
        constraints(model),
        option_ranges=OPENAI_RANGES,
        api=_NAME,
        provider=_NAME,
        # AZF-06, AZF-11
        reasoning_replay="newest",
        file_id_apis=frozenset({_NAME}),
    )


def _is_response_id(response_id: str) -> bool:
    # AZF-07
    return is_item_id(response_id, "caresp") and not is_derived_id(response_id)


def _repair_body(body: JsonObject, report: Report) -> JsonObject:
    """Return the body as the service accepts it, each change reported; the same object where nothing changes."""
    repaired = _set_agent_reference(body, report)
    # AZF-01
    if repaired.get("agent_reference") is not None and "tools" in repaired:
        repaired = _without_key(repaired, "tools")
        report.add("tools", "`tools` dropped: the agent in the request has its own", subject="tools", level="lost")
    previous = repaired.get("previous_response_id")
    if isinstance(previous, str) and previous and not _is_response_id(previous):
        repaired = _without_key(repaired, "previous_response_id")
        message = f"`previous_response_id` {previous} dropped: it is not a response id of {_NAME}"
        report.add("dropped", message, subject="previous_response_id")
    original_tools = repaired.get("tools")
    if (
        isinstance(original_tools, list)
        and (tools := repair_tools(cast("list[Any]", original_tools), report)) is not original_tools
    ):
        repaired = {**repaired, "tools": tools}
    # AZF-03
    return drop_invalid_body_fields(repaired, report)


def _set_agent_reference(body: JsonObject, report: Report) -> JsonObject:
    """AZF-02: the agent is named by `agent_reference`, with its type."""
    key = "agent_reference" if "agent_reference" in body else "agent"
    agent = object_or_none(body.get(key))
    if agent is None and not {"agent", "agent_reference"} & body.keys():
        return body
    if agent is None or not isinstance(agent.get("name"), str):
        report.add("dropped", f"`{key}` dropped: it names no agent", subject=key)
        return _without_key(_without_key(body, "agent"), "agent_reference")
    fitted = repair_agent(agent, report)
    if key == "agent_reference" and fitted.get("type") == key and fitted is agent:
        return body if "agent" not in body else _without_key(body, "agent")
    report.add("adjusted", "`agent` sent as `agent_reference`: the API no longer accepts `agent`", subject=key)
    reference = {**fitted, "type": "agent_reference"}
    renamed = {"agent_reference" if name == key else name: value for name, value in body.items()}
    return {**_without_key(renamed, "agent"), "agent_reference": reference}


def _without_key(body: JsonObject, key: str) -> JsonObject:
    return {name: value for name, value in body.items() if name != key}


def _render_error(error: ApiError) -> JsonObject:
    """OpenAI's error body with `details`, which may be empty."""
    fields = {"code": error.code, "message": error.message, "param": error.param, "type": error.kind}
    return {"error": {**fields, "details": list(error.details)}}


WIRE = make_wire(
    ResponsesDialect(
        _NAME,
        _NAME,
        is_valid_id=is_valid_id,
        accepts_item=accepts_item,
        accepts_part=accepts_part,
        file_apis=frozenset({_NAME}),
        summaries=True,
        response_prefix="caresp",
        derive_id=derive_id,
        is_response_id=_is_response_id,
        validate_tool=validate_tool,
        repair_item=repair_item,
        repair_body=_repair_body,
    ),
    "Azure AI Foundry agents",
    "gpt-5",
    _constraints,
    render_error=_render_error,
    base_path="/openai/v1",
    key_header="api-key",
    # Its reasoning is sent back in its own bodies only.
    stateless_fields={"store": False},
)
