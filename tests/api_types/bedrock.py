"""Bedrock's Converse."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import UNSET, Struct, UnsetType


class _Closed(Struct, forbid_unknown_fields=True, rename="camel"): ...


class _Union(_Closed, kw_only=True):
    """A structure of which exactly one member is set."""

    def __post_init__(self) -> None:
        if sum(getattr(self, name) is not UNSET for name in self.__struct_fields__) != 1:
            raise ValueError("exactly one member must be set")


class S3Location(_Closed):
    uri: str
    bucket_owner: str | UnsetType = UNSET


class Source(_Union, kw_only=True):
    bytes: str | UnsetType = UNSET
    s3_location: S3Location | UnsetType = UNSET


class Image(_Closed):
    format: Literal["png", "jpeg", "gif", "webp"]
    source: Source


class Document(_Closed):
    format: Literal["pdf", "csv", "doc", "docx", "xls", "xlsx", "html", "txt", "md"]
    name: str
    source: Source


class Video(_Closed):
    format: Literal["mkv", "mov", "mp4", "webm", "flv", "mpeg", "mpg", "wmv", "three_gp"]
    source: Source


class ToolUse(_Closed):
    tool_use_id: str
    name: str
    input: Any


class ResultContent(_Union, kw_only=True):
    text: str | UnsetType = UNSET
    json: Any = UNSET
    image: Image | UnsetType = UNSET
    document: Document | UnsetType = UNSET
    video: Video | UnsetType = UNSET


class ToolResult(_Closed):
    tool_use_id: str
    content: list[ResultContent]
    status: Literal["success", "error"] | UnsetType = UNSET


class ReasoningText(_Closed):
    text: str
    signature: str | UnsetType = UNSET


class Reasoning(_Union, kw_only=True):
    reasoning_text: ReasoningText | UnsetType = UNSET
    redacted_content: str | UnsetType = UNSET


class CachePoint(_Closed):
    type: Literal["default"]
    ttl: Literal["5m", "1h"] | UnsetType = UNSET


class Content(_Union, kw_only=True):
    text: str | UnsetType = UNSET
    image: Image | UnsetType = UNSET
    document: Document | UnsetType = UNSET
    video: Video | UnsetType = UNSET
    tool_use: ToolUse | UnsetType = UNSET
    tool_result: ToolResult | UnsetType = UNSET
    reasoning_content: Reasoning | UnsetType = UNSET
    cache_point: CachePoint | UnsetType = UNSET


class Message(_Closed):
    role: Literal["user", "assistant"]
    content: list[Content]
