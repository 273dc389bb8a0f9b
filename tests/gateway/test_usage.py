"""`segue usage`: totals of the JSON lines that a gateway appends."""

from __future__ import annotations

import json
import os
import re
from io import FileIO
from pathlib import Path
from typing import Any

import httpx2
import pytest

from segue import private_files
from segue.gateway.routes import RouteSettings
from segue.gateway.usage import read_usage
from tests.cli.process import is_one_line_error, run
from tests.gateway.harness import model_of, running_gateway

PRICES = '[prices."test/a"]\ninput = 1.0\noutput = 2.0\ncache_read = 0.5\n'


def line(**fields: object) -> str:
    return json.dumps({"route": "main", "target": "test/a", "status": 200, **fields}) + "\n"


def variables(folder: Path) -> dict[str, str]:
    return {"HOME": str(folder), "XDG_CONFIG_HOME": str(folder / "config")}


def write_config(folder: Path, text: str) -> None:
    file = folder / "config" / "segue" / "config.toml"
    file.parent.mkdir(parents=True)
    file.write_text(text)


def test_totals_by_route_and_model(tmp_path: Path) -> None:
    write_config(tmp_path, PRICES)
    file = tmp_path / "usage.jsonl"
    file.write_text(
        line(input=1_000_000, output=500_000, cache_read=400_000)
        + line(input=10, output=5)
        + line(target="test/b", input=7, output=3)
        + line(route="other", status=529, error="overloaded")
        + line(status=499, error="the client closed the connection")
        + line(error="the stream broke", input=1)
    )
    report = run("usage", str(file), "--json", **variables(tmp_path)).json
    assert report["bad_lines"] == 0
    first, second, other = report["totals"]
    assert (first["route"], first["model"], first["requests"], first["errors"]) == ("main", "test/a", 4, 1)
    assert (first["input"], first["cache_read"], first["output"]) == (1_000_011, 400_000, 500_005)
    assert first["cost"] == pytest.approx(0.6 + 0.2 + 1.0 + 0.000_021)
    assert (second["model"], second["cost"]) == ("test/b", None)
    assert (other["route"], other["requests"], other["errors"], other["cost"]) == ("other", 1, 1, None)
    printed = run("usage", str(file), **variables(tmp_path)).lines
    assert printed[-1].split() == ["total", "6", "2", "1,000,018", "400,000", "500,008", "≥", "$1.80"]


def test_bad_lines_are_counted(tmp_path: Path) -> None:
    file = tmp_path / "usage.jsonl"
    bad = ["{", "[]", '{"route": "x"}', line(input=-1).strip(), line(target=5).strip(), "\x00", '{"route": "ma']
    file.write_text("\n".join([line(input=1).strip(), "", *bad]))
    ended = run("usage", str(file), **variables(tmp_path))
    assert (ended.code, ended.err) == (0, "segue: left out 7 lines that can't be read\n")
    assert ended.lines[1].split()[:3] == ["main", "test/a", "1"]


def test_names_of_clients_do_not_change_the_terminal(tmp_path: Path) -> None:
    file = tmp_path / "usage.jsonl"
    file.write_text(line(target="test/\x1b[31m\nred", input=1))
    assert b"\x1b" not in run("usage", str(file), **variables(tmp_path)).out


def test_configured_file_and_missing_files(tmp_path: Path) -> None:
    assert is_one_line_error(run("usage", **variables(tmp_path)))
    assert is_one_line_error(run("usage", str(tmp_path / "missing"), **variables(tmp_path)))
    assert is_one_line_error(run("usage", str(tmp_path), **variables(tmp_path)))
    write_config(tmp_path, '[gateway]\nusage = "~/usage.jsonl"\n')
    missing = run("usage", **variables(tmp_path))
    assert is_one_line_error(missing)
    assert "usage.jsonl" in missing.err
    (tmp_path / "usage.jsonl").write_text("")
    assert run("usage", **variables(tmp_path)).out == b"no requests\n"


def test_a_gateway_writes_what_is_read(tmp_path: Path) -> None:
    file = tmp_path / "new" / "usage.jsonl"
    routes = (RouteSettings((model_of("anthropic"), model_of("kimi")), model="both", attempts=1),)
    scripts = {
        "anthropic": "say One.\n---\nerror 529 Busy.\n---\nerror 400 No.",
        "kimi": "say Two.\n---\nerror 400 No.",
    }
    with running_gateway(scripts, routes=routes, usage=str(file)) as gateway:

        def post(path: str, **fields: object) -> int:
            body = {"model": "both", "messages": [{"role": "user", "content": "Hello"}], "max_tokens": 9, **fields}
            return httpx2.post(gateway.url + path, json=body, timeout=100).status_code

        assert [post("/v1/messages") for _ in range(3)] == [200, 200, 400]
        assert post("/v1/messages/count_tokens") == 200
        assert post("/v1/messages", model=5) == 400
        assert httpx2.get(gateway.url + "/v1/models", timeout=100).status_code == 200
        metrics = httpx2.get(gateway.url + "/metrics", timeout=100).text
        assert 'segue_fallbacks_total{route="both"} 1' in metrics
        gateway.wait_for_log("both → test-kimi/")
    assert file.stat().st_mode & 0o777 == 0o600
    report = read_usage(file.read_bytes().splitlines(), lambda *_: None)
    counts = [(*total.key, total.requests, total.errors) for total in report.totals]
    assert counts == [("both", model_of("anthropic"), 1, 0), ("both", model_of("kimi"), 2, 1)]
    assert all(total.sum.usage.input and total.sum.usage.output for total in report.totals)


@pytest.mark.parametrize("size", [1, 30])
def test_a_line_that_was_cut_off_takes_no_other_with_it(tmp_path: Path, size: int, monkeypatch: pytest.MonkeyPatch):
    file = tmp_path / "usage.jsonl"
    write = FileIO.write

    class FullDisk(FileIO):
        left = size

        def write(self, data: Any, /) -> int:
            if not FullDisk.left:
                raise OSError(28, "No space left on device")
            FullDisk.left -= (written := write(self, data[: FullDisk.left]) or 0)
            return written

    private_files.append(file, line(input=1).encode())
    with monkeypatch.context() as patch:
        patch.setattr(private_files.os, "fdopen", lambda descriptor, mode, **_: FullDisk(descriptor, mode))
        with pytest.raises(OSError, match="No space"):
            private_files.append(file, line(input=20).encode())
    private_files.append(file, line(input=300).encode())
    private_files.append(file, line(input=4000).encode())
    report = read_usage(file.read_bytes().splitlines(), lambda *_: None)
    assert (sum(total.sum.usage.input for total in report.totals), report.bad_lines) == (4301, 1)


def test_a_line_that_is_written_in_parts_is_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    class SlowFile(FileIO):
        def write(self, data: Any, /) -> int:
            return super().write(data[:7]) or 0

    monkeypatch.setattr(private_files.os, "fdopen", lambda descriptor, mode, **_: SlowFile(descriptor, mode))
    private_files.append(tmp_path / "usage.jsonl", line(input=1).encode())
    assert (tmp_path / "usage.jsonl").read_text() == line(input=1)


def test_lines_can_be_written_to_a_pipe(tmp_path: Path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    descriptor = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        private_files.append(pipe, b"")
        private_files.append(pipe, line(input=1).encode())
        assert os.read(descriptor, 1000).decode() == line(input=1)
    finally:
        os.close(descriptor)


# ------------------------------------------------------------------------------------------------------- who spent it

DAYS = (
    line(client="ada", group="backend", time="2026-11-01T10:00:00+00:00", input=10, output=1, cost=0.5)
    + line(client="bob", group="backend", time="2026-11-02T10:00:00+00:00", input=20, output=2, cost=0.25)
    + line(client="ada", group="backend", time="2026-11-02T23:00:00+00:00", input=30, output=3, cost=0.125)
)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (("--by", "client"), {("ada",): 0.625, ("bob",): 0.25}),
        (
            ("--by", "day,client"),
            {("2026-11-01", "ada"): 0.5, ("2026-11-02", "ada"): 0.125, ("2026-11-02", "bob"): 0.25},
        ),
        (("--by", "group"), {("backend",): 0.875}),
        (("--by", "model", "--since", "2026-11-02"), {("test/a",): 0.375}),
        (("--by", "client", "--since", "1h"), {}),
    ],
)
def test_totals_by_other_keys_since_a_time(
    options: tuple[str, ...], expected: dict[tuple[str, ...], float], tmp_path: Path
) -> None:
    file = tmp_path / "usage.jsonl"
    file.write_text(DAYS)
    names = options[1].split(",")
    totals = run("usage", str(file), *options, "--json", **variables(tmp_path)).json["totals"]
    assert {tuple(row[name] for name in names): row["cost"] for row in totals} == expected
    lines = run("usage", str(file), *options, "--csv", **variables(tmp_path)).lines
    assert [one.split(",")[: len(names)] for one in lines[1:]] == [list(key) for key in expected]
    if expected:
        assert lines[0] == ",".join([*names, "requests,errors,input,cache_read,cache_write,output,cost"])
        assert run("usage", str(file), *options, **variables(tmp_path)).lines[0].split()[: len(names)] == names


@pytest.mark.parametrize(
    "options", [("--by", "user"), ("--by", ""), ("--since", "30 days"), ("--since", "2026-13-01"), ("--csv", "--json")]
)
def test_bad_options_are_one_line(options: tuple[str, ...], tmp_path: Path) -> None:
    file = tmp_path / "usage.jsonl"
    file.write_text(DAYS)
    assert is_one_line_error(run("usage", str(file), *options, **variables(tmp_path)))


def test_emulated_models_cost_nothing(tmp_path: Path) -> None:
    store = tmp_path / "chats.db"
    names = {**variables(tmp_path), "SEGUE_STORE": str(store)}
    assert run("run", "--emulated", "-m", "anthropic/claude-sonnet-5", "Hello", **names).code == 0
    page = run("export", "1", "--format", "md", **names)
    assert page.code == 0, page.err
    costs = re.findall(r"\$[\d.]+", page.out.decode())
    assert all(float(cost[1:]) == 0 for cost in costs), costs
    file = tmp_path / "usage.jsonl"
    file.write_text(line(target="emulated/claude-sonnet-5", input=1000, output=1000))
    [total] = run("usage", str(file), "--json", **names).json["totals"]
    assert total["cost"] == 0
