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
from contextlib import ExitStack
from pathlib import Path

import pytest

from segue.canonical.blocks import Message, Text, ToolCall
from segue.cli import app
from segue.store.events import CallCompleted, MessageAdded
from segue.store.sqlite import SqliteStore
from segue.view.fit import display_width, truncate
from tests.cli.process import SEGUE, environment, is_one_line_error, run
from tests.cli.store_cli import StoreCli
from tests.cli.terminal import run_in_terminal
from tests.interrupts import default_interrupt


def human(text: str) -> MessageAdded:
    return MessageAdded(Message("human", (Text(text),)))


# --------------------------------------------------------------------------------------------------- calls and results


def long_talk(store_cli: StoreCli) -> str:
    answer = MessageAdded(Message("ai", (Text("word " * 200),)))
    return store_cli.add_events(*[event for number in range(20) for event in (human(f"question {number}"), answer)])


def call(id: str, city: str) -> ToolCall:
    return ToolCall("weather", {"city": city}, id=id)


def show_conversation(store_cli: StoreCli, id: str, *arguments: str) -> list[str]:
    return [line for line in store_cli("log", "show", id, *arguments).lines if line.startswith(("→", "←"))]


def test_results_of_parallel_calls_are_numbered(store_cli: StoreCli):
    one, two, three = call("a", "Zürich"), call("b", "東京"), call("c", "Rome")
    results = [CallCompleted(Message("tool", (whose.respond(text),))) for whose, text in ((two, "rain"), (one, "sun"))]
    alone = [MessageAdded(Message("ai", (three,))), CallCompleted(Message("tool", (three.respond("fog"),)))]
    late = CallCompleted(Message("tool", (one.respond("snow"),)))
    id = store_cli.add_events(MessageAdded(Message("ai", (one, two))), *results, *alone, late)
    assert show_conversation(store_cli, id) == [
        '→ weather #1 {"city":"Zürich"}',
        '→ weather #2 {"city":"東京"}',
        "← weather #2 rain",
        "← weather #1 sun",
        '→ weather {"city":"Rome"}',
        "← weather fog",
        "← weather #1 snow",
    ]


def test_a_result_far_from_its_call_names_it(store_cli: StoreCli):
    one, two = call("a", "Zürich"), call("b", "東京")
    output = [MessageAdded(Message("ai", (one,))), CallCompleted(Message("tool", (one.respond("?"),)))]
    output += [MessageAdded(Message("ai", (two,))), CallCompleted(Message("tool", (one.respond("sun"),)))]
    id = store_cli.add_events(*output)
    assert show_conversation(store_cli, id)[-1] == '← weather (of {"city":"Zürich"}) sun'
    assert show_conversation(store_cli, id, "--last", "1") == ["← weather (its call is not shown) sun"]


def test_a_call_while_another_waits_is_numbered_too(store_cli: StoreCli):
    one, two = call("a", "Zürich"), call("b", "東京")
    output = [MessageAdded(Message("ai", (one,))), MessageAdded(Message("ai", (two,)))]
    output += [CallCompleted(Message("tool", (whose.respond("x"),))) for whose in (one, two)]
    lines = show_conversation(store_cli, store_cli.add_events(*output))
    assert lines[1] == '→ weather #1 {"city":"東京"}'
    assert lines[2:] == ['← weather (of {"city":"Zürich"}) x', "← weather #1 x"]


# -------------------------------------------------------------------------------------------------- numbers and widths


@pytest.mark.parametrize(
    "arguments", [["log", "--limit"], ["log", "search", "x", "--limit"], ["log", "show", "x", "--last"]]
)
def test_a_number_that_is_too_large_is_named(store_cli: StoreCli, arguments: list[str]):
    store_cli.add_conversation()
    ended = store_cli(*arguments, "9" * 21)
    assert (ended.code, ended.is_one_line_error) == (2, True)
    assert arguments[-1] in ended.err


def test_hidden_hits_are_counted(store_cli: StoreCli):
    store_cli.add_events(*[human(f"common {number}") for number in range(25)])
    ended = store_cli("log", "search", "common")
    assert len(ended.lines) == 2 * 20
    assert "more than 20 matches" in ended.err
    assert len(store_cli("log", "search", "common", "--json").json["matches"]) == 20
    assert store_cli("log", "search", "common", "--limit", "25").err == ""


def test_searched_fields_are_documented(store_cli: StoreCli):
    assert "not system text and reasoning" in " ".join(store_cli("log", "search", "--help").out.split())


@pytest.mark.parametrize("columns", [30, 40, 60, 80, 100, 130, 200])
def test_the_table_fits_the_terminal(store_cli: StoreCli, columns: int):
    store_cli.add_conversation(title="a title of many words " * 20)
    store_cli.add_conversation(title="東京の天気" * 40)
    store_cli.add_conversation()
    for variables in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
        lines = run_in_terminal("log", columns=columns, SEGUE_STORE=str(store_cli.path), **variables).splitlines()
        assert len(lines) == 4
        assert all(display_width(line) <= columns and line == line.rstrip() for line in lines), lines
        assert max(map(display_width, lines)) >= columns - 1
        assert ("claude-son" in lines[1]) == (columns >= 80)


def test_the_table_has_no_blanks_at_its_end_in_colour(store_cli: StoreCli):
    store_cli.add_conversation()
    store_cli.add_conversation(title="longer than the other")
    assert " \x1b[0m\n" not in run_in_terminal("log", SEGUE_STORE=str(store_cli.path))


@pytest.mark.parametrize("text", ["short", "東京" * 30, "e\u0301" * 50, "a  b\nc", "👩‍👩‍👧 family"])
@pytest.mark.parametrize("width", [5, 12, 60])
def test_a_fitted_text_is_no_wider(text: str, width: int):
    assert display_width(truncate(text, width)) <= width


# ------------------------------------------------------------------------------------------------------------- places


@pytest.mark.parametrize("where", ["sqlite:///x.db", "mysql://x", "file:foo.db", ":memory:"])
@pytest.mark.parametrize("arguments", [["log"], ["log", "path"], ["import"], ["log", "show", "x"]])
def test_non_store_address_is_rejected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str, arguments: list[str]
):
    monkeypatch.chdir(tmp_path)
    ended = run(*arguments, stdin=b'{"messages":[{"role":"user","content":"x"}]}', SEGUE_STORE=where)
    assert is_one_line_error(ended)
    assert where in ended.err
    assert list(tmp_path.iterdir()) == []
    (tmp_path / ".segue.toml").write_text(f'store = "{where}"')
    assert is_one_line_error(run(*arguments, stdin=b'{"messages":[]}', HOME=str(tmp_path)))
    assert [file.name for file in tmp_path.iterdir()] == [".segue.toml"]


NOBODY_SCRIPT = """
import importlib, importlib.metadata, json, os, pkgutil, sys
sys.path[:] = PATH
import segue
for module in pkgutil.walk_packages(segue.__path__, "segue."):
    if module.name != "segue.__main__":
        importlib.import_module(module.name)
from click.testing import CliRunner
segue.formats()
segue.bridge.providers.catalogue()
importlib.metadata.version = lambda name: "0"
if os.geteuid() == 0:
    os.setuid(65534)
os.chdir("/")
told = []
for arguments in json.loads(sys.argv[1]):
    with CliRunner().isolation() as (out, err, _):
        code = segue.cli.app.run(arguments)
        told.append((code, out.getvalue().decode(), err.getvalue().decode()))
print(json.dumps(told))
"""


@pytest.fixture
def folder() -> Generator[Path]:
    with tempfile.TemporaryDirectory(dir="/tmp") as made:
        yield Path(made)
        Path(made).chmod(0o755)


def run_as_other_user(path: Path, *commands: list[str]) -> list[tuple[int, str, str]]:
    """Root may do everything: another user asks."""
    script = NOBODY_SCRIPT.replace("PATH", repr(sys.path))
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
    StoreCli(folder).add_conversation()
    folder.chmod(0o000)
    commands = [["log"], ["log", "show", "x"], ["log", "search", "x"], ["log", "path", "--json"]]
    for code, out, err in run_as_other_user(folder / "history.db", *commands):
        assert (code, out, err.count("\n")) == (1, "", 1)
        assert str(folder) in err
        assert "permission denied" in err.lower()
        assert "stdout" not in err


def test_a_store_that_may_only_be_read_is_listed_shown_and_diagnosed(folder: Path):
    store_cli = StoreCli(folder)
    id = store_cli.add_conversation()
    store_cli.path.chmod(0o444)
    folder.chmod(0o555)
    compress = ["compress", id, "--strategy", "drop-oldest", "--budget", "9"]
    reading = [["log"], ["log", "show", id], ["log", "search", "bread"], ["diag", id], [*compress, "--dry-run"]]
    reading += [["export", id, "--format", form] for form in ("json", "md", "anthropic")]
    writing = [["log", "delete", id, "--yes"], compress, ["compress", id, "--undo"]]
    output = run_as_other_user(store_cli.path, *reading, *writing)
    assert all(out for _, out, _ in output[: len(reading)]), output
    assert {code for code, *_ in output[:4]} == {0}
    assert output[len(reading) : -1] == [[1, "", f"segue: {store_cli.path} is read-only: nothing was written\n"]] * 2
    assert output[-1][0] != 0
    folder.chmod(0o755)
    assert [file.name for file in folder.iterdir()] == ["history.db"]


# ------------------------------------------------------------------------------------------------ what somebody holds


def test_leased_conversation_is_not_deleted(store_cli: StoreCli):
    id, free = store_cli.add_conversation(), store_cli.add_conversation()
    with store_cli.store() as store:
        store.acquire(id, "somebody", 1000)
    ended = store_cli("log", "delete", free, id, "--yes")
    assert (ended.code, ended.is_one_line_error) == (75, True)
    assert "open in another process (somebody)" in ended.err
    assert "try again" in ended.err
    assert len(store_cli("log", "--json").json) == 2


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_terminated_process_releases_its_lease(store_cli: StoreCli, number: signal.Signals):
    id = long_talk(store_cli)
    arguments = ["compress", id, "--strategy", "middle-out", "--budget", "50", "--summarise", "sleep 1000"]
    with default_interrupt():
        process = subprocess.Popen(
            [*SEGUE, *arguments], env=environment(SEGUE_STORE=str(store_cli.path)), stdout=-1, stderr=-1
        )
    with ExitStack() as stack:
        store = stack.enter_context(SqliteStore(store_cli.path))
        stack.enter_context(process)
        stack.callback(process.kill)
        # A busy machine may need long: only a test that hangs is ended.
        while store.lease(id) is None:
            assert process.poll() is None, process.communicate()
            time.sleep(0.02)
        process.send_signal(number)
        out, err = process.communicate()
        assert (process.returncode, out, err) == (128 + number, b"", b"")
        assert store.lease(id) is None
    assert store_cli("compress", id, "--strategy", "drop-oldest", "--budget", "500").code == 0


@pytest.mark.skipif(os.name == "nt", reason="no such codes")
def test_exit_codes_are_documented(store_cli: StoreCli):
    output = " ".join(store_cli("--help").out.split())
    page = (Path(__file__).parents[2] / "docs" / "agent.md").read_text()
    for code in (app.OK, app.FAILED, app.BAD_INPUT, app.RETRY, app.INTERRUPTED, app.CLOSED_PIPE, 143):
        assert f"{code} " in output
        assert f"| {code} |" in page


# ---------------------------------------------------------------------------------------------------------- summaries


def test_a_summary_that_is_no_text_changes_nothing(store_cli: StoreCli):
    id = long_talk(store_cli)
    asked = ["compress", id, "--strategy", "middle-out", "--budget", "1000", "--summarise"]
    ended = store_cli(*asked, r"printf '\377\376'")
    assert (ended.code, ended.is_one_line_error) == (1, True)
    assert "UTF-8" in ended.err
    assert "nothing was compressed" in ended.err
    assert store_cli(*asked, "echo short").code == 0


@pytest.mark.parametrize("strategy", ["truncate-results", "drop-oldest", "dense"])
def test_unused_summary_option_is_rejected(store_cli: StoreCli, strategy: str):
    id = store_cli.add_conversation()
    ended = store_cli("compress", id, "--strategy", strategy, "--budget", "5", "--summarise", "echo x")
    assert (ended.code, ended.is_one_line_error) == (2, True)
    assert "--summarise" in ended.err
