"""The members of each item type: OAI-RESP-14, and members under 03, 16, 17, 20 and 21.

`ITEM_SPECS` is the vendor's request types as data. A missing or mistyped member is rejected; a missing id or status is
only a risk, because clients are known to omit them, and so is an unknown key.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal

import msgspec

from segue.conformance.openai_responses.request import Item, ResponsesRequest
from segue.conformance.rule import Problem, RuleTable, Severity
from segue.conformance.values import has_text, is_list, is_object, quote, type_name

table: RuleTable[ResponsesRequest] = RuleTable()

ValueType = Literal["string", "list", "object", "boolean", "string or null", "list or null", "value"]


class ItemSpec(msgspec.Struct, frozen=True):
    """An item type: its rule, required members, expected members (a risk if missing), and optional ones."""

    rule: str
    required: Mapping[str, ValueType]
    recommended: str = ""
    optional: str = ""
    statuses: str = ""

    @property
    def keys(self) -> frozenset[str]:
        """All keys that the item may have."""
        status = ["status"] if self.statuses else []
        return frozenset(
            {"type", "id", "agent", *self.required, *self.recommended.split(), *self.optional.split(), *status}
        )


_STATUS = "in_progress completed incomplete"
_CALL, _RESULT, _HOSTED, _APPROVAL = "OAI-RESP-17", "OAI-RESP-16", "OAI-RESP-20", "OAI-RESP-21"
_OTHER_RULE, _REASONING = "OAI-RESP-14", "OAI-RESP-03"

ITEM_SPECS: Mapping[str, ItemSpec] = {
    "message": ItemSpec(_OTHER_RULE, {}, optional="role content phase", statuses=_STATUS),
    "agent_message": ItemSpec(_OTHER_RULE, {"author": "string", "recipient": "string", "content": "list"}),
    "item_reference": ItemSpec(_OTHER_RULE, {"id": "string"}),
    "additional_tools": ItemSpec(_OTHER_RULE, {"role": "string", "tools": "list"}),
    "configuration_update": ItemSpec(_OTHER_RULE, {}, optional="reasoning text"),
    "compaction": ItemSpec(_OTHER_RULE, {"encrypted_content": "string"}),
    "compaction_trigger": ItemSpec(_OTHER_RULE, {}),
    # The types have a status here, but the service returns "Unknown parameter: 'input[1].status'."
    "reasoning": ItemSpec(_REASONING, {"summary": "list"}, optional="content encrypted_content"),
    "function_call": ItemSpec(
        _CALL, {"name": "string", "arguments": "string"}, optional="call_id async caller namespace", statuses=_STATUS
    ),
    # The status of custom calls and outputs is only in replies, and clients send it back unchanged.
    "custom_tool_call": ItemSpec(
        _CALL, {"name": "string", "input": "string"}, optional="call_id async caller namespace", statuses=_STATUS
    ),
    "computer_call": ItemSpec(
        _CALL, {}, "id status pending_safety_checks", optional="call_id action actions", statuses=_STATUS
    ),
    "shell_call": ItemSpec(_CALL, {"action": "object"}, optional="call_id caller environment", statuses=_STATUS),
    "local_shell_call": ItemSpec(_CALL, {"action": "object"}, "id status", optional="call_id", statuses=_STATUS),
    "apply_patch_call": ItemSpec(
        _CALL, {"operation": "object"}, "status", optional="call_id caller", statuses="in_progress completed"
    ),
    "tool_search_call": ItemSpec(_CALL, {"arguments": "value"}, optional="call_id execution", statuses=_STATUS),
    "program": ItemSpec(_CALL, {"code": "string", "fingerprint": "string"}, "id", optional="call_id"),
    "multi_agent_call": ItemSpec(_CALL, {"action": "string", "arguments": "string"}, optional="call_id"),
    "function_call_output": ItemSpec(_RESULT, {}, optional="output call_id caller name namespace", statuses=_STATUS),
    "custom_tool_call_output": ItemSpec(_RESULT, {}, optional="output call_id caller", statuses=_STATUS),
    # `failed` is only in replies.
    "computer_call_output": ItemSpec(
        _RESULT, {}, optional="output call_id acknowledged_safety_checks", statuses=f"{_STATUS} failed"
    ),
    "shell_call_output": ItemSpec(_RESULT, {}, optional="output call_id caller max_output_length", statuses=_STATUS),
    "local_shell_call_output": ItemSpec(_RESULT, {"output": "string"}, optional="call_id", statuses=_STATUS),
    "apply_patch_call_output": ItemSpec(
        _RESULT, {"status": "string"}, optional="call_id caller output", statuses="completed failed"
    ),
    "tool_search_output": ItemSpec(_RESULT, {"tools": "list"}, optional="call_id execution", statuses=_STATUS),
    "program_output": ItemSpec(
        _RESULT, {"result": "string"}, "id status", optional="call_id", statuses="completed incomplete"
    ),
    "multi_agent_call_output": ItemSpec(_RESULT, {"action": "string", "output": "list"}, optional="call_id"),
    "web_search_call": ItemSpec(_HOSTED, {"action": "object"}, "id status", statuses=f"{_STATUS} searching failed"),
    "file_search_call": ItemSpec(
        _HOSTED, {"queries": "list"}, "id status", optional="results", statuses=f"{_STATUS} searching failed"
    ),
    "code_interpreter_call": ItemSpec(
        _HOSTED,
        {"code": "string or null", "container_id": "string", "outputs": "list or null"},
        "id status",
        statuses=f"{_STATUS} interpreting failed",
    ),
    "image_generation_call": ItemSpec(
        _HOSTED,
        {"result": "string or null"},
        "id status",
        optional="action background error output_format quality revised_prompt size svg_usage",
        statuses="in_progress completed generating failed",
    ),
    "mcp_call": ItemSpec(
        _HOSTED,
        {"name": "string", "arguments": "string", "server_label": "string"},
        "id",
        optional="approval_request_id error output",
        statuses=f"{_STATUS} calling failed",
    ),
    "mcp_list_tools": ItemSpec(_HOSTED, {"server_label": "string", "tools": "list"}, "id", optional="error"),
    "mcp_approval_request": ItemSpec(
        _APPROVAL, {"id": "string", "name": "string", "arguments": "string", "server_label": "string"}
    ),
    "mcp_approval_response": ItemSpec(
        _APPROVAL, {"approval_request_id": "string", "approve": "boolean"}, optional="reason"
    ),
}
_KEYS = {item_type: spec.keys for item_type, spec in ITEM_SPECS.items()}
_ROLES = ("assistant", "system", "developer", "user")
_CHAT_KEYS = frozenset({"tool_calls", "tool_call_id", "function_call"})


def _has_type(value: object, value_type: ValueType) -> bool:
    match value_type:
        case "value":
            return True
        case "string":
            return isinstance(value, str)
        case "list":
            return is_list(value)
        case "object":
            return is_object(value)
        case "boolean":
            return isinstance(value, bool)
        case "string or null":
            return value is None or isinstance(value, str)
        case "list or null":
            return value is None or is_list(value)


def _check_items(request: ResponsesRequest, rule: str) -> Iterator[Problem]:
    for item in request.items:
        spec = ITEM_SPECS.get(item.type)
        if spec is not None and spec.rule == rule:
            yield from _check_members(item, spec)
            yield from _check_keys(item)


def _check_members(item: Item, spec: ItemSpec) -> Iterator[Problem]:
    for key, value_type in spec.required.items():
        if key not in item.data:
            yield Problem(f"{item.path}.{key}", f"Missing required parameter: '{item.path}.{key}'.")
        elif not _has_type(item.data[key], value_type):
            article = "any" if value_type == "value" else "an" if value_type == "object" else "a"
            seen = f"{key} of this {item.type} is {type_name(item.data[key])}"
            yield Problem(f"{item.path}.{key}", f"{seen}; {article} {value_type} is expected")
    for key in spec.recommended.split():
        if item.data.get(key) is None:
            yield Problem(f"{item.path}.{key}", f"this {item.type} has no {key}; its type requires one", "risk")
    status = item.data.get("status")
    if spec.statuses and status is not None and status not in spec.statuses.split():
        seen = f"Invalid value: {quote(status)}. Supported values are: {', '.join(spec.statuses.split())}."
        # A status that is not a string is already reported if the item requires it.
        if isinstance(status, str) or "status" not in spec.required:
            yield Problem(f"{item.path}.status", seen)


def _check_keys(item: Item) -> Iterator[Problem]:
    known = _KEYS[item.type]
    if item.data.keys() <= known:
        return
    for key in item.data:
        if key not in known:
            severity: Severity = "reject" if key in _CHAT_KEYS and item.type == "message" else "risk"
            yield Problem(f"{item.path}.{key}", f"Unknown parameter: {quote(key)} in a {item.type} item.", severity)


# OAI-RESP-14
@table.rule("OAI-RESP-14")
def items_known(request: ResponsesRequest) -> Iterator[Problem]:
    """Every entry of input is an object of a known type."""
    entries = request.body.get("input")
    for item, entry in zip(request.items, entries if is_list(entries) else (), strict=False):
        if not is_object(entry):
            yield Problem(item.path, f"{type_name(entry)} in the list of items; an object is expected")
        elif entry.get("type") is None and not item.type:
            yield Problem(f"{item.path}.type", "the item has neither a type nor a role")
        elif item.type not in ITEM_SPECS:
            # A type that is newer than this table may be valid.
            seen = f"Invalid value: {quote(entry.get('type'))} is not a known item type."
            yield Problem(f"{item.path}.type", seen, "risk" if has_text(entry.get("type")) else "reject")


# OAI-RESP-14
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


# OAI-RESP-14
@table.rule("OAI-RESP-14")
def other_items_valid(request: ResponsesRequest) -> Iterator[Problem]:
    """Messages have no keys of Chat Completions; settings and references have their required members."""
    yield from _check_items(request, _OTHER_RULE)


# OAI-RESP-14
@table.rule("OAI-RESP-14")
def compaction_last(request: ResponsesRequest) -> Iterator[Problem]:
    """A compaction_trigger is the last item."""
    for item in request.items_of("compaction_trigger"):
        if item.index != len(request.items) - 1:
            yield Problem(item.path, "a compaction_trigger must be the final input item")


# OAI-RESP-03
@table.rule("OAI-RESP-03")
def reasoning_valid(request: ResponsesRequest) -> Iterator[Problem]:
    """A reasoning item has a summary, which may be empty."""
    yield from _check_items(request, _REASONING)


# OAI-RESP-16
@table.rule("OAI-RESP-16")
def output_items_valid(request: ResponsesRequest) -> Iterator[Problem]:
    """Outputs have the members and the status of their type."""
    yield from _check_items(request, _RESULT)


# OAI-RESP-17
@table.rule("OAI-RESP-17")
def call_items_valid(request: ResponsesRequest) -> Iterator[Problem]:
    """The arguments of a function_call are a string, the input of a custom_tool_call too; all have their members."""
    yield from _check_items(request, _CALL)


# OAI-RESP-20
@table.rule("OAI-RESP-20")
def hosted_items_valid(request: ResponsesRequest) -> Iterator[Problem]:
    """Items of hosted tools have an id, their own output inside, and no call_id."""
    yield from _check_items(request, _HOSTED)


# OAI-RESP-21
@table.rule("OAI-RESP-21")
def approval_items_valid(request: ResponsesRequest) -> Iterator[Problem]:
    """An approval has the id of its request and a boolean; a request has an id, a name, arguments and a server."""
    yield from _check_items(request, _APPROVAL)
