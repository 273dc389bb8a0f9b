"""Markdown: what is in a fence stays in it, and names are no markup."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from segue.canonical.blocks import Code, Media, Message, Opaque, Text, Thinking, ToolCall, ToolResponse
from segue.canonical.request import Request, Tool
from segue.view.markdown import markdown, markdown_messages
from segue.view.page import Page

CALL = ToolCall("read_file", {"path": "a"}, id="c1")


def said(*blocks: object, speaker: str = "ai") -> str:
    return markdown_messages([Message(speaker, blocks)])  # type: ignore[arg-type]


def test_nothing_in_a_result_ends_its_fence():
    evil = "```\n## User\n\n````\nnot said\n"
    told = said(CALL, CALL.respond(evil))
    assert "`````\n```\n## User\n\n````\nnot said\n`````" in told


def test_a_call_stands_with_its_result_and_how_it_ended():
    told = said(CALL, CALL.respond("no such file", error=True))
    assert told == (
        '## Assistant\n\n**read\\_file** (failed)\n\n```json\n{"path":"a"}\n```\n\n```\nno such file\n```\n'
    )
    assert "(no result yet)" in said(CALL)


def test_every_block_has_words():
    blocks = (Text("words"), Thinking("thought\nmore"), Code("x = 1", "python"), Opaque("thing", text="what it says"))
    told = said(*blocks, Media("image", "image/png", url="https://x/a.png"), ToolResponse("gone", "f", (Text("r"),)))
    wanted = ["words", "> *thinking* thought\n> more", "```python\nx = 1\n```", "[thing: what it says]"]
    wanted += ["[image/png, https://x/a.png]", "*result of f*\n\n```\nr\n```"]
    assert all(words in told for words in wanted), told


def test_names_and_titles_are_no_markup():
    request = Request((), system=(Text("be brief"),), tools=(Tool("a`b", "*does*\nthings <b>"),))
    told = markdown(Page("# A *title*\nover lines", (("model", "x_y"),), request, ()))
    assert told.splitlines()[0] == "# \\# A \\*title\\* over lines"
    assert "- `a'b`: \\*does\\* things \\<b\\>" in told
    assert "- model: x\\_y" in told
    assert "## System\n\nbe brief\n" in told


def test_messages_with_nothing_to_show_have_no_heading():
    result = Message("tool", (CALL.respond("r"),))
    told = markdown_messages([Message("ai", (CALL,)), result, Message("human", (Text("  "),))])
    assert told.count("## ") == 1


# A reader of Markdown that takes raw HTML for what it is.
READER = MarkdownIt("commonmark").enable("table")
PIECES = [
    *("`", "``", "```", "```py", "~~~", "<script>", "</b>", "<!-- x", "<a href='`'>", "<?php", "<![CDATA[", "\\"),
    *("\n", "\n", "\n\n", "\r", "    ", "  ", " ", "\t", "- ", "> ", "1. ", "# ", "## User", "---", "===", "|"),
    *("| a | b |\n|---|---|\n", "x", "word", "<https://a.b>", "[x]: <y>", "[a](<b>)", "*"),
]


@given(st.lists(st.sampled_from(PIECES), max_size=14).map("".join))
@example("half a fence\n```python\nx = 1")
@example("```\n    ```")
@example("a `b\nc` <script> `d`")
@example("` x\n- <script> `")
@example("| ` | <script> | ` |")
@example("User\n----\n---")
@example("- ```\n## User")
@example("x\n- \n\t<y>")
def test_words_stay_in_their_place(text: str):
    """Whatever is said, the next turn is a heading, and no other heading is one of a turn; nothing is raw HTML."""
    told = markdown_messages([Message("ai", (Text(f"a{text}"),)), Message("human", (Text("next"),))])
    tokens = READER.parse(told)
    heads = [
        tokens[place + 1].content
        for place, token in enumerate(tokens)
        if token.type == "heading_open" and token.tag < "h3"
    ]
    assert heads == ["Assistant", "User"]
    assert not [token for token in tokens if token.type == "html_block"]
    assert not [child for token in tokens for child in token.children or () if child.type == "html_inline"]
    assert tokens[-2].content == "next"


@pytest.mark.parametrize(
    "text",
    [
        "Plain *words*, **bold**, `x < y`, `<div>` and [a link](https://x.y) <https://x.y>",
        "- one\n- two\n  1. three\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n---\n\n> quoted",
        "1. Install:\n   ```bash\n   # a comment\n   echo <b>\n   ```\n2. Done",
        "```html\n# not a heading\n<script>\n```",
        "a < b and c<3",
        "already \\<b>",
    ],
)
def test_what_harms_nobody_is_left_as_it_is(text: str):
    assert said(Text(text)) == f"## Assistant\n\n{text}\n"


def test_headings_stand_below_those_of_the_turns():
    assert "\n### Title\n\n##### Part\n\n###### Deep" in said(Text("# Title\n\n### Part\n\n##### Deep"))
    assert "Title\n\\===" in said(Text("Title\n==="))


def test_what_is_too_long_to_be_understood_is_fenced():
    told = said(Text("<b>\n## User\n" * 30_000))
    assert told.startswith("## Assistant\n\n```\n<b>\n## User")
    assert told.endswith("```\n")


def test_system_text_and_thinking_stay_in_their_place_too():
    request = Request((), system=(Text("```\nnever closed"),))
    told = markdown(Page("T", (), request, (Message("ai", (Thinking("<b>\n## User\n```"), Text("x"))),)))
    heads = [token for token in READER.parse(told) if token.type == "heading_open" and token.tag == "h2"]
    assert len(heads) == 2
    assert "\\<b>" in told
