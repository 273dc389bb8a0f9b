"""Names, arguments, declarations and choices."""

from __future__ import annotations

from tests.bodies.anthropic import assistant as anthropic_assistant
from tests.bodies.anthropic import user as anthropic_user
from tests.bodies.chat import assistant, user
from tests.conversations.build import (
    ENABLED,
    GONE,
    Case,
    anthropic,
    anthropic_tool,
    call,
    calls,
    chat,
    function,
    kept,
    result,
    tool,
    use,
)

LONG_NAME = "mcp__a_server_with_a_long_name__a_tool_with_a_name_that_is_longer_than_all_limits"
PATCH = "*** Begin Patch\n*** Update File: a\n@@\n-old\n+new\n*** End Patch"
NESTED = {
    "type": "object",
    "$defs": {"point": {"type": "object", "properties": {"x": {"type": "number"}, "y": {"type": "number"}}}},
    "properties": {"from": {"$ref": "#/$defs/point"}, "to": {"anyOf": [{"$ref": "#/$defs/point"}, {"type": "null"}]}},
    "additionalProperties": False,
}

CASES = (
    Case(
        "weird_names",
        "openai-chat",
        "names with dots, spaces and slashes, two of them alike after sanitising",
        chat(
            user("Go."),
            calls(
                call("call_1", "ns.tool", {"n": 1}),
                call("call_2", "ns tool", {"n": 2}),
                call("call_3", "ns_tool", {"n": 3}),
            ),
            tool("call_1", "one"),
            tool("call_2", "two"),
            tool("call_3", "three"),
            tools=[function("ns.tool"), function("ns tool"), function("ns_tool")],
        ),
    ),
    Case(
        "long_names",
        "anthropic",
        "two names of 82 characters that differ at the end",
        anthropic(
            user("Go."),
            anthropic_assistant(use("toolu_1", f"{LONG_NAME}1", {"n": 1}), use("toolu_2", f"{LONG_NAME}2", {"n": 2})),
            anthropic_user(result("toolu_1", "one"), result("toolu_2", "two")),
            tools=[anthropic_tool(f"{LONG_NAME}1"), anthropic_tool(f"{LONG_NAME}2")],
            tool_choice={"type": "tool", "name": f"{LONG_NAME}2"},
        ),
    ),
    Case(
        "names_in_history_only",
        "openai-chat",
        "an unlawful name that is no longer declared",
        chat(
            user("Go."),
            calls(call("call_1", "browser.open page", {"n": 1})),
            tool("call_1", "one"),
            tools=[function("read_file")],
        ),
    ),
    Case(
        "nameless_call",
        "openai-chat",
        "a broken stream merge left a call without a name (OAI-CHAT-09)",
        chat(user("Go."), calls(call("call_1", "", {"n": 1})), tool("call_1", "one")),
    ),
    Case(
        "arguments_not_json",
        "openai-chat",
        "arguments cut off by the token limit: kept as exact text",
        chat(
            user("Go."), calls(call("call_1", "write", '{"path": "a", "text": "and th')), tool("call_1", "Invalid JSON")
        ),
    ),
    Case(
        "arguments_a_list",
        "openai-chat",
        "arguments that are JSON but no object",
        chat(
            user("Go."),
            calls(
                call("call_1", "f", "[1, 2.0]"),
                call("call_2", "f", '"words"'),
                call("call_3", "f", "null"),
                call("call_4", "f", "7"),
            ),
            tool("call_1", "one"),
            tool("call_2", "two"),
            tool("call_3", "three"),
            tool("call_4", "four"),
        ),
    ),
    Case(
        "empty_arguments",
        "openai-chat",
        "arguments that are the empty string, or an object with odd spacing",
        chat(
            user("Go."),
            calls(call("call_1", "f", ""), call("call_2", "f", ' { "b": 1, "a" : 2.50 } ')),
            tool("call_1", "one"),
            tool("call_2", "two"),
        ),
    ),
    Case(
        "arguments_an_object",
        "openai-chat",
        "arguments given as the object itself (OAI-CHAT-10)",
        chat(
            user("Go."),
            calls({"id": "call_1", "type": "function", "function": {"name": "f", "arguments": {"n": 1}}}),
            tool("call_1", "one"),
        ),
    ),
    Case(
        "input_a_string",
        "anthropic",
        "tool_use.input given as JSON text (ANT-11)",
        anthropic(
            user("Go."), anthropic_assistant(use("toolu_1", "f", '{"n": 1}')), anthropic_user(result("toolu_1", "one"))
        ),
    ),
    Case(
        "unparsed_input",
        "anthropic",
        "what Claude Code makes of truncated arguments",
        anthropic(
            user("Go."),
            anthropic_assistant(use("toolu_1", "f", {"__unparsedToolInput": {"raw": '{"a', "len": 3}})),
            anthropic_user(result("toolu_1", "InputValidationError", is_error=True)),
        ),
    ),
    Case(
        "numbers_in_arguments",
        "anthropic",
        "1 is not 1.0, big numbers stay whole",
        anthropic(
            user("Go."),
            anthropic_assistant(
                use("toolu_1", "f", {"i": 1, "f": 1.0, "big": 9007199254740993, "e": 1e-7, "neg": -0.0})
            ),
            anthropic_user(result("toolu_1", "one")),
        ),
    ),
    Case(
        "custom_free_text_call",
        "openai-chat",
        "a custom tool that takes raw text (OAI-CHAT-21)",
        chat(
            user("Patch it."),
            calls({"id": "call_1", "type": "custom", "custom": {"name": "apply_patch", "input": PATCH}}),
            tool("call_1", "Done!"),
            tools=[
                {
                    "type": "custom",
                    "custom": {"name": "apply_patch", "description": "Patches.", "format": {"type": "text"}},
                }
            ],
        ),
    ),
    Case(
        "no_tools_declared",
        "openai-chat",
        "calls in the history, tools removed from the request (OAI-CHAT-20, ANT-36)",
        chat(
            user("Go."),
            calls(call("call_1", "read_file", {"path": "a"})),
            tool("call_1", "A"),
            assistant("A."),
            user("Sum up."),
            tools=None,
        )
        | {"tools": []},
    ),
    Case(
        "tools_left_out",
        "anthropic",
        "calls in the history and no tools key at all",
        kept(
            **{
                **anthropic(
                    user("Go."),
                    anthropic_assistant(use("toolu_1", value={"path": "a"})),
                    anthropic_user(result("toolu_1", "A")),
                ),
                "tools": GONE,
            }
        ),
    ),
    Case(
        "empty_tool_calls",
        "openai-chat",
        "tool_calls: [] as the parse helper emits it (OAI-CHAT-07)",
        chat(user("Hi."), assistant("Hello.", tool_calls=[]), user("Go on.")),
    ),
    Case(
        "call_without_type",
        "openai-chat",
        "a call without its type",
        chat(user("Go."), calls({"id": "call_1", "function": {"name": "f", "arguments": "{}"}}), tool("call_1", "one")),
    ),
    Case(
        "tool_choice_forced_with_thinking",
        "anthropic",
        "a forced tool and thinking do not go together (ANT-30)",
        anthropic(user("Go."), thinking=ENABLED, tool_choice={"type": "any"}, max_tokens=4096),
    ),
    Case(
        "tool_choice_required_with_effort",
        "openai-chat",
        "the same from Chat: required, and effort that would become thinking",
        chat(user("Go."), model="gpt-5", tool_choice="required", reasoning_effort="medium"),
    ),
    Case(
        "tool_choice_by_name",
        "openai-chat",
        "one tool is forced by a name that has to be projected",
        chat(
            user("Go."),
            tools=[function("files.read"), function("glob")],
            tool_choice={"type": "function", "function": {"name": "files.read"}},
            parallel_tool_calls=False,
        ),
    ),
    Case(
        "tool_choice_none",
        "anthropic",
        "tools are declared and none may be called",
        anthropic(user("Go."), tool_choice={"type": "none"}),
    ),
    Case(
        "one_call_at_a_time",
        "anthropic",
        "disable_parallel_tool_use stands inside tool_choice",
        anthropic(user("Go."), tool_choice={"type": "auto", "disable_parallel_tool_use": True}),
    ),
    Case(
        "schemas",
        "openai-chat",
        "strict, references, a tool without parameters, one without a description",
        chat(
            user("Go."),
            tools=[
                {
                    "type": "function",
                    "function": {"name": "move", "strict": True, "description": "Moves.", "parameters": NESTED},
                },
                {"type": "function", "function": {"name": "now"}},
                {"type": "function", "function": {"name": "any", "parameters": {}}},
            ],
        ),
    ),
    Case(
        "long_description",
        "anthropic",
        "a description longer than Chat allows (OAI-CHAT-16)",
        anthropic(user("Go."), tools=[anthropic_tool("long", description="word " * 300 + "end")]),
    ),
    Case(
        "tool_declared_twice",
        "openai-chat",
        "two declarations of one name (ANT-35)",
        chat(user("Go."), tools=[function("read_file"), function("read_file"), function("glob")]),
    ),
    Case(
        "provider_defined_tools",
        "anthropic",
        "tools that only the provider can define",
        anthropic(
            user("Go."),
            anthropic_assistant(use("toolu_1", "bash", {"command": "ls"})),
            anthropic_user(result("toolu_1", "a b")),
            tools=[
                {"type": "bash_20250124", "name": "bash"},
                {"type": "web_search_20250305", "name": "web_search", "max_uses": 3},
                {"type": "text_editor_20250728", "name": "str_replace_based_edit_tool"},
                anthropic_tool("read_file", type="custom", eager_input_streaming=True),
            ],
        ),
    ),
)
