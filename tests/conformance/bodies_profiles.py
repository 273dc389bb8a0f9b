"""Bodies for server profiles: each row breaks one rule of its server."""

from __future__ import annotations

from tests.bodies import Body, responses
from tests.bodies.chat import assistant, assistant_calls, call, result, tool
from tests.conformance.bodies_chat import LONG, SYSTEM, USER, body
from tests.conformance.case import Case

ANSWER = assistant()
HISTORY = (assistant_calls(), result())
OK = body(*HISTORY)
ARGUMENTS = ("messages[1].tool_calls[0].function.arguments",)
TWO = (assistant_calls(call("a"), call("b")), result("a"), result("b"))
FORCED: Body = {"tool_choice": "required", "tools": [tool()]}
USER_ITEM, DEVELOPER_ITEM = responses.user(), {"role": "developer", "content": "d"}
TWO_CALLS = (responses.call(), responses.call("call_2"))


def with_arguments(arguments: object) -> Body:
    return body(assistant_calls(call(arguments=arguments)), result())


def sealed(**more: object) -> Body:
    return {"type": "reasoning.encrypted", "data": "x", "id": "call_1", "index": 0, **more}


def detailed(*details: Body) -> Body:
    return assistant_calls(reasoning_details=list(details))


GEMINI, CLAUDE, MISTRAL = "google/gemini-3-pro-preview", "anthropic/claude-sonnet-4.6", "mistral-small-2503"

CASES: dict[str, tuple[Case, ...]] = {
    "groq": (
        Case(
            "COMP-01",
            "reasoning_content",
            body({**ANSWER, "reasoning_content": "t"}),
            body(ANSWER),
            ("messages[1].reasoning_content",),
        ),
        Case(
            "COMP-01",
            "annotations",
            body({**ANSWER, "annotations": []}),
            body({**ANSWER, "name": "n"}),
            ("messages[1].annotations",),
        ),
        Case("COMP-01", "error flag", body(assistant_calls(), result(is_error=True)), OK, ("messages[2].is_error",)),
        Case(
            "COMP-02",
            "llama",
            body({**ANSWER, "reasoning": "t"}),
            body({**ANSWER, "reasoning": None}),
            ("messages[1].reasoning",),
            model="llama-3.3-70b-versatile",
        ),
        Case(
            "COMP-02",
            "unknown",
            body({**ANSWER, "reasoning": "t"}),
            body({**ANSWER, "reasoning": "t"}, model="openai/gpt-oss-120b"),
            ("messages[1].reasoning",),
            "risk",
        ),
    ),
    "cerebras": (
        Case(
            "COMP-04",
            "reasoning_content",
            body({**ANSWER, "reasoning_content": "t"}),
            body({**ANSWER, "reasoning": "t"}),
            ("messages[1].reasoning_content",),
        ),
    ),
    "xai": (
        Case(
            "COMP-05",
            "no parts",
            body(assistant_calls(content=[]), result()),
            body(assistant_calls(content=""), result()),
            ("messages[1].content",),
        ),
        Case("COMP-05", "null", OK, body(assistant_calls(content=""), result()), ("messages[1].content",)),
        Case(
            "COMP-05",
            "missing",
            body({"role": "assistant", "tool_calls": [call()]}, result()),
            body(ANSWER),
            ("messages[1].content",),
        ),
    ),
    "minimax": (
        Case("COMP-07", "no call", body(result()), OK, ("messages[1]",)),
        Case("COMP-07", "other id", body(*HISTORY, result("x")), OK, ("messages[3]",)),
        Case("COMP-07", "no id", body(*HISTORY, result(None)), OK, ("messages[3]",)),
        Case("COMP-08", "further up", body(*HISTORY, ANSWER, result()), OK, ("messages[4]",)),
        Case("COMP-08", "system between", body(assistant_calls(), SYSTEM, result()), OK, ("messages[2]",)),
        Case(
            "COMP-08",
            "one id",
            body(assistant_calls(call("a"), call("a")), result("a")),
            body(*TWO),
            ("messages[1].tool_calls[1].id",),
        ),
        Case("COMP-08", "twice", body(*HISTORY, result()), OK, ("messages[3].tool_call_id",)),
        Case("COMP-09", "cut off", with_arguments("{path:"), OK, ARGUMENTS),
        Case("COMP-09", "empty", with_arguments(""), OK, ARGUMENTS),
        Case(
            "COMP-10",
            "missing",
            body(tools=[tool()]),
            body(tools=[tool(parameters={"type": "object"})]),
            ("tools[0].function.parameters",),
        ),
        Case(
            "COMP-10",
            "empty",
            body(tools=[tool(parameters={})]),
            body(tools=[tool(parameters={"type": "object"})]),
            ("tools[0].function.parameters",),
            "risk",
        ),
    ),
    "z.ai": (
        Case("COMP-11", "no user", {"messages": [SYSTEM, ANSWER]}, {"messages": [SYSTEM, USER]}, ("messages",)),
        Case("COMP-11", "unanswered", body(assistant_calls(), USER), OK, ("messages[1].tool_calls[0]",)),
        Case("COMP-11", "orphan", body(result()), OK, ("messages[1]",)),
        Case("COMP-11", "system between", body(assistant_calls(), SYSTEM, result()), OK, ("messages[2]",)),
        Case(
            "COMP-11", "used again", body(*HISTORY, *HISTORY), body(*HISTORY, *TWO), ("messages[3].tool_calls[0].id",)
        ),
        Case(
            "COMP-11",
            "one id",
            body(assistant_calls(call("a"), call("a")), result("a")),
            body(*TWO),
            ("messages[1].tool_calls[1].id",),
        ),
        Case("COMP-11", "twice", body(*HISTORY, result()), OK, ("messages[3].tool_call_id",)),
        Case(
            "OAI-CHAT-22",
            "reasoning of others",
            body({**ANSWER, "reasoning": "t"}),
            body({**ANSWER, "reasoning_content": "t"}),
            ("messages[1].reasoning",),
            "risk",
        ),
        Case(
            "OAI-CHAT-22",
            "reasoning of the user",
            body({**USER, "reasoning_content": "t"}),
            body(assistant_calls(reasoning_content="t"), result()),
            ("messages[1].reasoning_content",),
            "risk",
        ),
    ),
    "ollama": (
        Case("COMP-12", "a string", OK, with_arguments({}), ARGUMENTS, "risk"),
        Case("COMP-12", "a string without an object", with_arguments("[1]"), with_arguments({"a": 1}), ARGUMENTS),
        Case("COMP-12", "null", with_arguments(None), with_arguments({}), ARGUMENTS),
    ),
    "vllm": (
        Case("COMP-14", "cut off", with_arguments('{"value": '), with_arguments(""), ARGUMENTS),
        Case("COMP-14", "no JSON", with_arguments("value"), with_arguments(None), ARGUMENTS),
        Case(
            "COMP-15",
            "cut to one",
            body(assistant_calls(call("x123456789"), call("y123456789")), result("x123456789"), result("y123456789")),
            body(*TWO),
            ("messages[1].tool_calls[1].id",),
            "risk",
            MISTRAL,
        ),
        Case(
            "COMP-16",
            "custom",
            body(assistant_calls({"id": "a", "type": "custom", "custom": {"name": "f", "input": ""}}), result("a")),
            body(assistant_calls({"id": LONG, "function": {"name": "f", "arguments": "{}"}}), result(LONG)),
            ("messages[1].tool_calls[0]",),
        ),
        Case(
            "COMP-16",
            "other type",
            body(assistant_calls({**call("a"), "type": "tool"}), result("a")),
            body({**ANSWER, "tool_calls": []}),
            ("messages[1].tool_calls[0]",),
        ),
    ),
    "llama.cpp": (
        Case("COMP-17", "cut off", with_arguments('{"a":1'), with_arguments('{"a":1}'), ARGUMENTS),
        Case("COMP-18", "perhaps", body(ANSWER), body(ANSWER, USER), ("messages[1]",), "risk"),
        Case(
            "COMP-18",
            "thinking",
            body(ANSWER, chat_template_kwargs={"enable_thinking": True}),
            body(ANSWER, chat_template_kwargs={"enable_thinking": False}),
            ("messages[1]",),
        ),
        Case(
            "COMP-19",
            "result",
            body(assistant_calls(), {"role": "tool", "tool_call_id": "call_1"}),
            OK,
            ("messages[2]",),
        ),
        Case(
            "COMP-19",
            "assistant",
            body({"role": "assistant"}, USER),
            body({"role": "assistant", "content": None}, USER),
            ("messages[1]",),
        ),
    ),
    "openrouter": (
        Case(
            "OAI-CHAT-01",
            "OpenAI",
            body(assistant_calls(call(LONG)), result(LONG)),
            body(assistant_calls(call(LONG[1:])), result(LONG[1:])),
            ("messages[1].tool_calls[0].id",),
            model="openai/gpt-5-mini",
        ),
        Case(
            "OAI-CHAT-01",
            "any maker",
            body(assistant_calls(call(LONG)), result(LONG)),
            OK,
            ("messages[1].tool_calls[0].id",),
            "risk",
            "openrouter/auto",
        ),
        Case(
            "COMP-21",
            "missing",
            OK,
            body(detailed(sealed()), result()),
            ("messages[1].reasoning_details",),
            model=GEMINI,
        ),
        Case(
            "COMP-21",
            "of an earlier exchange",
            body(*HISTORY, ANSWER, USER),
            body(ANSWER, USER),
            ("messages[1].reasoning_details",),
            "risk",
            GEMINI,
        ),
        Case(
            "COMP-21",
            "two",
            body(detailed(sealed(), sealed(index=1)), result()),
            body(detailed(sealed(), {"type": "reasoning.text"}), result()),
            ("messages[1].reasoning_details[1]",),
            "risk",
            GEMINI,
        ),
        Case(
            "COMP-21",
            "of another call",
            body(detailed(sealed(id="x")), result()),
            body(detailed(sealed()), result()),
            ("messages[1].reasoning_details[0]",),
            "risk",
            GEMINI,
        ),
        Case(
            "COMP-22",
            "forced",
            body(**FORCED, reasoning={"effort": "high"}),
            body(**FORCED, reasoning={"enabled": False}),
            ("tool_choice",),
            "risk",
            CLAUDE,
        ),
        Case(
            "COMP-22",
            "by effort",
            body(**FORCED, reasoning_effort="low"),
            body(**FORCED),
            ("tool_choice",),
            "risk",
            CLAUDE,
        ),
    ),
    "deepseek-responses": (
        Case(
            "DS-11",
            "message between",
            responses.body(USER_ITEM, responses.call(), DEVELOPER_ITEM, responses.result()),
            responses.body(USER_ITEM, responses.call(), responses.result(), DEVELOPER_ITEM),
            ("input[1]",),
        ),
        Case(
            "DS-11",
            "call order",
            responses.body(USER_ITEM, *TWO_CALLS, responses.result("call_2"), responses.result()),
            responses.body(USER_ITEM, *TWO_CALLS, responses.result(), responses.result("call_2")),
            ("input[1]",),
        ),
    ),
    "fireworks": (
        Case("COMP-23", "body", body(stream_options={}), body(stream=True), ("stream_options",)),
        Case(
            "COMP-23",
            "message",
            body({**ANSWER, "reasoning_details": []}),
            body({**ANSWER, "reasoning_content": "t"}),
            ("messages[1].reasoning_details",),
        ),
    ),
}
