"""Mistral: nine-character ids that repeat, results with names, chunks, and the roles allowed after a tool."""

from __future__ import annotations

from tests.bodies import Body
from tests.bodies.chat import assistant, system, user
from tests.conversations.build import PNG, Case, call, calls, function, mistral, named_tool_result, tool


def thinks(*thoughts: str, words: str | None = None) -> list[Body]:
    """Content of a magistral: a chunk of thought, then text."""
    chunk: Body = {"type": "thinking", "thinking": [{"type": "text", "text": one} for one in thoughts]}
    return [chunk, {"type": "text", "text": words}] if words else [chunk]


def with_object(call_id: str, value: Body) -> Body:
    return {"id": call_id, "function": {"name": "read_file", "arguments": value}}


CASES = (
    Case(
        "mistral_one_call",
        "mistral",
        "clean: nine characters, the name on the result, an answer, a next question",
        mistral(
            system("Be brief."),
            user("Read a."),
            calls(call("aB3dE6gH9", "read_file", {"path": "a"}), content=""),
            named_tool_result("aB3dE6gH9", "content of a"),
            assistant("It says: content of a."),
            user("Thanks. And b?"),
        ),
    ),
    Case(
        "mistral_id_again_in_a_later_turn",
        "mistral",
        "the model gives the same nine characters for an equal call later (MIS-06, MIS-16)",
        mistral(
            user("Read a."),
            calls(call("aB3dE6gH9", "read_file", {"path": "a"})),
            named_tool_result("aB3dE6gH9", "content of a"),
            assistant("Read."),
            user("Once more."),
            calls(call("aB3dE6gH9", "read_file", {"path": "a"})),
            named_tool_result("aB3dE6gH9", "content of a, changed"),
        ),
    ),
    Case(
        "mistral_user_after_tool",
        "mistral",
        "the user's words directly behind the results (MIS-07)",
        mistral(
            user("Read a."),
            calls(call("aB3dE6gH9", "read_file", {"path": "a"})),
            named_tool_result("aB3dE6gH9", "content of a"),
            user("Be quick."),
            assistant("It says: content of a."),
            user("Thanks."),
        ),
    ),
    Case(
        "mistral_bridge",
        "mistral",
        "a bridge that another client put between tool and user",
        mistral(
            user("Read a."),
            calls(call("aB3dE6gH9", "read_file", {"path": "a"})),
            named_tool_result("aB3dE6gH9", "content of a"),
            assistant("[continued]"),
            user("Be quick."),
        ),
    ),
    Case(
        "mistral_prefix",
        "mistral",
        "an answer that is to be continued (MIS-10, MIS-14)",
        mistral(user("Name a colour."), assistant("The colour is", prefix=True)),
    ),
    Case(
        "mistral_ends_on_the_assistant",
        "mistral",
        "the same without the mark: refused (MIS-10)",
        mistral(user("Name a colour."), assistant("The colour is")),
    ),
    Case(
        "mistral_thinking",
        "mistral",
        "thinking chunks beside a call and before the answer, and the reasoning prompt",
        mistral(
            user("Read a."),
            calls(
                call("aB3dE6gH9", "read_file", {"path": "a"}), content=thinks("I need ", "the file.", words="Reading.")
            ),
            named_tool_result("aB3dE6gH9", "content of a"),
            assistant(thinks("It is short.", words="It says: content of a.")),
            user("And b?"),
            model="magistral-medium-latest",
            prompt_mode="reasoning",
        ),
    ),
    Case(
        "mistral_only_thinking",
        "mistral",
        "a message that holds nothing but a thought, with its signature",
        mistral(
            user("Think."),
            assistant([{"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}], "signature": "c2ln"}]),
            user("And?"),
            model="magistral-medium-latest",
        ),
    ),
    Case(
        "mistral_arguments_as_objects",
        "mistral",
        "arguments given as the object itself; calls without a type, one with an index",
        mistral(
            user("Read a and b."),
            {
                "role": "assistant",
                "content": None,
                "prefix": False,
                "tool_calls": [
                    with_object("aB3dE6gH1", {"path": "a"}),
                    {**with_object("aB3dE6gH2", {"path": "b"}), "type": "function", "index": 1},
                ],
            },
            named_tool_result("aB3dE6gH1", "A"),
            named_tool_result("aB3dE6gH2", "B"),
        ),
    ),
    Case(
        "mistral_chunks",
        "mistral",
        "content chunks: a picture by string and by object, a document, a reference, text in a result",
        mistral(
            user(
                [
                    {"type": "text", "text": "Compare these."},
                    {"type": "image_url", "image_url": f"data:image/png;base64,{PNG}"},
                    {"type": "image_url", "image_url": {"url": "https://pictures.example/b.png", "detail": "low"}},
                    {"type": "document_url", "document_url": "https://files.example/c.pdf", "document_name": "c.pdf"},
                ]
            ),
            assistant([{"type": "text", "text": "As "}, {"type": "reference", "reference_ids": [1, 2]}]),
            user("Read a."),
            calls(call("aB3dE6gH9", "read_file", {"path": "a"}), content="Reading."),
            named_tool_result("aB3dE6gH9", [{"type": "text", "text": "content "}, {"type": "text", "text": "of a"}]),
        ),
    ),
    Case(
        "mistral_no_ids",
        "mistral",
        "ids that are missing or the text null, results by name and order",
        mistral(
            user("Go."),
            calls(call("null", "read_file", {"path": "a"}), call("null", "glob", {"path": "*"})),
            {"role": "tool", "name": "glob", "content": "a b"},
            {"role": "tool", "name": "read_file", "content": "A"},
            tools=[function(), function("glob")],
        ),
    ),
    Case(
        "mistral_foreign_ids",
        "mistral",
        "ids of others in a Mistral body (MIS-01), two of which a client would cut to the same nine",
        mistral(
            user("Go."),
            calls(
                call("toolu_01AbCdEfGhIj", "read_file", {"path": "a"}),
                call("toolu_01AbCdEfGhIk", "read_file", {"path": "b"}),
                call("call_1", "read_file", {"path": "c"}),
            ),
            named_tool_result("toolu_01AbCdEfGhIj", "A"),
            named_tool_result("toolu_01AbCdEfGhIk", "B"),
            named_tool_result("call_1", "C"),
        ),
    ),
    Case(
        "mistral_cut_ids",
        "mistral",
        "a client cut three Anthropic ids to nine characters: all became one (MIS-06)",
        mistral(
            user("Go."),
            calls(*(call("toolu01aa", "read_file", {"path": name}) for name in "abc")),
            named_tool_result("toolu01aa", "A"),
            named_tool_result("toolu01aa", "B"),
            named_tool_result("toolu01aa", "C"),
        ),
    ),
    Case(
        "mistral_unequal",
        "mistral",
        "fewer results than calls, then one too many, then nobody's (MIS-03, 04, 08)",
        mistral(
            user("Go."),
            calls(call("aB3dE6gH1", "read_file", {"path": "a"}), call("aB3dE6gH2", "read_file", {"path": "b"})),
            named_tool_result("aB3dE6gH2", "B"),
            assistant("One of them."),
            user("Go on."),
            calls(call("aB3dE6gH3", "read_file", {"path": "c"})),
            named_tool_result("aB3dE6gH3", "C"),
            named_tool_result("aB3dE6gH3", "C, read again"),
            assistant("Read."),
            user("Well?"),
            named_tool_result("aB3dE6gH4", "nobody asked for this"),
        ),
    ),
    Case(
        "mistral_late_result",
        "mistral",
        "the result comes after the user spoke (MIS-08)",
        mistral(
            user("Read a."),
            calls(call("aB3dE6gH9", "read_file", {"path": "a"})),
            user("Are you still there?"),
            named_tool_result("aB3dE6gH9", "content of a"),
        ),
    ),
    Case(
        "mistral_system_in_the_middle",
        "mistral",
        "system text behind an answer and behind a result (MIS-09)",
        mistral(
            system("Be brief."),
            user("Read a."),
            calls(call("aB3dE6gH9", "read_file", {"path": "a"})),
            named_tool_result("aB3dE6gH9", "content of a"),
            system("Answer in French."),
            assistant("Lu."),
            system("Now in German."),
            user("Noch einmal."),
        ),
    ),
    Case(
        "mistral_empty_answer",
        "mistral",
        "an answer that is empty, and one that is null (MIS-11)",
        mistral(user("Hi."), assistant(""), user("Hello?"), assistant(None), user("Still there?")),
    ),
    Case(
        "mistral_options",
        "mistral",
        "options under Mistral's own names, a forced tool",
        mistral(
            user("Go."),
            max_tokens=512,
            random_seed=7,
            safe_prompt=True,
            stop=["END"],
            temperature=0.2,
            top_p=0.9,
            tool_choice="any",
            parallel_tool_calls=False,
            response_format={
                "type": "json_schema",
                "json_schema": {"name": "answer", "schema": {"type": "object", "properties": {}}, "strict": True},
            },
        ),
    ),
    Case(
        "mistral_pi_body",
        "mistral",
        "what pi sends: content lists, prefix false, index 0 on every call, results without names",
        mistral(
            user([{"type": "text", "text": "Read a and b."}]),
            {
                "role": "assistant",
                "content": [{"type": "text", "text": "Both."}],
                "prefix": False,
                "tool_calls": [
                    {**call("aB3dE6gH1", "read_file", {"path": "a"}), "index": 0},
                    {**call("aB3dE6gH2", "read_file", {"path": "b"}), "index": 0},
                ],
            },
            tool("aB3dE6gH2", [{"type": "text", "text": "B"}]),
            tool("aB3dE6gH1", [{"type": "text", "text": "A"}]),
        ),
    ),
)
