"""Bodies for Mistral: each row breaks one rule, of its own or shared with Chat Completions."""

from __future__ import annotations

from tests.bodies import Body
from tests.bodies.chat import assistant, assistant_calls, call, result, tool
from tests.bodies.chat import body as only
from tests.conformance.bodies_chat import IMAGE, SYSTEM, TEXT, USER, body
from tests.conformance.case import Case

A, B, C = "abcdefgh1", "abcdefgh2", "abcdefgh3"
ANSWER = assistant()
PREFIX: Body = {"role": "assistant", "content": "a", "prefix": True}
THINKING: Body = {"type": "thinking", "thinking": [{"type": "text", "text": "t"}]}
HISTORY = (assistant_calls(call(A)), result(A))
OK = body(*HISTORY)
SCHEMA: Body = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
V3, V7, V11, V13, V15 = (
    *("open-mistral-nemo-2407", "mistral-large-2411", "magistral-medium-2507", "devstral-2512"),
    "mistral-small-2603",
)


def declares(parameters: object) -> Body:
    return body(tools=[tool(parameters=parameters)])


CASES = (
    Case(
        "MIS-01",
        "call",
        body(assistant_calls(call("call_1")), result("call_1")),
        OK,
        ("messages[1].tool_calls[0].id", "messages[2].tool_call_id"),
    ),
    Case(
        "MIS-01",
        "v13",
        body(assistant_calls(call("a" * 10)), result("a" * 10)),
        OK,
        ("messages[1].tool_calls[0].id", "messages[2].tool_call_id"),
        model=V13,
    ),
    Case(
        "MIS-01",
        "line break",
        body(assistant_calls(call(f"{A}\n")), result(f"{A}\n")),
        OK,
        ("messages[1].tool_calls[0].id", "messages[2].tool_call_id"),
    ),
    Case(
        "MIS-02",
        "the word",
        body(assistant_calls(call("null")), result("null")),
        OK,
        ("messages[1].tool_calls[0].id", "messages[2].tool_call_id"),
    ),
    Case(
        "MIS-02",
        "missing",
        body(assistant_calls({"function": {"name": "f", "arguments": "{}"}}), {"role": "tool", "content": "r"}),
        OK,
        ("messages[1].tool_calls[0].id", "messages[2].tool_call_id"),
    ),
    Case(
        "MIS-02",
        "a number",
        body(assistant_calls(call(1)), result("")),
        OK,
        ("messages[1].tool_calls[0].id", "messages[2].tool_call_id"),
    ),
    Case(
        "MIS-03",
        "none",
        body(assistant_calls(call(A)), ANSWER, USER),
        body(*HISTORY, ANSWER, USER),
        ("messages[1].tool_calls",),
    ),
    Case(
        "MIS-03",
        "at the end",
        body(assistant_calls(call(A), call(B)), result(A)),
        body(assistant_calls(call(A), call(B)), result(B), result(A)),
        ("messages[1].tool_calls",),
    ),
    Case("MIS-03", "user too early", body(assistant_calls(call(A)), USER), OK, ("messages[1].tool_calls",)),
    Case(
        "MIS-03",
        "counted before v11",
        body(assistant_calls(call(A), call(B)), result(A)),
        OK,
        ("messages[1].tool_calls",),
        model=V7,
    ),
    Case("MIS-03", "nothing called before v11", body(ANSWER, result(A)), OK, ("messages[2]",), model=V3),
    Case("MIS-04", "other id", body(assistant_calls(call(A)), result(B)), OK, ("messages[2].tool_call_id",)),
    Case("MIS-04", "surplus", body(*HISTORY, result(B)), OK, ("messages[3].tool_call_id",), model=V11),
    Case("MIS-04", "nothing called", body(ANSWER, result(A)), OK, ("messages[2]",)),
    Case(
        "MIS-04", "before v11", body(assistant_calls(call(A)), result(B)), OK, ("messages[2].tool_call_id",), "risk", V7
    ),
    Case(
        "MIS-05",
        "twice",
        body(*HISTORY, result(A)),
        body(*HISTORY, assistant_calls(call(A)), result(A)),
        ("messages[3].tool_call_id",),
    ),
    Case(
        "MIS-05",
        "before v11",
        body(assistant_calls(call(A), call(B)), result(A), result(A)),
        OK,
        ("messages[3].tool_call_id",),
        "risk",
        V3,
    ),
    Case(
        "MIS-06",
        "in one message",
        body(assistant_calls(call(A), call(A)), result(A)),
        body(*HISTORY, *HISTORY),
        ("messages[1].tool_calls[1].id",),
    ),
    Case(
        "MIS-06",
        "before v11",
        body(assistant_calls(call(A), call(A)), result(A), result(A)),
        body(*HISTORY, *HISTORY),
        ("messages[1].tool_calls[1].id",),
        "risk",
        V7,
    ),
    Case("MIS-07", "no bridge", body(*HISTORY, USER), body(*HISTORY, ANSWER, USER), ("messages[3]",)),
    Case("MIS-07", "newest", body(*HISTORY, USER), body(*HISTORY, ANSWER, USER), ("messages[3]",), model=V15),
    Case("MIS-08", "after user", body(result(A)), OK, ("messages[1]",)),
    Case("MIS-08", "after system", body(SYSTEM, result(A)), body(SYSTEM, *HISTORY), ("messages[2]",)),
    Case("MIS-09", "after assistant", body(ANSWER, SYSTEM, USER), body(SYSTEM, ANSWER, USER), ("messages[2]",)),
    Case("MIS-09", "after tool", body(*HISTORY, SYSTEM, USER), body(*HISTORY, ANSWER, USER), ("messages[3]",)),
    Case("MIS-10", "assistant", body(ANSWER), body(PREFIX), ("messages[1]",)),
    Case("MIS-10", "system", body(SYSTEM), body(SYSTEM, USER), ("messages[1]",), "risk"),
    Case(
        "MIS-11",
        "empty",
        body({"role": "assistant", "content": ""}, USER),
        body(ANSWER, USER),
        ("messages[1].content",),
    ),
    Case(
        "MIS-11",
        "null",
        body({"role": "assistant", "tool_calls": []}, USER),
        body(ANSWER, USER),
        ("messages[1].content",),
    ),
    Case(
        "MIS-11",
        "no parts",
        body({"role": "assistant", "content": []}, USER),
        body({"role": "assistant", "content": [TEXT]}, USER),
        ("messages[1].content",),
    ),
    Case(
        "MIS-11",
        "both on v3",
        body(assistant_calls(call(A), content="t"), result(A)),
        OK,
        ("messages[1].content",),
        model=V3,
    ),
    Case(
        "MIS-12",
        "called",
        body(assistant_calls(call(A, "a.b")), result(A)),
        OK,
        ("messages[1].tool_calls[0].function.name",),
    ),
    Case(
        "MIS-12",
        "no function",
        body(assistant_calls({"id": A}), result(A)),
        OK,
        ("messages[1].tool_calls[0].function.name",),
    ),
    Case(
        "MIS-12",
        "declared",
        body(tools=[tool("n" * 65, parameters={})]),
        body(tools=[tool("n" * 64, parameters={})]),
        ("tools[0].function.name",),
    ),
    Case(
        "MIS-12",
        "in the result",
        body(assistant_calls(call(A)), result(A, name="a b")),
        body(assistant_calls(call(A)), result(A, name="f")),
        ("messages[2].name",),
    ),
    Case("MIS-13", "no tools", body(tools=[]), body(tools=None), ("tools",)),
    Case("MIS-13", "an object", body(tools={}), body(tools=None), ("tools",)),
    Case("MIS-13", "body", body(stream_options={}, seed=1), body(random_seed=1), ("stream_options", "seed")),
    Case(
        "MIS-13",
        "assistant",
        body({**ANSWER, "reasoning_content": "t"}, USER),
        body(ANSWER, USER),
        ("messages[1].reasoning_content",),
    ),
    Case("MIS-13", "user", only({**USER, "name": "n"}), only(USER), ("messages[0].name",)),
    Case(
        "MIS-13", "error flag", body(assistant_calls(call(A)), result(A, is_error=True)), OK, ("messages[2].is_error",)
    ),
    Case(
        "MIS-13",
        "call",
        body(assistant_calls({**call(A), "extra_content": {}}), result(A)),
        body(assistant_calls({**call(A), "index": 0}), result(A)),
        ("messages[1].tool_calls[0].extra_content",),
    ),
    Case(
        "MIS-13", "role", body({"role": "developer", "content": "d"}, USER), body(SYSTEM, USER), ("messages[1].role",)
    ),
    Case("MIS-13", "no parameters", body(tools=[tool()]), declares({}), ("tools[0].function.parameters",)),
    Case("MIS-13", "wrong type", declares({"type": "text"}), declares(SCHEMA), ("tools[0].function.parameters",)),
    Case(
        "MIS-13",
        "deep inside",
        declares({"properties": {"a": {"items": {"anyOf": []}}}}),
        declares({"properties": {"a": {"items": {"anyOf": [True]}}}}),
        ("tools[0].function.parameters",),
    ),
    Case(
        "MIS-13",
        "pattern",
        declares({"pattern": r"\p{L}"}),
        declares({"pattern": r"\w"}),
        ("tools[0].function.parameters",),
        "risk",
    ),
    Case("MIS-14", "prefix", body(PREFIX, USER), body(ANSWER, USER), ("messages[1].prefix",)),
    Case(
        "MIS-14",
        "image in a result",
        body(assistant_calls(call(A)), result(A, [TEXT, IMAGE])),
        body(assistant_calls(call(A)), result(A, [TEXT])),
        ("messages[2].content[1].type",),
        model=V13,
    ),
    Case(
        "MIS-14",
        "image in a result on the newest",
        body(assistant_calls(call(A)), result(A, [IMAGE])),
        body(assistant_calls(call(A)), result(A, [TEXT])),
        ("messages[2].content[0].type",),
        "risk",
        V15,
    ),
    Case(
        "MIS-14",
        "image in a result of a model that may be older",
        body(assistant_calls(call(A)), result(A, [IMAGE])),
        body(assistant_calls(call(A)), result(A, [TEXT])),
        ("messages[2].content[0].type",),
        "risk",
        "mistral-large-latest",
    ),
    Case(
        "MIS-14",
        "image of the assistant",
        body({"role": "assistant", "content": [IMAGE]}, USER),
        body({"role": "user", "content": [IMAGE]}),
        ("messages[1].content[0].type",),
    ),
    Case(
        "MIS-14",
        "thinking before v11",
        body({"role": "assistant", "content": [THINKING, TEXT]}, USER),
        body(ANSWER, USER),
        ("messages[1].content[0].type",),
        model=V7,
    ),
    Case(
        "MIS-14",
        "thinking of the user",
        body({"role": "user", "content": [THINKING]}),
        body({"role": "assistant", "content": [THINKING, TEXT]}, USER),
        ("messages[1].content[0].type",),
    ),
    Case(
        "MIS-14",
        "unknown chunk",
        body({"role": "user", "content": [{"type": "tool_result"}]}),
        body({"role": "user", "content": [TEXT]}),
        ("messages[1].content[0].type",),
    ),
    Case(
        "MIS-14",
        "thinking in a string",
        body({"role": "assistant", "content": [{"type": "thinking", "thinking": "t"}]}, USER),
        body({"role": "assistant", "content": [THINKING]}, USER),
        ("messages[1].content[0].thinking",),
        "risk",
    ),
    Case(
        "MIS-14",
        "thinking of the system on the newest",
        only({"role": "system", "content": [THINKING]}, USER),
        only({"role": "system", "content": [TEXT]}, USER),
        ("messages[0].content[0].type",),
        "risk",
        V15,
    ),
    Case("MIS-15", "no message", only(), only(USER), ("messages",)),
    Case("MIS-15", "a lone assistant", only(PREFIX), only(SYSTEM), ("messages[0]",)),
    Case("MIS-15", "a lone result", only(result(A)), only(USER), ("messages[0]",)),
    Case("MIS-15", "calls first", only(*HISTORY, ANSWER, USER), only(ANSWER, USER), ("messages[0].tool_calls",)),
    Case(
        "MIS-15",
        "open calls first",
        only(assistant_calls(call(A)), USER),
        only(ANSWER, USER),
        ("messages[0].tool_calls",),
        "risk",
    ),
    Case("MIS-15", "a result first", only(result(A), ANSWER, USER), only(ANSWER, USER), ("messages[0]",), "risk"),
    Case(
        "OAI-CHAT-07",
        "an object",
        body({**ANSWER, "tool_calls": {}}, USER),
        body({**ANSWER, "tool_calls": []}, USER),
        ("messages[1].tool_calls",),
    ),
    Case(
        "OAI-CHAT-10",
        "a list",
        body(assistant_calls(call(A, arguments=[])), result(A)),
        body(assistant_calls(call(A, arguments={"a": 1})), result(A)),
        ("messages[1].tool_calls[0].function.arguments",),
    ),
    Case(
        "OAI-CHAT-10",
        "null",
        body(assistant_calls(call(A, arguments=None)), result(A)),
        body(assistant_calls(call(A, arguments="")), result(A)),
        ("messages[1].tool_calls[0].function.arguments",),
        "risk",
    ),
    Case(
        "OAI-CHAT-11",
        "system null",
        only({"role": "system", "content": None}, USER),
        only(SYSTEM, USER),
        ("messages[0].content",),
    ),
    Case("OAI-CHAT-11", "user missing", only({"role": "user"}), only(USER), ("messages[0].content",)),
    Case(
        "OAI-CHAT-11",
        "tool null",
        body(assistant_calls(call(A)), result(A, None)),
        body(assistant_calls(call(A)), result(A, "")),
        ("messages[2].content",),
        "risk",
    ),
    Case(
        "OAI-CHAT-21",
        "free text",
        body(tools=[{"type": "custom", "custom": {"name": "f"}}]),
        body(tools=[{"type": "web_search"}]),
        ("tools[0].type",),
    ),
    Case(
        "OAI-CHAT-21",
        "custom call",
        body(assistant_calls({"id": A, "type": "custom", "custom": {"name": "f", "input": "x"}}), result(A)),
        OK,
        ("messages[1].tool_calls[0].type",),
    ),
)
