"""Bodies for Kimi: each row breaks one rule, of its own or shared with Chat Completions."""

from __future__ import annotations

from tests.bodies import Body
from tests.bodies.chat import assistant_calls, call, result, tool
from tests.conformance.bodies_chat import IMAGE, SYSTEM, TEXT, USER, body
from tests.conformance.case import Case

F0 = "functions.f:0"
F1 = "functions.f:1"
HISTORY = (assistant_calls(call(F0)), result(F0))
OK = body(*HISTORY)
NAMELESS: Body = {"role": "tool", "content": "r"}
K2 = "kimi-k2-0905-preview"
K3 = "kimi-k3"


def thinks(*calls: Body) -> Body:
    return assistant_calls(*calls, reasoning_content=".")


CASES = (
    Case("KIM-01", "no id", body(assistant_calls(call(""))), OK, ("messages[1].tool_calls[0].id",)),
    Case(
        "KIM-01",
        "foreign",
        body(assistant_calls(call("call_abc")), result("call_abc")),
        body(assistant_calls(call("f:0"), call(F1)), result("f:0"), result(F1)),
        ("messages[1].tool_calls[0].id",),
        "risk",
        K2,
    ),
    Case(
        "KIM-01",
        "of another tool",
        body(assistant_calls(call("functions.g:0")), result("functions.g:0")),
        OK,
        ("messages[1].tool_calls[0].id",),
        "risk",
    ),
    Case("KIM-02", "user too early", body(assistant_calls(call(F0)), USER), OK, ("messages[1].tool_calls[0]",)),
    Case("KIM-02", "system inside", body(assistant_calls(call(F0)), SYSTEM, result(F0)), OK, ("messages[2]",)),
    Case(
        "KIM-02",
        "fewer than calls",
        body(thinks(call("a"), call("b")), result("b")),
        body(thinks(call("a"), call("b")), result("a"), result("b")),
        ("messages[1].tool_calls[0]",),
        model=K3,
    ),
    Case(
        "KIM-02",
        "the old form",
        body({"role": "assistant", "content": "a", "function_call": {"name": "f", "arguments": "{}"}}),
        body({"role": "assistant", "content": "a"}),
        ("messages[1].function_call",),
    ),
    Case(
        "OAI-CHAT-21",
        "free text",
        body(tools=[{"type": "custom", "custom": {"name": "f"}}]),
        body(tools=[{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}]),
        ("tools[0].type",),
    ),
    Case("KIM-03", "no call", body(result(F0)), OK, ("messages[1]",)),
    Case("KIM-03", "empty", body(*HISTORY, result("")), OK, ("messages[3].tool_call_id",)),
    Case("KIM-03", "missing", body(*HISTORY, NAMELESS), OK, ("messages[3].tool_call_id",)),
    Case(
        "KIM-03",
        "resolved by order",
        body(thinks(call("a")), result("b")),
        body(thinks(call("a")), result("a")),
        ("messages[2].tool_call_id",),
        model=K3,
    ),
    Case("KIM-03", "the old role", body({"role": "function", "name": "f", "content": "r"}), OK, ("messages[1].role",)),
    Case(
        "KIM-04",
        "thinking model",
        OK,
        body(thinks(call(F0)), result(F0)),
        ("messages[1].reasoning_content",),
        model="kimi-k2-thinking",
    ),
    Case(
        "KIM-04", "K2.5", OK, body(thinks(call(F0)), result(F0)), ("messages[1].reasoning_content",), model="kimi-k2.5"
    ),
    Case(
        "KIM-04",
        "switched on",
        body(*HISTORY, thinking={"type": "enabled"}),
        body(*HISTORY, thinking={"type": "disabled"}),
        ("messages[1].reasoning_content",),
        model=K2,
    ),
    Case(
        "KIM-04",
        "null",
        body(assistant_calls(call(F0), reasoning_content=None), result(F0), model="kimi-k2.5"),
        body(assistant_calls(call(F0), reasoning_content=""), result(F0), model="kimi-k2.5"),
        ("messages[1].reasoning_content",),
    ),
    Case(
        "KIM-05",
        "empty",
        body({"role": "assistant", "content": ""}),
        body(assistant_calls(call(F0), content=""), result(F0)),
        ("messages[1].content",),
    ),
    Case("KIM-05", "null", body({"role": "assistant"}), OK, ("messages[1].content",)),
    Case(
        "KIM-06",
        "beside calls",
        body(assistant_calls(call(F0), content=[{"type": "text", "text": ""}]), result(F0)),
        body(assistant_calls(call(F0), content=[TEXT]), result(F0)),
        ("messages[1].content[0].text",),
    ),
    Case(
        "KIM-08",
        "no call",
        body(NAMELESS),
        body(thinks(call("a")), NAMELESS | {"tool_call_id": "a"}),
        ("messages[1]",),
        model=K3,
    ),
    Case(
        "KIM-08",
        "surplus",
        body(thinks(call("a")), result("a"), NAMELESS),
        body(thinks(call("a"), call("b")), result("a"), result("b")),
        ("messages[3]",),
        model=K3,
    ),
    Case("OAI-CHAT-05", "shared", body(*HISTORY, result(F0)), OK, ("messages[3].tool_call_id",)),
    Case("OAI-CHAT-06", "one id in two turns", body(*HISTORY, *HISTORY), OK, ("messages[3].tool_calls[0].id",), "risk"),
    Case(
        "OAI-CHAT-06",
        "shared",
        body(assistant_calls(call(F0), call(F0)), result(F0)),
        OK,
        ("messages[1].tool_calls[1].id",),
    ),
    Case(
        "OAI-CHAT-07",
        "shared",
        body({"role": "assistant", "content": "a", "tool_calls": []}),
        OK,
        ("messages[1].tool_calls",),
    ),
    Case(
        "OAI-CHAT-08",
        "shared",
        body(tools=[tool("a.b")]),
        body(tools=[tool("a_b"), {"type": "builtin_function", "function": {"name": "$web_search"}}]),
        ("tools[0].function.name",),
    ),
    Case(
        "OAI-CHAT-09",
        "shared",
        body(thinks(call("a", "")), result("a")),
        body(thinks(call("a")), result("a")),
        ("messages[1].tool_calls[0].function.name",),
        model=K3,
    ),
    Case(
        "OAI-CHAT-10",
        "shared",
        body(assistant_calls(call(F0, arguments={})), result(F0)),
        OK,
        ("messages[1].tool_calls[0].function.arguments",),
    ),
    Case("OAI-CHAT-11", "shared", body(assistant_calls(call(F0)), result(F0, None)), OK, ("messages[2].content",)),
    Case(
        "OAI-CHAT-12", "shared", body(assistant_calls(call(F0)), result(F0, [IMAGE])), OK, ("messages[2].content[0]",)
    ),
    Case(
        "OAI-CHAT-13",
        "shared",
        body(assistant_calls(call(F0)), result(F0, is_error=True)),
        OK,
        ("messages[2].is_error",),
        "risk",
    ),
)
