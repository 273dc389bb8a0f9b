"""Options of requests: flags, configuration, aliases and `/set`, by the bodies that a strict provider recorded."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

import segue.emulator
from segue.canonical.request import Options, Reasoning
from segue.cli.request_options import NAMES, describe_options, parse_options, parse_value
from segue.emulator import Emulator
from segue.errors import InputError
from tests.cli.process import is_one_line_error
from tests.cli.project import KEY, Project

MODEL = "openai-chat/gpt-4.1"
REASONER = "openai-chat/gpt-5.4"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    made = Project(tmp_path)
    monkeypatch.chdir(made.folder)
    return made


@pytest.fixture
def openai(project: Project) -> Iterator[Emulator]:
    with segue.emulator.start("openai-chat", script="\n---\n".join(["say Yes."] * 9), keys=[KEY]) as emulator:
        project.configure_providers(**{"openai-chat": emulator})
        yield emulator


def configure(project: Project, text: str) -> None:
    with (project.home / ".config/segue/config.toml").open("a") as file:
        file.write(text)


def body_of(emulator: Emulator, number: int = -1) -> Mapping[str, Any]:
    body = emulator.requests[number].body
    assert body is not None
    return body


def test_flags_reach_the_request(project: Project, openai: Emulator):
    flags = ("-o", "temperature=0", "-o", "seed=7", "-o", 'stop=["END"]', "--max-tokens", "500")
    assert project.run("run", "-m", MODEL, *flags, "Hi").code == 0
    body = body_of(openai)
    assert (body["temperature"], body["seed"], body["stop"], body["max_completion_tokens"]) == (0, 7, ["END"], 500)


@pytest.mark.parametrize(
    ("flags", "effort"),
    [(("--effort", "low"), "low"), (("--thinking", "9000"), "high"), (("--thinking", "off"), "none")],
)
def test_reasoning_flags_reach_the_request(project: Project, openai: Emulator, flags: tuple[str, ...], effort: str):
    assert project.run("run", "-m", REASONER, "--no-tools", *flags, "Hi").code == 0
    assert body_of(openai)["reasoning_effort"] == effort


def test_options_are_taken_from_the_tables_of_provider_and_model(project: Project, openai: Emulator):
    configure(project, f'temperature = 0.5\ntop_p = 0.5\n[models."{MODEL}"]\ntop_p = 0.9\nmax_tokens = 700\n')
    assert project.run("run", "-m", MODEL, "Hi").code == 0
    body = body_of(openai)
    assert (body["temperature"], body["top_p"], body["max_completion_tokens"]) == (0.5, 0.9, 700)
    assert project.run("run", "-m", MODEL, "-o", "top_p=0.1", "Hi").code == 0
    assert (body_of(openai)["top_p"], body_of(openai)["temperature"]) == (0.1, 0.5)


def test_sizes_of_a_model_can_be_configured(project: Project, openai: Emulator):
    configure(project, '[models."openai-chat/some-model"]\ncontext = 50_000\nmax_output = 9_000\n')
    assert project.run("run", "-m", "openai-chat/some-model", "Hi").code == 0
    assert body_of(openai)["max_completion_tokens"] == 9_000


def test_alias_names_a_model_and_its_options(project: Project, openai: Emulator):
    configure(project, f'[aliases]\nmine = "{MODEL}"\n[models.mine]\nseed = 3\n')
    ended = project.run("run", "-m", "mine", "Hi")
    assert MODEL in ended.err
    assert (body_of(openai)["model"], body_of(openai)["seed"]) == ("gpt-4.1", 3)


def test_several_models_can_stand_beside_the_table_of_models(project: Project):
    project.write_user_config('model = ["a/b", "c/d"]\n[models."a/b"]\ntemperature = 1\n')
    ended = project.run("run", "Hi")
    assert is_one_line_error(ended)
    assert "'a' is not a known provider" in ended.err


@pytest.mark.parametrize(
    ("flags", "reason"),
    [
        (("-o", "temprature=1"), "did you mean temperature?"),
        (("-o", "temperature"), "expected KEY=VALUE"),
        (("-o", "temperature=hot"), 'temperature: expected a number, not "hot"'),
        (("-o", "max_tokens=0"), "max_tokens: expected a whole number above 0"),
        (("--effort", "huge"), "effort: expected one of none, minimal, low"),
        (("--thinking", "maybe"), "thinking: expected on, off, or a number of tokens"),
    ],
)
def test_mistake_in_a_flag_is_a_usage_error_and_stores_nothing(project: Project, flags: tuple[str, ...], reason: str):
    ended = project.run("run", "-m", MODEL, *flags, "Hi")
    assert is_one_line_error(ended)
    assert reason in ended.err
    assert not project.store.exists()


@pytest.mark.parametrize(
    "text", ['[models."a/b"]\neffort = "huge"', '[models."a/b"]\nthinking = "x"', "[models.x]\nfoo = 1"]
)
def test_mistake_in_a_table_names_the_file_and_the_table(project: Project, text: str):
    project.write_user_config(text)
    ended = project.run("run", "Hi")
    assert is_one_line_error(ended)
    assert "config.toml: models." in ended.err


def test_set_shows_changes_and_unsets_options(project: Project, openai: Emulator):
    configure(project, f'[models."{MODEL}"]\ntop_p = 0.9\n')
    lines = b"/set\n/set temperature 0\nHi\n/set\n/set temperature default\nHi\n/set nope 1\n/set seed x\n"
    ended = project.run("chat", "-m", MODEL, stdin=lines)
    assert ended.code == 0, ended.err
    assert [body_of(openai, at).get("temperature") for at in (0, 1)] == [0, None]
    output = ended.out.decode()
    assert "configured for openai-chat/gpt-4.1" in output
    assert "temperature  0    set here" in output
    assert "unknown option 'nope'" in output
    assert 'seed: expected a whole number, not "x"' in output


def test_options_have_one_form_in_all_places():
    values = {"temperature": 0, "stop": ["a"], "store": True, "effort": "low", "thinking": 2_000, "parallel": False}
    options = parse_options(values)
    assert options == Options(
        temperature=0,
        stop=("a",),
        parallel=False,
        reasoning=Reasoning(enabled=True, effort="low", budget=2_000),
        vendor_options={"store": True},
    )
    shown = describe_options(options)
    assert parse_options({name: parse_value(text) for name, text in shown.items()}) == options
    assert set(shown) <= set(NAMES)


@pytest.mark.parametrize("values", [{"stop": [1]}, {"parallel": 1}, {"top_k": 1.5}, {"seed": True}, {"user": 3}])
def test_value_of_another_type_is_rejected(values: dict[str, Any]):
    with pytest.raises(InputError, match=next(iter(values))):
        parse_options(values)


def test_dropped_option_is_reported_once(project: Project) -> None:
    ended = project.run("run", "--emulated", "-m", "openai-chat/gpt-4.1", "-o", "top_k=5", "say hello")
    assert ended.code == 0
    assert ended.err.count("lost: ") == 1
    assert "top_k" in ended.err
