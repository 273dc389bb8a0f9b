"""Calls and their outputs: OAI-RESP-04, 05, 06, 17, 20, 21 and 25.

A pair is one call_id and two matching types, anywhere in the input. What lies with the provider (an earlier response,
a conversation, items named by reference) is not seen here, so nothing is said about outputs that may belong to it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from segue.conformance.openai_responses.request import APPROVAL, PAIRS, Item, ResponsesRequest
from segue.conformance.rule import Finding, Holds, Severity, Table
from segue.conformance.values import is_text, quoted
from segue.models import Model

__all__ = ["table"]

table: Table[ResponsesRequest] = Table()

_OUTPUTS: Mapping[str, str] = {output: call for call, output in PAIRS.items()}
# The provider runs these itself; no report says that it misses their outputs.
_RUN_BY_PROVIDER = frozenset({"tool_search_call", "program", "multi_agent_call"})


def _is_foreign(model: Model) -> bool:
    return model.family != "gpt"


FOREIGN = Holds("models of other makers, and names that do not say", _is_foreign)


def _spoken(item_type: str) -> str:
    """A type as the service names it in its errors: `function call output`."""
    return item_type.replace("_", " ")


def _named(request: ResponsesRequest, types: Mapping[str, str]) -> Iterator[tuple[Item, str]]:
    """The items of these types that have a call_id, with it."""
    for item in request.items:
        call_id = item.call_id if item.type in types else None
        if is_text(call_id):
            yield item, call_id


def _kinds(request: ResponsesRequest, types: Mapping[str, str]) -> dict[str, set[str]]:
    """call_id → the types of these items that bear it."""
    kinds: dict[str, set[str]] = {}
    for item, call_id in _named(request, types):
        kinds.setdefault(call_id, set()).add(item.type)
        # An output of the local shell may bear the item id of its call.
        if item.type == "local_shell_call" and is_text(item.id):
            kinds.setdefault(item.id, set()).add(item.type)
    return kinds


def _unanswered(request: ResponsesRequest) -> Iterator[Item]:
    """Calls whose call_id no output bears, of whatever type; OAI-RESP-17 speaks about outputs of another type."""
    if request.refers_to_calls:
        return
    answered = _kinds(request, _OUTPUTS)
    for item, call_id in _named(request, PAIRS):
        names = {call_id, item.id} if item.type == "local_shell_call" and is_text(item.id) else {call_id}
        if item.data.get("async") is not True and answered.keys().isdisjoint(names):
            yield item


# OAI-RESP-04
@table.rule("OAI-RESP-04")
def calls_answered(request: ResponsesRequest) -> Iterator[Finding]:
    """Every call has an output with the same call_id, unless it runs asynchronously."""
    for item in _unanswered(request):
        if item.type != "custom_tool_call":
            severity: Severity = "risk" if item.type in _RUN_BY_PROVIDER else "reject"
            yield Finding(item.path, f"No tool output found for {_spoken(item.type)} {quoted(item.call_id)}.", severity)


# OAI-RESP-17
@table.rule("OAI-RESP-17")
def custom_calls_answered(request: ResponsesRequest) -> Iterator[Finding]:
    """Every custom_tool_call has an output with the same call_id, unless it runs asynchronously."""
    for item in _unanswered(request):
        if item.type == "custom_tool_call":
            yield Finding(item.path, f"No tool output found for custom tool call {quoted(item.call_id)}.")


# OAI-RESP-17
@table.rule("OAI-RESP-17")
def outputs_match_calls(request: ResponsesRequest) -> Iterator[Finding]:
    """The type of an output is that of its call: function_call_output for a function_call, and so on."""
    calls = _kinds(request, PAIRS)
    for item, call_id in _named(request, _OUTPUTS):
        asked = calls.get(call_id)
        if asked and _OUTPUTS[item.type] not in asked:
            seen = f"No tool call found for {_spoken(item.type)} with call_id {quoted(call_id)}."
            yield Finding(f"{item.path}.type", f"{seen} It is a {_spoken(min(asked))}.")


def _orphans(request: ResponsesRequest, *, mcp: bool) -> Iterator[Item]:
    """Outputs without a call of any type; `mcp`: those that name a call of an MCP server."""
    if request.continues or request.refers_to_calls:
        return
    calls = _kinds(request, PAIRS)
    remote = {item.id for item in request.of("mcp_call", APPROVAL[0]) if is_text(item.id)}
    for item, call_id in _named(request, _OUTPUTS):
        if call_id not in calls and (call_id.startswith("mcp_") or call_id in remote) is mcp:
            yield item


# OAI-RESP-05
@table.rule("OAI-RESP-05")
def outputs_asked_for(request: ResponsesRequest) -> Iterator[Finding]:
    """Every output names a call of the input, or of the earlier response or conversation."""
    for item in _orphans(request, mcp=False):
        seen = f"No tool call found for {_spoken(item.type)} with call_id {quoted(item.call_id)}."
        yield Finding(item.path, seen)


# OAI-RESP-05
@table.rule("OAI-RESP-05", severity="risk")
def outputs_behind_calls(request: ResponsesRequest) -> Iterator[Finding]:
    """An output stands behind its call."""
    if request.continues:
        return
    known: set[str] = set()
    calls = _kinds(request, PAIRS)
    for item, call_id in _named(request, {**PAIRS, **_OUTPUTS}):
        if item.type in PAIRS:
            known.update(name for name in (call_id, item.id) if is_text(name))
        elif call_id in calls and call_id not in known:
            yield Finding(item.path, f"the output of {quoted(call_id)} stands before its call")


# OAI-RESP-06
@table.rule("OAI-RESP-06", severity="risk", holds=FOREIGN)
def pairs_not_torn(request: ResponsesRequest) -> Iterator[Finding]:
    """No message stands between a call and its output; some compatible servers refuse that."""
    opened: dict[str, int] = {}
    last = -1
    for item in request.items:
        if item.type == "message":
            last = item.index
        elif item.type in PAIRS and is_text(item.call_id):
            opened[item.call_id] = item.index
        elif item.type in _OUTPUTS and is_text(item.call_id) and opened.get(item.call_id, last) < last:
            seen = f"input[{last}] stands between the call {quoted(item.call_id)} and its output"
            yield Finding(item.path, f"{seen}; some servers take calls and outputs in one run only")


# OAI-RESP-20
@table.rule("OAI-RESP-20")
def shell_output_names_call(request: ResponsesRequest) -> Iterator[Finding]:
    """A local_shell_call_output names its call, as call_id or as id."""
    for item in request.of("local_shell_call_output"):
        if not is_text(item.call_id):
            yield Finding(f"{item.path}.call_id", f"Missing required parameter: '{item.path}.call_id'.")


# OAI-RESP-21
@table.rule("OAI-RESP-21")
def approvals_asked_for(request: ResponsesRequest) -> Iterator[Finding]:
    """An mcp_approval_response names an mcp_approval_request that stands before it."""
    if request.continues or request.refers_to_calls:
        return
    asked: set[str] = set()
    for item in request.of(*APPROVAL):
        name = item.data.get("approval_request_id")
        if item.type == APPROVAL[0] and is_text(item.id):
            asked.add(item.id)
        elif item.type == APPROVAL[1] and isinstance(name, str) and name not in asked:
            seen = f"no mcp_approval_request with the id {quoted(name)} stands before this response"
            yield Finding(f"{item.path}.approval_request_id", seen)


# OAI-RESP-21
@table.rule("OAI-RESP-21")
def mcp_answers_itself(request: ResponsesRequest) -> Iterator[Finding]:
    """No output answers a call of an MCP server."""
    for item in _orphans(request, mcp=True):
        seen = f"No tool call found for {_spoken(item.type)} with call_id {quoted(item.call_id)}."
        yield Finding(item.path, f"{seen} Calls of MCP servers hold their own output.")


# OAI-RESP-25
@table.rule("OAI-RESP-25")
def call_ids_unique(request: ResponsesRequest) -> Iterator[Finding]:
    """No two calls bear the same call_id, and no call has two outputs; which belongs to which would be a guess."""
    calls: dict[str, int] = {}
    outputs: dict[str, int] = {}
    for item, call_id in _named(request, PAIRS):
        calls[call_id] = calls.get(call_id, 0) + 1
        if calls[call_id] > 1:
            yield Finding(f"{item.path}.call_id", f"Duplicate {_spoken(item.type)} id {quoted(call_id)}")
    for item, call_id in _named(request, _OUTPUTS):
        outputs[call_id] = outputs.get(call_id, 0) + 1
        if outputs[call_id] > max(calls.get(call_id, 0), 1):
            yield Finding(f"{item.path}.call_id", f"Duplicate {_spoken(item.type)} for {quoted(call_id)}")
