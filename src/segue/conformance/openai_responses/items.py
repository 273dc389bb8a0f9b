"""The members of each item type: OAI-RESP-14, and members under 03, 16, 17, 20 and 21.

`ITEM_SPECS` is the vendor's request types as data. A missing or mistyped member is rejected; a missing id or status is
only a risk, because clients are known to omit them, and so is an unknown key.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal

import msgspec

from segue.conformance.openai_responses.request import Item, ResponsesRequest
from segue.conformance.rule import Finding, Severity, Table
from segue.conformance.values import is_list, is_object, is_text, kind, quoted

__all__ = ["SHAPES", "Shape", "table"]

table: Table[ResponsesRequest] = Table()

Form = Literal["string", "list", "object", "boolean", "string or null", "list or null", "value"]


class Shape(msgspec.Struct, frozen=True):
    """An item type: its rule, required members, expected members (a risk if missing), and optional ones."""

    rule: str
    needs: Mapping[str, Form]
    should: str = ""
    may: str = ""
    statuses: str = ""

    @property
    def keys(self) -> frozenset[str]:
        """All keys that the item may have."""
        status = ["status"] if self.statuses else []
        return frozenset({"type", "id", "agent", *self.needs, *self.should.split(), *self.may.split(), *status})


_STATUS = "in_progress completed incomplete"
_CALL, _RESULT, _HOSTED, _APPROVAL = "OAI-RESP-17", "OAI-RESP-16", "OAI-RESP-20", "OAI-RESP-21"
_OTHER, _REASONING = "OAI-RESP-14", "OAI-RESP-03"

SHAPES: Mapping[str, Shape] = {
    "message": Shape(_OTHER, {}, may="role content phase", statuses=_STATUS),
    "agent_message": Shape(_OTHER, {"author": "string", "recipient": "string", "content": "list"}),
    "item_reference": Shape(_OTHER, {"id": "string"}),
    "additional_tools": Shape(_OTHER, {"role": "string", "tools": "list"}),
    "configuration_update": Shape(_OTHER, {}, may="reasoning text"),
    "compaction": Shape(_OTHER, {"encrypted_content": "string"}),
    "compaction_trigger": Shape(_OTHER, {}),
    # The types have a status here, but the service returns "Unknown parameter: 'input[1].status'."
    "reasoning": Shape(_REASONING, {"summary": "list"}, may="content encrypted_content"),
    "function_call": Shape(
        _CALL, {"name": "string", "arguments": "string"}, may="call_id async caller namespace", statuses=_STATUS
    ),
    # The status of custom calls and outputs is only in replies, and clients send it back unchanged.
    "custom_tool_call": Shape(
        _CALL, {"name": "string", "input": "string"}, may="call_id async caller namespace", statuses=_STATUS
    ),
    "computer_call": Shape(
        _CALL, {}, "id status pending_safety_checks", may="call_id action actions", statuses=_STATUS
    ),
    "shell_call": Shape(_CALL, {"action": "object"}, may="call_id caller environment", statuses=_STATUS),
    "local_shell_call": Shape(_CALL, {"action": "object"}, "id status", may="call_id", statuses=_STATUS),
    "apply_patch_call": Shape(
        _CALL, {"operation": "object"}, "status", may="call_id caller", statuses="in_progress completed"
    ),
    "tool_search_call": Shape(_CALL, {"arguments": "value"}, may="call_id execution", statuses=_STATUS),
    "program": Shape(_CALL, {"code": "string", "fingerprint": "string"}, "id", may="call_id"),
    "multi_agent_call": Shape(_CALL, {"action": "string", "arguments": "string"}, may="call_id"),
    "function_call_output": Shape(_RESULT, {}, may="output call_id caller name namespace", statuses=_STATUS),
    "custom_tool_call_output": Shape(_RESULT, {}, may="output call_id caller", statuses=_STATUS),
    # `failed` is only in replies.
    "computer_call_output": Shape(
        _RESULT, {}, may="output call_id acknowledged_safety_checks", statuses=f"{_STATUS} failed"
    ),
    "shell_call_output": Shape(_RESULT, {}, may="output call_id caller max_output_length", statuses=_STATUS),
    "local_shell_call_output": Shape(_RESULT, {"output": "string"}, may="call_id", statuses=_STATUS),
    "apply_patch_call_output": Shape(
        _RESULT, {"status": "string"}, may="call_id caller output", statuses="completed failed"
    ),
    "tool_search_output": Shape(_RESULT, {"tools": "list"}, may="call_id execution", statuses=_STATUS),
    "program_output": Shape(_RESULT, {"result": "string"}, "id status", may="call_id", statuses="completed incomplete"),
    "multi_agent_call_output": Shape(_RESULT, {"action": "string", "output": "list"}, may="call_id"),
    "web_search_call": Shape(_HOSTED, {"action": "object"}, "id status", statuses=f"{_STATUS} searching failed"),
    "file_search_call": Shape(
        _HOSTED, {"queries": "list"}, "id status", may="results", statuses=f"{_STATUS} searching failed"
    ),
    "code_interpreter_call": Shape(
        _HOSTED,
        {"code": "string or null", "container_id": "string", "outputs": "list or null"},
        "id status",
        statuses=f"{_STATUS} interpreting failed",
    ),
    "image_generation_call": Shape(
        _HOSTED,
        {"result": "string or null"},
        "id status",
        may="action background error output_format quality revised_prompt size svg_usage",
        statuses="in_progress completed generating failed",
    ),
    "mcp_call": Shape(
        _HOSTED,
        {"name": "string", "arguments": "string", "server_label": "string"},
        "id",
        may="approval_request_id error output",
        statuses=f"{_STATUS} calling failed",
    ),
    "mcp_list_tools": Shape(_HOSTED, {"server_label": "string", "tools": "list"}, "id", may="error"),
    "mcp_approval_request": Shape(
        _APPROVAL, {"id": "string", "name": "string", "arguments": "string", "server_label": "string"}
    ),
    "mcp_approval_response": Shape(_APPROVAL, {"approval_request_id": "string", "approve": "boolean"}, may="reason"),
}
_KEYS = {item_type: shape.keys for item_type, shape in SHAPES.items()}
_ROLES = ("assistant", "system", "developer", "user")
_CHAT_KEYS = frozenset({"tool_calls", "tool_call_id", "function_call"})


def _fits(value: object, value_type: Form) -> bool:
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


def _misshapen(request: ResponsesRequest, rule: str) -> Iterator[Finding]:
    for item in request.items:
        shape = SHAPES.get(item.type)
        if shape is not None and shape.rule == rule:
            yield from _members(item, shape)
            yield from _strange_keys(item)


def _members(item: Item, shape: Shape) -> Iterator[Finding]:
    for key, value_type in shape.needs.items():
        if key not in item.data:
            yield Finding(f"{item.path}.{key}", f"Missing required parameter: '{item.path}.{key}'.")
        elif not _fits(item.data[key], value_type):
            article = "any" if value_type == "value" else "an" if value_type == "object" else "a"
            seen = f"{key} of this {item.type} is {kind(item.data[key])}"
            yield Finding(f"{item.path}.{key}", f"{seen}; {article} {value_type} is expected")
    for key in shape.should.split():
        if item.data.get(key) is None:
            yield Finding(f"{item.path}.{key}", f"this {item.type} has no {key}; its type requires one", "risk")
    status = item.data.get("status")
    if shape.statuses and status is not None and status not in shape.statuses.split():
        seen = f"Invalid value: {quoted(status)}. Supported values are: {', '.join(shape.statuses.split())}."
        # A status that is not a string is already reported if the item requires it.
        if isinstance(status, str) or "status" not in shape.needs:
            yield Finding(f"{item.path}.status", seen)


def _strange_keys(item: Item) -> Iterator[Finding]:
    known = _KEYS[item.type]
    if item.data.keys() <= known:
        return
    for key in item.data:
        if key not in known:
            severity: Severity = "reject" if key in _CHAT_KEYS and item.type == "message" else "risk"
            yield Finding(f"{item.path}.{key}", f"Unknown parameter: {quoted(key)} in a {item.type} item.", severity)


# OAI-RESP-14
@table.rule("OAI-RESP-14")
def items_known(request: ResponsesRequest) -> Iterator[Finding]:
    """Every entry of input is an object of a known type."""
    entries = request.body.get("input")
    for item, entry in zip(request.items, entries if is_list(entries) else (), strict=False):
        if not is_object(entry):
            yield Finding(item.path, f"{kind(entry)} in the list of items; an object is expected")
        elif entry.get("type") is None and not item.type:
            yield Finding(f"{item.path}.type", "the item has neither a type nor a role")
        elif item.type not in SHAPES:
            # A type that is newer than this table may be valid.
            seen = f"Invalid value: {quoted(entry.get('type'))} is not a known item type."
            yield Finding(f"{item.path}.type", seen, "risk" if is_text(entry.get("type")) else "reject")


# OAI-RESP-14
@table.rule("OAI-RESP-14")
def roles_known(request: ResponsesRequest) -> Iterator[Finding]:
    """Messages have the role assistant, system, developer or user; there is no role tool."""
    for item in request.of("message", "additional_tools"):
        role = item.data.get("role")
        if item.type == "additional_tools":
            if isinstance(role, str) and role != "developer":
                yield Finding(f"{item.path}.role", f"Invalid value: {quoted(role)}. Only 'developer' is supported.")
        elif role not in _ROLES:
            supported = "'assistant', 'system', 'developer', and 'user'"
            yield Finding(f"{item.path}.role", f"Invalid value: {quoted(role)}. Supported values are: {supported}.")


# OAI-RESP-14
@table.rule("OAI-RESP-14")
def other_items_valid(request: ResponsesRequest) -> Iterator[Finding]:
    """Messages have no keys of Chat Completions; settings and references have their required members."""
    yield from _misshapen(request, _OTHER)


# OAI-RESP-14
@table.rule("OAI-RESP-14")
def compaction_last(request: ResponsesRequest) -> Iterator[Finding]:
    """A compaction_trigger is the last item."""
    for item in request.of("compaction_trigger"):
        if item.index != len(request.items) - 1:
            yield Finding(item.path, "a compaction_trigger must be the final input item")


# OAI-RESP-03
@table.rule("OAI-RESP-03")
def reasoning_valid(request: ResponsesRequest) -> Iterator[Finding]:
    """A reasoning item has a summary, which may be empty."""
    yield from _misshapen(request, _REASONING)


# OAI-RESP-16
@table.rule("OAI-RESP-16")
def output_items_valid(request: ResponsesRequest) -> Iterator[Finding]:
    """Outputs have the members and the status of their type."""
    yield from _misshapen(request, _RESULT)


# OAI-RESP-17
@table.rule("OAI-RESP-17")
def call_items_valid(request: ResponsesRequest) -> Iterator[Finding]:
    """The arguments of a function_call are a string, the input of a custom_tool_call too; all have their members."""
    yield from _misshapen(request, _CALL)


# OAI-RESP-20
@table.rule("OAI-RESP-20")
def hosted_items_valid(request: ResponsesRequest) -> Iterator[Finding]:
    """Items of hosted tools have an id, their own output inside, and no call_id."""
    yield from _misshapen(request, _HOSTED)


# OAI-RESP-21
@table.rule("OAI-RESP-21")
def approval_items_valid(request: ResponsesRequest) -> Iterator[Finding]:
    """An approval has the id of its request and a boolean; a request has an id, a name, arguments and a server."""
    yield from _misshapen(request, _APPROVAL)
