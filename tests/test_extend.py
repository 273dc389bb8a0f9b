"""The page `docs/extend.md`: its blocks are written into a copy of the package, and each of the new things works."""

from __future__ import annotations

import http.client
import re
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.test_add_a_wire import PACKAGE, QUESTION, ROOT, Copy, post

PAGE = (ROOT / "docs" / "extend.md").read_text("utf-8")
_NEW = re.compile(r"New file `([\w/]+\.py)`:\n\n```py\n(.*?)```", re.DOTALL)
_EDIT = re.compile(r"`([\w/]+\.py)`, (above|below) `([^`\n]+)`:\n\n```py\n(.*?)```", re.DOTALL)


@pytest.fixture(scope="module")
def extended(tmp_path_factory: pytest.TempPathFactory) -> Copy:
    copy = Copy(tmp_path_factory.mktemp("extended"))
    new, edits = _NEW.findall(PAGE), _EDIT.findall(PAGE)
    assert len(new) + len(edits) == PAGE.count("```py") == 14
    for name, text in new:
        assert not (copy.package / name).exists()
        (copy.package / name).write_text(text)
    for name, where, anchor, text in edits:
        file = copy.package / name
        lines = file.read_text("utf-8").splitlines(keepends=True)
        [index] = [number for number, line in enumerate(lines) if line.strip() == anchor]
        lines.insert(index + (where == "below"), text)
        file.write_text("".join(lines))
    return copy


def chat(copy: Copy, *lines: str) -> str:
    ended = subprocess.run(
        [sys.executable, "-m", "segue", "chat", "--emulated"],
        input="\n".join(lines).encode(),
        capture_output=True,
        cwd=copy.folder,
        env=copy.environment(),
        timeout=100,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout.decode() + ended.stderr.decode()


def test_a_command(extended: Copy) -> None:
    assert extended.run("greet", "ada").lines == ["hello ada"]
    assert extended.run("greet", "ada", "--json").json == {"hello": "ada"}
    assert "greet       Greet somebody" in extended.run("--help").out.decode()


def test_a_slash_command_a_tool_and_an_export_format(extended: Copy) -> None:
    printed = chat(extended, "Say hello.", "/where", "/help where", "/tools", "/export chat.txt")
    assert "".join(f"this chat works in {extended.folder}".split()) in "".join(printed.split())  # lines may wrap
    assert "show the working folder" in printed
    assert "roll" in printed
    assert (extended.folder / "chat.txt").read_text().startswith("human: Say hello.\n")
    [summary] = extended.run("log", "list", "--json").json
    exported = extended.run("export", summary["id"], "--format", "txt")
    assert exported.out == (extended.folder / "chat.txt").read_bytes()


def test_a_tool_runs(extended: Copy) -> None:
    script = """
import asyncio
from segue.runtime.tools import standard_names, standard_tools
[roll] = [tool for tool in standard_tools() if tool.name == "roll"]
print("roll" in standard_names(), len(roll.run({"dice": 3}, None).split()))
"""
    ended = extended.python("-c", script)
    assert ended.lines == ["True 3"], ended.err


def test_a_fault_and_a_metric(extended: Copy) -> None:
    with extended.emulate("openai-chat", "--fault", "teapot@1") as urls:
        url = f"{urls['base_url']}/chat/completions"
        assert post(url, {"model": "gpt-4.1", "messages": QUESTION}, authorization="Bearer k")[0] == 418
        config = extended.folder / ".config" / "segue" / "config.toml"
        config.parent.mkdir(parents=True)
        config.write_text(
            f'[providers.box]\napi = "openai-chat"\nbase_url = "{urls["base_url"]}"\n'
            '[[gateway.passthrough]]\npath = "/v1"\nto = "/"\nprovider = "box"\nname = "all"\nalways = true\n'
        )
        gateway = subprocess.Popen(
            [sys.executable, "-m", "segue", "serve", "--port", "0"],
            stdin=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            cwd=extended.folder,
            env=extended.environment(),
        )
        try:
            assert gateway.stderr is not None
            served = b""
            while not (found := re.search(rb"serving .* on (http://\S+);", served)):
                served = gateway.stderr.readline()
                assert served
            base = found[1].decode()
            sent = {"model": "gpt-4.1", "messages": QUESTION}
            assert post(f"{base}/v1/chat/completions", sent, authorization="Bearer k")[0] == 200
            assert 'segue_passthrough_total{route="all"} 1\n' in get(f"{base}/metrics")
        finally:
            gateway.terminate()
            gateway.communicate(timeout=100)


def get(url: str) -> str:
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=100)
    try:
        connection.request("GET", parts.path)
        return connection.getresponse().read().decode()
    finally:
        connection.close()


def test_every_path_on_the_page_exists() -> None:
    new = {name for name, _ in _NEW.findall(PAGE)}
    named = set(re.findall(r"`([\w./-]+/[\w.-]+\.(?:py|md))`", PAGE)) - new
    assert len(named) > 12
    assert [path for path in named if not (PACKAGE / path).exists() and not (ROOT / path).exists()] == []
    assert all((ROOT / "docs" / link).exists() for link in re.findall(r"\]\(([^)#:]+)\)", PAGE))
    assert Path(ROOT / "docs" / "README.md").read_text("utf-8").count("(extend.md)") == 1
