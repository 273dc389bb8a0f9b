"""How commands end: exit codes, pipes, signals, full disks, bugs."""

from __future__ import annotations

import io
import os
import pty
import shutil
import signal
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest
from click.testing import CliRunner

import segue
from segue.cli import app
from segue.cli.streams import discard_stdout
from segue.errors import InputError, ProjectionError, RemoteProtocolError
from tests.cli.bodies import GOOD, long_chat
from tests.cli.process import SEGUE, environment, is_one_line_error, run, run_new
from tests.cli.store_cli import StoreCli
from tests.interrupts import default_interrupt

VERSION = f"segue {metadata.version('segue')}\n".encode()
FULL_DISK = Path("/dev/full")
needs_full_disk = pytest.mark.skipif(not FULL_DISK.exists(), reason="no /dev/full here")


def call(*arguments: str, stdin: bytes = b"") -> tuple[int, str, str]:
    """The command in this process, so that the engine can be put out of order."""
    with CliRunner().isolation(input=stdin) as (out, err, _):
        code = app.run(arguments)
        return code, out.getvalue().decode(), err.getvalue().decode()


def test_without_a_command_the_help_goes_to_stderr_and_it_is_a_usage_error():
    ended = run()
    assert (ended.code, ended.out) == (2, b"")
    assert "convert" in ended.err


def test_help_names_every_command_in_its_group_within_80_columns():
    ended = run("--help", COLUMNS="80")
    assert ended.code == 0
    lines = iter(ended.lines[ended.lines.index("Agent:") :])
    for title, rows in app.GROUPS.items():
        assert next(lines) == f"{title}:"
        assert [next(lines).split(maxsplit=1) for _ in rows] == [[name, row.summary] for name, row in rows.items()]
        next(lines, "")
    assert max(map(len, ended.lines)) <= 80
    assert max(len(row.summary) for row in app.COMMANDS.values()) <= 55


def test_version():
    ended = run("--version")
    assert (ended.code, ended.out, ended.err) == (0, VERSION, "")


@pytest.mark.parametrize("command", app.COMMANDS)
def test_every_command_has_help_with_json(command):
    ended = run(command, "-h")
    assert ended.code == 0
    assert ("--json" in ended.out.decode()) == (command != "chat")


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["convert", "--help"], ["demo", "--help"]])
def test_help_and_version_load_neither_rich_nor_the_engine(arguments):
    script = (
        "import sys; from segue.cli.app import run; code = run(sys.argv[1:]);"
        "loaded = {'segue.render', 'segue.conformance', 'segue.cli.demo_conversation'} & set(sys.modules);"
        "sys.exit(f'loaded {loaded}' if code or loaded else 0)"
    )
    ended = subprocess.run([sys.executable, "-c", script, *arguments], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")


CHUNK = b'data: {"choices": [{"index": 0, "delta": {"content": "Hi"}, "finish_reason": "stop"}]}\n\n'
STARTS = {
    "chat": (0, "--no-tools --no-store", b"Hi\n/quit\n"),
    "run": (0, "-q --no-tools --no-store Hi", b""),
    "demo": (0, "--json", b""),
    "convert": (0, "--to anthropic --json", GOOD),
    "check": (0, "--api openai-chat", GOOD),
    "repair": (0, "--api openai-chat --json", GOOD),
    "assemble": (0, "--api openai-chat", CHUNK),
    "extract": (0, "--format hermes", b'<tool_call>{"name": "f", "arguments": {}}</tool_call>'),
    "serve": (2, "--host 192.0.2.1", b""),
    "with": (2, "nobody", b""),
    "route": (2, "--reload anthropic", b""),
    "move": (2, "missing --to codex --dry-run", b""),
    "keys": (2, "client revoke missing", b""),
    "usage": (0, "- --json", b"{}\n"),
    "emulate": (2, "kimi --script missing.json", b""),
    "log": (0, "--json", b""),
    "undo": (2, "{id} --dry-run", b""),
    "export": (0, "{id} --format anthropic", b""),
    "import": (2, "--from anthropic", b"[]"),
    "brief": (0, "{id} --full", b""),
    "compress": (0, "{id} --strategy dense --budget 90000 --json", b""),
    "diag": (0, "{id}", b""),
    "corpus": (2, "stats missing", b""),
    "apis": (0, "", b""),
    "formats": (0, "", b""),
    "rules": (0, "ANT-24", b""),
    "models": (0, "", b""),
    "trust": (2, "missing.toml", b""),
    "doctor": (0, "--json", b""),
    "completion": (0, "bash", b""),
}


@pytest.mark.parametrize("command", app.COMMANDS)
def test_a_new_process_does_what_one_with_everything_loaded_does(command, tmp_path):
    """No command may lean on a module that another one imported, or that only a test did."""
    code, arguments, given = STARTS[command]
    store_cli = StoreCli(tmp_path)
    arguments = arguments.format(id=store_cli.add_conversation()).split()
    ended = run_new(command, *arguments, stdin=given, SEGUE_STORE=str(store_cli.path))
    assert ended.code == code, ended.err
    assert ended == run(command, *arguments, stdin=given, SEGUE_STORE=str(store_cli.path))


def test_invalid_number_error_is_readable():
    for arguments in (["log", "--limit", "abc"], ["compress", "x", "--budget", "1.5"]):
        code, _, err = call(*arguments)
        assert code == 2
        assert f"'{arguments[-1]}' is not a whole number (see segue " in err


def test_unknown_command_error_lists_commands():
    ended = run("xyz")
    assert is_one_line_error(ended)
    assert "'xyz'" in ended.err
    assert all(command in ended.err for command in app.COMMANDS)
    assert "did you mean convert?" in run("conver").err


@pytest.mark.parametrize(
    "arguments", [["--nonsense"], ["formats", "--nonsense"], ["formats", "extra"], ["convert", "--ids", "mine"]]
)
def test_a_usage_error_is_one_line_and_2(arguments):
    assert is_one_line_error(run(*arguments))


@pytest.mark.parametrize("arguments", [["--help"], ["formats"], ["demo"], ["demo", "--json"]])
def test_a_closed_pipe_ends_quietly(arguments):
    read_end, write_end = os.pipe()
    os.close(read_end)
    try:
        ended = subprocess.run(
            [*SEGUE, *arguments], stdout=write_end, stderr=subprocess.PIPE, env=environment(), check=False
        )
    finally:
        os.close(write_end)
    assert (ended.returncode, ended.stderr) == (141, b"")


def test_a_reader_that_leaves_in_the_middle_ends_a_long_output_quietly():
    with subprocess.Popen(
        [*SEGUE, "convert", "--to", "anthropic"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(),
    ) as process:
        assert process.stdin
        assert process.stdout
        assert process.stderr
        process.stdin.write(long_chat(megabytes=5))
        process.stdin.close()
        assert process.stdout.read(10)
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 141


@needs_full_disk
@pytest.mark.parametrize("arguments", [["--help"], ["formats"], ["demo"], ["convert", "--to", "anthropic"]])
def test_a_full_disk_is_one_line_and_1(arguments):
    with FULL_DISK.open("wb") as full:
        ended = subprocess.run(
            [*SEGUE, *arguments], input=GOOD, stdout=full, stderr=subprocess.PIPE, env=environment(), check=False
        )
    assert (ended.returncode, ended.stderr) == (1, b"segue: can't write to stdout: no space left on device\n")


def test_a_closed_stdout_is_one_line_and_1():
    ended = subprocess.run(
        ["/bin/sh", "-c", 'exec "$@" >&-', "sh", *SEGUE, "formats"],
        stderr=subprocess.PIPE,
        env=environment(),
        check=False,
    )
    assert (ended.returncode, ended.stderr) == (1, b"segue: can't write to stdout: it is closed\n")


def test_a_closed_stdin_is_one_line_and_2():
    ended = subprocess.run(
        ["/bin/sh", "-c", 'exec "$@" <&-', "sh", *SEGUE, "check", "--api", "kimi"],
        capture_output=True,
        env=environment(),
        check=False,
    )
    assert (ended.returncode, ended.stderr) == (2, b"segue: stdin is closed; name a file\n")


def test_ctrl_c_ends_with_130_and_no_traceback():
    ours, theirs = pty.openpty()
    with default_interrupt():
        process = subprocess.Popen(
            [*SEGUE, "check", "--api", "kimi"],
            stdin=theirs,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment(),
        )
    try:
        assert process.stderr
        assert b"reading from the terminal" in process.stderr.readline()
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=100)
    finally:
        process.kill()
        process.communicate()
        os.close(ours)
        os.close(theirs)
    assert (process.returncode, out, err.strip()) == (130, b"", b"")


_SIGNALLED_IN_A_FINALIZER = """
import signal, sys, time
from segue.cli import app

class Interrupted:
    def __del__(self):
        signal.raise_signal(int(sys.argv[1]))

def run(arguments):
    try:
        Interrupted()
        time.sleep(1000)
    except KeyboardInterrupt:
        return app.INTERRUPTED

app.run = run
app.main()
"""


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_a_signal_that_arrives_in_a_finalizer_is_not_lost(number: signal.Signals, code: int):
    with default_interrupt():
        ended = subprocess.run(
            [sys.executable, "-c", _SIGNALLED_IN_A_FINALIZER, str(int(number))],
            capture_output=True,
            env=environment(),
            timeout=100,
            check=False,
        )
    assert (ended.returncode, ended.stdout, ended.stderr) == (code, b"", b"")


def test_stdout_without_a_descriptor_is_left_as_it_is(monkeypatch):
    monkeypatch.setattr(sys, "stdout", io.StringIO())
    before = len([*Path("/dev/fd").iterdir()])
    discard_stdout()
    assert len([*Path("/dev/fd").iterdir()]) <= before


def test_bug_is_one_line_with_report_hint(monkeypatch):
    def broken(*_: object, **__: object) -> None:
        raise KeyError("two\nlines")

    monkeypatch.setattr(segue, "check", broken)
    code, out, err = call("check", "--api", "kimi", stdin=GOOD)
    assert (code, out, err.count("\n")) == (1, "", 1)
    assert "report" in err
    assert "SEGUE_DEBUG=1" in err
    assert "KeyError" in err


def test_debug_shows_the_traceback_of_a_bug(monkeypatch):
    monkeypatch.setattr(segue, "check", lambda *_, **__: 1 / 0)
    monkeypatch.setenv("SEGUE_DEBUG", "1")
    code, _, err = call("check", "--api", "kimi", stdin=GOOD)
    assert code == 1
    assert err.startswith("Traceback")
    assert "ZeroDivisionError" in err


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (InputError("no role", path="messages[3]"), 2),
        (RemoteProtocolError("cut off"), 1),
        (ProjectionError("two calls, one id"), 1),
        (MemoryError(), 1),
        (RecursionError("too deep"), 1),
    ],
)
def test_exit_code_depends_on_error_class(monkeypatch, error, code):
    def broken(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(segue, "check", broken)
    ended, out, err = call("check", "--api", "kimi", stdin=GOOD)
    assert (ended, out) == (code, "")
    assert err.startswith("segue: ")
    assert err.count("\n") == 1


def test_bad_input_names_the_path(monkeypatch):
    def broken(*_: object, **__: object) -> None:
        raise InputError("a message needs a role", path="messages[3]")

    monkeypatch.setattr(segue, "check", broken)
    assert call("check", "--api", "kimi", stdin=GOOD)[2] == "segue: messages[3]: a message needs a role\n"


def test_unencodable_characters_are_escaped():
    ended = run("demo", PYTHONUTF8="0", PYTHONIOENCODING="ascii")
    assert ended.code == 0
    assert ended.out.isascii()


INTERRUPTED_WHILE_LOADING = """
import sys
class Interrupted:
    def find_spec(self, name, *more):
        if name == "click":
            raise KeyboardInterrupt
sys.meta_path.insert(0, Interrupted())
from segue.cli import main
main()
"""


def test_an_interrupt_while_it_is_loaded_is_no_traceback():
    ended = subprocess.run(
        [sys.executable, "-c", INTERRUPTED_WHILE_LOADING],
        capture_output=True,
        env=environment(),
        timeout=100,
        check=False,
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (130, b"", b"")


@pytest.mark.skipif(shutil.which("make") is None, reason="there is no make")
@pytest.mark.parametrize("known", [False, True])
def test_make_demo_prints_the_command_path_if_needed(tmp_path, known):
    stamp, command = tmp_path / "ready", tmp_path / "bin" / "segue"
    stamp.touch()
    command.parent.mkdir()
    command.write_text("#!/bin/sh\necho played\n")
    command.chmod(0o755)
    places = [str(Path(found).parent) for tool in ("make", "sh", "awk", "cksum") if (found := shutil.which(tool))]
    places = [place for place in dict.fromkeys(places) if not (Path(place) / "segue").exists()]
    path = os.pathsep.join([*([str(command.parent)] if known else []), *places])
    ended = subprocess.run(
        ["make", "-s", "demo", f"READY={stamp}", f"MADE={stamp}", f"BIN={command.parent}"],
        cwd=Path(__file__).parents[2],
        env=environment(PATH=path),
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    expected = f"segue is {command} here; pip install . puts it on your PATH.\n"
    assert (ended.returncode, ended.stdout) == (0, "played\n" + ("" if known else expected)), ended.stderr


@pytest.mark.parametrize(
    "arguments", [("{}",), ("convert", "--{}"), ("convert", "--to", "{}"), ("run", "--model", "{}", "Hi.")]
)
def test_long_argument_is_not_echoed_whole(arguments: tuple[str, ...]):
    ended = run(*(argument.format("q" * 10_000) for argument in arguments))
    assert is_one_line_error(ended)
    assert len(ended.err) < 700


def test_signal_while_a_class_is_created_still_terminates(monkeypatch):
    def raise_wrapped(*_, **__):
        raise RuntimeError("Error calling __set_name__") from app._Terminated(15)

    monkeypatch.setattr(app.root, "main", raise_wrapped)
    with pytest.raises(app._Terminated):
        app.run(["formats"])


BAD_FILES = {
    "not JSON": (b"{bad", ": not JSON"),
    "a number": (b"5", ": "),
    "no body": (b"{}", ": "),
    "not UTF-8": (b'{"a": "\xff"}', ": not UTF-8"),
    "an unknown role": (b'{"model": "m", "messages": [{"role": "alien", "content": "x"}]}', ": messages[0].role: "),
    "empty": (b"", " is empty"),
    "UTF-16": (b"\xff\xfe{", " begins with a UTF-16 byte order mark"),
}
FILE_COMMANDS = {
    "convert": ("convert", "{}", "--to", "anthropic"),
    "check": ("check", "{}", "--api", "openai-chat"),
    "repair": ("repair", "{}", "--api", "openai-chat"),
    "import": ("import", "{}"),
    "assemble": ("assemble", "{}", "--api", "openai-chat"),
    "extract": ("extract", "text", "--format", "hermes", "--tools", "{}"),
}


@pytest.mark.parametrize("name", FILE_COMMANDS)
def test_an_error_in_a_file_names_the_file(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SEGUE_STORE", str(tmp_path / "store"))
    (tmp_path / "text").write_text("x")
    file = tmp_path / "my input.json"
    for case, (data, start) in BAD_FILES.items():
        file.write_bytes(data)
        code, out, err = call(*(word.format(file) for word in FILE_COMMANDS[name]))
        if name == "check" and case == "an unknown role":
            assert (code, out.startswith("reject ")) == (1, True)
            continue
        assert (code, out) == (2, ""), case
        # Each command has its own message for a stream that contains no reply.
        expected = f"segue: {file}" if name in ("assemble", "extract") else f"segue: {file}{start}"
        assert err.startswith(expected), case


def test_an_error_in_an_option_does_not_name_the_file(tmp_path):
    file = tmp_path / "body.json"
    file.write_text('{"messages": [{"role": "user", "content": "x"}]}')
    code, _, err = call("convert", str(file), "--to", "anthropic", "--profile", "vllm")
    assert (code, err.startswith("segue: ")) == (2, True)
    assert "body.json" not in err


@pytest.mark.parametrize(
    ("arguments", "meant"),
    [
        (["convert", "--target", "anthropic"], "--to"),
        (["convert", "--source", "anthropic"], "--from"),
        (["convert", "--api", "anthropic"], "--from or --to"),
        (["check", "--from", "anthropic"], "--api"),
        (["check", "--target", "anthropic"], "--api"),
        (["convert", "--verbos"], "--verbose"),
    ],
)
def test_unknown_option_gets_the_one_of_the_same_meaning(arguments: list[str], meant: str):
    assert f"Did you mean '{meant}'?" in run(*arguments).err
