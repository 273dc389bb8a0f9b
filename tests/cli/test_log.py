"""`segue log`: list, show, search and delete, and the number of rows read."""

from __future__ import annotations

import os
import pty
import re
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest

from segue.canonical.blocks import Message, Text, Thinking
from segue.canonical.request import Reply
from segue.store import sqlite_file
from segue.store.conversation import StoredConversation
from segue.store.events import CallCompleted, MessageAdded, ReplyBroken, Rewound, Sent, UnknownEvent
from tests.cli.process import SEGUE, environment, run
from tests.cli.store_cli import CALL_REPLY, FINAL_REPLY, StoreCli, create_conversations
from tests.cli.terminal import run_in_terminal


@contextmanager
def counted_rows() -> Generator[list[int]]:
    """How many rows come out of the database."""
    counts: list[int] = []
    whole = sqlite_file.SqliteSession.run

    def counting(self: sqlite_file.SqliteSession, sql: str, *values: object):
        rows = whole(self, sql, *values)
        counts.append(len(rows))
        return rows

    sqlite_file.SqliteSession.run = counting
    try:
        yield counts
    finally:
        sqlite_file.SqliteSession.run = whole


def human(text: str) -> MessageAdded:
    return MessageAdded(Message("human", (Text(text),)))


# -------------------------------------------------------------------------------------------------------------- list


def test_list_is_newest_first_with_all_columns(store_cli: StoreCli):
    first = store_cli.add_conversation()
    second = store_cli.add_events(human("An untitled one, by its opening words"))
    ended = store_cli("log")
    assert ended.code == 0
    assert [line.split()[0] for line in ended.lines] == ["id", second, first]
    assert re.search(r" 2  \d{4}-\d\d-\d\d \d\d:\d\d +4  claude-sonnet-4-5 +- +Shopping$", ended.lines[2])
    assert "An untitled one, by its opening words" in ended.lines[1]


def test_json_lists_the_same(store_cli: StoreCli):
    id = store_cli.add_conversation()
    [row] = store_cli("log", "--json").json
    assert (row["id"], row["title"], row["messages"], row["model"]) == (id, "Shopping", 4, "claude-sonnet-4-5")
    assert row["opening"] == "What is in notes.txt?"
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT[\d:.]+Z", row["updated"])
    assert store_cli("log", "list", "--json").json == [row]


def test_pages_follow_each_other_without_a_gap(store_cli: StoreCli):
    with store_cli.store() as store:
        made = create_conversations(store, 7)
    seen: list[str] = []
    before: list[str] = []
    for size in (3, 3, 1):
        ended = store_cli("log", "--limit", "3", *before)
        rows = [line.split()[0] for line in ended.lines[1:]]
        assert len(rows) == size
        more = re.search(r"more: segue log (.*)\n", ended.err)
        assert bool(more) == (size == 3)
        before = more[1].split()[2:] if more else []
        seen += rows
    assert sorted(seen) == sorted(made)
    assert store_cli("log", "--json", "--before", seen[-1]).json == []


def test_list_shows_and_filters_by_folder(store_cli: StoreCli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    here, there = tmp_path / "here", tmp_path / "a" / "long" / "way" / "to" / "there"
    with store_cli.store() as store:
        for number in range(3):
            for folder in (here, there):
                folder.mkdir(parents=True, exist_ok=True)
                store.create(f"{folder.name} {number}", folder=str(folder))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(here)
    everything = store_cli("log")
    assert [line.split()[1] for line in everything.lines[1:]] == ["1", "2", "3", "4", "5", "6"]
    assert "~/a/long/way/to/there" in everything.out
    filtered = store_cli("log", "--here")
    assert [line.split()[-2:] for line in filtered.lines[1:]] == [["here", "2"], ["here", "1"], ["here", "0"]]
    assert "folder" not in filtered.lines[0]
    numbers = [line.split()[1] for line in filtered.lines[1:]]
    for number, line in zip(numbers, filtered.lines[1:], strict=True):
        assert store_cli("log", "show", number, "--json").json["id"] == line.split()[0]
    rows = store_cli("log", "--folder", "~/a/long/way/to/there", "--json").json
    assert {row["folder"] for row in rows} == {str(there)}
    assert {row["number"] for row in rows} | set(map(int, numbers)) == {1, 2, 3, 4, 5, 6}
    page = store_cli("log", "--here", "--limit", "2")
    more = re.search(r"more: segue log (--here --limit 2 --before .*)\n", page.err)
    assert more
    assert store_cli("log", *more[1].split()).lines[1] == filtered.lines[3]
    assert "no stored conversations in" in store_cli("log", "--folder", "/nowhere").err
    assert store_cli("log", "--here", "--folder", ".").code == 2


def test_number_or_the_end_of_an_id_selects(store_cli: StoreCli):
    first, second = store_cli.add_conversation(), store_cli.add_conversation("Second")
    assert store_cli("log", "show", "2", "--json").json["id"] == first
    assert store_cli("log", "show", second[-5:], "--json").json["id"] == second
    ended = store_cli("log", "show", "3")
    assert (ended.code, ended.err) == (2, "segue: id: there is no conversation number 3; there are 2\n")
    ended = store_cli("log", "delete", "1", "--yes")
    assert (ended.code, ended.is_one_line_error) == (2, True)
    assert f"delete takes ids, because numbers change; number 1 is {second} now" in ended.err
    assert "segue log lists them" in store_cli("log", "delete", "7", "--yes").err
    assert len(store_cli("log", "--json").json) == 2


def test_listing_creates_no_store(store_cli: StoreCli):
    assert (store_cli("log").code, store_cli("log").out) == (0, "")
    assert store_cli("log", "--json").json == []
    assert store_cli("log", "search", "x").code == 0
    for arguments in (["log", "show", "x"], ["export", "x", "--format", "md"], ["diag", "x"], ["log", "delete", "x"]):
        ended = store_cli(*arguments)
        assert ended.is_one_line_error
        assert ended.code == 2
    assert not store_cli.path.exists()


def test_two_thousand_conversations_list_at_once(store_cli: StoreCli):
    with store_cli.store() as store:
        made = create_conversations(store, 2_000)
    with counted_rows() as rows:
        page = store_cli("log")
    assert len(page.lines) == 51
    assert sum(rows) == 51
    with counted_rows() as rows:
        whole = store_cli("log", "--limit", "20000", "--json").json
    assert {row["id"] for row in whole} == set(made)
    assert len(rows) == 1


def test_titles_are_sanitized(store_cli: StoreCli):
    with store_cli.store() as store:
        store.create("\x1b[2J\x07evil\nsecond line\u202e")
    ended = store_cli("log")
    assert len(ended.lines) == 2
    assert not set("\x1b\x07\u202e") & set(ended.out)


# -------------------------------------------------------------------------------------------------------------- show


def test_messages_are_shown_in_order(store_cli: StoreCli):
    id = store_cli.add_conversation()
    ended = store_cli("log", "show", id)
    assert ended.code == 0
    wanted = ["User", "What is in notes.txt?", "Assistant", "I look.", '→ read_file {"path":"notes.txt"}']
    wanted += ["← read_file Buy bread.", "Assistant", "Bread."]
    shown_lines = [line for line in ended.lines if line and not line.startswith("·")]
    assert shown_lines == wanted
    assert "· sent to anthropic (claude-sonnet-4-5)" in ended.lines


def test_each_request_is_shown_once(store_cli: StoreCli):
    id = store_cli.add_conversation()
    with store_cli.store() as store, StoredConversation(store, id) as stored:
        for reply in (CALL_REPLY, FINAL_REPLY):
            stored.render("anthropic", "claude-sonnet-4-5")
            stored.mark_sent()
            stored.add_reply(reply, source="anthropic")
        # A request that is rendered and sent again is another request.
        for _ in range(2):
            stored.render("anthropic", "claude-sonnet-4-5")
            stored.mark_sent()
            stored.mark_sent()
        stored.render("kimi")
        stored.add_reply(FINAL_REPLY, source="anthropic")
    sent = [line for line in store_cli("log", "show", id).lines if "sent to" in line]
    assert sent == [*["· sent to anthropic (claude-sonnet-4-5)"] * 6, "· sent to kimi"]


def test_json_shows_the_events(store_cli: StoreCli):
    id = store_cli.add_conversation()
    output = store_cli("log", "show", id, "--all", "--json").json
    assert output["id"] == id
    assert [event["seq"] for event in output["events"]] == list(range(1, output["seq"] + 1))
    assert [event["type"] for event in output["events"]][:3] == ["renamed", "settings", "added"]
    [last] = store_cli("log", "show", id, "--last", "1", "--json").json["events"]
    assert last == output["events"][-1]


def test_unique_id_prefix_is_enough(store_cli: StoreCli):
    id = store_cli.add_conversation()
    assert store_cli("log", "show", id[:10]).code == 0
    missing = store_cli("log", "show", "zzz")
    assert (missing.code, missing.is_one_line_error) == (2, True)
    with store_cli.store() as store:
        store.create(id="twin-a")
        store.create(id="twin-b")
    several = store_cli("log", "show", "twin")
    assert several.code == 2
    assert "twin-a, twin-b" in several.err


def test_last_counts_messages_only(store_cli: StoreCli):
    events = [event for number in range(40) for event in (human(f"words {number}"), *[Sent("kimi")] * 9)]
    id = store_cli.add_events(*events)
    ended = store_cli("log", "show", id, "--last", "30")
    assert [line for line in ended.lines if line.startswith("words")] == [f"words {n}" for n in range(10, 40)]
    assert "--all" in ended.err
    assert len([line for line in store_cli("log", "show", id, "--all").lines if line.startswith("words")]) == 40


def test_of_ten_thousand_messages_only_the_last_are_read(store_cli: StoreCli):
    # Without the store's own doors: ten thousand events that differ in nothing but their numbers.
    id = store_cli.add_events(*[human("the same words again")])
    with store_cli.store() as store, store._write_session() as session:
        from segue.store.rows import row_checksum

        [(data, at)] = session.run("SELECT data, at FROM @events")
        rows = [(n, 1, n, at, "added", row_checksum(n, at, "added", data), data) for n in range(2, 10_001)]
        session.run_many(
            "INSERT INTO @events (id, conversation, seq, at, kind, crc, data) VALUES (?,?,?,?,?,?,?)", rows
        )
        session.run("UPDATE @conversations SET seq = 10000, messages = 10000")
    with counted_rows() as counts:
        ended = store_cli("log", "show", id, "--last", "20")
    assert ended.out.count("the same words again") == 20
    assert sum(counts) < 30
    with counted_rows() as counts:
        store_cli("log")
    assert sum(counts) == 1
    with counted_rows() as counts:
        ended = store_cli("log", "show", id, "--all")
    assert ended.out.count("the same words again") == 10_000
    assert max(counts) <= 200


def test_long_results_are_cut_without_full_flag(store_cli: StoreCli):
    result = Message("tool", (Text("unused"),))
    id = store_cli.add_conversation()
    with store_cli.store() as store:
        completed = next(record.event for record in store.events(id) if isinstance(record.event, CallCompleted))
        block = completed.message.blocks[0]
        long = msgspec.structs.replace(block, content=(Text("\n".join(f"line {n}" for n in range(100))),))
        other = store_cli.add_events(MessageAdded(msgspec.structs.replace(result, blocks=(long,))))
    assert "line 99" not in store_cli("log", "show", other).out
    assert "92 more lines (--full)" in store_cli("log", "show", other).out
    assert "line 99" in store_cli("log", "show", other, "--full").out


def test_non_text_content_is_shown_as_a_line(store_cli: StoreCli):
    broken = Reply((Text("half an answ"),), finish="error")
    id = store_cli.add_events(
        human("a"), ReplyBroken(broken), Rewound("turn-1"), UnknownEvent("from-the-future", {"x": 1})
    )
    lines = store_cli("log", "show", id).lines
    assert "· incomplete reply (error): half an answ" in lines
    assert "· rewound to turn-1" in lines
    assert "· from-the-future: written by a newer version of segue" in lines


def test_messages_are_sanitized(store_cli: StoreCli):
    evil = "\x1b]0;owned\x07\x1b[2J text\r\x08\u202eabc\n\tindented"
    id = store_cli.add_events(MessageAdded(Message("ai", (Thinking(evil), Text(evil)))))
    shown = store_cli("log", "show", id, "--full").out
    assert not set("\x1b\x07\r\x08\u202e") & set(shown)
    assert "\tindented" in shown


def test_all_and_last_are_exclusive(store_cli: StoreCli):
    assert store_cli("log", "show", store_cli.add_conversation(), "--all", "--last", "3").is_one_line_error


# ------------------------------------------------------------------------------------------------------------ search


def test_search_shows_matching_messages(store_cli: StoreCli):
    id = store_cli.add_conversation()
    store_cli.add_events(human("something else"))
    ended = store_cli("log", "search", "buy", "bread")
    assert ended.lines[0].startswith(id)
    assert ended.lines[1].strip() == "Buy bread."
    output = store_cli("log", "search", "buy bread", "--json").json
    [hit], snippet = output["matches"], output["matches"][0]["snippet"]
    assert (output["version"], output["more"], hit["conversation"]) == (1, False, id)
    assert [snippet["text"][a:b] for a, b in snippet["marks"]] == ["Buy", "bread"]


def test_no_hit_is_not_a_failure(store_cli: StoreCli):
    store_cli.add_conversation()
    ended = store_cli("log", "search", "xylophone")
    assert (ended.code, ended.out, ended.err) == (0, "", "segue: nothing found\n")


# --------------------------------------------------------------------------------------------------- path and delete


def test_path_is_printed_without_password(store_cli: StoreCli):
    assert store_cli("log", "path").out == f"{store_cli.path}\n"
    assert store_cli("log", "path", "--json").json == {"path": str(store_cli.path), "exists": False}
    ended = run("log", "path", SEGUE_STORE="postgresql://me:secret@host:5/db?password=secret")
    assert ended.out == b"postgresql://host:5/db\n"
    leads = "postgresql:///db?host=/tmp&port=5433"
    assert run("log", "path", SEGUE_STORE=f"{leads}&password=secret&user=me").out.decode() == f"{leads}\n"
    assert run("log", "path", SEGUE_STORE="~/x/../y.db").out.decode() == f"{(Path.home() / 'y.db').resolve()}\n"


def test_delete_through_a_pipe_needs_no_prompt(store_cli: StoreCli):
    id = store_cli.add_conversation()
    ended = store_cli("log", "delete", id)
    assert (ended.code, ended.is_one_line_error) == (2, True)
    assert "--yes" in ended.err
    assert store_cli("log", "show", id).code == 0


def test_delete_is_all_or_nothing(store_cli: StoreCli):
    one, two, three = store_cli.add_conversation(), store_cli.add_conversation(), store_cli.add_conversation()
    assert store_cli("log", "delete", one, "nonsense", "--yes").code == 2
    assert store_cli("log", "delete", one, two, one, "--yes").out == f"{one}\n{two}\n"
    assert [row["id"] for row in store_cli("log", "--json").json] == [three]
    assert store_cli("log", "delete", three, "--yes", "--json").json == [three]


@pytest.mark.parametrize(
    ("answer", "gone"),
    [(b"y\n", True), (b"YES\n", True), (b"maybe\ny\n", True), (b"n\n", False), (b"\n", False), (b"\x04", False)],
)
def test_delete_on_a_terminal_asks_for_confirmation(store_cli: StoreCli, answer: bytes, gone: bool):
    id = store_cli.add_conversation()
    ours, theirs = pty.openpty()
    variables = environment(SEGUE_STORE=str(store_cli.path))
    with subprocess.Popen([*SEGUE, "log", "delete", id], stdin=theirs, stdout=-1, stderr=-1, env=variables) as process:
        os.close(theirs)
        os.write(ours, answer)
        out, err = process.communicate(timeout=100)
        os.close(ours)
    assert b"Shopping" in err
    assert err.count(b"permanently?") == (2 if b"maybe" in answer else 1)
    assert (b"answer y or n" in err) == (b"maybe" in answer)
    assert (process.returncode, out) == ((0, f"{id}\n".encode()) if gone else (1, b""))
    assert (b"nothing was deleted" in err) != gone
    assert (store_cli("log", "show", id).code == 2) == gone


# ------------------------------------------------------------------------------------------------------- the process


def test_temporary_failure_exits_75(store_cli: StoreCli):
    id = store_cli.add_conversation()
    with store_cli.store() as store:
        store.acquire(id, "somebody", 1000)
        ended = store_cli("compress", id, "--strategy", "dense", "--budget", "1")
    assert (ended.code, ended.is_one_line_error) == (75, True)
    assert "open in another process (somebody)" in ended.err


def test_store_location_comes_from_config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home" / ".config"))
    monkeypatch.delenv("SEGUE_STORE", raising=False)
    monkeypatch.chdir(tmp_path)
    from segue.cli import config, trust_store, user_store

    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    assert config.configured_store(config.load_files()) is None
    assert user_store.locate().endswith("history.db")
    mine = tmp_path / "home" / ".config" / "segue" / "config.toml"
    mine.parent.mkdir(parents=True)
    mine.write_text('store = "postgresql://host/db"')
    assert user_store.locate() == "postgresql://host/db"
    (tmp_path / ".segue.toml").write_text('store = "chats.db"')
    assert user_store.locate() == "postgresql://host/db"
    assert user_store.locate(trusting=True) == str(tmp_path / "chats.db")
    trust_store.add(tmp_path / ".segue.toml", b'store = "chats.db"')
    assert user_store.locate() == str(tmp_path / "chats.db")
    monkeypatch.setenv("SEGUE_STORE", "elsewhere.db")
    assert user_store.locate() == "elsewhere.db"
    monkeypatch.delenv("SEGUE_STORE")
    for output in ('store = "postgresql://elsewhere/db"', "store = 3", 'store = ""', "store = "):
        (tmp_path / ".segue.toml").write_text(output)
        with pytest.raises(Exception, match=r"\.segue\.toml"):
            user_store.locate()


def test_a_terminal_sees_colours_and_a_pipe_none(store_cli: StoreCli):
    id = store_cli.add_conversation()
    assert "\x1b[" in run_in_terminal("log", SEGUE_STORE=str(store_cli.path))
    assert "\x1b[" in run_in_terminal("log", "show", id, SEGUE_STORE=str(store_cli.path))
    assert b"\x1b[" not in run("log", "show", id, SEGUE_STORE=str(store_cli.path)).out


@pytest.mark.parametrize(
    "arguments", [["log", "shwo"], ["log", "--nonsense"], ["log", "show"], ["log", "--limit", "0"]]
)
def test_a_usage_error_is_one_line(store_cli: StoreCli, arguments: list[str]):
    ended = store_cli(*arguments)
    assert (ended.code, ended.is_one_line_error) == (2, True)


def test_help_names_the_commands_and_the_options_of_the_list(store_cli: StoreCli):
    output = store_cli("log", "--help").out
    assert all(word in output for word in ("list", "show", "search", "path", "delete", "--limit", "--before", "--json"))
