"""Servers of the Responses API: DeepSeek."""

from __future__ import annotations

from collections.abc import Iterator

from segue.conformance import openai_responses
from segue.conformance.openai_responses.request import PAIRS, Item, ResponsesRequest
from segue.conformance.profiles.profile import Profile
from segue.conformance.rule import Problem, RuleTable
from segue.conformance.values import has_text

_DEEPSEEK: RuleTable[ResponsesRequest] = RuleTable()
_OUTPUTS = frozenset(PAIRS.values())


@_DEEPSEEK.rule("DS-11")
def outputs_adjacent(request: ResponsesRequest) -> Iterator[Problem]:
    """The calls of a turn are directly followed by their outputs, in call order; no item is between them."""
    waiting: list[Item] = []
    answering = False
    for item in request.items:
        is_call = item.type in PAIRS and has_text(item.call_id)
        if is_call and not answering:
            waiting.append(item)
        elif waiting and item.type in _OUTPUTS and item.call_id == waiting[0].call_id:
            waiting.pop(0)
            answering = bool(waiting)
        elif waiting:
            seen = f"No tool output found for tool call {waiting[0].call_id}"
            yield Problem(waiting[0].path, f"{seen}: {item.path} is between the call and its output")
            waiting, answering = [item] if is_call else [], False


PROFILES = (
    Profile(
        "deepseek-responses",
        "DeepSeek, /v1/responses",
        _DEEPSEEK,
        # Reasoning is plain text and not bound to the item after it; ids are UUIDs, and not required.
        frozenset({"pairs_not_interrupted", "reasoning_followed", "calls_keep_reasoning", "messages_keep_reasoning"})
        | {"reasoning_keeps_id"}
        | {"messages_before_calls", "no_references_without_store", "item_ids_valid", "call_item_ids_valid"},
        frozenset({"options_in_range"}),
        base=openai_responses.RULE_SET,
    ),
)
