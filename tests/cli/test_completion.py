"""`segue completion`: the scripts and the completions."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from segue.cli import app
from segue.cli.completion import SHELLS
from tests.cli.process import environment, run
from tests.cli.project import Project
from tests.cli.store_cli import StoreCli


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    made = Project(tmp_path)
    monkeypatch.chdir(made.folder)
    return made


def complete(project: Project, line: str, **variables: Any) -> list[str]:
    """The completions bash gets for a line; its last word is incomplete."""
    words = line.split(" ")
    ended = project.run(
        _SEGUE_COMPLETE="bash_complete", COMP_WORDS=" ".join(words), COMP_CWORD=str(len(words) - 1), **variables
    )
    assert (ended.code, ended.err) == (0, "")
    return [item.partition(",")[2] or item for item in ended.lines if item]


@pytest.mark.parametrize("name", SHELLS)
def test_each_shell_has_its_script(name: str):
    ended = run("completion", name)
    assert (ended.code, ended.err) == (0, "")
    assert f"_SEGUE_COMPLETE={name}_complete" in ended.out.decode()
    assert run("completion", name, "--json").json == {"shell": name, "script": ended.out.decode()}
    if program := shutil.which(name):
        assert subprocess.run([program, "-n"], input=ended.out, timeout=100, check=False).returncode == 0


def test_unsupported_shell_error_lists_shells():
    ended = run("completion", "tcsh")
    assert ended.code == 2
    assert all(name in ended.err for name in SHELLS)


def test_commands_and_options_are_offered(project: Project):
    assert complete(project, "segue ") == list(app.COMMANDS)
    assert complete(project, "segue conv") == ["convert"]
    assert "--tool-format" in complete(project, "segue run --")
    assert complete(project, "segue completion ") == list(SHELLS)


def test_models_are_offered_with_those_of_the_user(project: Project):
    project.write_user_config(
        '[providers.local]\napi = "openai-chat"\nbase_url = "http://127.0.0.1:1/v1"\nmodels = ["llama"]'
    )
    assert complete(project, "segue run -m local/") == ["local/llama"]
    assert "anthropic/claude-sonnet-5" in complete(project, "segue run -m anthropic/")


def test_ids_are_offered_the_last_written_first(project: Project):
    store_cli = StoreCli(project.store.parent)
    first, second = store_cli.add_conversation(), store_cli.add_conversation()
    assert complete(project, "segue export ") == [second, first]
    assert complete(project, f"segue run -s {first}") == [first]
    assert complete(project, f"segue log show {second[:-2]}") == [second]


def test_formats_and_profiles_are_offered(project: Project):
    assert complete(project, "segue convert --to ki") == ["kimi"]
    assert "kimi-text" in complete(project, "segue run --tool-format k")
    assert complete(project, "segue convert --tool-format au") == ["auto"]
    assert complete(project, "segue check --profile gro") == ["groq"]
    assert complete(project, "segue convert ./x") == ["./x"]


def test_bad_config_or_store_completes_nothing_silently(project: Project):
    project.write_config('modell = "x"')
    project.store.write_bytes(b"not a database" * 100)
    assert complete(project, "segue run -m anthropic/") == []
    assert complete(project, "segue export ") == []
    assert complete(project, "segue export ", SEGUE_STORE=str(project.folder / "none.db")) == []
    assert not (project.folder / "none.db").exists()


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash here")
def test_bash_itself_completes(project: Project, tmp_path):
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "segue").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m segue "$@"\n')
    (folder / "segue").chmod(0o755)
    script = (
        'eval "$(segue completion bash)"; COMP_WORDS=(segue run -m anthropic/claude-opus-5-); COMP_CWORD=3;'
        'COMP_LINE="${COMP_WORDS[*]}"; _segue_completion segue; printf "%s\\n" "${COMPREPLY[@]}"'
    )
    variables = environment(**project.variables)
    variables["PATH"] = f"{folder}:{variables['PATH']}"
    ended = subprocess.run(
        ["bash", "--norc", "-c", script], capture_output=True, text=True, env=variables, timeout=100, check=False
    )
    assert ended.stdout.split() == ["anthropic/claude-opus-5-5"], ended.stderr


def test_own_providers_and_aliases_are_offered(project: Project):
    project.write_user_config(
        '[providers.acme]\napi = "openai-chat"\nbase_url = "http://127.0.0.1:9/v1"\nmodel = "rocket"\n'
        '[aliases]\nsonnet = "acme/rocket"'
    )
    assert "acme/rocket" in complete(project, "segue run -m acme")
    assert complete(project, "segue run -m sonn") == ["sonnet"]
