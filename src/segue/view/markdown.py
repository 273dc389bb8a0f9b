"""A conversation as Markdown: message text as it is, calls and results in fences longer than any fence inside them.

Message text can't be mistaken for another message, or hide the next one: see `model_text.embed_markdown`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import assert_never

from segue.canonical.blocks import Block, Code, Media, Message, Opaque, Text, Thinking, ToolCall, ToolResponse
from segue.view.format import (
    SPEAKERS,
    ResultIndex,
    format_arguments,
    format_media,
    format_opaque,
    format_result,
    format_state,
    index_results,
    is_shown,
    replace_controls,
)
from segue.view.model_text import MAX_LENGTH, embed_markdown
from segue.view.page import Page
from segue.view.replies import Carried, ReplyNotes, Switch

_TICKS = re.compile("`+")
_MARKS = re.compile(r"([\\`*_\[\]<>#|])")


def render_markdown(page: Page) -> Iterator[str]:
    """Yield the document in chunks."""
    facts = "".join(f"- {name}: {_escape(value)}\n" for name, value in page.facts)
    system = "\n\n".join(block.text for block in page.request.system)
    parts = [f"# {_escape(page.title)}\n\n{facts}"]
    if system:
        parts.append(f"## System\n\n{_contain(system)}\n")
    if page.request.tools:
        tools = "".join(f"- {_inline_code(tool.name)}{_description(tool.description)}\n" for tool in page.request.tools)
        parts.append(f"## Tools\n\n{tools}")
    yield "\n".join([*parts, ""])
    is_first = True
    carried = Carried()
    for segment in page.segments:
        for part in _messages(segment, page.notes, carried):
            yield part if is_first else f"\n{part}"
            is_first = False


def render_messages(messages: Sequence[Message]) -> str:
    """Render messages only, each under a heading with its speaker."""
    return "\n".join(_messages(messages, ReplyNotes(), Carried()))


def _messages(messages: Sequence[Message], notes: ReplyNotes, carried: Carried) -> Iterator[str]:
    index = index_results(messages)
    for message in messages:
        texts = [text for block in message.blocks for text in _block(block, index)]
        note = notes.of(message)
        if note is not None and note.switch is not None:
            yield _switch(note.switch, carried)
        if texts:
            model = f" ({_escape(note.model)})" if note is not None else ""
            usage = [f"*{text}*"] if note is not None and (text := str(note)) else []
            yield f"## {_escape(SPEAKERS[message.speaker])}{model}\n\n" + "\n\n".join([*texts, *usage]) + "\n"
        carried.add(message)


def _switch(switch: Switch, carried: Carried) -> str:
    head = f"---\n\n**Switched from {_escape(switch.before)} to {_escape(switch.after)}**: {carried}"
    findings = "".join(f"\n- {_escape(finding)}" for finding in switch.findings)
    return f"{head}\n{findings}\n" if findings else f"{head}, nothing changed or lost\n"


def _block(block: Block, index: ResultIndex) -> Iterator[str]:
    match block:
        case Text():
            if block.text.strip():
                yield _contain(block.text)
        case Thinking():
            text = _contain(f"*thinking* {block.text.strip() or '(not disclosed)'}")
            yield "\n".join(f"> {line}".rstrip() for line in text.split("\n"))
        case ToolCall():
            results = index.results_of(block)
            state = format_state(results)
            shown = f"**{_escape(block.name)}**{f' ({state})' if state else ''}"
            yield f"{shown}\n\n{_fence(format_arguments(block), 'json')}"
            yield from (_fence(text) for result in results if (text := format_result(result)))
        case ToolResponse():
            if not index.is_paired(block):
                yield f"*result of {_escape(block.name or 'a tool')}*\n\n{_fence(format_result(block))}"
        case Media():
            yield f"[{_escape(format_media(block))}]"
        case Code():
            yield _fence(block.code, block.language)
        case Opaque():
            if is_shown(block):
                yield f"[{_escape(format_opaque(block))}]"
        case _:  # pragma: no cover
            assert_never(block)


def _contain(text: str) -> str:
    """Return message text that can be embedded; a text too long to parse is fenced."""
    return embed_markdown(text) if len(text) <= MAX_LENGTH else _fence(text)


def _fence(text: str, language: str = "") -> str:
    text = replace_controls(text)
    fence = "`" * max(3, 1 + max(map(len, _TICKS.findall(text)), default=0))
    label = language if re.fullmatch(r"[\w+-]*", language) else ""
    return f"{fence}{label}\n{text.rstrip(chr(10))}\n{fence}"


def _inline_code(text: str) -> str:
    return f"`{_one_line(text).replace('`', chr(39))}`"


def _description(text: str | None) -> str:
    return f": {_escape(text)}" if text else ""


def _one_line(text: str) -> str:
    return replace_controls(" ".join(text.split()))


def _escape(text: str) -> str:
    """Escape Markdown characters and join to one line."""
    return _MARKS.sub(r"\\\1", _one_line(text))
