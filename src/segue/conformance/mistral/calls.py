"""Calls and results: their ids (MIS-01, MIS-02), their number (MIS-03) and their pairing (MIS-04 to 06)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from segue.conformance.chat_request import ChatRequest, Result, Turn
from segue.conformance.mistral.tokenizer import BEFORE_V11, V11, is_older_than
from segue.conformance.rule import Problem, RuleTable, Severity
from segue.conformance.values import has_text, quote, type_name

_ID = re.compile(r"[a-zA-Z0-9]{9}")

table: RuleTable[ChatRequest] = RuleTable()


@table.rule("MIS-01")
def ids_have_nine_characters(request: ChatRequest) -> Iterator[Problem]:
    """The id of a call or result is nine letters and digits; the API enforces it for every model."""
    for path, call_id in _ids(request):
        if has_text(call_id) and call_id != "null" and not _ID.fullmatch(call_id):
            yield Problem(path, f"Tool call id was {quote(call_id)} but must be a-z, A-Z, 0-9, with a length of 9.")


@table.rule("MIS-02")
def ids_present(request: ChatRequest) -> Iterator[Problem]:
    """A call and a result have an id other than the string null."""
    for path, call_id in _ids(request):
        if not has_text(call_id) or call_id == "null":
            seen = quote(call_id) if has_text(call_id) else type_name(call_id)
            yield Problem(path, f"the id is {seen}; a non-empty string other than 'null' is expected")


def _ids(request: ChatRequest) -> Iterator[tuple[str, object]]:
    for call in request.calls:
        yield f"{call.path}.id", call.id
    for message in request.messages:
        if message.role == "tool":
            yield f"{message.path}.tool_call_id", message.data.get("tool_call_id")


# MIS-15 covers calls in the first message: the API counts from the second message on.
def _counted_turns(request: ChatRequest) -> Iterator[Turn]:
    return (turn for turn in request.turns if turn.calls[0].message > 0)


def _stray_results(request: ChatRequest) -> Iterator[Result]:
    """Yield results without a call at a valid position, so that no rule about order reports them."""
    for result in request.orphans:
        index = result.message.index
        if index and request.messages[index - 1].role in ("assistant", "tool"):
            yield result


@table.rule("MIS-03", applies_to=V11)
def calls_have_results(request: ChatRequest) -> Iterator[Problem]:
    """Before the next assistant message, and at the end, every call has a result."""
    for turn in _counted_turns(request):
        # MIS-04 and MIS-05 cover surplus results, MIS-06 calls with the same id.
        known = turn.call_ids()
        calls = len(known) + sum(not has_text(call.id) for call in turn.calls)
        if len(turn.results) < calls:
            yield _count_problem(turn)


@table.rule("MIS-03", applies_to=BEFORE_V11)
def result_count_matches(request: ChatRequest) -> Iterator[Problem]:
    """Before v11 only the number of results is checked."""
    for turn in _counted_turns(request):
        if len(turn.results) != len(turn.calls):
            yield _count_problem(turn)
    for result in _stray_results(request):
        yield Problem(result.path, "Not the same number of function calls and responses: there is no call")


def _count_problem(turn: Turn) -> Problem:
    seen = f"{len(turn.calls)} and {len(turn.results)}"
    path = f"messages[{turn.calls[0].message}].tool_calls"
    return Problem(path, f"Not the same number of function calls and responses: {seen}")


@table.rule("MIS-04")
def results_match_calls(request: ChatRequest) -> Iterator[Problem]:
    """A result has the id of a call without a result."""
    # Before v11 ids are not compared; a stray result breaks MIS-03 there.
    severity: Severity = "risk" if is_older_than(11, request.model) else "reject"
    if severity == "reject":
        for result in _stray_results(request):
            yield Problem(result.path, f"Unexpected tool call id {quote(result.id)} in tool results")
    for turn in _counted_turns(request):
        known = turn.call_ids()
        for result in turn.results:
            if has_text(result.id) and result.id not in known:
                seen = f"Unexpected tool call id {quote(result.id)} in tool results"
                yield Problem(f"{result.path}.tool_call_id", seen, severity)


@table.rule("MIS-05")
def one_result_per_call(request: ChatRequest) -> Iterator[Problem]:
    """No call has two results."""
    older = is_older_than(11, request.model)
    for turn in _counted_turns(request):
        open_results = Counter(call.id for call in turn.calls if has_text(call.id))
        if not older:
            open_results = Counter(open_results.keys())
        for result in turn.results:
            if not has_text(result.id) or result.id not in open_results:
                continue
            if not open_results[result.id]:
                seen = f"Duplicate tool call id {quote(result.id)} in tool results"
                yield Problem(f"{result.path}.tool_call_id", seen, "risk" if older else None)
            else:
                open_results[result.id] -= 1


@table.rule("MIS-06")
def ids_unique_in_message(request: ChatRequest) -> Iterator[Problem]:
    """The calls of one assistant message have different ids; a later message may use them again."""
    severity: Severity = "risk" if is_older_than(11, request.model) else "reject"
    for turn in _counted_turns(request):
        seen: set[str] = set()
        for call in turn.calls:
            if has_text(call.id) and call.id in seen:
                reason = f"Duplicate tool call id {quote(call.id)} in assistant message"
                yield Problem(f"{call.path}.id", reason, severity)
            elif has_text(call.id):
                seen.add(call.id)
