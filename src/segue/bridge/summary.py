"""Summaries of conversations by a model: what it is asked for, in parts that fit its context.

A long conversation is summarised part by part; the summary so far goes before the next part.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from msgspec import UNSET

from segue.bridge.providers import Endpoint
from segue.canonical.blocks import Block, Message, Text, ToolCall, ToolResponse, join_paragraphs, text_of
from segue.canonical.json import encode_json, encode_json_text
from segue.canonical.request import Reply, Usage
from segue.errors import RemoteProtocolError

INSTRUCTION = (
    "Summarise this part of a conversation between a user and an agent, so that the agent can continue the work "
    "without it. Keep what the user wants and decided, which files were read and changed and how, commands and their "
    "outcomes, names, numbers, open questions and next steps. Leave out what no longer matters. Use at most 400 words."
)
MAX_SECONDS = 120.0
"""How long the parts of one summary may take in all."""
_MAX_PARTS = 20
_MAX_TEXT = 400_000
_CHARACTERS_PER_TOKEN = 3
# The part of the context that the text may have; the rest is for the instruction, the summary so far and the reply.
_TEXT_SHARE = 0.6
_BEFORE = "[summary of what came before]\n{summary}\n\n[the conversation goes on]\n{text}"
_NAMES = {"human": "User", "ai": "Assistant", "system": "System", "tool": "User"}


class Summary:
    """A summary in progress: the model is given the `instruction` and the `next_text`; `add` takes its reply."""

    def __init__(self, messages: Sequence[Message], endpoint: Endpoint, instructions: str = "") -> None:
        self.instruction = join_paragraphs((INSTRUCTION, instructions))
        self._parts = cut_text(describe_messages(messages), part_size(endpoint))
        self.usage = Usage()
        self.text = ""

    @property
    def is_complete(self) -> bool:
        return not self._parts

    @property
    def next_text(self) -> str:
        return _BEFORE.format(summary=self.text, text=self._parts[0]) if self.text else self._parts[0]

    def next_body(self, model: str) -> bytes:
        """Return the next request in the form of Chat."""
        messages = [{"role": "system", "content": self.instruction}, {"role": "user", "content": self.next_text}]
        return encode_json({"model": model, "messages": messages})

    def add(self, reply: Reply) -> None:
        """Take the reply to the last request; raise `RemoteProtocolError` if it has no summary."""
        if reply.finish not in ("stop", "length") or not reply.text.strip():
            raise RemoteProtocolError("the model wrote no summary of the conversation")
        self.add_text(reply.text)
        self.usage += reply.usage or Usage()

    def add_text(self, text: str) -> None:
        self.text = text.strip()
        self._parts = self._parts[1:]


def part_size(endpoint: Endpoint) -> int:
    """Return how many characters of a conversation a model gets at once."""
    if endpoint.context is None:
        return _MAX_TEXT
    return min(_MAX_TEXT, int(endpoint.context * _CHARACTERS_PER_TOKEN * _TEXT_SHARE))


def describe_messages(messages: Iterable[Message]) -> str:
    """Return a conversation as text for a model: what was said, the calls and their results."""
    return join_paragraphs(text for message in messages for text in _describe(message))


def _describe(message: Message) -> Iterator[str]:
    texts = text_of(tuple(block for block in message.blocks if isinstance(block, Text)))
    if texts:
        yield f"{_NAMES[message.speaker]}: {texts}"
    yield from (line for block in message.blocks if (line := _describe_block(block)))


def _describe_block(block: Block) -> str:
    match block:
        case ToolCall():
            arguments = block.arguments_text or encode_json_text(block.arguments)
            return f"Assistant calls {block.name}: {arguments}"
        case ToolResponse():
            parts = [part.text for part in block.content or () if isinstance(part, Text)]
            structured = [] if block.structured is UNSET else [encode_json_text(block.structured)]
            state = " (error)" if block.error else ""
            return f"Result of {block.name or 'a tool'}{state}: {join_paragraphs([*structured, *parts])}"
        case _:
            return ""


def cut_text(text: str, size: int) -> list[str]:
    """Cut a text into parts of at most this size, between paragraphs where possible.

    Of a text that would have too many parts, the middle is left out.
    """
    if len(text) > size * _MAX_PARTS:
        half = size * _MAX_PARTS // 2 - 10
        text = f"{text[:half]}\n\n[…]\n\n{text[-half:]}"
    parts: list[str] = []
    while len(text) > size:
        end = text.rfind("\n\n", size // 2, size)
        end = size if end < 0 else end
        parts.append(text[:end])
        text = text[end:].lstrip("\n")
    return [*parts, text] if text or not parts else parts
