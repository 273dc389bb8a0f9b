"""Ids that are reused, missing, too long, or alike."""

from __future__ import annotations

from tests.bodies.anthropic import assistant as anthropic_assistant
from tests.bodies.anthropic import text
from tests.bodies.anthropic import user as anthropic_user
from tests.bodies.chat import assistant, user
from tests.conversations.build import GONE, Case, anthropic, call, calls, chat, kimi, result, tool, use

LONG = "toolcall-0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef01234"

CASES = (
    Case(
        "id_reused_in_a_later_turn",
        "openai-chat",
        "the same id in two turns is two calls; the later result is real and stays",
        chat(
            user("Read a."),
            calls(call("call_abc", "read_file", {"path": "a"})),
            tool("call_abc", "content of a"),
            assistant("Done. Next?"),
            user("Read b."),
            calls(call("call_abc", "read_file", {"path": "b"})),
            tool("call_abc", "content of b"),
        ),
    ),
    Case(
        "same_id_twice_in_one_message",
        "openai-chat",
        "one id for two parallel calls: answered in order",
        chat(
            user("Read a and b."),
            calls(call("call_x", "read_file", {"path": "a"}), call("call_x", "read_file", {"path": "b"})),
            tool("call_x", "content of a"),
            tool("call_x", "content of b"),
        ),
    ),
    Case(
        "constant_id_for_ever",
        "openai-chat",
        "a server that gives every call of the conversation one id (llama.cpp)",
        chat(
            user("Go."),
            calls(call("chatcmpl-tool", "read_file", {"path": "a"})),
            tool("chatcmpl-tool", "content of a"),
            calls(call("chatcmpl-tool", "read_file", {"path": "b"})),
            tool("chatcmpl-tool", "content of b"),
            calls(call("chatcmpl-tool", "read_file", {"path": "a"})),
            tool("chatcmpl-tool", "content of a, changed"),
        ),
    ),
    Case(
        "ids_restart_each_turn",
        "openai-chat",
        "per-response counters: call_0 and call_1 in every turn",
        chat(
            user("Go."),
            calls(call("call_0", "glob", {"path": "*"}), call("call_1", "read_file", {"path": "a"})),
            tool("call_0", "a b"),
            tool("call_1", "content of a"),
            calls(call("call_0", "read_file", {"path": "b"})),
            tool("call_0", "content of b"),
            user("Again."),
            calls(call("call_0", "glob", {"path": "*"}), call("call_1", "read_file", {"path": "a"})),
            tool("call_1", "content of a again"),
            tool("call_0", "a b again"),
        ),
    ),
    Case(
        "id_reused_while_the_first_is_open",
        "openai-chat",
        "the newest turn that bears the id decides; the older call was never answered",
        chat(
            user("Read a."),
            calls(call("call_0", "read_file", {"path": "a"})),
            user("No, read b."),
            calls(call("call_0", "read_file", {"path": "b"})),
            tool("call_0", "content of b"),
        ),
    ),
    Case(
        "empty_call_id_with_response",
        "openai-chat",
        "DashScope gives empty ids: calls and results meet by order",
        chat(
            user("Go."),
            calls(call("", "read_file", {"path": "a"}), call("", "read_file", {"path": "b"})),
            tool("", "content of a"),
            tool("", "content of b"),
            calls(call("", "read_file", {"path": "c"})),
            tool("", "content of c"),
        ),
    ),
    Case(
        "null_ids",
        "openai-chat",
        "null, the text null and a missing key all mean no id",
        chat(
            user("Go."),
            calls(call(None, "read_file", {"path": "a"}), call("null", "read_file", {"path": "b"}), call(GONE, "glob")),
            tool(None, "content of a"),
            tool("null", "content of b"),
            tool(GONE, "a b"),
        ),
    ),
    Case(
        "results_without_ids_by_name",
        "openai-chat",
        "results without ids that carry the tool's name go by name",
        chat(
            user("Go."),
            calls(call(GONE, "read_file", {"path": "a"}), call(GONE, "glob", {"path": "*"})),
            tool(GONE, "a b", name="glob"),
            tool(GONE, "content of a", name="read_file"),
        ),
    ),
    Case(
        "response_with_empty_call_id",
        "openai-chat",
        "the call has an id, its result has none",
        chat(user("Go."), calls(call("call_1", "read_file", {"path": "a"})), tool("", "content of a")),
    ),
    Case(
        "result_with_an_id_nobody_gave",
        "openai-chat",
        "the client made up an id for a call that had none",
        chat(user("Go."), calls(call("", "read_file", {"path": "a"})), tool("call_17000_ab", "content of a")),
    ),
    Case(
        "some_calls_with_ids_and_some_without",
        "openai-chat",
        "results without ids take the calls without ids first",
        chat(
            user("Go."),
            calls(call("call_1", "read_file", {"path": "a"}), call("", "read_file", {"path": "b"})),
            tool("", "content of b"),
            tool("call_1", "content of a"),
        ),
    ),
    Case(
        "long_ids",
        "openai-chat",
        "ids of 100 characters that differ at the end only",
        chat(
            user("Go."),
            calls(
                call(f"{LONG}-000001", "read_file", {"path": "a"}), call(f"{LONG}-000002", "read_file", {"path": "b"})
            ),
            tool(f"{LONG}-000001", "content of a"),
            tool(f"{LONG}-000002", "content of b"),
        ),
    ),
    Case(
        "responses_item_ids",
        "openai-chat",
        "ids of the Responses API in a chat log: fc_ with 51 characters, and two ids in one",
        chat(
            user("Go."),
            calls(
                call("fc_0f0e50a1476a6c35006912c58dc9f8819192c25864eb16f07f", "read_file", {"path": "a"}),
                call("call_a|fc_b", "read_file", {"path": "b"}),
            ),
            tool("fc_0f0e50a1476a6c35006912c58dc9f8819192c25864eb16f07f", "content of a"),
            tool("call_a|fc_b", "content of b"),
        ),
    ),
    Case(
        "ids_alike_after_sanitising",
        "openai-chat",
        "a.b, a:b and a_b are three ids",
        chat(
            user("Go."),
            calls(
                call("a.b", "glob", {"path": "1"}),
                call("a:b", "glob", {"path": "2"}),
                call("a_b", "glob", {"path": "3"}),
            ),
            tool("a_b", "three"),
            tool("a:b", "two"),
            tool("a.b", "one"),
        ),
    ),
    Case(
        "ids_alike_but_for_the_prefix",
        "openai-chat",
        "x, call_x, toolu_x and call_call_x are four ids",
        chat(
            user("Go."),
            calls(
                call("x", "glob", {"path": "1"}),
                call("call_x", "glob", {"path": "2"}),
                call("toolu_x", "glob", {"path": "3"}),
                call("call_call_x", "glob", {"path": "4"}),
            ),
            tool("x", "one"),
            tool("call_x", "two"),
            tool("toolu_x", "three"),
            tool("call_call_x", "four"),
        ),
    ),
    Case(
        "canonical_ids_from_outside",
        "openai-chat",
        "well-formed canonical ids pass; a repeat in a later turn is another call",
        chat(
            user("Go."),
            calls(call("hist_tool_abc", "read_file", {"path": "a"})),
            tool("hist_tool_abc", "content of a"),
            calls(call("hist_tool_abc", "read_file", {"path": "b"})),
            tool("hist_tool_abc", "content of b"),
        ),
    ),
    Case(
        "malformed_canonical_ids",
        "openai-chat",
        "the prefix alone makes no canonical id",
        chat(
            user("Go."),
            calls(call("hist_tool_functions.read_file:3", "read_file", {"path": "a"}), call("hist_tool_", "glob")),
            tool("hist_tool_functions.read_file:3", "content of a"),
            tool("hist_tool_", "a b"),
        ),
    ),
    Case(
        "ids_of_one_provider_repeat_the_projection_of_another",
        "openai-chat",
        "a log whose raw ids look like what a projection would make",
        chat(
            user("Go."),
            calls(
                call("functions.read_file:1", "read_file", {"path": "a"}),
                call("functions.read_file:0", "read_file", {"path": "b"}),
            ),
            tool("functions.read_file:1", "content of a"),
            tool("functions.read_file:0", "content of b"),
        ),
    ),
    Case(
        "anthropic_ids_restart",
        "anthropic",
        "an Anthropic-shaped server with per-turn ids: unlawful at home (ANT-03)",
        anthropic(
            user("Go."),
            anthropic_assistant(text("First."), use("toolu_0", value={"path": "a"})),
            anthropic_user(result("toolu_0", "content of a")),
            anthropic_assistant(use("toolu_0", value={"path": "b"})),
            anthropic_user(result("toolu_0", "content of b")),
        ),
    ),
    Case(
        "anthropic_ids_empty",
        "anthropic",
        "two parallel calls with empty ids, as a proxy hands them to Claude Code",
        anthropic(
            user("Go."),
            anthropic_assistant(use("", value={"path": "a"}), use("", value={"path": "b"})),
            anthropic_user(result("", "content of a"), result("", "content of b")),
        ),
    ),
    Case(
        "anthropic_ids_of_kimi",
        "anthropic",
        "functions.Read:0 echoed by Claude Code in an Anthropic body (ANT-01)",
        anthropic(
            user("Go."),
            anthropic_assistant(use("functions.Read:0", "Read", {"path": "a"})),
            anthropic_user(result("functions.Read:0", "content of a")),
            tools=GONE,
        ),
    ),
    Case(
        "kimi_ids_restart",
        "kimi",
        "vLLM-served Kimi starts at 0 in every round (KIM-07)",
        kimi(
            user("Go."),
            calls(call("functions.read_file:0", "read_file", {"path": "a"}), call("functions.glob:1", "glob")),
            tool("functions.read_file:0", "content of a"),
            tool("functions.glob:1", "a b"),
            calls(call("functions.read_file:0", "read_file", {"path": "b"})),
            tool("functions.read_file:0", "content of b"),
        ),
    ),
)
