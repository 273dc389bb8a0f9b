"""The spec of a Foundry request body (AZF-03); other keys are not checked."""

from __future__ import annotations

from segue.conformance.azure_foundry.items import BREAKPOINT, CONTENT, ITEMS
from segue.conformance.azure_foundry.tools import CHOICE, TOOL
from segue.specs.types import (
    ANY,
    BOOLEAN,
    INTEGER,
    NUMBER,
    STRING,
    any_of,
    bounded,
    enum_of,
    list_of,
    map_of,
    nullable,
    object_of,
    tagged,
)

__all__ = ["BODY"]

_NULLABLE_STRING = nullable(STRING)
_NULLABLE_BOOLEAN = nullable(BOOLEAN)
_NULLABLE_INTEGER = nullable(INTEGER)
_AGENT = object_of({"type": enum_of("agent_reference"), "name": STRING}, version=STRING)
_SUMMARY_LEVEL = nullable(enum_of("auto", "concise", "detailed"))
_MODERATION_MODE = nullable(object_of({"mode": enum_of("score", "block")}))
_FORMAT = tagged(
    "type",
    {
        "text": object_of(),
        "json_object": object_of(),
        "json_schema": object_of({"name": STRING, "schema": map_of(ANY)}, description=STRING, strict=_NULLABLE_BOOLEAN),
    },
)
_VARIABLE = any_of(
    STRING,
    object_of({"type": enum_of("input_text"), "text": STRING}, prompt_cache_breakpoint=BREAKPOINT),
    object_of(
        {"type": enum_of("input_image"), "detail": CONTENT["input_image"].members["detail"]},
        file_id=_NULLABLE_STRING,
        image_url=_NULLABLE_STRING,
        prompt_cache_breakpoint=BREAKPOINT,
    ),
    object_of({"type": enum_of("input_file")}, **CONTENT["input_file"].members),
)
_INCLUDED = enum_of(
    *("file_search_call.results", "web_search_call.results", "web_search_call.action.sources"),
    *("message.input_image.image_url", "message.output_text.logprobs", "reasoning.encrypted_content"),
    *("computer_call_output.output.image_url", "code_interpreter_call.outputs", "memory_search_call.results"),
)

BODY = object_of(
    # AZF-02 covers it; its spec is the same.
    agent=_AGENT,
    agent_reference=_AGENT,
    agent_session_id=STRING,
    background=_NULLABLE_BOOLEAN,
    context_management=nullable(list_of(object_of({"type": STRING}, compact_threshold=_NULLABLE_INTEGER))),
    conversation=nullable(any_of(STRING, object_of({"id": STRING}))),
    include=nullable(list_of(_INCLUDED)),
    input=any_of(STRING, list_of(tagged("type", ITEMS, default="message"))),
    instructions=_NULLABLE_STRING,
    max_output_tokens=_NULLABLE_INTEGER,
    max_tool_calls=_NULLABLE_INTEGER,
    metadata=nullable(map_of(bounded("string", maximum=512), bounded("string", maximum=64), maximum=16)),
    model=STRING,
    moderation=nullable(
        object_of({"model": STRING}, policy=nullable(object_of(input=_MODERATION_MODE, output=_MODERATION_MODE)))
    ),
    parallel_tool_calls=_NULLABLE_BOOLEAN,
    previous_response_id=_NULLABLE_STRING,
    prompt=object_of({"id": STRING}, variables=nullable(map_of(_VARIABLE)), version=_NULLABLE_STRING),
    prompt_cache_key=_NULLABLE_STRING,
    prompt_cache_options=object_of(mode=enum_of("implicit", "explicit"), ttl=enum_of("30m")),
    prompt_cache_retention=nullable(enum_of("in_memory", "24h")),
    reasoning=nullable(
        object_of(
            context=nullable(enum_of("auto", "current_turn", "all_turns")),
            effort=nullable(enum_of("none", "minimal", "low", "medium", "high", "xhigh", "max")),
            generate_summary=_SUMMARY_LEVEL,
            mode=enum_of("standard", "pro"),
            summary=_SUMMARY_LEVEL,
        )
    ),
    safety_identifier=_NULLABLE_STRING,
    service_tier=nullable(enum_of("auto", "default", "flex", "scale", "priority", "fast", "ultrafast")),
    store=_NULLABLE_BOOLEAN,
    stream=_NULLABLE_BOOLEAN,
    stream_options=nullable(object_of(include_obfuscation=BOOLEAN)),
    structured_inputs=map_of(ANY),
    temperature=nullable(NUMBER),
    text=object_of(format=_FORMAT, verbosity=nullable(enum_of("low", "medium", "high"))),
    tool_choice=CHOICE,
    tools=list_of(TOOL),
    top_logprobs=_NULLABLE_INTEGER,
    top_p=nullable(NUMBER),
    truncation=nullable(enum_of("auto", "disabled")),
    user=STRING,
)
