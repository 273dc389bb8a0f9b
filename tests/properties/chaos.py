"""Bodies without any care: well-formed messages in any order with ids from a tiny pool, and bodies damaged at random.

Their meaning is undefined, so only the validity of the conversion is checked.
"""

from __future__ import annotations

import copy
import json
from typing import Any

from hypothesis import strategies as st

from tests.properties.scenario import ABSENT

Body = dict[str, Any]

IDS = st.sampled_from(["a", "b", "call_0", "functions.f:0", "toolu_1", "hist_tool_1", "", None, "null", ABSENT, "é ."])
NAMES = st.sampled_from(["f", "g", "f", "a.b", "a b", ""])
TEXTS = st.sampled_from(["hello", "", " ", "\n", "two\nlines", "🎈", "Continue.", "[continued]"])
ARGUMENTS = st.sampled_from(["{}", '{"a": 1}', "", "[1]", "{", "null", '"x"', "1e999", '{"a": 1, "a": 2}'])
VALUES: list[Any] = [{}, {"a": 1}, {"a": {"b": [1.0, None]}}]
SIGNATURES = st.sampled_from(["RXFRQg==", "not base64!", "", None, ABSENT])


def without_absent(entry: Body) -> Body:
    return {key: value for key, value in entry.items() if value is not ABSENT}


def _object(**fields: Any) -> st.SearchStrategy[Body]:
    return st.fixed_dictionaries(fields).map(without_absent)


_TEXT_PART = _object(type=st.just("text"), text=TEXTS)
_CHAT_CONTENT = st.one_of(TEXTS, st.none(), st.lists(_TEXT_PART, max_size=2))
_CHAT_CALL = st.one_of(
    _object(id=IDS, type=st.just("function"), function=_object(name=NAMES, arguments=ARGUMENTS)),
    _object(id=IDS, type=st.just("custom"), custom=_object(name=NAMES, input=TEXTS)),
)
_CHAT_MESSAGE = st.one_of(
    _object(role=st.sampled_from(["user", "system", "developer"]), content=_CHAT_CONTENT),
    _object(
        role=st.just("assistant"),
        content=_CHAT_CONTENT,
        reasoning_content=st.sampled_from([ABSENT, ABSENT, "hm", "", None]),
        tool_calls=st.one_of(st.just(ABSENT), st.lists(_CHAT_CALL, max_size=3)),
    ),
    _object(role=st.just("tool"), tool_call_id=IDS, content=_CHAT_CONTENT, name=st.sampled_from([ABSENT, "f", "g"])),
    _object(role=st.just("function"), name=NAMES, content=TEXTS),
    _object(role=st.just("assistant"), content=_CHAT_CONTENT, function_call=_object(name=NAMES, arguments=ARGUMENTS)),
)
_THOUGHT = _object(type=st.just("thinking"), thinking=st.one_of(TEXTS, st.lists(_TEXT_PART, max_size=2)))
_MISTRAL_MESSAGE = st.one_of(
    _CHAT_MESSAGE,
    _object(
        role=st.just("assistant"),
        content=st.one_of(TEXTS, st.lists(st.one_of(_TEXT_PART, _THOUGHT), max_size=3)),
        prefix=st.sampled_from([ABSENT, True, False]),
        tool_calls=st.one_of(st.just(ABSENT), st.lists(_CHAT_CALL, max_size=2)),
    ),
)
_BLOCK_TEXT = _object(type=st.just("text"), text=TEXTS)
_USE = _object(type=st.just("tool_use"), id=IDS, name=NAMES, input=st.sampled_from(VALUES))
_RESULT = _object(
    type=st.just("tool_result"),
    tool_use_id=IDS,
    content=st.one_of(st.just(ABSENT), TEXTS, st.lists(_BLOCK_TEXT, max_size=2)),
    is_error=st.sampled_from([ABSENT, True, False]),
)
_THINKING = st.one_of(
    _object(type=st.just("thinking"), thinking=TEXTS, signature=SIGNATURES),
    _object(type=st.just("redacted_thinking"), data=st.sampled_from(["RXFRQg==", ""])),
)
_SERVER = st.one_of(
    _object(
        type=st.just("server_tool_use"),
        id=st.sampled_from(["srvtoolu_1", "x"]),
        name=st.just("web_search"),
        input=st.just({}),
    ),
    _object(
        type=st.just("web_search_tool_result"), tool_use_id=st.sampled_from(["srvtoolu_1", "x"]), content=st.just([])
    ),
)
_BLOCKS = st.lists(st.one_of(_BLOCK_TEXT, _USE, _RESULT, _THINKING, _SERVER), max_size=4)
_ANTHROPIC_MESSAGE = _object(
    role=st.sampled_from(["user", "assistant", "user", "assistant", "system"]), content=st.one_of(TEXTS, _BLOCKS)
)


ITEM_IDS = st.sampled_from([ABSENT, ABSENT, None, "", "fc_1", "fc_2", "msg_1", "rs_1", "rs_2", "call_1", "x" * 65])
_PART = _object(type=st.sampled_from(["input_text", "output_text", "text"]), text=TEXTS)
_PARTS = st.one_of(TEXTS, st.lists(_PART, max_size=2))
_ITEM = st.one_of(
    _object(role=st.sampled_from(["user", "system", "developer", "assistant"]), content=_PARTS, id=ITEM_IDS),
    _object(
        type=st.just("message"),
        id=ITEM_IDS,
        role=st.just("assistant"),
        status=st.just("completed"),
        content=st.lists(st.one_of(_PART, _object(type=st.just("refusal"), refusal=TEXTS)), max_size=2),
    ),
    _object(
        type=st.just("reasoning"),
        id=ITEM_IDS,
        summary=st.sampled_from([[], ABSENT, [{"type": "summary_text", "text": "hm"}]]),
        encrypted_content=st.sampled_from([ABSENT, None, "gAAA"]),
    ),
    _object(type=st.just("function_call"), id=ITEM_IDS, call_id=IDS, name=NAMES, arguments=ARGUMENTS),
    _object(type=st.just("function_call_output"), call_id=IDS, output=_PARTS),
    _object(type=st.just("custom_tool_call"), call_id=IDS, name=NAMES, input=TEXTS),
    _object(type=st.just("custom_tool_call_output"), call_id=IDS, output=TEXTS),
    _object(
        type=st.just("web_search_call"),
        id=st.sampled_from(["ws_1", "ws_2"]),
        status=st.just("completed"),
        action=st.just({"type": "search", "query": "q"}),
    ),
    _object(
        type=st.just("apply_patch_call"),
        call_id=IDS,
        status=st.just("completed"),
        operation=st.just({"type": "delete_file", "path": "p"}),
    ),
    _object(
        type=st.just("apply_patch_call_output"),
        call_id=IDS,
        status=st.sampled_from(["completed", "failed"]),
        output=TEXTS,
    ),
)


def _body(
    message: st.SearchStrategy[Body], root: str = "messages", size: int = 7, **fields: Any
) -> st.SearchStrategy[Body]:
    return _object(**{root: st.lists(message, max_size=size)}, **fields)


_CHAT_TOOL = _object(type=st.just("function"), function=_object(name=NAMES.filter(bool)))
_ANTHROPIC_TOOL = _object(name=NAMES.filter(bool), input_schema=st.just({"type": "object"}))
_GEMINI_RESPONSE = _object(
    id=st.sampled_from([ABSENT, "a", "b", ""]),
    name=NAMES,
    response=st.sampled_from([{}, {"output": "x"}, {"error": "y"}, {"rows": [1]}, "text", ABSENT]),
    parts=st.sampled_from([ABSENT, ABSENT, [{"inlineData": {"mimeType": "image/png", "data": "aQ=="}}]]),
)
_GEMINI_CALL = _object(
    id=st.sampled_from([ABSENT, "a", "b", None]), name=NAMES, args=st.sampled_from([*VALUES, "{}", "[1]", ABSENT])
)
_GEMINI_HOSTED = st.sampled_from(
    [
        {"executableCode": {"language": "PYTHON", "code": "1"}},
        {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1"}},
        {"toolCall": {"id": "t", "toolType": "URL_CONTEXT", "args": {}}},
        {"toolResponse": {"id": "t", "toolType": "URL_CONTEXT", "response": {}}},
    ]
)
_GEMINI_SIGNATURES = st.sampled_from([ABSENT, ABSENT, "c2ln", "claude-sig", "skip_thought_signature_validator"])
_GEMINI_PART = st.one_of(
    _object(text=TEXTS, thought=st.sampled_from([ABSENT, ABSENT, True]), thoughtSignature=_GEMINI_SIGNATURES),
    _object(functionCall=_GEMINI_CALL, thoughtSignature=_GEMINI_SIGNATURES),
    _object(function_call=_GEMINI_CALL),
    _object(functionResponse=_GEMINI_RESPONSE),
    _GEMINI_HOSTED,
    st.just({}),
)
_GEMINI_CONTENT = _object(
    role=st.sampled_from(["user", "model", "user", "model", "function", ABSENT]),
    parts=st.one_of(st.lists(_GEMINI_PART, max_size=4), st.just(ABSENT)),
)
_FOUNDRY_IDS = st.sampled_from(
    [ABSENT, None, "x", *(f"{kind}_{'0' * 50}" for kind in ("fc", "msg", "ws", "mcpr", "mem"))]
)
_FOUNDRY_ITEM = st.one_of(
    _ITEM,
    _object(
        type=st.sampled_from(["a2a_preview_call", "openapi_call", "azure_ai_search_call", "bing_grounding_call"]),
        id=_FOUNDRY_IDS,
        call_id=IDS,
        name=NAMES,
        arguments=ARGUMENTS,
        status=st.sampled_from([ABSENT, None, "completed", "failed"]),
    ),
    _object(
        type=st.sampled_from(["a2a_preview_call_output", "openapi_call_output", "azure_ai_search_call_output"]),
        id=_FOUNDRY_IDS,
        call_id=IDS,
        output=st.sampled_from([*VALUES, "text", ABSENT]),
        status=st.sampled_from(["completed", "failed", "in_progress"]),
    ),
    _object(
        type=st.sampled_from(["workflow_action", "oauth_consent_request", "structured_outputs", "memory_search_call"]),
        id=_FOUNDRY_IDS,
        kind=st.sampled_from([ABSENT, "InvokeAzureAgent"]),
        output=st.sampled_from([*VALUES, ABSENT]),
        results=st.sampled_from([ABSENT, None, []]),
        status=st.sampled_from([ABSENT, None, "completed", "cancelled"]),
    ),
    _object(
        type=st.just("mcp_approval_request"),
        id=_FOUNDRY_IDS,
        name=NAMES,
        server_label=st.just("s"),
        arguments=ARGUMENTS,
    ),
    _object(
        type=st.just("mcp_approval_response"), approval_request_id=_FOUNDRY_IDS, approve=st.sampled_from([True, False])
    ),
)
_AGENTS = st.sampled_from([ABSENT, ABSENT, {"name": "a"}, {"type": "agent_reference", "name": "a"}, None, {}])
_RESPONSES_TOOL = _object(type=st.just("function"), name=NAMES.filter(bool))
CHAOS: dict[str, st.SearchStrategy[Body]] = {
    "openai-responses": _body(
        _ITEM,
        root="input",
        size=9,
        tools=st.one_of(st.just(ABSENT), st.lists(_RESPONSES_TOOL, max_size=2)),
        store=st.sampled_from([ABSENT, ABSENT, False]),
    ),
    "azure-foundry": _body(
        _FOUNDRY_ITEM,
        root="input",
        size=9,
        tools=st.one_of(st.just(ABSENT), st.lists(_RESPONSES_TOOL, max_size=2)),
        agent=_AGENTS,
        agent_reference=_AGENTS,
        previous_response_id=st.sampled_from([ABSENT, ABSENT, None, "resp_1", f"caresp_{'0' * 50}"]),
        model=st.sampled_from([ABSENT, None, "gpt-5"]),
    ),
    "openai-chat": _body(_CHAT_MESSAGE, tools=st.one_of(st.just(ABSENT), st.lists(_CHAT_TOOL, max_size=2))),
    "kimi": _body(
        _CHAT_MESSAGE, model=st.sampled_from([ABSENT, "kimi-k2-thinking", "kimi-k3", "kimi-k2-0905-preview"])
    ),
    "mistral": _body(
        _MISTRAL_MESSAGE,
        model=st.sampled_from(
            [ABSENT, "open-mixtral-8x22b", "mistral-large-2411", "magistral-medium-2509", "devstral-2"]
        ),
        tools=st.one_of(st.just(ABSENT), st.lists(_CHAT_TOOL, max_size=2)),
        safe_prompt=st.sampled_from([ABSENT, True]),
        x_unknown=st.sampled_from([ABSENT, ABSENT, 1]),
    ),
    "deepseek": _body(
        _CHAT_MESSAGE,
        model=st.sampled_from([ABSENT, "deepseek-r1", "deepseek-reasoner", "deepseek-v3.2", "deepseek-v4-pro"]),
        thinking=st.sampled_from([ABSENT, ABSENT, {"type": "enabled"}, {"type": "disabled"}]),
        tools=st.lists(_CHAT_TOOL, min_size=1, max_size=2),
        tool_choice=st.sampled_from([ABSENT, ABSENT, "required", "auto"]),
    ),
    "qwen": _body(
        _CHAT_MESSAGE,
        model=st.sampled_from([ABSENT, "qwen3.5-plus", "qwq-plus"]),
        enable_thinking=st.sampled_from([ABSENT, ABSENT, True, False]),
    ),
    "anthropic": _body(
        _ANTHROPIC_MESSAGE,
        max_tokens=st.just(100),
        system=st.one_of(st.just(ABSENT), TEXTS, st.lists(_BLOCK_TEXT, max_size=2)),
        tools=st.one_of(st.just(ABSENT), st.lists(_ANTHROPIC_TOOL, max_size=2)),
        thinking=st.sampled_from([ABSENT, ABSENT, {"type": "enabled", "budget_tokens": 1024}, {"type": "adaptive"}]),
        tool_choice=st.sampled_from([ABSENT, ABSENT, {"type": "any"}, {"type": "auto"}]),
    ),
}

CHAOS["gemini"] = _object(
    contents=st.lists(_GEMINI_CONTENT, max_size=7),
    model=st.sampled_from([ABSENT, "gemini-2.5-flash", "gemini-3.8-flash"]),
    tools=st.sampled_from([ABSENT, [{"functionDeclarations": [{"name": "f"}]}, {"googleSearch": {}}]]),
)

_CONVERSE_RESULT = _object(
    toolUseId=IDS,
    content=st.sampled_from([[], [{"text": "x"}], [{"text": ""}], [{"json": {"rows": [1.0]}}, {"text": "y"}], "text"]),
    status=st.sampled_from([ABSENT, ABSENT, "success", "error"]),
)
_CONVERSE_DOCUMENT = {"document": {"format": "pdf", "name": "a_b.pdf", "source": {"bytes": "JVBERi0xLjQK"}}}
_CONVERSE_BLOCK = st.one_of(
    _object(text=TEXTS),
    _object(toolUse=_object(toolUseId=IDS, name=NAMES, input=st.sampled_from([*VALUES, "{}", [1]]))),
    _object(toolResult=_CONVERSE_RESULT),
    _object(reasoningContent=_object(reasoningText=_object(text=TEXTS, signature=SIGNATURES))),
    st.sampled_from(
        [
            {"cachePoint": {"type": "default"}},
            {"toolUse": {"toolUseId": "s", "name": "nova_grounding", "input": {}, "type": "server_tool_use"}},
            {"toolResult": {"toolUseId": "s", "content": [{"text": "found"}], "type": "nova_grounding_result"}},
            {"citationsContent": {"content": [{"text": "cited"}], "citations": []}},
            _CONVERSE_DOCUMENT,
        ]
    ),
)
CHAOS["bedrock"] = _body(
    _object(role=st.sampled_from(["user", "assistant"]), content=st.lists(_CONVERSE_BLOCK, max_size=4)),
    modelId=st.sampled_from(
        [ABSENT, "anthropic.claude-sonnet-4-5-v1:0", "amazon.nova-pro-v1:0", "meta.llama3-3-70b-instruct-v1:0"]
    ),
    system=st.sampled_from([ABSENT, [], [{"text": "Be brief."}, {"cachePoint": {"type": "default"}}]]),
    toolConfig=st.sampled_from([ABSENT, {"tools": [{"toolSpec": {"name": "f", "inputSchema": {"json": {}}}}]}]),
)

_KEYS = ["messages", "contents", "role", "parts", "content", "type", "text", "id", "x"]
_SCALARS = st.one_of(st.none(), st.booleans(), st.integers(-3, 3), st.just(1.5), TEXTS)
JSON_VALUES = st.recursive(
    _SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.sampled_from(_KEYS), inner, max_size=4)),
    max_leaves=10,
)


def _places(value: Any, found: list[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
    """Every (container, key) of a JSON value."""
    entries = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in entries:
        found.append((value, key))
        _places(inner, found)
    return found


@st.composite
def damaged(draw: Any, body: Body) -> Body:
    """The body with one to three keys dropped, values replaced, or values swapped."""
    body = copy.deepcopy(body)
    for _ in range(draw(st.integers(1, 3))):
        places = _places(body, [])
        if not places:
            break
        container, key = places[draw(st.integers(0, len(places) - 1))]
        match draw(st.sampled_from(["drop", "replace", "swap", "wrap"])):
            case "drop":
                del container[key]
            case "replace":
                container[key] = draw(JSON_VALUES)
            case "wrap":
                container[key] = draw(st.sampled_from([[container[key]], {"x": container[key]}]))
            case _:
                other, at = places[draw(st.integers(0, len(places) - 1))]
                first, second = json.loads(json.dumps(container[key])), json.loads(json.dumps(other[at]))
                container[key], other[at] = second, first
    return json.loads(json.dumps(body))
