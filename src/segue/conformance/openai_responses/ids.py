"""Ids of Responses items: OAI-RESP-01, 02, 03 and 13. `pairing` checks how they pair."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from segue.conformance.openai_responses.request import PAIRS, Item, ResponsesRequest
from segue.conformance.rule import ModelFilter, Problem, RuleTable, Severity
from segue.conformance.values import has_text, quote, text_or_empty, type_name

table: RuleTable[ResponsesRequest] = RuleTable()

_LONGEST = 64
# A local_shell_call_output may have its call id in `id`; OAI-RESP-20 covers it.
_PAIRED = frozenset({*PAIRS, *PAIRS.values()} - {"local_shell_call_output"})
# Hosted searches have no call_id.
_CALL_ID_OPTIONAL = frozenset({"tool_search_call", "tool_search_output"})
_ID = re.compile(r"[a-zA-Z0-9_-]+")

# Prefixes that the service is known to require.
_CALL_PREFIX: Mapping[str, str] = {"function_call": "fc", "custom_tool_call": "ctc"}
_REQUIRED_PREFIX: Mapping[str, str] = {"reasoning": "rs", "message": "msg"}
# Prefixes of its own ids; it is not known to reject others.
_USUAL_PREFIX: Mapping[str, str] = {
    "web_search_call": "ws",
    "file_search_call": "fs",
    "code_interpreter_call": "ci",
    "image_generation_call": "ig",
    "computer_call": "cu",
    "local_shell_call": "lsh",
    "mcp_call": "mcp",
    "mcp_list_tools": "mcpl",
    "mcp_approval_request": "mcpr",
}


# DeepSeek's own ids are UUIDs, and its reasoning needs none.
_PREFIXED = ModelFilter("all but DeepSeek's models", lambda model: model.family != "deepseek")


@table.rule("OAI-RESP-01")
def call_ids_short(request: ResponsesRequest) -> Iterator[Problem]:
    """call_id is a string of 1 to 64 characters, on calls and on outputs."""
    for item in request.items_of(*_PAIRED):
        path, value = f"{item.path}.call_id", item.data.get("call_id")
        if value is None:
            # The newest types accept outputs without a call, but not null.
            omitted = item.type == "function_call_output" and "call_id" not in item.data
            severity: Severity = "risk" if omitted else "reject"
            if item.type not in _CALL_ID_OPTIONAL:
                yield Problem(path, f"Missing required parameter: '{path}'.", severity)
        elif not has_text(value):
            yield Problem(path, f"call_id is {type_name(value)}; a string of 1 to {_LONGEST} characters is expected")
        elif len(value) > _LONGEST:
            seen = f"Expected a string with maximum length {_LONGEST}, but got a string with length {len(value)}"
            yield Problem(path, f"Invalid '{path}': string too long. {seen} instead.")


@table.rule("OAI-RESP-02", applies_to=_PREFIXED)
def call_item_ids_valid(request: ResponsesRequest) -> Iterator[Problem]:
    """The id of a function_call begins with `fc`, that of a custom_tool_call with `ctc`; it may be omitted."""
    for item in request.items_of(*_CALL_PREFIX):
        yield from _check_id(item, _CALL_PREFIX[item.type], "reject")


@table.rule("OAI-RESP-03", applies_to=_PREFIXED)
def item_ids_valid(request: ResponsesRequest) -> Iterator[Problem]:
    """Reasoning has an id that begins with `rs`, the id of a message begins with `msg`; ids have 1 to 64 characters."""
    for item in request.items:
        if item.type == "reasoning" and item.id is None:
            # Clients that send only the encrypted content are known to succeed.
            severity: Severity = "risk" if has_text(item.data.get("encrypted_content")) else "reject"
            yield Problem(f"{item.path}.id", f"Missing required parameter: '{item.path}.id'.", severity)
        elif item.type in _REQUIRED_PREFIX:
            yield from _check_id(item, _REQUIRED_PREFIX[item.type], "reject")
        elif item.type not in _CALL_PREFIX and item.type != "local_shell_call_output":
            yield from _check_id(item, _USUAL_PREFIX.get(item.type, ""), "risk")


def _check_id(item: Item, prefix: str, severity: Severity) -> Iterator[Problem]:
    path, value = f"{item.path}.id", item.id
    if value is None:
        return
    if not isinstance(value, str):
        # Items that require their id are checked by their item spec.
        if item.type not in ("item_reference", "mcp_approval_request"):
            yield Problem(path, f"the id is {type_name(value)}; a string is expected")
    elif not value.startswith(prefix):
        yield Problem(path, f"Invalid '{path}': {quote(value)}. Expected an ID that begins with '{prefix}'.", severity)
    elif not _ID.fullmatch(value):
        seen = "Expected an ID that contains letters, numbers, underscores, or dashes"
        yield Problem(path, f"Invalid '{path}': {quote(value)}. {seen}.")
    elif len(value) > _LONGEST:
        seen = f"Expected a string with maximum length {_LONGEST}, but got a string with length {len(value)}"
        yield Problem(path, f"Invalid '{path}': string too long. {seen} instead.")
    elif "-" in value:
        yield Problem(path, f"the id {quote(value)} has a dash, which the service is known to reject", "risk")


@table.rule("OAI-RESP-13")
def item_ids_unique(request: ResponsesRequest) -> Iterator[Problem]:
    """No two items have the same id."""
    seen: set[str] = set()
    for item in request.items:
        name = text_or_empty(item.id)
        if not name or item.type == "local_shell_call_output":
            continue
        if name in seen:
            advice = "Remove duplicate items from your input and try again."
            yield Problem(f"{item.path}.id", f"Duplicate item found with id {quote(name)}. {advice}")
        seen.add(name)
