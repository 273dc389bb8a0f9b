"""Call types other than functions whose output is an item of its own: one `CallType` for each.

It gives the tool name, the arguments and the result for other APIs. Same-API, call and output keep their type as long
as both are unchanged or `render_output` can build the output; else both are sent as a function call and its output,
which the API accepts for any tool.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from msgspec import UNSET, Struct

from segue.canonical.blocks import Block, Text, ToolResponse
from segue.wire.fields import JsonObject, object_or_none, string_or_none
from segue.wire.openai_responses.parts import parse_image_url
from segue.wire.openai_responses.shapes import FOUNDRY_TOOLS

__all__ = ["TYPED", "TYPE_OF_OUTPUT", "TypedCall", "other_value", "text_alone"]


def _never(_item: JsonObject) -> bool:
    return False


def _always(_item: JsonObject) -> bool:
    return True


def _no_value(_item: JsonObject) -> Any:
    return UNSET


class TypedCall(Struct, frozen=True):
    """`is_hosted`: whether the provider runs the call; `id_optional`: hosted calls may have no `call_id`;
    `output_required`: rejected without an output. If `tool_name` is empty, the items hold the name."""

    output: str
    tool: str
    arguments: Callable[[JsonObject], Any]
    content: Callable[[JsonObject], tuple[Block, ...]]
    failed: Callable[[JsonObject], bool] = _never
    hosted: Callable[[JsonObject], bool] = _never
    answer: Callable[[ToolResponse, str], JsonObject] | None = None
    unnamed: bool = False
    missed: bool = False
    written: bool = False
    """Whether the arguments are JSON in a string."""
    value: Callable[[JsonObject], Any] = _no_value
    """The output if it is JSON and not text."""
    pending: Callable[[JsonObject], bool] = _never

    def name(self, item: JsonObject) -> str:
        return self.tool or string_or_none(item.get("name")) or ""


def _key(name: str) -> Callable[[JsonObject], Any]:
    return lambda item: item.get(name, {})


def _keys(*names: str) -> Callable[[JsonObject], Any]:
    return lambda item: {name: item[name] for name in names if name in item}


def _words(name: str) -> Callable[[JsonObject], tuple[Block, ...]]:
    return lambda item: (Text(string_or_none(item.get(name)) or ""),)


# ------------------------------------------------------------------------------------------------------------- outputs


def _screenshot(item: JsonObject) -> tuple[Block, ...]:
    shot = object_or_none(item.get("output")) or {}
    picture = parse_image_url(shot, shot.get("image_url"), intact=False)
    return () if picture is None else (picture,)


def _entries(value: object) -> list[JsonObject]:
    return [object_or_none(entry) or {} for entry in cast("list[object]", value)] if isinstance(value, list) else []


def _shell_output(item: JsonObject) -> tuple[Block, ...]:
    lines: list[str] = []
    for entry in _entries(item.get("output")):
        lines += [text for key in ("stdout", "stderr") if (text := string_or_none(entry.get(key)))]
        outcome = object_or_none(entry.get("outcome")) or {}
        if outcome.get("type") == "timeout":
            lines.append("[timed out]")
        elif outcome.get("exit_code"):
            lines.append(f"[exit code {outcome['exit_code']}]")
    return (Text("\n".join(lines)),)


def _shell_answer(response: ToolResponse, text: str) -> JsonObject:
    code = 0 if response.outcome is None else 1
    return {"output": [{"stdout": text, "stderr": "", "outcome": {"type": "exit", "exit_code": code}}]}


def _patch_answer(response: ToolResponse, text: str) -> JsonObject:
    return {"status": "completed" if response.outcome is None else "failed", "output": text}


def _found_tools(item: JsonObject) -> tuple[Block, ...]:
    names = [name for entry in _entries(item.get("tools")) if (name := string_or_none(entry.get("name")))]
    return (Text(f"[tools found: {', '.join(names) or 'none'}]"),)


def _texts(item: JsonObject) -> tuple[Block, ...]:
    return tuple(Text(text) for entry in _entries(item.get("output")) if (text := string_or_none(entry.get("text"))))


def text_alone(item: JsonObject) -> tuple[Block, ...]:
    output = item.get("output")
    return (Text(output),) if isinstance(output, str) else ()


def other_value(item: JsonObject) -> Any:
    output = item.get("output")
    return UNSET if output is None or isinstance(output, str) else output


# -------------------------------------------------------------------------------------------------------------- hosted


def _in_container(item: JsonObject) -> bool:
    return (object_or_none(item.get("environment")) or {}).get("type") == "container_reference"


def _on_server(item: JsonObject) -> bool:
    return item.get("execution") == "server" or not item.get("call_id")


TYPED: dict[str, TypedCall] = {
    "computer_call": TypedCall("computer_call_output", "computer", _keys("action", "actions"), _screenshot),
    "local_shell_call": TypedCall(
        "local_shell_call_output",
        "local_shell",
        _key("action"),
        _words("output"),
        answer=lambda _response, text: {"output": text},
    ),
    "shell_call": TypedCall(
        "shell_call_output",
        "shell",
        _key("action"),
        _shell_output,
        hosted=_in_container,
        answer=_shell_answer,
        missed=True,
    ),
    "apply_patch_call": TypedCall(
        "apply_patch_call_output",
        "apply_patch",
        _key("operation"),
        _words("output"),
        failed=lambda item: item.get("status") == "failed",
        answer=_patch_answer,
    ),
    "tool_search_call": TypedCall(
        "tool_search_output", "tool_search", _key("arguments"), _found_tools, hosted=_on_server, unnamed=True
    ),
    "program": TypedCall("program_output", "program", _keys("code"), _words("result"), hosted=_always),
    "multi_agent_call": TypedCall(
        "multi_agent_call_output", "multi_agent", _keys("action", "arguments"), _texts, hosted=_always
    ),
    # AZF-08, AZF-09: only in replies; paired by `call_id`.
    **{
        f"{stem}_call": TypedCall(
            f"{stem}_call_output",
            tool,
            _key("arguments"),
            text_alone,
            failed=lambda item: item.get("status") == "failed",
            hosted=_always,
            written=True,
            value=other_value,
            pending=lambda item: item.get("status") == "in_progress",
        )
        for stem, tool in FOUNDRY_TOOLS.items()
    },
}
TYPE_OF_OUTPUT = {row.output: kind for kind, row in TYPED.items()}
