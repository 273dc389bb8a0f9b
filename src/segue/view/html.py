"""A conversation as one HTML page that needs nothing else: no script, no address that a browser would fetch.

Every text is escaped where it enters the page, and there is no other way in. The page itself forbids scripts and
loading, so that a mistake here would still run nothing.
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
    """The whole page."""
    title = _escaped(page.title)
    answered = answers_of(page.messages)
    facts = "".join(f"<div><dt>{_escaped(name)}</dt><dd>{_escaped(value)}</dd></div>" for name, value in page.facts)
    given = [*_system(page), *_tools(page.request.tools)]
    articles = (article for message in page.messages for article in _message(message, answered))
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n<meta name="referrer" content="no-referrer">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        f"<title>{title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n"
        f"<header>\n<h1>{title}</h1>\n<dl>{facts}</dl>\n{_joined(given)}</header>\n{_joined(articles)}"
        "</main>\n</body>\n</html>\n"
    )


def _joined(parts: Iterable[str]) -> str:
    return "".join(f"{part}\n" for part in parts)


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
    told = [part for block in message.blocks for part in _block(block, answered, message.speaker)]
    if told:
        name = f" <small>{_escaped(message.name)}</small>" if message.name else ""
        who = message.speaker
        yield f'<article class="{who}"><h2>{SPEAKERS[who]}{name}</h2>\n{_joined(told)}</article>'


def _block(block: Block, answered: Answered, speaker: Speaker) -> Iterator[str]:
    match block:
        case Text():
            if block.text.strip():
                words = plain(block.text) if speaker == "human" else formatted(block.text)
                look = f"text{'' if speaker == 'human' else ' md'}{' refusal' if block.refusal else ''}"
                yield f'<div class="{look}">{words}</div>'
        case Thinking():
            yield _thinking(block)
        case ToolCall():
            yield _call(block, answered.of(block))
        case ToolResponse():
            if not answered.is_told(block):
                yield _folded("orphan", block.name or "a tool", "", "a result without its call", _result(block))
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
    """A call in one line that opens. `kind` is a word of ours."""
    marked = f'<em class="state">{_escaped(note)}</em>' if note else ""
    head = f"<code>{_escaped(name)}</code> <span>{_escaped(line)}</span>{marked}"
    return f'<details class="call {kind}"><summary>{head}</summary><div class="body">{body}</div></details>'


def _result(response: ToolResponse) -> str:
    """What came back, in its order: words as one piece up to the next picture."""
    made_up = '<p class="aside">made up: no result was recorded</p>' if response.synthetic else ""
    pieces: list[str] = []
    for is_media, blocks in groupby(response.content or (), lambda block: isinstance(block, Media)):
        if is_media:
            pieces += [_media(block) for block in blocks if isinstance(block, Media)]
        elif text := result_text(msgspec.structs.replace(response, content=tuple(blocks), structured=UNSET)):
            pieces.append(code(_spread(text), "result"))
    if not pieces and (text := result_text(response)):
        pieces.append(code(_spread(text), "result"))
    return made_up + "".join(pieces)


def _media(block: Media) -> str:
    words = _escaped(media_words(block))
    address = inline_picture(block)
    if address is None:
        linked = block.url is not None and block.url.startswith(("https://", "http://"))
        link = f' <a href="{_escaped(block.url or "")}" rel="noreferrer noopener">open</a>' if linked else ""
        return f'<p class="aside">{words}{link}</p>'
    kind = address[len("data:") :].split("/", 1)[0]
    if kind == "image":
        return f'<figure><img src="{_escaped(address)}" alt="{words}"><figcaption>{words}</figcaption></figure>'
    return f'<figure><{kind} controls src="{_escaped(address)}"></{kind}><figcaption>{words}</figcaption></figure>'


def _spread(text: str) -> str:
    """JSON over several lines; anything else as it is."""
    if not text.startswith(("{", "[")):
        return text
    try:
        return msgspec.json.format(write(msgspec.json.decode(text)), indent=2).decode()
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return text
