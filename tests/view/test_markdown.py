"""Markdown: what is in a fence stays in it, and names are no markup."""

from __future__ import annotations

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
