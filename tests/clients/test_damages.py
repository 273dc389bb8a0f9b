"""The damages of recorded sessions, and what is expected of a client that resumes them."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from segue.canonical.blocks import Message, Text, ToolCall, ToolResponse, text_of
from segue.canonical.request import Request
from segue.sessions.client import SessionFile
from segue.sessions.registry import CLIENTS
from segue.sessions.session import Session, parse_session
from tests.clients import damages
from tests.clients.damages import CALL_WORD, DAMAGES, MANY_PROMPT, RESULT_WORD, number_word, store
from tests.clients.history import ExpectedHistory
from tests.clients.move_rows import MOVE_ROWS
from tests.clients.moves import MoveResult
from tests.clients.moves_page import write_moves_page
from tests.sessions.record import FOLDER

CHANGES = [
    (client, name)
    for name, damage in DAMAGES.items()
    for client in MOVE_ROWS
    if damage.change is not None and client not in damage.impossible
]


def load(client: str) -> Session:
    path = FOLDER / f"{client}.{'json' if client == 'opencode' else 'jsonl'}"
    # The last prompt is the one that is repeated.
    data = path.read_bytes().replace(b"TASK-TWO: run the endless command.", MANY_PROMPT.encode())
    return parse(client, data)


def parse(client: str, data: bytes) -> Session:
    return parse_session(CLIENTS[client], SessionFile(client, "s", Path("s")), data)


def words(session: Session) -> tuple[list[str], list[str], list[str]]:
    """Return the arguments of calls, results, and other texts of a session."""
    blocks = [block for entry in session.entries for block in entry.message.blocks]
    calls = [block for block in blocks if isinstance(block, ToolCall)]
    results = [block for block in blocks if isinstance(block, ToolResponse)]
    arguments = [call.arguments_text or json.dumps(call.arguments) for call in calls]
    return arguments, [text_of(each.content) + str(each.structured) for each in results], [text_of(blocks)]


@pytest.mark.parametrize(("client", "name"), CHANGES)
def test_the_client_still_reads_a_damaged_session(client: str, name: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(damages, "COPIES", 20)
    session = load(client)
    change = DAMAGES[name].change
    assert change is not None
    damaged = change(session)
    assert damaged != session.data
    calls, results, texts = words(parse(client, damaged))
    before, results_before, _ = words(session)
    match name:
        case "orphan":
            assert not any(CALL_WORD in call for call in calls)
            assert any(RESULT_WORD in result for result in results)
        case "cut-arguments":
            (call,) = [call for call in calls if CALL_WORD in call]
            assert "sleep" not in call
            assert [each for each in calls if each != call] == [each for each in before if CALL_WORD not in each]
        case "many":
            assert all(texts[0].count(number_word(MANY_PROMPT, number)) == 1 for number in range(20))
        case _:
            assert (calls, len(results)) == (before, len(results_before))


def test_a_damaged_session_of_opencode_replaces_the_rows_of_its_database(tmp_path: Path):
    path = tmp_path / "opencode.db"
    session = msgspec.structs.replace(load("opencode"), file=SessionFile("opencode", "s", path))
    with closing(sqlite3.connect(path)) as database, database:
        database.executescript("""
            CREATE TABLE message (id, session_id, time_created, time_updated, data);
            CREATE TABLE part (id, message_id, session_id, time_created, time_updated, data);
            INSERT INTO message VALUES ('old', 's', 0, 0, '{}'), ('other', 't', 0, 0, '{}');
        """)
        store(session, session.data)
        ids = [id for (id,) in database.execute("SELECT id FROM message ORDER BY time_created")]
        parts = database.execute("SELECT data FROM part ORDER BY id").fetchall()
    messages = json.loads(session.data)["messages"]
    assert ids == ["other", *(message["info"]["id"] for message in messages)]
    assert len(parts) == sum(len(message["parts"]) for message in messages)


CALL = ToolCall("Bash", {"command": "echo one"}, "a")
RESULT = ToolResponse("a", content=(Text("ONE"),))
PROMPT = Message("human", (Text("TASK"),))


def expected() -> ExpectedHistory:
    history = ExpectedHistory()
    history.prompts, history.calls, history.texts, history.gone = ["TASK"], [("one", "ONE")], ["TASK"], ["BEFORE"]
    return history


@pytest.mark.parametrize(
    ("messages", "problem"),
    [
        ([PROMPT, Message("ai", (CALL,)), Message("tool", (RESULT,))], None),
        ([Message("ai", (CALL,)), Message("tool", (RESULT,))], "the prompt 'TASK' is missing"),
        ([PROMPT, Message("ai", (CALL,))], "the call Bash has no result"),
        ([PROMPT], "0 calls, expected 1"),
        (
            [PROMPT, Message("ai", (CALL,)), Message("tool", (ToolResponse("a", content=(Text("TWO"),)),))],
            "the result of Bash does not have 'ONE'",
        ),
        (
            [Message("human", (Text("TASK BEFORE"),)), Message("ai", (CALL,)), Message("tool", (RESULT,))],
            "'BEFORE' is from before the compaction",
        ),
    ],
)
def test_the_request_of_a_resumed_client_is_judged(messages: list[Message], problem: str | None):
    problems = list(expected().judge(Request(tuple(messages)), picture_in_result=True))
    assert problem in problems if problem else problems == []


def test_after_a_compaction_that_is_expected_which_the_client_itself_sends():
    history = ExpectedHistory()
    history.prompts, history.calls = ["FIRST", "TASK"], [("zero", "ZERO"), ("one", "ONE")]
    sent = (Message("human", (Text("SUMMARY"),)), PROMPT, Message("ai", (CALL,)), Message("tool", (RESULT,)))
    assert list(history.compact(Request(sent), "SUMMARY")) == []
    assert (history.prompts, history.calls) == (["TASK"], [("one", "ONE")])
    assert (history.texts, history.gone) == (["SUMMARY"], ["FIRST", "ZERO"])
    assert list(history.compact(Request(sent), "SUMMARY")) == ["the client did not compact its session"]


def test_the_page_has_each_outcome(tmp_path: Path):
    versions = ("1", "2")
    results = [
        MoveResult("claude", "codex", "orphan", versions, [], 1.0),
        MoveResult("claude", "pi", "orphan", versions, ["a prompt is missing"], 1.0),
    ]
    write_moves_page(tmp_path / "page.md", results)
    page = (tmp_path / "page.md").read_text()
    section = page.split("## A result without its call")[1].split("##")[0]
    assert "| claude |  | right | not run | not run | **wrong** | not run |" in section
    assert f"| opencode | {'not possible | ' * 5} |" in section
    assert "Not possible in opencode: a call and its result are one value in its database." in section
    assert "- claude to pi, orphan: a prompt is missing" in page
