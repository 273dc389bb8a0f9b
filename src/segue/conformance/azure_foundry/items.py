"""Specs of the items that Foundry accepts in `input`: a closed list of types (AZF-03, AZF-08)."""

from __future__ import annotations

from collections.abc import Mapping

from segue.conformance.azure_foundry.tools import TOOL
from segue.specs.types import (
    ANY,
    BOOLEAN,
    INTEGER,
    NUMBER,
    STRING,
    Spec,
    any_of,
    enum_of,
    list_of,
    map_of,
    nullable,
    object_of,
    tagged,
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

_NULLABLE_STRING = nullable(STRING)
_STATUS = enum_of("in_progress", "completed", "incomplete")
_CALLER = nullable(tagged("type", {"direct": object_of(), "program": object_of({"caller_id": STRING})}))
BREAKPOINT = object_of({"mode": enum_of("explicit")})
_DETAIL = enum_of("low", "high", "auto", "original")
_FILE_DETAIL = enum_of("auto", "low", "high")

# Parts of messages and of the outputs of custom tools; outputs of function tools allow null in more places.
_INPUT_TEXT = object_of({"text": STRING}, prompt_cache_breakpoint=BREAKPOINT)
_INPUT_FILE = object_of(
    detail=_FILE_DETAIL,
    file_data=STRING,
    file_id=_NULLABLE_STRING,
    file_url=STRING,
    filename=STRING,
    prompt_cache_breakpoint=BREAKPOINT,
)
_IMAGE = {"file_id": _NULLABLE_STRING, "image_url": _NULLABLE_STRING, "prompt_cache_breakpoint": BREAKPOINT}
CONTENT = {
    "input_text": _INPUT_TEXT,
    "input_image": object_of({"detail": _DETAIL}, **_IMAGE),
    "input_file": _INPUT_FILE,
}
_TEXT_RANGE = {"start_index": INTEGER, "end_index": INTEGER}
_ANNOTATION = tagged(
    "type",
    {
        "file_citation": object_of({"file_id": STRING, "index": INTEGER, "filename": STRING}),
        "file_path": object_of({"file_id": STRING, "index": INTEGER}),
        "url_citation": object_of({"url": STRING, "title": STRING, **_TEXT_RANGE}),
        "container_file_citation": object_of(
            {"container_id": STRING, "file_id": STRING, "filename": STRING, **_TEXT_RANGE}
        ),
    },
)
_TOKEN = {"token": STRING, "logprob": NUMBER, "bytes": list_of(INTEGER)}
_OUTPUT_PARTS = {
    "output_text": object_of(
        {"text": STRING},
        annotations=list_of(_ANNOTATION),
        logprobs=list_of(object_of({**_TOKEN, "top_logprobs": list_of(object_of(_TOKEN))})),
    ),
    "refusal": object_of({"refusal": STRING}),
}
_TEXT_PART = object_of({"text": STRING})
_PARTS = tagged(
    "type",
    {
        **CONTENT,
        **_OUTPUT_PARTS,
        "input_image": object_of(detail=nullable(_DETAIL), **_IMAGE),
        "computer_screenshot": object_of(
            {"detail": _DETAIL, "file_id": _NULLABLE_STRING, "image_url": _NULLABLE_STRING},
            prompt_cache_breakpoint=BREAKPOINT,
        ),
        **dict.fromkeys(("text", "summary_text", "reasoning_text"), _TEXT_PART),
    },
)
_NULLABLE_BREAKPOINT = nullable(BREAKPOINT)
_RESULT_PART = any_of(
    object_of({"type": enum_of("input_text"), "text": STRING}, prompt_cache_breakpoint=_NULLABLE_BREAKPOINT),
    object_of(
        {"type": enum_of("input_image")},
        detail=nullable(_DETAIL),
        file_id=_NULLABLE_STRING,
        image_url=_NULLABLE_STRING,
        prompt_cache_breakpoint=_NULLABLE_BREAKPOINT,
    ),
    object_of(
        {"type": enum_of("input_file")},
        detail=_FILE_DETAIL,
        **dict.fromkeys(("file_data", "file_id", "file_url", "filename"), _NULLABLE_STRING),
        prompt_cache_breakpoint=_NULLABLE_BREAKPOINT,
    ),
)

_KEYS = nullable(list_of(STRING))
_POINT = {"x": INTEGER, "y": INTEGER}
_ACTION = tagged(
    "type",
    {
        "click": object_of({"button": enum_of("left", "right", "wheel", "back", "forward"), **_POINT}, keys=_KEYS),
        "double_click": object_of({**_POINT, "keys": _KEYS}),
        "drag": object_of({"path": list_of(object_of(_POINT))}, keys=_KEYS),
        "keypress": object_of({"keys": list_of(STRING)}),
        "move": object_of(_POINT, keys=_KEYS),
        "screenshot": object_of(),
        "scroll": object_of({**_POINT, "scroll_x": INTEGER, "scroll_y": INTEGER}, keys=_KEYS),
        "type": object_of({"text": STRING}),
        "wait": object_of(),
    },
)
_CHECKS = list_of(object_of({"id": STRING}, code=_NULLABLE_STRING, message=_NULLABLE_STRING))
_OPERATION = tagged(
    "type",
    {
        "create_file": object_of({"path": STRING, "diff": STRING}),
        "update_file": object_of({"path": STRING, "diff": STRING}),
        "delete_file": object_of({"path": STRING}),
    },
)
_EXEC = object_of(
    {"type": enum_of("exec"), "command": list_of(STRING), "env": map_of(STRING)},
    timeout_ms=nullable(INTEGER),
    user=_NULLABLE_STRING,
    working_directory=_NULLABLE_STRING,
)
_SHELL_ACTION = object_of(
    {"commands": list_of(STRING)}, max_output_length=nullable(INTEGER), timeout_ms=nullable(INTEGER)
)
_ENVIRONMENT = tagged(
    "type",
    {
        "local": object_of(skills=list_of(object_of({"name": STRING, "description": STRING, "path": STRING}))),
        "container_reference": object_of({"container_id": STRING}),
    },
)
_CHUNK = object_of(
    {
        "stdout": STRING,
        "stderr": STRING,
        "outcome": tagged("type", {"exit": object_of({"exit_code": INTEGER}), "timeout": object_of()}),
    }
)
_SEARCH = any_of(
    object_of(
        {"type": enum_of("search")},
        query=STRING,
        queries=list_of(STRING),
        sources=list_of(object_of({"type": enum_of("url"), "url": STRING})),
    ),
    object_of({"type": enum_of("open_page")}, url=_NULLABLE_STRING),
    object_of({"type": enum_of("find_in_page"), "url": STRING, "pattern": STRING}),
)
_FILE_RESULT = object_of(
    attributes=nullable(map_of(any_of(STRING, NUMBER, BOOLEAN))),
    file_id=STRING,
    filename=STRING,
    score=NUMBER,
    text=STRING,
)
_MEMORY = object_of(
    {
        "memory_id": STRING,
        "updated_at": INTEGER,
        "scope": STRING,
        "content": STRING,
        "kind": enum_of("user_profile", "chat_summary"),
    }
)
_MCP_ERROR = tagged(
    "type",
    {
        "http_error": object_of({"code": INTEGER, "message": STRING}),
        "protocol_error": object_of({"code": INTEGER, "message": STRING}),
        "tool_execution_error": object_of({"message": STRING}),
    },
)
_MCP_TOOL = object_of(
    {"name": STRING, "input_schema": map_of(ANY)}, annotations=nullable(map_of(ANY)), description=_NULLABLE_STRING
)
_EXECUTION = enum_of("server", "client")
_PHASE = nullable(enum_of("commentary", "final_answer"))
_ROLE = enum_of("unknown", "user", "assistant", "system", "critic", "discriminator", "developer", "tool")

ITEMS: Mapping[str, Spec] = {
    "message": object_of({"role": _ROLE, "content": any_of(STRING, list_of(_PARTS))}, phase=_PHASE),
    "output_message": object_of(
        {
            "id": STRING,
            "role": enum_of("assistant"),
            "content": list_of(tagged("type", _OUTPUT_PARTS)),
            "status": _STATUS,
        },
        phase=_PHASE,
    ),
    "item_reference": object_of({"id": STRING}),
    "additional_tools": object_of({"role": enum_of("developer"), "tools": list_of(TOOL)}, id=_NULLABLE_STRING),
    "compaction": object_of({"encrypted_content": STRING}, id=_NULLABLE_STRING),
    "reasoning": object_of(
        {"id": STRING, "summary": list_of(object_of({"type": enum_of("summary_text"), "text": STRING}))},
        content=list_of(object_of({"type": enum_of("reasoning_text"), "text": STRING})),
        encrypted_content=_NULLABLE_STRING,
        status=_STATUS,
    ),
    "function_call": object_of(
        {"call_id": STRING, "name": STRING, "arguments": STRING}, caller=_CALLER, namespace=STRING, status=_STATUS
    ),
    "function_call_output": object_of(
        {"output": any_of(STRING, list_of(_RESULT_PART))},
        call_id=_NULLABLE_STRING,
        caller=_CALLER,
        id=_NULLABLE_STRING,
        name=_NULLABLE_STRING,
        namespace=_NULLABLE_STRING,
        status=nullable(_STATUS),
    ),
    "custom_tool_call": object_of(
        {"call_id": STRING, "name": STRING, "input": STRING}, caller=_CALLER, id=STRING, namespace=STRING
    ),
    "custom_tool_call_output": object_of(
        {"call_id": STRING, "output": any_of(STRING, list_of(tagged("type", CONTENT)))}, caller=_CALLER, id=STRING
    ),
    "computer_call": object_of(
        {"id": STRING, "call_id": STRING, "pending_safety_checks": _CHECKS, "status": _STATUS},
        action=_ACTION,
        actions=list_of(_ACTION),
    ),
    "computer_call_output": object_of(
        {
            "call_id": STRING,
            "output": object_of({"type": enum_of("computer_screenshot")}, file_id=STRING, image_url=STRING),
        },
        acknowledged_safety_checks=nullable(_CHECKS),
        id=_NULLABLE_STRING,
        status=nullable(_STATUS),
    ),
    "shell_call": object_of(
        {"call_id": STRING, "action": _SHELL_ACTION},
        caller=_CALLER,
        environment=nullable(_ENVIRONMENT),
        id=_NULLABLE_STRING,
        status=nullable(_STATUS),
    ),
    "shell_call_output": object_of(
        {"call_id": STRING, "output": list_of(_CHUNK)},
        caller=_CALLER,
        id=_NULLABLE_STRING,
        max_output_length=nullable(INTEGER),
        status=nullable(_STATUS),
    ),
    "local_shell_call": object_of({"id": STRING, "call_id": STRING, "action": _EXEC, "status": _STATUS}),
    "local_shell_call_output": object_of({"id": STRING, "output": STRING}, status=nullable(_STATUS)),
    "apply_patch_call": object_of(
        {"call_id": STRING, "status": enum_of("in_progress", "completed"), "operation": _OPERATION},
        caller=_CALLER,
        id=_NULLABLE_STRING,
    ),
    "apply_patch_call_output": object_of(
        {"call_id": STRING, "status": enum_of("completed", "failed")},
        caller=_CALLER,
        id=_NULLABLE_STRING,
        output=_NULLABLE_STRING,
    ),
    "tool_search_call": object_of(
        {"arguments": map_of(ANY)},
        call_id=_NULLABLE_STRING,
        execution=_EXECUTION,
        id=_NULLABLE_STRING,
        status=nullable(_STATUS),
    ),
    "tool_search_output": object_of(
        {"tools": list_of(TOOL)},
        call_id=_NULLABLE_STRING,
        execution=_EXECUTION,
        id=_NULLABLE_STRING,
        status=nullable(_STATUS),
    ),
    "program": object_of({"id": STRING, "call_id": STRING, "code": STRING, "fingerprint": STRING}),
    "program_output": object_of(
        {"id": STRING, "call_id": STRING, "result": STRING, "status": enum_of("completed", "incomplete")}
    ),
    "web_search_call": object_of(
        {"id": STRING, "action": _SEARCH, "status": enum_of(*_STATUS.values, "searching", "failed")}
    ),
    "file_search_call": object_of(
        {"id": STRING, "queries": list_of(STRING), "status": enum_of(*_STATUS.values, "searching", "failed")},
        results=nullable(list_of(_FILE_RESULT)),
    ),
    "code_interpreter_call": object_of(
        {
            "id": STRING,
            "container_id": STRING,
            "code": _NULLABLE_STRING,
            "outputs": nullable(
                list_of(
                    any_of(
                        object_of({"type": enum_of("logs"), "logs": STRING}),
                        object_of({"type": enum_of("image"), "url": STRING}),
                    )
                )
            ),
            "status": enum_of(*_STATUS.values, "interpreting", "failed"),
        }
    ),
    "image_generation_call": object_of(
        {
            "id": STRING,
            "result": _NULLABLE_STRING,
            "status": enum_of("in_progress", "completed", "generating", "failed"),
        }
    ),
    "mcp_call": object_of(
        {"id": STRING, "server_label": STRING, "name": STRING, "arguments": STRING},
        approval_request_id=_NULLABLE_STRING,
        error=map_of(ANY),
        output=_NULLABLE_STRING,
        status=enum_of(*_STATUS.values, "calling", "failed"),
    ),
    "mcp_list_tools": object_of({"id": STRING, "server_label": STRING, "tools": list_of(_MCP_TOOL)}, error=_MCP_ERROR),
    "mcp_approval_request": object_of({"id": STRING, "server_label": STRING, "name": STRING, "arguments": STRING}),
    "mcp_approval_response": object_of(
        {"approval_request_id": STRING, "approve": BOOLEAN}, id=_NULLABLE_STRING, reason=_NULLABLE_STRING
    ),
    "memory_search_call": object_of(results=nullable(list_of(object_of({"memory_item": _MEMORY})))),
}
