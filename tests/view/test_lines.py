"""What happened beside messages, in words."""

from __future__ import annotations

import pytest

from segue.canonical.blocks import Text, ToolCall
from segue.canonical.history import Interaction
from segue.canonical.request import Tool
from segue.store.events import Compressed, Event, Opened, Recalled, Sent
from segue.view.lines import event_words

CALL = Interaction(ToolCall("look", {}, id="hist_tool_x"), "turn-1")


@pytest.mark.parametrize(
    ("event", "words"),
    [
        (Opened(), "started with no system text and no tools"),
        (Opened(tools=(Tool("look"),)), "started with 1 tool"),
        (
            Opened((Text("a" * 1200),), (Tool("look"), Tool("run"))),
            "started with 1,200 characters of system text, 2 tools",
        ),
        (Sent("anthropic", "claude-sonnet-4-5"), "sent to anthropic (claude-sonnet-4-5)"),
        (Sent(""), "sent (target unknown)"),
        (Recalled(3), "restored the state from before this conversation was stored"),
        (Recalled(3, (CALL,)), "restored the state from before this conversation was stored: 1 call"),
        (Compressed("dense", 5, kept=((0, 1),)), "compressed with dense to 5 tokens: 1 message kept, 0 new"),
    ],
)
def test_an_event_says_what_it_is(event: Event, words: str):
    assert event_words(event) == words
