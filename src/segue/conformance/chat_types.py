"""The types of a Chat Completions body: what all vendors share, and the specs of OpenAI's own API.

Calls, results, their ids and the content of tool messages have rules of their own. Bounds and tags that only the
emulated providers check are part of the specs.
"""

from __future__ import annotations

from collections.abc import Mapping

from segue.specs.types import (
    ANY,
    BOOLEAN,
    INTEGER,
    NUMBER,
    STRING,
    Spec,
    any_of,
    bounded,
    enum_of,
    list_of,
    map_of,
    nullable,
    object_of,
    tagged,
)

OBJECT = object_of()
_TEMPERATURE = bounded("number", 0, 2)
_PENALTY = bounded("number", -2, 2)


def option_specs() -> dict[str, Spec]:
    """Return the specs of the options. Null means omitted."""
    return {
        name: nullable(spec)
        for name, spec in {
            "model": STRING,
            "frequency_penalty": _PENALTY,
            "logit_bias": map_of(NUMBER),
            "logprobs": BOOLEAN,
            "max_completion_tokens": bounded("integer", 1),
            "max_tokens": bounded("integer", 1),
            "metadata": OBJECT,
            "n": bounded("integer", 1, 128),
            "parallel_tool_calls": BOOLEAN,
            "presence_penalty": _PENALTY,
            "response_format": OBJECT,
            "seed": INTEGER,
            "stop": any_of(STRING, list_of(STRING)),
            "stream": BOOLEAN,
            "stream_options": OBJECT,
            "temperature": _TEMPERATURE,
            "top_logprobs": bounded("integer", 0, 20),
            "top_p": bounded("number", 0, 1),
            "user": STRING,
        }.items()
    }


def messages_spec(roles: Mapping[str, Mapping[str, Spec] | None]) -> Spec:
    """Return the spec of the messages from the content parts of each role; `None` leaves them open."""
    return list_of(
        tagged(
            "role",
            {
                role: object_of(
                    content=nullable(any_of(STRING, list_of(OBJECT if parts is None else tagged("type", parts))))
                )
                for role, parts in roles.items()
            },
        )
    )


def tools_spec(**more: Spec) -> Spec:
    """Return the spec of function tools and other tool types."""
    function = object_of(
        {"name": STRING}, description=nullable(STRING), parameters=nullable(OBJECT), strict=nullable(BOOLEAN)
    )
    return nullable(list_of(tagged("type", {"function": object_of({"function": function}), **more})))


def body_spec(roles: Mapping[str, Mapping[str, Spec] | None], tools: Spec, tool_choice: Spec, **more: Spec) -> Spec:
    """Return the spec of a body from the parts of each role, the tools and the tool choice."""
    members = {**option_specs(), "tools": tools, "tool_choice": nullable(tool_choice), **more}
    return object_of({"messages": messages_spec(roles)}, **members)


TOOL_CHOICE_WORDS = enum_of("none", "auto", "required")
TEXT = object_of({"text": STRING})
# All content parts of OpenAI, in the order of the service's error text.
PARTS: Mapping[str, Spec] = {
    "text": TEXT,
    "image_url": object_of({"image_url": object_of({"url": STRING}, detail=nullable(STRING))}),
    "input_audio": object_of({"input_audio": object_of({"data": STRING, "format": STRING})}),
    "refusal": object_of({"refusal": STRING}),
    "audio": OBJECT,
    "file": object_of({"file": OBJECT}),
}
_PARTS_BY_ROLE = {
    "system": ("text",),
    "assistant": ("text", "refusal", "audio"),
    "user": ("text", "image_url", "input_audio", "file"),
    "function": None,
    "tool": None,
    "developer": ("text",),
}
ROLES = {
    role: None if names is None else {name: PARTS[name] for name in names} for role, names in _PARTS_BY_ROLE.items()
}
_NAMED = object_of({"name": STRING})
_TOOL_CHOICE = any_of(
    TOOL_CHOICE_WORDS,
    tagged(
        "type",
        {
            "allowed_tools": object_of({"allowed_tools": OBJECT}),
            "function": object_of({"function": _NAMED}),
            "custom": object_of({"custom": _NAMED}),
        },
    ),
)
SPEC = body_spec(
    ROLES,
    tools_spec(custom=object_of({"custom": _NAMED})),
    _TOOL_CHOICE,
    audio=nullable(OBJECT),
    function_call=ANY,
    functions=nullable(list_of(_NAMED)),
    modalities=nullable(list_of(enum_of("text", "audio"))),
    moderation=nullable(OBJECT),
    prediction=nullable(OBJECT),
    prompt_cache_key=nullable(STRING),
    prompt_cache_options=nullable(OBJECT),
    prompt_cache_retention=nullable(STRING),
    reasoning_effort=nullable(STRING),
    safety_identifier=nullable(STRING),
    service_tier=nullable(STRING),
    store=nullable(BOOLEAN),
    verbosity=nullable(STRING),
    web_search_options=nullable(OBJECT),
)
