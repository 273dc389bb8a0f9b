"""Hosted tool interactions of every type that a request can hold, with the text that must survive conversion."""

from __future__ import annotations

from typing import Any, NamedTuple

from tests.bodies import Body, anthropic, chat, gemini, responses
from tests.conversations.build import PDF, PNG

_GO_ON, _AND_NOW = chat.user("Go on."), chat.user("And now?")


class HostedCase(NamedTuple):
    """`expected_texts` are in every target's body, `opaque_texts` in none cross-API; `picture`: has an image."""

    name: str
    source: str
    body: Body
    expected_texts: tuple[str, ...]
    tool: str | None = None
    opaque_texts: tuple[str, ...] = ()
    picture: bool = False
    error: bool = False


# ----------------------------------------------------------------------------------------------------------- Anthropic


def claude(*blocks: Body, after: tuple[Body, ...] = (), **more: Any) -> Body:
    return anthropic.body(_GO_ON, anthropic.assistant(*blocks), *after, _AND_NOW, max_tokens=99, **more)


def server_tool_body(tool: str, given: Body, kind: str, content: Any, **more: Any) -> Body:
    return claude(
        {"type": "server_tool_use", "id": "srvtoolu_1", "name": tool, "input": given},
        {"type": f"{kind}_tool_result", "tool_use_id": "srvtoolu_1", "content": content},
        {"type": "text", "text": "Found it."},
        **more,
    )


def failed(tool: str, kind: str, code: str, **more: str) -> HostedCase:
    body = server_tool_body(
        tool, {"a": "argument-1"}, kind, {"type": f"{kind}_tool_result_error", "error_code": code, **more}
    )
    return HostedCase(f"{kind} error", "anthropic", body, ("argument-1", code, *more.values()), tool, error=True)


def executed(kind: str, **more: Any) -> Body:
    return {"type": f"{kind}_result", "stdout": "", "stderr": "", "return_code": 0, "content": [], **more}


def mcp(content: Any, **more: Any) -> Body:
    use = {"type": "mcp_tool_use", "id": "mcptoolu_1", "name": "ask", "server_name": "wiki", "input": {"q": "tides"}}
    return claude(use, {"type": "mcp_tool_result", "tool_use_id": "mcptoolu_1", "content": content, **more})


_HIT = {"type": "web_search_result", "encrypted_content": "c2VhbGVk", "page_age": "May 3"}
_TEXT_SOURCE = {"type": "text", "media_type": "text/plain", "data": "Class A: 9,000"}
_PDF_SOURCE = {"type": "base64", "media_type": "application/pdf", "data": PDF}


def fetched(source: Body) -> Body:
    document = {"type": "document", "title": "Fees", "citations": {"enabled": True}, "source": source}
    content = {
        "type": "web_fetch_result",
        "url": "https://a.example",
        "retrieved_at": "2026-03-01",
        "content": document,
    }
    return server_tool_body("web_fetch", {"url": "https://a.example"}, "web_fetch", content)


_EDITOR = "text_editor_code_execution"
_TABS = [
    {"tab_id": "t1", "title": "Rates", "url": "https://rates.example", "active": True},
    {"tab_id": "t2", "title": "Fees", "url": "https://fees.example"},
]
_NAVIGATES = {"type": "tool_use", "id": "toolu_1", "name": "navigate", "toolset_name": "browser", "input": {"url": "u"}}

ANTHROPIC: tuple[HostedCase, ...] = (
    HostedCase(
        "web search",
        "anthropic",
        server_tool_body(
            "web_search",
            {"query": "canal dues"},
            "web_search",
            [
                {**_HIT, "title": "Dues", "url": "https://a.example"},
                {**_HIT, "title": "Tolls", "url": "https://b.example"},
            ],
        ),
        ("canal dues", "Dues", "https://a.example", "Tolls", "https://b.example", "May 3"),
        "web_search",
        ("c2VhbGVk",),
    ),
    failed("web_search", "web_search", "max_uses_exceeded"),
    HostedCase(
        "web fetch", "anthropic", fetched(_TEXT_SOURCE), ("https://a.example", "Fees", "Class A: 9,000"), "web_fetch"
    ),
    HostedCase(
        "web fetch of a file", "anthropic", fetched(_PDF_SOURCE), ("https://a.example", "2026-03-01"), "web_fetch"
    ),
    failed("web_fetch", "web_fetch", "url_not_accessible"),
    HostedCase(
        "code",
        "anthropic",
        server_tool_body(
            "code_execution",
            {"code": "print(42)"},
            "code_execution",
            executed(
                "code_execution",
                stdout="forty-two",
                stderr="a warning",
                return_code=3,
                content=[{"type": "code_execution_output", "file_id": "file_011"}],
            ),
        ),
        ("print(42)", "forty-two", "a warning", "exit code 3", "file_011"),
        "code_execution",
    ),
    HostedCase(
        "code with sealed output",
        "anthropic",
        server_tool_body(
            "code_execution",
            {"code": "print(42)"},
            "code_execution",
            {
                "type": "encrypted_code_execution_result",
                "encrypted_stdout": "c2VhbGVk",
                "stderr": "",
                "return_code": 0,
                "content": [],
            },
        ),
        ("print(42)", "not disclosed"),
        "code_execution",
        ("c2VhbGVk",),
    ),
    failed("code_execution", "code_execution", "execution_time_exceeded"),
    HostedCase(
        "bash in the sandbox",
        "anthropic",
        server_tool_body(
            "bash_code_execution",
            {"command": "wc -l fees.csv"},
            "bash_code_execution",
            executed("bash_code_execution", stdout="311 fees.csv"),
        ),
        ("wc -l fees.csv", "311 fees.csv"),
        "bash_code_execution",
    ),
    failed("bash_code_execution", "bash_code_execution", "output_file_too_large"),
    HostedCase(
        "editor: view",
        "anthropic",
        server_tool_body(
            _EDITOR,
            {"command": "view", "path": "fees.csv"},
            _EDITOR,
            {
                "type": f"{_EDITOR}_view_result",
                "file_type": "text",
                "content": "class,fee",
                "start_line": 7,
                "num_lines": 1,
                "total_lines": 311,
            },
        ),
        ("fees.csv", "class,fee", "start_line: 7", "total_lines: 311"),
        _EDITOR,
    ),
    HostedCase(
        "editor: create",
        "anthropic",
        server_tool_body(
            _EDITOR,
            {"command": "create", "path": "fees.csv"},
            _EDITOR,
            {"type": f"{_EDITOR}_create_result", "is_file_update": True},
        ),
        ("fees.csv", "is_file_update: true"),
        _EDITOR,
    ),
    HostedCase(
        "editor: replace",
        "anthropic",
        server_tool_body(
            _EDITOR,
            {"command": "str_replace", "path": "fees.csv"},
            _EDITOR,
            {
                "type": f"{_EDITOR}_str_replace_result",
                "old_start": 4,
                "old_lines": 1,
                "new_start": 4,
                "new_lines": 1,
                "lines": ["-A,9000", "+A,9100"],
            },
        ),
        ("-A,9000", "+A,9100", "old_start: 4"),
        _EDITOR,
    ),
    failed(_EDITOR, _EDITOR, "file_not_found", error_message="no such file"),
    HostedCase(
        "tool search",
        "anthropic",
        server_tool_body(
            "tool_search_tool_bm25",
            {"query": "canal"},
            "tool_search",
            {
                "type": "tool_search_tool_search_result",
                "tool_references": [{"type": "tool_reference", "tool_name": "canal_fee"}],
            },
        ),
        ("canal", "canal_fee"),
        "tool_search_tool_bm25",
    ),
    failed("tool_search_tool_regex", "tool_search", "invalid_pattern", error_message="bad pattern"),
    HostedCase(
        "advice",
        "anthropic",
        server_tool_body(
            "advisor", {}, "advisor", {"type": "advisor_result", "text": "Check the draught.", "stop_reason": None}
        ),
        ("Check the draught.",),
        "advisor",
    ),
    HostedCase(
        "sealed advice",
        "anthropic",
        server_tool_body(
            "advisor",
            {},
            "advisor",
            {"type": "advisor_redacted_result", "encrypted_content": "c2VhbGVk", "stop_reason": None},
        ),
        ("not disclosed",),
        "advisor",
        ("c2VhbGVk",),
    ),
    failed("advisor", "advisor", "too_many_requests"),
    HostedCase(
        "mcp",
        "anthropic",
        mcp([{"type": "text", "text": "High at nine."}]),
        ("wiki", "ask", "tides", "High at nine."),
        "wiki.ask",
    ),
    HostedCase("mcp, a string", "anthropic", mcp("High at nine."), ("wiki", "High at nine."), "wiki.ask"),
    HostedCase(
        "mcp error",
        "anthropic",
        mcp([{"type": "text", "text": "ebb"}], is_error=True),
        ("wiki", "ebb"),
        "wiki.ask",
        error=True,
    ),
    HostedCase(
        "still running",
        "anthropic",
        claude({"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "tides"}}),
        ("tides",),
        "web_search",
    ),
    HostedCase(
        "an unknown tool",
        "anthropic",
        server_tool_body(
            "divination",
            {"bones": 3},
            "divination",
            {"type": "divination_result", "omen": "fair", "depth": [{"said": "deep"}]},
        ),
        ("fair", "deep"),
        "divination",
    ),
    HostedCase(
        "browser state",
        "anthropic",
        claude(
            _NAVIGATES,
            after=(
                {
                    "role": "user",
                    "content": [
                        {
                            "type": "tool_result",
                            "tool_use_id": "toolu_1",
                            "content": [{"type": "browser_state", "tabs": _TABS}],
                        }
                    ],
                },
                {"role": "assistant", "content": "Open."},
            ),
        ),
        ("Rates", "https://rates.example", "Fees", "https://fees.example", "t2"),
    ),
    HostedCase(
        "upload",
        "anthropic",
        {
            "model": "claude-sonnet-4-5",
            "max_tokens": 9,
            "messages": [
                {
                    "role": "user",
                    "content": [{"type": "container_upload", "file_id": "file_077"}, {"type": "text", "text": "Look."}],
                }
            ],
        },
        ("file_077", "Look."),
    ),
)

# ----------------------------------------------------------------------------------------------------------- Responses


def items(*made: Body, **more: Any) -> Body:
    return responses.body(_GO_ON, *made, _AND_NOW, model="gpt-5.4", **more)


def one(kind: str, item_id: str, **members: Any) -> Body:
    return items({"type": kind, "id": item_id, "status": "completed", **members})


_RESPONSES = "openai-responses"
_SHELL = {"type": "shell_call", "id": "sh_1", "call_id": "call_1", "status": "completed"}
_IN_CONTAINER = {
    "action": {"commands": ["ls /data"]},
    "environment": {"type": "container_reference", "container_id": "c"},
}
_CHUNK = {"stdout": "fees.csv", "stderr": "a warning", "outcome": {"type": "exit", "exit_code": 3}}
_PROGRAM = {"type": "program", "id": "prog_1", "call_id": "call_p", "code": "await get(1)", "fingerprint": "f"}
_INNER = {
    "type": "function_call",
    "id": "fc_1",
    "call_id": "call_i",
    "name": "get",
    "arguments": '{"n":1}',
    "caller": {"type": "program", "caller_id": "call_p"},
}

RESPONSES: tuple[HostedCase, ...] = (
    HostedCase(
        "web search with sources",
        _RESPONSES,
        one(
            "web_search_call",
            "ws_1",
            action={"type": "search", "query": "tides", "sources": [{"type": "url", "url": "https://a.example"}]},
        ),
        ("tides", "https://a.example"),
        "web_search",
    ),
    HostedCase(
        "web search without",
        _RESPONSES,
        one("web_search_call", "ws_1", action={"type": "search", "query": "tides"}),
        ("tides",),
        "web_search",
    ),
    HostedCase(
        "file search",
        _RESPONSES,
        one(
            "file_search_call",
            "fs_1",
            queries=["dues"],
            results=[{"file_id": "file_1", "filename": "fees.csv", "score": 0.5, "text": "A: 9,000"}],
        ),
        ("dues", "fees.csv", "A: 9,000"),
        "file_search",
    ),
    HostedCase(
        "code",
        _RESPONSES,
        one(
            "code_interpreter_call",
            "ci_1",
            code="plot()",
            container_id="c",
            outputs=[{"type": "logs", "logs": "drawn"}, {"type": "image", "url": "https://pictures.example/1.png"}],
        ),
        ("plot()", "drawn", "https://pictures.example/1.png"),
        "code_interpreter",
    ),
    HostedCase(
        "picture",
        _RESPONSES,
        one("image_generation_call", "ig_1", result=PNG, revised_prompt="a harbour"),
        ("a harbour",),
        "image_generation",
        picture=True,
    ),
    HostedCase(
        "mcp",
        _RESPONSES,
        one("mcp_call", "mcp_1", name="ask", server_label="wiki", arguments='{"q":"tides"}', output="High at nine."),
        ("wiki", "ask", "tides", "High at nine."),
        "wiki.ask",
    ),
    HostedCase(
        "mcp error",
        _RESPONSES,
        one("mcp_call", "mcp_1", name="ask", server_label="wiki", arguments="{}", error="ebb", output=None),
        ("wiki", "ebb"),
        "wiki.ask",
        error=True,
    ),
    HostedCase(
        "shell in a container",
        _RESPONSES,
        items({**_SHELL, **_IN_CONTAINER}, {"type": "shell_call_output", "call_id": "call_1", "output": [_CHUNK]}),
        ("ls /data", "fees.csv", "a warning", "exit code 3"),
        "shell",
    ),
    HostedCase(
        "tool search",
        _RESPONSES,
        items(
            {"type": "tool_search_call", "execution": "server", "arguments": {"paths": ["crm"]}, "status": "completed"},
            {
                "type": "tool_search_output",
                "execution": "server",
                "status": "completed",
                "tools": [{"type": "function", "name": "canal_fee", "parameters": None, "strict": False}],
            },
            tools=[{"type": "tool_search"}],
        ),
        ("crm", "canal_fee"),
        "tool_search",
    ),
    HostedCase(
        "program with a call of its own",
        _RESPONSES,
        items(
            _PROGRAM,
            _INNER,
            {"type": "function_call_output", "call_id": "call_i", "output": "one"},
            {"type": "program_output", "call_id": "call_p", "result": "sum 1", "status": "completed"},
            tools=[{"type": "programmatic_tool_calling"}],
        ),
        ("await get(1)", "get", "one", "sum 1"),
        "program",
    ),
    HostedCase(
        "screenshot",
        _RESPONSES,
        items(
            {
                "type": "computer_call",
                "id": "cu_1",
                "call_id": "call_1",
                "actions": [{"type": "screenshot"}],
                "pending_safety_checks": [],
                "status": "completed",
            },
            {
                "type": "computer_call_output",
                "call_id": "call_1",
                "output": {"type": "computer_screenshot", "image_url": f"data:image/png;base64,{PNG}"},
            },
            tools=[{"type": "computer"}],
        ),
        ("screenshot",),
        picture=True,
    ),
)

# -------------------------------------------------------------------------------------------------------------- Gemini


def parts(*made: Body, **more: Any) -> Body:
    contents = [gemini.user("Go on."), gemini.model(*made, "Done."), gemini.user("And now?")]
    return {"contents": contents, **more}


GEMINI: tuple[HostedCase, ...] = (
    HostedCase(
        "code",
        "gemini",
        parts(
            {"executableCode": {"language": "PYTHON", "code": "print(42)"}},
            {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "forty-two"}},
            {"inlineData": {"mimeType": "image/png", "data": PNG}},
        ),
        ("print(42)", "forty-two"),
        "code_execution",
        picture=True,
    ),
    HostedCase(
        "code that failed",
        "gemini",
        parts(
            {"executableCode": {"language": "PYTHON", "code": "print(x)"}},
            {"codeExecutionResult": {"outcome": "OUTCOME_FAILED", "output": "NameError"}},
        ),
        ("print(x)", "NameError"),
        "code_execution",
        error=True,
    ),
    HostedCase(
        "search",
        "gemini",
        parts(
            {"toolCall": {"id": "t1", "toolType": "GOOGLE_SEARCH_WEB", "args": {"queries": ["tides"]}}},
            {"toolResponse": {"id": "t1", "toolType": "GOOGLE_SEARCH_WEB", "response": {"found": "https://a.example"}}},
        ),
        ("tides", "https://a.example"),
        "google_search_web",
    ),
)

ALL = (*ANTHROPIC, *RESPONSES, *GEMINI)
