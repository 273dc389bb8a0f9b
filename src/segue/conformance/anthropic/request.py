"""An Anthropic Messages body parsed for its rules: messages, blocks, and messages merged as the server merges them.

ANT-21: consecutive messages of one role count as one message, so pairing is checked on merged messages. String content
counts as one text block. Blocks keep the order of the body.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from segue.conformance.chat_request import iter_messages
from segue.conformance.lookup import list_entries, list_objects, member, object_or_empty
from segue.conformance.values import has_text, text_or_empty
from segue.models import Model

SERVER_RESULTS = frozenset(
    {
        "advisor_tool_result",
        "bash_code_execution_tool_result",
        "code_execution_tool_result",
        "text_editor_code_execution_tool_result",
        "tool_search_tool_result",
        "web_fetch_tool_result",
        "web_search_tool_result",
    }
)
MCP_RESULT = "mcp_tool_result"


class Block(msgspec.Struct, frozen=True, gc=False):
    """A content block with its path. `type` is `""` if the block has none."""

    path: str
    role: str
    type: str
    data: Mapping[str, object]

    @property
    def id(self) -> object:
        return self.data.get("id")

    @property
    def tool_use_id(self) -> object:
        return self.data.get("tool_use_id")


class Message(msgspec.Struct, frozen=True, gc=False):
    """A message; the role is `""` and `data` is empty if it is malformed."""

    index: int
    role: str
    data: Mapping[str, object]
    blocks: Sequence[Block]

    @property
    def path(self) -> str:
        return f"messages[{self.index}]"

    @property
    def content(self) -> object:
        return self.data.get("content")


class MergedMessage(msgspec.Struct, frozen=True, gc=False):
    """Consecutive messages of one role, which the server treats as one message."""

    role: str
    blocks: list[Block]

    def ids(self, block_type: str) -> set[str]:
        """Return the ids of the blocks of this type."""
        return {block.id for block in self.blocks if block.type == block_type and has_text(block.id)}

    def has_user_content(self) -> bool:
        """Whether this is a user message with more than tool results."""
        return self.role == "user" and any(block.type != "tool_result" for block in self.blocks)


class Tool(msgspec.Struct, frozen=True):
    """An entry of `tools`; `data` is empty if the entry is not an object."""

    path: str
    data: Mapping[str, object]

    @property
    def is_custom(self) -> bool:
        """True for a tool that the client declares in full; all other types are defined by the provider."""
        return self.data.get("type") in (None, "custom")


class AnthropicRequest(msgspec.Struct, frozen=True):
    """The body, parsed once for all rules."""

    body: Mapping[str, object]
    model: Model
    messages: Sequence[Message]
    merged_messages: Sequence[MergedMessage]
    blocks_by_type: Mapping[str, Sequence[Block]]
    tools: Sequence[Tool]

    def blocks_of(self, *block_types: str) -> Iterator[Block]:
        """Yield the blocks of these types, type by type, in the order of the body."""
        for block_type in block_types:
            yield from self.blocks_by_type.get(block_type, ())

    @property
    def thinking_type(self) -> str:
        """The type of the thinking setting: `enabled`, `adaptive`, `disabled` …, `""` if there is none."""
        return text_or_empty(member(self.body, "thinking", "type"))


def nested_entries(block: Block) -> Iterator[tuple[str, object]]:
    """Yield the entries of a block's own list content with their paths."""
    return list_entries(block.data.get("content"), f"{block.path}.content")


def _parse_blocks(path: str, role: str, content: object) -> list[Block]:
    if isinstance(content, str):
        return [Block(f"{path}.content", role, "text", {"type": "text", "text": content})] if content else []
    return [
        Block(place, role, text_or_empty(block.get("type")), block)
        for place, block in list_objects(content, f"{path}.content")
    ]


def _merge_messages(messages: Sequence[Message]) -> list[MergedMessage]:
    merged: list[MergedMessage] = []
    for message in messages:
        if not merged or merged[-1].role != message.role:
            merged.append(MergedMessage(message.role, []))
        merged[-1].blocks.extend(message.blocks)
    return merged


def parse_request(body: Mapping[str, object], model: Model) -> AnthropicRequest:
    """Parse a body; raises `InputError` if it has no messages."""
    messages = [
        Message(index, role, data, _parse_blocks(f"messages[{index}]", role, data.get("content")))
        for index, role, data in iter_messages(body)
    ]
    blocks_by_type: dict[str, list[Block]] = {}
    for message in messages:
        for block in message.blocks:
            blocks_by_type.setdefault(block.type, []).append(block)
    tools = [Tool(path, object_or_empty(tool)) for path, tool in list_entries(body.get("tools"), "tools")]
    return AnthropicRequest(body, model, messages, _merge_messages(messages), blocks_by_type, tools)
