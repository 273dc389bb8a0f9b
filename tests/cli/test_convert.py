"""`segue convert`: outputs, reports and rejected input."""

from __future__ import annotations

import errno
import os
import pty
import stat
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner

import segue
from segue.cli import app
from segue.cli.convert import POLICIES
from tests.cli.bodies import CALL_MESSAGE, GOOD, OPEN, QUESTION, RESULT, chat, long_chat
from tests.cli.process import SEGUE, environment, is_one_line_error, run, run_new

TO = ("convert", "--to", "anthropic")


@pytest.fixture
def body_file(tmp_path: Path) -> Path:
    file = tmp_path / "body.json"
    file.write_bytes(GOOD)
    return file


def test_stdin_to_stdout_is_the_body_and_a_line_end():
    ended = run(*TO, stdin=GOOD)
    assert ended.code == 0
    assert ended.out == segue.convert(GOOD, target="anthropic").data + b"\n"


def test_file_and_stdin_give_the_same(body_file):
    assert run(*TO, str(body_file)).out == run(*TO, "-", stdin=GOOD).out == run(*TO, stdin=GOOD).out


def test_a_file_named_like_an_option_is_read_after_two_dashes(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("--to").write_bytes(GOOD)
    assert run(*TO, "--", "--to").code == 0


def test_every_option_reaches_convert(monkeypatch):
    seen: dict[str, object] = {}

    def convert(body: bytes, **wishes: object) -> segue.Converted:
        seen.update(wishes)
        return real(body, target="anthropic")

    real = segue.convert
    monkeypatch.setattr(segue, "convert", convert)
    wishes = {
        "from": "openai-chat",
        "to": "anthropic",
        "model": "claude-sonnet-4-5",
        "profile": "p",
        "tool-format": "anthropic",
        "ids": "canonical",
        "reasoning": "text",
        "hosted": "drop",
        "pending": "keep",
        "orphans": "drop",
    }
    arguments = [part for name, value in wishes.items() for part in (f"--{name}", value)]
    with CliRunner().isolation(input=GOOD):
        assert app.run(["convert", *arguments]) == 0
    renamed = {"from": "source", "to": "target", "tool-format": "tool_format"}
    assert seen == {renamed.get(name, name): value for name, value in wishes.items()}


@pytest.mark.parametrize(
    ("policy", "value"), [(name, value) for name, (values, _) in POLICIES.items() for value in values]
)
def test_every_offered_policy_is_accepted(policy, value):
    assert run(*TO, f"--{policy}", value, stdin=GOOD).code == 0


def test_json_is_one_object_with_body_and_report():
    output = run(*TO, "--json", stdin=OPEN).json
    converted = segue.convert(OPEN, target="anthropic")
    assert output == {"body": converted.body, "report": msgspec.to_builtins(converted.report.to_dict())}


def test_a_report_is_written_to_its_file_and_the_body_to_stdout(tmp_path):
    report = tmp_path / "report.json"
    ended = run(*TO, "--report", str(report), stdin=OPEN)
    assert (ended.code, ended.err, ended.out) == (0, "", run(*TO, stdin=OPEN).out)
    assert msgspec.json.decode(report.read_bytes()) == run(*TO, "--json", stdin=OPEN).json["report"]
    assert list(tmp_path.iterdir()) == [report]


def test_a_report_to_a_dash_goes_to_stderr():
    ended = run(*TO, "--report", "-", stdin=OPEN)
    assert ended.code == 0
    assert msgspec.json.decode(ended.err) == run(*TO, "--json", stdin=OPEN).json["report"]


def test_a_report_replaces_a_file_and_keeps_its_mode_and_the_link_to_it(tmp_path):
    old, link = tmp_path / "old.json", tmp_path / "link.json"
    old.write_text("old")
    old.chmod(0o600)
    link.symlink_to(old)
    assert run(*TO, "--report", str(link), stdin=OPEN).code == 0
    assert link.is_symlink()
    assert msgspec.json.decode(old.read_bytes())
    assert stat.S_IMODE(old.stat().st_mode) == 0o600


def test_a_new_report_has_the_mode_of_any_new_file(tmp_path):
    report, other = tmp_path / "report.json", tmp_path / "other"
    other.touch()
    assert run(*TO, "--report", str(report), stdin=OPEN).code == 0
    assert report.stat().st_mode == other.stat().st_mode


def test_a_report_that_fails_half_way_leaves_the_old_one_and_no_scratch(tmp_path, monkeypatch):
    report = tmp_path / "report.json"
    report.write_text("old")

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with CliRunner().isolation(input=GOOD) as (out, err, _):
        assert app.run([*TO, "--report", str(report)]) == 1
        assert out.getvalue() == b""
        assert err.getvalue() == f"segue: can't write {report}: no space left on device\n".encode()
    assert report.read_text() == "old"
    assert list(tmp_path.iterdir()) == [report]


def test_a_report_to_a_device_leaves_the_device_alone():
    assert run(*TO, "--report", "/dev/null", stdin=OPEN).code == 0
    assert stat.S_ISCHR(Path("/dev/null").stat().st_mode)


def test_bad_input_leaves_an_old_report_untouched(tmp_path):
    report = tmp_path / "report.json"
    report.write_text("old")
    assert is_one_line_error(run(*TO, "--report", str(report), stdin=b"{"))
    assert report.read_text() == "old"
    assert list(tmp_path.iterdir()) == [report]


@pytest.mark.parametrize("place", ["", "missing/report.json"])
def test_a_report_that_cannot_be_written_leaves_stdout_empty(tmp_path, place):
    assert is_one_line_error(run(*TO, "--report", str(tmp_path / place), stdin=GOOD))


def test_a_report_on_a_full_disk_is_one_line_and_1():
    assert is_one_line_error(run(*TO, "--report", "/dev/full", stdin=GOOD), code=1)


def test_a_report_may_not_replace_its_input(body_file):
    assert is_one_line_error(run(*TO, "--report", str(body_file), str(body_file)))
    assert body_file.read_bytes() == GOOD


def test_losses_and_changes_are_printed_without_a_terminal_too():
    *lines, summary = run(*TO, stdin=OPEN).err.splitlines()
    assert {line.removeprefix("segue: ").partition(":")[0] for line in lines} == {"changed"}
    assert summary.startswith("segue: openai-chat → anthropic: ")
    assert run(*TO, "--json", stdin=OPEN).err == ""


def test_verbose_prints_each_finding_and_the_number_of_each_level():
    ended = run(*TO, "-v", stdin=OPEN)
    *lines, summary = ended.err.splitlines()
    assert summary.startswith("segue: openai-chat → anthropic: ")
    levels = [line.removeprefix("segue: ").partition(":")[0] for line in lines]
    assert {"changed"} <= {*levels} <= {"lost", "changed", "note"}
    assert f"{levels.count('changed')} changed" in summary


def test_notes_are_printed_only_with_verbose():
    body = b'{"model":"gpt-4.1","prompt_cache_key":"k","seed":1,"messages":[{"role":"user","content":"hi"}]}'
    shown = run("convert", "--to", "bedrock", "-v", stdin=body).err
    assert "segue: note: `prompt_cache_key` dropped" in shown
    assert "segue: lost: `seed` dropped" in shown
    assert shown.splitlines()[-1] == "segue: openai-chat → bedrock: 2 lost, 1 note"
    code, printed = run_on_terminal("bedrock", body)
    assert code == 0
    assert "note:" not in printed
    assert "2 lost, 1 note (-v prints the notes)" in printed


def run_on_terminal(target: str, body: bytes) -> tuple[int, str]:
    """The exit code and stderr of a conversion whose stderr is a terminal."""
    ours, theirs = pty.openpty()
    arguments = [*SEGUE, "convert", "--to", target]
    ended = subprocess.run(arguments, input=body, stdout=subprocess.PIPE, stderr=theirs, env=environment(), check=False)
    os.write(theirs, b"end\n")
    os.close(theirs)
    shown = os.read(ours, 4096).decode()
    os.close(ours)
    return ended.returncode, shown


def test_verbose_reports_that_nothing_was_repaired():
    assert "no findings" in run("convert", "--to", "openai-chat", "-v", stdin=GOOD).err


@pytest.mark.parametrize(("body", "is_printed"), [(OPEN, True), (GOOD, False)])
def test_on_a_terminal_repairs_are_summed_up_where_there_are_any(body, is_printed):
    code, shown = run_on_terminal("openai-chat", body)
    assert code == 0
    assert ("segue: openai-chat → openai-chat: " in shown) is is_printed


def test_to_is_required_and_the_formats_are_listed():
    ended = run("convert", stdin=GOOD)
    assert is_one_line_error(ended)
    assert "--to" in ended.err
    assert all(row.name in ended.err for row in segue.formats() if row.kind != "text")


@pytest.mark.parametrize("option", ["--to", "--from"])
def test_unknown_format_error_lists_formats(option):
    ended = run("convert", "--to", "kimi", option, "gpt4", stdin=GOOD)
    assert is_one_line_error(ended)
    assert option in ended.err
    assert "'gpt4'" in ended.err
    assert all(row.name in ended.err for row in segue.formats() if row.kind != "text")


def test_second_file_is_rejected(body_file):
    assert is_one_line_error(run(*TO, str(body_file), str(body_file)))


def test_a_missing_file_is_named():
    ended = run(*TO, "missing.json")
    assert is_one_line_error(ended)
    assert "missing.json" in ended.err


def test_a_folder_is_no_file(tmp_path):
    ended = run(*TO, str(tmp_path))
    assert is_one_line_error(ended)
    assert "directory" in ended.err


def test_a_file_without_permission_is_named(monkeypatch):
    def refuse(_: Path) -> bytes:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "read_bytes", refuse)
    with CliRunner().isolation() as (out, err, _):
        assert app.run([*TO, "secret.json"]) == 2
        assert (out.getvalue(), err.getvalue()) == (b"", b"segue: can't read secret.json: permission denied\n")


def test_a_file_name_with_a_nul_is_one_line():
    with CliRunner().isolation() as (_, err, _):
        assert app.run([*TO, "a\0b"]) == 2
        assert err.getvalue().count(b"\n") == 1


CARELESS = {
    "nothing": b"",
    "only blanks": b" \r\n\t ",
    "binary": b"\x7fELF\x02\x01\x01\x00\x00\x00",
    "a picture": b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR",
    "a byte order mark": b"\xef\xbb\xbf" + GOOD,
    "UTF-16": GOOD.decode().encode("utf-16"),
    "UTF-16 without a mark": GOOD.decode().encode("utf-16-le"),
    "Latin-1": chat().replace(b"Lisbon", b"Bel\xe9m"),
    "no JSON": b"hello",
    "cut off": GOOD[:-5],
    "two bodies": GOOD + b"\n" + GOOD,
    "a list": b"[" + GOOD + b"]",
    "text": b'"' + b"hello" + b'"',
    "null": b"null",
    "NaN": chat(temperature=0.5).replace(b"0.5", b"NaN"),
    "infinity": chat(temperature=0.5).replace(b"0.5", b"1e999"),
    "too deep": b'{"messages":' + b"[" * 600 + b"]" * 600 + b"}",
    "much too deep": b"[" * 100_000,
    "an empty object": b"{}",
    "another API": b'{"prompt": "hi", "max_tokens_to_sample": 10}',
    "a message without role": b'{"messages": [{"content": "hi"}]}',
    "messages as text": b'{"messages": "hi"}',
    "a reply": b'{"object": "chat.completion", "choices": [{"message": {"role": "assistant", "content": "hi"}}]}',
}


@pytest.mark.parametrize("body", CARELESS.values(), ids=CARELESS.keys())
def test_invalid_input_is_usage_error(body):
    assert is_one_line_error(run(*TO, stdin=body))


@pytest.mark.parametrize("source", ["anthropic", "openai-chat"])
def test_a_body_of_another_api_is_refused(source):
    gemini = run("convert", "--to", "gemini", stdin=GOOD).out
    ended = run("convert", "--from", source, "--to", "kimi", stdin=gemini)
    assert is_one_line_error(ended)


def test_windows_line_ends_are_blanks():
    spaced = msgspec.json.format(GOOD, indent=2).replace(b"\n", b"\r\n")
    assert run(*TO, stdin=spaced).out == run(*TO, stdin=GOOD).out


def test_a_long_body_goes_through_a_pipe_whole():
    body = long_chat(megabytes=5)
    ended = run_new("convert", "--to", "anthropic", stdin=body)
    assert ended.code == 0
    assert ended.out.count(b"w" * 100_000) == 50
    assert msgspec.json.decode(ended.out)


def test_the_output_is_the_next_input():
    first = run(*TO, stdin=GOOD).out
    back = run("convert", "--from", "anthropic", "--to", "openai-chat", stdin=first).json
    assert [message["role"] for message in back["messages"]] == ["user", "assistant", "tool"]
    assert back["messages"][0] == QUESTION
    assert back["messages"][2]["content"] == RESULT["content"]
    assert back["messages"][1]["tool_calls"][0]["function"]["name"] == CALL_MESSAGE["tool_calls"][0]["function"]["name"]


@pytest.mark.parametrize("stream", ["input", "output"])
def test_report_never_replaces_a_redirected_file(stream, body_file):
    redirect = "<" if stream == "input" else "1<>"
    command = f'"$0" -m segue convert --to anthropic --report "$1" {redirect} "$1"'
    shell = ["sh", "-c", command, sys.executable, str(body_file)]
    ended = subprocess.run(shell, input=GOOD, capture_output=True, check=False, env=environment())
    assert ended.returncode == 2
    assert f"is the {stream} file" in ended.stderr.decode()
    assert body_file.read_bytes() == GOOD
