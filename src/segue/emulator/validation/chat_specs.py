"""The parts of the spec of a Chat Completions body that all vendors share; each has its own error texts.

Calls, results, their ids and the content of tool messages are left to the conformance rules.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from segue.conformance.values import is_object
from segue.emulator.json_values import object_or_none, objects_in
from segue.specs.types import (
    ANY,
    BOOLEAN,
    INTEGER,
    NUMBER,
    STRING,
    Spec,
    any_of,
    bounded,
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
                    content=nullable(any_of(STRING, list_of(OBJECT if parts is None else tagged("type", parts)))),
                )
                for role, parts in roles.items()
            },
        )
    )


def tools_spec(**more: Spec) -> Spec:
    """Return the spec of function tools and other tool types."""
    function = object_of({"name": STRING}, description=nullable(STRING), parameters=ANY, strict=nullable(BOOLEAN))
    return nullable(list_of(tagged("type", {"function": object_of({"function": function}), **more})))


def declared_names(body: Mapping[str, Any]) -> set[str]:
    """Return the names of the declared tools."""
    inner = [object_or_none(tool.get(str(tool.get("type")))) or {} for tool in objects_in(body.get("tools"))]
    return {str(definition.get("name")) for definition in inner}


def chosen_name(choice: object) -> str | None:
    """Return the tool name in a tool choice."""
    if not is_object(choice):
        return None
    inner = choice.get(str(choice.get("type")))
    name = inner.get("name") if is_object(inner) else None
    return name if isinstance(name, str) else None


def undeclared_choice(body: Mapping[str, Any]) -> str | None:
    """Return the name in tool_choice if no such tool is declared."""
    name = chosen_name(body.get("tool_choice"))
    return name if name is not None and name not in declared_names(body) else None
