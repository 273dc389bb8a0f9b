"""`segue doctor`: its checks, no key in the output, no request without `--online`."""

from __future__ import annotations

import sys
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

import segue.emulator
from tests.cli.project import Project
from tests.cli.store_cli import StoreCli

KEY = "sk-doctor-0123456789"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    made = Project(tmp_path)
    monkeypatch.chdir(made.folder)
    return made


def row_of(output, name: str):
    [row] = [row for row in output["providers"] if row["provider"] == name]
    return row


def test_empty_setup_passes_without_requests(project: Project):
    ended = project.run("doctor")
    assert (ended.code, ended.err) == (0, "")
    assert "emulated models are used" in ended.out.decode()
    assert not any(line.startswith("!!") for line in ended.lines)
    output = project.run("doctor", "--json").json
    assert output["ok"] is True
    assert output["store"] == {"place": str(project.store), "exists": False}
    assert not project.store.exists()
    assert {row["key"] for row in output["providers"]} == {None}
    assert output["terminal"]["stdout"] is False


def test_key_is_named_by_variable_and_never_shown(project: Project):
    for arguments in (["doctor"], ["doctor", "--json"], ["models"], ["models", "--json"]):
        ended = project.run(*arguments, MISTRAL_API_KEY=KEY)
        assert ended.code == 0
        assert "MISTRAL_API_KEY" in ended.out.decode()
        assert KEY not in ended.out.decode() + ended.err
    output = project.run("doctor", "--json", MISTRAL_API_KEY=KEY).json
    assert row_of(output, "mistral")["key"] == "MISTRAL_API_KEY"
    assert output["model"] == {"models": ["mistral/mistral-medium-latest"], "why": "MISTRAL_API_KEY is set"}


def test_no_request_without_online_flag(project: Project):
    with segue.emulator.start("mistral", keys=[KEY]) as emulator:
        place: dict[str, Any] = {"MISTRAL_API_KEY": KEY, "MISTRAL_BASE_URL": emulator.base_url}
        ended = project.run("doctor", "--json", **place)
        assert ended.code == 0
        assert list(emulator.requests) == []
        assert "online" not in row_of(ended.json, "mistral")


@contextmanager
def listing() -> Generator[str]:
    """A server that lists models if the key is valid."""

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


def test_online_reports_key_validity(project: Project):
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


def test_server_without_model_list_counts_as_reached(project: Project):
    with segue.emulator.start("openai-chat") as emulator:
        ended = project.run("doctor", "--online", "--json", GROQ_API_KEY=KEY, GROQ_BASE_URL=f"{emulator.url}/openai/v1")
    assert ended.code == 0
    assert row_of(ended.json, "groq")["online"].startswith("reached")


def test_bad_config_file_is_reported_with_all_else(project: Project):
    project.write_config('modell = "x"')
    ended = project.run("doctor", "--json")
    assert ended.code == 1
    [row] = ended.json["config"]
    assert row["error"] == f"{project.file}: modell is not a setting; did you mean model?"
    assert ended.json["terminal"]["stdout"] is False
    shown = project.run("doctor")
    assert shown.code == 1
    assert sum(line.startswith("!!") for line in shown.lines) == 1


def test_untrusted_file_is_reported_not_failed(project: Project):
    project.write_config('[mcp.files]\ncommand = ["no-such-program"]')
    ended = project.run("doctor", "--json")
    assert ended.code == 0
    assert ended.json["config"] == [{"file": str(project.file), "trusted": False, "withheld": ["mcp.files"]}]
    assert ended.json["mcp"] == []
    trusted = project.run("doctor", "--json", "--trust")
    assert trusted.code == 1
    assert trusted.json["mcp"] == [{"name": "files", "command": ["no-such-program"], "found": None}]


def test_doctor_does_not_require_a_terminal_for_chat(project: Project):
    assert "segue chat prints plain lines" in project.run("doctor").out.decode()


def test_online_does_not_send_to_itself(project: Project):
    project.write_user_config(
        '[providers.gone]\napi = "openai-chat"\nbase_url = "http://127.0.0.1:9/v1"\nkey_variable = "TEST_KEY"\n'
    )
    ended = project.run("doctor", "--online")
    assert "can't be reached" in ended.out.decode()
    assert "segue doctor" not in ended.out.decode()


def test_a_file_where_a_folder_should_be_is_named(project: Project, tmp_path: Path):
    (tmp_path / "file").write_text("x")
    ended = project.run("run", "--no-tools", "Hi", SEGUE_STORE=str(tmp_path / "file" / "x.db"))
    assert f"there is no folder {tmp_path / 'file'}" in ended.err


def test_store_size_or_error_is_reported(project: Project):
    StoreCli(project.store.parent).add_conversation()
    output = project.run("doctor", "--json").json
    assert output["store"] == {"place": str(project.store), "exists": True, "conversations": 1}
    project.store.write_bytes(b"not a database" * 100)
    ended = project.run("doctor", "--json")
    assert ended.code == 1
    assert "error" in ended.json["store"]


def test_unusable_model_is_a_failure(project: Project):
    project.write_config('model = "anthropic/claude-sonnet-5"')
    ended = project.run("doctor")
    assert ended.code == 1
    assert "set ANTHROPIC_API_KEY" in ended.out.decode()
    project.write_config('model = "antropic/claude-sonnet-5"')
    assert "did you mean anthropic" in project.run("doctor").out.decode()


def test_a_program_of_a_server_is_looked_for_and_not_started(project: Project, tmp_path):
    program = tmp_path / "server"
    program.write_text("#!/bin/sh\ntouch started\n")
    program.chmod(0o755)
    project.write_user_config(f'[mcp.mine]\ncommand = ["{program}"]')
    ended = project.run("doctor", "--json", "--online")
    assert ended.code == 0
    assert ended.json["mcp"][0]["found"] == str(program)
    assert not (project.folder / "started").exists()


# -------------------------------------------------------------------------------------------------------------- models


def test_models_are_listed_with_those_of_the_user(project: Project):
    project.write_user_config(
        '[providers.local]\napi = "openai-chat"\nbase_url = "http://127.0.0.1:1/v1"\nmodels = ["llama"]'
    )
    rows = {row["provider"]: row for row in project.run("models", "--json").json}
    assert rows["local"]["models"] == {"llama": {"context": None, "max_output": None, "prices": None}}
    assert rows["anthropic"]["variables"][0] == "ANTHROPIC_API_KEY"
    assert project.run("models", "local").lines == ["local/llama  (default)"]
    assert project.run("models", "kimi").lines[0].startswith("moonshot/")
    [row] = project.run("models", "--with-key", "--json", GROQ_API_KEY=KEY).json
    assert (row["provider"], row["key"]) == ("groq", "GROQ_API_KEY")


def test_unknown_provider_is_usage_error(project: Project):
    ended = project.run("models", "nobody")
    assert ended.code == 2
    assert "no provider or model matches 'nobody'; providers: anthropic, " in ended.err


def test_invalid_provider_is_reported_with_its_file(project: Project):
    project.write_user_config('[providers.mine]\napi = "openai-chatt"\nbase_url = "http://x/v1"')
    ended = project.run("models")
    assert ended.code == 2
    assert "config.toml: providers.mine.api" in ended.err


def test_provider_without_an_api_is_an_error(project: Project):
    project.write_user_config('[providers.acme]\nbase_url = "http://127.0.0.1:9/v1"\nmodel = "m"\nkey_variable = []')
    for command in (["doctor"], ["models"], ["run", "-m", "acme/m", "hi"], ["serve", "-m", "acme/m"]):
        ended = project.run(*command)
        assert ended.code != 0
        assert "providers.acme.api: a custom provider needs the API of its server" in ended.out.decode() + ended.err


def test_profile_stands_for_the_api_of_its_server(project: Project):
    project.write_user_config(
        '[providers.acme]\nprofile = "deepseek-responses"\nmodel = "m"\nbase_url = "http://127.0.0.1:9/v1"'
    )
    (row,) = [row for row in project.run("models", "--json").json if row["provider"] == "acme"]
    assert row["api"] == "openai-responses"


def test_provider_that_is_configured_by_an_alias_keeps_that_name(project: Project):
    project.write_user_config('[providers.kimi]\nbase_url = "http://127.0.0.1:9/v1"\nkey_variable = []')
    names = [row["provider"] for row in project.run("models", "--json").json]
    assert "kimi" in names
    assert "moonshot" not in names
    for name in ("kimi/kimi-k2.6", "moonshot/kimi-k2.6"):
        assert "kimi/kimi-k2.6" in project.run("run", "-m", name, "hi").err


@pytest.mark.skipif(sys.platform != "linux", reason="bubblewrap is for Linux")
def test_sandbox_is_reported(project: Project, tmp_path: Path):
    programs = tmp_path / "bin"
    programs.mkdir()
    ended = project.run("doctor", PATH=str(programs))
    assert "--  sandbox" in ended.out.decode()
    assert "shell commands run without a sandbox: bubblewrap (bwrap) is not installed" in ended.out.decode()
    (programs / "bwrap").write_text("#!/bin/sh\nexit 0\n")
    (programs / "bwrap").chmod(0o755)
    assert "shell commands run in a sandbox: without network" in project.run("doctor", PATH=str(programs)).out.decode()
    project.write_user_config('[tools]\nsandbox = "network"\n')
    assert "shell commands run in a sandbox: with network" in project.run("doctor", PATH=str(programs)).out.decode()
    project.write_user_config('[tools]\nsandbox = "off"\n')
    output = project.run("doctor", "--json", PATH=str(programs)).json
    assert output["sandbox"] == {"works": False, "mode": "off", "why": "off in the configuration"}
    # A project's file can't switch it off by itself.
    project.write_user_config("")
    project.write_config('[tools]\nsandbox = "off"\n')
    assert project.run("doctor", "--json", PATH=str(programs)).json["sandbox"]["works"] is True
    (programs / "bwrap").write_text("#!/bin/sh\necho 'bwrap: setting up uid map: Permission denied' >&2; exit 1\n")
    ended = project.run("doctor", PATH=str(programs))
    assert (ended.code, "does not work here: bwrap: setting up uid map" in ended.out.decode()) == (0, True)


def test_stored_keys_that_cannot_be_read_are_one_problem_of_the_list(project: Project) -> None:
    keys = project.home / ".config" / "segue" / "keys.json"
    keys.parent.mkdir(parents=True)
    keys.write_text("{damaged")
    for mode, reason in ((0o644, "can be read by others"), (0o600, "is damaged")):
        keys.chmod(mode)
        ended = project.run("doctor")
        assert ended.code == 1
        assert [line for line in ended.lines if line.startswith("!!") and reason in line]
        assert any("sandbox" in line for line in ended.lines)
