"""`segue emulate` as a process: prints its address, logs requests, ends on a signal."""

from __future__ import annotations

import http.client
import queue
import signal
import socket
import subprocess
import threading
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import IO, Any

import msgspec
import pytest

from segue.emulator.client import build_request
from tests.cli.process import SEGUE, ProcessResult, environment, is_one_line_error, run
from tests.emulator.http_requests import APIS, body_of
from tests.interrupts import default_interrupt, ignored_interrupt

PATIENCE = 100.0
INTERRUPTED = 130
KEY = "sk-very-secret-0123456789"
RESULT = {"type": "tool_result", "tool_use_id": "toolu_01", "content": "sunny"}
ORPHANED = {**body_of("anthropic"), "messages": [{"role": "user", "content": [RESULT]}]}


class Running:
    """The command, and its lines as they come."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process
        self._lines = {name: queue.Queue[bytes]() for name in ("out", "err")}
        self._readers = [
            threading.Thread(target=self._read, args=(stream, self._lines[name]), daemon=True)
            for name, stream in (("out", process.stdout), ("err", process.stderr))
            if stream is not None
        ]
        for reader in self._readers:
            reader.start()

    def _read(self, stream: IO[bytes], lines: queue.Queue[bytes]) -> None:
        for line in stream:
            lines.put(line)

    def line(self, name: str = "err") -> str:
        return self._lines[name].get(timeout=PATIENCE).decode()

    def ended(self, number: signal.Signals | None = None) -> ProcessResult:
        """What it left behind, after this signal."""
        if number is not None:
            self.process.send_signal(number)
        code = self.process.wait(PATIENCE)
        for reader in self._readers:
            reader.join(PATIENCE)
        rest = {name: b"".join(lines.queue) for name, lines in self._lines.items()}
        # An interrupt ends the line in which the terminal shows it.
        err = rest["err"].removesuffix(b"\n") if code == INTERRUPTED else rest["err"]
        return ProcessResult(code, rest["out"], err.decode())


@contextmanager
def emulating(
    *arguments: str, interrupt: Callable[[], AbstractContextManager[None]] = default_interrupt
) -> Generator[Running]:
    with interrupt():
        process = subprocess.Popen(
            [*SEGUE, "emulate", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment(),
        )
    try:
        yield Running(process)
    finally:
        process.kill()
        process.wait(PATIENCE)
        for stream in (process.stdout, process.stderr):
            if stream is not None:
                stream.close()


def send_request(url: str, api: str, body: Any = None, *, key: str | None = KEY, **options: Any) -> tuple[int, bytes]:
    """A request to the printed address."""
    path, data, headers = build_request(api, body or body_of(api), key=key, **options)
    connection = http.client.HTTPConnection(url.removeprefix("http://").partition("/")[0], timeout=PATIENCE)
    try:
        connection.request("POST", path, data, dict(headers))
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def address(line: str) -> str:
    return line.partition(" on ")[2].partition(",")[0]


# ----------------------------------------------------------------------------------------------------------- it listens


@pytest.mark.parametrize(("api", "base"), [("anthropic", ""), ("openai-chat", "/v1"), ("qwen", "/compatible-mode/v1")])
def test_first_line_prints_the_address(api: str, base: str) -> None:
    with emulating(api) as running:
        line = running.line("out")
        url = address(line)
        assert url.startswith("http://127.0.0.1:")
        output = f"base URL for clients {url}{base}" if base else "the base URL for clients"
        assert line == f"{api} on {url}, {output}; Ctrl-C stops it\n"
        assert send_request(url, api)[0] == 200


def test_a_line_for_each_request() -> None:
    with emulating("anthropic", "--fault", "rate-limit@3", "--fault", "reset@4") as running:
        url = address(running.line("out"))
        assert send_request(url, "anthropic")[0] == 200
        assert running.line() == "segue: 1 POST /v1/messages 200; calls get_weather\n"
        assert send_request(url, "anthropic", ORPHANED)[0] == 400
        assert running.line().startswith("segue: 2 POST /v1/messages 400; violates ANT-")
        assert send_request(url, "anthropic")[0] == 429
        assert running.line().startswith("segue: 3 POST /v1/messages 429; fault: rate-limit; This request would exceed")
        with pytest.raises(ConnectionResetError):
            send_request(url, "anthropic")
        assert running.line() == "segue: 4 POST /v1/messages reset; fault: reset\n"
        assert send_request(url, "anthropic", body_of("anthropic", "Hello!"))[0] == 200
        assert running.line().startswith("segue: 5 POST /v1/messages 200; text ")
        ended = running.ended(signal.SIGINT)
    assert (ended.code, ended.out, ended.err) == (INTERRUPTED, b"", "")


def test_lines_as_json() -> None:
    with emulating("gemini", "--json", "--seed", "3") as running:
        opening = msgspec.json.decode(running.line("out"))
        assert opening == {"api": "gemini", "url": opening["url"], "base_url": opening["url"]}
        assert send_request(opening["url"], "gemini")[0] == 200
        assert send_request(opening["url"], "gemini", b"{", model="any")[0] == 400
        output = [msgspec.json.decode(running.line("out")) for _ in range(2)]
        assert [(row["number"], row["status"], row["calls"]) for row in output] == [
            (1, 200, ["get_weather"]),
            (2, 400, []),
        ]
        assert output[0]["body"]["contents"]
        ended = running.ended(signal.SIGINT)
    assert (ended.code, ended.out, ended.err) == (INTERRUPTED, b"", "")


def test_a_script_a_port_and_a_profile(tmp_path: Path, port: int) -> None:
    script = tmp_path / "a script.txt"
    script.write_text("say Grüß Gott.\n---\nerror 503", "utf-8")
    with emulating("openai-chat", "--profile", "groq", "--script", str(script), "--port", str(port)) as running:
        assert address(running.line("out")) == f"http://127.0.0.1:{port}"
        status, data = send_request(f"http://127.0.0.1:{port}", "openai-chat")
        assert status == 200
        assert "Grüß Gott." in data.decode()
        assert running.line().endswith("; text 'Grüß Gott.'\n")
        assert send_request(f"http://127.0.0.1:{port}", "openai-chat")[0] == 503


def test_lenient() -> None:
    with emulating("anthropic", "--lenient") as running:
        url = address(running.line("out"))
        assert send_request(url, "anthropic", ORPHANED, key=None)[0] == 200
        assert "; violates ANT-" in running.line()


def test_keys_are_never_printed() -> None:
    other = "sk-another-secret-987654321"
    with emulating("gemini", "--key", KEY) as running, emulating("gemini", "--key", KEY, "--json") as as_json:
        urls = [address(running.line("out")), msgspec.json.decode(as_json.line("out"))["url"]]
        for url in urls:
            assert send_request(url, "gemini")[0] == 200
            assert send_request(url, "gemini", key=other)[0] >= 400
            connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=PATIENCE)
            for path in (f"/v1beta/models?key={KEY}", f"/nowhere?key={other}"):
                connection.request("POST", path, b"{}", {"authorization": f"Bearer {KEY}"})
                connection.getresponse().read()
            connection.close()
        output = [running.ended(signal.SIGINT), as_json.ended(signal.SIGINT)]
    assert len(output[0].err.splitlines()) == 4
    assert output[1].out.count(b"\n") == 4
    for ended in output:
        assert KEY not in ended.err + ended.out.decode()
        assert other not in ended.err + ended.out.decode()


def test_all_apis_on_one_port() -> None:
    with emulating("all", "--fault", "rate-limit@2") as running:
        line = running.line("out")
        url = address(line)
        assert line == f"all on {url}, base URLs for clients below; Ctrl-C stops it\n"
        base_urls = dict(running.line("out").split() for _ in APIS)
        assert tuple(base_urls) == APIS
        assert base_urls["kimi"] == f"{url}/kimi/v1"
        assert send_request(url, "anthropic")[0] == 200
        assert running.line() == "segue: 1 POST /v1/messages 200 (anthropic); calls get_weather\n"
        assert send_request(url, "kimi")[0] == 429
        assert running.line().startswith("segue: 2 POST /v1/chat/completions 429 (kimi); fault: rate-limit; ")
    with emulating("all", "--json") as running:
        opening = msgspec.json.decode(running.line("out"))
        assert (opening["api"], tuple(opening["base_urls"])) == ("all", APIS)
        assert send_request(opening["url"], "gemini")[0] == 200
        assert msgspec.json.decode(running.line("out"))["api"] == "gemini"


def test_record_and_replay(tmp_path: Path) -> None:
    with emulating("anthropic", "--script", str(write_script(tmp_path))) as upstream:
        upstream_url = address(upstream.line("out"))
        for given in (("anthropic", upstream_url), ("all", f"anthropic={upstream_url}")):
            with emulating(given[0], "--record", str(tmp_path / "runs"), "--upstream", given[1]) as recorder:
                url = address(recorder.line("out"))
                recorded = send_request(url, "anthropic", stream=True)
                name = max((tmp_path / "runs").iterdir()).name
                api = " (anthropic)" if given[0] == "all" else ""
                assert recorder.line() == f"segue: 1 POST /v1/messages 200{api}; {name}\n"
                assert recorder.ended(signal.SIGINT).code == INTERRUPTED
    assert b"Two." in recorded[1]
    assert KEY not in "".join(path.read_text() for path in (tmp_path / "runs").iterdir())
    with emulating("anthropic", "--replay", str(tmp_path / "runs")) as replayer:
        url = address(replayer.line("out"))
        replies = [send_request(url, "anthropic", stream=True) for _ in range(3)]
        assert ["One." in reply[1].decode() for reply in replies] == [True, False, True]
        assert replies[1] == recorded
        assert send_request(url, "anthropic", stream=False)[0] == 404
        lines = [replayer.line() for _ in range(4)]
        assert lines[0].startswith("segue: 1 POST /v1/messages 200; 000001-anthropic-")
        assert "; no recording matches POST /v1/messages; the nearest is 00000" in lines[3]
        assert lines[3].endswith("which differs in stream: recorded true, received nothing\n")


def write_script(folder: Path) -> Path:
    script = folder / "script.txt"
    script.write_text("say One.\n---\nsay Two.")
    return script


# -------------------------------------------------------------------------------------------------------------- it ends


@pytest.mark.parametrize("busy", [False, True])
def test_an_interrupt_ends_it_without_a_traceback(tmp_path: Path, *, busy: bool) -> None:
    script = tmp_path / "slow.txt"
    script.write_text("say Begun.\nwait 1000\nsay Over.")
    with emulating("anthropic", "--script", str(script)) as running:
        url = address(running.line("out"))
        if busy:
            path, data, headers = build_request("anthropic", body_of("anthropic"), stream=True)
            connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=PATIENCE)
            connection.request("POST", path, data, dict(headers))
            answer = connection.getresponse()
            assert answer.read1()
            running.line()
            connection.close()
        ended = running.ended(signal.SIGINT)
    assert (ended.code, ended.out, ended.err) == (INTERRUPTED, b"", "")


def test_an_interrupt_that_was_ignored_at_the_start_stays_ignored() -> None:
    with emulating("anthropic", interrupt=ignored_interrupt) as running:
        url = address(running.line("out"))
        running.process.send_signal(signal.SIGINT)
        assert send_request(url, "anthropic")[0] == 200
        assert running.line().startswith("segue: 1 POST /v1/messages 200; ")
        assert running.process.poll() is None


def test_a_request_to_end_ends_it_quietly() -> None:
    with emulating("anthropic") as running:
        running.line("out")
        ended = running.ended(signal.SIGTERM)
    assert ended.code in (0, -signal.SIGTERM, 128 + signal.SIGTERM)
    assert (ended.out, ended.err) == (b"", "")


def test_closed_reader_ends_the_emulator() -> None:
    """As in `segue emulate anthropic --json | head -2`."""
    with subprocess.Popen(
        [*SEGUE, "emulate", "anthropic", "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        env=environment(),
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        try:
            url = msgspec.json.decode(process.stdout.readline())["url"]
            process.stdout.close()
            assert send_request(url, "anthropic")[0] == 200
            assert process.wait(PATIENCE) == 141
            assert process.stderr.read() == b""
        finally:
            process.kill()


# ----------------------------------------------------------------------------------------------------------- it refuses


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ([], "expected one of openai-chat, "),
        (["opnai-chat"], "unknown API 'opnai-chat'; did you mean 'openai-chat'?"),
        (["antropic"], "unknown API 'antropic'; did you mean 'anthropic'?"),
        (["hermes"], "unknown API 'hermes'; expected one of openai-chat, "),
        (["anthropic", "--fault", "rate-limt"], "did you mean rate-limit?"),
        (["anthropic", "--fault", "reset=2"], "the rate must be between 0 and 1"),
        (["anthropic", "--fault", "reset@0"], "counted from 1"),
        (["anthropic", "--port", "99999"], "99999"),
        (["anthropic", "--port", "-1"], "-1"),
        (["anthropic", "--port", "http"], "'http' is not a valid port number"),
        (
            ["anthropic", "--script", "/no/such/file"],
            "can't read the script /no/such/file: no such file or directory\n",
        ),
        (["anthropic", "--script", "/"], "can't read the script /: is a directory\n"),
        (["openai-chat", "--profile", "nobody"], "unknown profile 'nobody'"),
        (["anthropic", "--profile", "groq"], "anthropic has no profiles"),
        (["anthropic", "--stall-seconds", "-1"], "a number of seconds was expected"),
        (["anthropic", "--stall-seconds", "nan"], "a number of seconds was expected"),
        (["anthropic", "--stall-seconds", "long"], "'long'"),
        (["anthropic", "--seed", "x"], "'x'"),
        (["all", "--profile", "nobody"], "unknown profile 'nobody'"),
        (["al"], "unknown API 'al'"),
        (["all", "--replay", "/no/such"], "can't read /no/such: no such file or directory\n"),
        (["all", "--replay", "/dev/null"], "can't read /dev/null: not a directory\n"),
        (["all", "--record", "/no/such", "--upstream", "https://h"], "can't write to /no/such: no such file or dir"),
        (["all", "--record", "/dev/null", "--upstream", "https://h"], "can't write to /dev/null: not a directory\n"),
        (
            ["all", "--record", "/dev/null/x", "--upstream", "https://h"],
            "can't write to /dev/null/x: not a directory\n",
        ),
        (["all", "--record", "/no/such"], "upstream: the URL of the real provider is needed"),
        (["all", "--upstream", "https://h"], "upstream: it is used only with `record`"),
        (["all", "--record", "/no/such", "--upstream", "http://example.com"], "use https"),
        (
            ["all", "--record", "/no/such", "--upstream", "nonsense"],
            "a URL such as https://api.example.com was expected",
        ),
        (["all", "--record", "/no/such", "--upstream", "nobody=https://h"], "unknown API 'nobody'"),
        (["all", "--record", "/no", "--upstream", "https://a", "--upstream", "https://b"], "--upstream takes one URL"),
        (["anthropic", "--replay", "/no/such", "--script", "x"], "script: it can't be combined with `record` or"),
    ],
    ids=lambda given: " ".join(given) or "nothing" if isinstance(given, list) else "",
)
def test_contradictory_emulate_options_are_usage_errors(arguments: list[str], expected: str) -> None:
    ended = run("emulate", *arguments)
    assert is_one_line_error(ended), ended
    assert expected in ended.err


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b"say Hello.\n---\nsing  La la.\n", "tune.txt, line 3: unknown step `sing`"),
        (b"\n\nerror now\n", "tune.txt, line 3: an HTTP status from 400 to 599 was expected, not `now`"),
        (b"", "tune.txt: the script has no turns"),
        (b"say \xff\xfe\n", "tune.txt: it is not UTF-8"),
    ],
)
def test_a_bad_script_is_named_with_its_line(tmp_path: Path, text: bytes, expected: str) -> None:
    script = tmp_path / "tune.txt"
    script.write_bytes(text)
    ended = run("emulate", "anthropic", "--script", str(script))
    assert is_one_line_error(ended), ended
    assert expected in ended.err


def test_a_damaged_recording_is_named(tmp_path: Path) -> None:
    (tmp_path / "1.json").write_text('{"segue_recording": 1, "api": "anthropic"')
    ended = run("emulate", "anthropic", "--replay", str(tmp_path))
    assert is_one_line_error(ended), ended
    assert "1.json is not a valid recording: " in ended.err


def test_occupied_port_is_one_line_error() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        ended = run("emulate", "anthropic", "--port", str(port))
    assert is_one_line_error(ended), ended
    assert f"can't listen on 127.0.0.1:{port}: the address is already in use\n" in ended.err


def test_help_names_every_api_and_every_fault() -> None:
    from segue.emulator.faults import FAULTS

    lines = run("emulate", "--help", COLUMNS="80").lines
    assert max(map(len, lines)) <= 80
    text = " ".join(" ".join(lines).split())
    assert text.index("NAME@2,5; see above") > text.index("A bare name applies")
    assert "--json Print JSON lines" in text
    assert "[default: 30.0]" in text
    assert "[default: 0]" in text
    assert all(fault in text for fault in FAULTS)
    assert set(APIS) >= {"anthropic", "openai-chat"}
