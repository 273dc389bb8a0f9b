"""Qwen on DashScope: switches beside the messages, strict arguments, ids that are empty."""

from __future__ import annotations

from tests.bodies.chat import assistant, system, user
from tests.conversations.build import PNG, Case, call, calls, function, qwen, tool, without_tools

THINKER = "qwen3-max"

CASES = (
    Case(
        "qwen_thinking_on",
        "qwen",
        "enable_thinking with a budget, and what the model thought in a loop",
        qwen(
            user("Read a."),
            calls(call("call_1", "read_file", {"path": "a"}), content="", reasoning_content="I need a."),
            tool("call_1", "A"),
            assistant("It says A.", reasoning_content="That is short."),
            user("And b?"),
            model=THINKER,
            enable_thinking=True,
            thinking_budget=2048,
            preserve_thinking=True,
        ),
    ),
    Case(
        "qwen_thinking_off",
        "qwen",
        "enable_thinking false on a model that would think",
        qwen(user("Hi."), model=THINKER, enable_thinking=False),
    ),
    Case(
        "qwen_empty_ids",
        "qwen",
        "DashScope gave empty ids to two calls of one function, in two turns",
        qwen(
            user("Go."),
            calls(call("", "read_file", {"path": "a"}), call("", "read_file", {"path": "b"}), content=""),
            tool("", "A"),
            tool("", "B"),
            calls(call("", "read_file", {"path": "c"}), content=""),
            tool("", "C"),
        ),
    ),
    Case(
        "qwen_broken_arguments",
        "qwen",
        "arguments that are cut off, empty, a number or a list (QWEN-03)",
        qwen(
            user("Go."),
            calls(
                call("call_1", "read_file", '{"path": "a'),
                call("call_2", "read_file", ""),
                call("call_3", "read_file", "7"),
                call("call_4", "read_file", '["a"]'),
            ),
            tool("call_1", "cut off"),
            tool("call_2", "empty"),
            tool("call_3", "a number"),
            tool("call_4", "a list"),
        ),
    ),
    Case("qwen_without_a_user", "qwen", "nobody has asked (QWEN-04)", qwen(system("Be brief."), assistant("Hello."))),
    Case(
        "qwen_code_body",
        "qwen",
        "what Qwen Code sends: text parts in results, content null, made-up ids, streaming with usage",
        qwen(
            system("You are Qwen Code."),
            user([{"type": "text", "text": "Read a and b."}]),
            calls(
                call("call_1700000000000_ab1", "read_file", '{"path":"a"}'),
                call("call_1700000000000_cd2", "read_file", '{"path":"b"}'),
                reasoning_content="Both at once.",
            ),
            tool("call_1700000000000_ab1", [{"type": "text", "text": "A"}]),
            tool("call_1700000000000_cd2", [{"type": "text", "text": "B"}]),
            stream=True,
            stream_options={"include_usage": True},
            metadata={"sessionId": "s", "promptId": "p"},
            vl_high_resolution_images=True,
        ),
    ),
    Case(
        "qwen_options",
        "qwen",
        "options that only DashScope has",
        qwen(
            user("Go."),
            top_k=20,
            repetition_penalty=1.05,
            seed=7,
            enable_search=True,
            search_options={"forced_search": True},
            parallel_tool_calls=True,
            max_tokens=512,
        ),
    ),
    Case(
        "qwen_media",
        "qwen",
        "a picture, a video as frames, a video by address, sound",
        without_tools(
            qwen(
                user(
                    [
                        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}},
                        {
                            "type": "video",
                            "video": ["https://pictures.example/1.jpg", "https://pictures.example/2.jpg"],
                        },
                        {"type": "video_url", "video_url": {"url": "https://films.example/a.mp4"}},
                        {
                            "type": "input_audio",
                            "input_audio": {"data": "https://sounds.example/a.wav", "format": "wav"},
                        },
                        {"type": "text", "text": "Compare these."},
                    ]
                ),
                model="qwen3-vl-plus",
            )
        ),
    ),
    Case(
        "qwen_broken_pairs",
        "qwen",
        "a missing result, an orphan, an id that comes again (QWEN-01, QWEN-02)",
        qwen(
            tool("call_9", "nobody asked for this"),
            user("Go."),
            calls(call("call_1", "read_file", {"path": "a"}), call("call_2", "glob", {"path": "*"})),
            tool("call_2", "a b"),
            user("And a?"),
            calls(call("call_1", "read_file", {"path": "a"})),
            tool("call_1", "A"),
            tools=[function(), function("glob")],
        ),
    ),
    Case(
        "qwen_partial",
        "qwen",
        "an answer that is to be continued",
        without_tools(qwen(user("Write a poem."), assistant("The sea", partial=True))),
    ),
)
