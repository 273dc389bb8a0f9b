"""The Markdown that a model writes: converted to HTML, or contained so that it can stand inside a Markdown document.

None of it becomes markup of the surrounding page or document: raw HTML is text, only `http` URLs are links, images
are links too, and headings rank below the headings with the speakers' names.
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
"""Longer texts are not parsed as Markdown, because parsing them takes too long."""
_BELOW = 2
"""Heading levels above those of a text."""
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
    parser = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"]).disable(["entity"])
    parser.validateLink = lambda url: url.lower().startswith(("http://", "https://"))
    for name, rule in _RULES.items():
        parser.add_render_rule(name, rule)
    return parser


# ---------------------------------------------------------------------------------------------------------------- HTML


def formatted(text: str) -> str:
    """Convert Markdown to HTML."""
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
    """Convert a user's text to HTML: only code and bold are formatted, line ends stay."""
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
    attribute = f' data-label="{_escaped(label)}"' if label else ""
    return f"<pre{attribute}><code>{_escaped(text)}</code></pre>"


def _escaped(text: str) -> str:
    return escape(without_controls(text), quote=True)


def _fenced(_: Any, tokens: Sequence[Token], at: int, *__: Any) -> str:
    return code(tokens[at].content.removesuffix("\n"), tokens[at].info.strip())


def _link(_: Any, tokens: Sequence[Token], at: int, *__: Any) -> str:
    return f'<a href="{_escaped(str(tokens[at].attrs["href"]))}" rel="noreferrer noopener">'


def _image(_: Any, tokens: Sequence[Token], at: int, *__: Any) -> str:
    url = _escaped(str(tokens[at].attrs["src"]))
    return f'<a href="{url}" rel="noreferrer noopener">{_escaped(tokens[at].content) or url}</a>'


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
    """Contain Markdown: close an open fence, escape HTML tags, and lower its headings below the document's own.

    Text that every Markdown parser reads as code is unchanged; where parsers may differ, tags are escaped.
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
    output: list[str] = []
    is_open = False
    for at, line in enumerate(lines):
        if at in in_code or not line.strip():
            is_open = False
            output.append(line)
            continue
        escaped, open_after = _without_tags(line, spans=not is_open and "\\`" not in line)
        is_open = is_open or open_after
        output.append(escaped)
    last = tokens[-1] if tokens else None
    if last is not None and last.type == "fence" and not _is_closed(last, lines):
        output.append(last.markup)
    return "\n".join(output)


def _settled(lines: list[str]) -> Sequence[Token]:
    """Escape underlines of setext headings and parse; repeated, because escaping one can create another heading."""
    while True:
        tokens = _parser().parse("\n".join(lines))
        found = [token for token in tokens if token.type == "heading_open" and token.markup in ("=", "-")]
        before = list(lines)
        for token in found:
            _level(lines, (token.map or [0, 1])[1] - 1)
        if lines == before:
            return tokens


def _level(lines: list[str], at: int) -> None:
    """Escape the underline of a heading at `at`, and the underlines directly after it."""
    while at < len(lines) and (found := _UNDERLINE.fullmatch(lines[at])):
        lines[at] = f"{found[1]}\\{found[2]}"
        at += 1


def _lowered(found: re.Match[str]) -> str:
    return found[1] + "#" * min(6, len(found[2]) + _BELOW)


def _without_tags(line: str, *, spans: bool) -> tuple[str, bool]:
    """The line with its tags escaped outside code spans, and whether a code span may continue on the next line."""
    parts: list[str] = []
    rest = ""
    at = 0
    for found in _SPAN.finditer(line) if spans else ():
        # Table rows are split into cells before code spans are parsed.
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
