"""Ids, calls and results of Anthropic bodies: ANT-01 to ANT-10.

Consecutive messages of one role count as one. A result pairs only with a call in the message directly before it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from segue.conformance.anthropic.request import MCP_RESULT, SERVER_RESULTS, AnthropicRequest, Block, MergedMessage
from segue.conformance.rule import Problem, RuleTable, Severity
from segue.conformance.values import has_text, is_object, quote, type_name

table: RuleTable[AnthropicRequest] = RuleTable()

_ID = re.compile(r"[a-zA-Z0-9_-]+")
_SERVER_ID = re.compile(r"srvtoolu_[a-zA-Z0-9_]+")
_NO_MESSAGE = MergedMessage("", [])


def _with_neighbours(request: AnthropicRequest) -> Iterator[tuple[MergedMessage, MergedMessage, MergedMessage]]:
    """Yield each merged message with the one before and the one after; `_NO_MESSAGE` at the ends."""
    messages = [_NO_MESSAGE, *request.merged_messages, _NO_MESSAGE]
    yield from zip(messages, messages[1:], messages[2:], strict=False)


def _results(message: MergedMessage) -> list[Block]:
    return [block for block in message.blocks if block.type == "tool_result"]


@table.rule("ANT-01")
def client_ids_valid(request: AnthropicRequest) -> Iterator[Problem]:
    """tool_use.id and tool_result.tool_use_id are letters, digits, `_` and `-`."""
    for block_type, key in (("tool_use", "id"), ("tool_result", "tool_use_id")):
        for block in request.blocks_of(block_type):
            value = block.data.get(key)
            if not has_text(value):
                seen = type_name(value) if key in block.data else "missing"
                yield Problem(f"{block.path}.{key}", f"{key} is {seen}; letters, digits, '_' and '-' are expected")
            elif not _ID.fullmatch(value):
                seen = f"{key} {quote(value)} has characters other than letters, digits, '_' and '-'"
                yield Problem(f"{block.path}.{key}", seen)


@table.rule("ANT-02")
def server_ids_valid(request: AnthropicRequest) -> Iterator[Problem]:
    """The id of a server_tool_use is `srvtoolu_` and letters, digits or `_`."""
    for block in request.blocks_of("server_tool_use"):
        if not has_text(block.id) or not _SERVER_ID.fullmatch(block.id):
            yield Problem(f"{block.path}.id", f"the id is {quote(block.id)}; 'srvtoolu_' and letters are expected")


@table.rule("ANT-03")
def ids_unique(request: AnthropicRequest) -> Iterator[Problem]:
    """No two tool_use blocks of an assistant turn have the same id; in different turns it is a risk."""
    turn = 0
    last: dict[str, tuple[int, str]] = {}
    for message in request.merged_messages:
        turn += message.role == "user"
        for block in message.blocks:
            if block.type != "tool_use" or not has_text(block.id):
                continue
            if block.id in last:
                last_turn, place = last[block.id]
                severity: Severity = "reject" if last_turn == turn else "risk"
                yield Problem(f"{block.path}.id", f"{quote(block.id)} is already the id of {place}", severity)
            last[block.id] = (turn, block.path)


# ANT-04, ANT-40: also if text follows the call
@table.rule("ANT-04")
def calls_have_results(request: AnthropicRequest) -> Iterator[Problem]:
    """Each tool_use is in an assistant message and has its tool_result in the next user message.

    ANT-48 covers those at the end of a compaction request.
    """
    is_compacting = is_object(request.body.get("compaction"))
    for _, message, following in _with_neighbours(request):
        if following is _NO_MESSAGE and message.role == "assistant" and is_compacting:
            continue
        answers = _results(following) if following.role == "user" else []
        answered = {block.tool_use_id for block in answers if has_text(block.tool_use_id)}
        for block in message.blocks:
            if block.type != "tool_use":
                continue
            if message.role != "assistant":
                yield Problem(block.path, f"the call {quote(block.id)} is in a {message.role} message")
            elif has_text(block.id) and block.id not in answered:
                yield Problem(block.path, f"the next message has no tool_result for the call {quote(block.id)}")


# ANT-05, ANT-06, ANT-40
@table.rule("ANT-05")
def results_first(request: AnthropicRequest) -> Iterator[Problem]:
    """In the user message after a call the tool_result blocks come first."""
    for before, message, _ in _with_neighbours(request):
        if message.role != "user" or before.role != "assistant":
            continue
        waiting = before.ids("tool_use")
        other = ""
        for block in message.blocks:
            if block.type != "tool_result":
                other = other or block.path
            elif has_text(block.tool_use_id) and block.tool_use_id in waiting:
                waiting.discard(block.tool_use_id)
                if other:
                    yield Problem(
                        block.path, f"the result of {quote(block.tool_use_id)} comes after {other}; it must come first"
                    )


@table.rule("ANT-07")
def results_match_calls(request: AnthropicRequest) -> Iterator[Problem]:
    """A tool_result is in a user message and has the id of a tool_use in the assistant message before."""
    mcp_ids = {block.id for block in request.blocks_of("mcp_tool_use") if has_text(block.id)}
    thread = request.body.get("thread")
    for before, message, _ in _with_neighbours(request):
        # A continued thread: the provider stores the calls before its first message.
        if message is request.merged_messages[0] and is_object(thread) and thread.get("type") == "continue":
            continue
        call_ids = before.ids("tool_use") if before.role == "assistant" else set[str]()
        for block in _results(message):
            name = block.tool_use_id
            if message.role != "user":
                yield Problem(block.path, f"the result of {quote(name)} is in a {message.role} message")
            # ANT-10 covers results for calls of MCP tools.
            elif has_text(name) and name not in call_ids and name not in mcp_ids:
                yield Problem(block.path, f"the message before has no tool_use with the id {quote(name)}")


@table.rule("ANT-08")
def one_result_per_call(request: AnthropicRequest) -> Iterator[Problem]:
    """A call has one tool_result."""
    for message in request.merged_messages:
        first: dict[str, str] = {}
        for block in _results(message):
            name = block.tool_use_id
            if has_text(name) and first.setdefault(name, block.path) != block.path:
                yield Problem(block.path, f"{quote(name)} already has a result in {first[name]}")


@table.rule("ANT-09")
def server_results_follow_calls(request: AnthropicRequest) -> Iterator[Problem]:
    """The result of a server tool follows its server_tool_use in assistant content.

    A client tool call may come between the two (code execution that calls tools), user content may not.
    """
    for block in request.blocks_of("server_tool_use"):
        if block.role != "assistant":
            yield Problem(block.path, f"the server_tool_use {quote(block.id)} is in a {block.role} message")
    for block in _find_stray_results(request, "server_tool_use", SERVER_RESULTS):
        seen = f"there is no server_tool_use with the id {quote(block.tool_use_id)} before this {block.type}"
        yield Problem(block.path, seen)


@table.rule("ANT-09")
def server_calls_have_results(request: AnthropicRequest) -> Iterator[Problem]:
    """A server_tool_use has its result before the user writes again.

    It may be open at the end (the turn was paused), and while client tools run that the server tool called. A result
    of an unknown type counts.
    """
    results = request.blocks_of(*(name for name in request.blocks_by_type if name.endswith("_tool_result")))
    answered = {block.tool_use_id for block in results if has_text(block.tool_use_id)}
    open_calls: list[Block] = []
    for message in request.merged_messages:
        if message.has_user_content():
            for block in open_calls:
                yield Problem(block.path, f"the server_tool_use {quote(block.id)} has no result in this exchange")
            open_calls.clear()
        elif message.role == "assistant":
            open_calls += [
                block
                for block in message.blocks
                if block.type == "server_tool_use" and has_text(block.id) and block.id not in answered
            ]


@table.rule("ANT-10")
def mcp_blocks_in_assistant(request: AnthropicRequest) -> Iterator[Problem]:
    """Calls of MCP tools and their results are in assistant messages; they have no tool_result."""
    mcp_ids = {block.id for block in request.blocks_of("mcp_tool_use") if has_text(block.id)}
    client_ids = {block.id for block in request.blocks_of("tool_use") if has_text(block.id)}
    for block in request.blocks_of("mcp_tool_use"):
        if block.role != "assistant":
            yield Problem(block.path, f"the mcp_tool_use {quote(block.id)} is in a {block.role} message")
    for block in _find_stray_results(request, "mcp_tool_use", {MCP_RESULT}):
        yield Problem(block.path, f"there is no mcp_tool_use with the id {quote(block.tool_use_id)} before this result")
    for block in request.blocks_of("tool_result"):
        name = block.tool_use_id
        if has_text(name) and name in mcp_ids and name not in client_ids:
            yield Problem(
                block.path, f"{quote(name)} is an mcp_tool_use; its result comes from the server, not from the client"
            )


def _find_stray_results(request: AnthropicRequest, call: str, results: set[str] | frozenset[str]) -> Iterator[Block]:
    """Yield results without their call before them in the same exchange."""
    if not any(block_type in request.blocks_by_type for block_type in results):
        return
    call_ids: set[str] = set()
    for message in request.merged_messages:
        if message.has_user_content():
            call_ids.clear()
        for block in message.blocks:
            if block.type == call and message.role == "assistant" and has_text(block.id):
                call_ids.add(block.id)
            elif block.type in results:
                name = block.tool_use_id
                if message.role != "assistant" or not has_text(name) or name not in call_ids:
                    yield block
