"""Conversion of HTML to plain text, with headings, paragraphs, lists, tables, code and link targets.

The time is linear in the input, whatever it is: the page is tokenized and not built into a tree, which takes quadratic
time for some pages in every parser that follows the HTML standard (docs/decisions/0002-dependencies.md). The input is
fed in chunks, so that a conversion can be stopped.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import TYPE_CHECKING
from urllib.parse import urljoin

from msgspec import Struct

if TYPE_CHECKING:
    from turbohtml import Token, TokenType

MAX_HTML = 2_000_000
"""Characters of a page that are converted."""
MAX_TEXT = 100_000
"""Characters of text after which a conversion ends."""
_CHUNK = 1 << 16
_MAX_INDENT = 50

_SKIPPED_TAGS = frozenset(
    {"script", "style", "noscript", "template", "svg", "head", "iframe", "object", "canvas", "select"}
)
# Their content is text for the tokenizer, also after `<script/>`.
_RAW_TEXT_TAGS = frozenset({"script", "style", "iframe"})
# Any other tag ends the head.
_HEAD_TAGS = frozenset({"head", "title", "meta", "link", "base", "style", "script", "noscript", "template"})
_BLOCK_TAGS = frozenset(
    {"p", "div", "section", "article", "main", "header", "footer", "nav", "aside", "table", "ul", "ol", "dl", "form"}
    | {"blockquote", "figure", "fieldset", "details", "address", "body", "h1", "h2", "h3", "h4", "h5", "h6", "pre"}
)
_LINE_TAGS = frozenset({"br", "tr", "li", "dt", "dd", "hr", "option", "summary", "figcaption", "caption"})
# The text after their end begins on a new line.
_ENDED_LINE_TAGS = _LINE_TAGS - {"br", "hr"}
_INTEGER = re.compile(r"\s*([+-]?[0-9]{1,9})(?![0-9])")
_HEADINGS = {f"h{level}": "#" * level + " " for level in range(1, 7)}


class HtmlText(Struct, frozen=True):
    """The text of a page; `is_truncated` means that the page was not converted to its end."""

    text: str
    is_truncated: bool = False


class _Writer:
    """Joins text, line breaks and code blocks. `size` is the number of characters, without blanks between texts."""

    def __init__(self) -> None:
        self.size = 0
        self.pre_depth = 0
        self._segments: list[tuple[bool, list[str]]] = []
        self._pieces: list[str] = []
        self._marker: str | None = None
        self._has_line_ended = False
        self._start_segment(is_code=False)

    def _start_segment(self, *, is_code: bool) -> None:
        self._pieces = []
        self._has_line_ended = False
        self._segments.append((is_code, self._pieces))

    def write(self, text: str) -> None:
        if self._has_line_ended and not text.isspace():
            self.break_line(1)
        self._pieces.append(text)
        if self.pre_depth or not text.isspace():
            self.size += len(text)

    def write_marker(self, marker: str) -> None:
        """Write a bullet, number, heading mark or cell border; a block that follows begins on the same line."""
        self.write(marker)
        self._marker = marker

    def end_line(self) -> None:
        """Write a line end before the next text, unless another one comes first."""
        self._has_line_ended = not self.pre_depth

    def start_block(self) -> None:
        """Begin a paragraph, on the line of a marker if nothing follows the marker."""
        pieces = self._pieces
        while not self.pre_depth and pieces and pieces[-1] == " ":
            pieces.pop()
        # The same object: text that looks like a marker is none.
        if self.pre_depth or not pieces or pieces[-1] is not self._marker:
            self.break_line(2)

    def break_line(self, count: int) -> None:
        """Write one or two line ends, but no second blank line."""
        self._has_line_ended = False
        if self.pre_depth:
            self.write("\n" * count)
            return
        pieces = self._pieces
        while pieces and pieces[-1] == " ":
            pieces.pop()
        if pieces and pieces[-1] in ("\n", "\n\n"):
            pieces[-1] = "\n\n"
        else:
            pieces.append("\n" * count)

    def start_code(self) -> None:
        if not self.pre_depth:
            self._start_segment(is_code=True)
        self.pre_depth += 1
        self.write("```\n")

    def end_code(self) -> None:
        if not self.pre_depth:
            return
        self.write("\n```")
        self.pre_depth -= 1
        if not self.pre_depth:
            self._start_segment(is_code=False)

    def format(self) -> str:
        while self.pre_depth:
            self.end_code()
        joined = ((is_code, "".join(pieces)) for is_code, pieces in self._segments)
        tidy = (text if is_code else _tidy(text) for is_code, text in joined)
        return "\n".join(text for text in tidy if text.strip()).strip()


class _List(Struct):
    """An open list; `number` is that of the next item, None without numbers."""

    number: int | None = None
    step: int = 1


class _Converter:
    """Writes the text of a page, token by token. Each token takes constant time."""

    def __init__(self, base_url: str) -> None:
        from turbohtml import TokenType

        self._handlers: dict[TokenType, Callable[[Token], None]] = {
            TokenType.TEXT: self._add_text,
            TokenType.START_TAG: self._start_tag,
            TokenType.END_TAG: self._end_tag,
        }
        self.writer = _Writer()
        self._base_url = base_url
        self._has_base_tag = False
        self._title: list[str] = []
        self._in_title = False
        self._skipped: list[str] = []
        self._skipped_counts: Counter[str] = Counter()
        self._links: list[tuple[str, int]] = []
        self._lists: list[_List] = []

    @property
    def title(self) -> str:
        return " ".join("".join(self._title).split())

    def add_tokens(self, tokens: Iterable[Token]) -> bool:
        """Write the text of tokens; return False if the text is long enough."""
        for token in tokens:
            if (handle := self._handlers.get(token.type)) is not None:
                handle(token)
            if self.writer.size > MAX_TEXT:
                return False
        return True

    def _add_text(self, token: Token) -> None:
        text = token.data or ""
        if self._in_title:
            self._title.append(text)
        if not self._skipped:
            self.writer.write(text if self.writer.pre_depth else re.sub(r"\s+", " ", text))

    # ------------------------------------------------------------------------------------------------------------- tags

    def _start_tag(self, token: Token) -> None:
        tag = token.tag or ""
        if self._skipped == ["head"] and tag not in _HEAD_TAGS:
            self._end_skipped("head")
        if tag == "title" and self._skipped in ([], ["head"]):
            self._in_title = not self._title
        if tag == "base" and self._skipped in ([], ["head"]):
            self._set_base(token)
        if tag in _SKIPPED_TAGS and (tag in _RAW_TEXT_TAGS or not token.self_closing):
            self._skipped.append(tag)
            self._skipped_counts[tag] += 1
        if self._skipped or tag in _SKIPPED_TAGS:
            return
        if tag in _BLOCK_TAGS:
            self.writer.start_block()
        elif tag in _LINE_TAGS:
            self.writer.break_line(1)
        self._write_tag(token, tag)

    def _set_base(self, token: Token) -> None:
        """Resolve links against the first `<base href>`."""
        target = token.attr("href")
        if target is None or self._has_base_tag:
            return
        self._has_base_tag = True
        with suppress(ValueError):
            base_url = urljoin(self._base_url, target.strip())
            if not base_url.lower().startswith(("javascript:", "data:")):
                self._base_url = base_url

    def _write_tag(self, token: Token, tag: str) -> None:
        write = self.writer.write
        if tag in _HEADINGS:
            self.writer.write_marker(_HEADINGS[tag])
        elif tag == "ul":
            self._lists.append(_List())
        elif tag == "ol":
            start = _parse_integer(token.attr("start"))
            is_reversed = start is not None and token.attr("reversed") is not None
            self._lists.append(_List(1 if start is None else start, -1 if is_reversed else 1))
        elif tag == "li":
            indent = "  " * min(max(len(self._lists) - 1, 0), _MAX_INDENT)
            self.writer.write_marker(indent + self._bullet(token))
        elif tag in ("td", "th"):
            self.writer.write_marker(" | ")
        elif tag == "pre":
            self.writer.start_code()
        elif tag == "code" and not self.writer.pre_depth:
            write("`")
        elif tag == "a":
            self._links.append((token.attr("href") or "", self.writer.size))
        elif tag == "img" and (description := token.attr("alt")):
            write(f"[picture: {description}]")

    def _bullet(self, token: Token) -> str:
        items = self._lists[-1] if self._lists else _List()
        if items.number is None:
            return "- "
        value = _parse_integer(token.attr("value"))
        number = items.number if value is None else value
        items.number = number + items.step
        return f"{number}. "

    def _end_tag(self, token: Token) -> None:
        tag = token.tag or ""
        if tag == "title":
            self._in_title = False
        if self._skipped:
            self._end_skipped(tag)
            return
        if tag == "a" and self._links:
            self._end_link()
        elif tag in ("ul", "ol") and self._lists:
            self._lists.pop()
        elif tag == "pre":
            self.writer.end_code()
        elif tag == "code" and not self.writer.pre_depth:
            self.writer.write("`")
        if tag in _BLOCK_TAGS:
            self.writer.break_line(2)
        elif tag in _ENDED_LINE_TAGS:
            self.writer.end_line()

    def _end_skipped(self, tag: str) -> None:
        """End a skipped element, with all that were started in it."""
        while self._skipped_counts[tag]:
            ended = self._skipped.pop()
            self._skipped_counts[ended] -= 1
            if ended == tag:
                return

    def _end_link(self) -> None:
        target, size_before = self._links.pop()
        has_label = self.writer.size > size_before
        if not target or target.startswith(("#", "javascript:", "data:")) or not has_label:
            return
        try:
            self.writer.write(f" ({urljoin(self._base_url, target)})")
        except ValueError:
            self.writer.write(f" ({target})")


def _parse_integer(text: str | None) -> int | None:
    match = _INTEGER.match(text or "")
    return None if match is None else int(match[1])


def _tidy(text: str) -> str:
    lines = (re.sub(r"(?<=\S)[ \t]+", " ", line).rstrip().removeprefix(" ") for line in text.split("\n"))
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).rstrip()


def html_to_text(html: str, base_url: str = "", *, should_stop: Callable[[], bool] = lambda: False) -> HtmlText:
    """Convert an HTML page to text, its title first. `should_stop` is called before each 64 kB of the page."""
    # Imported late: it takes 100 ms.
    from turbohtml import Tokenizer

    tokenizer = Tokenizer()
    converter = _Converter(base_url)
    for start in range(0, min(len(html), MAX_HTML), _CHUNK):
        chunk = html[start : min(start + _CHUNK, MAX_HTML)]
        if should_stop() or not converter.add_tokens(tokenizer.feed(chunk)):
            is_truncated = True
            break
    else:
        is_truncated = not converter.add_tokens(tokenizer.close()) or len(html) > MAX_HTML
    text = converter.writer.format()
    title = converter.title
    return HtmlText(f"{title}\n\n{text}".strip() if title else text, is_truncated)
