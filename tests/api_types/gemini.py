"""Gemini's generateContent."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import UNSET, Struct, UnsetType


class _Closed(Struct, forbid_unknown_fields=True, rename="camel"): ...


class InlineData(_Closed):
    mime_type: str
    data: str
    display_name: str | UnsetType = UNSET


class FileData(_Closed):
    file_uri: str
    mime_type: str | UnsetType = UNSET


class FunctionCall(_Closed):
    name: str
    args: dict[str, Any]
    id: str | UnsetType = UNSET


class ResponsePart(_Closed):
    inline_data: InlineData


class FunctionResponse(_Closed):
    name: str
    response: dict[str, Any]
    id: str | UnsetType = UNSET
    parts: list[ResponsePart] | UnsetType = UNSET


class Part(_Closed):
    """Exactly one field of data, and those on it."""

    text: str | UnsetType = UNSET
    inline_data: InlineData | UnsetType = UNSET
    file_data: FileData | UnsetType = UNSET
    function_call: FunctionCall | UnsetType = UNSET
    function_response: FunctionResponse | UnsetType = UNSET
    thought: bool | UnsetType = UNSET
    thought_signature: str | UnsetType = UNSET

    def __post_init__(self) -> None:
        data = (self.text, self.inline_data, self.file_data, self.function_call, self.function_response)
        if sum(value is not UNSET for value in data) != 1:
            raise ValueError("a part has exactly one field of data")


class Content(_Closed):
    role: Literal["user", "model"]
    parts: list[Part]
