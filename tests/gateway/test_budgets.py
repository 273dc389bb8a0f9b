"""Budgets of clients and groups: reservations before requests, their settlement, and what clients are told."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Generator
from contextlib import closing, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import anthropic
import httpx2
import openai
import psycopg
import pytest

from segue.bridge.bounds import bound_input, bound_output, bound_written, estimate_input
from segue.canonical.request import Usage
from segue.cli.gateway_settings import load_settings
from segue.emulator import start
from segue.errors import InputError, StoreError
from segue.gateway.budgets import NANO, BudgetLine, BudgetState, open_lines, parse_budget
from segue.gateway.client_keys import ClientKey, GroupSettings, Scope, hash_key
from segue.gateway.client_uses import LEASE
from segue.gateway.entry_store import EntryStore, SqliteEntries
from segue.gateway.limits import Admission, Denied
from segue.gateway.metrics import Metrics
from segue.gateway.passthrough_routes import PassthroughSettings
from segue.gateway.routes import RouteSettings
from segue.gateway.shared_entries import SharedEntries, open_entries
from segue.gateway.shared_limits import SharedLimits, describe_denial
from segue.gateway.spending import Spending
from segue.wire.registry import WIRES
from tests.cli.process import is_one_line_error, run
from tests.gateway.harness import Running, model_of, running_gateway
from tests.gateway.processes import GatewayProcess, Home
from tests.gateway.test_gateway import CHAT, SURFACES, get, post
from tests.gateway.test_hostile_clients import wait_until
from tests.gateway.upstreams import Handler, running_upstream

NOW = datetime(2026, 11, 18, 15, 30, tzinfo=UTC)
HELLO = "\n---\n".join(["say Hi there."] * 40)


def lines(*budgets: str, scope: str = "ada", now: datetime = NOW) -> list[BudgetLine]:
    return open_lines(scope, scope, budgets, now)


def dear_output(provider: str, model: str, usage: Usage) -> float:
    return usage.input * 0.0001 + usage.output


def cost(provider: str, model: str, usage: Usage) -> float:
    """A token of input costs a cent, output two, reads a tenth, writes two, and those for an hour three."""
    plain = usage.input - usage.cache_read - usage.cache_write
    writes = usage.cache_write * 0.02 + usage.cache_write_1h * 0.01
    return plain * 0.01 + usage.cache_read * 0.001 + writes + usage.output * 0.02


# -------------------------------------------------------------------------------------------------------------- texts


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("50/fortnight", "'fortnight' is not a period of a budget; expected day, week, month or total"),
        ("-5/day", "can't be negative"),
        ("$50/month", "'$50' is not an amount of dollars"),
        ("50EUR/month", "'50EUR' is not an amount of dollars"),
        ("50", "is not a budget: write an amount of dollars and a period"),
        ("0/day", "must be above 0"),
        ("1e9/day", "is not an amount"),
        ("/month", "is not an amount"),
    ],
)
def test_bad_budgets_are_a_sentence(text: str, expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:

    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(ValueError, match=r"budget|period|amount") as raised:
        parse_budget(text)
    assert expected in str(raised.value)
    config = tmp_path / ".config" / "segue" / "config.toml"
    config.parent.mkdir(parents=True)
    config.write_text(f'[gateway.groups.backend]\nbudgets = ["{text}"]\n')
    with pytest.raises(InputError) as refused:
        load_settings()
    assert expected in str(refused.value)


def test_bad_options_of_a_key_are_one_line(tmp_path: Path) -> None:
    folder = tmp_path / "config" / "segue"
    folder.mkdir(parents=True)
    (folder / "config.toml").write_text("[gateway.groups.backend]\nconcurrent = 9\n")
    names = {"HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path / "config")}
    for options in (
        ("--budget", "50/fortnight"),
        "--budget=-5/day",
        ("--budget", "$50/month"),
        ("--group", "backend", "--group", "other"),
        ("--group", "nobody"),
    ):
        given = (options,) if isinstance(options, str) else options
        assert is_one_line_error(run("keys", "client", "add", "ada", *given, **names))
    made = run("keys", "client", "add", "ada", "--group", "backend", "--budget", "50/month", **names)
    assert made.code == 0, made.err
    assert run("keys", "client", "list", **names).out == b"ada: $50.00 a month, group backend\n"
    # A version before budgets reads a file without them.
    assert b"concurrent" not in (folder / "client-keys.json").read_bytes()


@pytest.mark.parametrize(
    ("text", "key", "ends"),
    [
        ("5/day", "ada|day|2026-11-18", datetime(2026, 11, 19, tzinfo=UTC)),
        ("5/week", "ada|week|2026-11-16", datetime(2026, 11, 23, tzinfo=UTC)),
        ("5/month", "ada|month|2026-11-01", datetime(2026, 12, 1, tzinfo=UTC)),
        ("5.5/total", "ada|total", None),
    ],
)
def test_periods_are_those_of_utc(text: str, key: str, ends: datetime | None) -> None:
    [line] = lines(text)
    assert (line.key, line.ends) == (key, None if ends is None else ends.timestamp())


def test_bounds_of_requests() -> None:
    picture = json.dumps({"image_url": "data:image/png;base64," + "A" * 400_000, "text": "x" * 3000 + " "}).encode()
    assert bound_input(picture) < 8000
    assert bound_input(b"x " * 3000) == 2600
    assert estimate_input(b"x " * 3000) == 1500
    assert bound_output(b"{}", 7) == 7
    assert bound_output(b'{"max_tokens": 5, "max_completion_tokens": 9, "n": 3}', 7) == 27
    assert bound_output(b'{"generationConfig": {"maxOutputTokens": 4, "candidateCount": 2}}', 7) == 8
    assert bound_output(b'{"inferenceConfig": {"maxTokens": 3}, "tools": {"max_tokens": 1}}', 7) == 3


def test_input_is_reserved_at_its_dearest_price() -> None:
    from segue.bridge.providers import resolve

    spending, endpoint = Spending(cost), resolve("anthropic/claude-sonnet-5", {"ANTHROPIC_API_KEY": "k"})
    plain, marked = b'{"max_tokens": 0, "x": ""}', b'{"max_tokens": 1, "cache_control": 1}'
    assert spending.bound(endpoint, plain, 0) == round(cost("", "", Usage(608, endpoint.max_output or 0)) * NANO)
    assert spending.bound(endpoint, marked, 0) == round(cost("", "", Usage(612, 1, 0, 612)) * NANO)
    assert spending.bound(endpoint, marked, 600) == round(cost("", "", Usage(612, 1, 600, 12)) * NANO)
    hour = b'{"max_tokens": 1, "cache_control": {"ttl": "1h"}}'
    assert bound_written(hour, 9) == (9, 9)
    assert spending.bound(endpoint, hour, 0) == round(cost("", "", Usage(616, 1, 0, 616, 0, 616)) * NANO)
    assert Spending(lambda *_: None).bound(endpoint, plain, 0) is None
    assert Spending(lambda *_: None, 1_000_000).bound(endpoint, marked, 0) == 613 * NANO


# -------------------------------------------------------------------------------------------------------------- store


@pytest.fixture
def store(place: str) -> Generator[EntryStore]:
    opened = open_entries(place)
    yield opened
    opened.close()


def test_reservation_fits_all_budgets_or_none(store: EntryStore) -> None:
    both = [*lines("10/month"), *lines("6/day", scope="group:backend")]
    assert store.reserve("1", both, 5 * NANO) == (True, [BudgetState(0, 5 * NANO)] * 2)
    assert store.reserve("2", both, 2 * NANO) == (False, [BudgetState(0, 5 * NANO)] * 2)
    assert store.settle("1", both, 5 * NANO, 3 * NANO) == [BudgetState(3 * NANO, 0)] * 2
    assert store.reserve("2", both, 3 * NANO)[0]
    # A request can reserve more, and is settled once.
    assert store.reserve("2", [both[0]], 1 * NANO)[0]
    assert store.settle("2", [both[0]], 4 * NANO, 1 * NANO) == [BudgetState(4 * NANO, 0)]
    assert store.reserve("3", lines("10/month"), 7 * NANO)[0] is False
    assert store.reserve("4", lines("9/total", scope="new"), 10 * NANO) == (False, [BudgetState()])


# The tables and statements of the version before budgets.
EARLIER_TABLES = (
    "CREATE TABLE {0}entries (key TEXT PRIMARY KEY, value {1} NOT NULL, size BIGINT NOT NULL, used {2} NOT NULL)",
    (
        "CREATE TABLE {0}uses (id TEXT PRIMARY KEY, client TEXT NOT NULL, started {2} NOT NULL, lease {2} NOT NULL, "
        "ended {2} NOT NULL, tokens BIGINT NOT NULL)"
    ),
)
EARLIER_BEGIN = (
    "INSERT INTO {0}uses (id, client, started, lease, ended, tokens) VALUES ('old', 'ada', {3}, {3} + 30, 0, 0)"
)
EARLIER_END = "UPDATE {0}uses SET lease = 0, ended = {3}, tokens = 7 WHERE id = 'old'"
EARLIER_PRUNE = "DELETE FROM {0}uses WHERE client = 'ada' AND started <= {3} AND ended <= {3} AND lease <= {3}"


def test_an_earlier_version_uses_the_store_beside_this_one(place: str) -> None:
    if place.startswith("postgresql"):
        server: Any = psycopg.connect(place, autocommit=True)
        server.execute("CREATE SCHEMA segue_gateway")
        words = ("segue_gateway.", "bytea", "double precision", "extract(epoch FROM clock_timestamp())::float")
    else:
        Path(place).parent.mkdir(mode=0o700)
        server = sqlite3.connect(place, isolation_level=None)
        Path(place).chmod(0o600)
        server.execute(f"PRAGMA application_id = {0x53454745}")
        server.execute("PRAGMA user_version = 2")
        words = ("", "BLOB", "REAL", str(time.time()))
    with closing(server):
        for statement in EARLIER_TABLES:
            server.execute(statement.format(*words))
        store = open_entries(place)
        budget = lines("10/month")
        server.execute(EARLIER_BEGIN.format(*words))
        seen: list[int] = []
        assert store.begin_use(["ada"], "new", lambda _, counts: seen.append(counts.open)) is None
        assert store.reserve("new", budget, NANO)[0]
        server.execute(EARLIER_PRUNE.format(*words))
        server.execute(EARLIER_END.format(*words))
        assert store.begin_use(["ada"], "newer", lambda _, counts: seen.append(counts.tokens)) is None
        assert seen == [1, 7]
        assert store.settle("new", budget, NANO, NANO) == [BudgetState(NANO, 0)]
        store.close()


def test_reservation_of_a_killed_process_counts_as_spent(tmp_path: Path) -> None:
    now = [1000.0]
    store = SqliteEntries(tmp_path / "entries.db", clock=lambda: now[0])
    budget = lines("10/month")
    store.reserve("killed", budget, 4 * NANO)
    store.reserve("open", budget, 1 * NANO)
    now[0] += LEASE / 2
    store.renew_uses(["open"])
    now[0] += LEASE / 2 + 1
    assert store.read_budgets(budget) == [BudgetState(4 * NANO, 1 * NANO)]
    # Its process was only slow.
    assert store.settle("killed", budget, 4 * NANO, 1 * NANO) == [BudgetState(1 * NANO, 1 * NANO)]
    store.close()


RESERVER = """
import sys
from datetime import UTC, datetime
from segue.gateway.budgets import NANO, open_lines
from segue.gateway.shared_entries import open_entries

where, number = sys.argv[1:]
now = datetime(2026, 11, 18, tzinfo=UTC)
store = open_entries(where)
budget = [*open_lines("ada", "", ["10/month"], now), *open_lines("group:backend", "", ["8/month"], now)]
for index in range(20):
    use = f"{number}-{index}"
    if store.reserve(use, budget, NANO // 2)[0]:
        print(index)
        if index % 3 == 0:
            store.settle(use, budget, NANO // 2, NANO // 2)
store.close()
"""


def test_no_reservation_exceeds_a_budget_in_parallel_processes(place: str) -> None:
    command = [sys.executable, "-c", RESERVER, place]
    processes = [subprocess.Popen([*command, str(number)], stdout=subprocess.PIPE) for number in range(3)]
    admitted = [process.communicate(timeout=100)[0].split() for process in processes]
    assert [process.returncode for process in processes] == [0, 0, 0]
    assert sum(map(len, admitted)) == 16
    store = open_entries(place)
    states = store.read_budgets([*lines("10/month"), *lines("8/month", scope="group:backend")])
    store.close()
    assert [state.spent + state.held for state in states] == [8 * NANO] * 2


class Flaky:
    """A store that can be away."""

    def __init__(self, real: EntryStore, is_away: list[bool]) -> None:
        self._real = real
        self._is_away = is_away

    def __getattr__(self, name: str) -> Any:
        if self._is_away[0]:
            raise StoreError("gone", cause="lost")
        return getattr(self._real, name)


def test_budgets_go_on_while_the_store_is_away(tmp_path: Path) -> None:
    real, is_away = SqliteEntries(tmp_path / "entries.db"), [False]

    def open_flaky() -> Any:
        return Flaky(real, is_away)

    client = Scope("ada", "ada", ClientKey("ada", hash_key("x"), budgets=("10/month",)))
    unseen = Scope("eve", "eve", ClientKey("eve", hash_key("x"), budgets=("10/month",)))

    async def run() -> None:
        entries = SharedEntries(open_flaky, Metrics(), lambda _: None, pause=0)
        limits = SharedLimits(entries, now=lambda: NOW)

        async def ask(scope: Scope, amount: int, spent: int) -> Denied | None:
            admission = await limits.admit(scope.key, "", [scope])
            assert isinstance(admission, Admission)
            async with admission:
                denial = await admission.reserve(amount * NANO)
                admission.cost = 0 if denial else spent * NANO
            return denial

        assert await ask(client, 4, 3) is None
        is_away[0] = True
        assert await ask(client, 6, 5) is None
        refused = await ask(client, 3, 3)
        assert refused is not None
        assert refused.kind == "no-credit" or refused.kind == "rate-limited"
        unread = await ask(unseen, 1, 1)
        assert unread is not None
        assert (unread.status, unread.reason) == (503, "store")
        is_away[0] = False
        while entries.is_failing:
            await asyncio.sleep(0.001)
        assert await ask(client, 3, 1) is not None
        assert await ask(client, 1, 1) is None
        await limits.close()

    asyncio.run(run())
    assert real.read_budgets(lines("10/month")) == [BudgetState(9 * NANO, 0)]
    real.close()


# ------------------------------------------------------------------------------------------------------------ gateway


def gateway_with_budget(
    tmp_path: Path, *budgets: str, script: str = HELLO, apis: tuple[str, ...] = ("anthropic",), **options: Any
) -> Any:
    clients = (ClientKey("ada", hash_key("key-ada"), group="backend", budgets=budgets),)
    groups = {"backend": GroupSettings(budgets=("1000/month",))}
    settings: dict[str, Any] = {"store": str(tmp_path / "store.db"), "clients": clients, "groups": groups, "cost": cost}
    return running_gateway(dict.fromkeys(apis, script), **{**settings, **options})


def own_state(gateway: Running) -> dict[str, Any]:
    response = get(gateway, "/v1/key", **{"x-api-key": "key-ada"})
    assert response.status_code == 200, response.text
    return {row["of"]: row for row in response.json()["budgets"]}


def wait_until_settled(gateway: Running) -> dict[str, Any]:

    wait_until(lambda: all(row["reserved"] == 0 for row in own_state(gateway).values()))
    return own_state(gateway)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("surface", SURFACES)
def test_every_api_settles_what_it_used(surface: str, stream: bool, tmp_path: Path) -> None:
    path, body = SURFACES[surface]
    if stream and surface in ("chat", "responses", "messages"):
        body = {**body, "stream": True}
    elif stream:
        path = path.replace("generateContent", "streamGenerateContent").replace("converse", "converse-stream")
    usage = tmp_path / "usage.jsonl"
    with gateway_with_budget(
        tmp_path, "5000/day", usage=str(usage), groups={"backend": GroupSettings(budgets=("9000/day",))}
    ) as gateway:
        assert post(gateway, path, body, **{"x-api-key": "key-ada"}).status_code == 200
        gateway.wait_for_log("POST")
        rows = wait_until_settled(gateway)
        line = json.loads(usage.read_text())
        expected = line["input"] * 0.01 + line["output"] * 0.02
        assert line["input"]
        assert line["cost"] == pytest.approx(expected)
        assert (line["client"], line["group"]) == ("ada", "backend")
        assert rows["ada"]["spent"] == rows["the group backend"]["spent"] == pytest.approx(expected)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("api", ["anthropic", "bedrock"])
def test_cache_writes_for_an_hour_have_their_price(api: str, stream: bool, tmp_path: Path) -> None:
    first, second = "word " * 9000, "more " * 9000
    if api == "bedrock":
        path = f"/model/any/converse{'-stream' * stream}"
        points = [{"cachePoint": {"type": "default", "ttl": ttl}} for ttl in ("1h", "5m")]
        content: list[Any] = [{"text": first}, points[0], {"text": second}, points[1]]
        body = {"messages": [{"role": "user", "content": content}], "inferenceConfig": {"maxTokens": 9}}
    else:
        path = "/v1/messages"
        markers = [{"type": "ephemeral", "ttl": ttl} for ttl in ("1h", "5m")]
        texts = zip((first, second), markers, strict=True)
        content = [{"type": "text", "text": text, "cache_control": marker} for text, marker in texts]
        body = {"max_tokens": 9, "model": "any", "stream": stream, "messages": [{"role": "user", "content": content}]}
    usage = tmp_path / "usage.jsonl"
    with gateway_with_budget(tmp_path, "9000/day", apis=(api,), usage=str(usage)) as gateway:
        reply = post(gateway, path, body, **{"x-api-key": "key-ada"})
        assert reply.status_code == 200
        wait_until_settled(gateway)
        line = json.loads(usage.read_text())
        found = re.findall(rb'(?:"ephemeral_1h_input_tokens":|"ttl": ?"1h", ?"inputTokens":) ?(\d+)', reply.content)
        hours = [int(number) for number in found]
        assert hours
        assert 0 < hours[-1] < line["cache_write"]
        expected = Usage(line["input"], line["output"], 0, line["cache_write"], 0, hours[-1])
        assert line["cost"] == pytest.approx(cost("", "", expected))


@pytest.mark.parametrize(
    ("spent", "amount", "text"),
    [
        (10, 1, "the budget of ada, $10.00 a day, is used up: $10.00 are spent, and this request can cost up to $1.00"),
        (12, 1, "the budget of ada, $10.00 a day, is used up: $12.00 are spent, and this request can cost up to $1.00"),
        (8, 3, "has $2.00 left, and this request can cost up to $3.00; one with a smaller max_tokens may fit"),
        (0, 11, "this request can cost up to $11.00, more than the budget of ada, $10.00 a day; one with a smaller"),
    ],
)
def test_a_budget_is_used_up_only_if_nothing_is_left(spent: int, amount: int, text: str) -> None:
    denied = describe_denial("ada", lines("10/day"), [BudgetState(spent * NANO)], amount * NANO)
    assert (text in denied.message, denied.kind) == (True, "no-credit")
    assert ("may fit" in denied.message) == (spent < 10)


def test_a_budget_that_is_not_enough_is_told_with_its_layer_and_reset(tmp_path: Path) -> None:
    """The SDKs send one request."""
    messages: list[Any] = CHAT["messages"]
    with gateway_with_budget(tmp_path, "14/day", cost=dear_output) as gateway:
        claude = anthropic.Anthropic(api_key="key-ada", base_url=gateway.url)
        claude.messages.create(model="any", max_tokens=12, messages=messages)
        spent = wait_until_settled(gateway)["ada"]["spent"]
        assert 1 < spent < 14
        client = openai.OpenAI(api_key="key-ada", base_url=f"{gateway.url}/v1")
        with pytest.raises(openai.APIStatusError) as refused:
            client.chat.completions.create(model="any", messages=messages, max_tokens=12)
        assert (refused.value.status_code, refused.value.code) == (402, "insufficient_quota")
        text = f"the budget of ada, $14.00 a day, has ${14 - spent:.2f} left, and this request can cost up to $"
        assert text in str(refused.value)
        assert "; one with a smaller max_tokens may fit; it is reset at" in str(refused.value)
        with pytest.raises(anthropic.APIStatusError) as paid:
            claude.messages.create(model="any", max_tokens=12, messages=messages)
        assert (paid.value.status_code, paid.value.response.headers["x-should-retry"]) == (402, "false")
        for stream in (False, True):
            with pytest.raises(openai.APIStatusError, match="may fit"):
                client.responses.create(model="any", input="x", max_output_tokens=12, stream=stream)
        body = {"model": "any", "input": "x", "stream": True, "max_output_tokens": 12}
        events = post(gateway, "/v1/responses", body, **{"x-api-key": "key-ada", "user-agent": "codex_exec/0.169.0"})
        assert "response.failed" in events.text
        assert "may fit" in events.text
        wait_until(lambda: gateway.log.count("may fit") == 5)
        metrics = get(gateway, "/metrics", authorization=f"Bearer {gateway.token}").text
        assert 'segue_rejected_total{client="ada",group="backend",reason="budget"} 5' in metrics
        whole = post(gateway, "/v1/messages", {**CHAT, "max_tokens": 100}, **{"x-api-key": "key-ada"})
        assert "more than the budget of ada, $14.00 a day" in whole.text
        assert len(gateway.emulators["anthropic"].requests) == 1


def test_open_reservations_are_told_with_a_wait(tmp_path: Path) -> None:
    script = "say One.\nwait 1000\nsay Two.\n---\n" + HELLO
    body = {**CHAT, "max_tokens": 100, "stream": True}
    with gateway_with_budget(tmp_path, "25/day", script=script) as gateway:
        headers = {"x-api-key": "key-ada"}
        with httpx2.stream("POST", f"{gateway.url}/v1/chat/completions", json=body, headers=headers) as response:
            chunks = response.iter_bytes()
            next(chunks)
            refused = post(gateway, "/v1/chat/completions", body, **headers)
            assert refused.status_code == 429
            assert refused.headers["retry-after"] == "5"
            assert "has not enough left for now" in refused.text
            assert own_state(gateway)["ada"]["reserved"] > 0
        # The client has gone: what was written until then is settled.
        rows = wait_until_settled(gateway)
        assert 0 < rows["ada"]["spent"] < 5
        assert post(gateway, "/v1/chat/completions", {**body, "stream": False}, **headers).status_code == 200


def test_fallbacks_and_failures_settle_what_they_used(tmp_path: Path) -> None:
    options = {"emulator_options": None, "options_of": {"anthropic": {"faults": ["overloaded"]}}}
    target = (model_of("anthropic"), model_of("kimi"))
    usage = tmp_path / "usage.jsonl"
    with gateway_with_budget(
        tmp_path,
        "9000/day",
        apis=("anthropic", "kimi"),
        default=target,
        usage=str(usage),
        groups={"backend": GroupSettings()},
        **options,
    ) as gateway:
        assert post(gateway, "/v1/chat/completions", CHAT, **{"x-api-key": "key-ada"}).status_code == 200
        gateway.wait_for_log(model_of("kimi"))
        line = json.loads(usage.read_text())
        assert wait_until_settled(gateway)["ada"]["spent"] == pytest.approx(
            line["input"] * 0.01 + line["output"] * 0.02
        )


def test_summaries_settle_what_they_used(tmp_path: Path) -> None:
    body = {"model": "any", "input": [{"role": "user", "content": "Hello " * 100}]}
    usage = tmp_path / "usage.jsonl"
    with gateway_with_budget(tmp_path, "9000/day", usage=str(usage), groups={"backend": GroupSettings()}) as gateway:
        compacted = post(gateway, "/v1/responses/compact", body, **{"x-api-key": "key-ada"})
        assert compacted.status_code == 200, compacted.text
        gateway.wait_for_log("for a summary")
        line = json.loads(usage.read_text())
        assert line["summary"] == line["input"] + line["output"] > 0
        assert line["cost"] == pytest.approx(line["input"] * 0.01 + line["output"] * 0.02)
        assert wait_until_settled(gateway)["ada"]["spent"] == pytest.approx(line["cost"])


def test_model_without_a_price_is_refused_or_has_the_stated_one(tmp_path: Path) -> None:
    with gateway_with_budget(tmp_path, "50/day", cost=lambda *_: None) as gateway:
        refused = post(gateway, "/v1/chat/completions", CHAT, **{"x-api-key": "key-ada"})
        assert refused.status_code == 403
        assert f"no price is known for {model_of('anthropic')}" in refused.text
        gateway.wait_for_log("no price is known")
    with gateway_with_budget(tmp_path, "50/day", cost=lambda *_: None, unknown_price=10) as gateway:
        assert post(gateway, "/v1/chat/completions", CHAT, **{"x-api-key": "key-ada"}).status_code == 200
        assert wait_until_settled(gateway)["ada"]["spent"] > 0


def price_kimi_only(provider: str, model: str, usage: Usage) -> float | None:
    return cost(provider, model, usage) if provider == "test-kimi" else None


@pytest.mark.parametrize("balance", ["failover", "round-robin"])
def test_targets_without_a_price_are_left_out_for_clients_with_budgets(balance: Any, tmp_path: Path) -> None:
    unpriced, priced = model_of("anthropic"), model_of("kimi")
    body = {"model": "any", "input": [{"role": "user", "content": "Hello"}]}
    with gateway_with_budget(
        tmp_path,
        "9000/day",
        apis=("anthropic", "kimi"),
        routes=(
            RouteSettings((unpriced, priced), model="any", balance=balance),
            RouteSettings((unpriced,), model="unpriced"),
        ),
        clients=(
            ClientKey("ada", hash_key("key-ada"), budgets=("9000/day",)),
            ClientKey("bob", hash_key("key-bob"), group="backend"),
            ClientKey("eve", hash_key("key-eve")),
        ),
        cost=price_kimi_only,
    ) as gateway:

        def ask(client: str, path: str, request: dict[str, Any]) -> int:
            return post(gateway, path, request, **{"x-api-key": f"key-{client}"}).status_code

        for client in ("ada", "bob"):
            for _ in range(2):
                assert ask(client, "/v1/chat/completions", {**CHAT, "model": "any"}) == 200
                assert ask(client, "/v1/chat/completions", {**CHAT, "model": "any", "stream": True}) == 200
                assert ask(client, "/v1/responses/compact", body) == 200
            assert ask(client, "/v1/chat/completions", {**CHAT, "model": "unpriced"}) == 403
        assert not gateway.emulators["anthropic"].requests
        assert ask("eve", "/v1/chat/completions", {**CHAT, "model": "unpriced"}) == 200
        [warning] = gateway.server.warnings
        assert warning.startswith(f"clients with budgets can't use {unpriced}: no price is known")
        assert get(gateway, "/readyz").json()["status"] == "ready"
        assert gateway.log.count(warning) == 0
        gateway.server.reload()
        assert gateway.log.count(warning) == 1


@pytest.mark.parametrize("status", [200, 500])
def test_alert_at_80_percent_comes_once(status: int, tmp_path: Path) -> None:
    body = {**CHAT, "max_tokens": 6}
    with running_upstream(lambda handler: handler.reply(b"{}", status)) as hook:
        with gateway_with_budget(tmp_path, "30/day", cost=dear_output, budget_webhook=hook.url) as gateway:
            statuses = [
                post(gateway, "/v1/chat/completions", body, **{"x-api-key": "key-ada"}).status_code for _ in range(20)
            ]
            assert statuses[0] == 200
            assert statuses[-1] == 402
            assert gateway.log.count("of the budget of ada, $30.00 a day, are spent; it is reset at") == 1
            metrics = get(gateway, "/metrics", authorization=f"Bearer {gateway.token}").text
            assert 'segue_budget_alerts_total{budget="ada",period="day"} 1' in metrics
            wait_until(lambda: len(hook.requests) == 1)
            if status == 500:
                gateway.wait_for_log("the message to budget_webhook was not delivered: it answered with 500")
        message = json.loads(hook.requests[0].body)
        assert (message["budget"], message["limit"], message["period"]) == ("ada", 30, "day")
        assert message["spent"] >= 24


def test_passthrough_reserves_its_cost_and_settles_its_usage(tmp_path: Path) -> None:
    answers = [b'{"data": [], "model": "text-1", "usage": {"prompt_tokens": 7}}', b'{"data": []}']

    def answer(handler: Handler) -> None:
        handler.reply(answers.pop(0))

    with running_upstream(answer) as upstream:
        passthrough = (PassthroughSettings("/v1/embeddings", "test-anthropic", cost=0.5),)
        with gateway_with_budget(tmp_path, "0.8/day", passthrough=passthrough) as gateway:
            [route] = gateway.server._passthrough._routes
            from msgspec.structs import replace

            gateway.server._passthrough.replace(
                (replace(route, endpoint=replace(route.endpoint, base_url=upstream.url)),)
            )
            spent = []
            for _ in range(3):
                response = post(gateway, "/v1/embeddings", {"input": "x"}, **{"x-api-key": "key-ada"})
                spent.append((response.status_code, round(wait_until_settled(gateway)["ada"]["spent"], 2)))
            assert spent == [(200, 0.07), (200, 0.57), (402, 0.57)]


def test_budget_without_a_store_is_refused() -> None:
    clients = (ClientKey("ada", hash_key("key-ada"), budgets=("5/day",)),)
    with (
        pytest.raises(InputError, match="the client key ada has a budget, which needs a store"),
        running_gateway({"anthropic": HELLO}, clients=clients),
    ):
        pass


def test_key_in_an_unknown_group_is_refused() -> None:
    clients = (ClientKey("ada", hash_key("key-ada"), group="nobody"),)
    with running_gateway({"anthropic": HELLO}, clients=clients) as gateway:
        refused = post(gateway, "/v1/chat/completions", CHAT, **{"x-api-key": "key-ada"})
        assert refused.status_code == 403
        assert "in the group nobody" in refused.text


def test_limits_of_a_group_hold_for_its_clients_together(tmp_path: Path) -> None:
    clients = tuple(ClientKey(name, hash_key(f"key-{name}"), group="backend") for name in ("ada", "bob"))
    groups = {"backend": GroupSettings(requests_per_minute=3)}
    for store in ({}, {"store": str(tmp_path / "store.db")}):
        with running_gateway({"anthropic": HELLO}, clients=clients, groups=groups, **store) as gateway:
            keys = ("key-ada", "key-bob", "key-ada", "key-bob")
            found = [post(gateway, "/v1/chat/completions", CHAT, **{"x-api-key": key}) for key in keys]
            assert [response.status_code for response in found] == [200, 200, 200, 429]
            assert "the group backend has reached its limit of 3 requests a minute" in found[-1].text


def test_parallel_requests_at_the_limit(tmp_path: Path) -> None:
    """What is spent never exceeds the budget by more than the requests in flight cost beyond their reservation."""
    body = {**CHAT, "max_tokens": 6}
    with gateway_with_budget(tmp_path, "40/day", cost=dear_output) as gateway:

        def work() -> None:
            for _ in range(15):
                post(gateway, "/v1/chat/completions", body, **{"x-api-key": "key-ada"})

        threads = [threading.Thread(target=work) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        row = wait_until_settled(gateway)["ada"]
        assert 20 < row["spent"] <= 40


# ---------------------------------------------------------------------------------------------------------- processes

WAITING = "\n---\n".join(["say One.\nwait 1000\nsay Two."] * 40)
# Ten dollars a reply; the input costs nothing.
TEN_DOLLARS = {**CHAT, "max_tokens": 10, "stream": True}


@contextmanager
def gateways_with_budget(where: str, workers: str, folder: Path) -> Generator[tuple[list[GatewayProcess], str]]:
    """Run two gateways with one store, and a model whose output costs a dollar a token; `ada` has 35 dollars."""
    with start("anthropic", script=WAITING, patience=1000) as emulator:
        model = WIRES["anthropic"].default_model
        home = Home(folder / "home", emulator, model)
        prices = f'[prices."test/{model}"]\ninput = 0\noutput = 1_000_000\n'
        home.config.write_text(home.config.read_text() + prices)
        key = home.run("keys", "client", "add", "ada", "--budget", "35/total").stdout.strip()
        with home.serve_several(2, "--store", where, "--workers", workers) as gateways:
            yield gateways, key


def read_budget(url: str, key: str) -> dict[str, Any]:
    return httpx2.get(f"{url}/v1/key", headers={"x-api-key": key}, timeout=100).json()["budgets"][0]


def test_no_process_admits_what_does_not_fit(place: str, tmp_path: Path) -> None:
    with gateways_with_budget(place, "2", tmp_path) as (gateways, key), httpx2.Client(timeout=100) as client:
        barrier, lock, statuses = threading.Barrier(12), threading.Lock(), list[int]()
        is_over = threading.Event()

        def send(url: str) -> None:
            barrier.wait()
            path, headers = f"{url}/v1/chat/completions", {"x-api-key": key}
            with client.stream("POST", path, json=TEN_DOLLARS, headers=headers) as response:
                with lock:
                    statuses.append(response.status_code)
                if response.status_code == 200:
                    is_over.wait(100)

        threads = [threading.Thread(target=send, args=(gateways[index % 2].url,)) for index in range(12)]
        for thread in threads:
            thread.start()
        wait_until(lambda: len(statuses) == 12)
        assert sorted(statuses) == [200] * 3 + [429] * 9
        assert read_budget(gateways[0].url, key)["reserved"] == 30
        is_over.set()
        for thread in threads:
            thread.join()


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_killed_process_leaves_its_reservation_until_its_lease_ends(place: str, workers: str, tmp_path: Path) -> None:
    with gateways_with_budget(place, workers, tmp_path) as ((killed, other), key):
        headers = {"x-api-key": key}
        for whole in (False, True):
            before = read_budget(other.url, key)["reserved"]
            body = {**TEN_DOLLARS, "stream": not whole}
            sending = threading.Thread(target=send_and_lose, args=(killed.url, body, headers))
            sending.start()
            wait_until(lambda before=before: read_budget(other.url, key)["reserved"] == before + 10)
            if whole:
                processes = killed.workers() if workers == "2" else [killed.process.pid]
                for number in processes:
                    os.kill(number, signal.SIGKILL)
        found = read_budget(other.url, key)
        assert (found["spent"], found["reserved"], found["remaining"]) == (0, 20, 15)
        end_leases(place)
        found = read_budget(other.url, key)
        assert (found["spent"], found["reserved"], found["remaining"]) == (20, 0, 15)
        if workers == "2":
            # The others took their place.
            wait_until(lambda: httpx2.get(f"{killed.url}/healthz", timeout=100).status_code == 200)
            assert read_budget(killed.url, key)["spent"] == 20


def send_and_lose(url: str, body: dict[str, Any], headers: dict[str, str]) -> None:
    with (
        suppress(httpx2.HTTPError),
        httpx2.stream("POST", f"{url}/v1/chat/completions", json=body, headers=headers, timeout=100) as response,
    ):
        for _ in response.iter_bytes():
            pass


def end_leases(place: str) -> None:
    """Let the leases end of requests whose process was killed: as after half a minute."""
    if place.startswith("postgresql"):
        with psycopg.connect(place, autocommit=True) as server:
            server.execute("UPDATE segue_gateway.uses SET lease = 1")
    else:
        with closing(sqlite3.connect(place)) as file:
            file.execute("UPDATE uses SET lease = 1")
            file.commit()


def test_requests_are_settled_while_the_store_is_away(tmp_path: Path) -> None:
    """Each counts with what it cost, not with what it had reserved."""
    real, is_away = SqliteEntries(tmp_path / "entries.db"), [False]

    client = Scope("ada", "ada", ClientKey("ada", hash_key("x"), budgets=("10/month",)))

    async def run() -> None:
        opened: Any = Flaky(real, is_away)
        limits = SharedLimits(SharedEntries(lambda: opened, Metrics(), lambda _: None, pause=100), now=lambda: NOW)
        for number in range(4):
            admission = await limits.admit("ada", "", [client])
            assert isinstance(admission, Admission)
            async with admission:
                assert await admission.reserve(6 * NANO) is None
                # The store goes away while the first request is open.
                is_away[0] = True
                admission.cost = NANO
            [state] = await limits.describe_budgets([client])
            assert (state["spent"], state["reserved"]) == (number + 1, 0)

    asyncio.run(run())
    real.close()


def test_one_request_after_the_other_is_not_refused_for_the_last_one(tmp_path: Path) -> None:
    """The end of a client's last request may still be on its way to the store."""
    store = SqliteEntries(tmp_path / "entries.db")
    client = Scope("ada", "ada", ClientKey("ada", hash_key("x"), budgets=("10/month",)))

    async def run() -> None:
        limits = SharedLimits(SharedEntries(lambda: store, Metrics(), lambda _: None), now=lambda: NOW)
        first, second = [await limits.admit("ada", "", [client]) for _ in range(2)]
        assert isinstance(first, Admission)
        assert isinstance(second, Admission)
        assert await first.reserve(6 * NANO) is None
        waiting = asyncio.create_task(second.reserve(6 * NANO))
        await asyncio.sleep(0)
        await limits.end(first)
        assert await waiting is None
        await limits.end(second)
        await limits.close()

    asyncio.run(run())
