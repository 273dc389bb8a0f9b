"""Several gateways and workers on one store: conversations that move, a store that fails, signals."""

from __future__ import annotations

import os
import signal
import socket
import sqlite3
import threading
import time
from contextlib import closing
from pathlib import Path

import httpx2
import psycopg
import pytest

from segue.emulator import start
from segue.errors import InputError
from tests.gateway.harness import Running, running_gateway
from tests.gateway.processes import ChatClient, Home, count_thoughts, process_exists
from tests.gateway.test_hostile_clients import wait_until

MODEL = "claude-sonnet-5"
ROUNDS = 6
STEP = 'think Thought {number}.\nsay Looking.\ncall look {{"n": {number}}}'
SCRIPT = "\n---\n".join([*(STEP.format(number=number) for number in range(ROUNDS)), "say Done."])
LOOKS = "\n---\n".join(['think A thought.\nsay Looking.\nwait 0.1\ncall look {"n": 1}'] * 2000)


def test_conversation_moves_at_every_request(place: str, tmp_path: Path) -> None:
    with start("anthropic", script=SCRIPT) as emulator:
        home = Home(tmp_path / "home", emulator, MODEL)
        with home.serve_several(2, "--workers", "2", "--store", place) as gateways:
            assert [len(gateway.workers()) for gateway in gateways] == [2, 2]
            client = ChatClient("Look six times.")
            texts = [client.send(gateways[turn % 2].url) for turn in range(ROUNDS + 1)]
            assert texts == [None] * ROUNDS + ["Done."]
            assert all(gateway.end() == 143 for gateway in gateways)
        assert count_thoughts(emulator) == list(range(ROUNDS + 1))
        assert not home.run("route").stdout
    assert "Thought" not in "".join(gateway.log for gateway in gateways)


def test_equal_calls_of_two_conversations_stay_apart(place: str, tmp_path: Path) -> None:
    script = "\n---\n".join(
        ['think One.\ncall look {"n": 1}', 'say No thought.\ncall look {"n": 1}', "say Done.", "say Done."]
    )
    with start("anthropic", script=script) as emulator:
        home = Home(tmp_path / "home", emulator, MODEL)
        with home.serve_several(2, "--store", place) as gateways:
            first, second = ChatClient("First"), ChatClient("Second")
            first.send(gateways[0].url)
            second.send(gateways[0].url)
            first.send(gateways[1].url)
            second.send(gateways[1].url)
        assert count_thoughts(emulator) == [0, 0, 1, 0]


def test_all_workers_use_the_model_of_segue_route(tmp_path: Path) -> None:
    with start("anthropic", script="\n---\n".join(["say Hello."] * 100)) as emulator:
        home = Home(tmp_path / "home", emulator, MODEL)
        with home.serve("--workers", "2", "--store", str(tmp_path / "entries.db")) as gateway:
            changed = home.run("route", "test/claude-haiku-4-5")
            assert changed.stdout == f"{gateway.url}: test/claude-haiku-4-5\n", changed.stderr
            for _ in range(12):
                ChatClient("Hello").send(gateway.url)
            # The counters of a worker that is killed stay, once they are written.
            home.wait_for_written_requests(12)
            # A worker that is started later has the route too.
            os.kill(gateway.workers()[0], signal.SIGKILL)
            gateway.wait_for("another one is started")
            for _ in range(12):
                ChatClient("Hello").send(gateway.url)
            assert home.run("route", "--reset").stdout == f"{gateway.url}: its own routes\n"
            for _ in range(12):
                ChatClient("Hello").send(gateway.url)
            gateway.wait_for_metric("segue_requests_total", 36, label='api="')
        models = [request.body["model"] for request in emulator.requests if request.body is not None]
        assert models == ["claude-haiku-4-5"] * 24 + [MODEL] * 12


def test_workers_end_with_a_supervisor_that_is_killed(tmp_path: Path) -> None:
    with start("anthropic", script="say Hello.") as emulator:
        home = Home(tmp_path / "home", emulator, MODEL)
        with home.serve("--workers", "2", "--store", str(tmp_path / "entries.db")) as gateway:
            workers = gateway.workers()
            gateway.end(signal.SIGKILL)
            deadline = time.monotonic() + 30
            while any(process_exists(number) for number in workers):
                assert time.monotonic() < deadline
                time.sleep(0.02)


def test_reload_reaches_all_workers(tmp_path: Path) -> None:
    with start("anthropic", script="say Hello.") as emulator:
        home = Home(tmp_path / "home", emulator, MODEL)
        own = home.config.read_text()
        with home.serve("--workers", "2", "--store", str(tmp_path / "entries.db"), has_model=False) as gateway:
            home.config.write_text(f'{own}[[gateway.routes]]\nmodel = "one"\ntargets = ["test/{MODEL}"]\n')
            assert home.run("route", "--reload").returncode == 0
            assert all("one" in models(gateway.url) for _ in range(12))
            home.config.write_text(own)
            gateway.process.send_signal(signal.SIGHUP)
            deadline = time.monotonic() + 30
            while any("one" in models(gateway.url) for _ in range(12)):
                assert time.monotonic() < deadline


def models(url: str) -> list[str]:
    return httpx2.get(f"{url}/readyz", timeout=100).json()["models"]


def test_several_workers_need_a_store(tmp_path: Path) -> None:
    with start("anthropic", script="say Hello.") as emulator:
        ended = Home(tmp_path / "home", emulator, MODEL).run("serve", "--emulated", "--port", "0", "--workers", "2")
    assert ended.returncode == 2
    assert ended.stderr.startswith("segue: workers: more than one worker needs a store: the reasoning")
    assert ended.stderr.count("\n") == 1


@pytest.mark.parametrize("workers", ["1", "2"])
def test_sigterm_under_load_loses_no_reply(place: str, workers: str, tmp_path: Path) -> None:
    with start("anthropic", script=LOOKS) as emulator:
        home = Home(tmp_path / "home", emulator, MODEL)
        answered: list[ChatClient] = []
        broken: list[str] = []

        def work(url: str, number: int) -> None:
            for turn in range(100):
                client = ChatClient(f"Look {number} {turn}.")
                try:
                    client.send(url)
                except (httpx2.ConnectError, httpx2.ReadError, httpx2.RemoteProtocolError) as error:
                    broken.append(repr(error))
                    return
                answered.append(client)

        with home.serve("--workers", workers, "--store", place) as gateway:
            threads = [threading.Thread(target=work, args=(gateway.url, number)) for number in range(8)]
            for thread in threads:
                thread.start()
            while len(answered) < 12:
                time.sleep(0.01)
            assert gateway.end() == 143
            for thread in threads:
                thread.join()
        # Each client ended with a request that was not accepted; all replies of the provider reached a client.
        sent = len(emulator.requests)
        assert len(broken) == 8
        assert sent == len(answered)
        with home.serve("--store", place) as other:
            for client in answered:
                client.send(other.url)
        assert count_thoughts(emulator)[sent:] == [1] * sent


# ------------------------------------------------------------------------------------------------------ failing stores


def state(gateway: Running) -> tuple[str, str]:
    metrics = httpx2.get(f"{gateway.url}/metrics", timeout=100).text
    [up] = [line for line in metrics.splitlines() if line.startswith("segue_store_up")]
    return httpx2.get(f"{gateway.url}/readyz", timeout=100).json()["store"], up


def test_store_that_is_removed_is_created_anew(tmp_path: Path) -> None:
    folder = tmp_path / "entries"
    with running_gateway({"anthropic": SCRIPT}, store=str(folder / "entries.db")) as gateway:
        client = ChatClient("Look six times.")
        for _ in range(2):
            client.send(gateway.url)
        for file in list(folder.iterdir()):
            file.unlink()
        texts = [client.send(gateway.url) for _ in range(ROUNDS - 1)]
        assert texts[-1] == "Done."
        assert state(gateway) == ("ok", "segue_store_up 1")
        assert gateway.log.count("the store fails") == gateway.log.count("the store works again") == 1
        assert "removed or replaced" in gateway.log
        counts = count_thoughts(gateway.emulators["anthropic"])
        # The worker remembers the reasoning of the conversation.
        assert counts == list(range(ROUNDS + 1))


def test_store_that_is_locked_delays_but_breaks_nothing(tmp_path: Path) -> None:
    file = tmp_path / "entries.db"
    with running_gateway({"anthropic": SCRIPT}, store=str(file)) as gateway:
        client = ChatClient("Look six times.")
        client.send(gateway.url)
        assert state(gateway) == ("ok", "segue_store_up 1")
        with closing(sqlite3.connect(file, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            client.send(gateway.url)
            assert state(gateway) == ("failing", "segue_store_up 0")
            assert "locked by another process" in gateway.log
            other.execute("ROLLBACK")
        wait_until(lambda: state(gateway) == ("ok", "segue_store_up 1"))
        texts = [client.send(gateway.url) for _ in range(ROUNDS - 1)]
        assert texts[-1] == "Done."
        assert state(gateway) == ("ok", "segue_store_up 1")
        assert count_thoughts(gateway.emulators["anthropic"])[:2] == [0, 1]


def test_a_gateway_starts_while_its_store_is_locked(tmp_path: Path) -> None:
    file = tmp_path / "entries.db"
    with closing(sqlite3.connect(file, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        with running_gateway({"anthropic": SCRIPT}, store=str(file)) as gateway:
            assert "the store fails, requests are served without it" in gateway.log
            ChatClient("Look six times.").send(gateway.url)
            assert state(gateway) == ("failing", "segue_store_up 0")
            other.execute("ROLLBACK")
            wait_until(lambda: state(gateway) == ("ok", "segue_store_up 1"))


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_gateway_starts_while_its_server_is_down(tmp_path: Path, workers: str) -> None:
    with start("anthropic", script=SCRIPT) as emulator, socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        home = Home(tmp_path / "home", emulator, MODEL)
        place = f"postgresql://127.0.0.1:{closed.getsockname()[1]}/x"
        with home.serve("--store", place, "--workers", workers) as gateway:
            ChatClient("Look six times.").send(gateway.url)
            gateway.wait_for("the store fails, requests are served without it")
            assert httpx2.get(f"{gateway.url}/readyz", timeout=100).json()["store"] == "failing"


def test_tables_that_are_dropped_are_created_anew(server: str) -> None:
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute("DROP SCHEMA IF EXISTS segue_gateway CASCADE")
        with running_gateway({"anthropic": SCRIPT}, store=server) as gateway:
            client = ChatClient("Look six times.")
            client.send(gateway.url)
            connection.execute("DROP SCHEMA segue_gateway CASCADE")
            texts = [client.send(gateway.url) for _ in range(ROUNDS)]
            assert texts[-1] == "Done."
            assert state(gateway) == ("ok", "segue_store_up 1")
            assert "the store works again" in gateway.log
        connection.execute("DROP SCHEMA segue_gateway CASCADE")


def test_store_that_can_not_be_opened_is_an_error_at_the_start(tmp_path: Path) -> None:
    text = tmp_path / "text"
    text.write_text("not a database" * 100)
    for where, why in (
        (text, "gateway.store: .* not a segue store"),
        (tmp_path, "gateway.store: .* folder"),
        ("mysql://host/db", "mysql"),
    ):
        with pytest.raises(InputError, match=why), running_gateway({"anthropic": SCRIPT}, store=str(where)):
            pass
