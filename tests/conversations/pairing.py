"""Results that are missing, duplicated, early, late, or orphans."""

from __future__ import annotations

from tests.bodies.anthropic import assistant as anthropic_assistant
from tests.bodies.anthropic import text
from tests.bodies.anthropic import user as anthropic_user
from tests.bodies.chat import assistant, system, user
from tests.conversations.build import Case, anthropic, call, calls, chat, kimi, result, tool, use

CASES = (
    Case(
        "one_call",
        "openai-chat",
        "clean: one call, one result, one answer, a next question",
        chat(
            system("Be brief."),
            user("Read a."),
            calls(call("call_1", "read_file", {"path": "a"}), content="I read it."),
            tool("call_1", "content of a"),
            assistant("It says: content of a."),
            user("Thanks. And b?"),
        ),
    ),
    Case(
        "parallel_calls",
        "anthropic",
        "clean: text beside three parallel calls, the results, the user's words in the same message",
        anthropic(
            user("Look at a, b and c."),
            anthropic_assistant(
                text("Three at once."),
                use("toolu_1", value={"path": "a"}),
                use("toolu_2", value={"path": "b"}),
                use("toolu_3", value={"path": "c"}),
            ),
            anthropic_user(result("toolu_1", "A"), result("toolu_2", "B"), result("toolu_3", "C"), text("Be quick.")),
            system="Be brief.",
        ),
    ),
    Case(
        "results_in_completion_order",
        "anthropic",
        "Claude Code orders results by completion; abroad they stand in call order",
        anthropic(
            user("Go."),
            anthropic_assistant(
                use("toolu_1", value={"path": "a"}),
                use("toolu_2", value={"path": "b"}),
                use("toolu_3", value={"path": "c"}),
            ),
            anthropic_user(result("toolu_3", "C"), result("toolu_1", "A"), result("toolu_2", "B")),
        ),
    ),
    Case(
        "response_before_its_call",
        "openai-chat",
        "a result that stands before its call is paired with it",
        chat(
            user("Go."), tool("call_1", "content of a"), calls(call("call_1", "read_file", {"path": "a"})), user("And?")
        ),
    ),
    Case(
        "result_after_the_user_spoke",
        "openai-chat",
        "a late result goes to its call; the user's words stay where they were",
        chat(
            user("Read a and b."),
            calls(call("call_1", "read_file", {"path": "a"}), call("call_2", "read_file", {"path": "b"})),
            tool("call_2", "content of b"),
            user("Are you still there?"),
            tool("call_1", "content of a"),
        ),
    ),
    Case(
        "result_two_turns_late",
        "anthropic",
        "a result that arrives after another turn of the model",
        anthropic(
            user("Read a."),
            anthropic_assistant(use("toolu_1", value={"path": "a"})),
            user("Meanwhile b."),
            anthropic_assistant(use("toolu_2", value={"path": "b"})),
            anthropic_user(result("toolu_2", "B"), result("toolu_1", "A"), text("Both are there.")),
        ),
    ),
    Case(
        "synthetic_then_real",
        "anthropic",
        "a stand-in marked as an error, then the real result: the real one counts",
        anthropic(
            user("Read a."),
            anthropic_assistant(use("toolu_1", value={"path": "a"})),
            anthropic_user(
                result("toolu_1", "[Tool execution was interrupted]", is_error=True), result("toolu_1", "content of a")
            ),
        ),
    ),
    Case(
        "duplicate_equal",
        "openai-chat",
        "every result twice, as a resumed session sends them",
        chat(
            user("Go."),
            calls(call("call_1", "read_file", {"path": "a"}), call("call_2", "read_file", {"path": "b"})),
            tool("call_1", "A"),
            tool("call_2", "B"),
            tool("call_1", "A"),
            tool("call_2", "B"),
        ),
    ),
    Case(
        "duplicate_different",
        "openai-chat",
        "two different results for one call: the first counts, the other is reported",
        chat(
            user("Go."),
            calls(call("call_1", "read_file", {"path": "a"})),
            tool("call_1", "first"),
            tool("call_1", "second"),
        ),
    ),
    Case(
        "three_tombstones",
        "openai-chat",
        "one cancel left three stand-ins",
        chat(
            user("Go."),
            calls(call("call_1", "read_file", {"path": "a"})),
            tool("call_1", "Tool call cancelled by user."),
            tool("call_1", "Tool call interrupted or cancelled"),
            tool("call_1", "[tool execution interrupted]"),
            user("Go on."),
        ),
    ),
    Case(
        "orphan_in_first_message",
        "anthropic",
        "a result at messages.0 after truncation (ANT-07)",
        anthropic(anthropic_user(result("toolu_9", "content of z"), text("Go on."))),
    ),
    Case(
        "orphan_after_compression",
        "openai-chat",
        "compression removed the call and left its result",
        chat(system("Be brief."), tool("call_9", "content of z"), assistant("I have read z."), user("Go on.")),
    ),
    Case(
        "orphan_among_results",
        "openai-chat",
        "a result of an unknown call between two real ones",
        chat(
            user("Go."),
            calls(call("call_1", "read_file", {"path": "a"}), call("call_2", "read_file", {"path": "b"})),
            tool("call_1", "A"),
            tool("call_7", "nobody asked for this"),
            tool("call_2", "B"),
            user("Well?"),
        ),
    ),
    Case(
        "parallel_with_one_missing",
        "openai-chat",
        "two of three answered, then the model went on",
        chat(
            user("Go."),
            calls(
                call("call_1", "read_file", {"path": "a"}),
                call("call_2", "read_file", {"path": "b"}),
                call("call_3", "glob"),
            ),
            tool("call_1", "A"),
            tool("call_3", "a b"),
            assistant("Two of them."),
            user("And the other?"),
        ),
    ),
    Case(
        "one_of_three_answered",
        "anthropic",
        "one result and the user's words; the others are completed in the same message",
        anthropic(
            user("Go."),
            anthropic_assistant(
                use("toolu_1", value={"path": "a"}),
                use("toolu_2", value={"path": "b"}),
                use("toolu_3", value={"path": "c"}),
            ),
            anthropic_user(result("toolu_3", "C"), text("And the others?")),
        ),
    ),
    Case(
        "open_calls_at_the_end",
        "anthropic",
        "the log ends on calls that were never answered",
        anthropic(
            user("Go."),
            anthropic_assistant(
                text("On it."), use("toolu_1", value={"path": "a"}), use("toolu_2", value={"path": "b"})
            ),
        ),
    ),
    Case(
        "interrupted_by_user",
        "anthropic",
        "the user spoke instead of the tool (ANT-04)",
        anthropic(
            user("Go."),
            anthropic_assistant(use("toolu_1", value={"path": "a"})),
            user("Stop. Do something else."),
            anthropic_assistant(text("As you wish.")),
            user("Good."),
        ),
    ),
    Case(
        "codex_view_image_interrupted",
        "kimi",
        "an interrupted call left in the history: view_image:24 has no result (KIM-02)",
        kimi(user("Look."), calls(call("view_image:24", "view_image", {"path": "a.png"})), user("Never mind, go on.")),
    ),
    Case(
        "call_in_a_user_message",
        "anthropic",
        "a tool_use that stands in a user message",
        anthropic(
            anthropic_user(text("Go."), use("toolu_1", value={"path": "a"})),
            anthropic_user(result("toolu_1", "A")),
            user("And?"),
        ),
    ),
    Case(
        "result_in_an_assistant_message",
        "anthropic",
        "a tool_result that stands in the assistant's message beside its call",
        anthropic(
            user("Go."),
            anthropic_assistant(use("toolu_1", value={"path": "a"}), result("toolu_1", "A"), text("It is A.")),
            user("And?"),
        ),
    ),
    Case(
        "text_in_a_tool_message",
        "anthropic",
        "the user's words between and before the results (ANT-05)",
        anthropic(
            user("Go."),
            anthropic_assistant(use("toolu_1", value={"path": "a"}), use("toolu_2", value={"path": "b"})),
            anthropic_user(text("Here:"), result("toolu_1", "A"), text("and"), result("toolu_2", "B")),
        ),
    ),
    Case(
        "text_parts_in_a_tool_message",
        "openai-chat",
        "tool content as a list of text parts, as Qwen Code sends it",
        chat(
            user("Go."),
            calls(call("call_1", "read_file", {"path": "a"})),
            tool("call_1", [{"type": "text", "text": "line one\n"}, {"type": "text", "text": "line two"}]),
        ),
    ),
    Case(
        "text_after_the_calls",
        "anthropic",
        "text behind tool_use: the results still come first (ANT-40)",
        anthropic(
            user("Go."),
            anthropic_assistant(use("toolu_1", value={"path": "a"}), text("Wait for it.")),
            anthropic_user(result("toolu_1", "A")),
        ),
    ),
    Case(
        "system_among_results",
        "openai-chat",
        "a system message between call and result (OAI-CHAT-15)",
        chat(
            user("Go."),
            calls(call("call_1", "read_file", {"path": "a"}), call("call_2", "read_file", {"path": "b"})),
            tool("call_1", "A"),
            system("Ten minutes left."),
            tool("call_2", "B"),
            user("Well?"),
        ),
    ),
    Case(
        "results_split_over_messages",
        "anthropic",
        "results in two user messages, which the server merges (ANT-21)",
        anthropic(
            user("Go."),
            anthropic_assistant(use("toolu_1", value={"path": "a"}), use("toolu_2", value={"path": "b"})),
            anthropic_user(result("toolu_1", "A")),
            anthropic_user(result("toolu_2", "B"), text("That is all.")),
        ),
    ),
    Case(
        "calls_split_over_messages",
        "openai-chat",
        "parallel calls as two assistant messages, then both results",
        chat(
            user("Go."),
            calls(call("call_1", "read_file", {"path": "a"})),
            calls(call("call_2", "read_file", {"path": "b"})),
            tool("call_1", "A"),
            tool("call_2", "B"),
        ),
    ),
    Case(
        "tool_first_history",
        "openai-chat",
        "a history cut so that it starts with a result and its call is gone",
        chat(tool("call_1", "content of a"), assistant("So a says that."), user("Go on.")),
    ),
    Case(
        "assistant_first_history",
        "openai-chat",
        "the model speaks first",
        chat(
            assistant("Hello, how can I help?"),
            user("Read a."),
            calls(call("call_1", "read_file", {"path": "a"})),
            tool("call_1", "A"),
        ),
    ),
    Case(
        "call_first_history",
        "anthropic",
        "a history cut so that it starts with a call",
        anthropic(
            anthropic_assistant(use("toolu_1", value={"path": "a"})),
            anthropic_user(result("toolu_1", "A")),
            anthropic_assistant(text("It is A.")),
            user("Go on."),
        ),
    ),
    Case(
        "legacy_function_call",
        "openai-chat",
        "function_call and role function: no ids at all",
        chat(
            user("Go."),
            assistant(None, function_call={"name": "read_file", "arguments": '{"path": "a"}'}),
            {"role": "function", "name": "read_file", "content": "A"},
            assistant(None, function_call={"name": "read_file", "arguments": '{"path": "b"}'}),
            {"role": "function", "name": "read_file", "content": "B"},
            user("And?"),
        ),
    ),
    Case(
        "legacy_function_call_unanswered",
        "openai-chat",
        "function_call without its function message",
        chat(user("Go."), assistant(None, function_call={"name": "read_file", "arguments": "{}"}), user("And?")),
    ),
    Case(
        "pending_with_text_after",
        "openai-chat",
        "an unanswered call, the user, and an answer that does not mention it",
        chat(
            user("Go."),
            calls(call("call_1", "read_file", {"path": "a"}), content="Let me see."),
            user("Actually, what is 2 + 2?"),
            assistant("4."),
            user("Thanks."),
        ),
    ),
)
