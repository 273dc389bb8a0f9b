"""The types of the members of generationConfig: GEM-30. Members that are not listed here are not checked."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from segue.conformance.body_types import PYDANTIC, find_range_problems
from segue.conformance.gemini.fields import check_fields, number_type, to_camel
from segue.conformance.gemini.request import GeminiRequest
from segue.conformance.rule import Problem, RuleTable
from segue.specs.types import BOOLEAN, INTEGER, NUMBER, STRING, Spec, bounded, list_of, object_of

table: RuleTable[GeminiRequest] = RuleTable()

MEMBERS: Mapping[str, Spec] = {
    "candidate_count": INTEGER,
    "enable_affective_dialog": BOOLEAN,
    "frequency_penalty": NUMBER,
    "logprobs": INTEGER,
    "max_output_tokens": INTEGER,
    "presence_penalty": NUMBER,
    "response_logprobs": BOOLEAN,
    "response_mime_type": STRING,
    "response_schema": object_of(),
    "seed": INTEGER,
    "stop_sequences": list_of(STRING),
    "temperature": bounded("number", 0, 2),
    "thinking_config": object_of(),
    "top_k": NUMBER,
    "top_p": bounded("number", 0, 1),
}
THINKING_MEMBERS: Mapping[str, Spec] = {
    "include_thoughts": BOOLEAN,
    "thinking_budget": INTEGER,
    "thinking_level": STRING,
}


@table.rule("GEM-30")
def generation_config_valid(request: GeminiRequest) -> Iterator[Problem]:
    """The members of generationConfig have the types of the API; a number may be a string with one.

    temperature is from 0 to 2, topP from 0 to 1.
    """
    config = request.node.child("generation_config")
    thinking = config.child(next((key for key in config.data if key in _names(("thinking_config",))), ""))
    for node, members in ((config, MEMBERS), (thinking, THINKING_MEMBERS)):
        names = _names(members)
        for key, value in node.data.items():
            if key in names:
                member = members[names[key]]
                yield from check_fields(value, member, node.path_of(key))
                yield from find_range_problems(object_of(**{key: member}), {key: value}, node.path, parser=PYDANTIC)


def _names(members: Iterable[str]) -> dict[str, str]:
    """Map each accepted key to the name of the member: camelCase and snake_case."""
    return {key: name for name in members for key in (name, to_camel(name))}


def find_type_name(path: str) -> str:
    """Return the parser's name of the type at a path in snake_case."""
    name = path.rpartition(".")[2].partition("[")[0]
    spec = {**MEMBERS, **THINKING_MEMBERS}.get(name, STRING)
    if spec.kind in ("integer", "number"):
        return number_type(spec)
    return {"boolean": "TYPE_BOOL", "object": "a message"}.get(spec.kind, "TYPE_STRING")
