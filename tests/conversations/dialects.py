"""Requirements that only Mistral, DeepSeek and Qwen have."""

from __future__ import annotations

from typing import Any

from tests.bodies import Body
from tests.bodies.anthropic import assistant as anthropic_assistant
from tests.bodies.anthropic import user as anthropic_user
from tests.bodies.chat import assistant, system, user
from tests.conversations.build import Case, anthropic, call, calls, chat, function, result, tool, use


def mistral(*messages: Body, model: str | None = "mistral-medium-latest", **more: Any) -> Body:
    return chat(*messages, model=model, **more)


def deepseek(*messages: Body, model: str | None = "deepseek-v4-pro", **more: Any) -> Body:
    return chat(*messages, model=model, **more)


def qwen(*messages: Body, model: str | None = "qwen-plus", **more: Any) -> Body:
    return chat(*messages, model=model, **more)


def thought(text: str) -> Body:
    return {"type": "thinking", "thinking": [{"type": "text", "text": text}]}


def text_chunk(text: str) -> Body:
    return {"type": "text", "text": text}


CASES = (
    Case(
        "mistral_loop_home",
        "mistral",
        "nine characters an id, arguments as an object, an id that comes again in a later turn (MIS-06)",
        mistral(
            system("Be brief."),
            user("Go."),
            calls(call("D681PevKs", "read_file", {"path": "a"}), content=""),
            tool("D681PevKs", "A", name="read_file"),
            assistant("It is A."),
            user("Again."),
            {
                "role": "assistant",
                "content": "",
                "tool_calls": [{"id": "D681PevKs", "function": {"name": "read_file", "arguments": {"path": "a"}}}],
            },
            tool("D681PevKs", "A"),
            random_seed=7,
            safe_prompt=False,
        ),
    ),
    Case(
        "mistral_thinking_chunks",
        "mistral",
        "thinking among the parts of a reply goes back to a model that thinks (MIS-14)",
        mistral(
            user("Go."),
            calls(call("D681PevKs", "read_file", {"path": "a"}), content=[thought("First a.")]),
            tool("D681PevKs", "A"),
            assistant([thought("Done."), text_chunk("It is A.")]),
            user("And b?"),
            model="magistral-medium-2509",
        ),
    ),
    Case(
        "mistral_thinking_for_one_that_does_not",
        "mistral",
        "the same for a model that takes no thinking back",
        mistral(
            user("Go."), assistant([thought("Hm."), text_chunk("A.")]), user("And?"), model="magistral-medium-2509"
        ),
        {"mistral": "mistral-large-2512"},
    ),
    Case(
        "mistral_roles_out_of_order",
        "mistral",
        "a user behind a result (MIS-07), system text behind a reply (MIS-09), a reply at the end (MIS-10)",
        mistral(
            user("Go."),
            calls(call("D681PevKs", "read_file", {"path": "a"})),
            tool("D681PevKs", "A"),
            user("Wait."),
            assistant("Waiting."),
            system("From now on in French."),
            user("Go on."),
            assistant("D'accord."),
        ),
    ),
    Case(
        "mistral_prefix_at_home",
        "mistral",
        "the beginning of an answer, marked; an older mark has to go (MIS-14)",
        mistral(user("Count."), assistant("One", prefix=True), user("Count on."), assistant("Two", prefix=True)),
    ),
    Case(
        "mistral_unknown_keys",
        "mistral",
        "keys of other APIs are refused on every level, and so is an empty list of tools (MIS-13)",
        mistral(
            {**user("Go."), "name": "bob"},
            assistant("A.", reasoning_content="Hm."),
            user("And?"),
            tools=[],
            max_completion_tokens=100,
            stream_options={"include_usage": True},
        ),
    ),
    Case(
        "to_the_oldest_mistral",
        "openai-chat",
        "words beside calls, which the first generations do not take (MIS-11)",
        chat(
            user("Go."),
            calls(call("call_1", "read_file", {"path": "a"}), content="I look."),
            tool("call_1", "A"),
            assistant("It is A."),
            user("And b?"),
        ),
        {"mistral": "open-mixtral-8x22b"},
    ),
    Case(
        "deepseek_reasoning_home",
        "deepseek",
        "every reply of an exchange with calls has its reasoning (DS-02)",
        deepseek(
            user("Go."),
            calls(call("call_00_a", "read_file", {"path": "a"}), content="", reasoning_content="First a."),
            tool("call_00_a", "A"),
            assistant("It is A.", reasoning_content=""),
            user("And b?"),
            thinking={"type": "enabled"},
            reasoning_effort="max",
        ),
    ),
    Case(
        "deepseek_reasoning_missing",
        "deepseek",
        "and where a client lost it, there is a placeholder",
        deepseek(
            user("Hi."),
            assistant("Hello."),
            user("Go."),
            calls(call("call_00_a", "read_file", {"path": "a"})),
            tool("call_00_a", "A"),
            assistant("It is A."),
            user("And b?"),
        ),
    ),
    Case(
        "to_a_thinking_deepseek",
        "anthropic",
        "from abroad every reply gets one",
        anthropic(
            user("Hi."),
            anthropic_assistant(text_chunk("Hello.")),
            user("Go."),
            anthropic_assistant(use("toolu_1", value={"path": "a"})),
            anthropic_user(result("toolu_1", "A")),
        ),
        {"deepseek": "deepseek-v4-flash"},
    ),
    Case(
        "deepseek_r1_at_home",
        "deepseek",
        "R1 takes neither its own reasoning (DS-04) nor two users in a row (DS-07), nor a reply at the end (DS-08)",
        deepseek(
            user("Go."), user("Please."), assistant("A.", reasoning_content="Hm."), assistant("B."), model="deepseek-r1"
        ),
    ),
    Case(
        "deepseek_forced_choice",
        "deepseek",
        "no tool can be forced while the model thinks (DS-09)",
        deepseek(
            user("Go."),
            calls(call("call_00_a", "read_file", {"path": "a"}), reasoning_content="First a."),
            tool("call_00_a", "A"),
            tools=[function()],
            tool_choice="required",
        ),
    ),
    Case(
        "deepseek_prefix_at_home",
        "deepseek",
        "the beginning of an answer, marked",
        deepseek(user("Count."), assistant("One", prefix=True), model="deepseek-chat"),
    ),
    Case(
        "qwen_loop_home",
        "qwen",
        "thinking by a switch with a budget, a part of an answer to go on from",
        qwen(
            user("Go."),
            calls(call("call_1", "read_file", {"path": "a"}), content="", reasoning_content="First a."),
            tool("call_1", "A"),
            user("Say it in one word."),
            assistant("It", partial=True),
            enable_thinking=True,
            thinking_budget=1000,
            parallel_tool_calls=True,
        ),
    ),
    Case(
        "qwen_arguments_not_an_object",
        "qwen",
        "arguments that are cut off, empty or no object (QWEN-03)",
        qwen(
            user("Go."),
            calls(call("call_1", "read_file", '{"path": '), call("call_2", "read_file", ""), call("call_3", "x", "3")),
            tool("call_1", "A"),
            tool("call_2", "B"),
            tool("call_3", "C"),
        ),
    ),
    Case(
        "qwen_nobody_asked",
        "qwen",
        "a history without any user (QWEN-04)",
        qwen(
            system("Do your task."), calls(call("call_1", "read_file", {"path": "a"}), content=""), tool("call_1", "A")
        ),
    ),
)
