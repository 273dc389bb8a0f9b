"""Contents of the Gemini API as Gemini CLI and Qwen Code store them, and as segue's items have them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import PurePath
from typing import Any, cast

from segue.sessions.patches import FileEdit, render_diff
from segue.sessions.values import list_of, object_of

API = "gemini"
_SIGNATURE = "thoughtSignature"
# The signature of a call that Gemini did not make; the clients add it themselves where it is needed.
_PLACEHOLDER = "skip_thought_signature_validator"
_MEDIA = ("inlineData", "fileData")
_OUTPUT_LABEL = "Output: "


def parts_of(content: object) -> list[dict[str, Any]]:
    """Return the parts of a text, a part, or a list of both."""
    items = cast("list[Any]", content) if isinstance(content, list) else [content]
    return [{"text": item} if isinstance(item, str) else object_of(item) for item in items if item]


def call_of(part: Mapping[str, Any]) -> dict[str, Any]:
    """Return the call in a part; empty if it has none."""
    return object_of(part.get("functionCall"))


def response_of(part: Mapping[str, Any]) -> dict[str, Any]:
    """Return the result in a part; empty if it has none."""
    return object_of(part.get("functionResponse"))


def text_of(parts: Iterable[Mapping[str, Any]]) -> str:
    """Return the text of some parts, without thoughts."""
    texts = (part.get("text") for part in parts if not part.get("thought"))
    return "\n".join(text for text in texts if isinstance(text, str))


def strip_placeholder(item: Mapping[str, Any]) -> dict[str, Any]:
    """Return an item without the placeholder of a signature."""
    parts = [
        {key: value for key, value in part.items() if key != _SIGNATURE or value != _PLACEHOLDER}
        for part in item["parts"]
    ]
    return {**item, "parts": parts}


def strip_names(item: Mapping[str, Any]) -> dict[str, Any]:
    """Return an item without the names of its media, which Gemini CLI refuses to send."""
    parts: list[dict[str, Any]] = []
    for part in item["parts"]:
        response = response_of(part)
        if "parts" in response:
            inner = [_without_name(object_of(media)) for media in list_of(response["parts"])]
            part = {**part, "functionResponse": {**response, "parts": inner}}
        parts.append(_without_name(part))
    return {**item, "parts": parts}


def _without_name(part: dict[str, Any]) -> dict[str, Any]:
    named = {key: object_of(part[key]) for key in _MEDIA if "displayName" in object_of(part.get(key))}
    bare = {key: {name: item for name, item in value.items() if name != "displayName"} for key, value in named.items()}
    return {**part, **bare}


def nest_media(parts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return parts with the media that follow a result inside it."""
    nested: list[dict[str, Any]] = []
    for part in parts:
        if nested and response_of(nested[-1]) and any(key in part for key in _MEDIA):
            response = response_of(nested[-1])
            nested[-1] = {"functionResponse": {**response, "parts": [*list_of(response.get("parts")), part]}}
        else:
            nested.append(part)
    return nested


def unnest_media(part: dict[str, Any]) -> list[dict[str, Any]]:
    """Return a result, and the media that were inside it after it."""
    response = response_of(part)
    if "parts" not in response:
        return [part]
    bare = {key: value for key, value in response.items() if key != "parts"}
    return [{"functionResponse": bare}, *list_of(response["parts"])]


def show_result(call: Mapping[str, Any], response: Mapping[str, Any]) -> str | dict[str, Any]:
    """Return what the screen shows of a result: the diff of an edit, or the text without its label.

    Without `diffStat`, Gemini CLI does not revert such an edit on disk when the user rewinds the session.
    """
    if "error" not in response and (edit := _edit_of(object_of(call.get("args")))) is not None:
        return {"fileDiff": render_diff(edit), "fileName": PurePath(edit.path).name, "filePath": edit.path}
    shown = response.get("error", response.get("output"))
    return shown.removeprefix(_OUTPUT_LABEL) if isinstance(shown, str) else ""


def _edit_of(arguments: Mapping[str, Any]) -> FileEdit | None:
    """Return the edit that a call makes, or a write as an edit of an empty file; None for any other call."""
    path, new = arguments.get("file_path"), arguments.get("new_string", arguments.get("content"))
    old = arguments.get("old_string", "")
    return FileEdit(path, old, new) if isinstance(path, str) and isinstance(old, str) and isinstance(new, str) else None
