"""Chat Completions, and the fields that its vendors add or leave out."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import UNSET, Struct, UnsetType


class _Closed(Struct, forbid_unknown_fields=True): ...


class Text(_Closed, tag_field="type", tag="text"):
    text: str


class Refusal(_Closed, tag_field="type", tag="refusal"):
    refusal: str


class ImageUrl(_Closed):
    url: str
    detail: Literal["auto", "low", "high"] | UnsetType = UNSET


class Image(_Closed, tag_field="type", tag="image_url"):
    image_url: ImageUrl


class AudioData(_Closed):
    data: str
    format: Literal["wav", "mp3"]


class Audio(_Closed, tag_field="type", tag="input_audio"):
    input_audio: AudioData


class FileData(_Closed):
    filename: str | UnsetType = UNSET
    file_data: str | UnsetType = UNSET
    file_id: str | UnsetType = UNSET


class File(_Closed, tag_field="type", tag="file"):
    file: FileData


class VideoUrl(_Closed):
    url: str


class Video(_Closed, tag_field="type", tag="video_url"):
    """Kimi and Qwen."""

    video_url: VideoUrl


class MistralDocument(_Closed, tag_field="type", tag="document_url"):
    document_url: str
    document_name: str | UnsetType = UNSET


class MistralThinking(_Closed, tag_field="type", tag="thinking"):
    thinking: list[Text]
    signature: str | UnsetType = UNSET
    closed: bool | UnsetType = UNSET


class Function(_Closed):
    name: str
    arguments: str


class FunctionCall(_Closed, tag_field="type", tag="function"):
    id: str
    function: Function


class Custom(_Closed):
    name: str
    input: str


class CustomCall(_Closed, tag_field="type", tag="custom"):
    id: str
    custom: Custom


class System(_Closed, tag_field="role", tag="system"):
    content: str | list[Text]
    name: str | UnsetType = UNSET


class Developer(System, tag_field="role", tag="developer"): ...


class User(_Closed, tag_field="role", tag="user"):
    content: str | list[Text | Image | Audio | File]
    name: str | UnsetType = UNSET


class Assistant(_Closed, tag_field="role", tag="assistant"):
    content: str | list[Text | Refusal] | None = None
    tool_calls: list[FunctionCall | CustomCall] | UnsetType = UNSET
    refusal: str | UnsetType = UNSET
    name: str | UnsetType = UNSET


class Tool(_Closed, tag_field="role", tag="tool"):
    tool_call_id: str
    content: str | list[Text]


class VendorAssistant(_Closed, tag_field="role", tag="assistant"):
    """Of a vendor without free-text calls, whose reasoning is text."""

    content: str | list[Text] | None = None
    tool_calls: list[FunctionCall] | UnsetType = UNSET
    reasoning_content: str | UnsetType = UNSET
    name: str | UnsetType = UNSET


class KimiAssistant(VendorAssistant, tag_field="role", tag="assistant"):
    partial: bool | UnsetType = UNSET


class KimiUser(_Closed, tag_field="role", tag="user"):
    content: str | list[Text | Image | Video]
    name: str | UnsetType = UNSET


class KimiTool(_Closed, tag_field="role", tag="tool"):
    tool_call_id: str
    content: str | list[Text | Image | Video]
    name: str | UnsetType = UNSET


class MistralAssistant(_Closed, tag_field="role", tag="assistant"):
    content: str | list[Text | MistralThinking] | None = None
    tool_calls: list[FunctionCall] | UnsetType = UNSET
    prefix: bool | UnsetType = UNSET


class MistralUser(_Closed, tag_field="role", tag="user"):
    content: str | list[Text | Image | Audio | MistralDocument]


class MistralSystem(_Closed, tag_field="role", tag="system"):
    content: str | list[Text]


class MistralTool(_Closed, tag_field="role", tag="tool"):
    tool_call_id: str
    content: str | list[Text | Image | MistralDocument]
    name: str | UnsetType = UNSET


class DeepSeekUser(_Closed, tag_field="role", tag="user"):
    content: str
    name: str | UnsetType = UNSET


class DeepSeekTool(_Closed, tag_field="role", tag="tool"):
    tool_call_id: str
    content: str


class DeepSeekAssistant(_Closed, tag_field="role", tag="assistant"):
    content: str | None = None
    tool_calls: list[FunctionCall] | UnsetType = UNSET
    reasoning_content: str | UnsetType = UNSET
    name: str | UnsetType = UNSET
    prefix: bool | UnsetType = UNSET


class QwenUser(_Closed, tag_field="role", tag="user"):
    content: str | list[Text | Image | Audio | Video]
    name: str | UnsetType = UNSET


MESSAGES: dict[str, Any] = {
    "openai-chat": System | Developer | User | Assistant | Tool,
    "mistral": MistralSystem | MistralUser | MistralAssistant | MistralTool,
    "kimi": System | KimiUser | KimiAssistant | KimiTool,
    "deepseek": System | DeepSeekUser | DeepSeekAssistant | DeepSeekTool,
    "qwen": System | QwenUser | KimiAssistant | Tool,
}
