"""Calls and their outputs: OAI-RESP-04, 05, 06, 17, 20, 21 and 25.

A pair is one call_id and two matching types, anywhere in the input. Items that the provider stores (an earlier
response, a conversation, referenced items) are not visible here, so outputs that may belong to them are not reported.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from segue.conformance.openai_responses.request import APPROVAL, PAIRS, Item, ResponsesRequest
from segue.conformance.rule import ModelFilter, Problem, RuleTable, Severity
from segue.conformance.values import has_text, quote

table: RuleTable[ResponsesRequest] = RuleTable()

_OUTPUTS: Mapping[str, str] = {output: call for call, output in PAIRS.items()}
# The provider runs these itself and is not known to require their outputs.
_RUN_BY_PROVIDER = frozenset({"tool_search_call", "program", "multi_agent_call"})
_TOOL_SEARCH = "tool_search_call"


NOT_OPENAI = ModelFilter("models of other vendors, and unknown names", lambda model: model.family != "gpt")


def _readable_type(item_type: str) -> str:
    """Format a type as the service does in its errors: `function call output`."""
    return item_type.replace("_", " ")


def _items_with_call_id(request: ResponsesRequest, types: Mapping[str, str]) -> Iterator[tuple[Item, str]]:
    """Yield the items of these types that have a call_id, with it."""
    for item in request.items:
        call_id = item.call_id if item.type in types else None
        if has_text(call_id):
            yield item, call_id


def _types_by_call_id(request: ResponsesRequest, types: Mapping[str, str]) -> dict[str, set[str]]:
    """Map each call_id to the types of the items with it."""
    types_by_id: dict[str, set[str]] = {}
    for item, call_id in _items_with_call_id(request, types):
        types_by_id.setdefault(call_id, set()).add(item.type)
        # An output of the local shell may have the item id of its call.
        if item.type == "local_shell_call" and has_text(item.id):
            types_by_id.setdefault(item.id, set()).add(item.type)
        # A search that the client runs may be answered like a function.
        if item.type == _TOOL_SEARCH and item.data.get("execution") == "client":
            types_by_id[call_id].add("function_call")
    return types_by_id


def _find_unanswered_calls(request: ResponsesRequest) -> Iterator[Item]:
    """Yield calls without an output of any type; OAI-RESP-17 covers outputs of a wrong type."""
    if request.refers_to_calls:
        return
    answered = _types_by_call_id(request, _OUTPUTS)
    for item, call_id in _items_with_call_id(request, PAIRS):
        names = {call_id, item.id} if item.type == "local_shell_call" and has_text(item.id) else {call_id}
        if item.data.get("async") is not True and answered.keys().isdisjoint(names):
            yield item


@table.rule("OAI-RESP-04")
def calls_have_results(request: ResponsesRequest) -> Iterator[Problem]:
    """Every call has an output with the same call_id, unless it runs asynchronously or the provider runs it."""
    for item in _find_unanswered_calls(request):
        execution = item.data.get("execution") if item.type == _TOOL_SEARCH else None
        if item.type == "custom_tool_call" or execution == "server":
            continue
        severity: Severity = "risk" if item.type in _RUN_BY_PROVIDER and execution != "client" else "reject"
        seen = f"No tool output found for {_readable_type(item.type)} {quote(item.call_id)}."
        yield Problem(item.path, seen, severity)


@table.rule("OAI-RESP-17")
def custom_calls_have_outputs(request: ResponsesRequest) -> Iterator[Problem]:
    """Every custom_tool_call has an output with the same call_id, unless it runs asynchronously."""
    for item in _find_unanswered_calls(request):
        if item.type == "custom_tool_call":
            yield Problem(item.path, f"No tool output found for custom tool call {quote(item.call_id)}.")


@table.rule("OAI-RESP-17")
def outputs_match_calls(request: ResponsesRequest) -> Iterator[Problem]:
    """The type of an output matches that of its call: function_call_output for a function_call, and so on."""
    calls = _types_by_call_id(request, PAIRS)
    for item, call_id in _items_with_call_id(request, _OUTPUTS):
        call_types = calls.get(call_id)
        if call_types and _OUTPUTS[item.type] not in call_types:
            seen = f"No tool call found for {_readable_type(item.type)} with call_id {quote(call_id)}."
            yield Problem(f"{item.path}.type", f"{seen} It is a {_readable_type(min(call_types))}.")


def _find_orphan_outputs(request: ResponsesRequest, *, mcp: bool) -> Iterator[Item]:
    """Yield outputs without a call of any type; with `mcp` those with the id of an MCP call."""
    if request.is_continuation or request.refers_to_calls:
        return
    calls = _types_by_call_id(request, PAIRS)
    mcp_ids = {item.id for item in request.items_of("mcp_call", APPROVAL[0]) if has_text(item.id)}
    for item, call_id in _items_with_call_id(request, _OUTPUTS):
        if call_id not in calls and (call_id.startswith("mcp_") or call_id in mcp_ids) is mcp:
            yield item


@table.rule("OAI-RESP-05")
def outputs_have_calls(request: ResponsesRequest) -> Iterator[Problem]:
    """Every output has the id of a call in the input, the earlier response or the conversation."""
    for item in _find_orphan_outputs(request, mcp=False):
        seen = f"No tool call found for {_readable_type(item.type)} with call_id {quote(item.call_id)}."
        yield Problem(item.path, seen)


@table.rule("OAI-RESP-05")
def outputs_follow_calls(request: ResponsesRequest) -> Iterator[Problem]:
    """An output comes after its call."""
    if request.is_continuation:
        return
    known: set[str] = set()
    calls = _types_by_call_id(request, PAIRS)
    for item, call_id in _items_with_call_id(request, {**PAIRS, **_OUTPUTS}):
        if item.type in PAIRS:
            known.update(name for name in (call_id, item.id) if has_text(name))
        elif call_id in calls and call_id not in known:
            yield Problem(item.path, f"the output of {quote(call_id)} comes before its call")


@table.rule("OAI-RESP-06", severity="risk", applies_to=NOT_OPENAI)
def pairs_not_interrupted(request: ResponsesRequest) -> Iterator[Problem]:
    """Nothing but calls and outputs is between a call and its output; DeepSeek rejects it, others a message."""
    is_deepseek = request.model.family == "deepseek"
    severity: Severity = "reject" if is_deepseek else "risk"
    opened: dict[str, int] = {}
    last = -1
    for item in request.items:
        is_call, is_output = item.type in PAIRS, item.type in _OUTPUTS
        if is_call and has_text(item.call_id):
            opened[item.call_id] = item.index
        elif is_output and has_text(item.call_id) and opened.get(item.call_id, last) < last:
            seen = f"input[{last}] is between the call {quote(item.call_id)} and its output"
            yield Problem(item.path, f"{seen}; some servers require outputs directly after their calls", severity)
        elif item.type == "message" or (is_deepseek and not is_call and not is_output):
            last = item.index


@table.rule("OAI-RESP-20")
def shell_output_names_call(request: ResponsesRequest) -> Iterator[Problem]:
    """A local_shell_call_output has the id of its call, as call_id or as id."""
    for item in request.items_of("local_shell_call_output"):
        if not has_text(item.call_id):
            yield Problem(f"{item.path}.call_id", f"Missing required parameter: '{item.path}.call_id'.")


@table.rule("OAI-RESP-21")
def approvals_have_requests(request: ResponsesRequest) -> Iterator[Problem]:
    """An mcp_approval_response has the id of an mcp_approval_request before it."""
    if request.is_continuation or request.refers_to_calls:
        return
    requested: set[str] = set()
    for item in request.items_of(*APPROVAL):
        name = item.data.get("approval_request_id")
        if item.type == APPROVAL[0] and has_text(item.id):
            requested.add(item.id)
        elif item.type == APPROVAL[1] and isinstance(name, str) and name not in requested:
            seen = f"there is no mcp_approval_request with the id {quote(name)} before this response"
            yield Problem(f"{item.path}.approval_request_id", seen)


@table.rule("OAI-RESP-21")
def no_outputs_for_mcp_calls(request: ResponsesRequest) -> Iterator[Problem]:
    """Calls of MCP servers have no separate output."""
    for item in _find_orphan_outputs(request, mcp=True):
        seen = f"No tool call found for {_readable_type(item.type)} with call_id {quote(item.call_id)}."
        yield Problem(item.path, f"{seen} Calls of MCP servers contain their own output.")


@table.rule("OAI-RESP-25")
def call_ids_unique(request: ResponsesRequest) -> Iterator[Problem]:
    """No two calls have the same call_id, and no call has two outputs; pairing would be ambiguous."""
    calls: dict[str, int] = {}
    outputs: dict[str, int] = {}
    for item, call_id in _items_with_call_id(request, PAIRS):
        calls[call_id] = calls.get(call_id, 0) + 1
        if calls[call_id] > 1:
            yield Problem(f"{item.path}.call_id", f"Duplicate {_readable_type(item.type)} id {quote(call_id)}")
    for item, call_id in _items_with_call_id(request, _OUTPUTS):
        outputs[call_id] = outputs.get(call_id, 0) + 1
        if outputs[call_id] > max(calls.get(call_id, 0), 1):
            yield Problem(f"{item.path}.call_id", f"Duplicate {_readable_type(item.type)} for {quote(call_id)}")
