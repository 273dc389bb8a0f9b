"""The types of members and options (MIS-17): those of the vendor's SDK."""

from __future__ import annotations

from collections.abc import Iterator

from segue.conformance.body_types import PYDANTIC, find_type_problems
from segue.conformance.chat_request import ChatRequest
from segue.conformance.chat_types import OBJECT, TEXT, body_spec, tools_spec
from segue.conformance.mistral.content import CHUNKS
from segue.conformance.rule import Problem, RuleTable
from segue.specs.types import BOOLEAN, INTEGER, STRING, any_of, nullable

table: RuleTable[ChatRequest] = RuleTable()

_PARTS = {**dict.fromkeys(sorted(CHUNKS), OBJECT), "text": TEXT}
_ROLES = ("system", "user", "assistant", "tool")
SPEC = body_spec(
    dict.fromkeys(_ROLES, _PARTS),
    tools_spec(),
    any_of(STRING, OBJECT),
    prompt_mode=nullable(STRING),
    random_seed=nullable(INTEGER),
    reasoning_effort=nullable(STRING),
    safe_prompt=nullable(BOOLEAN),
)


# MIS-17
@table.rule("MIS-17", is_general=True)
def types_valid(request: ChatRequest) -> Iterator[Problem]:
    """Members and options have the types of the API, and the role of a message is known."""
    return find_type_problems(SPEC, request.body, parser=PYDANTIC)
