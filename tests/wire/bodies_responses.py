"""Valid Responses bodies, as clients send them and as the vendor's types define them."""

from __future__ import annotations

from functools import partial
from typing import Any

from tests.bodies import Body, responses
from tests.bodies.responses import assistant, result, user

SCHEMA = {"type": "object", "properties": {"q": {"type": "string"}}}


def function(name: str = "read", **more: Any) -> Body:
    return {"type": "function", "name": name, "description": "reads", "parameters": SCHEMA, "strict": False, **more}


body = partial(responses.body, model="gpt-5.6-terra")
call = partial(responses.call, name="read", arguments='{"q": "a"}')

# A client that declares its tools in an item, keeps nothing at the provider and sends every id back.
AGENT = {
    "model": "gpt-5.6-terra",
    "input": [
        {
            "type": "additional_tools",
            "id": "at_1",
            "role": "developer",
            "tools": [
                {
                    "type": "namespace",
                    "name": "functions",
                    "description": "",
                    "tools": [
                        {"type": "custom", "name": "exec", "format": {"type": "text"}},
                        {"type": "function", "name": "update_plan", "parameters": SCHEMA, "strict": False},
                    ],
                },
                {
                    "type": "namespace",
                    "name": "crm",
                    "description": "customers",
                    "tools": [{"type": "function", "name": "find", "parameters": SCHEMA, "defer_loading": True}],
                },
            ],
        },
        {
            "type": "message",
            "id": "msg_u1",
            "role": "developer",
            "content": [{"type": "input_text", "text": "Be brief."}, {"type": "input_text", "text": "Be kind."}],
        },
        {"type": "message", "id": "msg_u2", "role": "user", "content": [{"type": "input_text", "text": "look"}]},
        {"type": "reasoning", "id": "rs_1", "summary": [], "content": None, "encrypted_content": "gAAAAB"},
        {
            "type": "message",
            "id": "msg_1",
            "role": "assistant",
            "status": "completed",
            "content": [
                {"type": "output_text", "text": "I look.", "annotations": [], "logprobs": []},
                {
                    "type": "output_text",
                    "text": "Here.",
                    "annotations": [
                        {"type": "url_citation", "start_index": 0, "end_index": 1, "title": "t", "url": "https://x"}
                    ],
                },
            ],
            "phase": "commentary",
        },
        {"type": "custom_tool_call", "id": "ctc_1", "call_id": "call_1", "name": "exec", "input": "await ls()"},
        {
            "type": "function_call",
            "id": "fc_1",
            "call_id": "call_2",
            "name": "find",
            "namespace": "crm",
            "arguments": '{"q":  "x"}',
            "status": "completed",
        },
        {"type": "custom_tool_call_output", "id": "ctco_1", "call_id": "call_1", "output": "a\nb"},
        {
            "type": "function_call_output",
            "id": "fco_1",
            "call_id": "call_2",
            "output": [
                {"type": "input_text", "text": "found", "prompt_cache_breakpoint": {"mode": "explicit"}},
                {"type": "input_image", "detail": "low", "image_url": "https://x/y.png"},
                {"type": "input_file", "filename": "a.pdf", "file_data": "data:application/pdf;base64,JVBE"},
            ],
        },
        {
            "type": "reasoning",
            "id": "rs_2",
            "summary": [{"type": "summary_text", "text": "So."}],
            "encrypted_content": "g",
        },
        assistant("Done.", id="msg_2", phase="final_answer"),
        user("and now?"),
    ],
    "store": False,
    "include": ["reasoning.encrypted_content"],
    "reasoning": {"effort": "medium", "summary": "auto", "context": "all_turns"},
    "text": {"verbosity": "low", "format": {"type": "text"}},
    "prompt_cache_key": "k",
    "parallel_tool_calls": True,
    "tool_choice": "auto",
    "stream": True,
    "an_unknown_field": {"x": [1, 1.0, None]},
}

# Every type of call and output that the API knows, each pair as the provider's own types have it.
EVERY_ITEM = {
    "model": "gpt-5.6-terra",
    "instructions": "Harbour desk.",
    "input": [
        user([{"type": "input_text", "text": "ships?"}, {"type": "input_file", "file_id": "file-1"}]),
        {
            "id": "ci_1",
            "type": "code_interpreter_call",
            "status": "completed",
            "container_id": "cntr_1",
            "code": "print(15.5)",
            "outputs": [{"type": "logs", "logs": "15.5\n"}, {"type": "image", "url": "https://x/plot.png"}],
        },
        {
            "id": "fs_1",
            "type": "file_search_call",
            "status": "completed",
            "queries": ["berths"],
            "results": [{"file_id": "file-aa", "filename": "rules.pdf", "score": 0.83, "text": "Reefers first."}],
        },
        {"id": "fs_2", "type": "file_search_call", "status": "completed", "queries": ["fees"]},
        {
            "id": "ws_1",
            "type": "web_search_call",
            "status": "completed",
            "action": {
                "type": "search",
                "query": "strike",
                "sources": [{"type": "url", "url": "https://news.example/p"}],
            },
        },
        {
            "id": "ws_2",
            "type": "web_search_call",
            "status": "completed",
            "action": {"type": "find_in_page", "url": "https://news.example/p", "pattern": "resume"},
        },
        {"id": "ig_1", "type": "image_generation_call", "status": "completed", "result": "iVBORw0K"},
        {
            "id": "ig_2",
            "type": "image_generation_call",
            "status": "failed",
            "result": None,
            "error": {"code": "moderation_blocked", "message": "Withheld.", "param": None, "type": "x"},
        },
        {
            "id": "mcpl_1",
            "type": "mcp_list_tools",
            "server_label": "tides",
            "tools": [{"name": "next_high_water", "input_schema": {"type": "object"}}],
        },
        {
            "id": "mcpr_1",
            "type": "mcp_approval_request",
            "server_label": "customs",
            "name": "file_manifest",
            "arguments": '{"m":"M-204"}',
        },
        {"type": "mcp_approval_response", "approval_request_id": "mcpr_1", "approve": True},
        {
            "id": "mcp_1",
            "type": "mcp_call",
            "status": "completed",
            "server_label": "tides",
            "name": "next_high_water",
            "arguments": '{"harbour":"Brest"}',
            "output": '{"metres":6.9}',
            "error": None,
            "approval_request_id": None,
        },
        {
            "id": "mcp_2",
            "type": "mcp_call",
            "status": "failed",
            "server_label": "tides",
            "name": "next_high_water",
            "arguments": '{"harbour":"Atlantis"}',
            "output": None,
            "error": {"type": "mcp_protocol_error", "code": -32602, "message": "no such harbour"},
        },
        {
            "id": "cu_1",
            "type": "computer_call",
            "call_id": "call_Cu1",
            "status": "completed",
            "pending_safety_checks": [{"id": "cusc_5", "code": "malicious_instructions", "message": "!"}],
            "action": {"type": "click", "button": "left", "x": 412, "y": 96},
        },
        {
            "type": "computer_call_output",
            "call_id": "call_Cu1",
            "output": {"type": "computer_screenshot", "image_url": "data:image/png;base64,iVBORw0KGgo="},
            "acknowledged_safety_checks": [{"id": "cusc_5"}],
        },
        {
            "id": "lsh_5",
            "type": "local_shell_call",
            "call_id": "call_Ls1",
            "status": "completed",
            "action": {"type": "exec", "command": ["ls", "-1"], "env": {"LANG": "C"}},
        },
        {"id": "call_Ls1", "type": "local_shell_call_output", "output": '{"stdout":"logs\\n"}', "status": "completed"},
        {
            "id": "sh_12",
            "type": "shell_call",
            "call_id": "call_Sh1",
            "status": "completed",
            "action": {"commands": ["uname -a", "df"], "timeout_ms": 20000},
            "environment": {"type": "local"},
        },
        {
            "type": "apply_patch_call",
            "call_id": "call_Ap2",
            "status": "completed",
            "operation": {"type": "delete_file", "path": "quay/old.py"},
            "caller": {"type": "direct"},
        },
        {
            "type": "shell_call_output",
            "call_id": "call_Sh1",
            "output": [
                {"stdout": "Linux\n", "stderr": "", "outcome": {"type": "exit", "exit_code": 0}},
                {"stdout": "", "stderr": "no such file\n", "outcome": {"type": "exit", "exit_code": 1}},
            ],
        },
        {"type": "apply_patch_call_output", "call_id": "call_Ap2", "status": "failed", "output": "no such file"},
        {
            "id": "sh_13",
            "type": "shell_call",
            "call_id": "call_Sh2",
            "action": {"commands": ["make"]},
            "environment": {"type": "container_reference", "container_id": "cntr_77"},
        },
        {
            "type": "shell_call_output",
            "call_id": "call_Sh2",
            "output": [{"stdout": "collecting", "stderr": "", "outcome": {"type": "timeout"}}],
        },
        {
            "id": "tsc_2",
            "type": "tool_search_call",
            "call_id": None,
            "execution": "server",
            "arguments": {"paths": ["h"]},
        },
        {"id": "tso_2", "type": "tool_search_output", "call_id": None, "execution": "server", "tools": []},
        {
            "id": "tsc_1",
            "type": "tool_search_call",
            "call_id": "call_Ts1",
            "execution": "client",
            "arguments": {"goal": "m"},
        },
        {
            "type": "tool_search_output",
            "call_id": "call_Ts1",
            "execution": "client",
            "tools": [
                {"type": "function", "name": "moor", "strict": True, "parameters": SCHEMA, "defer_loading": True}
            ],
        },
        {"id": "prg_1", "type": "program", "call_id": "call_P1", "code": "return 1", "fingerprint": "fp_5d0c"},
        call(
            "call_Qm4",
            name="book_berth",
            arguments="{}",
            namespace="harbour",
            caller={"type": "program", "caller_id": "call_P1"},
        ),
        result("call_Qm4", "berth N-15", caller={"type": "program", "caller_id": "call_P1"}),
        {"id": "pro_1", "type": "program_output", "call_id": "call_P1", "result": '"N-15"', "status": "completed"},
        {"type": "custom_tool_call", "call_id": "call_Ct2", "name": "run_sql", "input": "", "async": True},
        {"type": "custom_tool_call_output", "call_id": "call_Ct2", "output": [{"type": "input_text", "text": "none"}]},
        {"type": "compaction", "id": "cmp_1", "encrypted_content": "gAAAC"},
        {"type": "function_call_output", "name": "book_berth", "namespace": "harbour", "output": "N-14 is free now"},
        {"type": "configuration_update", "reasoning": {"effort": "low"}},
        {"type": "from_the_future", "payload": {"deep": [1]}},
        {"type": "compaction_trigger"},
    ],
    "tools": [
        {"type": "web_search"},
        {"type": "mcp", "server_label": "tides", "server_url": "https://t"},
        {"type": "shell"},
        {
            "type": "namespace",
            "name": "harbour",
            "description": "d",
            "tools": [{"type": "function", "name": "book_berth", "parameters": SCHEMA}],
        },
        {
            "type": "custom",
            "name": "run_sql",
            "format": {"type": "grammar", "syntax": "lark", "definition": "start: /.+/"},
        },
    ],
    "tool_choice": {
        "type": "allowed_tools",
        "mode": "required",
        "tools": [{"type": "custom", "name": "run_sql"}, {"type": "mcp", "server_label": "tides"}],
    },
    "metadata": {"k": "v"},
    "safety_identifier": "u1",
    "max_output_tokens": 900,
    "truncation": "auto",
}

# Calls and outputs that other items stand between, in an order of their own (OAI-RESP-06).
APART = {
    "model": "gpt-4.1",
    "temperature": 0.0,
    "top_p": 1,
    "user": "u",
    "input": [
        {"role": "system", "content": "a system message in place"},
        user(""),
        user([]),
        {"role": "assistant", "content": "an easy message"},
        {"role": "assistant", "content": "another one", "phase": None},
        assistant(""),
        assistant("", id="msg_2", content=[]),
        {
            "type": "message",
            "id": "msg_3",
            "role": "assistant",
            "status": "completed",
            "content": [{"type": "refusal", "refusal": "No."}],
        },
        call("call_a", arguments="", id="fc_a"),
        user("meanwhile"),
        call("call_b", arguments="not json", id=None),
        result("call_b", ""),
        assistant("between", id="msg_4"),
        result("call_a", []),
        user(
            [
                {"type": "input_audio", "input_audio": {"data": "UklG", "format": "wav"}},
                {"type": "input_text", "text": "?"},
            ]
        ),
    ],
    "tools": [],
    "text": {"format": {"type": "json_schema", "name": "n", "schema": SCHEMA, "strict": True, "description": "d"}},
}

CHAINED = {
    "model": "gpt-5",
    "previous_response_id": "resp_1",
    "input": [result("call_9", "late"), {"type": "custom_tool_call_output", "call_id": "call_8", "output": "x"}],
    "tools": [function()],
    "tool_choice": {"type": "function", "name": "read"},
}

REFERRED = {
    "model": "gpt-5",
    "conversation": {"id": "conv_1"},
    "input": [
        {"id": "msg_9"},
        {"type": "item_reference", "id": "rs_9"},
        {"type": "item_reference", "id": "fc_9"},
        result("call_9"),
        {"type": "reasoning", "id": "rs_1", "summary": []},
        call("call_1", id="fc_1"),
        result("call_1"),
    ],
    "tool_choice": {"type": "web_search_preview"},
}

JUST_TEXT = {"input": "hello", "model": "gpt-4o", "instructions": None, "stream": False}

BODIES: dict[str, Body] = {
    "agent": AGENT,
    "every item": EVERY_ITEM,
    "apart": APART,
    "chained": CHAINED,
    "referred": REFERRED,
    "just words": JUST_TEXT,
}
