"""The spec of a Foundry request body (AZF-03); other keys are not checked."""

from __future__ import annotations

from segue.conformance.azure_foundry.items import BREAKPOINT, CONTENT, ITEMS
from segue.conformance.azure_foundry.tools import CHOICE, TOOL
from segue.conformance.form import (
    ANY,
    BOOLEAN,
    INTEGER,
    NUMBER,
    TEXT,
    chosen,
    either,
    entries,
    mapped,
    maybe,
    members,
    sized,
    text,
)

__all__ = ["BODY"]

_NAME = maybe(TEXT)
_FLAG = maybe(BOOLEAN)
_COUNT = maybe(INTEGER)
_AGENT = members({"type": text("agent_reference"), "name": TEXT}, version=TEXT)
_LENGTHS = maybe(text("auto", "concise", "detailed"))
_MODERATED = maybe(members({"mode": text("score", "block")}))
_FORMAT = chosen(
    "type",
    {
        "text": members(),
        "json_object": members(),
        "json_schema": members({"name": TEXT, "schema": mapped(ANY)}, description=TEXT, strict=_FLAG),
    },
)
_VARIABLE = either(
    TEXT,
    members({"type": text("input_text"), "text": TEXT}, prompt_cache_breakpoint=BREAKPOINT),
    members(
        {"type": text("input_image"), "detail": CONTENT["input_image"].members["detail"]},
        file_id=_NAME,
        image_url=_NAME,
        prompt_cache_breakpoint=BREAKPOINT,
    ),
    members({"type": text("input_file")}, **CONTENT["input_file"].members),
)
_INCLUDED = text(
    *("file_search_call.results", "web_search_call.results", "web_search_call.action.sources"),
    *("message.input_image.image_url", "message.output_text.logprobs", "reasoning.encrypted_content"),
    *("computer_call_output.output.image_url", "code_interpreter_call.outputs", "memory_search_call.results"),
)

BODY = members(
    # AZF-02 covers it; its spec is the same.
    agent=_AGENT,
    agent_reference=_AGENT,
    agent_session_id=TEXT,
    background=_FLAG,
    context_management=maybe(entries(members({"type": TEXT}, compact_threshold=_COUNT))),
    conversation=maybe(either(TEXT, members({"id": TEXT}))),
    include=maybe(entries(_INCLUDED)),
    input=either(TEXT, entries(chosen("type", ITEMS, default="message"))),
    instructions=_NAME,
    max_output_tokens=_COUNT,
    max_tool_calls=_COUNT,
    metadata=maybe(mapped(sized("string", most=512), sized("string", most=64), most=16)),
    model=TEXT,
    moderation=maybe(members({"model": TEXT}, policy=maybe(members(input=_MODERATED, output=_MODERATED)))),
    parallel_tool_calls=_FLAG,
    previous_response_id=_NAME,
    prompt=members({"id": TEXT}, variables=maybe(mapped(_VARIABLE)), version=_NAME),
    prompt_cache_key=_NAME,
    prompt_cache_options=members(mode=text("implicit", "explicit"), ttl=text("30m")),
    prompt_cache_retention=maybe(text("in_memory", "24h")),
    reasoning=maybe(
        members(
            context=maybe(text("auto", "current_turn", "all_turns")),
            effort=maybe(text("none", "minimal", "low", "medium", "high", "xhigh", "max")),
            generate_summary=_LENGTHS,
            mode=text("standard", "pro"),
            summary=_LENGTHS,
        )
    ),
    safety_identifier=_NAME,
    service_tier=maybe(text("auto", "default", "flex", "scale", "priority", "fast", "ultrafast")),
    store=_FLAG,
    stream=_FLAG,
    stream_options=maybe(members(include_obfuscation=BOOLEAN)),
    structured_inputs=mapped(ANY),
    temperature=maybe(NUMBER),
    text=members(format=_FORMAT, verbosity=maybe(text("low", "medium", "high"))),
    tool_choice=CHOICE,
    tools=entries(TOOL),
    top_logprobs=_COUNT,
    top_p=maybe(NUMBER),
    truncation=maybe(text("auto", "disabled")),
    user=TEXT,
)
