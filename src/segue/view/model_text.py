"""Markdown written by models: converted to HTML, or made safe to embed in a Markdown document.

Raw HTML becomes text, only `http` and `https` URLs become links, images become links, and headings are lowered below
the headings with the speakers' names.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from html import escape
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.token import Token

from segue.view.format import replace_controls

MAX_LENGTH = 200_000
"""Longer texts are not parsed as Markdown, because parsing them takes too long."""
_HEADING_SHIFT = 2
"""How many levels the headings of a text are lowered."""
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
    for name, rule in _RENDER_RULES.items():
        parser.add_render_rule(name, rule)
    return parser


# ---------------------------------------------------------------------------------------------------------------- HTML


def markdown_to_html(text: str) -> str:
    """Convert Markdown to HTML."""
    text = replace_controls(text)
    if len(text) > MAX_LENGTH:
        return text_to_html(text)
    try:
        tokens = _parser().parse(text)
    except RecursionError:
        return text_to_html(text)
    for token in tokens:
        if token.type in ("heading_open", "heading_close"):
            token.tag = f"h{min(6, int(token.tag[1]) + _HEADING_SHIFT)}"
        aligned = _ALIGNED.fullmatch(str(token.attrs.get("style", "")))
        if token.type in ("td_open", "th_open"):
            token.attrs = {"class": aligned[1]} if aligned else {}
    return _parser().renderer.render(tokens, _parser().options, {})


def text_to_html(text: str) -> str:
    """Convert a user's text to HTML: only code and bold are formatted, line ends stay."""
    parts: list[str] = []
    lines: list[str] = []
    fence, label = "", ""
    for line in text.split("\n"):
        found = _FENCE.fullmatch(line.rstrip())
        if fence and found and found[1].startswith(fence) and not found[2]:
            parts.append(code_to_html("\n".join(lines), label))
            lines, fence = [], ""
        elif found and not fence:
            parts.append(_paragraph("\n".join(lines)))
            lines, fence, label = [], found[1], found[2].strip()
        else:
            lines.append(line)
    rest = "\n".join(lines)
    return "".join([*parts, code_to_html(rest, label) if fence else _paragraph(rest)])


def _paragraph(text: str) -> str:
    if not text.strip():
        return ""
    parts: list[str] = []
    at = 0
    text = text.strip("\n")
    for found in _INLINE.finditer(text):
        inner, strong = found.groups()
        marked = f"<code>{_escape(inner)}</code>" if inner is not None else f"<strong>{_escape(strong)}</strong>"
        parts += [_escape(text[at : found.start()]), marked]
        at = found.end()
    return f"<p>{''.join(parts)}{_escape(text[at:])}</p>"


def code_to_html(text: str, label: str = "") -> str:
    attribute = f' data-label="{_escape(label)}"' if label else ""
    return f"<pre{attribute}><code>{_escape(text)}</code></pre>"


def _escape(text: str) -> str:
    return escape(replace_controls(text), quote=True)


def _render_fence(_: Any, tokens: Sequence[Token], at: int, *__: Any) -> str:
    return code_to_html(tokens[at].content.removesuffix("\n"), tokens[at].info.strip())


def _render_link(_: Any, tokens: Sequence[Token], at: int, *__: Any) -> str:
    return f'<a href="{_escape(str(tokens[at].attrs["href"]))}" rel="noreferrer noopener">'


def _render_image(_: Any, tokens: Sequence[Token], at: int, *__: Any) -> str:
    url = _escape(str(tokens[at].attrs["src"]))
    return f'<a href="{url}" rel="noreferrer noopener">{_escape(tokens[at].content) or url}</a>'


def _render_text(_: Any, tokens: Sequence[Token], at: int, *__: Any) -> str:
    return _escape(tokens[at].content)


def _render_inline_code(_: Any, tokens: Sequence[Token], at: int, *__: Any) -> str:
    return f"<code>{_escape(tokens[at].content)}</code>"


def _render_line_end(*_: Any) -> str:
    return "<br>"


def _render_rule(*_: Any) -> str:
    return "<hr>\n"


_RENDER_RULES = {
    "fence": _render_fence,
    "code_block": _render_fence,
    "code_inline": _render_inline_code,
    "link_open": _render_link,
    "image": _render_image,
    "text": _render_text,
    "softbreak": _render_line_end,
    "hardbreak": _render_line_end,
    "hr": _render_rule,
}


# ------------------------------------------------------------------------------------------------------------ Markdown


def embed_markdown(text: str) -> str:
    """Return Markdown that can be embedded in a document: open fence closed, HTML tags escaped, headings lowered.

    Text that every Markdown parser reads as code is unchanged; where parsers may differ, tags are escaped.
    """
    lines = replace_controls(_LINE_END.sub("\n", text.rstrip())).split("\n")
    tokens = _parse_without_underlines(lines)
    in_code = {
        at for token in tokens if token.type in ("fence", "code_block") and token.map for at in range(*token.map)
    }
    for token in tokens:
        if token.type == "heading_open" and token.map:
            at = token.map[0]
            lines[at] = _HEADING.sub(_shift_heading, lines[at], count=1)
    output: list[str] = []
    is_open = False
    for at, line in enumerate(lines):
        if at in in_code or not line.strip():
            is_open = False
            output.append(line)
            continue
        escaped, open_after = _escape_tags(line, spans=not is_open and "\\`" not in line)
        is_open = is_open or open_after
        output.append(escaped)
    last = tokens[-1] if tokens else None
    if last is not None and last.type == "fence" and not _is_closed(last, lines):
        output.append(last.markup)
    return "\n".join(output)


def _parse_without_underlines(lines: list[str]) -> Sequence[Token]:
    """Escape underlines of setext headings and parse; repeated, because escaping one can create another heading."""
    while True:
        tokens = _parser().parse("\n".join(lines))
        found = [token for token in tokens if token.type == "heading_open" and token.markup in ("=", "-")]
        before = list(lines)
        for token in found:
            _escape_underlines(lines, (token.map or [0, 1])[1] - 1)
        if lines == before:
            return tokens


def _escape_underlines(lines: list[str], at: int) -> None:
    """Escape the underline of a heading at `at`, and the underlines directly after it."""
    while at < len(lines) and (found := _UNDERLINE.fullmatch(lines[at])):
        lines[at] = f"{found[1]}\\{found[2]}"
        at += 1


def _shift_heading(found: re.Match[str]) -> str:
    return found[1] + "#" * min(6, len(found[2]) + _HEADING_SHIFT)


def _escape_tags(line: str, *, spans: bool) -> tuple[str, bool]:
    """Return the line with tags escaped outside code spans, and whether a code span may continue on the next line."""
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
