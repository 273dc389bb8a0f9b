"""A conversation as Markdown: message text as it is, calls and results in fences longer than any fence inside them.

No message text can look like another message or swallow the next one: see `model_text.contain_markdown`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import assert_never

from segue.canonical.blocks import Block, Code, Media, Message, Opaque, Text, Thinking, ToolCall, ToolResponse
from segue.view.page import Page
from segue.view.prose import LONGEST, contained
from segue.view.words import (
    SPEAKERS,
    Answered,
    answers_of,
    argument_text,
    media_words,
    opaque_words,
    result_text,
    state_words,
    without_controls,
)

__all__ = ["markdown", "markdown_messages"]

_TICKS = re.compile("`+")
_MARKS = re.compile(r"([\\`*_\[\]<>#|])")


def markdown(page: Page) -> str:
    """Render the whole document."""
    facts = "".join(f"- {name}: {_plain(value)}\n" for name, value in page.facts)
    system = "\n\n".join(block.text for block in page.request.system)
    parts = [f"# {_plain(page.title)}\n\n{facts}"]
    if system:
        parts.append(f"## System\n\n{_words(system)}\n")
    if page.request.tools:
        tools = "".join(f"- {_code(tool.name)}{_described(tool.description)}\n" for tool in page.request.tools)
        parts.append(f"## Tools\n\n{tools}")
    return "\n".join([*parts, markdown_messages(page.messages)])


def markdown_messages(messages: Sequence[Message]) -> str:
    """Render messages only, each under a heading with its speaker."""
    index = answers_of(tuple(messages))
    parts: list[str] = []
    for message in messages:
        texts = [text for block in message.blocks for text in _block(block, index)]
        if texts:
            parts.append(f"## {_plain(SPEAKERS[message.speaker])}\n\n" + "\n\n".join(texts) + "\n")
    return "\n".join(parts)


def _block(block: Block, answered: Answered) -> Iterator[str]:
    match block:
        case Text():
            if block.text.strip():
                yield _words(block.text)
        case Thinking():
            text = _words(f"*thinking* {block.text.strip() or '(not disclosed)'}")
            yield "\n".join(f"> {line}".rstrip() for line in text.split("\n"))
        case ToolCall():
            results = answered.of(block)
            state = state_words(results)
            yield f"**{_plain(block.name)}**{f' ({state})' if state else ''}\n\n{_fenced(argument_text(block), 'json')}"
            yield from (_fenced(text) for result in results if (text := result_text(result)))
        case ToolResponse():
            if not answered.is_told(block):
                yield f"*result of {_plain(block.name or 'a tool')}*\n\n{_fenced(result_text(block))}"
        case Media():
            yield f"[{_plain(media_words(block))}]"
        case Code():
            yield _fenced(block.code, block.language)
        case Opaque():
            if block.silent is None:
                yield f"[{_plain(opaque_words(block))}]"
        case _:  # pragma: no cover
            assert_never(block)


def _words(text: str) -> str:
    """Message text as contained Markdown; a text too long to parse is fenced."""
    return contained(text) if len(text) <= LONGEST else _fenced(text)


def _fenced(text: str, language: str = "") -> str:
    text = without_controls(text)
    fence = "`" * max(3, 1 + max(map(len, _TICKS.findall(text)), default=0))
    label = language if re.fullmatch(r"[\w+-]*", language) else ""
    return f"{fence}{label}\n{text.rstrip(chr(10))}\n{fence}"


def _code(text: str) -> str:
    return f"`{_line(text).replace('`', chr(39))}`"


def _described(text: str | None) -> str:
    return f": {_plain(text)}" if text else ""


def _line(text: str) -> str:
    return without_controls(" ".join(text.split()))


def _plain(text: str) -> str:
    """Escape Markdown characters and join to one line."""
    return _MARKS.sub(r"\\\1", _line(text))
