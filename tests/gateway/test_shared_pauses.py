"""The pauses of targets in several workers of a gateway: one file, which may also be damaged or missing."""

from __future__ import annotations

import json
import os
import signal
import stat
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from segue.bridge.failover import TargetPauses
from segue.bridge.providers import Endpoint
from segue.emulator import Emulator, start
from segue.errors import ProviderError
from segue.gateway.shared_pauses import SharedPauses
from tests.gateway.processes import ChatClient, GatewayProcess, Home

MODEL = "claude-sonnet-5"
A, B = (Endpoint(provider=name, model="m", api="openai-chat", base_url="http://127.0.0.1:1") for name in "ab")
FAILED = ProviderError("no", cause="overloaded")


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "gateway-1-a.pauses"


def workers(file: Path, number: int = 2) -> tuple[Clock, list[TargetPauses]]:
    clock = Clock()
    return clock, [TargetPauses(clock, SharedPauses(file)) for _ in range(number)]


def test_all_workers_have_the_same_pauses(file: Path) -> None:
    clock, (one, two) = workers(file)
    assert not two.is_paused(A)
    one.fail(A, FAILED)
    assert (two.is_paused(A), two.is_paused(B), two.choose([A, B])) == (True, False, B)
    two.fail(B, FAILED)
    assert one.is_paused(A)
    assert one.is_paused(B)
    clock.now += 16
    assert two.claim(A)
    assert not one.claim(A), "one probe at a time"
    two.succeed(A)
    assert one.claim(A)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert [path.name for path in file.parent.iterdir() if path.name.endswith(".new")] == []


def test_probe_without_outcome_is_released(file: Path) -> None:
    clock, (one, two) = workers(file)
    one.fail(A, FAILED)
    clock.now += 16
    assert one.claim(A)
    one.release(A)
    assert two.claim(A)
    # A worker that was killed releases nothing.
    clock.now += 3600
    assert one.claim(A)


def test_one_probe_of_many_at_the_same_time(file: Path) -> None:
    clock, pauses = workers(file, 8)
    for _ in range(5):
        pauses[0].fail(A, FAILED)
        clock.now += 3600
        with ThreadPoolExecutor(8) as pool:
            assert sum(pool.map(lambda each: each.claim(A), pauses)) == 1


def _remove(file: Path) -> None:
    file.unlink(missing_ok=True)


def _make_folder(file: Path) -> None:
    _remove(file)
    file.mkdir()


def _remove_folder(file: Path) -> None:
    for path in file.parent.iterdir():
        path.unlink()
    file.parent.rmdir()


PAUSE = {"cause": "overloaded", "failures": 1, "start": 0, "until": 1}
DAMAGES: dict[str, Callable[[Path], object]] = {
    "missing": _remove,
    "empty": lambda file: file.write_bytes(b""),
    "cut off": lambda file: file.write_bytes(file.read_bytes()[:-5] if file.exists() else b'{"a'),
    "not UTF-8": lambda file: file.write_bytes(b"\xff\xfe"),
    "a list": lambda file: file.write_text("[]"),
    "wrong types": lambda file: file.write_text(json.dumps({"x": {**PAUSE, "until": "soon"}})),
    "unknown cause": lambda file: file.write_text(json.dumps({"x": {**PAUSE, "cause": "weather"}})),
    "infinite": lambda file: file.write_text('{"x": {"cause": "auth", "failures": 1, "start": 0, "until": 1e999}}'),
    "a folder": _make_folder,
    "no folder": _remove_folder,
}


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("is_written", [False, True])
def test_damaged_file_is_no_error(damage: str, is_written: bool, file: Path) -> None:
    """A worker keeps the pauses that it knows, and finds new ones."""
    clock, (one, two) = workers(file)
    if is_written:
        one.fail(A, FAILED)
    DAMAGES[damage](file)
    assert one.is_paused(A) == is_written
    for each in (one, two):
        each.fail(B, FAILED)
        assert each.is_paused(B)
    clock.now += 16
    assert one.claim(B)
    one.succeed(B)
    assert not one.is_paused(B)


def test_clock_that_was_set_back_ends_a_pause(file: Path) -> None:
    clock, (one, two) = workers(file)
    clock.now += 1_000_000
    one.fail(A, FAILED)
    clock.now -= 1_000_000
    assert not two.is_paused(A)


# ------------------------------------------------------------------------------------------------------------ processes


def make_home(folder: Path, dead: Emulator, live: Emulator) -> Home:
    """Return a home with a route whose first target is `dead`."""
    home = Home(folder, live, MODEL)
    provider = f'[providers.dead]\napi = "{dead.api}"\nbase_url = "{dead.base_url}"\nkey_variable = "TEST_KEY"\n'
    route = f'[[gateway.routes]]\nmodel = "any"\ntargets = ["dead/{MODEL}", "test/{MODEL}"]\nattempts = 1\n'
    home.config.write_text(f"{home.config.read_text()}{provider}{route}")
    return home


def end_pauses(home: Home) -> None:
    """Set the file as it is when the pauses are over."""
    [file] = home.config.parents[2].rglob("gateway-*.pauses")
    pauses = {name: {**pause, "start": 0, "until": 1} for name, pause in json.loads(file.read_bytes()).items()}
    new = file.with_name("new")
    new.write_text(json.dumps(pauses))
    new.replace(file)


def send(gateway: GatewayProcess, times: int = 6) -> None:
    for _ in range(times):
        ChatClient("Hello").send(gateway.url)


def test_target_that_one_worker_found_dead_is_left_out_by_the_others(tmp_path: Path) -> None:
    with start("anthropic", faults=["overloaded"]) as dead, start("anthropic", script="say Hello.") as live:
        home = make_home(tmp_path / "home", dead, live)
        store = str(tmp_path / "entries.db")
        with home.serve("--workers", "2", "--store", store, has_model=False) as gateway:
            for number, running in enumerate(gateway.workers()):
                # Only this worker accepts connections.
                others = [worker for worker in gateway.workers() if worker != running]
                for other in others:
                    os.kill(other, signal.SIGSTOP)
                send(gateway)
                for other in others:
                    os.kill(other, signal.SIGCONT)
                assert (len(dead.requests), len(live.requests)) == (1, 6 * (number + 1))
            gateway.wait_for_metric("segue_target_paused", 1)
            # A worker that is started later knows it, too.
            os.kill(gateway.workers()[0], signal.SIGKILL)
            gateway.wait_for("another one is started")
            send(gateway)
            assert len(dead.requests) == 1
            end_pauses(home)
            send(gateway)
            assert len(dead.requests) == 2, "one probe"
            assert home.run("route", "--reload").returncode == 0
            send(gateway)
            assert len(dead.requests) == 2, "the target is the same"
            [file] = tmp_path.rglob("gateway-*.pauses")
            file.write_bytes(b"{")
            send(gateway)
            assert gateway.process.poll() is None
        assert list(tmp_path.rglob("gateway-*.pauses*")) == []
        before = len(dead.requests)
        with home.serve("--workers", "2", "--store", store, has_model=False) as gateway:
            send(gateway)
        assert len(dead.requests) == before + 1, "a gateway that is started anew tries all targets"
