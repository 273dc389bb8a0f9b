"""Bodies for Bedrock Converse: each row breaks one rule."""

from __future__ import annotations

from typing import Any

from tests.bodies import Body
from tests.bodies.bedrock import assistant, call, result, tool, user
from tests.conformance.case import ENVELOPE, Case

CLAUDE = "us.anthropic.claude-sonnet-4-5-20250929-v1:0"
NEWEST = "anthropic.claude-opus-4-6-v1:0"
LLAMA = "meta.llama3-1-70b-instruct-v1:0"
MISTRAL = "mistral.mistral-large-2407-v1:0"
NOVA = "amazon.nova-pro-v1:0"
PIXTRAL = "us.mistral.pixtral-large-2502-v1:0"
GPT_OSS = "openai.gpt-oss-120b-1:0"
PROFILE = "arn:aws:bedrock:us-east-1:123456789012:application-inference-profile/mi1dadi0g15f"
DEEPSEEK = "us.deepseek.r1-v1:0"
PALMYRA = "us.writer.palmyra-x5-v1:0"
PROMPT = "arn:aws:bedrock:us-east-1:123456789012:prompt/ABCDEFGHIJ:1"

TEXT: Body = {"text": "t"}
IMAGE: Body = {"image": {"format": "png", "source": {"bytes": "AA=="}}}
DOCUMENT: Body = {"document": {"name": "d", "source": {"text": "t"}}}
TOOLS: Body = {"tools": [tool()]}
LONG = "c" * 65
ON: Body = {"additionalModelRequestFields": {"thinking": {"type": "enabled", "budget_tokens": 1024}}}
ADAPTIVE: Body = {"additionalModelRequestFields": {"thinking": {"type": "adaptive"}}}
OFF: Body = {"additionalModelRequestFields": {"thinking": {"type": "disabled"}}}


def thinks(**said: object) -> Body:
    return {"reasoningContent": {"reasoningText": {"text": "x", **said}}}


def video(kind: str) -> Any:
    return {"video": {"format": "mp4", "source": {kind: "AA=="}}}


def in_s3(kind: str) -> Body:
    """A block whose source is a file in S3."""
    more = {"name": "d"} if kind == "document" else {}
    form = {"image": "png", "document": "pdf", "video": "mp4"}[kind]
    return {kind: {"format": form, "source": {"s3Location": {"uri": "s3://bucket/file"}}, **more}}


def body(*messages: object, **more: object) -> Body:
    return {"messages": [Q, *messages], "toolConfig": TOOLS, **more}


def asks(*calls: object) -> Body:
    """A body with these calls and a result for each valid one."""
    return body(assistant(*calls), user(result()))


def chooses(**choice: object) -> Body:
    return body(toolConfig={**TOOLS, "toolChoice": choice})


def declares(**spec: Any) -> Body:
    return body(toolConfig={"tools": [tool(**spec)]})


def without(block: Body, *keys: str) -> Body:
    ((name, data),) = block.items()
    assert isinstance(data, dict)
    return {name: {key: value for key, value in data.items() if key not in keys}}


Q = user(TEXT)
A = assistant(TEXT)
OK = body(assistant(call()), user(result()))
SIGNED = thinks(signature="EqQBCgIYAhIM")
SEALED: Body = {"reasoningContent": {"redactedContent": "AA=="}}
SERVED = call("s1", name="nova_grounding", type="server_tool_use")
GROUND = result("s1", type="nova_grounding_result")
BARE: Body = {key: value for key, value in OK.items() if key != "toolConfig"}


def ids(call_id: object) -> Body:
    return body(assistant(call(call_id)), user(result(call_id)))


BOTH = ("messages[1].content[0].toolUse.toolUseId", "messages[2].content[0].toolResult.toolUseId")
CALL = "messages[1].content[0].toolUse"
RESULT = "messages[2].content[0].toolResult"

CASES = (
    Case("BED-01", "a pipe", ids("a|b"), ids("functions.f:0"), BOTH),
    Case("BED-01", "too long", ids(LONG), ids(LONG[1:]), BOTH),
    Case("BED-01", "empty", ids(""), OK, BOTH),
    Case("BED-01", "a line break", ids("a\n"), OK, BOTH),
    Case("BED-01", "a number", ids(1), OK, BOTH),
    Case("BED-01", "a pipe, Claude", ids("a|b"), ids("a-b"), BOTH, model=CLAUDE),
    Case(
        "BED-01",
        "missing",
        body(assistant(call(), without(call(), "toolUseId")), user(result())),
        OK,
        ("messages[1].content[1].toolUse.toolUseId",),
    ),
    Case("ANT-01", "Kimi's id to Claude", ids("functions.f:0"), ids("call_any-1"), BOTH, model=CLAUDE),
    Case("MIS-01", "eight letters to Pixtral", ids("tooluse_1"), ids("tooluse_12"), BOTH, model=PIXTRAL),
    Case(
        "MIS-01",
        "one letter to Mistral Small",
        ids("a"),
        ids("a1b2c3d4e"),
        BOTH,
        model="mistral.mistral-small-2402-v1:0",
    ),
    Case("MIS-01", "an id to Mistral", ids("tooluse_12"), ids("a1b2c3d4e"), BOTH, "risk", MISTRAL),
    Case(
        "ANT-03",
        "one id in one turn",
        body(assistant(call(), call()), user(result())),
        body(assistant(call(), call("b")), user(result(), result("b"))),
        ("messages[1].content[1].toolUse.toolUseId",),
        model=CLAUDE,
    ),
    Case(
        "BED-05",
        "an id of an earlier turn, Claude",
        body(assistant(call()), user(result()), assistant(call()), user(result())),
        body(assistant(call()), user(result()), assistant(call("b")), user(result("b"))),
        ("messages[3].content[0].toolUse.toolUseId",),
        "risk",
        CLAUDE,
    ),
    Case(
        "ANT-42",
        "an effort, to Opus 4.6",
        body(additionalModelRequestFields={"output_config": {"effort": "xhigh"}}),
        body(additionalModelRequestFields={"output_config": {"effort": "max"}}),
        ("additionalModelRequestFields.output_config.effort",),
        model=NEWEST,
    ),
    Case(
        "BED-02", "a dot, declared", declares(name="a.b"), declares(name="a-b"), ("toolConfig.tools[0].toolSpec.name",)
    ),
    Case("BED-02", "too long, replayed", asks(call(name=LONG)), asks(call(name=LONG[1:])), (f"{CALL}.name",)),
    Case("BED-02", "missing, replayed", asks(without(call(), "name")), OK, (f"{CALL}.name",)),
    Case(
        "BED-02",
        "chosen",
        chooses(tool={"name": "a b"}),
        chooses(tool={"name": "f"}),
        ("toolConfig.toolChoice.tool.name",),
    ),
    Case(
        "BED-02",
        "a tool of the service",
        body(toolConfig={"tools": [{"systemTool": {"name": ""}}]}),
        body(toolConfig={"tools": [{"systemTool": {"name": "nova_grounding"}}]}),
        ("toolConfig.tools[0].systemTool.name",),
    ),
    Case("BED-03", "calls without tools", BARE, OK, ("toolConfig",)),
    Case("BED-04", "no result", body(assistant(call()), user(TEXT)), OK, (CALL,)),
    Case("BED-04", "at the end", body(assistant(call())), OK, (CALL,)),
    Case(
        "BED-04",
        "one of two",
        body(assistant(call(), call("b")), user(result())),
        body(assistant(call(), call("b")), user(result("b"), result())),
        ("messages[1].content[1].toolUse",),
    ),
    Case("BED-04", "in a user message", body(A, user(call())), OK, ("messages[2].content[0].toolUse",)),
    Case("BED-05", "nothing asked", body(A, user(result())), OK, (RESULT,)),
    Case(
        "BED-05", "twice", body(assistant(call()), user(result(), result())), OK, ("messages[2].content[1].toolResult",)
    ),
    Case(
        "BED-05",
        "an older turn's",
        body(assistant(call()), user(result()), A, user(result())),
        body(assistant(call()), user(result()), A, user(TEXT)),
        ("messages[4].content[0].toolResult",),
    ),
    Case(
        "BED-05",
        "in an assistant message",
        body(assistant(call()), user(result()), assistant(result())),
        body(assistant(SERVED, GROUND, TEXT), user(TEXT)),
        ("messages[3].content[0].toolResult",),
    ),
    Case("BED-06", "the assistant first", {"messages": [A, Q]}, body(), ("messages[0]",), "risk"),
    Case("BED-06", "the assistant first, a profile", {"messages": [A, Q]}, body(), ("messages[0]",), "risk", PROFILE),
    Case("BED-06", "the assistant first, gpt-oss", {"messages": [A, Q]}, body(), ("messages[0]",), model=GPT_OSS),
    Case(
        "BED-06",
        "the assistant first, another",
        {"messages": [A, Q]},
        body(),
        ("messages[0]",),
        model="nvidia.nemotron",
    ),
    Case("BED-06", "the assistant first, Nova", {"messages": [A, Q]}, body(), ("messages[0]",), model=NOVA),
    Case("BED-06", "no message", {"messages": []}, {"modelId": PROMPT}, ("messages",)),
    Case("BED-06", "none at all", {}, {"modelId": PROMPT, "promptVariables": {"a": {"text": "b"}}}, ("messages",)),
    Case("BED-06", "no message, Claude", {}, {"messages": [A, Q]}, ("messages",), model=CLAUDE),
    Case(
        "BED-07",
        "text, Llama",
        body(assistant(call()), user(result(), TEXT)),
        OK,
        ("messages[2].content[1].text",),
        model=LLAMA,
    ),
    Case(
        "BED-07",
        "an image, Mistral",
        body(assistant(call()), user(IMAGE, result())),
        OK,
        ("messages[2].content[0].image",),
        model=MISTRAL,
    ),
    Case(
        "BED-07",
        "a document, Claude",
        body(assistant(call()), user(result(), DOCUMENT)),
        body(assistant(call()), user(result(), DOCUMENT, TEXT)),
        ("messages[2].content[1].document",),
        "risk",
        CLAUDE,
    ),
    Case(
        "BED-07",
        "a document, Mistral",
        body(assistant(call()), user(result(), DOCUMENT)),
        body(assistant(call()), user(result(content=[DOCUMENT]))),
        ("messages[2].content[1].document",),
        model=PIXTRAL,
    ),
    Case(
        "BED-07",
        "text and an image, another model",
        body(assistant(call()), user(result(), TEXT, IMAGE)),
        body(assistant(call()), user(result(), {"cachePoint": {"type": "default"}})),
        ("messages[2].content[1].text", "messages[2].content[2].image"),
        "risk",
        GPT_OSS,
    ),
    Case(
        "BED-09",
        "videos, Claude",
        body(assistant(call()), user(result(content=[video("bytes")]), video("bytes"))),
        body(assistant(call()), user(result(content=[IMAGE]), IMAGE)),
        ("messages[2].content[0].toolResult.content[0].video", "messages[2].content[1].video"),
        model=CLAUDE,
    ),
    Case(
        "BED-09",
        "an image and a document in S3, Claude",
        {"messages": [user(TEXT, in_s3("image"), in_s3("document"))]},
        {"messages": [user(TEXT, IMAGE, DOCUMENT)]},
        ("messages[0].content[1].image.source.s3Location", "messages[0].content[2].document.source.s3Location"),
        model=NEWEST,
    ),
    Case(
        "BED-09",
        "a document in S3 in a result, Claude",
        body(assistant(call()), user(result(content=[in_s3("document")]))),
        OK,
        ("messages[2].content[0].toolResult.content[0].document.source.s3Location",),
        "risk",
        CLAUDE,
    ),
    Case(
        "BED-09",
        "S3 in a result, Nova",
        body(assistant(call()), user(result(content=[in_s3("image"), in_s3("video"), in_s3("document")]))),
        body(assistant(call()), user(result(content=[in_s3("image")]), in_s3("video"), in_s3("document"), TEXT)),
        (f"{RESULT}.content[1].video.source.s3Location", f"{RESULT}.content[2].document.source.s3Location"),
        model="us.amazon.nova-2-lite-v1:0",
    ),
    Case(
        "BED-09",
        "the name of a document",
        {"messages": [user(TEXT, {"document": {**DOCUMENT["document"], "name": "My_report.v2.pdf"}})]},
        {"messages": [user(TEXT, {"document": {**DOCUMENT["document"], "name": "My report [2] - (new)"}})]},
        ("messages[0].content[1].document.name",),
    ),
    Case("BED-09", "another type", asks(call(type="function")), OK, (f"{CALL}.type",), model=CLAUDE),
    Case(
        "BED-09",
        "a MIME type as a format",
        {"messages": [user(TEXT, {"video": {**video("bytes")["video"], "format": "video/mp4"}})]},
        {"messages": [user(TEXT, video("bytes"))]},
        ("messages[0].content[1].video.format",),
        model=NOVA,
    ),
    Case(
        "BED-09",
        "the reasoning of Qwen, Claude",
        body(additionalModelRequestFields={"reasoning_config": "high"}),
        body(additionalModelRequestFields={"reasoning_config": {"type": "disabled"}}),
        ("additionalModelRequestFields.reasoning_config",),
        "risk",
        CLAUDE,
    ),
    Case(
        "BED-09",
        "a newer value",
        body(performanceConfig={"latency": "newer"}),
        body(performanceConfig={"latency": "optimized"}),
        ("performanceConfig.latency",),
        "risk",
    ),
    Case(
        "BED-08",
        "blank text, Claude, in a result",
        body(assistant(call()), user(result(content=[{"text": " "}]))),
        body(A, user(TEXT, {"text": "\n"}, {"cachePoint": {"type": "default"}})),
        (f"{RESULT}.content[0].text",),
        "risk",
        CLAUDE,
    ),
    Case(
        "BED-08",
        "blank text before a cache point, Claude",
        body(A, user({"text": "\n"}, {"cachePoint": {"type": "default"}})),
        body(A, user({"text": "\n"}, IMAGE)),
        ("messages[2].content[0].text",),
        model=CLAUDE,
    ),
    Case("BED-08", "empty text", body(A, user(TEXT, {"text": ""})), body(A, Q), ("messages[2].content[1].text",)),
    Case("BED-08", "empty content", body(assistant(), Q), body(A, Q), ("messages[1].content",)),
    Case(
        "BED-08",
        "empty text in a result",
        body(assistant(call()), user(result(content=[{"text": ""}]))),
        OK,
        (f"{RESULT}.content[0].text",),
    ),
    Case("BED-08", "empty system text", body(system=[{"text": ""}]), body(system=[TEXT]), ("system[0].text",)),
    Case(
        "BED-08", "blank text", body(A, user(TEXT, {"text": " "})), body(A, Q), ("messages[2].content[1].text",), "risk"
    ),
    Case(
        "BED-08",
        "blank message, Nova",
        body(A, user({"text": "\n"})),
        OK,
        ("messages[2].content[0].text",),
        "risk",
        NOVA,
    ),
    Case(
        "BED-08",
        "blank message, Claude",
        body(A, user({"text": "\n"})),
        OK,
        ("messages[2].content[0].text",),
        model=CLAUDE,
    ),
    Case(
        "BED-08",
        "a result of nothing",
        body(assistant(call()), user(result(content=[]))),
        OK,
        (f"{RESULT}.content",),
        "risk",
    ),
    Case("BED-09", "input is a string", asks(call(input="{}")), asks(call(input={"a": "{}"})), (f"{CALL}.input",)),
    Case("BED-09", "input is null", asks(call(input=None)), OK, (f"{CALL}.input",)),
    Case("BED-09", "no input", asks(without(call(), "input")), OK, (f"{CALL}.input",)),
    Case(
        "BED-09",
        "the result's content is a string",
        body(assistant(call()), user(result(content="x"))),
        OK,
        (f"{RESULT}.content",),
    ),
    Case(
        "BED-09",
        "what a result can't hold",
        body(assistant(call()), user(result(content=[{"audio": {}}]))),
        body(assistant(call()), user(result(content=[{"json": [1]}, IMAGE, DOCUMENT]))),
        (f"{RESULT}.content[0].audio",),
    ),
    Case(
        "BED-09",
        "status",
        body(assistant(call()), user(result(status="failed"))),
        body(assistant(call()), user(result(status="error"))),
        (f"{RESULT}.status",),
    ),
    Case(
        "BED-09",
        "status, Palmyra",
        body(assistant(call()), user(result(status="error"))),
        OK,
        (f"{RESULT}.status",),
        model=PALMYRA,
    ),
    Case("BED-09", "tool choice none", chooses(none={}), chooses(auto={}), ("toolConfig.toolChoice.none",)),
    Case("BED-09", "two tool choices", chooses(auto={}, any={}), chooses(any={}), ("toolConfig.toolChoice",)),
    Case("BED-09", "no tools", body(toolConfig={"tools": []}), body(), ("toolConfig.tools",)),
    Case(
        "BED-09",
        "a schema that is none",
        declares(inputSchema={"json": "{}"}),
        body(),
        ("toolConfig.tools[0].toolSpec.inputSchema.json",),
    ),
    Case("BED-09", "content is a string", body(A, {"role": "user", "content": "q"}), OK, ("messages[2].content",)),
    Case("BED-09", "two things in one block", body(A, user({**TEXT, **IMAGE})), OK, ("messages[2].content[0]",)),
    Case("BED-09", "an empty block", body(A, user(TEXT, {})), OK, ("messages[2].content[1]",)),
    Case("BED-09", "no object", body(A, {"role": "user", "content": [TEXT, "q"]}), OK, ("messages[2].content[1]",)),
    Case("BED-09", "a foreign key", body(temperature=1), body(inferenceConfig={"temperature": 1}), ("temperature",)),
    Case("BED-09", "too hot", body(inferenceConfig={"temperature": 2}), body(), ("inferenceConfig.temperature",)),
    Case("BED-09", "messages", {"messages": {}}, body(), ("messages",)),
    Case("BED-09", "a model that is none", body(modelId="a b"), body(modelId="amazon.nova-pro-v1:0"), ("modelId",)),
    Case(
        "BED-09",
        "extra fields",
        body(additionalModelRequestFields="{}"),
        body(additionalModelRequestFields={"top_k": 1}),
        ("additionalModelRequestFields",),
    ),
    Case("BED-10", "an unknown role", body(A, {"role": "tool", "content": [TEXT]}), OK, ("messages[2].role",)),
    Case("BED-10", "no role", body(A, {"content": [TEXT]}), OK, ("messages[2].role",)),
    Case(
        "BED-10", "system", body(A, {"role": "system", "content": [TEXT]}, Q), body(A, Q), ("messages[2].role",), "risk"
    ),
    Case("BED-10", "the user twice", body(Q), body(A, Q), ("messages[1]",), model=LLAMA),
    Case("BED-10", "the assistant twice", body(A, A, Q), body(A, Q), ("messages[2]",)),
    Case("BED-10", "twice, Claude", body(Q), body(A, Q), ("messages[1]",), "risk", CLAUDE),
    Case(
        "BED-11",
        "reasoning that is text",
        body(assistant({"reasoningContent": {"reasoningText": "x"}}, TEXT), Q),
        body(assistant(thinks(), TEXT), Q),
        ("messages[1].content[0].reasoningContent.reasoningText",),
    ),
    Case(
        "BED-11",
        "no text",
        body(assistant({"reasoningContent": {"reasoningText": {"signature": "s"}}}, TEXT), Q),
        body(assistant(SEALED, TEXT), Q),
        ("messages[1].content[0].reasoningContent.reasoningText.text",),
    ),
    Case(
        "BED-11",
        "both",
        body(assistant({"reasoningContent": {"reasoningText": {"text": "x"}, "redactedContent": "AA=="}}, TEXT), Q),
        OK,
        ("messages[1].content[0].reasoningContent",),
    ),
    Case(
        "BED-11",
        "an envelope as signature, another model",
        body(assistant(thinks(signature=ENVELOPE), TEXT), Q),
        OK,
        ("messages[1].content[0].reasoningContent.reasoningText.signature",),
        "risk",
    ),
    Case(
        "BED-11",
        "an envelope as redacted content, another model",
        body(assistant({"reasoningContent": {"redactedContent": ENVELOPE}}, TEXT), Q),
        body(assistant(SEALED, TEXT), Q),
        ("messages[1].content[0].reasoningContent.redactedContent",),
        "risk",
    ),
    Case(
        "BED-11",
        "its own, DeepSeek",
        body(assistant(TEXT, thinks()), Q),
        body(assistant(TEXT), Q),
        ("messages[1].content[1].reasoningContent",),
        model=DEEPSEEK,
    ),
    Case("BED-11", "the user's", body(A, user(SIGNED, TEXT)), OK, ("messages[2].content[0].reasoningContent",)),
    Case(
        "BED-11",
        "the user's, Claude",
        body(A, user(SIGNED, TEXT)),
        OK,
        ("messages[2].content[0].reasoningContent",),
        model=CLAUDE,
    ),
    Case(
        "ANT-18",
        "an error with an image for Claude",
        body(assistant(call()), user(result(content=[TEXT, IMAGE], status="error"))),
        body(assistant(call()), user(result(content=[TEXT, {"json": {"a": 1}}], status="error"))),
        ("messages[2].content[0].toolResult.content[1]",),
        model=CLAUDE,
    ),
    Case(
        "ANT-41",
        "a parameter of Claude's tool",
        declares(inputSchema={"json": {"type": "object", "properties": {"$top": {"type": "integer"}}}}),
        declares(inputSchema={"json": {"type": "object", "properties": {"top": {"properties": {"$top": {}}}}}}),
        ("toolConfig.tools[0].toolSpec.inputSchema.json.properties",),
        model=CLAUDE,
    ),
    Case(
        "BED-05",
        "one id in two turns",
        body(assistant(call()), user(result()), assistant(call()), user(result())),
        body(assistant(call()), user(result()), assistant(call("abcdefgh2")), user(result("abcdefgh2"))),
        ("messages[3].content[0].toolUse.toolUseId",),
        "risk",
        NOVA,
    ),
    Case("ANT-22", "prefill", body(A), body(A, Q), ("messages[1]",), model=NEWEST),
    Case("ANT-22", "prefill while thinking", body(A, **ON), body(A), ("messages[1]",), model=CLAUDE),
    Case(
        "ANT-23",
        "white space at the end",
        body(assistant({"text": "a "})),
        body(A),
        ("messages[1].content[0].text",),
        model=CLAUDE,
    ),
    Case(
        "ANT-24",
        "a loop without thinking",
        body(assistant(call()), user(result()), **ON),
        body(assistant(SIGNED, call()), user(result()), **ON),
        (CALL,),
        model=CLAUDE,
    ),
    Case(
        "ANT-24",
        "by its older name",
        body(
            assistant(TEXT, call()),
            user(result()),
            additionalModelRequestFields={"reasoning_config": {"type": "enabled", "budget_tokens": 1024}},
        ),
        body(assistant(SEALED, call()), user(result()), **ON),
        ("messages[1].content[0].text",),
        model="anthropic.claude-3-7-sonnet-20250219-v1:0",
    ),
    Case(
        "ANT-26",
        "no signature",
        body(assistant(thinks(), TEXT), Q),
        body(assistant(SIGNED, TEXT), Q),
        ("messages[1].content[0].reasoningContent.reasoningText.signature",),
        model=CLAUDE,
    ),
    Case(
        "ANT-26",
        "an envelope",
        body(assistant(thinks(signature=ENVELOPE), TEXT), Q),
        body(assistant(SIGNED, TEXT), Q),
        ("messages[1].content[0].reasoningContent.reasoningText.signature",),
        model=CLAUDE,
    ),
    Case(
        "ANT-26",
        "no signature of Claude",
        body(assistant(thinks(signature="?"), TEXT), Q),
        body(assistant(SIGNED, TEXT), Q),
        ("messages[1].content[0].reasoningContent.reasoningText.signature",),
        "risk",
        CLAUDE,
    ),
    Case(
        "ANT-27",
        "thinking at the end",
        body(assistant(SIGNED, TEXT), **OFF),
        body(A, **OFF),
        ("messages[1].content[0].reasoningContent.reasoningText",),
        model=CLAUDE,
    ),
    Case(
        "ANT-30",
        "forced while thinking",
        {**chooses(any={}), **ON},
        {**chooses(auto={}), **ON},
        ("toolConfig.toolChoice",),
        model=CLAUDE,
    ),
    Case(
        "ANT-30",
        "forced while adaptive",
        {**chooses(tool={"name": "f"}), **ADAPTIVE},
        {**chooses(auto={}), **ADAPTIVE},
        ("toolConfig.toolChoice",),
        "risk",
        "anthropic.claude-sonnet-5-v1:0",
    ),
    Case(
        "ANT-30",
        "forced with a budget, Opus 4.6",
        {**chooses(tool={"name": "f"}), **ON},
        {**chooses(tool={"name": "f"}), **ADAPTIVE},
        ("toolConfig.toolChoice",),
        model=NEWEST,
    ),
    Case(
        "ANT-31",
        "redacted to nothing",
        body(assistant({"reasoningContent": {"redactedContent": ""}}, TEXT), Q),
        body(assistant(SEALED, TEXT), Q),
        ("messages[1].content[0].reasoningContent.redactedContent",),
        model=CLAUDE,
    ),
    Case(
        "ANT-31",
        "an envelope",
        body(assistant({"reasoningContent": {"redactedContent": ENVELOPE}}, TEXT), Q),
        body(assistant(SEALED, TEXT), Q),
        ("messages[1].content[0].reasoningContent.redactedContent",),
        model=CLAUDE,
    ),
)
