"""Thinking: signed, redacted, from other providers, missing, and bound to its prefix."""

from __future__ import annotations

from tests.bodies.anthropic import assistant as anthropic_assistant
from tests.bodies.anthropic import text
from tests.bodies.anthropic import user as anthropic_user
from tests.bodies.chat import assistant, user
from tests.conversations.build import (
    ENABLED,
    GONE,
    Case,
    anthropic,
    call,
    calls,
    chat,
    kimi,
    result,
    thinking,
    tool,
    use,
)

REDACTED = {"type": "redacted_thinking", "data": "RW1jUkVEQUNURUQ="}

CASES = (
    Case(
        "thinking_signed_home",
        "anthropic",
        "signed thinking in an open tool loop goes home whole",
        anthropic(
            user("Go."),
            anthropic_assistant(thinking("I should read a."), text("Reading."), use("toolu_1", value={"path": "a"})),
            anthropic_user(result("toolu_1", "A")),
            thinking=ENABLED,
            max_tokens=4096,
        ),
    ),
    Case(
        "thinking_from_another_model",
        "anthropic",
        "thinking belongs to the model that the body names: another one gets none",
        anthropic(
            user("Go."),
            anthropic_assistant(thinking("I should read a."), use("toolu_1", value={"path": "a"})),
            anthropic_user(result("toolu_1", "A")),
            anthropic_assistant(thinking("It is A."), text("It is A.")),
            user("Thanks. And b?"),
            thinking=ENABLED,
            max_tokens=4096,
        ),
        {"anthropic": "claude-opus-4-6"},
    ),
    Case(
        "redacted",
        "anthropic",
        "redacted thinking carries only data",
        anthropic(
            user("Go."),
            anthropic_assistant(REDACTED, thinking("Now read."), use("toolu_1", value={"path": "a"})),
            anthropic_user(result("toolu_1", "A")),
            thinking=ENABLED,
            max_tokens=4096,
        ),
    ),
    Case(
        "interleaved",
        "anthropic",
        "thinking between the calls of one turn (ANT-31)",
        anthropic(
            user("Go."),
            anthropic_assistant(
                thinking("First a."),
                use("toolu_1", value={"path": "a"}),
                thinking("Then b.", "QUFBQUFBQUE="),
                text("And b."),
                use("toolu_2", value={"path": "b"}),
            ),
            anthropic_user(result("toolu_1", "A"), result("toolu_2", "B")),
            thinking=ENABLED,
            max_tokens=4096,
        ),
    ),
    Case(
        "open_loop_without_thinking_while_thinking_on",
        "anthropic",
        "thinking is on, the open loop has none (ANT-24)",
        anthropic(
            user("Go."),
            anthropic_assistant(use("toolu_1", value={"path": "a"})),
            anthropic_user(result("toolu_1", "A")),
            thinking=ENABLED,
            max_tokens=4096,
        ),
    ),
    Case(
        "effort_with_an_open_loop",
        "openai-chat",
        "a chat log with reasoning effort in mid-loop: abroad there is no thinking to open it with (ANT-24)",
        chat(
            user("Go."),
            calls(call("call_1", "read_file", {"path": "a"})),
            tool("call_1", "A"),
            model="gpt-5",
            reasoning_effort="high",
        ),
    ),
    Case(
        "effort_with_a_closed_loop",
        "openai-chat",
        "the loop is closed and the user has spoken: thinking may be asked for",
        chat(
            user("Go."),
            calls(call("call_1", "read_file", {"path": "a"})),
            tool("call_1", "A"),
            assistant("It is A."),
            user("Think about it."),
            model="gpt-5",
            reasoning_effort="high",
        ),
    ),
    Case(
        "fable_prefix_bound",
        "anthropic",
        "from Fable 5.1 thinking is bound to its prefix: a repair before it drops it and all later ones (ANT-28)",
        anthropic(
            user("Go."),
            anthropic_assistant(thinking("First a."), use("toolu_1", value={"path": "a"})),
            user("Stop."),
            anthropic_assistant(thinking("Then stop."), text("Stopped.")),
            user("Go on."),
            model="claude-fable-5-1",
            thinking={"type": "adaptive"},
        ),
    ),
    Case(
        "fable_prefix_intact",
        "anthropic",
        "the same without a repair: every block stays",
        anthropic(
            user("Go."),
            anthropic_assistant(thinking("First a."), use("toolu_1", value={"path": "a"})),
            anthropic_user(result("toolu_1", "A")),
            anthropic_assistant(thinking("It is A."), text("A.")),
            user("Go on."),
            model="claude-fable-5-1",
            thinking={"type": "adaptive"},
        ),
    ),
    Case(
        "unsigned_thinking",
        "anthropic",
        "thinking without a signature, as a proxy writes it (ANT-26)",
        anthropic(
            user("Go."),
            anthropic_assistant(thinking("Hm.", GONE), text("Reading."), use("toolu_1", value={"path": "a"})),
            anthropic_user(result("toolu_1", "A")),
            anthropic_assistant(thinking("Well.", ""), text("A.")),
            user("And?"),
        ),
    ),
    Case(
        "foreign_signature",
        "anthropic",
        "a signature of another endpoint, which is no base64",
        anthropic(
            user("Go."),
            anthropic_assistant(thinking("Hm.", "sig: 9f8e-zai"), use("toolu_1", value={"path": "a"})),
            anthropic_user(result("toolu_1", "A")),
        ),
    ),
    Case(
        "thinking_in_the_last_message",
        "anthropic",
        "an ending on the assistant with thinking, and thinking not asked for (ANT-27)",
        anthropic(user("Go."), anthropic_assistant(thinking("Hm."), text("So"))),
    ),
    Case(
        "only_thinking",
        "anthropic",
        "a message that holds nothing but thinking",
        anthropic(
            user("Go."),
            anthropic_assistant(thinking("Hm.")),
            user("And?"),
            anthropic_assistant(text("Yes.")),
            user("Good."),
        ),
    ),
    Case(
        "kimi_reasoning_at_home",
        "kimi",
        "reasoning_content of K2 Thinking beside its calls (KIM-04)",
        kimi(
            user("Go."),
            calls(call("functions.read_file:0", "read_file", {"path": "a"}), content="", reasoning_content="First a."),
            tool("functions.read_file:0", "A"),
            assistant("It is A.", reasoning_content="Done."),
            user("And b?"),
            model="kimi-k2-thinking",
        ),
    ),
    Case(
        "kimi_reasoning_missing",
        "kimi",
        "K2 Thinking without reasoning_content beside calls (KIM-04)",
        kimi(
            user("Go."),
            calls(call("functions.read_file:0", "read_file", {"path": "a"})),
            tool("functions.read_file:0", "A"),
            model="kimi-k2-thinking",
        ),
    ),
    Case(
        "to_a_thinking_kimi",
        "anthropic",
        "Anthropic's thinking is not Kimi's; the key must be there all the same",
        anthropic(
            user("Go."),
            anthropic_assistant(thinking("First a."), use("toolu_1", value={"path": "a"})),
            anthropic_user(result("toolu_1", "A")),
        ),
        {"kimi": "kimi-k2-thinking"},
    ),
    Case(
        "reasoning_content_in_a_chat_body",
        "openai-chat",
        "reasoning_content in a Chat body: a key that OpenAI does not know (OAI-CHAT-22)",
        chat(
            user("Go."),
            calls(call("call_1", "read_file", {"path": "a"}), reasoning_content="First a."),
            tool("call_1", "A"),
            assistant("It is A.", reasoning_content="Done."),
            user("And?"),
        ),
    ),
    Case(
        "thinking_lost_by_an_older_turn",
        "anthropic",
        "thinking is on; an older turn has none, the open loop has",
        anthropic(
            user("Go."),
            anthropic_assistant(use("toolu_1", value={"path": "a"})),
            anthropic_user(result("toolu_1", "A")),
            anthropic_assistant(text("A.")),
            user("And b?"),
            anthropic_assistant(thinking("Now b."), use("toolu_2", value={"path": "b"})),
            anthropic_user(result("toolu_2", "B")),
            thinking=ENABLED,
            max_tokens=4096,
        ),
    ),
)
