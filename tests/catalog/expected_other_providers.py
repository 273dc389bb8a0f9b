"""The expected blocks of each sample of Anthropic, Gemini, Azure Foundry and Bedrock, written by hand."""

from __future__ import annotations

from typing import Any

Expected = dict[str, Any]


def call(name: str, arguments: Any = None, kind: str = "function", **more: Any) -> Expected:
    return {"call": name, "arguments": {} if arguments is None else arguments, "kind": kind, **more}


def hosted(name: str, arguments: Any = None, **more: Any) -> Expected:
    return call(name, arguments, "hosted", **more)


def out(text: str = "", name: str | None = None, **more: Any) -> Expected:
    return {"words": text, "name": name, "hosted": False, "error": False, **more}


def hosted_out(text: str = "", name: str | None = None, **more: Any) -> Expected:
    """The output of a hosted tool."""
    return out(text, name, **{"hosted": True, **more})


def approval(text: str) -> Expected:
    return {"text": text}


_PICTURE = ("image/png", "iVBORw0KGgo=", None, None)

_ANTHROPIC: dict[str, list[Expected]] = {
    "ResponseToolUseBlock/plain function": [call("lookup_tariff", {"hs_code": "0805.10", "origin": "ES"})],
    "ResponseToolUseBlock/called from code execution": [call("lookup_tariff", parent="srvtoolu_01X")],
    "RequestToolResultBlock/string": [out("6.4 percent")],
    "RequestToolResultBlock/error in parts": [out("tariff service unreachable", error=True)],
    "RequestToolResultBlock/no content at all": [out()],
    "RequestToolResultBlock/answer to a browser toolset call": [out(opaque=["browser_state"])],
    "RequestToolResultBlock/screenshot for a computer toolset call": [out(media=[_PICTURE])],
    "RequestToolResultBlock/answer to a memory call": [out("/memories: fees.md")],
    "ResponseMCPToolUseBlock/call": [hosted("quote", {"teu": 2}, awaited=False)],
    "ResponseMCPToolResultBlock/text blocks": [hosted_out("USD 1,590")],
    "ResponseMCPToolResultBlock/shortest legal replay": [hosted_out()],
    "ResponseServerToolUseBlock/web search": [hosted("web_search", {"query": "Suez transit fee 2026"})],
    "ResponseServerToolUseBlock/web fetch": [hosted("web_fetch", {"url": "https://canal.example/fees"})],
    "ResponseServerToolUseBlock/code execution": [hosted("code_execution", {"code": "print(7*6)"})],
    "ResponseServerToolUseBlock/shell in the sandbox": [hosted("bash_code_execution", {"command": "wc -l fees.csv"})],
    "ResponseServerToolUseBlock/editor in the sandbox": [
        hosted("text_editor_code_execution", {"command": "view", "path": "fees.csv"})
    ],
    "ResponseServerToolUseBlock/tool search, replayed": [hosted("tool_search_tool_bm25", {"query": "canal fee"})],
    "ResponseWebSearchToolResultBlock/results": [
        hosted_out("Canal dues\nhttps://canal.example/dues\npage_age: 3 days ago", "web_search")
    ],
    "ResponseWebSearchToolResultBlock/error": [hosted_out("max_uses_exceeded", "web_search", error=True)],
    "ResponseWebFetchToolResultBlock/document": [
        hosted_out("https://canal.example/fees\nFees\nClass A: 9,000\nretrieved_at: 2026-03-01T08:00:00Z", "web_fetch")
    ],
    "ResponseWebFetchToolResultBlock/error": [hosted_out("url_not_accessible", "web_fetch", error=True)],
    "ResponseCodeExecutionToolResultBlock/plain": [hosted_out("42\n[file file_011]", "code_execution")],
    "ResponseCodeExecutionToolResultBlock/sealed stdout": [
        hosted_out("[run by the provider, output not disclosed]", "code_execution")
    ],
    "ResponseBashCodeExecutionToolResultBlock/result": [hosted_out("311 fees.csv\n", "bash_code_execution")],
    "ResponseBashCodeExecutionToolResultBlock/error": [
        hosted_out("output_file_too_large", "bash_code_execution", error=True)
    ],
    "ResponseTextEditorCodeExecutionToolResultBlock/view": [
        hosted_out("class,fee\nA,9000\nstart_line: 1\nnum_lines: 2\ntotal_lines: 311", "text_editor_code_execution")
    ],
    "ResponseTextEditorCodeExecutionToolResultBlock/replacement": [
        hosted_out(
            "-A,9000\n+A,9100\nold_start: 4\nold_lines: 1\nnew_start: 4\nnew_lines: 1", "text_editor_code_execution"
        )
    ],
    "ResponseToolSearchToolResultBlock/found one": [hosted_out("canal_fee", "tool_search")],
    "ResponseToolSearchToolResultBlock/error": [
        hosted_out("invalid_tool_input\nbad pattern", "tool_search", error=True)
    ],
    "AdvisorServerToolUseBlock/call": [hosted("advisor")],
    "ResponseAdvisorToolResultBlock/advice": [hosted_out("Check the draught limit first.", "advisor")],
    "ResponseAdvisorToolResultBlock/sealed": [hosted_out("[run by the provider, output not disclosed]", "advisor")],
    "MCPToolListingBlock/no id": [
        hosted_out(
            '{"mcp_server_name":"freight","tools":[{"name":"quote","description":"Price a box",'
            '"input_schema":{"type":"object"}}]}',
            "mcp_list_tools",
        )
    ],
    "BrowserToolsetToolUseBlock/navigate": [call("navigate", {"url": "https://rates.example"})],
    "BrowserToolsetToolUseBlock/click on an element": [
        call("left_click", {"target": {"type": "ref", "ref": "e14"}, "tab_id": "t1"})
    ],
    "ComputerToolsetToolUseBlock/click": [call("left_click", {"coordinate": [300, 220]})],
    "ComputerToolsetToolUseBlock/screenshot, replayed": [call("screenshot")],
    "MemoryToolUseBlock/create": [
        call("memory", {"command": "create", "path": "/memories/fees.md", "file_text": "Class A pays 9,000"})
    ],
    "MemoryToolUseBlock/view": [call("memory", {"command": "view", "path": "/memories", "view_range": [1, 20]})],
    "AgentToolUseEvent/awaits confirmation": [hosted("bash", {"command": "ls"})],
    "AgentToolResultEvent/result": [hosted_out("fees.csv", item_id="sevt_2")],
    "UserToolResultEvent/submitted": [out("fees.csv")],
    "UserToolConfirmationEvent/allowed": [approval("approved")],
    "UserToolConfirmationEvent/denied": [approval("refused: not on this host")],
    "AgentMCPToolUseEvent/call": [hosted("quote", {"teu": 1})],
    "AgentMCPToolResultEvent/result": [hosted_out("USD 800", item_id="sevt_5")],
    "AgentCustomToolUseEvent/call": [call("lookup_tariff", {"hs_code": "0806"})],
    "UserCustomToolResultEvent/result": [out("5 percent")],
}

_GEMINI: dict[str, list[Expected]] = {
    "ExecutableCode/no id": [hosted("code_execution", {"language": "PYTHON", "code": "print(sum(range(10)))"})],
    "ExecutableCode/with id": [hosted("code_execution", {"language": "PYTHON", "code": "open('a.csv').read()"})],
    "CodeExecutionResult/no id": [hosted_out("45\n", "code_execution")],
    "CodeExecutionResult/with id": [hosted_out("FileNotFoundError", "code_execution", error=True)],
    "ToolCall/no id": [hosted("google_search_web", {"queries": ["kelp farming Norway"]})],
    "ToolCall/with id and signature": [hosted("url_context", {"urls": ["https://kelp.example"]}, signature="c2ln")],
    "ToolResponse/no id": [hosted_out('{"hits":3}', "google_search_web")],
    "ToolResponse/with id": [hosted_out('{"status":"ok"}', "url_context")],
    "FunctionCall/no id": [call("set_thermostat", {"room": "galley", "celsius": 19.5})],
    "FunctionCall/with id": [call("set_thermostat", signature="c2lnMg==")],
    "FunctionCall/streamed arguments": [call("log_entry")],
    "FunctionResponse/no id": [out("ok", "set_thermostat")],
    "FunctionResponse/with id and an image": [out("sensor offline", "set_thermostat", error=True, media=[_PICTURE])],
    "ComputerUseFunctionCall/needs confirmation": [
        call(
            "click_at",
            {
                "x": 371,
                "y": 470,
                "safety_decision": {"decision": "require_confirmation", "explanation": "Consent banner"},
            },
        )
    ],
    "ComputerUseFunctionResponse/screenshot": [
        out('{"url":"https://kelp.example","safety_acknowledgement":"true"}', "click_at", media=[_PICTURE])
    ],
    "LiveServerToolCall/one call": [call("dim_lights", {"level": 20})],
    "LiveServerToolCall/no id": [call("dim_lights")],
    "LiveClientToolResponse/answer": [out("done", "dim_lights")],
    "LiveClientToolResponse/no id": [out("done", "dim_lights")],
    "LiveServerToolCallCancellation/two withdrawn": [out(outcome="cancelled"), out(outcome="cancelled")],
    "InteractionFunctionCall/call": [call("set_thermostat", {"celsius": 18})],
    "InteractionFunctionResult/result": [out('{"applied":true}', "set_thermostat")],
    "InteractionFunctionResult/submitted by the client, string result": [
        out("sensor offline", "set_thermostat", error=True)
    ],
    "InteractionCodeExecutionCall/call": [hosted("code_execution", {"language": "python", "code": "print(1)"})],
    "InteractionCodeExecutionResult/result": [hosted_out("1\n", "code_execution")],
    "InteractionGoogleSearchCall/call": [hosted("google_search", {"queries": ["kelp prices"]})],
    "InteractionGoogleSearchResult/result": [hosted_out('[{"search_suggestions":"<div>kelp</div>"}]', "google_search")],
    "InteractionGoogleMapsCall/call": [hosted("google_maps", {"queries": ["marina near Bergen"]})],
    "InteractionGoogleMapsResult/result": [
        hosted_out(
            '[{"places":[{"name":"Bergen Marina","place_id":"pl_1","url":"https://maps.example/pl_1"}],'
            '"widget_context_token":"w1"}]',
            "google_maps",
        )
    ],
    "InteractionUrlContextCall/call": [hosted("url_context", {"urls": ["https://kelp.example"]})],
    "InteractionUrlContextResult/result": [
        hosted_out('[{"url":"https://kelp.example","status":"paywall"}]', "url_context")
    ],
    "InteractionFileSearchCall/call": [hosted("file_search")],
    "InteractionFileSearchResult/result": [hosted_out("", "file_search")],
    "InteractionRetrievalCall/call": [hosted("retrieval", {"queries": ["quota rules"]})],
    "InteractionRetrievalResult/result": [hosted_out("", "retrieval")],
    "InteractionProcessingCall/call": [hosted("processing")],
    "InteractionProcessingResult/result": [hosted_out("", "processing")],
    "InteractionMcpServerToolCall/call": [hosted("tide", {"port": "Bergen"})],
    "InteractionMcpServerToolResult/result": [hosted_out("1.2 m", "tide")],
}


def _foundry_pair(kind: str, tool: str, arguments: Expected, text: str, number: int) -> dict[str, list[Expected]]:
    return {
        f"{kind}ToolCall/call": [hosted(tool, arguments, item_id=f"fz_{number}")],
        f"{kind}ToolCallOutput/output": [hosted_out(text, tool, item_id=f"fz_{number + 1}")],
        f"{kind}ToolCallOutput/failed, no output": [hosted_out("", tool, error=True, item_id=f"fz_{number + 2}")],
    }


def _step(kind: str, tool: str, arguments: Any, text: str) -> dict[str, list[Expected]]:
    return {f"RunStep{kind}ToolCall/record": [hosted(tool, arguments), hosted_out(text, tool)]}


_FOUNDRY: dict[str, list[Expected]] = {
    **_foundry_pair("A2A", "surveyor", {"message": "inspect hull"}, '{"verdict":"sound"}', 101),
    **_foundry_pair(
        "AzureAISearch", "azure_ai_search", {"query": "berth rules"}, '{"documents":[{"id":"d1","title":"Rules"}]}', 103
    ),
    **_foundry_pair("AzureFunction", "notify_pilot", {"vessel": "Alder"}, "queued", 105),
    **_foundry_pair(
        "BingCustomSearch",
        "bing_custom_search",
        {"query": "tide site:port.example"},
        '["https://port.example/tide"]',
        107,
    ),
    **_foundry_pair(
        "BingGrounding",
        "bing_grounding",
        {"query": "fog warning Kiel"},
        '{"requesturl":"https://search.example?q=fog"}',
        109,
    ),
    **_foundry_pair(
        "BrowserAutomation",
        "browser_automation",
        {"query": "open the pilot form"},
        '{"steps":3,"result":"form open"}',
        111,
    ),
    **_foundry_pair("FabricDataAgent", "fabric_dataagent", {"userQuestion": "calls in May"}, "118", 113),
    **_foundry_pair("OpenApi", "berths_getBerth", {"id": 7}, '{"status":200,"body":{"name":"N-14"}}', 115),
    **_foundry_pair(
        "SharepointGrounding", "sharepoint_grounding", {"query": "safety drill"}, '[{"title":"Drill.docx"}]', 117
    ),
    "MemorySearchToolCallItemParam/results replayed, no id": [
        hosted("memory_search"),
        hosted_out("Prefers morning slots", "memory_search"),
    ],
    "MemorySearchToolCallItemParam/nothing but the type": [hosted("memory_search")],
    "MemorySearchToolCallItemResource/two memories": [
        hosted("memory_search"),
        hosted_out("Prefers morning slots\nBooked N-14 last week", "memory_search"),
    ],
    "MemorySearchToolCallItemResource/in flight": [hosted("memory_search")],
    "WorkflowActionOutputItem/finished action": [
        hosted_out('{"action_id":"act_2","previous_action_id":"act_1","status":"completed"}', "InvokeAzureAgent")
    ],
    "WorkflowActionOutputItem/nested, cancelled": [
        hosted_out(
            '{"action_id":"act_2a","parent_action_id":"act_2","status":"cancelled"}', "SetVariable", outcome="cancelled"
        )
    ],
    "OAuthConsentRequestOutputItem/consent needed": [
        hosted_out('{"server_label":"customs","consent_link":"https://login.example/consent?c=1"}', "oauth_consent")
    ],
    "StructuredOutputsOutputItem/captured object": [
        hosted_out('{"eta":"2026-06-01","pax":0}', "capture_structured_outputs")
    ],
    "RunStepFunctionToolCall/record of the answered call": [call("roster")],
    **_step("CodeInterpreter", "code_interpreter", {"input": "print(5)"}, "5\n"),
    **_step("FileSearch", "file_search", {}, "rates.md\nRate B"),
    **_step("AzureAISearch", "azure_ai_search", {"input": "berth rules"}, '{"documents":[]}'),
    "RunStepBingGroundingToolCall/record": [hosted("bing_grounding", {"requesturl": "https://search.example?q=fog"})],
    **_step("OpenAPI", "berths", {}, "[]"),
    **_step("AzureFunction", "notify", {}, "queued"),
    "RunStepBingCustomSearchToolCall/record": [hosted("bing_custom_search", {"query": "tide"})],
    **_step("BrowserAutomation", "browser_automation", {"input": "open form"}, "open"),
    "RunStepComputerUseToolCall/record": [
        call("computer", {"action": {"type": "click", "button": "left", "x": 3, "y": 4}}),
        out("", "computer", media=[(None, None, "https://cdn.example/s.png", None)]),
    ],
    **_step("ConnectedAgent", "surveyor", "inspect", "sound"),
    **_step("DeepResearch", "deep_research", {"input": "kelp market"}, "Report"),
    **_step("Mcp", "tide", {}, "1.2 m"),
    **_step("MicrosoftFabric", "fabric_dataagent", {"input": "calls in May"}, "118"),
    **_step("Sharepoint", "sharepoint_grounding", {"input": "drill"}, "Drill.docx"),
    "RequiredFunctionToolCall/waits": [call("roster")],
    "RequiredComputerUseToolCall/waits": [call("computer", {"action": {"type": "screenshot"}})],
    "RequiredMcpToolCall/asks": [hosted("tide", awaited=False)],
    "AgentsToolOutput/answer": [out("Ines")],
    "AgentsToolOutput/no id, as the type allows": [out("Ines")],
    "AgentsComputerToolOutput/screenshot": [out("", "computer", media=[(None, None, None, "assistant-9")])],
    "AgentsComputerToolOutput/no id, as the type allows": [
        out("", "computer", media=[(None, None, "https://cdn.example/s9.png", None)])
    ],
    "AgentsToolApproval/approved": [approval("approved")],
}

_BEDROCK: dict[str, list[Expected]] = {
    "ToolUse/client tool": [call("rail_times", {"from": "Lyon", "to": "Turin"})],
    "ToolUse/server tool": [hosted("nova_grounding", {"query": "rail strike"})],
    "ToolResult/json and text": [out('{"next":"14:05"}\nplatform 3')],
    "ToolResult/server tool": [hosted_out("no strike announced")],
    "ToolResult/failed, empty": [out(error=True)],
}

EXPECTED: dict[str, dict[str, list[Expected]]] = {
    "anthropic": _ANTHROPIC,
    "gemini": _GEMINI,
    "azure-foundry": _FOUNDRY,
    "bedrock": _BEDROCK,
}
