"""Anthropic's error texts about calls and results, and the paths in them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from msgspec.structs import replace

from segue.conformance.rule import Violation
from segue.conformance.values import is_list, is_object, text_of
from segue.emulator.wording.fault import Fault, Word
from segue.wire.base import ApiError

__all__ = ["TURNS", "block_of", "refused", "role_of", "spot", "whole"]

_PAIRED = "Each `tool_use` block must have a corresponding `tool_result` block in the next message."
_COUNTED = "Messages following `tool_use` blocks must begin with a matching number of `tool_result` blocks."


def refused(message: str) -> ApiError:
    return ApiError(400, message, "invalid_request_error")


def _list(value: object) -> Sequence[object]:
    return value if is_list(value) else ()


def _member(value: object, key: str) -> object:
    return value.get(key) if is_object(value) else None


def whole(violation: Violation, steps: Sequence[str | int]) -> Violation:
    """Returns the violation with another path."""
    path = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps)
    return replace(violation, path=path.removeprefix("."))


def spot(fault: Fault) -> str:
    """Formats a path as the schema does: with the type of each block, `custom` for a tool."""
    steps = fault.steps
    parts: list[str] = []
    for at, step in enumerate(steps):
        parts.append(str(step))
        if isinstance(step, int) and at + 1 < len(steps):
            kind = text_of(fault.at(*steps[: at + 1], "type"))
            if steps[at - 1] == "tools":
                parts.append(kind or "custom")
            elif steps[at - 1] == "content" and kind:
                parts.append(kind)
    return ".".join(parts)


def block_of(fault: Fault) -> tuple[str, object]:
    """Returns path and value of the block at or above the path. String content counts as one block."""
    steps = fault.steps
    if len(steps) > 3 and isinstance(steps[3], int):
        return ".".join(map(str, steps[:4])), fault.at(*steps[:4])
    place = ".".join(map(str, steps[:2]))
    return f"{place}.content.0", {"type": "text"}


def _message_at(fault: Fault) -> int:
    return next((step for step in fault.steps[:2] if isinstance(step, int)), 0)


def role_of(fault: Fault) -> str:
    """Returns the role of the message in the path."""
    return text_of(fault.at("messages", _message_at(fault), "role"))


def _ids(fault: Fault, index: int) -> Iterator[str]:
    """Yields the ids of all calls or results in this message that break the rule."""
    for violation in fault.violations:
        single = Fault(fault.body, (violation,))
        if _message_at(single) == index:
            _, block = block_of(single)
            yield text_of(_member(block, "id")) or text_of(_member(block, "tool_use_id"))


def _only_in(fault: Fault, role: str) -> ApiError:
    kind = text_of(_member(block_of(fault)[1], "type"))
    return refused(f"messages.{_message_at(fault)}: `{kind}` blocks can only be in `{role}` messages")


def _unanswered(fault: Fault, index: int, ids: Sequence[str]) -> ApiError:
    """ANT-04; ANT-40 if text follows the calls and another message comes after."""
    types = [_member(block, "type") for block in _list(fault.at("messages", index, "content"))]
    behind = types[types.index("tool_use") :] if "tool_use" in types else []
    if "text" in behind and len(_list(fault.at("messages"))) > index + 1:
        return _too_few(index + 1, len(ids))
    found = "`tool_use` ids were found without `tool_result` blocks immediately after"
    return refused(f"messages.{index}: {found}: {', '.join(ids)}. {_PAIRED}")


def _too_few(index: int, count: int) -> ApiError:
    missing = f"Did not find {count} `tool_result` block(s) at the beginning of this message."
    return refused(f"messages.{index}: {missing} {_COUNTED}")


def _call(fault: Fault) -> ApiError:
    """ANT-04"""
    if role_of(fault) != "assistant":
        return _only_in(fault, "assistant")
    index = _message_at(fault)
    return _unanswered(fault, index, list(_ids(fault, index)))


def _late_result(fault: Fault) -> ApiError:
    """ANT-05: reported on the message with the calls."""
    index = _message_at(fault)
    ids = list(_ids(fault, index))
    calling = index
    while calling > 0 and fault.at("messages", calling, "role") != "assistant":
        calling -= 1
    return _unanswered(fault, calling, ids)


def _older(fault: Fault) -> ApiError:
    """ANT-06, ANT-40"""
    return _too_few(_message_at(fault), len(fault.violations))


def _stray(fault: Fault, call: str, where: str) -> ApiError:
    place, block = block_of(fault)
    kind, name = text_of(_member(block, "type")), text_of(_member(block, "tool_use_id"))
    found = f"{place}: unexpected `tool_use_id` found in `{kind}` blocks: {name}."
    return refused(f"{found} Each `{kind}` block must have a corresponding `{call}` block {where}.")


def _result(fault: Fault) -> ApiError:
    """ANT-07"""
    if role_of(fault) != "user":
        return _only_in(fault, "user")
    return _stray(fault, "tool_use", "in the previous message")


def _twice(fault: Fault) -> ApiError:
    """ANT-08"""
    place, block = block_of(fault)
    found = f"Found multiple `tool_result` blocks with id: {text_of(_member(block, 'tool_use_id'))}"
    return refused(f"{place}: each tool_use must have a single result. {found}")


def _of_server(call: str) -> Word:
    """ANT-09, ANT-10"""

    def word(fault: Fault) -> ApiError:
        kind = _member(block_of(fault)[1], "type")
        if kind == "tool_result":
            return _result(fault)
        if kind == call or role_of(fault) != "assistant":
            return _only_in(fault, "assistant")
        return _stray(fault, call, "before it")

    return word


def _same_id(fault: Fault) -> ApiError:
    """ANT-03"""
    return refused(f"{block_of(fault)[0]}: `tool_use` ids must be unique")


TURNS: Mapping[str, Word] = {
    "ANT-03": _same_id,
    "ANT-04": _call,
    "ANT-05": _late_result,
    "ANT-06": _older,
    "ANT-07": _result,
    "ANT-08": _twice,
    "ANT-09": _of_server("server_tool_use"),
    "ANT-10": _of_server("mcp_tool_use"),
    "ANT-40": _older,
}
