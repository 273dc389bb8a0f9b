"""The HTML page: message text never becomes markup, and nothing is fetched."""

from __future__ import annotations

import base64
from html.parser import HTMLParser
from typing import Any

import pytest

from segue.canonical.blocks import (
    Block,
    Code,
    Media,
    Message,
    Native,
    Opaque,
    Origin,
    Text,
    Thinking,
    ToolCall,
    ToolResponse,
)
from segue.canonical.request import Request, Tool
from segue.view.html import render_html
from segue.view.page import Page

EVIL = "</title></style></pre></details><script>alert(1)</script><img onerror=alert(2)>\" onload='alert(3)' &lt;b&gt;"
VOID = {"meta", "img", "br", "hr"}
PIXEL = base64.b64encode(b"\x89PNG\r\n\x1a\nrest").decode()


class ParsedPage(HTMLParser):
    """What a browser makes of the page: its elements, their attributes, and whether they close as they should."""

    def __init__(self, render_page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.open: list[str] = []
        self.feed(render_page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]


def render_page(*blocks: Block, speaker: Any = "ai", **more: Any) -> str:
    made: dict[str, Any] = {"title": "T", "facts": (), "request": Request(()), **more}
    return "".join(render_html(Page(segments=[(Message(speaker, blocks),)], **made)))


CALL = ToolCall("read", {"path": "x"}, id="c1")
ALLOWED = {
    *("html", "head", "meta", "title", "style", "body", "main", "header", "h1", "h2", "dl", "div", "dt", "dd"),
    *("article", "details", "summary", "p", "pre", "code", "span", "em", "ul", "li", "small", "strong", "a"),
    *("figure", "figcaption", "img", "audio", "video", "br", "hr", "h3", "h4", "h5", "h6", "ol", "blockquote", "s"),
    *("table", "thead", "tbody", "tr", "th", "td"),
}
ATTRIBUTES = {
    *("lang", "charset", "name", "content", "http-equiv", "class", "data-label", "src", "alt", "href", "rel"),
    *("controls", "start"),
}
FIELDS: dict[str, str] = {
    "text": render_page(Text(EVIL)),
    "refusal": render_page(Text(EVIL, refusal=True)),
    "text in a fence": render_page(Text(f"```{EVIL}\n{EVIL}\n```\n`{EVIL}` **{EVIL}**")),
    "lists, tables and headings": render_page(
        Text(f"# {EVIL}\n\n- {EVIL}\n\n|{EVIL}|\n|--:|\n|{EVIL}|\n\n> {EVIL}\n\n~~{EVIL}~~")
    ),
    "links": render_page(Text(f'[{EVIL}](https://x/{EVIL} "{EVIL}") ![{EVIL}](https://x/"onerror=1) <https://x/"y>')),
    "links to scripts": render_page(
        Text("[a](javascript:alert(1)) ![b](data:text/html,x) <javascript:alert(1)> [c](vbscript:x)")
    ),
    "references": render_page(Text(f"[a] ![b][a]\n\n[a]: https://x/{EVIL} '{EVIL}'")),
    "what a human says": render_page(Text(EVIL), speaker="human"),
    "what a system says": render_page(Text(EVIL), speaker="system"),
    "name": "".join(render_html(Page("T", (), Request(()), [(Message("human", (Text("x"),), name=EVIL),)]))),
    "thinking": render_page(Thinking(EVIL, signature=EVIL, origin=Origin(EVIL, EVIL))),
    "code": render_page(Code(EVIL, EVIL)),
    "opaque": render_page(Opaque(EVIL, Native(EVIL, {EVIL: EVIL}), EVIL)),
    "call": render_page(ToolCall(EVIL, {EVIL: [EVIL]}, id=EVIL)),
    "free text": render_page(ToolCall("f", EVIL, id="c", kind="custom")),
    "arguments that are no JSON": render_page(ToolCall("f", arguments_text=EVIL, id="c")),
    "result": render_page(CALL, CALL.respond(EVIL)),
    "failed result": render_page(CALL, CALL.respond(EVIL, error=True, synthetic=EVIL)),
    "structured result": render_page(CALL, CALL.respond((), structured={EVIL: [EVIL]})),
    "blocks in a result": render_page(CALL, CALL.respond((Code(EVIL, EVIL), Opaque(EVIL, text=EVIL), Thinking(EVIL)))),
    "result without a call": render_page(ToolResponse("gone", EVIL, (Text(EVIL),)), speaker="tool"),
    "title": render_page(Text("x"), title=EVIL),
    "facts": render_page(Text("x"), facts=((EVIL, EVIL),)),
    "system text": render_page(Text("x"), request=Request((), system=(Text(EVIL),))),
    "tools": render_page(Text("x"), request=Request((), tools=(Tool(EVIL, EVIL, {"x": EVIL}),))),
    "address": render_page(Media("image", EVIL, url=EVIL, name=EVIL)),
    "https address": render_page(Media("image", url=f"https://x/{EVIL}", name=EVIL)),
    "script address": render_page(Media("document", url="javascript:alert(1)", name="n")),
    "data": render_page(Media("image", "image/png", data=f'{PIXEL}"{EVIL}')),
    "media type": render_page(Media("image", f'image/png"{EVIL}', data=PIXEL)),
    "data address": render_page(Media("image", url=f"data:text/html;base64,{PIXEL}")),
    "file id": render_page(Media("document", file_id=EVIL)),
}


@pytest.mark.parametrize("field", FIELDS)
def test_no_message_text_becomes_markup(field: str):
    seen = ParsedPage(FIELDS[field])
    assert {tag for tag, _ in seen.elements} <= ALLOWED
    assert {name for _, attributes in seen.elements for name in attributes} <= ATTRIBUTES
    for _, attributes in seen.elements:
        assert not str(attributes.get("src", "data:")).startswith(("http", "javascript")), attributes
        assert str(attributes.get("href", "https://")).startswith(("https://", "http://"))
    for image in seen.all("img"):
        assert (image["src"] or "").startswith("data:image/")


@pytest.mark.parametrize("field", ["text", "call", "result", "title", "system text", "tools", "thinking"])
def test_it_is_there_to_be_read(field: str):
    text = ParsedPage(FIELDS[field]).text
    assert "<script>alert(1)</script>" in text
    assert "&lt;b&gt;" in text


def test_the_page_forbids_scripts_and_needs_nothing():
    seen = ParsedPage(FIELDS["text"])
    [policy] = [meta["content"] or "" for meta in seen.all("meta") if meta.get("http-equiv")]
    assert policy.startswith("default-src 'none'")
    assert "script-src" not in policy
    assert "url(" not in FIELDS["text"]
    assert "@import" not in FIELDS["text"]
    assert not {"script", "link", "iframe", "object"} & {tag for tag, _ in seen.elements}


def test_a_call_is_folded_with_its_result():
    seen = ParsedPage(render_page(Text("before"), CALL, CALL.respond("the result")))
    [details] = seen.all("details")
    assert details["class"] == "call complete"
    assert "open" not in details
    assert seen.text.count("the result") == 1


@pytest.mark.parametrize(
    ("response", "state", "note"),
    [
        (None, "pending", "no result yet"),
        (CALL.respond("x", error=True), "error", "failed"),
        (CALL.respond("x", outcome="cancelled"), "cancelled", "cancelled"),
        (CALL.respond("x", outcome="interrupted", synthetic="gone"), "interrupted", "interrupted"),
    ],
)
def test_how_a_call_ended_is_seen(response: ToolResponse | None, state: str, note: str):
    seen = ParsedPage(render_page(CALL, *([response] if response else [])))
    assert [details["class"] for details in seen.all("details")] == [f"call {state}"]
    assert note in seen.text


def test_orphan_result_is_shown_in_place():
    seen = ParsedPage(render_page(ToolResponse("gone", "read", (Text("left over"),)), speaker="tool"))
    assert [details["class"] for details in seen.all("details")] == ["call orphan"]
    assert "left over" in seen.text


def test_pictures_are_inside_the_page_and_others_only_linked():
    inline = ParsedPage(
        render_page(Media("image", "image/png", data=PIXEL), CALL, CALL.respond((Media("image", "image/png", PIXEL),)))
    )
    assert [image["src"] for image in inline.all("img")] == [f"data:image/png;base64,{PIXEL}"] * 2
    by_address = ParsedPage(render_page(Media("image", url=f"data:image/jpeg;base64,{PIXEL}")))
    assert [image["src"] for image in by_address.all("img")] == [f"data:image/jpeg;base64,{PIXEL}"]
    elsewhere = ParsedPage(render_page(Media("image", url="https://example.com/a.png?b=1&c=2")))
    assert elsewhere.all("img") == []
    [link] = elsewhere.all("a")
    assert (link["href"], link["rel"]) == ("https://example.com/a.png?b=1&c=2", "noreferrer noopener")
    sound = ParsedPage(render_page(Media("audio", "audio/wav", data=PIXEL)))
    assert [audio["src"] for audio in sound.all("audio")] == [f"data:audio/wav;base64,{PIXEL}"]


def test_code_is_separated_and_text_keeps_line_breaks():
    seen = ParsedPage(render_page(Text("First.\n\n```python\nprint('<b>')\n```\nThen `x < y` and **so**.")))
    assert [pre.get("data-label") for pre in seen.all("pre")] == ["python"]
    assert len(seen.all("code")) == 2
    assert len(seen.all("strong")) == 1
    assert "print('<b>')" in seen.text


@pytest.mark.parametrize(
    ("text", "codes", "words"),
    [
        ("````\n```\ninside\n```\n````\nafter", ["```\ninside\n```"], "after"),
        ("~~~\na\n```\n~~~", ["a\n```"], ""),
        ("before\n```python\nnever closed", ["never closed"], "before"),
        ("``` is no fence ```", [], "is no fence"),
        ("```\n\n```", [""], ""),
    ],
)
def test_fences_end_where_they_end(text: str, codes: list[str], words: str):
    shown = render_page(Text(text))
    found = [part.split("<code>")[1].split("</code>")[0] for part in shown.split("<pre")[1:]]
    assert found == codes
    assert words in shown


def test_control_characters_do_not_reach_the_page():
    shown = render_page(Text("a\x00b\x1b[2J\u202ec"), title="t\x07")
    assert not set("\x00\x1b\x07\u202e") & set(shown)


def test_light_dark_and_paper_are_thought_of():
    shown = render_page(Text("x"))
    assert "prefers-color-scheme: dark" in shown
    assert "@media print" in shown
    assert "details::details-content" in shown


def test_model_text_is_rendered_as_markdown():
    text = "# Head\n\nWords *so*,\nnext line\n\n---\n\n1. one\n   - two\n\n"
    text += "| a | b |\n|--:|---|\n| 1 | 2 |\n\n[here](https://x.y) <b>"
    seen = ParsedPage(render_page(Text(text)))
    tags = [tag for tag, _ in seen.elements]
    for tag in ("h3", "em", "br", "hr", "ol", "ul", "table", "th", "td", "a"):
        assert tag in tags, tag
    assert {"class": "right"} in seen.all("td")
    assert {"href": "https://x.y", "rel": "noreferrer noopener"} in seen.all("a")
    assert "| a |" not in seen.text
    assert "<b>" in seen.text
    assert tags.count("h1") == 1
    assert tags.count("h2") == 1


def test_user_text_is_shown_verbatim():
    text = "Rename *.py to *.txt\n    and __init__ too\n# not a heading"
    assert text in ParsedPage(render_page(Text(text), speaker="human")).text


def test_linked_image_is_not_fetched():
    seen = ParsedPage(render_page(Text("![a cat](https://x.y/cat.png)")))
    assert seen.all("img") == []
    assert [link["href"] for link in seen.all("a")] == ["https://x.y/cat.png"]
    assert "a cat" in seen.text


def test_a_result_is_shown_in_its_order():
    picture = Media("image", "image/png", PIXEL)
    shown = render_page(
        CALL, CALL.respond((Text("before"), picture, Text("between"), Text("two"), picture, Text("after")))
    )
    shown = shown[shown.index("<article") :]
    places = [shown.index(word) for word in ("before", "<img", "between", "two", "after")]
    assert places == sorted(places)
    assert shown.rindex("<img") > shown.index("two")
    structured = render_page(CALL, CALL.respond((picture,), structured={"n": 1}))
    assert structured.count("<img") == 1


def test_small_pictures_keep_their_corners():
    assert "border-radius: min(.4rem, 10%)" in render_page(Text("x"))


@pytest.mark.parametrize("text", ["[" * 50_000, "`a " * 50_000, "> " * 5_000, "x" * 300_000, "**a" * 30_000])
def test_unusual_text_renders_quickly(text: str):
    assert len(render_page(Text(text))) > 1_000


def test_a_compaction_says_what_it_stands_for() -> None:
    block = Opaque("compaction", text="So far: birds.", omit_reason="compaction", extra={"messages": 1})
    assert "compaction in place of the 1 message before it: So far: birds." in render_page(block)
