"""Anthropic's errors about compaction blocks and compaction requests: most have a code in their details."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from segue.conformance.anthropic.compaction import MIN_TRIGGER
from segue.conformance.anthropic.types import BLOCKS
from segue.conformance.values import is_object
from segue.emulator.errors.anthropic_blocks import find_block, invalid_request, schema_path
from segue.emulator.errors.broken_rule import BrokenRule, ErrorBuilder, RuleError
from segue.emulator.errors.pydantic_style import EMPTY_STRING, EXTRA, tag_message, type_message
from segue.wire.base import ApiError
from segue.wire.json_values import object_list

ON_DEMAND_BETA = "compact-2026-09-04"
THRESHOLD_BETA = "compact-2026-01-12"
CONTENT_MISMATCH = "compaction_content_mismatch"
SIGNATURE_INVALID = "compaction_signature_invalid"
TOOL_CHANGES_MISMATCH = "compaction_tool_changes_mismatch"
_MISPLACED = "`compaction` block must be sent first, in place of the messages it summarizes; remove those messages"
_AS_RETURNED = "send the `compaction` block exactly as it was returned"
_CHANGED = {
    CONTENT_MISMATCH: f"`content` differs from the text that the `signature` was made for; {_AS_RETURNED}",
    SIGNATURE_INVALID: f"Invalid `signature` in `compaction` block; {_AS_RETURNED}",
    TOOL_CHANGES_MISMATCH: f"`tool_changes` differs from what was returned with the block; {_AS_RETURNED}",
}


def _coded_error(code: str, message: str) -> ApiError:
    return ApiError(400, message, "invalid_request_error", code)


def _at_block(code: str, message: str) -> ErrorBuilder:
    return lambda broken: _coded_error(code, f"{find_block(broken)[0]}: {message}")


def _changed_error(broken: BrokenRule) -> ApiError:
    """ANT-45. The provider's own violation has the code as its message."""
    code = broken.message if broken.message in _CHANGED else SIGNATURE_INVALID
    return _coded_error(code, f"{find_block(broken)[0]}: {_CHANGED[code]}")


def _content_error(broken: BrokenRule) -> ApiError:
    """ANT-46"""
    if broken.value == "":
        return invalid_request(f"{schema_path(broken)}: {EMPTY_STRING}")
    kind = "list" if broken.steps[-1:] == ("tool_changes",) else "string"
    return invalid_request(f"{schema_path(broken)}: {type_message(kind)}")


def validate_betas(body: Mapping[str, Any], betas: str, *, counting: bool) -> ApiError | None:
    """Return the error for a compaction that needs a header which the request does not have."""
    management = body.get("context_management")
    edits = object_list(management.get("edits")) if is_object(management) else []
    has_threshold = any(edit.get("type") == "compact_20260112" for edit in edits)
    if has_threshold and THRESHOLD_BETA not in betas:
        return invalid_request(f"context_management: {EXTRA}")
    if body.get("compaction") is not None and ON_DEMAND_BETA not in betas and not counting:
        return invalid_request(f"compaction: the `compaction` parameter requires anthropic-beta: {ON_DEMAND_BETA}")
    for at, message in enumerate(object_list(body.get("messages"))):
        for index, block in enumerate(object_list(message.get("content"))):
            signed = block.get("type") == "compaction" and block.get("signature") is not None
            if signed and ON_DEMAND_BETA not in betas:
                expected = tag_message("compaction", sorted(BLOCKS.keys() - {"compaction"}))
                return invalid_request(f"messages.{at}.content.{index}: {expected}")
    return None


COMPACTION_ERRORS: Mapping[str, RuleError] = {
    "ANT-43": _at_block("compaction_block_ambiguous", "only one `compaction` block may be sent; send the newest"),
    "ANT-44": _coded_error("compaction_block_misplaced", _MISPLACED),
    "ANT-45": _changed_error,
    "ANT-46": _content_error,
    "ANT-47": lambda broken: invalid_request(f"{broken.dotted_path}: cannot be combined with `compaction`"),
    "ANT-48": lambda broken: _coded_error(
        "compaction_incomplete_turn",
        f"messages.{broken.message_index}: the conversation ends on an unfinished `assistant` turn; send its tool "
        "results, then compact",
    ),
    "ANT-49": _coded_error(
        "compaction_nothing_to_summarize", "messages: there is no `user` or `assistant` content to summarize"
    ),
    "ANT-52": lambda broken: invalid_request(
        f"context_management.edits.{broken.message_index}.compact_20260112: trigger.value must be at least "
        f"{MIN_TRIGGER}"
    ),
}
