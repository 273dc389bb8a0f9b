"""The types of OpenAI's agents: items that a session stores, and items that a client submits."""

from __future__ import annotations

from msgspec import UNSET

from segue.canonical.blocks import Text, ToolResponse
from segue.wire.catalog.field_codecs import (
    ArgumentsCodec,
    Content,
    OutputCodec,
    Patch,
    json_value,
    response_text,
    selected_keys,
    value_output,
)
from segue.wire.catalog.openai_mcp import format_approval, parse_approval_text
from segue.wire.catalog.openai_outputs import (
    has_failed,
    output_or_error,
    parts_output,
    screenshot_output,
    split_exit_line,
    web_search_output,
    with_status,
)
from segue.wire.catalog.shape import PayloadShape
from segue.wire.json_values import JsonObject, object_or_none, string_or_none
from segue.wire.openai_responses.item_types import HOSTED_TYPES

_TURN = {"turn_id": ""}
_DONE = {**_TURN, "status": "completed"}
_RUNNING = {**_TURN, "status": "in_progress"}


def _has_failed_result(payload: JsonObject) -> bool:
    return payload["success"] is False or has_failed(payload)


# ------------------------------------------------------------------------------------------------------------ commands


def _parse_command_output(item: JsonObject) -> Content:
    output, code = string_or_none(item.get("output")), item.get("exit_code")
    if output is None and code is None:
        return None, UNSET
    ended = f"[exit code {code}]" if code else None
    return tuple(Text(text) for text in ("\n".join(filter(None, (output, ended))),) if text), UNSET


def _render_command_output(response: ToolResponse) -> Patch:
    text, code = split_exit_line(response)
    if isinstance(code, int):
        return {"output": text, "exit_code": code}
    return {"output": response_text(response), **({} if response.error else {"exit_code": 0})}


# ----------------------------------------------------------------------------------------------------------- approvals


def _parse_approval(item: JsonObject) -> str:
    response = object_or_none(item["response"]) or {}
    is_approved = response.get("action") == "submit" or response.get("decision") == "approve"
    return format_approval(is_approved, response.get("selected_option"))


def _render_approval(text: str) -> Patch:
    is_approved, reason = parse_approval_text(text)
    chosen = {"selected_option": reason["reason"]} if reason else {}
    return {"response": {"type": "browser_authentication", "action": "submit" if is_approved else "cancel", **chosen}}


# ----------------------------------------------------------------------------------------------------------- subagents


def _subagent_shape(tool: str, *names: str) -> PayloadShape:
    """A call without an output; a failure shows only in its status."""
    return PayloadShape(
        id="id",
        tool=tool,
        arguments=selected_keys(*names),
        output=with_status(OutputCodec(lambda _item: (None, UNSET), lambda _response: {})),
        failed=has_failed,
        kind="hosted",
        defaults=_DONE,
    )


AGENTS: dict[str, PayloadShape] = {
    "AgentFunctionCall": PayloadShape(
        id="call_id", item_id="id", name="name", arguments=json_value("arguments"), defaults=_DONE
    ),
    "AgentFunctionCallOutput": PayloadShape(
        id="call_id",
        item_id="id",
        output=with_status(output_or_error(parts_output("output"))),
        failed=has_failed,
        defaults=_TURN,
    ),
    "AgentSessionToolResult": PayloadShape(
        id="call_id",
        output=with_status(output_or_error(parts_output("output")), path="success", done=True, failed=False),
        failed=_has_failed_result,
        defaults=_TURN,
    ),
    "AgentMCPCall": PayloadShape(
        id="id",
        name="name",
        arguments=json_value("arguments"),
        output=with_status(output_or_error(value_output("output"))),
        failed=has_failed,
        kind="hosted",
        defaults={"server_label": "", "output": None, "error": None, **_RUNNING},
    ),
    "AgentWebSearchCall": PayloadShape(
        id="id",
        tool="web_search",
        arguments=ArgumentsCodec(
            lambda item: (HOSTED_TYPES["web_search_call"].arguments(item), None), json_value("action").render
        ),
        output=with_status(web_search_output),
        failed=has_failed,
        kind="hosted",
        defaults=_DONE,
    ),
    "AgentCommandExecution": PayloadShape(
        id="id",
        tool="command_execution",
        arguments=selected_keys("command", "cwd"),
        output=with_status(OutputCodec(_parse_command_output, _render_command_output)),
        failed=has_failed,
        kind="hosted",
        defaults=_RUNNING,
    ),
    "AgentComputerUseCall": PayloadShape(
        id="id",
        tool="computer_use",
        arguments=selected_keys("title"),
        output=with_status(screenshot_output),
        failed=has_failed,
        kind="hosted",
        defaults=_RUNNING,
    ),
    "AgentComputerUseApprovalRequest": PayloadShape(
        id="request_id",
        item_id="id",
        tool="computer_use",
        arguments=json_value("request"),
        kind="hosted",
        defaults=_TURN,
    ),
    "AgentComputerUseApprovalRequestResult": PayloadShape(
        id="request_id", item_id="id", parse_approval=_parse_approval, render_approval=_render_approval, defaults=_TURN
    ),
    "AgentSessionComputerUseApproval": PayloadShape(
        id="request_id", parse_approval=_parse_approval, render_approval=_render_approval
    ),
    "AgentCreateSubagentCall": _subagent_shape("create_subagent", "agent_id", "content", "model", "reasoning_effort"),
    "AgentSendSubagentInputCall": _subagent_shape(
        "send_subagent_input", "sender_agent_id", "recipient_agent_id", "content"
    ),
    "AgentResumeSubagentCall": _subagent_shape("resume_subagent", "sender_agent_id", "recipient_agent_id"),
    "AgentWaitForSubagentsCall": _subagent_shape("wait_for_subagents", "sender_agent_id", "recipient_agent_ids"),
    "AgentInterruptSubagentCall": _subagent_shape("interrupt_subagent", "sender_agent_id", "recipient_agent_id"),
    "AgentCloseSubagentCall": _subagent_shape("close_subagent", "sender_agent_id", "recipient_agent_id"),
}
