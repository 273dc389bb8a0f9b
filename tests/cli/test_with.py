"""`segue with CLIENT`: a script in place of each client shows what it gets, and calls the gateway as that does."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from segue.sessions.registry import PROGRAMS
from segue.store.ids import new_owner
from tests.cli.gateway_process import PATIENCE, record_files, start_segue
from tests.cli.process import ProcessResult, is_one_line_error
from tests.cli.project import KEY, Project

# Writes what it got to the file in SEEN, sends one request, and ends with the code in its last argument.
CLIENT = """#!{python}
import json, os, pathlib, signal, sys, time, urllib.request

name = pathlib.Path(sys.argv[0]).name
variables = dict(os.environ)
arguments = sys.argv[1:]
messages = [{{"role": "user", "content": "Hello"}}]
folder = ""
if name == "claude":
    url, key = variables["ANTHROPIC_BASE_URL"] + "/v1/messages", variables["ANTHROPIC_AUTH_TOKEN"]
    body = {{"model": "claude-sonnet-5", "max_tokens": 9, "messages": messages}}
elif name == "codex":
    settings = dict(part.split("=", 1) for flag, part in zip(arguments, arguments[1:]) if flag == "-c")
    provider = "model_providers." + json.loads(settings["model_provider"])
    url = json.loads(settings[provider + ".base_url"]) + "/responses"
    key = variables[json.loads(settings[provider + ".env_key"])]
    body = {{"model": "gpt-5.5", "input": "Hello"}}
elif name == "gemini":
    url = variables["GOOGLE_GEMINI_BASE_URL"] + "/v1beta/models/gemini-2.5-pro:generateContent"
    key = variables["GEMINI_API_KEY"]
    body = {{"contents": [{{"role": "user", "parts": [{{"text": "Hello"}}]}}]}}
    folder = os.path.dirname(variables["GEMINI_CLI_SYSTEM_SETTINGS_PATH"])
elif name == "pi":
    folder = variables["PI_CODING_AGENT_DIR"]
    provider = json.loads(pathlib.Path(folder, "models.json").read_text())["providers"]["segue"]
    url, key = provider["baseUrl"] + "/v1/messages", provider["apiKey"]
    body = {{"model": arguments[arguments.index("--model") + 1], "max_tokens": 9, "messages": messages}}
else:
    if name == "opencode":
        options = json.loads(variables["OPENCODE_CONFIG_CONTENT"])["provider"]["segue"]["options"]
        base, key = options["baseURL"], options["apiKey"]
    elif name == "copilot":
        base, key = variables["COPILOT_PROVIDER_BASE_URL"], variables["COPILOT_PROVIDER_API_KEY"]
    elif name == "cline":
        file = pathlib.Path(variables["CLINE_PROVIDER_SETTINGS_PATH"])
        entry = json.loads(file.read_text())["providers"]["openai-compatible"]
        # The client ignores a file without this date.
        assert entry["updatedAt"].endswith("Z")
        settings = entry["settings"]
        base, key, folder = settings["baseUrl"], settings["apiKey"], str(file.parent)
    elif name == "cn":
        file = pathlib.Path(arguments[arguments.index("--config") + 1])
        (model,) = json.loads(file.read_text())["models"]
        base, key, folder = model["apiBase"], model["apiKey"], str(file.parent)
    elif name == "llm":
        folder = variables["LLM_USER_PATH"]
        entry = pathlib.Path(folder, "extra-openai-models.yaml").read_text().splitlines()[-1].removeprefix("- ")
        model = json.loads(entry)
        key = json.loads(pathlib.Path(folder, "keys.json").read_text())[model["api_key_name"]]
        base = model["api_base"]
    else:
        base, key = variables["OPENAI_BASE_URL"], variables["OPENAI_API_KEY"]
    url, body = base + "/chat/completions", {{"model": "any", "messages": messages}}
entries = {{path.name: path.is_symlink() for path in pathlib.Path(folder).iterdir()}} if folder else {{}}
seen = {{"arguments": arguments, "variables": variables, "folder": folder, "entries": entries, "replies": []}}
for header in ({{"x-goog-api-key": key}}, {{"x-api-key": "wrong"}}, {{}}):
    request = urllib.request.Request(url, json.dumps(body).encode(), {{"content-type": "application/json", **header}})
    try:
        with urllib.request.urlopen(request, timeout=100) as response:
            seen["replies"].append(response.status)
    except urllib.error.HTTPError as error:
        seen["replies"].append(error.code)
if "stay" in arguments:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(7))
pathlib.Path(variables["SEEN"]).write_text(json.dumps(seen))
if "stay" in arguments:
    parent = os.getppid()
    for _ in range(1200):
        time.sleep(0.05)
        if os.getppid() != parent:
            break
sys.exit(int(arguments[-1]) if arguments and arguments[-1].isdigit() else 0)
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    made = Project(tmp_path)
    monkeypatch.chdir(made.folder)
    (tmp_path / "bin").mkdir()
    for setup in PROGRAMS.values():
        file = tmp_path / "bin" / setup.program
        file.write_text(CLIENT.format(python=sys.executable))
        file.chmod(0o755)
    return made


def variables(project: Project) -> dict[str, str]:
    root = project.home.parent
    return {"PATH": f"{root / 'bin'}:{os.environ['PATH']}", "SEEN": str(root / "seen.json")}


def run_with(project: Project, *arguments: str, **more: str) -> tuple[ProcessResult, dict[str, Any]]:
    ended = project.run("with", *arguments, **{**variables(project), **more})
    return ended, json.loads((project.home.parent / "seen.json").read_text())


def folders(project: Project) -> list[Path]:
    return list((project.home / ".cache/segue").glob("segue-with-*"))


@pytest.mark.parametrize("client", PROGRAMS)
def test_a_client_reaches_its_own_gateway_only_with_its_key(project: Project, client: str) -> None:
    ended, seen = run_with(project, client, "--emulated", "-m", "moonshot/kimi-k2.6", "--", "first", "two words", "3")
    assert (ended.code, ended.err) == (3, f"segue: {client} uses emulated/kimi-k2.6\n")
    assert seen["arguments"][-3:] == ["first", "two words", "3"]
    assert seen["replies"] == [200, 401, 401]
    assert folders(project) == []
    assert record_files(project) == []
    assert not Path(seen["folder"] or "missing").exists()


def test_variables_of_the_user_stay_except_those_in_the_way(project: Project) -> None:
    given = {"ANTHROPIC_API_KEY": KEY, "CLAUDE_CODE_USE_BEDROCK": "1", "MINE": "yes"}
    _, seen = run_with(project, "claude", "--emulated", **given)
    assert seen["variables"]["MINE"] == "yes"
    assert not {"ANTHROPIC_API_KEY", "CLAUDE_CODE_USE_BEDROCK"} & set(seen["variables"])


def test_files_of_pi_are_linked_and_its_models_merged(project: Project) -> None:
    own = project.home / ".pi" / "agent"
    own.mkdir(parents=True)
    (own / "settings.json").write_text("{}")
    models = {"providers": {"mine": {"apiKey": KEY}}}
    (own / "models.json").write_text(json.dumps(models))
    _, seen = run_with(project, "pi", "--emulated")
    assert seen["entries"] == {"settings.json": True, "models.json": False, "sessions": True}
    assert json.loads((own / "models.json").read_text()) == models
    assert (own / "settings.json").read_text() == "{}"


def test_files_of_llm_are_linked_and_its_models_kept(project: Project) -> None:
    own = project.home / "llm"
    own.mkdir()
    (own / "extra-openai-models.yaml").write_text("- model_id: mine\n  model_name: mine\n")
    (own / "templates").mkdir()
    _, seen = run_with(project, "llm", "--emulated", LLM_USER_PATH=str(own))
    assert seen["entries"] == {
        "templates": True,
        "logs.db": True,
        "keys.json": False,
        "default_model.txt": False,
        "extra-openai-models.yaml": False,
    }
    assert (own / "extra-openai-models.yaml").read_text() == "- model_id: mine\n  model_name: mine\n"


@pytest.mark.parametrize(
    ("client", "file", "settings", "variable"),
    [
        ("claude", ".claude/settings.json", '{"model":"%s"}', "ANTHROPIC_MODEL"),
        ("gemini", ".gemini/settings.json", '{"model":{"name":"%s"}}', "GEMINI_MODEL"),
    ],
)
def test_a_model_left_in_the_settings_does_not_decide(
    project: Project, client: str, file: str, settings: str, variable: str
) -> None:
    own = project.home / file
    own.parent.mkdir()
    default = PROGRAMS[client].model_setting
    assert default is not None
    (project.folder / ".segue.toml").write_text("")
    for left, used in {"moonshot/kimi-k2.6": default.default, "my-own": "my-own"}.items():
        own.write_text(settings % left)
        ended, seen = run_with(project, client, "--emulated", "-m", "openai/gpt-4.1")
        assert seen["variables"][variable] == used
        assert (f"and not {left} of its own settings" in ended.err) == (used != left)


def test_the_log_is_appended_to_a_file(project: Project) -> None:
    ended, _ = run_with(project, "claude", "--emulated", "--log", "gateway.log")
    assert ended.code == 0
    lines = (project.folder / "gateway.log").read_text().splitlines()
    assert [line.split("; ")[-1] for line in lines if "401" in line] != []
    assert any("claude-sonnet-5 → emulated/claude-sonnet-5" in line for line in lines)


def test_signals_are_passed_on(project: Project) -> None:
    with start_segue(project, "with", "claude", "--emulated", "--", "stay", **variables(project)) as started:
        started.wait_for_line("claude uses")
        wait_for_file(project.home.parent / "seen.json")
        assert started.end(signal.SIGTERM)[0] == 7
    assert folders(project) == []
    assert record_files(project) == []


def test_the_next_start_removes_what_a_killed_one_left(project: Project) -> None:
    with start_segue(project, "with", "pi", "--emulated", "--", "stay", **variables(project)) as started:
        wait_for_file(project.home.parent / "seen.json")
        assert len(folders(project)) == 1
        run_with(project, "pi", "--emulated")
        assert len(folders(project)) == 1, "the folder of a run that is alive stays"
        started.end(signal.SIGKILL)
    [left] = folders(project)
    assert (left / "files" / "models.json").exists()
    assert stat.S_IMODE(left.stat().st_mode) == 0o700
    assert stat.S_IMODE((left / "files" / "models.json").stat().st_mode) == 0o600
    assert run_with(project, "claude", "--emulated")[0].code == 0
    assert folders(project) == []
    assert (project.home / ".pi/agent/sessions").is_dir(), "links are removed, not what they lead to"


def test_folders_of_processes_that_are_not_known_to_have_ended_stay(project: Project) -> None:
    with subprocess.Popen(["true"]) as process:
        pass
    name, own = new_owner(), os.getpid()
    host, _, scope, end = name.rsplit(":", 3)
    left = {
        "stays": [name, f"elsewhere:{process.pid}:{scope}:{end}", "", "x", "\udcff", "1" * 5000],
        "goes": [
            *(f"{host}:{number}:{scope}:{end}" for number in (0, 99999999999, 2**31, 2**64)),
            f"{host}:{process.pid}:{scope}:{end}",
            f"{host}:{own}:{scope.partition('-')[0]}-1:{end}",
        ],
    }
    base = project.home / ".cache/segue"
    for kind, owners in left.items():
        for number, owner in enumerate(owners):
            folder = base / f"segue-with-{kind}-{number}"
            folder.mkdir(parents=True)
            (folder / "owner").write_bytes(os.fsencode(owner))
    assert run_with(project, "claude", "--emulated")[0].code == 0
    kept = {folder.name.partition("with-")[2] for folder in folders(project)}
    assert kept == {f"stays-{number}" for number in range(len(left["stays"]))}


def wait_for_file(file: Path) -> None:
    deadline = time.monotonic() + PATIENCE
    while not (file.exists() and file.stat().st_size):
        assert time.monotonic() < deadline, f"{file.name} was not written"
        time.sleep(0.01)


@pytest.mark.parametrize("client", PROGRAMS)
def test_print_starts_nothing(project: Project, client: str) -> None:
    ended = project.run("with", client, "--emulated", "--print", "--", "an argument", **variables(project))
    assert (ended.code, ended.err) == (0, "")
    assert ended.lines[-1].endswith("'an argument'")
    assert all(line.startswith(("export ", "unset ")) for line in ended.lines[:-1])
    shown = project.run("with", client, "--emulated", "--print", "--json", **variables(project)).json
    assert shown.keys() == {"model", "variables", "removed", "command"}
    assert Path(shown["command"][0]).name == PROGRAMS[client].program
    assert all(f"export {name}=" in ended.out.decode() for name in shown["variables"])
    assert not (project.home.parent / "seen.json").exists()
    assert folders(project) == []


def test_a_missing_client_names_its_package(project: Project) -> None:
    ended = project.run("with", "codex", "--emulated", PATH=str(project.folder))
    assert is_one_line_error(ended)
    assert "npm install -g @openai/codex" in ended.err
    assert project.run("with", "codex", "--emulated", "--print", PATH=str(project.folder)).code == 0
    unknown = project.run("with", "emacs")
    assert is_one_line_error(unknown)
    assert "claude, codex" in unknown.err


def test_a_client_that_can_not_start_is_one_line(project: Project) -> None:
    (project.home.parent / "bin" / "claude").write_text("#!/missing/interpreter\n")
    ended = project.run("with", "claude", "--emulated", **variables(project))
    assert ended.code != 0
    assert "Traceback" not in ended.err
    assert "claude" in ended.err.splitlines()[-1]
    assert folders(project) == []


@pytest.mark.parametrize("model", ["nowhere/x", "anthropic/"])
def test_mistakes_are_one_line(project: Project, model: str) -> None:
    assert is_one_line_error(project.run("with", "claude", "-m", model, **variables(project)))
    assert folders(project) == []


def test_an_alias_is_not_the_model_that_is_used(project: Project) -> None:
    project.write_user_config('model = "ollama/large"\n[aliases]\nfast = "ollama/small"\n')
    assert project.run("with", "pi", "--print", "--json").json["model"] == "ollama/large"


@pytest.mark.parametrize("client", PROGRAMS)
def test_print_leaves_nothing_in_the_home_folder(project: Project, client: str) -> None:
    before = sorted(project.home.rglob("*"))
    assert project.run("with", client, "--emulated", "--print").code == 0
    assert sorted(project.home.rglob("*")) == before
