"""Specs of the items that Foundry accepts in `input`: a closed list of types (AZF-03, AZF-08)."""

from __future__ import annotations

from collections.abc import Mapping

from segue.conformance.azure_foundry.tools import TOOL
from segue.conformance.form import (
    ANY,
    BOOLEAN,
    INTEGER,
    NUMBER,
    TEXT,
    Form,
    chosen,
    either,
    entries,
    mapped,
    maybe,
    members,
    text,
)

__all__ = ["BREAKPOINT", "CONTENT", "ITEMS", "OUTPUT_ONLY"]

# Items of the service's own tools, workflows and consents: only in replies.
_SERVER_TOOLS = (
    *("a2a_preview", "azure_ai_search", "azure_function", "bing_custom_search_preview", "bing_grounding"),
    *("browser_automation_preview", "fabric_dataagent_preview", "openapi", "sharepoint_grounding_preview"),
)
OUTPUT_ONLY = frozenset(
    {
        *(f"{tool}_call" for tool in _SERVER_TOOLS),
        *(f"{tool}_call_output" for tool in _SERVER_TOOLS),
        *("oauth_consent_request", "structured_outputs", "workflow_action"),
    }
)

_NAME = maybe(TEXT)
_STATUS = text("in_progress", "completed", "incomplete")
_CALLER = maybe(chosen("type", {"direct": members(), "program": members({"caller_id": TEXT})}))
BREAKPOINT = members({"mode": text("explicit")})
_DETAIL = text("low", "high", "auto", "original")
_FILE_DETAIL = text("auto", "low", "high")

# Parts of messages and of the outputs of custom tools; outputs of function tools allow null in more places.
_INPUT_TEXT = members({"text": TEXT}, prompt_cache_breakpoint=BREAKPOINT)
_INPUT_FILE = members(
    detail=_FILE_DETAIL,
    file_data=TEXT,
    file_id=_NAME,
    file_url=TEXT,
    filename=TEXT,
    prompt_cache_breakpoint=BREAKPOINT,
)
_IMAGE = {"file_id": _NAME, "image_url": _NAME, "prompt_cache_breakpoint": BREAKPOINT}
CONTENT = {
    "input_text": _INPUT_TEXT,
    "input_image": members({"detail": _DETAIL}, **_IMAGE),
    "input_file": _INPUT_FILE,
}
_PLACE = {"start_index": INTEGER, "end_index": INTEGER}
_ANNOTATION = chosen(
    "type",
    {
        "file_citation": members({"file_id": TEXT, "index": INTEGER, "filename": TEXT}),
        "file_path": members({"file_id": TEXT, "index": INTEGER}),
        "url_citation": members({"url": TEXT, "title": TEXT, **_PLACE}),
        "container_file_citation": members({"container_id": TEXT, "file_id": TEXT, "filename": TEXT, **_PLACE}),
    },
)
_TOKEN = {"token": TEXT, "logprob": NUMBER, "bytes": entries(INTEGER)}
_SAID = {
    "output_text": members(
        {"text": TEXT},
        annotations=entries(_ANNOTATION),
        logprobs=entries(members({**_TOKEN, "top_logprobs": entries(members(_TOKEN))})),
    ),
    "refusal": members({"refusal": TEXT}),
}
_WORDS = members({"text": TEXT})
_PARTS = chosen(
    "type",
    {
        **CONTENT,
        **_SAID,
        "input_image": members(detail=maybe(_DETAIL), **_IMAGE),
        "computer_screenshot": members(
            {"detail": _DETAIL, "file_id": _NAME, "image_url": _NAME}, prompt_cache_breakpoint=BREAKPOINT
        ),
        **dict.fromkeys(("text", "summary_text", "reasoning_text"), _WORDS),
    },
)
_MARK = maybe(BREAKPOINT)
_RESULT_PART = either(
    members({"type": text("input_text"), "text": TEXT}, prompt_cache_breakpoint=_MARK),
    members(
        {"type": text("input_image")},
        detail=maybe(_DETAIL),
        file_id=_NAME,
        image_url=_NAME,
        prompt_cache_breakpoint=_MARK,
    ),
    members(
        {"type": text("input_file")},
        detail=_FILE_DETAIL,
        **dict.fromkeys(("file_data", "file_id", "file_url", "filename"), _NAME),
        prompt_cache_breakpoint=_MARK,
    ),
)

_KEYS = maybe(entries(TEXT))
_SPOT = {"x": INTEGER, "y": INTEGER}
_ACTION = chosen(
    "type",
    {
        "click": members({"button": text("left", "right", "wheel", "back", "forward"), **_SPOT}, keys=_KEYS),
        "double_click": members({**_SPOT, "keys": _KEYS}),
        "drag": members({"path": entries(members(_SPOT))}, keys=_KEYS),
        "keypress": members({"keys": entries(TEXT)}),
        "move": members(_SPOT, keys=_KEYS),
        "screenshot": members(),
        "scroll": members({**_SPOT, "scroll_x": INTEGER, "scroll_y": INTEGER}, keys=_KEYS),
        "type": members({"text": TEXT}),
        "wait": members(),
    },
)
_CHECKS = entries(members({"id": TEXT}, code=_NAME, message=_NAME))
_OPERATION = chosen(
    "type",
    {
        "create_file": members({"path": TEXT, "diff": TEXT}),
        "update_file": members({"path": TEXT, "diff": TEXT}),
        "delete_file": members({"path": TEXT}),
    },
)
_EXEC = members(
    {"type": text("exec"), "command": entries(TEXT), "env": mapped(TEXT)},
    timeout_ms=maybe(INTEGER),
    user=_NAME,
    working_directory=_NAME,
)
_SHELL_ACTION = members({"commands": entries(TEXT)}, max_output_length=maybe(INTEGER), timeout_ms=maybe(INTEGER))
_ENVIRONMENT = chosen(
    "type",
    {
        "local": members(skills=entries(members({"name": TEXT, "description": TEXT, "path": TEXT}))),
        "container_reference": members({"container_id": TEXT}),
    },
)
_CHUNK = members(
    {
        "stdout": TEXT,
        "stderr": TEXT,
        "outcome": chosen("type", {"exit": members({"exit_code": INTEGER}), "timeout": members()}),
    }
)
_SEARCH = either(
    members(
        {"type": text("search")},
        query=TEXT,
        queries=entries(TEXT),
        sources=entries(members({"type": text("url"), "url": TEXT})),
    ),
    members({"type": text("open_page")}, url=_NAME),
    members({"type": text("find_in_page"), "url": TEXT, "pattern": TEXT}),
)
_FOUND = members(
    attributes=maybe(mapped(either(TEXT, NUMBER, BOOLEAN))), file_id=TEXT, filename=TEXT, score=NUMBER, text=TEXT
)
_MEMORY = members(
    {
        "memory_id": TEXT,
        "updated_at": INTEGER,
        "scope": TEXT,
        "content": TEXT,
        "kind": text("user_profile", "chat_summary"),
    }
)
_MCP_ERROR = chosen(
    "type",
    {
        "http_error": members({"code": INTEGER, "message": TEXT}),
        "protocol_error": members({"code": INTEGER, "message": TEXT}),
        "tool_execution_error": members({"message": TEXT}),
    },
)
_MCP_TOOL = members({"name": TEXT, "input_schema": mapped(ANY)}, annotations=maybe(mapped(ANY)), description=_NAME)
_EXECUTION = text("server", "client")
_PHASE = maybe(text("commentary", "final_answer"))
_ROLE = text("unknown", "user", "assistant", "system", "critic", "discriminator", "developer", "tool")

ITEMS: Mapping[str, Form] = {
    "message": members({"role": _ROLE, "content": either(TEXT, entries(_PARTS))}, phase=_PHASE),
    "output_message": members(
        {"id": TEXT, "role": text("assistant"), "content": entries(chosen("type", _SAID)), "status": _STATUS},
        phase=_PHASE,
    ),
    "item_reference": members({"id": TEXT}),
    "additional_tools": members({"role": text("developer"), "tools": entries(TOOL)}, id=_NAME),
    "compaction": members({"encrypted_content": TEXT}, id=_NAME),
    "reasoning": members(
        {"id": TEXT, "summary": entries(members({"type": text("summary_text"), "text": TEXT}))},
        content=entries(members({"type": text("reasoning_text"), "text": TEXT})),
        encrypted_content=_NAME,
        status=_STATUS,
    ),
    "function_call": members(
        {"call_id": TEXT, "name": TEXT, "arguments": TEXT}, caller=_CALLER, namespace=TEXT, status=_STATUS
    ),
    "function_call_output": members(
        {"output": either(TEXT, entries(_RESULT_PART))},
        call_id=_NAME,
        caller=_CALLER,
        id=_NAME,
        name=_NAME,
        namespace=_NAME,
        status=maybe(_STATUS),
    ),
    "custom_tool_call": members(
        {"call_id": TEXT, "name": TEXT, "input": TEXT}, caller=_CALLER, id=TEXT, namespace=TEXT
    ),
    "custom_tool_call_output": members(
        {"call_id": TEXT, "output": either(TEXT, entries(chosen("type", CONTENT)))}, caller=_CALLER, id=TEXT
    ),
    "computer_call": members(
        {"id": TEXT, "call_id": TEXT, "pending_safety_checks": _CHECKS, "status": _STATUS},
        action=_ACTION,
        actions=entries(_ACTION),
    ),
    "computer_call_output": members(
        {"call_id": TEXT, "output": members({"type": text("computer_screenshot")}, file_id=TEXT, image_url=TEXT)},
        acknowledged_safety_checks=maybe(_CHECKS),
        id=_NAME,
        status=maybe(_STATUS),
    ),
    "shell_call": members(
        {"call_id": TEXT, "action": _SHELL_ACTION},
        caller=_CALLER,
        environment=maybe(_ENVIRONMENT),
        id=_NAME,
        status=maybe(_STATUS),
    ),
    "shell_call_output": members(
        {"call_id": TEXT, "output": entries(_CHUNK)},
        caller=_CALLER,
        id=_NAME,
        max_output_length=maybe(INTEGER),
        status=maybe(_STATUS),
    ),
    "local_shell_call": members({"id": TEXT, "call_id": TEXT, "action": _EXEC, "status": _STATUS}),
    "local_shell_call_output": members({"id": TEXT, "output": TEXT}, status=maybe(_STATUS)),
    "apply_patch_call": members(
        {"call_id": TEXT, "status": text("in_progress", "completed"), "operation": _OPERATION},
        caller=_CALLER,
        id=_NAME,
    ),
    "apply_patch_call_output": members(
        {"call_id": TEXT, "status": text("completed", "failed")}, caller=_CALLER, id=_NAME, output=_NAME
    ),
    "tool_search_call": members(
        {"arguments": mapped(ANY)}, call_id=_NAME, execution=_EXECUTION, id=_NAME, status=maybe(_STATUS)
    ),
    "tool_search_output": members(
        {"tools": entries(TOOL)}, call_id=_NAME, execution=_EXECUTION, id=_NAME, status=maybe(_STATUS)
    ),
    "program": members({"id": TEXT, "call_id": TEXT, "code": TEXT, "fingerprint": TEXT}),
    "program_output": members({"id": TEXT, "call_id": TEXT, "result": TEXT, "status": text("completed", "incomplete")}),
    "web_search_call": members({"id": TEXT, "action": _SEARCH, "status": text(*_STATUS.values, "searching", "failed")}),
    "file_search_call": members(
        {"id": TEXT, "queries": entries(TEXT), "status": text(*_STATUS.values, "searching", "failed")},
        results=maybe(entries(_FOUND)),
    ),
    "code_interpreter_call": members(
        {
            "id": TEXT,
            "container_id": TEXT,
            "code": _NAME,
            "outputs": maybe(
                entries(
                    either(members({"type": text("logs"), "logs": TEXT}), members({"type": text("image"), "url": TEXT}))
                )
            ),
            "status": text(*_STATUS.values, "interpreting", "failed"),
        }
    ),
    "image_generation_call": members(
        {"id": TEXT, "result": _NAME, "status": text("in_progress", "completed", "generating", "failed")}
    ),
    "mcp_call": members(
        {"id": TEXT, "server_label": TEXT, "name": TEXT, "arguments": TEXT},
        approval_request_id=_NAME,
        error=mapped(ANY),
        output=_NAME,
        status=text(*_STATUS.values, "calling", "failed"),
    ),
    "mcp_list_tools": members({"id": TEXT, "server_label": TEXT, "tools": entries(_MCP_TOOL)}, error=_MCP_ERROR),
    "mcp_approval_request": members({"id": TEXT, "server_label": TEXT, "name": TEXT, "arguments": TEXT}),
    "mcp_approval_response": members({"approval_request_id": TEXT, "approve": BOOLEAN}, id=_NAME, reason=_NAME),
    "memory_search_call": members(results=maybe(entries(members({"memory_item": _MEMORY})))),
}
