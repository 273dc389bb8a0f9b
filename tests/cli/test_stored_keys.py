"""`segue keys set`: keys in an owner-only file or in the system's keyring."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

import segue.emulator
from tests.cli.process import is_one_line_error
from tests.cli.project import KEY, Project
from tests.cli.terminal_session import ENTER, TerminalSession

FAKE_KEYRING = """
import json, os, pathlib
FILE = pathlib.Path(os.environ["FAKE_KEYRING"])

class Backend:
    priority = 1

def get_keyring():
    return Backend()

def _read():
    return json.loads(FILE.read_text()) if FILE.exists() else {}

def get_password(service, name):
    return _read().get(f"{service}:{name}")

def set_password(service, name, value):
    FILE.write_text(json.dumps({**_read(), f"{service}:{name}": value}))

def delete_password(service, name):
    FILE.write_text(json.dumps({key: value for key, value in _read().items() if key != f"{service}:{name}"}))
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    made = Project(tmp_path)
    monkeypatch.chdir(made.folder)
    return made


def key_file(project: Project) -> Path:
    return project.home / ".config/segue/keys.json"


def test_stored_key_is_used_and_never_shown(project: Project):
    stored = project.run("keys", "set", "anthropic", stdin=f"{KEY}\n".encode())
    assert (stored.code, stored.out) == (0, b"")
    assert KEY not in stored.err
    assert stat.S_IMODE(key_file(project).stat().st_mode) == 0o600
    with segue.emulator.start("anthropic", script="say Yes.", keys=[KEY]) as emulator:
        ended = project.run("run", "-m", "anthropic", "Hi", ANTHROPIC_BASE_URL=emulator.base_url)
        assert (ended.code, ended.lines) == (0, ["Yes."]), ended.err
    listed = project.run("keys", "list")
    assert listed.lines == project.run("keys").lines == ["ANTHROPIC_API_KEY: file"]
    outputs = [project.run("models"), project.run("doctor"), project.run("doctor", "--json"), listed]
    assert all(KEY not in output.out.decode() + output.err for output in outputs)
    assert "stored: ANTHROPIC_API_KEY" in outputs[0].out.decode()
    assert "ANTHROPIC_API_KEY is stored" in outputs[1].out.decode()


def test_key_typed_at_the_prompt_is_not_shown(project: Project):
    with TerminalSession("keys", "set", "openai", environment=project.variables, folder=project.folder) as session:
        session.wait_for_text("OPENAI_API_KEY:")
        session.type(KEY + ENTER)
        session.wait_for_text("is stored in")
        assert session.wait_exit() == 0
        assert KEY.encode() not in session.raw
    assert KEY in key_file(project).read_text()


def test_variable_takes_precedence_over_a_stored_key(project: Project):
    project.run("keys", "set", "ANTHROPIC_API_KEY", stdin=b"sk-other")
    with segue.emulator.start("anthropic", script="say Yes.", keys=[KEY]) as emulator:
        variables = {"ANTHROPIC_BASE_URL": emulator.base_url, "ANTHROPIC_API_KEY": KEY}
        assert project.run("run", "-m", "claude", "Hi", **variables).code == 0


def test_stored_key_is_hidden_from_tools_and_their_output(project: Project):
    key = "sk-stored-0123456789"
    project.run("keys", "set", "claude", stdin=key.encode())
    script = f'call shell {{"command": "env; cat {key_file(project)}"}}\n---\nsay Done.'
    with segue.emulator.start("anthropic", script=script, keys=[key]) as emulator:
        flags = ("-m", "anthropic", "--dangerously-allow-all")
        ended = project.run("run", *flags, "Hi", ANTHROPIC_BASE_URL=emulator.base_url)
        assert ended.code == 0, ended.err
        sent = str(emulator.requests[-1].body)
    assert "[ANTHROPIC_API_KEY withheld]" in sent
    assert key not in sent


def test_key_can_be_removed(project: Project):
    project.run("keys", "set", "mistral", stdin=KEY.encode())
    assert project.run("keys", "remove", "mistral").code == 0
    assert project.run("keys", "list", "--json").json == {}
    assert is_one_line_error(project.run("keys", "remove", "mistral"))


@pytest.mark.parametrize(
    ("name", "key", "reason"),
    [
        ("nobody", KEY, "unknown provider 'nobody'"),
        ("ollama", KEY, "ollama needs no key"),
        ("anthropic", "", "expected a key"),
        ("anthropic", "two words", "not an API key"),
    ],
)
def test_mistakes_are_one_line(project: Project, name: str, key: str, reason: str):
    ended = project.run("keys", "set", name, stdin=key.encode())
    assert is_one_line_error(ended)
    assert reason in ended.err
    assert not key_file(project).exists()


def test_file_that_others_can_read_is_not_used(project: Project):
    project.run("keys", "set", "anthropic", stdin=KEY.encode())
    key_file(project).chmod(0o644)
    ended = project.run("models")
    assert is_one_line_error(ended)
    assert "can be read by others (mode 0644)" in ended.err


def test_damaged_file_is_reported(project: Project):
    key_file(project).parent.mkdir(parents=True)
    key_file(project).write_text('{"ANTHROPIC_API_KEY": 5')
    key_file(project).chmod(0o600)
    ended = project.run("run", "Hi")
    assert is_one_line_error(ended)
    assert "keys.json is damaged" in ended.err


def test_keyring_holds_the_key_where_it_is_installed(project: Project, tmp_path: Path):
    (tmp_path / "modules").mkdir()
    (tmp_path / "modules" / "keyring.py").write_text(FAKE_KEYRING)
    path = os.pathsep.join(filter(None, (str(tmp_path / "modules"), os.environ.get("PYTHONPATH"))))
    variables = {"PYTHONPATH": path, "FAKE_KEYRING": str(tmp_path / "ring.json")}
    stored = project.run("keys", "set", "anthropic", stdin=KEY.encode(), **variables)
    assert "the system's keyring" in stored.err
    assert KEY not in key_file(project).read_text()
    with segue.emulator.start("anthropic", script="say Yes.", keys=[KEY]) as emulator:
        ended = project.run("run", "-m", "anthropic", "Hi", ANTHROPIC_BASE_URL=emulator.base_url, **variables)
        assert ended.code == 0, ended.err
    assert project.run("keys", "list").lines == ["ANTHROPIC_API_KEY: keyring"]
    assert project.run("keys", "remove", "anthropic", **variables).code == 0
    assert KEY not in (tmp_path / "ring.json").read_text()
