"""The summary of messages: each rare kind of content is found, alone and inside results."""

from __future__ import annotations

import pytest

from segue.canonical.blocks import Block, Media, Message, Opaque, Text, Thinking, ToolCall, ToolResponse
from segue.canonical.contents import Contents, summarize

PLAIN = (
    Message("human", (Text("hi"),)),
    Message("ai", (Thinking("hm"), Text("ok"), ToolCall("ls", {}, "a"))),
    Message("tool", (ToolResponse("a", content=(Text("x"), Text("y"))), ToolResponse("b"))),
)
FLAGS = ("has_names", "has_hosted", "has_failures", "has_omitted", "has_blanks")


def flags_of(contents: Contents) -> set[str]:
    return {flag for flag in FLAGS if getattr(contents, flag)}


def test_plain_conversation() -> None:
    contents = summarize(PLAIN)
    assert contents.blocks == tuple(block for message in PLAIN for block in message.blocks)
    assert [call.id for call in contents.calls] == ["a"]
    assert [result.call_id for result in contents.results] == ["a", "b"]
    assert contents.parts == (Text("x"), Text("y"))
    assert contents.speakers == {"human", "ai", "tool"}
    assert contents.block_types == {Text, Thinking, ToolCall, ToolResponse}
    assert contents.part_types == {Text}
    assert contents.has_type(Thinking)
    assert not contents.has_type(Media, Opaque)
    assert flags_of(contents) == set()


def test_media_inside_a_result() -> None:
    contents = summarize((Message("tool", (ToolResponse("a", content=(Media("image"),)),)),))
    assert contents.has_type(Media)
    assert Media not in contents.block_types


@pytest.mark.parametrize(
    ("block", "flag"),
    [
        (ToolCall("search", kind="hosted"), "has_hosted"),
        (ToolResponse("a", hosted=True), "has_hosted"),
        (ToolResponse("a", error=True), "has_failures"),
        (ToolResponse("a", outcome="cancelled"), "has_failures"),
        (ToolCall("ls", broken=True), "has_omitted"),
        (Opaque("item", omit_reason="notice"), "has_omitted"),
        (Text(""), "has_blanks"),
        (Text(" \n\u2003"), "has_blanks"),
        (ToolResponse("a", content=(Text("x"), Text(""))), "has_blanks"),
    ],
)
def test_flag(block: Block, flag: str) -> None:
    assert flags_of(summarize((*PLAIN, Message("ai", (block,))))) == {flag}
    assert flags_of(summarize((Message("ai", (block, Text("x"))), *PLAIN))) == {flag}


def test_flags_of_messages() -> None:
    assert flags_of(summarize((Message("human", (Text("hi"),), name="Ann"), *PLAIN))) == {"has_names"}
    assert flags_of(summarize((Message("human", ()), *PLAIN))) == {"has_blanks"}


def test_no_messages() -> None:
    contents = summarize(())
    assert contents.blocks == ()
    assert flags_of(contents) == set()
