"""OpenAI's Responses API, and Foundry's."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import UNSET, Struct, UnsetType


class _Closed(Struct, forbid_unknown_fields=True): ...


class InputText(_Closed, tag_field="type", tag="input_text"):
    text: str


class InputImage(_Closed, tag_field="type", tag="input_image"):
    detail: Literal["auto", "low", "high", "original"]
    image_url: str | UnsetType = UNSET
    file_id: str | UnsetType = UNSET


class InputFile(_Closed, tag_field="type", tag="input_file"):
    filename: str | UnsetType = UNSET
    file_data: str | UnsetType = UNSET
    file_url: str | UnsetType = UNSET
    file_id: str | UnsetType = UNSET


class OutputText(_Closed, tag_field="type", tag="output_text"):
    text: str
    annotations: list[Any] = []


class Refusal(_Closed, tag_field="type", tag="refusal"):
    refusal: str


class Message(_Closed, tag_field="type", tag="message"):
    role: Literal["user", "assistant", "system", "developer"]
    content: str | list[InputText | InputImage | InputFile | OutputText | Refusal]
    id: str | UnsetType = UNSET
    status: Literal["completed", "incomplete"] | UnsetType = UNSET
    phase: Literal["commentary", "final_answer"] | UnsetType = UNSET


class SummaryText(_Closed, tag_field="type", tag="summary_text"):
    text: str


class Reasoning(_Closed, tag_field="type", tag="reasoning"):
    summary: list[SummaryText]
    id: str | UnsetType = UNSET
    encrypted_content: str | UnsetType = UNSET
    status: Literal["completed", "incomplete"] | UnsetType = UNSET


class FunctionCall(_Closed, tag_field="type", tag="function_call"):
    call_id: str
    name: str
    arguments: str
    id: str | UnsetType = UNSET
    namespace: str | UnsetType = UNSET
    status: Literal["completed", "incomplete"] | UnsetType = UNSET


class FunctionOutput(_Closed, tag_field="type", tag="function_call_output"):
    call_id: str
    output: str | list[InputText | InputImage | InputFile]
    id: str | UnsetType = UNSET
    status: Literal["completed", "incomplete"] | UnsetType = UNSET


class CustomCall(_Closed, tag_field="type", tag="custom_tool_call"):
    call_id: str
    name: str
    input: str
    id: str | UnsetType = UNSET
    namespace: str | UnsetType = UNSET


class CustomOutput(_Closed, tag_field="type", tag="custom_tool_call_output"):
    call_id: str
    output: str | list[InputText | InputImage | InputFile]
    id: str | UnsetType = UNSET


Item = Message | Reasoning | FunctionCall | FunctionOutput | CustomCall | CustomOutput
