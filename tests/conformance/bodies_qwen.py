"""Bodies for Qwen on DashScope: each row breaks one rule, of its own or shared with Chat Completions."""

from __future__ import annotations

from tests.bodies import Body
from tests.bodies.chat import assistant, assistant_calls, call, result, tool
from tests.conformance.bodies_chat import IMAGE, SYSTEM, USER, body
from tests.conformance.case import Case

ANSWER = assistant()
HISTORY = (assistant_calls(), result())
OK = body(*HISTORY)
ARGUMENTS = ("messages[1].tool_calls[0].function.arguments",)


def with_arguments(arguments: object) -> Body:
    return body(assistant_calls(call(arguments=arguments)), result())


CASES = (
    Case("QWEN-01", "user too early", body(assistant_calls(), USER), OK, ("messages[1].tool_calls[0]",)),
    Case(
        "QWEN-01",
        "at the end",
        body(assistant_calls(call("a"), call("b")), result("a")),
        body(assistant_calls(call("a"), call("b")), result("b"), result("a")),
        ("messages[1].tool_calls[1]",),
    ),
    Case("QWEN-01", "system inside", body(assistant_calls(), SYSTEM, result()), OK, ("messages[2]",)),
    Case("QWEN-01", "no id", body(assistant_calls(call("")), USER), OK, ("messages[1].tool_calls[0].id",)),
    Case("QWEN-02", "no call", body(result()), OK, ("messages[1]",)),
    Case(
        "QWEN-02",
        "after the answer",
        body(*HISTORY, ANSWER, result()),
        body(*HISTORY, ANSWER, assistant_calls(call("b")), result("b")),
        ("messages[4]",),
    ),
    Case("QWEN-02", "other id", body(*HISTORY, result("x")), OK, ("messages[3].tool_call_id",)),
    Case("QWEN-02", "no id", body(*HISTORY, result(None)), OK, ("messages[3].tool_call_id",)),
    Case("QWEN-03", "cut off", with_arguments('{"a":'), with_arguments('{"a": 1}'), ARGUMENTS),
    Case("QWEN-03", "empty", with_arguments(""), with_arguments("{}"), ARGUMENTS),
    Case("QWEN-03", "a scalar", with_arguments('"a"'), OK, ARGUMENTS),
    Case("QWEN-03", "NaN", with_arguments('{"a": NaN}'), OK, ARGUMENTS),
    Case("QWEN-03", "too deep", with_arguments("[" * 100_000), OK, ARGUMENTS),
    Case("QWEN-03", "the object itself", with_arguments({}), OK, ARGUMENTS),
    Case("QWEN-04", "system alone", {"messages": [SYSTEM]}, {"messages": [SYSTEM, USER]}, ("messages",)),
    Case("QWEN-04", "no message", {"messages": []}, {"messages": [USER]}, ("messages",)),
    Case("OAI-CHAT-05", "shared", body(*HISTORY, result()), OK, ("messages[3].tool_call_id",), "risk"),
    Case("OAI-CHAT-06", "one id in two turns", body(*HISTORY, *HISTORY), OK, ("messages[3].tool_calls[0].id",), "risk"),
    Case(
        "OAI-CHAT-06",
        "shared",
        body(assistant_calls(call("a"), call("a")), result("a")),
        OK,
        ("messages[1].tool_calls[1].id",),
        "risk",
    ),
    Case("OAI-CHAT-07", "shared", body({**ANSWER, "tool_calls": []}), OK, ("messages[1].tool_calls",), "risk"),
    Case(
        "OAI-CHAT-08",
        "shared",
        body(tools=[tool("a.b")]),
        body(tools=[tool("a_b")]),
        ("tools[0].function.name",),
        "risk",
    ),
    Case(
        "OAI-CHAT-09",
        "shared",
        body(assistant_calls(call(name="")), result()),
        OK,
        ("messages[1].tool_calls[0].function.name",),
    ),
    Case(
        "OAI-CHAT-11", "assistant", body({"role": "assistant", "content": None}), OK, ("messages[1].content",), "risk"
    ),
    Case("OAI-CHAT-11", "tool", body(assistant_calls(), result(content=None)), OK, ("messages[2].content",)),
    Case(
        "OAI-CHAT-12",
        "shared",
        body(assistant_calls(), result(content=[IMAGE])),
        OK,
        ("messages[2].content[0]",),
        "risk",
    ),
    Case(
        "OAI-CHAT-13", "shared", body(assistant_calls(), result(is_error=True)), OK, ("messages[2].is_error",), "risk"
    ),
    Case(
        "OAI-CHAT-21",
        "free text",
        body(tools=[{"type": "custom", "custom": {"name": "f"}}]),
        body(tools=[tool()]),
        ("tools[0].type",),
    ),
)
