"""Whole conversations that change the model in the middle, from the seed issues."""

from __future__ import annotations

from tests.bodies.anthropic import assistant as anthropic_assistant
from tests.bodies.anthropic import text
from tests.bodies.anthropic import user as anthropic_user
from tests.bodies.chat import assistant, system, user
from tests.conversations.build import Case, anthropic, call, calls, chat, kimi, result, thinking, tool, use

OPUS = {"anthropic": "claude-opus-4-6"}
K2 = {"kimi": "kimi-k2-0711-preview"}


def _round(number: int) -> list:
    one, two = f"functions.read_file:{2 * number}", f"functions.glob:{2 * number + 1}"
    return [
        calls(call(one, "read_file", {"path": f"{number}"}), call(two, "glob", {"path": f"{number}/*"})),
        tool(one, f"content of {number}"),
        tool(two, f"list of {number}"),
    ]


CASES = (
    Case(
        "kimi_then_opus",
        "kimi",
        "K2's ids have '.' and ':', which Anthropic refuses (ANT-01)",
        kimi(
            system("Be brief."),
            user("Read a."),
            calls(call("functions.read_file:0", "read_file", {"path": "a"}), content="Reading."),
            tool("functions.read_file:0", "A"),
            assistant("It is A."),
            user("Now you, Opus: read b."),
        ),
        OPUS,
    ),
    Case(
        "k2_four_rounds",
        "kimi",
        "four rounds of two calls: the ids that K2 gave stay its own",
        kimi(user("Go."), *_round(0), *_round(1), *_round(2), *_round(3)),
    ),
    Case(
        "openai_to_k2",
        "openai-chat",
        "a history of OpenAI continues with K2: functions.{tool}:{index} over the whole conversation",
        chat(
            user("Go."),
            calls(call("call_a1", "read_file", {"path": "a"}), call("call_b2", "glob", {"path": "*"})),
            tool("call_a1", "A"),
            tool("call_b2", "a b"),
            assistant("Two things."),
            user("And?"),
            calls(call("call_c3", "read_file", {"path": "b"})),
            tool("call_c3", "B"),
            model="gpt-4o",
        ),
        K2,
    ),
    Case(
        "k2_to_openai",
        "kimi",
        "a history of K2 continues with OpenAI",
        kimi(
            user("Go."),
            calls(
                call("functions.read_file:0", "read_file", {"path": "a"}),
                call("functions.glob:1", "glob", {"path": "*"}),
            ),
            tool("functions.read_file:0", "A"),
            tool("functions.glob:1", "a b"),
            assistant("Two things."),
            user("And?"),
        ),
        {"openai-chat": "gpt-4o"},
    ),
    Case(
        "k2_short_ids",
        "kimi",
        "the hosted API gives {name}:{index}; they are lawful and stay",
        kimi(
            user("Go."),
            calls(call("read_file:0", "read_file", {"path": "a"}), call("glob:1", "glob")),
            tool("read_file:0", "A"),
            tool("glob:1", "a b"),
        ),
    ),
    Case(
        "k2_ids_after_compression",
        "kimi",
        "a compressed log: the indexes start at 7 and stay",
        kimi(
            user("Go on."),
            calls(call("functions.read_file:7", "read_file", {"path": "a"})),
            tool("functions.read_file:7", "A"),
            calls(call("functions.read_file:9", "read_file", {"path": "b"})),
            tool("functions.read_file:9", "B"),
        ),
    ),
    Case(
        "k2_with_foreign_ids",
        "kimi",
        "ids of three providers in one log: foreign ones are replaced at home too, a taken index is passed over",
        kimi(
            user("Go."),
            calls(call("call_abc", "read_file", {"path": "a"})),
            tool("call_abc", "A"),
            calls(call("functions.read_file:1", "read_file", {"path": "b"})),
            tool("functions.read_file:1", "B"),
            calls(call("toolu_01x", "read_file", {"path": "c"})),
            tool("toolu_01x", "C"),
        ),
    ),
    Case(
        "k2_sanitised_ids",
        "kimi",
        "what another tool made of K2's ids",
        kimi(
            user("Go."),
            calls(call("functions_read_file_0", "read_file", {"path": "a"})),
            tool("functions_read_file_0", "A"),
        ),
    ),
    Case(
        "k3_by_order",
        "kimi",
        "K3 pairs by order: results without ids or names (KIM-08)",
        kimi(
            user("Go."),
            calls(call("call_1", "read_file", {"path": "a"}), call("call_2", "glob"), reasoning_content=""),
            {"role": "tool", "content": "A"},
            {"role": "tool", "content": "a b"},
            model="kimi-k3",
        ),
        {"kimi": "kimi-k3"},
    ),
    Case(
        "ids_of_three_providers",
        "openai-chat",
        "one log written by three providers in turn",
        chat(
            user("Go."),
            calls(call("call_1", "read_file", {"path": "a"})),
            tool("call_1", "A"),
            calls(call("toolu_01XYZ", "read_file", {"path": "b"})),
            tool("toolu_01XYZ", "B"),
            calls(call("functions.read_file:2", "read_file", {"path": "c"})),
            tool("functions.read_file:2", "C"),
            calls(call("aB3dE6gH9", "read_file", {"path": "d"})),
            tool("aB3dE6gH9", "D"),
        ),
    ),
    Case(
        "seed_003_section_7",
        "anthropic",
        "thinking, a call, its result; thinking, five calls of which only C3 is answered; thinking, text",
        anthropic(
            user("Go."),
            anthropic_assistant(thinking("One."), use("hist_tool_1", "read_file", {"path": "c1"})),
            anthropic_user(result("hist_tool_1", "real c1")),
            anthropic_assistant(
                thinking("Five."),
                use("hist_tool_2", "read_file", {"path": "c2"}),
                use("hist_tool_3", "read_file", {"path": "c3"}),
                use("hist_tool_4", "read_file", {"path": "c4"}),
                use("hist_tool_5", "glob", {"path": "c5"}),
                use("hist_tool_6", "glob", {"path": "c6"}),
            ),
            anthropic_user(result("hist_tool_3", "real c3")),
            anthropic_assistant(thinking("Enough."), text("This is what I know.")),
            user("Go on with what you have."),
        ),
    ),
    Case(
        "seed_003_section_7_from_chat",
        "openai-chat",
        "the same told by Chat",
        chat(
            user("Go."),
            calls(call("hist_tool_1", "read_file", {"path": "c1"}), reasoning_content="One."),
            tool("hist_tool_1", "real c1"),
            calls(
                call("hist_tool_2", "read_file", {"path": "c2"}),
                call("hist_tool_3", "read_file", {"path": "c3"}),
                call("hist_tool_4", "read_file", {"path": "c4"}),
                call("hist_tool_5", "glob", {"path": "c5"}),
                call("hist_tool_6", "glob", {"path": "c6"}),
                reasoning_content="Five.",
            ),
            tool("hist_tool_3", "real c3"),
            assistant("This is what I know.", reasoning_content="Enough."),
            user("Go on with what you have."),
        ),
    ),
    Case(
        "opus_then_fable",
        "anthropic",
        "a switch inside the family drops the thinking: it belongs to the model that the body names",
        anthropic(
            user("Go."),
            anthropic_assistant(thinking("First a."), text("Reading."), use("toolu_1", value={"path": "a"})),
            anthropic_user(result("toolu_1", "A")),
            model="claude-opus-4-6",
            thinking={"type": "adaptive"},
        ),
        {"anthropic": "claude-fable-5-1"},
    ),
)
