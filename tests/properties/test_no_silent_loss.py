"""Nothing is lost without a finding: every value of a body reaches the target, or a finding names it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

import segue
from segue.render.report import Finding, field_level
from segue.wire.registry import WIRES
from tests.budget import examples

PICTURE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aVZCT1J3MEtHZ28="}}
TOOL_SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
REASONING_KEYS = {"thinking", "redacted_thinking", "reasoning_content", "reasoning", "thoughtSignature", "signature"}
# Keys whose values are projected, describe the form, or are ids.
FORM_KEYS = {
    *("role", "type", "id", "call_id", "tool_call_id", "tool_use_id", "model", "modelId", "media_type", "format"),
    *("status", "input_schema", "parameters", "outcome"),
}

Path = tuple[str, ...]


def _subset(draw: st.DrawFn, values: dict[str, Any]) -> dict[str, Any]:
    names = draw(st.sets(st.sampled_from(sorted(values))))
    return {name: values[name] for name in sorted(names)}


def _some(draw: st.DrawFn, values: list[Any]) -> list[Any]:
    chosen = draw(st.sets(st.sampled_from(range(len(values)))))
    return [values[index] for index in sorted(chosen)]


@st.composite
def chat_bodies(draw: st.DrawFn) -> dict[str, Any]:
    call = {"id": "call_1", "type": "function", "function": {"name": "look", "arguments": '{"path":"argument-1"}'}}
    system = {"role": "system", "content": "system-1", **_subset(draw, {"name": "author-1"})}
    user = {
        "role": "user",
        "content": [{"type": "text", "text": "user-1"}, *_some(draw, [{"type": "text", "text": "user-2"}])],
        **_subset(draw, {"name": "author-2"}),
    }
    reply_fields = {"name": "author-3", "refusal": "refusal-1", "reasoning_content": "thought-1", "odd_key": "odd-1"}
    reply = {"role": "assistant", "content": "reply-1", "tool_calls": [call], **_subset(draw, reply_fields)}
    result = {"role": "tool", "tool_call_id": "call_1", "content": "result-1"}
    options = {
        "temperature": 0.37,
        "top_p": 0.83,
        "seed": 90210,
        "stop": ["stop-1"],
        "max_completion_tokens": 2345,
        "user": "person-1",
        "presence_penalty": 0.29,
        "logit_bias": {"15496": -71},
        "verbosity": "low",
        "service_tier": "flex",
        "prompt_cache_key": "cache-1",
        "odd_option": "odd-2",
    }
    tools = [{"type": "function", "function": {"name": "look", "description": "about-1", "parameters": TOOL_SCHEMA}}]
    last = {"role": "user", "content": "user-3"}
    return {"messages": [system, user, reply, result, last], "tools": tools, **_subset(draw, options)}


@st.composite
def anthropic_bodies(draw: st.DrawFn) -> dict[str, Any]:
    text_document = {"type": "text", "media_type": "text/plain", "data": "document-1"}
    binary = {"type": "base64", "media_type": "application/pdf", "data": "JVBERi0xLjQ="}
    parts = [
        {"type": "document", "source": text_document, "title": "title-1", "context": "context-1"},
        {"type": "document", "source": binary, "title": "title-2", "context": "context-2"},
        {
            "type": "search_result",
            "source": "source-1",
            "title": "title-3",
            "content": [{"type": "text", "text": "found-1"}],
        },
        PICTURE,
        {"type": "text", "text": "user-2", "cache_control": {"type": "ephemeral", "ttl": "ttl-1"}},
    ]
    thoughts = [
        {"type": "thinking", "thinking": "thought-1", "signature": "c2lnbmF0dXJl"},
        {"type": "redacted_thinking", "data": "cmVkYWN0ZWQ="},
    ]
    call = {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {"path": "argument-1"}}
    content = [{"type": "text", "text": "result-1"}, *_some(draw, [PICTURE, parts[2]])]
    result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": content}
    options = {
        "temperature": 0.37,
        "top_k": 37,
        "stop_sequences": ["stop-1"],
        "metadata": {"user_id": "person-1"},
        "service_tier": "standard_only",
        "odd_option": "odd-2",
    }
    return {
        "max_tokens": 2345,
        "system": [{"type": "text", "text": "system-1"}],
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "user-1"}, *_some(draw, parts)]},
            {"role": "assistant", "content": [*_some(draw, thoughts), {"type": "text", "text": "reply-1"}, call]},
            {"role": "user", "content": [result, {"type": "text", "text": "user-3"}]},
        ],
        "tools": [{"name": "look", "description": "about-1", "input_schema": TOOL_SCHEMA}],
        **_subset(draw, options),
    }


@st.composite
def responses_bodies(draw: st.DrawFn) -> dict[str, Any]:
    instructions = draw(
        st.sampled_from(
            [
                "system-1",
                ["system-1"],
                [{"type": "input_text", "text": "system-1"}],
                [{"type": "message", "role": "developer", "content": "system-1"}],
            ]
        )
    )
    entry = {"stdout": "result-2", "stderr": "result-3", "outcome": {"type": "exit", "exit_code": 0}}
    shell = [
        {"type": "shell_call", "call_id": "call_2", "action": {"commands": ["command-1"]}},
        {"type": "shell_call_output", "call_id": "call_2", "output": draw(st.sampled_from(["result-2", [entry]]))},
    ]
    computer = [
        {"type": "computer_call", "id": "cu_1", "call_id": "call_3", "action": {"type": "type", "text": "typed-1"}},
        {"type": "computer_call_output", "call_id": "call_3", "output": "result-4"},
    ]
    refusal = {"type": "message", "role": "assistant", "content": [{"type": "refusal", "refusal": "refusal-1"}]}
    options = {"temperature": 0.37, "top_p": 0.83, "text": {"verbosity": "low"}, "odd_option": "odd-2"}
    options |= {"include": ["reasoning.encrypted_content"], "store": False, "truncation": "auto"}
    return {
        "instructions": instructions,
        "input": [
            {"role": "user", "content": [{"type": "input_text", "text": "user-1"}]},
            {"type": "function_call", "call_id": "call_1", "name": "look", "arguments": '{"path":"argument-1"}'},
            {"type": "function_call_output", "call_id": "call_1", "output": "result-1"},
            *(item for pair in _some(draw, [shell, computer, [refusal]]) for item in pair),
            {"role": "user", "content": "user-3"},
        ],
        "tools": [{"type": "function", "name": "look", "description": "about-1", "parameters": TOOL_SCHEMA}],
        **_subset(draw, options),
    }


@st.composite
def bedrock_bodies(draw: st.DrawFn) -> dict[str, Any]:
    parts = [
        {"guardContent": {"text": {"text": "guarded-1"}}},
        {"document": {"format": "txt", "name": "name-1", "source": {"text": "document-1"}, "context": "context-1"}},
        {"cachePoint": {"type": "default"}},
    ]
    call = {"toolUse": {"toolUseId": "tooluse_1", "name": "look", "input": {"path": "argument-1"}}}
    result = {"toolResult": {"toolUseId": "tooluse_1", "content": [{"text": "result-1"}]}}
    fields = {"top_k": 37, "inferenceConfig": {"topK": 41}, "output_config": {"effort": "low"}, "odd_option": "odd-1"}
    return {
        "system": [{"text": "system-1"}, *_some(draw, parts[:1])],
        "messages": [
            {"role": "user", "content": [{"text": "user-1"}, *_some(draw, parts)]},
            {"role": "assistant", "content": [{"text": "reply-1"}, call]},
            {"role": "user", "content": [result, {"text": "user-3"}]},
        ],
        "toolConfig": {
            "tools": [{"toolSpec": {"name": "look", "description": "about-1", "inputSchema": {"json": TOOL_SCHEMA}}}]
        },
        "inferenceConfig": _subset(draw, {"temperature": 0.37, "maxTokens": 2345, "stopSequences": ["stop-1"]}),
        "additionalModelRequestFields": dict([draw(st.sampled_from(sorted(fields.items())))]),
        **_subset(draw, {"requestMetadata": {"k": "person-1"}, "performanceConfig": {"latency": "optimized"}}),
    }


@st.composite
def gemini_bodies(draw: st.DrawFn) -> dict[str, Any]:
    call = {
        "functionCall": {"name": "look", "args": {"path": "argument-1"}},
        **_subset(draw, {"thoughtSignature": "c2ln"}),
    }
    result = {"functionResponse": {"name": "look", "response": {"result": "result-1"}}}
    thoughts = [{"text": "thought-1", "thought": True}]
    config = {"temperature": 0.37, "topK": 37, "stopSequences": ["stop-1"], "seed": 90210, "mediaResolution": "odd-1"}
    return {
        "systemInstruction": {"parts": [{"text": "system-1"}]},
        "contents": [
            {"role": "user", "parts": [{"text": "user-1"}]},
            {"role": "model", "parts": [*_some(draw, thoughts), {"text": "reply-1"}, call]},
            {"role": "user", "parts": [result]},
            {"role": "user", "parts": [{"text": "user-3"}]},
        ],
        "tools": [
            {"functionDeclarations": [{"name": "look", "description": "about-1", "parameters": {"type": "OBJECT"}}]}
        ],
        "generationConfig": _subset(draw, config),
        **_subset(draw, {"labels": {"k": "person-1"}, "cachedContent": "cachedContents/1"}),
    }


BODIES = {
    "openai-chat": chat_bodies(),
    "anthropic": anthropic_bodies(),
    "openai-responses": responses_bodies(),
    "bedrock": bedrock_bodies(),
    "gemini": gemini_bodies(),
}


def _values(value: object, path: Path = ()) -> Iterator[tuple[Path, str]]:
    """Each text and number of a body with the keys that lead to it."""
    if isinstance(value, dict):
        for key, item in cast("dict[str, Any]", value).items():
            if key not in FORM_KEYS and not key.endswith("UseId"):
                yield from _values(item, (*path, key))
    elif isinstance(value, list):
        for item in cast("list[Any]", value):
            yield from _values(item, path)
    elif isinstance(value, str) and value.startswith("{"):
        yield from _values(json.loads(value), path)
    elif isinstance(value, str) or (isinstance(value, int | float) and not isinstance(value, bool)):
        yield path, str(value)


def _names_value(finding: Finding, path: Path, value: str) -> bool:
    """Whether the finding is about this value: by the value itself, by its option, or by its kind of content."""
    about = f"{finding.subject or ''} {finding.message}"
    if finding.kind == "reasoning":
        return not REASONING_KEYS.isdisjoint(path) or value.startswith("thought") or value == "cmVkYWN0ZWQ="
    if path[-1] == "data":
        return finding.subject in ("image", "document")
    if path[-1] == "effort":
        return finding.subject == "reasoning"
    keys = [_plain(key) for key in path[-2:]]
    return value in about or any(key in _plain(about) or _plain(finding.subject or "?") in key for key in keys)


def _plain(text: str) -> str:
    return text.lower().replace("_", "")


@pytest.mark.parametrize("target", list(WIRES))
@pytest.mark.parametrize("source", list(BODIES))
@examples(4, items=50)
@given(data=st.data())
def test_every_value_reaches_the_target_or_has_a_finding(source: str, target: str, data: st.DataObject) -> None:
    body = data.draw(BODIES[source])
    converted = segue.convert(body, source=cast("Any", source), target=cast("Any", target))
    sent = json.dumps(converted.body, ensure_ascii=False)
    for path, value in _values(body):
        # Some targets have a budget of tokens instead of an effort.
        if value in sent or (path[-1] == "effort" and "thinking" in sent):
            continue
        is_note = any(field_level(key) == "note" for key in path)
        findings = [finding for finding in converted.report.findings if is_note or finding.level != "note"]
        assert any(_names_value(finding, path, value) for finding in findings), (path, value, findings)
