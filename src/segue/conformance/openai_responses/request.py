"""A Responses body as its rules look at it: items with their types, tools wherever they are declared.

Reading never fails: what is no list has no items, and an entry that is no object is an item without a type.
OAI-RESP-24 and OAI-RESP-14 speak about those.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from segue.conformance.values import is_list, is_object, is_text, text_of
from segue.models import Model

__all__ = ["APPROVAL", "HOSTED", "PAIRS", "Item", "ResponsesRequest", "Tool", "read"]

# Call → the only type of item that answers it, by call_id.
PAIRS: Mapping[str, str] = {
    "function_call": "function_call_output",
    "custom_tool_call": "custom_tool_call_output",
    "computer_call": "computer_call_output",
    "shell_call": "shell_call_output",
    "local_shell_call": "local_shell_call_output",
    "apply_patch_call": "apply_patch_call_output",
    "tool_search_call": "tool_search_output",
    "program": "program_output",
    "multi_agent_call": "multi_agent_call_output",
}
# Answered by the id of the item itself.
APPROVAL = ("mcp_approval_request", "mcp_approval_response")
# OAI-RESP-20: run by the provider, the output is inside.
HOSTED = frozenset(
    {
        "web_search_call",
        "file_search_call",
        "code_interpreter_call",
        "image_generation_call",
        "mcp_call",
        "mcp_list_tools",
    }
)


class Item(msgspec.Struct, frozen=True, gc=False):
    """An entry of `input`. `type` is `message` or `item_reference` also where it goes without saying, else `""`."""

    index: int
    type: str
    data: Mapping[str, object]

    @property
    def path(self) -> str:
        return f"input[{self.index}]"

    @property
    def id(self) -> object:
        return self.data.get("id")

    @property
    def call_id(self) -> object:
        """The id that pairs; a local_shell_call_output bears it as `call_id` or, by the SDK's types, as `id`."""
        call_id = self.data.get("call_id")
        return self.id if self.type == "local_shell_call_output" and not is_text(call_id) else call_id

    @property
    def is_reasoning(self) -> bool:
        """Whether this is reasoning, given in full or named by its id."""
        return self.type == "reasoning" or (self.type == "item_reference" and text_of(self.id).startswith("rs"))

    @property
    def is_assistant(self) -> bool:
        return self.type == "message" and self.data.get("role") == "assistant"


class Tool(msgspec.Struct, frozen=True):
    """A declared tool; `data` is empty where the entry is no object."""

    path: str
    data: Mapping[str, object]

    @property
    def type(self) -> str:
        return text_of(self.data.get("type"))

    def members(self) -> Iterator[Tool]:
        """The tools inside a namespace."""
        if self.type == "namespace":
            yield from _tools(self.data, self.path)


class ResponsesRequest(msgspec.Struct, frozen=True):
    """The body, read once for all rules."""

    body: Mapping[str, object]
    model: Model
    items: Sequence[Item]
    tools: Sequence[Tool]
    found: Sequence[Tool]
    refers_to_calls: bool

    def of(self, *types: str) -> Iterator[Item]:
        """The items of these types in the order of the body."""
        return (item for item in self.items if item.type in types)

    @property
    def continues(self) -> bool:
        """Whether earlier items lie with the provider."""
        conversation = self.body.get("conversation")
        return is_text(self.body.get("previous_response_id")) or is_text(conversation) or is_object(conversation)

    @property
    def stored(self) -> bool:
        return self.body.get("store") is not False


def _type(data: Mapping[str, object]) -> str:
    if data.get("type") is not None:
        return text_of(data["type"])
    if "role" in data:
        return "message"
    return "item_reference" if data.keys() <= {"id", "type"} and data.get("id") is not None else ""


def _tools(holder: Mapping[str, object], path: str = "") -> Iterator[Tool]:
    tools = holder.get("tools")
    prefix = f"{path}.tools" if path else "tools"
    for index, tool in enumerate(tools if is_list(tools) else ()):
        yield Tool(f"{prefix}[{index}]", tool if is_object(tool) else {})


def read(body: Mapping[str, object], model: Model) -> ResponsesRequest:
    """The body as a request."""
    entries = body.get("input")
    items = [
        Item(index, _type(entry), entry) if is_object(entry) else Item(index, "", {})
        for index, entry in enumerate(entries if is_list(entries) else ())
    ]
    tools = list(_tools(body))
    found: list[Tool] = []
    for item in items:
        if item.type == "additional_tools":
            tools += _tools(item.data, item.path)
        elif item.type == "tool_search_output":
            found += _tools(item.data, item.path)
    names = (text_of(item.id) for item in items if item.type == "item_reference")
    refers = any(not name.startswith(("msg", "rs")) for name in names)
    return ResponsesRequest(body, model, items, tools, found, refers)
