"""Bodies for DeepSeek: each row breaks one rule, of its own or shared with Chat Completions."""

from __future__ import annotations

from tests.bodies import Body
from tests.bodies.chat import assistant, assistant_calls, call, result, tool
from tests.conformance.bodies_chat import IMAGE, SYSTEM, USER, body
from tests.conformance.case import Case

CHAT, REASONER, R1, V3, V4 = (
    "deepseek-chat",
    "deepseek-reasoner",
    "deepseek-r1-0528",
    "deepseek-v3.2",
    "deepseek-v4-pro",
)
ANSWER = assistant()
THOUGHT: Body = {**ANSWER, "reasoning_content": "t"}
HISTORY = (assistant_calls(), result())
ON: Body = {"type": "enabled"}
OK = body(*HISTORY)


def thinks(*calls: Body, **more: object) -> Body:
    return assistant_calls(*calls, reasoning_content="", **more)


CASES = (
    Case("DS-01", "reasoner", OK, body(thinks(), result()), ("messages[1].reasoning_content",), model=REASONER),
    Case(
        "DS-01",
        "null",
        body(assistant_calls(reasoning_content=None), result()),
        body(*HISTORY, THOUGHT, USER),
        ("messages[1].reasoning_content",),
        model=REASONER,
    ),
    Case("DS-01", "switched on", body(*HISTORY, thinking=ON), OK, ("messages[1].reasoning_content",), model=V3),
    Case("DS-02", "calls", OK, body(thinks(), result()), ("messages[1].reasoning_content",), model=V4),
    Case(
        "DS-02",
        "alias",
        OK,
        body(*HISTORY, thinking={"type": "disabled"}),
        ("messages[1].reasoning_content",),
        model="deepseek-flash",
    ),
    Case("DS-02", "switched on", body(*HISTORY, thinking=ON), OK, ("messages[1].reasoning_content",), model=CHAT),
    Case(
        "DS-02",
        "answer beside calls",
        body(thinks(), result(), ANSWER, USER),
        body(thinks(), result(), THOUGHT, USER),
        ("messages[3].reasoning_content",),
        model=V4,
    ),
    Case(
        "DS-02", "answer alone", body(ANSWER, USER), body(THOUGHT, USER), ("messages[1].reasoning_content",), "risk", V4
    ),
    Case("DS-02", "no model named", OK, body(thinks(), result()), ("messages[1].reasoning_content",), "risk"),
    Case("DS-04", "R1", body(THOUGHT, USER), body(ANSWER, USER), ("messages[1].reasoning_content",), model=R1),
    Case("DS-05", "user too early", body(assistant_calls(), USER), OK, ("messages[1].tool_calls[0]",), model=CHAT),
    Case(
        "DS-05",
        "one of two",
        body(assistant_calls(call("a"), call("b")), result("b")),
        body(assistant_calls(call("a"), call("b")), result("b"), result("a")),
        ("messages[1].tool_calls[0]",),
        model=CHAT,
    ),
    Case("DS-05", "system inside", body(assistant_calls(), SYSTEM, result()), OK, ("messages[2]",), model=CHAT),
    Case("DS-05", "no id", body(assistant_calls(call(None)), USER), OK, ("messages[1].tool_calls[0].id",), model=CHAT),
    Case("DS-06", "no call", body(result()), OK, ("messages[1]",), model=CHAT),
    Case("DS-06", "other id", body(*HISTORY, result("x")), OK, ("messages[3].tool_call_id",), model=CHAT),
    Case(
        "DS-06",
        "no id",
        body(*HISTORY, {"role": "tool", "content": "r"}),
        OK,
        ("messages[3].tool_call_id",),
        model=CHAT,
    ),
    Case("DS-07", "users", body(USER), body(ANSWER, USER), ("messages[1]",), model=R1),
    Case("DS-07", "assistants", body(ANSWER, ANSWER, USER), body(ANSWER, USER), ("messages[2]",), model=R1),
    Case("DS-08", "reasoner", body(ANSWER), body({**ANSWER, "prefix": True}), ("messages[1]",), model=REASONER),
    Case("DS-08", "others", body(ANSWER), body(ANSWER, USER), ("messages[1]",), "risk", CHAT),
    Case("DS-08", "system", body(SYSTEM), body(SYSTEM, USER), ("messages[1]",), "risk", CHAT),
    Case("DS-09", "required", body(tool_choice="required"), body(tool_choice="auto"), ("tool_choice",), model=V4),
    Case(
        "DS-09",
        "named",
        body(tool_choice={"type": "function", "function": {"name": "f"}}),
        body(tool_choice="none"),
        ("tool_choice",),
        model=REASONER,
    ),
    Case(
        "DS-09",
        "switched off",
        body(tool_choice="required"),
        body(tool_choice="required", thinking={"type": "disabled"}),
        ("tool_choice",),
        model=V4,
    ),
    Case(
        "DS-09",
        "no model named",
        body(tool_choice="required"),
        body(tool_choice="required", model=CHAT),
        ("tool_choice",),
        "risk",
    ),
    Case("DS-10", "declared", body(tools=[tool("a.b")]), body(tools=[tool("a_b")]), ("tools[0].function.name",)),
    Case(
        "DS-10",
        "called",
        body(assistant_calls(call(name="a b")), result()),
        OK,
        ("messages[1].tool_calls[0].function.name",),
        model=CHAT,
    ),
    Case("DS-10", "too long", body(tools=[tool("n" * 65)]), body(tools=[tool("n" * 64)]), ("tools[0].function.name",)),
    Case("OAI-CHAT-05", "shared", body(*HISTORY, result()), OK, ("messages[3].tool_call_id",), "risk", CHAT),
    Case(
        "OAI-CHAT-06",
        "one id in two turns",
        body(*HISTORY, *HISTORY),
        OK,
        ("messages[3].tool_calls[0].id",),
        "risk",
        CHAT,
    ),
    Case(
        "OAI-CHAT-06",
        "shared",
        body(assistant_calls(call("a"), call("a")), result("a")),
        OK,
        ("messages[1].tool_calls[1].id",),
        "risk",
        CHAT,
    ),
    Case(
        "OAI-CHAT-07",
        "shared",
        body({**ANSWER, "tool_calls": []}, USER),
        body(ANSWER, USER),
        ("messages[1].tool_calls",),
        model=CHAT,
    ),
    Case(
        "OAI-CHAT-09",
        "shared",
        body(assistant_calls(call(name="")), result()),
        OK,
        ("messages[1].tool_calls[0].function.name",),
        model=CHAT,
    ),
    Case(
        "OAI-CHAT-10",
        "shared",
        body(assistant_calls(call(arguments={})), result()),
        OK,
        ("messages[1].tool_calls[0].function.arguments",),
        model=CHAT,
    ),
    Case(
        "OAI-CHAT-11",
        "assistant",
        body({"role": "assistant", "content": None}, USER),
        OK,
        ("messages[1].content",),
        model=CHAT,
    ),
    Case(
        "OAI-CHAT-11", "tool", body(assistant_calls(), result(content=None)), OK, ("messages[2].content",), model=CHAT
    ),
    Case(
        "OAI-CHAT-12",
        "shared",
        body(assistant_calls(), result(content=[IMAGE])),
        OK,
        ("messages[2].content[0]",),
        model=CHAT,
    ),
    Case(
        "OAI-CHAT-13",
        "shared",
        body(assistant_calls(), result(is_error=True)),
        OK,
        ("messages[2].is_error",),
        "risk",
        CHAT,
    ),
    Case("OAI-CHAT-16", "none", body(tools=[]), body(tools=[tool()]), ("tools",)),
    Case(
        "OAI-CHAT-16",
        "129",
        body(tools=[tool(f"f{n}") for n in range(129)]),
        body(tools=[tool(f"f{n}") for n in range(128)]),
        ("tools",),
    ),
    Case(
        "OAI-CHAT-21",
        "free text",
        body(tools=[{"type": "custom", "custom": {"name": "f"}}]),
        body(tools=[tool()]),
        ("tools[0].type",),
    ),
    Case(
        "OAI-CHAT-21",
        "no type",
        body(assistant_calls({"id": "call_1", "function": {"name": "f", "arguments": "{}"}}), result()),
        OK,
        ("messages[1].tool_calls[0].type",),
        "risk",
        CHAT,
    ),
)
