"""One-line descriptions of events that are not messages."""

from __future__ import annotations

import pytest

from segue.canonical.blocks import Text, ToolCall
from segue.canonical.history import Interaction
from segue.canonical.request import Tool
from segue.store.events import CompressionApplied, Event, Restored, Sent, SettingsChanged
from segue.view.lines import describe_event

CALL = Interaction(ToolCall("look", {}, id="hist_tool_x"), "turn-1")


@pytest.mark.parametrize(
    ("event", "words"),
    [
        (SettingsChanged(), "settings: no system text and no tools"),
        (SettingsChanged(tools=(Tool("look"),)), "settings: 1 tool"),
        (
            SettingsChanged((Text("a" * 1200),), (Tool("look"), Tool("run"))),
            "settings: 1,200 characters of system text, 2 tools",
        ),
        (Sent("anthropic", "claude-sonnet-4-5"), "sent to anthropic (claude-sonnet-4-5)"),
        (Sent(""), "sent (target unknown)"),
        (Restored(3), "restored the state from before this conversation was stored"),
        (Restored(3, (CALL,)), "restored the state from before this conversation was stored: 1 call"),
        (CompressionApplied("dense", 5, kept=((0, 1),)), "compressed with dense to 5 tokens: 1 message kept, 0 new"),
    ],
)
def test_event_line_describes_the_event(event: Event, words: str):
    assert describe_event(event) == words
