"""A conversation as one self-contained HTML page: no script, no URL that a browser would fetch.

Every text is escaped where it enters the page. As a second line of defence the page's Content-Security-Policy forbids
scripts and loading.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from html import escape
from itertools import groupby
from typing import assert_never

import msgspec
from msgspec import UNSET

from segue.canonical.blocks import (
    Block,
    Code,
    Media,
    Message,
    Opaque,
    Speaker,
    Text,
    Thinking,
    ToolCall,
    ToolResponse,
    state_of,
)
from segue.canonical.jsontext import write
from segue.canonical.request import Tool
from segue.view.page import Page
from segue.view.prose import code, formatted, plain
from segue.view.style import STYLE
from segue.view.words import (
    SPEAKERS,
    Answered,
    answers_of,
    argument_text,
    inline_picture,
    media_words,
    opaque_words,
    result_text,
    shortened,
    state_words,
    without_controls,
)

__all__ = ["html"]

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; media-src data:; form-action 'none'"
_SHOWN = 96


def html(page: Page) -> str:
    """Render the whole page."""
    title = _escaped(page.title)
    index = answers_of(page.messages)
    facts = "".join(f"<div><dt>{_escaped(name)}</dt><dd>{_escaped(value)}</dd></div>" for name, value in page.facts)
    header = [*_system(page), *_tools(page.request.tools)]
    articles = (article for message in page.messages for article in _message(message, index))
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n<meta name="referrer" content="no-referrer">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        f"<title>{title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n"
        f"<header>\n<h1>{title}</h1>\n<dl>{facts}</dl>\n{_joined(header)}</header>\n{_joined(articles)}"
        "</main>\n</body>\n</html>\n"
    )


def _joined(lines: Iterable[str]) -> str:
    return "".join(f"{part}\n" for part in lines)


def _escaped(text: str) -> str:
    return escape(without_controls(text), quote=True)


def _system(page: Page) -> Iterator[str]:
    text = "\n\n".join(block.text for block in page.request.system)
    if text:
        body = f'<div class="body md">{formatted(text)}</div>'
        yield f'<details class="given"><summary>System text</summary>{body}</details>'


def _tools(tools: tuple[Tool, ...]) -> Iterator[str]:
    if tools:
        rows = "".join(
            f"<li><code>{_escaped(tool.name)}</code> {_escaped(shortened(tool.description or '', 200))}</li>"
            for tool in tools
        )
        count = f"{len(tools)} tool{'' if len(tools) == 1 else 's'}"
        yield f'<details class="given"><summary>{count}</summary><ul>{rows}</ul></details>'


def _message(message: Message, answered: Answered) -> Iterator[str]:
    parts = [part for block in message.blocks for part in _block(block, answered, message.speaker)]
    if parts:
        name = f" <small>{_escaped(message.name)}</small>" if message.name else ""
        speaker = message.speaker
        yield f'<article class="{speaker}"><h2>{SPEAKERS[speaker]}{name}</h2>\n{_joined(parts)}</article>'


def _block(block: Block, answered: Answered, speaker: Speaker) -> Iterator[str]:
    match block:
        case Text():
            if block.text.strip():
                content = plain(block.text) if speaker == "human" else formatted(block.text)
                classes = f"text{'' if speaker == 'human' else ' md'}{' refusal' if block.refusal else ''}"
                yield f'<div class="{classes}">{content}</div>'
        case Thinking():
            yield _thinking(block)
        case ToolCall():
            yield _call(block, answered.of(block))
        case ToolResponse():
            if not answered.is_told(block):
                yield _folded("orphan", block.name or "a tool", "", "result without a tool call", _result(block))
        case Media():
            yield _media(block)
        case Code():
            yield code(block.code, block.language)
        case Opaque():
            if block.silent is None:
                yield f'<p class="aside">{_escaped(opaque_words(block))}</p>'
        case _:  # pragma: no cover
            assert_never(block)


def _thinking(block: Thinking) -> str:
    if not block.text.strip():
        return '<p class="thinking">Thinking, not disclosed</p>'
    head = _escaped(shortened(block.text, 80))
    return (
        f'<details class="thinking"><summary>Thinking · <span>{head}</span></summary>'
        f'<div class="body md">{formatted(block.text)}</div></details>'
    )


def _call(call: ToolCall, results: list[ToolResponse]) -> str:
    text = argument_text(call)
    body = code(_spread(text), "arguments") if text not in ("", "{}") else ""
    state = state_of(results[-1]) if results else "pending"
    return _folded(
        state, call.name, shortened(text, _SHOWN), state_words(results), body + "".join(map(_result, results))
    )


def _folded(kind: str, name: str, line: str, note: str, body: str) -> str:
    """A `<details>` element: one line that opens. `kind` is a CSS class and is not escaped."""
    state = f'<em class="state">{_escaped(note)}</em>' if note else ""
    head = f"<code>{_escaped(name)}</code> <span>{_escaped(line)}</span>{state}"
    return f'<details class="call {kind}"><summary>{head}</summary><div class="body">{body}</div></details>'


def _result(response: ToolResponse) -> str:
    """The content of a result in order; text between two media blocks is one code block."""
    note = '<p class="aside">synthetic: no result was recorded</p>' if response.synthetic else ""
    parts: list[str] = []
    for is_media, blocks in groupby(response.content or (), lambda block: isinstance(block, Media)):
        if is_media:
            parts += [_media(block) for block in blocks if isinstance(block, Media)]
        elif text := result_text(msgspec.structs.replace(response, content=tuple(blocks), structured=UNSET)):
            parts.append(code(_spread(text), "result"))
    if not parts and (text := result_text(response)):
        parts.append(code(_spread(text), "result"))
    return note + "".join(parts)


def _media(block: Media) -> str:
    label = _escaped(media_words(block))
    url = inline_picture(block)
    if url is None:
        linked = block.url is not None and block.url.startswith(("https://", "http://"))
        link = f' <a href="{_escaped(block.url or "")}" rel="noreferrer noopener">open</a>' if linked else ""
        return f'<p class="aside">{label}{link}</p>'
    kind = url[len("data:") :].split("/", 1)[0]
    if kind == "image":
        return f'<figure><img src="{_escaped(url)}" alt="{label}"><figcaption>{label}</figcaption></figure>'
    return f'<figure><{kind} controls src="{_escaped(url)}"></{kind}><figcaption>{label}</figcaption></figure>'


def _spread(text: str) -> str:
    """Indent JSON; return any other text unchanged."""
    if not text.startswith(("{", "[")):
        return text
    try:
        return msgspec.json.format(write(msgspec.json.decode(text)), indent=2).decode()
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return text
