"""`segue doctor`: what it finds, that it shows no key, and that it asks nobody unless it is told to."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

import segue.emulator
from tests.cli.kept import Kept
from tests.cli.project import Project

KEY = "sk-doctor-0123456789"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    made = Project(tmp_path)
    monkeypatch.chdir(made.folder)
    return made


def row_of(told, name: str):
    [row] = [row for row in told["providers"] if row["provider"] == name]
    return row


def test_with_nothing_set_up_all_is_well_and_nobody_real_is_asked(project: Project):
    ended = project.run("doctor")
    assert (ended.code, ended.err) == (0, "")
    assert "emulated models are used" in ended.out.decode()
    assert not any(line.startswith("!!") for line in ended.lines)
    told = project.run("doctor", "--json").json
    assert told["ok"] is True
    assert told["store"] == {"place": str(project.store), "exists": False}
    assert not project.store.exists()
    assert {row["key"] for row in told["providers"]} == {None}
    assert told["terminal"]["stdout"] is False


def test_a_key_is_told_by_its_variable_and_never_shown(project: Project):
    for arguments in (["doctor"], ["doctor", "--json"], ["models"], ["models", "--json"]):
        ended = project.run(*arguments, MISTRAL_API_KEY=KEY)
        assert ended.code == 0
        assert "MISTRAL_API_KEY" in ended.out.decode()
        assert KEY not in ended.out.decode() + ended.err
    told = project.run("doctor", "--json", MISTRAL_API_KEY=KEY).json
    assert row_of(told, "mistral")["key"] == "MISTRAL_API_KEY"
    assert told["model"] == {"models": ["mistral/mistral-medium-latest"], "why": "MISTRAL_API_KEY is set"}


def test_nothing_is_sent_unless_it_is_asked_for(project: Project):
    with segue.emulator.start("mistral", keys=[KEY]) as emulator:
        place: dict[str, Any] = {"MISTRAL_API_KEY": KEY, "MISTRAL_BASE_URL": emulator.base_url}
        ended = project.run("doctor", "--json", **place)
        assert ended.code == 0
        assert list(emulator.requests) == []
        assert "online" not in row_of(ended.json, "mistral")


@contextmanager
def listing() -> Generator[str]:
    """A server with a list of models for whoever has the key."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            lets_in = self.headers.get("authorization") == f"Bearer {KEY}"
            data = b'{"object": "list", "data": []}' if lets_in else b'{"error": {"message": "no such key"}}'
            self.send_response(200 if lets_in else 401)
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_online_says_whether_the_key_is_taken(project: Project):
    with listing() as url:
        place: dict[str, Any] = {"GROQ_BASE_URL": f"{url}/openai/v1"}
        taken = project.run("doctor", "--online", "--json", GROQ_API_KEY=KEY, **place)
        wrong = project.run("doctor", "--online", "--json", GROQ_API_KEY="sk-other", **place)
    gone = project.run("doctor", "--online", "--json", GROQ_API_KEY=KEY, **place)
    answers = [row_of(ended.json, "groq")["online"] for ended in (taken, wrong, gone)]
    assert (taken.code, wrong.code, gone.code) == (0, 1, 1)
    assert answers[0] == "accepted"
    assert "GROQ_API_KEY" in answers[1]
    assert "can't be reached" in answers[2]
    assert not any(key in str(answers) for key in (KEY, "sk-other"))


def test_a_server_without_such_a_list_is_reached(project: Project):
    with segue.emulator.start("openai-chat") as emulator:
        ended = project.run("doctor", "--online", "--json", GROQ_API_KEY=KEY, GROQ_BASE_URL=f"{emulator.url}/openai/v1")
    assert ended.code == 0
    assert row_of(ended.json, "groq")["online"].startswith("reached")


def test_a_bad_file_is_told_and_everything_else_too(project: Project):
    project.says('modell = "x"')
    ended = project.run("doctor", "--json")
    assert ended.code == 1
    [row] = ended.json["config"]
    assert row["error"] == f"{project.file}: modell is not a setting; did you mean model?"
    assert ended.json["terminal"]["stdout"] is False
    shown = project.run("doctor")
    assert shown.code == 1
    assert sum(line.startswith("!!") for line in shown.lines) == 1


def test_a_file_that_is_not_trusted_is_told_and_is_no_fault(project: Project):
    project.says('[mcp.files]\ncommand = ["no-such-program"]')
    ended = project.run("doctor", "--json")
    assert ended.code == 0
    assert ended.json["config"] == [{"file": str(project.file), "trusted": False, "withheld": ["mcp.files"]}]
    assert ended.json["mcp"] == []
    trusted = project.run("doctor", "--json", "--trust")
    assert trusted.code == 1
    assert trusted.json["mcp"] == [{"name": "files", "command": ["no-such-program"], "found": None}]


def test_chat_is_not_said_to_need_a_terminal(project: Project):
    assert "segue chat prints plain lines" in project.run("doctor").out.decode()


def test_online_does_not_send_to_itself(project: Project):
    project.user_says('[providers.gone]\nbase_url = "http://127.0.0.1:9/v1"\nkey_variable = "TEST_KEY"\n')
    ended = project.run("doctor", "--online")
    assert "can't be reached" in ended.out.decode()
    assert "segue doctor" not in ended.out.decode()


def test_a_file_where_a_folder_should_be_is_named(project: Project, tmp_path: Path):
    (tmp_path / "file").write_text("x")
    ended = project.run("run", "--no-tools", "Hi", SEGUE_STORE=str(tmp_path / "file" / "x.db"))
    assert f"{tmp_path / 'file'} is not a folder" in ended.err


def test_the_store_is_counted_or_its_fault_told(project: Project):
    Kept(project.store.parent).talk()
    told = project.run("doctor", "--json").json
    assert told["store"] == {"place": str(project.store), "exists": True, "conversations": 1}
    project.store.write_bytes(b"not a database" * 100)
    ended = project.run("doctor", "--json")
    assert ended.code == 1
    assert "error" in ended.json["store"]


def test_a_model_that_can_not_be_asked_is_a_fault(project: Project):
    project.says('model = "anthropic/claude-sonnet-5"')
    ended = project.run("doctor")
    assert ended.code == 1
    assert "set ANTHROPIC_API_KEY" in ended.out.decode()
    project.says('model = "antropic/claude-sonnet-5"')
    assert "did you mean anthropic" in project.run("doctor").out.decode()


def test_a_program_of_a_server_is_looked_for_and_not_started(project: Project, tmp_path):
    program = tmp_path / "server"
    program.write_text("#!/bin/sh\ntouch started\n")
    program.chmod(0o755)
    project.user_says(f'[mcp.mine]\ncommand = ["{program}"]')
    ended = project.run("doctor", "--json", "--online")
    assert ended.code == 0
    assert ended.json["mcp"][0]["found"] == str(program)
    assert not (project.folder / "started").exists()


# -------------------------------------------------------------------------------------------------------------- models


def test_models_are_listed_with_those_of_the_user(project: Project):
    project.user_says('[providers.local]\napi = "openai-chat"\nbase_url = "http://127.0.0.1:1/v1"\nmodels = ["llama"]')
    rows = {row["provider"]: row for row in project.run("models", "--json").json}
    assert rows["local"]["models"] == {"llama": {"context": None}}
    assert rows["anthropic"]["variables"][0] == "ANTHROPIC_API_KEY"
    assert project.run("models", "local").lines == ["local/llama  (default)"]
    assert project.run("models", "kimi").lines[0].startswith("moonshot/")
    [row] = project.run("models", "--with-key", "--json", GROQ_API_KEY=KEY).json
    assert (row["provider"], row["key"]) == ("groq", "GROQ_API_KEY")


def test_an_unknown_provider_is_one_line_and_2(project: Project):
    ended = project.run("models", "nobody")
    assert ended.code == 2
    assert "known providers: anthropic" in ended.err


def test_a_provider_that_segue_can_not_read_is_told_with_its_file(project: Project):
    project.user_says('[providers.mine]\napi = "openai-chatt"\nbase_url = "http://x/v1"')
    ended = project.run("models")
    assert ended.code == 2
    assert "config.toml: providers.mine.api" in ended.err
