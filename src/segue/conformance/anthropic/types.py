"""The types of a Messages body: its members, its tools, and the sources of media blocks.

Keys and content of blocks, calls and results have rules of their own. Bounds and tags that only the emulated provider
checks are part of the specs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from segue.conformance.anthropic.request import AnthropicRequest, nested_entries
from segue.conformance.body_types import PYDANTIC, find_range_problems, find_type_problems
from segue.conformance.chat_types import OBJECT
from segue.conformance.rule import Problem, RuleTable
from segue.conformance.values import is_object, text_or_empty
from segue.specs.types import (
    ANY,
    BOOLEAN,
    INTEGER,
    STRING,
    Spec,
    any_of,
    bounded,
    enum_of,
    list_of,
    nullable,
    object_of,
    tagged,
)

table: RuleTable[AnthropicRequest] = RuleTable()

_MIN_BUDGET = 1024

_SOURCES = {
    "base64": object_of({"data": STRING, "media_type": STRING}),
    "content": object_of({"content": ANY}),
    "file": object_of({"file_id": STRING}),
    "text": object_of({"data": STRING, "media_type": STRING}),
    "url": object_of({"url": STRING}),
}
_IMAGES = {name: _SOURCES[name] for name in ("base64", "file", "url")}
# Blocks that are open here are checked by the conformance rules.
BLOCKS: Mapping[str, Spec] = {
    "advisor_tool_result": OBJECT,
    "bash_code_execution_tool_result": OBJECT,
    "code_execution_tool_result": OBJECT,
    "compaction": OBJECT,
    "container_upload": OBJECT,
    "document": object_of({"source": tagged("type", _SOURCES)}),
    "fallback": OBJECT,
    "image": object_of({"source": tagged("type", _IMAGES)}),
    "mcp_tool_listing": OBJECT,
    "mcp_tool_result": OBJECT,
    "mcp_tool_use": OBJECT,
    "redacted_thinking": OBJECT,
    "search_result": OBJECT,
    "server_tool_use": OBJECT,
    "text": OBJECT,
    "text_editor_code_execution_tool_result": OBJECT,
    "thinking": OBJECT,
    "tool_addition": OBJECT,
    "tool_removal": OBJECT,
    "tool_result": OBJECT,
    "tool_search_tool_result": OBJECT,
    "tool_use": OBJECT,
    "web_fetch_tool_result": OBJECT,
    "web_search_tool_result": OBJECT,
}
TOOLS: Mapping[str, Spec] = {
    "custom": object_of(description=STRING),
    **dict.fromkeys(
        (
            *("advisor_20260301", "bash_20241022", "bash_20250124", "browser_toolset_20260801"),
            *("code_execution_20250522", "code_execution_20250825", "code_execution_20260120"),
            *("code_execution_20260521", "computer_20241022", "computer_20250124", "computer_20251124"),
            *("computer_toolset_20260801", "mcp_toolset", "memory_20250818", "text_editor_20241022"),
            *("text_editor_20250124", "text_editor_20250429", "text_editor_20250728", "tool_search_tool_bm25"),
            *("tool_search_tool_bm25_20251119", "tool_search_tool_regex", "tool_search_tool_regex_20251119"),
            *("web_fetch_20250910", "web_fetch_20260209", "web_fetch_20260309", "web_fetch_20260318"),
            *("web_search_20250305", "web_search_20260209", "web_search_20260318"),
        ),
        OBJECT,
    ),
}
_THINKING = {
    "adaptive": OBJECT,
    "between_tools": OBJECT,
    "disabled": OBJECT,
    "enabled": object_of({"budget_tokens": bounded("integer", _MIN_BUDGET)}),
}
_TOOL_CHOICE = {
    "any": object_of(disable_parallel_tool_use=BOOLEAN),
    "auto": object_of(disable_parallel_tool_use=BOOLEAN),
    "none": OBJECT,
    "tool": object_of({"name": STRING}, disable_parallel_tool_use=BOOLEAN),
}
_EDITS = {
    "clear_thinking_20251015": OBJECT,
    "clear_tool_uses_20250919": OBJECT,
    # ANT-52 checks the number of tokens.
    "compact_20260112": object_of(
        instructions=nullable(STRING),
        pause_after_compaction=BOOLEAN,
        trigger=nullable(object_of({"type": enum_of("input_tokens"), "value": INTEGER})),
    ),
}
_COMPACTION = {"summarize": object_of(instructions=nullable(bounded("string", maximum=16_384)))}
# ANT-12 checks blocks without a type.
_CONTENT = nullable(any_of(STRING, list_of(OBJECT)))
_MESSAGE = object_of({"role": STRING}, content=_CONTENT)
MEMBERS: Mapping[str, Spec] = {
    "model": STRING,
    "messages": list_of(_MESSAGE),
    # 0 fills the cache and generates no reply.
    "max_tokens": bounded("integer", 0),
    "cache_control": nullable(OBJECT),
    "compaction": nullable(tagged("type", _COMPACTION)),
    "container": nullable(any_of(STRING, OBJECT)),
    "context_management": nullable(object_of(edits=list_of(tagged("type", _EDITS)))),
    "diagnostics": nullable(OBJECT),
    "fallback_credit_token": nullable(any_of(STRING, OBJECT)),
    "fallbacks": nullable(any_of(STRING, list_of(OBJECT))),
    "inference_geo": nullable(STRING),
    "mcp_servers": list_of(OBJECT),
    "metadata": OBJECT,
    "output_config": OBJECT,
    "output_format": nullable(OBJECT),
    "service_tier": enum_of("auto", "standard_only"),
    "speed": nullable(enum_of("fast", "standard")),
    "stop_sequences": list_of(STRING),
    "stream": BOOLEAN,
    "system": ANY,
    "temperature": bounded("number", 0, 1),
    "thinking": tagged("type", _THINKING),
    "thread": nullable(OBJECT),
    "tool_choice": tagged("type", _TOOL_CHOICE),
    "tools": nullable(list_of(tagged("type", TOOLS, default="custom"))),
    "top_k": bounded("integer", 0),
    "top_p": bounded("number", 0, 1),
    "user_profile_id": STRING,
    "workspace_id": STRING,
}
SPEC = object_of(None, **MEMBERS)


@table.rule("ANT-42")
def options_in_range(request: AnthropicRequest) -> Iterator[Problem]:
    """Numbers are in their range: temperature and top_p 0 to 1."""
    for problem in find_range_problems(SPEC, request.body, parser=PYDANTIC):
        # Older models took -1 for "not set".
        unset = problem.path == "top_p" and request.body["top_p"] == -1
        yield Problem(problem.path, problem.message, "risk") if unset else problem


@table.rule("ANT-42", is_general=True)
def types_valid(request: AnthropicRequest) -> Iterator[Problem]:
    """Members and options have the types of the API; media blocks have a source with its data."""
    yield from find_type_problems(SPEC, request.body, parser=PYDANTIC)
    for message in request.messages:
        for block in message.blocks:
            yield from find_type_problems(BLOCKS.get(block.type, OBJECT), block.data, block.path, parser=PYDANTIC)
    for block in request.blocks_of("tool_result"):
        for path, entry in nested_entries(block):
            spec = BLOCKS.get(text_or_empty(entry.get("type")) if is_object(entry) else "", OBJECT)
            yield from find_type_problems(spec, entry, path, parser=PYDANTIC)
