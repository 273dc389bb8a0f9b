"""A conversation as one self-contained HTML page: no script, no URL that a browser would fetch.

Every text is escaped. In addition, the page's Content-Security-Policy forbids scripts and loading.
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
from segue.canonical.json import encode_json
from segue.canonical.request import Tool
from segue.errors import format_count
from segue.view.format import (
    SPEAKERS,
    ResultIndex,
    data_url,
    format_arguments,
    format_media,
    format_opaque,
    format_result,
    format_state,
    index_results,
    is_shown,
    replace_controls,
    shorten,
)
from segue.view.model_text import code_to_html, markdown_to_html, text_to_html
from segue.view.page import Page
from segue.view.replies import Carried, ReplyNote, Switch
from segue.view.style import MODEL_COLORS, STYLE

_CONTENT_SECURITY_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; media-src data:; form-action 'none'"
)
_MAX_ARGUMENTS = 96


def render_html(page: Page) -> Iterator[str]:
    """Yield the page in chunks."""
    title = _escape(page.title)
    facts = "".join(f"<div><dt>{_escape(name)}</dt><dd>{_escape(value)}</dd></div>" for name, value in page.facts)
    header = [*_system(page), *_tools(page.request.tools)]
    yield (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n<meta name="referrer" content="no-referrer">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_CONTENT_SECURITY_POLICY}">\n'
        f"<title>{title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n"
        f"<header>\n<h1>{title}</h1>\n<dl>{facts}</dl>\n{_join_lines(header)}</header>\n"
    )
    carried = Carried()
    for segment in page.segments:
        index = index_results(segment)
        for message in segment:
            note = page.notes.of(message)
            if note is not None and note.switch is not None:
                yield f"{_switch(note.switch, carried)}\n"
            color = f" m{page.notes.number_of(note.model) % MODEL_COLORS}" if note is not None else ""
            yield from (f"{article}\n" for article in _message(message, index, note, color))
            carried.add(message)
    yield "</main>\n</body>\n</html>\n"


def _join_lines(lines: Iterable[str]) -> str:
    return "".join(f"{part}\n" for part in lines)


def _escape(text: str) -> str:
    return escape(replace_controls(text), quote=True)


def _system(page: Page) -> Iterator[str]:
    text = "\n\n".join(block.text for block in page.request.system)
    if text:
        body = f'<div class="body md">{markdown_to_html(text)}</div>'
        yield f'<details class="given"><summary>System text</summary>{body}</details>'


def _tools(tools: tuple[Tool, ...]) -> Iterator[str]:
    if tools:
        rows = "".join(
            f"<li><code>{_escape(tool.name)}</code> {_escape(shorten(tool.description or '', 200))}</li>"
            for tool in tools
        )
        count = format_count(len(tools), "tool")
        yield f'<details class="given"><summary>{count}</summary><ul>{rows}</ul></details>'


def _switch(switch: Switch, carried: Carried) -> str:
    """Return the line between two models, with the losses and changes of the first request to the new one."""
    findings = "".join(f"<li>{_escape(finding)}</li>" for finding in switch.findings)
    head = f"Switched from {_escape(switch.before)} to {_escape(switch.after)}: {carried}"
    body = f"{head}<ul>{findings}</ul>" if findings else f"{head}, nothing changed or lost"
    return f'<aside class="switch">{body}</aside>'


def _message(message: Message, index: ResultIndex, note: ReplyNote | None, color: str) -> Iterator[str]:
    """Yield the message as an article. `color` is a CSS class with a leading space, and is not escaped."""
    parts = [part for block in message.blocks for part in _block(block, index, message.speaker)]
    if parts:
        name = f" <small>{_escape(message.name)}</small>" if message.name else ""
        if note is not None:
            usage = f" <small>{_escape(text)}</small>" if (text := str(note)) else ""
            name += f' <span class="model">{_escape(note.model)}</span>{usage}'
        speaker = message.speaker
        yield f'<article class="{speaker}{color}"><h2>{SPEAKERS[speaker]}{name}</h2>\n{_join_lines(parts)}</article>'


def _block(block: Block, index: ResultIndex, speaker: Speaker) -> Iterator[str]:
    match block:
        case Text():
            if block.text.strip():
                content = text_to_html(block.text) if speaker == "human" else markdown_to_html(block.text)
                classes = f"text{'' if speaker == 'human' else ' md'}{' refusal' if block.refusal else ''}"
                yield f'<div class="{classes}">{content}</div>'
        case Thinking():
            yield _thinking(block)
        case ToolCall():
            yield _call(block, index.results_of(block))
        case ToolResponse():
            if not index.is_paired(block):
                yield _collapsible("orphan", block.name or "a tool", "", "result without a tool call", _result(block))
        case Media():
            yield _media(block)
        case Code():
            yield code_to_html(block.code, block.language)
        case Opaque():
            if is_shown(block):
                yield f'<p class="aside">{_escape(format_opaque(block))}</p>'
        case _:  # pragma: no cover
            assert_never(block)


def _thinking(block: Thinking) -> str:
    if not block.text.strip():
        return '<p class="thinking">Thinking, not disclosed</p>'
    head = _escape(shorten(block.text, 80))
    return (
        f'<details class="thinking"><summary>Thinking · <span>{head}</span></summary>'
        f'<div class="body md">{markdown_to_html(block.text)}</div></details>'
    )


def _call(call: ToolCall, results: list[ToolResponse]) -> str:
    text = format_arguments(call)
    body = code_to_html(_indent_json(text), "arguments") if text not in ("", "{}") else ""
    state = state_of(results[-1]) if results else "pending"
    return _collapsible(
        state, call.name, shorten(text, _MAX_ARGUMENTS), format_state(results), body + "".join(map(_result, results))
    )


def _collapsible(kind: str, name: str, line: str, note: str, body: str) -> str:
    """Return a `<details>` element: one line that opens. `kind` is a CSS class and is not escaped."""
    state = f'<em class="state">{_escape(note)}</em>' if note else ""
    head = f"<code>{_escape(name)}</code> <span>{_escape(line)}</span>{state}"
    return f'<details class="call {kind}"><summary>{head}</summary><div class="body">{body}</div></details>'


def _result(response: ToolResponse) -> str:
    """Return the content of a result in order; text between two media blocks is one code block."""
    note = '<p class="aside">synthetic: no result was recorded</p>' if response.synthetic else ""
    parts: list[str] = []
    for is_media, blocks in groupby(response.content or (), lambda block: isinstance(block, Media)):
        if is_media:
            parts += [_media(block) for block in blocks if isinstance(block, Media)]
        elif text := format_result(msgspec.structs.replace(response, content=tuple(blocks), structured=UNSET)):
            parts.append(code_to_html(_indent_json(text), "result"))
    if not parts and (text := format_result(response)):
        parts.append(code_to_html(_indent_json(text), "result"))
    return note + "".join(parts)


def _media(block: Media) -> str:
    label = _escape(format_media(block))
    url = data_url(block)
    if url is None:
        linked = block.url is not None and block.url.startswith(("https://", "http://"))
        link = f' <a href="{_escape(block.url or "")}" rel="noreferrer noopener">open</a>' if linked else ""
        return f'<p class="aside">{label}{link}</p>'
    kind = url[len("data:") :].split("/", 1)[0]
    if kind == "image":
        return f'<figure><img src="{_escape(url)}" alt="{label}"><figcaption>{label}</figcaption></figure>'
    return f'<figure><{kind} controls src="{_escape(url)}"></{kind}><figcaption>{label}</figcaption></figure>'


def _indent_json(text: str) -> str:
    """Indent JSON; return any other text unchanged."""
    if not text.startswith(("{", "[")):
        return text
    try:
        return msgspec.json.format(encode_json(msgspec.json.decode(text)), indent=2).decode()
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return text
