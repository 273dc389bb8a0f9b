"""Conversion of HTML to plain text, with headings, paragraphs, lists, tables, code and link targets."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from urllib.parse import urljoin

_SKIPPED_TAGS = frozenset(
    {"script", "style", "noscript", "template", "svg", "head", "iframe", "object", "canvas", "select"}
)
_BLOCK_TAGS = frozenset(
    {"p", "div", "section", "article", "main", "header", "footer", "nav", "aside", "table", "ul", "ol", "dl", "form"}
    | {"blockquote", "figure", "fieldset", "details", "address", "body", "h1", "h2", "h3", "h4", "h5", "h6", "pre"}
)
_LINE_TAGS = frozenset({"br", "tr", "li", "dt", "dd", "hr", "option", "summary", "figcaption", "caption"})


class _TextParser(HTMLParser):
    def __init__(self, address: str) -> None:
        super().__init__(convert_charrefs=True)
        self.title = ""
        self._address = address
        self._written: list[str] = []
        self._skipped: list[str] = []
        self._links: list[tuple[str, int]] = []
        self._lists: list[int | None] = []
        self._pre_depth = 0
        self._in_title = False

    # ---------------------------------------------------------------------------------------------------- parser events

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "title":
            self._in_title = not self.title
        if tag in _SKIPPED_TAGS:
            self._skipped.append(tag)
        if self._skipped:
            return
        if tag in _BLOCK_TAGS:
            self._write("\n\n")
        elif tag in _LINE_TAGS:
            self._write("\n")
        self._write_tag(tag, {name: value or "" for name, value in attrs})

    def _write_tag(self, tag: str, attributes: dict[str, str]) -> None:
        if re.fullmatch("h[1-6]", tag):
            self._write("#" * int(tag[1]) + " ")
        elif tag in ("ul", "ol"):
            self._lists.append(1 if tag == "ol" else None)
        elif tag == "li":
            self._write("  " * max(len(self._lists) - 1, 0) + self._bullet())
        elif tag in ("td", "th"):
            self._write(" | ")
        elif tag == "pre":
            self._pre_depth += 1
            self._write("```\n")
        elif tag == "code" and not self._pre_depth:
            self._write("`")
        elif tag == "a":
            self._links.append((attributes.get("href", ""), len(self._written)))
        elif tag == "img" and attributes.get("alt"):
            self._write(f"[picture: {attributes['alt']}]")

    def _bullet(self) -> str:
        number = self._lists[-1] if self._lists else None
        if number is None:
            return "- "
        self._lists[-1] = number + 1
        return f"{number}. "

    def handle_endtag(self, tag: str) -> None:
        if tag == "title":
            self._in_title = False
        if self._skipped:
            if tag in self._skipped:
                while self._skipped.pop() != tag:
                    pass
            return
        if tag == "a" and self._links:
            self._end_link()
        elif tag in ("ul", "ol") and self._lists:
            self._lists.pop()
        elif tag == "pre" and self._pre_depth:
            self._pre_depth -= 1
            self._write("\n```")
        elif tag == "code" and not self._pre_depth:
            self._write("`")
        if tag in _BLOCK_TAGS:
            self._write("\n\n")

    def _end_link(self) -> None:
        target, start = self._links.pop()
        label = "".join(self._written[start:]).strip()
        if not target or target.startswith(("#", "javascript:", "data:")) or not label:
            return
        try:
            self._write(f" ({urljoin(self._address, target)})")
        except ValueError:
            self._write(f" ({target})")

    def handle_data(self, data: str) -> None:
        if self._in_title:
            self.title += data
        if not self._skipped:
            self._write(data if self._pre_depth else re.sub(r"\s+", " ", data))

    def _write(self, text: str) -> None:
        self._written.append(text)

    @property
    def text(self) -> str:
        blocks = re.split(r"(```\n.*?\n```)", "".join(self._written), flags=re.DOTALL)
        tidy = [block if block.startswith("```\n") else _tidy(block) for block in blocks]
        return "\n".join(block for block in tidy if block.strip()).strip()


def _tidy(text: str) -> str:
    lines = (re.sub(r"(?<=\S)[ \t]+", " ", line).rstrip().removeprefix(" ") for line in text.split("\n"))
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).rstrip()


def html_to_text(html: str, base_url: str = "") -> str:
    """Convert an HTML page to text, its title first."""
    reader = _TextParser(base_url)
    reader.feed(html)
    reader.close()
    title = " ".join(reader.title.split())
    return f"{title}\n\n{reader.text}".strip() if title else reader.text
