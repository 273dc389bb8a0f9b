"""Conversations that Gemini wrote: calls without ids, signatures on parts, replies in pieces."""

from __future__ import annotations

from typing import Any

from .build import PNG, Body, Case

SIGNATURE = "c2lnbmVkIQ=="


def says(role: str, *parts: Body) -> Body:
    return {"role": role, "parts": list(parts)}


def asked(path: str, *, name: str = "read_file", signature: str | None = None, **more: Any) -> Body:
    part: Body = {"functionCall": {**more, "name": name, "args": {"path": path}}}
    return part if signature is None else {**part, "thoughtSignature": signature}


def given(said: Any, *, name: str = "read_file", **more: Any) -> Body:
    return {
        "functionResponse": {**more, "name": name, "response": said if isinstance(said, dict) else {"output": said}}
    }


def gemini(*contents: Body, **more: Any) -> Body:
    schema = {"type": "OBJECT", "properties": {"path": {"type": "STRING", "nullable": True}}, "required": ["path"]}
    declared = {"name": "read_file", "description": "Reads.", "parameters": schema}
    return {
        "contents": [says("user", {"text": "Go."}), *contents],
        "tools": [{"functionDeclarations": [declared]}],
        **more,
    }


CASES = (
    Case(
        "gemini_calls_without_ids",
        "gemini",
        "parallel calls of one function, paired by order; the error key is the flag (GEM-14)",
        gemini(
            says("model", asked("a", signature=SIGNATURE), asked("b"), asked("c")),
            says("user", given("A"), given({"error": "no such file"}), given({"rows": [1, 2.0]})),
        ),
    ),
    Case(
        "gemini_cli_body",
        "gemini",
        "what Gemini CLI sends: ids of its own making, thoughts, a signature that came last, built-in tools",
        gemini(
            says(
                "model",
                {"text": "Looking for it.", "thought": True},
                {"text": "I look."},
                asked("a", id="read_file_1_0", signature=SIGNATURE),
            ),
            says("user", given("A", id="read_file_1_0")),
            says("model", {"text": "It is A."}, {"text": "", "thoughtSignature": SIGNATURE}),
            says("user", {"text": "And?"}),
            systemInstruction={"role": "user", "parts": [{"text": "You are an agent."}]},
            generationConfig={"temperature": 1, "topP": 0.95, "topK": 64, "thinkingConfig": {"includeThoughts": True}},
        ),
    ),
    Case(
        "gemini_reply_in_pieces",
        "gemini",
        "a streamed reply sent back content by content, as the vendor's SDK does",
        gemini(
            says("model", {"text": "I "}),
            says("model", {"text": "look."}),
            says("model", asked("a", signature=SIGNATURE)),
            says("model", asked("b")),
            says("user", given("A"), given("B")),
        ),
    ),
    Case(
        "gemini_words_among_results",
        "gemini",
        "words and a picture beside results, results in two contents (GEM-01, GEM-04, GEM-27)",
        gemini(
            says("model", asked("a", signature=SIGNATURE), asked("b")),
            says("user", given("A"), {"inlineData": {"mimeType": "image/png", "data": PNG}}),
            says("user", given("B"), {"text": "And now?"}),
        ),
    ),
    Case(
        "gemini_picture_in_a_result",
        "gemini",
        "media inside a functionResponse, as Gemini 3 takes it",
        gemini(
            says("model", asked("a", signature=SIGNATURE)),
            says("user", given("seen", parts=[{"inlineData": {"mimeType": "image/png", "data": PNG}}])),
        ),
        {"gemini": "gemini-2.5-pro"},
    ),
    Case(
        "gemini_ran_tools_itself",
        "gemini",
        "code and a search that the provider ran: whole at home, pairs abroad (GEM-24)",
        gemini(
            says(
                "model",
                {"executableCode": {"language": "PYTHON", "code": "print(45)"}},
                {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "45\n"}},
                {"toolCall": {"id": "t1", "toolType": "GOOGLE_SEARCH_WEB", "args": {"queries": ["kelp"]}}},
                {"toolResponse": {"id": "t1", "toolType": "GOOGLE_SEARCH_WEB", "response": {"hits": 3}}},
                {"text": "45, and three hits."},
            ),
            says("user", {"text": "Good."}),
        ),
    ),
    Case(
        "gemini_files_it_holds",
        "gemini",
        "a film on YouTube, a file in the provider's store",
        {
            "contents": says(
                "user",
                {"fileData": {"fileUri": "https://www.youtube.com/watch?v=1"}, "videoMetadata": {"fps": 1}},
                {"fileData": {"mimeType": "image/png", "fileUri": "gs://bucket/a.png"}},
                {"text": "Compare."},
            )
        },
    ),
    Case(
        "gemini_to_an_older_model",
        "gemini",
        "the placeholder is not for older models, what they signed is",
        gemini(
            says("model", asked("a", id="x", signature=SIGNATURE)),
            says("user", given("A", id="x")),
            generationConfig={"thinkingConfig": {"thinkingLevel": "HIGH", "includeThoughts": True}},
        ),
        {"gemini": "gemini-2.5-flash"},
    ),
    Case(
        "gemini_unsigned_calls_to_the_newest",
        "gemini",
        "calls of an older model go on with a newer one: each turn gets the placeholder (GEM-17)",
        gemini(
            says("model", asked("a")),
            says("user", given("A")),
            says("model", {"text": "A."}),
            says("user", {"text": "And b?"}),
            says("model", asked("b")),
            says("user", given("B")),
        ),
        {"gemini": "gemini-3.8-flash"},
    ),
)
