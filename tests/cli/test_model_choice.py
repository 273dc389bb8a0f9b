"""Emulated models answer only where nothing is configured: each command with each kind of configuration."""

from __future__ import annotations

from pathlib import Path

import pytest

from segue.emulator import Emulator, start
from tests.budget import sample
from tests.cli.gateway_process import serving
from tests.cli.process import ProcessResult, is_one_line_error
from tests.cli.project import KEY, Project

REAL, EMULATED, REFUSED = "real", "emulated", "refused"
OWN = '[providers.own]\napi = "openai-chat"\nbase_url = "{url}"\n'
# The configuration file, and what each command does: the agent, and the gateway.
CONFIGURATIONS: dict[str, tuple[str, str, str]] = {
    "nothing": ("", EMULATED, EMULATED),
    "only a price": ('[prices."a/b"]\ninput = 1\noutput = 2\n', EMULATED, EMULATED),
    "model with key": (f'model = "own/m"\n{OWN}key_variable = "TEST_KEY"\n', REAL, REAL),
    "provider with key and models": (f'{OWN}key_variable = "TEST_KEY"\nmodels = ["m"]\n', REAL, REAL),
    "model whose key is missing": (f'model = "own/m"\n{OWN}key_variable = "NO_KEY"\n', REFUSED, REFUSED),
    "shipped model whose key is missing": ('model = "anthropic/claude-sonnet-5"\n', REFUSED, REFUSED),
    "provider whose key is missing": (f'{OWN}key_variable = "NO_KEY"\nmodels = ["m"]\n', REFUSED, REFUSED),
    "local server without key": (f'model = "own/m"\n{OWN}', REAL, REAL),
    "shipped local server": ('model = "vllm/m"\n[providers.vllm]\nbase_url = "{url}"\n', REAL, REAL),
    "own provider with models": (f'{OWN}models = ["m"]\n', REAL, REAL),
    "own provider without models": (OWN, REFUSED, REFUSED),
    "settings of a shipped provider": ("[providers.openai]\nmax_tokens = 100\n", REFUSED, REFUSED),
    "rules": (f'strategy = "rules"\n[[rules]]\nwhen = "otherwise"\nmodel = "own/m"\n{OWN}', REAL, REAL),
    "routes only": (f'[[gateway.routes]]\nmodel = "r"\ntargets = ["own/m"]\n{OWN}', REFUSED, REAL),
    "routes of shipped servers only": ('[[gateway.routes]]\nmodel = "r"\ntargets = ["vllm/m"]\n', REFUSED, REAL),
    "aliases only": ('[aliases]\nfast = "anthropic/claude-sonnet-5"\n', REFUSED, REFUSED),
    "rules that no route uses": (
        '[[rules]]\nwhen = "otherwise"\nmodel = "anthropic/claude-sonnet-5"\n',
        REFUSED,
        REFUSED,
    ),
    "passthrough routes only": ('[[gateway.passthrough]]\npath = "/v1/embeddings"\nprovider = "vllm"\n', REFUSED, REAL),
}
EVERY_CONFIGURATION = pytest.mark.parametrize("name", CONFIGURATIONS)
# What the option decides, whatever is configured.
SOME_CONFIGURATIONS = [pytest.mark.parametrize("name", [*sample(CONFIGURATIONS, 4, start=start)]) for start in (0, 2)]
NOTE = "no API key is set and nothing is configured: the models are emulated, and their replies are invented"
# What the reason of a refusal names.
REASONS = {
    "model whose key is missing": "set NO_KEY",
    "shipped model whose key is missing": "set ANTHROPIC_API_KEY",
    "provider whose key is missing": "set NO_KEY",
    "own provider without models": "-m own/MODEL",
    "settings of a shipped provider": "set OPENAI_API_KEY",
    "routes of shipped servers only": "no model is configured: set model",
    "aliases only": "no model is configured: set model",
    "rules of no route": "no model is configured: set model",
    "passthrough routes only": "no model is configured: set model",
}


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    made = Project(tmp_path)
    monkeypatch.chdir(made.folder)
    return made


def configure(project: Project, name: str, emulator: Emulator) -> tuple[str, str]:
    text, agent, gateway = CONFIGURATIONS[name]
    project.write_user_config(text.replace("{url}", emulator.base_url))
    return agent, gateway


def check_refusal(ended: ProcessResult, name: str) -> None:
    assert is_one_line_error(ended), ended
    assert REASONS.get(name, "") in ended.err


@EVERY_CONFIGURATION
def test_run(project: Project, name: str) -> None:
    with start("openai-chat", script="say Yes, really.\n---\nsay Yes, really.", keys=[KEY, "local"]) as emulator:
        expected, _ = configure(project, name, emulator)
        ended = project.run("run", "--no-tools", "-q", "Hi")
        if expected == REFUSED:
            # A model that is named is one request that fails.
            assert (ended.code, ended.out) == (1 if "model whose" in name else 2, b"")
            assert REASONS.get(name, "") in ended.err
            assert ended.err.count("\n") == 1
            assert project.run("log", "--json").json == [], "no conversation stays"
            return
        assert ended.code == 0, ended
        assert (ended.out == b"Yes, really.\n") == (expected == REAL)
        assert len(emulator.requests) == (expected == REAL)
        assert ended.err == ("" if expected == REAL else f"segue: {NOTE}\n")


@EVERY_CONFIGURATION
def test_chat(project: Project, name: str) -> None:
    with start("openai-chat", script="say Yes, really.", keys=[KEY, "local"]) as emulator:
        expected, _ = configure(project, name, emulator)
        ended = project.run("chat", "--no-tools", stdin=b"Hi\n")
        text = ended.out.decode() + ended.err
        assert ("emulated" in text) == (expected == EMULATED), text
        assert len(emulator.requests) == (expected == REAL)
        if expected == REFUSED:
            assert REASONS.get(name, "") in text


@EVERY_CONFIGURATION
def test_serve(project: Project, name: str) -> None:
    with start("openai-chat", script="say Yes, really.", keys=[KEY, "local"]) as emulator:
        _, expected = configure(project, name, emulator)
        if expected == REFUSED:
            check_refusal(project.run("serve", "--port", "0"), name)
            return
        with serving(project) as gateway:
            body = {"model": "r" if "routes only" in name else "any", "messages": [{"role": "user", "content": "Hi"}]}
            reply = gateway.post(body)
            assert (reply.status_code == 200 and "Yes, really." not in reply.text) == (expected == EMULATED)
            if expected == EMULATED:
                gateway.wait_for_line(NOTE)
            assert ("Yes, really." in reply.text) == (len(emulator.requests) == 1)
            has_target = expected == REAL and name not in ("routes of shipped servers only", "passthrough routes only")
            assert len(emulator.requests) == has_target


@EVERY_CONFIGURATION
def test_with(project: Project, name: str) -> None:
    with start("openai-chat", keys=[KEY, "local"]) as emulator:
        expected, _ = configure(project, name, emulator)
        ended = project.run("with", "pi", "--print", "--json")
        if expected == REFUSED:
            check_refusal(ended, name)
            return
        assert ended.json["model"].startswith("emulated/") == (expected == EMULATED)


@EVERY_CONFIGURATION
def test_doctor_and_models_say_the_same(project: Project, name: str) -> None:
    with start("openai-chat") as emulator:
        expected, _ = configure(project, name, emulator)
        doctor, models = project.run("doctor"), project.run("models")
        assert ("emulated models are used" in doctor.out.decode()) == (expected == EMULATED)
        assert ("emulated models are used" in models.err) == (expected == EMULATED)


@SOME_CONFIGURATIONS[0]
def test_emulated_by_request(project: Project, name: str) -> None:
    with start("openai-chat") as emulator:
        configure(project, name, emulator)
        ended = project.run("run", "--emulated", "--no-tools", "--json", "Hi")
        assert ended.json["emulated"] is True
        printed = project.run("with", "pi", "--emulated", "--print", "--json")
        assert printed.json["model"].startswith("emulated/")
        with serving(project, "--emulated") as gateway:
            gateway.wait_for_line("the models are emulated: their replies are not those of real models")
        assert emulator.requests == []


@SOME_CONFIGURATIONS[1]
def test_model_of_the_command_line_is_never_emulated(project: Project, name: str) -> None:
    with start("openai-chat", script="say Yes, really.", keys=["local"]) as emulator:
        configure(project, name, emulator)
        url = emulator.base_url
        project.write_config(f'[providers.mine]\napi = "openai-chat"\nbase_url = "{url}"\n')
        ended = project.run("run", "--trust", "-m", "mine/m", "--no-tools", "Hi")
        assert ended.out == b"Yes, really.\n"
        with serving(project, "--trust", "-m", "mine/m") as gateway:
            gateway.post()
        assert len(emulator.requests) == 2
        for code, *command in ((2, "serve", "--port", "0"), (2, "with", "pi", "--print"), (1, "run", "-q", "Hi")):
            ended = project.run(*command, "-m", "anthropic/claude-sonnet-5")
            assert ended.code == code
            assert "no API key for anthropic: set ANTHROPIC_API_KEY" in ended.err


def test_conversation_continues_with_its_own_model(project: Project) -> None:
    """A model that was named once, where the configuration names none."""
    with start("openai-chat", script="say One.\n---\nsay Two.", keys=["local"]) as emulator:
        configure(project, "own provider without models", emulator)
        assert project.run("run", "-m", "own/m", "--no-tools", "Hi").out == b"One.\n"
        ended = project.run("run", "-c", "--no-tools", "Hi")
        assert (ended.out, ended.code) == (b"Two.\n", 0)
        assert "own/m (last used in this conversation)" in ended.err


def test_route_to_a_model_whose_key_is_missing_is_refused(project: Project) -> None:
    with start("openai-chat", script="say Yes.", keys=["local"]) as emulator:
        configure(project, "local server without key", emulator)
        with serving(project) as gateway:
            refused = project.run("route", "anthropic/claude-sonnet-5")
            assert is_one_line_error(refused)
            assert "set ANTHROPIC_API_KEY" in refused.err
            assert gateway.post().status_code == 200


def test_reload_does_not_change_between_emulated_and_real_models(project: Project) -> None:
    with start("openai-chat") as emulator, serving(project):
        configure(project, "local server without key", emulator)
        refused = project.run("route", "--reload")
        assert is_one_line_error(refused)
        assert "started with emulated models: start segue serve again" in refused.err


@pytest.mark.parametrize("command", [("run", "hi"), ("chat",), ("serve", "--port", "0"), ("with", "pi", "--print")])
@pytest.mark.parametrize("source", ["config.toml", "SEGUE_MODEL"])
@pytest.mark.parametrize("model", ["nowhere/m", "some-model"])
def test_a_configured_model_of_no_provider_is_an_error_that_names_its_place(
    project: Project, command: tuple[str, ...], source: str, model: str
) -> None:
    variables = {"SEGUE_MODEL": model} if source == "SEGUE_MODEL" else {}
    if not variables:
        project.write_user_config(f'model = "{model}"\n')
    ended = project.run(*command, **variables)
    assert is_one_line_error(ended), ended
    assert f"{source}: model: " in ended.err
    doctor = project.run("doctor", **variables)
    assert doctor.code == 1
    assert f"{source}: model: " in doctor.out.decode()
    assert project.run("models", **variables).code == 0
