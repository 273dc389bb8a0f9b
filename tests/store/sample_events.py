"""Events to write in tests."""

from __future__ import annotations

from hypothesis import strategies as st

from segue.canonical.blocks import Message, Text, ToolCall
from segue.canonical.request import Options, Reply, Tool
from segue.store.events import (
    CallCancelled,
    CallCompleted,
    CompressionApplied,
    CompressionUndone,
    Event,
    MessageAdded,
    Renamed,
    ReplyBroken,
    ResultPublished,
    ResultRecorded,
    Rewound,
    Sent,
    SettingsChanged,
    Switched,
    UnknownEvent,
)

CALL = ToolCall("read_file", {"path": "src/main.py"}, id="hist_tool_fyEG9KYWStZB4DYBUkn4gqR0")


def user_event(text: str) -> MessageAdded:
    return MessageAdded(Message("human", (Text(text),)))


def result_event(text: str) -> CallCompleted:
    return CallCompleted(Message("tool", (CALL.respond(text),), turn_key="turn-1"))


EACH_KIND: tuple[Event, ...] = (
    SettingsChanged(
        (Text("be brief"),), (Tool("read_file", parameters={"type": "object"}),), Options(max_tokens=5, stop=("x",))
    ),
    user_event("please read src/main.py"),
    Sent("anthropic", "claude-sonnet-4-5", made_up=("hist_tool_x",)),
    MessageAdded(Message("ai", (Text("I will."), CALL), turn_key="turn-1")),
    result_event("print('hello')"),
    CallCancelled(Message("tool", (CALL.respond(outcome="cancelled"),), turn_key="turn-1")),
    ReplyBroken(Reply((Text("half an ans"),), finish="error", model="m", unknown_fields=("logprobs",))),
    CompressionApplied(
        "drop-oldest", 1000, kept=((1, 3), (4, 5)), replaced=((0, Message("human", (Text("summary"),))),)
    ),
    CompressionUndone(8),
    Rewound("turn-1"),
    Switched("openai-chat", "gpt-5"),
    Renamed("Reading main.py"),
    ResultRecorded(Message("tool", (CALL.respond("known early"),), turn_key="turn-1")),
    ResultPublished((CALL.id,)),
    UnknownEvent("from-the-future", {"deep": [1, {"a": None}]}),
)

_texts = st.text(max_size=12) | st.sampled_from(
    ["hello", "größe", "東京", "read_file", "a\x00b", "'; DROP TABLE x; --"]
)
any_event: st.SearchStrategy[Event] = st.one_of(
    _texts.map(user_event),
    _texts.map(result_event),
    _texts.map(Renamed),
    st.builds(Sent, st.just("anthropic"), st.none() | _texts),
    st.builds(Switched, st.just("gemini"), st.none() | _texts),
    st.sampled_from(EACH_KIND),
)
