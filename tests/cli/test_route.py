"""`segue route`: finds running gateways by their record files, and changes their models."""

from __future__ import annotations

import json
import os
import socket
import ssl
import subprocess
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import httpx2
import pytest

import segue.emulator
from segue.processes import start_time
from tests.cli.gateway_process import HELLO, record_files, serving, write_record
from tests.cli.process import is_one_line_error
from tests.cli.project import KEY, Project


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    made = Project(tmp_path)
    monkeypatch.chdir(made.folder)
    return made


def test_without_a_gateway(project: Project) -> None:
    for arguments in ([], ["anthropic"], ["--reload"], ["--reset"], ["--url", "http://127.0.0.1:1"]):
        ended = project.run("route", *arguments)
        assert is_one_line_error(ended)
        assert "is running" in ended.err


@pytest.mark.parametrize("arguments", [["a", "--reload"], ["a", "--reset"], ["--reload", "--reset"]])
def test_changes_are_not_combined(project: Project, arguments: list[str]) -> None:
    ended = project.run("route", *arguments)
    assert is_one_line_error(ended)
    assert ended.err.startswith("segue: MODEL, --reload and --reset")


def test_files_of_ended_processes_and_damaged_ones_are_left_out(project: Project) -> None:
    with subprocess.Popen(["true"]) as ended:
        pass
    gone = write_record(project, "1-a", url="http://127.0.0.1:1", token="x", process=ended.pid)
    damaged = write_record(project, "2-b", url=5)
    foreign = write_record(project, "3-c", url="http://127.0.0.1:1", token="x", process=os.getpid())
    first = project.run("route")
    assert is_one_line_error(first)
    assert "http://127.0.0.1:1 does not answer" in first.err
    assert not gone.exists()
    assert damaged.exists()
    assert foreign.exists()


def test_a_wrong_token_is_refused(project: Project) -> None:
    with serving(project, "--emulated") as gateway:
        [file] = record_files(project)
        file.unlink()
        write_record(project, "1-a", url=gateway.url, token="wrong", process=gateway.process.pid)
        ended = project.run("route", "moonshot/kimi-k2.6")
        assert is_one_line_error(ended)
        assert "token" in ended.err
        assert "wrong" not in ended.err
        assert gateway.post(HELLO).json()["model"] == "any"


class Stranger:
    """A server at the address of a gateway that has ended. It keeps what it receives."""

    def __init__(self, answer: Callable[[bytes], bytes]) -> None:
        self.received: list[bytes] = []
        self._answer = answer
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            with connection, suppress(OSError):
                while data := connection.recv(65_536):
                    self.received.append(data)
                    if not (reply := self._answer(data)):
                        break
                    connection.sendall(reply)

    def close(self) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._thread.join()


def http_answer(body: bytes, status: str = "200 OK") -> bytes:
    return b"HTTP/1.1 %s\r\ncontent-length: %d\r\n\r\n%s" % (status.encode(), len(body), body)


STRANGERS: dict[str, Callable[[bytes], bytes]] = {
    "closes": lambda data: b"",
    "healthy": lambda data: http_answer(b"ok\n"),
    "echo": http_answer,
    "nonce": lambda data: http_answer(data.lower().partition(b"x-segue-nonce: ")[2][:32]),
    "json": lambda data: http_answer(b'{"models": ["x"]}'),
    "login": lambda data: http_answer(b'{"error": "token, please"}', "401 Unauthorized"),
    "garbage": lambda data: b"\xff\xfe\r\n" * 3 + b"\r\n",
    "endless": lambda data: http_answer(b"0" * 2_000_000),
}


@pytest.mark.parametrize("arguments", [[], ["moonshot/kimi-k2.6"], ["--reload"], ["--reset"], ["--url", "URL"]])
@pytest.mark.parametrize("kind", STRANGERS)
def test_the_token_is_not_sent_to_a_stranger(project: Project, kind: str, arguments: list[str]) -> None:
    stranger = Stranger(STRANGERS[kind])
    # Its process runs, as far as an old record file says.
    write_record(project, "1-a", url=stranger.url, token="secret-token", process=os.getpid())
    ended = project.run("route", *(stranger.url if each == "URL" else each for each in arguments))
    stranger.close()
    assert is_one_line_error(ended)
    assert stranger.url in ended.err
    assert stranger.received
    assert b"secret-token" not in b"".join(stranger.received)


def test_a_stranger_does_not_hide_a_gateway(project: Project) -> None:
    with serving(project, "--emulated") as gateway:
        stranger = Stranger(STRANGERS["healthy"])
        file = write_record(project, "9-z", url=stranger.url, token="secret-token", process=os.getpid())
        os.utime(file, (2**31, 2**31))
        assert project.run("route").lines == [f"{gateway.url}: emulated/claude-sonnet-5"]
        stranger.close()
        assert b"secret-token" not in b"".join(stranger.received)


def test_a_record_file_of_another_process_is_not_used(project: Project) -> None:
    """The process has ended, and its id belongs to another one or to none."""
    stranger = Stranger(STRANGERS["healthy"])
    with subprocess.Popen(["true"]) as zombie:
        os.waitid(os.P_PID, zombie.pid, os.WEXITED | os.WNOWAIT)
        gone = [
            write_record(project, f"{number}-a", url=stranger.url, token="x", process=process, started=started)
            for number, (process, started) in enumerate(
                [(os.getpid(), "1"), (1, "1"), (zombie.pid, ""), (0, ""), (-1, "")]
                + [(number, "") for number in (2**31, 2**32 + 1, 99999999999, 2**63 - 1)]
            )
        ]
        ended = project.run("route")
    stranger.close()
    assert is_one_line_error(ended)
    assert "no gateway is running" in ended.err
    assert not stranger.received
    assert not [file for file in gone if file.exists()]


@pytest.mark.parametrize(
    "url", ["", "x", "http://", "http://127.0.0.1", "http://[::1", "http://h:99999", "file:///x:1"]
)
def test_a_record_file_with_another_url_is_left_out(project: Project, url: str) -> None:
    write_record(project, "1-a", url=url, token="x", process=os.getpid())
    ended = project.run("route")
    assert is_one_line_error(ended)
    assert "no gateway is running" in ended.err


@pytest.mark.parametrize("host", ["a b", "x" * 70, "\x00", "x.invalid", "é", "*", "[::1]"])
@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_record_file_with_an_address_that_can_not_be_reached_is_one_line(
    project: Project, scheme: str, host: str
) -> None:
    write_record(project, "1-a", url=f"{scheme}://{host}:1", token="x", process=os.getpid(), certificate="/missing")
    assert is_one_line_error(project.run("route"))


def test_the_gateway_proves_that_it_wrote_the_record_file(project: Project) -> None:
    with serving(project, "--emulated") as gateway:
        [file] = record_files(project)
        run = json.loads(file.read_text())
        assert run["started"] == start_time(gateway.process.pid)
        assert httpx2.get(f"{gateway.url}/healthz").text == "ok\n"
        answers = {
            httpx2.get(f"{gateway.url}/healthz", headers={"x-segue-nonce": nonce}).text
            for nonce in ("a", "b", "", "é".encode())
        }
        assert len(answers) == 4
        assert not [answer for answer in answers if run["token"] in answer or answer.startswith("ok")]


def test_the_newest_of_several_gateways_is_changed(project: Project) -> None:
    with serving(project, "--emulated") as first, serving(project, "--emulated") as second:
        old, new = sorted(record_files(project), key=lambda file: second.url in file.read_text())
        os.utime(old, (1, 1))
        assert project.run("route", "moonshot/kimi-k2.6").lines == [f"{second.url}: emulated/kimi-k2.6"]
        shown = project.run("route", "--json", "--url", first.url).json
        assert (shown["url"], shown["models"]) == (first.url, ["emulated/claude-sonnet-5"])
        changed = project.run("route", "gemini/gemini-3.8-flash", "mistral", "--url", f"{first.url}/")
        assert changed.lines[0].startswith(f"{first.url}: emulated/gemini-3.8-flash, emulated/")
        second.end()
        assert project.run("route", "--reset").lines == [f"{first.url}: its own routes"]
        assert project.run("route").lines == [f"{first.url}: emulated/claude-sonnet-5"]
        ended = project.run("route", "nowhere/x")
        assert is_one_line_error(ended)
        assert "nowhere" in ended.err
        assert new != old


def test_addresses_of_the_same_gateway(project: Project) -> None:
    with serving(project, "--emulated") as gateway:
        port = gateway.url.rpartition(":")[2]
        for url in (
            *(gateway.url, f"{gateway.url}/", f"{gateway.url}/v1", f"http://localhost:{port}", f"localhost:{port}/"),
            *(f"http://LOCALHOST:{port}/", f"127.0.0.1:{port}", f"http://[::1]:{port}"),
        ):
            assert project.run("route", "--url", url).lines == [f"{gateway.url}: emulated/claude-sonnet-5"], url
        for url in (f"http://evil.example:{port}", "localhost", "http://localhost:1", "x:y", "", "http://[::1"):
            assert is_one_line_error(project.run("route", "--url", url)), url


def test_a_gateway_with_tls_is_found(project: Project) -> None:
    folder = project.home.parent
    make_certificate(folder)
    project.write_user_config(
        f'[gateway]\nhost = "0.0.0.0"\nallowed_hosts = ["gate.example"]\n'
        f'certificate = "{folder}/cert.pem"\nprivate_key = "{folder}/key.pem"\n'
    )
    key = project.run("keys", "client", "add", "ada").lines[0]
    with serving(project, "-m", "ollama/llama3") as gateway:
        assert gateway.url.startswith("https://0.0.0.0:")
        assert project.run("route").lines == [f"{gateway.url}: ollama/llama3"]
        trusted = ssl.create_default_context(cafile=str(folder / "cert.pem"))
        local = gateway.url.replace("0.0.0.0", "localhost")
        with httpx2.Client(verify=trusted, headers={"host": "gate.example"}) as client:
            assert client.get(f"{local}/v1/models").status_code == 401
            assert client.get(f"{local}/v1/models", headers={"x-api-key": key}).status_code == 200
        port = int(gateway.url.rpartition(":")[2])
        with (
            socket.create_connection(("127.0.0.1", port)) as raw,
            trusted.wrap_socket(raw, server_hostname="localhost") as connection,
        ):
            connection.sendall(b"GET /healthz HTTP/1.1\nHost: gate.example\n\n" * 2)
            answer = b"".join(iter(lambda: connection.recv(65_536), b""))
            assert answer.startswith(b"HTTP/1.1 400 ")
            assert answer.count(b"HTTP/1.1 ") == 1


def make_certificate(folder: Path) -> None:
    from datetime import UTC, datetime, timedelta

    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "gate.example")])
    now = datetime.now(UTC)
    names = x509.SubjectAlternativeName([x509.DNSName("localhost")])
    built = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
    built = built.not_valid_before(now - timedelta(days=1)).not_valid_after(now + timedelta(days=1))
    built = built.add_extension(names, critical=False)
    (folder / "cert.pem").write_bytes(built.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))
    secret = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    (folder / "key.pem").touch(0o600)
    (folder / "key.pem").write_bytes(secret)


def test_price_of_the_switch(project: Project) -> None:
    """It is that of the conversation answered last, from the configured size on."""
    with segue.emulator.start("anthropic", keys=[KEY]) as first, segue.emulator.start("kimi", keys=[KEY]) as second:
        providers = "".join(
            f'[providers.{name}]\nbase_url = "{emulator.base_url}"\nkey_variable = "TEST_KEY"\n'
            for name, emulator in (("anthropic", first), ("moonshot", second))
        )
        prices = "".join(
            f'[prices."{name}"]\ninput = {price}\noutput = 10\ncache_read = 0.2\n'
            for name, price in (("anthropic/claude-sonnet-5", 2), ("moonshot/kimi-k2.6", 1))
        )
        project.write_user_config(f"switch_cost_above = 5_000\n{providers}{prices}")
        with serving(project, "-m", "anthropic/claude-sonnet-5") as gateway:
            assert len(project.run("route", "moonshot/kimi-k2.6").lines) == 1, "no conversation"
            project.run("route", "--reset")
            gateway.post(HELLO)
            gateway.wait_for_line("any → anthropic/claude-sonnet-5")
            assert len(project.run("route", "moonshot/kimi-k2.6").lines) == 1, "a short one"
            project.run("route", "--reset")
            gateway.post({**HELLO, "messages": [{"role": "user", "content": "Please read this. " * 3_000}]})
            gateway.wait_for_line("any → anthropic/claude-sonnet-5")
            lines = project.run("route", "moonshot/kimi-k2.6").lines
            assert "in the conversation answered last, the next request costs about" in lines[1]
            assert "more than with anthropic/claude-sonnet-5" in lines[1]
            cost = project.run("route", "--json", "moonshot/kimi-k2.6").json["switch_cost"]
            assert cost["now"] == pytest.approx(cost["go"] - cost["stay"])
            unknown = project.run("route", "moonshot/unheard-of").lines[1]
            assert "what the switch costs is not known: segue has no price of moonshot/unheard-of" in unknown
