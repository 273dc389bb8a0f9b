"""Tools that providers run, tools that they define and clients run, and calls that calls made: whole conversations."""

from __future__ import annotations

from tests.bodies import Body
from tests.bodies.anthropic import assistant as anthropic_assistant
from tests.bodies.anthropic import text
from tests.bodies.anthropic import user as anthropic_user
from tests.bodies.chat import assistant, user
from tests.conversations.build import (
    PNG,
    Case,
    anthropic,
    anthropic_tool,
    call,
    calls,
    chat,
    flat_function,
    function_call,
    kimi,
    responses,
    result,
    tool,
    use,
)

CALLED_BY_CODE = {"type": "code_execution_20260120", "tool_id": "srvtoolu_01"}
CODE = {"type": "code_execution_20260120", "name": "code_execution"}


def server_use(call_id: str, name: str, value: Body) -> Body:
    return {"type": "server_tool_use", "id": call_id, "name": name, "input": value}


def server_result(kind: str, call_id: str, content: object) -> Body:
    return {"type": f"{kind}_tool_result", "tool_use_id": call_id, "content": content}


def ran_code(stdout: str) -> Body:
    return {"type": "code_execution_result", "stdout": stdout, "stderr": "", "return_code": 0, "content": []}


PROGRAM = server_use("srvtoolu_01", "code_execution", {"code": "a = await read_file('a')\nb = await read_file('b')"})
NESTED = (
    anthropic_user(text("Compare a and b.")),
    anthropic_assistant(
        text("I'll read both."), PROGRAM, use("toolu_01", "read_file", {"path": "a"}, caller=CALLED_BY_CODE)
    ),
    anthropic_user(result("toolu_01", "A")),
    anthropic_assistant(use("toolu_02", "read_file", {"path": "b"}, caller=CALLED_BY_CODE)),
    anthropic_user(result("toolu_02", "B")),
)
SEARCHED = {
    "type": "web_search_result",
    "title": "Canal dues",
    "url": "https://dues.example",
    "encrypted_content": "c2VhbGVk",
    "page_age": "3 days ago",
}
FETCHED = {
    "type": "web_fetch_result",
    "url": "https://dues.example",
    "retrieved_at": "2026-03-01T08:00:00Z",
    "content": {
        "type": "document",
        "title": "Dues",
        "source": {"type": "text", "media_type": "text/plain", "data": "Class A: 9,000"},
    },
}


def run(kind: str, item_id: str, **members: object) -> Body:
    return {"type": kind, "id": item_id, "status": "completed", **members}


def nested_call(call_id: str, path: str) -> Body:
    caller = {"type": "program", "caller_id": "call_prg"}
    return function_call(call_id, arguments=f'{{"path":"{path}"}}', caller=caller)


CASES = (
    Case(
        "anthropic_programmatic_calls",
        "anthropic",
        "code on the server calls the client's tools: results come while it is open, its own in a later reply",
        anthropic(
            *NESTED,
            anthropic_assistant(
                server_result("code_execution", "srvtoolu_01", ran_code("A and B differ")), text("They differ.")
            ),
            anthropic_user(text("Thanks.")),
            tools=[anthropic_tool(allowed_callers=["code_execution_20260120"]), CODE],
        ),
    ),
    Case(
        "anthropic_programmatic_call_open",
        "anthropic",
        "the same, taken away while the code still waits for the second result",
        anthropic(*NESTED, tools=[anthropic_tool(allowed_callers=["code_execution_20260120"]), CODE]),
    ),
    Case(
        "anthropic_servers_and_clients",
        "anthropic",
        "search, fetch, code and an MCP server in one reply with a call to the client; options, an error, a seal",
        anthropic(
            anthropic_user(text("What does the canal cost?")),
            anthropic_assistant(
                server_use("srvtoolu_01", "web_search", {"query": "canal dues"}),
                server_result("web_search", "srvtoolu_01", [SEARCHED]),
                server_use("srvtoolu_02", "web_fetch", {"url": "https://dues.example"}),
                server_result("web_fetch", "srvtoolu_02", FETCHED),
                server_use("srvtoolu_03", "web_search", {"query": "canal dues 2027"}),
                server_result(
                    "web_search",
                    "srvtoolu_03",
                    {"type": "web_search_tool_result_error", "error_code": "max_uses_exceeded"},
                ),
                {
                    "type": "mcp_tool_use",
                    "id": "mcptoolu_01",
                    "name": "ask",
                    "server_name": "wiki",
                    "input": {"q": "draught"},
                },
                {
                    "type": "mcp_tool_result",
                    "tool_use_id": "mcptoolu_01",
                    "is_error": False,
                    "content": [{"type": "text", "text": "At most 12 m."}],
                },
                text("Now our own list."),
                use("toolu_01", "read_file", {"path": "dues.csv"}),
            ),
            anthropic_user(result("toolu_01", "A,9100")),
            anthropic_assistant(text("9,000, not 9,100.")),
            anthropic_user(text("Sure?")),
            tools=[
                {
                    "type": "web_search_20250305",
                    "name": "web_search",
                    "max_uses": 1,
                    "allowed_domains": ["dues.example"],
                    "user_location": {"type": "approximate", "city": "Suez", "country": "EG"},
                },
                {"type": "web_fetch_20250910", "name": "web_fetch", "max_uses": 2},
                {
                    "type": "mcp_toolset",
                    "mcp_server_name": "wiki",
                    "default_config": {"enabled": False},
                    "configs": {"ask": {"enabled": True}},
                },
                anthropic_tool(),
            ],
            mcp_servers=[
                {"type": "url", "name": "wiki", "url": "https://wiki.example/mcp", "authorization_token": "token"}
            ],
        ),
    ),
    Case(
        "anthropic_built_ins_of_the_client",
        "anthropic",
        "bash, editor, memory and screen are Anthropic's, but the client runs them: functions elsewhere",
        anthropic(
            anthropic_user(text("Tidy up.")),
            anthropic_assistant(
                use("toolu_01", "bash", {"command": "ls"}),
                use("toolu_02", "str_replace_based_edit_tool", {"command": "view", "path": "a"}),
                use("toolu_03", "memory", {"command": "view", "path": "/memories"}),
                use("toolu_04", "computer", {"action": "screenshot"}),
            ),
            anthropic_user(
                result("toolu_01", "a b"),
                result("toolu_02", "A"),
                result("toolu_03", "nothing yet"),
                result(
                    "toolu_04",
                    [{"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}}],
                ),
            ),
            tools=[
                {"type": "bash_20250124", "name": "bash"},
                {"type": "text_editor_20250728", "name": "str_replace_based_edit_tool", "max_characters": 9000},
                {"type": "memory_20250818", "name": "memory"},
                {"type": "computer_20250124", "name": "computer", "display_width_px": 1024, "display_height_px": 768},
            ],
        ),
    ),
    Case(
        "responses_program_with_calls",
        "openai-responses",
        "a program calls the client's tools: two outputs, then its own",
        responses(
            {"role": "user", "content": "Compare a and b."},
            {
                "type": "program",
                "id": "prog_1",
                "call_id": "call_prg",
                "code": "return await tools.read_file({path: 'a'}) != await tools.read_file({path: 'b'})",
                "fingerprint": "fp_1",
            },
            nested_call("call_a", "a"),
            nested_call("call_b", "b"),
            {"type": "function_call_output", "call_id": "call_a", "output": "A"},
            {"type": "function_call_output", "call_id": "call_b", "output": "B"},
            {"type": "program_output", "id": "progo_1", "call_id": "call_prg", "result": "true", "status": "completed"},
            {"role": "user", "content": "So?"},
            tools=[{"type": "programmatic_tool_calling"}, flat_function()],
        ),
    ),
    Case(
        "responses_servers_and_clients",
        "openai-responses",
        "a search, code with a picture, a server that may act unasked, a shell on the client's machine",
        responses(
            {"role": "user", "content": "What does the canal cost?"},
            run(
                "web_search_call",
                "ws_1",
                action={"type": "search", "query": "dues", "sources": [{"type": "url", "url": "https://dues.example"}]},
            ),
            run(
                "code_interpreter_call",
                "ci_1",
                code="plot()",
                container_id="cntr_1",
                outputs=[{"type": "logs", "logs": "drawn"}, {"type": "image", "url": "https://pictures.example/1.png"}],
            ),
            run("mcp_call", "mcp_1", name="ask", server_label="wiki", arguments='{"q":"draught"}', output="12 m"),
            run("local_shell_call", "lsh_1", call_id="call_1", action={"type": "exec", "command": ["ls"], "env": {}}),
            {"type": "local_shell_call_output", "id": "lsh_1", "call_id": "call_1", "output": "dues.csv"},
            {"role": "user", "content": "So?"},
            tools=[
                {
                    "type": "web_search",
                    "filters": {"allowed_domains": ["dues.example"]},
                    "search_context_size": "low",
                    "user_location": {"type": "approximate", "city": "Suez"},
                },
                {"type": "code_interpreter", "container": {"type": "auto"}},
                {
                    "type": "mcp",
                    "server_label": "wiki",
                    "server_url": "https://wiki.example/mcp",
                    "authorization": "token",
                    "allowed_tools": ["ask"],
                    "require_approval": "never",
                },
                {"type": "mcp", "server_label": "bank", "server_url": "https://bank.example/mcp"},
                {"type": "local_shell"},
            ],
        ),
    ),
    Case(
        "responses_deferred_tools",
        "openai-responses",
        "tools that are loaded when found: plain, in a namespace, and one that was called already",
        responses(
            {"role": "user", "content": "Read a."},
            {"type": "function_call", "call_id": "call_1", "name": "read_file", "arguments": '{"path":"a"}'},
            {"type": "function_call_output", "call_id": "call_1", "output": "A"},
            {"role": "user", "content": "And the weather?"},
            model="gpt-5.4",
            tools=[
                {"type": "tool_search"},
                flat_function(),
                {**flat_function("weather"), "defer_loading": True},
                {
                    "type": "namespace",
                    "name": "crm",
                    "description": "Customers.",
                    "tools": [{**flat_function("find"), "defer_loading": True}],
                },
            ],
        ),
    ),
    Case(
        "anthropic_deferred_tools",
        "anthropic",
        "the same at Anthropic, with what the search found",
        anthropic(
            anthropic_user(text("The weather?")),
            anthropic_assistant(
                server_use("srvtoolu_01", "tool_search_tool_regex", {"pattern": "weather"}),
                server_result(
                    "tool_search",
                    "srvtoolu_01",
                    {
                        "type": "tool_search_tool_search_result",
                        "tool_references": [{"type": "tool_reference", "tool_name": "weather"}],
                    },
                ),
                use("toolu_01", "weather", {"path": "here"}),
            ),
            anthropic_user(result("toolu_01", "Rain.")),
            tools=[
                {"type": "tool_search_tool_regex_20251119", "name": "tool_search_tool_regex"},
                anthropic_tool(),
                anthropic_tool("weather", defer_loading=True),
                anthropic_tool("tides", defer_loading=True),
            ],
        ),
    ),
    Case(
        "gemini_built_in_beside_functions",
        "gemini",
        "Gemini 3 searches and draws by itself and calls a function: the picture belongs to the code",
        {
            "model": "gemini-3.5-flash",
            "contents": [
                {"role": "user", "parts": [{"text": "Plot the dues."}]},
                {
                    "role": "model",
                    "parts": [
                        {"toolCall": {"id": "t1", "toolType": "GOOGLE_SEARCH_WEB", "args": {"queries": ["dues"]}}},
                        {
                            "toolResponse": {
                                "id": "t1",
                                "toolType": "GOOGLE_SEARCH_WEB",
                                "response": {"search_suggestions": "canal dues 2026"},
                            }
                        },
                        {"executableCode": {"id": "c1", "language": "PYTHON", "code": "plot()"}},
                        {"codeExecutionResult": {"id": "c1", "outcome": "OUTCOME_OK", "output": "drawn"}},
                        {"inlineData": {"mimeType": "image/png", "data": PNG}},
                        {
                            "functionCall": {"id": "f1", "name": "read_file", "args": {"path": "dues.csv"}},
                            "thoughtSignature": "c2ln",
                        },
                    ],
                },
                {
                    "role": "user",
                    "parts": [
                        {"functionResponse": {"id": "f1", "name": "read_file", "response": {"output": "A,9100"}}}
                    ],
                },
            ],
            "tools": [
                {"googleSearch": {}, "codeExecution": {}, "urlContext": {}},
                {"functionDeclarations": [{"name": "read_file", "description": "Reads."}]},
            ],
            "toolConfig": {"includeServerSideToolInvocations": True},
        },
        {"openai-responses": "gpt-5.4"},
    ),
    Case(
        "chat_search_options",
        "openai-chat",
        "a search that the body asks for, and no tool",
        chat(
            user("News?"),
            assistant("Rain."),
            user("More."),
            model="gpt-4o-search-preview",
            tools=None,
            web_search_options={
                "search_context_size": "low",
                "user_location": {"type": "approximate", "approximate": {"city": "Suez", "country": "EG"}},
            },
        ),
    ),
    Case(
        "kimi_search",
        "kimi",
        "Kimi's search is a call that the client answers with what it was called with",
        kimi(
            user("News?"),
            calls(
                {
                    **call("$web_search:0", "$web_search", {"search_result": {"search_id": "s1"}}),
                    "type": "builtin_function",
                }
            ),
            tool("$web_search:0", '{"search_result":{"search_id":"s1"}}', name="$web_search"),
            assistant("Rain."),
            user("More."),
            tools=[{"type": "builtin_function", "function": {"name": "$web_search"}}],
        ),
    ),
)
