"""`segue models`, and models that a local server has."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

import segue.emulator
from tests.cli.model_server import serve_models
from tests.cli.process import is_one_line_error
from tests.cli.project import Project

OLLAMA = {
    "/v1/models": {"object": "list", "data": [{"id": "qwen3:8b"}, {"id": "llama3:latest"}]},
    "/api/ps": {"models": [{"name": "llama3:latest", "model": "llama3:latest", "context_length": 8_192}]},
}
VLLM = {"/v1/models": {"object": "list", "data": [{"id": "Qwen/Qwen3-Coder", "max_model_len": 32_768}]}}


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    made = Project(tmp_path)
    monkeypatch.chdir(made.folder)
    return made


@pytest.fixture
def closed_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


# ------------------------------------------------------------------------------------------------------------- listing


def test_models_are_listed_with_context_and_prices(project: Project):
    [line] = [line for line in project.run("models", "anthropic").lines if line.endswith("(default)")]
    assert line.split() == ["anthropic/claude-sonnet-5", "1,000,000", "tokens", "$2", "/", "$10", "(default)"]
    [row] = project.run("models", "claude", "--json").json
    prices = {"input": 2.0, "output": 10.0, "cache_read": 0.2, "cache_write": 2.5, "cache_write_1h": 4.0}
    expected = {"context": 1_000_000, "max_output": 128_000, "prices": prices}
    assert row["models"]["claude-sonnet-5"] == expected


def test_configured_sizes_are_listed(project: Project):
    project.write_user_config(
        '[providers.lab]\napi = "openai-chat"\nbase_url = "http://127.0.0.1:9/v1"\nmodels = ["m", "n"]\n'
        '[models."lab/m"]\ncontext = 32_768\n[models."kimi/kimi-k2.6"]\nmax_output = 1_000\n'
    )
    assert [line.split()[:2] for line in project.run("models", "lab").lines] == [["lab/m", "32,768"], ["lab/n"]]
    [row] = project.run("models", "kimi-k2.6", "--json").json[:1]
    assert (row["models"]["kimi-k2.6"]["context"], row["models"]["kimi-k2.6"]["max_output"]) == (262_144, 1_000)


def test_configured_prices_are_listed(project: Project):
    """They are those that the cost is computed with; a local server has no public price."""
    project.write_user_config(
        '[providers.lab]\napi = "openai-chat"\nbase_url = "https://lab.example/v1"\nmodels = ["m", "claude-opus-5"]\n'
        '[providers.home]\napi = "openai-chat"\nbase_url = "http://127.0.0.1:9/v1"\nmodels = ["claude-opus-5"]\n'
        '[prices."lab/m"]\ninput = 1.5\noutput = 7\n[prices."anthropic/claude-sonnet-5"]\ninput = 3\noutput = 15\n'
        '[providers.moonshot.models."kimi-k2.6"]\ninput = 4\noutput = 16\n'
    )
    [lab, public] = project.run("models", "lab").lines
    assert lab.split()[:4] == ["lab/m", "$1.5", "/", "$7"]
    assert "$" in public
    assert "$" not in "".join(project.run("models", "home").lines)
    assert "$3 / $15" in next(line for line in project.run("models", "anthropic").lines if "/claude-sonnet-5 " in line)
    assert "$4 / $16" in next(line for line in project.run("models", "moonshot").lines if "/kimi-k2.6 " in line)
    models = project.run("models", "anthropic", "--json").json[0]["models"]
    assert models["claude-sonnet-5"]["prices"]["input"] == 3


def test_part_of_a_name_lists_the_models_that_have_it(project: Project):
    lines = project.run("models", "k3").lines
    assert [line.split()[0] for line in lines] == ["moonshot/kimi-k3", "openrouter/moonshotai/kimi-k3"]


@pytest.mark.parametrize("api", ["kimi", "qwen", "openai-responses", "azure-foundry"])
def test_api_stands_for_its_provider(project: Project, api: str):
    assert project.run("models", api).code == 0


def test_nothing_that_matches_is_reported(project: Project):
    ended = project.run("models", "zz")
    assert is_one_line_error(ended)
    assert "no provider or model matches 'zz'" in ended.err


# -------------------------------------------------------------------------------------------------------------- online


def test_online_lists_what_a_server_has(project: Project):
    with serve_models(VLLM) as server:
        project.write_user_config(f'[providers.vllm]\nbase_url = "{server.url}/v1"\n')
        ended = project.run("models", "vllm", "--online")
        assert ended.lines == ["vllm/Qwen/Qwen3-Coder  32,768 tokens"]
        listed = project.run("models", "vllm", "--online", "--json").json
    assert [(entry["name"], entry["context"]) for entry in listed["vllm"]] == [("Qwen/Qwen3-Coder", 32_768)]


def test_online_without_a_name_lists_providers_with_a_key(project: Project):
    with segue.emulator.start("anthropic", keys=["sk-test-0123456789"]) as emulator:
        project.configure_providers(anthropic=emulator)
        closed = '[providers.ollama]\nbase_url = "http://127.0.0.1:1/v1"\n[providers.vllm]\nbase_url = "http://127.0.0.1:1/v1"\n'
        with (project.home / ".config/segue/config.toml").open("a") as file:
            file.write(closed)
        ended = project.run("models", "--online")
    assert ended.lines
    assert all(line.startswith("anthropic/") for line in ended.lines)
    assert ended.err == ""


def test_online_reports_a_server_that_does_not_run(project: Project, closed_port: int):
    project.write_user_config(f'[providers.ollama]\nbase_url = "http://127.0.0.1:{closed_port}/v1"\n')
    ended = project.run("models", "ollama", "--online")
    assert is_one_line_error(ended, 1)
    assert "is Ollama running?" in ended.err


# ------------------------------------------------------------------------------------------------- what a server serves


def test_server_named_alone_uses_the_model_in_its_memory(project: Project):
    with serve_models(OLLAMA) as server:
        project.write_user_config(f'[providers.ollama]\nbase_url = "{server.url}/v1"\n')
        ended = project.run("run", "-m", "ollama", "Hi")
    assert (ended.code, ended.lines) == (0, ["Hello."]), ended.err
    assert server.bodies[0]["model"] == "llama3:latest"
    assert "ollama/llama3:latest (the model that the server has)" in ended.err


def test_server_without_a_list_of_loaded_models_uses_its_first(project: Project):
    with serve_models(VLLM) as server:
        project.write_user_config(f'[providers.vllm]\nbase_url = "{server.url}/v1"\n[aliases]\nlocal = "vllm"\n')
        ended = project.run("run", "-m", "local", "-q", "Hi")
        assert ended.code == 0, ended.err
        chat = project.run("chat", "-m", "local", stdin=b"Hi\n/tokens\n/context\n").out.decode()
    assert server.bodies[0]["model"] == "Qwen/Qwen3-Coder"
    assert "of 32.8k" in chat
    assert "32,768 tokens" in chat


def test_doctor_accepts_a_server_as_the_model(project: Project):
    project.write_user_config('model = "ollama"\n')
    [row] = [line for line in project.run("doctor").lines if " model " in line]
    assert row.startswith("ok")


def test_server_without_models_is_an_error(project: Project):
    with serve_models({"/v1/models": {"data": []}}) as server:
        project.write_user_config(f'[providers.vllm]\nbase_url = "{server.url}/v1"\n')
        ended = project.run("run", "-m", "vllm", "Hi")
    assert is_one_line_error(ended)
    assert "has no models" in ended.err


def test_refused_port_is_not_retried(project: Project, closed_port: int):
    project.write_user_config(f'[providers.ollama]\nbase_url = "http://127.0.0.1:{closed_port}/v1"\n')
    for model in ("ollama", "ollama/llama3"):
        ended = project.run("run", "-m", model, "Hi")
        assert ended.code == 1
        assert f"segue: {model} can't be reached: " in ended.err
        assert "is Ollama running?" in ended.err
        assert "retrying" not in ended.err


def test_context_of_an_unknown_model_is_learned_from_the_list_of_its_server(project: Project):
    with serve_models(VLLM) as server:
        project.write_user_config(f'[providers.mine]\napi = "openai-chat"\nbase_url = "{server.url}/v1"\n')
        chat = project.run("chat", "-m", "mine/Qwen/Qwen3-Coder", stdin=b"Hi\nAnd?\n/tokens\n").out.decode()
    assert "of 32.8k" in chat


def test_model_alone_belongs_to_the_users_own_provider(project: Project):
    with serve_models({}) as server:
        project.write_user_config(
            f'[providers.mine]\napi = "openai-chat"\nbase_url = "{server.url}/v1"\nmodels = ["gpt-5"]\n'
        )
        ended = project.run("run", "-m", "gpt-5", "Hi")
    assert ended.code == 0, ended.err
    assert "mine/gpt-5" in ended.err
