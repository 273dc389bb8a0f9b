"""What Claude Code attaches to prompts and results: files, queued prompts, texts of hooks, and outputs of its commands.

The client sends an attached file before the prompt that names it, and the others after the results.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from segue.canonical.json import encode_json_text
from segue.sessions.parsed_log import LogLine
from segue.sessions.values import object_of


def blocks_of(line: LogLine) -> list[Mapping[str, Any]]:
    """Return the blocks of an entry's message; a text is one block."""
    content = object_of(line.value.get("message")).get("content")
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    items = cast("list[Any]", content) if isinstance(content, list) else []
    return [item for item in items if isinstance(item, dict)]


def reply_id(line: LogLine) -> str | None:
    """Return the id of the reply that an entry is part of; None for other entries."""
    message = object_of(line.value.get("message"))
    name = message.get("id")
    return name if line.value.get("type") == "assistant" and isinstance(name, str) else None


# Attachments with content of the user, or that the user referred to. The others are the client's own context.
_USER_ATTACHMENTS = frozenset(
    {
        "at_mention_reference",
        "compact_file_reference",
        "directory",
        "edited_text_file",
        "file",
        "mcp_resource",
        "pdf_reference",
        "queued_command",
        "selected_lines_in_ide",
    }
)
# Attachments that are sent before the prompt; the others after it, as instructions.
_LIFTED_ATTACHMENTS = _USER_ATTACHMENTS - {"compact_file_reference", "edited_text_file", "queued_command"}
_HOOK_CONTEXT = "hook_additional_context"
_STARTS = ("SessionStart", "SubagentStart")


def expand_entry(line: LogLine) -> LogLine:
    """Return an entry whose content is sent as the user's in that form: an attachment of the user, or the output of a
    command of the client."""
    if line.value.get("subtype") == "local_command" and isinstance(text := line.value.get("content"), str):
        return LogLine(line.number, {**line.value, "type": "user", "message": {"role": "user", "content": text}})
    attachment = object_of(line.value.get("attachment"))
    if line.value.get("type") != "attachment" or not _is_of_user(attachment):
        return line
    content: list[Any] = []
    for item in _attached_items(line, attachment):
        part = object_of(item).get("content")
        content += cast("list[Any]", part) if isinstance(part, list) else [{"type": "text", "text": part}]
    if not content or not all(object_of(part).get("text", True) for part in content):
        return line
    return LogLine(line.number, {**line.value, "type": "user", "message": {"role": "user", "content": content}})


def _is_of_user(attachment: Mapping[str, Any]) -> bool:
    """Return whether an attachment has content of the user. What a hook adds at the start belongs to this client."""
    kind = str(attachment.get("type"))
    return kind in _USER_ATTACHMENTS or (kind == _HOOK_CONTEXT and str(attachment.get("hookEvent")) not in _STARTS)


def _attached_items(line: LogLine, attachment: Mapping[str, Any]) -> list[Any]:
    """Return the contents of an attachment; of a prompt, the user's own words without the client's remarks on them."""
    prompt = {"content": attachment.get("prompt")}
    if attachment.get("commandMode") == "prompt" and prompt["content"]:
        return [prompt]
    rendered = line.value.get("rendered")
    if rendered:
        return cast("list[Any]", rendered) if isinstance(rendered, list) else []
    file = object_of(object_of(attachment.get("content")).get("file"))
    if isinstance(file.get("base64"), str) and object_of(attachment.get("content")).get("type") == "image":
        arguments = encode_json_text({"file_path": attachment.get("filename")})
        text = f"<system-reminder>\nCalled the Read tool with the following input: {arguments}\n</system-reminder>"
        source = {"type": "base64", "media_type": file.get("type"), "data": file["base64"]}
        return [{"content": text}, {"content": [{"type": "image", "source": source}]}]
    return [prompt]


def order_as_sent(lines: list[LogLine]) -> list[LogLine]:
    """Return the entries in the order in which they are sent: attached files come before the prompt that names them,
    and what hooks add to parallel calls comes after all their results."""
    ordered: list[LogLine] = []
    added: list[LogLine] = []
    start = 0
    for line in lines:
        kind = str(object_of(line.value.get("attachment")).get("type"))
        if kind in _LIFTED_ATTACHMENTS:
            ordered.insert(start, line)
            start += 1
            continue
        if kind == _HOOK_CONTEXT:
            added.append(line)
            continue
        is_result = any(block.get("type") == "tool_result" for block in blocks_of(line))
        if not is_result:
            ordered += added
            added = []
        ordered.append(line)
        if is_result or line.value.get("type") == "assistant":
            start = len(ordered)
    return ordered + added
