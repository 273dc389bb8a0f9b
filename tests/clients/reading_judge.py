"""Compares two histories of one client block by block: the one that segue read, and the one that the client sent."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from typing import Any, cast

from msgspec import UNSET

from segue._conversation import Conversation
from segue._literals import Api
from segue.canonical.blocks import Block, Media, Message, Text, Thinking, ToolCall, ToolResponse
from segue.canonical.codec import encode_value
from segue.canonical.json import encode_json_sorted

_MAX_SHOWN = 300
# How blocks begin that are the clients' own context, not the conversation.
_CONTEXT = (
    "As you answer the user's questions, you can use the following context",
    "Attribution for git commits",
    "Codebase and user instructions are shown below",
    # Claude Code, after a search for tools, and in place of a reply that is missing.
    "Tool loaded.",
    "No response requested.",
    # Codex.
    "<environment_context>",
    "# AGENTS.md instructions",
    # A file of instructions in a folder below: the next client reads its own.
    "Contents of ",
)
# What of the client's instructions in the middle of a conversation is from the user.
_USER_PARTS = re.compile(
    r"The user sent a new message while you were working:\n(?P<prompt>.*?)\n\nThis is how Claude Code surfaces"
    r"|^(?!SessionStart)(?P<hook>\S+ hook additional context: .*?)$"
    r"|^(?P<note>Note: \S+ was read before the last conversation was summarized.*?)$"
    r"|(?P<notice>\[SYSTEM NOTIFICATION.*?</task-notification>)",
    re.DOTALL | re.MULTILINE,
)
_REMINDER = re.compile(r"\s*<system-reminder>\n(.*?)\n?</system-reminder>\s*", re.DOTALL)
# What clients send as the result of a call that was running when they were killed; segue adds a text of its own.
_INTERRUPTED = ("[Tool call interrupted: the session ended before", "['text \"aborted\"']")


def compare_histories(api: str, read: Sequence[Message], body: Mapping[str, Any], prompt: str) -> tuple[list[str], int]:
    """Return the differences, one for each block, and the number of blocks that segue read."""
    sent = Conversation.from_body(dict(body), source=cast("Api", api)).messages
    expected = _list_blocks(sent)
    at = next((place for place, line in enumerate(expected) if line == f"human text {json.dumps(prompt)}"), None)
    found = _list_blocks(read)
    changes = difflib.ndiff(expected[:at], found)
    names = {"- ": "not read", "+ ": "not sent by the client"}
    return [f"{names[line[:2]]}: {line[2:_MAX_SHOWN]}" for line in changes if line[:2] in names], len(found)


def _list_blocks(messages: Sequence[Message]) -> list[str]:
    numbers = {
        block.id: number
        for number, block in enumerate(
            block for message in messages for block in message.blocks if isinstance(block, ToolCall)
        )
    }
    return [
        f"{speaker} {text}"
        for message in messages
        for speaker, block in _split_speakers(message)
        for text in _show(block, numbers)
        if not (isinstance(block, ToolResponse) and any(mark in text for mark in _INTERRUPTED))
    ]


def _split_speakers(message: Message) -> Iterator[tuple[str, Block]]:
    """Yield the blocks with their speakers, as they are compared.

    Text beside a result is the user's: clients merge messages of one role. Of the client's own instructions, only what
    they have from the user is compared.
    """
    for block in message.blocks:
        if not isinstance(block, Text):
            if message.speaker != "system":
                yield ("human" if message.speaker == "tool" and isinstance(block, Media) else message.speaker), block
            continue
        if message.speaker == "system":
            for found in _USER_PARTS.finditer(block.text):
                yield "human", Text(next(filter(None, found.groups())).strip())
            continue
        reminder = _REMINDER.fullmatch(block.text)
        text = (reminder[1] if reminder else block.text).strip()
        if not text.startswith(_CONTEXT):
            yield ("ai" if message.speaker == "ai" else "human"), Text(text)


def _show(block: Block, numbers: Mapping[str, int]) -> Iterator[str]:
    match block:
        case Text():
            yield f"text {json.dumps(block.text)}"
        case Thinking():
            yield f"thinking {json.dumps(block.text)} {_digest(block.encrypted or block.signature)}"
        case ToolCall():
            yield f"call {block.name} {encode_json_sorted(block.arguments).decode()}"
        case ToolResponse():
            content = [text for part in block.content or () for text in _show(part, numbers)]
            error = " error" if block.error else ""
            value = "" if block.structured is UNSET else block.structured
            yield f"result of {numbers.get(block.call_id)}{error} {content} {value}"
        case Media():
            yield f"media {_digest(encode_json_sorted(encode_value(block)))}"
        case _:
            yield encode_json_sorted(encode_value(block)).decode()


def _digest(value: object) -> str:
    data = value if isinstance(value, bytes) else str(value or "").encode()
    return sha256(data).hexdigest()[:12]
