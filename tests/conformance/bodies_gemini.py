"""Bodies for Gemini generateContent: each row breaks one rule."""

from __future__ import annotations

from typing import Any

from tests.bodies import Body
from tests.bodies.gemini import call as unsigned
from tests.bodies.gemini import model, response, user
from tests.conformance.case import ENVELOPE, Case

SIGNATURE = "c2lnbmVkIQ=="
SKIP = "skip_thought_signature_validator"
TEXT: Body = {"text": "t"}
IMAGE: Body = {"inlineData": {"mimeType": "image/png", "data": "iVBORw0KGgo="}}


Q = user({"text": "q"})
A = model({"text": "a"})


def call(signature: object = SKIP, **more: Any) -> Body:
    return {**unsigned(**more), "thoughtSignature": signature}


def body(*contents: Body, **more: object) -> Body:
    """A body that begins with a question."""
    return {"contents": [Q, *contents], **more}


def declares(*declarations: Body, **more: object) -> Body:
    return body(tools=[{"functionDeclarations": list(declarations)}], **more)


OK = body(model(call()), user(response()))
OLD = "gemini-2.5-pro"
NEW = "gemini-3.1-pro-preview"
COMPUTER = "gemini-2.5-computer-use-preview-10-2025"
SEARCH: Body = {"toolCall": {"id": "s1", "toolType": "GOOGLE_SEARCH_WEB", "args": {}}}
FOUND: Body = {"toolResponse": {"id": "s1", "toolType": "GOOGLE_SEARCH_WEB", "response": {}}}
CODE: Body = {"executableCode": {"language": "PYTHON", "code": "1"}}
RAN: Body = {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1"}}
SHOWS: Body = {"parts": [IMAGE]}

TURNS = (
    Case(
        "GEM-01",
        "one of two",
        body(model(call(), unsigned()), user(response())),
        body(model(call(), unsigned()), user(response(), response())),
        ("contents[1]",),
    ),
    Case(
        "GEM-01",
        "spread over two contents",
        body(model(call(), unsigned()), user(response()), user(response())),
        body(model(call(), unsigned()), user(response(), response())),
        ("contents[1]",),
    ),
    Case("GEM-01", "too many", body(model(call()), user(response(), response())), OK, ("contents[1]",)),
    Case("GEM-01", "user text", body(model(call()), Q), body(model(call()), user(response()), Q), ("contents[1]",)),
    Case(
        "GEM-02",
        "calls in two contents",
        body(model(call()), model(call()), user(response(), response())),
        body(model(call(), call()), user(response(), response())),
        ("contents[2]",),
        "risk",
    ),
    Case(
        "GEM-02",
        "calls in three contents, the second of them text",
        body(model(call()), A, model(call()), user(response(), response())),
        body(model(call()), model(call()), model(call()), user(response(), response(), response())),
        ("contents[3]",),
        "risk",
        NEW,
    ),
    Case(
        "GEM-02",
        "calls in two contents of an older model",
        body(model(call()), model(TEXT, call()), user(response(), response())),
        body(model(call(), TEXT, call()), user(response(), response())),
        ("contents[2]",),
        "risk",
        OLD,
    ),
    Case(
        "GEM-12",
        "one id in two turns",
        body(model(call(id="a")), user(response(id="a")), model(call(id="a")), user(response(id="a"))),
        body(model(call(id="a")), user(response(id="a")), model(call(id="b")), user(response(id="b"))),
        ("contents[3].parts[0].functionCall.id",),
        "risk",
    ),
    Case(
        "GEM-12",
        "one id for two calls of a turn",
        body(model(call(id="a"), call(id="a")), user(response(id="a"), response(id="a"))),
        body(model(call(id="a"), call(id="b")), user(response(id="a"), response(id="b"))),
        ("contents[1].parts[1].functionCall.id",),
        "risk",
    ),
    Case(
        "GEM-02",
        "first content",
        {"contents": [model(call()), user(response())]},
        {"cachedContent": "cachedContents/1", "contents": [model(call()), user(response())]},
        ("contents[0]",),
    ),
    Case(
        "GEM-02",
        "after model text (GEM-08)",
        body(A, model(call()), user(response())),
        body(model(TEXT, call()), user(response())),
        ("contents[2]",),
        "risk",
    ),
    Case(
        "GEM-03",
        "first content",
        {"contents": [user(response())]},
        {"cached_content": "cachedContents/1", "contents": [user(response())]},
        ("contents[0]",),
    ),
    Case("GEM-03", "after user text", body(user(response())), OK, ("contents[1]",)),
    Case(
        "GEM-03",
        "once more",
        body(model(call()), user(response()), user(response())),
        body(model(call()), user(response()), user(TEXT)),
        ("contents[3]",),
    ),
    Case(
        "GEM-03",
        "after model text",
        body(model(call()), user(response()), A, user(response())),
        body(model(call()), user(response()), A, Q),
        ("contents[4]",),
    ),
    Case(
        "GEM-04",
        "text",
        body(model(call()), user(response(), TEXT)),
        body(model(call()), user(response()), user(TEXT)),
        ("contents[2].parts[1]",),
    ),
    Case(
        "GEM-04",
        "text first, in snake case",
        body(model(call()), user(TEXT, {"function_response": {"name": "f", "response": {}}})),
        body(model(call()), user({"function_response": {"name": "f", "response": {}}})),
        ("contents[2].parts[0]",),
    ),
    Case("GEM-05", "text", body(A), body(A, Q), ("contents[1]",)),
    Case("GEM-05", "an open call", body(model(call())), OK, ("contents[1]",)),
    Case("GEM-06", "model", {"contents": [A]}, {"contents": [{"parts": [TEXT]}]}, ("contents[0].role",)),
    Case("GEM-07", "assistant", body({**A, "role": "assistant"}, Q), body(A, Q), ("contents[1].role",)),
    Case("GEM-07", "upper case", {"contents": [{**Q, "role": "USER"}]}, {"contents": [Q]}, ("contents[0].role",)),
    Case(
        "GEM-07",
        "function",
        body(model(call()), {"role": "function", "parts": [response()]}),
        OK,
        ("contents[2].role",),
        "risk",
    ),
    Case(
        "GEM-07", "none", body(A, {"parts": [TEXT]}), {"contents": [{"parts": [TEXT]}]}, ("contents[2].role",), "risk"
    ),
    Case(
        "GEM-07",
        "a response of the model",
        body(model(call()), model(response())),
        OK,
        ("contents[2].parts[0]",),
        "risk",
    ),
    Case(
        "GEM-07",
        "a call of the user",
        body(A, user(unsigned()), user(response())),
        OK,
        ("contents[2].parts[0]",),
        "risk",
    ),
    Case("GEM-08", "user", body(Q), {"contents": [user(TEXT, TEXT)]}, ("contents[1]",), "risk"),
    Case("GEM-08", "model", body(A, A, Q), body(model(TEXT, TEXT), Q), ("contents[2]",), "risk"),
    Case(
        "GEM-11",
        "on the call alone",
        body(model(call(id="1")), user(response())),
        body(model(call(id="1")), user(response(id="1"))),
        ("contents[2].parts[0].functionResponse.id",),
        "risk",
    ),
    Case(
        "GEM-11",
        "on the response alone",
        body(model(call()), user(response(id="1"))),
        OK,
        ("contents[2].parts[0].functionResponse.id",),
        "risk",
    ),
    Case(
        "GEM-12",
        "another",
        body(model(call(id="1")), user(response(id="2"))),
        body(model(call(id="1")), user(response(id="1"))),
        ("contents[2].parts[0].functionResponse.id",),
        "risk",
    ),
    Case(
        "GEM-12",
        "another order",
        body(model(call(id="1"), unsigned(id="2", name="g")), user(response(id="2", name="g"), response(id="1"))),
        body(model(call(id="1"), unsigned(id="2", name="g")), user(response(id="1"), response(id="2", name="g"))),
        ("contents[2].parts[0].functionResponse.id", "contents[2].parts[1].functionResponse.id"),
        "risk",
    ),
    Case(
        "GEM-13",
        "no name",
        body(model(call()), user({"functionResponse": {"response": {}}})),
        OK,
        ("contents[2].parts[0].functionResponse.name",),
    ),
    Case(
        "GEM-13",
        "a string",
        body(model(call()), user(response(response="text"))),
        body(model(call()), user(response(response={"output": "text"}))),
        ("contents[2].parts[0].functionResponse.response",),
    ),
    Case(
        "GEM-13",
        "no response",
        body(model(call()), user({"functionResponse": {"name": "f"}})),
        OK,
        ("contents[2].parts[0].functionResponse.response",),
        "risk",
    ),
    Case(
        "GEM-13",
        "another name",
        body(model(call()), user(response(name="g"))),
        OK,
        ("contents[2].parts[0].functionResponse.name",),
    ),
    Case(
        "GEM-13",
        "another order",
        body(model(call(), unsigned(name="g")), user(response(name="g"), response())),
        body(model(call(), unsigned(name="g")), user(response(), response(name="g"))),
        ("contents[2].parts[0].functionResponse.name", "contents[2].parts[1].functionResponse.name"),
        "risk",
    ),
    Case(
        "GEM-28",
        "a system content",
        {"contents": [{"role": "system", "parts": [TEXT]}, A, Q]},
        {"systemInstruction": {"parts": [TEXT]}, "contents": [Q, A, Q]},
        ("contents[0].role",),
    ),
    Case(
        "GEM-28",
        "an image",
        body(systemInstruction={"parts": [IMAGE]}),
        body(system_instruction={"role": "system", "parts": {"text": "s"}}),
        ("systemInstruction.parts[0]",),
        "risk",
    ),
)

PARTS = (
    Case("GEM-09", "no parts", body(model(), Q), body(A, Q), ("contents[1].parts",)),
    Case("GEM-09", "missing", {"contents": [{"role": "user"}]}, {"contents": {"parts": TEXT}}, ("contents[0].parts",)),
    Case("GEM-09", "no contents", {"contents": []}, {"contents": [Q]}, ("contents",)),
    Case("GEM-09", "contents missing", {}, {"contents": [Q]}, ("contents",)),
    Case("GEM-10", "empty", body(model({}), Q), body(A, Q), ("contents[1].parts[0]",)),
    Case(
        "GEM-10",
        "settings of no video",
        {"contents": [user({"videoMetadata": {"fps": 1}}, IMAGE, TEXT, {"video_metadata": {"fps": 1}})]},
        {"contents": [user(IMAGE, {"videoMetadata": {"fps": 1}}, TEXT)]},
        ("contents[0].parts[0]", "contents[0].parts[3]"),
        "risk",
    ),
    Case("GEM-10", "null", body(model({"text": None}), Q), body(A, Q), ("contents[1].parts[0]",)),
    Case(
        "GEM-10",
        "a signature alone",
        body(model({"thoughtSignature": SIGNATURE}), Q),
        body(model({"text": "", "thoughtSignature": SIGNATURE}), Q),
        ("contents[1].parts[0]",),
    ),
    Case(
        "GEM-10",
        "two",
        {"contents": [user({**TEXT, **IMAGE})]},
        {"contents": [user(TEXT, IMAGE)]},
        ("contents[0].parts[0]",),
    ),
    Case(
        "GEM-10",
        "in systemInstruction",
        body(systemInstruction={"parts": [{}]}),
        body(systemInstruction={"parts": [TEXT]}),
        ("systemInstruction.parts[0]",),
    ),
    Case("GEM-10", "empty text", body(model({"text": ""}), Q), body(A, Q), ("contents[1].parts[0].text",), "risk"),
    Case(
        "GEM-10",
        "inside a response",
        body(model(call()), user(response(parts=[{}]))),
        body(model(call()), user(response(**SHOWS))),
        ("contents[2].parts[0].functionResponse.parts[0]",),
    ),
    Case(
        "GEM-14",
        "args as text",
        body(model(call(args="{}")), user(response())),
        body(model(call(args=None)), user(response())),
        ("contents[1].parts[0].functionCall.args",),
    ),
    Case(
        "GEM-14",
        "is_error",
        body(model(call()), user(response(is_error=True))),
        body(model(call()), user(response(response={"error": "e"}))),
        ("contents[2].parts[0].functionResponse.is_error",),
    ),
    Case(
        "GEM-14",
        "a part with a type",
        {"contents": [user({"type": "text", "text": "t"})]},
        {"contents": [user({"text": "t", "thought": False, "partMetadata": {"any": 1}})]},
        ("contents[0].parts[0].type",),
    ),
    Case(
        "GEM-14",
        "a content of another API",
        {"contents": [{**Q, "content": "q"}]},
        {"contents": [Q]},
        ("contents[0].content",),
    ),
    Case(
        "GEM-14",
        "top level",
        body(prompt="q", temperature=1),
        body(generationConfig={"temperature": 1}, safety_settings=[], model="gemini-3-pro"),
        ("prompt", "temperature"),
    ),
    Case("GEM-14", "system as text", body(systemInstruction="s"), body(systemInstruction=None), ("systemInstruction",)),
    Case("GEM-14", "contents as text", {"contents": "q"}, {"contents": Q}, ("contents",)),
    Case("GEM-14", "a part as text", {"contents": [{"parts": ["q"]}]}, {"contents": [Q]}, ("contents[0].parts[0]",)),
    Case("GEM-14", "a number as text", {"contents": [user({"text": 1})]}, body(), ("contents[0].parts[0].text",)),
    Case(
        "GEM-14",
        "a list as id",
        body(model(call(id=["1"])), user(response())),
        body(model(call(id="1")), user(response(id="1"))),
        ("contents[1].parts[0].functionCall.id",),
    ),
    Case(
        "GEM-14",
        "a data URL",
        {"contents": [user({"inline_data": {"mime_type": "image/png", "data": "data:image/png;base64,iVBORw=="}})]},
        {"contents": [user({"inline_data": {"mime_type": "image/png", "data": "iVBORw=="}})]},
        ("contents[0].parts[0].inline_data.data",),
    ),
    Case(
        "GEM-14",
        "streamed arguments",
        body(model(call(willContinue=True)), user(response())),
        OK,
        ("contents[1].parts[0].functionCall.willContinue",),
        "risk",
    ),
    Case("GEM-14", "of Vertex", body(modelArmorConfig={}), body(labels={}), ("modelArmorConfig",), "risk"),
    Case(
        "GEM-24",
        "before Gemini 3",
        body(model(SEARCH, FOUND, TEXT), Q),
        body(model(CODE, RAN, TEXT), Q),
        ("contents[1].parts[0]", "contents[1].parts[1]"),
        model=OLD,
    ),
    Case(
        "GEM-24",
        "asked for before Gemini 3",
        body(toolConfig={"includeServerSideToolInvocations": True}),
        body(toolConfig={"includeServerSideToolInvocations": False}),
        ("toolConfig.includeServerSideToolInvocations",),
        model=OLD,
    ),
    Case("GEM-24", "the user's", body(A, user(CODE)), body(model(CODE, RAN), Q), ("contents[2].parts[0]",), "risk"),
    Case(
        "GEM-24",
        "no such call",
        body(model(FOUND, TEXT), Q),
        body(model(SEARCH, FOUND, TEXT), Q),
        ("contents[1].parts[0].toolResponse.id",),
        "risk",
    ),
    Case(
        "GEM-24",
        "built-in tools beside functions",
        body(tools=[{"googleSearch": {}}, {"functionDeclarations": [{"name": "f"}]}]),
        body(
            tools=[{"googleSearch": {}}, {"functionDeclarations": [{"name": "f"}]}],
            toolConfig={"includeServerSideToolInvocations": True},
        ),
        ("tools[0].googleSearch",),
        "risk",
        NEW,
    ),
    Case(
        "GEM-27",
        "beside the response",
        body(model(call()), user(response(), IMAGE)),
        body(model(call()), user(response()), user(IMAGE)),
        ("contents[2].parts[1]",),
    ),
    Case(
        "GEM-27",
        "inside, before Gemini 3",
        body(model(unsigned()), user(response(**SHOWS))),
        body(model(unsigned()), user(response()), user(IMAGE)),
        ("contents[2].parts[0].functionResponse.parts",),
        model=OLD,
    ),
)

THINKING = (
    Case(
        "GEM-15",
        "unsigned",
        body(model(unsigned()), user(response())),
        body(model(call(SIGNATURE), unsigned()), user(response(), response())),
        ("contents[1].parts[0].thoughtSignature",),
        model=NEW,
    ),
    Case(
        "GEM-15",
        "second step",
        body(model(call()), user(response()), model(TEXT, unsigned()), user(response())),
        body(model(unsigned()), user(response()), A, Q, model(TEXT, call()), user(response())),
        ("contents[3].parts[1].thoughtSignature",),
        model="gemini-4-argon",
    ),
    Case(
        "GEM-15",
        "empty",
        body(model(call("")), user(response())),
        body(model(unsigned()), user(response()), user(TEXT)),
        ("contents[1].parts[0].thoughtSignature",),
        model=NEW,
    ),
    Case(
        "GEM-15",
        "unknown model",
        body(model(unsigned()), user(response())),
        body(model(unsigned()), user(response()), model=OLD),
        ("contents[1].parts[0].thoughtSignature",),
        "risk",
    ),
    Case(
        "GEM-15",
        "signed text before it",
        body(model({**TEXT, "thoughtSignature": SIGNATURE}, unsigned()), user(response())),
        body(model(TEXT, {**unsigned(), "thought_signature": SIGNATURE}), user(response())),
        ("contents[1].parts[1].thoughtSignature",),
        model=NEW,
    ),
    Case(
        "GEM-15",
        "image model",
        body(model(unsigned()), user(response())),
        OK,
        ("contents[1].parts[0].thoughtSignature",),
        "risk",
        "gemini-3-pro-image-preview",
    ),
    Case(
        "GEM-18",
        "not base64",
        body(model(call("a b!")), user(response())),
        body(model(call("-_-_")), user(response())),
        ("contents[1].parts[0].thoughtSignature",),
    ),
    Case(
        "GEM-18",
        "an envelope",
        body(model(call(ENVELOPE)), user(response())),
        body(model(call(SIGNATURE)), user(response())),
        ("contents[1].parts[0].thoughtSignature",),
    ),
    Case(
        "GEM-18",
        "two in one",
        body(model(call("dTBoZ0I=RXBz")), user(response())),
        body(model(call("context_engineering_is_the_way_to_go")), user(response())),
        ("contents[1].parts[0].thoughtSignature",),
    ),
    Case(
        "GEM-18",
        "cut off, on a thought",
        body(model({"text": "t", "thought": True, "thoughtSignature": "c2lnbmVkI"}), Q),
        body(model({"text": "t", "thought": True, "thoughtSignature": SIGNATURE}), Q),
        ("contents[1].parts[0].thoughtSignature",),
    ),
    Case(
        "GEM-18",
        "bits left over",
        body(model(call("O4J")), user(response())),
        body(model(call("KO4J")), user(response())),
        ("contents[1].parts[0].thoughtSignature",),
    ),
    Case(
        "GEM-18",
        "foreign",
        body(model({**TEXT, "thoughtSignature": "claude-sig"}), Q),
        body(model({**TEXT, "thoughtSignature": SIGNATURE}), Q),
        ("contents[1].parts[0].thoughtSignature",),
        "risk",
    ),
    Case(
        "GEM-21",
        "the user's",
        {"contents": [user({**TEXT, "thoughtSignature": SIGNATURE})]},
        {"contents": [user(TEXT)]},
        ("contents[0].parts[0].thoughtSignature",),
        "risk",
    ),
    Case(
        "GEM-21",
        "twice",
        body(model(call(SIGNATURE), call(SIGNATURE)), user(response(), response())),
        body(model(call(), call()), user(response(), response())),
        ("contents[1].parts[1].thoughtSignature",),
        "risk",
    ),
    Case(
        "GEM-21",
        "moved to a sibling",
        body(model(unsigned(), call(SIGNATURE)), user(response(), response())),
        body(model(call(SIGNATURE), unsigned()), user(response(), response())),
        ("contents[1].parts[1].thoughtSignature",),
        "risk",
        OLD,
    ),
)

CASES = (*TURNS, *PARTS, *THINKING)
