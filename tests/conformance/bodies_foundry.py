"""Bodies for Azure AI Foundry: each row breaks one rule."""

from __future__ import annotations

from tests.bodies import Body
from tests.conformance import bodies_responses as r
from tests.conformance.case import Case

ENTROPY = "0123456789abcdef00" + "a" * 32
AGENT: Body = {"type": "agent_reference", "name": "a"}
SAYS: Body = {
    "type": "message",
    "role": "assistant",
    "content": [{"type": "output_text", "text": "a", "annotations": []}],
}
TOOL: Body = {"type": "function", "name": "f", "parameters": {"type": "object"}}


def make_id(prefix: str, number: int = 0) -> str:
    """An id as the service makes them."""
    return f"{prefix}_{number:x}{ENTROPY[1:]}"


def thinks(number: int = 0, **more: object) -> Body:
    return {"type": "reasoning", "id": make_id("rs", number), "summary": [], **more}


def sealed(number: int = 0) -> Body:
    return thinks(number, encrypted_content="gAAAAx")


def message(*parts: object, role: str = "user") -> Body:
    return {"type": "message", "role": role, "content": list(parts)}


def mcp(number: int = 0, **more: object) -> Body:
    label: Body = {"server_label": "s", "name": "f", "arguments": "{}"}
    return {"type": "mcp_call", "id": make_id("mcp", number), **label, **more}


body, call, result, without, USER = r.body, r.call, r.result, r.without, r.USER
OK = body(call(), result(), **r.APART)
SAID_AGAIN: Body = {**SAYS, "id": make_id("msg", 1)}
CALLED, CALLED_AGAIN = call(id=make_id("fc")), call("call_2", id=make_id("fc", 1))
SAID: Body = {**SAYS, "id": make_id("msg")}
REPLY = (thinks(), SAID)
CASES = (
    Case(
        "AZF-01",
        "tools beside an agent",
        body(agent_reference=AGENT, tools=[]),
        body(agent_reference=AGENT),
        ("tools",),
    ),
    Case("AZF-02", "agent", body(agent=AGENT), body(agent_reference=AGENT), ("agent",)),
    Case(
        "AZF-03",
        "status is null",
        body(call(status=None), result()),
        body(call(status="completed"), result()),
        ("input[1].status",),
    ),
    Case("AZF-03", "status of an output is null", body(call(), result(status=None)), OK, ("input[2].status",)),
    Case("AZF-03", "a status that is none", body(call(status="done"), result()), OK, ("input[1].status",)),
    Case("AZF-03", "no name", body(without(call(), "name"), result()), OK, ("input[1].name",)),
    Case("AZF-03", "no call_id", body(call(), result(), without(call(), "call_id")), OK, ("input[3].call_id",)),
    Case("AZF-03", "a call_id that is no text", body(call(), result(), call(1)), OK, ("input[3].call_id",)),
    Case("AZF-03", "no output", body(call(), without(result(), "output")), OK, ("input[2].output",)),
    Case("AZF-03", "an item that is none", body("hi"), OK, ("input[1]",)),
    Case("AZF-03", "input", {"input": 1}, {"input": "q"}, ("input",)),
    Case("AZF-03", "instructions", body(instructions=1), body(instructions=None), ("instructions",)),
    Case("AZF-03", "model is null", body(model=None), body(model="gpt-5.6"), ("model",)),
    Case("AZF-03", "a part of another role", body(message({"type": "audio"})), OK, ("input[1].content[0].type",)),
    Case("AZF-03", "a tool of no type", body(tools=[without(TOOL, "type")]), body(tools=[TOOL]), ("tools[0].type",)),
    Case(
        "AZF-03",
        "a tool without its settings",
        body(tools=[{"type": "bing_grounding"}]),
        body(
            tools=[
                {
                    "type": "bing_grounding",
                    "bing_grounding": {"search_configurations": [{"project_connection_id": "c"}]},
                }
            ]
        ),
        ("tools[0].bing_grounding",),
    ),
    Case(
        "AZF-03",
        "a search with text for arguments",
        body({"type": "tool_search_call", "arguments": "{}"}),
        body({"type": "tool_search_call", "arguments": {}}),
        ("input[1].arguments",),
    ),
    Case("AZF-03", "an agent without its type", body(agent_reference={"name": "a"}), body(), ("agent_reference.type",)),
    Case("AZF-03", "background", body(background=True, store=False), body(background=True), ("background",)),
    Case(
        "AZF-03", "stream_options", body(stream_options={}), body(stream_options={}, stream=True), ("stream_options",)
    ),
    Case("AZF-03", "metadata", body(metadata={"a": "b" * 513}), body(metadata={"a": "b" * 512}), ("metadata.a",)),
    Case("AZF-04", "no type", body(without(SAYS, "type")), body(SAYS), ("input[1].type",)),
    Case(
        "AZF-04",
        "no annotations",
        body(message({"type": "output_text", "text": "x"}, role="assistant")),
        body(SAYS),
        ("input[1].content[0].annotations",),
    ),
    Case(
        "AZF-05",
        "an answer to a call of an MCP server",
        body(mcp(), result(make_id("mcp"))),
        body(mcp(output="r")),
        ("input[2]",),
        model="gpt-4.1",
    ),
    Case(
        "AZF-06",
        "encrypted reasoning of an older exchange",
        body(sealed(1), SAID, USER, sealed(2), SAID_AGAIN),
        body(SAYS, USER, sealed(2), SAID, USER),
        ("input[1]",),
    ),
    Case(
        "AZF-06",
        "encrypted reasoning of an older step",
        body(sealed(1), CALLED, result(), sealed(2), CALLED_AGAIN, result("call_2")),
        body(call(), result(), sealed(2), CALLED_AGAIN, result("call_2")),
        ("input[1]",),
        "risk",
    ),
    Case(
        "AZF-07",
        "an id of another service",
        body(previous_response_id="resp_1"),
        body(previous_response_id=make_id("caresp")),
        ("previous_response_id",),
    ),
    Case(
        "AZF-07",
        "an id of something else",
        body(previous_response_id=make_id("msg")),
        body(previous_response_id="caresp_" + "a" * 48),
        ("previous_response_id",),
    ),
    Case(
        "AZF-07",
        "an item's id of another service",
        body({**thinks(), "id": "rs_1"}, SAID),
        body(*REPLY),
        ("input[1].id",),
        "risk",
    ),
    Case(
        "AZF-08",
        "what only replies hold",
        body({"type": "a2a_preview_call", "call_id": "x", "name": "n", "arguments": "{}", "status": "completed"}),
        OK,
        ("input[1].type",),
    ),
    Case("AZF-08", "a type that is none", body({"type": "agent_message"}), OK, ("input[1].type",)),
    Case("AZF-10", "an object", body(call(arguments={}), result()), OK, ("input[1].arguments",)),
    Case(
        "AZF-10", "an object, of an MCP server", body(mcp(arguments={}), model="gpt-4.1"), OK, ("input[1].arguments",)
    ),
    Case("AZF-11", "no id", body(without(thinks(), "id"), SAYS), body(*REPLY), ("input[1].id",)),
    # The model behind the service.
    Case(
        "OAI-RESP-01",
        "too long",
        body(call(r.LONG), result(r.LONG)),
        body(call(r.LONG[1:]), result(r.LONG[1:])),
        ("input[1].call_id", "input[2].call_id"),
    ),
    Case(
        "OAI-RESP-02",
        "the call's id",
        body(call(id=make_id("cmp")), result(), **r.APART),
        body(call(id=make_id("fc")), result(), **r.APART),
        ("input[1].id",),
    ),
    Case(
        "OAI-RESP-03",
        "the reasoning's id",
        body({**thinks(), "id": make_id("cmp")}, SAID),
        body(*REPLY),
        ("input[1].id",),
    ),
    Case("OAI-RESP-04", "no output", body(call()), OK, ("input[1]",)),
    Case("OAI-RESP-05", "no call", body(result()), OK, ("input[1]",)),
    Case("OAI-RESP-05", "an output before its call", body(result(), call()), OK, ("input[1]",)),
    Case("OAI-RESP-07", "reasoning alone", body(thinks()), body(*REPLY), ("input[1]",)),
    Case("OAI-RESP-07", "a message without its id", body(thinks(), SAYS), body(*REPLY), ("input[1]",)),
    Case("OAI-RESP-08", "a call's id", body(call(id=make_id("fc")), result()), OK, ("input[1].id",), "risk"),
    Case("OAI-RESP-09", "a message's id", body({**SAYS, "id": make_id("msg")}), body(SAYS), ("input[1].id",), "risk"),
    Case("OAI-RESP-10", "nothing is stored", body(*REPLY, store=False), body(*REPLY), ("input[1]",)),
    Case(
        "OAI-RESP-11",
        "a foreign seal",
        body(thinks(encrypted_content="x"), SAID),
        body(*REPLY),
        ("input[1].encrypted_content",),
        "risk",
    ),
    Case(
        "OAI-RESP-13",
        "an id twice",
        body(*REPLY, thinks(), SAID_AGAIN),
        body(*REPLY, thinks(1), SAID_AGAIN),
        ("input[3].id",),
    ),
    Case("OAI-RESP-14", "a role that the schema has", body(message(r.TEXT, role="tool")), OK, ("input[1].role",)),
    Case(
        "OAI-RESP-15",
        "a part of another role",
        body(message({"type": "input_text", "text": "x"}, role="assistant")),
        body(message({"type": "input_text", "text": "x"})),
        ("input[1].content[0].type",),
    ),
    Case(
        "OAI-RESP-16",
        "an image of nowhere",
        body(call(), result(output=[{"type": "input_image"}])),
        body(call(), result(output=[{"type": "input_image", "image_url": "data:image/png;base64,AA=="}])),
        ("input[2].output[0]",),
    ),
    Case("OAI-RESP-17", "a custom call without output", body(r.custom()), OK, ("input[1]",)),
    Case(
        "OAI-RESP-18",
        "no namespace",
        body(call(), result(), tools=[{**r.SPACE, "tools": [TOOL]}]),
        body(call(namespace="crm"), result(), tools=[{**r.SPACE, "tools": [TOOL]}]),
        ("input[1].namespace",),
    ),
    Case(
        "OAI-RESP-19",
        "a name with a blank",
        body(tools=[{**TOOL, "name": "a b"}]),
        body(tools=[TOOL]),
        ("tools[0].name",),
    ),
    Case("OAI-RESP-20", "an output that names no call", body(r.local_result(id="")), body(), ("input[1].call_id",)),
    Case(
        "OAI-RESP-21",
        "an approval that nobody asked for",
        body({"type": "mcp_approval_response", "approval_request_id": make_id("mcpr"), "approve": True}),
        body(
            {**without(mcp(), "type"), "type": "mcp_approval_request", "id": make_id("mcpr")},
            {"type": "mcp_approval_response", "approval_request_id": make_id("mcpr"), "approve": True},
            model="gpt-4.1",
        ),
        ("input[1].approval_request_id",),
    ),
    Case("OAI-RESP-24", "no input", {}, {"previous_response_id": make_id("caresp")}, ("input",)),
    Case("OAI-RESP-24", "messages", body(messages=[]), OK, ("messages",)),
    Case(
        "OAI-RESP-26",
        "too hot",
        body(temperature=2.5, top_p=-0.5),
        body(temperature=2, top_p=0),
        ("temperature", "top_p"),
    ),
    Case("OAI-RESP-25", "two outputs", body(call(), result(), result()), OK, ("input[3].call_id",)),
    Case(
        "OAI-RESP-28",
        "no id",
        body({"type": "compaction", "encrypted_content": "gAAAAx"}),
        body({"type": "compaction", "id": make_id("cmp"), "encrypted_content": "gAAAAx"}),
        ("input[1].id",),
        "risk",
    ),
)
