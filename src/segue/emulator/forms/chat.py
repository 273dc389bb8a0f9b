"""The form of a Chat Completions body, as far as all who take it agree: what they refuse is told by each itself.

History is not looked at: calls, results and their ids are the judge's. So is what a tool message holds.
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
    """What all members besides the messages and the tools may be. Null stands for what is left out."""
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
    """A list of messages: the parts that each role may say, by their type; `None` where that is left open."""
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
    """Functions, and what else there is."""
    function = members({"name": TEXT}, description=maybe(TEXT), parameters=ANY, strict=maybe(BOOLEAN))
    return maybe(entries(chosen("type", {"function": members({"function": function}), **more})))


def declared(body: Mapping[str, Any]) -> set[str]:
    """The names of the tools of a body."""
    inner = [object_or_none(tool.get(str(tool.get("type")))) or {} for tool in objects(body.get("tools"))]
    return {str(one.get("name")) for one in inner}


def named(choice: object) -> str | None:
    """The tool that a choice names."""
    if not is_object(choice):
        return None
    inner = choice.get(str(choice.get("type")))
    name = inner.get("name") if is_object(inner) else None
    return name if isinstance(name, str) else None


def chosen_tool(body: Mapping[str, Any]) -> str | None:
    """The tool that is to be called and that nobody declared."""
    name = named(body.get("tool_choice"))
    return name if name is not None and name not in declared(body) else None
