"""The expected blocks of each OpenAI and Mistral sample."""

from __future__ import annotations

from typing import Any

from msgspec import UNSET

from segue.canonical.blocks import Media


def call(name: str, arguments: Any, *, kind: str = "function") -> dict[str, Any]:
    return {"call": name, "arguments": arguments, "kind": kind}


def output(
    name: str | None, *content: str | Media, structured: Any = UNSET, error: bool = False, hosted: bool = False
) -> dict[str, Any]:
    return {"output": name, "content": content, "structured": structured, "error": error, "hosted": hosted}


def answer(text: str) -> dict[str, Any]:
    return {"answer": text}


def image(**where: Any) -> Media:
    return Media("image", **where)


EXPECTED: dict[tuple[str, str, str], list[dict[str, Any]]] = {
    ("openai", "CodeInterpreterToolCall", "finished run, output embedded"): [
        call(
            "code_interpreter",
            {"code": "import statistics\nprint(statistics.median([4, 8, 15, 16, 23, 42]))"},
            kind="hosted",
        ),
        output("code_interpreter", "15.5\n", hosted=True),
    ],
    ("openai", "CodeInterpreterToolCall", "still running, nothing to read yet"): [
        call("code_interpreter", {"code": "plot(tide_levels)"}, kind="hosted")
    ],
    ("openai", "FileSearchToolCall", "results included"): [
        call("file_search", {"queries": ["berth allocation policy", "priority for reefer vessels"]}, kind="hosted"),
        output(
            "file_search",
            '[{"file_id":"file-aa91","filename":"port-rules.pdf","score":0.83,'
            '"text":"Reefer vessels take precedence over bulk carriers.",'
            '"attributes":{"chapter":7.0,"public":true,"language":"en"}}]',
            hosted=True,
        ),
    ],
    ("openai", "FileSearchToolCall", "results left out"): [
        call("file_search", {"queries": ["mooring fees"]}, kind="hosted")
    ],
    ("openai", "ImageGenToolCall", "image delivered"): [
        call("image_generation", {"prompt": "A lighthouse at dusk, ink drawing"}, kind="hosted"),
        output("image_generation", image(mime="image/png", data="iVBORw0KGgo="), hosted=True),
    ],
    ("openai", "ImageGenToolCall", "blocked, no image"): [
        call("image_generation", {}, kind="hosted"),
        output("image_generation", "The picture was withheld.", error=True, hosted=True),
    ],
    ("openai", "MCPToolCall", "succeeded"): [
        call("next_high_water", {"harbour": "Brest"}, kind="hosted"),
        output("next_high_water", '{"at":"2026-04-02T05:41:00Z","metres":6.9}', hosted=True),
    ],
    ("openai", "MCPToolCall", "failed after approval"): [
        call("next_high_water", {"harbour": "Atlantis"}, kind="hosted"),
        output(
            "next_high_water",
            '{"type":"mcp_protocol_error","code":-32602,"message":"no such harbour"}',
            error=True,
            hosted=True,
        ),
    ],
    ("openai", "WebSearchToolCall", "search with sources"): [
        call(
            "web_search",
            {
                "type": "search",
                "query": "ferry strike Piraeus",
                "queries": ["ferry strike Piraeus", "Piraeus port walkout"],
            },
            kind="hosted",
        ),
        output("web_search", '[{"type":"url","url":"https://news.example/piraeus"}]', hosted=True),
    ],
    ("openai", "WebSearchToolCall", "find in page"): [
        call(
            "web_search",
            {"type": "find_in_page", "url": "https://news.example/piraeus", "pattern": "resume"},
            kind="hosted",
        )
    ],
    ("openai", "FunctionToolCall", "called by the model"): [call("book_berth", {"vessel": "MV Alder", "nights": 2})],
    ("openai", "FunctionToolCall", "called from a program, replayed without an item id"): [
        call("harbour::book_berth", {})
    ],
    ("openai", "FunctionToolCall", "as Foundry returns it"): [call("list_berths", {"quay": "north"})],
    ("openai", "FunctionToolCallOutput", "plain string"): [output(None, '{"berth":"N-14","confirmed":true}')],
    ("openai", "FunctionToolCallOutput", "content parts"): [
        output(None, "berth N-15", image(url="https://cdn.example/berth-n15.png"))
    ],
    ("openai", "FunctionToolCallOutput", "no call id at all, allowed since it became optional"): [
        output("harbour::book_berth", "unsolicited update: berth N-14 freed")
    ],
    ("openai", "ComputerToolCall", "single action with a safety check"): [
        call("computer", {"action": {"type": "click", "button": "left", "x": 412, "y": 96}})
    ],
    ("openai", "ComputerToolCall", "batch of actions"): [
        call(
            "computer",
            {
                "actions": [
                    {"type": "move", "x": 40, "y": 52},
                    {"type": "type", "text": "pilotage"},
                    {"type": "keypress", "keys": ["ENTER"]},
                ]
            },
        )
    ],
    ("openai", "ComputerToolCallOutput", "acknowledges the check"): [
        output("computer", image(mime="image/png", data="iVBORw0KGgo="))
    ],
    ("openai", "ComputerToolCallOutput", "by file id"): [output("computer", image(file_id="file-shot2"))],
    ("openai", "CustomToolCall", "free-form input"): [
        call("run_sql", "select count(*) from berths where free", kind="custom")
    ],
    ("openai", "CustomToolCall", "empty input, asynchronous tool"): [call("run_sql", "", kind="custom")],
    ("openai", "CustomToolCallOutput", "string"): [output(None, "37")],
    ("openai", "CustomToolCallOutput", "parts, cut short"): [output(None, "query cancelled")],
    ("openai", "ApplyPatchToolCall", "update"): [
        call("apply_patch", {"type": "update_file", "path": "quay/pricing.py", "diff": "@@\n-RATE = 12\n+RATE = 14\n"})
    ],
    ("openai", "ApplyPatchToolCall", "delete"): [call("apply_patch", {"type": "delete_file", "path": "quay/old.py"})],
    ("openai", "ApplyPatchToolCallOutput", "applied"): [output("apply_patch", "1 hunk applied")],
    ("openai", "ApplyPatchToolCallOutput", "failed without a word"): [output("apply_patch", "", error=True)],
    ("openai", "FunctionShellCall", "two commands, local"): [
        call("shell", {"commands": ["uname -a", "df -h /srv"], "timeout_ms": 20000, "max_output_length": 4096})
    ],
    ("openai", "FunctionShellCall", "hosted container"): [
        call("shell", {"commands": ["make test"], "timeout_ms": None, "max_output_length": None}, kind="hosted")
    ],
    ("openai", "FunctionShellCallOutput", "one success, one failure"): [
        output("shell", "Linux quay 6.8\n\ndf: /srv: no such file\n\n[exit code 1]")
    ],
    ("openai", "FunctionShellCallOutput", "timed out"): [output("shell", "collecting\n[timed out]")],
    ("openai", "LocalShellToolCall", "argv command"): [
        call(
            "local_shell",
            {
                "type": "exec",
                "command": ["ls", "-1"],
                "env": {"LANG": "C"},
                "working_directory": "/data",
                "timeout_ms": 5000,
            },
        )
    ],
    ("openai", "LocalShellToolCallOutput", "`id` plays the part of the call id"): [
        output("local_shell", '{"stdout":"logs\\nrates.csv\\n","exit_code":0}')
    ],
    ("openai", "ToolSearchCall", "client side, id present"): [call("tool_search", {"goal": "find the mooring tools"})],
    ("openai", "ToolSearchCall", "server side, item id but no call id"): [
        call("tool_search", {"paths": ["harbour"]}, kind="hosted")
    ],
    ("openai", "ToolSearchOutput", "client side, id present"): [
        output(
            "tool_search",
            "[tools found: moor_vessel]",
            structured=[
                {
                    "type": "function",
                    "name": "moor_vessel",
                    "strict": True,
                    "parameters": {
                        "type": "object",
                        "properties": {"berth": {"type": "string"}},
                        "required": ["berth"],
                        "additionalProperties": False,
                    },
                    "defer_loading": True,
                }
            ],
        )
    ],
    ("openai", "ToolSearchOutput", "server side, found nothing"): [
        output("tool_search", "[tools found: none]", structured=[], hosted=True)
    ],
    ("openai", "FunctionToolCallOutputResource", "variant payload"): [output(None, "tug 3 under way")],
    ("openai", "FunctionToolCallOutputResource", "item id but no call id"): [output("tow", "tug 4 idle")],
    ("openai", "ApplyPatchToolCallOutputItemParam", "variant payload"): [output("apply_patch", "created")],
    ("openai", "FunctionToolCallResource", "variant payload"): [call("tow", {"tug": 3})],
    ("openai", "FunctionCallOutputItemParam", "variant payload"): [output(None, "N-14, N-15")],
    ("openai", "FunctionCallOutputItemParam", "no id"): [output("tow", "done")],
    ("openai", "ComputerToolCallOutputResource", "variant payload"): [output("computer", error=True)],
    ("openai", "ComputerCallOutputItemParam", "variant payload"): [
        output("computer", image(url="https://cdn.example/s4.png"))
    ],
    ("openai", "CustomToolCallResource", "variant payload"): [call("lisp", "(+ 1 2)", kind="custom")],
    ("openai", "CustomToolCallOutputResource", "variant payload"): [output(None, "3")],
    ("openai", "ApplyPatchToolCallItemParam", "variant payload"): [
        call("apply_patch", {"type": "create_file", "path": "notes/tide.md", "diff": "+# Tide\n"})
    ],
    ("openai", "FunctionShellCallItemParam", "variant payload"): [call("shell", {"commands": ["date"]})],
    ("openai", "FunctionShellCallOutputItemParam", "variant payload"): [output("shell", "Thu\n")],
    ("openai", "ToolSearchCallItemParam", "variant payload"): [
        call("tool_search", {"goal": "pilot booking"}, kind="hosted")
    ],
    ("openai", "ToolSearchOutputItemParam", "variant payload"): [
        output(
            "tool_search",
            "[tools found: pilot_order]",
            structured=[{"type": "custom", "name": "pilot_order"}],
            hosted=True,
        )
    ],
    ("openai", "MCPListTools", "one tool"): [
        output(
            "mcp_list_tools",
            "next_high_water: Next high water",
            structured={
                "server_label": "tide-tables",
                "tools": [
                    {
                        "name": "next_high_water",
                        "description": "Next high water",
                        "input_schema": {"type": "object", "properties": {"harbour": {"type": "string"}}},
                        "annotations": {"readOnlyHint": True},
                    }
                ],
            },
            hosted=True,
        )
    ],
    ("openai", "MCPListTools", "listing failed"): [
        output(
            "mcp_list_tools",
            "handshake refused",
            structured={"server_label": "customs", "tools": [], "error": "handshake refused"},
            error=True,
            hosted=True,
        )
    ],
    ("openai", "MCPApprovalRequest", "awaiting a decision"): [
        call("file_manifest", {"manifest": "M-204"}, kind="hosted")
    ],
    ("openai", "MCPApprovalResponse", "approved"): [answer("approved")],
    ("openai", "MCPApprovalResponse", "refused with a reason"): [answer("refused: manifest incomplete")],
    ("openai", "Program", "drives a function tool"): [
        call("program", {"code": "const b = await tools.harbour.book_berth({});\nreturn b.berth;"}, kind="hosted")
    ],
    ("openai", "ProgramOutput", "finished"): [output("program", '"N-15"', hosted=True)],
    ("openai", "MultiAgentCall", "spawn"): [
        call(
            "multi_agent",
            {"action": "spawn_agent", "arguments": '{"agent_name":"surveyor","task":"inspect hull"}'},
            kind="hosted",
        )
    ],
    ("openai", "MultiAgentCallOutput", "started"): [output("multi_agent", "surveyor started", hosted=True)],
    ("openai", "MultiAgentCallOutput", "replayed without item id"): [
        output("multi_agent", "surveyor idle", hosted=True)
    ],
    ("openai", "ChatFunctionToolCall", "from a response"): [
        call("quote_freight", {"from": "Oslo", "to": "Gdansk", "teu": 4})
    ],
    ("openai", "ChatFunctionToolCall", "no arguments at all"): [call("quote_freight", {})],
    ("openai", "ChatCustomToolCall", "from a response"): [call("grep", "berth|quay", kind="custom")],
    ("openai", "ChatToolMessage", "string"): [output(None, '{"usd":3180}')],
    ("openai", "ChatToolMessage", "text parts"): [output(None, "rules.md:12: berth")],
    ("openai", "ChatLegacyFunctionCall", "no id anywhere"): [call("quote_freight", {"teu": 1})],
    ("openai", "ChatLegacyFunctionCall", "replayed"): [call("ping", {})],
    ("openai", "ChatLegacyFunctionMessage", "paired by name and order"): [output("quote_freight", '{"usd":810}')],
    ("openai", "RequiredActionFunctionToolCall", "run waits for it"): [call("crew_roster", {"ship": "Alder"})],
    ("openai", "SubmitToolOutput", "normal"): [output(None, '["Ines","Tomas"]')],
    ("openai", "SubmitToolOutput", "id left out, as the type allows"): [output(None, "ok")],
    ("openai", "RunStepFunctionToolCall", "answered"): [call("crew_roster", {}), output("crew_roster", '["Ines"]')],
    ("openai", "RunStepFunctionToolCall", "not yet answered"): [call("crew_roster", {})],
    ("openai", "RunStepCodeInterpreterToolCall", "logs and image"): [
        call("code_interpreter", {"code": "print(2**10)"}, kind="hosted"),
        output("code_interpreter", "1024\n", image(file_id="file-plot"), hosted=True),
    ],
    ("openai", "RunStepFileSearchToolCall", "with results"): [
        call("file_search", {"ranking_options": {"ranker": "auto", "score_threshold": 0.2}}, kind="hosted"),
        output(
            "file_search",
            '[{"file_id":"file-7","file_name":"rates.pdf","score":0.61,"content":[{"type":"text","text":"Rate B"}]}]',
            hosted=True,
        ),
    ],
    ("openai", "RealtimeFunctionCall", "with id"): [call("dim_lights", {"level": 30})],
    ("openai", "RealtimeFunctionCall", "without any id"): [call("dim_lights", {})],
    ("openai", "RealtimeFunctionCallOutput", "answer"): [output(None, "dimmed to 30")],
    ("openai", "RealtimeMCPToolCall", "succeeded"): [
        call("tune", {"channel": 16}, kind="hosted"),
        output("tune", "tuned", hosted=True),
    ],
    ("openai", "RealtimeMCPToolCall", "failed"): [
        call("tune", {}, kind="hosted"),
        output("tune", '{"type":"tool_execution_error","message":"no channel"}', error=True, hosted=True),
    ],
    ("openai", "RealtimeMCPListTools", "no id"): [
        output(
            "mcp_list_tools",
            "tune",
            structured={"server_label": "radio", "tools": [{"name": "tune", "input_schema": {"type": "object"}}]},
            hosted=True,
        )
    ],
    ("openai", "RealtimeMCPApprovalRequest", "asks"): [call("transmit", {}, kind="hosted")],
    ("openai", "RealtimeMCPApprovalResponse", "refused"): [answer("refused: channel busy")],
    ("openai", "AgentFunctionCall", "object arguments"): [call("weigh", {"crate": 12})],
    ("openai", "AgentFunctionCallOutput", "as stored"): [output(None, "84 kg")],
    ("openai", "AgentSessionToolResult", "submitted"): [output(None, "84 kg")],
    ("openai", "AgentSessionToolResult", "failure"): [output(None, "scale offline", error=True)],
    ("openai", "AgentMCPCall", "succeeded"): [
        call("find_crate", {"no": 12}, kind="hosted"),
        output("find_crate", structured={"row": "C"}, hosted=True),
    ],
    ("openai", "AgentWebSearchCall", "search"): [
        call("web_search", {"type": "search", "query": "crate norms", "queries": None}, kind="hosted")
    ],
    ("openai", "AgentCommandExecution", "finished"): [
        call("command_execution", {"command": "ls /bay", "cwd": "/"}, kind="hosted"),
        output("command_execution", "crate12\n", hosted=True),
    ],
    ("openai", "AgentComputerUseCall", "with screenshot"): [
        call("computer_use", {"title": "Opened the customs portal"}, kind="hosted"),
        output("computer_use", image(mime="image/jpeg", data="/9j/4AA="), hosted=True),
    ],
    ("openai", "AgentComputerUseCall", "running"): [call("computer_use", {}, kind="hosted")],
    ("openai", "AgentComputerUseApprovalRequest", "login form"): [
        call(
            "computer_use",
            {
                "type": "browser_authentication",
                "credential_origin": "https://customs.example",
                "fields": [{"id": "f1", "label": "E-mail", "required": True, "type": "email"}],
                "options": [],
                "reason": "Portal needs a login",
            },
            kind="hosted",
        )
    ],
    ("openai", "AgentComputerUseApprovalRequestResult", "as stored"): [answer("approved")],
    ("openai", "AgentSessionComputerUseApproval", "cancelled"): [answer("refused")],
    ("openai", "AgentSessionComputerUseApproval", "origin access"): [answer("approved")],
    ("openai", "AgentCreateSubagentCall", "spawn"): [
        call(
            "create_subagent",
            {
                "agent_id": "agent_b",
                "content": [{"type": "output_text", "text": "Count the crates"}],
                "model": None,
                "reasoning_effort": "low",
            },
            kind="hosted",
        )
    ],
    ("openai", "AgentSendSubagentInputCall", "message, encrypted"): [
        call(
            "send_subagent_input",
            {
                "sender_agent_id": "agent_a",
                "recipient_agent_id": "agent_b",
                "content": [{"type": "encrypted_content", "encrypted_content": "gAAAA"}],
            },
            kind="hosted",
        )
    ],
    ("openai", "AgentResumeSubagentCall", "resume"): [
        call("resume_subagent", {"sender_agent_id": "agent_a", "recipient_agent_id": "agent_b"}, kind="hosted")
    ],
    ("openai", "AgentWaitForSubagentsCall", "wait for two"): [
        call(
            "wait_for_subagents",
            {"sender_agent_id": "agent_a", "recipient_agent_ids": ["agent_b", "agent_c"]},
            kind="hosted",
        )
    ],
    ("openai", "AgentInterruptSubagentCall", "interrupt"): [
        call("interrupt_subagent", {"sender_agent_id": "agent_a", "recipient_agent_id": "agent_b"}, kind="hosted")
    ],
    ("openai", "AgentCloseSubagentCall", "close"): [
        call("close_subagent", {"sender_agent_id": "agent_a", "recipient_agent_id": "agent_b"}, kind="hosted")
    ],
    ("openai", "ChatKitClientToolCall", "answered"): [
        call("open_map", {"berth": "N-14"}),
        output("open_map", '{"opened":true}'),
    ],
    ("openai", "ChatKitClientToolCall", "pending"): [call("open_map", {})],
    ("mistral", "ToolCall", "with id"): [call("fare", {"zone": 2})],
    ("mistral", "ToolCall", "no id, object arguments"): [call("fare", {"zone": 3})],
    ("mistral", "ToolMessage", "with id"): [output("fare", "2.40")],
    ("mistral", "ToolMessage", "no id, parts"): [output("fare", "3.10")],
    ("mistral", "FunctionCallEntry", "pending"): [call("fare", {"zone": 1})],
    ("mistral", "FunctionResultEntry", "answer"): [output(None, "2.10")],
    ("mistral", "ToolCallConfirmation", "allowed"): [answer("approved")],
    ("mistral", "ToolExecutionEntry", "no id"): [
        call("code_interpreter", {"code": "1+1"}, kind="hosted"),
        output("code_interpreter", structured={"code_output": "2"}, hosted=True),
    ],
    ("mistral", "ToolExecutionEntry", "entry id only"): [call("web_search", {"query": "fares"}, kind="hosted")],
    ("mistral", "AgentHandoffEntry", "no id"): [
        call(
            "agent_handoff",
            {
                "previous_agent_id": "ag_1",
                "previous_agent_name": "desk",
                "next_agent_id": "ag_2",
                "next_agent_name": "fares",
            },
            kind="hosted",
        )
    ],
    ("mistral", "ResponsesFunctionToolCall", "call"): [call("fare", {})],
    ("mistral", "ResponsesFunctionCallOutput", "answer"): [output(None, "2.40")],
    ("mistral", "AudioToolCall", "call"): [call("fare", {})],
    ("mistral", "AudioToolTranscriptTurn", "answer"): [output("fare", structured={"eur": 2.4})],
    ("mistral", "VoiceAgentToolCallStartedEvent", "start"): [call("fare", {})],
    ("mistral", "VoiceAgentToolCallEndedEvent", "end"): [output("fare", "2.40")],
}
