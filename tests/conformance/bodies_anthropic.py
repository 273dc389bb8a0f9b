"""Bodies for Anthropic Messages: each row breaks one rule."""

from __future__ import annotations

from typing import Any

from tests.bodies import Body
from tests.bodies.anthropic import assistant, call, result, text, tool, user
from tests.conformance.case import ENVELOPE, Case

TOOL = tool()
TEXT = text()
IMAGE: Body = {"type": "image", "source": {"type": "url", "url": "https://example.com/a.png"}}
SIGNED: Body = {"type": "thinking", "thinking": "x", "signature": "EqQBCgIYAhIM"}
Q: Body = {"role": "user", "content": "q"}
A: Body = {"role": "assistant", "content": "a"}


def server(call_id: object = "srvtoolu_1") -> Body:
    return {"type": "server_tool_use", "id": call_id, "name": "web_search", "input": {}}


def found(*entries: Body, call_id: object = "srvtoolu_1") -> Body:
    return {"type": "web_search_tool_result", "tool_use_id": call_id, "content": list(entries)}


def mcp(call_id: str = "mcptoolu_1") -> Body:
    return {"type": "mcp_tool_use", "id": call_id, "name": "f", "server_name": "s", "input": {}}


def body(*messages: Body, **more: object) -> Body:
    return {"messages": [Q, *messages], "tools": [TOOL], **more}


def declares(**fields: Any) -> Body:
    return {"messages": [Q], "tools": [tool(**fields)]}


HIT: Body = {"type": "web_search_result", "title": "t", "url": "u", "encrypted_content": "Eo8C"}
TOOL_REFERENCE: Body = {"type": "tool_reference", "tool_name": "f"}
NO_SEAL = {key: value for key, value in HIT.items() if key != "encrypted_content"}
MCP_FOUND: Body = {"type": "mcp_tool_result", "tool_use_id": "mcptoolu_1", "content": "r"}
ON: Body = {"type": "enabled", "budget_tokens": 1024}
OLD = "claude-sonnet-4-5-20250929"
NEW = "claude-opus-4-6"
OK = body(assistant(call()), user(result()))
ON_DEMAND: Body = {"compaction": {"type": "summarize"}}


def compaction(content: object = "So far.", signature: object = "EqQBCgIYAhIM", **fields: object) -> Body:
    return {"type": "compaction", "content": content, "signature": signature, **fields}


def summary(content: object = "So far.") -> Body:
    """A block made at a threshold."""
    return {"type": "compaction", "content": content}


def edit(**fields: object) -> Body:
    return {"context_management": {"edits": [{"type": "compact_20260112", **fields}]}}


def trigger(tokens: object) -> Body:
    return edit(trigger={"type": "input_tokens", "value": tokens})


# First in place of the messages that it summarizes, of the user or of the assistant.
SUMMARIZED: Body = {"messages": [assistant(compaction()), A, Q], "tools": [TOOL]}
OPEN: Body = {"messages": [Q, assistant(call())], "tools": [TOOL]}

CASES = (
    Case(
        "ANT-01",
        "Kimi id",
        body(assistant(call("functions.f:0")), user(result("functions.f:0"))),
        body(assistant(call("call_any-1")), user(result("call_any-1"))),
        ("messages[1].content[0].id", "messages[2].content[0].tool_use_id"),
    ),
    Case("ANT-01", "a number", body(assistant(call(1))), OK, ("messages[1].content[0].id",)),
    Case(
        "ANT-01",
        "line break",
        body(assistant(call("a\n")), user(result("a\n"))),
        OK,
        ("messages[1].content[0].id", "messages[2].content[0].tool_use_id"),
    ),
    Case(
        "ANT-01",
        "no tool_use_id",
        body(assistant(call()), user(result(), {"type": "tool_result", "content": "r"})),
        OK,
        ("messages[2].content[1].tool_use_id",),
    ),
    Case(
        "ANT-02",
        "client id",
        body(assistant(server("toolu_1"), found(HIT, call_id="toolu_1"), TEXT), Q),
        body(assistant(server(), found(HIT), TEXT), Q),
        ("messages[1].content[0].id",),
    ),
    Case(
        "ANT-03",
        "in a later turn",
        body(assistant(call()), user(result()), assistant(call()), user(result())),
        body(assistant(call()), user(result()), assistant(call("toolu_2")), user(result("toolu_2"))),
        ("messages[3].content[0].id",),
        "risk",
    ),
    Case(
        "ANT-03",
        "in two messages of one turn",
        body(assistant(call()), assistant(call()), user(result())),
        body(assistant(call()), assistant(call("toolu_2")), user(result(), result("toolu_2"))),
        ("messages[2].content[0].id",),
    ),
    Case("ANT-04", "user text", body(assistant(call()), Q), OK, ("messages[1].content[0]",)),
    Case("ANT-04", "at the end", body(assistant(call())), OK, ("messages[1].content[0]",)),
    Case(
        "ANT-04",
        "one of two",
        body(assistant(call("a"), call("b")), user(result("b"))),
        body(assistant(call("a"), call("b")), user(result("b")), user(result("a"), TEXT)),
        ("messages[1].content[0]",),
    ),
    Case(
        "ANT-04",
        "text behind it (ANT-40)",
        body(assistant(call(), TEXT), Q),
        body(assistant(call(), TEXT), user(result())),
        ("messages[1].content[0]",),
    ),
    Case("ANT-04", "in a user message", body(user(call())), OK, ("messages[1].content[0]",)),
    Case(
        "ANT-05",
        "text first",
        body(assistant(call()), user(TEXT, result())),
        body(assistant(call()), user(result(), TEXT)),
        ("messages[2].content[1]",),
    ),
    Case(
        "ANT-05",
        "text in the message before (ANT-21)",
        body(assistant(call("a"), call("b")), user(result("a"), TEXT), user(result("b"))),
        body(assistant(call("a"), call("b")), user(result("a")), user(result("b"), TEXT), Q),
        ("messages[3].content[0]",),
    ),
    Case("ANT-07", "first message", {"messages": [user(result())], "tools": [TOOL]}, OK, ("messages[0].content[0]",)),
    Case(
        "ANT-07",
        "of an older turn",
        body(assistant(call()), user(result()), A, user(result())),
        body(assistant(call()), user(result()), A, Q),
        ("messages[4].content[0]",),
    ),
    Case("ANT-07", "in an assistant message", body(assistant(result(), TEXT), Q), OK, ("messages[1].content[0]",)),
    Case("ANT-08", "twice", body(assistant(call()), user(result(), result())), OK, ("messages[2].content[1]",)),
    Case(
        "ANT-09",
        "no call",
        body(assistant(found(HIT), TEXT), Q),
        body(assistant(server(), found(HIT), TEXT), Q),
        ("messages[1].content[0]",),
    ),
    Case(
        "ANT-09",
        "before its call",
        body(assistant(found(HIT), server(), TEXT), Q),
        body(assistant(server()), assistant(found(HIT), TEXT), Q),
        ("messages[1].content[0]",),
    ),
    Case(
        "ANT-09",
        "of an older exchange",
        body(assistant(server(), TEXT), Q, assistant(found(HIT), TEXT), Q),
        body(assistant(server(), call()), user(result()), assistant(found(HIT), TEXT), Q),
        ("messages[3].content[0]",),
    ),
    Case("ANT-09", "the user's", body(assistant(server(), TEXT), user(found(HIT))), OK, ("messages[2].content[0]",)),
    Case(
        "ANT-10",
        "answered by the client",
        body(assistant(mcp()), user(result("mcptoolu_1"))),
        body(assistant(mcp(), MCP_FOUND, TEXT), Q),
        ("messages[2].content[0]",),
    ),
    Case("ANT-10", "no call", body(assistant(MCP_FOUND, TEXT), Q), OK, ("messages[1].content[0]",)),
    Case("ANT-10", "the user's", body(user(mcp())), OK, ("messages[1].content[0]",)),
    Case(
        "ANT-11", "a string", body(assistant(call(input="{}")), user(result())), OK, ("messages[1].content[0].input",)
    ),
    Case(
        "ANT-12",
        "tool_use",
        body(assistant(call(text="x")), user(result())),
        body(assistant(call(caller={"type": "direct"})), user(result())),
        ("messages[1].content[0].text",),
    ),
    Case(
        "ANT-12",
        "inside a result",
        body(assistant(call()), user(result(content=[{**TEXT, "annotations": []}]))),
        body(assistant(call()), user(result(content=[{**TEXT, "citations": []}]))),
        ("messages[2].content[0].content[0].annotations",),
    ),
    Case(
        "ANT-12",
        "system",
        body(system=[{**TEXT, "id": "x"}]),
        body(system=[{**TEXT, "cache_control": {"type": "ephemeral"}}]),
        ("system[0].id",),
    ),
    Case("ANT-12", "no type", body(user({"text": "t"})), body(user({"type": "new"})), ("messages[1].content[0].type",)),
    Case("ANT-12", "message", body({**Q, "name": "n"}), body(Q), ("messages[1].name",), "risk"),
    Case(
        "ANT-13",
        "beside a call",
        body(assistant({"type": "text", "text": ""}, call()), user(result())),
        body(assistant({"type": "text", "text": " "}, call()), user(result())),
        ("messages[1].content[0].text",),
    ),
    Case(
        "ANT-13",
        "inside a result",
        body(assistant(call()), user(result(content=[{"type": "text", "text": ""}]))),
        body(assistant(call()), user(result(content=""))),
        ("messages[2].content[0].content[0].text",),
    ),
    Case(
        "ANT-14",
        "blocks",
        body(user({"type": "text", "text": " "}, {"type": "text", "text": "\n"})),
        body(user({"type": "text", "text": " "}, TEXT)),
        ("messages[1].content",),
    ),
    Case("ANT-14", "string", body({"role": "user", "content": "\t"}), body(Q), ("messages[1].content",)),
    Case("ANT-15", "string", body({"role": "user", "content": ""}), body(Q), ("messages[1].content",)),
    Case("ANT-15", "list", body(user()), body(Q), ("messages[1].content",)),
    Case("ANT-15", "missing", body({"role": "user"}), body(Q), ("messages[1].content",)),
    Case("ANT-16", "list", body(assistant(), Q), body(A, Q), ("messages[1].content",), "risk"),
    Case("ANT-16", "null", body({"role": "assistant", "content": None}, Q), body(A, Q), ("messages[1].content",)),
    Case(
        "ANT-18",
        "a call inside",
        body(assistant(call()), user(result(content=[call("x")]))),
        body(assistant(call()), user(result(content=[IMAGE]))),
        ("messages[2].content[0].content[0]",),
    ),
    Case(
        "ANT-18",
        "an error with an image",
        body(assistant(call()), user(result(content=[TEXT, IMAGE], is_error=True))),
        body(assistant(call()), user(result(content=[TEXT], is_error=True))),
        ("messages[2].content[0].content[1]",),
    ),
    Case(
        "ANT-18",
        "an error with a tool_reference",
        body(assistant(call()), user(result(content=[TOOL_REFERENCE], is_error=True))),
        body(assistant(call()), user(result(content=[TOOL_REFERENCE], is_error=False))),
        ("messages[2].content[0].content[0]",),
    ),
    Case(
        "ANT-18",
        "an error without content",
        body(assistant(call()), user(result(content="", is_error=True))),
        body(assistant(call()), user(result(content="", is_error=False))),
        ("messages[2].content[0].content",),
    ),
    Case(
        "ANT-18",
        "an error with an empty list",
        body(assistant(call()), user(result(content=[], is_error=True))),
        body(assistant(call()), user(result(content="e", is_error=True))),
        ("messages[2].content[0].content",),
    ),
    Case(
        "ANT-09",
        "a server tool without a result",
        body(assistant(server(), TEXT), Q, A, Q),
        body(assistant(server(), found(HIT), TEXT), Q, A, Q),
        ("messages[1].content[0]",),
    ),
    Case(
        "ANT-09",
        "text beside the results while a server tool is open",
        body(assistant(server(), call()), user(result(), TEXT)),
        body(assistant(server(), call()), user(result())),
        ("messages[1].content[0]",),
    ),
    Case(
        "ANT-09",
        "the second of two",
        body(assistant(server(), server("srvtoolu_2"), found(HIT), TEXT), Q),
        body(assistant(server(), server("srvtoolu_2"), found(HIT), found(HIT, call_id="srvtoolu_2"), TEXT), Q),
        ("messages[1].content[1]",),
    ),
    *(
        Case(
            "ANT-41",
            f"the parameter {name[:20]!r}",
            declares(input_schema={"type": "object", "properties": {"a": {}, name: {"type": "string"}}}),
            declares(input_schema={"type": "object", "properties": {"a": {"properties": {name: {}}}, "a.b-c_1": {}}}),
            ("tools[0].input_schema.properties",),
        )
        for name in ("$top", "filter[name]", "Account Number", "x" * 65, "", "a\n", "größe")
    ),
    Case(
        "ANT-18",
        "an object",
        body(assistant(call()), user(result(content={"a": 1}))),
        body(assistant(call()), user({"type": "tool_result", "tool_use_id": "toolu_1"})),
        ("messages[2].content[0].content",),
    ),
    Case(
        "ANT-18",
        "is_error a string",
        body(assistant(call()), user(result(is_error="true"))),
        OK,
        ("messages[2].content[0].is_error",),
    ),
    Case("ANT-19", "block", body(system=[{"type": "text", "text": ""}]), body(system=[TEXT]), ("system[0].text",)),
    Case("ANT-19", "blank", body(system=" "), body(system=""), ("system",)),
    Case("ANT-19", "a number", body(system=1), body(system=[]), ("system",)),
    Case("ANT-20", "system", body({"role": "system", "content": "x"}), OK, ("messages[1].role",), "risk"),
    Case("ANT-20", "tool", body({"role": "tool", "content": "x"}), OK, ("messages[1].role",)),
    Case("ANT-22", "newer", body(A), body(A, Q), ("messages[1]",), model=NEW),
    Case("ANT-22", "Fable", body(A), body(A, Q), ("messages[1]",), model="claude-fable-5"),
    Case("ANT-22", "unknown model", body(A), body(assistant(TEXT, server())), ("messages[1]",)),
    Case("ANT-22", "thinking on", body(A, thinking=ON), body(A), ("messages[1]",), model=OLD),
    Case("ANT-22", "empty", body(assistant()), body(A, Q), ("messages[1]",), "risk"),
    Case(
        "ANT-23",
        "string",
        body({"role": "assistant", "content": "title: "}),
        body({"role": "assistant", "content": "title:"}),
        ("messages[1].content",),
        model=OLD,
    ),
    Case(
        "ANT-24",
        "current loop",
        body(assistant(call()), user(result()), thinking=ON),
        body(assistant(SIGNED, call()), user(result()), assistant(call("b")), user(result("b")), thinking=ON),
        ("messages[1].content[0]",),
    ),
    Case(
        "ANT-24",
        "second loop",
        body(assistant(SIGNED, call()), user(result()), A, Q, assistant(call("b")), user(result("b")), thinking=ON),
        body(assistant(call()), user(result()), A, Q, thinking=ON),
        ("messages[5].content[0]",),
    ),
    Case(
        "ANT-24",
        "text before the call",
        body(assistant(TEXT, call()), user(result()), thinking=ON),
        body(assistant(TEXT, call()), user(result()), thinking={"type": "adaptive"}),
        ("messages[1].content[0]",),
    ),
    Case(
        "ANT-25", "the user's", body(user(SIGNED, TEXT)), body(assistant(SIGNED, TEXT), Q), ("messages[1].content[0]",)
    ),
    Case(
        "ANT-25",
        "no text",
        body(assistant({**SIGNED, "thinking": None}, TEXT), Q),
        body(assistant({**SIGNED, "thinking": ""}, TEXT), Q),
        ("messages[1].content[0].thinking",),
    ),
    Case(
        "ANT-26",
        "missing",
        body(assistant({"type": "thinking", "thinking": "x"}, TEXT), Q),
        body(assistant(SIGNED, TEXT), Q),
        ("messages[1].content[0].signature",),
    ),
    Case(
        "ANT-26",
        "empty",
        body(assistant({**SIGNED, "signature": ""}, TEXT), Q),
        body(assistant(SIGNED, TEXT), Q),
        ("messages[1].content[0].signature",),
    ),
    Case(
        "ANT-26",
        "not base64",
        body(assistant({**SIGNED, "signature": "a-b_"}, TEXT), Q),
        body(assistant({**SIGNED, "signature": "a+b/cA=="}, TEXT), Q),
        ("messages[1].content[0].signature",),
        "risk",
    ),
    Case(
        "ANT-26",
        "an envelope",
        body(assistant({**SIGNED, "signature": ENVELOPE}, TEXT), Q),
        body(assistant(SIGNED, TEXT), Q),
        ("messages[1].content[0].signature",),
    ),
    Case(
        "ANT-27",
        "left out",
        body(assistant(SIGNED, TEXT)),
        body(assistant(SIGNED, TEXT), Q),
        ("messages[1].content[0]",),
        model=OLD,
    ),
    Case(
        "ANT-27",
        "paused on a newer model",
        body(assistant(SIGNED, server())),
        body(assistant(SIGNED, server()), thinking={"type": "adaptive"}),
        ("messages[1].content[0]",),
        "risk",
        NEW,
    ),
    Case(
        "ANT-30",
        "any",
        body(thinking=ON, tool_choice={"type": "any"}),
        body(thinking=ON, tool_choice={"type": "auto"}),
        ("tool_choice.type",),
    ),
    Case(
        "ANT-30",
        "adaptive",
        body(thinking={"type": "adaptive"}, tool_choice={"type": "tool", "name": "f"}),
        body(tool_choice={"type": "tool", "name": "f"}),
        ("tool_choice.type",),
        "risk",
    ),
    Case(
        "ANT-30",
        "a budget, Opus 4.6",
        body(thinking=ON, tool_choice={"type": "tool", "name": "f"}),
        body(thinking={"type": "adaptive"}, tool_choice={"type": "tool", "name": "f"}),
        ("tool_choice.type",),
        model="claude-opus-4-6",
    ),
    Case(
        "ANT-31",
        "no data",
        body(assistant({"type": "redacted_thinking"}, TEXT), Q),
        body(assistant({"type": "redacted_thinking", "data": "EmwK"}, SIGNED, TEXT), Q),
        ("messages[1].content[0].data",),
    ),
    Case(
        "ANT-31",
        "an envelope",
        body(assistant({"type": "redacted_thinking", "data": ENVELOPE}, TEXT), Q),
        body(assistant({"type": "redacted_thinking", "data": "EmwK"}, TEXT), Q),
        ("messages[1].content[0].data",),
    ),
    Case(
        "ANT-32",
        "empty",
        body(assistant(server(), found({**HIT, "encrypted_content": ""}), TEXT), Q),
        body(assistant(server(), found(HIT), TEXT), Q),
        ("messages[1].content[1].content[0].encrypted_content",),
    ),
    Case(
        "ANT-33",
        "missing",
        body(assistant(server(), found(HIT, NO_SEAL), TEXT), Q),
        body(assistant(server(), found(HIT), TEXT), Q),
        ("messages[1].content[1].content[1].encrypted_content",),
    ),
    Case("ANT-34", "a dot", declares(name="a.b"), declares(name="a_b"), ("tools[0].name",)),
    Case("ANT-34", "129", declares(name="n" * 129), declares(name="n" * 64), ("tools[0].name",)),
    Case("ANT-34", "65", declares(name="n" * 65), declares(name="n" * 64), ("tools[0].name",), "risk"),
    Case(
        "ANT-34",
        "replayed",
        body(assistant(call(name="a.b")), user(result())),
        body(assistant(call(name="not_declared")), user(result())),
        ("messages[1].content[0].name",),
    ),
    Case(
        "ANT-35",
        "twice",
        {"messages": [Q], "tools": [TOOL, TOOL]},
        {"messages": [Q], "tools": [TOOL, {**TOOL, "name": "g"}]},
        ("tools[1].name",),
    ),
    Case(
        "ANT-36", "schema type", declares(input_schema={"type": "array"}), declares(), ("tools[0].input_schema.type",)
    ),
    Case(
        "ANT-36",
        "no schema",
        {"messages": [Q], "tools": [{"name": "f"}]},
        {"messages": [Q], "tools": [{"type": "web_search_20250305", "name": "web_search"}]},
        ("tools[0].input_schema",),
    ),
    Case("ANT-36", "no tools", {**OK, "tools": []}, OK, ("tools",), "risk"),
    Case("ANT-36", "a number", {"messages": [Q], "tools": 1}, {"messages": [Q], "tools": None}, ("tools",)),
    Case(
        "ANT-43",
        "two signed",
        {"messages": [assistant(compaction(), compaction("And so on.")), Q]},
        {"messages": [user(compaction(), TEXT)]},
        ("messages[0].content[0]",),
    ),
    Case(
        "ANT-43",
        "a signed one behind one of a threshold",
        body(assistant(summary(), TEXT), user(compaction(), TEXT)),
        # Of those made at thresholds the last counts.
        body(assistant(summary(), TEXT), Q, assistant(summary("And so on."), TEXT), Q),
        ("messages[1].content[0]",),
    ),
    Case(
        "ANT-43",
        "three",
        {"messages": [assistant(compaction()), assistant(compaction(), summary(None)), assistant(compaction()), Q]},
        {"messages": [assistant(compaction(), summary(None)), Q]},
        ("messages[0].content[0]", "messages[1].content[0]"),
    ),
    Case(
        "ANT-44", "behind what it summarizes", body(assistant(compaction()), Q), SUMMARIZED, ("messages[1].content[0]",)
    ),
    Case(
        "ANT-44",
        "behind a text",
        {"messages": [assistant(TEXT, compaction()), Q]},
        # A block that was made at a threshold follows the messages.
        body(assistant(TEXT, summary()), Q),
        ("messages[0].content[1]",),
    ),
    Case(
        "ANT-45",
        "an envelope",
        {"messages": [assistant(compaction(signature=ENVELOPE)), Q]},
        SUMMARIZED,
        ("messages[0].content[0].signature",),
    ),
    Case(
        "ANT-45",
        "not base64",
        {"messages": [assistant(compaction(signature="hi!")), Q]},
        SUMMARIZED,
        ("messages[0].content[0].signature",),
        "risk",
    ),
    Case(
        "ANT-46",
        "empty",
        body(assistant(summary("")), Q),
        body(assistant(summary(None)), Q),
        ("messages[1].content[0].content",),
    ),
    Case(
        "ANT-46",
        "a list and a number",
        body(assistant({**summary([TEXT]), "encrypted_content": 5}), Q),
        # A compaction that failed counts for nothing, wherever it stands.
        body(assistant(compaction(None, None), TEXT), Q, assistant(compaction(None)), Q),
        ("messages[1].content[0].content", "messages[1].content[0].encrypted_content"),
    ),
    Case(
        "ANT-46",
        "tool_changes",
        {"messages": [assistant(compaction(tool_changes="none")), Q]},
        {"messages": [assistant(compaction(tool_changes=[])), Q]},
        ("messages[0].content[0].tool_changes",),
    ),
    Case(
        "ANT-47",
        "stop sequences and a format",
        body(**ON_DEMAND, stop_sequences=["x"], output_config={"format": {"type": "json_schema", "schema": {}}}),
        body(A, **ON_DEMAND, context_management=None, stop_sequences=[], output_config={"effort": "high"}),
        ("stop_sequences", "output_config.format"),
    ),
    Case(
        "ANT-47",
        "a forced tool",
        body(**ON_DEMAND, tool_choice={"type": "any"}),
        body(**ON_DEMAND, tool_choice={"type": "auto"}),
        ("tool_choice.type",),
    ),
    Case(
        "ANT-47",
        "the rest of a task budget",
        {**SUMMARIZED, "output_config": {"task_budget": {"type": "tokens", "total": 9, "remaining": 5}}},
        {**SUMMARIZED, "output_config": {"task_budget": {"type": "tokens", "total": 9}}},
        ("output_config.task_budget.remaining",),
    ),
    Case(
        "ANT-48",
        "a server tool",
        body(assistant(TEXT, server()), **ON_DEMAND),
        body(assistant(TEXT, server(), found(HIT)), **ON_DEMAND),
        ("messages[1].content[1]",),
    ),
    Case(
        "ANT-48",
        "two calls",
        {**OPEN, **ON_DEMAND, "messages": [Q, assistant(call(), call("b"))]},
        {**OPEN, **ON_DEMAND, "messages": [*OPEN["messages"], user(result())]},
        ("messages[1].content[0]", "messages[1].content[1]"),
    ),
    Case(
        "ANT-49",
        "a failed compaction alone",
        {"messages": [assistant(summary(None))], **ON_DEMAND},
        {"messages": [assistant(compaction())], **ON_DEMAND},
        ("messages",),
    ),
    Case(
        "ANT-52",
        "49,999",
        body(**trigger(49_999)),
        body(A, Q, **trigger(50_000)),
        ("context_management.edits[0].trigger.value",),
    ),
    Case(
        "ANT-52",
        "with a signed block",
        {**SUMMARIZED, **edit()},
        body(assistant(summary()), Q, **edit(pause_after_compaction=True, trigger=None)),
        ("context_management.edits[0]",),
        "risk",
    ),
    # Not a prefill: the server goes on after the pause.
    Case(
        "ANT-22",
        "a text after the summary",
        body(assistant(summary(), TEXT), **edit()),
        body(assistant(summary()), **edit()),
        ("messages[1]",),
    ),
    Case(
        "ANT-24",
        "a summary and a call",
        body(assistant(summary(), call()), user(result()), thinking=ON),
        body(assistant(summary(), SIGNED, call()), user(result()), thinking=ON),
        ("messages[1].content[1]",),
    ),
)
