"""Anthropic's error texts about tool calls, results and thinking blocks, and the paths in them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, TypeAlias, get_args

from msgspec.structs import replace

from segue.conformance.rule import Violation
from segue.conformance.values import is_object, text_or_empty
from segue.emulator.errors.broken_rule import BrokenRule, ErrorBuilder, member
from segue.emulator.errors.pydantic_style import MISSING, type_message
from segue.wire.base import ApiError
from segue.wire.json_values import list_or_empty

PrefixPart: TypeAlias = Literal["system", "tools", "messages"]

_PAIRED = "Each `tool_use` block must have a corresponding `tool_result` block in the next message."
_COUNTED = "Messages following `tool_use` blocks must begin with a matching number of `tool_result` blocks."
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
_TAGGED = ("source", "thinking", "tool_choice")
_PREFIX_DIFFERENCES: Mapping[str, str] = {
    "system": "The `system` prompt differs from the one this block was created with.",
    "tools": "The `tools` list differs from the one this block was created with.",
    "messages": "Content that preceded this block when it was created is missing from this request, starting at "
    "`messages.0.content.0`.",
}


def invalid_request(message: str) -> ApiError:
    return ApiError(400, message, "invalid_request_error")


def move_violation(violation: Violation, steps: Sequence[str | int]) -> Violation:
    """Return the violation with another path."""
    path = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps)
    return replace(violation, path=path.removeprefix("."))


def schema_path(broken: BrokenRule) -> str:
    return tagged_path(broken.body, broken.steps)


def tagged_path(body: Mapping[str, Any], steps: Sequence[str | int]) -> str:
    """Format a path as the schema does: with the tag of each tagged object, `custom` for a tool."""
    parts: list[str] = []
    value: Any = body
    for at, step in enumerate(steps):
        parts.append(str(step))
        value = BrokenRule(value, ()).value_at(step)
        above = steps[at - 1] if at and isinstance(step, int) else ""
        if at + 1 < len(steps) and (step in _TAGGED or above in ("tools", "content")):
            tag = member(value, "type")
            tag = "custom" if tag is None and above == "tools" else text_or_empty(tag)
            parts += [tag] if tag else []
    return ".".join(parts)


def find_block(broken: BrokenRule) -> tuple[str, object]:
    """Return path and value of the block at or above the path. String content counts as one block."""
    steps = broken.steps
    if len(steps) > 3 and isinstance(steps[3], int):
        return ".".join(map(str, steps[:4])), broken.value_at(*steps[:4])
    place = ".".join(map(str, steps[:2]))
    return f"{place}.content.0", {"type": "text"}


def _message_role(broken: BrokenRule) -> str:
    """Return the role of the message in the path."""
    return text_or_empty(broken.value_at("messages", broken.message_index, "role"))


def _ids(broken: BrokenRule, index: int) -> Iterator[str]:
    """Yield the ids of all calls or results in this message that break the rule."""
    for single in broken.singles:
        if single.message_index == index:
            _, block = find_block(single)
            yield text_or_empty(member(block, "id")) or text_or_empty(member(block, "tool_use_id"))


# ------------------------------------------------------------------------------------------------------- calls, results


def _wrong_role_error(broken: BrokenRule, role: str) -> ApiError:
    kind = text_or_empty(member(find_block(broken)[1], "type"))
    return invalid_request(f"messages.{broken.message_index}: `{kind}` blocks can only be in `{role}` messages")


def _missing_results_error(broken: BrokenRule, index: int, ids: Sequence[str]) -> ApiError:
    """ANT-04; ANT-40 if text follows the calls and another message comes after."""
    types = [member(block, "type") for block in list_or_empty(broken.value_at("messages", index, "content"))]
    types_after_call = types[types.index("tool_use") :] if "tool_use" in types else []
    if "text" in types_after_call and len(list_or_empty(broken.value_at("messages"))) > index + 1:
        return _too_few_results_error(index + 1, len(ids))
    problem = "`tool_use` ids were found without `tool_result` blocks immediately after"
    return invalid_request(f"messages.{index}: {problem}: {', '.join(ids)}. {_PAIRED}")


def _too_few_results_error(index: int, count: int) -> ApiError:
    missing = f"Did not find {count} `tool_result` block(s) at the beginning of this message."
    return invalid_request(f"messages.{index}: {missing} {_COUNTED}")


def _call_error(broken: BrokenRule) -> ApiError:
    """ANT-04"""
    if _message_role(broken) != "assistant":
        return _wrong_role_error(broken, "assistant")
    index = broken.message_index
    return _missing_results_error(broken, index, list(_ids(broken, index)))


def _late_result_error(broken: BrokenRule) -> ApiError:
    """ANT-05: reported on the message with the calls."""
    index = broken.message_index
    ids = list(_ids(broken, index))
    call_index = index
    while call_index > 0 and broken.value_at("messages", call_index, "role") != "assistant":
        call_index -= 1
    return _missing_results_error(broken, call_index, ids)


def _older_pairing_error(broken: BrokenRule) -> ApiError:
    """ANT-06, ANT-40"""
    return _too_few_results_error(broken.message_index, len(broken.violations))


def _orphan_result_error(broken: BrokenRule, call: str, where: str) -> ApiError:
    place, block = find_block(broken)
    kind, name = text_or_empty(member(block, "type")), text_or_empty(member(block, "tool_use_id"))
    problem = f"{place}: unexpected `tool_use_id` found in `{kind}` blocks: {name}."
    return invalid_request(f"{problem} Each `{kind}` block must have a corresponding `{call}` block {where}.")


def _result_error(broken: BrokenRule) -> ApiError:
    """ANT-07"""
    if _message_role(broken) != "user":
        return _wrong_role_error(broken, "user")
    return _orphan_result_error(broken, "tool_use", "in the previous message")


def _duplicate_result_error(broken: BrokenRule) -> ApiError:
    """ANT-08"""
    place, block = find_block(broken)
    problem = f"Found multiple `tool_result` blocks with id: {text_or_empty(member(block, 'tool_use_id'))}"
    return invalid_request(f"{place}: each tool_use must have a single result. {problem}")


def _unanswered_server_tool_error(broken: BrokenRule) -> ApiError:
    """ANT-09: the name of the tool gives the type of the missing result."""
    place, block = find_block(broken)
    name = text_or_empty(member(block, "name"))
    tool = f"`{name}` tool use with id `{text_or_empty(member(block, 'id'))}`"
    return invalid_request(f"{place}: {tool} was found without a corresponding `{name}_tool_result` block")


def _server_tool_error(call: str) -> ErrorBuilder:
    """ANT-09, ANT-10"""

    def build(broken: BrokenRule) -> ApiError:
        kind = member(find_block(broken)[1], "type")
        if kind == "tool_result":
            return _result_error(broken)
        if kind == call and _message_role(broken) == "assistant":
            return _unanswered_server_tool_error(broken)
        if kind == call or _message_role(broken) != "assistant":
            return _wrong_role_error(broken, "assistant")
        return _orphan_result_error(broken, call, "before it")

    return build


def _duplicate_id_error(broken: BrokenRule) -> ApiError:
    """ANT-03"""
    return invalid_request(f"{find_block(broken)[0]}: `tool_use` ids must be unique")


# ------------------------------------------------------------------------------------------------------------- thinking


def _block_type(broken: BrokenRule) -> str:
    block = find_block(broken)[1]
    return text_or_empty(block.get("type")) if is_object(block) else "thinking"


def _field_message(broken: BrokenRule, key: str) -> str:
    """Return the schema's error text for a string field of the block, `""` if it is valid."""
    if broken.steps[-1:] != (key,):
        return ""
    block = broken.value_at(*broken.steps[:-1])
    if is_object(block) and key not in block:
        return f"{schema_path(broken)}: {MISSING}"
    return "" if isinstance(broken.value, str) else f"{schema_path(broken)}: {type_message('string')}"


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
    if _message_role(broken) != "assistant":
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


BLOCK_ERRORS: Mapping[str, ErrorBuilder] = {
    "ANT-03": _duplicate_id_error,
    "ANT-04": _call_error,
    "ANT-05": _late_result_error,
    "ANT-06": _older_pairing_error,
    "ANT-07": _result_error,
    "ANT-08": _duplicate_result_error,
    "ANT-09": _server_tool_error("server_tool_use"),
    "ANT-10": _server_tool_error("mcp_tool_use"),
    "ANT-40": _older_pairing_error,
    "ANT-24": _thinking_first_error,
    "ANT-25": _thinking_changed_error,
    "ANT-26": _signature_error,
    "ANT-27": _final_thinking_error,
    "ANT-28": _prefix_error,
    "ANT-31": _signature_error,
}
