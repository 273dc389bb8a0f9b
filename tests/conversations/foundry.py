"""Azure Foundry: agents with their own tools, items that occur only in replies, ids with a partition."""

from __future__ import annotations

from typing import Any

from tests.bodies import Body
from tests.conversations.build import (
    GONE,
    Case,
    custom_call,
    flat_function,
    function_call,
    item,
    output,
    output_text,
    reasoning,
    responses,
    without_tools,
)

AGENT: Body = {"type": "agent_reference", "name": "harbour-desk", "version": "4"}


def make_id(prefix: str, number: int = 1) -> str:
    """An id as the service makes them: AZF-07."""
    return f"{prefix}_{'0123456789abcdef00'}{number:032}"


def foundry(*items: Any, tools: Any = GONE, model: str | None = None, **more: Any) -> Body:
    return responses(*items, model=model, tools=tools, **more)


def agent(*items: Any, **more: Any) -> Body:
    """A body for an agent, which has its tools by itself."""
    return {**without_tools(foundry(*items)), "agent_reference": AGENT, **more}


def service_call(stem: str, call_id: str, arguments: str, **more: Any) -> Body:
    """A call that the service ran."""
    return {
        "type": f"{stem}_call",
        "id": f"fz_{call_id}",
        "call_id": call_id,
        "arguments": arguments,
        "status": "completed",
        **more,
    }


def service_output(stem: str, call_id: str, given: Any, **more: Any) -> Body:
    return {
        "type": f"{stem}_call_output",
        "id": f"fzo_{call_id}",
        "call_id": call_id,
        "output": given,
        "status": "completed",
        **more,
    }


MEMORY = {
    "memory_item": {
        "kind": "user_profile",
        "memory_id": "mem_3",
        "updated_at": 1773000000,
        "scope": "user_17",
        "content": "Prefers morning slots",
    }
}

CASES = (
    Case(
        "foundry_agent",
        "azure-foundry",
        "clean: an agent by reference, and a call of a function that the client runs",
        agent(
            item("user", "Book a berth."),
            function_call("call_1", "read_file", {"path": "a"}, id=make_id("fc"), status="completed"),
            output("call_1", "free", id=make_id("fco")),
            output_text("Berth 7 is free.", make_id("msg")),
            item("user", "Take it."),
        ),
    ),
    Case(
        "foundry_agent_with_tools",
        "azure-foundry",
        "tools beside the agent (AZF-01), and the agent under its old key, without a type (AZF-02)",
        {"agent": {"name": "harbour-desk"}, **foundry(item("user", "Go."), instructions="Be brief.")},
    ),
    Case(
        "foundry_plain_tools",
        "azure-foundry",
        "clean: no agent, tools of the client's, parallel and free-text calls",
        foundry(
            item("user", "Look at a, and patch it."),
            function_call("call_1", "read_file", {"path": "a"}),
            custom_call("call_2", "apply_patch", "*** Begin Patch"),
            output("call_1", "A"),
            output("call_2", "Done.", "custom_tool_call_output"),
            output_text("Patched.", make_id("msg")),
            item("user", "Thanks."),
            tools=[flat_function(), {"type": "custom", "name": "apply_patch", "description": "Edits files."}],
            model="gpt-5",
        ),
    ),
    Case(
        "foundry_nulls",
        "azure-foundry",
        "what SDKs write down though it says nothing: null is refused (AZF-03), and so are untyped answers (AZF-04)",
        foundry(
            item("user", "Read a."),
            function_call("call_1", "read_file", {"path": "a"}, id=None, status=None, namespace=None),
            output("call_1", "A", id=None, status=None),
            {
                "role": "assistant",
                "status": None,
                "content": [{"type": "output_text", "text": "It says A.", "logprobs": None}],
            },
            item("user", "And?"),
            temperature=None,
        )
        | {"agent_session_id": None},
    ),
    Case(
        "foundry_reasoning",
        "azure-foundry",
        "encrypted reasoning of two turns: none goes back, and with it go the ids (AZF-06, OAI-RESP-08)",
        foundry(
            item("user", "Read a."),
            reasoning(make_id("rs"), summary="I need the file."),
            function_call("call_1", "read_file", {"path": "a"}, id=make_id("fc"), status="completed"),
            output("call_1", "A"),
            output_text("It says A.", make_id("msg")),
            item("user", "And b?"),
            reasoning(make_id("rs", 2), summary="The other one."),
            function_call("call_2", "read_file", {"path": "b"}, id=make_id("fc", 2), status="completed"),
            output("call_2", "B"),
            model="gpt-5",
        ),
    ),
    Case(
        "foundry_server_tools",
        "azure-foundry",
        "what the service's own tools did, sent back: these items stand in replies alone (AZF-08)",
        agent(
            item("user", "Is berth N-14 safe?"),
            service_call("azure_ai_search", "call_1", '{"query": "berth rules"}', agent_reference=AGENT),
            service_output("azure_ai_search", "call_1", {"documents": [{"id": "d1", "title": "Rules"}]}),
            service_call("a2a_preview", "call_2", '{"message": "inspect hull"}', name="surveyor"),
            service_output("a2a_preview", "call_2", "sound", name="surveyor"),
            service_call("openapi", "call_3", '{"id": 7}', name="berths_getBerth"),
            {
                "type": "openapi_call_output",
                "id": "fz_3",
                "call_id": "call_3",
                "name": "berths_getBerth",
                "status": "failed",
            },
            service_call("bing_grounding", "call_4", "not json"),
            output_text("It is.", make_id("msg")),
            item("user", "Thanks."),
        ),
    ),
    Case(
        "foundry_output_only",
        "azure-foundry",
        "what nobody called: an action of a workflow, a link to consent, a captured answer; and a search in memory",
        agent(
            item("user", "Plan the visit."),
            {
                "type": "workflow_action",
                "id": make_id("wfa"),
                "kind": "InvokeAzureAgent",
                "action_id": "act_2",
                "status": "completed",
            },
            {
                "type": "oauth_consent_request",
                "id": "oacr_4",
                "consent_link": "https://login.example/consent?c=1",
                "server_label": "customs",
            },
            {"type": "structured_outputs", "id": "so_2", "output": {"eta": "2026-06-01", "pax": 0}},
            {"type": "memory_search_call", "id": "msc_61", "status": "completed", "results": [MEMORY]},
            {"type": "memory_search_call", "results": [MEMORY]},
            output_text("Planned.", make_id("msg")),
            item("user", "Good."),
        ),
    ),
    Case(
        "foundry_approval",
        "azure-foundry",
        "leave to run a tool of an MCP server, asked for and given (OAI-RESP-21)",
        foundry(
            item("user", "File the manifest."),
            {
                "type": "mcp_approval_request",
                "id": make_id("mcpr"),
                "server_label": "customs",
                "name": "file_manifest",
                "arguments": '{"manifest":"M-204"}',
            },
            {"type": "mcp_approval_response", "approval_request_id": make_id("mcpr"), "approve": True},
            tools=[{"type": "mcp", "server_label": "customs", "server_url": "https://customs.example"}],
        ),
    ),
    Case(
        "foundry_foreign_ids",
        "azure-foundry",
        "ids of OpenAI's where the service has its own (AZF-07): of items, of a hosted call, of the response before",
        foundry(
            item("user", "Search."),
            {
                "type": "web_search_call",
                "id": "ws_1",
                "status": "completed",
                "action": {"type": "search", "query": "berths"},
            },
            function_call("call_1", "read_file", {"path": "a"}, id="fc_1", status="completed"),
            output("call_1", "A", id="fco_1"),
            output_text("Found.", "msg_1"),
            output("call_9", "of another time"),
            item("user", "And?"),
            previous_response_id="resp_1",
        ),
    ),
    Case(
        "foundry_goes_on",
        "azure-foundry",
        "clean: the call lies in a response that the service holds",
        agent(output("call_1", "content of a"), previous_response_id=make_id("caresp")),
    ),
    Case(
        "foundry_objects_for_arguments",
        "azure-foundry",
        "arguments that are no string (AZF-10), a call without an answer, and one that nobody asked for (AZF-05)",
        foundry(
            item("user", "Go."),
            {"type": "function_call", "call_id": "call_1", "name": "read_file", "arguments": {"path": "a"}},
            {"type": "function_call", "call_id": "call_2", "name": "read_file", "arguments": '{"path": "b"}'},
            output("call_1", "A"),
            output("mcp_06b6", "Lost."),
            item("user", "Well?"),
        ),
    ),
)
