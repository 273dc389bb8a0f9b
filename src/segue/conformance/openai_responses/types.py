"""The types of a Responses body: its options and tools. Items and their parts have rules of their own.

Bounds and tags that only the emulated provider checks are part of the specs.
"""

from __future__ import annotations

from collections.abc import Iterator

from segue.conformance.body_types import find_range_problems, find_type_problems
from segue.conformance.chat_types import OBJECT, TOOL_CHOICE_WORDS
from segue.conformance.lookup import list_objects
from segue.conformance.openai_responses.request import ResponsesRequest
from segue.conformance.openai_responses.tools import TOOL_TYPES
from segue.conformance.rule import Problem, RuleTable
from segue.specs.types import ANY, BOOLEAN, STRING, any_of, bounded, enum_of, list_of, nullable, object_of, tagged

table: RuleTable[ResponsesRequest] = RuleTable()

MIN_THRESHOLD = 1000
_FUNCTION = object_of(
    {"name": STRING}, parameters=nullable(OBJECT), strict=nullable(BOOLEAN), description=nullable(STRING)
)
_TOOLS = {**dict.fromkeys(sorted(TOOL_TYPES), OBJECT), "function": _FUNCTION, "custom": object_of({"name": STRING})}
_CONTEXT_MANAGEMENT = object_of(
    {"type": enum_of("compaction")}, compact_threshold=nullable(bounded("integer", MIN_THRESHOLD))
)
MEMBERS = {
    name: nullable(spec)
    for name, spec in {
        "access_programs": OBJECT,
        "background": BOOLEAN,
        # Not in the SDK, but Codex sends it.
        "client_metadata": OBJECT,
        "context_management": list_of(_CONTEXT_MANAGEMENT),
        "conversation": any_of(STRING, OBJECT),
        "image": OBJECT,
        "include": list_of(STRING),
        "input": ANY,
        "instructions": ANY,
        "max_output_tokens": bounded("integer", 1),
        "max_tool_calls": bounded("integer", 1),
        "metadata": OBJECT,
        "model": STRING,
        "moderation": OBJECT,
        "parallel_tool_calls": BOOLEAN,
        "previous_response_id": STRING,
        "prompt": OBJECT,
        "prompt_cache_key": STRING,
        "prompt_cache_options": OBJECT,
        "prompt_cache_retention": STRING,
        "reasoning": object_of(effort=nullable(STRING), summary=nullable(STRING)),
        "safety_identifier": STRING,
        "service_tier": STRING,
        "store": BOOLEAN,
        "stream": BOOLEAN,
        "stream_options": OBJECT,
        "temperature": bounded("number", 0, 2),
        "text": OBJECT,
        "tool_choice": any_of(TOOL_CHOICE_WORDS, object_of({"type": STRING})),
        "tools": list_of(tagged("type", _TOOLS)),
        "top_logprobs": bounded("integer", 0, 20),
        "top_p": bounded("number", 0, 1),
        "truncation": enum_of("auto", "disabled"),
        "user": STRING,
    }.items()
}
SPEC = object_of(None, **MEMBERS)


@table.rule("OAI-RESP-26")
def options_in_range(request: ResponsesRequest) -> Iterator[Problem]:
    """Numbers are in the range of the published schema: temperature 0 to 2, top_p 0 to 1, top_logprobs 0 to 20.

    The compact_threshold of context_management is 1000 or more.
    """
    yield from find_range_problems(SPEC, request.body)
    for path, entry in list_objects(request.body.get("context_management"), "context_management"):
        yield from find_range_problems(_CONTEXT_MANAGEMENT, entry, path)


@table.rule("OAI-RESP-26", is_general=True)
def types_valid(request: ResponsesRequest) -> Iterator[Problem]:
    """Options and tools have the types of the API."""
    return find_type_problems(SPEC, request.body)
