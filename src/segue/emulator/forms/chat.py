"""The parts of the spec of a Chat Completions body that all vendors share; each has its own error texts.

Calls, results, their ids and the content of tool messages are left to the conformance rules.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from segue.conformance.form import (
    ANY,
    BOOLEAN,
    INTEGER,
    NUMBER,
    TEXT,
    Form,
    chosen,
    either,
    entries,
    mapped,
    maybe,
    members,
    sized,
)
from segue.conformance.values import is_object
from segue.emulator.json import object_or_none, objects

__all__ = ["OBJECT", "chosen_tool", "declared", "messages", "named", "settings", "tools"]

OBJECT = members()
_TEMPERATURE = sized("number", 0, 2)
_PENALTY = sized("number", -2, 2)


def settings() -> dict[str, Form]:
    """Returns the specs of the options. Null means omitted."""
    return {
        name: maybe(form)
        for name, form in {
            "model": TEXT,
            "frequency_penalty": _PENALTY,
            "logit_bias": mapped(NUMBER),
            "logprobs": BOOLEAN,
            "max_completion_tokens": sized("integer", 1),
            "max_tokens": sized("integer", 1),
            "metadata": OBJECT,
            "n": sized("integer", 1, 128),
            "parallel_tool_calls": BOOLEAN,
            "presence_penalty": _PENALTY,
            "response_format": OBJECT,
            "seed": INTEGER,
            "stop": either(TEXT, entries(TEXT)),
            "stream": BOOLEAN,
            "stream_options": OBJECT,
            "temperature": _TEMPERATURE,
            "top_logprobs": sized("integer", 0, 20),
            "top_p": sized("number", 0, 1),
            "user": TEXT,
        }.items()
    }


def messages(roles: Mapping[str, Mapping[str, Form] | None]) -> Form:
    """Returns the spec of the messages from the content parts of each role; `None` leaves them open."""
    return entries(
        chosen(
            "role",
            {
                role: members(
                    content=maybe(either(TEXT, entries(OBJECT if parts is None else chosen("type", parts)))),
                )
                for role, parts in roles.items()
            },
        )
    )


def tools(**more: Form) -> Form:
    """Returns the spec of function tools and other tool types."""
    function = members({"name": TEXT}, description=maybe(TEXT), parameters=ANY, strict=maybe(BOOLEAN))
    return maybe(entries(chosen("type", {"function": members({"function": function}), **more})))


def declared(body: Mapping[str, Any]) -> set[str]:
    """Returns the names of the declared tools."""
    inner = [object_or_none(tool.get(str(tool.get("type")))) or {} for tool in objects(body.get("tools"))]
    return {str(one.get("name")) for one in inner}


def named(choice: object) -> str | None:
    """Returns the tool name in a tool choice."""
    if not is_object(choice):
        return None
    inner = choice.get(str(choice.get("type")))
    name = inner.get("name") if is_object(inner) else None
    return name if isinstance(name, str) else None


def chosen_tool(body: Mapping[str, Any]) -> str | None:
    """Returns the name in tool_choice if no such tool is declared."""
    name = named(body.get("tool_choice"))
    return name if name is not None and name not in declared(body) else None
