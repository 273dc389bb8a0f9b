"""System text, endings, options, and what clients and SDKs leave in bodies."""

from __future__ import annotations

import json

from tests.bodies.anthropic import assistant as anthropic_assistant
from tests.bodies.anthropic import text
from tests.bodies.anthropic import user as anthropic_user
from tests.bodies.chat import assistant, system, user
from tests.conversations.build import (
    ENABLED,
    Case,
    anthropic,
    anthropic_tool,
    call,
    calls,
    chat,
    function,
    kimi,
    result,
    thinking,
    tool,
    use,
)

CACHE = {"type": "ephemeral"}
ANSWER = {
    "type": "object",
    "properties": {"answer": {"type": "string"}},
    "required": ["answer"],
    "additionalProperties": False,
}

CASES = (
    Case(
        "developer_in_the_middle",
        "openai-chat",
        "developer text after the conversation began stays in its place",
        chat(
            {"role": "developer", "content": "Be brief."},
            user("Go."),
            assistant("Gone."),
            {"role": "developer", "content": "From now on in French."},
            user("Again."),
        ),
    ),
    Case(
        "several_systems",
        "openai-chat",
        "two leading system messages, one of parts, and a late one",
        chat(
            system("You are a tool user."),
            {
                "role": "system",
                "content": [{"type": "text", "text": "Be brief."}, {"type": "text", "text": "Be kind."}],
            },
            user("Go."),
            assistant("Gone."),
            system("Ten minutes left."),
            user("Again."),
        ),
    ),
    Case(
        "system_in_the_messages",
        "anthropic",
        "role system among Anthropic's messages (ANT-20)",
        anthropic(
            user("Go."),
            anthropic_assistant(text("Gone.")),
            {"role": "system", "content": "Ten minutes left."},
            user("Again."),
            system="Be brief.",
        ),
    ),
    Case("only_a_system", "openai-chat", "a body that holds system text and nothing else", chat(system("Say hello."))),
    Case(
        "same_role_twice",
        "openai-chat",
        "two users, two assistants, two systems in a row (OAI-CHAT-14)",
        chat(user("One."), user("Two."), assistant("Three."), assistant("Four."), user("Five.")),
    ),
    Case(
        "prefill_home_and_abroad",
        "anthropic",
        "an ending on the assistant is a prefill at home and none abroad",
        anthropic(user("Give me JSON."), anthropic_assistant(text("{"))),
    ),
    Case(
        "prefill_refused",
        "anthropic",
        "newer models want the user last (ANT-22)",
        anthropic(user("Give me JSON."), anthropic_assistant(text("{")), model="claude-opus-4-6"),
    ),
    Case(
        "prefill_with_white_space",
        "anthropic",
        "a prefill that ends in white space (ANT-23)",
        anthropic(user("Title?"), anthropic_assistant(text("title: "))),
    ),
    Case(
        "ends_on_the_assistant",
        "openai-chat",
        "Chat takes an ending on the assistant as a turn that is over",
        chat(user("Hi."), assistant("Hello. ")),
    ),
    Case(
        "sdk_leftovers",
        "openai-chat",
        "what openai-python leaves in messages that were appended as objects",
        chat(
            user("Go."),
            {
                "content": None,
                "refusal": None,
                "role": "assistant",
                "annotations": None,
                "audio": None,
                "function_call": None,
                "tool_calls": [
                    {
                        "id": "call_1",
                        "function": {
                            "arguments": '{"path":"a"}',
                            "name": "read_file",
                            "parsed_arguments": {"path": "a"},
                        },
                        "type": "function",
                        "index": 0,
                    }
                ],
                "parsed": None,
                "reasoning_content": None,
            },
            tool("call_1", "A"),
            {"content": "It is A.", "refusal": None, "role": "assistant", "annotations": [], "tool_calls": None},
            user("And?"),
        ),
    ),
    Case(
        "anthropic_leftovers",
        "anthropic",
        "what anthropic-python leaves in blocks: nulls, and keys of replies",
        anthropic(
            user("Go."),
            {
                "role": "assistant",
                "content": [
                    {"type": "text", "text": "Reading.", "citations": None},
                    {
                        "type": "tool_use",
                        "id": "toolu_1",
                        "name": "read_file",
                        "input": {"path": "a"},
                        "caller": {"type": "direct"},
                    },
                ],
            },
            anthropic_user({**result("toolu_1", "A"), "is_error": False}),
        ),
    ),
    Case(
        "cache_control_everywhere",
        "anthropic",
        "cache marks on system, tools, text, calls and results go home and nowhere else",
        anthropic(
            anthropic_user(text("Go.", cache_control=CACHE)),
            anthropic_assistant(text("Reading."), use("toolu_1", value={"path": "a"}, cache_control=CACHE)),
            anthropic_user(result("toolu_1", [text("A", cache_control=CACHE)], cache_control=CACHE)),
            system=[text("Be brief."), text("Be kind.", cache_control={"type": "ephemeral", "ttl": "1h"})],
            tools=[anthropic_tool(cache_control=CACHE)],
        ),
    ),
    Case(
        "response_format_and_sampling",
        "openai-chat",
        "a JSON schema for the answer, and every sampling option",
        chat(
            user("Answer."),
            tools=[],
            response_format={
                "type": "json_schema",
                "json_schema": {"name": "answer", "strict": True, "schema": ANSWER},
            },
            temperature=0.5,
            top_p=1,
            presence_penalty=0.1,
            frequency_penalty=0.0,
            seed=7,
            n=1,
            logprobs=False,
            stop=["END", "STOP"],
            max_completion_tokens=100,
            user="someone",
            store=False,
        ),
    ),
    Case(
        "json_mode",
        "openai-chat",
        "json_object, one stop word as a string, the older token limit",
        chat(
            user("Answer in JSON."), response_format={"type": "json_object"}, stop="END", max_tokens=50, temperature=2.5
        ),
    ),
    Case(
        "json_mode_that_nobody_speaks_of",
        "openai-chat",
        "json_object, and no text that says the word, which some APIs want",
        chat(system("Be brief."), user("Answer."), response_format={"type": "json_object"}),
    ),
    Case(
        "anthropic_options",
        "anthropic",
        "top_k, stop sequences, metadata, service tier, output format",
        anthropic(
            user("Answer."),
            temperature=1.0,
            top_k=40,
            top_p=0.9,
            stop_sequences=["END"],
            metadata={"user_id": "someone"},
            service_tier="auto",
            stream=True,
            output_config={"format": {"type": "json_schema", "schema": ANSWER}},
        ),
    ),
    Case(
        "stream_options",
        "openai-chat",
        "streaming with usage",
        chat(user("Hi."), stream=True, stream_options={"include_usage": True}),
    ),
    Case(
        "effort_without_tools",
        "openai-chat",
        "effort becomes a budget, and a token limit leaves room for it",
        chat(user("Think."), model="gpt-5", tools=None, reasoning_effort="low", max_completion_tokens=500)
        | {"tools": []},
    ),
    Case(
        "budget_becomes_effort",
        "anthropic",
        "a thinking budget becomes an effort",
        anthropic(user("Think."), thinking={"type": "enabled", "budget_tokens": 16000}, max_tokens=20000, tools=[]),
    ),
    Case(
        "temperature_beside_effort",
        "openai-chat",
        "options that thinking would not bear",
        chat(user("Think."), model="gpt-5", reasoning_effort="high", temperature=0.2, top_p=0.5),
    ),
    Case(
        "unknown_fields",
        "openai-chat",
        "fields that nobody knows go home and are stripped abroad",
        chat(
            {"role": "user", "content": "Hi.", "x_message": 1},
            user([{"type": "text", "text": "There.", "x_part": True}]),
            x_vendor={"k": [1, 1.0, None]},
            metadata={"trace": "t"},
        ),
    ),
    Case(
        "claude_code_body",
        "anthropic",
        "what Claude Code sends: billing line, context management, hidden thinking, deferred tools, moving cache marks",
        anthropic(
            anthropic_user(text("<system-reminder>\nToday.\n</system-reminder>"), text("Read a.", cache_control=CACHE)),
            anthropic_assistant(thinking("Let me read."), use("toolu_01A", "Read", {"file_path": "/a"})),
            anthropic_user(
                {"tool_use_id": "toolu_01A", "type": "tool_result", "content": "     1\tA", "cache_control": CACHE}
            ),
            model="claude-sonnet-4-5-20250929",
            max_tokens=32000,
            system=[
                text("x-anthropic-billing-header: cc_version=2.1"),
                text("You are Claude Code.", cache_control=CACHE),
            ],
            tools=[anthropic_tool("Read"), anthropic_tool("Glob", defer_loading=True)],
            thinking={"type": "enabled", "budget_tokens": 31999, "display": "omitted"},
            context_management={"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]},
            metadata={"user_id": json.dumps({"device_id": "d", "session_id": "s"})},
            stream=True,
        ),
    ),
    Case(
        "pi_body",
        "anthropic",
        "two user messages after a stand-in, is_error always present",
        anthropic(
            user("Go."),
            anthropic_assistant(use("toolu_1", value={"path": "a"})),
            anthropic_user(result("toolu_1", "No result provided", is_error=True)),
            anthropic_user(text("Try again.")),
            tools=[anthropic_tool("read_file", eager_input_streaming=True)],
        ),
    ),
    Case(
        "kimi_options",
        "kimi",
        "thinking switched off on a model that thinks, and a partial answer",
        kimi(
            user("Go."),
            calls(call("functions.read_file:0", "read_file", {"path": "a"})),
            tool("functions.read_file:0", "A"),
            model="kimi-k2.5",
            thinking={"type": "disabled"},
            temperature=0.6,
            max_tokens=100,
            prompt_cache_key="k",
        ),
    ),
    Case(
        "names_of_speakers",
        "openai-chat",
        "names on user and assistant messages",
        chat(
            {"role": "user", "name": "ann", "content": "Hi."},
            assistant("Hello.", name="bot"),
            {"role": "user", "name": "bob", "content": "Me too."},
        ),
    ),
    Case(
        "effort_of_the_newest",
        "anthropic",
        "adaptive thinking with an effort of its own",
        anthropic(
            user("Think."), model="claude-opus-4-6", thinking={"type": "adaptive"}, output_config={"effort": "medium"}
        ),
    ),
    Case(
        "function_tools_with_effort_at_home",
        "openai-chat",
        "the newest models refuse function tools beside effort (OAI-CHAT-17)",
        chat(user("Go."), model="gpt-5.6-terra", tools=[function()], reasoning_effort="high"),
    ),
    Case(
        "thinking_forced_and_budget_too_large",
        "anthropic",
        "a budget that does not fit another target's limit",
        anthropic(user("Think."), thinking=ENABLED, max_tokens=2049, tools=[]),
        {"openai-chat": "gpt-5"},
    ),
)
