"""A Responses body parsed for its rules: items with their types, and all declared tools.

Parsing never fails: an input that is not a list has no items (OAI-RESP-24), and an entry that is not an object is an
item without a type (OAI-RESP-14).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from segue.conformance.lookup import list_entries, object_or_empty
from segue.conformance.values import has_text, is_list, is_object, text_or_empty
from segue.models import Model

# Type of a call → type of its output, paired by call_id.
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
# Paired by the id of the request item.
APPROVAL = ("mcp_approval_request", "mcp_approval_response")
# OAI-RESP-20: hosted tools; the item contains its output.
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
    """An entry of `input`. A missing `type` is inferred as `message` or `item_reference`, else `""`."""

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
        """The id used for pairing; a local_shell_call_output has it in `call_id` or, by the SDK's types, in `id`."""
        call_id = self.data.get("call_id")
        return self.id if self.type == "local_shell_call_output" and not has_text(call_id) else call_id

    @property
    def is_reasoning(self) -> bool:
        """True for reasoning, in full or by reference."""
        return self.type == "reasoning" or (self.type == "item_reference" and text_or_empty(self.id).startswith("rs"))

    @property
    def is_assistant(self) -> bool:
        return self.type == "message" and self.data.get("role") == "assistant"


class Tool(msgspec.Struct, frozen=True):
    """A declared tool; `data` is empty if the entry is not an object."""

    path: str
    data: Mapping[str, object]

    @property
    def type(self) -> str:
        return text_or_empty(self.data.get("type"))

    def namespace_tools(self) -> Iterator[Tool]:
        """Yield the tools inside a namespace."""
        if self.type == "namespace":
            yield from _parse_tools(self.data, self.path)


class ResponsesRequest(msgspec.Struct, frozen=True):
    """The body, parsed once for all rules."""

    body: Mapping[str, object]
    model: Model
    items: Sequence[Item]
    tools: Sequence[Tool]
    searched_tools: Sequence[Tool]
    """Tools in the outputs of tool searches."""
    refers_to_calls: bool
    """Whether an item reference may be to a stored call."""

    def items_of(self, *types: str) -> Iterator[Item]:
        """Yield the items of these types in the order of the body."""
        return (item for item in self.items if item.type in types)

    @property
    def is_continuation(self) -> bool:
        """Whether the provider stores earlier items of the conversation."""
        conversation = self.body.get("conversation")
        return has_text(self.body.get("previous_response_id")) or has_text(conversation) or is_object(conversation)

    @property
    def is_stored(self) -> bool:
        return self.body.get("store") is not False


def _item_type(data: Mapping[str, object]) -> str:
    if data.get("type") is not None:
        return text_or_empty(data["type"])
    if "role" in data:
        return "message"
    return "item_reference" if data.keys() <= {"id", "type"} and data.get("id") is not None else ""


def _parse_tools(holder: Mapping[str, object], path: str = "") -> Iterator[Tool]:
    for place, tool in list_entries(holder.get("tools"), f"{path}.tools" if path else "tools"):
        yield Tool(place, object_or_empty(tool))


def parse_request(body: Mapping[str, object], model: Model) -> ResponsesRequest:
    """Parse a body; any object is accepted."""
    entries = body.get("input")
    items = [
        Item(index, _item_type(entry), entry) if is_object(entry) else Item(index, "", {})
        for index, entry in enumerate(entries if is_list(entries) else ())
    ]
    tools = list(_parse_tools(body))
    searched_tools: list[Tool] = []
    for item in items:
        if item.type == "additional_tools":
            tools += _parse_tools(item.data, item.path)
        elif item.type == "tool_search_output":
            searched_tools += _parse_tools(item.data, item.path)
    names = (text_or_empty(item.id) for item in items if item.type == "item_reference")
    refers = any(not name.startswith(("msg", "rs")) for name in names)
    return ResponsesRequest(body, model, items, tools, searched_tools, refers)
