"""The members of each item type: OAI-RESP-14, and members under 03, 16, 17, 20 and 21.

The types are those of `segue.specs`. A missing or mistyped member is rejected. A member that clients are known to omit
is only a risk, and so are an unknown key and a status that the published types do not have.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cache

import msgspec

from segue.conformance.openai_responses.request import APPROVAL, HOSTED, PAIRS, Item, ResponsesRequest
from segue.conformance.rule import Problem, RuleTable, Severity
from segue.conformance.values import has_text, is_list, is_object, quote, type_name
from segue.specs.types import ANY, Spec, find_mismatches, load_types, read_published

table: RuleTable[ResponsesRequest] = RuleTable()

_CALL, _RESULT, _HOSTED, _APPROVAL = "OAI-RESP-17", "OAI-RESP-16", "OAI-RESP-20", "OAI-RESP-21"
_OTHER_RULE, _REASONING = "OAI-RESP-14", "OAI-RESP-03"
_RULES: Mapping[str, str] = {
    "reasoning": _REASONING,
    **dict.fromkeys(PAIRS, _CALL),
    **dict.fromkeys(PAIRS.values(), _RESULT),
    **dict.fromkeys(HOSTED, _HOSTED),
    **dict.fromkeys(APPROVAL, _APPROVAL),
}
# Required members with rules of their own.
_CHECKED_ELSEWHERE = frozenset(
    {"type", "call_id", "message.role", "message.content", "reasoning.id", "local_shell_call_output.id"}
    | {f"{kind}_output.output" for kind in ("function_call", "custom_tool_call", "computer_call", "shell_call")}
)
# Reported before the other members of an item.
_FIRST = ("id", "status", "name", "author", "recipient")
_ROLES = ("assistant", "system", "developer", "user")
_CHAT_KEYS = frozenset({"tool_calls", "tool_call_id", "function_call"})


class ItemSpec(msgspec.Struct, frozen=True):
    """An item type: its rule, required members, expected members (a risk if missing), all keys, and its statuses."""

    rule: str
    required: Mapping[str, Spec]
    expected: tuple[str, ...]
    keys: frozenset[str]
    statuses: tuple[str, ...]


@cache
def item_specs() -> Mapping[str, ItemSpec]:
    """Return the specs of all item types. Members that only the published types require are expected."""
    published = read_published("openai-responses").types
    types = load_types("openai-responses")
    return {name: _item_spec(name, published[name].required, spec) for name, spec in types.items()}


def _item_spec(name: str, published: Iterable[str], spec: Spec) -> ItemSpec:
    checked = [key for key in published if _CHECKED_ELSEWHERE.isdisjoint((key, f"{name}.{key}"))]
    checked.sort(key=lambda key: key not in _FIRST)
    return ItemSpec(
        rule=_RULES.get(name, _OTHER_RULE),
        required={key: spec.members[key] for key in checked if key in spec.required},
        expected=tuple(key for key in checked if key not in spec.required),
        keys=frozenset(spec.members),
        statuses=spec.members.get("status", ANY).values,
    )


def _check_items(request: ResponsesRequest, rule: str) -> Iterator[Problem]:
    for item in request.items:
        spec = item_specs().get(item.type)
        if spec is not None and spec.rule == rule:
            yield from _check_members(item, spec, is_stored=request.is_stored)
            yield from _check_keys(item, spec)


def _check_members(item: Item, spec: ItemSpec, *, is_stored: bool) -> Iterator[Problem]:
    # The provider has a stored image under the id of its call.
    known_by_id = item.type == "image_generation_call" and has_text(item.id)
    for key, member in spec.required.items():
        if key not in item.data and known_by_id:
            if not is_stored:
                yield Problem(f"{item.path}.{key}", f"this {item.type} has no {key}, and nothing is stored", "risk")
        elif key not in item.data:
            yield Problem(f"{item.path}.{key}", f"Missing required parameter: '{item.path}.{key}'.")
        elif any(mismatch.kind == "type" for mismatch in find_mismatches(member, item.data[key])):
            seen = f"{key} of this {item.type} is {type_name(item.data[key])}"
            article, null = "an" if member.kind == "object" else "a", " or null" if member.nullable else ""
            yield Problem(f"{item.path}.{key}", f"{seen}; {article} {member.kind}{null} is expected")
    for key in spec.expected:
        if item.data.get(key) is None and not (known_by_id and is_stored):
            yield Problem(f"{item.path}.{key}", f"this {item.type} has no {key}; its type requires one", "risk")
    status = item.data.get("status")
    if spec.statuses and status is not None and status not in spec.statuses:
        seen = f"Invalid value: {quote(status)}. Supported values are: {', '.join(spec.statuses)}."
        # A status that is not a string is already reported if the item requires it.
        if isinstance(status, str) or "status" not in spec.required:
            yield Problem(f"{item.path}.status", seen, "risk" if isinstance(status, str) else None)


def _check_keys(item: Item, spec: ItemSpec) -> Iterator[Problem]:
    if item.data.keys() <= spec.keys:
        return
    for key in item.data:
        if key not in spec.keys:
            severity: Severity = "reject" if key in _CHAT_KEYS and item.type == "message" else "risk"
            yield Problem(f"{item.path}.{key}", f"Unknown parameter: {quote(key)} in a {item.type} item.", severity)


@table.rule("OAI-RESP-14")
def items_known(request: ResponsesRequest) -> Iterator[Problem]:
    """Every entry of input is an object of a known type."""
    entries = request.body.get("input")
    for item, entry in zip(request.items, entries if is_list(entries) else (), strict=False):
        if not is_object(entry):
            yield Problem(item.path, f"{type_name(entry)} in the list of items; an object is expected")
        elif entry.get("type") is None and not item.type:
            yield Problem(f"{item.path}.type", "the item has neither a type nor a role")
        elif item.type not in item_specs():
            # A type that is newer than these types may be valid.
            seen = f"Invalid value: {quote(entry.get('type'))} is not a known item type."
            yield Problem(f"{item.path}.type", seen, "risk" if has_text(entry.get("type")) else "reject")


@table.rule("OAI-RESP-14")
def roles_known(request: ResponsesRequest) -> Iterator[Problem]:
    """Messages have the role assistant, system, developer or user; there is no role tool."""
    for item in request.items_of("message", "additional_tools"):
        role = item.data.get("role")
        if item.type == "additional_tools":
            if isinstance(role, str) and role != "developer":
                yield Problem(f"{item.path}.role", f"Invalid value: {quote(role)}. Only 'developer' is supported.")
        elif role not in _ROLES:
            supported = "'assistant', 'system', 'developer', and 'user'"
            yield Problem(f"{item.path}.role", f"Invalid value: {quote(role)}. Supported values are: {supported}.")


@table.rule("OAI-RESP-14")
def other_items_valid(request: ResponsesRequest) -> Iterator[Problem]:
    """Messages have no keys of Chat Completions; settings and references have their required members."""
    yield from _check_items(request, _OTHER_RULE)


@table.rule("OAI-RESP-27")
def compaction_last(request: ResponsesRequest) -> Iterator[Problem]:
    """A compaction_trigger is the last item, so there is only one."""
    for item in request.items_of("compaction_trigger"):
        if item.index != len(request.items) - 1:
            yield Problem(item.path, "The 'compaction_trigger' item must be the final input item.")


@table.rule("OAI-RESP-28", severity="risk")
def compaction_has_id(request: ResponsesRequest) -> Iterator[Problem]:
    """A compaction item has the id that it was returned with; its encrypted content is bound to it."""
    for item in request.items_of("compaction"):
        if item.id is None:
            yield Problem(f"{item.path}.id", "this compaction has no id; the backend may verify it with the content")


@table.rule("OAI-RESP-03")
def reasoning_valid(request: ResponsesRequest) -> Iterator[Problem]:
    """A reasoning item has a summary, which may be empty."""
    yield from _check_items(request, _REASONING)


@table.rule("OAI-RESP-16")
def output_items_valid(request: ResponsesRequest) -> Iterator[Problem]:
    """Outputs have the members and the status of their type."""
    yield from _check_items(request, _RESULT)


@table.rule("OAI-RESP-17")
def call_items_valid(request: ResponsesRequest) -> Iterator[Problem]:
    """The arguments of a function_call are a string, the input of a custom_tool_call too; all have their members."""
    yield from _check_items(request, _CALL)


@table.rule("OAI-RESP-20")
def hosted_items_valid(request: ResponsesRequest) -> Iterator[Problem]:
    """Items of hosted tools have an id, their own output inside, and no call_id."""
    yield from _check_items(request, _HOSTED)


@table.rule("OAI-RESP-21")
def approval_items_valid(request: ResponsesRequest) -> Iterator[Problem]:
    """An approval has the id of its request and a boolean; a request has an id, a name, arguments and a server."""
    yield from _check_items(request, _APPROVAL)
