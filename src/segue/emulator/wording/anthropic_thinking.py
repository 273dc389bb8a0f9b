"""Anthropic's error texts about thinking blocks: missing, changed, not signed here, or from another conversation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias, get_args

from segue.conformance.values import is_object, text_of
from segue.emulator.wording.anthropic_turns import block_of, refused, role_of, spot
from segue.emulator.wording.fault import Fault, Word
from segue.wire.base import ApiError

__all__ = ["THINKING", "Differs", "bound_elsewhere"]

Differs: TypeAlias = Literal["system", "tools", "messages"]

_BEGINS = (
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
_DIFFERS: Mapping[str, str] = {
    "system": "The `system` prompt differs from the one this block was created with.",
    "tools": "The `tools` list differs from the one this block was created with.",
    "messages": "Content that preceded this block when it was created is missing from this request, starting at "
    "`messages.0.content.0`.",
}


def _type_of(fault: Fault) -> str:
    block = block_of(fault)[1]
    return text_of(block.get("type")) if is_object(block) else "thinking"


def _field(fault: Fault, key: str) -> str:
    """Returns the schema's error text for a string field of the block, `""` if it is valid."""
    if fault.steps[-1:] != (key,):
        return ""
    block = fault.at(*fault.steps[:-1])
    if is_object(block) and key not in block:
        return f"{spot(fault)}: Field required"
    return "" if isinstance(fault.value, str) else f"{spot(fault)}: Input should be a valid string"


def _begins(fault: Fault) -> ApiError:
    """ANT-24"""
    place, _ = block_of(fault)
    found = f"Expected `thinking` or `redacted_thinking`, but found `{_type_of(fault)}`."
    return refused(f"{place}.type: {found} {_BEGINS}")


def _changed(fault: Fault) -> ApiError:
    """ANT-25"""
    message = _field(fault, "thinking")
    if message:
        return refused(message)
    place, _ = block_of(fault)
    if role_of(fault) != "assistant":
        whose = place.rpartition(".")[0]
        return refused(f"{whose}: thinking blocks may only be in `assistant` messages")
    return refused(f"{place}: {_CHANGED}")


def _not_genuine(place: str, kind: str) -> str:
    return f"{place}: Invalid `{'data' if kind == 'redacted_thinking' else 'signature'}` in `{kind}` block"


def _unsigned(fault: Fault) -> ApiError:
    """ANT-26, ANT-31"""
    message = _field(fault, "signature") or _field(fault, "data")
    return refused(message or _not_genuine(block_of(fault)[0], _type_of(fault)))


def _at_the_end(fault: Fault) -> ApiError:
    """ANT-27"""
    found = f"an `assistant` message in the final position cannot contain `{_type_of(fault)}`."
    advice = "To use thinking blocks, enable `thinking` in your request."
    return refused(f"{block_of(fault)[0]}: When thinking is disabled, {found} {advice}")


def bound_elsewhere(path: str, differs: Differs | None, *, beta: bool = False) -> ApiError:
    """ANT-28, for the block at this path; the last sentence names the part of the prompt that differs.

    `beta`: the request has the header that the setting requires.
    """
    place = ".".join(path.replace("[", ".").replace("]", "").split(".")[:4])
    sentences = [
        f"{_not_genuine(place, 'thinking')}.",
        _BOUND,
        "" if beta else _HEADER,
        _DIFFERS.get(differs or "", ""),
    ]
    return refused(" ".join(sentence for sentence in sentences if sentence))


def _bound(fault: Fault) -> ApiError:
    """ANT-28; the violation's message is the part of the prompt that differs, if it is a `PrefixPart`."""
    different_part = next((word for word in get_args(Differs) if word == fault.message), None)
    return bound_elsewhere(block_of(fault)[0], different_part)


THINKING: Mapping[str, Word] = {
    "ANT-24": _begins,
    "ANT-25": _changed,
    "ANT-26": _unsigned,
    "ANT-27": _at_the_end,
    "ANT-28": _bound,
    "ANT-31": _unsigned,
}
