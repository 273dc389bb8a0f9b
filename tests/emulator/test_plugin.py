"""The fixture for other people's tests, as they use it: in a pytest of their own, with a vendor's client."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.process import environment

# By the entry point; and in a project that still names the plugin, as was needed before.
NAMED = 'pytest_plugins = ["segue.emulator.pytest_plugin"]\n'
SCRIPTED = """
import anthropic

def test_the_agent_looks_it_up(emulator):
    provider = emulator("anthropic", script='call get_weather {"city": "Lisbon"}')
    client = anthropic.Anthropic(base_url=provider.base_url, api_key="any", max_retries=0)
    tool = {"name": "get_weather", "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}}}
    user = {"role": "user", "content": "How is the weather in Lisbon?"}
    reply = client.messages.create(model="claude-sonnet-5", max_tokens=99, tools=[tool], messages=[user])
    assert reply.content[0].input == {"city": "Lisbon"}
    assert provider.requests[0].accepted
"""
SEVERAL = """
import socket, threading
import pytest
from segue.errors import InputError

ports = []

def test_several_are_started(emulator):
    ports.extend(emulator(api).port for api in ("anthropic", "gemini", "bedrock"))
    assert len(set(ports)) == 3
    with pytest.raises(InputError):
        emulator("nobody")

def test_and_all_are_stopped_when_a_test_is_over():
    assert ports
    for port in ports:
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", port), timeout=10)
    assert [thread.name for thread in threading.enumerate()] == ["MainThread"]

def test_that_fails(emulator):
    ports[:] = [emulator("anthropic").port]
    raise ValueError("on purpose")

test_and_after_a_failure_too = test_and_all_are_stopped_when_a_test_is_over
"""


def pytest_run(folder: Path, text: str, *, plugin: str = "") -> subprocess.CompletedProcess[str]:
    (folder / "conftest.py").write_text(plugin)
    (folder / "test_theirs.py").write_text(text)
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-W", "error", "-p", "no:cacheprovider", "-p", "no:xdist"],
        cwd=folder,
        env={**environment(), "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )


@pytest.mark.parametrize("conftest", ["", NAMED])
def test_a_test_of_ten_lines_with_a_vendors_client(tmp_path: Path, conftest: str) -> None:
    ended = pytest_run(tmp_path, SCRIPTED, plugin=conftest)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "1 passed" in ended.stdout


def test_all_that_were_started_are_stopped(tmp_path: Path) -> None:
    ended = pytest_run(tmp_path, SEVERAL)
    assert "1 failed, 3 passed" in ended.stdout, ended.stdout + ended.stderr
    assert "on purpose" in ended.stdout


def test_loading_the_plugin_imports_nothing_heavy(tmp_path: Path) -> None:
    text = "import sys\n\ndef test_nothing_was_loaded():\n    assert 'uvicorn' not in sys.modules\n"
    ended = pytest_run(tmp_path, text)
    assert ended.returncode == 0, ended.stdout + ended.stderr
