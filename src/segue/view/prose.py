"""What a model writes is Markdown: as HTML for a page, and so that it stays in its place in a Markdown file.

Nothing of it becomes markup of the page or of the file itself: raw HTML is text, only `http` addresses are links,
pictures that a browser would fetch are links too, and its headings stand below those that say who speaks.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from html import escape
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.token import Token

from segue.view.words import without_controls

__all__ = ["LONGEST", "code", "contained", "formatted", "plain"]

LONGEST = 200_000
"""Beyond it words are shown as they stand: no answer is that long, and reading them as Markdown takes its time."""
_BELOW = 2
"""Headings that are above those of a text."""
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})([^`]*)")
_INLINE = re.compile(r"`([^`\n]+)`|\*\*([^*\n]+)\*\*")
_SPAN = re.compile(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)")
_TAG = re.compile(r"(?<!\\)((?:\\\\)*)<(?!https?://[^\s<>`]*>)(?=[A-Za-z/!?])")
_HEADING = re.compile(r"([\s>*+\-\d.)]*?)(#{1,6})(?=\s|$)")
_LINE_END = re.compile(r"\r\n?")
_UNDERLINE = re.compile(r"([\s>]*)((?:=+|-+)\s*)")
_ALIGNED = re.compile(r"text-align:(left|center|right)")


@cache
def _parser() -> MarkdownIt:
    made = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"]).disable(["entity"])
    made.validateLink = lambda url: url.lower().startswith(("http://", "https://"))
    for name, rule in _RULES.items():
        made.add_render_rule(name, rule)
    return made


# ---------------------------------------------------------------------------------------------------------------- HTML


def formatted(text: str) -> str:
    """Markdown as HTML."""
    text = without_controls(text)
    if len(text) > LONGEST:
        return plain(text)
    try:
        tokens = _parser().parse(text)
    except RecursionError:
        return plain(text)
    for token in tokens:
        if token.type in ("heading_open", "heading_close"):
            token.tag = f"h{min(6, int(token.tag[1]) + _BELOW)}"
        aligned = _ALIGNED.fullmatch(str(token.attrs.get("style", "")))
        if token.type in ("td_open", "th_open"):
            token.attrs = {"class": aligned[1]} if aligned else {}
    return _parser().renderer.render(tokens, _parser().options, {})


def plain(text: str) -> str:
    """Words with their code set apart; line ends stay. For what people write, who may mean a star by a star."""
    parts: list[str] = []
    lines: list[str] = []
    fence, label = "", ""
    for line in text.split("\n"):
        found = _FENCE.fullmatch(line.rstrip())
        if fence and found and found[1].startswith(fence) and not found[2]:
            parts.append(code("\n".join(lines), label))
            lines, fence = [], ""
        elif found and not fence:
            parts.append(_paragraph("\n".join(lines)))
            lines, fence, label = [], found[1], found[2].strip()
        else:
            lines.append(line)
    rest = "\n".join(lines)
    return "".join([*parts, code(rest, label) if fence else _paragraph(rest)])


def _paragraph(text: str) -> str:
    if not text.strip():
        return ""
    parts: list[str] = []
    at = 0
    text = text.strip("\n")
    for found in _INLINE.finditer(text):
        inner, strong = found.groups()
        marked = f"<code>{_escaped(inner)}</code>" if inner is not None else f"<strong>{_escaped(strong)}</strong>"
        parts += [_escaped(text[at : found.start()]), marked]
        at = found.end()
    return f"<p>{''.join(parts)}{_escaped(text[at:])}</p>"


def code(text: str, label: str = "") -> str:
    named = f' data-label="{_escaped(label)}"' if label else ""
    return f"<pre{named}><code>{_escaped(text)}</code></pre>"


def _escaped(text: str) -> str:
    return escape(without_controls(text), quote=True)


def _fenced(_: Any, tokens: Sequence[Token], at: int, *__: Any) -> str:
    return code(tokens[at].content.removesuffix("\n"), tokens[at].info.strip())


def _link(_: Any, tokens: Sequence[Token], at: int, *__: Any) -> str:
    return f'<a href="{_escaped(str(tokens[at].attrs["href"]))}" rel="noreferrer noopener">'


def _image(_: Any, tokens: Sequence[Token], at: int, *__: Any) -> str:
    address = _escaped(str(tokens[at].attrs["src"]))
    return f'<a href="{address}" rel="noreferrer noopener">{_escaped(tokens[at].content) or address}</a>'


def _text(_: Any, tokens: Sequence[Token], at: int, *__: Any) -> str:
    return _escaped(tokens[at].content)


def _inline_code(_: Any, tokens: Sequence[Token], at: int, *__: Any) -> str:
    return f"<code>{_escaped(tokens[at].content)}</code>"


def _line_end(*_: Any) -> str:
    return "<br>"


def _rule(*_: Any) -> str:
    return "<hr>\n"


_RULES = {
    "fence": _fenced,
    "code_block": _fenced,
    "code_inline": _inline_code,
    "link_open": _link,
    "image": _image,
    "text": _text,
    "softbreak": _line_end,
    "hardbreak": _line_end,
    "hr": _rule,
}


# ------------------------------------------------------------------------------------------------------------ Markdown


def contained(text: str) -> str:
    """Markdown that ends where it ends: a fence is closed, tags are text, and no heading is one of the file's own.

    What is code to every reader of Markdown stays as it is; where they may differ, a tag is rather told once too often.
    """
    lines = without_controls(_LINE_END.sub("\n", text.rstrip())).split("\n")
    tokens = _settled(lines)
    in_code = {
        at for token in tokens if token.type in ("fence", "code_block") and token.map for at in range(*token.map)
    }
    for token in tokens:
        if token.type == "heading_open" and token.map:
            at = token.map[0]
            lines[at] = _HEADING.sub(_lowered, lines[at], count=1)
    told: list[str] = []
    is_open = False
    for at, line in enumerate(lines):
        if at in in_code or not line.strip():
            is_open = False
            told.append(line)
            continue
        made, left = _without_tags(line, spans=not is_open and "\\`" not in line)
        is_open = is_open or left
        told.append(made)
    last = tokens[-1] if tokens else None
    if last is not None and last.type == "fence" and not _is_closed(last, lines):
        told.append(last.markup)
    return "\n".join(told)


def _settled(lines: list[str]) -> Sequence[Token]:
    """What the lines mean, once none of them is a heading for the line below it: without that, others mean more."""
    while True:
        tokens = _parser().parse("\n".join(lines))
        found = [token for token in tokens if token.type == "heading_open" and token.markup in ("=", "-")]
        before = list(lines)
        for token in found:
            _level(lines, (token.map or [0, 1])[1] - 1)
        if lines == before:
            return tokens


def _level(lines: list[str], at: int) -> None:
    """Takes the line away from under a heading; and those after it, which would be the next one's."""
    while at < len(lines) and (found := _UNDERLINE.fullmatch(lines[at])):
        lines[at] = f"{found[1]}\\{found[2]}"
        at += 1


def _lowered(found: re.Match[str]) -> str:
    return found[1] + "#" * min(6, len(found[2]) + _BELOW)


def _without_tags(line: str, *, spans: bool) -> tuple[str, bool]:
    """The line with its tags as text, but in code; and whether a mark of code in it may go on in the next one."""
    parts: list[str] = []
    rest = ""
    at = 0
    for found in _SPAN.finditer(line) if spans else ():
        # A row of a table is cut before its code is looked for.
        inner = found[0] if "|" not in found[0] else _TAG.sub(r"\1\\<", found[0])
        parts += [_TAG.sub(r"\1\\<", line[at : found.start()]), inner]
        rest += line[at : found.start()]
        at = found.end()
    rest += line[at:]
    return "".join(parts) + _TAG.sub(r"\1\\<", line[at:]), "`" in rest


def _is_closed(fence: Token, lines: Sequence[str]) -> bool:
    start, end = fence.map or (0, 0)
    sign, count = fence.markup[0], len(fence.markup)
    return end - start > 1 and re.fullmatch(f" {{0,3}}{sign}{{{count},}}[ \t]*", lines[end - 1]) is not None
