"""The commands over a store at its edges: numbers too large, places that are none, files that may only be read,
processes that are told to end."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator
from pathlib import Path

import pytest

from segue.canonical.blocks import Message, Text, ToolCall
from segue.cli import shell
from segue.cli.table import cells, fitted
from segue.store.events import Completed, Said
from segue.store.sqlite import SqliteStore
from tests.cli.kept import Kept
from tests.cli.process import SEGUE, environment, is_one_line, run
from tests.cli.terminal import in_terminal
from tests.interrupts import default_interrupt


def human(text: str) -> Said:
    return Said(Message("human", (Text(text),)))


# --------------------------------------------------------------------------------------------------- calls and results


def long_talk(kept: Kept) -> str:
    answer = Said(Message("ai", (Text("word " * 200),)))
    return kept.keep(*[event for number in range(20) for event in (human(f"question {number}"), answer)])


def call(id: str, city: str) -> ToolCall:
    return ToolCall("weather", {"city": city}, id=id)


def shown(kept: Kept, id: str, *arguments: str) -> list[str]:
    return [line for line in kept("log", "show", id, *arguments).lines if line.startswith(("→", "←"))]


def test_results_of_parallel_calls_say_whose_they_are(kept: Kept):
    one, two, three = call("a", "Zürich"), call("b", "東京"), call("c", "Rome")
    results = [Completed(Message("tool", (whose.respond(text),))) for whose, text in ((two, "rain"), (one, "sun"))]
    alone = [Said(Message("ai", (three,))), Completed(Message("tool", (three.respond("fog"),)))]
    late = Completed(Message("tool", (one.respond("snow"),)))
    id = kept.keep(Said(Message("ai", (one, two))), *results, *alone, late)
    assert shown(kept, id) == [
        '→ weather #1 {"city":"Zürich"}',
        '→ weather #2 {"city":"東京"}',
        "← weather #2 rain",
        "← weather #1 sun",
        '→ weather {"city":"Rome"}',
        "← weather fog",
        "← weather #1 snow",
    ]


def test_a_result_far_from_its_call_names_it(kept: Kept):
    one, two = call("a", "Zürich"), call("b", "東京")
    told = [Said(Message("ai", (one,))), Completed(Message("tool", (one.respond("?"),)))]
    told += [Said(Message("ai", (two,))), Completed(Message("tool", (one.respond("sun"),)))]
    id = kept.keep(*told)
    assert shown(kept, id)[-1] == '← weather (of {"city":"Zürich"}) sun'
    assert shown(kept, id, "--last", "1") == ["← weather (its call is not shown) sun"]


def test_a_call_while_another_waits_is_numbered_too(kept: Kept):
    one, two = call("a", "Zürich"), call("b", "東京")
    told = [Said(Message("ai", (one,))), Said(Message("ai", (two,)))]
    told += [Completed(Message("tool", (whose.respond("x"),))) for whose in (one, two)]
    lines = shown(kept, kept.keep(*told))
    assert lines[1] == '→ weather #1 {"city":"東京"}'
    assert lines[2:] == ['← weather (of {"city":"Zürich"}) x', "← weather #1 x"]


# -------------------------------------------------------------------------------------------------- numbers and widths


@pytest.mark.parametrize(
    "arguments", [["log", "--limit"], ["log", "search", "x", "--limit"], ["log", "show", "x", "--last"]]
)
def test_a_number_that_is_too_large_is_named(kept: Kept, arguments: list[str]):
    kept.talk()
    ended = kept(*arguments, "9" * 21)
    assert (ended.code, ended.refused) == (2, True)
    assert arguments[-1] in ended.err


def test_more_hits_than_shown_are_said_to_be_there(kept: Kept):
    kept.keep(*[human(f"common {number}") for number in range(25)])
    ended = kept("log", "search", "common")
    assert len(ended.lines) == 2 * 20
    assert "more than 20 matches" in ended.err
    assert len(kept("log", "search", "common", "--json").json) == 20
    assert kept("log", "search", "common", "--limit", "25").err == ""


def test_what_is_searched_is_told(kept: Kept):
    assert "not system text and reasoning" in " ".join(kept("log", "search", "--help").out.split())


@pytest.mark.parametrize("columns", [30, 40, 60, 80, 100, 130, 200])
def test_the_table_fits_the_terminal(kept: Kept, columns: int):
    kept.talk(title="a title of many words " * 20)
    kept.talk(title="東京の天気" * 40)
    kept.talk()
    for variables in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
        lines = in_terminal("log", columns=columns, SEGUE_STORE=str(kept.path), **variables).splitlines()
        assert len(lines) == 4
        assert all(cells(line) <= columns and line == line.rstrip() for line in lines), lines
        assert max(map(cells, lines)) >= columns - 1
        assert ("claude-son" in lines[1]) == (columns >= 80)


def test_the_table_has_no_blanks_at_its_end_in_colour(kept: Kept):
    kept.talk()
    kept.talk(title="longer than the other")
    assert " \x1b[0m\n" not in in_terminal("log", SEGUE_STORE=str(kept.path))


@pytest.mark.parametrize("text", ["short", "東京" * 30, "e\u0301" * 50, "a  b\nc", "👩‍👩‍👧 family"])
@pytest.mark.parametrize("width", [5, 12, 60])
def test_a_fitted_text_is_no_wider(text: str, width: int):
    assert cells(fitted(text, width)) <= width


# ------------------------------------------------------------------------------------------------------------- places


@pytest.mark.parametrize("where", ["sqlite:///x.db", "mysql://x", "file:foo.db", ":memory:"])
@pytest.mark.parametrize("arguments", [["log"], ["log", "path"], ["import"], ["log", "show", "x"]])
def test_an_address_that_is_no_store_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str, arguments: list[str]
):
    monkeypatch.chdir(tmp_path)
    ended = run(*arguments, stdin=b'{"messages":[{"role":"user","content":"x"}]}', SEGUE_STORE=where)
    assert is_one_line(ended)
    assert where in ended.err
    assert list(tmp_path.iterdir()) == []
    (tmp_path / ".segue.toml").write_text(f'store = "{where}"')
    assert is_one_line(run(*arguments, stdin=b'{"messages":[]}', HOME=str(tmp_path)))
    assert [file.name for file in tmp_path.iterdir()] == [".segue.toml"]


AS_NOBODY = """
import importlib, importlib.metadata, json, os, pkgutil, sys
sys.path[:] = PATH
import segue
for module in pkgutil.walk_packages(segue.__path__, "segue."):
    if module.name != "segue.__main__":
        importlib.import_module(module.name)
from click.testing import CliRunner
segue.formats()
importlib.metadata.version = lambda name: "0"
if os.geteuid() == 0:
    os.setuid(65534)
os.chdir("/")
told = []
for arguments in json.loads(sys.argv[1]):
    with CliRunner().isolation() as (out, err, _):
        code = segue.cli.shell.run(arguments)
        told.append((code, out.getvalue().decode(), err.getvalue().decode()))
print(json.dumps(told))
"""


@pytest.fixture
def folder() -> Generator[Path]:
    with tempfile.TemporaryDirectory(dir="/tmp") as made:
        yield Path(made)
        Path(made).chmod(0o755)


def as_nobody(path: Path, *commands: list[str]) -> list[tuple[int, str, str]]:
    """Root may do everything: another user asks."""
    script = AS_NOBODY.replace("PATH", repr(sys.path))
    ended = subprocess.run(
        [sys.executable, "-c", script, json.dumps(commands)],
        env=environment(SEGUE_STORE=str(path), HOME="/"),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    return json.loads(ended.stdout)


def test_a_folder_that_may_not_be_entered_is_named(folder: Path):
    Kept(folder).talk()
    folder.chmod(0o000)
    commands = [["log"], ["log", "show", "x"], ["log", "search", "x"], ["log", "path", "--json"]]
    for code, out, err in as_nobody(folder / "history.db", *commands):
        assert (code, out, err.count("\n")) == (1, "", 1)
        assert str(folder) in err
        assert "permission denied" in err.lower()
        assert "stdout" not in err


def test_a_store_that_may_only_be_read_is_listed_shown_and_diagnosed(folder: Path):
    kept = Kept(folder)
    id = kept.talk()
    kept.path.chmod(0o444)
    folder.chmod(0o555)
    compress = ["compress", id, "--strategy", "drop-oldest", "--budget", "9"]
    reading = [["log"], ["log", "show", id], ["log", "search", "bread"], ["diag", id], [*compress, "--dry-run"]]
    reading += [["export", id, "--format", form] for form in ("json", "md", "anthropic")]
    writing = [["log", "delete", id, "--yes"], compress, ["compress", id, "--undo"]]
    told = as_nobody(kept.path, *reading, *writing)
    assert all(out for _, out, _ in told[: len(reading)]), told
    assert {code for code, *_ in told[:4]} == {0}
    assert told[len(reading) : -1] == [[1, "", f"segue: {kept.path} is read-only: nothing was written\n"]] * 2
    assert told[-1][0] != 0
    folder.chmod(0o755)
    assert [file.name for file in folder.iterdir()] == ["history.db"]


# ------------------------------------------------------------------------------------------------ what somebody holds


def test_what_somebody_has_in_hand_is_not_deleted(kept: Kept):
    id, free = kept.talk(), kept.talk()
    with kept.store() as store:
        store.acquire(id, "somebody", 1000)
    ended = kept("log", "delete", free, id, "--yes")
    assert (ended.code, ended.refused) == (75, True)
    assert "held by 'somebody'" in ended.err
    assert "try again" in ended.err
    assert len(kept("log", "--json").json) == 2


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_who_is_told_to_end_lets_go(kept: Kept, number: signal.Signals):
    id = long_talk(kept)
    arguments = ["compress", id, "--strategy", "middle-out", "--budget", "50", "--summarise", "sleep 1000"]
    with default_interrupt():
        process = subprocess.Popen(
            [*SEGUE, *arguments], env=environment(SEGUE_STORE=str(kept.path)), stdout=-1, stderr=-1
        )
    with process, SqliteStore(kept.path) as store:
        deadline = time.monotonic() + 100
        while store.lease(id) is None:
            assert time.monotonic() < deadline
            assert process.poll() is None
            time.sleep(0.02)
        process.send_signal(number)
        out, err = process.communicate(timeout=100)
        assert (process.returncode, out, err) == (128 + number, b"", b"")
        assert store.lease(id) is None
    assert kept("compress", id, "--strategy", "drop-oldest", "--budget", "500").code == 0


@pytest.mark.skipif(os.name == "nt", reason="no such codes")
def test_the_codes_are_told(kept: Kept):
    told = " ".join(kept("--help").out.split())
    guide = (Path(__file__).parents[2] / "docs" / "guide.md").read_text()
    readme = (Path(__file__).parents[2] / "README.md").read_text()
    for code in (shell.OK, shell.FAILED, shell.BAD_INPUT, shell.RETRY, shell.INTERRUPTED, shell.CLOSED_PIPE, 143):
        assert f"{code} " in told
        assert f"| {code} |" in guide
        assert f"{code} " in readme.split("Exit codes:")[1].split("\n\n")[0]


# ---------------------------------------------------------------------------------------------------------- summaries


def test_a_summary_that_is_no_text_changes_nothing(kept: Kept):
    id = long_talk(kept)
    asked = ["compress", id, "--strategy", "middle-out", "--budget", "1000", "--summarise"]
    ended = kept(*asked, r"printf '\377\376'")
    assert (ended.code, ended.refused) == (1, True)
    assert "UTF-8" in ended.err
    assert "nothing was compressed" in ended.err
    assert kept(*asked, "echo short").code == 0


@pytest.mark.parametrize("strategy", ["truncate-results", "drop-oldest", "dense"])
def test_a_summary_that_nobody_asks_for_is_refused(kept: Kept, strategy: str):
    id = kept.talk()
    ended = kept("compress", id, "--strategy", strategy, "--budget", "5", "--summarise", "echo x")
    assert (ended.code, ended.refused) == (2, True)
    assert "--summarise" in ended.err
