"""Markdown: fenced content stays fenced, and names are escaped."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from segue.canonical.blocks import Code, Media, Message, Opaque, Text, Thinking, ToolCall, ToolResponse
from segue.canonical.request import Request, Tool
from segue.view.markdown import render_markdown, render_messages
from segue.view.page import Page

CALL = ToolCall("read_file", {"path": "a"}, id="c1")


def render_blocks(*blocks: object, speaker: str = "ai") -> str:
    return render_messages([Message(speaker, blocks)])


def test_nothing_in_a_result_ends_its_fence():
    evil = "```\n## User\n\n````\nnot said\n"
    output = render_blocks(CALL, CALL.respond(evil))
    assert "`````\n```\n## User\n\n````\nnot said\n`````" in output


def test_a_call_stands_with_its_result_and_how_it_ended():
    output = render_blocks(CALL, CALL.respond("no such file", error=True))
    assert output == (
        '## Assistant\n\n**read\\_file** (failed)\n\n```json\n{"path":"a"}\n```\n\n```\nno such file\n```\n'
    )
    assert "(no result yet)" in render_blocks(CALL)


def test_every_block_has_text():
    blocks = (Text("words"), Thinking("thought\nmore"), Code("x = 1", "python"), Opaque("thing", text="what it says"))
    output = render_blocks(
        *blocks, Media("image", "image/png", url="https://x/a.png"), ToolResponse("gone", "f", (Text("r"),))
    )
    wanted = ["words", "> *thinking* thought\n> more", "```python\nx = 1\n```", "[thing: what it says]"]
    wanted += ["[image/png, https://x/a.png]", "*result of f*\n\n```\nr\n```"]
    assert all(words in output for words in wanted), output


def test_names_and_titles_are_no_markup():
    request = Request((), system=(Text("be brief"),), tools=(Tool("a`b", "*does*\nthings <b>"),))
    output = "".join(render_markdown(Page("# A *title*\nover lines", (("model", "x_y"),), request, ())))
    assert output.splitlines()[0] == "# \\# A \\*title\\* over lines"
    assert "- `a'b`: \\*does\\* things \\<b\\>" in output
    assert "- model: x\\_y" in output
    assert "## System\n\nbe brief\n" in output


def test_messages_with_nothing_to_show_have_no_heading():
    result = Message("tool", (CALL.respond("r"),))
    output = render_messages([Message("ai", (CALL,)), result, Message("human", (Text("  "),))])
    assert output.count("## ") == 1


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
def test_text_stays_in_place(text: str):
    """For any text, the next turn is a heading, and no other heading is one of a turn; nothing is raw HTML."""
    output = render_messages([Message("ai", (Text(f"a{text}"),)), Message("human", (Text("next"),))])
    tokens = READER.parse(output)
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
def test_harmless_text_is_unchanged(text: str):
    assert render_blocks(Text(text)) == f"## Assistant\n\n{text}\n"


def test_headings_are_nested_below_turns():
    assert "\n### Title\n\n##### Part\n\n###### Deep" in render_blocks(Text("# Title\n\n### Part\n\n##### Deep"))
    assert "Title\n\\===" in render_blocks(Text("Title\n==="))


def test_overlong_text_is_fenced():
    output = render_blocks(Text("<b>\n## User\n" * 30_000))
    assert output.startswith("## Assistant\n\n```\n<b>\n## User")
    assert output.endswith("```\n")


def test_system_text_and_thinking_stay_in_their_place_too():
    request = Request((), system=(Text("```\nnever closed"),))
    output = "".join(
        render_markdown(Page("T", (), request, [(Message("ai", (Thinking("<b>\n## User\n```"), Text("x"))),)]))
    )
    heads = [token for token in READER.parse(output) if token.type == "heading_open" and token.tag == "h2"]
    assert len(heads) == 2
    assert "\\<b>" in output


def test_a_compaction_says_what_it_stands_for():
    block = Opaque("compaction", text="So far: birds.", omit_reason="compaction", extra={"messages": 12})
    assert "[compaction in place of the 12 messages before it: So far: birds.]" in render_blocks(block)
    sealed = Opaque("compaction", omit_reason="compaction", extra={"size": 4})
    assert "[compaction in place of what was before it: only its provider can read it]" in render_blocks(sealed)
    assert render_blocks(Opaque("mcp_list_tools", text="tools", omit_reason="listing")) == ""
