"""Bodies with a value of a wrong type, for every API: each row breaks the rule about types, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from segue.specs.rulebook import load_rulebook
from tests.bodies import Body
from tests.conformance import bodies_anthropic as a
from tests.conformance import bodies_bedrock as b
from tests.conformance import bodies_gemini as g
from tests.conformance.case import Case

Q: Body = {"role": "user", "content": "q"}
MODELS = {"openai-chat": "gpt-4.1", "deepseek": "deepseek-chat"}
RULES = {
    "openai-chat": "OAI-CHAT-23",
    "kimi": "KIM-09",
    "deepseek": "DS-12",
    "qwen": "QWEN-06",
    "mistral": "MIS-17",
    "anthropic": "ANT-42",
    "openai-responses": "OAI-RESP-26",
    "gemini": "GEM-30",
}
CHAT = ("openai-chat", "kimi", "deepseek", "qwen", "mistral")


def has_text_of_its_own(rule: str, body: Any) -> bool:
    """Whether a body breaks a rule about types otherwise than the rulebook's example: the text depends on the type."""
    return rule in RULES.values() and body != load_rulebook()[rule].violation_example


def _function(**more: Any) -> Body:
    return {"type": "function", "function": {"name": "f", **more}}


# Changes of a valid body, the path, and a valid value in the same place.
_OPTIONS: tuple[tuple[str, Body, str, Body], ...] = (
    ("a word as temperature", {"temperature": "hot"}, "temperature", {"temperature": 0.5}),
    ("a list as temperature", {"temperature": [1]}, "temperature", {"temperature": 1}),
    ("a boolean as a limit", {"max_tokens": True}, "max_tokens", {"max_tokens": 4096}),
    ("a word as a limit", {"max_tokens": "many"}, "max_tokens", {"max_tokens": 8192}),
    ("a fraction as a limit", {"max_tokens": 1.5}, "max_tokens", {"max_tokens": 2048}),
    ("a number as model", {"model": 5}, "model", {}),
    ("a word as stream", {"stream": "yes"}, "stream", {"stream": True}),
)
_CHAT_OPTIONS: tuple[tuple[str, Body, str, Body], ...] = (
    *_OPTIONS,
    ("a number as stop", {"stop": 5}, "stop", {"stop": "x"}),
    ("numbers as stop", {"stop": [5]}, "stop[0]", {"stop": ["x"]}),
    ("content as a number", {"messages": [{"role": "user", "content": 5}]}, "messages[0].content", {}),
    ("a part as text", {"messages": [{"role": "user", "content": ["q"]}]}, "messages[0].content[0]", {}),
)
# Other rules of some vendors cover the rest.
_MESSAGES: tuple[tuple[str, Body, str, Body], ...] = (
    ("messages as an object", {"messages": {}}, "messages", {}),
    ("messages as null", {"messages": None}, "messages", {}),
)
_NOT_MISTRAL: tuple[tuple[str, Body, str, Body], ...] = (
    ("a message as text", {"messages": ["q", Q]}, "messages[0]", {}),
    ("a role that does not exist", {"messages": [{"role": "bird", "content": "q"}, Q]}, "messages[0].role", {}),
    ("a role as a number", {"messages": [{"role": 5, "content": "q"}, Q]}, "messages[0].role", {}),
    ("no role", {"messages": [{"content": "q"}, Q]}, "messages[0].role", {}),
    ("parameters as text", {"tools": [_function(parameters="x")]}, "tools[0].function.parameters", {}),
)
_NOT_KIMI: tuple[tuple[str, Body, str, Body], ...] = (
    ("a choice as a number", {"tool_choice": 5}, "tool_choice", {"tool_choice": None}),
    (
        "a text part without text",
        {"messages": [{"role": "user", "content": [{"type": "text"}]}]},
        "messages[0].content[0].text",
        {},
    ),
    (
        "text as a number",
        {"messages": [{"role": "user", "content": [{"type": "text", "text": 5}]}]},
        "messages[0].content[0].text",
        {"messages": [{"role": "user", "content": [{"type": "text", "text": "q"}]}]},
    ),
)
_NO_LIST = ("tools as an object", {"tools": {}}, "tools", {})


def _chat_cases(api: str, rule: str) -> Iterator[Case]:
    rows = [*_CHAT_OPTIONS]
    rows += () if api == "mistral" else _NOT_MISTRAL
    rows += () if api == "kimi" else _NOT_KIMI
    rows += () if api in ("mistral", "qwen") else _MESSAGES
    rows += (_NO_LIST,) if api in ("kimi", "qwen") else ()
    least: Body = {"messages": [Q]}
    for about, change, path, valid in rows:
        model = None if "model" in change else MODELS.get(api)
        yield Case(rule, about, {**least, **change}, {**least, **valid}, (path,), model=model)
    severity = {"qwen": None, "mistral": None}.get(api, "risk")
    if severity is not None:
        yield Case(rule, "8192.0", {**least, "max_tokens": 8192.0}, least, ("max_tokens",), severity, MODELS.get(api))
    if api in ("deepseek", "qwen"):
        developer: Body = {"messages": [{"role": "developer", "content": "q"}, Q]}
        yield Case(rule, "the role developer", developer, least, ("messages[0].role",), model=MODELS.get(api))
    if api == "mistral":
        for bad, good in (
            ({"temperature": 1.51}, {"temperature": 1.5}),
            ({"top_p": -0.1}, {"top_p": 0, "temperature": 0}),
        ):
            yield Case(rule, f"{bad}", {**least, **bad}, {**least, **good}, tuple(bad))
    severity = "risk" if api == "mistral" else "reject"
    yield Case(rule, "'0.5'", {**least, "temperature": "0.5"}, least, ("temperature",), severity, MODELS.get(api))


def _anthropic_cases() -> Iterator[Case]:
    least: Body = {"messages": [a.Q], "max_tokens": 100}
    rows: tuple[tuple[str, Body, str, Body], ...] = (
        *_OPTIONS,
        ("8192.0 is an integer, 0.5 is not", {"max_tokens": 0.5}, "max_tokens", {"max_tokens": 8192.0}),
        ("a number as stop", {"stop_sequences": 5}, "stop_sequences", {"stop_sequences": ["x"]}),
        ("a choice as a number", {"tool_choice": 5}, "tool_choice", {"tool_choice": {"type": "none"}}),
        ("a choice as text", {"tool_choice": "auto"}, "tool_choice", {"tool_choice": {"type": "none"}}),
        ("messages as an object", {"messages": {}}, "messages", {}),
        ("messages as null", {"messages": None}, "messages", {}),
        ("a block as text", {"messages": [{"role": "user", "content": ["q"]}]}, "messages[0].content[0]", {}),
        ("metadata as text", {"metadata": "x"}, "metadata", {"metadata": {"user_id": "x"}}),
        (
            "an image without its data",
            {"messages": [a.user({"type": "image", "source": {"type": "base64", "media_type": "image/png"}})]},
            "messages[0].content[0].source.data",
            {"messages": [a.user(a.IMAGE)]},
        ),
        (
            "a source as text in a result",
            {
                "messages": [a.Q, a.assistant(a.call()), a.user(a.result(content=[{"type": "image", "source": "x"}]))],
                "tools": [a.TOOL],
            },
            "messages[2].content[0].content[0].source",
            {},
        ),
    )
    for about, change, path, valid in rows:
        yield Case("ANT-42", about, {**least, **change}, {**least, **valid}, (path,))
    for bad, good in ((-0.01, 0), (1.01, 1.0), (-1, 0.5)):
        yield Case(
            "ANT-42",
            f"{bad} as temperature",
            {**least, "temperature": bad},
            {**least, "temperature": good},
            ("temperature",),
        )
    yield Case("ANT-42", "1.01 as top_p", {**least, "top_p": 1.01}, {**least, "top_p": 1}, ("top_p",))
    yield Case("ANT-42", "-1 as top_p", {**least, "top_p": -1}, {**least, "top_p": 0}, ("top_p",), "risk")
    for model, bad, good in (
        ("claude-opus-4-6-20260205", "xhigh", "max"),
        ("claude-sonnet-4-6", "xhigh", "low"),
        ("claude-opus-4-5-20251101", "max", "high"),
        ("claude-opus-4-1", "low", None),
        ("claude-haiku-4-5", "high", None),
        ("claude-sonnet-4-20250514", "medium", None),
        ("claude-haiku-4-6", "ultra", "xhigh"),
        ("claude-fable-5", "", "max"),
        ("claude-opus-4-8", 5, "xhigh"),
    ):
        effort: tuple[Body, Body] = ({"output_config": {"effort": bad}}, {"output_config": {"effort": good}})
        path = ("output_config.effort",)
        yield Case(
            "ANT-42", f"effort {bad!r}, {model}", {**least, **effort[0]}, {**least, **effort[1]}, path, model=model
        )
    yield Case("ANT-42", "null", {**least, "temperature": None}, least, ("temperature",), "risk")
    yield Case("ANT-42", "'0.5'", {**least, "temperature": "0.5"}, least, ("temperature",), "risk")


def _compacts(threshold: object) -> Body:
    return {"context_management": [{"type": "compaction", "compact_threshold": threshold}]}


def _responses_cases() -> Iterator[Case]:
    least: Body = {"input": "q"}
    rows: tuple[tuple[str, Body, str, Body], ...] = (
        ("a word as temperature", {"temperature": "hot"}, "temperature", {"temperature": 0.5}),
        ("a number in text", {"temperature": "0.5"}, "temperature", {"temperature": None}),
        ("a word as a limit", {"max_output_tokens": "many"}, "max_output_tokens", {"max_output_tokens": 4096}),
        ("a number as model", {"model": 5}, "model", {}),
        ("a word as stream", {"stream": "yes"}, "stream", {"stream": False}),
        ("a choice as a number", {"tool_choice": 5}, "tool_choice", {"tool_choice": "auto"}),
        ("metadata as text", {"metadata": "x"}, "metadata", {"metadata": {"a": "b"}}),
        ("reasoning as text", {"reasoning": "high"}, "reasoning", {"reasoning": {"effort": "high"}}),
        ("include as text", {"include": "x"}, "include", {"include": ["x"]}),
        ("999 as threshold", _compacts(999), "context_management[0].compact_threshold", _compacts(1000)),
        ("a word as threshold", _compacts("1k"), "context_management[0].compact_threshold", _compacts(None)),
    )
    for about, change, path, valid in rows:
        yield Case("OAI-RESP-26", about, {**least, **change}, {**least, **valid}, (path,))
    for temperature, top_p, logprobs in ((-0.01, -0.01, -1), (2.01, 1.01, 21)):
        bad: Body = {"temperature": temperature, "top_p": top_p, "top_logprobs": logprobs}
        good: Body = {"temperature": 2, "top_p": 0, "top_logprobs": 20}
        yield Case("OAI-RESP-26", f"{top_p} as top_p", {**least, **bad}, {**least, **good}, tuple(bad))
    limit = {**least, "max_output_tokens": 8192.0}
    yield Case("OAI-RESP-26", "8192.0", limit, least, ("max_output_tokens",), "risk")


def _gemini_cases() -> Iterator[Case]:
    rows: tuple[tuple[str, Body, str, Body], ...] = (
        ("a word as temperature", {"temperature": "hot"}, "temperature", {"temperature": "0.5"}),
        ("a boolean as temperature", {"temperature": True}, "temperature", {"temperature": 1}),
        ("a list as temperature", {"temperature": [1]}, "temperature", {"top_p": 0.5}),
        ("a word as a limit", {"maxOutputTokens": "many"}, "maxOutputTokens", {"maxOutputTokens": "8192"}),
        ("a fraction as a limit", {"max_output_tokens": 1.5}, "max_output_tokens", {"max_output_tokens": 8192.0}),
        ("too hot", {"temperature": 2.01}, "temperature", {"temperature": 2.0}),
        ("too cold, in text", {"temperature": "-0.1"}, "temperature", {"temperature": "0"}),
        ("too much", {"top_p": 1.01}, "top_p", {"top_p": 0}),
        ("less than nothing", {"topP": -1}, "topP", {"topP": 1}),
        ("numbers as stop", {"stopSequences": [5]}, "stopSequences[0]", {"stopSequences": ["x"]}),
        ("a number as a MIME type", {"responseMimeType": 5}, "responseMimeType", {"responseMimeType": "text/plain"}),
        (
            "a word as a budget",
            {"thinkingConfig": {"thinkingBudget": "big"}},
            "thinkingConfig.thinkingBudget",
            {"thinkingConfig": {"thinkingBudget": -1, "newer": {}}, "newerOption": [1]},
        ),
    )
    for about, change, path, valid in rows:
        yield Case(
            "GEM-30",
            about,
            g.body(generationConfig=change),
            g.body(generationConfig=valid),
            (f"generationConfig.{path}",),
        )
    properties: Body = {"$top": {"type": "INTEGER"}}
    yield Case(
        "GEM-31",
        "a parameter with a dollar sign",
        g.declares({"name": "f", "parameters": {"type": "OBJECT", "properties": properties}}),
        g.declares({"name": "f", "parametersJsonSchema": {"type": "object", "properties": properties}}),
        ("tools[0].functionDeclarations[0].parameters.properties",),
        "risk",
    )


def _bedrock_cases() -> Iterator[Case]:
    limit = ("inferenceConfig.maxTokens",)
    valid = b.body(inferenceConfig={"maxTokens": 1})
    yield Case("BED-09", "a word as a limit", b.body(inferenceConfig={"maxTokens": "many"}), valid, limit)
    yield Case("BED-09", "8192.0", b.body(inferenceConfig={"maxTokens": 8192.0}), valid, limit, "risk")


CASES: dict[str, tuple[Case, ...]] = {
    "anthropic": tuple(_anthropic_cases()),
    "bedrock": tuple(_bedrock_cases()),
    "gemini": tuple(_gemini_cases()),
    "openai-responses": tuple(_responses_cases()),
    **{api: tuple(_chat_cases(api, rule)) for api, rule in RULES.items() if api in CHAT},
}
