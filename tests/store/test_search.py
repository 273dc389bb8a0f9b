"""Search in both engines: the same terms find the same events."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from segue.canonical.blocks import Code, Media, Message, Opaque, Text, Thinking, ToolCall, ToolResponse
from segue.canonical.request import Reply
from segue.store.events import CallCancelled, CallCompleted, Event, MessageAdded, Renamed, ReplyBroken, SettingsChanged
from segue.store.search_text import PART_SIZE, index_parts, make_snippet, parse_query, searchable_text
from segue.store.sql import SqlStore
from segue.store.sqlite import SqliteStore
from tests.store.sample_events import user_event

EVENTS: tuple[Event, ...] = (
    SettingsChanged((Text("systemword"),)),
    Renamed("A title about Weather"),
    user_event("Please call get_weather for Zürich, ÎLE and 東京タワー; it's 3.5 degrees"),
    MessageAdded(
        Message(
            "ai",
            (
                Thinking("secretthought"),
                Text("Of course."),
                ToolCall("get_weather", {"city": "Zürich", "deep": [{"key": "nested-value"}]}),
                ToolCall("shell", "", arguments_text='{"command": "unfinished'),
                Code("def plot(): ..."),
                Media("document", name="Report.PDF", data="base64word"),
                Opaque("citation", text="opaquely said"),
            ),
        )
    ),
    CallCompleted(Message("tool", (ToolResponse("x", content=(Text("sunny with clouds"),)),))),
    CallCompleted(Message("tool", (ToolResponse("x", structured={"humidity": "moist"}),))),
    CallCancelled(Message("tool", (ToolResponse("x", content=(Text("partial output"),), outcome="cancelled"),))),
    ReplyBroken(Reply((Text("brokenword"),))),
)


@pytest.fixture
def conversation_id(store: SqlStore) -> SqlStore:
    store.append(store.create(), 0, EVENTS)
    return store


FOUND: dict[str, list[int]] = {
    "weather": [4, 3, 2],
    "WEATHER title": [2],
    "weath zurich": [4, 3],
    "zürich": [4, 3],
    "ile": [3],
    "île": [3],
    "get_weather": [4, 3],
    "get_wea": [4, 3],
    "weather_get": [],
    "nested-value": [4],
    "city": [4],
    "it's": [3],
    "東京": [3],
    "京タ": [3],
    "京東": [],
    "タワー": [3],
    "3.5": [3],
    "5.3": [],
    "unfinished": [4],
    "plot": [4],
    "report.pdf": [4],
    "opaquely": [4],
    "sunny": [5],
    "humid moist": [6],
    "partial": [7],
    "sunny moist": [],
    "secretthought": [],
    "systemword": [],
    "brokenword": [],
    "base64word": [],
    "eather": [],
    "": [],
    "   ": [],
    "!!! ---": [],
}

# Each means the same as the words that are in it, whatever an engine makes of such signs.
SUNNY = (
    *('"sunny', "sunny'", "sunny*", "(sunny", "sunny:*", "^sunny", "-sunny", "+sunny", "%sunny_", "?sunny%", "@ sunny"),
    *("sunny & | !", "sunny \\", "sunny\x00", "{sunny} : clouds", "sunny <-> clouds", "\ud800 sunny", "sunny ''':*"),
)
NOTHING = (
    *("sunny AND", "OR sunny", "NOT sunny", "sunny NEAR(clouds)", "words:sunny", "sunny; DROP TABLE events"),
    *('"', "'", "*", "%", "\\", "\x00", "\ud800", "@@", "?"),
)


def test_search_finds_events(conversation_id: SqlStore) -> None:
    assert {words: [hit.seq for hit in conversation_id.search(words)] for words in FOUND} == FOUND


def test_signs_and_operators_are_only_signs(conversation_id: SqlStore) -> None:
    assert [words for words in SUNNY if [hit.seq for hit in conversation_id.search(words)] != [5]] == []
    assert [words for words in NOTHING if conversation_id.search(words)] == []


@given(words=st.text(max_size=30))
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
def test_any_query_is_a_query(conversation_id: SqlStore, words: str) -> None:
    for hit in conversation_id.search(words):
        assert hit.snippet.text


def test_hit_marks_the_match(store: SqlStore) -> None:
    long = "lorem ipsum " * 50 + "the Größe\nof read_file\x1b[31m matters " + "dolor sit " * 50
    conversation = store.create("t")
    store.append(conversation, 1, [user_event(long)])
    [hit] = store.search("groß read_fi")
    assert (hit.conversation, hit.title, hit.seq) == (conversation, "t", 2)
    text = hit.snippet.text
    assert [text[start:end] for start, end in hit.snippet.marks] == ["Größe", "read_file"]
    assert text.startswith("…")
    assert text.endswith("…")
    assert "\n" not in text
    assert "\x1b" not in text
    assert len(text) < 200


@pytest.mark.parametrize("text", ["QUJD" * 30_000, "x " * 300 + "QUJD" * 30_000, "東" * 9_000 + " QUJD"])
def test_long_hit_is_shown_by_its_beginning(store: SqlStore, text: str) -> None:
    store.append(store.create(), 0, [user_event(text)])
    [hit] = store.search("qujd")
    assert len(hit.snippet.text) < 300
    [(start, end)] = hit.snippet.marks
    assert hit.snippet.text[start:end].startswith("QUJD")


def test_more_are_found_than_a_statement_has_places_for(quick_folder: Path) -> None:
    with SqliteStore(quick_folder / "history.db") as store:
        store.append(store.create(), 0, [user_event("common")] * 1_100)
        assert store._connection is not None
        store._connection.setlimit(sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER, 999)
        assert len(store.search("common", 5_000)) == 1_100


def test_search_is_newest_first_and_limited(store: SqlStore) -> None:
    one, two = store.create(), store.create()
    store.append(one, 0, [user_event("pear 1")])
    store.append(two, 0, [user_event("pear 2")])
    store.append(one, 1, [user_event("pear 3"), user_event("pear 4")])
    assert [(hit.conversation, hit.seq) for hit in store.search("pear")] == [(one, 3), (one, 2), (two, 1), (one, 1)]
    assert len(store.search("pear", 3)) == 3
    assert list(store.search("pear", 0)) == []


def test_long_result_is_indexed_to_its_end_once(store: SqlStore) -> None:
    words = [f"w{number}" for number in range(3 * PART_SIZE)]
    conversation = store.create()
    store.append(conversation, 0, [user_event(" ".join([*words, "w w w", "x" * 5000, "needle"])), user_event("w1")])
    assert [hit.seq for hit in store.search("needle")] == [1]
    assert [hit.seq for hit in store.search(f"w{3 * PART_SIZE - 1}")] == [1]
    assert [hit.seq for hit in store.search("w")] == [2, 1]
    assert [hit.seq for hit in store.search("x" * 100)] == [1]
    assert len(store.search("w", 1)) == 1


@given(st.text())
def test_terms_are_letters_and_digits(text: str) -> None:
    for part in index_parts(text):
        assert all(word.isalnum() and len(word) <= 64 for word in part)


@given(st.text(min_size=1), st.text(), st.text())
def test_text_is_found_by_its_own_terms(text: str, before: str, after: str) -> None:
    whole = f"{before} {text} {after}"
    query = parse_query(text)
    shown = make_snippet(whole, query)
    assert bool(shown.marks) == bool(query)
    for start, end in shown.marks:
        assert 0 <= start < end <= len(shown.text)


@given(st.text(alphabet="aZ9é½İ\u0301日_ \n\u00a0\u3000"))
def test_terms_of_a_long_text_are_found_in_chunks(text: str) -> None:
    whole = [*index_parts(text)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("segue.store.search_text._CHUNK_LENGTH", 3)
        patch.setattr("segue.store.search_text._MAX_FOLDED_WORDS", 2)
        assert [*index_parts(text)] == whole


def test_blank_content_has_no_search_text() -> None:
    assert searchable_text(SettingsChanged()) == ""
