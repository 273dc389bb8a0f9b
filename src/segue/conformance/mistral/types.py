"""The types of members and options (MIS-17): those of the vendor's SDK."""

from __future__ import annotations

from collections.abc import Iterator

from segue.conformance.body_types import PYDANTIC, find_range_problems, find_type_problems
from segue.conformance.chat_request import ChatRequest
from segue.conformance.chat_types import OBJECT, TEXT, body_spec, tools_spec
from segue.conformance.mistral.content import CHUNKS
from segue.conformance.rule import Problem, RuleTable
from segue.specs.types import BOOLEAN, INTEGER, STRING, any_of, bounded, nullable, object_of

table: RuleTable[ChatRequest] = RuleTable()

_PARTS = {**dict.fromkeys(sorted(CHUNKS), OBJECT), "text": TEXT}
_ROLES = ("system", "user", "assistant", "tool")
_RANGES = {"temperature": nullable(bounded("number", 0, 1.5)), "top_p": nullable(bounded("number", 0, 1))}
SPEC = body_spec(
    dict.fromkeys(_ROLES, _PARTS),
    tools_spec(),
    any_of(STRING, OBJECT),
    prompt_mode=nullable(STRING),
    random_seed=nullable(INTEGER),
    reasoning_effort=nullable(STRING),
    safe_prompt=nullable(BOOLEAN),
    **_RANGES,
)


@table.rule("MIS-17")
def options_in_range(request: ChatRequest) -> Iterator[Problem]:
    """temperature is from 0 to 1.5, top_p from 0 to 1."""
    return find_range_problems(object_of(**_RANGES), request.body, parser=PYDANTIC)


@table.rule("MIS-17", is_general=True)
def types_valid(request: ChatRequest) -> Iterator[Problem]:
    """Members and options have the types of the API, and the role of a message is known."""
    return find_type_problems(SPEC, request.body, parser=PYDANTIC)
