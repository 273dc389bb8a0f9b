"""Steps that the `reply.py` of the wires share: usage counts, and blocks that the client's API cannot represent."""

from __future__ import annotations

from collections.abc import Iterable

from segue.canonical.blocks import Block, Media, Text, ToolCall, ToolResponse
from segue.error_kinds import OVERLOAD_CODES
from segue.errors import format_count
from segue.render.report import Report
from segue.wire.base import ApiError
from segue.wire.json_values import JsonObject, integer_or_none, object_or_none
from segue.wire.media import describe_unsupported


def has_client_calls(blocks: Iterable[Block]) -> bool:
    """Return whether a reply has tool calls that the client runs."""
    return any(isinstance(block, ToolCall) and block.kind != "hosted" for block in blocks)


def retryable_error(message: str) -> ApiError:
    """Return an error after which clients send the request again: they look for this kind, or for this text."""
    return ApiError(529, f"upstream connection error: {message}", "overloaded_error", error_kind="overloaded")


def permanent_error(message: str) -> ApiError:
    """Return an error after which clients do not send the request again, because it would fail in the same way."""
    return ApiError(400, message, error_kind="invalid")


def failed_finish_error(raw_finish: str | None) -> ApiError:
    """Return the error for a reply that the provider ended as failed, without an error of its own."""
    message = f"the provider ended the reply with `{raw_finish or 'error'}`"
    return retryable_error(message) if raw_finish in OVERLOAD_CODES else permanent_error(message)


def is_unnamed_call(block: Block) -> bool:
    """Return whether this is a complete call without a name, which no client can run."""
    return isinstance(block, ToolCall) and block.kind != "hosted" and not block.name and not block.broken


def unnamed_call_error(api: str) -> ApiError:
    """Return the error for a reply of this API with a call that has no name."""
    return permanent_error(f"not a reply of {api}: a tool call without a name")


def invalid_call_error(call: ToolCall) -> ApiError:
    """Return the error for a reply with a call whose arguments are incomplete or not valid JSON."""
    return permanent_error(f"the model's arguments for the tool {call.name} are not valid JSON")


def token_count(usage: JsonObject, *path: str) -> int:
    """Return the count at a path of keys; 0 if it is missing."""
    *outer, key = path
    for name in outer:
        usage = object_or_none(usage.get(name)) or {}
    return integer_or_none(usage.get(key)) or 0


def count_output(usage: JsonObject, input_key: str, output_key: str, *, reasoning: int, cached: int) -> tuple[int, int]:
    """Return the output tokens with those of reasoning, and the latter: some vendors count them beside the output.

    Then they are in the total, also where they are not counted on their own (Gemini's Chat Completions).
    """
    output = token_count(usage, output_key)
    beside = token_count(usage, "total_tokens") - token_count(usage, input_key) - output
    if beside > 0 and (reasoning == beside or not (reasoning or cached)):
        return output + beside, beside
    return output, reasoning


def _is_from_api(block: Block, api: str) -> bool:
    """Return whether the block came from this API and its native fragment is unchanged."""
    return block.native is not None and block.native.intact and block.native.api == api


def is_hosted_from_api(block: Block, api: str) -> bool:
    return _is_hosted(block) and _is_from_api(block, api)


def report_if_foreign_hosted(block: Block, api: str, report: Report) -> bool:
    """Return whether this is a hosted call or result of another provider, and report it: the client cannot use it."""
    if not _is_hosted(block) or _is_from_api(block, api):
        return False
    tool = block.name if isinstance(block, ToolCall | ToolResponse) else None
    report.add("dropped", f"call of {tool or 'a hosted tool'} dropped: another provider ran it", subject=tool)
    return True


def report_extra_choices(count: int, report: Report) -> None:
    """Report choices after the first, which are not returned."""
    if count > 0:
        choices = format_count(count, "more choice")
        report.add("dropped", f"{choices} dropped: only the first is returned", subject="choices")


def _is_hosted(block: Block) -> bool:
    """Return whether a block belongs to a hosted tool, as every tool result in a reply does."""
    return (isinstance(block, ToolCall) and block.kind == "hosted") or isinstance(block, ToolResponse)


def media_as_text(block: Block, api: str, report: Report) -> Block:
    """Return the block, or a text in place of another API's media, which a reply of this API cannot contain."""
    if not isinstance(block, Media) or _is_from_api(block, api):
        return block
    report.add("text", f"{block.kind} rendered as text: a reply of this API cannot contain it", subject=block.kind)
    return Text(describe_unsupported(block))
