"""Reasoning items and the items that follow them: OAI-RESP-07 to 11."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from segue.conformance.openai_responses.request import APPROVAL, HOSTED, PAIRS, Item, ResponsesRequest
from segue.conformance.rule import Finding, Holds, Severity, Table
from segue.conformance.values import is_list, is_text, kind, quoted
from segue.models import Model

__all__ = ["table"]

table: Table[ResponsesRequest] = Table()

_NOT_BY_THE_MODEL = frozenset(
    {*PAIRS.values(), APPROVAL[1], "additional_tools", "configuration_update", "compaction_trigger"}
)
_CALLS = frozenset({*PAIRS, *HOSTED, APPROVAL[0]})
_BY_CLIENT = frozenset({"function_call", "custom_tool_call"})
# The prefix of every published encrypted_content of the service.
_SEAL = "gAAAA"


def _reasons(model: Model) -> bool:
    return not model.family or (model.family == "gpt" and (model.line == "o" or model.at_least(5)))


def _is_own(model: Model) -> bool:
    return model.family in ("", "gpt")


REASONING = Holds("OpenAI's reasoning models, and unknown names", _reasons)
OWN = Holds("OpenAI's models, and unknown names", _is_own)


def _is_made_by_model(item: Item) -> bool:
    if item.type == "message":
        return item.is_assistant
    return item.type not in _NOT_BY_THE_MODEL


# OAI-RESP-07
@table.rule("OAI-RESP-07")
def reasoning_followed(request: ResponsesRequest) -> Iterator[Finding]:
    """A reasoning item is directly before the message or call that was generated with it."""
    for item, following in pairwise([*request.items, None]):
        if item is None or not item.is_reasoning:
            continue
        seen = f"Item {quoted(item.id)} of type 'reasoning' was provided without its required following item."
        if following is None or not _is_made_by_model(following):
            # Without an id the service can't look the item up; its behaviour is unknown.
            severity: Severity = "reject" if is_text(item.id) else "risk"
            yield Finding(item.path, seen, severity)
        elif following.is_reasoning:
            yield Finding(item.path, f"{seen} Another reasoning item follows.", "risk")


def _turns(request: ResponsesRequest) -> Iterator[list[Item]]:
    """Splits the items at user, system and developer messages."""
    turn: list[Item] = []
    for item in request.items:
        if item.type == "message" and not item.is_assistant:
            yield turn
            turn = []
        else:
            turn.append(item)
    yield turn


def _bare(request: ResponsesRequest) -> Iterator[Item]:
    """Yields model items with an id and no reasoning before them in their turn."""
    if not request.stored:
        return
    for turn in _turns(request):
        for item in turn:
            if item.is_reasoning:
                break
            if is_text(item.id) and (item.is_assistant or item.type in _CALLS):
                yield item


# OAI-RESP-08
@table.rule("OAI-RESP-08", severity="risk", holds=REASONING)
def calls_keep_reasoning(request: ResponsesRequest) -> Iterator[Finding]:
    """A call that was generated with reasoning and has its id has the reasoning before it.

    A body does not show which calls were generated with reasoning; omitting the ids is safe.
    """
    for item in _bare(request):
        if item.type in _CALLS:
            seen = f"Item {quoted(item.id)} of type '{item.type}' has no 'reasoning' item before it"
            yield Finding(f"{item.path}.id", f"{seen}; if it was generated with one, omit the id")


# OAI-RESP-09
@table.rule("OAI-RESP-09", severity="risk", holds=REASONING)
def messages_keep_reasoning(request: ResponsesRequest) -> Iterator[Finding]:
    """A message that was generated with reasoning and has its id has the reasoning before it."""
    for item in _bare(request):
        if item.is_assistant:
            seen = f"Item {quoted(item.id)} of type 'message' has no 'reasoning' item before it"
            yield Finding(f"{item.path}.id", f"{seen}; if it was generated with one, omit the id")


# OAI-RESP-09
@table.rule("OAI-RESP-09", severity="risk")
def messages_before_calls(request: ResponsesRequest) -> Iterator[Finding]:
    """The order is reasoning, message, call: no call is between reasoning and message."""
    separating_call = ""
    after_reasoning = False
    for item in request.items:
        if item.is_reasoning:
            after_reasoning, separating_call = True, ""
        elif item.type in _BY_CLIENT:
            separating_call = item.path if after_reasoning else ""
        elif item.is_assistant:
            if separating_call and is_text(item.id) and request.stored:
                seen = f"Item {quoted(item.id)} is separated from its 'reasoning' item by {separating_call}"
                yield Finding(f"{item.path}.id", seen)
        elif not _is_made_by_model(item):
            after_reasoning, separating_call = False, ""


# OAI-RESP-10
@table.rule("OAI-RESP-10")
def no_references_without_store(request: ResponsesRequest) -> Iterator[Finding]:
    """With store false no item is referenced by id only: reasoning has its encrypted_content."""
    if request.stored:
        return
    for item in request.of("reasoning", "item_reference"):
        if not is_text(item.id) or is_text(item.data.get("encrypted_content")):
            continue
        # Possibly stored earlier, or plain text for a compatible server.
        uncertain = request.continues or (is_list(item.data.get("content")) and bool(item.data["content"]))
        severity: Severity = "risk" if uncertain else "reject"
        seen = f"Item with id {quoted(item.id)} not found. Items are not persisted when `store` is set to false."
        yield Finding(item.path, seen, severity)


# OAI-RESP-11
@table.rule("OAI-RESP-11", holds=OWN)
def encrypted_by_provider(request: ResponsesRequest) -> Iterator[Finding]:
    """encrypted_content is from this provider; a body does not show the account."""
    for item in request.of("reasoning", "compaction"):
        path, value = f"{item.path}.encrypted_content", item.data.get("encrypted_content")
        if value is not None and not isinstance(value, str):
            if item.type == "reasoning":
                yield Finding(path, f"encrypted_content is {kind(value)}; a string is expected")
        elif value and not value.startswith(_SEAL):
            seen = f"The encrypted content {quoted(value)} could not be verified"
            yield Finding(path, f"{seen}: this provider's encrypted content begins with {_SEAL!r}", "risk")
