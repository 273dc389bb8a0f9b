"""`segue corpus`: the folder that it writes, what it rejects, and how it continues."""

from __future__ import annotations

import gzip
import json
import os
import pickle
import shutil
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from segue.cli import app
from segue.corpora import Counts, Settings, convert, measure, run_here
from segue.corpora.parts import Part, convert_part, group_units
from segue.corpora.reading import plan_units
from segue.corpora.storage import Folder
from segue.errors import InputError
from tests.cli.client_logs import ClaudeCode
from tests.cli.process import SEGUE, environment, is_one_line_error, run, run_new

SESSIONS = Path(__file__).parents[1] / "data/sessions"
CHAT = {"messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]}


def write_lines(file: Path, *lines: Any) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines))
    return file


def rows_of(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for file in sorted((folder / "data").iterdir()) for line in file.read_text().splitlines()]


def rejects_of(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "rejects.jsonl").read_text().splitlines()]


def contents(folder: Path) -> dict[str, bytes]:
    files = (file for file in folder.rglob("*") if file.is_file())
    return {str(file.relative_to(folder)): file.read_bytes() for file in files}


def many_rows(folder: Path, files: int = 40) -> Path:
    for number in range(files):
        texts = [{**CHAT, "messages": [*CHAT["messages"], {"role": "user", "content": "x" * 60_000}]}] * 2
        write_lines(folder / f"{number:03}.jsonl", *texts, {"odd": number})
    return folder


def test_a_mixed_folder_becomes_rows(tmp_path):
    for client in ("claude", "codex", "gemini", "pi", "qwen"):
        shutil.copy(SESSIONS / f"{client}.jsonl", tmp_path)
    shutil.copy(SESSIONS / "opencode.json", tmp_path)
    write_lines(tmp_path / "rows.jsonl", CHAT)
    out = tmp_path / "out"
    ended = run("corpus", "convert", str(tmp_path), "--to", "template", "--out", str(out), "--json")
    counts = json.loads(ended.out)
    assert ended.code == 0
    assert (counts["files"], counts["files_rejected"], counts["rows"]) == (7, 0, 7)
    assert {row["segue"]["format"] for row in rows_of(out)} == {
        *("claude", "codex", "gemini-cli", "pi", "qwen", "opencode", "openai")
    }
    assert rejects_of(out) == []


def test_the_rows_of_a_written_folder_are_checked_without_its_reports(tmp_path):
    write_lines(tmp_path / "in" / "chat.jsonl", CHAT, {"odd": 1})
    run("corpus", "convert", str(tmp_path / "in"), "--to", "template", "--out", str(tmp_path / "out"))
    assert rejects_of(tmp_path / "out")
    checked = run("corpus", "check", str(tmp_path / "out"))
    assert (checked.code, checked.err) == (0, "segue: 1 row of 1 file: 0 errors, 0 warnings\n")


def test_a_second_run_continues_and_reads_nothing_again(tmp_path):
    many_rows(tmp_path / "in")
    whole = convert([str(tmp_path / "in")], Settings("openai"), tmp_path / "whole")
    units = plan_units([str(tmp_path / "in")])
    assert len(group_units(units)) > 2

    class StoppedError(Exception):
        pass

    def stopping(function: Any, parts: Sequence[Part]) -> Any:
        for number, pair in enumerate(run_here(1)(function, parts)):
            yield pair
            if number == 0:
                raise StoppedError

    out = tmp_path / "out"
    with pytest.raises(StoppedError):
        convert([str(tmp_path / "in")], Settings("openai"), out, engine=stopping)
    assert not (out / "corpus.json").exists()
    done: list[int] = []

    def recording(function: Any, parts: Sequence[Part]) -> Any:
        done.extend(part.number for part in parts)
        return run_here(1)(function, parts)

    assert convert([str(tmp_path / "in")], Settings("openai"), out, engine=recording) == whole
    assert 0 not in done
    assert done
    assert {name: data for name, data in contents(out).items() if "plan" not in name} == {
        name: data for name, data in contents(tmp_path / "whole").items() if "plan" not in name
    }


def test_a_folder_of_other_files_or_options_is_refused(tmp_path):
    file = write_lines(tmp_path / "rows.jsonl", CHAT)
    out = str(tmp_path / "out")
    assert run("corpus", "convert", str(file), "--to", "openai", "--out", out).code == 0
    assert run("corpus", "convert", str(file), "--to", "openai", "--out", out).code == 0
    assert is_one_line_error(run("corpus", "convert", str(file), "--to", "template", "--out", out), 2)
    write_lines(file, CHAT, CHAT)
    assert is_one_line_error(run("corpus", "convert", str(file), "--to", "openai", "--out", out), 2)
    foreign = tmp_path / "foreign"
    write_lines(foreign / "mine.txt", "x")
    assert is_one_line_error(run("corpus", "convert", str(file), "--to", "openai", "--out", str(foreign)), 2)
    assert contents(foreign) == {"mine.txt": b"x\n"}


def test_processes_write_the_same_bytes(tmp_path):
    many_rows(tmp_path / "in")
    one, two = (tmp_path / name for name in ("one", "two"))
    counts = convert([str(tmp_path / "in")], Settings("atif"), one)
    arguments = ("--to", "atif", "--out", str(two), "--jobs", "2", "--json")
    ended = run_new("corpus", "convert", str(tmp_path / "in"), *arguments)
    assert msgspec.json.decode(ended.out, type=Counts) == counts
    assert contents(one) == contents(two)


def test_a_killed_run_leaves_no_torn_file(tmp_path):
    many_rows(tmp_path / "in", 60)
    out = tmp_path / "out"
    command = [*SEGUE, "corpus", "convert", str(tmp_path / "in"), "--to", "template", "--out", str(out), "--jobs", "1"]
    running = subprocess.Popen(command, env=environment(), stdout=subprocess.DEVNULL)
    while running.poll() is None and not any((out / ".segue-corpus").glob("0*.json")):
        time.sleep(0.01)
    running.send_signal(signal.SIGKILL)
    running.wait()
    convert([str(tmp_path / "in")], Settings("template"), tmp_path / "whole")
    for name, data in contents(out).items():
        if not Path(name).name.startswith("."):
            assert contents(tmp_path / "whole")[name] == data
    assert subprocess.run(command, env=environment(), stdout=subprocess.DEVNULL, check=False).returncode == 0
    finished = {name: data for name, data in contents(out).items() if not name.endswith(".tmp")}
    assert finished == contents(tmp_path / "whole")


@pytest.mark.parametrize("name", ["rows.jsonl.gz", "rows.jsonl.zst"])
def test_compressed_files_are_read_and_written(tmp_path, name):
    plain = write_lines(tmp_path / "rows.jsonl", CHAT, CHAT)
    out = tmp_path / "out"
    container = name.removeprefix("rows.")
    ended = run("corpus", "convert", str(plain), "--to", "openai", "--out", str(out), "--file-type", container)
    assert ended.code == 0
    (written,) = (out / "data").iterdir()
    assert written.name.endswith(container)
    assert measure([str(written)]).rows == 2
    again = convert([str(plain)], Settings("openai", container), tmp_path / "again")
    assert again.rows == 2
    assert contents(out) == contents(tmp_path / "again")


def test_a_damaged_archive_is_rejected_after_its_rows(tmp_path):
    line = json.dumps(CHAT).encode() + b"\n"
    data = gzip.compress(b"".join(line.replace(b"Hi", b"%d" % number) for number in range(5000)))
    file = tmp_path / "rows.jsonl.gz"
    file.write_bytes(data[: len(data) // 2])
    counts = convert([str(file)], Settings("openai"), tmp_path / "out")
    assert counts.rows > 0
    assert "to its end" in rejects_of(tmp_path / "out")[-1]["reason"]


BAD_LINES: dict[str, tuple[str, str]] = {
    "truncated": ('{"messages": [{"role": "user"', "ends too early"),
    "no object": ("[1, 2]", "a JSON object was expected"),
    "binary": ("\\u0000\\u0001 x", "invalid character"),
    "wrong type": ('{"messages": [{"role": "user", "content": 7}]}', "content"),
    "unknown role": ('{"messages": [{"role": "wizard", "content": "x"}]}', "role"),
    "no messages": ('{"messages": []}', "no messages"),
    "other": ('{"a": 1}', "not a line of"),
    "deep": ('{"messages": ' + "[" * 600 + "]" * 600 + "}", "500 levels"),
}


@pytest.mark.parametrize("case", BAD_LINES)
def test_a_bad_line_is_rejected_with_its_place(tmp_path, case):
    bad, reason = BAD_LINES[case]
    file = write_lines(tmp_path / "rows.jsonl", CHAT, bad, CHAT)
    counts = convert([str(file)], Settings("openai"), tmp_path / "out")
    (reject,) = rejects_of(tmp_path / "out")
    assert reject["file"] == str(file)
    assert reject["offset"] == len(json.dumps(CHAT)) + 1
    assert reason in reject["reason"] + reject["path"]
    assert "line 1" not in reject["reason"]
    assert (counts.rows, counts.lines_rejected, counts.files_rejected) == (2, 1, 0)
    assert counts.messages == counts.messages_in_rows + counts.messages_rejected


def test_a_damaged_line_of_a_session_is_rejected_and_the_others_are_read(tmp_path):
    log = ClaudeCode()
    log.user("Hi")
    log.reply("m1", {"type": "text", "text": "Hello"})
    file = write_lines(tmp_path / "session.jsonl", log.lines[0], '{"type": "user", "mess', log.lines[1])
    counts = convert([str(file)], Settings("template"), tmp_path / "out")
    (reject,) = rejects_of(tmp_path / "out")
    assert reject["path"] == "line 2"
    assert (counts.rows, counts.messages, counts.messages_rejected) == (1, 3, 1)


BAD_FILES: dict[str, bytes] = {
    "empty.jsonl": b"",
    "binary.jsonl": bytes(range(256)) * 20,
    "text.json": b"hello",
    "unknown.jsonl": b'{"a": 1}\n{"b": 2}\n',
    "not.gz": b"plain",
    "header.jsonl": b'{"type":"session","harness":"x","id":"1"}\n',
}


@pytest.mark.parametrize("name", BAD_FILES)
def test_a_bad_file_is_rejected(tmp_path, name):
    (tmp_path / name).write_bytes(BAD_FILES[name])
    write_lines(tmp_path / "good.jsonl", CHAT)
    counts = convert([str(tmp_path)], Settings("openai"), tmp_path / "out")
    assert (counts.files, counts.files_rejected, counts.rows) == (2, 1, 1)
    (reject,) = rejects_of(tmp_path / "out")
    assert reject["file"].endswith(name)
    assert reject["reason"]


LIST = [
    {"conversations": [{"from": "human", "value": str(number)}, {"from": "gpt", "value": "b"}]} for number in (1, 2)
]


@pytest.mark.parametrize("text", [json.dumps(LIST), json.dumps(LIST, indent=2), "\n[\n" + json.dumps(LIST)[1:]])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_a_list_of_rows_is_read_however_it_is_laid_out(tmp_path, text, mark):
    file = tmp_path / "rows.json"
    file.write_text(mark + text)
    assert convert([str(file)], Settings("openai"), tmp_path / "out").rows == 2
    assert [row["messages"][0]["content"] for row in rows_of(tmp_path / "out")] == ["1", "2"]
    assert measure([str(file)], source="sharegpt").rows == 2


def test_lines_are_counted_with_those_that_are_blank(tmp_path):
    file = tmp_path / "rows.jsonl"
    file.write_text("\ufeff" + json.dumps(CHAT) + "\r\n\r\n  \n" + json.dumps(CHAT))
    convert([str(file)], Settings("openai"), tmp_path / "out")
    assert [row["segue"]["line"] for row in rows_of(tmp_path / "out")] == [1, 4]


def test_links_that_lead_in_circles_are_followed_once(tmp_path):
    folder = tmp_path / "in"
    write_lines(folder / "rows.jsonl", CHAT)
    (folder / "around").symlink_to(folder)
    (folder / "same.jsonl").symlink_to(folder / "rows.jsonl")
    (folder / "self.jsonl").symlink_to(folder / "self.jsonl")
    counts = convert([str(folder)], Settings("openai"), tmp_path / "out")
    assert (counts.files, counts.files_rejected, counts.rows) == (2, 1, 1)


def test_a_line_that_is_too_long_is_skipped(tmp_path, monkeypatch):
    monkeypatch.setattr("segue.corpora.reading.MAX_LINE", 1000)
    long = json.dumps({"messages": [{"role": "user", "content": "x" * 5000}]})
    file = write_lines(tmp_path / "rows.jsonl", CHAT, long, CHAT)
    counts = convert([str(file)], Settings("openai"), tmp_path / "out")
    assert counts.rows == 2
    (reject,) = rejects_of(tmp_path / "out")
    assert reject["reason"] == f"a line of {len(long) + 1:,} bytes is too long"


def test_every_line_is_read_once_wherever_a_file_is_divided(tmp_path):
    file = write_lines(tmp_path / "rows.jsonl", *({**CHAT, "number": number} for number in range(30)))
    size = file.stat().st_size
    for unit_size in (1, 7, size // 30, size // 3, size - 1, size):
        units = plan_units([str(file)], unit_size=unit_size)
        counts = Counts()
        from segue.corpora.units import read_unit

        rows = [row for unit in units for row in read_unit(unit, counts)]
        assert (len(rows), counts.files) == (30, 1)


@pytest.mark.parametrize(
    "arguments",
    [
        ("convert", "nothing", "--to", "openai", "--out", "out"),
        ("convert", "rows.jsonl", "--to", "claude", "--out", "out"),
        ("convert", "rows.jsonl", "--to", "shargpt", "--out", "out"),
        ("convert", "rows.jsonl", "--to", "openai", "--out", "rows.jsonl"),
        ("convert", "rows.jsonl", "--to", "anthropic", "--out", "out", "--file-type", "parquet"),
        ("convert", "rows.jsonl", "--to", "openai", "--out", "out", "--from", "nothing"),
        ("convert", "rows.jsonl", "--to", "openai", "--out", "out", "--address", "x"),
        ("convert", "rows.jsonl", "--to", "adp", "--out", "out", "--only-model", "x"),
        ("check", "nothing"),
        ("stats",),
    ],
)
def test_wrong_arguments_are_one_line_and_write_nothing(tmp_path, monkeypatch, arguments):
    monkeypatch.chdir(tmp_path)
    write_lines(tmp_path / "rows.jsonl", CHAT)
    assert is_one_line_error(run("corpus", *arguments), 2)
    assert [file.name for file in tmp_path.iterdir()] == ["rows.jsonl"]


def test_a_full_disk_is_one_error_and_nothing_is_half_written(tmp_path, monkeypatch, capsys):
    file = write_lines(tmp_path / "rows.jsonl", CHAT)

    def full(self: Path, mode: str = "r", **rest: Any) -> Any:
        if ".tmp" in self.name and self.parent.name == "data":
            raise OSError(28, os.strerror(28))
        return opened(self, mode, **rest)

    opened = Path.open
    monkeypatch.setattr(Path, "open", full)
    assert app.run(["corpus", "convert", str(file), "--to", "openai", "--out", str(tmp_path / "out")]) == app.BAD_INPUT
    assert capsys.readouterr().err == (
        f"segue: can't write {tmp_path / 'out'}: no space left on device; run the command again to continue\n"
    )
    assert list((tmp_path / "out/data").iterdir()) == []
    assert not (tmp_path / "out/corpus.json").exists()


def test_why_nothing_could_be_read_is_said(tmp_path):
    file = write_lines(tmp_path / "rows.jsonl", {"messages": []}, {"messages": 1})
    ended = run("corpus", "convert", str(file), "--to", "openai", "--out", str(tmp_path / "out"))
    assert ended.code == 1
    said = f"rejected: 2, see {tmp_path / 'out'}/rejects.jsonl; the first: {file}: byte 0: there are no messages"
    assert ended.err == f"segue: {said}\n"


def test_check_finds_what_trainers_reject(tmp_path):
    call = {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{"}}
    bad = {
        "messages": [
            {"role": "user", "content": ""},
            {"role": "assistant", "content": None, "tool_calls": [call, {**call, "id": "b"}]},
            {"role": "tool", "tool_call_id": "b", "content": "x [truncated] y"},
            {"role": "tool", "tool_call_id": "zz", "content": "x"},
        ]
    }
    ended = run("corpus", "check", str(write_lines(tmp_path / "rows.jsonl", bad, "{")), "--json")
    assert ended.code == 1
    assert json.loads(ended.out)["rules"].keys() == {
        *("unreadable", "missing-result", "orphan-result", "invalid-arguments", "empty-prompt", "undeclared-tool"),
        *("truncated-result", "unfinished"),
    }
    assert run("corpus", "check", str(write_lines(tmp_path / "rows.jsonl", CHAT))).code == 0


def test_a_part_is_picklable_and_pure(tmp_path):
    many_rows(tmp_path / "in", 4)
    settings = Settings("template")
    (part,) = group_units(plan_units([str(tmp_path / "in")]))[:1]
    again = pickle.loads(pickle.dumps((convert_part, part, settings)))
    first, second = (tmp_path / name for name in ("first", "second"))
    assert again[0](again[1], again[2], str(first)) == convert_part(part, settings, str(second))
    assert contents(first) == contents(second)


def test_the_folder_of_the_output_is_no_input(tmp_path):
    write_lines(tmp_path / "rows.jsonl", CHAT)
    for _ in range(2):
        assert convert([str(tmp_path)], Settings("openai"), tmp_path / "out").files == 1
    assert Folder(str(tmp_path / "out")).has(str(tmp_path / "out/data/x.jsonl"))
    with pytest.raises(InputError, match="no files"):
        convert([str(tmp_path / "out")], Settings("openai"), tmp_path / "out")
