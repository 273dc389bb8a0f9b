"""Entry points: what an installed package adds to the commands, the providers, and the clients of `segue move`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.process import ProcessResult
from tests.cli.project import Project

MODULE = """
import click
from segue.sessions.pi import Pi


@click.command("greet")
@click.argument("name")
def greet(name):
    click.echo(f"hello {name}")


class Toy(Pi):
    name = "toy"
    title = "Toy Agent"


not_a_command = 5
provider = {
    "api": "openai-chat", "base_url": "https://acme.example/v1", "key_variable": "ACME_KEY",
    "models": ["acme-1"],
}
misspelt = {"base_ulr": "https://acme.example/v1"}
client = Toy()
"""


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


@pytest.fixture
def run(project: Project, tmp_path: Path):
    """Runs `segue` beside a distribution with these entry points."""
    packages = tmp_path / "site"

    def run_with(entries: str, *arguments: str) -> ProcessResult:
        info = packages / "acme_segue-1.0.dist-info"
        info.mkdir(parents=True, exist_ok=True)
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-segue\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(entries)
        (packages / "acme_segue.py").write_text(MODULE)
        return project.run(*arguments, PYTHONPATH=str(packages))

    return run_with


def test_a_command(run) -> None:
    entries = "[segue.commands]\ngreet = acme_segue:greet\nmodels = acme_segue:greet\n"
    assert run(entries, "greet", "ada").lines == ["hello ada"]
    listed = run(entries, "--help").out.decode()
    assert listed.count("acme_segue:greet") == 1
    assert "did you mean greet?" in run(entries, "gret").err
    assert "hello" not in run(entries, "models", "zz").out.decode()  # The command of segue itself stays.


@pytest.mark.parametrize("target", ["acme_segue:gone", "no_such_module:x", "acme_segue:not_a_command"])
def test_a_command_that_does_not_load(run, target: str) -> None:
    ended = run(f"[segue.commands]\ngreet = {target}\n", "greet", "ada")
    assert ended.code == 2
    assert ended.out == b""
    assert ended.err.count("\n") == 1
    assert "entry point greet of segue.commands" in ended.err
    assert target in ended.err
    assert run(f"[segue.commands]\ngreet = {target}\n", "apis").code == 0


def test_a_provider(run, project: Project) -> None:
    entries = "[segue.providers]\nacme = acme_segue:provider\n"
    assert run(entries, "models", "acme").lines[-1].startswith("acme/acme-1")
    project.write_user_config('[providers.acme]\nmodels = ["acme-2"]\n')
    assert [line.split()[0] for line in run(entries, "models", "acme").lines if line.startswith("acme/")] == [
        "acme/acme-1",
        "acme/acme-2",
    ]


def test_a_provider_that_is_not_valid(run) -> None:
    misspelt = run("[segue.providers]\nacme = acme_segue:misspelt\n", "models", "acme")
    assert misspelt.code == 2
    assert "providers.acme.base_ulr: unknown setting; did you mean base_url?" in misspelt.err
    shipped = run("[segue.providers]\nopenai = acme_segue:provider\n", "models", "openai")
    assert shipped.code == 2
    assert "entry point openai of segue.providers: segue has a provider of this name" in shipped.err


def test_a_client(run) -> None:
    entries = "[segue.clients]\ntoy = acme_segue:client\n"
    assert run(entries, "move", "--list", "--from", "toy").code == 0
    assert "toy" in run(entries, "move", "--to", "nowhere").err
    wrong = run("[segue.clients]\ntoy = acme_segue:provider\n", "move", "--list", "--from", "toy")
    assert wrong.code == 2
    assert "entry point toy of segue.clients: acme_segue:provider is not a Client" in wrong.err
