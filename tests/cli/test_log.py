"""`segue log`: what is listed, shown, found and deleted, and how much is read for it."""

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
from segue.store import sqlite
from segue.store.events import Broke, Completed, Rewound, Said, Sent, Unknown
from tests.cli.kept import Kept, fill
from tests.cli.process import SEGUE, environment, is_one_line, run
from tests.cli.terminal import in_terminal


@contextmanager
def counted_rows() -> Generator[list[int]]:
    """How many rows come out of the database."""
    counts: list[int] = []
    whole = sqlite._Connection.run

    def counting(self: sqlite._Connection, sql: str, *values: object):
        rows = whole(self, sql, *values)
        counts.append(len(rows))
        return rows

    sqlite._Connection.run = counting
    try:
        yield counts
    finally:
        sqlite._Connection.run = whole


def human(text: str) -> Said:
    return Said(Message("human", (Text(text),)))


# -------------------------------------------------------------------------------------------------------------- list


def test_the_last_written_comes_first_with_all_that_a_list_says(kept: Kept):
    first = kept.talk()
    second = kept.keep(human("An untitled one, by its opening words"))
    ended = kept("log")
    assert ended.code == 0
    assert [line.split()[0] for line in ended.lines] == ["id", second, first]
    assert re.search(r"\d{4}-\d\d-\d\d \d\d:\d\d +4  claude-sonnet-4-5 +Shopping$", ended.lines[2])
    assert "An untitled one, by its opening words" in ended.lines[1]


def test_json_lists_the_same(kept: Kept):
    id = kept.talk()
    [row] = kept("log", "--json").json
    assert (row["id"], row["title"], row["messages"], row["model"]) == (id, "Shopping", 4, "claude-sonnet-4-5")
    assert row["opening"] == "What is in notes.txt?"
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT[\d:.]+Z", row["updated"])
    assert kept("log", "list", "--json").json == [row]


def test_pages_follow_each_other_without_a_gap(kept: Kept):
    with kept.store() as store:
        made = fill(store, 7)
    seen: list[str] = []
    before: list[str] = []
    for size in (3, 3, 1):
        ended = kept("log", "--limit", "3", *before)
        rows = [line.split()[0] for line in ended.lines[1:]]
        assert len(rows) == size
        more = re.search(r"more: segue log (.*)\n", ended.err)
        assert bool(more) == (size == 3)
        before = more[1].split()[2:] if more else []
        seen += rows
    assert sorted(seen) == sorted(made)
    assert kept("log", "--json", "--before", seen[-1]).json == []


def test_looking_makes_no_store(kept: Kept):
    assert (kept("log").code, kept("log").out) == (0, "")
    assert kept("log", "--json").json == []
    assert kept("log", "search", "x").code == 0
    for arguments in (["log", "show", "x"], ["export", "x", "--format", "md"], ["diag", "x"], ["log", "delete", "x"]):
        ended = kept(*arguments)
        assert ended.refused
        assert ended.code == 2
    assert not kept.path.exists()


def test_ten_thousand_conversations_list_at_once(kept: Kept):
    with kept.store() as store:
        made = fill(store, 10_000)
    with counted_rows() as rows:
        page = kept("log")
    assert len(page.lines) == 51
    assert sum(rows) == 51
    with counted_rows() as rows:
        whole = kept("log", "--limit", "20000", "--json").json
    assert {row["id"] for row in whole} == set(made)
    assert len(rows) == 1


def test_titles_obey_nobody(kept: Kept):
    with kept.store() as store:
        store.create("\x1b[2J\x07evil\nsecond line\u202e")
    ended = kept("log")
    assert len(ended.lines) == 2
    assert not set("\x1b\x07\u202e") & set(ended.out)


# -------------------------------------------------------------------------------------------------------------- show


def test_what_was_said_is_shown_in_its_order(kept: Kept):
    id = kept.talk()
    ended = kept("log", "show", id)
    assert ended.code == 0
    wanted = ["User", "What is in notes.txt?", "Assistant", "I look.", '→ read_file {"path":"notes.txt"}']
    wanted += ["← read_file Buy bread.", "Assistant", "Bread."]
    said = [line for line in ended.lines if line and not line.startswith("·")]
    assert said == wanted
    assert "· sent to anthropic (claude-sonnet-4-5)" in ended.lines


def test_json_shows_the_events(kept: Kept):
    id = kept.talk()
    told = kept("log", "show", id, "--all", "--json").json
    assert told["id"] == id
    assert [event["seq"] for event in told["events"]] == list(range(1, told["seq"] + 1))
    assert [event["type"] for event in told["events"]][:3] == ["titled", "opened", "said"]
    [last] = kept("log", "show", id, "--last", "1", "--json").json["events"]
    assert last == told["events"][-1]


def test_the_beginning_of_an_id_is_enough_where_it_is_the_only_one(kept: Kept):
    id = kept.talk()
    assert kept("log", "show", id[:10]).code == 0
    missing = kept("log", "show", "zzz")
    assert (missing.code, missing.refused) == (2, True)
    with kept.store() as store:
        store.create(id="twin-a")
        store.create(id="twin-b")
    several = kept("log", "show", "twin")
    assert several.code == 2
    assert "twin-a, twin-b" in several.err


def test_last_counts_messages_and_not_what_stands_between_them(kept: Kept):
    events = [event for number in range(40) for event in (human(f"words {number}"), *[Sent("kimi")] * 9)]
    id = kept.keep(*events)
    ended = kept("log", "show", id, "--last", "30")
    assert [line for line in ended.lines if line.startswith("words")] == [f"words {n}" for n in range(10, 40)]
    assert "--all" in ended.err
    assert len([line for line in kept("log", "show", id, "--all").lines if line.startswith("words")]) == 40


def test_of_a_hundred_thousand_messages_only_the_last_are_read(kept: Kept):
    # Without the store's own doors: a hundred thousand events that differ in nothing but their numbers.
    id = kept.keep(*[human("the same words again")])
    with kept.store() as store, store._writing() as session:
        from segue.store.rows import crc_of

        [(data, at)] = session.run("SELECT data, at FROM @events")
        rows = [(n, 1, n, at, "said", crc_of(n, at, "said", data), data) for n in range(2, 100_001)]
        session.many("INSERT INTO @events (id, conversation, seq, at, kind, crc, data) VALUES (?,?,?,?,?,?,?)", rows)
        session.run("UPDATE @conversations SET seq = 100000, messages = 100000")
    with counted_rows() as counts:
        ended = kept("log", "show", id, "--last", "20")
    assert ended.out.count("the same words again") == 20
    assert sum(counts) < 30
    with counted_rows() as counts:
        kept("log")
    assert sum(counts) == 1
    with counted_rows() as counts:
        ended = kept("log", "show", id, "--all")
    assert ended.out.count("the same words again") == 100_000
    assert max(counts) <= 200


def test_long_results_are_cut_unless_they_are_wanted(kept: Kept):
    result = Message("tool", (Text("unused"),))
    id = kept.talk()
    with kept.store() as store:
        completed = next(record.event for record in store.events(id) if isinstance(record.event, Completed))
        block = completed.message.blocks[0]
        long = msgspec.structs.replace(block, content=(Text("\n".join(f"line {n}" for n in range(100))),))
        other = kept.keep(Said(msgspec.structs.replace(result, blocks=(long,))))
    assert "line 99" not in kept("log", "show", other).out
    assert "92 more lines (--full)" in kept("log", "show", other).out
    assert "line 99" in kept("log", "show", other, "--full").out


def test_what_is_not_said_is_told_in_a_line(kept: Kept):
    broken = Reply((Text("half an answ"),), finish="error")
    id = kept.keep(human("a"), Broke(broken), Rewound("turn-1"), Unknown("from-the-future", {"x": 1}))
    lines = kept("log", "show", id).lines
    assert "· incomplete reply (error): half an answ" in lines
    assert "· rewound to turn-1" in lines
    assert "· from-the-future: written by a newer version of segue" in lines


def test_what_was_said_obeys_nobody(kept: Kept):
    evil = "\x1b]0;owned\x07\x1b[2J text\r\x08\u202eabc\n\tindented"
    id = kept.keep(Said(Message("ai", (Thinking(evil), Text(evil)))))
    shown = kept("log", "show", id, "--full").out
    assert not set("\x1b\x07\r\x08\u202e") & set(shown)
    assert "\tindented" in shown


def test_all_and_last_do_not_go_together(kept: Kept):
    assert kept("log", "show", kept.talk(), "--all", "--last", "3").refused


# ------------------------------------------------------------------------------------------------------------ search


def test_words_are_found_where_they_stand(kept: Kept):
    id = kept.talk()
    kept.keep(human("something else"))
    ended = kept("log", "search", "buy", "bread")
    assert ended.lines[0].startswith(id)
    assert ended.lines[1].strip() == "Buy bread."
    [hit] = kept("log", "search", "buy bread", "--json").json
    assert hit["id"] == id
    assert [hit["shown"]["text"][a:b] for a, b in hit["shown"]["marks"]] == ["Buy", "bread"]


def test_nothing_found_is_no_failure(kept: Kept):
    kept.talk()
    ended = kept("log", "search", "xylophone")
    assert (ended.code, ended.out, ended.err) == (0, "", "segue: nothing found\n")


# --------------------------------------------------------------------------------------------------- path and delete


def test_the_path_is_told_and_no_password(kept: Kept):
    assert kept("log", "path").out == f"{kept.path}\n"
    assert kept("log", "path", "--json").json == {"path": str(kept.path), "exists": False}
    ended = run("log", "path", SEGUE_STORE="postgresql://me:secret@host:5/db?password=secret")
    assert ended.out == b"postgresql://host:5/db\n"
    leads = "postgresql:///db?host=/tmp&port=5433"
    assert run("log", "path", SEGUE_STORE=f"{leads}&password=secret&user=me").out.decode() == f"{leads}\n"
    assert run("log", "path", SEGUE_STORE="~/x/../y.db").out.decode() == f"{(Path.home() / 'y.db').resolve()}\n"


def test_a_pipe_is_not_asked(kept: Kept):
    id = kept.talk()
    ended = kept("log", "delete", id)
    assert (ended.code, ended.refused) == (2, True)
    assert "--yes" in ended.err
    assert kept("log", "show", id).code == 0


def test_what_is_deleted_is_gone_all_or_nothing(kept: Kept):
    one, two, three = kept.talk(), kept.talk(), kept.talk()
    assert kept("log", "delete", one, "nonsense", "--yes").code == 2
    assert kept("log", "delete", one, two, one, "--yes").out == f"{one}\n{two}\n"
    assert [row["id"] for row in kept("log", "--json").json] == [three]
    assert kept("log", "delete", three, "--yes", "--json").json == [three]


@pytest.mark.parametrize(
    ("answer", "gone"),
    [(b"y\n", True), (b"YES\n", True), (b"maybe\ny\n", True), (b"n\n", False), (b"\n", False), (b"\x04", False)],
)
def test_on_a_terminal_it_is_asked(kept: Kept, answer: bytes, gone: bool):
    id = kept.talk()
    ours, theirs = pty.openpty()
    variables = environment(SEGUE_STORE=str(kept.path))
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
    assert (kept("log", "show", id).code == 2) == gone


# ------------------------------------------------------------------------------------------------------- the process


def test_a_file_that_is_no_store_is_one_line_and_1(tmp_path: Path):
    file = tmp_path / "foreign.db"
    file.write_bytes(b"this is something else, and long enough to be looked at" * 100)
    before = file.read_bytes()
    for arguments in (["log"], ["log", "show", "x"], ["diag", "x"], ["compress", "x", "--undo"]):
        assert is_one_line(run(*arguments, SEGUE_STORE=str(file)), code=1)
    assert file.read_bytes() == before


def test_what_may_pass_is_75(kept: Kept):
    id = kept.talk()
    with kept.store() as store:
        store.acquire(id, "somebody", 1000)
        ended = kept("compress", id, "--strategy", "dense", "--budget", "1")
    assert (ended.code, ended.refused) == (75, True)
    assert "held by 'somebody'" in ended.err


def test_the_store_is_where_the_configuration_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home" / ".config"))
    monkeypatch.delenv("SEGUE_STORE", raising=False)
    monkeypatch.chdir(tmp_path)
    from segue.cli import config, stored, trusted

    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    assert config.store() is None
    assert stored.place().endswith("history.db")
    mine = tmp_path / "home" / ".config" / "segue" / "config.toml"
    mine.parent.mkdir(parents=True)
    mine.write_text('store = "postgresql://host/db"')
    assert stored.place() == "postgresql://host/db"
    (tmp_path / ".segue.toml").write_text('store = "chats.db"')
    assert stored.place() == "postgresql://host/db"
    assert stored.place(trusting=True) == str(tmp_path / "chats.db")
    trusted.remember(tmp_path / ".segue.toml", b'store = "chats.db"')
    assert stored.place() == str(tmp_path / "chats.db")
    monkeypatch.setenv("SEGUE_STORE", "elsewhere.db")
    assert stored.place() == "elsewhere.db"
    monkeypatch.delenv("SEGUE_STORE")
    for told in ('store = "postgresql://elsewhere/db"', "store = 3", 'store = ""', "store = "):
        (tmp_path / ".segue.toml").write_text(told)
        with pytest.raises(Exception, match=r"\.segue\.toml"):
            stored.place()


def test_a_terminal_sees_colours_and_a_pipe_none(kept: Kept):
    id = kept.talk()
    assert "\x1b[" in in_terminal("log", SEGUE_STORE=str(kept.path))
    assert "\x1b[" in in_terminal("log", "show", id, SEGUE_STORE=str(kept.path))
    assert b"\x1b[" not in run("log", "show", id, SEGUE_STORE=str(kept.path)).out


@pytest.mark.parametrize(
    "arguments", [["log", "shwo"], ["log", "--nonsense"], ["log", "show"], ["log", "--limit", "0"]]
)
def test_a_usage_error_is_one_line(kept: Kept, arguments: list[str]):
    ended = kept(*arguments)
    assert (ended.code, ended.refused) == (2, True)


def test_help_names_the_commands_and_the_options_of_the_list(kept: Kept):
    told = kept("log", "--help").out
    assert all(word in told for word in ("list", "show", "search", "path", "delete", "--limit", "--before", "--json"))
