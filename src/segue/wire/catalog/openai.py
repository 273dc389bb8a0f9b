"""OpenAI's types: Chat Completions, Assistants, Realtime, ChatKit, agents, and Responses from `openai_responses`."""

from __future__ import annotations

from msgspec import UNSET

from segue.canonical.blocks import Text, ToolCall, ToolResponse
from segue.wire.catalog.codecs import (
    ApprovalCodec,
    ArgumentsCodec,
    Content,
    OutputCodec,
    Patch,
    free_text,
    json_text,
    json_value,
    parse_approval_text,
    response_text,
    selected_keys,
    text_output,
    value_output,
)
from segue.wire.catalog.openai_mcp import APPROVAL_REQUEST, APPROVAL_RESPONSE, MCP_LIST_TOOLS, mcp_output
from segue.wire.catalog.openai_outputs import (
    code_interpreter_output,
    has_failed,
    list_output,
    output_or_error,
    parts_output,
    render_image_file,
    screenshot_output,
    split_exit_line,
    web_search_output,
    with_status,
)
from segue.wire.catalog.openai_responses import RESPONSES
from segue.wire.catalog.shape import EnclosingBody, PayloadShape
from segue.wire.json_values import JsonObject, get_path, object_or_none, string_or_none
from segue.wire.openai_responses.item_types import HOSTED_TYPES, format_approval

# ---------------------------------------------------------------------------------------------------------- assistants


def _render_code(call: ToolCall) -> Patch:
    return {"code_interpreter.input": (object_or_none(call.arguments) or {}).get("code") or ""}


_CODE_ARGUMENTS = ArgumentsCodec(
    lambda step: ({"code": string_or_none(get_path(step, "code_interpreter.input")) or ""}, None), _render_code
)
_CODE_OUTPUT = code_interpreter_output("code_interpreter.outputs", render_image_file)


def _parse_run_output(step: JsonObject) -> Content:
    """Parse the output; an empty list means that there is none yet."""
    content, structured = _CODE_OUTPUT.parse(step)
    return content or None, structured


_ASSISTANTS: dict[str, PayloadShape] = {
    "RequiredActionFunctionToolCall": PayloadShape(name="function.name", arguments=json_text("function.arguments")),
    "SubmitToolOutput": PayloadShape(id="tool_call_id", output=text_output("output")),
    "RunStepFunctionToolCall": PayloadShape(
        name="function.name", arguments=json_text("function.arguments"), output=text_output("function.output")
    ),
    "RunStepCodeInterpreterToolCall": PayloadShape(
        tool="code_interpreter",
        arguments=_CODE_ARGUMENTS,
        output=OutputCodec(_parse_run_output, _CODE_OUTPUT.render),
        kind="hosted",
        defaults={"code_interpreter.outputs": []},
    ),
    "RunStepFileSearchToolCall": PayloadShape(
        tool="file_search",
        arguments=selected_keys("ranking_options", root="file_search"),
        output=list_output("file_search.results"),
        kind="hosted",
        defaults={"file_search": {}},
    ),
}


# ------------------------------------------------------------------------------------------------------------ realtime


_REALTIME: dict[str, PayloadShape] = {
    "RealtimeFunctionCall": PayloadShape(id="call_id", item_id="id", name="name", arguments=json_text("arguments")),
    "RealtimeFunctionCallOutput": PayloadShape(id="call_id", item_id="id", output=text_output("output")),
    "RealtimeMCPToolCall": PayloadShape(
        name="name",
        arguments=json_text("arguments"),
        output=mcp_output(lambda text: {"type": "tool_execution_error", "message": text}),
        failed=has_failed,
        kind="hosted",
        defaults={"server_label": ""},
    ),
    "RealtimeMCPListTools": MCP_LIST_TOOLS,
    "RealtimeMCPApprovalRequest": APPROVAL_REQUEST,
    "RealtimeMCPApprovalResponse": APPROVAL_RESPONSE,
}


# ------------------------------------------------------------------------------------------------------------- chatkit

_CHATKIT: dict[str, PayloadShape] = {
    "ChatKitClientToolCall": PayloadShape(
        id="call_id",
        item_id="id",
        name="name",
        arguments=json_text("arguments"),
        output=with_status(text_output("output"), failed="completed"),
        defaults={"object": "chatkit.thread_item", "thread_id": "", "created_at": 0, "status": "in_progress"},
    )
}


# -------------------------------------------------------------------------------------------------------------- agents


_TURN = {"turn_id": ""}
_DONE = {**_TURN, "status": "completed"}
_RUNNING = {**_TURN, "status": "in_progress"}


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


def _parse_approval(item: JsonObject) -> str:
    response = object_or_none(item["response"]) or {}
    is_approved = response.get("action") == "submit" or response.get("decision") == "approve"
    return format_approval(is_approved, response.get("selected_option"))


def _render_approval(text: str) -> Patch:
    is_approved, reason = parse_approval_text(text)
    chosen = {"selected_option": reason} if reason else {}
    return {"response": {"type": "browser_authentication", "action": "submit" if is_approved else "cancel", **chosen}}


_BROWSER_APPROVAL = ApprovalCodec(_parse_approval, _render_approval)


def _subagent_shape(tool: str, *names: str) -> PayloadShape:
    """Return the shape of a call without an output; a failure shows only in its status."""
    return PayloadShape(
        tool=tool,
        arguments=selected_keys(*names),
        output=with_status(OutputCodec(lambda _item: (None, UNSET), lambda _response: {})),
        failed=has_failed,
        kind="hosted",
        defaults=_DONE,
    )


_AGENTS: dict[str, PayloadShape] = {
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
        failed=lambda payload: payload["success"] is False or has_failed(payload),
        defaults=_TURN,
    ),
    "AgentMCPCall": PayloadShape(
        name="name",
        arguments=json_value("arguments"),
        output=with_status(output_or_error(value_output("output"))),
        failed=has_failed,
        kind="hosted",
        defaults={"server_label": "", "output": None, "error": None, **_RUNNING},
    ),
    "AgentWebSearchCall": PayloadShape(
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
        tool="command_execution",
        arguments=selected_keys("command", "cwd"),
        output=with_status(OutputCodec(_parse_command_output, _render_command_output)),
        failed=has_failed,
        kind="hosted",
        defaults=_RUNNING,
    ),
    "AgentComputerUseCall": PayloadShape(
        tool="computer_use",
        arguments=selected_keys("title"),
        output=with_status(screenshot_output()),
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
        id="request_id", item_id="id", approval=_BROWSER_APPROVAL, defaults=_TURN
    ),
    "AgentSessionComputerUseApproval": PayloadShape(id="request_id", approval=_BROWSER_APPROVAL),
    "AgentCreateSubagentCall": _subagent_shape("create_subagent", "agent_id", "content", "model", "reasoning_effort"),
    "AgentSendSubagentInputCall": _subagent_shape(
        "send_subagent_input", "sender_agent_id", "recipient_agent_id", "content"
    ),
    "AgentResumeSubagentCall": _subagent_shape("resume_subagent", "sender_agent_id", "recipient_agent_id"),
    "AgentWaitForSubagentsCall": _subagent_shape("wait_for_subagents", "sender_agent_id", "recipient_agent_ids"),
    "AgentInterruptSubagentCall": _subagent_shape("interrupt_subagent", "sender_agent_id", "recipient_agent_id"),
    "AgentCloseSubagentCall": _subagent_shape("close_subagent", "sender_agent_id", "recipient_agent_id"),
}


# ---------------------------------------------------------------------------------------------------- chat completions


_CALL_BODY = EnclosingBody(
    "openai-chat", lambda call: {"messages": [{"role": "assistant", "content": None, "tool_calls": [call]}]}
)
_MESSAGE_BODY = EnclosingBody("openai-chat", lambda message: {"messages": [message]})

_CHAT: dict[str, PayloadShape] = {
    "ChatFunctionToolCall": PayloadShape(
        name="function.name", arguments=json_text("function.arguments"), enclosing_body=_CALL_BODY
    ),
    "ChatCustomToolCall": PayloadShape(
        name="custom.name", arguments=free_text("custom.input"), kind="custom", enclosing_body=_CALL_BODY
    ),
    "ChatToolMessage": PayloadShape(
        id="tool_call_id", output=parts_output("content", "text", lambda _media: None), enclosing_body=_MESSAGE_BODY
    ),
    "ChatLegacyFunctionCall": PayloadShape(
        id=None,
        name="function_call.name",
        arguments=json_text("function_call.arguments"),
        defaults={"content": None},
        enclosing_body=_MESSAGE_BODY,
    ),
    "ChatLegacyFunctionMessage": PayloadShape(
        id=None, name="name", output=text_output("content"), enclosing_body=_MESSAGE_BODY
    ),
}

OPENAI: dict[str, PayloadShape] = {**RESPONSES, **_CHAT, **_ASSISTANTS, **_REALTIME, **_CHATKIT, **_AGENTS}
