"""Client keys of a running gateway: limits over several processes, and a file that changes."""

from __future__ import annotations

import asyncio
import json
import threading
from pathlib import Path

import httpx2
import pytest

from segue.emulator import start
from segue.gateway.client_auth import ClientAuth
from segue.gateway.client_key_file import ClientKeyFile
from segue.gateway.client_keys import ClientKey, Scope, hash_key
from segue.gateway.entry_store import SqliteEntries
from segue.gateway.limits import Admission, Denied, ProcessLimits
from segue.gateway.metrics import Metrics
from segue.gateway.shared_entries import SharedEntries
from segue.gateway.shared_limits import SharedLimits
from segue.wire.registry import WIRES
from tests.gateway.harness import running_gateway
from tests.gateway.processes import GatewayProcess, Home
from tests.gateway.test_hostile_clients import wait_until

HELLO = "\n---\n".join(["say Hi there."] * 40)
CHAT = {"model": "any", "messages": [{"role": "user", "content": "Hello"}]}


def post(url: str, key: str) -> httpx2.Response:
    headers = {"authorization": f"Bearer {key}"}
    return httpx2.post(f"{url}/v1/chat/completions", json=CHAT, headers=headers, timeout=100)


@pytest.mark.parametrize("place", ["sqlite", "postgres"])
def test_requests_a_minute_hold_over_all_workers_and_gateways(
    place: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    where = str(tmp_path / "entries.db") if place == "sqlite" else request.getfixturevalue("server")
    with start("anthropic", script=HELLO) as emulator:
        home = Home(tmp_path, emulator, WIRES["anthropic"].default_model)
        name = f"ada-{tmp_path.name}"[:60]
        key = home.run("keys", "client", "add", name, "--requests", "5").stdout.strip()
        with home.serve_several(2, "--store", where, "--workers", "2") as gateways:
            statuses = [post(gateways[index % 2].url, key).status_code for index in range(9)]
            assert statuses == [200] * 5 + [429] * 4
            assert len(emulator.requests) == 5


def test_open_requests_hold_over_workers_and_end_with_them(tmp_path: Path) -> None:
    script = "say One.\nwait 1000\nsay Two.\n---\n" + HELLO
    with start("anthropic", script=script) as emulator:
        home = Home(tmp_path, emulator, WIRES["anthropic"].default_model)
        key = home.run("keys", "client", "add", "ada", "--concurrent", "1").stdout.strip()
        with home.serve_several(2, "--store", str(tmp_path / "entries.db")) as (one, other):
            streaming = threading.Event()

            def hold(gateway: GatewayProcess) -> None:
                headers = {"authorization": f"Bearer {key}"}
                with httpx2.stream(
                    "POST", f"{gateway.url}/v1/chat/completions", json={**CHAT, "stream": True}, headers=headers
                ) as response:
                    next(response.iter_bytes())
                    streaming.set()

            hold(one)
            # The client has gone: its request does not count any more.
            wait_until(lambda: post(other.url, key).status_code == 200)
            assert streaming.is_set()


def test_lease_of_a_killed_process_ends(tmp_path: Path) -> None:
    """The limit on open requests is exact while processes live; a killed one frees its requests after the lease."""

    class Clock:
        now = 1000.0

        def __call__(self) -> float:
            return self.now

    clock = Clock()
    client = ClientKey("ada", hash_key("x"), concurrent=1)

    def limits() -> SharedLimits:
        path = tmp_path / "entries.db"
        return SharedLimits(SharedEntries(lambda: SqliteEntries(path, clock=clock), Metrics(), lambda _: None))

    async def run() -> list[type]:
        killed, living = limits(), limits()
        results = [
            await killed.admit("ada", "", [Scope("ada", "ada", client)]),
            await living.admit("ada", "", [Scope("ada", "ada", client)]),
        ]
        clock.now += 31
        results.append(await living.admit("ada", "", [Scope("ada", "ada", client)]))
        for one in (killed, living):
            await one.close()
        return [type(result) for result in results]

    assert asyncio.run(run()) == [Admission, Denied, Admission]


def test_store_that_fails_lets_the_process_count() -> None:
    from segue.errors import StoreError

    def fail() -> SqliteEntries:
        raise StoreError("gone", cause="lost")

    client = ClientKey("ada", hash_key("x"), requests_per_minute=2)

    async def run() -> list[type]:
        limits = SharedLimits(SharedEntries(fail, Metrics(), lambda _: None))
        return [type(await limits.admit("ada", "", [Scope("ada", "ada", client)])) for _ in range(3)]

    assert asyncio.run(run()) == [Admission, Admission, Denied]


def test_limits_of_one_process() -> None:
    moment = [1000.0]
    limits = ProcessLimits(lambda: moment[0])
    client = ClientKey("ada", hash_key("x"), tokens_per_minute=100, concurrent=1)

    async def run() -> None:
        first = await limits.admit("ada", "", [Scope("ada", "ada", client)])
        assert isinstance(first, Admission)
        busy = await limits.admit("ada", "", [Scope("ada", "ada", client)])
        assert isinstance(busy, Denied)
        assert busy.client == "ada"
        async with first:
            first.tokens = 100
        moment[0] += 20
        full = await limits.admit("ada", "", [Scope("ada", "ada", client)])
        assert isinstance(full, Denied)
        assert full.retry_after == 40
        moment[0] += 41
        assert isinstance(await limits.admit("ada", "", [Scope("ada", "ada", client)]), Admission)

    asyncio.run(run())


# ----------------------------------------------------------------------------------------------------------- the file


def write_keys(path: Path, *keys: ClientKey) -> None:
    path.write_text(json.dumps([{"name": key.name, "hash": key.hash} for key in keys]))


@pytest.mark.parametrize("always_needs_key", [False, True])
def test_changes_of_the_file_apply_at_the_next_request(tmp_path: Path, always_needs_key: bool) -> None:
    path, log = tmp_path / "keys.json", list[str]()
    ada, bob = (ClientKey(name, hash_key(name), metrics=True) for name in ("ada", "bob"))
    current = [ada]
    path.write_text("1")
    gate = ClientAuth(current, always_needs_key=always_needs_key)
    file = ClientKeyFile(path, lambda: tuple(current), gate, log.append)

    def change(*keys: ClientKey) -> None:
        current[:] = keys
        path.with_suffix(".new").write_text("x" * (len(path.read_text()) + 1))
        path.with_suffix(".new").replace(path)
        file.refresh()

    change(ada, bob)
    assert gate.may_read_metrics(["bob"])
    change(bob)
    assert not gate.may_read_metrics(["ada"])
    change()
    assert not gate.may_read_metrics(["bob"])
    assert not gate.may_read_metrics([])
    assert "no client is admitted" in log[-1]
    change(ada)
    assert gate.may_read_metrics(["ada"])
    change()
    file.replace((), is_reload=True)
    assert gate.may_read_metrics([]) is not always_needs_key


def test_running_gateway_reads_the_file_again(tmp_path: Path) -> None:
    with start("anthropic", script=HELLO) as emulator:
        home = Home(tmp_path, emulator, WIRES["anthropic"].default_model)
        key = home.run("keys", "client", "add", "ada").stdout.strip()
        with home.serve() as gateway:
            assert [post(gateway.url, one).status_code for one in ("none", key)] == [401, 200]
            revoked = home.run("keys", "client", "revoke", "ada")
            assert "no keys are left" in revoked.stderr
            assert post(gateway.url, key).status_code == 401
            again = home.run("keys", "client", "add", "eve", "--route", "default").stdout.strip()
            assert [post(gateway.url, one).status_code for one in (key, again)] == [401, 200]


def test_keys_can_be_limited_to_routes() -> None:
    from segue.gateway.routes import RouteSettings
    from tests.gateway.harness import model_of

    routes = (
        RouteSettings((model_of("anthropic"),), model="one", name="first"),
        RouteSettings((model_of("anthropic"),), model="two", name="second"),
    )
    clients = (ClientKey("ada", hash_key("key-ada"), routes=("fir*",)),)
    with running_gateway({"anthropic": HELLO}, routes=routes, clients=clients) as gateway:
        found = [
            httpx2.post(
                f"{gateway.url}/v1/chat/completions", json={**CHAT, "model": name}, headers={"x-api-key": "key-ada"}
            ).status_code
            for name in ("one", "two", "three")
        ]
        assert found == [200, 404, 404]
