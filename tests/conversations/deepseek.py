"""DeepSeek: reasoning_content by model and mode, in a tool loop and after it."""

from __future__ import annotations

from tests.bodies.chat import assistant, user
from tests.conversations.build import Case, call, calls, deepseek, function, tool, without_tools

REASONER = "deepseek-reasoner"
ENABLED = {"type": "enabled"}

CASES = (
    Case(
        "deepseek_open_loop",
        "deepseek",
        "thinking on, in mid-loop: every call message carries its reasoning_content (DS-01)",
        deepseek(
            user("Read a and b."),
            calls(call("call_00_a", "read_file", {"path": "a"}), content="", reasoning_content="First a."),
            tool("call_00_a", "A"),
            calls(call("call_00_b", "read_file", {"path": "b"}), content="", reasoning_content="Now b."),
            tool("call_00_b", "B"),
            model=REASONER,
        ),
    ),
    Case(
        "deepseek_open_loop_without_reasoning",
        "deepseek",
        "the same, but a client lost the reasoning (DS-01, DS-02)",
        deepseek(
            user("Read a and b."),
            calls(call("call_00_a", "read_file", {"path": "a"})),
            tool("call_00_a", "A"),
            calls(call("call_00_b", "read_file", {"path": "b"}), reasoning_content="Now b."),
            tool("call_00_b", "B"),
            model=REASONER,
        ),
    ),
    Case(
        "deepseek_closed_loop",
        "deepseek",
        "the loop is closed, the answer has reasoning of its own, the user spoke again",
        deepseek(
            user("Read a."),
            calls(call("call_00_a", "read_file", {"path": "a"}), reasoning_content="I need a."),
            tool("call_00_a", "A"),
            assistant("It says A.", reasoning_content="That is short."),
            user("And b?"),
            model=REASONER,
        ),
    ),
    Case(
        "deepseek_plain_answers",
        "deepseek",
        "no tools at all: answers with and without reasoning_content (DS-02, DS-04)",
        without_tools(
            deepseek(
                user("Hi."),
                assistant("Hello.", reasoning_content="A greeting."),
                user("Nine times nine?"),
                assistant("81."),
                user("Sure?"),
                model=REASONER,
            )
        ),
    ),
    Case(
        "deepseek_thinking_switched_on",
        "deepseek",
        "the chat model with thinking switched on by the request",
        deepseek(
            user("Read a."),
            calls(call("call_00_a", "read_file", {"path": "a"}), reasoning_content="I need a."),
            tool("call_00_a", "A"),
            thinking=ENABLED,
        ),
    ),
    Case(
        "deepseek_thinking_off",
        "deepseek",
        "the newest model with thinking switched off: a log that has reasoning in places",
        deepseek(
            user("Read a."),
            calls(call("call_00_a", "read_file", {"path": "a"}), reasoning_content="I need a."),
            tool("call_00_a", "A"),
            assistant("It says A."),
            user("Good."),
            model="deepseek-v4-pro",
            thinking={"type": "disabled"},
        ),
    ),
    Case(
        "deepseek_r1",
        "deepseek",
        "R1 wants no reasoning back, and no two speakers of one kind in a row (DS-04, DS-07)",
        without_tools(
            deepseek(
                user("Hi."),
                user("Are you there?"),
                assistant("Yes.", reasoning_content="They greet."),
                user("Good."),
                model="deepseek-r1",
            )
        ),
        {"deepseek": "deepseek-r1"},
    ),
    Case(
        "deepseek_forced_tool",
        "deepseek",
        "a forced tool while thinking (DS-09)",
        deepseek(user("Go."), model=REASONER, tool_choice="required"),
    ),
    Case(
        "deepseek_broken_pairs",
        "deepseek",
        "a missing result, a late one, an orphan (DS-05, DS-06)",
        deepseek(
            user("Go."),
            calls(call("call_00_a", "read_file", {"path": "a"}), call("call_01_b", "glob", {"path": "*"})),
            tool("call_00_a", "A"),
            user("And?"),
            tool("call_01_b", "a b"),
            calls(call("call_00_c", "read_file", {"path": "c"})),
            user("Stop."),
            tool("call_00_z", "nobody asked for this"),
            tools=[function(), function("glob")],
        ),
    ),
    Case(
        "deepseek_prefix",
        "deepseek",
        "an answer that is to be continued, with the reasoning it begins with (DS-08)",
        deepseek(
            user("Write it in Python."), assistant("```python\n", prefix=True, reasoning_content="Short."), stop=["```"]
        ),
    ),
)
