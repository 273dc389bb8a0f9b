"""`segue completion`: the scripts, and what is offered at TAB."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from segue.cli import shell
from segue.cli.completion import SHELLS
from tests.cli.kept import Kept
from tests.cli.process import environment, run
from tests.cli.project import Project


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    made = Project(tmp_path)
    monkeypatch.chdir(made.folder)
    return made


def offered(project: Project, line: str, **variables: Any) -> list[str]:
    """What bash would be told for a line; the word at its end is being typed."""
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


def test_another_shell_is_refused_with_the_known_ones():
    ended = run("completion", "tcsh")
    assert ended.code == 2
    assert all(name in ended.err for name in SHELLS)


def test_commands_and_options_are_offered(project: Project):
    assert offered(project, "segue ") == list(shell.COMMANDS)
    assert offered(project, "segue conv") == ["convert"]
    assert "--tool-format" in offered(project, "segue run --")
    assert offered(project, "segue completion ") == list(SHELLS)


def test_models_are_offered_with_those_of_the_user(project: Project):
    project.user_says('[providers.local]\napi = "openai-chat"\nbase_url = "http://127.0.0.1:1/v1"\nmodels = ["llama"]')
    assert offered(project, "segue run -m local/") == ["local/llama"]
    assert "anthropic/claude-sonnet-5" in offered(project, "segue run -m anthropic/")


def test_ids_are_offered_the_last_written_first(project: Project):
    kept = Kept(project.store.parent)
    first, second = kept.talk(), kept.talk()
    assert offered(project, "segue export ") == [second, first]
    assert offered(project, f"segue run -s {first}") == [first]
    assert offered(project, f"segue log show {second[:-2]}") == [second]


def test_formats_and_profiles_are_offered(project: Project):
    assert offered(project, "segue convert --to ki") == ["kimi"]
    assert "kimi-text" in offered(project, "segue run --tool-format k")
    assert offered(project, "segue convert --tool-format au") == ["auto"]
    assert offered(project, "segue check --profile gro") == ["groq"]
    assert offered(project, "segue convert ./x") == ["./x"]


def test_a_file_that_is_wrong_or_a_store_that_is_none_offers_nothing_and_says_nothing(project: Project):
    project.says('modell = "x"')
    project.store.write_bytes(b"not a database" * 100)
    assert offered(project, "segue run -m anthropic/") == []
    assert offered(project, "segue export ") == []
    assert offered(project, "segue export ", SEGUE_STORE=str(project.folder / "none.db")) == []
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
