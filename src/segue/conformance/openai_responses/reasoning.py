"""Reasoning items and the items that follow them: OAI-RESP-07 to 11."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from segue.conformance.openai_responses.request import APPROVAL, HOSTED, PAIRS, Item, ResponsesRequest
from segue.conformance.rule import ModelFilter, Problem, RuleTable, Severity
from segue.conformance.values import ENVELOPE, has_text, is_envelope, is_list, quote, type_name
from segue.models import Model

table: RuleTable[ResponsesRequest] = RuleTable()

_NOT_MODEL_ITEMS = frozenset(
    {*PAIRS.values(), APPROVAL[1], "additional_tools", "configuration_update", "compaction_trigger"}
)
_CALLS = frozenset({*PAIRS, *HOSTED, APPROVAL[0]})
_CLIENT_CALLS = frozenset({"function_call", "custom_tool_call"})
# The prefix of every published encrypted_content of the service.
_ENCRYPTED_PREFIX = "gAAAA"
_MANTLE_PREFIX = "rsn_"


def _is_reasoning_model(model: Model) -> bool:
    return not model.family or (model.family == "gpt" and (model.line == "o" or model.at_least(5)))


def _is_openai(model: Model) -> bool:
    return model.family in ("", "gpt")


REASONING = ModelFilter("OpenAI's reasoning models, and unknown names", _is_reasoning_model)
OPENAI = ModelFilter("OpenAI's models, and unknown names", _is_openai)


def _is_made_by_model(item: Item) -> bool:
    if item.type == "message":
        return item.is_assistant
    return item.type not in _NOT_MODEL_ITEMS


@table.rule("OAI-RESP-07")
def reasoning_followed(request: ResponsesRequest) -> Iterator[Problem]:
    """A reasoning item is directly before the message or call that was generated with it, and both have their ids.

    With store false nothing is known about an item without an id. DeepSeek's items need none.
    """
    for item, following in pairwise([*request.items, None]):
        if item is None or not item.is_reasoning:
            continue
        seen = f"Item {quote(item.id)} of type 'reasoning' was provided without its required following item."
        if following is None or not _is_made_by_model(following):
            # Without an id the service can't look the item up; its behaviour is unknown.
            severity: Severity = "reject" if has_text(item.id) else "risk"
            yield Problem(item.path, seen, severity)
        elif following.is_reasoning:
            yield Problem(item.path, f"{seen} Another reasoning item follows.", "risk")
        elif has_text(item.id) and _lacks_id(following) and request.model.family != "deepseek":
            if request.is_stored and _is_openai(request.model):
                yield Problem(item.path, f"{seen} {following.path} has no id.")
            else:
                reason = "this item has no id, but the reasoning item in front of it has one"
                yield Problem(following.path, f"{reason}; OpenAI's own clients send both", "risk")


def _lacks_id(item: Item) -> bool:
    return not has_text(item.id) and (item.is_assistant or item.type in _CALLS)


@table.rule("OAI-RESP-08", applies_to=REASONING)
def reasoning_keeps_id(request: ResponsesRequest) -> Iterator[Problem]:
    """A reasoning item whose id was left out is not directly before a message or call with an id."""
    for item, following in pairwise(request.items):
        is_reply = following.is_assistant or following.type in _CALLS
        if item.type == "reasoning" and item.id is None and is_reply and has_text(following.id):
            seen = f"Item {quote(following.id)} of type '{following.type}' was provided without its required"
            yield Problem(f"{following.path}.id", f"{seen} 'reasoning' item: that in front of it has no id")


def _split_exchanges(request: ResponsesRequest) -> Iterator[list[Item]]:
    """Split the items at user, system and developer messages."""
    exchange: list[Item] = []
    for item in request.items:
        if item.type == "message" and not item.is_assistant:
            yield exchange
            exchange = []
        else:
            exchange.append(item)
    yield exchange


def _items_without_reasoning(request: ResponsesRequest) -> Iterator[Item]:
    """Yield model items with an id and no reasoning before them in their exchange."""
    if not request.is_stored:
        return
    for exchange in _split_exchanges(request):
        for item in exchange:
            if item.is_reasoning:
                break
            if has_text(item.id) and (item.is_assistant or item.type in _CALLS):
                yield item


@table.rule("OAI-RESP-08", severity="risk", applies_to=REASONING)
def calls_keep_reasoning(request: ResponsesRequest) -> Iterator[Problem]:
    """A call that was generated with reasoning and has its id has the reasoning before it.

    A body does not show which calls were generated with reasoning; omitting the ids is safe.
    """
    for item in _items_without_reasoning(request):
        if item.type in _CALLS:
            seen = f"Item {quote(item.id)} of type '{item.type}' has no 'reasoning' item before it"
            yield Problem(f"{item.path}.id", f"{seen}; if it was generated with one, omit the id")


@table.rule("OAI-RESP-09", severity="risk", applies_to=REASONING)
def messages_keep_reasoning(request: ResponsesRequest) -> Iterator[Problem]:
    """A message that was generated with reasoning and has its id has the reasoning before it."""
    for item in _items_without_reasoning(request):
        if item.is_assistant:
            seen = f"Item {quote(item.id)} of type 'message' has no 'reasoning' item before it"
            yield Problem(f"{item.path}.id", f"{seen}; if it was generated with one, omit the id")


@table.rule("OAI-RESP-09", severity="risk")
def messages_before_calls(request: ResponsesRequest) -> Iterator[Problem]:
    """The order is reasoning, message, call: no call is between reasoning and message."""
    separating_call = ""
    after_reasoning = False
    for item in request.items:
        if item.is_reasoning:
            after_reasoning, separating_call = True, ""
        elif item.type in _CLIENT_CALLS:
            separating_call = item.path if after_reasoning else ""
        elif item.is_assistant:
            if separating_call and has_text(item.id) and request.is_stored:
                seen = f"Item {quote(item.id)} is separated from its 'reasoning' item by {separating_call}"
                yield Problem(f"{item.path}.id", seen)
        elif not _is_made_by_model(item):
            after_reasoning, separating_call = False, ""


@table.rule("OAI-RESP-10")
def no_references_without_store(request: ResponsesRequest) -> Iterator[Problem]:
    """With store false no item is referenced by id only: reasoning has its encrypted_content."""
    if request.is_stored:
        return
    for item in request.items_of("reasoning", "item_reference"):
        if not has_text(item.id) or has_text(item.data.get("encrypted_content")):
            continue
        # Possibly stored earlier, or plain text for a compatible server.
        uncertain = request.is_continuation or (is_list(item.data.get("content")) and bool(item.data["content"]))
        severity: Severity = "risk" if uncertain else "reject"
        seen = f"Item with id {quote(item.id)} not found. Items are not persisted when `store` is set to false."
        yield Problem(item.path, seen, severity)


@table.rule("OAI-RESP-11", applies_to=OPENAI)
def encrypted_by_provider(request: ResponsesRequest) -> Iterator[Problem]:
    """encrypted_content is from this provider; a body does not show the account. Bedrock Mantle has its own."""
    prefix = _MANTLE_PREFIX if "openai.gpt-" in request.model.name else _ENCRYPTED_PREFIX
    for item in request.items_of("reasoning", "compaction"):
        path, value = f"{item.path}.encrypted_content", item.data.get("encrypted_content")
        if value is not None and not isinstance(value, str):
            if item.type == "reasoning":
                yield Problem(path, f"encrypted_content is {type_name(value)}; a string is expected")
        elif is_envelope(value):
            yield Problem(path, f"The encrypted content could not be verified: it is {ENVELOPE}")
        elif value and not value.startswith(prefix):
            seen = f"The encrypted content {quote(value)} could not be verified"
            yield Problem(path, f"{seen}: this provider's encrypted content begins with {prefix!r}", "risk")
