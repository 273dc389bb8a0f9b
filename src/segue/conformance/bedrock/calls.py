"""Ids, names, calls and results of Converse bodies: BED-01 to BED-05, MIS-01, and ANT-01, ANT-03 and ANT-41 for Claude.

Consecutive messages of one role count as one. A result pairs with a call in the assistant message directly before it.
The results of hosted tools (`type` is `server_tool_use`) are in the assistant message itself.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import pairwise

from segue.conformance.anthropic.tools import find_invalid_properties
from segue.conformance.bedrock.models import CLAUDE, OTHER_MISTRAL, TAKE_MOST_IDS, is_claude
from segue.conformance.bedrock.request import BedrockRequest, Block, MergedMessage
from segue.conformance.lookup import list_entries, member
from segue.conformance.rule import Problem, RuleTable
from segue.conformance.values import quote
from segue.specs.types import find_mismatches, load_types

table: RuleTable[BedrockRequest] = RuleTable()

_CLAUDE_ID = re.compile(r"[a-zA-Z0-9_-]+")
_ALPHANUMERIC = re.compile(r"[a-zA-Z0-9]")
_MISTRAL_LENGTH = 9
_MISTRAL_ID = re.compile(r"[a-zA-Z0-9]{9}")
_NO_MESSAGE = MergedMessage("", [])
_MODEL_ERROR_PREFIX = "The model returned the following errors:"


@table.rule("BED-01")
def ids_valid(request: BedrockRequest) -> Iterator[Problem]:
    """toolUseId is 1 to 64 letters, digits, `_`, `.`, `:` and `-`, on calls and on results."""
    yield from request.problems.get("BED-01", ())


def _valid_ids(request: BedrockRequest) -> Iterator[tuple[str, str]]:
    """Yield the ids that the service itself accepts, with their paths."""
    for _, block in request.blocks_of("toolUse", "toolResult"):
        if not any(find_mismatches(load_types("bedrock")["ToolUseId"], block.data.get("toolUseId"))):
            yield f"{block.path}.toolUseId", block.id


@table.rule("ANT-01", applies_to=CLAUDE)
def claude_ids_valid(request: BedrockRequest) -> Iterator[Problem]:
    """Claude's own API also checks the ids: letters, digits, `_` and `-`."""
    for path, name in _valid_ids(request):
        if not _CLAUDE_ID.fullmatch(name):
            seen = f"String should match pattern '{_CLAUDE_ID.pattern}'; the id is {quote(name)}"
            yield Problem(path, f"{_MODEL_ERROR_PREFIX} {seen}")


@table.rule("MIS-01", applies_to=TAKE_MOST_IDS)
def mistral_ids_have_nine_characters(request: BedrockRequest) -> Iterator[Problem]:
    """The ids of these models have at least nine letters and digits, and may have other characters."""
    return _check_mistral_ids(request, lambda name: len(_ALPHANUMERIC.findall(name)) >= _MISTRAL_LENGTH)


@table.rule("MIS-01", severity="risk", applies_to=OTHER_MISTRAL)
def mistral_ids_valid(request: BedrockRequest) -> Iterator[Problem]:
    """Mistral's own ids are nine letters and digits; which of its models accept others here is not known."""
    return _check_mistral_ids(request, lambda name: _MISTRAL_ID.fullmatch(name) is not None)


def _check_mistral_ids(request: BedrockRequest, is_valid: Callable[[str], bool]) -> Iterator[Problem]:
    for path, name in _valid_ids(request):
        if not is_valid(name):
            seen = f"Tool call id was {quote(name)} but must be a-z, A-Z, 0-9, with a length of 9."
            yield Problem(path, f"{_MODEL_ERROR_PREFIX} {seen}")


def _repeated_ids(request: BedrockRequest) -> Iterator[tuple[Block, str, bool]]:
    """Yield the calls with the id of an earlier one, that one's path, and whether both are in one turn."""
    last: dict[str, tuple[int, str]] = {}
    for turn, merged in enumerate(request.merged_messages):
        for block in merged.blocks_of("toolUse"):
            if block.id in last:
                last_turn, path = last[block.id]
                yield block, path, last_turn == turn
            if block.id:
                last[block.id] = (turn, block.path)


@table.rule("ANT-03", applies_to=CLAUDE)
def claude_ids_unique(request: BedrockRequest) -> Iterator[Problem]:
    """No two calls of a turn of Claude have the same id."""
    for block, path, same_turn in _repeated_ids(request):
        if same_turn:
            seen = f"`tool_use` ids must be unique; {quote(block.id)} is already the id of {path}"
            yield Problem(f"{block.path}.toolUseId", f"{_MODEL_ERROR_PREFIX} {seen}")


@table.rule("ANT-41", applies_to=CLAUDE)
def claude_properties_valid(request: BedrockRequest) -> Iterator[Problem]:
    """The top-level properties of a tool for Claude are named with 1 to 64 letters, digits, `_`, `.` and `-`."""
    for path, tool in list_entries(member(request.body, "toolConfig", "tools"), "toolConfig.tools"):
        message = find_invalid_properties(member(tool, "toolSpec", "inputSchema", "json"))
        if message is not None:
            yield Problem(f"{path}.toolSpec.inputSchema.json.properties", f"{_MODEL_ERROR_PREFIX} {message}")


@table.rule("BED-02")
def names_valid(request: BedrockRequest) -> Iterator[Problem]:
    """Tool names are 1 to 64 letters, digits, `_` and `-`, declared, chosen and replayed."""
    yield from request.problems.get("BED-02", ())


@table.rule("BED-03")
def tools_declared(request: BedrockRequest) -> Iterator[Problem]:
    """If messages contain calls or results, tools are declared."""
    if "toolConfig" not in request.body and any(request.blocks_of("toolUse", "toolResult")):
        seen = "The toolConfig field must be defined when using toolUse and toolResult content blocks."
        yield Problem("toolConfig", seen)


@table.rule("BED-04")
def calls_have_results(request: BedrockRequest) -> Iterator[Problem]:
    """Each toolUse is in an assistant message and has its toolResult in the next user message."""
    all_messages = [*request.merged_messages, _NO_MESSAGE]
    for merged, following in pairwise(all_messages):
        answered = {block.id for block in following.blocks_of("toolResult")} if following.role == "user" else set[str]()
        last = merged.messages[-1].index if merged.messages else 0
        for block in merged.calls():
            if merged.role != "assistant":
                yield Problem(
                    block.path, f"toolUse blocks are not allowed in {merged.role} messages: {quote(block.id)}"
                )
            elif block.id and block.id not in answered:
                place = f"messages.{last + 1}.content"
                yield Problem(block.path, f"Expected toolResult blocks at {place} for the following Ids: {block.id}")


@table.rule("BED-05")
def results_match_calls(request: BedrockRequest) -> Iterator[Problem]:
    """Each toolResult is in a user message and the only one for a toolUse of the assistant message before."""
    before = _NO_MESSAGE
    for merged in request.merged_messages:
        waiting = {block.id for block in before.calls()} if before.role == "assistant" else set[str]()
        hosted_ids = {block.id for block in merged.blocks_of("toolUse") if not block.is_call}
        for message in merged.messages:
            place = f"messages.{message.index}.content"
            for block in message.blocks:
                if block.type != "toolResult" or (merged.role == "assistant" and block.id in hosted_ids):
                    continue
                if merged.role != "user":
                    yield Problem(block.path, f"toolResult blocks are not allowed in {merged.role} messages: {place}")
                elif block.id and block.id not in waiting:
                    reason = f"The number of toolResult blocks at {place} exceeds the number of toolUse blocks"
                    yield Problem(block.path, f"{reason} of previous turn: no open call has the id {quote(block.id)}.")
                waiting.discard(block.id)
        before = merged


@table.rule("BED-05", severity="risk")
def ids_unique(request: BedrockRequest) -> Iterator[Problem]:
    """No two calls have the same id: their results can be exchanged. Claude rejects it in one turn (ANT-03)."""
    for block, path, same_turn in _repeated_ids(request):
        if not (same_turn and is_claude(request.model)):
            seen = f"{quote(block.id)} is already the id of {path}; results may be paired wrongly"
            yield Problem(f"{block.path}.toolUseId", seen)
