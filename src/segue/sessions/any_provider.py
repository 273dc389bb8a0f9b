"""What the sessions of clients for any provider (pi, opencode) have in common.

Their formats are their own. They are parsed into bodies of the Anthropic API, which has blocks for all that they hold;
what they have no place for is removed before a session is written.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from segue.canonical.blocks import Block, Media, Opaque, Text, Thinking, ToolCall, ToolResponse, edit_block
from segue.sessions.client import REASONING_REMOVED, Client

API = "anthropic"


class AnyProviderClient(Client):
    """A client for any provider. Its sessions have texts, pictures and files of some types, calls and results."""

    api = API

    def accepts(self, media: Media) -> bool:
        """Return whether a session has a place for a picture or a file, with its content."""
        return media.kind == "image"

    def find_unsupported(self, block: Block, source: str) -> str | None:
        match block:
            case Media() if not self.accepts(block):
                return f"files of a type that {self.title} does not support removed"
            case Media(data=None):
                return "pictures and files without their content removed"
            case Thinking():
                return REASONING_REMOVED
            case ToolCall(kind="hosted") | ToolResponse(hosted=True):
                return "calls that the provider ran itself removed"
            case Opaque():
                return f"content of the type {block.kind} removed"
            case _:
                return None

    def simplify(self, block: Block) -> Block:
        """Return a document or a search result that consists of text as plain text."""
        if isinstance(block, Text) and block.native is not None and block.native.fragment.get("type") != "text":
            return edit_block(block)
        return block

    def normalize(self, value: Mapping[str, Any]) -> Mapping[str, Any]:
        return normalize_unit(value)


def objects_of(value: object) -> list[dict[str, Any]]:
    """Return the objects of a list, and a text as a block, without empty texts: no API accepts them."""
    items = cast("list[Any]", value) if isinstance(value, list) else [{"type": "text", "text": value}]
    objects = [cast("dict[str, Any]", item) for item in items if isinstance(item, dict)]
    return [item for item in objects if item.get("type") != "text" or item.get("text")]


def thinking_block(text: object, signature: object) -> dict[str, Any]:
    """Return reasoning. Only that of Anthropic's models has a signature."""
    thought = {"type": "thinking", "thinking": text if isinstance(text, str) else ""}
    return {**thought, "signature": signature} if isinstance(signature, str) and signature else thought


def result_unit(call_id: object, content: list[dict[str, Any]], *, is_error: bool) -> dict[str, Any]:
    """Return the message with a result."""
    block = {"type": "tool_result", "tool_use_id": call_id, "content": content}
    return {"role": "user", "content": [{**block, "is_error": True} if is_error else block]}


def normalize_unit(value: Mapping[str, Any]) -> dict[str, Any]:
    """Return an item in the one form in which it is read back."""
    (block,) = value["content"]
    return {"role": value["role"], "content": [_normalize(block)]}


def _normalize(block: dict[str, Any]) -> dict[str, Any]:
    match block["type"]:
        case "text":
            return {"type": "text", "text": block["text"]}
        case "tool_use":
            return {key: block[key] for key in ("type", "id", "name", "input")}
        case "tool_result":
            content = [_normalize(part) for part in objects_of(block.get("content"))]
            is_error = bool(block.get("is_error"))
            return result_unit(block["tool_use_id"], content, is_error=is_error)["content"][0]
        case _:
            return {key: item for key, item in block.items() if key in ("type", "source", "title")}
