"""Converse bodies: models of many makers behind one shape, each with rules of its own."""

from __future__ import annotations

from tests.bodies import Body
from tests.bodies.anthropic import user as anthropic_user
from tests.bodies.bedrock import assistant as converse_assistant
from tests.bodies.bedrock import user as converse_user
from tests.conversations.build import PDF, PNG, Case, anthropic, bedrock, thought, tool_result, tool_spec, tool_use

CLAUDE = "us.anthropic.claude-sonnet-4-5-20250929-v1:0"
NOVA = "amazon.nova-pro-v1:0"
LLAMA = "meta.llama3-3-70b-instruct-v1:0"
MISTRAL = "mistral.mistral-large-2407-v1:0"
UNTITLED: Body = {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": PDF}}
POINT: Body = {"cachePoint": {"type": "default"}}


def image(data: str = PNG) -> Body:
    return {"image": {"format": "png", "source": {"bytes": data}}}


def document(name: str, data: str = PDF, form: str = "pdf") -> Body:
    return {"document": {"format": form, "name": name, "source": {"bytes": data}}}


CASES = (
    Case(
        "bedrock_one_call",
        "bedrock",
        "clean: one call, its result, an answer, a next question; system text and cache points",
        bedrock(
            converse_user("Read a.", POINT),
            converse_assistant("I read it.", tool_use("tooluse_k1", value={"path": "a"})),
            converse_user(tool_result("tooluse_k1", "content of a")),
            converse_assistant("It says: content of a."),
            converse_user("Thanks. And b?"),
            model=CLAUDE,
            tools={"tools": [tool_spec(), POINT], "toolChoice": {"auto": {}}},
            system=[{"text": "Be brief."}, POINT],
            inferenceConfig={"maxTokens": 1024, "temperature": 0.5, "stopSequences": ["END"]},
            additionalModelRequestFields={"top_k": 40},
            requestMetadata={"team": "a"},
        ),
    ),
    Case(
        "bedrock_claude_thinks",
        "bedrock",
        "signed and redacted reasoning of Claude before calls, thinking switched on (BED-11)",
        bedrock(
            converse_user("Read a and b."),
            converse_assistant(
                thought("Two files."),
                {"reasoningContent": {"redactedContent": "c2VhbGVk"}},
                tool_use("tooluse_1", value={"path": "a"}),
                tool_use("tooluse_2", value={"path": "b"}),
            ),
            converse_user(tool_result("tooluse_2", "B"), tool_result("tooluse_1", "A", status="success")),
            model=CLAUDE,
            inferenceConfig={"maxTokens": 4096},
            additionalModelRequestFields={"thinking": {"type": "enabled", "budget_tokens": 2048}},
        ),
        {"bedrock": CLAUDE},
    ),
    Case(
        "bedrock_reasoning_to_another_model",
        "bedrock",
        "the same reasoning goes to Nova: signatures are of one model (ANT-29)",
        bedrock(
            converse_user("Read a."),
            converse_assistant(thought("A file."), tool_use("tooluse_1", value={"path": "a"})),
            converse_user(tool_result("tooluse_1", "A")),
            converse_assistant(thought("Done."), "It says A."),
            converse_user("Thanks. Again."),
            model=CLAUDE,
            additionalModelRequestFields={"thinking": {"type": "enabled", "budget_tokens": 2048}},
        ),
        {"bedrock": NOVA},
    ),
    Case(
        "bedrock_results_of_all_kinds",
        "bedrock",
        "results of JSON, of JSON beside text, a picture, a document, an error (BED-09)",
        bedrock(
            converse_user("Look at everything."),
            converse_assistant(*(tool_use(f"tooluse_{n}", value={"path": str(n)}) for n in range(5))),
            converse_user(
                tool_result("tooluse_0", {"json": {"next": "14:05", "rows": [1, 1.0]}}),
                tool_result("tooluse_1", {"json": {"next": "14:05"}}, "platform 3"),
                tool_result("tooluse_2", "a picture", image()),
                tool_result("tooluse_3", document("report"), "a document"),
                tool_result("tooluse_4", "no such file", status="error"),
            ),
            model=CLAUDE,
        ),
    ),
    Case(
        "bedrock_holes",
        "bedrock",
        "a result is missing, one is there twice, one is of nobody (BED-04, BED-05)",
        bedrock(
            converse_user("Read a and b."),
            converse_assistant(tool_use("tooluse_1", value={"path": "a"}), tool_use("tooluse_2", value={"path": "b"})),
            converse_user(
                tool_result("tooluse_1", "A"), tool_result("tooluse_1", "A"), tool_result("tooluse_9", "lost")
            ),
            converse_user("Go on."),
            model=NOVA,
        ),
        {"bedrock": NOVA},
    ),
    Case(
        "bedrock_nova_grounds",
        "bedrock",
        "a tool that Nova ran itself, and what it cites",
        bedrock(
            converse_user("Is there a strike?"),
            converse_assistant(
                tool_use("tooluse_s1", "nova_grounding", {"query": "rail strike"}, type="server_tool_use"),
                tool_result("tooluse_s1", "no strike announced", type="nova_grounding_result"),
                {
                    "citationsContent": {
                        "content": [{"text": "No strike was announced."}],
                        "citations": [{"location": {"web": {"url": "https://rail.example/news"}}}],
                    }
                },
            ),
            converse_user("Thanks."),
            model="us.amazon.nova-2-lite-v1:0",
            tools={"tools": [{"systemTool": {"name": "nova_grounding"}}, tool_spec()]},
            additionalModelRequestFields={"reasoningConfig": {"type": "enabled", "maxReasoningEffort": "low"}},
        ),
        {"bedrock": "us.amazon.nova-2-lite-v1:0"},
    ),
    Case(
        "bedrock_llama_words_beside_results",
        "bedrock",
        "words in one message with results, which Llama refuses; the assistant speaks first (BED-06, BED-07)",
        bedrock(
            converse_assistant("How can I help?"),
            converse_user("Read a."),
            converse_assistant(tool_use("tooluse_1", value={"path": "a"})),
            converse_user(tool_result("tooluse_1", "A"), "What does it say?"),
            model=LLAMA,
        ),
        {"bedrock": LLAMA},
    ),
    Case(
        "bedrock_mistral_ids",
        "bedrock",
        "ids that Converse takes and Mistral's models refuse (BED-01, MIS-01), neighbours of one role (BED-10)",
        bedrock(
            converse_user("Read a."),
            converse_user("And b."),
            converse_assistant(tool_use("tooluse_1", value={"path": "a"}), tool_use("abcDEF123", value={"path": "b"})),
            converse_user(tool_result("tooluse_1", "A")),
            converse_user(tool_result("abcDEF123", "B")),
            model=MISTRAL,
        ),
        {"bedrock": MISTRAL},
    ),
    Case(
        "bedrock_documents",
        "bedrock",
        "documents beside results, without words, under odd names and twice under one (BED-07)",
        bedrock(
            converse_user(document("My_report.v2.pdf")),
            converse_assistant(tool_use("tooluse_1", value={"path": "a"})),
            converse_user(
                tool_result("tooluse_1", "A"), "Compare it with this.", document("sheet", "YSxiCjEsMgo=", "csv")
            ),
            converse_assistant("They are equal."),
            converse_user(
                "And this?",
                document("sheet", "YSxiCjMsNAo=", "csv"),
                {
                    "document": {
                        "format": "txt",
                        "name": "note",
                        "source": {"text": "The grass is green."},
                        "citations": {"enabled": True},
                    }
                },
            ),
            model=CLAUDE,
        ),
        {"bedrock": CLAUDE},
    ),
    Case(
        "documents_without_words",
        "anthropic",
        "two untitled documents and no words, which Converse wants to have names and words",
        anthropic(
            anthropic_user(
                *({"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": PDF}},) * 2
            )
        ),
    ),
    Case(
        "bedrock_blank_and_undeclared",
        "bedrock",
        "blank texts, an empty message and no declared tool where there were calls (BED-03, BED-08)",
        bedrock(
            converse_user("Read a.", "", " "),
            converse_assistant("", tool_use("tooluse_1", value={"path": "a"})),
            converse_user(tool_result("tooluse_1", "")),
            converse_assistant(" "),
            converse_user("Well?"),
            converse_assistant(),
            converse_user("Hello?"),
            tools=None,
        ),
    ),
    Case(
        "bedrock_guarded",
        "bedrock",
        "guarded text and picture, a search result, a film in Amazon's own storage",
        bedrock(
            converse_user(
                {"guardContent": {"text": {"text": "My card is 4111.", "qualifiers": ["guard_content"]}}},
                {"guardContent": {"image": {"format": "png", "source": {"bytes": PNG}}}},
                {
                    "searchResult": {
                        "source": "https://rail.example/news",
                        "title": "Rail news",
                        "content": [{"text": "No strike."}],
                    }
                },
                {"video": {"format": "mp4", "source": {"s3Location": {"uri": "s3://films/one.mp4"}}}},
                "What of it?",
            ),
            model=NOVA,
            tools=None,
            system=[{"guardContent": {"text": {"text": "Be careful."}}}],
            guardrailConfig={"guardrailIdentifier": "abc123", "guardrailVersion": "1"},
        ),
        {"bedrock": NOVA},
    ),
    Case(
        "bedrock_palmyra_fails",
        "bedrock",
        "a failed call, told to a model that refuses `status` (BED-09)",
        bedrock(
            converse_user("Read a."),
            converse_assistant(tool_use("tooluse_1", value={"path": "a"})),
            converse_user(tool_result("tooluse_1", "no such file", status="error")),
            model="us.writer.palmyra-x5-v1:0",
        ),
        {"bedrock": "us.writer.palmyra-x5-v1:0"},
    ),
)
