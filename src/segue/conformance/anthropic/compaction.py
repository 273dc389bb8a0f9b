"""Compaction blocks and compaction requests in Anthropic bodies: ANT-43 to ANT-49, and ANT-52.

A block with a signature was made on demand and replaces the messages that it summarizes; one without was made at a
threshold and follows them. A block without content is a compaction that failed: the server ignores it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from segue.conformance.anthropic.request import AnthropicRequest, Block
from segue.conformance.lookup import list_objects, member, object_or_empty
from segue.conformance.rule import Problem, RuleTable
from segue.conformance.values import ENVELOPE, has_text, is_envelope, is_list, is_object, quote, type_name

table: RuleTable[AnthropicRequest] = RuleTable()

MIN_TRIGGER = 50_000
_BASE64 = re.compile(r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?")


def _summaries(request: AnthropicRequest) -> list[Block]:
    """Return the blocks with content."""
    return [block for block in request.blocks_of("compaction") if block.data.get("content") is not None]


def _is_signed(block: Block) -> bool:
    return block.data.get("signature") is not None


def _is_ambiguous(summaries: list[Block]) -> bool:
    return len(summaries) > 1 and any(map(_is_signed, summaries))


@table.rule("ANT-43")
def one_summary(request: AnthropicRequest) -> Iterator[Problem]:
    """Beside a signed compaction block no other block has content; of unsigned ones the last counts."""
    summaries = _summaries(request)
    if _is_ambiguous(summaries):
        for block in summaries[:-1]:
            yield Problem(block.path, f"{summaries[-1].path} is a newer compaction block; send only that one")


@table.rule("ANT-44")
def summary_first(request: AnthropicRequest) -> Iterator[Problem]:
    """A signed compaction block is the first block of the first message; none is in a system message."""
    summaries = _summaries(request)
    first = next((message.blocks[0].path for message in request.messages if message.blocks), "")
    for block in () if _is_ambiguous(summaries) else summaries:
        if block.role == "system":
            yield Problem(block.path, "the compaction block is in a message with the role system")
        elif _is_signed(block) and block.path != first:
            yield Problem(block.path, "messages are in front of the signed compaction block, which replaces them")


@table.rule("ANT-45")
def summary_as_returned(request: AnthropicRequest) -> Iterator[Problem]:
    """The signature of a compaction block is the one that the server returned with it."""
    for block in _summaries(request):
        path, signature = f"{block.path}.signature", block.data.get("signature")
        if is_envelope(signature):
            yield Problem(path, f"the signature is {ENVELOPE}; send the summary as text")
        elif signature == "":
            yield Problem(path, "the signature is empty; send the block as the server returned it")
        elif isinstance(signature, str) and not _BASE64.fullmatch(signature):
            # Only the provider can verify it.
            seen = f"the signature {quote(signature)} is not base64"
            yield Problem(path, f"{seen}, so it is probably not from this provider; send the summary as text", "risk")


@table.rule("ANT-46")
def summary_content_valid(request: AnthropicRequest) -> Iterator[Problem]:
    """The content of a compaction block is a string that is not empty, or null; its opaque fields are strings."""
    for block in request.blocks_of("compaction"):
        for key in ("content", "encrypted_content", "signature"):
            value = block.data.get(key)
            if value is not None and not isinstance(value, str):
                yield Problem(f"{block.path}.{key}", f"{key} is {type_name(value)}; a string or null is expected")
        if block.data.get("content") == "":
            yield Problem(f"{block.path}.content", "content is an empty string; omit the block")
        changes = block.data.get("tool_changes")
        if changes is not None and not is_list(changes):
            yield Problem(f"{block.path}.tool_changes", f"tool_changes is {type_name(changes)}; a list is expected")


def _on_demand(request: AnthropicRequest) -> Mapping[str, object] | None:
    """Return the parameter of a compaction request."""
    parameter = request.body.get("compaction")
    return parameter if is_object(parameter) else None


def _output_config(request: AnthropicRequest) -> Mapping[str, object]:
    return object_or_empty(request.body.get("output_config"))


@table.rule("ANT-47")
def on_demand_alone(request: AnthropicRequest) -> Iterator[Problem]:
    """A compaction request has no context_management, stop_sequences, output format or forced tool.

    Neither it nor a request with a signed block says what remains of a task budget.
    """
    budget = _output_config(request).get("task_budget")
    remains = is_object(budget) and budget.get("remaining") is not None
    if remains and (_on_demand(request) is not None or any(map(_is_signed, _summaries(request)))):
        seen = "remaining can't be sent with a compaction"
        yield Problem("output_config.task_budget.remaining", seen)
    if _on_demand(request) is None:
        return
    for key in ("context_management", "stop_sequences"):
        if request.body.get(key):
            yield Problem(key, f"{key} can't be used together with compaction")
    if _output_config(request).get("format") is not None:
        yield Problem("output_config.format", "output_config.format can't be used together with compaction")
    choice = request.body.get("tool_choice")
    if is_object(choice) and choice.get("type") in ("any", "tool"):
        yield Problem("tool_choice.type", f"tool_choice {quote(choice['type'])} can't be used together with compaction")


@table.rule("ANT-48")
def on_demand_after_turn(request: AnthropicRequest) -> Iterator[Problem]:
    """A compaction request does not end on calls without results."""
    last = request.merged_messages[-1] if request.merged_messages else None
    if _on_demand(request) is None or last is None or last.role != "assistant":
        return
    results = (block.tool_use_id for block in last.blocks if block.type.endswith("_tool_result"))
    answered = {name for name in results if has_text(name)}
    for block in last.blocks:
        is_open = block.type == "server_tool_use" and has_text(block.id) and block.id not in answered
        if block.type == "tool_use" or is_open:
            yield Problem(block.path, f"the {block.type} {quote(block.id)} has no result yet; send it first")


@table.rule("ANT-49")
def on_demand_has_content(request: AnthropicRequest) -> Iterator[Problem]:
    """A compaction request has content of the user or the assistant, or a summary."""
    if _on_demand(request) is None or not is_list(request.body.get("messages")):
        return
    blocks = (block for message in request.messages if message.role != "system" for block in message.blocks)
    if all(block.type == "compaction" and block.data.get("content") is None for block in blocks):
        yield Problem("messages", "there is nothing to summarize: no message has content")


def _edits(request: AnthropicRequest) -> Iterator[tuple[str, Mapping[str, object]]]:
    """Yield the compaction edits of context_management with their paths."""
    edits = list_objects(member(request.body, "context_management", "edits"), "context_management.edits")
    return ((path, edit) for path, edit in edits if edit.get("type") == "compact_20260112")


@table.rule("ANT-52")
def threshold_valid(request: AnthropicRequest) -> Iterator[Problem]:
    """The trigger of compact_20260112 is 50,000 input tokens or more."""
    for path, edit in _edits(request):
        value = member(edit, "trigger", "value")
        if isinstance(value, int | float) and not isinstance(value, bool) and value < MIN_TRIGGER:
            yield Problem(f"{path}.trigger.value", f"value is {value}; {MIN_TRIGGER} or more is expected")


@table.rule("ANT-52", severity="risk")
def threshold_without_signed_block(request: AnthropicRequest) -> Iterator[Problem]:
    """compact_20260112 does not run on a request with a signed compaction block."""
    if any(map(_is_signed, _summaries(request))):
        for path, _ in _edits(request):
            yield Problem(path, "the threshold has no effect on a request with a signed compaction block")
