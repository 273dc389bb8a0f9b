"""The estimate: by kind of characters, the same everywhere, drawn towards what providers report and never far off."""

from __future__ import annotations

import pytest
from inline_snapshot import snapshot

from segue.canonical.blocks import Block, Code, Media, Message, Native, Opaque, Text, Thinking, ToolCall, ToolResponse
from segue.canonical.request import Request, Tool
from segue.canonical.tokens import TokenEstimator, estimate_message, estimate_settings

BLOCKS: dict[str, Block] = {
    "english": Text("four letter word" * 10),
    "chinese": Text("四字成語" * 10),
    "russian": Text("слово" * 10),
    "mixed": Text("abcd四字"),
    "thinking": Thinking("hmhm", signature="s" * 900),
    "sealed": Thinking(encrypted="s" * 400),
    "call": ToolCall("read", {"path": "a.py"}),
    "broken call": ToolCall("read", None, arguments_text='{"path": "a'),
    "free text": ToolCall("run", "print(1)", kind="custom"),
    "result": ToolResponse("c", content=(Text("x" * 400),)),
    "value": ToolResponse("c", content=(), structured={"rows": [1, 2, 3]}),
    "nothing yet": ToolResponse("c"),
    "small picture": Media("image", data="aGk="),
    "large picture": Media("image", data="a" * 100_000),
    "code": Code("print(1)"),
    "opaque": Opaque("odd", Native("x", {"a": "b" * 20}), text="told"),
}


def test_every_kind_of_block_has_its_price():
    assert {name: round(estimate_message(Message("ai", (block,))), 1) for name, block in BLOCKS.items()} == snapshot(
        {
            "english": 44.0,
            "chinese": 44.0,
            "russian": 24.0,
            "mixed": 7.0,
            "thinking": 5.0,
            "sealed": 104.0,
            "call": 18.0,
            "broken call": 15.8,
            "free text": 14.8,
            "result": 112.0,
            "value": 17.3,
            "nothing yet": 12.0,
            "small picture": 1104.0,
            "large picture": 1104.0,
            "code": 6.7,
            "opaque": 13.3,
        }
    )


def test_tools_and_system_text_count_for_a_whole_request():
    tool = Tool("read", "Reads a file.", {"type": "object"})
    native = Tool("web_search", kind="hosted", native=Native("anthropic", {"type": "web_search_20250305"}))
    assert estimate_settings(Request(())) == 0
    assert estimate_settings(Request((), system=(Text("abcd"),))) == 1
    assert estimate_settings(Request((), tools=(tool,))) > 10
    assert estimate_settings(Request((), tools=(native,))) > 5


def test_reports_draw_the_ratio_for_their_family_alone():
    estimate = TokenEstimator()
    message = Message("human", (Text("x" * 4000),))
    assert estimate(message) == estimate.count(message) == 1004
    for _ in range(3):
        estimate.calibrate(1000, 1300, "claude")
    assert estimate.ratio() == pytest.approx(1.3)
    assert (estimate.count(message), estimate.count(message, "gpt")) == (1306, 1004)
    estimate.calibrate(1000, 800, "gpt")
    assert (estimate.ratio(), estimate.ratio("claude")) == (pytest.approx(0.8), pytest.approx(1.3))


def test_one_odd_report_does_not_turn_it_over():
    estimate = TokenEstimator()
    for _ in range(20):
        estimate.calibrate(1000, 1000, "gpt")
    estimate.calibrate(1000, 10**9, "gpt")
    assert 1 < estimate.ratio("gpt") < 1.2
    for _ in range(100):
        estimate.calibrate(1000, 10**9, "gpt")
    assert estimate.ratio("gpt") <= 2
    for _ in range(100):
        estimate.calibrate(1000, 1, "gpt")
    assert estimate.ratio("gpt") >= 0.5


@pytest.mark.parametrize(("estimated", "reported"), [(10, 5000), (1000, 0), (0, 10)])
def test_empty_usage_reports_are_ignored(estimated: int, reported: int):
    estimate = TokenEstimator()
    estimate.calibrate(estimated, reported, "gpt")
    assert estimate == TokenEstimator()
