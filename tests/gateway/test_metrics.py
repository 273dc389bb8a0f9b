"""Metrics of a gateway, read by the parser of Prometheus' own client."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path

import msgspec
from prometheus_client.parser import text_string_to_metric_families

from segue.gateway.metrics import HELP, Metrics, MetricsSnapshot
from segue.gateway.request_log import RequestRecord
from tests.gateway.harness import Running, model_of
from tests.gateway.test_budgets import gateway_with_budget, wait_until_settled
from tests.gateway.test_gateway import CHAT, get, post
from tests.gateway.test_hostile_clients import connecting, wait_until

KEY = {"x-api-key": "key-ada"}


def parse(text: str) -> dict[str, dict[tuple[tuple[str, str], ...], float]]:
    """Return the value of each series by its labels."""
    found: dict[str, dict[tuple[tuple[str, str], ...], float]] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            found.setdefault(sample.name, {})[tuple(sorted(sample.labels.items()))] = sample.value
    return found


def scrape(gateway: Running) -> dict[str, dict[tuple[tuple[str, str], ...], float]]:
    return parse(get(gateway, "/metrics", authorization=f"Bearer {gateway.token}").text)


def test_a_served_request_is_in_all_metrics(tmp_path: Path) -> None:
    with gateway_with_budget(tmp_path, "5000/day") as gateway:
        assert post(gateway, "/v1/chat/completions", {**CHAT, "stream": True}, **KEY).status_code == 200
        spent = wait_until_settled(gateway)["ada"]["spent"]
        wait_until(lambda: "segue_cost_total" in scrape(gateway))
        metrics = scrape(gateway)
        who, target = (("client", "ada"), ("group", "backend")), ("target", model_of("anthropic"))
        assert metrics["segue_cost_total"] == {(*who, target): spent}
        labels = (("api", "openai-chat"), *who, ("route", "default"), ("status", "200"), target)
        assert metrics["segue_requests_total"][labels] == 1
        assert metrics["segue_tokens_total"][(*who, ("kind", "output"), target)] > 0
        assert metrics["segue_first_token_seconds_count"] == {(target,): 1}
        assert metrics["segue_request_seconds_count"][(target,)] == 1
        assert metrics["segue_overhead_seconds_count"] == {(): 1}
        assert metrics["segue_overhead_seconds_sum"][()] <= metrics["segue_request_seconds_sum"][(target,)]
        assert metrics["segue_target_paused"] == {(target,): 0}
        assert metrics["segue_budget_remaining"][("budget", "ada"), ("period", "day")] == 5000 - spent


def test_names_are_escaped_and_processes_add_up() -> None:
    odd = 'a "b" \\ c\nd'
    first, second = Metrics(), Metrics()
    for metrics in (first, second):
        metrics.add_request(RequestRecord("id", "POST", "/", route=odd, target="t", status=200, seconds=2.0, cost=0.25))
    first.set_gauge("segue_budget_remaining", 9.0, budget="ada", period="day")
    second.set_gauge("segue_budget_remaining", 5.0, budget="ada", period="day")
    total = Metrics()
    for metrics in (second, first):
        total.add(msgspec.json.decode(msgspec.json.encode(metrics.snapshot()), type=MetricsSnapshot))
    found = parse(total.render())
    [(labels, value)] = found["segue_requests_total"].items()
    assert (dict(labels)["route"], value) == (odd, 2)
    assert found["segue_cost_total"] == {(("target", "t"),): 0.5}
    assert found["segue_request_seconds_bucket"][("le", "2.5"), ("target", "t")] == 2
    assert found["segue_request_seconds_bucket"][("le", "1.0"), ("target", "t")] == 0
    # That of the process that set it last.
    assert found["segue_budget_remaining"] == {(("budget", "ada"), ("period", "day")): 5}


def test_board_has_only_metrics_that_exist() -> None:
    board = json.loads((Path(__file__).parents[2] / "docs" / "grafana.json").read_text())
    expressions = [target["expr"] for panel in board["panels"] for target in panel["targets"]]
    named = {name for text in expressions for name in re.findall(r"segue_\w+", text)}
    known = {name for name, (kind, _) in HELP.items() if kind != "histogram"}
    known |= {f"{name}_bucket" for name, (kind, _) in HELP.items() if kind == "histogram"}
    assert named <= known
    assert len(board["panels"]) == 12


HEAD = "POST {path} HTTP/1.1\r\nhost: {host}\r\n{more}\r\n"
REJECTED = {
    "request line": (b"GET\r\n\r\n", 400, "http"),
    "no host": (b"GET / HTTP/1.1\r\n\r\n", 400, "http"),
    "two lengths": (HEAD.format(path="/", host="x", more="content-length: 1\r\n" * 2).encode(), 400, "http"),
    "version": (b"GET / HTTP/3.0\r\nhost: localhost\r\n\r\n", 505, "http"),
    "method": (b"GETT / HTTP/1.1\r\nhost: localhost\r\n\r\n", 501, "http"),
    "large head": (
        HEAD.format(path="/", host="localhost", more=f"a: {'b' * 70_000}\r\n").encode(),
        431,
        "head-too-large",
    ),
    "host": (HEAD.format(path="/v1/messages", host="evil.example", more="").encode(), 421, "host"),
    "origin": (
        HEAD.format(path="/v1/messages", host="localhost", more="origin: http://evil\r\n").encode(),
        403,
        "origin",
    ),
    "path": (HEAD.format(path=f"/{'a' * 3000}", host="localhost", more="").encode(), 414, "path"),
    "large body": (
        HEAD.format(
            path="/v1/messages", host="localhost", more="x-api-key: key-ada\r\ncontent-length: 99999999\r\n"
        ).encode(),
        413,
        "too-large",
    ),
    "encoding": (
        HEAD.format(
            path="/v1/messages",
            host="localhost",
            more="x-api-key: key-ada\r\ncontent-encoding: br\r\ncontent-length: 1\r\n",
        ).encode()
        + b"x",
        415,
        "invalid",
    ),
    "websocket": (
        HEAD.format(
            path="/v1/responses", host="localhost", more="upgrade: websocket\r\nconnection: upgrade\r\n"
        ).encode(),
        426,
        "websocket",
    ),
    "metrics": (b"GET /metrics HTTP/1.1\r\nhost: localhost\r\n\r\n", 401, "client-key"),
    "control": (HEAD.format(path="/segue/route", host="localhost", more="").encode(), 401, "client-key"),
    "key": (
        HEAD.format(path="/v1/messages", host="localhost", more="x-api-key: other\r\n").encode(),
        401,
        "client-key",
    ),
    "unknown path": (
        HEAD.format(path="/v9", host="localhost", more="x-api-key: key-ada\r\n").encode(),
        404,
        "unknown-path",
    ),
    "not JSON": (
        HEAD.format(path="/v1/messages", host="localhost", more="x-api-key: key-ada\r\ncontent-length: 1\r\n").encode()
        + b"x",
        400,
        "invalid",
    ),
}


def test_every_rejected_request_is_counted_and_logged_with_its_reason(tmp_path: Path) -> None:
    with gateway_with_budget(tmp_path, "5000/day") as gateway:
        for sent, status, _ in REJECTED.values():
            with connecting(gateway) as connection:
                connection.sendall(sent)
                assert connection.recv(1000).split(b" ")[1] == str(status).encode()
        wait_until(lambda: gateway.log.count("\n") >= len(REJECTED))
        metrics = scrape(gateway)
        counted = Counter[tuple[str, str]]()
        for labels, value in metrics["segue_requests_total"].items():
            counted["status", dict(labels)["status"]] += int(value)
        for labels, value in metrics["segue_rejected_total"].items():
            counted["reason", dict(labels)["reason"]] += int(value)
        expected = Counter[tuple[str, str]]()
        for _, status, reason in REJECTED.values():
            expected.update([("status", str(status)), ("reason", reason)])
        assert counted == expected
        assert all(re.search(r"; \d+; \d+\.\d\d s; \S", line) for line in gateway.log.splitlines()), gateway.log
        assert "; - -; 431; 0.00 s; the request line and headers have more than" in gateway.log
