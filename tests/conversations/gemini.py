"""Gemini contents: parts without ids, signatures on parts, results that are objects, camelCase and snake_case keys."""

from __future__ import annotations

from tests.bodies import Body
from tests.bodies.gemini import model as gemini_model
from tests.bodies.gemini import user as gemini_user
from tests.conversations.build import (
    PDF,
    PNG,
    Case,
    gemini,
    gemini_tools,
    part_call,
    part_result,
    part_text,
    without_tools,
)

SIGNATURE = "CiQBjz1rXwAb3cd0"
OTHER = "CiQBjz1rXwEf9gh1"
SKIP = "skip_thought_signature_validator"
GEMINI_3 = {"gemini": "gemini-3-pro-preview"}
GEMINI_25 = {"gemini": "gemini-2.5-pro"}
OPENAPI: Body = {
    "type": "OBJECT",
    "properties": {
        "city": {"type": "STRING", "description": "Where.", "nullable": True},
        "days": {"type": "INTEGER", "format": "int32", "minimum": 1},
        "unit": {"type": "STRING", "format": "enum", "enum": ["C", "F"]},
        "tags": {"type": "ARRAY", "items": {"type": "STRING"}, "maxItems": "3"},
        "when": {"anyOf": [{"type": "STRING"}, {"type": "NUMBER"}]},
    },
    "required": ["city"],
    "propertyOrdering": ["city", "days", "unit", "tags", "when"],
}
REFERRING: Body = {
    "type": "object",
    "$defs": {"place": {"type": "object", "properties": {"city": {"type": "string"}}, "additionalProperties": False}},
    "properties": {"from": {"$ref": "#/$defs/place"}, "to": {"$ref": "#/$defs/place"}},
    "required": ["from"],
}


def blob(data: str = PNG, mime: str = "image/png", **more: str) -> Body:
    return {"inlineData": {"mimeType": mime, "data": data, **more}}


CASES = (
    Case(
        "gemini_one_call",
        "gemini",
        "clean: one call without an id, its result, an answer, a next question",
        gemini(
            gemini_user("Read a."),
            gemini_model("I read it.", part_call(args={"path": "a"})),
            gemini_user(part_result("read_file", "content of a")),
            gemini_model("It says: content of a."),
            gemini_user("Thanks. And b?"),
            systemInstruction={"parts": [{"text": "Be brief."}]},
        ),
    ),
    Case(
        "gemini_snake_case",
        "gemini",
        "every key as google-genai writes it inside",
        {
            "contents": [
                gemini_user("Read a."),
                gemini_model({"function_call": {"id": "fc-1", "name": "read_file", "args": {"path": "a"}}}),
                gemini_user(
                    {"function_response": {"id": "fc-1", "name": "read_file", "response": {"result": "content of a"}}}
                ),
                gemini_user({"inline_data": {"mime_type": "image/png", "data": PNG}}, "What is this?"),
            ],
            "system_instruction": {"parts": [{"text": "Be brief."}]},
            "tools": [
                {
                    "function_declarations": [
                        {
                            "name": "read_file",
                            "description": "Reads.",
                            "parameters_json_schema": {"type": "object", "properties": {"path": {"type": "string"}}},
                        }
                    ]
                }
            ],
            "tool_config": {"function_calling_config": {"mode": "AUTO"}},
            "generation_config": {
                "max_output_tokens": 1024,
                "stop_sequences": ["END"],
                "thinking_config": {"include_thoughts": True, "thinking_budget": 1024},
            },
        },
    ),
    Case(
        "gemini_several_calls_of_one_function",
        "gemini",
        "three calls of one function without ids: results meet them by position",
        gemini(
            gemini_user("Read a, b and c."),
            gemini_model(part_call(args={"path": "a"}), part_call(args={"path": "b"}), part_call(args={"path": "c"})),
            gemini_user(part_result("read_file", "A"), part_result("read_file", "B"), part_result("read_file", "C")),
            gemini_model(part_call(args={"path": "a"})),
            gemini_user(part_result("read_file", "A again")),
        ),
    ),
    Case(
        "gemini_results_in_another_order",
        "gemini",
        "calls of three functions without ids, results in another order: by name",
        gemini(
            gemini_user("Go."),
            gemini_model(
                part_call("read_file", {"path": "a"}),
                part_call("glob", {"path": "*"}),
                part_call("read_file", {"path": "b"}),
            ),
            gemini_user(part_result("glob", "a b"), part_result("read_file", "A"), part_result("read_file", "B")),
            tools=gemini_tools("read_file", "glob"),
        ),
    ),
    Case(
        "gemini_ids_in_another_order",
        "gemini",
        "ids on calls and results of one function, results turned round (GEM-11, 12)",
        gemini(
            gemini_user("Read a and b."),
            gemini_model(part_call(args={"path": "a"}, call_id="fc-1"), part_call(args={"path": "b"}, call_id="fc-2")),
            gemini_user(part_result("read_file", "B", "fc-2"), part_result("read_file", "A", "fc-1")),
        ),
    ),
    Case(
        "gemini_streamed_contents",
        "gemini",
        "automatic function calling replays each chunk as a content: text, two calls, an empty text; results apart",
        gemini(
            gemini_user("Read a and b."),
            gemini_model("Both "),
            gemini_model("at once."),
            gemini_model(part_call(args={"path": "a"})),
            gemini_model(part_call(args={"path": "b"})),
            gemini_model(part_text("")),
            gemini_user(part_result("read_file", {"result": "A"})),
            gemini_user(part_result("read_file", {"result": "B"})),
        ),
    ),
    Case(
        "gemini_empty_part_after_a_call",
        "gemini",
        "an empty text behind the call, alone in a content of its own, before the result",
        gemini(
            gemini_user("Read a."),
            gemini_model(part_call(args={"path": "a"}), part_text("")),
            gemini_model(part_text("")),
            gemini_user(part_result("read_file", "content of a")),
            gemini_model(part_text("")),
            gemini_user("Well?"),
        ),
    ),
    Case(
        "gemini_signatures_of_2_5",
        "gemini",
        "2.5: a signature on the first part, of whatever kind, and a thought beside it (GEM-20, 22)",
        gemini(
            gemini_user("Read a."),
            gemini_model(
                part_text("I should read the file.", thought=True),
                part_text("Reading.", thoughtSignature=SIGNATURE),
                part_call(args={"path": "a"}),
            ),
            gemini_user(part_result("read_file", "content of a")),
            gemini_model(part_text("It says: content of a.", thoughtSignature=OTHER)),
            gemini_user("And b?"),
            generationConfig={"thinkingConfig": {"includeThoughts": True, "thinkingBudget": 2048}},
        ),
        GEMINI_25,
    ),
    Case(
        "gemini_signatures_of_3",
        "gemini",
        "3: the first call of every step is signed, its siblings are not (GEM-15)",
        gemini(
            gemini_user("Read a, b and c."),
            gemini_model(part_call(args={"path": "a"}, thoughtSignature=SIGNATURE), part_call(args={"path": "b"})),
            gemini_user(part_result("read_file", "A"), part_result("read_file", "B")),
            gemini_model(part_call(args={"path": "c"}, thoughtSignature=OTHER)),
            gemini_user(part_result("read_file", "C")),
            generationConfig={"thinkingConfig": {"thinkingLevel": "LOW"}},
        ),
        GEMINI_3,
    ),
    Case(
        "gemini_signatures_missing",
        "gemini",
        "3: an unsigned step in the current exchange gets the documented stand-in (GEM-17)",
        gemini(
            gemini_user("Read a."),
            gemini_model(part_call(args={"path": "a"})),
            gemini_user(part_result("read_file", "A")),
            gemini_model("Read."),
            gemini_user("Read b and c."),
            gemini_model(part_call(args={"path": "b"}), part_call(args={"path": "c"})),
            gemini_user(part_result("read_file", "B"), part_result("read_file", "C")),
        ),
        GEMINI_3,
    ),
    Case(
        "gemini_stand_in_signatures",
        "gemini",
        "the Gemini CLI put the stand-in on a call and lost the real signature",
        gemini(
            gemini_user("Read a."),
            gemini_model(part_call(args={"path": "a"}, call_id="read_file_1700000000_0", thoughtSignature=SKIP)),
            gemini_user(part_result("read_file", "A", "read_file_1700000000_0")),
        ),
        GEMINI_3,
    ),
    Case(
        "gemini_signature_on_an_empty_text",
        "gemini",
        "a stream may end with an empty text that carries only the signature (GEM-21)",
        gemini(
            gemini_user("Hi."),
            gemini_model("Hello.", part_text("", thoughtSignature=SIGNATURE)),
            gemini_user("Read a."),
            gemini_model(part_call(args={"path": "a"}, thoughtSignature=OTHER)),
            gemini_user(part_result("read_file", "A")),
        ),
        GEMINI_3,
    ),
    Case(
        "gemini_picture_in_a_result",
        "gemini",
        "3: a picture inside functionResponse.parts (GEM-27)",
        gemini(
            gemini_user("Take a picture."),
            gemini_model(part_call("shot", {}, "fc-1", thoughtSignature=SIGNATURE)),
            gemini_user(part_result("shot", {"output": "taken"}, "fc-1", parts=[blob(displayName="shot.png")])),
            tools=gemini_tools("shot"),
        ),
        GEMINI_3,
    ),
    Case(
        "gemini_picture_beside_a_result",
        "gemini",
        "2.x: the Gemini CLI puts the picture beside the functionResponse (GEM-04, GEM-27)",
        gemini(
            gemini_user("Take a picture."),
            gemini_model(part_call("shot", {})),
            gemini_user(part_result("shot", {"output": "taken"}), blob()),
            tools=gemini_tools("shot"),
        ),
        GEMINI_25,
    ),
    Case(
        "gemini_text_beside_results",
        "gemini",
        "the user's words before, between and behind the results of one content (GEM-04)",
        gemini(
            gemini_user("Read a and b."),
            gemini_model(part_call(args={"path": "a"}), part_call(args={"path": "b"})),
            gemini_user("First this.", part_result("read_file", "A"), "Then", part_result("read_file", "B"), "Well?"),
        ),
    ),
    Case(
        "gemini_error_results",
        "gemini",
        "errors are told in the object (GEM-14): a text, an object, and beside an output",
        gemini(
            gemini_user("Read a, b and c."),
            gemini_model(part_call(args={"path": "a"}), part_call(args={"path": "b"}), part_call(args={"path": "c"})),
            gemini_user(
                part_result("read_file", {"error": "no such file"}),
                part_result("read_file", {"error": {"code": 5, "message": "denied"}}),
                part_result("read_file", {"output": "half of c", "error": "cut off"}),
            ),
        ),
    ),
    Case(
        "gemini_shapes_of_results",
        "gemini",
        "a result is any object: output, result, content, several keys, none, nested values",
        gemini(
            gemini_user("Go."),
            gemini_model(*(part_call(args={"path": name}) for name in "abcdef")),
            gemini_user(
                part_result("read_file", {"output": "A"}),
                part_result("read_file", {"result": "B"}),
                part_result("read_file", {"content": "C"}),
                part_result("read_file", {"temperature": 19.5, "unit": "C"}),
                part_result("read_file", {}),
                part_result("read_file", {"output": {"rows": [1, 2.0, None]}}),
            ),
        ),
    ),
    Case(
        "gemini_schemas",
        "gemini",
        "parameters in Gemini's own types, parametersJsonSchema with references, none at all",
        gemini(
            gemini_user("What is the weather?"),
            tools=[
                {"functionDeclarations": [{"name": "weather", "description": "Tells it.", "parameters": OPENAPI}]},
                {
                    "functionDeclarations": [
                        {"name": "route", "description": "Finds it.", "parametersJsonSchema": REFERRING},
                        {"name": "now", "description": "Tells the time."},
                    ]
                },
            ],
        ),
    ),
    Case(
        "gemini_forced_tool",
        "gemini",
        "mode ANY with one allowed name",
        gemini(
            gemini_user("Go."),
            tools=gemini_tools("read_file", "glob"),
            toolConfig={"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["glob"]}},
        ),
    ),
    Case(
        "gemini_allowed_tools",
        "gemini",
        "mode ANY with two of three names; one of the names has to be projected",
        gemini(
            gemini_user("Go."),
            tools=gemini_tools("read_file", "files.glob", "grep"),
            toolConfig={"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["files.glob", "grep"]}},
        ),
    ),
    Case(
        "gemini_no_tool_may_be_called",
        "gemini",
        "mode NONE while tools are declared",
        gemini(gemini_user("Go."), toolConfig={"functionCallingConfig": {"mode": "NONE"}}),
    ),
    Case(
        "gemini_system_of_parts",
        "gemini",
        "a system instruction of two parts, with a role",
        gemini(
            gemini_user("Hi."),
            systemInstruction={"role": "user", "parts": [{"text": "Be brief."}, {"text": "Be kind."}]},
        ),
    ),
    Case(
        "gemini_media_from_the_user",
        "gemini",
        "pictures, a document, sound and a video, by bytes and by address",
        gemini(
            gemini_user(
                "Compare these.",
                blob(),
                blob(PDF, "application/pdf", displayName="paper.pdf"),
                blob("UklGRg==", "audio/wav"),
                {"fileData": {"mimeType": "image/png", "fileUri": "https://files.example/v1beta/files/abc"}},
                {
                    "fileData": {"fileUri": "https://www.youtube.com/watch?v=abc"},
                    "videoMetadata": {"startOffset": "10s", "fps": 1},
                },
            )
        ),
    ),
    Case(
        "gemini_code_execution",
        "gemini",
        "code that the provider ran, with its output, and a call of the client behind it (GEM-24)",
        gemini(
            gemini_user("What is the sum?"),
            gemini_model(
                "I compute.",
                {"executableCode": {"language": "PYTHON", "code": "print(sum(range(10)))"}},
                {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "45\n"}},
                "It is 45.",
            ),
            gemini_user("And with a failure?"),
            gemini_model(
                {"executableCode": {"id": "ec-5", "language": "PYTHON", "code": "open('a.csv')"}},
                {"codeExecutionResult": {"id": "ec-5", "outcome": "OUTCOME_FAILED", "output": "FileNotFoundError"}},
                part_call(args={"path": "a"}),
            ),
            gemini_user(part_result("read_file", "A")),
            tools=[*gemini_tools("read_file"), {"codeExecution": {}}],
        ),
    ),
    Case(
        "gemini_search_on_the_server",
        "gemini",
        "3: a search that the provider ran, as toolCall and toolResponse (GEM-24)",
        gemini(
            gemini_user("Find kelp farms."),
            gemini_model(
                {
                    "toolCall": {"id": "tc-1", "toolType": "GOOGLE_SEARCH_WEB", "args": {"queries": ["kelp farms"]}},
                    "thoughtSignature": SIGNATURE,
                },
                {"toolResponse": {"id": "tc-1", "toolType": "GOOGLE_SEARCH_WEB", "response": {"hits": 3}}},
                "There are three.",
            ),
            gemini_user("Where?"),
            tools=[{"googleSearch": {}}, *gemini_tools("read_file")],
            toolConfig={"includeServerSideToolInvocations": True},
        ),
        GEMINI_3,
    ),
    Case(
        "gemini_names",
        "gemini",
        "names with dots, colons and dashes, two of them alike after sanitising (GEM-23)",
        gemini(
            gemini_user("Go."),
            gemini_model(
                part_call("ns.tool", {"n": 1}),
                part_call("ns:tool", {"n": 2}),
                part_call("ns_tool", {"n": 3}),
                part_call("default_api:read-file", {"n": 4}),
            ),
            gemini_user(
                part_result("ns.tool", "one"),
                part_result("ns:tool", "two"),
                part_result("ns_tool", "three"),
                part_result("default_api:read-file", "four"),
            ),
            tools=gemini_tools("ns.tool", "ns:tool", "ns_tool", "default_api:read-file"),
        ),
    ),
    Case(
        "gemini_resumed",
        "gemini",
        "the Gemini CLI sends every functionResponse twice after --resume: same id, same content, one content entry",
        gemini(
            gemini_user("Read a and b."),
            gemini_model(
                part_call(args={"path": "a"}, call_id="read_file_1_0"),
                part_call(args={"path": "b"}, call_id="read_file_1_1"),
            ),
            gemini_user(
                part_result("read_file", "A", "read_file_1_0"),
                part_result("read_file", "B", "read_file_1_1"),
                part_result("read_file", "A", "read_file_1_0"),
                part_result("read_file", "B", "read_file_1_1"),
            ),
            gemini_user("Go on."),
        ),
    ),
    Case(
        "gemini_resumed_without_ids",
        "gemini",
        "the same without ids: a surplus of equal content is a duplicate, another one is told",
        gemini(
            gemini_user("Read a."),
            gemini_model(part_call(args={"path": "a"})),
            gemini_user(
                part_result("read_file", "A"), part_result("read_file", "A"), part_result("read_file", "something else")
            ),
        ),
    ),
    Case(
        "gemini_missing_results",
        "gemini",
        "two of three calls answered, by name, then the user's words; open calls at the end (GEM-01)",
        gemini(
            gemini_user("Go."),
            gemini_model(
                part_call("read_file", {"path": "a"}),
                part_call("glob", {"path": "*"}),
                part_call("grep", {"path": "x"}),
            ),
            gemini_user(part_result("grep", "x: 1"), part_result("read_file", "A")),
            gemini_user("And the other?"),
            gemini_model("Once more.", part_call("glob", {"path": "*"})),
            tools=gemini_tools("read_file", "glob", "grep"),
        ),
    ),
    Case(
        "gemini_interrupted",
        "gemini",
        "the user spoke instead of the tool; the history begins with a call (GEM-02)",
        gemini(
            gemini_model(part_call(args={"path": "a"})),
            gemini_user("Never mind. Read b."),
            gemini_model(part_call(args={"path": "b"})),
            gemini_user(part_result("read_file", "B")),
        ),
    ),
    Case(
        "gemini_orphans",
        "gemini",
        "results of calls that are gone: at the head, and behind an answer (GEM-03)",
        gemini(
            gemini_user(part_result("read_file", "content of x")),
            gemini_model("I have read x."),
            gemini_user(part_result("glob", "a b", "fc-9")),
            gemini_user("Go on."),
        ),
    ),
    Case(
        "gemini_late_result",
        "gemini",
        "the result comes after the user spoke",
        gemini(
            gemini_user("Read a."),
            gemini_model(part_call(args={"path": "a"}, call_id="fc-1")),
            gemini_user("Are you still there?"),
            gemini_user(part_result("read_file", "content of a", "fc-1")),
            gemini_model("Yes."),
            gemini_user("Good."),
        ),
    ),
    Case(
        "gemini_result_under_another_name",
        "gemini",
        "a result whose name is not its call's, without ids: by position (GEM-13)",
        gemini(
            gemini_user("Go."),
            gemini_model(part_call("read_file", {"path": "a"}), part_call("glob", {"path": "*"})),
            gemini_user(part_result("default_api:read_file", "A"), part_result("glob", "a b")),
            tools=gemini_tools("read_file", "glob"),
        ),
    ),
    Case(
        "gemini_only_result_under_another_name",
        "gemini",
        "the only result has neither the name of the only call nor an id: by position (GEM-13)",
        gemini(
            gemini_user("Go."),
            gemini_model(part_call("read_file", {"path": "a"})),
            gemini_user(part_result("ReadFile", "A")),
            gemini_user("And b."),
            gemini_model(part_call("read_file", {"path": "b"}, call_id="fc-2")),
            gemini_user(part_result("default_api:read_file", "B", "fc-9")),
        ),
    ),
    Case(
        "gemini_named_files",
        "gemini",
        "files and pictures with a name, inline and by address",
        gemini(
            gemini_user(
                "Look.",
                {"inlineData": {"mimeType": "image/png", "data": "iVBORw0KGgo=", "displayName": "kelp.png"}},
                {"inlineData": {"mimeType": "application/pdf", "data": "JVBERi0=", "displayName": "kelp.pdf"}},
                {"fileData": {"mimeType": "image/png", "fileUri": "https://kelp.example/b", "displayName": "b.png"}},
            )
        ),
    ),
    Case(
        "gemini_forces_what_is_not_declared",
        "gemini",
        "the only function that may be called is not declared (GEM-23)",
        gemini(
            gemini_user("Go."),
            tools=gemini_tools("read_file"),
            toolConfig={"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["gone"]}},
        ),
    ),
    Case(
        "gemini_ids_repeat",
        "gemini",
        "one id for two calls of a turn, and again in the next",
        gemini(
            gemini_user("Go."),
            gemini_model(part_call(args={"path": "a"}, call_id="0"), part_call(args={"path": "b"}, call_id="0")),
            gemini_user(part_result("read_file", "A", "0"), part_result("read_file", "B", "0")),
            gemini_model(part_call(args={"path": "c"}, call_id="0")),
            gemini_user(part_result("read_file", "C", "0")),
        ),
    ),
    Case(
        "gemini_roles",
        "gemini",
        "the role `function` of older clients, and contents without a role",
        gemini(
            {"parts": [{"text": "Read a."}]},
            gemini_model(part_call(args={"path": "a"})),
            {"role": "function", "parts": [part_result("read_file", "A")]},
        ),
    ),
    Case(
        "gemini_without_args",
        "gemini",
        "a call without args, with null, and results whose response is text or missing (GEM-13)",
        gemini(
            gemini_user("Go."),
            gemini_model(part_call("now"), part_call("now", None), part_call("now", {})),
            gemini_user(
                {"functionResponse": {"name": "now", "response": "noon"}},
                {"functionResponse": {"name": "now"}},
                part_result("now", "one"),
            ),
            tools=gemini_tools("now"),
        ),
    ),
    Case(
        "gemini_ends_on_the_model",
        "gemini",
        "the last content is the model's (GEM-05)",
        gemini(gemini_user("Hi."), gemini_model("Hello. How can I help?")),
    ),
    Case(
        "gemini_empty_contents",
        "gemini",
        "contents without parts, and parts that hold nothing (GEM-09, 10)",
        gemini(
            gemini_user("Hi."),
            gemini_model(),
            gemini_model(part_text("")),
            gemini_user(part_text("")),
            gemini_user("Well?"),
        ),
    ),
    Case(
        "gemini_options",
        "gemini",
        "every option that has a counterpart somewhere, and some that have none",
        gemini(
            gemini_user("Go."),
            generationConfig={
                "temperature": 0.5,
                "topP": 0.9,
                "topK": 40,
                "candidateCount": 1,
                "maxOutputTokens": 2048,
                "stopSequences": ["END", "STOP"],
                "seed": 7,
                "presencePenalty": 0.1,
                "frequencyPenalty": 0.2,
                "responseMimeType": "application/json",
                "responseJsonSchema": {"type": "object", "properties": {"a": {"type": "string"}}},
            },
            safetySettings=[{"category": "HARM_CATEGORY_HARASSMENT", "threshold": "BLOCK_NONE"}],
            cachedContent="cachedContents/abc",
        ),
    ),
    Case(
        "gemini_thinking_off",
        "gemini",
        "a budget of nothing; a response schema in Gemini's own types",
        without_tools(
            gemini(
                gemini_user("Go."),
                generationConfig={
                    "thinkingConfig": {"thinkingBudget": 0},
                    "responseMimeType": "application/json",
                    "responseSchema": {"type": "OBJECT", "properties": {"a": {"type": "STRING", "nullable": True}}},
                },
            )
        ),
        {"gemini": "gemini-2.5-flash"},
    ),
    Case(
        "gemini_unknown_parts",
        "gemini",
        "a part and a field that nobody knows yet",
        gemini(
            gemini_user("Hi.", {"smell": {"of": "kelp"}}),
            gemini_model(part_text("Hello.", partMetadata={"k": "v"})),
            gemini_user("Go on."),
            xUnknown={"a": 1},
        ),
    ),
    Case(
        "gemini_computer_use",
        "gemini",
        "a screen action and its screenshot",
        gemini(
            gemini_user("Click it."),
            gemini_model(part_call("click_at", {"x": 371, "y": 470})),
            gemini_user(part_result("click_at", {"url": "https://kelp.example"}, parts=[blob()])),
            tools=[{"computerUse": {"environment": "ENVIRONMENT_BROWSER"}}],
        ),
    ),
    Case(
        "gemini_cut_off_stream",
        "gemini",
        "results that say when they are read, and that more will come",
        gemini(
            gemini_user("Read a and b."),
            gemini_model(part_call(args={"path": "a"}, call_id="fc-1"), part_call(args={"path": "b"}, call_id="fc-2")),
            gemini_user(
                part_result("read_file", "first half", "fc-1", willContinue=True, scheduling="SILENT"),
                part_result("read_file", "B", "fc-2"),
                part_result("read_file", "second half", "fc-1", willContinue=False),
            ),
        ),
    ),
)
