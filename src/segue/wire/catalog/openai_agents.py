"""The types of OpenAI's agents: items that a session stores, and items that a client submits."""

from __future__ import annotations

from msgspec import UNSET

from segue.canonical.blocks import Text, ToolResponse
from segue.wire.catalog.fields import Arguments, Content, Output, Patch, keys, said, value, values
from segue.wire.catalog.openai_mcp import approval_of, approved
from segue.wire.catalog.openai_outputs import (
    exit_said,
    found,
    has_failed,
    or_error,
    parts,
    screenshot,
    stated,
)
from segue.wire.catalog.shape import Shape
from segue.wire.fields import JsonObject, object_or_none, string_or_none
from segue.wire.openai_responses.hosted import HOSTED

__all__ = ["AGENTS"]

_TURN = {"turn_id": ""}
_DONE = {**_TURN, "status": "completed"}
_RUNNING = {**_TURN, "status": "in_progress"}


def _failed_result(payload: JsonObject) -> bool:
    return payload["success"] is False or has_failed(payload)


# ------------------------------------------------------------------------------------------------------------ commands


def _printed(item: JsonObject) -> Content:
    output, code = string_or_none(item.get("output")), item.get("exit_code")
    if output is None and code is None:
        return None, UNSET
    ended = f"[exit code {code}]" if code else None
    return tuple(Text(text) for text in ("\n".join(filter(None, (output, ended))),) if text), UNSET


def _print(response: ToolResponse) -> Patch:
    text, code = exit_said(response)
    if isinstance(code, int):
        return {"output": text, "exit_code": code}
    return {"output": said(response), **({} if response.error else {"exit_code": 0})}


# ----------------------------------------------------------------------------------------------------------- approvals


def _tell(item: JsonObject) -> str:
    response = object_or_none(item["response"]) or {}
    is_approved = response.get("action") == "submit" or response.get("decision") == "approve"
    return approved(is_approved, response.get("selected_option"))


def _submit(text: str) -> Patch:
    is_approved, reason = approval_of(text)
    chosen = {"selected_option": reason["reason"]} if reason else {}
    return {"response": {"type": "browser_authentication", "action": "submit" if is_approved else "cancel", **chosen}}


# ----------------------------------------------------------------------------------------------------------- subagents


def _subagent(tool: str, *names: str) -> Shape:
    """A call without an output; a failure shows only in its status."""
    return Shape(
        id="id",
        tool=tool,
        arguments=keys(*names),
        output=stated(Output(lambda _item: (None, UNSET), lambda _response: {})),
        failed=has_failed,
        kind="hosted",
        defaults=_DONE,
    )


AGENTS: dict[str, Shape] = {
    "AgentFunctionCall": Shape(id="call_id", item="id", name="name", arguments=value("arguments"), defaults=_DONE),
    "AgentFunctionCallOutput": Shape(
        id="call_id",
        item="id",
        output=stated(or_error(parts("output"))),
        failed=has_failed,
        defaults=_TURN,
    ),
    "AgentSessionToolResult": Shape(
        id="call_id",
        output=stated(or_error(parts("output")), path="success", done=True, failed=False),
        failed=_failed_result,
        defaults=_TURN,
    ),
    "AgentMCPCall": Shape(
        id="id",
        name="name",
        arguments=value("arguments"),
        output=stated(or_error(values("output"))),
        failed=has_failed,
        kind="hosted",
        defaults={"server_label": "", "output": None, "error": None, **_RUNNING},
    ),
    "AgentWebSearchCall": Shape(
        id="id",
        tool="web_search",
        arguments=Arguments(lambda item: (HOSTED["web_search_call"].arguments(item), None), value("action").write),
        output=stated(found),
        failed=has_failed,
        kind="hosted",
        defaults=_DONE,
    ),
    "AgentCommandExecution": Shape(
        id="id",
        tool="command_execution",
        arguments=keys("command", "cwd"),
        output=stated(Output(_printed, _print)),
        failed=has_failed,
        kind="hosted",
        defaults=_RUNNING,
    ),
    "AgentComputerUseCall": Shape(
        id="id",
        tool="computer_use",
        arguments=keys("title"),
        output=stated(screenshot),
        failed=has_failed,
        kind="hosted",
        defaults=_RUNNING,
    ),
    "AgentComputerUseApprovalRequest": Shape(
        id="request_id", item="id", tool="computer_use", arguments=value("request"), kind="hosted", defaults=_TURN
    ),
    "AgentComputerUseApprovalRequestResult": Shape(
        id="request_id", item="id", tell=_tell, untell=_submit, defaults=_TURN
    ),
    "AgentSessionComputerUseApproval": Shape(id="request_id", tell=_tell, untell=_submit),
    "AgentCreateSubagentCall": _subagent("create_subagent", "agent_id", "content", "model", "reasoning_effort"),
    "AgentSendSubagentInputCall": _subagent("send_subagent_input", "sender_agent_id", "recipient_agent_id", "content"),
    "AgentResumeSubagentCall": _subagent("resume_subagent", "sender_agent_id", "recipient_agent_id"),
    "AgentWaitForSubagentsCall": _subagent("wait_for_subagents", "sender_agent_id", "recipient_agent_ids"),
    "AgentInterruptSubagentCall": _subagent("interrupt_subagent", "sender_agent_id", "recipient_agent_id"),
    "AgentCloseSubagentCall": _subagent("close_subagent", "sender_agent_id", "recipient_agent_id"),
}
