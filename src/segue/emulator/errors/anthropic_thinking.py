"""Anthropic's error texts about thinking blocks: missing, changed, not signed here, or from another conversation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias, get_args

from segue.conformance.values import is_object, text_or_empty
from segue.emulator.errors.anthropic_pairing import find_block, invalid_request, message_role, schema_path
from segue.emulator.errors.broken_rule import BrokenRule, ErrorBuilder
from segue.wire.base import ApiError

__all__ = ["THINKING_ERRORS", "PrefixPart", "prefix_mismatch_error"]

PrefixPart: TypeAlias = Literal["system", "tools", "messages"]

_MUST_START = (
    "When `thinking` is enabled, a final `assistant` message must start with a thinking block (preceeding the lastmost "
    "set of `tool_use` and `tool_result` blocks). We recommend you include thinking blocks from previous turns. To "
    "avoid this requirement, disable `thinking`. Please consult our documentation at "
    "https://docs.claude.com/en/docs/build-with-claude/extended-thinking"
)
_CHANGED = (
    "`thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified. These blocks must "
    "remain as they were in the original response."
)
_BOUND = (
    "The block is bound to a different conversation. Remove the block, or set "
    '`thinking.block_binding.prefix_mismatch_behavior` to "drop_block".'
)
_HEADER = "That setting requires the `thinking-binding-controls-2026-08-01` value in the `anthropic-beta` header."
_PREFIX_DIFFERENCES: Mapping[str, str] = {
    "system": "The `system` prompt differs from the one this block was created with.",
    "tools": "The `tools` list differs from the one this block was created with.",
    "messages": "Content that preceded this block when it was created is missing from this request, starting at "
    "`messages.0.content.0`.",
}


def _block_type(broken: BrokenRule) -> str:
    block = find_block(broken)[1]
    return text_or_empty(block.get("type")) if is_object(block) else "thinking"


def _field_message(broken: BrokenRule, key: str) -> str:
    """Returns the schema's error text for a string field of the block, `""` if it is valid."""
    if broken.steps[-1:] != (key,):
        return ""
    block = broken.value_at(*broken.steps[:-1])
    if is_object(block) and key not in block:
        return f"{schema_path(broken)}: Field required"
    return "" if isinstance(broken.value, str) else f"{schema_path(broken)}: Input should be a valid string"


def _thinking_first_error(broken: BrokenRule) -> ApiError:
    """ANT-24"""
    place, _ = find_block(broken)
    problem = f"Expected `thinking` or `redacted_thinking`, but found `{_block_type(broken)}`."
    return invalid_request(f"{place}.type: {problem} {_MUST_START}")


def _thinking_changed_error(broken: BrokenRule) -> ApiError:
    """ANT-25"""
    message = _field_message(broken, "thinking")
    if message:
        return invalid_request(message)
    place, _ = find_block(broken)
    if message_role(broken) != "assistant":
        message_path = place.rpartition(".")[0]
        return invalid_request(f"{message_path}: thinking blocks may only be in `assistant` messages")
    return invalid_request(f"{place}: {_CHANGED}")


def _invalid_signature_message(place: str, kind: str) -> str:
    return f"{place}: Invalid `{'data' if kind == 'redacted_thinking' else 'signature'}` in `{kind}` block"


def _signature_error(broken: BrokenRule) -> ApiError:
    """ANT-26, ANT-31"""
    message = _field_message(broken, "signature") or _field_message(broken, "data")
    return invalid_request(message or _invalid_signature_message(find_block(broken)[0], _block_type(broken)))


def _final_thinking_error(broken: BrokenRule) -> ApiError:
    """ANT-27"""
    problem = f"an `assistant` message in the final position cannot contain `{_block_type(broken)}`."
    advice = "To use thinking blocks, enable `thinking` in your request."
    return invalid_request(f"{find_block(broken)[0]}: When thinking is disabled, {problem} {advice}")


def prefix_mismatch_error(path: str, differs: PrefixPart | None, *, beta: bool = False) -> ApiError:
    """ANT-28, for the block at this path; the last sentence names the part of the prompt that differs.

    `beta`: the request has the header that the setting requires.
    """
    place = ".".join(path.replace("[", ".").replace("]", "").split(".")[:4])
    sentences = [
        f"{_invalid_signature_message(place, 'thinking')}.",
        _BOUND,
        "" if beta else _HEADER,
        _PREFIX_DIFFERENCES.get(differs or "", ""),
    ]
    return invalid_request(" ".join(sentence for sentence in sentences if sentence))


def _prefix_error(broken: BrokenRule) -> ApiError:
    """ANT-28; the violation's message is the part of the prompt that differs, if it is a `PrefixPart`."""
    different_part = next((part for part in get_args(PrefixPart) if part == broken.message), None)
    return prefix_mismatch_error(find_block(broken)[0], different_part)


THINKING_ERRORS: Mapping[str, ErrorBuilder] = {
    "ANT-24": _thinking_first_error,
    "ANT-25": _thinking_changed_error,
    "ANT-26": _signature_error,
    "ANT-27": _final_thinking_error,
    "ANT-28": _prefix_error,
    "ANT-31": _signature_error,
}
