"""Concurrent requests, long sequences and disconnecting clients: no mix-ups, no leaks."""

from __future__ import annotations

import gc
import http.client
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pytest

import segue
from segue.emulator import Emulator, RecordedRequest, start
from segue.errors import InputError
from tests.cli.process import environment
from tests.emulator.http_requests import (
    APIS,
    TIMEOUT,
    HttpResult,
    body_of,
    connect,
    open_response,
    open_socket,
    reply_of,
    send_request,
)

CONNECTIONS = 64
LONG = 10 * TIMEOUT
every_api = pytest.mark.parametrize("api", APIS)


def wait_until(true: Callable[[], object]) -> None:
    """Waits for a condition without an event."""
    never = threading.Event()
    for _ in range(int(TIMEOUT / 0.005)):
        if true():
            return
        never.wait(0.005)
    raise AssertionError("it never came true")


def descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


# --------------------------------------------------------------------------------------------------------- many at once


@pytest.mark.parametrize("api", ["openai-chat", "openai-responses", "anthropic", "bedrock"])
def test_many_at_once_and_each_gets_its_own_answer(api: str) -> None:
    """The built-in model calls for the city that is asked for; every stream is held open until all have begun."""
    begun = threading.Barrier(CONNECTIONS)
    script = "\n---\n".join(["wait 0.1\nsay Let me look.\nwait 0.1\nsay Well,\nwait 0.1\nsay here: {get_time}"] * 32)

    def one(number: int) -> tuple[int, bool, HttpResult]:
        stream = number % 2 == 0
        begun.wait(TIMEOUT)
        return number, stream, send_request(scripted if stream else plain, bodies[number], stream=stream)

    bodies = [
        body_of(api, f"How is the weather in {city(number)}?" if number % 2 else conversation_with_result(number))
        for number in range(CONNECTIONS)
    ]

    with start(api, script=script) as scripted, start(api) as plain, ThreadPoolExecutor(CONNECTIONS) as pool:
        seen = list(pool.map(one, range(CONNECTIONS)))
        requests = [*scripted.requests, *plain.requests]
    assert len(requests) == CONNECTIONS
    assert sorted(record.number for record in scripted.requests) == list(range(1, 33))
    for number, stream, answer in seen:
        assert (answer.status, answer.exception) == (200, None), answer.data
        reply = segue.assemble(answer.data, api) if stream else reply_of(plain, answer, stream=False)
        if stream:
            assert reply.text.endswith(f"here: result {number}")
        else:
            assert [call.arguments for call in reply.calls] == [{"city": city(number)}]
    ids = [
        call.raw_id for _, stream, answer in seen if not stream for call in reply_of(plain, answer, stream=False).calls
    ]
    assert len(set(ids)) == 32


def city(number: int) -> str:
    return f"Town{chr(97 + number // 26)}{chr(97 + number % 26)}"


def conversation_with_result(number: int) -> segue.Conversation:
    """A conversation in which a tool was run; its result names the request."""
    from segue.canonical.blocks import ToolCall
    from tests.emulator.http_requests import conversation

    chat = conversation(f"What time is it in City{number}?")
    call = ToolCall("get_time", {"zone": f"City{number}"})
    (message,) = chat.add_blocks(call)
    (call,) = [block for block in message.blocks if isinstance(block, ToolCall)]
    chat.add_result(call, f"result {number}")
    return chat


def test_open_streams_do_not_block_requests() -> None:
    script = "\n---\n".join([f"say Begun.\nwait {LONG}\nsay Over."] * CONNECTIONS)
    with start("anthropic", script=script) as emulator:
        answers = [open_response(emulator, stream=True) for _ in range(CONNECTIONS)]
        for answer in answers:
            assert b"message_start" in answer.read1()
        # All of them are in the middle of their streams; the built-in model answers all the same.
        assert send_request(emulator).status == 200
        emulator.stop()
        for answer in answers:
            with answer, pytest.raises((OSError, http.client.HTTPException)):
                answer.read()


@every_api
def test_several_requests_on_one_connection(api: str) -> None:
    with start(api, script="say One.\n---\nerror 429\n---\nsay Three.\n---\nsay Four.") as emulator:
        connection = connect(emulator)
        bare = connection.sock
        seen = [send_request(emulator, on=connection, stream=stream) for stream in (False, True, True, False)]
        assert connection.sock is bare
        connection.close()
    assert [one.status for one in seen] == [200, 429, 200, 200]
    assert segue.assemble(seen[2].data, api).text == "Three."
    assert reply_of(emulator, seen[3], stream=False).text == "Four."


def test_requests_that_are_written_before_the_answer_was_read() -> None:
    with start("openai-chat") as emulator, open_socket(emulator) as first, open_socket(emulator) as other:
        sent = _request(emulator)
        first.sendall(sent + sent.replace(b"\r\n\r\n", b"\r\nconnection: close\r\n\r\n", 1))
        came = b""
        while piece := first.recv(1 << 16):
            came += piece
        assert b"HTTP/1.1 200" in other.recv(1 << 16)
    assert came.count(b"HTTP/1.1 200") == 3
    assert len(emulator.requests) == 4


def _request(emulator: Emulator) -> bytes:
    from segue.emulator.client import build_request

    path, data, headers = build_request(emulator.api, body_of(emulator.api))
    conversation_with_result = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return (
        f"POST {path} HTTP/1.1\r\nhost: x\r\n{conversation_with_result}content-length: {len(data)}\r\n\r\n".encode()
        + data
    )


def test_a_body_of_many_megabytes_in_small_pieces() -> None:
    body = body_of("openai-chat", "x" * 8_000_000)
    with start("openai-chat", script="say Long.") as emulator:
        assert reply_of(emulator, send_request(emulator, body), stream=False).text == "Long."


# --------------------------------------------------------------------------------------------------- start, stop, again


def emulator_threads() -> list[str]:
    """Return the threads of emulators: idle threads of tools that an earlier test ran may end at any time."""
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("segue emulate")]


def test_nothing_stays_behind() -> None:
    with start("anthropic") as emulator:
        send_request(emulator)
    gc.collect()
    threads, files = emulator_threads(), descriptors()
    for number in range(50):
        emulator = start(APIS[number % len(APIS)], script="say Hello.")
        if number % 3 == 0:
            send_request(emulator, stream=number % 2 == 0)
        if number % 2 == 0:
            with open_socket(emulator):
                emulator.stop()
        emulator.stop()
    gc.collect()
    assert emulator_threads() == threads
    assert descriptors() == files


def test_a_port_is_free_again_at_once(port: int) -> None:
    with start("anthropic", port=port) as first:
        send_request(first)
    for _ in range(5):
        with start("openai-chat", port=port) as again:
            assert again.port == port
            assert send_request(again).status == 200


def test_to_stop_twice_changes_nothing() -> None:
    emulator = start("anthropic")
    emulator.stop()
    emulator.stop()
    with pytest.raises(ConnectionRefusedError):
        send_request(emulator)


def test_stop_ends_an_answer_that_is_waited_for() -> None:
    came = threading.Event()
    emulator = start("anthropic", script=f"wait {LONG}\nsay Late.", on_request=lambda _: came.set())
    with emulator, open_socket(emulator) as connection:
        assert came.wait(TIMEOUT)
        emulator.stop()
        with suppress(ConnectionResetError):
            assert connection.recv(1) == b""


def test_stop_from_the_listener() -> None:
    running: list[Emulator] = []
    over = threading.Event()
    threads = emulator_threads()

    def conversation_with_result(record: RecordedRequest) -> None:
        running[0].stop()
        over.set()

    running.append(start("anthropic", on_request=conversation_with_result))
    send_request(running[0])
    assert over.wait(TIMEOUT)
    wait_until(lambda: emulator_threads() == threads)


def test_two_emulators_in_one_process_are_independent() -> None:
    with ExitStack() as running:
        here, there = (
            running.enter_context(start("anthropic", script=f"say {place}.", seed=seed, keys=[place]))
            for seed, place in enumerate(("here", "there"))
        )
        assert here.port != there.port
        for emulator, place, other in ((here, "here", "there"), (there, "there", "here")):
            assert send_request(emulator, key=other).status == 401
            assert reply_of(emulator, send_request(emulator, key=place), stream=False).text == f"{place}."
            assert len(emulator.requests) == 2
        here.stop()
        assert send_request(there, key="there").status == 200


# ------------------------------------------------------------------------------------------------------------ bad ports


def test_a_port_that_is_taken() -> None:
    with start("anthropic") as first, pytest.raises(InputError, match=f"127.0.0.1:{first.port}: ") as raised:
        start("anthropic", port=first.port)
    assert raised.value.path == "port"
    assert str(raised.value).count(str(first.port)) == 1


@pytest.mark.parametrize("port", [-1, 65536, 1 << 40, "eighty"])
def test_invalid_port(port: Any) -> None:
    with pytest.raises(InputError) as raised:
        start("anthropic", port=port)
    assert raised.value.path == "port"


def test_invalid_host() -> None:
    with pytest.raises(InputError, match="can't listen on"):
        start("anthropic", host="no.such.host.invalid")


def test_invalid_start_arguments() -> None:
    files = descriptors()
    refused: list[tuple[str, dict[str, Any]]] = [
        ("antropic", {}),
        ("gemini", {"profile": "groq"}),
        ("kimi", {"script": "?"}),
    ]
    for api, options in refused:
        with pytest.raises(InputError):
            start(api, **options)
    with pytest.raises(InputError, match="can't read the script"):
        start("anthropic", script=Path("/no/such/script"))
    assert descriptors() == files


# ------------------------------------------------------------------------------------------------- clients that go away


@pytest.mark.parametrize("how", ["close", "reset"])
@pytest.mark.parametrize("when", ["in-the-body", "before-the-answer", "in-the-stream"])
def test_a_client_that_goes_away_does_no_harm(how: str, when: str, capfd: pytest.CaptureFixture[str]) -> None:
    script = "\n---\n".join(["wait 0.05\n" + "say Begun.\nwait 0.02\n" * 5 + "say Over."] * 8)
    with start("anthropic", script=script) as emulator:
        for _ in range(8):
            connection = open_socket(emulator, stream=True) if when != "in-the-body" else _half(emulator)
            if when == "in-the-stream":
                assert connection.recv(64)
            if how == "reset":
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            connection.close()
        if when != "in-the-body":
            wait_until(lambda: len(emulator.requests) == 8)
        assert send_request(emulator).status == 200
        # Until the last of them was told to nobody.
        wait_until(lambda: not emulator._server.server_state.tasks)
    assert capfd.readouterr() == ("", "")


def _half(emulator: Emulator) -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", emulator.port), timeout=TIMEOUT)
    connection.sendall(_request(emulator)[:-20])
    return connection


def test_non_http_input_is_closed_silently(capfd: pytest.CaptureFixture[str]) -> None:
    with start("anthropic") as emulator:
        for nonsense in (
            b"\x16\x03\x01\x02\x00\x01",
            b"GET\r\n\r\n",
            b"POST / HTTP/1.1\r\nupgrade: x\r\n\r\n\0\0",
            b"x",
        ):
            with socket.create_connection(("127.0.0.1", emulator.port), timeout=TIMEOUT) as connection:
                connection.sendall(nonsense)
                connection.shutdown(socket.SHUT_WR)
                with suppress(ConnectionResetError):
                    while connection.recv(1 << 16):
                        pass
        assert send_request(emulator).status == 200
    assert capfd.readouterr() == ("", "")


def test_stop_in_mid_stream_prints_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    for stream in (True, False):
        came = threading.Event()
        emulator = start("anthropic", script=f"wait {LONG}\nsay Late.", on_request=lambda _, came=came: came.set())
        with emulator, open_socket(emulator, stream=stream):
            assert came.wait(TIMEOUT)
            emulator.stop()
    assert capfd.readouterr() == ("", "")


def test_a_process_that_ends_with_an_emulator_that_runs() -> None:
    """No traceback from a thread that was torn from its loop, and no warning of a socket left open."""
    code = (
        "import segue.emulator, http.client\n"
        "running = segue.emulator.start('anthropic', script='say Hello.\\nwait 1000\\nsay Late.')\n"
        "client = http.client.HTTPConnection('127.0.0.1', running.port)\n"
        "client.request('GET', '/v1/models', headers={'x-api-key': 'k'})\n"
        "print(client.getresponse().status)\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment(), timeout=100, check=False
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "200\n", "")


# --------------------------------------------------------------------------------------------------------- the listener


def test_listener_gets_each_request_in_order() -> None:
    records: list[RecordedRequest] = []
    with start("anthropic", script="say Hello.", on_request=records.append) as emulator:
        send_request(emulator)
        send_request(emulator, b"{")
        assert records == emulator.requests
    assert [(record.number, record.status, record.text) for record in records] == [(1, 200, "Hello."), (2, 400, "")]


def test_a_listener_that_fails_spoils_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    records: list[BaseException | None] = []
    monkeypatch.setattr(threading, "excepthook", lambda given: records.append(given.exc_value))

    def conversation_with_result(record: RecordedRequest) -> None:
        raise ValueError(f"request {record.number}")

    with start("anthropic", on_request=conversation_with_result) as emulator:
        assert [send_request(emulator).status for _ in range(2)] == [200, 200]
    assert [str(error) for error in records] == ["request 1", "request 2"]


def test_bug_is_reported_to_client_and_record(monkeypatch: pytest.MonkeyPatch) -> None:
    with start("anthropic", script="say Hello.") as emulator:
        monkeypatch.setattr(emulator._router.services[emulator.api], "_check_and_reply", lambda *_: 1 / 0)
        seen = send_request(emulator)
        assert seen.status == 500
        assert "bug in segue" in seen.json["error"]["message"]
        assert emulator.requests[0].status == 500
        assert "ZeroDivisionError" in (emulator.requests[0].refused or "")
