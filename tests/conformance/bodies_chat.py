"""Bodies for OpenAI Chat Completions: each row breaks one rule."""

from __future__ import annotations

from tests.bodies import Body, chat
from tests.bodies.chat import assistant, assistant_calls, call, result, system, tool, user
from tests.conformance.case import Case

USER = user()


def body(*messages: Body, **more: object) -> Body:
    """A body that begins with a question."""
    return chat.body(USER, *messages, **more)


LONG = "c" * 41
IMAGE: Body = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}
TEXT: Body = {"type": "text", "text": "r"}
AUDIO: Body = {"type": "input_audio", "input_audio": {"data": "AA==", "format": "wav"}}
SYSTEM = system()
OK = body(assistant_calls(), result())

CASES = (
    Case(
        "OAI-CHAT-01",
        "too long",
        body(assistant_calls(call(LONG)), result(LONG)),
        body(assistant_calls(call(LONG[1:])), result(LONG[1:])),
        ("messages[1].tool_calls[0].id",),
    ),
    Case(
        "OAI-CHAT-01",
        "missing",
        body(
            assistant_calls({"type": "function", "function": {"name": "f", "arguments": "{}"}}, call("b")), result("b")
        ),
        body(assistant_calls(call("a"), call("b")), result("b"), result("a")),
        ("messages[1].tool_calls[0].id",),
    ),
    Case("OAI-CHAT-01", "a number", body(assistant_calls(call(1))), OK, ("messages[1].tool_calls[0].id",)),
    Case("OAI-CHAT-01", "empty", body(assistant_calls(call(""))), OK, ("messages[1].tool_calls[0].id",)),
    Case("OAI-CHAT-03", "user too early", body(assistant_calls(), USER), OK, ("messages[1].tool_calls[0]",)),
    Case("OAI-CHAT-03", "at the end", body(assistant_calls()), OK, ("messages[1].tool_calls[0]",)),
    Case(
        "OAI-CHAT-03", "system, then never", body(assistant_calls(), SYSTEM, USER), OK, ("messages[1].tool_calls[0]",)
    ),
    Case(
        "OAI-CHAT-03",
        "one of two",
        body(assistant_calls(call("a"), call("b")), result("a"), USER),
        body(assistant_calls(call("a"), call("b")), result("b"), result("a"), USER),
        ("messages[1].tool_calls[1]",),
    ),
    Case("OAI-CHAT-04", "no call", body(result()), OK, ("messages[1]",)),
    Case("OAI-CHAT-04", "other id", body(assistant_calls(), result(), result("x")), OK, ("messages[3].tool_call_id",)),
    Case("OAI-CHAT-04", "empty id", body(assistant_calls(), result(), result("")), OK, ("messages[3].tool_call_id",)),
    Case("OAI-CHAT-04", "null id", body(assistant_calls(), result(), result(None)), OK, ("messages[3].tool_call_id",)),
    Case(
        "OAI-CHAT-04",
        "after the answer",
        body(assistant_calls(), result(), {"role": "assistant", "content": "a"}, result()),
        body(
            assistant_calls(), result(), {"role": "assistant", "content": "a"}, assistant_calls(call("b")), result("b")
        ),
        ("messages[4]",),
    ),
    Case("OAI-CHAT-05", "twice", body(assistant_calls(), result(), result()), OK, ("messages[3].tool_call_id",)),
    Case(
        "OAI-CHAT-06",
        "two calls, one id",
        body(assistant_calls(call("a"), call("a")), result("a")),
        body(assistant_calls(call("a"), call("b")), result("a"), result("b")),
        ("messages[1].tool_calls[1].id",),
    ),
    Case(
        "OAI-CHAT-06",
        "one id in two turns",
        body(assistant_calls(call("a")), result("a"), assistant_calls(call("a")), result("a")),
        body(assistant_calls(call("a")), result("a"), assistant_calls(call("b")), result("b")),
        ("messages[3].tool_calls[0].id",),
        "risk",
    ),
    *(
        Case(
            "COMP-09",
            f"MiniMax by its name, {arguments!r}",
            body(assistant_calls(call(arguments=arguments)), result(), model="MiniMax-M2.5"),
            body(assistant_calls(call(arguments=arguments)), result(), model="gpt-4.1"),
            ("messages[1].tool_calls[0].function.arguments",),
        )
        for arguments in ("{path:", "", "None")
    ),
    Case(
        "OAI-CHAT-07",
        "empty",
        body({"role": "assistant", "content": "hi", "tool_calls": []}),
        body({"role": "assistant", "content": "hi"}),
        ("messages[1].tool_calls",),
    ),
    Case(
        "OAI-CHAT-07",
        "an object",
        body({"role": "assistant", "content": "hi", "tool_calls": {"id": "a"}}),
        OK,
        ("messages[1].tool_calls",),
    ),
    Case(
        "OAI-CHAT-07",
        "null",
        body({"role": "assistant", "content": "hi", "tool_calls": None}),
        OK,
        ("messages[1].tool_calls",),
        "risk",
    ),
    Case(
        "OAI-CHAT-08",
        "replayed",
        body(assistant_calls(call(name="ns.tool")), result()),
        body(assistant_calls(call(name="ns_tool-1")), result()),
        ("messages[1].tool_calls[0].function.name",),
    ),
    Case(
        "OAI-CHAT-08",
        "a dot on a reasoning model",
        body(assistant_calls(call(name="ns.tool")), result()),
        OK,
        ("messages[1].tool_calls[0].function.name",),
        "risk",
        "gpt-5",
    ),
    Case(
        "OAI-CHAT-08",
        "a slash on a reasoning model",
        body(tools=[tool("ns/tool")]),
        body(tools=[tool("ns_tool")]),
        ("tools[0].function.name",),
        model="o3-mini",
    ),
    Case(
        "OAI-CHAT-08",
        "too long",
        body(tools=[tool("n" * 65)]),
        body(tools=[tool("n" * 64)]),
        ("tools[0].function.name",),
    ),
    Case("OAI-CHAT-08", "line break", body(tools=[tool("f\n")]), body(tools=[tool()]), ("tools[0].function.name",)),
    Case("OAI-CHAT-08", "none declared", body(tools=["..."]), body(tools=[tool()]), ("tools[0].function.name",)),
    Case(
        "OAI-CHAT-08",
        "custom",
        body(tools=[{"type": "custom", "custom": {"name": "a b"}}]),
        body(tools=[{"type": "custom", "custom": {"name": "a_b"}}]),
        ("tools[0].custom.name",),
    ),
    Case(
        "OAI-CHAT-09",
        "empty",
        body(assistant_calls(call(name="")), result()),
        OK,
        ("messages[1].tool_calls[0].function.name",),
    ),
    Case(
        "OAI-CHAT-09",
        "no function",
        body(assistant_calls({"id": "call_1", "type": "function"}), result()),
        OK,
        ("messages[1].tool_calls[0].function.name",),
    ),
    Case(
        "OAI-CHAT-10",
        "an object",
        body(assistant_calls(call(arguments={"a": 1})), result()),
        body(assistant_calls(call(arguments='{"a": ')), result()),
        ("messages[1].tool_calls[0].function.arguments",),
    ),
    Case(
        "OAI-CHAT-11",
        "assistant null",
        body({"role": "assistant", "content": None}),
        body({"role": "assistant", "content": None, "refusal": "no"}),
        ("messages[1].content",),
    ),
    Case(
        "OAI-CHAT-11",
        "assistant without parts",
        body(assistant_calls(content=[]), result()),
        body(assistant_calls(content=""), result()),
        ("messages[1].content",),
    ),
    Case(
        "OAI-CHAT-11",
        "tool null",
        body(assistant_calls(), result(content=None)),
        body(assistant_calls(), result(content="")),
        ("messages[2].content",),
    ),
    Case(
        "OAI-CHAT-11",
        "tool without parts",
        body(assistant_calls(), result(content=[])),
        body(assistant_calls(), result(content=[TEXT])),
        ("messages[2].content",),
    ),
    Case(
        "OAI-CHAT-12",
        "image",
        body(assistant_calls(), result(content=[TEXT, IMAGE])),
        body(assistant_calls(), result(content=[TEXT]), {"role": "user", "content": [IMAGE]}),
        ("messages[2].content[1]",),
    ),
    Case("OAI-CHAT-13", "flag", body(assistant_calls(), result(is_error=True)), OK, ("messages[2].is_error",), "risk"),
    Case(
        "OAI-CHAT-15",
        "before the results",
        body(assistant_calls(), SYSTEM, result()),
        body(assistant_calls(), result(), SYSTEM),
        ("messages[2]",),
    ),
    Case(
        "OAI-CHAT-15",
        "among the results",
        body(
            assistant_calls(call("a"), call("b")),
            result("a"),
            {"role": "developer", "content": "d"},
            SYSTEM,
            result("b"),
        ),
        body(
            assistant_calls(call("a"), call("b")),
            result("a"),
            result("b"),
            {"role": "developer", "content": "d"},
            SYSTEM,
        ),
        ("messages[3]", "messages[4]"),
    ),
    Case(
        "OAI-CHAT-16",
        "129 tools",
        body(tools=[tool(f"f{n}") for n in range(129)]),
        body(tools=[tool(f"f{n}") for n in range(128)]),
        ("tools",),
    ),
    Case(
        "OAI-CHAT-16",
        "description",
        body(tools=[tool(description="d" * 1025)]),
        body(tools=[tool(description="d" * 1024)]),
        ("tools[0].function.description",),
    ),
    Case("OAI-CHAT-16", "an object", body(tools={"f": {}}), body(tools=None), ("tools",)),
    Case(
        "OAI-CHAT-17",
        "newest",
        body(tools=[tool()], reasoning_effort="high"),
        body(tools=[tool()], reasoning_effort="none"),
        ("reasoning_effort",),
        model="gpt-5.6-terra",
    ),
    Case(
        "OAI-CHAT-17",
        "others",
        body(tools=[tool()], reasoning_effort="low"),
        body(tools=[tool()], reasoning_effort=None),
        ("reasoning_effort",),
        model="gpt-5.5-pro",
    ),
    Case(
        "OAI-CHAT-17",
        "the default effort",
        body(tools=[tool()]),
        body(tools=[{"type": "custom", "custom": {"name": "c"}}]),
        ("reasoning_effort",),
        model="gpt-6-mini",
    ),
    Case(
        "OAI-CHAT-17",
        "the first with the limit",
        body(tools=[tool()], reasoning_effort="minimal"),
        body(tools=[], reasoning_effort="minimal"),
        ("reasoning_effort",),
        model="openai/gpt-5.2",
    ),
    Case(
        "OAI-CHAT-11",
        "audio, in an earlier message",
        body({"role": "user", "content": [AUDIO]}, assistant(), USER),
        body({"role": "user", "content": [{"type": "text", "text": "q"}]}, assistant(), USER),
        ("messages[1].content[0]",),
        model="gpt-4.1",
    ),
    Case(
        "OAI-CHAT-15",
        "a later system message to o1-mini",
        body(assistant(), SYSTEM, USER),
        body(assistant(), USER),
        ("messages[2].role",),
        model="o1-mini-2024-09-12",
    ),
    Case(
        "OAI-CHAT-23",
        "too high",
        body(temperature=2.01, top_p=1.01, top_logprobs=21, n=129),
        body(temperature=2, top_p=1.0, top_logprobs=20, n=128),
        ("temperature", "top_p", "top_logprobs", "n"),
        model="gpt-4.1",
    ),
    Case(
        "OAI-CHAT-23",
        "too low",
        body(temperature=-0.1, top_p=-1, presence_penalty=-2.1, frequency_penalty=-3, n=0),
        body(temperature=0, top_p=0, presence_penalty=-2, frequency_penalty=2, n=1),
        ("temperature", "top_p", "presence_penalty", "frequency_penalty", "n"),
        model="gpt-4.1",
    ),
    Case(
        "OAI-CHAT-23",
        "web search",
        body(web_search_options={}),
        body(web_search_options=None),
        ("web_search_options",),
        model="o4-mini",
    ),
    Case(
        "OAI-CHAT-21",
        "custom input",
        body(assistant_calls({"id": "call_1", "type": "custom", "custom": {"name": "f", "input": {}}}), result()),
        body(
            assistant_calls({"id": "call_1", "type": "custom", "custom": {"name": "f", "input": "free text"}}), result()
        ),
        ("messages[1].tool_calls[0].custom.input",),
    ),
    Case(
        "OAI-CHAT-21",
        "other type",
        body(assistant_calls({**call(), "type": "magic"}), result()),
        OK,
        ("messages[1].tool_calls[0].type",),
    ),
    Case(
        "OAI-CHAT-21",
        "no type",
        body(assistant_calls({"id": "call_1", "function": {"name": "f", "arguments": "{}"}}), result()),
        OK,
        ("messages[1].tool_calls[0].type",),
    ),
    Case(
        "OAI-CHAT-21",
        "a type of its own",
        body(assistant_calls({"id": "call_1", "type": "magic", "magic": {"name": "f"}}), result()),
        OK,
        ("messages[1].tool_calls[0].type",),
        "risk",
    ),
    Case(
        "OAI-CHAT-22",
        "reasoning",
        body({"role": "assistant", "content": "x", "reasoning_content": "..."}),
        body({"role": "assistant", "content": "x", "refusal": None, "annotations": []}),
        ("messages[1].reasoning_content",),
        "risk",
    ),
)
