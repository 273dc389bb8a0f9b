"""Item types of calls, other than functions, whose output is a separate item: one `CallType` for each.

A `CallType` returns the tool name, the arguments and the result for other APIs. Same-API, call and output keep their
type if both are unchanged or `render_output` can build the output; otherwise both are sent as a function call and its
output, which the API accepts for any tool.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from msgspec import UNSET, Struct

from segue.canonical.blocks import Block, Text, ToolResponse
from segue.wire.json_values import JsonObject, object_or_none, string_or_none
from segue.wire.openai_responses.parts import parse_image_url
from segue.wire.openai_responses.required_fields import FOUNDRY_TOOLS

__all__ = ["CALL_TYPES", "CALL_TYPE_BY_OUTPUT", "CallType", "structured_output", "text_output"]


def _never(_item: JsonObject) -> bool:
    return False


def _always(_item: JsonObject) -> bool:
    return True


def _no_value(_item: JsonObject) -> Any:
    return UNSET


class CallType(Struct, frozen=True):
    """`is_hosted`: whether the provider runs the call; `id_optional`: hosted calls may have no `call_id`;
    `output_required`: a call without an output is rejected. If `tool_name` is empty, the name is a field of the item.
    """

    output_type: str
    tool_name: str
    arguments: Callable[[JsonObject], Any]
    content: Callable[[JsonObject], tuple[Block, ...]]
    is_error: Callable[[JsonObject], bool] = _never
    is_hosted: Callable[[JsonObject], bool] = _never
    render_output: Callable[[ToolResponse, str], JsonObject] | None = None
    id_optional: bool = False
    output_required: bool = False
    arguments_are_text: bool = False
    """Whether the arguments are JSON in a string."""
    structured: Callable[[JsonObject], Any] = _no_value
    """The output if it is JSON and not text."""
    is_pending: Callable[[JsonObject], bool] = _never

    def get_name(self, item: JsonObject) -> str:
        return self.tool_name or string_or_none(item.get("name")) or ""


def _get_field(name: str) -> Callable[[JsonObject], Any]:
    return lambda item: item.get(name, {})


def _pick_fields(*names: str) -> Callable[[JsonObject], Any]:
    return lambda item: {name: item[name] for name in names if name in item}


def _text_field(name: str) -> Callable[[JsonObject], tuple[Block, ...]]:
    return lambda item: (Text(string_or_none(item.get(name)) or ""),)


# ------------------------------------------------------------------------------------------------------------- outputs


def _screenshot(item: JsonObject) -> tuple[Block, ...]:
    output = object_or_none(item.get("output")) or {}
    picture = parse_image_url(output, output.get("image_url"), intact=False)
    return () if picture is None else (picture,)


def _object_list(value: object) -> list[JsonObject]:
    return [object_or_none(entry) or {} for entry in cast("list[object]", value)] if isinstance(value, list) else []


def _shell_output(item: JsonObject) -> tuple[Block, ...]:
    lines: list[str] = []
    for entry in _object_list(item.get("output")):
        lines += [text for key in ("stdout", "stderr") if (text := string_or_none(entry.get(key)))]
        outcome = object_or_none(entry.get("outcome")) or {}
        if outcome.get("type") == "timeout":
            lines.append("[timed out]")
        elif outcome.get("exit_code"):
            lines.append(f"[exit code {outcome['exit_code']}]")
    return (Text("\n".join(lines)),)


def _render_shell_output(response: ToolResponse, text: str) -> JsonObject:
    code = 0 if response.outcome is None else 1
    return {"output": [{"stdout": text, "stderr": "", "outcome": {"type": "exit", "exit_code": code}}]}


def _render_patch_output(response: ToolResponse, text: str) -> JsonObject:
    return {"status": "completed" if response.outcome is None else "failed", "output": text}


def _found_tools(item: JsonObject) -> tuple[Block, ...]:
    names = [name for entry in _object_list(item.get("tools")) if (name := string_or_none(entry.get("name")))]
    return (Text(f"[tools found: {', '.join(names) or 'none'}]"),)


def _text_outputs(item: JsonObject) -> tuple[Block, ...]:
    return tuple(
        Text(text) for entry in _object_list(item.get("output")) if (text := string_or_none(entry.get("text")))
    )


def text_output(item: JsonObject) -> tuple[Block, ...]:
    output = item.get("output")
    return (Text(output),) if isinstance(output, str) else ()


def structured_output(item: JsonObject) -> Any:
    output = item.get("output")
    return UNSET if output is None or isinstance(output, str) else output


# -------------------------------------------------------------------------------------------------------------- hosted


def _is_in_container(item: JsonObject) -> bool:
    return (object_or_none(item.get("environment")) or {}).get("type") == "container_reference"


def _is_server_run(item: JsonObject) -> bool:
    return item.get("execution") == "server" or not item.get("call_id")


CALL_TYPES: dict[str, CallType] = {
    "computer_call": CallType("computer_call_output", "computer", _pick_fields("action", "actions"), _screenshot),
    "local_shell_call": CallType(
        "local_shell_call_output",
        "local_shell",
        _get_field("action"),
        _text_field("output"),
        render_output=lambda _response, text: {"output": text},
    ),
    "shell_call": CallType(
        "shell_call_output",
        "shell",
        _get_field("action"),
        _shell_output,
        is_hosted=_is_in_container,
        render_output=_render_shell_output,
        output_required=True,
    ),
    "apply_patch_call": CallType(
        "apply_patch_call_output",
        "apply_patch",
        _get_field("operation"),
        _text_field("output"),
        is_error=lambda item: item.get("status") == "failed",
        render_output=_render_patch_output,
    ),
    "tool_search_call": CallType(
        "tool_search_output",
        "tool_search",
        _get_field("arguments"),
        _found_tools,
        is_hosted=_is_server_run,
        id_optional=True,
    ),
    "program": CallType("program_output", "program", _pick_fields("code"), _text_field("result"), is_hosted=_always),
    "multi_agent_call": CallType(
        "multi_agent_call_output", "multi_agent", _pick_fields("action", "arguments"), _text_outputs, is_hosted=_always
    ),
    # AZF-08, AZF-09: only in replies; paired by `call_id`.
    **{
        f"{stem}_call": CallType(
            f"{stem}_call_output",
            tool,
            _get_field("arguments"),
            text_output,
            is_error=lambda item: item.get("status") == "failed",
            is_hosted=_always,
            arguments_are_text=True,
            structured=structured_output,
            is_pending=lambda item: item.get("status") == "in_progress",
        )
        for stem, tool in FOUNDRY_TOOLS.items()
    },
}
CALL_TYPE_BY_OUTPUT = {row.output_type: kind for kind, row in CALL_TYPES.items()}
