"""Anthropic's Messages API."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import UNSET, Struct, UnsetType


class _Closed(Struct, forbid_unknown_fields=True, tag_field="type"): ...


class CacheControl(_Closed, tag="ephemeral"):
    ttl: Literal["5m", "1h"] | UnsetType = UNSET


class _Block(_Closed):
    cache_control: CacheControl | UnsetType = UNSET


class Text(_Block, kw_only=True, tag="text"):
    text: str


class Base64(_Closed, tag="base64"):
    media_type: str
    data: str


class Url(_Closed, tag="url"):
    url: str


class FileId(_Closed, tag="file"):
    file_id: str


class PlainText(_Closed, tag="text"):
    media_type: Literal["text/plain"]
    data: str


class Image(_Block, kw_only=True, tag="image"):
    source: Base64 | Url | FileId


class Document(_Block, kw_only=True, tag="document"):
    source: Base64 | Url | FileId | PlainText
    title: str | UnsetType = UNSET


class Thinking(_Closed, tag="thinking"):
    thinking: str
    signature: str


class RedactedThinking(_Closed, tag="redacted_thinking"):
    data: str


class ToolUse(_Block, kw_only=True, tag="tool_use"):
    id: str
    name: str
    input: dict[str, Any]


class ToolResult(_Block, kw_only=True, tag="tool_result"):
    tool_use_id: str
    content: str | list[Text | Image | Document] | UnsetType = UNSET
    is_error: bool | UnsetType = UNSET


class User(Struct, forbid_unknown_fields=True, tag_field="role", tag="user"):
    content: str | list[Text | Image | Document | ToolResult]


class Assistant(Struct, forbid_unknown_fields=True, tag_field="role", tag="assistant"):
    content: str | list[Text | Thinking | RedactedThinking | ToolUse]


Message = User | Assistant
