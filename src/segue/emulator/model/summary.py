"""The summary that the built-in model makes of a conversation: one line for each text, call and result.

Asked what was said so far, the model answers with the user's texts and the summary that it continues from.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from segue.canonical.blocks import Block, Message, Text, ToolCall, ToolResponse
from segue.canonical.json import encode_json_text
from segue.canonical.request import Request
from segue.emulator.model.exchange import format_result

_HEADING = "Summary of the conversation so far."
_LONGEST = 2_000
_ASKS = re.compile(r"\bwhat (?:did|have) (?:I|we) sa(?:y|id)\b", re.IGNORECASE)
_SPEAKERS = {"human": "The user", "ai": "The assistant", "tool": "A tool"}


def summarize(request: Request, earlier: str = "") -> str:
    """Return the summary of a conversation; `earlier` is that of the messages before it."""
    lines = (line for message in request.messages for line in _lines(message))
    return "\n".join([earlier or _HEADING, *lines])


def asks_for_history(text: str) -> bool:
    return _ASKS.search(text) is not None


def recall(request: Request) -> str:
    """Return what the user said in this conversation, as far as the model knows."""
    earlier = "\n".join(block.text for block in request.system if block.text.startswith(_HEADING))
    said = (line for message in request.messages if message.speaker == "human" for line in _lines(message))
    return "\n".join([*([earlier] if earlier else []), *said])


def _lines(message: Message) -> Iterator[str]:
    speaker = _SPEAKERS.get(message.speaker)
    for block in message.blocks if speaker else ():
        text = _describe(block)
        if text:
            shown = text if len(text) <= _LONGEST else f"{text[: _LONGEST * 3 // 4]} … {text[-_LONGEST // 4 :]}"
            yield f"{speaker}: {shown}"


def _describe(block: Block) -> str:
    match block:
        case Text():
            return block.text
        case ToolCall():
            return f"called {block.name} with {block.arguments_text or encode_json_text(block.arguments)}"
        case ToolResponse():
            return f"returned {format_result(block)}"
        case _:
            return ""
