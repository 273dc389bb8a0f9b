"""Bodies for Gemini generateContent that declare functions and choose among them: each row breaks GEM-23."""

from __future__ import annotations

from tests.bodies import Body
from tests.bodies.gemini import model, response, user
from tests.conformance.bodies_gemini import OK, body, call, declares
from tests.conformance.case import Case

SCHEMA: Body = {"type": "OBJECT", "properties": {"a": {"type": "STRING"}}}
PARAMETER = "tools[0].functionDeclarations[0].parameters.properties.a"
NAME = "tools[0].functionDeclarations[0].name"
ALLOWED = "toolConfig.functionCallingConfig.allowedFunctionNames"


def parameters(**schema: object) -> Body:
    """A body that declares one function with one parameter of this schema."""
    return declares({"name": "f", "parameters": {"type": "OBJECT", "properties": {"a": schema}}})


def chooses(mode: str | None, *names: str) -> Body:
    config: Body = {"allowedFunctionNames": list(names), **({"mode": mode} if mode else {})}
    return declares({"name": "f"}, toolConfig={"functionCallingConfig": config})


CASES = (
    Case("GEM-23", "a space", declares({"name": "9bad name"}), declares({"name": "_a.b:c-9"}), (NAME,)),
    Case("GEM-23", "no name", declares({"description": "d"}), declares({"name": "f"}), (NAME,)),
    Case("GEM-23", "129", declares({"name": "n" * 129}), declares({"name": "n" * 64}), (NAME,)),
    Case("GEM-23", "65", declares({"name": "n" * 65}), declares({"name": "n" * 64}), (NAME,), "risk"),
    Case(
        "GEM-23",
        "a call without a name",
        body(model(call(name="")), user(response())),
        OK,
        ("contents[1].parts[0].functionCall.name",),
    ),
    Case(
        "GEM-23",
        "replayed",
        body(model(call(name="a b")), user(response(name="a b"))),
        body(model(call(name="not_declared")), user(response(name="not_declared"))),
        ("contents[1].parts[0].functionCall.name", "contents[2].parts[0].functionResponse.name"),
        "risk",
    ),
    Case(
        "GEM-23",
        "declared twice",
        body(tools=[{"functionDeclarations": [{"name": "f"}]}, {"function_declarations": [{"name": "f"}]}]),
        body(tools={"functionDeclarations": [{"name": "f"}, {"name": "F"}]}),
        ("tools[1].function_declarations[0].name",),
    ),
    Case(
        "GEM-23",
        "two schemas",
        declares({"name": "f", "parameters": SCHEMA, "parametersJsonSchema": {"type": "object"}}),
        declares({"name": "f", "parametersJsonSchema": {"type": "object", "$schema": "s", "oneOf": []}}),
        ("tools[0].functionDeclarations[0].parametersJsonSchema",),
    ),
    Case(
        "GEM-23",
        "not an object",
        declares({"name": "f", "parameters": {"type": "STRING"}}),
        declares({"name": "f", "parameters": {"type": "object"}}),
        ("tools[0].functionDeclarations[0].parameters.type",),
    ),
    Case(
        "GEM-23",
        "no type",
        declares({"name": "f", "parameters": {"properties": {}}}),
        declares({"name": "f"}),
        ("tools[0].functionDeclarations[0].parameters.type",),
        "risk",
    ),
    Case(
        "GEM-23",
        "a key of JSON Schema",
        parameters(type="string", const="x"),
        parameters(type="string", enum=["x"]),
        (f"{PARAMETER}.const",),
    ),
    Case(
        "GEM-23",
        "a reference",
        parameters(anyOf=[{"$ref": "#/$defs/a"}]),
        parameters(any_of=[{"type": "NULL"}]),
        (f"{PARAMETER}.anyOf[0].$ref",),
    ),
    Case(
        "GEM-23",
        "additionalProperties",
        parameters(type="object", additionalProperties=False),
        parameters(type="object", properties={}),
        (f"{PARAMETER}.additionalProperties",),
        "risk",
    ),
    Case(
        "GEM-23",
        "two types",
        parameters(type=["string", "null"]),
        parameters(type="string", nullable=True),
        (f"{PARAMETER}.type",),
    ),
    Case("GEM-23", "unknown type", parameters(type="enum"), parameters(type="Integer"), (f"{PARAMETER}.type",), "risk"),
    Case(
        "GEM-23",
        "numbers in an enum",
        parameters(type="STRING", enum=[1]),
        parameters(type="STRING", enum=["1"]),
        (f"{PARAMETER}.enum[0]",),
    ),
    Case(
        "GEM-23",
        "nothing in an enum",
        parameters(type="STRING", enum=[""]),
        parameters(type="STRING", format="enum", enum=["a"]),
        (f"{PARAMETER}.enum[0]",),
    ),
    Case(
        "GEM-23",
        "enum of integers",
        parameters(type="INTEGER", enum=["1"]),
        parameters(type="INTEGER"),
        (f"{PARAMETER}.enum",),
        "risk",
    ),
    Case(
        "GEM-23",
        "array without items",
        parameters(type="array"),
        parameters(type="array", items={"type": "string"}),
        (f"{PARAMETER}.items",),
    ),
    Case(
        "GEM-23",
        "items inside items",
        parameters(type="ARRAY", items={"type": "ARRAY"}),
        parameters(type="ARRAY", items={"type": "ARRAY", "items": {}}),
        (f"{PARAMETER}.items.items",),
    ),
    Case(
        "GEM-23",
        "format",
        parameters(type="STRING", format="uri"),
        parameters(type="STRING", format="date-time"),
        (f"{PARAMETER}.format",),
        "risk",
    ),
    Case(
        "GEM-23",
        "required is no property",
        parameters(type="OBJECT", required=["b"]),
        parameters(type="OBJECT", required=["b"], properties={"b": {"type": "STRING"}}),
        (f"{PARAMETER}.required[0]",),
        "risk",
    ),
    Case(
        "GEM-23",
        "a schema as boolean",
        declares({"name": "f", "parameters": {"type": "OBJECT", "properties": {"a": True}}}),
        parameters(),
        (PARAMETER,),
    ),
    Case(
        "GEM-23",
        "a tool of another API",
        body(tools=[{"name": "f"}]),
        body(tools=[{"codeExecution": {}}]),
        ("tools[0].name",),
    ),
    Case("GEM-23", "allowed names with AUTO", chooses("AUTO", "f"), chooses("ANY", "f"), (ALLOWED,)),
    Case("GEM-23", "allowed names without mode", chooses(None, "f"), chooses("validated", "f"), (ALLOWED,)),
    Case("GEM-23", "allowed and not declared", chooses("ANY", "f", "g"), chooses("ANY", "f"), (f"{ALLOWED}[1]",)),
    Case(
        "GEM-23",
        "unknown mode",
        body(toolConfig={"functionCallingConfig": {"mode": "REQUIRED"}}),
        body(tool_config={"function_calling_config": {"mode": "NONE"}}),
        ("toolConfig.functionCallingConfig.mode",),
        "risk",
    ),
)
